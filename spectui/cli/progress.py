"""Progress of a measurement on stderr: one line that is rewritten, or plain lines for a log."""

from __future__ import annotations

import shutil
import sys
from types import TracebackType
from typing import Self

from spectui.domain.samples import Doing, Level, Snapshot
from spectui.domain.text import duration
from spectui.session.session import Session

_CLEAR = "\r\x1b[K"


class Progress:
    """Shows what a Session does, as a context manager."""

    def __init__(self, session: Session) -> None:
        """Watch ``session``."""
        self._session = session
        self._live = sys.stderr.isatty()
        self._said = ""
        self._noticed = 0

    def __enter__(self) -> Self:
        self._undo = self._session.subscribe(self._show)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._undo()
        if self._live:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()

    def _show(self, snapshot: Snapshot) -> None:
        try:
            for notice in snapshot.notices:
                # an error ends the command, which says it itself
                if notice.number > self._noticed and notice.level is not Level.ERROR:
                    self._line(f"{notice.level}: {notice.text}")
                self._noticed = max(self._noticed, notice.number)
            text = progress_line(snapshot, live=self._live)
            if text != self._said:
                self._said = text
                if self._live:
                    sys.stderr.write(_CLEAR + text[: shutil.get_terminal_size().columns - 1])
                    sys.stderr.flush()
                elif text:
                    self._line(text)
        except OSError:  # nobody reads it any more
            self._undo()

    def _line(self, text: str) -> None:
        sys.stderr.write(f"{_CLEAR if self._live else ''}spectui: {text}\n")
        sys.stderr.flush()


def progress_line(snapshot: Snapshot, *, live: bool) -> str:
    """Return what the session does, in a line; in a log only what is worth a line of its own."""
    activity = snapshot.activity
    if activity.doing is Doing.IDLE:
        return ""
    head = f"{activity.doing} {activity.arm}".strip()
    if activity.doing is not Doing.MEASURING:
        return head
    done, total = activity.done, activity.total
    if not live:
        done -= done % max(1, total // 10)
        return f"{head}, {done}/{total} requests"
    parts = [f"{head}, {done}/{total} requests"]
    if snapshot.in_flight is not None and snapshot.in_flight.tps is not None:
        parts.append(f"{snapshot.in_flight.tps:.1f} tok/s")
    if activity.seconds_left is not None:
        parts.append(f"{duration(activity.seconds_left)} left")
    return ", ".join(parts)
