"""Arms, runs and requests: what was measured, and its summary."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from types import MappingProxyType

from spectui.domain.acceptance import Acceptance
from spectui.domain.speculation import Speculation
from spectui.domain.throughput import Timings


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt of the workload: chat messages as (role, content), and the task it belongs to."""

    id: str
    task: str
    messages: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Arm:
    """One configuration to measure: what to speculate with.

    ``label`` names one whose speculation is not known, because somebody else started the server:
    such an arm is no baseline, whatever it drafts.
    """

    speculation: Speculation = field(default_factory=Speculation)
    label: str = ""

    @property
    def name(self) -> str:
        """Its short name for tables and charts."""
        return self.label or self.speculation.name

    @property
    def is_baseline(self) -> bool:
        """Whether speculation is known to be off."""
        return not self.label and self.speculation.is_off


AS_IT_RUNS = Arm(label="as it runs")
"""A server that somebody else started, measured with prompts of ours."""

WATCHED = Arm(label="watched")
"""The same, while others send their requests."""


@dataclass(frozen=True, slots=True)
class Request:
    """One prompt answered once. Times in seconds; ``error`` is empty for a full answer.

    ``started`` and ``ended`` are monotonic. ``acceptance`` is the growth of /metrics over the
    request, None where the server did not tell. ``first_token`` is the time to the first token.
    """

    prompt: str
    task: str
    started: float
    ended: float
    timings: Timings = field(default_factory=Timings)
    acceptance: Acceptance | None = None
    first_token: float | None = None
    finish: str = ""
    text: str = ""
    error: str = ""

    @property
    def decode_tps(self) -> float | None:
        """Decode speed in tok/s; None for a failed request or one of fewer than two tokens."""
        return None if self.error else self.timings.decode_tps


@dataclass(frozen=True, slots=True)
class Run:
    """One arm measured over the workload, in one launch of the server.

    ``number`` is unique in a session. ``planned`` requests were meant to be sent. ``ended`` is
    monotonic, None while it is under way; ``stopped`` says why it ended early, if it did.
    """

    number: int
    arm: Arm
    started: float
    planned: int
    requests: tuple[Request, ...] = ()
    ended: float | None = None
    stopped: str = ""

    def with_request(self, request: Request) -> Run:
        """Return the run with one more request."""
        return replace(self, requests=(*self.requests, request))

    @property
    def drafted(self) -> int:
        """Tokens drafted, by the stream's own count or /metrics', whichever is higher."""
        return sum(
            max(r.timings.drafted, r.acceptance.drafted if r.acceptance else 0)
            for r in self.requests
        )

    @property
    def unverified(self) -> str:
        """Why this run cannot serve as the baseline; empty where it can, or for other arms."""
        if self.arm.is_baseline and self.drafted:
            return "baseline was still drafting"
        return ""

    @property
    def undrafted(self) -> str:
        """Why this run says nothing about speculation: it answered, and never drafted."""
        answered = [request for request in self.requests if not request.error]
        if self.ended is None or self.arm.is_baseline or not answered or self.drafted:
            return ""
        return "drafted nothing"


@dataclass(frozen=True, slots=True)
class Summary:
    """A run in figures. Speeds in tok/s; None where there is nothing to tell.

    ``decode_tps`` is the geometric mean over prompts, ``spread`` the factor of one geometric
    standard deviation (1.1: two thirds of the prompts lie within a factor of 1.1).
    """

    requests: int = 0
    failed: int = 0
    tokens: int = 0
    decode_tps: float | None = None
    spread: float | None = None
    acceptance: Acceptance = field(default_factory=Acceptance)
    first_token: float | None = None
    by_task: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))


def geometric_mean(values: Sequence[float]) -> float | None:
    """Return the geometric mean of positive values, None of none."""
    return math.exp(math.fsum(map(math.log, values)) / len(values)) if values else None


def per_prompt(run: Run) -> dict[str, float]:
    """Return decode speed in tok/s by prompt id, for the prompts that have one."""
    speeds: dict[str, list[float]] = {}
    for request in run.requests:
        if request.decode_tps is not None:
            speeds.setdefault(request.prompt, []).append(request.decode_tps)
    return {prompt: geometric_mean(values) or 0.0 for prompt, values in speeds.items()}


def summarise(run: Run) -> Summary:
    """Return the figures of a run, finished or under way."""
    answered = [r for r in run.requests if not r.error]
    speeds = list(per_prompt(run).values())
    by_task = sorted((r.task, r.decode_tps) for r in answered if r.decode_tps is not None)
    waits = [r.first_token for r in answered if r.first_token]
    return Summary(
        requests=len(answered),
        failed=len(run.requests) - len(answered),
        tokens=sum(r.timings.predicted_n for r in answered),
        decode_tps=geometric_mean(speeds),
        spread=_spread(speeds),
        acceptance=_acceptance(answered),
        first_token=geometric_mean(waits),
        by_task={
            task: geometric_mean([tps for _, tps in rows]) or 0.0
            for task, rows in groupby(by_task, key=lambda row: row[0])
        },
    )


def _acceptance(answered: Sequence[Request]) -> Acceptance:
    """Return what happened to drafts, over the requests whose counters were read.

    Where none was read the stream's own counts are all there is: they know no drafts, hence no
    mean length and no positions. Adding both kinds up would make either of them wrong.
    """
    read = [r.acceptance for r in answered if r.acceptance is not None]
    if not read:
        return sum(
            (Acceptance(r.timings.drafted, r.timings.accepted) for r in answered), Acceptance()
        )
    total = sum(read, Acceptance())
    return total if len(read) == len(answered) else replace(total, exact=False)


def _spread(speeds: Sequence[float]) -> float | None:
    if len(speeds) < 2:
        return None
    logs = [math.log(v) for v in speeds]
    mean = math.fsum(logs) / len(logs)
    return math.exp(math.sqrt(math.fsum((v - mean) ** 2 for v in logs) / (len(logs) - 1)))
