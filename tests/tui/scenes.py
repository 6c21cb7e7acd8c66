"""Snapshots to look at: made from runs by the domain's own formulas, the same every time."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from spectui.domain.acceptance import Acceptance
from spectui.domain.comparison import answer, compare
from spectui.domain.findings import Finding, Fix, Severity
from spectui.domain.phases import Phase
from spectui.domain.runs import Arm, Request, Run, summarise
from spectui.domain.samples import (
    Activity,
    Doing,
    EngineInfo,
    Gpu,
    Host,
    InFlight,
    Level,
    Mark,
    Notice,
    SettledPoint,
    Snapshot,
    SourceState,
    SourceStatus,
    SpeedPoint,
)
from spectui.domain.speculation import Speculation
from spectui.domain.throughput import Timings

TASKS = ("code", "creative", "math", "rewrite", "science", "translation")
GAIN = {"code": 1.35, "creative": 0.9, "math": 1.25, "rewrite": 1.7, "science": 1.0}
DECAY = (0.95, 0.915, 0.88, 0.835, 0.79, 0.767, 0.743, 0.72)
OFF = Speculation()
GIB = 2**30


def draft_simple(n_max: int, **more: float) -> Speculation:
    return Speculation.of("draft-simple", {"n_max": n_max, **more})


def request(
    speculation: Speculation, index: int, started: float, *, base: float = 52.0, gain: float = 1.0
) -> Request:
    """Return one answered prompt of 128 tokens."""
    random_ = random.Random(f"{speculation.name} {index}")
    task = TASKS[index % len(TASKS)]
    length = speculation.draft_length or 0
    tps = base * random_.uniform(0.96, 1.04)
    acceptance = Acceptance()
    if length:
        tps *= gain * GAIN.get(task, 1.1) * random_.uniform(0.95, 1.05)
        drafts = random_.randint(28, 40)
        mean = min(length, 12)
        at = tuple(
            round(drafts * (DECAY[i] if i < len(DECAY) else 0.7 * 0.93 ** (i - 7)) * 0.85)
            for i in range(length)
        )
        acceptance = Acceptance(drafts * mean, sum(at), drafts, at)
    seconds = 127 / tps
    return Request(
        prompt=f"p{index}",
        task=task,
        started=started,
        ended=started + seconds + 0.3,
        timings=Timings(
            40, 200.0, 0, 128, seconds * 1000, tps, acceptance.drafted, acceptance.accepted
        ),
        acceptance=acceptance,
        first_token=0.25,
        finish="length",
    )


def run(
    number: int,
    speculation: Speculation,
    started: float,
    *,
    count: int = 36,
    planned: int = 36,
    gain: float = 1.0,
) -> Run:
    """Return a run with ``count`` of ``planned`` prompts answered."""
    made = Run(number, Arm(speculation), started, planned)
    at = started + 3.0
    for index in range(count):
        one = request(speculation, index, at, gain=gain)
        made = made.with_request(one)
        at = one.ended + 0.2
    return replace(made, ended=at) if count == planned else made


def told(snapshot: Snapshot, runs: Sequence[Run]) -> Snapshot:
    """Return the snapshot with runs and everything that follows from them."""
    baseline = next(
        (r for r in runs if r.arm.is_baseline and not r.unverified and r.requests), None
    )
    comparisons = (
        {r.number: compare(r, baseline) for r in runs if r is not baseline} if baseline else {}
    )
    number = baseline.number if baseline else None
    settled = tuple(
        SettledPoint(one.started, one.ended, one.decode_tps, r.number, one.task)
        for r in runs
        for one in r.requests
        if one.decode_tps is not None
    )
    return replace(
        snapshot,
        runs=tuple(runs),
        summaries={r.number: summarise(r) for r in runs},
        comparisons=comparisons,
        baseline=number,
        answer=answer(runs, comparisons, number),
        settled=settled,
        speed=flight(settled),
        marks=tuple(Mark(r.started, r.arm.name) for r in runs),
    )


def flight(settled: Sequence[SettledPoint]) -> tuple[SpeedPoint, ...]:
    """Return what in-flight readings every half second would have been."""
    random_ = random.Random(7)
    points: list[SpeedPoint] = []
    for point in settled:
        at = point.started + 0.5
        while at < point.ended:
            points.append(SpeedPoint(at, point.tps * random_.uniform(0.88, 1.12)))
            at += 0.5
        points.append(SpeedPoint(point.ended, None))
    return tuple(points)


LOG = (
    "0.07.902.113 I srv  params_from_: Chat format: Content-only",
    "0.08.162.739 I slot print_timing: id  0 | task 1 | draft acceptance = 0.72906",
)
GPU = Gpu(0, "NVIDIA GeForce RTX 3090", 87.0, int(19.8 * GIB), 24 * GIB, 318.0, 350.0, 72.0, 1860.0)
HOST = Host(11.0, int(9.3 * GIB), 32 * GIB, 16, int(3.1 * GIB), 104.0)


def idle(**more: object) -> Snapshot:
    """Return a session that has just been opened: nothing runs, nothing is measured."""
    snapshot = Snapshot(
        at=100.0,
        title="demo",
        target="SmolLM2-135M-Instruct Q4_1",
        draft="tiny Q8_0",
        engine=EngineInfo("binary", "b11434"),
        sources={
            "gpu": SourceState("gpu", SourceStatus.ABSENT, "no NVIDIA GPU"),
            "host": SourceState("host", SourceStatus.OK, read_at=100.0),
        },
        host=replace(HOST, server_memory=None, server_cpu=None),
        speculation=draft_simple(4),
        has_draft=True,
    )
    found = replace(snapshot, **more)  # type: ignore[arg-type]
    return replace(found, chart_at=found.at)


def loading() -> Snapshot:
    return idle(
        phase=Phase.LOADING,
        phase_since=88.0,
        running=Arm(draft_simple(4)),
        activity=Activity(Doing.LAUNCHING, "n_max 4", since=88.0),
    )


def failed() -> Snapshot:
    return idle(
        phase=Phase.FAILED,
        reason="the draft model cannot be loaded: its vocabulary is not the target's",
        log=LOG,
    )


def up(snapshot: Snapshot, speculation: Speculation) -> Snapshot:
    """Return the snapshot with a living server, a GPU and a log."""
    return replace(
        snapshot,
        phase=Phase.READY,
        phase_since=snapshot.at - 20,
        url="http://127.0.0.1:40123",
        pid=4242,
        running=Arm(speculation),
        gpus=(GPU,),
        host=HOST,
        sources={
            **snapshot.sources,
            "gpu": SourceState("gpu", SourceStatus.OK, read_at=snapshot.at),
            "metrics": SourceState("metrics", SourceStatus.OK, read_at=snapshot.at),
        },
        log=LOG,
    )


def measuring(done: int = 12) -> Snapshot:
    """Return the second arm being measured, ``done`` of 36 prompts in."""
    first = run(1, OFF, 100.0)
    second = run(2, draft_simple(8), (first.ended or 0) + 2, gain=0.95)
    third = run(3, draft_simple(4), (second.ended or 0) + 2, count=done, gain=1.08)
    at = third.requests[-1].ended + 1.5 if third.requests else third.started + 2
    snapshot = told(up(idle(at=at), draft_simple(4)), [first, second, third])
    return replace(
        snapshot,
        phase=Phase.BUSY,
        activity=Activity(Doing.MEASURING, "n_max 4", done, 36, 118.0, third.started),
        in_flight=InFlight("p12", "code", 61, 128, 1.4, 71.3, 69.0),
    )


def done() -> Snapshot:
    """Return a finished comparison of three arms."""
    first = run(1, OFF, 100.0)
    second = run(2, draft_simple(8), (first.ended or 0) + 2, gain=0.95)
    third = run(3, draft_simple(4), (second.ended or 0) + 2, gain=1.08)
    return told(up(idle(at=(third.ended or 0) + 5), draft_simple(4)), [first, second, third])


HOSTILE = "[bold red]x[/] \x1b[2J\x1b]0;owned\x07 \u202eevil [@click=app.exit]click[/]"


def hostile() -> Snapshot:
    """Return text from outside that means harm, in every place where there is some."""
    snapshot = done()
    notice = Notice(1, snapshot.at, Level.ERROR, f"notice {HOSTILE}")
    return replace(
        snapshot,
        title=HOSTILE,
        target=f"target {HOSTILE}",
        draft=f"draft {HOSTILE}",
        engine=EngineInfo("binary", HOSTILE),
        reason=f"reason {HOSTILE}",
        log=(f"log {HOSTILE}",),
        gpus=(replace(GPU, name=f"gpu {HOSTILE}"),),
        marks=tuple(replace(mark, label=HOSTILE) for mark in snapshot.marks),
        notices=(notice,),
        phase=Phase.GONE,
    )


def long_names() -> Snapshot:
    """Return names that fit nowhere."""
    kind = Speculation.of(
        "ngram-map-k4v",
        {
            "ngram_map_k4v.size_m": 24,
            "ngram_map_k4v.size_n": 8,
            "ngram_map_k4v.min_hits": 2,
        },
    )
    first = run(1, OFF, 100.0)
    second = run(2, kind, (first.ended or 0) + 2, gain=1.1)
    snapshot = told(up(idle(at=(second.ended or 0) + 5), kind), [first, second])
    return replace(
        snapshot,
        target="Some-Very-Long-Model-Name-70B-Instruct-2507-UD-Q4_K_XL-00001-of-00002" * 2,
        draft="Another-Very-Long-Draft-Name-0.6B-Instruct-Q8_0",
        engine=EngineInfo("embedded", "xllamacpp 2026.10.11549 (b11549, 0123abcd)"),
        gpus=(GPU, replace(GPU, index=1, utilisation=None, power=None, sm_clock=None)),
        speculation=kind,
    )


def many() -> Snapshot:
    """Return forty runs, one cut short, one stopped, one with failures."""
    runs = [run(1, OFF, 100.0, count=12, planned=12)]
    for number in range(2, 41):
        begin = (runs[-1].ended or runs[-1].requests[-1].ended) + 2
        speculation = draft_simple(1 + number % 16, p_min=0.05 * (number % 5))
        runs.append(run(number, speculation, begin, count=12, planned=12))
    failed_ = replace(runs[10].requests[3], error="the server closed the connection")
    runs[10] = replace(runs[10], requests=(*runs[10].requests[:3], failed_))
    runs[20] = replace(runs[20], stopped="cancelled")
    snapshot = told(idle(at=(runs[-1].ended or 0) + 2), runs)
    return up(snapshot, runs[-1].arm.speculation)


def unverified() -> Snapshot:
    """Return a baseline that drafted after all."""
    broken = run(1, OFF, 100.0, count=4, planned=4)
    drafted = replace(broken.requests[0].timings, drafted=12, accepted=3)
    broken = replace(
        broken, requests=(replace(broken.requests[0], timings=drafted), *broken.requests[1:])
    )
    return told(up(idle(at=(broken.ended or 0) + 2), OFF), [broken])


def stale() -> Snapshot:
    """Return sources that stopped answering."""
    snapshot = done()
    before = snapshot.at - 12
    return replace(
        snapshot,
        sources={
            "gpu": SourceState("gpu", SourceStatus.FAILED, "driver not loaded", before),
            "host": SourceState("host", SourceStatus.SLOW, "", before),
            "metrics": SourceState("metrics", SourceStatus.SLOW, "", before),
        },
    )


def cut_short() -> Snapshot:
    """Return a run whose drafts p_min cut short."""
    first = run(1, OFF, 100.0, count=6, planned=6)
    second = run(2, draft_simple(8, p_min=0.6), (first.ended or 0) + 2, count=6, planned=6)
    short = []
    for one in second.requests:
        acceptance = one.acceptance or Acceptance()
        drafted = round(acceptance.drafts * 6.4)
        short.append(replace(one, acceptance=replace(acceptance, drafted=drafted)))
    second = replace(second, requests=tuple(short))
    return told(up(idle(at=(second.ended or 0) + 2), second.arm.speculation), [first, second])


MISMATCH = Finding(
    "vocab-mismatch",
    Severity.BLOCKER,
    "ready, but not speculating: token 271 of the draft's vocabulary is not the target's, so"
    " llama-server has loaded the draft model and does not use it",
    "take a drafter of the same family; `spectui models --target` lists the fitting ones",
    (
        Fix("draft from repeats of the text", (("speculation.type", "ngram-mod"),)),
        Fix("leave the draft model out", (("models.draft", None),)),
    ),
)
OTHER_FLAGS = Finding(
    "other-types",
    Severity.WARNING,
    "the server drafts with ngram-mod, not draft-simple",
    "look in server.args and llama.cpp's config file for what changes it",
)
SHORT = Finding(
    "short-drafts",
    Severity.HINT,
    "drafts are 2.1 tokens long on average, 8 are allowed: p_min ends them",
    "turning n_max up changes nothing; turn p_min",
)
NO_PORT = Finding(
    "port-in-use",
    Severity.BLOCKER,
    "port 8080 is taken by another program",
    "stop it, or take another port",
    (Fix("use a free port", (("server.port", None),)),),
)


def troubled(*findings: Finding) -> Snapshot:
    """Return a living server that does not do what was asked for."""
    return replace(done(), findings=findings or (MISMATCH, OTHER_FLAGS, SHORT))


def refused() -> Snapshot:
    """Return a start that failed for a known reason."""
    return idle(
        phase=Phase.FAILED,
        reason="the server did not start (exit status 1): port 8080 is taken by another program",
        findings=(NO_PORT,),
        log=LOG,
    )


EVERY_NGRAM = Speculation.of(
    "ngram-simple,ngram-map-k,ngram-map-k4v,ngram-mod,ngram-cache,draft-simple", {"n_max": 4}
)


def combined(speculation: Speculation = EVERY_NGRAM) -> Snapshot:
    """Return a setting of several types, running."""
    return replace(up(idle(), speculation), speculation=speculation)
