"""The Session on a server that somebody else runs: it watches, measures on request, never restarts.

Reading has a price for a stranger's server. /metrics and /props are answered even while
llama-server sleeps and neither wakes it nor keeps it awake; /slots does both. So /slots is asked
only while /metrics tells that a request is under way, or where there is no /metrics to tell.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

from spectui.domain.attached import WHY_NOT, Attachment, Found, Movement, ServerKind, Tally
from spectui.domain.comparison import Answer, Tone
from spectui.domain.errors import RequestError, UsageError
from spectui.domain.phases import UP, Phase
from spectui.domain.profile import Profile
from spectui.domain.runs import AS_IT_RUNS, WATCHED, Arm, Prompt, Run, Summary
from spectui.domain.samples import (
    Doing,
    Level,
    SettledPoint,
    Slot,
    Snapshot,
    SourceStatus,
    speculates,
)
from spectui.domain.speculation import Speculation
from spectui.session.attached import Attached, Pace, WatchClient
from spectui.session.keeper import Keeper
from spectui.session.sampler import METRICS, SLOTS, NotNowError, Sampler, Source
from spectui.session.session import Outside, Session
from spectui.session.supervisor import Engine

_Reading = tuple[float, float]

_SETTLED = 1000
_LINGER = 2.0  # s that the charts go on after the last request
_NO_KEY = frozenset({401, 403})

_LOST = {METRICS.name: "acceptance by position", SLOTS.name: "speed in flight"}
"""What a source that cannot be read costs."""

_SWITCH = {
    (METRICS.name, ServerKind.SGLANG): "start SGLang with --enable-metrics",
    (METRICS.name, ServerKind.VLLM): "vLLM has switched its metrics off",
    (METRICS.name, ServerKind.LLAMA): "the server runs without --metrics",
    (SLOTS.name, ServerKind.LLAMA): "the server runs with --no-slots",
}


class WatchSampler(Sampler):
    """Reads a server that others use."""

    def __init__(
        self,
        *,
        outside: Outside,
        client: Callable[[], WatchClient | None],
        driving: Callable[[], bool],
        kind: ServerKind,
        has_key: bool,
        pace: Pace,
        moved: Callable[[WatchClient], None],
        seen: Callable[[Sequence[Slot]], bool],
        tell: Callable[[Level, str], None],
    ) -> None:
        """Call ``moved`` after every reading of the counters.

        ``seen`` is given every reading of /slots, and returns whether a request has ended.
        """
        super().__init__(
            gpus=outside.gpus,
            host=outside.host,
            clock=outside.clock,
            client=client,
            pid=lambda: None,
            driving=driving,
            metrics=replace(METRICS, interval=pace.metrics),
            slots=replace(SLOTS, interval=pace.slots),
        )
        self._watch_client = client
        self._kind, self._has_key = kind, has_key
        self._moved, self._seen, self._tell = moved, seen, tell
        self._rate: _Reading | None = None
        if not kind.has_slots:
            self._speed = METRICS.name
        self._locked: set[str] = set()
        self.missing: dict[str, str] = {}

    @property
    def locked(self) -> bool:
        """Whether the server would not tell for want of the right key."""
        return bool(self._locked)

    async def _read_metrics(self) -> None:
        client = self._watch_client()
        before, self._rate = self._rate, None
        try:
            if client is None:
                raise NotNowError
            self.counters = await client.counters()
            if self.counters.predicted is not None:
                self._rate = (self._clock(), self.counters.predicted)
        finally:
            if not self._kind.has_slots:
                self.slot_tps = _rate(before, self._rate)
        self._moved(client)

    async def _read_slots(self) -> None:
        if not self._kind.has_slots:
            raise NotNowError
        client = self._watch_client()
        if client is not None and not await self._worth_it(client):
            self.slot_tps, self.slots = None, ()
            raise NotNowError
        await super()._read_slots()
        if self._seen(self.slots):
            self.hurry()  # a request has ended: the counters have moved

    async def _worth_it(self, client: WatchClient) -> bool:
        """Return whether to ask for /slots, which wakes a sleeping server."""
        if self.counters is not None and self._states[METRICS.name].status is SourceStatus.OK:
            busy = bool(self.counters.requests_in_flight) or any(s.busy for s in self.slots)
            if busy or self.counters.requests_in_flight is None:
                return True
            if self._states[SLOTS.name].read_at is not None:
                return False
        try:
            return not (await client.props()).sleeping
        except RequestError as error:
            if error.status in _NO_KEY:
                raise
            return error.status is not None

    def answered(self, source: Source) -> None:
        """Tell that something which was missing is there."""
        self._locked.discard(source.name)
        if self.missing.pop(source.name, ""):
            self._tell(Level.INFO, f"{_LOST[source.name]} can be shown now")

    def refused(self, source: Source, error: RequestError) -> str:
        """Say what is missing and why, once."""
        if source.name not in _LOST:
            return str(error)
        if error.status in _NO_KEY:
            why = (
                "the server refuses the API key" if self._has_key else "the server wants an API key"
            )
            self._locked.add(source.name)
        elif error.status in {404, 501}:
            known = self._kind if self._kind in {ServerKind.VLLM, ServerKind.SGLANG} else None
            why = _SWITCH[source.name, known or ServerKind.LLAMA]
        else:
            return str(error)
        text = f"no {_LOST[source.name]}: {why}"
        if self.missing.get(source.name) != text:
            self.missing[source.name] = text
            self._tell(Level.WARNING, text)
        return why


def _rate(before: _Reading | None, now: _Reading | None) -> float | None:
    """Return the speed by a counter that moves while requests run, as vLLM's does.

    Readings are (seconds, tokens).
    """
    if before is None or now is None or now[0] <= before[0] or now[1] <= before[1]:
        return None
    return (now[1] - before[1]) / (now[0] - before[0])


@dataclass(frozen=True, slots=True)
class Watched:
    """What to watch. ``url`` is shown, ``has_key`` whether a key is sent."""

    client: WatchClient
    url: str
    found: Found
    has_key: bool = False
    pace: Pace = field(default_factory=Pace)


class Watching(Session):
    """A Session without a server of its own. ``start`` it, and it watches until it is closed.

    What others let the server do is one run, "watched", that is open as long as it goes on; the
    next one begins with a restart of the server, and after a measurement with prompts of ours.
    """

    def __init__(
        self, watched: Watched, *, profile: Profile, prompts: Sequence[Prompt], outside: Outside
    ) -> None:
        """``profile`` says how to measure: tokens and seed; nothing is launched with it."""
        self._watched = watched
        self._tally = Tally(whole=watched.found.kind.has_slots)
        self._open: Run | None = None
        self._summaries: dict[int, Summary] = {}
        self._settled: deque[SettledPoint] = deque(maxlen=_SETTLED)
        self._ours = False  # the prompts that are being answered are ours
        self._moved_at = -math.inf  # when requests were last found to have ended
        self._was_away = False  # since the last reading of the counters
        self._said: bool | None = None  # whether it speculates, by its own word
        self._types: tuple[str, ...] = ()
        found = watched.found
        super().__init__(
            profile=profile,
            engine=Engine((), str(found.kind), found.build, found.model, ""),
            prompts=prompts,
            outside=outside,
            title=watched.url,
        )

    # -- what a Session is made of ---------------------------------------------------------------

    def _make_keeper(self) -> Keeper:
        self._attached = Attached(
            client=self._watched.client,
            url=self._watched.url,
            clock=self._clock,
            changed=self._phase_changed,
            pace=self._watched.pace,
        )
        return self._attached

    def _make_sampler(self) -> Sampler:
        self._reader = WatchSampler(
            outside=self._outside,
            client=lambda: self._attached.client,
            driving=lambda: self._measuring.in_flight is not None,
            kind=self._watched.found.kind,
            has_key=self._watched.has_key,
            pace=self._watched.pace,
            moved=self._moved,
            seen=self._seen,
            tell=self._notice,
        )
        return self._reader

    def _phase_changed(self) -> None:
        self._was_away = self._was_away or self._attached.phase is Phase.GONE
        if self._attached.phase is Phase.STARTING:  # it may come back with other settings
            self._said, self._types = None, ()
        super()._phase_changed()

    def _at_rest(self, now: float) -> bool:
        """Let the time axis go on past requests too short to be seen in flight."""
        return super()._at_rest(now) and now - self._moved_at > _LINGER

    async def _main(self) -> None:
        self._attached.open()
        await super()._main()

    # -- what a face may ask -----------------------------------------------------------------------

    def check(self, speculation: Speculation) -> tuple[tuple[str, str], ...]:
        """Return why nothing but what runs can be had."""
        return () if speculation.same_as(self._wanted) else (("type", WHY_NOT),)

    def launch(self, speculation: Speculation) -> Future[None]:
        """Refuse: nothing is ever started here."""
        del speculation
        return _refused("there is nothing to start")

    def stop_server(self) -> Future[None]:
        """Refuse: this server is not ours to stop."""
        return _refused("this server is not stopped from here")

    def measure_baseline(self) -> Future[None]:
        """Refuse: speculation is turned off by a restart."""
        return _refused("a baseline takes a restart without speculation")

    def measure_arms(self, arms: Sequence[Arm]) -> Future[None]:
        """Refuse: arms differ by what a server is started with."""
        del arms
        return _refused("other settings take a restart")

    def measure(self, speculation: Speculation) -> Future[None]:
        """Send our prompts to the server as it runs."""
        if not speculation.same_as(self._wanted):
            return _refused("another setting takes a restart")
        return self._begin(self._measure)

    async def _measure(self) -> None:
        why = self._why_not_measure()
        if why:
            raise UsageError(f"no prompt can be sent: {why}")
        self._end_run()
        self._ours = True
        try:
            await self._measuring.measure([AS_IT_RUNS], self.prompts)
        finally:
            self._reader.hurry()

    def _why_not_measure(self) -> str:
        found = self._watched.found
        if not found.kind.has_slots and found.problem:
            return found.problem
        return "the server does not take the API key" if self._reader.locked else ""

    # -- what is seen ------------------------------------------------------------------------------

    def _moved(self, client: WatchClient) -> None:
        counters = self._reader.counters
        assert counters is not None  # noqa: S101 - this is called after a reading
        now = self._clock()
        away, self._was_away = self._was_away, False
        if self._tally.restarted(counters, client.began, away=away):
            self._end_run("the server was restarted")
            self._tally = self._tally.after_restart(counters)
            self._book.mark(now, "restarted")
        movement = self._tally.feed(counters, client.began)
        idle = self._measuring.activity.doing is Doing.IDLE
        if idle and self._ours:  # what was answered up to here was ours
            self._ours, movement = False, None
            self._tally = self._tally.successor()
        if idle:
            if self._open is None:
                self._open = self._book.begin(WATCHED, now, 0)
            if counters.requests_in_flight is not None:
                self._attached.busy(now=counters.requests_in_flight > 0)
        if movement is not None:
            self._moved_at = now
        if movement is not None and movement.tps and self._open is not None:
            self._settle(movement, movement.tps, self._open.number, now)

    def _settle(self, movement: Movement, tps: float, run: int, now: float) -> None:
        """Put a point on the chart for requests that ended; the news is worth a snapshot."""
        end = self._book.charted(now)
        took = movement.tokens / tps / max(movement.requests, 1)
        self._settled.append(SettledPoint(end - took, end, tps, run))
        self._news()

    def _seen(self, slots: Sequence[Slot]) -> bool:
        if slots:
            self._said = speculates(slots)
            types = dict.fromkeys(kind for slot in slots for kind in slot.types)
            self._types = tuple(types) or self._types
        if self._reader.counters is None:  # they would tell; without them this does
            self._attached.busy(now=any(slot.busy for slot in slots))
        return self._tally.see([(slot.id, slot.task) for slot in slots if slot.busy])

    def _end_run(self, stopped: str = "") -> None:
        if self._open is not None:
            self._summaries[self._open.number] = self._summary()
            self._book.end(self._open.number, self._clock(), stopped)
            self._open = None

    def _summary(self) -> Summary:
        tally = self._tally
        return Summary(
            requests=tally.requests,
            tokens=tally.tokens,
            decode_tps=tally.decode_tps,
            acceptance=tally.acceptance,
        )

    # -- what is shown -----------------------------------------------------------------------------

    def _take(self) -> Snapshot:
        snapshot = super()._take()
        if self._open is not None:
            self._summaries[self._open.number] = self._summary()
        settled = sorted((*snapshot.settled, *self._settled), key=lambda point: point.ended)
        attachment = self._attachment()
        return replace(
            snapshot,
            target=attachment.model or str(attachment.kind),
            settled=tuple(settled),
            summaries={**snapshot.summaries, **self._summaries},
            answer=self._answer(attachment),
            attached=attachment,
        )

    def _attachment(self) -> Attachment:
        found, reader, counters = self._watched.found, self._reader, self._reader.counters
        missing = [*reader.missing.values(), *self._failing()]
        speculating = self._speculating()
        if self._counts_no_drafts() and speculating is not False:
            missing.append("no acceptance: this server counts no drafts")
        elif found.kind is ServerKind.SGLANG and counters is not None:
            missing.append("no acceptance by position: SGLang does not count it")
        in_flight = self._measuring.in_flight
        return Attachment(
            kind=found.kind,
            model=found.model
            if found.kind.has_models
            else self._attached.props.model or found.model,
            speculating=speculating,
            types=self._types or self._attached.props.types,
            missing=tuple(missing),
            totals=self._tally.totals,
            said_length=counters.said_length if counters else None,
            tps=in_flight.tps if in_flight else reader.slot_tps,
            why_not_measure=self._why_not_measure(),
        )

    def _failing(self) -> list[str]:
        """Return what cannot be shown just now, for a reason that may pass."""
        return [
            f"no {lost}: {state.reason}"
            for name, lost in _LOST.items()
            if (state := self._reader.states[name]).status is SourceStatus.FAILED
            and name not in self._reader.missing
            and self._attached.phase in UP
        ]

    def _speculating(self) -> bool | None:
        """Return whether the server drafts, None where nothing tells."""
        if self._tally.totals.drafts:
            return True
        if self._watched.found.kind is ServerKind.VLLM and self._reader.counters is not None:
            return self._reader.counters.drafts is not None  # it has the counters only if it drafts
        return self._said

    def _counts_no_drafts(self) -> bool:
        counters = self._reader.counters
        return counters is not None and counters.drafts is None

    def _answer(self, attachment: Attachment) -> Answer:
        return Answer(
            Tone.WAITING,
            f"Watched as it runs: {self._so_far(attachment)}",
            "no baseline, no speed-up to tell",
        )

    def _so_far(self, attachment: Attachment) -> str:
        acceptance = self._tally.acceptance
        if acceptance.mean_length is not None:
            rate = "" if acceptance.rate is None else f"{acceptance.rate:.0%} accepted, "
            return f"{rate}{acceptance.mean_length:.1f} tokens a step"
        if attachment.speculating is False:
            return "this server does not speculate"
        if attachment.said_length is not None and self._counts_no_drafts():
            return f"{attachment.said_length:.1f} tokens a step, says {attachment.kind}"
        if self._counts_no_drafts() or METRICS.name in self._reader.missing:
            return "what comes of its drafts is not known"
        if self._tally.tokens:
            return "tokens come, and none of them was drafted"
        return "nothing has been counted yet"


def _refused(what: str) -> Future[None]:
    failed: Future[None] = Future()
    failed.set_exception(UsageError(what, WHY_NOT))
    return failed
