"""What ``spectui doctor`` says to people: the verdict first, then why, and what mends it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from spectui.cli.columns import Columns, wrapped
from spectui.domain.facts import Device, EngineFacts, Facts
from spectui.domain.findings import Finding, Fix, Severity
from spectui.domain.fitting import Fit
from spectui.domain.memory import HEADROOM, gib
from spectui.domain.preflight import Preflight, Question, Reply
from spectui.domain.text import clean

SIGNS: Mapping[Severity | Reply, str] = MappingProxyType(
    {
        Severity.BLOCKER: "✗",
        Severity.WARNING: "!",
        Severity.HINT: "·",
        Severity.GOOD: "✓",
        Reply.YES: "✓",
        Reply.NO: "✗",
        Reply.UNKNOWN: "?",
    }
)
_BESIDE = 100  # columns from which on the answer stands beside the question
_INDENT = "  "


def doctor_lines(
    facts: Facts, found: Preflight, width: int | None, name: str = ""
) -> Iterator[str]:
    """Yield lines of at most ``width`` (None: of any), save words that must stay whole.

    ``name`` is the profile's; without a profile the machine is described.
    """
    worst = min((f.severity for f in found.findings), key=list(Severity).index, default=None)
    sign = SIGNS[worst if worst in {Severity.BLOCKER, Severity.WARNING} else Severity.GOOD]
    title = f"{clean(name, limit=200)}: " if name else ""
    yield from wrapped(f"{sign} {title}{found.verdict}", width)
    yield from _findings(found.blockers, width)
    if facts.plan is None:
        yield ""
        yield from _machine(facts, width)
    else:
        yield ""
        yield from _questions(found.questions, width)
    if found.fit is not None:
        yield ""
        yield from _memory(found.fit, width)
    yield from _findings((f for f in found.findings if f not in found.blockers), width)


# -- findings --------------------------------------------------------------------------------------


def _findings(findings: Iterable[Finding], width: int | None) -> Iterator[str]:
    for finding in findings:
        yield ""
        yield f"{SIGNS[finding.severity]} {finding.severity}  {finding.code}"
        yield from wrapped(clean(finding.what), width, _INDENT)
        if finding.advice:
            yield from wrapped(clean(finding.advice), width, _INDENT)
        for fix in finding.fixes:
            yield from _fix(fix, width)


def _fix(fix: Fix, width: int | None) -> list[str]:
    """Return the fix and the options that try it out, beside it or below."""
    label, options = f"{_INDENT}→ {clean(fix.label, limit=120)}:", as_options(fix)
    line = f"{label} {options}"
    if width is None or len(line) <= width:
        return [line]
    return [label, f"{_INDENT}  {options}"]  # whole, so that it can be copied


def as_options(fix: Fix) -> str:
    """Return a fix as ``--set`` takes it on every command line; no value takes a key away."""
    pairs = (f"{key}={_value(value)}" for key, value in fix.changes)
    return clean(" ".join(f"--set {shlex.quote(pair)}" for pair in pairs))


def _value(value: object) -> str:
    if value is None:
        return ""
    return str(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# -- questions -------------------------------------------------------------------------------------


def _questions(questions: Iterable[Question], width: int | None) -> Iterator[str]:
    listed = list(questions)
    words = max(len(question.answer) for question in listed)
    asked = max(len(question.question) for question in listed)
    yield "Five questions"
    for question in listed:
        sign = SIGNS[question.answer]
        head = f"{_INDENT}{sign} {question.answer:<{words}}  "
        why = clean(question.why)
        if width is not None and width < _BESIDE:
            yield head + question.question
            yield from wrapped(why, width, " " * len(head))
            continue
        head += f"{question.question:<{asked}}  "
        first, *rest = wrapped(why, width, " " * len(head)) or [""]
        yield head + first.strip()
        yield from rest


# -- memory ----------------------------------------------------------------------------------------


def _memory(fit: Fit, width: int | None) -> Iterator[str]:
    """Yield the estimate as a table, with a column for each place that is in use."""
    estimate = fit.estimate
    gpu, host = fit.on_gpu or estimate.gpu > 0, not fit.on_gpu or estimate.host > 0
    places = [name for name, used in (("GPU", gpu), ("RAM", host)) if used]

    def row(name: str, on_gpu: int | None, in_ram: int | None, note: str = "") -> tuple[str, ...]:
        sizes = {"GPU": on_gpu, "RAM": in_ram}
        cells = (gib(size) if (size := sizes[place]) else "–" for place in places)
        return (name, *cells, clean(note, limit=120))

    rows = [row(part.name, part.gpu, part.host, part.note) for part in estimate.parts]
    rows.append(row("wanted", estimate.gpu, estimate.host))
    if fit.free is not None:
        mine, other = (fit.free, None) if fit.on_gpu else (None, fit.free)
        each = " on each GPU" if fit.room is not None and fit.free - fit.room > HEADROOM else ""
        rows.append(row("free", mine, other, f"{gib(HEADROOM)}{each} is kept as head-room"))
    head = ("", *places, "")
    columns = Columns(
        [head, *rows], width, right=frozenset(range(1, len(places) + 1)), indent=_INDENT
    )
    yield f"Memory at a context of {estimate.context:,} tokens, an estimate"
    if len(places) > 1:
        yield from columns.lines(head)
    for line in rows:
        yield from columns.lines(line)
    for unknown in estimate.unknown:
        yield from wrapped(f"not counted: {clean(unknown, limit=120)}", width, _INDENT)


# -- the machine -----------------------------------------------------------------------------------


def _machine(facts: Facts, width: int | None) -> Iterator[str]:
    machine = facts.machine
    free = f"{gib(machine.memory_free)} of {gib(machine.memory_total)} free"
    rows = [("processor", machine.cpu), ("memory", free if machine.memory_total else "not known")]
    rows += [("GPU", _device(device)) for device in machine.devices]
    if not machine.devices:
        rows.append(("GPU", f"none ({machine.gpu_note})" if machine.gpu_note else "none"))
    if machine.hidden:
        rows.append(("", f"{machine.hidden} limits what the server sees"))
    for engine in facts.engines:
        rows += [("engine", line) for line in _engine(engine)]
    room = gib(facts.state.free) if facts.state.free is not None else "not known"
    rows.append(("records", f"{facts.state.path} ({room} free)"))
    rows += [("config", file.path) for file in facts.config_files]
    rows += [("variable", variable.key) for variable in facts.variables]
    yield "This machine"
    for name, text in rows:
        first, *rest = wrapped(clean(text, limit=300), width, " " * 13) or [""]
        yield f"{_INDENT}{name:<9}  {first.strip()}".rstrip()
        yield from rest


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
        yield f"it sees {', '.join(_device(d) for d in engine.devices) or 'no GPU'}"
