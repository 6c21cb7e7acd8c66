"""Starts, watches and ends llama-server processes.

::

    spectui ──pipe──▶ guard ──▶ llama-server      one session and process group: guard and server
                        └───────────┴──▶ log file

The guard (guard.py) leads the group and ends as the server ends. While spectui lives it does the
killing; when it dies in any way the pipe closes, and the guard does.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from io import FileIO
from pathlib import Path

import psutil

from spectui.adapters import tcp_port
from spectui.adapters.log_file import LIMIT, LogFile
from spectui.adapters.program import child_environment, find_program
from spectui.domain.errors import EngineError, ServerError
from spectui.domain.samples import Exit

_GUARD = Path(__file__).with_name("guard.py")
_POLL = 0.03  # s between two looks at a process that is ending
_KILLED = 10.0  # s that a killed process may take to vanish
_PORT = 5.0  # s that its port may take to become free
_FAMILY = 2.0  # s for which the list of a server's children is good


class LlamaProcess:
    """One server under its guard. Used from one thread only, except ``kill_now``.

    ``log`` is its output, ``dropped`` names the environment variables that it was not given. Made
    by LlamaLauncher.
    """

    def __init__(
        self,
        guard: subprocess.Popen[bytes],
        lifeline: FileIO,
        *,
        log: LogFile,
        port: int,
        dropped: tuple[str, ...],
    ) -> None:
        self.log = log
        self.port = port
        self.dropped = dropped
        self._guard = guard
        self._lifeline = lifeline
        # Re-entrant: a signal handler may call kill_now in the midst of a poll on its thread.
        self._reaping = threading.RLock()
        self._exit: Exit | None = None
        self._told = False
        self._stopped = False
        self._server: psutil.Process | None = None
        self._family: tuple[psutil.Process, ...] = ()
        self._family_at = -_FAMILY

    @property
    def pid(self) -> int:
        """The guard's process id, which is the group's too."""
        return self._guard.pid

    @property
    def server_pid(self) -> int | None:
        """The server's own process id; None until it has started, and after it has ended."""
        if self._server is None and self._exit is None:
            try:
                children = psutil.Process(self.pid).children()
            except psutil.Error:
                return None
            self._server = children[0] if children else None  # the guard has no other child
        return self._server.pid if self._server and self._exit is None else None

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know of this launch: a log kept elsewhere, variables left out."""
        dropped = ", ".join(self.dropped)
        kept_back = f"not passed on to the server: {dropped}; the profile sets these"
        return tuple(note for note in (self.log.note, kept_back if dropped else "") if note)

    def poll(self) -> Exit | None:
        """Return how it ended, None while it lives. Never blocks."""
        if self._exit is None:
            with self._reaping:
                self._reap()
        if self._exit is None:
            self.log.refresh()
        else:
            self._lifeline.close()
            self.log.close()
        return self._exit

    def tail(self, lines: int) -> tuple[str, ...]:
        """Return the last lines of its output (500 at most), cleaned. Never blocks or raises."""
        return self.log.tail(lines)

    def progress(self) -> tuple[int, int]:
        """Return (bytes logged so far, resident bytes of the server with its children)."""
        self.log.refresh()
        return self.log.size_written, sum(map(_resident, self._members()))

    async def stop(self, deadline: float) -> None:
        """End the server: SIGTERM to the group, SIGKILL after ``deadline`` seconds.

        Returns when it has ended and its port can be bound (or after 5 s, if somebody else took
        it). May be called again, and when it has ended already. If it is cancelled, the group is
        killed at once. Raises ServerError if even SIGKILL does not end it.
        """
        try:
            _ = self.server_pid  # to be known before its end: a killed guard is gone before it is
            if self.poll() is None:
                if not self._told:  # a second one would end it at once, with its answers cut
                    self._told = True
                    self._signal(signal.SIGTERM)
                await _within(deadline, self._is_gone)
                self.kill_now()
            if not await _within(_KILLED, self._is_gone):
                raise ServerError(
                    f"the server (process group {self.pid}) does not end, even when killed",
                    "it hangs in the kernel, perhaps in a GPU driver",
                )
            if not self._stopped:
                await _within(_PORT, lambda: tcp_port.is_free(self.port))
                self._stopped = True
        finally:
            if self.poll() is None:
                self.kill_now()
                self._reap_killed()

    def kill_now(self) -> None:
        """SIGKILL the whole group at once. From any thread; never raises."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        with self._reaping:
            if self._exit is None:  # until it is reaped its number cannot be anybody else's
                _kill_group(self.pid, number)

    def _reap(self) -> None:
        """Take note of the guard's end, if it has ended; ``_reaping`` is held."""
        if hasattr(os, "waitid"):  # macOS has it from Python 3.13 on
            try:
                ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except OSError:
                pass  # reaped by somebody else: Popen knows what to make of it
            else:
                if ended is None:
                    return
                # The guard sees to the rest of the group, unless it was killed itself. While it
                # is not reaped the group's number is still taken, and safe to use.
                _kill_group(self.pid, signal.SIGKILL)
        code = self._guard.poll()
        if code is not None:
            self._exit = Exit(code)

    def _is_gone(self) -> bool:
        return self.poll() is not None and not (self._server and _is_alive(self._server))

    def _reap_killed(self) -> None:
        """Wait for the guard that was just killed. It is small: this takes milliseconds."""
        until = time.monotonic() + 0.5
        while self.poll() is None and time.monotonic() < until:
            time.sleep(0.002)

    def _members(self) -> tuple[psutil.Process, ...]:
        """Return the server and its children. Finding them reads all of /proc: not every time."""
        now = time.monotonic()
        if not self._family or now - self._family_at > _FAMILY:
            self._family_at = now
            try:
                self._family = tuple(psutil.Process(self.pid).children(recursive=True))
            except psutil.Error:
                self._family = ()
        return self._family


class LlamaLauncher:
    """Starts servers, their logs in ``log_dir``, each of ``log_limit`` bytes at most."""

    def __init__(self, log_dir: Path, *, log_limit: int = LIMIT) -> None:
        self._log_dir = log_dir
        self._log_limit = log_limit

    def free_port(self, wanted: int | None) -> int:
        """Return a port to use on 127.0.0.1. Raises PortError where ``wanted`` is taken."""
        return tcp_port.free_port(wanted)

    def launch(
        self, argv: Sequence[str], port: int, env: Mapping[str, str] | None = None
    ) -> LlamaProcess:
        """Start ``argv``, which will listen on ``port``; ``env`` is added to the environment.

        Raises EngineError where the program cannot be run, SpectuiError where no log can be
        written.
        """
        environment, dropped = child_environment(os.environ)
        environment |= env or {}
        program = find_program(argv[0] if argv else "", environment.get("PATH"))
        log = LogFile(self._log_dir, limit=self._log_limit)
        try:
            guard, lifeline = _start_guard((program, *argv[1:]), environment, log)
        except (OSError, ValueError) as error:  # too long a command line, no process or memory left
            log.close()
            raise EngineError(f"{program} cannot be started ({error})") from None
        return LlamaProcess(guard, lifeline, log=log, port=port, dropped=dropped)


def _start_guard(
    argv: Sequence[str], environment: Mapping[str, str], log: LogFile
) -> tuple[subprocess.Popen[bytes], FileIO]:
    """Start the guard; return it and our end of its lifeline. Raises OSError, ValueError."""
    theirs, ours = os.pipe()  # not inherited, but for the one end that becomes its standard input
    lifeline = FileIO(ours, "w")
    try:
        output = log.writer()
        try:
            guard = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_GUARD), "--", *argv],
                stdin=theirs,
                stdout=output,
                stderr=output,
                env=environment,
                close_fds=True,
                start_new_session=True,
            )
        finally:
            os.close(output)
    except BaseException:
        lifeline.close()
        raise
    finally:
        os.close(theirs)
    return guard, lifeline


def _kill_group(group: int, number: signal.Signals) -> None:
    try:
        os.killpg(group, number)
    except OSError:  # gone; or macOS, which says so of a group of zombies
        return


async def _within(seconds: float, done: Callable[[], bool]) -> bool:
    """Wait until ``done`` returns True; return False when that takes longer than ``seconds``."""
    until = time.monotonic() + seconds
    while not done():
        left = until - time.monotonic()
        if left <= 0:
            return False
        await asyncio.sleep(min(_POLL, left))
    return True


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _resident(process: psutil.Process) -> int:
    try:
        resident: int = process.memory_info().rss
    except psutil.Error:
        return 0
    return resident
