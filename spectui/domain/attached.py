"""A server that somebody else runs: what it is, what it can tell, and what it did since we came."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from enum import StrEnum

from spectui.domain.acceptance import Acceptance, Counters, between
from spectui.domain.errors import RequestError

WHY_NOT = "this server runs elsewhere: spectui only watches"
"""Said wherever something would need a restart."""


class ServerKind(StrEnum):
    """What answers at an address. The values are shown to people as they are."""

    LLAMA = "llama-server"
    ROUTER = "llama-server router"
    SWAP = "llama-swap"
    VLLM = "vLLM"
    SGLANG = "SGLang"

    @property
    def has_slots(self) -> bool:
        """Whether it tells of every request under way."""
        return self not in {ServerKind.VLLM, ServerKind.SGLANG}

    @property
    def has_models(self) -> bool:
        """Whether several models live behind it, so that one has to be named."""
        return self in {ServerKind.ROUTER, ServerKind.SWAP}


class LateError(RequestError):
    """No answer in time: the server is busy, or the way to it is slow. It is not gone."""


class NotLoadedError(RequestError):
    """The model is known and not in memory; only a request for it would load it."""


IN_MEMORY = frozenset({"loaded", "ready", "sleeping"})
"""A router's and llama-swap's words for a model that answers without being loaded first."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A model that a server offers. ``state`` is the server's word, such as loaded or ready."""

    name: str
    state: str = ""
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """What a first look at an address found. ``problem`` says what it would not tell, if anything.

    ``model`` is the one that is watched, empty where the server has no name for it.
    """

    kind: ServerKind
    model: str = ""
    build: str = ""
    problem: str = ""
    models: tuple[Offer, ...] = ()


@dataclass(frozen=True, slots=True)
class Props:
    """What /props says. ``types`` are the ways to draft that are on by default, often none.

    ``sleeping``: the model was let go of after some idle time, and asking for /slots loads it.
    """

    build: str = ""
    model: str = ""
    types: tuple[str, ...] = ()
    sleeping: bool = False


@dataclass(frozen=True, slots=True)
class Attachment:
    """What a face shows of a server that is only watched.

    ``speculating`` and ``types`` are what the server itself says, None and empty where it does
    not; ``missing`` are sentences on what cannot be shown and why; ``totals`` is what was drafted
    since the server started, and ``said_length`` its own word on its last steps, tokens each, None
    where it has none. ``why_not_measure`` is empty where prompts can be sent.
    """

    kind: ServerKind
    model: str = ""
    speculating: bool | None = None
    types: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    totals: Acceptance = field(default_factory=Acceptance)
    said_length: float | None = None
    tps: float | None = None
    why_not_measure: str = ""


@dataclass(frozen=True, slots=True)
class Movement:
    """What two readings of the counters have between them: requests that ended.

    ``requests`` is 0 where they cannot be told, else the least that it can have been. ``tps`` is
    their decode speed, each request on its own, in tok/s; None where it is not known.
    """

    tokens: int
    requests: int
    tps: float | None


class Tally:
    """Counts what a server does from the first reading on, through its restarts.

    Counters of llama-server move when a request ends, so a movement is one or more whole requests.
    The first token of each comes out of its prompt and takes no decode time. vLLM and SGLang count
    tokens as they come: there, without ``whole``, no requests are counted.

    A request that began and ended between two looks at the slots is counted with its neighbour, so
    ``requests`` is the least that it can be.
    """

    def __init__(self, *, whole: bool = True) -> None:
        """Start without a reading."""
        self._whole = whole
        self._base: Counters | None = None
        self._last: Counters | None = None
        self._began = ""
        self._running: frozenset[tuple[int, int]] = frozenset()
        self._ended = 0  # requests seen ending, and not yet found in the counters
        self._early = 0  # requests found in the counters before they were seen ending
        self._seconds = 0.0
        self._timed = 0
        self.requests = 0
        self.tokens = 0

    @property
    def known(self) -> bool:
        """Whether there was a reading."""
        return self._last is not None

    @property
    def totals(self) -> Acceptance:
        """What was drafted since the server started."""
        return between(Counters(), self._last) if self._last else Acceptance()

    @property
    def acceptance(self) -> Acceptance:
        """What was drafted since the first reading."""
        if self._base is None or self._last is None:
            return Acceptance()
        return between(self._base, self._last)

    @property
    def decode_tps(self) -> float | None:
        """Decode speed of the requests that ended, in tok/s, each request on its own."""
        return self._timed / self._seconds if self._seconds > 0 and self._timed > 0 else None

    def restarted(self, counters: Counters, began: str, *, away: bool) -> bool:
        """Whether this reading is of a server that started after the reading before.

        ``began`` is the server's own word on when it started, empty where it does not say. It
        changes as well when llama-server wakes from its sleep, and then its counters go on: so it
        is believed only where the server was ``away`` in between.
        """
        if self._last is None:
            return False
        return counters.fell_since(self._last) or (away and bool(began) and self._began != began)

    def successor(self) -> Tally:
        """Return a tally of the same server that counts from the newest reading on."""
        fresh = Tally(whole=self._whole)
        fresh._base = fresh._last = self._last
        fresh._began, fresh._running = self._began, self._running
        return fresh

    def after_restart(self, counters: Counters) -> Tally:
        """Return a tally of the server that ``counters`` were read from, after a restart.

        Where they fell, all that is in them happened since. Where only the server's word says so,
        they are the first reading: nobody knows what of it was counted before.
        """
        fresh = Tally(whole=self._whole)
        if self._last is not None and counters.fell_since(self._last):
            fresh._base = fresh._last = Counters()
        return fresh

    def feed(self, counters: Counters, began: str = "") -> Movement | None:
        """Take a reading of a server that was not restarted; return what moved, if anything."""
        before, self._last, self._began = self._last, counters, began
        if before is None:
            self._base = counters
            return None
        tokens = round((counters.predicted or 0) - (before.predicted or 0))
        seconds = (counters.predicted_seconds or 0) - (before.predicted_seconds or 0)
        if tokens <= 0:
            return None
        requests = self._attribute()
        self.requests += requests
        self.tokens += tokens
        tps = None
        if seconds > 0 and tokens > requests:
            self._seconds += seconds
            self._timed += tokens - requests
            tps = (tokens - requests) / seconds
        return Movement(tokens, requests, tps)

    def see(self, running: Collection[tuple[int, int]]) -> bool:
        """Take note of the requests under way, as (slot, task); return whether one has ended."""
        now = frozenset(running)
        ended = len(self._running - now)
        self._running = now
        known = min(self._early, ended)
        self._early -= known
        self._ended += ended - known
        return ended > 0

    def _attribute(self) -> int:
        """Return how many requests a movement stands for: at least one."""
        if not self._whole:
            return 0
        requests = max(self._ended, 1)
        self._early += self._ended == 0
        self._ended = 0
        return requests
