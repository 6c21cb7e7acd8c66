"""Preflight: the engine, the port, the disks, and what changes flags behind one's back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from spectui.domain.facts import ConfigFile, Facts
from spectui.domain.findings import Finding, Fix, Severity
from spectui.domain.flags import OLD_ENV, Fate, by_env
from spectui.domain.plan import Outside, Plan
from spectui.domain.profile import KV_TYPES
from spectui.domain.text import clean

_LEAST = 50 << 20
"""Bytes below which a log may not find room any more."""
_FEW = 1 << 30


def machine_checks(facts: Facts) -> Iterator[Finding]:
    """Yield what is wrong around the profile; without one, what is wrong on this machine."""
    yield from _engine(facts)
    if facts.port is not None:
        fix = Fix("use a free port", (("server.port", None),))
        yield Finding(facts.port.code, Severity.BLOCKER, facts.port.what, facts.port.fix, (fix,))
    if facts.workload is not None:
        fix = Fix(
            "use the built-in prompts", (("workload.prompts", None), ("workload.tasks", None))
        )
        yield Finding(
            facts.workload.code, Severity.BLOCKER, facts.workload.what, facts.workload.fix, (fix,)
        )
    yield from _state(facts)
    if facts.plan is None or not facts.plan.is_embedded:
        for file in facts.config_files:
            yield from _config_file(file, facts.plan)
        yield from _variables(facts.variables, facts.plan)
    if facts.machine.sudo:
        yield Finding(
            "sudo",
            Severity.HINT,
            f"running as root for {clean(facts.machine.sudo, limit=40)}: records and logs will"
            " belong to root",
            "run spectui without sudo",
        )


def _engine(facts: Facts) -> Iterator[Finding]:
    if facts.plan is None:
        if facts.engines and all(engine.problem for engine in facts.engines):
            yield Finding(
                "program-missing",
                Severity.BLOCKER,
                "there is no engine: neither the embedded one nor a llama-server in PATH",
                next((e.problem.fix for e in facts.engines if e.problem and e.problem.fix), ""),
            )
        return
    problem = facts.engine.problem if facts.engine else None
    if problem is not None:
        fixes = tuple(
            Fix(
                f"use {'the embedded engine' if e.kind == 'embedded' else 'llama-server in PATH'}",
                (("server.engine", "embedded" if e.kind == "embedded" else "llama-server"),),
            )
            for e in facts.engines
            if e.problem is None
        )
        yield Finding(problem.code, Severity.BLOCKER, problem.what, problem.fix, fixes)


def _state(facts: Facts) -> Iterator[Finding]:
    place = facts.state
    shown = clean(place.path, limit=200)
    if place.problem:
        yield Finding(
            "state-unwritable",
            Severity.WARNING,
            clean(place.problem, limit=300),
            "make the folder writable, or set XDG_STATE_HOME",
        )
    if place.free is None or place.free >= _FEW:
        return
    full = place.free < _LEAST
    yield Finding(
        "disk-full",
        Severity.BLOCKER if full else Severity.WARNING,
        f"the disk of {shown} has {place.free >> 20} MiB left for logs and records",
        "free some room",
    )


def _config_file(file: ConfigFile, plan: Plan | None) -> Iterator[Finding]:
    shown = clean(file.path, limit=200)
    if file.problem:
        yield Finding(
            "config-file-invalid",
            Severity.BLOCKER,
            f"{shown} {clean(file.problem, limit=200)}, and llama-server stops at it",
            "repair it, or move it away",
        )
        return
    gone = [entry for entry in file.entries if entry.replacement]
    for entry in gone:
        yield Finding(
            "argument-removed",
            Severity.BLOCKER,
            f"{shown} sets {entry.key}, which was removed: llama-server refuses to start with it",
            f"take it out there, and set {entry.replacement} instead",
        )
    acting = [e for e in file.entries if e not in gone and not _overruled(e, plan)]
    if acting:
        yield Finding(
            "config-file",
            Severity.WARNING if any(_matters(entry) for entry in acting) else Severity.HINT,
            f"{shown} sets {_listed(acting)} for every llama-server",
            "what the profile does not set comes from there: set it here, or move the file away",
            _own(acting, plan),
        )


def _variables(variables: Iterable[Outside], plan: Plan | None) -> Iterator[Finding]:
    kept = [v for v in variables if not v.passed_on]
    old = [v for v in variables if v.passed_on and not _is_read(v.key)]
    acting = [v for v in variables if v.passed_on and v not in old and not _overruled(v, plan)]
    if acting:
        yield Finding(
            "environment",
            Severity.WARNING if any(_matters(variable) for variable in acting) else Severity.HINT,
            f"{_listed(acting)} in the environment will change the server's flags",
            f"unset {' '.join(clean(v.key, limit=60) for v in acting)}, or set it in the profile",
            _own(acting, plan),
        )
    gone = [v.key for v in kept if v.replacement]
    if gone:
        yield Finding(
            "environment-removed",
            Severity.HINT,
            f"{', '.join(gone)} is set: llama-server by itself refuses to start with it; spectui"
            " does not pass it on",
            f"unset {' '.join(gone)}",
        )
    ignored = [clean(v.key, limit=60) for v in kept if not v.replacement]
    if ignored:
        yield Finding(
            "environment-ignored",
            Severity.HINT,
            f"{', '.join(ignored)} in the environment is not passed on: what is measured is what"
            " the profile says",
        )
    if old:
        yield Finding(
            "environment-unread",
            Severity.HINT,
            f"today's llama-server reads no {', '.join(clean(v.key, limit=60) for v in old)}",
            "unset it, or look for a slip in its name",
        )


def _own(acting: Iterable[Outside], plan: Plan | None) -> tuple[Fix, ...]:
    """Return the fix that writes into the profile what is set outside, where all of it can be."""
    changes: list[tuple[str, object]] = []
    for item in acting:
        option = item.option
        if option is None or not option.key or not item.value:
            return ()
        value: object = int(item.value) if item.value.isdecimal() else item.value
        whole = option.name in {"context", "parallel"}
        if (whole and not (isinstance(value, int) and value > 0)) or (
            option.name.endswith(("kv_k", "kv_v")) and value not in KV_TYPES
        ):
            return ()
        changes.append((option.key, value))
    return (Fix("write it into the profile", tuple(changes)),) if plan and changes else ()


def _is_read(name: str) -> bool:
    """Return whether today's llama-server reads a variable."""
    found = by_env(name)
    return found is not None and found[0].fate is Fate.TODAY and name not in OLD_ENV


def _overruled(item: Outside, plan: Plan | None) -> bool:
    """Return whether the profile sets the same option, and so has the last word."""
    option = item.option
    if option is None or plan is None:
        return False
    value = plan.values.get(option.name)
    return value is not None and value.source in {"server.args", option.key}


def _matters(item: Outside) -> bool:
    """Return whether it changes what is measured, or whether the server can be talked to."""
    name = item.key.lower().replace("_", "-").removeprefix("llama-arg-")
    return item.option is not None or name.startswith(
        ("spec", "draft", "model", "hf", "host", "port", "api", "thread", "batch", "lora", "temp")
    )


def _listed(items: Iterable[Outside]) -> str:
    shown = [
        f"{clean(item.key, limit=60)}={clean(item.value, limit=40)}"
        if item.option is not None
        else clean(item.key, limit=60)
        for item in items
    ]
    more = f" and {len(shown) - 6} more" if len(shown) > 6 else ""
    return ", ".join(shown[:6]) + more
