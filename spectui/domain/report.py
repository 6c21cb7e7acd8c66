"""A finished measurement as one JSON-ready object: what ``spectui measure --json`` prints."""

from __future__ import annotations

from collections.abc import Mapping

from spectui.domain.comparison import Comparison
from spectui.domain.profile import Profile, to_mapping
from spectui.domain.proof import of_run
from spectui.domain.runs import Request, Run, Summary
from spectui.domain.samples import Snapshot

Json = dict[str, object]


def report(snapshot: Snapshot, profile: Profile, *, version: str, prompts: int) -> Json:
    """Return the whole result. Counts are exact, speeds in tok/s, rates 0 to 1, null: unknown.

    ``arms`` are the runs, the baseline first; ``comparisons`` are against the baseline, by paired
    prompts, with ``interval`` null below four pairs.
    """
    runs = sorted(snapshot.runs, key=lambda run: (run.number != snapshot.baseline, run.number))
    return {
        "spectui": version,
        "engine": {
            "kind": snapshot.engine.kind if snapshot.engine else "",
            "build": snapshot.engine.build if snapshot.engine else "",
        },
        "model": {"target": snapshot.target, "draft": snapshot.draft or None},
        "workload": {
            "prompts": prompts,
            "max_tokens": profile.workload.max_tokens,
            "seed": profile.workload.seed,
        },
        "arms": [_arm(run, snapshot.summaries[run.number], profile) for run in runs],
        "comparisons": [
            _comparison(run, comparison, snapshot.runs)
            for run in runs
            if (comparison := snapshot.comparisons.get(run.number)) is not None
        ],
        "answer": {"text": snapshot.answer.text, "tone": snapshot.answer.tone.value},
    }


def _arm(run: Run, summary: Summary, profile: Profile) -> Json:
    acceptance = summary.acceptance
    tables = to_mapping(profile.with_speculation(run.arm.speculation))
    warnings = [text for text in (run.unverified, run.undrafted, run.stopped) if text]
    if not acceptance.exact:
        warnings.append("counts are rounded by the server")
    return {
        "name": run.arm.name,
        "speculation": tables["speculation"],
        "requests": summary.requests,
        "failed": summary.failed,
        "tokens": summary.tokens,
        "decode_tps": summary.decode_tps,
        "drafted": acceptance.drafted,
        "accepted": acceptance.accepted,
        "drafts": acceptance.drafts,
        "acceptance_rate": acceptance.rate,
        "mean_acceptance_length": acceptance.mean_length,
        "accepted_at": list(acceptance.accepted_at),
        "unconditional": list(acceptance.unconditional),
        "conditional": list(acceptance.conditional),
        "first_token_seconds": summary.first_token,
        "by_task": dict(summary.by_task),
        "per_prompt": [_request(request) for request in run.requests],
        "warnings": warnings,
        "findings": [finding.as_json() for finding in of_run(run, summary)],
    }


def _request(request: Request) -> Json:
    timings = request.timings
    return {
        "prompt": request.prompt,
        "task": request.task,
        "decode_tps": request.decode_tps,
        "tokens": timings.predicted_n,
        "prompt_tokens": timings.prompt_n,
        "cached_tokens": timings.cached_n,
        "drafted": timings.drafted,
        "accepted": timings.accepted,
        "first_token_seconds": request.first_token,
        "finish": request.finish or None,
        "error": request.error or None,
    }


def _comparison(run: Run, comparison: Comparison, runs: tuple[Run, ...]) -> Json:
    against = next(other for other in runs if other.number == comparison.against)
    found = comparison.overall
    names: Mapping[str, object] = {"arm": run.arm.name, "against": against.arm.name}
    if found is None:
        return {**names, "speedup": None, "interval": None, "prompts": 0, "by_task": {}}
    known = found.low is not None and found.high is not None
    return {
        **names,
        "speedup": found.speedup,
        "interval": [found.low, found.high] if known else None,
        "verdict": found.verdict.value,
        "prompts": found.pairs,
        "by_task": {task: row.speedup for task, row in sorted(comparison.by_task.items())},
    }
