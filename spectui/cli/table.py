"""A measurement as a table for people."""

from __future__ import annotations

from spectui.domain.runs import Run
from spectui.domain.samples import Snapshot

_HEAD = ("arm", "tok/s", "vs off", "95 % interval", "accepted", "mean length", "prompts", "")


def result_table(snapshot: Snapshot) -> str:
    """Return the answer and one row per run, columns aligned."""
    runs = sorted(snapshot.runs, key=lambda run: (run.number != snapshot.baseline, run.number))
    rows = [_HEAD, *(_row(snapshot, run) for run in runs)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEAD))]
    lines = [
        "  ".join(
            cell.ljust(width) if index in {0, len(_HEAD) - 1} else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    answer = snapshot.answer
    models = " ← ".join(name for name in (snapshot.target, snapshot.draft) if name)
    engine = f"{snapshot.engine.kind} {snapshot.engine.build}" if snapshot.engine else ""
    head = [answer.text, *([answer.detail] if answer.detail else []), f"{models} · {engine}"]
    return "\n".join([*head, "", *lines])


def _row(snapshot: Snapshot, run: Run) -> tuple[str, ...]:
    summary = snapshot.summaries[run.number]
    acceptance = summary.acceptance
    comparison = snapshot.comparisons.get(run.number)
    found = comparison.overall if comparison else None
    interval = "–"
    if found and found.low is not None and found.high is not None:
        interval = f"{found.low:.2f}–{found.high:.2f}"
    notes = [
        run.unverified,
        run.undrafted,
        run.stopped,
        f"{summary.failed} failed" if summary.failed else "",
    ]
    return (
        run.arm.name,
        _figure(summary.decode_tps, "{:.1f}"),
        _figure(found.speedup if found else None, "{:.2f}×"),
        interval,
        _figure(acceptance.rate, "{:.0%}"),
        _figure(acceptance.mean_length, "{:.2f}"),
        f"{summary.requests}/{run.planned}",
        ", ".join(note for note in notes if note),
    )


def _figure(value: float | None, form: str) -> str:
    return "–" if value is None else form.format(value)
