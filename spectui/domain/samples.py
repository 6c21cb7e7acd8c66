"""Frozen values that cross layers: what sensors read, and the one snapshot that faces draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from spectui.domain.attached import Attachment
from spectui.domain.comparison import Answer, Comparison
from spectui.domain.findings import Finding
from spectui.domain.phases import Phase
from spectui.domain.runs import Arm, Run, Summary
from spectui.domain.speculation import Speculation


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended. ``code`` is negative for a signal, as in subprocess."""

    code: int


class SourceStatus(StrEnum):
    """How a source of readings is doing."""

    WAITING = "waiting"  # it has not answered yet
    OK = "ok"
    ABSENT = "absent"  # there is none here, and that is no fault: no NVIDIA GPU
    SLOW = "slow"  # asked, and not answered in time; the last reading is shown with its age
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class SourceState:
    """One source's state. ``read_at`` is the monotonic time of its last good reading."""

    name: str
    status: SourceStatus = SourceStatus.WAITING
    reason: str = ""
    read_at: float | None = None


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU. Memory in bytes, power in watts, temperature in °C, clock in MHz, use in %.

    None where the driver does not tell (a MIG slice, an old card).
    """

    index: int
    name: str
    utilisation: float | None = None
    memory_used: int | None = None
    memory_total: int | None = None
    power: float | None = None
    power_limit: float | None = None
    temperature: float | None = None
    sm_clock: float | None = None


@dataclass(frozen=True, slots=True)
class Host:
    """The machine. CPU use in % of all cores together, memory in bytes.

    ``server_memory`` is the server's resident memory with its children, None without a server;
    ``server_cpu`` its CPU use in % of one core.
    """

    cpu: float
    memory_used: int
    memory_total: int
    cores: int
    server_memory: int | None = None
    server_cpu: float | None = None


@dataclass(frozen=True, slots=True)
class Slot:
    """One slot of /slots. ``task`` names the request, ``decoded`` its tokens so far.

    ``speculative`` tells whether it can draft, None where the build does not say; ``types`` are
    the ways to draft of its last request, empty where it does not.
    """

    id: int
    task: int
    busy: bool
    speculative: bool | None
    decoded: int
    types: tuple[str, ...] = ()


def speculates(slots: Sequence[Slot]) -> bool | None:
    """Return whether any slot can draft, None where none of them says."""
    said = [slot.speculative for slot in slots if slot.speculative is not None]
    return any(said) if said else None


@dataclass(frozen=True, slots=True)
class SpeedPoint:
    """In-flight decode speed at a time; ``tps`` None is a gap: nothing was being decoded."""

    at: float
    tps: float | None


@dataclass(frozen=True, slots=True)
class SettledPoint:
    """The decode speed of a finished request, over its whole length. ``run`` is a Run's number."""

    started: float
    ended: float
    tps: float
    run: int
    task: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """A (re)start of the server on the time axis."""

    at: float
    label: str


class Doing(StrEnum):
    """What the session is busy with."""

    IDLE = "idle"
    LAUNCHING = "launching"
    WARMING = "warming up"
    MEASURING = "measuring"
    STOPPING = "stopping"
    RESTORING = "going back to the last good setting"


@dataclass(frozen=True, slots=True)
class Activity:
    """What the session does now. ``done`` and ``total`` count requests of the whole job.

    ``seconds_left`` is None while there is nothing to estimate from.
    """

    doing: Doing = Doing.IDLE
    arm: str = ""
    done: int = 0
    total: int = 0
    seconds_left: float | None = None
    since: float = 0.0


@dataclass(frozen=True, slots=True)
class InFlight:
    """The request that is being answered; ``seconds`` since it was sent.

    ``tps`` is its decode speed over the last seconds, ``so_far`` since its first token; both are
    None until two steps are over.
    """

    prompt: str
    task: str
    tokens: int
    max_tokens: int
    seconds: float
    tps: float | None
    so_far: float | None


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What runs the model. ``kind`` is "embedded" or "binary", ``build`` its own version text."""

    kind: str
    build: str
    command: str = ""


class Level(StrEnum):
    """How much a notice matters."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Notice:
    """One sentence for the person. ``number`` grows, so that a face shows each once."""

    number: int
    at: float
    level: Level
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """Everything a face draws, taken at one moment (monotonic seconds ``at``).

    Compared by identity: it carries series. ``running`` is what the living server was started
    with (None without one), ``runs`` are in the order they were begun, the last may be under way,
    and ``summaries`` and ``comparisons`` are keyed by a Run's number. ``baseline`` is the number of
    the run that speed-ups are measured against. ``speculation`` is the setting last asked for,
    the profile's at first. ``chart_at`` is now on the time axis of ``speed``, ``settled`` and
    ``marks``, which stands still while nothing is done. ``attached`` is there where somebody else
    runs the server. ``findings`` are what is wrong with the launch, or with the last that failed.
    """

    at: float
    chart_at: float = 0.0
    phase: Phase = Phase.STOPPED
    phase_since: float = 0.0
    reason: str = ""
    title: str = ""
    target: str = ""
    draft: str = ""
    engine: EngineInfo | None = None
    url: str = ""
    pid: int | None = None
    running: Arm | None = None
    activity: Activity = field(default_factory=Activity)
    in_flight: InFlight | None = None
    speed: tuple[SpeedPoint, ...] = ()
    settled: tuple[SettledPoint, ...] = ()
    marks: tuple[Mark, ...] = ()
    runs: tuple[Run, ...] = ()
    summaries: Mapping[int, Summary] = field(default_factory=dict)
    comparisons: Mapping[int, Comparison] = field(default_factory=dict)
    baseline: int | None = None
    answer: Answer = field(default_factory=Answer)
    gpus: tuple[Gpu, ...] = ()
    host: Host | None = None
    sources: Mapping[str, SourceState] = field(default_factory=dict)
    log: tuple[str, ...] = ()
    notices: tuple[Notice, ...] = ()
    speculation: Speculation = field(default_factory=Speculation)
    has_draft: bool = False
    attached: Attachment | None = None
    findings: tuple[Finding, ...] = ()
