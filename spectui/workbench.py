"""One face's Sessions, one after the other: a profile that changes gets a Session of its own.

A Session runs one profile, so that everything it measured is comparable. When a person takes a fix
(a smaller context, another draft model), the workbench ends the Session and begins the next one;
the face keeps talking to the workbench and notices only that the snapshots go on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

from spectui.domain.errors import SpectuiError, UsageError
from spectui.domain.findings import Fix
from spectui.domain.pairing import Survey
from spectui.domain.preflight import Preflight
from spectui.domain.profile import Profile, with_fix
from spectui.domain.samples import Snapshot
from spectui.domain.speculation import Speculation
from spectui.session.session import Session
from spectui.session.subscribers import Subscribers

T = TypeVar("T")

_CLOSING = 30.0  # s that the old Session may take; its server is killed long before


class Build(Protocol):
    """Makes a Session of a profile."""

    def __call__(self, profile: Profile, *, notices: int) -> Session:
        """Return it, not yet started; its notices are counted on from ``notices``."""


Check = Callable[[Profile], Preflight]
Look = Callable[[Profile], Survey]

_NOT_OURS = UsageError(
    "this server runs elsewhere: spectui only watches it", "change it where it was started"
)


class Workbench:
    """Fits ``controls.Controls``, whichever Session is at work behind it."""

    def __init__(
        self,
        session: Session,
        build: Build | None = None,
        check: Check | None = None,
        look: Look | None = None,
    ) -> None:
        """Begin with ``session``, not yet started.

        ``build`` makes the ones that follow, ``check`` looks a profile over and ``look`` looks for
        its drafters; None where the server is not ours to change.
        """
        self._session = session
        self._build = build
        self._check = check
        self._look = look
        self._lock = threading.RLock()
        self._subscribers = Subscribers()
        self._closed = False
        self._changing = threading.Lock()
        self._undo = session.subscribe(self._pass_on)

    # -- its own life ----------------------------------------------------------------------------

    def start(self) -> None:
        """Start the first Session."""
        self._session.start()

    def close(self, timeout: float | None = None) -> bool:
        """End the Session that is at work, and let none follow."""
        with self._lock:
            self._closed = True
            session = self._session
        return session.close(timeout)

    def kill_now(self) -> None:
        """SIGKILL the server, whatever is being done."""
        self._session.kill_now()

    def warn(self, text: str) -> None:
        """Show a warning to the person."""
        self._session.warn(text)

    # -- what a face may ask ---------------------------------------------------------------------

    @property
    def profile(self) -> Profile:
        """The profile that is at work."""
        return self._session.profile

    @property
    def snapshot(self) -> Snapshot:
        """The newest snapshot."""
        return self._session.snapshot

    def subscribe(self, callback: Callable[[Snapshot], None]) -> Callable[[], None]:
        """Call ``callback`` with every snapshot, on a Session's thread; returns its undoing."""
        return self._subscribers.add(callback)

    def _pass_on(self, snapshot: Snapshot) -> None:
        for error in self._subscribers.tell(snapshot):
            self.warn(f"a listener failed ({type(error).__name__}: {error})")

    def check(self, speculation: Speculation) -> tuple[tuple[str, str], ...]:
        """Return (knob key, reason) for everything that this server would choke on."""
        return self._session.check(speculation)

    def launch(self, speculation: Speculation) -> Future[None]:
        """Start the server with this setting, or restart it if another one runs."""
        return self._session.launch(speculation)

    def stop_server(self) -> Future[None]:
        """Stop the server. What was measured is kept."""
        return self._session.stop_server()

    def measure(self, speculation: Speculation) -> Future[None]:
        """Measure this setting in a fresh launch; before it the baseline, where there is none."""
        return self._session.measure(speculation)

    def measure_baseline(self) -> Future[None]:
        """Measure with speculation off, in a fresh launch, and go back to the setting before."""
        return self._session.measure_baseline()

    def cancel(self) -> Future[None]:
        """Stop what is under way at once. Requests that have ended are kept."""
        return self._session.cancel()

    def preflight(self) -> Future[Preflight]:
        """Look at the profile, its files and the machine for what would go wrong."""
        check = self._check
        if check is None:
            return _refused()
        return in_background(lambda: check(self._session.profile))

    def survey(self) -> Future[Survey]:
        """Look for models on disk, and hold each against the target as its drafter."""
        look = self._look
        if look is None:
            return _refused()
        return in_background(lambda: look(self._session.profile))

    def export_path(self) -> str:
        """Return where ``export`` would write if nobody says otherwise."""
        return self._session.export_path()

    def export(self, path: str, run: int | None = None) -> Future[str]:
        """Write the tuned profile of ``run`` (the answer's run where None); returns its path."""
        return self._session.export(path, run)

    # -- another profile -------------------------------------------------------------------------

    def adopt(self, fix: Fix) -> Future[None]:
        """Change the profile as ``fix`` says, and start the server with it.

        What only concerns the setting goes on in the same Session. Anything else begins a new one:
        runs of before are no longer shown, and stay in their record.
        """
        build = self._build
        if build is None:
            return _refused()
        return in_background(lambda: self._adopt(fix, build))

    def _adopt(self, fix: Fix, build: Build) -> None:
        if not self._changing.acquire(blocking=False):
            raise UsageError("the profile is being changed already", "wait for it")
        try:
            old = self._session
            profile = with_fix(old.profile, fix)
            if all(path.startswith("speculation.") for path, _ in fix.changes):
                old.cancel().result()
                old.launch(profile.speculation).result()
            else:
                self._replace(old, profile, build)
        finally:
            self._changing.release()

    def _replace(self, old: Session, profile: Profile, build: Build) -> None:
        last = max((notice.number for notice in old.snapshot.notices), default=0)
        new = build(profile, notices=last)
        if not old.close(_CLOSING):
            new.close()
            raise SpectuiError("the server does not end", "see the log, or quit")
        self._undo()
        with self._lock:
            if self._closed:
                new.close()
                return
            self._session = new
            self._undo = new.subscribe(self._pass_on)
            new.start()
        if old.snapshot.runs:
            count = len(old.snapshot.runs)
            runs = "1 run" if count == 1 else f"{count} runs"
            new.warn(f"a new profile is measured anew; {runs} of before are in their record")
        self._pass_on(new.snapshot)
        new.launch(profile.speculation).result()


def _refused() -> Future[Any]:
    future: Future[Any] = Future()
    future.set_exception(_NOT_OURS)
    return future


def in_background(work: Callable[[], T]) -> Future[T]:
    """Do ``work`` on a thread that nothing waits for; the Future tells how it ended."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - it is the future's to tell
            future.set_exception(error)

    threading.Thread(target=run, name="spectui-workbench", daemon=True).start()
    return future
