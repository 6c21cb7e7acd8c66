"""A terminal that a program runs in and a test looks at: a pseudo-terminal with a screen."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Sequence
from typing import Self

import pyte

KEYS = {
    "enter": b"\r",
    "escape": b"\x1b",
    "tab": b"\t",
    "right": b"\x1b[C",
    "left": b"\x1b[D",
    "up": b"\x1b[A",
    "down": b"\x1b[B",
    "ctrl+c": b"\x03",
}
# private-mode and keyboard-protocol sequences that pyte would print as text
_UNKNOWN = re.compile(
    rb"\x1b\[[<>=][0-9;]*[a-zA-Z]|\x1b\[\?[0-9;]*\$p|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
)


class Terminal:
    """Runs ``argv`` in a terminal of ``columns`` by ``rows``; use it as a context manager."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        columns: int = 120,
        rows: int = 36,
        env: dict[str, str] | None = None,
        cwd: str | None = None,
    ) -> None:
        """Start the program."""
        self.raw = b""
        self.status: int | None = None
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        size = struct.pack("HHHH", rows, columns, 0, 0)
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, size)  # before the program can ask
            if cwd:
                os.chdir(cwd)
            for name in ("COLUMNS", "LINES"):  # of another terminal
                os.environ.pop(name, None)
            environment = {**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8", **(env or {})}
            os.execve(argv[0], list(argv), environment)  # noqa: S606 - the child itself

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self._fd)

    def read(self, seconds: float = 0.1) -> None:
        """Take in what the program writes within ``seconds``."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            ready, _, _ = select.select([self._fd], [], [], left)
            if not ready:
                return
            try:
                data = os.read(self._fd, 1 << 16)
            except OSError:  # the program has ended
                time.sleep(min(left, 0.05))
                return
            self.raw += data
            self._stream.feed(_UNKNOWN.sub(b"", data))

    @property
    def text(self) -> str:
        """The screen as lines of text."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    def wait(self, pattern: str, seconds: float = 30.0) -> re.Match[str]:
        """Return the match of ``pattern`` once it is on the screen."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.read(0.1)
            if found := re.search(pattern, self.text):
                return found
            if self.ended():
                break
        raise AssertionError(f"{pattern!r} did not appear:\n{self.text}\nstatus {self.status}")

    def press(self, *keys: str) -> None:
        """Send keys: names of KEYS, else the text itself."""
        for key in keys:
            os.write(self._fd, KEYS.get(key, key.encode()))
            self.read(0.15)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the program."""
        os.kill(self.pid, number)

    def ended(self) -> bool:
        """Whether the program has ended; its status is then known."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status is not None

    def wait_end(self, seconds: float = 15.0, *, reading: bool = True) -> int:
        """Return the exit status; without ``reading`` the terminal is stalled meanwhile."""
        end = time.monotonic() + seconds
        while not self.ended():
            if time.monotonic() > end:
                raise AssertionError(f"it has not ended:\n{self.text}")
            if reading:
                self.read(0.05)
            else:
                time.sleep(0.05)
        if reading:
            with contextlib.suppress(OSError):
                self.read(0.1)
        return self.status or 0
