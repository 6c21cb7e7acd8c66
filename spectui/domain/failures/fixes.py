"""From a Diagnosis to changes of a profile, with the profile's own tables in hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from spectui.domain.failures.diagnosis import Diagnosis
from spectui.domain.failures.kinds import Remedy
from spectui.domain.findings import Fix
from spectui.domain.speculation import OFF, TYPES, Draft

Table = Mapping[str, object]
_Changes = tuple[tuple[str, object], ...]

_SMALLEST_CONTEXT = 512  # tokens; below that no answer fits
_USUAL_CONTEXT = 4096

_SUCCESSORS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "--no-mmap": ("--load-mode", "none"),
        "--mmap": ("--load-mode", "mmap"),
        "--mlock": ("--load-mode", "mlock"),
        "-cd": (),
        "--ctx-size-draft": (),
    }
)
"""A flag that is gone → what stands for it today; nothing where there is no successor."""

_OLD_TYPES: Mapping[str, str] = MappingProxyType(
    {
        "draft": "draft-simple",
        "mtp": "draft-mtp",
        "eagle3": "draft-eagle3",
        "dflash": "draft-dflash",
        "dspark": "draft-dspark",
    }
)


def fixes_for(diagnosis: Diagnosis, profile: Table) -> tuple[Fix, ...]:
    """Return the ways out that a key can apply to ``profile`` (its TOML's tables), best first.

    A way that would change nothing is left out.
    """
    facts = dict(diagnosis.facts)
    return tuple(
        fix
        for remedy in diagnosis.fixes
        for fix in _MAKERS[remedy](facts, profile)
        if any(_get(profile, key) != value for key, value in fix.changes)
    )


def _get(profile: Table, path: str) -> object:
    table: object = profile
    for key in path.split("."):
        if not isinstance(table, Mapping):
            return None
        table = table.get(key)
    return table


def _args(profile: Table) -> list[str]:
    args = _get(profile, "server.args")
    return [str(word) for word in args] if isinstance(args, list | tuple) else []


def _port(_facts: Mapping[str, str], _profile: Table) -> Iterator[Fix]:
    yield Fix("use a free port", (("server.port", None),))


def _context(facts: Mapping[str, str], profile: Table) -> Iterator[Fix]:
    set_now = _get(profile, "server.context")
    tried = set_now if isinstance(set_now, int) and set_now > 0 else int(facts.get("context", 0))
    trained = int(facts.get("trained", 0))
    if trained and tried > trained:
        smaller = trained
    elif tried:
        smaller = 1 << max(0, (tried // 2).bit_length() - 1)
    else:
        smaller = _USUAL_CONTEXT
    if smaller >= _SMALLEST_CONTEXT and (not tried or smaller < tried):
        yield Fix(f"context of {smaller} tokens", (("server.context", smaller),))


def _layers(facts: Mapping[str, str], profile: Table) -> Iterator[Fix]:
    wanted = str(_get(profile, "server.gpu_layers") or "")
    on_gpu = int(facts.get("layers", 0)) or (int(wanted) if wanted.isdecimal() else 0)
    if wanted not in {"", "auto"}:
        yield Fix("let the server fit the layers", (("server.gpu_layers", None),))
    if 0 < on_gpu < 1000:
        fewer = str(on_gpu * 3 // 4)
        yield Fix(f"{fewer} layers on the GPU", (("server.gpu_layers", fewer),))


def _draft_on_cpu(_facts: Mapping[str, str], profile: Table) -> Iterator[Fix]:
    if _get(profile, "models.draft"):
        yield Fix("draft model on the CPU", (("draft.gpu_layers", "0"),))


def _small_cache(_facts: Mapping[str, str], profile: Table) -> Iterator[Fix]:
    changes: _Changes = (("server.kv_k", "q8_0"), ("server.kv_v", "q8_0"))
    if not any(_get(profile, key) for key, _ in changes):
        yield Fix("KV cache in q8_0", changes)


def _plain_cache(_facts: Mapping[str, str], profile: Table) -> Iterator[Fix]:
    keys = ("server.kv_k", "server.kv_v", "draft.kv_k", "draft.kv_v")
    changes = tuple((key, None) for key in keys if _get(profile, key) is not None)
    if changes:
        yield Fix("KV cache as the server has it", changes)


def _without_flag(args: list[str], flag: str, instead: tuple[str, ...]) -> list[str] | None:
    """Return ``args`` with ``flag`` and its value replaced; None where it does not stand there."""
    at = next((i for i, word in enumerate(args) if word.partition("=")[0] == flag), None)
    if at is None:
        return None
    end = at + 1
    if "=" not in args[at] and end < len(args) and not _is_flag(args[end]):
        end += 1
    return [*args[:at], *instead, *args[end:]]


def _is_flag(word: str) -> bool:
    return word.startswith("-") and not word[1:2].isdigit()


def _translated(facts: Mapping[str, str], profile: Table) -> Iterator[Fix]:
    flag, args = facts.get("flag", ""), _args(profile)
    if _SUCCESSORS.get(flag):
        instead = _SUCCESSORS[flag]
    else:
        first = facts.get("successor", "").split(" ")[0]
        at = next((i for i, word in enumerate(args) if word.partition("=")[0] == flag), None)
        if not first.startswith("--") or "*" in first or at is None:
            return
        _, equals, value = args[at].partition("=")
        following = args[at + 1 : at + 2]
        if not equals:
            value = following[0] if following and not _is_flag(following[0]) else ""
        instead = (first, value) if value else (first,)
    changed = _without_flag(args, flag, instead)
    if changed is not None:
        yield Fix(f"write {' '.join(instead)}", (("server.args", changed),))


def _removed(facts: Mapping[str, str], profile: Table) -> Iterator[Fix]:
    flag = facts.get("flag", "")
    changed = _without_flag(_args(profile), flag, ())
    if changed is not None:
        yield Fix(f"leave {flag} out", (("server.args", changed or None),))


def _off(_facts: Mapping[str, str], _profile: Table) -> Iterator[Fix]:
    yield Fix("run without speculation", (("speculation.type", OFF),))


def _type(facts: Mapping[str, str], profile: Table) -> Iterator[Fix]:
    """Use what the draft model at hand is good for, or today's name of an old type.

    A draft that was made for one target is good for no other type.
    """
    reason = facts.get("reason", "")
    old = reason.rpartition("unknown speculative type: ")[2].strip() if reason else ""
    if old in _OLD_TYPES:
        yield Fix(f"use {_OLD_TYPES[old]}", (("speculation.type", _OLD_TYPES[old]),))
    elif not reason and _get(profile, "models.draft") and not facts.get("draft_kind"):
        yield Fix("use draft-simple", (("speculation.type", "draft-simple"),))


def _from_text(_facts: Mapping[str, str], profile: Table) -> Iterator[Fix]:
    used = str(_get(profile, "speculation.type") or "")
    kinds = [TYPES[kind] for kind in used.split(",") if kind in TYPES]
    if not kinds or any(kind.draft is not Draft.NONE for kind in kinds):
        yield Fix("draft from the text (ngram-mod)", (("speculation.type", "ngram-mod"),))


def _default_length(_facts: Mapping[str, str], _profile: Table) -> Iterator[Fix]:
    yield Fix("draft length as the server has it", (("speculation.n_max", None),))


def _no_cutoff(_facts: Mapping[str, str], _profile: Table) -> Iterator[Fix]:
    yield Fix("no cutoff (p_min 0)", (("speculation.p_min", 0.0),))


def _no_synthetic(_facts: Mapping[str, str], profile: Table) -> Iterator[Fix]:
    for flag in ("--spec-synth-rates", "--spec-synth-len"):
        yield from _removed({"flag": flag}, profile)


def _no_projector(_facts: Mapping[str, str], profile: Table) -> Iterator[Fix]:
    for flag in ("--mmproj", "-mm"):
        yield from _removed({"flag": flag}, profile)


_MAKERS: Mapping[Remedy, Callable[[Mapping[str, str], Table], Iterator[Fix]]] = MappingProxyType(
    {
        Remedy.ANOTHER_PORT: _port,
        Remedy.SMALLER_CONTEXT: _context,
        Remedy.FEWER_LAYERS: _layers,
        Remedy.DRAFT_ON_CPU: _draft_on_cpu,
        Remedy.SMALLER_CACHE: _small_cache,
        Remedy.PLAIN_CACHE: _plain_cache,
        Remedy.TRANSLATED_FLAG: _translated,
        Remedy.REMOVED_FLAG: _removed,
        Remedy.NO_SPECULATION: _off,
        Remedy.TYPE: _type,
        Remedy.FROM_TEXT: _from_text,
        Remedy.DEFAULT_LENGTH: _default_length,
        Remedy.NO_CUTOFF: _no_cutoff,
        Remedy.NO_SYNTHETIC: _no_synthetic,
        Remedy.NO_PROJECTOR: _no_projector,
    }
)
