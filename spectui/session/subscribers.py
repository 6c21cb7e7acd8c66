"""Who wants to see every snapshot."""

from __future__ import annotations

import threading
from collections.abc import Callable

from spectui.domain.samples import Snapshot


class Subscribers:
    """Callbacks that come and go on any thread; one that fails is not called again."""

    def __init__(self) -> None:
        """Begin with none."""
        self._lock = threading.Lock()
        self._callbacks: dict[int, Callable[[Snapshot], None]] = {}
        self._count = 0

    def add(self, callback: Callable[[Snapshot], None]) -> Callable[[], None]:
        """Call ``callback`` from now on; returns its undoing."""
        with self._lock:
            self._count += 1
            key = self._count
            self._callbacks[key] = callback
        return lambda: self._remove(key)

    def _remove(self, key: int) -> None:
        with self._lock:
            self._callbacks.pop(key, None)

    def tell(self, snapshot: Snapshot) -> list[Exception]:
        """Show everybody ``snapshot``; returns what went wrong with those that failed."""
        with self._lock:  # not held while they are called: they may come and go meanwhile
            callbacks = list(self._callbacks.items())
        failed: list[Exception] = []
        for key, callback in callbacks:
            try:
                callback(snapshot)
            except Exception as error:  # noqa: BLE001 - one bad listener never stops the others
                self._remove(key)
                failed.append(error)
        return failed
