"""What panels take from a snapshot: an arm's sign, the curves to draw, what can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spectui.domain.runs import Arm, Run
from spectui.domain.samples import Doing, Snapshot
from spectui.tui.glyphs import Glyphs
from spectui.tui.look import ARM_COLOURS


@dataclass(frozen=True, slots=True)
class Sign:
    """What stands for an arm everywhere: a glyph and a tone."""

    glyph: str
    tone: str


def signs(runs: Sequence[Run], glyphs: Glyphs) -> dict[int, Sign]:
    """Return each run's sign by its number: runs of one arm share one, in order of appearance."""
    seen: list[Arm] = []
    found: dict[int, Sign] = {}
    for run in runs:
        wanted = run.arm
        if wanted.is_baseline:
            found[run.number] = Sign(glyphs.base, "base")
            continue
        at = next((i for i, known in enumerate(seen) if _alike(known, wanted)), len(seen))
        if at == len(seen):
            seen.append(wanted)
        found[run.number] = Sign(glyphs.arms[at % len(glyphs.arms)], f"arm{at % ARM_COLOURS}")
    return found


def _alike(one: Arm, other: Arm) -> bool:
    return one.label == other.label and one.speculation.same_as(other.speculation)


@dataclass(frozen=True, slots=True)
class Curve:
    """One run's acceptance by position, ready to draw. Shares are 0 to 1.

    ``role`` is ``now``, ``before`` or ``chosen``; ``length`` is the arm's draft length.
    """

    run: int
    name: str
    sign: Sign
    role: str
    points: tuple[float | None, ...]
    drafts: int
    mean_drafted: float | None
    length: int | None
    cut: bool


def drafting(snapshot: Snapshot) -> list[Run]:
    """Return the runs whose acceptance by position is known, in order."""
    return [
        run
        for run in snapshot.runs
        if run.number in snapshot.summaries
        and snapshot.summaries[run.number].acceptance.accepted_at
        and not run.arm.is_baseline
    ]


def curves(
    snapshot: Snapshot, glyphs: Glyphs, against: int | None, *, conditional: bool
) -> tuple[Curve, ...]:
    """Return the current run's curve, the previous run's and the chosen one's, where they are."""
    known = drafting(snapshot)
    marks = signs(snapshot.runs, glyphs)
    wanted = [(run, role) for run, role in zip(known[::-1], ("now", "before"), strict=False)]
    shown = {run.number for run, _ in wanted}
    wanted += [
        (run, "chosen") for run in known if run.number == against and run.number not in shown
    ]
    found = []
    for run, role in wanted:
        acceptance = snapshot.summaries[run.number].acceptance
        length = run.arm.speculation.draft_length
        found.append(
            Curve(
                run=run.number,
                name=run.arm.name,
                sign=marks[run.number],
                role=role,
                points=acceptance.conditional if conditional else acceptance.unconditional,
                drafts=acceptance.drafts,
                mean_drafted=acceptance.mean_drafted,
                length=length,
                cut=acceptance.cut_short(length, snapshot.summaries[run.number].requests),
            )
        )
    return tuple(found)


def next_to_compare(snapshot: Snapshot, against: int | None) -> int | None:
    """Return the run to compare with after ``against``; None ends the round."""
    others = [run.number for run in drafting(snapshot)[:-2]][::-1]
    if against not in others:
        return others[0] if others else None
    after = others[others.index(against) + 1 :]
    return after[0] if after else None


def current(snapshot: Snapshot) -> Run | None:
    """Return the run under way, else the last one."""
    return snapshot.runs[-1] if snapshot.runs else None


def busy(snapshot: Snapshot) -> bool:
    """Whether the session is at work on a job that can be cancelled."""
    return snapshot.activity.doing is not Doing.IDLE


def baseline_tps(snapshot: Snapshot) -> float | None:
    """Return the baseline's decode speed in tok/s, None while it is unknown."""
    if snapshot.baseline is None:
        return None
    summary = snapshot.summaries.get(snapshot.baseline)
    return summary.decode_tps if summary else None
