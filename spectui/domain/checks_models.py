"""Preflight: the model files, whether they fit each other, and where they would run."""

from __future__ import annotations

import re
from collections.abc import Iterator

from spectui.domain.checks_arguments import change, changes_of
from spectui.domain.checks_settings import (
    TURN_OFF,
    draft_fixes,
    from_text,
    use_type,
)
from spectui.domain.facts import Facts, ModelFile
from spectui.domain.findings import Finding, Fix, Severity
from spectui.domain.models import ModelFacts, ModelKind
from spectui.domain.pairing import (
    GOOD_RATIO,
    KIND_NAMES,
    SMALL_TARGET,
    TYPE_OF,
    file_name,
    why_no_target,
)
from spectui.domain.plan import Plan
from spectui.domain.speculation import OFF
from spectui.domain.text import clean


def model_checks(facts: Facts) -> Iterator[Finding]:
    """Yield what is wrong with the files, the pair, and the context."""
    plan = facts.plan
    if plan is None:
        return
    for file in (facts.target, facts.draft, facts.projector):
        if file is not None:
            yield from _file(plan, file)
    target = facts.target.model if facts.target else None
    draft = facts.draft.model if facts.draft else None
    if target is not None:
        yield from _target(plan, target)
    if plan.drafts_with_model and draft is not None:
        yield from _kind(plan, draft)
        yield from _block(plan, draft)
    if plan.drafts_with_model and target is not None:
        yield from _mtp(facts, plan, target)
        yield from _sizes(plan, target, draft)
    if target is not None and draft is not None:
        yield from _pair(facts, plan)
    yield from _placing(facts, plan)


def named(path: str) -> str:
    """Return a file's name, fit to be shown."""
    return clean(file_name(path), limit=80)


def _file(plan: Plan, file: ModelFile) -> Iterator[Finding]:
    if file.problem is not None:
        what = clean(f"{file.key}: {file.problem.what}", limit=400)
        fixes = (from_text(plan),) if file.key == "models.draft" else ()
        yield Finding(file.problem.code, Severity.BLOCKER, what, file.problem.fix, fixes)
    elif file.model is not None and file.model.missing:
        gone = clean(file.model.missing[0], limit=200)
        yield Finding(
            "model-missing",
            Severity.BLOCKER,
            f"{file.key}: a part of it is not there: {gone}",
            "get the missing part, into the same folder",
        )
    if file.slow:
        yield Finding(
            "slow-disk",
            Severity.HINT,
            f"{named(file.path)} lies on {clean(file.slow, limit=80)}: loading takes long, at every"
            " change of a setting",
            "copy it to a local SSD",
        )
    if file.full:
        yield Finding(
            "disk-full",
            Severity.HINT,
            f"the disk that {named(file.path)} lies on is full: was its download finished?",
            "compare its size with the one at its source",
        )


def _target(plan: Plan, target: ModelFacts) -> Iterator[Finding]:
    reason = why_no_target(target)
    if reason and not target.missing:
        yield Finding(
            "model-wrong-kind",
            Severity.BLOCKER,
            f"{named(target.path)} cannot be the target: {clean(reason, limit=200)}",
            "name the model itself as models.target",
        )
    context = plan.number("context")
    slots = 1 if plan.is_on("unified") else plan.number("parallel") or 1
    if target.context and context is not None and context // slots > target.context:
        yield Finding(
            "context-beyond-training",
            Severity.WARNING,
            f"a context of {context // slots} tokens is more than the {target.context} that the"
            " model was trained for: its answers may become nonsense far in",
            fixes=(
                Fix(
                    f"a context of {target.context * slots}",
                    change(plan, "context", target.context * slots),
                ),
            ),
        )


def _kind(plan: Plan, draft: ModelFacts) -> Iterator[Finding]:
    """Yield a draft whose kind is not what the type wants."""
    wanted = next(kind.id for kind in plan.kinds if kind.drafts_with_model)
    told = TYPE_OF.get(draft.kind)
    if told == wanted:
        return
    kind = KIND_NAMES[draft.kind]
    what = f"{named(draft.path)} is {_article(kind)} {kind}, and {wanted} cannot draft with it"
    if draft.kind is ModelKind.OTHER and draft.detail:
        detail = clean(draft.detail, limit=80)
        what = f"{named(draft.path)} is {detail}, and {wanted} cannot draft with it"
    others = [name for name in plan.types if name not in {wanted, OFF}]
    fixes = (use_type(",".join([*others, told])),) if told else (from_text(plan),)
    yield Finding("draft-wrong-kind", Severity.BLOCKER, what, fixes=fixes)


def _article(word: str) -> str:
    return "an" if word[0] in "EM" else "a"


def _block(plan: Plan, draft: ModelFacts) -> Iterator[Finding]:
    """Yield what a block drafter cannot do of the knobs."""
    longest, wanted = draft.longest_draft, plan.setting("n_max")
    if longest is not None and isinstance(wanted, int) and wanted > longest > 0:
        yield Finding(
            "n-max-clamped",
            Severity.WARNING,
            f"n_max {wanted} is more than the {longest} tokens that {named(draft.path)} can draft"
            " at a time: the server uses those",
            fixes=(Fix(f"set n_max to {longest}", (("speculation.n_max", longest),)),),
        )
    strict = plan.setting("p_min")
    unsure = draft.kind is ModelKind.DSPARK and not draft.confidence
    if unsure and isinstance(strict, int | float) and strict > 0:
        yield Finding(
            "cutoff-unsupported",
            Severity.BLOCKER,
            f"p_min is {strict:g}, and {named(draft.path)} does not tell how sure it is",
            fixes=(Fix("set p_min to 0", (("speculation.p_min", 0.0),)),),
        )


def _mtp(facts: Facts, plan: Plan, target: ModelFacts) -> Iterator[Finding]:
    if "draft-mtp" in plan.types and not plan.draft and not target.mtp_layers:
        yield Finding(
            "mtp-missing",
            Severity.BLOCKER,
            f"draft-mtp needs MTP layers, and {named(target.path)} has none",
            "get a GGUF that was converted with its MTP layers, or an MTP sidecar as models.draft",
            (*draft_fixes(facts), from_text(plan), TURN_OFF),
        )


def _sizes(plan: Plan, target: ModelFacts, draft: ModelFacts | None) -> Iterator[Finding]:
    if 0 < target.parameters <= SMALL_TARGET:
        yield Finding(
            "target-small",
            Severity.HINT,
            f"a target of {_count(target.parameters)} parameters gains little: it is so quick that"
            " drafting costs nearly as much",
            "measure before you trust it",
        )
    if draft is None or "draft-simple" not in plan.types or not draft.parameters:
        return
    ratio, (low, high) = target.parameters / draft.parameters, GOOD_RATIO
    if not low <= ratio <= high:
        name, size = named(draft.path), f"1:{ratio:.1f}" if ratio < 10 else f"1:{ratio:.0f}"
        much = (
            "large: each draft costs much" if ratio < low else "small: fewer drafts may be accepted"
        )
        yield Finding(
            "size-ratio",
            Severity.HINT,
            f"{name} is rather {much} ({size} of the target; {low:.0f} to {high:.0f} times smaller"
            " is usual)",
            "measure it against another one",
        )


def _count(parameters: int) -> str:
    if parameters < 1e9:
        return f"{parameters / 1e6:.3g} million"
    return f"{parameters / 1e9:.1f} billion"


def _pair(facts: Facts, plan: Plan) -> Iterator[Finding]:
    """Yield why the draft cannot draft for this target; kinds were looked at before."""
    pair = facts.pair
    if pair is None or not pair.why_not or pair.facts.missing:
        return
    if not pair.type or (facts.target and facts.target.model and why_no_target(facts.target.model)):
        return
    other = "made for another target" in pair.why_not
    yield Finding(
        "draft-wrong-kind" if other else "vocab-mismatch",
        Severity.BLOCKER if plan.drafts_with_model else Severity.HINT,
        f"{named(pair.facts.path)} cannot draft for this target: {clean(pair.why_not, limit=300)}",
        "take a draft of the same family",
        (*draft_fixes(facts), from_text(plan)),
    )


def _placing(facts: Facts, plan: Plan) -> Iterator[Finding]:
    """Yield models that would run beside the GPU instead of on it."""
    devices = usable_devices(facts)
    mine = facts.engine.devices if facts.engine else None
    if facts.machine.devices and mine == () and not plan.is_embedded:
        yield Finding(
            "engine-without-gpu",
            Severity.WARNING,
            f"this llama-server sees no GPU, and the machine has"
            f" {clean(facts.machine.devices[0].what, limit=60)}",
            f"{clean(facts.machine.hidden, limit=80)} may hide it"
            if facts.machine.hidden
            else "use a build for it (CUDA, ROCm, Vulkan or Metal)",
        )
    if not devices:
        return
    off, draft_off = _kept_off(plan, ""), _kept_off(plan, "draft_")
    if off:
        yield Finding(
            "gpu-unused",
            Severity.HINT,
            "there is a GPU, and no layer of the target goes to it",
            fixes=(Fix("let llama-server use the GPU", changes_of(plan, off)),),
        )
    elif draft_off and plan.drafts_with_model and plan.draft:
        yield Finding(
            "draft-on-cpu",
            Severity.WARNING,
            "the target runs on the GPU and the draft does not: each draft waits for the processor",
            fixes=(Fix("put the draft on the GPU too", changes_of(plan, draft_off)),),
        )


def _kept_off(plan: Plan, prefix: str) -> dict[str, object]:
    """Return the options that keep a model off the GPU, and what they should be."""
    off = (("gpu_layers", "0", "auto"), ("device", "none", None))
    return {
        prefix + name: better for name, worst, better in off if plan.text(prefix + name) == worst
    }


def usable_devices(facts: Facts) -> tuple[str, ...]:
    """Return the names of the GPUs that the engine can use, as far as that is known."""
    if facts.engine is None or facts.engine.kind == "embedded":
        return ()
    devices = facts.engine.devices
    if devices is None and re.search(r"=(-1)?$", facts.machine.hidden):
        return ()  # a variable that names none hides all
    return tuple(d.name for d in (facts.machine.devices if devices is None else devices))
