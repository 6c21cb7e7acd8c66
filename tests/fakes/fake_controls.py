"""A Session that does nothing but remember what it was asked for."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from spectui.domain.errors import SpectuiError
from spectui.domain.findings import Fix
from spectui.domain.models import ModelFacts
from spectui.domain.pairing import Suggestion, Survey
from spectui.domain.preflight import Preflight
from spectui.domain.samples import Snapshot
from spectui.domain.speculation import Speculation, check


class FakeControls:
    """Fits ``spectui.session.controls.Controls``.

    ``calls`` holds (name, argument) in order. Futures stay open until ``end`` where ``hold`` is
    true; else they end at once, with ``failure`` where there is one.
    """

    def __init__(self, snapshot: Snapshot | None = None, *, hold: bool = False) -> None:
        self._snapshot = snapshot or Snapshot(at=0.0)
        self._callbacks: list[Callable[[Snapshot], None]] = []
        self.calls: list[tuple[str, Any]] = []
        self.hold = hold
        self.failure: SpectuiError | None = None
        self.open: list[Future[Any]] = []
        self.found = Preflight((), ())
        self.surveyed = Survey(
            ModelFacts("target.gguf", mtp_layers=1),
            (),
            (),
            Suggestion("draft-mtp", "", "the model has 1 MTP layer"),
        )

    @property
    def snapshot(self) -> Snapshot:
        return self._snapshot

    @property
    def subscribers(self) -> int:
        return len(self._callbacks)

    def emit(self, snapshot: Snapshot) -> None:
        """Send a snapshot to everyone, as the Session's thread does."""
        self._snapshot = snapshot
        for callback in list(self._callbacks):
            callback(snapshot)

    def subscribe(self, callback: Callable[[Snapshot], None]) -> Callable[[], None]:
        self._callbacks.append(callback)

        def undo() -> None:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

        return undo

    def end(self, result: Any = None, error: Exception | None = None) -> None:
        """End the oldest open future."""
        future = self.open.pop(0)
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)

    def _call(self, name: str, argument: Any = None, result: Any = None) -> Future[Any]:
        self.calls.append((name, argument))
        future: Future[Any] = Future()
        if self.hold:
            self.open.append(future)
        elif self.failure is not None:
            future.set_exception(self.failure)
        else:
            future.set_result(result)
        return future

    def check(self, speculation: Speculation) -> tuple[tuple[str, str], ...]:
        return check(speculation, has_draft=self._snapshot.has_draft)

    def launch(self, speculation: Speculation) -> Future[None]:
        return self._call("launch", speculation)

    def stop_server(self) -> Future[None]:
        return self._call("stop_server")

    def measure(self, speculation: Speculation) -> Future[None]:
        return self._call("measure", speculation)

    def measure_baseline(self) -> Future[None]:
        return self._call("measure_baseline")

    def cancel(self) -> Future[None]:
        return self._call("cancel")

    def preflight(self) -> Future[Preflight]:
        return self._call("preflight", result=self.found)

    def survey(self) -> Future[Survey]:
        return self._call("survey", result=self.surveyed)

    def adopt(self, fix: Fix) -> Future[None]:
        return self._call("adopt", fix)

    def export_path(self) -> str:
        return "tuned.toml"

    def export(self, path: str, run: int | None = None) -> Future[str]:
        return self._call("export", path, f"/profiles/{path}")
