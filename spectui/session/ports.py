"""What a Session needs from the outside world. Adapters fit these; nothing here does I/O."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Protocol

from spectui.domain.acceptance import Counters
from spectui.domain.attached import Props
from spectui.domain.runs import Prompt, Request, Run
from spectui.domain.samples import Exit, Gpu, Host, Slot, Snapshot
from spectui.domain.throughput import Timings


class ServerProcess(Protocol):
    """One launched server: its process group, its log, its port.

    Made by a Launcher; used from the Session's thread only, except ``kill_now``.
    """

    @property
    def server_pid(self) -> int | None:
        """The server's process id; None until it has started, and after it has ended."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know of this launch, in sentences."""

    def poll(self) -> Exit | None:
        """Return how it ended, None while it lives. Never blocks."""

    def tail(self, lines: int) -> tuple[str, ...]:
        """Return the last lines of its output, cleaned, without blocking."""

    def progress(self) -> tuple[int, int]:
        """Return (bytes logged so far, resident bytes): while either moves it is not stuck."""

    async def stop(self, deadline: float) -> None:
        """SIGTERM the group, SIGKILL it after ``deadline`` seconds; wait until its port is free."""

    def kill_now(self) -> None:
        """SIGKILL the whole group at once; may be called from any thread."""


class Launcher(Protocol):
    """Starts servers."""

    def free_port(self, wanted: int | None) -> int:
        """Return a port to use on 127.0.0.1. Raises PortError where ``wanted`` is taken."""

    def launch(
        self, argv: Sequence[str], port: int, env: Mapping[str, str] | None = None
    ) -> ServerProcess:
        """Start a server; ``env`` is added to the environment that it gets.

        Raises EngineError where the program cannot be run.
        """


class StreamEvent(Protocol):
    """One event of a streamed answer."""

    @property
    def text(self) -> str:
        """The piece of text, empty for an event without."""

    @property
    def timings(self) -> Timings | None:
        """The server's account so far, where it sends one."""

    @property
    def finish(self) -> str:
        """The finish reason, on the last event."""


class ServerClient(Protocol):
    """Talks HTTP to one server."""

    async def health(self) -> bool:
        """Return True when ready, False while loading. Raises RequestError on no answer."""

    async def counters(self) -> Counters:
        """Read /metrics. Raises RequestError."""

    async def slots(self) -> tuple[Slot, ...]:
        """Read /slots. Raises RequestError."""

    async def props(self) -> Props:
        """Read /props: build, and the ways to draft that are on. Raises RequestError."""

    def chat(
        self, prompt: Prompt, *, max_tokens: int, seed: int
    ) -> AsyncGenerator[StreamEvent, None]:
        """Send one prompt and yield what comes back. Raises RequestError."""

    async def close(self) -> None:
        """Close connections."""


class ClientFactory(Protocol):
    """Makes clients."""

    def __call__(self, url: str) -> ServerClient:
        """Return a client of the server at ``url`` (no trailing slash)."""


class GpuReader(Protocol):
    """Reads the GPUs. ``read`` may block for a while: the Session calls it on a thread."""

    def read(self) -> tuple[Gpu, ...]:
        """Return one reading per GPU. Raises SourceAbsentError where there is none, OSError."""

    def close(self) -> None:
        """Let go of the driver."""


class HostReader(Protocol):
    """Reads the machine and one process group."""

    def read(self, pid: int | None) -> Host:
        """Return CPU, memory, and the memory of ``pid`` with its children."""


class Journal(Protocol):
    """Writes down what was measured, as it is measured, so that nothing is lost."""

    def run_started(
        self, run: Run, *, argv: Sequence[str], build: str, gpus: Sequence[str]
    ) -> None:
        """Take note of a new run, and the command, build and GPUs it is measured with."""

    def request_ended(self, run: Run, request: Request) -> None:
        """Take note of one request."""

    def run_ended(self, run: Run) -> None:
        """Take note of a run's end."""

    def close(self) -> None:
        """Write out what is left."""


class Exporter(Protocol):
    """Writes the tuned profile."""

    def suggest(self) -> str:
        """Return a path that does not exist yet."""

    def write(self, path: str, snapshot: Snapshot, run: int | None) -> str:
        """Write the profile of ``run``, the answer's where None; return the path written.

        Raises SpectuiError where nothing was measured, or the file cannot be written.
        """


class Clock(Protocol):
    """Monotonic seconds."""

    def __call__(self) -> float:
        """Return the time now."""
