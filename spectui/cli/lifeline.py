"""What must happen when spectui is told to end: the server goes first, the terminal comes back.

Signals go through ``signal.signal``, since a stalled terminal blocks the dashboard's loop and
nothing that waits for that loop would ever run. A watchdog thread closes the Session, and if the
main thread does not follow in time it restores the terminal itself and ends the process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import termios
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Protocol, Self

_CLOSE = 4.0  # s that the Session may take; a server that ignores SIGTERM is then killed
_TWICE = 1.0  # s within which a second signal is the first one again
_FOLLOW = 1.0  # s that the main thread may take afterwards

# leave the alternate screen, show the cursor, end mouse, paste and focus reports, reset colours
_RESET = (
    b"\x1b[?1049l\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l"
    b"\x1b[?2004l\x1b[?1004l\x1b[<u\x1b[0m"
)


class Terminal:
    """The terminal's settings as they were at the start, if there is a terminal."""

    def __init__(self) -> None:
        """Remember how it is now."""
        self._fd: int | None = None
        self._settings: list[Any] | None = None
        with contextlib.suppress(OSError, ValueError, termios.error):
            fd = sys.__stdin__.fileno() if sys.__stdin__ else -1
            self._settings = termios.tcgetattr(fd)
            self._fd = fd

    def restore(self) -> None:
        """Bring it back without ever blocking: a stalled terminal only loses the sequences."""
        if self._fd is None or self._settings is None:
            return
        with contextlib.suppress(OSError, termios.error):
            termios.tcsetattr(self._fd, termios.TCSANOW, self._settings)
        with contextlib.suppress(OSError):
            os.set_blocking(self._fd, False)
            try:
                os.write(self._fd, _RESET)
            finally:
                os.set_blocking(self._fd, True)


class Ending(Protocol):
    """What a Lifeline ends: a Session, or a Workbench with one."""

    def close(self, timeout: float | None = None) -> bool:
        """End everything; return whether it ended in time."""

    def kill_now(self) -> None:
        """SIGKILL the server."""


class Lifeline:
    """Owns the ends of a Session: ``with Lifeline(session, told): …`` always leaves it closed.

    ``told`` is called in the main thread with the first signal and should make the main thread
    come to its end. A second signal ends the process at once.
    """

    def __init__(self, session: Ending, told: Callable[[int], None]) -> None:
        """Guard ``session``."""
        self._session = session
        self._told = told
        self._terminal = Terminal()
        self._previous: dict[int, Any] = {}
        self._told_at = 0.0
        self.signal: int | None = None

    def __enter__(self) -> Self:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup has a reason
                self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._session.close(_CLOSE * 3):
            self._session.kill_now()
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _handle(self, number: int, _: FrameType | None) -> None:
        if self.signal is not None:
            if time.monotonic() - self._told_at < _TWICE:
                return  # one keypress can reach us twice: as a process and as a group
            self._session.kill_now()
            self._terminal.restore()
            os._exit(128 + number)
        self.signal, self._told_at = number, time.monotonic()
        threading.Thread(target=self._watch, args=(number,), daemon=True).start()
        self._told(number)

    def _watch(self, number: int) -> None:
        if not self._session.close(_CLOSE):
            self._session.kill_now()
        main = threading.main_thread()
        main.join(_FOLLOW)
        if main.is_alive():
            self._session.kill_now()
            self._terminal.restore()
            os._exit(128 + number)
