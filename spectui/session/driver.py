"""Sends one prompt and follows its answer: timings, acceptance, in-flight speed."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Protocol

from spectui.domain.acceptance import Acceptance, Counters, between, resolution
from spectui.domain.errors import RequestError
from spectui.domain.runs import Prompt, Request
from spectui.domain.samples import InFlight
from spectui.domain.throughput import DecodeMeter, Timings
from spectui.session.ports import Clock, ServerClient

_SETTLE = 3.0  # s: the counters move when the request has ended, a moment after its last token
_WARM_UP_TOKENS = 32

WARM_UP = Prompt(
    id="warm-up",
    task="warm-up",
    messages=(("user", "Name the days of the week, then the months of the year, in order."),),
)
"""Sent once per launch and thrown away; it is no prompt of any workload."""


class BusySign(Protocol):
    """Is told when a request begins and ends."""

    def __call__(self, *, now: bool) -> None:
        """Take note."""


class Driver:
    """Asks one server, one prompt at a time."""

    def __init__(
        self,
        client: ServerClient,
        *,
        max_tokens: int,
        seed: int,
        clock: Clock,
        busy: BusySign,
    ) -> None:
        """Tell ``busy`` when a request begins and ends."""
        self._client = client
        self._max_tokens = max_tokens
        self._seed = seed
        self._clock = clock
        self._busy = busy
        self._counters: Counters | None = None
        self._meter = DecodeMeter()
        self._asked: tuple[Prompt, float, int] | None = None
        self._tokens = 0

    @property
    def in_flight(self) -> InFlight | None:
        """What is being answered now."""
        if self._asked is None:
            return None
        prompt, started, limit = self._asked
        return InFlight(
            prompt=prompt.id,
            task=prompt.task,
            tokens=self._tokens,
            max_tokens=limit,
            seconds=self._clock() - started,
            tps=self._meter.recent,
            so_far=self._meter.so_far,
        )

    async def warm_up(self) -> None:
        """Send the warm-up and read the counters that what follows is counted from.

        Raises RequestError where the server cannot answer at all.
        """
        await self._read_counters(await self._ask(WARM_UP, _WARM_UP_TOKENS))

    async def ask(self, prompt: Prompt) -> Request:
        """Send ``prompt`` and return what came of it; a failed request tells why in ``error``."""
        if self._counters is None:
            await self._resume_counters()
        try:
            request = await self._ask(prompt, self._max_tokens)
        except RequestError as error:
            now = self._clock()
            self._counters = None  # the server may still be counting what was broken off
            return Request(prompt.id, prompt.task, self._started, now, error=str(error))
        acceptance = await self._read_counters(request)
        return Request(
            prompt=request.prompt,
            task=request.task,
            started=request.started,
            ended=request.ended,
            timings=request.timings,
            acceptance=acceptance,
            first_token=request.first_token,
            finish=request.finish,
            text=request.text,
        )

    async def _ask(self, prompt: Prompt, max_tokens: int) -> Request:
        self._started = started = self._clock()
        self._meter, self._tokens = DecodeMeter(), 0
        self._asked = (prompt, started, max_tokens)
        self._busy(now=True)
        pieces: list[str] = []
        timings, finish, first = Timings(), "", None
        try:
            stream = self._client.chat(prompt, max_tokens=max_tokens, seed=self._seed)
            async with aclosing(stream) as events:
                async for event in events:
                    now = self._clock()
                    if event.text and first is None:
                        first = now
                    pieces.append(event.text)
                    finish = event.finish or finish
                    if event.timings is not None:
                        timings = event.timings
                        self._tokens = timings.predicted_n
                        self._meter.feed(timings.predicted_n, timings.predicted_ms / 1000)
                    elif event.text:
                        # an old build without timings: one event is about one token
                        self._tokens += 1
                        self._meter.feed(self._tokens, now - (first or now))
        finally:
            self._asked = None
            self._busy(now=False)
        ended = self._clock()
        if not timings.predicted_n and first is not None:
            elapsed = (ended - first) * 1000
            timings = Timings(predicted_n=self._tokens, predicted_ms=elapsed)
        return Request(
            prompt=prompt.id,
            task=prompt.task,
            started=started,
            ended=ended,
            timings=timings,
            first_token=None if first is None else first - started,
            finish=finish,
            text="".join(pieces),
        )

    async def _resume_counters(self) -> None:
        """Read where the counters stand now that nothing is in flight, so as to go on from there.

        They stay unknown where the server does not tell.
        """
        deadline = self._clock() + _SETTLE
        while self._clock() < deadline:
            try:
                found = await self._client.counters()
            except RequestError as error:
                if error.status is not None:
                    return
            else:
                if not found.requests_in_flight:
                    self._counters = found
                    return
            await asyncio.sleep(0.05)

    async def _read_counters(self, request: Request) -> Acceptance | None:
        """Return the growth of the counters over ``request``, None where they do not tell.

        They are read until the request has been added, which is a moment after its end.
        """
        before, deadline = self._counters, self._clock() + _SETTLE
        wanted = (before.predicted or 0 if before else 0) + request.timings.predicted_n
        while True:
            try:
                after = await self._client.counters()
            except RequestError as error:
                # an answer is an answer; silence may be a moment's
                if error.status is not None or self._clock() > deadline:
                    self._counters = None
                    return None
                await asyncio.sleep(0.1)
                continue
            slack = resolution(after.predicted)
            settled = after.predicted is None or after.predicted >= wanted - slack
            if settled or self._clock() > deadline:
                break
            await asyncio.sleep(0.02)
        self._counters = after
        if before is None or not after.speculative:
            return None
        return between(before, after)
