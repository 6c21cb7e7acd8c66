"""Snapshots from the Session's thread → one message at a time on the UI's.

The Session must never wait for a terminal. So a snapshot that arrives while an earlier one is still
to be drawn only replaces it: a UI that is behind skips to the newest, and its queue stays short.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from textual.message import Message
from textual.message_pump import MessagePump

from spectui.domain.errors import SpectuiError
from spectui.domain.samples import Snapshot
from spectui.domain.text import clean
from spectui.session.controls import Controls


class Arrived(Message):
    """There is a newer snapshot; ask the bridge for it."""


class Ended(Message):
    """A Future that was followed has ended. ``error`` is empty where all went well."""

    def __init__(
        self, result: object, error: str, then: Callable[[object, str], None] | None
    ) -> None:
        super().__init__()
        self.result = result
        self.error = error
        self.then = then


class Bridge:
    """Carries snapshots from ``controls`` to ``target`` until it is closed."""

    def __init__(self, controls: Controls, target: MessagePump) -> None:
        """Prepare; nothing is carried before ``open``."""
        self._controls, self._target = controls, target
        self._lock = threading.Lock()
        self._newest: Snapshot | None = None
        self._undo: Callable[[], None] | None = None

    def open(self) -> None:
        """Subscribe, and carry the snapshot that there is already."""
        self._undo = self._controls.subscribe(self._arrived)
        self._arrived(self._controls.snapshot)

    def close(self) -> None:
        """Stop carrying."""
        if self._undo is not None:
            self._undo()
            self._undo = None

    def take(self) -> Snapshot | None:
        """Return the newest snapshot; None where it was taken already."""
        with self._lock:
            newest, self._newest = self._newest, None
        return newest

    def _arrived(self, snapshot: Snapshot) -> None:
        with self._lock:
            waiting = self._newest is not None
            self._newest = snapshot
        if not waiting:
            post(self._target, Arrived())


def post(target: MessagePump, message: Message) -> None:
    """Post from any thread. Once the UI's loop is closed nobody is there to be told."""
    try:
        target.post_message(message)
    except RuntimeError:
        return


def follow(
    future: Future[Any],
    target: MessagePump,
    then: Callable[[object, str], None] | None = None,
) -> None:
    """Post an Ended to ``target`` when ``future`` is done, whichever thread ends it."""

    def ended(done: Future[Any]) -> None:
        if done.cancelled():
            post(target, Ended(None, "", None))
            return
        error = done.exception()
        result = done.result() if error is None else None
        post(target, Ended(result, "" if error is None else _sentence(error), then))

    future.add_done_callback(ended)


def _sentence(error: BaseException) -> str:
    if isinstance(error, SpectuiError):
        return clean(str(error), limit=400)
    # not one of ours: its kind is part of what it says
    return clean(f"{type(error).__name__}: {error}", limit=400)
