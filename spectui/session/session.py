"""The Session: a server, a workload and what was measured, on a thread and a loop of its own.

Its own thread, because a stalled terminal freezes the dashboard's loop, and supervising, measuring
and recording must go on. Everything below ``_loop`` runs there; the public methods may be called
from any thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from spectui.domain.errors import SpectuiError, UsageError
from spectui.domain.findings import Finding, Severity
from spectui.domain.phases import UP, Phase
from spectui.domain.profile import Profile
from spectui.domain.proof import of_run
from spectui.domain.runs import Arm, Prompt
from spectui.domain.samples import Doing, EngineInfo, Level, Snapshot
from spectui.domain.speculation import OFF, Speculation, check
from spectui.domain.text import clean
from spectui.session.book import Book
from spectui.session.keeper import Keeper
from spectui.session.measuring import Measuring
from spectui.session.ports import (
    ClientFactory,
    Clock,
    Exporter,
    GpuReader,
    HostReader,
    Journal,
    Launcher,
)
from spectui.session.sampler import Sampler
from spectui.session.subscribers import Subscribers
from spectui.session.supervisor import Engine, Patience, Supervisor

T = TypeVar("T")

_TICK = 0.6  # s between two snapshots while something happens
_BEAT = 0.25  # s between two points of in-flight speed
_IDLE_TICK = 1.0
_SPACING = 0.2  # s: news does not come faster than this
_LOG_LINES = 200


@dataclass(frozen=True, slots=True)
class Outside:
    """The outside world, as a Session needs it."""

    launcher: Launcher
    clients: ClientFactory
    gpus: GpuReader
    host: HostReader
    journal: Journal
    export: Exporter
    clock: Clock = time.monotonic
    patience: Patience = field(default_factory=Patience)


class Session:
    """One profile being run. ``start`` it, ask of it what you like, ``close`` it.

    Fits ``controls.Controls``.
    """

    def __init__(
        self,
        *,
        profile: Profile,
        engine: Engine,
        prompts: Sequence[Prompt],
        outside: Outside,
        title: str = "",
        notices: int = 0,
    ) -> None:
        """``prompts`` are the workload in sending order; ``title`` names the profile.

        Notices are counted on from ``notices``.
        """
        self.profile = profile
        self._engine = engine
        self.prompts = tuple(prompts)
        self._outside = outside
        self._title = title
        self._clock = outside.clock
        self._book = Book(notices)
        self._told: set[str] = set()  # codes of findings of this launch
        self._supervisor = self._make_keeper()
        self._measuring = Measuring(
            profile=profile,
            supervisor=self._supervisor,
            book=self._book,
            journal=outside.journal,
            clock=outside.clock,
            news=self._news,
            gpus=lambda: [gpu.name for gpu in self._sampler.gpus],
        )
        self._sampler = self._make_sampler()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="spectui-session", daemon=True)
        self._job: asyncio.Task[None] | None = None
        self._fresh: asyncio.Event | None = None
        self._ending: asyncio.Event | None = None
        self._subscribers = Subscribers()
        self._wanted = profile.speculation  # what a person last asked for, the baseline aside
        self._phase = self._supervisor.phase
        self._snapshot = self._take()

    def _make_keeper(self) -> Keeper:
        """Return who looks after the server."""
        return Supervisor(
            profile=self.profile,
            engine=self._engine,
            launcher=self._outside.launcher,
            clients=self._outside.clients,
            clock=self._outside.clock,
            patience=self._outside.patience,
            changed=self._phase_changed,
        )

    def _make_sampler(self) -> Sampler:
        """Return who reads the sources."""
        return Sampler(
            gpus=self._outside.gpus,
            host=self._outside.host,
            clock=self._outside.clock,
            client=lambda: self._supervisor.client if self._supervisor.phase in UP else None,
            pid=lambda: self._supervisor.pid,
            driving=lambda: self._measuring.in_flight is not None,
        )

    # -- from any thread -------------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread; returns when it runs."""
        began = threading.Event()
        self._loop.call_soon(began.set)
        self._thread.start()
        began.wait()

    def close(self, timeout: float | None = None) -> bool:
        """Stop everything: the job, the server, the thread. Return whether it ended in time."""
        if self._thread.ident is None:
            self._loop.close()
            return True
        if self._thread.is_alive():
            with contextlib.suppress(RuntimeError):  # the loop ended a moment ago
                self._loop.call_soon_threadsafe(self._end)
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def kill_now(self) -> None:
        """SIGKILL the server, whatever the Session is doing: the last resort."""
        self._supervisor.kill_now()

    @property
    def snapshot(self) -> Snapshot:
        """The newest snapshot."""
        return self._snapshot

    def subscribe(self, callback: Callable[[Snapshot], None]) -> Callable[[], None]:
        """Call ``callback`` with every snapshot, on the Session's thread; returns its undoing."""
        return self._subscribers.add(callback)

    def check(self, speculation: Speculation) -> tuple[tuple[str, str], ...]:
        """Return (knob key, reason) for everything that this server would choke on."""
        found = check(speculation, has_draft=self.profile.has_draft)
        return found or self._engine.dialect.refuse(speculation)

    def launch(self, speculation: Speculation) -> Future[None]:
        """Start the server with this setting, or restart it if another one runs."""
        return self._begin(lambda: self._measuring.launch(Arm(speculation)), speculation)

    def stop_server(self) -> Future[None]:
        """Stop the server, and with it what is being measured. What was measured is kept."""

        async def stop() -> None:
            await self._cancel_job()
            await self._supervisor.stop()

        return self._submit(stop())

    def measure(self, speculation: Speculation) -> Future[None]:
        """Measure this setting in a fresh launch; before it the baseline, where there is none."""
        arm = Arm(speculation)

        def job() -> Coroutine[object, object, None]:
            arms = [arm] if arm.is_baseline or self._has_baseline() else [Arm(), arm]
            return self._measuring.measure(arms, self.prompts)

        return self._begin(job, speculation)

    def measure_arms(self, arms: Sequence[Arm]) -> Future[None]:
        """Measure several arms in this order, going on where one of them fails."""
        return self._begin(
            lambda: self._measuring.measure(arms, self.prompts, keep_going=True),
            *(arm.speculation for arm in arms),
        )

    def measure_baseline(self) -> Future[None]:
        """Measure with speculation off, in a fresh launch, and go back to the setting before."""

        def job() -> Coroutine[object, object, None]:
            before = self._supervisor.arm if self._supervisor.phase in UP else None
            return self._measuring.measure([Arm()], self.prompts, then=before)

        return self._begin(job, Speculation(OFF))

    def cancel(self) -> Future[None]:
        """Stop what is under way at once. Requests that have ended are kept."""
        return self._submit(self._cancel_job())

    def warn(self, text: str) -> None:
        """Show a warning to the person."""
        self._notice(Level.WARNING, text)

    def export_path(self) -> str:
        """Return where ``export`` would write if nobody says otherwise."""
        return self._outside.export.suggest()

    def export(self, path: str, run: int | None = None) -> Future[str]:
        """Write the tuned profile of ``run`` (the answer's run where None); returns its path."""

        async def export() -> str:
            self._snapshot = self._take()
            return await asyncio.to_thread(self.write, path, run)

        return self._submit(export())

    def write(self, path: str, run: int | None = None) -> str:
        """Do what ``export`` does, at once; also after the Session was closed."""
        return self._outside.export.write(path, self._snapshot, run)

    # -- jobs, on the loop -----------------------------------------------------------------------

    def _submit(self, work: Coroutine[object, object, T]) -> Future[T]:
        if not self._thread.is_alive():
            work.close()
            failed: Future[T] = Future()
            failed.set_exception(SpectuiError("the session has ended"))
            return failed
        return asyncio.run_coroutine_threadsafe(self._published(work), self._loop)

    async def _published(self, work: Coroutine[object, object, T]) -> T:
        """Do ``work``; whoever waits for its end finds it in the snapshot."""
        try:
            return await work
        finally:
            self._publish()

    def _begin(
        self, job: Callable[[], Coroutine[object, object, None]], *wanted: Speculation
    ) -> Future[None]:
        """Run ``job`` as the one job; refuse settings that make no sense, and a second job."""

        async def begin() -> None:
            for speculation in wanted:
                for key, why in self.check(speculation):
                    raise UsageError(f"{key}: {why}")
            if self._job is not None and not self._job.done():
                raise UsageError(
                    f"still {self._measuring.activity.doing}", "cancel it first, or wait"
                )
            before = self._wanted
            self._wanted = next((s for s in reversed(wanted) if not s.is_off), before)
            task = self._job = asyncio.create_task(job())
            try:
                await task
            except asyncio.CancelledError:
                if not task.cancelled():
                    task.cancel()
                    raise
                raise SpectuiError("stopped; what was measured is kept") from None
            except SpectuiError as error:
                if self._supervisor.arm == Arm(before):  # it was refused, and this runs again
                    self._wanted = before
                self._notice(Level.ERROR, str(error))
                raise
            except Exception as error:  # a worker's edge: the fault is told, the session lives on
                told = SpectuiError(f"a fault in spectui ({type(error).__name__}: {error})")
                self._notice(Level.ERROR, clean(str(told), limit=300))
                raise told from error

        return self._submit(begin())

    async def _cancel_job(self) -> None:
        job = self._job
        if job is not None and not job.done():
            self._measuring.stopping()
            job.cancel()
            await asyncio.wait({job})  # its end is told by whoever began it

    def _has_baseline(self) -> bool:
        base = self._book.baseline
        return base is not None and base.ended is not None and not base.stopped

    # -- the loop --------------------------------------------------------------------------------

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._main())
        except Exception as error:  # noqa: BLE001 - the thread's edge: the faces must be told
            told = f"the session ended with a fault ({type(error).__name__}: {error})"
            self._notice(Level.ERROR, clean(told, limit=300))
            self._publish()
        finally:
            self._supervisor.kill_now()
            with contextlib.suppress(Exception):
                self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()

    async def _main(self) -> None:
        self._fresh, self._ending = asyncio.Event(), asyncio.Event()
        self._sampler.start()
        ticking = [asyncio.create_task(self._tick()), asyncio.create_task(self._beat())]
        try:
            await self._ending.wait()
        finally:
            await self._cancel_job()
            await self._sampler.stop()
            await self._supervisor.stop()
            for task in ticking:
                task.cancel()
            await asyncio.gather(*ticking, return_exceptions=True)
            self._publish()
            self._outside.journal.close()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

    def _end(self) -> None:
        if self._ending is not None:
            self._ending.set()
        else:  # asked to end before the loop had begun: try again on its next turn
            self._loop.call_soon(self._end)

    async def _tick(self) -> None:
        while True:
            active = self._supervisor.phase is not Phase.STOPPED
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_TICK if active else _IDLE_TICK):
                    await self._news_event.wait()
            self._news_event.clear()
            self._publish()
            await asyncio.sleep(_SPACING)

    async def _beat(self) -> None:
        last = self._clock()
        while True:
            now, tps = self._clock(), self._tps_now()
            if tps is None and self._at_rest(now):
                self._book.rest(now - max(last, self._measuring.activity.since))
            last = now
            self._book.speed(now, tps)
            await asyncio.sleep(_BEAT)

    def _at_rest(self, now: float) -> bool:
        """Return whether nothing is done, so that the charts' time axis stands still."""
        del now
        return self._measuring.activity.doing is Doing.IDLE

    @property
    def _news_event(self) -> asyncio.Event:
        assert self._fresh is not None  # noqa: S101 - made before the ticker starts
        return self._fresh

    def _tps_now(self) -> float | None:
        in_flight = self._measuring.in_flight
        return in_flight.tps if in_flight is not None else self._sampler.slot_tps

    def _news(self) -> None:
        if self._fresh is not None:
            self._fresh.set()

    def _notice(self, level: Level, text: str) -> None:
        self._book.notice(self._clock(), level, text)
        self._news()

    def _phase_changed(self) -> None:
        phase, before = self._supervisor.phase, self._phase
        self._phase = phase
        if {phase, before} == UP:
            return  # twice a request: the next tick shows it early enough
        if phase is Phase.STARTING:
            self._told.clear()
            self._sampler.forget_server()
        elif phase is Phase.GONE:
            self._notice(Level.ERROR, self._supervisor.reason)
        self._news()

    def _findings(self) -> tuple[Finding, ...]:
        """Return what is wrong with the launch, each kind once, worst first."""
        found = [*self._book.trouble, *self._supervisor.findings]
        runs = self._book.runs
        if runs and self._supervisor.phase in UP and runs[-1].arm == self._supervisor.arm:
            found += of_run(runs[-1], self._book.summary(runs[-1]))
        order = list(Severity)
        once = {finding.code: finding for finding in reversed(found)}
        return tuple(sorted(once.values(), key=lambda finding: order.index(finding.severity)))

    def _tell_findings(self) -> None:
        """Say each finding about a living server once; of one that failed the job says it."""
        if self._supervisor.phase not in UP:
            return
        for finding in self._findings():
            if finding.code not in self._told and finding not in self._book.trouble:
                self._told.add(finding.code)
                hint = finding.severity is Severity.HINT
                text = f"{finding.what}; {finding.advice}" if finding.advice else finding.what
                self._notice(Level.INFO if hint else Level.WARNING, text)

    def _publish(self) -> None:
        self._tell_findings()
        self._snapshot = snapshot = self._take()
        for error in self._subscribers.tell(snapshot):
            self._notice(Level.ERROR, f"a listener failed ({type(error).__name__}: {error})")

    def _take(self) -> Snapshot:
        supervisor, book, sampler = self._supervisor, self._book, self._sampler
        base = book.baseline
        now = self._clock()
        return Snapshot(
            at=now,
            chart_at=book.charted(now),
            phase=supervisor.phase,
            phase_since=supervisor.since,
            reason=supervisor.reason,
            title=self._title,
            target=Path(self._engine.target).name,
            draft=Path(self._engine.draft).name,
            engine=EngineInfo(self._engine.kind, supervisor.build, " ".join(supervisor.argv)),
            url=supervisor.url,
            pid=supervisor.pid,
            running=supervisor.arm if supervisor.phase not in {Phase.FAILED, Phase.GONE} else None,
            activity=self._measuring.activity,
            in_flight=self._measuring.in_flight,
            speed=book.speed_points,
            settled=book.settled_points,
            marks=book.marks,
            runs=book.runs,
            summaries=book.summaries(),
            comparisons=book.comparisons(),
            baseline=base.number if base else None,
            answer=book.answer(),
            gpus=sampler.gpus,
            host=sampler.host,
            sources=sampler.states,
            log=supervisor.log(_LOG_LINES),
            notices=book.notices,
            speculation=self._wanted,
            has_draft=self.profile.has_draft,
            findings=self._findings(),
        )
