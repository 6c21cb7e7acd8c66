"""What the session has seen: runs, the speed series, restarts, notices. Bounded where it grows."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace

from spectui.domain.comparison import Answer, Comparison, answer, compare
from spectui.domain.findings import Finding
from spectui.domain.runs import Arm, Request, Run, Summary, summarise
from spectui.domain.samples import (
    EngineInfo,
    Level,
    Mark,
    Notice,
    SettledPoint,
    Snapshot,
    SpeedPoint,
)

_POINTS = 2400  # in-flight points: ten minutes at four a second
_SETTLED = 1000
_MARKS = 50
_NOTICES = 50


class Book:
    """The session's memory, used on its loop only; hands out copies."""

    def __init__(self, notices: int = 0) -> None:
        """Start empty; the notices are counted on from ``notices``."""
        self._speed: deque[SpeedPoint] = deque(maxlen=_POINTS)
        self._settled: deque[SettledPoint] = deque(maxlen=_SETTLED)
        self._marks: deque[Mark] = deque(maxlen=_MARKS)
        self._notices: deque[Notice] = deque(maxlen=_NOTICES)
        self._noticed = notices
        self.trouble: tuple[Finding, ...] = ()
        """Why the last setting that was tried did not start, where an earlier one runs again."""
        self._rested = 0.0  # seconds that the charts' time axis leaves out
        self._runs: dict[int, Run] = {}
        # by number, with the run it was made of: a run that has not grown is not summed up again
        self._summaries: dict[int, tuple[Run, Summary]] = {}
        self._comparisons: dict[int, tuple[Run, Run, Comparison]] = {}

    # -- what happens ----------------------------------------------------------------------------

    def begin(self, arm: Arm, at: float, planned: int) -> Run:
        """Open a run and return it."""
        run = Run(number=len(self._runs) + 1, arm=arm, started=at, planned=planned)
        self._runs[run.number] = run
        return run

    def add(self, number: int, request: Request) -> Run:
        """Add a request to a run and return the run as it is then."""
        run = self._runs[number] = self._runs[number].with_request(request)
        if request.decode_tps is not None:
            started = request.started + (request.first_token or 0.0)
            point = SettledPoint(
                self.charted(started),
                self.charted(request.ended),
                request.decode_tps,
                number,
                request.task,
            )
            self._settled.append(point)
        return run

    def end(self, number: int, at: float, stopped: str = "") -> Run:
        """Close a run; ``stopped`` says why it ended early. Returns it."""
        run = self._runs[number] = replace(self._runs[number], ended=at, stopped=stopped)
        return run

    def restore(self, run: Run) -> None:
        """Take in a run that was recorded before."""
        self._runs[run.number] = run

    def speed(self, at: float, tps: float | None) -> None:
        """Add a point of in-flight speed; one gap stands for many."""
        if tps is None and (not self._speed or self._speed[-1].tps is None):
            return
        self._speed.append(SpeedPoint(self.charted(at), tps))

    def rest(self, seconds: float) -> None:
        """Leave ``seconds`` in which nothing was done out of the charts."""
        self._rested += seconds

    def charted(self, at: float) -> float:
        """Return where a moment stands on the charts' time axis, in seconds."""
        return at - self._rested

    def mark(self, at: float, label: str) -> None:
        """Mark a (re)start."""
        self._marks.append(Mark(self.charted(at), label))

    def notice(self, at: float, level: Level, text: str) -> None:
        """Tell the person something."""
        self._noticed += 1
        self._notices.append(Notice(self._noticed, at, level, text))

    # -- what it amounts to ----------------------------------------------------------------------

    @property
    def runs(self) -> tuple[Run, ...]:
        """All runs, in the order they were begun."""
        return tuple(self._runs.values())

    @property
    def baseline(self) -> Run | None:
        """The newest verified baseline that is finished; else one that has at least a request."""
        usable = [
            run
            for run in self._runs.values()
            if run.arm.is_baseline and not run.unverified and self.summary(run).requests
        ]
        whole = [run for run in usable if run.ended is not None and not run.stopped]
        found = whole or usable
        return found[-1] if found else None

    def summary(self, run: Run) -> Summary:
        """Return the figures of a run."""
        known = self._summaries.get(run.number)
        if known is None or known[0] is not run:
            known = self._summaries[run.number] = (run, summarise(run))
        return known[1]

    def summaries(self) -> Mapping[int, Summary]:
        """Return the figures of every run by its number."""
        return {run.number: self.summary(run) for run in self._runs.values()}

    def comparisons(self) -> Mapping[int, Comparison]:
        """Return every other run against the baseline, by its number."""
        base = self.baseline
        if base is None:
            return {}
        found = {}
        for run in self._runs.values():
            if run.arm.is_baseline:
                continue
            known = self._comparisons.get(run.number)
            if known is None or known[0] is not run or known[1] is not base:
                known = self._comparisons[run.number] = (run, base, compare(run, base))
            found[run.number] = known[2]
        return found

    def answer(self) -> Answer:
        """Return the sentence that a person came for."""
        base = self.baseline
        return answer(self.runs, self.comparisons(), base.number if base else None)

    @property
    def speed_points(self) -> tuple[SpeedPoint, ...]:
        """In-flight speed over time."""
        return tuple(self._speed)

    @property
    def settled_points(self) -> tuple[SettledPoint, ...]:
        """Finished requests over time."""
        return tuple(self._settled)

    @property
    def marks(self) -> tuple[Mark, ...]:
        """Restarts over time."""
        return tuple(self._marks)

    @property
    def notices(self) -> tuple[Notice, ...]:
        """The newest notices."""
        return tuple(self._notices)


def replay(runs: Iterable[Run], engine: EngineInfo, target: str, draft: str) -> Snapshot:
    """Return the snapshot that a session with these ``runs`` would have ended with."""
    book = Book()
    for run in runs:
        book.restore(run)
    base = book.baseline
    return Snapshot(
        at=0.0,
        engine=engine,
        target=target,
        draft=draft,
        runs=book.runs,
        summaries=book.summaries(),
        comparisons=book.comparisons(),
        baseline=base.number if base else None,
        answer=book.answer(),
    )
