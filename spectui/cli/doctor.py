"""``spectui doctor``: what would go wrong, before anything is launched."""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from spectui.checkup import gather, read_leniently
from spectui.domain.errors import UsageError
from spectui.domain.facts import Device, EngineFacts, Facts
from spectui.domain.findings import Finding, Fix, Severity
from spectui.domain.fitting import Fit
from spectui.domain.memory import GIB, HEADROOM, gib
from spectui.domain.preflight import Preflight, preflight
from spectui.domain.text import clean

_SIGNS = {
    Severity.BLOCKER: "x FAIL",
    Severity.WARNING: "! LOOK",
    Severity.HINT: "- hint",
    Severity.GOOD: "+ good",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``spectui doctor``."""
    parser.description = (
        "Look for what would go wrong, before anything is launched. Without a profile: the"
        " machine, its engines, and what changes llama-server's flags behind one's back."
    )
    parser.epilog = "exit status: 0 nothing that would fail, 1 something would, 2 wrong usage"
    parser.add_argument("profile", nargs="?", type=Path, help="a TOML profile")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="settings",
        metavar="KEY=VALUE",
        help="change one key of the profile, e.g. speculation.n_max=4",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout")


def main(options: argparse.Namespace) -> int:
    """Print what was found; return 1 where something would fail, else 0."""
    facts = _facts(options)
    found = preflight(facts)
    if options.json:
        print(json.dumps(as_json(facts, found), indent=2))
    else:
        width = max(60, min(shutil.get_terminal_size((100, 24)).columns, 120))
        print("\n".join(as_text(facts, found, width)))
    return 1 if found.blockers else 0


def _facts(options: argparse.Namespace) -> Facts:
    if options.profile is None:
        if options.settings:
            raise UsageError("--set changes a profile, and none is named", "name one before it")
        return gather()
    data, refusal = read_leniently(options.profile, options.settings)
    return gather(data, refusal=refusal, source=options.profile)


# -- for people ------------------------------------------------------------------------------------


def as_text(facts: Facts, found: Preflight, width: int = 100) -> Iterator[str]:
    """Yield lines for people, at most ``width`` wide where words can be broken."""
    if facts.plan is None:
        yield from _machine(facts)
    else:
        for number, question in enumerate(found.questions, start=1):
            text = f"{number} {question.question}  {question.answer}: {clean(question.why)}"
            yield from _wrapped(text, width, "  ")
        if found.fit is not None:
            yield ""
            yield from _memory(found.fit)
    if found.findings:
        yield ""
    for finding in found.findings:
        yield from _finding(finding, width)
    yield ""
    yield found.verdict


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    return textwrap.wrap(
        text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _finding(finding: Finding, width: int) -> Iterator[str]:
    head = f"{_SIGNS[finding.severity]}  {finding.code}: "
    yield from _wrapped(head + clean(finding.what), width, " " * 8)
    if finding.advice:
        yield from _wrapped(f"        do: {clean(finding.advice)}", width, " " * 12)
    for fix in finding.fixes:
        yield f"        fix: {clean(fix.label, limit=120)}: {_shell(fix)}"


def _shell(fix: Fix) -> str:
    """Return a fix as options for the command line; a key that is to go has none."""
    sets = [(key, value) for key, value in fix.changes if value is not None]
    gone = [key for key, value in fix.changes if value is None]
    parts = [f"--set {shlex.quote(f'{key}={_toml(value)}')}" for key, value in sets]
    if gone:
        parts.append(f"take out {', '.join(gone)}")
    return clean(" ".join(parts) if not gone else " and ".join(parts))


def _toml(value: object) -> str:
    """Return a value as --set takes it: a text plainly where it is not one of something else."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return json.dumps(list(value), ensure_ascii=False)
    return str(value)


def _memory(fit: Fit) -> Iterator[str]:
    """Yield the estimate as a table in GiB."""
    rows = [(part.name, part.gpu, part.host, part.note) for part in fit.estimate.parts]
    rows.append(("all", fit.estimate.gpu, fit.estimate.host, ""))
    wide = max(len(row[0]) for row in rows) + 2
    title = f"memory at a context of {fit.estimate.context}, an estimate in GiB"
    yield title
    yield f"  {'':<{wide}}{'GPU':>8}{'RAM':>8}"
    digits = 2 if fit.estimate.gpu + fit.estimate.host > GIB else 3
    for name, gpu, host, note in rows:
        yield f"  {name:<{wide}}{_cell(gpu, digits)}{_cell(host, digits)}  {note}".rstrip()
    if fit.free is not None:
        free = _cell(fit.free, digits)
        where = f"{free}{'':>8}" if fit.on_gpu else f"{'':>8}{free}"
        kept = f"{HEADROOM / GIB:.0f} GiB of it is kept as head-room on each device"
        yield f"  {'free':<{wide}}{where}  {kept}"
    for unknown in fit.estimate.unknown:
        yield f"  not counted: {clean(unknown, limit=120)}"


def _cell(size: int, digits: int) -> str:
    return f"{size / GIB:>8.{digits}f}" if size else f"{'-':>8}"


def _machine(facts: Facts) -> Iterator[str]:
    machine = facts.machine
    free = f"{gib(machine.memory_free)} of {gib(machine.memory_total)} free"
    rows = [("processor", machine.cpu), ("memory", free if machine.memory_total else "not known")]
    rows += [("GPU", _device(device)) for device in machine.devices]
    if not machine.devices:
        rows.append(("GPU", f"none ({machine.gpu_note})" if machine.gpu_note else "none"))
    if machine.hidden:
        rows.append(("", f"{machine.hidden} limits what the server sees"))
    rows += [("engine", line) for engine in facts.engines for line in _engine(engine)]
    room = gib(facts.state.free) if facts.state.free is not None else "not known"
    rows.append(("records", f"{facts.state.path} ({room} free)"))
    rows += [("config", file.path) for file in facts.config_files]
    rows += [("variable", variable.key) for variable in facts.variables]
    for name, text in rows:
        yield f"{name:<10} {clean(text, limit=300)}"


def _device(device: Device) -> str:
    if device.free is None or device.total is None:
        return f"{device.name} {device.what}"
    return f"{device.name} {device.what}, {gib(device.free)} of {gib(device.total)} free"


def _engine(engine: EngineFacts) -> Iterator[str]:
    if engine.problem is not None:
        fix = f": {engine.problem.fix}" if engine.problem.fix else ""
        yield f"{engine.kind}: {engine.problem.what}{fix}"
        return
    name = f"{engine.kind}: {engine.program}" if engine.program else engine.kind
    words = f", {engine.dialect.name}" if engine.dialect else ""
    yield f"{name} ({engine.build or 'build not known'}{words})"
    if engine.devices is not None and engine.kind != "embedded":
        yield f"  sees {', '.join(_device(d) for d in engine.devices) or 'no GPU'}"


# -- for programs ----------------------------------------------------------------------------------


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
