"""Puts together a Session on a server that somebody else runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from spectui import __version__
from spectui.adapters.gpu_nvml import NvmlGpus
from spectui.adapters.host import PsutilHost
from spectui.adapters.journal import JsonlJournal
from spectui.adapters.llama_http import LlamaClient
from spectui.adapters.machine import describe_cpu
from spectui.bootstrap import state_folder, workload
from spectui.domain.address import Address, Secret
from spectui.domain.attached import WHY_NOT, Found, ServerKind
from spectui.domain.errors import SourceAbsentError, UsageError
from spectui.domain.profile import Profile
from spectui.domain.samples import Gpu, Host, Snapshot
from spectui.session.attached import Pace
from spectui.session.ports import ServerProcess
from spectui.session.session import Outside
from spectui.session.watch import Watched, Watching

_AWAY = "the server runs on another machine"


def build_watching(
    address: Address,
    key: Secret,
    found: Found,
    *,
    limit: int | None = None,
    folder: Path | None = None,
    pace: Pace | None = None,
) -> Watching:
    """Return a Session that watches ``found`` at ``address``, not yet started.

    ``limit`` is the most prompts a task, where prompts are sent at all; ``pace`` is how often to
    ask, ``folder`` where records go. They are kept apart from those of profiles: there is no
    profile to export from them.
    """
    profile = Profile()
    prompts = workload(profile, limit).prompts
    access = address.access.with_key(key)
    client = LlamaClient(address.url, kind=found.kind, model=found.model, access=access)
    home, elsewhere = (folder, "") if folder else state_folder()
    journal = JsonlJournal(
        home / "attached",
        {
            "spectui": __version__,
            "title": address.url,
            "source": None,
            "attached": {"url": address.url, "kind": str(found.kind)},
            "engine": {"kind": str(found.kind), "build": found.build},
            "target": found.model,
            "draft": "",
            "hardware": describe_cpu() if address.local else _AWAY,
        },
    )
    session = Watching(
        Watched(client, address.url, found, bool(access.authorization), pace or Pace()),
        profile=profile,
        prompts=prompts,
        outside=Outside(
            launcher=_NoLauncher(),
            clients=LlamaClient,
            gpus=NvmlGpus() if address.local else _GpusElsewhere(),
            host=PsutilHost() if address.local else _HostElsewhere(),
            journal=journal,
            export=_NoExport(),
        ),
    )
    journal.on_trouble(session.warn)
    if elsewhere:
        session.warn(elsewhere)
    if found.kind is ServerKind.SWAP:
        session.warn("watching keeps the model loaded: llama-swap's ttl begins anew with a reading")
    return session


class _NoLauncher:
    """Launches nothing."""

    def free_port(self, wanted: int | None) -> int:
        """Refuse."""
        del wanted
        raise UsageError("no server is launched here", WHY_NOT)

    def launch(
        self, argv: Sequence[str], port: int, env: Mapping[str, str] | None = None
    ) -> ServerProcess:
        """Refuse."""
        del argv, port, env
        raise UsageError("no server is launched here", WHY_NOT)


class _NoExport:
    """Exports nothing: a tuned profile says how to launch, and that is not known here."""

    def suggest(self) -> str:
        """Return no path."""
        return ""

    def write(self, path: str, snapshot: Snapshot, run: int | None) -> str:
        """Refuse."""
        del path, snapshot, run
        raise UsageError("there is no profile to export", WHY_NOT)


class _GpusElsewhere:
    """The GPUs of this machine say nothing about a server on another one."""

    def read(self) -> tuple[Gpu, ...]:
        """Say so."""
        raise SourceAbsentError(_AWAY)

    def close(self) -> None:
        """Let go of nothing."""


class _HostElsewhere:
    """Neither does its memory."""

    def read(self, pid: int | None) -> Host:
        """Say so."""
        del pid
        raise SourceAbsentError(_AWAY)
