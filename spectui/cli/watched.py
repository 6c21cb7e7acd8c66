"""What was seen of a server that somebody else runs: one JSON-ready object, and its plain lines."""

from __future__ import annotations

from spectui.domain.acceptance import Acceptance
from spectui.domain.phases import UP, Phase
from spectui.domain.runs import WATCHED, Summary
from spectui.domain.samples import Snapshot, SourceStatus
from spectui.domain.text import clean

Json = dict[str, object]

_PHASES = {"starting": "not reached yet", "failed": "not reached"}
"""Words for phases that mean something else where nothing was started."""


def read(snapshot: Snapshot) -> bool:
    """Whether there is something to print: each source has been asked, or the server is away."""
    if snapshot.phase not in UP:
        return snapshot.phase is Phase.FAILED
    asked = snapshot.sources["metrics"].status is not SourceStatus.WAITING
    attached = snapshot.attached
    slots = attached is not None and attached.kind.has_slots
    return asked and (not slots or snapshot.sources["slots"].status is not SourceStatus.WAITING)


def watched_report(snapshot: Snapshot, seconds: float | None, *, version: str) -> Json:
    """Return what was seen in ``seconds``, or since the server's start where that is None.

    Speeds in tok/s, rates 0 to 1, null where it is not known. ``requests`` is the least that it can
    have been: short ones pass between two readings. ``tps`` is what was in flight, all requests
    together, as a mean over the time in which there was something; ``decode_tps`` is by requests
    that have ended, each on its own.
    """
    attached = snapshot.attached
    assert attached is not None  # noqa: S101 - only a watched server is reported
    found = [s for run in snapshot.runs if run.arm == WATCHED for s in [_of(snapshot, run.number)]]
    newest = found[-1] if found else Summary()
    rates = [point.tps for point in snapshot.speed if point.tps is not None]
    since = seconds is not None
    return {
        "spectui": version,
        "url": snapshot.url,
        "kind": str(attached.kind),
        "model": attached.model or None,
        "build": (snapshot.engine.build if snapshot.engine else "") or None,
        "phase": str(snapshot.phase),
        "speculating": attached.speculating,
        "types": list(attached.types),
        "seconds": None if seconds is None else round(seconds, 3),
        "since": "attaching" if since else "the server's start",
        "restarts": len(found) - 1 if found else 0,
        "requests": newest.requests if since and attached.kind.has_slots else None,
        "tokens": newest.tokens if since else None,
        "tps": sum(rates) / len(rates) if since and rates else None,
        "decode_tps": newest.decode_tps if since else None,
        **_acceptance(newest.acceptance if since else attached.totals),
        "said_acceptance_length": attached.said_length,
        "missing": list(attached.missing),
    }


def _of(snapshot: Snapshot, number: int) -> Summary:
    return snapshot.summaries.get(number, Summary())


def _acceptance(found: Acceptance) -> Json:
    return {
        "drafted": found.drafted,
        "accepted": found.accepted,
        "drafts": found.drafts,
        "acceptance_rate": found.rate,
        "mean_acceptance_length": found.mean_length,
        "accepted_at": list(found.accepted_at),
        "unconditional": list(found.unconditional),
        "conditional": list(found.conditional),
        "exact": found.exact,
    }


def lines(report: Json) -> list[str]:
    """Return the same for people: one line for each thing that is known."""
    speculation = {True: "speculates", False: "does not speculate", None: ""}
    types = report["types"]
    said = [
        report["kind"],
        report["model"],
        report["build"],
        _PHASES.get(str(report["phase"]), report["phase"]),
        speculation[report["speculating"]],  # type: ignore[index]  # true, false or null
        f"({', '.join(types)})" if isinstance(types, list) and types else "",
    ]
    found = [_line("server", f"{report['url']}  {' '.join(str(word) for word in said if word)}")]
    when = "since the server's start"
    if report["seconds"] is not None:
        when = f"in {report['seconds']:.0f} s"
        requests = f" from at least {_count(report)}" if report["requests"] else ""
        found.append(_line("tokens", f"{report['tokens'] or 'none'} {when}{requests}"))
    for key, name in (("tps", "in flight"), ("decode_tps", "decode speed")):
        if report[key] is not None:
            found.append(_line(name, f"{report[key]:.1f} tok/s"))
    if report["drafts"]:
        found.extend(_accepted(report, when))
    elif report["said_acceptance_length"] is not None:
        own = f"{report['said_acceptance_length']:.2f} a step, says the server of its last steps"
        found.append(_line("accepted", own))
    elif report["speculating"] and not report["missing"]:
        found.append(_line("accepted", f"nothing was drafted {when}"))
    missing = report["missing"]
    found.extend(_line("missing", text) for text in (missing if isinstance(missing, list) else []))
    return [clean(line, limit=400) for line in found]


def _accepted(report: Json, when: str) -> list[str]:
    rate = report["acceptance_rate"]
    share = "" if not isinstance(rate, float) else f"{rate * 100:.1f} % of {report['drafted']}, "
    told = [_line("accepted", f"{share}{report['mean_acceptance_length']:.2f} a step {when}")]
    positions = report["unconditional"]
    if isinstance(positions, list) and positions:
        told.append(
            _line("by position", " ".join(f"{rate * 100:.0f}" for rate in positions) + " %")
        )
    return told


def _count(report: Json) -> str:
    return "1 request" if report["requests"] == 1 else f"{report['requests']} requests"


def _line(name: str, text: str) -> str:
    return f"{name:13}{text}"
