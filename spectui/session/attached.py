"""Watches a server that somebody else runs: whether it answers, loads, or has gone away.

There is no process here, no signal and no port: nothing that could end the server. What is asked
for is cheap, and answered even while the server is busy or asleep.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from spectui.domain.attached import WHY_NOT, LateError, NotLoadedError, Props
from spectui.domain.errors import RequestError, ServerError, UsageError
from spectui.domain.findings import Finding
from spectui.domain.phases import UP, Phase, transition
from spectui.domain.runs import AS_IT_RUNS, Arm
from spectui.session.ports import Clock, ServerClient

_ALIVE = frozenset({401, 403, 404, 405})  # it says no, so it is there


class WatchClient(ServerClient, Protocol):
    """A client of a server that is only watched."""

    @property
    def began(self) -> str:
        """The server's word on when it started, empty where it does not say."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How often to ask a server, in seconds.

    Whether it is there: ``soon`` while it loads, ``steady`` while it is up; while it is away, from
    ``soon`` to ``rarely``, twice as long each time. It counts as away after two refusals, or
    ``silence`` without a word. For its counters and its slots: every ``metrics`` and ``slots``.
    """

    soon: float = 0.5
    steady: float = 2.0
    rarely: float = 5.0
    silence: float = 60.0
    metrics: float = 1.0
    slots: float = 0.5


class Attached:
    """Fits ``keeper.Keeper``. ``open`` begins to watch, on the running loop."""

    def __init__(
        self,
        *,
        client: WatchClient,
        url: str,
        clock: Clock,
        changed: Callable[[], None],
        pace: Pace,
    ) -> None:
        """``url`` is shown and recorded, and has no secret in it; ``changed``: the phase has."""
        self._talk = client
        self._clock = clock
        self._changed = changed
        self._pace = pace
        self._task: asyncio.Task[None] | None = None
        self._refusals = 0
        self._heard = clock()
        self._wait = self._pace.soon
        self.phase = Phase.STOPPED
        self.since = clock()
        self.reason = ""
        self.url = url
        self.argv: tuple[str, ...] = ()
        self.build = ""
        self.props = Props()
        self.pid: int | None = None
        self.notes: tuple[str, ...] = ()
        self.findings: tuple[Finding, ...] = ()

    @property
    def client(self) -> WatchClient | None:
        """What talks to the server, while it is up."""
        return self._talk if self.phase in UP else None

    @property
    def arm(self) -> Arm | None:
        """Whatever its owner started it with, while it is up."""
        return AS_IT_RUNS if self.phase in UP else None

    def open(self) -> None:
        """Begin to watch."""
        self._to(Phase.STARTING)
        self._task = asyncio.create_task(self._watching())

    def log(self, lines: int) -> tuple[str, ...]:
        """Return where the log is: not here."""
        del lines
        return ("This server runs elsewhere, and so does its log.",)

    async def start(self, arm: Arm) -> None:
        """Raise where ``arm`` would take a restart, or the server does not answer."""
        if arm != AS_IT_RUNS:
            raise UsageError(f"{arm.name} would take a restart", WHY_NOT)
        if self.phase not in UP:
            raise ServerError("the server does not answer", self.reason)

    async def stop(self) -> None:
        """End watching; the server goes on, and its phase is left as it was last seen."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await self._talk.close()

    def kill_now(self) -> None:
        """Do nothing: this server is not ours."""

    async def has_gone(self, seconds: float) -> bool:
        """Return whether the server is gone, giving it ``seconds`` to be noticed."""
        end = self._clock() + seconds
        while self.phase in UP and self._clock() < end:  # noqa: ASYNC110 - phases have no event
            await asyncio.sleep(0.1)
        return self.phase not in UP

    def busy(self, *, now: bool) -> None:
        """Take note that a request is in flight, ours or another's, or that none is."""
        if self.phase in UP:
            self._to(Phase.BUSY if now else Phase.READY)

    # -- watching --------------------------------------------------------------------------------

    async def _watching(self) -> None:
        while True:
            try:
                ready = await self._talk.health()
            except LateError as late:
                self._silent(str(late))
            except NotLoadedError as error:
                self._away(str(error))
            except RequestError as error:
                if error.status in _ALIVE:
                    await self._here(ready=True)
                else:
                    self._refused(error)
            else:
                await self._here(ready=ready)
            await asyncio.sleep(self._pause())

    def _pause(self) -> float:
        if self.phase in UP and not self._refusals:
            return self._pace.steady
        if self.phase in {Phase.GONE, Phase.FAILED}:
            self._wait = min(self._wait * 2, self._pace.rarely)
            return self._wait
        return self._pace.soon

    async def _here(self, *, ready: bool) -> None:
        self._refusals, self._heard, self._wait = 0, self._clock(), self._pace.soon
        if not ready and self.phase in UP:
            self._away("it is loading its model again")
        if self.phase in {Phase.GONE, Phase.FAILED}:
            self.reason = ""
            self._to(Phase.STARTING)
        if not ready:
            self._to(Phase.LOADING)
        elif self.phase not in UP:
            with contextlib.suppress(RequestError):
                self.props = await self._talk.props()
                self.build = self.props.build
            self._to(Phase.READY)

    def _silent(self, said: str) -> None:
        """Bear with a server that does not answer in time: busy is not gone."""
        silent = self._clock() - self._heard
        if silent > self._pace.silence:
            self._away(f"{said}, for {silent:.0f} s")

    def _refused(self, error: RequestError) -> None:
        """Take a lost connection for an accident, and a second one for the end."""
        self._refusals += 1
        if self._refusals > 1 or self.phase not in UP:
            self._away(str(error))

    def _away(self, reason: str) -> None:
        self.reason = reason
        if self.phase in UP:
            self._to(Phase.GONE)
        elif self.phase in {Phase.STARTING, Phase.LOADING}:
            self._to(Phase.FAILED)

    def _to(self, phase: Phase) -> None:
        if phase is not self.phase:
            self.phase = transition(self.phase, phase)
            self.since = self._clock()
            self._changed()
