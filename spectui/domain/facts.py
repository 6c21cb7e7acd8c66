"""What preflight looks at: facts about a profile, its files and the machine, gathered elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field

from spectui.domain.dialect import Dialect
from spectui.domain.models import ModelFacts
from spectui.domain.pairing import Candidate
from spectui.domain.plan import Outside, Plan


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that did not work: a finding's ``code``, a sentence and what to do."""

    code: str
    what: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU. Memory in bytes, None where it is not told. ``name`` as ``-dev`` takes it."""

    name: str
    what: str
    total: int | None = None
    free: int | None = None


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """An engine that was looked for. ``problem`` says why it cannot run.

    ``devices`` are the GPUs that it says it can use; None: it was not asked, or does not tell.
    ``dialect`` None: its help could not be read, or it needs none.
    """

    kind: str
    program: str = ""
    build: str = ""
    problem: Problem | None = None
    devices: tuple[Device, ...] | None = None
    dialect: Dialect | None = None


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model file that the profile names under ``key``.

    ``model`` is its header, None with a ``problem``. ``slow`` says what kind of slow disk it lies
    on, empty for one that is not known to be slow; ``full`` whether nothing is left on that disk.
    """

    key: str
    path: str
    model: ModelFacts | None = None
    problem: Problem | None = None
    slow: str = ""
    full: bool = False


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A configuration file of llama.cpp that exists. ``problem`` says why it cannot be read."""

    path: str
    entries: tuple[Outside, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """A folder to write to. ``free`` in bytes; ``problem`` says why it cannot be used."""

    path: str
    free: int | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine. Memory in bytes; ``devices`` are its GPUs as the driver tells them.

    ``gpu_note`` says why there are none, ``hidden`` which variable hides some of them from the
    server; ``sudo`` names who became root to run this.
    """

    cpu: str = ""
    memory_total: int = 0
    memory_free: int = 0
    devices: tuple[Device, ...] = ()
    gpu_note: str = ""
    hidden: str = ""
    sudo: str = ""


@dataclass(frozen=True, slots=True)
class Measured:
    """A measurement of this profile: when (ISO 8601), and how it came out (a few words)."""

    date: str
    result: str
    source: str


@dataclass(frozen=True, slots=True)
class Facts:
    """All that preflight needs. Without a ``plan`` only the machine is looked at.

    ``refusal`` is why the profile cannot be used: its key (empty where there is none) and the
    error's two parts. ``pair`` holds the draft against the target; ``beside`` are the models
    that lie beside the target, those that fit first.
    """

    machine: Machine
    engines: tuple[EngineFacts, ...] = ()
    config_files: tuple[ConfigFile, ...] = ()
    variables: tuple[Outside, ...] = ()
    state: Place = field(default_factory=lambda: Place(""))
    plan: Plan | None = None
    refusal: tuple[str, str, str] | None = None
    engine: EngineFacts | None = None
    target: ModelFile | None = None
    draft: ModelFile | None = None
    projector: ModelFile | None = None
    pair: Candidate | None = None
    beside: tuple[Candidate, ...] = ()
    port: Problem | None = None
    workload: Problem | None = None
    measured: Measured | None = None
