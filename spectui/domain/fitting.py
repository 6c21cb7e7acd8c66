"""Preflight: does what a launch wants fit into what is free, and what would make it fit."""

from __future__ import annotations

from dataclasses import dataclass, replace

from spectui.domain.checks_arguments import change, changes_of
from spectui.domain.checks_models import usable_devices
from spectui.domain.facts import Device, Facts
from spectui.domain.findings import Finding, Fix, Severity
from spectui.domain.memory import (
    HEADROOM,
    Estimate,
    Use,
    estimate,
    gib,
    largest_context,
)
from spectui.domain.models import ModelFacts
from spectui.domain.plan import Plan

_SLOTS = 4  # llama-server's own number where nobody sets one


@dataclass(frozen=True, slots=True)
class Fit:
    """How an estimate compares with what is free.

    ``free`` in bytes, on all GPUs together or in RAM; None where it is not told. ``room`` is what
    may be used of it: head-room is kept on each device. ``fits`` None: not known.
    """

    estimate: Estimate
    on_gpu: bool
    free: int | None
    room: int | None
    fits: bool | None
    why: str
    findings: tuple[Finding, ...] = ()


def look_at_memory(facts: Facts) -> Fit | None:
    """Return how the plan's memory compares with what is free; None without a target's header."""
    plan, target = facts.plan, facts.target.model if facts.target else None
    if plan is None or target is None:
        return None
    devices = _devices(facts)
    asked = plan.number("context") or target.context or 4096
    found = _estimated(facts, plan, target, asked, on_gpu=bool(devices))
    if found.gpu:
        return _on_gpu(facts, plan, target, found, devices)
    return _in_memory(facts, plan, found)


def _devices(facts: Facts) -> tuple[Device, ...]:
    """Return the GPUs that the launch may use: the ones named by -dev, or all."""
    names = usable_devices(facts)
    mine = facts.engine.devices if facts.engine else None
    every = [d for d in (facts.machine.devices if mine is None else mine) if d.name in names]
    wanted = facts.plan.text("device").split(",") if facts.plan else []
    chosen = [device for device in every if device.name in wanted]
    return tuple(chosen or every)


def _estimated(
    facts: Facts, plan: Plan, target: ModelFacts, context: int, *, on_gpu: bool
) -> Estimate:
    slots = plan.number("parallel")
    use = Use(
        context=context,
        slots=slots or _SLOTS,
        unified=slots is None or plan.is_on("unified"),
        kv_k=plan.text("kv_k") or "f16",
        kv_v=plan.text("kv_v") or "f16",
        layers=_layers(plan.text("gpu_layers"), plan.text("device"), on_gpu=on_gpu),
        kv_host=plan.is_on("kv_host"),
        batch=plan.number("batch") or 512,
        full_window=plan.is_on("full_window"),
    )
    draft = facts.draft.model if facts.draft and plan.drafts_with_model else None
    draft_device = plan.text("draft_device") or plan.text("device")
    draft_use = replace(
        use,
        kv_k=plan.text("draft_kv_k") or "f16",
        kv_v=plan.text("draft_kv_v") or "f16",
        layers=_layers(plan.text("draft_gpu_layers"), draft_device, on_gpu=on_gpu),
    )
    length = plan.setting("n_max")
    found = estimate(
        target,
        use,
        draft,
        draft_use,
        mtp="draft-mtp" in plan.types and bool(target.mtp_layers),
        draft_length=length if isinstance(length, int) and plan.drafts_with_model else 0,
        projector=facts.projector.model.size if facts.projector and facts.projector.model else 0,
    )
    moved = [
        name
        for name in ("experts_host", "some_experts_host", "tensors_elsewhere")
        if plan.text(name)
    ]
    if moved:
        found = replace(found, unknown=(*found.unknown, "which weights are kept in RAM"))
    return found


def _layers(text: str, device: str, *, on_gpu: bool) -> int | None:
    if not on_gpu or device.lower() == "none":
        return 0
    return int(text) if text.isdecimal() else None


def _on_gpu(
    facts: Facts,
    plan: Plan,
    target: ModelFacts,
    found: Estimate,
    devices: tuple[Device, ...],
) -> Fit:
    told = [device.free for device in devices if device.free is not None]
    if not told:
        why = f"{gib(found.gpu)} are wanted, and the driver does not tell what is free"
        return Fit(found, on_gpu=True, free=None, room=None, fits=None, why=why)
    free = sum(told)
    room = free - HEADROOM * len(told)
    many = f" on {len(told)} GPUs" if len(told) > 1 else ""
    sums = f"about {gib(found.gpu)} of {gib(free)} free{many}"
    if found.gpu > room:
        fit = Fit(found, on_gpu=True, free=free, room=room, fits=False, why="")
        return _too_large(facts, plan, target, fit, sums)
    if not found.whole:
        why = f"{sums}, but some layers stay in RAM, where they are slow"
        return Fit(found, on_gpu=True, free=free, room=room, fits=False, why=why)
    if found.unknown:
        why = f"{sums}, not counting {' and '.join(found.unknown)}"
        return Fit(found, on_gpu=True, free=free, room=room, fits=None, why=why)
    return Fit(found, on_gpu=True, free=free, room=room, fits=True, why=sums)


def _in_memory(facts: Facts, plan: Plan, found: Estimate) -> Fit:
    """Compare with RAM. Weights are mapped: without room for them they are read again and again."""
    free = facts.machine.memory_free
    room = free - HEADROOM
    why = "no layer goes to the GPU" if _devices(facts) else "there is no GPU it could use"
    sums = f"about {gib(found.host)} of {gib(free)} free RAM"
    if not free:
        told = f"{why}; {gib(found.host)} are wanted, and what is free is not known"
        return Fit(found, on_gpu=False, free=None, room=None, fits=None, why=told)
    if found.host <= room:
        missing = f", not counting {' and '.join(found.unknown)}" if found.unknown else ""
        fits = None if found.unknown else True
        told = f"{why}; {sums}{missing}"
        return Fit(found, on_gpu=False, free=free, room=room, fits=fits, why=told)
    weights = sum(part.host for part in found.parts if part.name.endswith("weights"))
    fatal = found.host - weights > free
    does = (
        "the launch will probably fail, or be killed by the system"
        if fatal
        else "weights will be read from disk again and again"
    )
    finding = Finding(
        "out-of-memory-host",
        Severity.BLOCKER if fatal else Severity.WARNING,
        f"it will not fit in memory, by an estimate: {sums}, {gib(HEADROOM)} kept free: {does}",
        "a smaller quantisation or draft, or close what else uses the memory",
        _smaller_context(facts, plan, found, room),
    )
    told = f"{why}; {sums}: {does}"
    fit = Fit(found, on_gpu=False, free=free, room=room, fits=False, why=told)
    return replace(fit, findings=(finding,))


def _smaller_context(facts: Facts, plan: Plan, found: Estimate, room: int) -> tuple[Fix, ...]:
    target = facts.target.model if facts.target else None
    if target is None:
        return ()

    def fits(context: int) -> bool:
        return _estimated(facts, plan, target, context, on_gpu=False).host <= room

    fitting = largest_context(fits, found.context)
    if not fitting or fitting >= found.context:
        return ()
    return (Fix(f"a context of {fitting}", change(plan, "context", fitting)),)


def _too_large(facts: Facts, plan: Plan, target: ModelFacts, fit: Fit, sums: str) -> Fit:
    """Say what llama-server will do about it by itself, and what would make it fit."""
    room = fit.room or 0

    def fits(context: int) -> bool:
        return _estimated(facts, plan, target, context, on_gpu=True).gpu <= room

    fitting = largest_context(fits, fit.estimate.context)
    set_layers = plan.text("gpu_layers").isdecimal() or plan.text("gpu_layers") == "all"
    adapts = not set_layers and plan.text("fit").lower() not in {"off", "0", "false", "disabled"}
    if adapts and not plan.text("context") and fitting and fitting >= 4096:
        why = f"{sums} at its full context of {fit.estimate.context}: llama-server will take about"
        return replace(fit, fits=True, why=f"{why} {fitting} instead")
    does = (
        "llama-server will keep some layers in RAM, where they are slow"
        if adapts
        else "the launch may fail for want of GPU memory"
    )
    finding = Finding(
        "out-of-memory-gpu",
        Severity.WARNING if adapts else Severity.BLOCKER,
        f"it will not fit on the GPU, by an estimate: {sums}, {gib(HEADROOM)} kept free: {does}",
        "a smaller quantisation, context or draft; or close what else uses the GPU",
        _fixes(facts, plan, target, fitting, room),
    )
    return replace(fit, why=f"{sums}: {does}", findings=(finding,))


def _fixes(
    facts: Facts, plan: Plan, target: ModelFacts, fitting: int | None, room: int
) -> tuple[Fix, ...]:
    fixes: list[Fix] = []
    asked = plan.number("context") or target.context or 0
    if fitting and fitting < asked:
        fixes.append(Fix(f"a context of {fitting}", change(plan, "context", fitting)))
    smaller = {"kv_k": "q8_0", "kv_v": "q8_0"}
    if all(plan.text(name) in {"", "f16"} for name in smaller):
        tried = plan.with_value("kv_k", "q8_0").with_value("kv_v", "q8_0")
        if _estimated(facts, tried, target, asked or 4096, on_gpu=True).gpu <= room:
            fixes.append(Fix("a KV cache of q8_0", changes_of(plan, smaller)))
    layers = _fewer_layers(facts, plan, target, room)
    if layers is not None:
        fixes.append(Fix(f"{layers} layers on the GPU", change(plan, "gpu_layers", layers)))
    return tuple(fixes)


def _fewer_layers(facts: Facts, plan: Plan, target: ModelFacts, room: int) -> int | None:
    context = plan.number("context") or target.context or 4096
    for layers in range(target.layers or 0, 0, -1):
        fewer = plan.with_value("gpu_layers", str(layers))
        if _estimated(facts, fewer, target, context, on_gpu=True).gpu <= room:
            return layers
    return None
