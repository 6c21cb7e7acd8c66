"""What an exported profile says of its proof: the ``[evidence]`` table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spectui.domain.comparison import Estimate, Tone
from spectui.domain.errors import SpectuiError
from spectui.domain.runs import Run
from spectui.domain.samples import Snapshot


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a measurement was made. ``model_bytes`` is the target's size; ``date`` ISO 8601."""

    hardware: str
    model: str
    model_bytes: int
    date: str
    spectui: str


def run_to_export(snapshot: Snapshot, number: int | None) -> Run:
    """Return the run to export: ``number``, else the answer's, else the newest with figures.

    Where the answer is to turn speculation off, that is the baseline.

    Raises SpectuiError where nothing was measured, or ``number`` is not a run.
    """
    runs = {run.number: run for run in snapshot.runs if snapshot.summaries[run.number].requests}
    if number is not None:
        if number not in runs:
            raise SpectuiError(f"run {number} has no figures to export", "measure it first")
        return runs[number]
    if snapshot.answer.tone is Tone.BAD and snapshot.baseline in runs:
        return runs[snapshot.baseline]
    if snapshot.answer.run in runs:
        return runs[snapshot.answer.run]
    if not runs:
        raise SpectuiError("nothing was measured yet", "measure first, then export")
    return max(runs.values(), key=lambda run: run.number)


def evidence(snapshot: Snapshot, run: Run, provenance: Provenance) -> dict[str, object]:
    """Return the figures of ``run`` as plain TOML values, rounded to what they deserve.

    Speeds in tok/s, ``model_bytes`` in bytes; what is not known is left out.
    """
    summary = snapshot.summaries[run.number]
    comparison = snapshot.comparisons.get(run.number)
    base = snapshot.summaries.get(snapshot.baseline or 0)
    answered = run is run_to_export(snapshot, None)
    found: dict[str, object | None] = {
        "setting": run.arm.name,
        "answer": snapshot.answer.text if answered else None,
        **_estimate(comparison.overall if comparison else None),
        "decode_tps": _round(summary.decode_tps, 2),
        "baseline_tps": _round(base.decode_tps if base else None, 2),
        "requests": summary.requests,
        "acceptance_rate": _round(summary.acceptance.rate, 4),
        "mean_acceptance_length": _round(summary.acceptance.mean_length, 3),
        "hardware": provenance.hardware,
        "engine": f"{snapshot.engine.kind} {snapshot.engine.build}" if snapshot.engine else None,
        "model": provenance.model,
        "model_bytes": provenance.model_bytes,
        "date": provenance.date,
        "spectui": provenance.spectui,
    }
    return {key: value for key, value in found.items() if value is not None}


def _estimate(found: Estimate | None) -> Mapping[str, object | None]:
    if found is None:
        return {}
    interval = None
    if found.low is not None and found.high is not None:
        interval = [round(found.low, 4), round(found.high, 4)]
    return {
        "speedup": round(found.speedup, 4),
        "interval": interval,
        "verdict": found.verdict.value,
        "pairs": found.pairs,
    }


def _round(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
