"""The composition root: a profile in, a wired Session out. Tests call it too."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

import platformdirs

from spectui import __version__
from spectui.adapters.dialect import dialect_of
from spectui.adapters.gpu_nvml import NvmlGpus
from spectui.adapters.host import PsutilHost
from spectui.adapters.journal import JsonlJournal, Record
from spectui.adapters.llama_http import LlamaClient
from spectui.adapters.llama_process import LlamaLauncher
from spectui.adapters.machine import describe_cpu, physical_cores
from spectui.adapters.prompt_file import Workload, interleave, load_workload
from spectui.adapters.toml_store import save_profile
from spectui.domain.dialect import TODAY
from spectui.domain.errors import EngineError, ProfileError, SpectuiError
from spectui.domain.evidence import Provenance, evidence, run_to_export
from spectui.domain.profile import (
    DEMO,
    EMBEDDED,
    Models,
    Profile,
    ServerSpec,
    WorkloadSpec,
    to_mapping,
)
from spectui.domain.samples import Snapshot
from spectui.domain.speculation import Speculation
from spectui.domain.text import clean
from spectui.embedded.demo_model import engine_build, find_demo_model
from spectui.session.session import Outside, Session
from spectui.session.supervisor import Engine

_MAGIC = b"GGUF"
_DEMO_CORES = 8  # a model this small gains nothing from more


def demo_profile() -> Profile:
    """Return the profile of ``spectui demo``: a real small model on the embedded engine.

    n-gram drafting, which needs no second model, on the prompts where it shines. One core is left
    to everything else: with all of them the engine's threads wait for one another whenever
    anything else runs.
    """
    threads = max(1, min(physical_cores(), _DEMO_CORES) - 1)
    return Profile(
        server=ServerSpec(EMBEDDED, ("-t", str(threads)), context=4096),
        models=Models(DEMO),
        speculation=Speculation.of(
            "ngram-simple", {"ngram_simple.size_n": 3, "ngram_simple.size_m": 8}
        ),
        workload=WorkloadSpec(tasks=("rewrite",)),
    )


def state_folder() -> tuple[Path, str]:
    """Return the folder for logs and records, and a note where it is not the usual one.

    That is a private one below the system's temporary folder, where the home cannot be used.
    """
    folder = platformdirs.user_state_path("spectui", appauthor=False)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder, ""
    except OSError as error:
        temporary = Path(tempfile.gettempdir()) / f"spectui-{os.getuid()}"
        return temporary, f"records go to {temporary}: {folder} cannot be used ({error.strerror})"


def cache_folder() -> Path:
    """Return the folder for what is known of binaries, and can be asked again."""
    return platformdirs.user_cache_path("spectui", appauthor=False) / "binaries"


def build_session(
    profile: Profile,
    *,
    source: Path | None = None,
    limit: int | None = None,
    folder: Path | None = None,
    notices: int = 0,
) -> Session:
    """Return a Session of ``profile``, not yet started.

    ``source`` is the profile's file, ``limit`` the most prompts a task, ``folder`` where logs and
    records go, ``notices`` the number that its notices are counted on from. Raises SpectuiError
    for whatever can be seen to be wrong beforehand: the engine, the models, the prompts.
    """
    where = str(source) if source else ""
    engine = resolve_engine(profile, where, folder / "binaries" if folder else None)
    found = workload(profile, limit)
    home, elsewhere = (folder, "") if folder else state_folder()
    title = source.name if source else "demo"
    exporter = ProfileExporter(profile, engine, source)
    journal = JsonlJournal(
        home / "sessions",
        {
            "spectui": __version__,
            "title": title,
            "source": str(source.absolute()) if source else None,
            "profile": to_mapping(profile),
            "engine": {"kind": engine.kind, "build": engine.build},
            "target": engine.target,
            "draft": engine.draft,
            "hardware": exporter.hardware,
        },
    )
    session = Session(
        profile=profile,
        engine=engine,
        prompts=found.prompts,
        title=title,
        notices=notices,
        outside=Outside(
            launcher=LlamaLauncher(home / "logs"),
            clients=LlamaClient,
            gpus=NvmlGpus(),
            host=PsutilHost(),
            journal=journal,
            export=exporter,
        ),
    )
    journal.on_trouble(session.warn)
    if elsewhere:
        session.warn(elsewhere)
    if engine.kind == "binary" and engine.dialect is TODAY:
        session.warn(
            f"{clean(engine.program[0], limit=200)} --help lists no flags: it is spoken to as"
            " today's llama-server"
        )
    if found.duplicates:
        session.warn(
            f"{found.duplicates} repeated prompts left out: sent twice within one launch, a prompt"
            " would be answered from memory"
        )
    return session


def workload(profile: Profile, limit: int | None = None) -> Workload:
    """Return the prompts in sending order, interleaved over tasks, ``limit`` a task at most."""
    spec = profile.workload
    loaded = load_workload(spec.prompts, spec.tasks or None)
    return replace(loaded, prompts=interleave(loaded.prompts, limit))


# -- the engine ------------------------------------------------------------------------------------


def resolve_engine(profile: Profile, where: str = "", cache: Path | None = None) -> Engine:
    """Return what to run; ``cache`` is where what is known of binaries is kept.

    Raises EngineError or ProfileError, naming what to do.
    """
    if profile.server.engine == EMBEDDED:
        dialect = TODAY
        program: tuple[str, ...] = (sys.executable, "-m", "spectui.embedded")
        kind, build = "embedded", engine_build()
    else:
        program, kind, build = (_binary(profile.server.engine),), "binary", ""
        dialect = dialect_of(program[0], cache or cache_folder()) or TODAY
    return Engine(
        program=program,
        kind=kind,
        build=build,
        target=_model(profile.models.target, "models.target", where),
        draft=_model(profile.models.draft, "models.draft", where) if profile.has_draft else "",
        dialect=dialect,
    )


def _binary(engine: str) -> str:
    found = shutil.which(engine)
    if found:
        return found
    path = Path(engine)
    shown = clean(engine, limit=200)
    if path.is_dir():
        raise EngineError(
            f"{shown} is a folder", "set server.engine to the llama-server file in it"
        )
    if path.is_file() and "/" in engine:
        raise EngineError(f"{shown} is not executable", f"run chmod +x {shown}")
    if "/" in engine:
        raise EngineError(f"there is no {shown}", "set server.engine to a llama-server binary")
    raise EngineError(
        f"{shown} is not in PATH",
        'set server.engine to its path, or to "embedded" for the built-in engine',
    )


def _model(path: str, key: str, where: str) -> str:
    if path == DEMO:
        return str(find_demo_model())
    place = f"{where}: {key}" if where else key
    shown = clean(path, limit=300)
    try:
        with Path(path).open("rb") as file:
            magic = file.read(len(_MAGIC))
    except FileNotFoundError:
        raise ProfileError(place, f"there is no file {shown}") from None
    except IsADirectoryError:
        raise ProfileError(place, f"{shown} is a folder", "name the .gguf file in it") from None
    except OSError as error:
        raise ProfileError(place, f"{shown} cannot be read ({error.strerror})") from None
    if magic != _MAGIC:
        raise ProfileError(place, f"{shown} is not a GGUF model file")
    return path


# -- export ----------------------------------------------------------------------------------------


def exporter_of(record: Record) -> ProfileExporter:
    """Return the exporter of a recorded session."""
    engine = Engine((), record.engine.kind, record.engine.build, record.target, record.draft)
    return ProfileExporter(record.profile, engine, record.source, hardware=record.hardware)


class ProfileExporter:
    """Writes tuned profiles beside the one they came from."""

    def __init__(
        self, profile: Profile, engine: Engine, source: Path | None, *, hardware: str = ""
    ) -> None:
        """Take what every export of this session shares; ``hardware`` empty: this machine."""
        self._profile = profile
        self._engine = engine
        self._source = source
        self.hardware = hardware or describe_cpu()

    def suggest(self) -> str:
        """Return a path that does not exist yet."""
        folder = self._source.absolute().parent if self._source else Path.cwd()
        stem = self._source.stem if self._source else "spectui-demo"
        for number in range(1, 1000):
            path = folder / f"{stem}.tuned{'' if number == 1 else f'-{number}'}.toml"
            if not path.exists():
                break
        return str(path)

    def write(self, path: str, snapshot: Snapshot, run: int | None) -> str:
        """Write the profile of ``run`` with its evidence; never over a file that is there."""
        target = Path(path).expanduser().absolute()
        if not path.strip() or target.is_dir():
            raise SpectuiError(
                f"{clean(path) or 'nothing'} is not a file name", "name a .toml file"
            )
        if target.exists():
            raise SpectuiError(f"{target} exists already", "choose another name")
        chosen = run_to_export(snapshot, run)
        gpus = [gpu.name for gpu in snapshot.gpus]
        model = Path(self._engine.target)
        proof = evidence(
            snapshot,
            chosen,
            Provenance(
                hardware=", ".join([self.hardware, *gpus]),
                model=clean(model.name, limit=200),
                model_bytes=model.stat().st_size if model.exists() else 0,
                date=datetime.now(UTC).isoformat(timespec="seconds"),
                spectui=__version__,
            ),
        )
        tuned = self._profile.with_speculation(chosen.arm.speculation)
        save_profile(replace(tuned, evidence=MappingProxyType(proof)), target)
        return str(target)
