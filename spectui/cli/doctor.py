"""``spectui doctor``: what would go wrong, before anything is launched.

The exit status is 0 where nothing would fail, 1 where something would, 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from spectui.checkup import gather, read_leniently
from spectui.cli.columns import terminal_width
from spectui.cli.doctor_lines import SIGNS, doctor_lines
from spectui.domain.errors import UsageError
from spectui.domain.facts import EngineFacts, Facts
from spectui.domain.findings import Severity
from spectui.domain.fitting import Fit
from spectui.domain.memory import HEADROOM
from spectui.domain.preflight import Preflight, preflight

_PLAIN = str.maketrans("✗✓·→←–×…", "x+-><-x~")
_COLOURS = {Severity.BLOCKER: 31, Severity.WARNING: 33, Severity.GOOD: 32}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``spectui doctor``."""
    parser.description = (
        "Look for what would go wrong, before anything is launched. Without a profile: the"
        " machine, its engines, and what changes llama-server's flags behind one's back."
    )
    parser.epilog = (
        "exit status: 0 nothing that would fail, 1 something would, 2 wrong usage. --json prints"
        " one object: verdict; questions [id, question, answer yes|no|unknown, why]; findings"
        " [code, severity blocker|warning|hint|good, what, advice, fixes [label, changes [key,"
        " value; null takes the key away]]], the gravest first; memory (null where it cannot be"
        " told; sizes in bytes) and machine. Codes are those of `spectui explain` where both know"
        " the trouble."
    )
    parser.add_argument("profile", nargs="?", type=Path, help="a TOML profile")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="settings",
        metavar="KEY=VALUE",
        help="change one key of the profile, e.g. speculation.n_max=4; no VALUE takes it away",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout")


def main(options: argparse.Namespace) -> int:
    """Print what was found; return 1 where something would fail, else 0."""
    facts = _facts(options)
    found = preflight(facts)
    if options.json:
        print(json.dumps(as_json(facts, found), indent=2))
    else:
        name = options.profile.name if options.profile else ""
        for line in doctor_lines(facts, found, terminal_width(), name):
            print(_shown(line))
    return 1 if found.blockers else 0


def _facts(options: argparse.Namespace) -> Facts:
    if options.profile is None:
        if options.settings:
            raise UsageError("--set changes a profile, and none is named", "name one before it")
        return gather()
    data, refusal = read_leniently(options.profile, options.settings)
    return gather(data, refusal=refusal, source=options.profile)


def _shown(line: str) -> str:
    """Return a line as this terminal can show it: without colours or signs that it lacks."""
    terminal = os.environ.get("TERM", "")
    plain = terminal == "dumb" or "utf" not in (sys.stdout.encoding or "").lower()
    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and not plain
    for severity, colour in _COLOURS.items():
        if coloured and line.startswith(f"{SIGNS[severity]} "):
            return f"\x1b[1;{colour}m{line}\x1b[0m"
    return line.translate(_PLAIN) if plain else line


def as_json(facts: Facts, found: Preflight) -> dict[str, object]:
    """Return everything as plain values; sizes in bytes."""
    return {
        "verdict": found.verdict,
        "questions": [
            {"id": q.id, "question": q.question, "answer": q.answer.value, "why": q.why}
            for q in found.questions
        ],
        "findings": [finding.as_json() for finding in found.findings],
        "memory": _fit_json(found.fit) if found.fit else None,
        "machine": _machine_json(facts),
    }


def _fit_json(fit: Fit) -> dict[str, object]:
    return {
        "estimate": True,
        "context": fit.estimate.context,
        "parts": [asdict(part) for part in fit.estimate.parts],
        "gpu": fit.estimate.gpu,
        "host": fit.estimate.host,
        "on_gpu": fit.on_gpu,
        "free": fit.free,
        "headroom": HEADROOM,
        "fits": fit.fits,
        "unknown": list(fit.estimate.unknown),
    }


def _machine_json(facts: Facts) -> dict[str, object]:
    machine = facts.machine
    engines: Sequence[EngineFacts] = facts.engines
    if facts.engine is not None:
        engines = (facts.engine, *(e for e in facts.engines if e != facts.engine))
    return {
        "cpu": machine.cpu,
        "memory_total": machine.memory_total,
        "memory_free": machine.memory_free,
        "gpus": [asdict(device) for device in machine.devices],
        "engines": [
            {
                "kind": engine.kind,
                "program": engine.program,
                "build": engine.build,
                "problem": asdict(engine.problem) if engine.problem else None,
                "gpus": None
                if engine.devices is None
                else [asdict(device) for device in engine.devices],
            }
            for engine in engines
        ],
        "config_files": [
            {"path": file.path, "keys": [entry.key for entry in file.entries]}
            for file in facts.config_files
        ],
        # values may be secrets: names are enough
        "variables": [{"name": v.key, "passed_on": v.passed_on} for v in facts.variables],
        "records": {"path": facts.state.path, "free": facts.state.free},
    }
