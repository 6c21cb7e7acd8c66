"""Who looks after the server of a Session: one that spectui launches, or one that it watches."""

from __future__ import annotations

from typing import Protocol

from spectui.domain.findings import Finding
from spectui.domain.phases import Phase
from spectui.domain.runs import Arm
from spectui.session.ports import ServerClient


class Keeper(Protocol):
    """What a Session needs of whoever looks after its server. Used on its loop only.

    ``supervisor.Supervisor`` launches and ends a server of its own; ``attached.Attached`` watches
    one that somebody else runs, and has no means to end it.
    """

    @property
    def phase(self) -> Phase:
        """Where the server is in its life."""

    @property
    def since(self) -> float:
        """When the phase began, in monotonic seconds."""

    @property
    def reason(self) -> str:
        """Why it failed or is gone, in a sentence; else empty."""

    @property
    def client(self) -> ServerClient | None:
        """What talks to the server, None while there is nobody to talk to."""

    @property
    def url(self) -> str:
        """Its address as it may be shown."""

    @property
    def argv(self) -> tuple[str, ...]:
        """The command it was launched with; empty where somebody else launched it."""

    @property
    def arm(self) -> Arm | None:
        """What it runs with, None without a server."""

    @property
    def build(self) -> str:
        """What it calls its build."""

    @property
    def pid(self) -> int | None:
        """Its process, None where that is none of ours."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know of this launch, in sentences."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong with this launch, or with the one that failed; worst first."""

    def log(self, lines: int) -> tuple[str, ...]:
        """Return the end of its output."""

    async def start(self, arm: Arm) -> None:
        """See to it that ``arm`` is what runs. Raises SpectuiError where that cannot be."""

    async def stop(self) -> None:
        """Let go of the server: end the one that was launched, leave the one that was found."""

    def kill_now(self) -> None:
        """Do the same at once; may be called from any thread."""

    async def has_gone(self, seconds: float) -> bool:
        """Return whether the server is gone, giving a crash ``seconds`` to be noticed."""

    def busy(self, *, now: bool) -> None:
        """Take note that a request is in flight, or that none is."""
