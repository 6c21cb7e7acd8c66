"""Preflight: the arguments that a profile passes on as they are, and what it says in two ways."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from types import MappingProxyType

from spectui.domain.dialect import Dialect
from spectui.domain.facts import Facts
from spectui.domain.findings import Finding, Fix, Severity
from spectui.domain.flags import FLAGS, OPTIONAL_VALUES, Fate, find, normal
from spectui.domain.memory import KV_BLOCKS
from spectui.domain.plan import OPTIONS, REMOVED, Plan, words
from spectui.domain.profile import OWNED_FLAGS
from spectui.domain.speculation import KNOBS, TYPES, canonical_type
from spectui.domain.text import clean


def change(plan: Plan, name: str, value: object) -> tuple[tuple[str, object], ...]:
    """Return the changes that give the option ``name`` a value, also where args set it now."""
    return changes_of(plan, {name: value})


def changes_of(plan: Plan, values: Mapping[str, object]) -> tuple[tuple[str, object], ...]:
    """Return the changes that give several options their values, by name."""
    options = [option for option in OPTIONS if option.name in values]
    set_them = tuple((option.key, values[option.name]) for option in options if option.key)
    kept: list[str] = []
    skip = False
    for arg in plan.args:
        hit = None if skip else next((o for _, o in words((arg,)) if o in options), None)
        if not skip and hit is None:
            kept.append(arg)
        skip = hit is not None and not hit.switch
    return set_them if len(kept) == len(plan.args) else (("server.args", kept or None), *set_them)


def argument_checks(facts: Facts, plan: Plan) -> Iterator[Finding]:
    """Yield what is wrong with server.args, and with the types of the KV caches."""
    yield from _twice(plan)
    yield from _arguments(facts, plan)
    yield from _cache_types(facts, plan)


def _twice(plan: Plan) -> Iterator[Finding]:
    for flag, option in words(plan.args):
        value = plan.values.get(option.name)
        if value is not None and value.source == option.key != "":
            yield Finding(
                "set-twice",
                Severity.BLOCKER,
                f"{flag} in server.args and {option.key} set the same thing",
                "keep one of them",
                (
                    Fix(f"keep {option.key}", change(plan, option.name, _typed(value.text))),
                    Fix(f"keep {flag}", ((option.key, None),)),
                ),
            )


def _typed(text: str) -> object:
    return int(text) if text.isdecimal() else text


def _arguments(facts: Facts, plan: Plan) -> Iterator[Finding]:
    """Yield arguments that this server does not know, refuses, or gets from elsewhere."""
    dialect = facts.engine.dialect if facts.engine else None
    values = 0  # words that the flag before takes, whatever they look like
    for index, arg in enumerate(plan.args):
        if values:
            values -= 1
            continue
        values = _arity(arg)
        yield from _swallows(plan, index, dialect)
        flag = normal(arg.partition("=")[0])
        known = find(flag)
        fate = known[0].fate if known else None
        taken = flag in dialect.flags if dialect else fate not in {None, Fate.REFUSED, Fate.GONE}
        if flag in OWNED_FLAGS:
            yield _owned(plan, index, flag)
        elif taken or not flag.startswith("-"):
            continue
        elif fate in {Fate.REFUSED, Fate.GONE} or (dialect and flag in dialect.removed):
            yield _gone(plan, index, flag, dialect)
        elif flag.startswith("--"):  # a word with one dash may be a value: -1
            yield _unknown(plan, index, dialect.flags if dialect else (f.name for f in FLAGS))


def _unknown(plan: Plan, index: int, flags: Iterable[str]) -> Finding:
    """Return the finding about a flag that nobody knows; only an obvious slip is mended."""
    allowed = [name for name in flags if name.startswith("--") and name not in OWNED_FLAGS]
    close = get_close_matches(normal(plan.args[index]), allowed, n=1, cutoff=0.8)
    said = (
        Fix(f"say {name}", (("server.args", [*plan.args[:index], name, *plan.args[index + 1 :]]),))
        for name in close
    )
    return Finding(
        "argument-unknown",
        Severity.BLOCKER,
        f"this llama-server does not know {clean(plan.args[index], limit=80)}",
        "" if close else "look it up in llama-server --help",
        (*said, _take_out(plan, index)),
    )


def _arity(word: str) -> int:
    """Return how many words after an argument are its values."""
    known = find(word)
    return known[0].arity if known is not None and known[1] else 0


def _swallows(plan: Plan, index: int, dialect: Dialect | None) -> Iterator[Finding]:
    """Yield a flag that stands without its value, and takes the next flag for it."""
    known = find(plan.args[index])
    missing = plan.args[index + 1 : index + 2]
    if known is None or not _arity(plan.args[index]) or (missing and find(missing[0]) is None):
        return
    flag, shown = known[0].name, clean(plan.args[index], limit=60)
    if flag in OPTIONAL_VALUES and dialect is not None and dialect.name != "today's flags":
        return  # a switch in its time
    taken = f" and takes {missing[0]} for it" if missing else ""
    usual, _ = OPTIONAL_VALUES.get(flag, ("", ()))
    rest = plan.args[index + 1 :]
    given = [*plan.args[: index + 1], usual, *rest]
    without = [*plan.args[:index], *rest]
    yield Finding(
        "argument-invalid",
        Severity.BLOCKER,
        f"{shown} in server.args needs a value{taken}",
        "",
        (
            *([Fix(f"say {shown} {usual}", (("server.args", given),))] if usual else []),
            Fix(f"take {shown} out", (("server.args", without or None),)),
        ),
    )


def _cut(args: tuple[str, ...], index: int) -> tuple[list[str], str]:
    """Return ``args`` without the flag at ``index`` and what follows it as its value, and that."""
    word, equals, value = args[index].partition("=")
    following = list(args[index + 1 :])
    if equals:
        return [*args[:index], *following], value
    count = _arity(word)
    if find(word) is None:  # its value, as far as it looks like one
        count = int(bool(following) and not re.match(r"--?[A-Za-z]", following[0]))
    return [*args[:index], *following[count:]], " ".join(following[:count])


def _take_out(plan: Plan, index: int) -> Fix:
    rest, _ = _cut(plan.args, index)
    return Fix(f"take {clean(plan.args[index], limit=60)} out", (("server.args", rest or None),))


def _move(plan: Plan, index: int, key: str) -> tuple[Fix, ...]:
    """Return the fix that gives ``key`` the value of an argument; nothing where that is no value.

    Files are left to the person: an argument's path begins at another folder than a profile's.
    """
    rest, text = _cut(plan.args, index)
    value: object = canonical_type(text)
    knob = KNOBS.get(key.removeprefix("speculation."))
    if knob is not None:
        value = _number(text)
        good = not knob.check(value)
    elif key == "server.port":
        value = _number(text)
        good = isinstance(value, int) and 0 < value < 65536
    else:
        good = key == "speculation.type" and all(name in TYPES for name in str(value).split(","))
    if not good:
        return ()
    args = ("server.args", rest or None)
    return (Fix(f"set {key} to {value} instead", (args, (key, value))),)


def _number(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def _owned(plan: Plan, index: int, flag: str) -> Finding:
    key = OWNED_FLAGS[flag]
    return Finding(
        "argument-owned",
        Severity.BLOCKER,
        f"{flag} is not for server.args: {key or 'spectui'} sets it",
        f"set {key} instead" if key else "spectui could not talk to the server, or read it",
        (*_move(plan, index, key), _take_out(plan, index)),
    )


_INSTEAD: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "--no-mmap": ("--load-mode", "none"),
        "--mmap": ("--load-mode", "mmap"),
        "--mlock": ("--load-mode", "mlock"),
    }
)


def _gone(plan: Plan, index: int, flag: str, dialect: Dialect | None) -> Finding:
    """Return the finding about a flag that was removed, with what stands for it today."""
    key, instead = REMOVED.get(flag, ""), _INSTEAD.get(flag)
    fixes = _move(plan, index, key)
    if instead is not None and (dialect is None or instead[0] in dialect.flags):
        args = [*plan.args[:index], *instead, *plan.args[index + 1 :]]
        fixes = (Fix(f"say {' '.join(instead)}", (("server.args", args),)),)
    return Finding(
        "argument-removed",
        Severity.BLOCKER,
        f"{flag} in server.args was removed from llama-server, which refuses to start with it",
        f"set {key} instead" if key else "",
        (*fixes, _take_out(plan, index)),
    )


def _cache_types(facts: Facts, plan: Plan) -> Iterator[Finding]:
    dialect = facts.engine.dialect if facts.engine else None
    for name in ("kv_k", "kv_v", "draft_kv_k", "draft_kv_v"):
        kind = plan.text(name)
        if kind and kind not in KV_BLOCKS and (dialect is None or "ik_" not in dialect.name):
            yield Finding(
                "cache-type-invalid",
                Severity.BLOCKER,
                f"{clean(kind, limit=40)} ({plan.values[name].source}) is no type of KV cache that"
                " llama-server has",
                f"it has {', '.join(KV_BLOCKS)}",
                (Fix("use q8_0", change(plan, name, "q8_0")),),
            )
    values = plan.text("kv_v")
    quantised = values in KV_BLOCKS and KV_BLOCKS[values][0] > 1
    if quantised and plan.text("flash").lower() in {"off", "0", "false", "disabled"}:
        yield Finding(
            "cache-type-invalid",
            Severity.BLOCKER,
            f"a V cache of {values} needs flash attention, which is turned off",
            fixes=(Fix("leave flash attention on", change(plan, "flash", None)),),
        )
