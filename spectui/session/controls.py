"""What a face may ask of a Session: the dashboard and its tests know nothing else of it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol

from spectui.domain.findings import Fix
from spectui.domain.pairing import Survey
from spectui.domain.preflight import Preflight
from spectui.domain.samples import Snapshot
from spectui.domain.speculation import Speculation


class Controls(Protocol):
    """A Session as its faces see it. Every method may be called from any thread.

    Actions return at once; their Future ends when the work is done, with a SpectuiError if it
    failed or made no sense (a Session busy with one job refuses the next; ``cancel`` it first).
    What happens meanwhile is in the snapshots.
    """

    @property
    def snapshot(self) -> Snapshot:
        """The newest snapshot."""

    def subscribe(self, callback: Callable[[Snapshot], None]) -> Callable[[], None]:
        """Call ``callback`` with every snapshot, on the Session's thread; returns its undoing."""

    def check(self, speculation: Speculation) -> tuple[tuple[str, str], ...]:
        """Return (knob key, reason) for everything that a server would choke on."""

    def launch(self, speculation: Speculation) -> Future[None]:
        """Start the server with this setting, or restart it if another one runs."""

    def stop_server(self) -> Future[None]:
        """Stop the server. What was measured is kept."""

    def measure(self, speculation: Speculation) -> Future[None]:
        """Measure this setting in a fresh launch; before it the baseline, where there is none.

        If the server does not start with it, the last good setting comes back.
        """

    def measure_baseline(self) -> Future[None]:
        """Measure with speculation off, in a fresh launch, and go back to the setting before."""

    def cancel(self) -> Future[None]:
        """Stop what is under way at once. Requests that have ended are kept."""

    def preflight(self) -> Future[Preflight]:
        """Look at the profile, its files and the machine for what would go wrong."""

    def survey(self) -> Future[Survey]:
        """Look for models on disk, and hold each against the target as its drafter."""

    def adopt(self, fix: Fix) -> Future[None]:
        """Change the profile as ``fix`` says and start the server with it.

        Where more than the setting changes, what was measured before is no longer compared with
        what follows, and is only kept in its record.
        """

    def export_path(self) -> str:
        """Return where ``export`` would write if nobody says otherwise."""

    def export(self, path: str, run: int | None = None) -> Future[str]:
        """Write the tuned profile of ``run`` (the answer's run where None); returns its path."""
