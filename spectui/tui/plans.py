"""What an action will do and how long it takes, in words, before it is done."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from spectui.domain.findings import Fix
from spectui.domain.phases import ALIVE, UP, Phase
from spectui.domain.samples import Snapshot
from spectui.domain.speculation import Speculation
from spectui.domain.text import clean, duration
from spectui.tui.reading import busy
from spectui.tui.words import plural

LONG_START: Final = 10.0
"""Seconds that a start may take without a question before it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A question to ask first; empty where there is nothing to ask."""

    title: str = ""
    question: str = ""
    yes: str = ""


class StartTimes:
    """Remembers how long the server took to start, from the snapshots."""

    def __init__(self) -> None:
        """Start without a start."""
        self.longest: float | None = None
        self._began: float | None = None

    def see(self, snapshot: Snapshot) -> None:
        """Take note of the phase."""
        if snapshot.phase in {Phase.STARTING, Phase.LOADING}:
            self._began = snapshot.phase_since if self._began is None else self._began
            return
        if self._began is not None and snapshot.phase in UP:
            took = snapshot.phase_since - self._began
            self.longest = max(self.longest or 0.0, took)
        self._began = None


def measuring(snapshot: Snapshot, wanted: Speculation, start: float | None) -> Plan:
    """Return the question before ``wanted`` is measured."""
    name = clean(wanted.name, limit=60)
    steps = "restarts the server" if snapshot.phase in ALIVE else "starts the server"
    if snapshot.baseline is None:
        what = f"This {steps}, measures the baseline first, and then {name}."
    else:
        what = f"This {steps} with {name} and measures it."
    return _plan(snapshot, "measure", what, start, "stop it and measure")


def baseline(snapshot: Snapshot, start: float | None) -> Plan:
    """Return the question before the baseline is measured."""
    what = "This restarts the server twice: without speculation to measure, and back again."
    return _plan(snapshot, "baseline", what, start, "stop it and measure")


def adopting(snapshot: Snapshot, fix: Fix, start: float | None) -> Plan:
    """Return the question before a fix is applied: what it ends, and what it takes out of sight."""
    name = clean(fix.label, limit=80)
    setting_only = all(path.startswith("speculation.") for path, _ in fix.changes)
    steps = "restarts" if snapshot.phase in ALIVE else "starts"
    what = f"This changes the profile ({name}) and {steps} the server with it."
    kept = sum(1 for run in snapshot.runs if run.requests)
    if kept and not setting_only:
        what += (
            f" A changed profile is measured anew: {plural(kept, 'run')} of before"
            f" {'stays' if kept == 1 else 'stay'} in the record, out of this table."
        )
        cost = _cost(snapshot, start)
        under_way = f"{_under_way(snapshot)} " if busy(snapshot) else ""
        return Plan("change the profile", f"{under_way}{what}{cost}", "change it")
    plan = _plan(snapshot, "change the profile", what, start, "stop it and change it", length=False)
    return plan if busy(snapshot) or not plan.question else replace(plan, yes="change it")


def stopping(snapshot: Snapshot) -> Plan:
    """Return the question before the server is stopped."""
    if not busy(snapshot):
        return Plan()
    return Plan("stop the server", f"{_under_way(snapshot)} Stopping the server ends it.", "stop")


def quitting(snapshot: Snapshot) -> str:
    """Return the question before leaving while something is under way."""
    end = "leaves the server alone" if snapshot.attached else "stops the server"
    return f"{_under_way(snapshot)} Quitting ends it and {end}. q again quits."


def export(snapshot: Snapshot) -> str:
    """Return what an export would write."""
    run = next((run for run in snapshot.runs if run.number == snapshot.answer.run), None)
    if run is None:
        return "There is no answer yet: measure a setting against the baseline first."
    return f"Writes a profile with {clean(run.arm.name, limit=60)}, and what was measured."


def _plan(
    snapshot: Snapshot,
    title: str,
    what: str,
    start: float | None,
    yes: str,
    *,
    length: bool = True,
) -> Plan:
    cost = _cost(snapshot, start)
    took = _length(snapshot) if length else ""
    if busy(snapshot):
        return Plan(title, f"{_under_way(snapshot)} {what}{cost}{took}", yes)
    if cost:
        return Plan(title, f"{what}{cost}{took}", "measure")
    return Plan()


def _cost(snapshot: Snapshot, start: float | None) -> str:
    """Return how long the last start took, where that was long and the server is to restart."""
    slow = start is not None and start > LONG_START and snapshot.phase in ALIVE
    return f" The last start took {duration(start)}." if start and slow else ""


def _length(snapshot: Snapshot) -> str:
    """Return how long a measurement took before, where one has ended as planned."""
    for run in reversed(snapshot.runs):
        if run.ended is not None and not run.stopped:
            return f" The last measurement took {duration(run.ended - run.started)}."
    return ""


def _under_way(snapshot: Snapshot) -> str:
    activity = snapshot.activity
    arm = clean(activity.arm, limit=60)
    text = f"{str(activity.doing).capitalize()}{' ' + arm if arm else ''} is under way"
    if activity.total:
        text += f": {activity.done} of {activity.total}"
    if activity.seconds_left is not None:
        text += f", {duration(activity.seconds_left)} left"
    if activity.done:
        text += ". Answered prompts are kept"
    return f"{text}."
