"""Token events → in-flight and settled decode speed.

Under speculation a verification step yields several tokens at once. The stream hands them out
one by one, all with the ``predicted_ms`` of their step, so a rate taken in the middle of such a
burst is wrong by up to the draft length. Speeds here are taken between whole steps only.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timings:
    """The server's own account of a request so far; times in milliseconds.

    ``drafted`` and ``accepted`` are absent on the wire while they are 0. ``per_second`` is the
    server's ``predicted_per_second``, None where it does not send one.
    """

    prompt_n: int = 0
    prompt_ms: float = 0.0
    cached_n: int = 0
    predicted_n: int = 0
    predicted_ms: float = 0.0
    per_second: float | None = None
    drafted: int = 0
    accepted: int = 0

    @property
    def decode_tps(self) -> float | None:
        """Decode speed in tok/s: what the server says, else (n - 1) / time.

        The first token comes out of the prompt's pass, so it is not decoded: a reply of one token
        has no speed, and builds that print one for it are not believed.
        """
        if self.predicted_n < 2 or self.predicted_ms <= 0:
            return None
        if self.per_second:
            return self.per_second
        return (self.predicted_n - 1) / self.predicted_ms * 1000


@dataclass(frozen=True, slots=True)
class Step:
    """The state after one whole verification step: tokens so far, and decode time in seconds."""

    tokens: int
    seconds: float


class DecodeMeter:
    """Decode speed of one running request, from what its stream reports.

    Feed it every (tokens, seconds) pair of the stream; ``seconds`` is the server's decode time
    where it sends timings, else the time since the first token arrived. It keeps steps, not
    tokens: pairs that share a time are one step, which is over when the time moves on.
    """

    def __init__(self, window: float = 2.0) -> None:
        """Take speeds over the last ``window`` seconds of decode time."""
        self._window = window
        self._steps: deque[Step] = deque()
        self._first: Step | None = None
        self._open: Step | None = None

    def feed(self, tokens: int, seconds: float) -> None:
        """Take note that ``tokens`` were out after ``seconds`` of decoding."""
        event = Step(tokens, seconds)
        if self._open is not None and seconds > self._open.seconds:
            self._close(self._open)
        if self._open is None or seconds >= self._open.seconds:
            self._open = event

    def _close(self, step: Step) -> None:
        if self._first is None:
            self._first = step
        self._steps.append(step)
        while len(self._steps) > 2 and step.seconds - self._steps[1].seconds >= self._window:
            self._steps.popleft()

    @property
    def recent(self) -> float | None:
        """Tok/s over the window; None until two steps are over."""
        return _rate(self._steps[0], self._steps[-1]) if self._steps else None

    @property
    def so_far(self) -> float | None:
        """Tok/s over the whole request so far; None until two steps are over."""
        return _rate(self._first, self._steps[-1]) if self._first and self._steps else None


def _rate(start: Step, end: Step) -> float | None:
    seconds = end.seconds - start.seconds
    return (end.tokens - start.tokens) / seconds if seconds > 0 else None


class SlotMeter:
    """Decode speed of requests that someone else sent, from /slots readings.

    The counters of /metrics stand still during a request, but ``n_decoded`` of each slot moves.
    Several slots add up to what the whole server yields.
    """

    def __init__(self) -> None:
        """Start without a reading."""
        self._last: dict[tuple[int, int], tuple[float, int]] = {}

    def feed(self, at: float, decoded: dict[tuple[int, int], int]) -> float | None:
        """Return tok/s since the reading before, or None where no slot has two readings.

        ``decoded`` maps (slot, task) to tokens decoded so far; ``at`` is in seconds.
        """
        rates = []
        for key, tokens in decoded.items():
            then = self._last.get(key)
            if then is not None and at > then[0]:
                rates.append((tokens - then[1]) / (at - then[0]))
        self._last = {key: (at, tokens) for key, tokens in decoded.items()}
        return sum(rates) if rates else None
