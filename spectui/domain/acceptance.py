"""Counters of drafted and accepted tokens → rates, decay by position, mean acceptance length.

llama-server and vLLM count alike: *drafts* are verification steps that had a draft, *drafted* and
*accepted* are tokens, and ``accepted_at[i]`` counts the drafts whose token at position i + 1 was
accepted. The definitions are theirs: mean acceptance length = 1 + accepted / drafts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import zip_longest


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What happened to drafts over some stretch of time. All fields are counts.

    ``accepted_at`` is by position, first position first; it is empty where nothing was drafted or
    the server does not tell. ``exact`` is false where the server's six-digit printing makes the
    counts uncertain.
    """

    drafted: int = 0
    accepted: int = 0
    drafts: int = 0
    accepted_at: tuple[int, ...] = ()
    exact: bool = True

    @property
    def rate(self) -> float | None:
        """Accepted / drafted, 0 to 1; None where nothing was drafted."""
        return self.accepted / self.drafted if self.drafted else None

    @property
    def mean_length(self) -> float | None:
        """Tokens per verification step that had a draft: 1 + accepted / drafts; None without."""
        return 1 + self.accepted / self.drafts if self.drafts else None

    @property
    def mean_drafted(self) -> float | None:
        """Drafted tokens per draft; below the draft length where drafts were cut short."""
        return self.drafted / self.drafts if self.drafts else None

    @property
    def unconditional(self) -> tuple[float, ...]:
        """r_i = accepted at position i / drafts, one per position, each 0 to 1."""
        if not self.drafts:
            return ()
        return tuple(count / self.drafts for count in self.accepted_at)

    @property
    def conditional(self) -> tuple[float | None, ...]:
        """a_i = r_i / r_{i-1} with r_0 = 1; None where no draft reached the position.

        Biased low where drafts were cut short (p_min, the end of a request): the counters cannot
        tell a rejected token from one that was never drafted.
        """
        before = (self.drafts, *self.accepted_at)
        return (
            tuple(
                now / then if then else None
                for now, then in zip(self.accepted_at, before, strict=False)
            )
            if self.drafts
            else ()
        )

    def cut_short(self, draft_length: int | None, requests: int = 0) -> bool:
        """Whether drafts were on average over 5 % shorter than ``draft_length`` tokens.

        The last draft of each of ``requests`` answers is left out: the answer's own end cuts it.
        """
        whole = self.drafts - requests
        return draft_length is not None and whole > 0 and self.drafted < 0.95 * draft_length * whole

    def __add__(self, other: Acceptance) -> Acceptance:
        return Acceptance(
            drafted=self.drafted + other.drafted,
            accepted=self.accepted + other.accepted,
            drafts=self.drafts + other.drafts,
            accepted_at=tuple(
                a + b for a, b in zip_longest(self.accepted_at, other.accepted_at, fillvalue=0)
            ),
            exact=self.exact and other.exact,
        )


def standard_error(rate: float, drafts: int) -> float:
    """Return the binomial standard error of a position's rate over ``drafts`` drafts.

    Drafts follow one another in a text and are not quite independent: a lower bound.
    """
    return math.sqrt(rate * (1 - rate) / drafts) if drafts else math.inf


@dataclass(frozen=True, slots=True)
class Counters:
    """The server's totals since it started, as /metrics prints them.

    None where the build does not print a counter. ``accepted_at`` is empty until the first
    speculative request has ended; ``predicted`` and ``requests_in_flight`` tell whether a
    request has been added yet. ``said_length`` is no total: SGLang's own mean acceptance length
    over its last steps.
    """

    predicted: float | None = None
    predicted_seconds: float | None = None
    prompt: float | None = None
    prompt_seconds: float | None = None
    drafted: float | None = None
    accepted: float | None = None
    drafts: float | None = None
    accepted_at: tuple[int, ...] = ()
    requests_in_flight: int | None = None
    said_length: float | None = None

    @property
    def speculative(self) -> bool:
        """Whether this build prints speculation counters at all."""
        return self.drafted is not None

    def fell_since(self, before: Counters) -> bool:
        """Whether any counter is lower than ``before``: the server was restarted in between."""
        pairs = (
            (before.predicted, self.predicted),
            (before.drafted, self.drafted),
            (before.accepted, self.accepted),
            (before.drafts, self.drafts),
            *zip_longest(before.accepted_at, self.accepted_at, fillvalue=0),
        )
        return any(then is not None and (now or 0) < then for then, now in pairs)


def resolution(value: float | None) -> float:
    """Return the smallest change that six significant digits can show at ``value``.

    Every counter but the per-position ones is printed as a double with six digits: past 1e6 a
    small difference of two readings vanishes or jumps.
    """
    if not value or value < 1e6:
        return 0.0
    return float(10.0 ** (math.floor(math.log10(value)) - 5))


def between(before: Counters, after: Counters) -> Acceptance:
    """Return what happened between two readings of one server.

    A counter that fell means a restart: everything in ``after`` happened since. ``accepted`` is
    the sum over positions where there are any, since those counts are printed in full.
    """
    if after.fell_since(before):
        before = Counters()
    accepted_at = tuple(
        now - then for now, then in zip_longest(after.accepted_at, before.accepted_at, fillvalue=0)
    )
    drafted = round((after.drafted or 0) - (before.drafted or 0))
    accepted = (
        sum(accepted_at)
        if after.accepted_at
        else round((after.accepted or 0) - (before.accepted or 0))
    )
    drafts = round((after.drafts or 0) - (before.drafts or 0))
    exact = not any(
        resolution(value) for value in (after.drafted, after.drafts, before.drafted, before.drafts)
    )
    return Acceptance(drafted, accepted, drafts, accepted_at, exact=exact)
