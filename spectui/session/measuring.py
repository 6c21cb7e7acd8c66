"""Restart to compare: launch an arm, send the workload, and come back if it will not start."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from spectui.domain.errors import ServerError, SpectuiError
from spectui.domain.profile import Profile
from spectui.domain.runs import Arm, Prompt, Run
from spectui.domain.samples import Activity, Doing, InFlight, Level
from spectui.session.book import Book
from spectui.session.driver import Driver
from spectui.session.keeper import Keeper
from spectui.session.ports import Clock, Journal

_CRASH = 1.0  # s after a failed request in which its cause may show: the server is gone
_FAILURES = 3  # failed requests in a row after which a run is given up


class Measuring:
    """The one job at a time that the Session does. Used on its loop only."""

    def __init__(
        self,
        *,
        profile: Profile,
        supervisor: Keeper,
        book: Book,
        journal: Journal,
        clock: Clock,
        news: Callable[[], None],
        gpus: Callable[[], Sequence[str]],
    ) -> None:
        """Call ``news`` when there is something to show; ``gpus`` names the GPUs there are."""
        self._profile = profile
        self._supervisor = supervisor
        self._book = book
        self._journal = journal
        self._clock = clock
        self._news = news
        self._gpus = gpus
        self._driver: Driver | None = None
        self._last_good: Arm | None = None
        self._paces: list[float] = []
        self._launch_seconds = 0.0
        self._told: set[str] = set()
        self._activity = Activity(since=clock())
        self._finish: float | None = None  # when the job will probably be over

    @property
    def activity(self) -> Activity:
        """What is being done; the time left runs down between two requests as well."""
        if self._finish is None:
            return self._activity
        return replace(self._activity, seconds_left=max(0.0, self._finish - self._clock()))

    @property
    def in_flight(self) -> InFlight | None:
        """The request that is being answered, if one is."""
        return self._driver.in_flight if self._driver else None

    def _do(self, doing: Doing, arm: str = "") -> None:
        self._activity = replace(self._activity, doing=doing, arm=arm, since=self._clock())
        self._news()

    def stopping(self) -> None:
        """Show that the job was told to stop."""
        self._do(Doing.STOPPING, self._activity.arm)

    def _rest(self) -> None:
        self._driver, self._finish = None, None
        self._activity = Activity(since=self._clock())
        self._news()

    # -- launching -------------------------------------------------------------------------------

    async def launch(self, arm: Arm) -> None:
        """Start the server with ``arm``; if it will not, start the last good arm and say why.

        Raises ServerError for the first, also where the second succeeds.
        """
        try:
            await self._start(arm)
        finally:
            self._rest()

    async def _start(self, arm: Arm, *, restore: bool = True) -> None:
        self._do(Doing.LAUNCHING, arm.name)
        self._book.trouble = ()
        began = self._clock()
        try:
            await self._supervisor.start(arm)
        except SpectuiError as error:
            if restore:
                await self._restore(arm, error)
            raise
        self._launch_seconds = self._clock() - began
        for note in self._supervisor.notes:
            if note not in self._told:  # once a session is enough
                self._told.add(note)
                self._book.notice(self._clock(), Level.WARNING, note)
        self._last_good = arm
        self._book.mark(began, arm.name)

    async def _restore(self, failed: Arm, error: SpectuiError) -> None:
        good = self._last_good
        if good is None or good == failed:
            return
        self._do(Doing.RESTORING, good.name)
        trouble = self._supervisor.findings
        try:
            await self._supervisor.start(good)
        except SpectuiError as again:
            self._last_good = None
            raise ServerError(
                f"{failed.name} failed ({error}), and {good.name} does not start any more",
                str(again),
            ) from error
        self._book.trouble = trouble
        self._book.mark(self._clock(), good.name)
        self._book.notice(
            self._clock(), Level.WARNING, f"{failed.name} did not start; {good.name} runs again"
        )

    # -- measuring -------------------------------------------------------------------------------

    async def measure(
        self,
        arms: Sequence[Arm],
        prompts: Sequence[Prompt],
        *,
        then: Arm | None = None,
        keep_going: bool = False,
    ) -> None:
        """Measure ``arms`` in this order over ``prompts``, each in a fresh launch.

        ``then`` is started when all is done. An arm that does not start gives way to the last good
        one and ends the job with its reason; so does a server that goes away. With ``keep_going``
        the next arm's turn comes instead, unless the first one, the baseline, failed, and the first
        failure is raised in the end. What was measured is kept.
        """
        self._activity = Activity(total=len(arms) * len(prompts))
        failure: SpectuiError | None = None
        try:
            for index, arm in enumerate(arms):
                try:
                    await self._start_or_note(arm, len(prompts), restore=not keep_going)
                    await self._run(arm, prompts, launches_left=len(arms) - index - 1)
                except SpectuiError as error:
                    if not keep_going or index == 0:
                        raise
                    failure = failure or ServerError(f"{arm.name}: {error}")
            if then is not None and then != arms[-1]:
                await self._start(then)
        finally:
            self._rest()
        if failure is not None:
            raise failure

    async def _start_or_note(self, arm: Arm, planned: int, *, restore: bool) -> None:
        """Start ``arm``; where it will not, its reason stays among the runs."""
        try:
            await self._start(arm, restore=restore)
        except SpectuiError as error:
            run = self._book.begin(arm, self._clock(), planned)
            self._write_start(run)
            self._journal.run_ended(self._book.end(run.number, self._clock(), error.what))
            raise

    def _write_start(self, run: Run) -> None:
        self._journal.run_started(
            run,
            argv=self._supervisor.argv,
            build=self._supervisor.build,
            gpus=tuple(self._gpus()),
        )

    async def _run(self, arm: Arm, prompts: Sequence[Prompt], launches_left: int) -> None:
        client = self._supervisor.client
        if client is None:
            raise ServerError("the server went away", self._supervisor.reason)
        driver = self._driver = Driver(
            client,
            max_tokens=self._profile.workload.max_tokens,
            seed=self._profile.workload.seed,
            clock=self._clock,
            busy=self._supervisor.busy,
        )
        self._do(Doing.WARMING, arm.name)
        run = self._book.begin(arm, self._clock(), len(prompts))
        self._write_start(run)
        stopped = ""
        try:
            await driver.warm_up()
            self._do(Doing.MEASURING, arm.name)
            await self._send(driver, run, prompts, launches_left)
        except asyncio.CancelledError:
            stopped = "stopped"
            raise
        except SpectuiError as error:
            stopped = self._supervisor.reason or error.what
            raise
        except Exception as error:
            stopped = f"a fault in spectui ({type(error).__name__})"
            raise
        finally:
            run = self._book.end(run.number, self._clock(), stopped)
            self._journal.run_ended(run)
            if run.unverified:
                self._book.notice(
                    self._clock(),
                    Level.WARNING,
                    "baseline was still drafting: look at server.args for what turns it on",
                )

    async def _send(
        self, driver: Driver, run: Run, prompts: Sequence[Prompt], launches_left: int
    ) -> None:
        failures = 0
        for sent, prompt in enumerate(prompts, 1):
            began = self._clock()
            request = await driver.ask(prompt)
            run = self._book.add(run.number, request)
            self._journal.request_ended(run, request)
            failures = failures + 1 if request.error else 0
            if request.error and await self._supervisor.has_gone(_CRASH):
                raise ServerError("the server went away", self._supervisor.reason)
            if failures >= _FAILURES or (failures and failures == len(prompts)):
                raise ServerError(f"{failures} requests in a row failed", request.error)
            self._paces.append(self._clock() - began)
            self._progress(len(prompts) - sent, launches_left * len(prompts), launches_left)

    def _progress(self, left_here: int, left_later: int, launches_left: int) -> None:
        recent = self._paces[-20:]
        pace = sum(recent) / len(recent)
        left = pace * (left_here + left_later) + self._launch_seconds * launches_left
        self._finish = self._clock() + left
        # no news: it comes once a request, and the next tick shows it early enough
        self._activity = replace(self._activity, done=self._activity.done + 1)
