"""Launches one server at a time, waits until it is ready, watches it, and ends it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from spectui.domain.command import server_arguments
from spectui.domain.dialect import TODAY, Dialect
from spectui.domain.errors import (
    LoadTimeoutError,
    PortError,
    RequestError,
    ServerError,
    SourceAbsentError,
    SpectuiError,
)
from spectui.domain.findings import Finding, Fix, Severity
from spectui.domain.phases import ALIVE, UP, Phase, transition
from spectui.domain.profile import Profile
from spectui.domain.proof import at_start
from spectui.domain.runs import Arm
from spectui.domain.samples import speculates
from spectui.domain.text import clean
from spectui.session.ports import ClientFactory, Clock, Launcher, ServerClient, ServerProcess
from spectui.session.reasons import how_it_ended, telling_line, verdict

_POLL = 0.1  # s between two looks at a loading server
_WATCH = 0.2  # s between two looks at whether a server still lives
_REASON_LINES = 1000
_NOISE = 2 << 20  # bytes of memory that answering our own questions may move


@dataclass(frozen=True, slots=True)
class Engine:
    """What to run: the program with its leading arguments, and the resolved model files.

    ``dialect`` are the words that the program understands.
    """

    program: tuple[str, ...]
    kind: str
    build: str
    target: str
    draft: str
    dialect: Dialect = TODAY


@dataclass(frozen=True, slots=True)
class Patience:
    """Time limits in seconds.

    ``stall``: longest time in which a loading server may neither log nor grow. ``stop``: how long
    it may take to end after SIGTERM.
    """

    stall: float = 120.0
    stop: float = 10.0


class Supervisor:
    """Owns the server. Used on the Session's loop only, except ``kill_now``."""

    def __init__(
        self,
        *,
        profile: Profile,
        engine: Engine,
        launcher: Launcher,
        clients: ClientFactory,
        clock: Clock,
        patience: Patience,
        changed: Callable[[], None],
    ) -> None:
        """Call ``changed`` after every phase change."""
        self._profile = profile
        self._engine = engine
        self._launcher = launcher
        self._clients = clients
        self._clock = clock
        self._patience = patience
        self._changed = changed
        self._process: ServerProcess | None = None
        self._watch: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()  # starting and stopping never overlap
        self.phase = Phase.STOPPED
        self.since = clock()
        self.reason = ""
        self.client: ServerClient | None = None
        self.url = ""
        self.argv: tuple[str, ...] = ()
        self.arm: Arm | None = None
        self.build = engine.build
        self.findings: tuple[Finding, ...] = ()
        self._last_log: tuple[str, ...] = ()

    @property
    def pid(self) -> int | None:
        """The server's process id, None without a server."""
        return self._process.server_pid if self._process else None

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know of the running launch."""
        return self._process.notes if self._process else ()

    def log(self, lines: int) -> tuple[str, ...]:
        """Return the end of the server's output, also after it has ended."""
        if self._process is not None:
            self._last_log = self._process.tail(lines)
        return self._last_log

    async def start(self, arm: Arm) -> None:
        """Start the server with ``arm`` and wait until it is ready; whatever ran is ended first.

        Raises SpectuiError with the reason where it cannot; the phase is then failed.
        """
        async with self._turn:
            await self._start(arm)

    async def _start(self, arm: Arm) -> None:
        await self._stop()
        self.reason, self.findings = "", ()
        self.arm = arm
        self._to(Phase.STARTING)
        try:
            await self._launch(arm)
        except asyncio.CancelledError:
            await self._stop()
            raise
        except SpectuiError as error:
            await self._discard()
            self.reason = str(error)
            self._to(Phase.FAILED)
            raise

    async def _launch(self, arm: Arm) -> None:
        port = self._free_port()
        arguments = server_arguments(
            self._profile,
            arm.speculation,
            target=self._engine.target,
            draft=self._engine.draft,
            port=port,
            dialect=self._engine.dialect,
        )
        self.argv = (*self._engine.program, *arguments)
        self.url = f"http://127.0.0.1:{port}"
        self._process = self._launcher.launch(self.argv, port, dict(self._profile.server.env))
        self.client = self._clients(self.url)
        await self._until_ready(self._process, self.client)
        self.findings = await self._prove(arm, self._process, self.client)
        self._to(Phase.READY)
        self._watch = asyncio.create_task(self._watching(self._process))

    def _free_port(self) -> int:
        """Return the port to listen on; one that cannot be had is a finding with a way out."""
        try:
            return self._launcher.free_port(self._profile.server.port)
        except PortError as error:
            code = "port-privileged" if "privileged" in error.what else "port-in-use"
            fix = Fix("use a free port", (("server.port", None),))
            self.findings = (Finding(code, Severity.BLOCKER, error.what, error.fix, (fix,)),)
            raise

    async def _until_ready(self, process: ServerProcess, client: ServerClient) -> None:
        progress, moved = process.progress(), self._clock()
        while True:
            ended = process.poll()
            if ended is not None:
                raise self._start_failure(process, ended.code)
            try:
                if await client.health():
                    return
                self._to(Phase.LOADING)
            except RequestError as error:
                if error.status is not None:  # it talks, but not as a llama-server would
                    raise ServerError(f"the server is not healthy: {error}") from None
                if any("load" in line for line in process.tail(20)):
                    self._to(Phase.LOADING)
            now, latest = self._clock(), process.progress()
            if latest[0] != progress[0] or abs(latest[1] - progress[1]) > _NOISE:
                progress, moved = latest, now
            if now - moved > self._patience.stall:
                raise LoadTimeoutError(
                    f"the server has not moved for {self._patience.stall:.0f} s while loading",
                    "see its log; a slow disk or a hung driver can cause this",
                )
            await asyncio.sleep(_POLL)

    async def _prove(
        self, arm: Arm, process: ServerProcess, client: ServerClient
    ) -> tuple[Finding, ...]:
        """Ask a server that is ready whether it speculates, and what it calls its build."""
        speculating: bool | None = None
        types: tuple[str, ...] = ()
        with contextlib.suppress(RequestError, SourceAbsentError):
            props = await client.props()
            types = props.types
            self.build = self._engine.build or props.build
        with contextlib.suppress(RequestError, SourceAbsentError):
            slots = await client.slots()
            speculating = speculates(slots)
        cause = None
        if speculating is False and not arm.is_baseline:
            cause = verdict(process.tail(_REASON_LINES), None, self._profile)
        return at_start(arm.speculation, speculating=speculating, types=types, cause=cause)

    def _start_failure(self, process: ServerProcess, code: int) -> ServerError:
        lines = process.tail(_REASON_LINES)
        found = verdict(lines, code, self._profile)
        ended = how_it_ended(code)
        if found is None:
            line = clean(telling_line(lines), limit=300)
            return ServerError(f"the server did not start ({ended})", line)
        self.findings = (found,)
        return ServerError(f"the server did not start: {found.what} ({ended})", found.advice)

    async def _watching(self, process: ServerProcess) -> None:
        while (ended := process.poll()) is None:  # noqa: ASYNC110 - nothing tells of an exit
            await asyncio.sleep(_WATCH)
        self.log(_REASON_LINES)
        found = verdict(self._last_log, ended.code, self._profile)
        tail = f": {found.what}" if found else ""
        self.findings = (found,) if found else ()
        self.reason = f"the server went away, {how_it_ended(ended.code)}{tail}"
        async with self._turn:
            await self._discard(watching=True)
            self._to(Phase.GONE)

    async def stop(self) -> None:
        """End the server if there is one, and wait until it and its port are gone."""
        async with self._turn:
            await self._stop()

    async def _stop(self) -> None:
        if self.phase in ALIVE and self.phase is not Phase.STOPPING:
            self._to(Phase.STOPPING)
        try:
            await self._discard()
        finally:  # also when cancelled: the process was killed then
            self.arm = None
            self._to(Phase.STOPPED)

    async def _discard(self, *, watching: bool = False) -> None:
        watch, self._watch = self._watch, None
        if watch is not None and not watching:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)
        process, client = self._process, self.client
        self.client = None
        try:
            if process is not None:
                await process.stop(self._patience.stop)
        finally:
            self.log(_REASON_LINES)
            self._process = None
            if client is not None:
                await client.close()

    async def has_gone(self, seconds: float) -> bool:
        """Return whether the server is gone, giving a crash ``seconds`` to be noticed."""
        end = self._clock() + seconds
        while self.phase in UP and self._clock() < end:  # noqa: ASYNC110 - phases have no event
            await asyncio.sleep(_POLL)
        return self.phase not in UP

    def kill_now(self) -> None:
        """SIGKILL the server's group; may be called from any thread."""
        process = self._process
        if process is not None:
            process.kill_now()

    def busy(self, *, now: bool) -> None:
        """Take note that a request is in flight, or that none is."""
        if self.phase in UP:
            self._to(Phase.BUSY if now else Phase.READY)

    def _to(self, phase: Phase) -> None:
        if phase is not self.phase:
            self.phase = transition(self.phase, phase)
            self.since = self._clock()
            self._changed()
