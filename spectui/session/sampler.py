"""Reads the sources, each at its own interval, with its own time-out and its own state.

One that fails or is slow never holds up another: every source is a task of its own, and what may
block (NVML) runs on a thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar, cast

from spectui.domain.acceptance import Counters
from spectui.domain.errors import RequestError, SourceAbsentError
from spectui.domain.samples import Gpu, Host, Slot, SourceState, SourceStatus
from spectui.domain.text import clean
from spectui.domain.throughput import SlotMeter
from spectui.session.ports import Clock, GpuReader, HostReader, ServerClient

_CLOSING = 0.3  # s that letting go of the driver may take
_ABSENT_RETRY = 30.0  # s; a driver that is not there now will hardly be there in a second
_REFUSED_RETRY = 10.0  # s; asking on with a wrong key fills the server's log
_REFUSALS = frozenset({401, 403, 404, 501})


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Source:
    """How a source is read: every ``interval`` s, and called slow after ``timeout`` s."""

    name: str
    interval: float
    timeout: float


METRICS = Source("metrics", 2.0, 5.0)
SLOTS = Source("slots", 1.0, 2.0)
GPU = Source("gpu", 1.0, 3.0)
HOST = Source("host", 1.0, 2.0)


def on_daemon(work: Callable[[], T]) -> asyncio.Future[T]:
    """Do ``work`` on a thread that nothing waits for: a hung driver must not hold up the end."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(cast("T", result))

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except BaseException as raised:  # noqa: BLE001 - it is the future's to tell
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, name="spectui-reader", daemon=True).start()
    return future


class NotNowError(Exception):
    """A source that makes no sense at the moment; its state and reading are left as they are."""


class Sampler:
    """Keeps the newest reading and state of every source. Used on the Session's loop only."""

    def __init__(
        self,
        *,
        gpus: GpuReader,
        host: HostReader,
        clock: Clock,
        client: Callable[[], ServerClient | None],
        pid: Callable[[], int | None],
        driving: Callable[[], bool],
        metrics: Source = METRICS,
        slots: Source = SLOTS,
    ) -> None:
        """``client`` is the ready server's, if any; ``driving`` tells that our own stream runs."""
        self._metrics, self._slots = metrics, slots
        self._again = asyncio.Event()  # set when waiting for the next turn makes no sense
        self._gpus, self._host, self._clock = gpus, host, clock
        self._client, self._pid, self._driving = client, pid, driving
        self._tasks: list[asyncio.Task[None]] = []
        self._states = {s.name: SourceState(s.name) for s in (METRICS, SLOTS, GPU, HOST)}
        self._meter = SlotMeter()
        self._speed = SLOTS.name  # the source that ``slot_tps`` comes from
        self.gpus: tuple[Gpu, ...] = ()
        self.host: Host | None = None
        self.counters: Counters | None = None
        self.slots: tuple[Slot, ...] = ()
        self.slot_tps: float | None = None

    @property
    def states(self) -> Mapping[str, SourceState]:
        """Every source's state by its name."""
        return dict(self._states)

    def start(self) -> None:
        """Begin reading."""
        for source, read in (
            (self._metrics, self._read_metrics),
            (self._slots, self._read_slots),
            (GPU, self._read_gpus),
            (HOST, self._read_host),
        ):
            self._tasks.append(asyncio.create_task(self._keep_reading(source, read)))

    async def stop(self) -> None:
        """End reading."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.wait({on_daemon(self._gpus.close)}, timeout=_CLOSING)

    def forget_server(self) -> None:
        """Drop what was read from a server that is no more."""
        self.counters, self.slots, self.slot_tps = None, (), None
        self._meter = SlotMeter()
        for source in (METRICS, SLOTS):
            self._states[source.name] = SourceState(source.name)
        self.hurry()

    def hurry(self) -> None:
        """Read every source anew at once."""
        again, self._again = self._again, asyncio.Event()
        again.set()

    async def _keep_reading(self, source: Source, read: Callable[[], Awaitable[None]]) -> None:
        while True:
            pause = source.interval
            reading = asyncio.ensure_future(read())
            try:
                await self._patiently(source, reading)
                self._states[source.name] = SourceState(
                    source.name, SourceStatus.OK, read_at=self._clock()
                )
                self.answered(source)
            except NotNowError:
                pass
            except SourceAbsentError as absent:
                self._set(source, SourceStatus.ABSENT, clean(str(absent), limit=120))
                if source is GPU:
                    self.gpus = ()
                pause = _ABSENT_RETRY
            except RequestError as error:
                if self._client() is not None:
                    told = clean(self.refused(source, error), limit=120)
                    self._set(source, SourceStatus.FAILED, told)
                if error.status in _REFUSALS:
                    pause = _REFUSED_RETRY
            except Exception as error:  # noqa: BLE001 - a worker's edge: one bad source never stops another
                told = str(error) or type(error).__name__
                self._set(source, SourceStatus.FAILED, clean(told, limit=120))
            finally:
                reading.cancel()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._again.wait()

    async def _patiently(self, source: Source, reading: asyncio.Future[None]) -> None:
        """Wait for a reading; one that takes long goes on, it is only called slow."""
        # wait_for of Python 3.11 can lose a cancellation; wait never does
        _, late = await asyncio.wait({reading}, timeout=source.timeout)
        if late:
            self._set(source, SourceStatus.SLOW, f"no answer for {source.timeout:.0f} s")
            if source.name == self._speed:
                self.slot_tps = None  # what was read long ago is not shown as of now
        await reading

    def answered(self, source: Source) -> None:
        """Take note that a source has been read."""

    def refused(self, source: Source, error: RequestError) -> str:
        """Return how to tell that the server would not let ``source`` be read."""
        del source
        return str(error)

    def _set(self, source: Source, status: SourceStatus, reason: str) -> None:
        self._states[source.name] = replace(self._states[source.name], status=status, reason=reason)

    async def _read_metrics(self) -> None:
        client = self._client()
        if client is None:
            raise NotNowError
        self.counters = await client.counters()

    async def _read_slots(self) -> None:
        client = self._client()
        tps = None  # what cannot be read is not shown as if it were
        try:
            if client is None or self._driving():
                # our own stream tells more, and every request costs the server a little
                raise NotNowError
            self.slots = await client.slots()
            # while the prompt is being read nothing is decoded, and that is no speed of 0
            decoding = {(s.id, s.task): s.decoded for s in self.slots if s.busy and s.decoded}
            tps = self._meter.feed(self._clock(), decoding)
        finally:
            self.slot_tps = tps

    async def _read_gpus(self) -> None:
        self.gpus = await on_daemon(self._gpus.read)

    async def _read_host(self) -> None:
        self.host = self._host.read(self._pid())
