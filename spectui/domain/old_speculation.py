"""How an old command wanted to draft → today's type and knobs, and what really would have happened.

Three times matter. Before May 2026 one set of flags (``--draft-max`` and friends) set the length of
every type, 16 unless said otherwise, and a draft model was enough to draft with it. Since then each
type has flags of its own and drafts are short by default. Since June 2026 a draft model alone is
loaded and not used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from spectui.domain.flags import SUCCESSORS, family, successors
from spectui.domain.imported import shown
from spectui.domain.old_settings import Setting, Settings, decimal, whole
from spectui.domain.speculation import INERT, KNOBS, OFF, TYPES, Draft, Number, canonical_type


class Era(StrEnum):
    """When a command was written, by the flags it uses."""

    OLD = "before May 2026"
    NEW = "since May 2026"
    UNKNOWN = "unknown"


_OLD_TYPES: Mapping[str, str] = MappingProxyType(
    {name.removeprefix("draft-"): name for name in TYPES if name.startswith("draft-")}
    | {"draft": "draft-simple"}
)

_OLD_FLAGS = (
    *SUCCESSORS,
    *("--ctx-size-draft", "--spec-draft-ctx-size", "--spec-ngram-check-rate", "--p-split"),
)

_OLD_DEFAULTS: Mapping[str, Number] = MappingProxyType(
    {
        "n_max": 16,
        "p_min": 0.75,
        "ngram_mod.n_max": 16,
        "ngram_mod.n_match": 12,
        "ngram_mod.n_min": 0,
        # the general length cut these drafts too, whatever their own length was
        **{f"ngram_{name}.size_m": 16 for name in ("simple", "map_k", "map_k4v")},
    }
)
"""What the servers before May 2026 did where nothing was said, where today's do otherwise."""

_STAGE_KEYS: Mapping[str, str] = MappingProxyType(
    {
        "n_max": "--draft-max",
        "n_min": "--draft-min",
        "p_min": "--spec-draft-p-min",
        "ngram_size_n": "--spec-ngram-size-n",
        "ngram_size_m": "--spec-ngram-size-m",
        "ngram_min_hits": "--spec-ngram-min-hits",
    }
)
"""ik_llama.cpp's keys behind a type, as in ``mtp:n_max=3`` → the flag that says the same."""

_FLAG_OF_KEY = {knob.flag: key for key, knob in KNOBS.items()} | {
    f"--spec-{key.partition('.')[0].replace('_', '-')}-min-hits": key for key in INERT
}


@dataclass(slots=True)
class Drafting:
    """What is settled: today's types, their knobs by dotted key, and the command's time."""

    kinds: list[str] = field(default_factory=list)
    knobs: dict[str, Number] = field(default_factory=dict)
    era: Era = Era.UNKNOWN
    fork: bool = False
    said_off: bool = False

    @property
    def type(self) -> str:
        """The type as a profile has it."""
        return canonical_type(",".join(self.kinds)) if self.kinds else OFF

    @property
    def with_model(self) -> bool:
        """Whether a model or heads draft."""
        return any(TYPES[kind].drafts_with_model for kind in self.kinds)


def settle(found: Settings, *, draft: str, remote: str, fork: bool) -> Drafting:
    """Take everything about drafting out of ``found`` and return what it means today.

    ``draft`` is the draft model's path, empty without one; ``remote`` the repository that the
    target comes from, which may hold a draft as well; ``fork`` that it is ik_llama.cpp's command.
    """
    result = Drafting(era=_era(found, fork=fork), fork=fork)
    given: list[tuple[str, Setting | None, str]] = []  # a flag, what sets it, and its value
    _types(found, result, given)
    items = found.take_all(*SUCCESSORS, *_FLAG_OF_KEY)
    given += [(item.flag.name, item, item.value) for item in items]
    _add_draft_type(found, result, draft)
    _one_model(found, result)
    _need_model(found, result, draft=draft, remote=remote)
    _apply(found, result, given)
    _cut(found, result, [name for name, _, _ in given])
    _old_defaults(found, result)
    _never_drafts(found, result)
    if not result.kinds:  # a length of 0 took the type back that was assumed
        found.notices = [notice for notice in found.notices if notice.code != "type-not-set"]
    return result


def _era(found: Settings, *, fork: bool) -> Era:
    new = old = fork
    for item in found.items:
        name, written = item.flag.name, item.written
        words = {word.partition(":")[0] for word in item.value.split(",")}
        old |= name in _OLD_FLAGS or written == "--draft-p-min"
        old |= name == "--flash-attn" and item.bare
        if name == "--spec-type":
            old |= bool(words & set(_OLD_TYPES))
            new |= any(word.startswith("draft-") for word in words)
        elif name not in _OLD_FLAGS and written.startswith(("--spec-draft-", "--spec-ngram-")):
            new = True
    if new and not fork:
        return Era.NEW
    return Era.OLD if old else Era.UNKNOWN


def _types(found: Settings, result: Drafting, given: list[tuple[str, Setting | None, str]]) -> None:
    items = found.take_all("--spec-type", "--spec-stage")
    for item in items:
        staged = ":" in item.value or item.flag.name == "--spec-stage"
        words = [item.value] if staged else item.value.split(",")
        if OFF in words:  # in a list it turns the whole list off
            result.said_off = True
            continue
        for word in words:
            name, _, stage = word.partition(":")
            kind = _kind(found, name.strip())
            if kind:
                result.kinds.append(kind)
                given += _stage(found, kind, stage)
    if len([item for item in items if item.value != OFF]) > 1:
        found.note(
            "combined",
            "a repeated --spec-type adds up on today's llama-server; older ones took the last",
        )
    if found.take("--spec-default"):
        result.kinds.append("ngram-mod")
        result.knobs |= {"ngram_mod.n_match": 24, "ngram_mod.n_min": 48, "ngram_mod.n_max": 64}
        found.note("expanded", "--spec-default stands for ngram-mod with 24, 48 and 64")
    if found.take("--multi-token-prediction"):
        result.kinds.append("draft-mtp")
        found.note("renamed", "-mtp of ik_llama.cpp is --spec-type draft-mtp today")
    if found.take("--spec-autotune"):
        found.note("dialect", "--spec-autotune is left out: spectui measures what it would try")
    result.kinds = list(dict.fromkeys(result.kinds))


def _kind(found: Settings, word: str) -> str:
    name = word.replace("_", "-")
    today = _OLD_TYPES.get(name, name)
    if today not in TYPES:
        found.note("unknown-type", f"--spec-type {shown(word, 40)} is no type of llama-server")
        return ""
    if today != name:
        found.note("renamed", f"the type {name} is called {today} today")
    return today


def _stage(found: Settings, kind: str, text: str) -> Iterable[tuple[str, Setting | None, str]]:
    for pair in filter(None, text.split(",")):
        key, _, value = pair.partition("=")
        flag = _STAGE_KEYS.get(key.strip().replace("-", "_"))
        if flag is None:
            found.note("dialect", f"{shown(key, 40)} of {kind} is only known to ik_llama.cpp")
            continue
        names = successors(flag, [kind]) if flag in SUCCESSORS else (flag,)
        yield from ((name, None, value) for name in names)


def _add_draft_type(found: Settings, result: Drafting, draft: str) -> None:
    if not draft or result.with_model or (result.said_off and not result.kinds):
        return
    name = draft.replace("\\", "/").rpartition("/")[2].lower()
    kind = next((k for k in ("eagle3", "dspark", "dflash", "mtp") if k in name), "simple")
    kind = _OLD_TYPES[kind]
    result.kinds.append(kind)
    if result.fork:
        why = (
            "the type was never set: -md is enough for ik_llama.cpp, but today's llama-server loads"
            " the draft model and leaves it"
        )
    elif kind in {"draft-simple", "draft-eagle3"}:
        why = (
            "the draft would not have been used: the type was never set, and today's llama-server"
            " loads the draft model and leaves it (before June 2026 -md was enough)"
        )
    else:
        why = "the type was never set; today's llama-server takes it from the draft file itself"
    guess = "" if kind == "draft-simple" else ", judging by the file's name"
    found.note("type-not-set", f"{why}; the profile says {kind}{guess}")


def _one_model(found: Settings, result: Drafting) -> None:
    models = [kind for kind in result.kinds if TYPES[kind].drafts_with_model]
    for kind in models[1:]:
        result.kinds.remove(kind)
        found.note("no-effect", f"{models[0]} and {kind} cannot share the one draft model")


def _need_model(found: Settings, result: Drafting, *, draft: str, remote: str) -> None:
    for kind in [kind for kind in result.kinds if TYPES[kind].draft is Draft.NEEDED]:
        if not draft and not (remote and kind != "draft-simple"):
            result.kinds.remove(kind)
            found.note(
                "draft-missing",
                f"{kind} needs a draft model and none is named: llama-server starts and drafts"
                " nothing; the profile leaves it out",
            )


def _apply(found: Settings, result: Drafting, given: list[tuple[str, Setting | None, str]]) -> None:
    # a type's own flag says more than the general one, so it comes last
    general = [entry for entry in given if entry[0] in SUCCESSORS]
    own = [entry for entry in given if entry[0] not in SUCCESSORS]
    for name, item, value in general:
        assert item is not None  # noqa: S101 - only words and variables are general
        _apply_general(found, result, name, item, value)
    for name, item, value in own:
        key = _FLAG_OF_KEY[name]
        if key in INERT:
            found.note("no-effect", f"{name}: {INERT[key]}; left out")
        elif not any(key in {knob.key for knob in TYPES[k].knobs} for k in result.kinds):
            found.note("no-effect", _inert_here(item.text if item else name, key, result))
        else:
            _set(found, result, name, value, item.written if item else name)


def _inert_here(text: str, key: str, result: Drafting) -> str:
    if not result.kinds:
        return f"{text} has no effect: nothing drafts; left out"
    if not KNOBS[key].is_length:
        return f"{text} has no effect on {result.type}; left out"
    lengths = [
        knob.key if (knob := TYPES[kind].length_knob) else f"fixed at {TYPES[kind].fixed_length}"
        for kind in result.kinds
    ]
    where = " and ".join(lengths)
    return f"{text} has no effect on {result.type}, whose length is {where}; left out"


def _apply_general(found: Settings, result: Drafting, name: str, item: Setting, value: str) -> None:
    names = successors(name, result.kinds)
    stops = "" if item.from_env else "; the old name stops today's llama-server"
    if not result.kinds:
        found.note("no-effect", f"{item.text} has no effect, nothing drafts: left out{stops}")
        return
    if not names:
        why = "it stops today's llama-server, and nothing does the same for"
        found.note("removed", f"{item.text} is left out: {why} {result.type}")
        return
    told: list[str] = []
    for today in names:
        key = _FLAG_OF_KEY[today]
        if key in INERT:
            found.note("no-effect", f"{today}: {INERT[key]}; left out")
            continue
        told.append(today)
        before = result.knobs.get(key)
        _set(found, result, today, value, item.written)
        if isinstance(before, int) and key.endswith("size_m"):
            # both were given: that server cut a draft of size-m at draft-max
            result.knobs[key] = min(before, result.knobs.get(key, before))
    if told:
        found.note("renamed", f"{item.text} is {' and '.join(told)} today{stops}")


def _set(found: Settings, result: Drafting, name: str, text: str, written: str) -> None:
    key = _FLAG_OF_KEY[name]
    knob = KNOBS[key]
    value: Number | None = whole(text) if knob.integral else decimal(text)
    if value is None:
        found.note("invalid-value", f"{written} {shown(text, 40)} is no number: left out")
        return
    if knob.is_length and value <= 0:
        gone = [kind for kind in result.kinds if knob in TYPES[kind].knobs]
        result.kinds = [kind for kind in result.kinds if kind not in gone]
        found.note(
            "no-effect",
            f"{written} {value} does not draft: older servers were off with it, today's crash or"
            f" draft one token; {' and '.join(gone)} is left out",
        )
        return
    inside = knob.clamp(value)
    if inside != value:
        found.note("out-of-range", f"{written} {value} makes no sense: set to {inside}")
    result.knobs[key] = inside


def _old_defaults(found: Settings, result: Drafting) -> None:
    keys = [
        knob.key
        for kind in result.kinds
        for knob in TYPES[kind].knobs
        if knob.key in _OLD_DEFAULTS and _counted(kind, knob.key, result)
    ]
    unset = [key for key in keys if key not in result.knobs]
    if result.era is Era.OLD:
        for key in unset:
            result.knobs[key] = _OLD_DEFAULTS[key]
        if unset:
            told = ", ".join(
                f"{key} stays {_OLD_DEFAULTS[key]:g} (today's default is {KNOBS[key].default:g})"
                for key in unset
            )
            found.note("default-changed", f"not given, so that it does what it did: {told}")
    # the other drafters are younger than today's defaults
    elif result.era is Era.UNKNOWN and "draft-simple" in result.kinds and unset:
        found.note(
            "default-changed",
            "no draft length is given: before May 2026 up to 16 tokens were drafted above a"
            " confidence of 0.75, today 3 at any; the profile has today's",
        )


def _counted(kind: str, key: str, result: Drafting) -> bool:
    """Whether that server looked at it: llama.cpp's MTP did not stop at a low confidence then."""
    return result.fork or kind != "draft-mtp" or key != "p_min"


def _cut(found: Settings, result: Drafting, given: Iterable[str]) -> None:
    """Keep that the old servers cut every draft at the general length, 16 where none was given."""
    if result.era is not Era.OLD or result.fork or "--draft-max" in given:
        return
    for kind in result.kinds:
        knob = TYPES[kind].length_knob
        if knob is not None and knob.key.endswith("size_m") and result.knobs.get(knob.key, 0) > 16:
            result.knobs[knob.key] = 16
            found.note(
                "default-changed",
                f"that server cut the drafts of {kind} at 16 tokens, since --draft-max was not"
                " given, today's does not: 16 is kept",
            )


def _never_drafts(found: Settings, result: Drafting) -> None:
    for kind in result.kinds:
        least = next((knob for knob in TYPES[kind].knobs if knob.label == "n_min"), None)
        most = TYPES[kind].length_knob
        if least is None or most is None or family(kind) not in {"draft", "ngram-mod"}:
            continue
        low = result.knobs.get(least.key, least.default)
        high = result.knobs.get(most.key, most.default)
        if low > high:
            result.knobs[least.key] = high
            found.note(
                "no-effect",
                f"{least.flag} {low:g} is above {most.flag} {high:g}: nothing would ever have been"
                f" drafted; it is set to {high:g}",
            )
