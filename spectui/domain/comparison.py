"""Two runs over the same prompts → speed-up, an interval that survives watching, a verdict.

The unit is a pair: one prompt answered by the arm and by the baseline. Its log ratio of decode
speeds is free of the prompt's own length and content; their mean is the log of the geometric-mean
speed-up.

People watch the figure while it forms and stop when they like it, so the interval must hold at
every moment at once. It is the confidence sequence of the Bayes-factor t-test with a normal prior
of variance G on the standardised effect: the Bayes factor of a scale-invariant test is an
e-process (Hendriksen, de Heide and Grünwald, "Optional stopping with Bayes factors", 2021;
Wang and Ramdas, "Anytime-valid t-tests and confidence sequences for Gaussian means with unknown
variance", 2023), so by Ville's inequality the set of means whose factor stays below 1/alpha
contains the true one at all times with probability 1 - alpha. For n pairs and t the t-statistic

    BF = (1 + nG)^(-1/2) · [(1 + t²/ν) / (1 + t²/(ν(1 + nG)))]^((ν + 1)/2),   ν = n - 1,

which solves to t² < ν (B - 1) / (1 - B/(1 + nG)) with B = ((1 + nG)/alpha²)^(1/n). Below four
pairs the set is the whole line: there is no interval yet.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from spectui.domain.runs import Run, per_prompt

ALPHA = 0.05
"""The chance, over a whole session, that an interval ever misses the true speed-up."""

PRIOR_VARIANCE = 4.0
"""G: small enough to be narrow at 30 pairs, large enough to say something from four on."""

TIE = 0.02
"""Speed-ups within this of 1 are ties: nobody would feel them."""


class Verdict(StrEnum):
    """What can be said of an arm against the baseline."""

    FASTER = "faster"
    SLOWER = "slower"
    TIE = "tie"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A speed-up (a ratio, 1 = no difference) with its 95 % interval, None while unknown."""

    speedup: float
    low: float | None
    high: float | None
    pairs: int

    @property
    def verdict(self) -> Verdict:
        """Faster or slower where the interval leaves out 1 and the gain is felt."""
        if self.low is None or self.high is None:
            return Verdict.UNDECIDED
        if self.low >= 1 - TIE and self.high <= 1 + TIE:
            return Verdict.TIE
        if self.low > 1 and self.speedup > 1 + TIE:
            return Verdict.FASTER
        if self.high < 1 and self.speedup < 1 - TIE:
            return Verdict.SLOWER
        return Verdict.UNDECIDED


@dataclass(frozen=True, slots=True)
class Comparison:
    """An arm's run against another run, by paired prompts. ``overall`` None: no pair yet."""

    run: int
    against: int
    overall: Estimate | None = None
    by_task: Mapping[str, Estimate] = field(default_factory=lambda: MappingProxyType({}))


def estimate(log_ratios: Iterable[float]) -> Estimate | None:
    """Return the geometric-mean speed-up of paired log ratios, None of none.

    See the module's docstring for the interval and its source.
    """
    values = list(log_ratios)
    n = len(values)
    if n == 0:
        return None
    mean = math.fsum(values) / n
    half = _half_width(values, mean)
    if half is None:
        return Estimate(math.exp(mean), None, None, n)
    return Estimate(math.exp(mean), math.exp(mean - half), math.exp(mean + half), n)


def _half_width(values: list[float], mean: float) -> float | None:
    n = len(values)
    nu = n - 1
    gain = 1 + n * PRIOR_VARIANCE
    b = (gain / ALPHA**2) ** (1 / n)
    if nu < 1 or b >= gain:
        return None
    t = math.sqrt(nu * (b - 1) / (1 - b / gain))
    deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / nu)
    return t * deviation / math.sqrt(n)


def compare(run: Run, against: Run) -> Comparison:
    """Return ``run`` against ``against`` over the prompts that both have answered."""
    mine, theirs = per_prompt(run), per_prompt(against)
    tasks = {request.prompt: request.task for request in run.requests}
    ratios = {
        prompt: math.log(tps / theirs[prompt]) for prompt, tps in mine.items() if prompt in theirs
    }
    by_task: dict[str, list[float]] = {}
    for prompt, ratio in ratios.items():
        by_task.setdefault(tasks[prompt], []).append(ratio)
    return Comparison(
        run.number,
        against.number,
        estimate(ratios.values()),
        {task: found for task, rows in by_task.items() if (found := estimate(rows))},
    )


class Tone(StrEnum):
    """How an answer feels, for a colour and a sign."""

    WAITING = "waiting"
    GOOD = "good"
    BAD = "bad"
    NEUTRAL = "neutral"


@dataclass(frozen=True, slots=True)
class Answer:
    """The sentence a person came for. ``run`` is the run it speaks of, None where there is none.

    ``detail`` tells it by task; it may be empty.
    """

    tone: Tone = Tone.WAITING
    text: str = "Nothing measured yet"
    detail: str = ""
    run: int | None = None


def span(found: Estimate) -> str:
    """Return ``1.27 to 1.36, 34 prompts`` in words."""
    prompts = f"{found.pairs} prompt{'s' if found.pairs != 1 else ''}"
    if found.low is None or found.high is None:
        return f"no interval yet, {prompts}"
    return f"{found.low:.2f} to {found.high:.2f}, {prompts}"


def answer(
    runs: Iterable[Run], comparisons: Mapping[int, Comparison], baseline: int | None
) -> Answer:
    """Return what the runs say: which arm is faster and how sure that is, or to turn it off."""
    runs = tuple(runs)
    arms = {run.number: run for run in runs if not run.arm.is_baseline}
    found = {
        number: comparison.overall
        for number, comparison in comparisons.items()
        if number in arms and comparison.overall is not None
    }
    if baseline is None or not found:
        return Answer(Tone.WAITING, _what_is_missing(runs, baseline))
    best = _best(found, arms)
    chosen, name = found[best], arms[best].arm.name
    if arms[best].undrafted:
        text = f"{name} drafted nothing: speculation was not at work, see the log"
        return Answer(Tone.BAD, text, "", best)
    detail = "   ".join(
        f"{task} {_by_task(row)}" for task, row in sorted(comparisons[best].by_task.items())
    )
    if chosen.verdict is Verdict.FASTER:
        text = f"{name} is faster: {chosen.speedup:.2f}× the speed without it ({span(chosen)})"
        return Answer(Tone.GOOD, text, detail, best)
    if all(row.verdict is Verdict.SLOWER for row in found.values()):
        every = f"even {name}" if len(found) > 1 else name
        text = f"Turn it off: {every} runs at {chosen.speedup:.2f}× the baseline ({span(chosen)})"
        return Answer(Tone.BAD, text, detail, best)
    if chosen.verdict is Verdict.TIE:
        text = f"No difference: {name} ties with no speculation ({span(chosen)})"
        return Answer(Tone.NEUTRAL, text, detail, best)
    text = f"Undecided: {name} at {chosen.speedup:.2f}× the baseline ({span(chosen)})"
    return Answer(Tone.NEUTRAL, f"{text}; more prompts would tell", detail, best)


def _what_is_missing(runs: tuple[Run, ...], baseline: int | None) -> str:
    if not runs:
        return Answer().text
    if any(run.unverified for run in runs) and baseline is None:
        return "No baseline: speculation would not turn off, see the runs"
    last = runs[-1]
    if last.arm.is_baseline and last.ended is None:
        return "The baseline is being measured first"
    base = next((run for run in runs if run.number == baseline), None)
    if base is None:
        return "No baseline yet: measure it to compare with"
    if base.stopped:
        return "The baseline was cut short: measure it again"
    return "The baseline is known: measure a setting against it"


def _best(found: Mapping[int, Estimate], arms: Mapping[int, Run]) -> int:
    """Return the run that is at least so fast; of two equals the shorter, cheaper draft.

    What merely looks fast, without an interval, counts only where nothing else is known.
    """
    known = [number for number, row in found.items() if row.low is not None] or list(found)
    return max(
        known,
        key=lambda number: (
            found[number].low or found[number].speedup,
            -(arms[number].arm.speculation.draft_length or 0),
            number,
        ),
    )


def _by_task(found: Estimate) -> str:
    return "tie" if found.verdict is Verdict.TIE else f"{found.speedup:.2f}×"
