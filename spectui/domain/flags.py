"""llama-server's whole flag table: spellings, values, variables, and what became of old ones.

It is checked against the help of real builds. Reading an old command needs it for two questions:
does this word take a value, and what is it called today?
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from types import MappingProxyType

from spectui.domain import flag_rows as rows


class Fate(StrEnum):
    """What today's llama-server makes of a flag."""

    TODAY = "today"
    IGNORED = "ignored"
    REFUSED = "refused"
    GONE = "gone"
    FORK = "fork"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Flag:
    """One option in all its spellings.

    ``off`` are the spellings that negate it, ``arity`` how many values it takes (0 to 2), ``env``
    the variable that sets it too, empty where there is none.
    """

    names: tuple[str, ...]
    off: tuple[str, ...] = ()
    arity: int = 0
    env: str = ""
    fate: Fate = Fate.TODAY

    @property
    def name(self) -> str:
        """The canonical spelling: the first long one, else the first."""
        return next((name for name in self.names if name.startswith("--")), self.names[0])


def _rows(text: str, fate: Fate) -> Iterator[Flag]:
    for line in text.strip().replace("\n ", " ").splitlines():
        words = line.split()
        names = [word for word in words if word.startswith("-")]
        cut = words.index("/") if "/" in words else len(words)
        off = [word for word in words[cut:] if word.startswith("-")]
        arity = sum(word.count("=") for word in words)
        env = next((word for word in words if word[0].isalpha()), "")
        yield Flag(tuple(names[: len(names) - len(off)]), tuple(off), arity, env, fate)


_TABLES: tuple[tuple[str, Fate], ...] = (
    (rows.TODAY, Fate.TODAY),
    (rows.IGNORED, Fate.IGNORED),
    (rows.REFUSED, Fate.REFUSED),
    (rows.GONE, Fate.GONE),
    (rows.FORK, Fate.FORK),
    (rows.OTHER, Fate.OTHER),
)

FLAGS: tuple[Flag, ...] = tuple(flag for text, fate in _TABLES for flag in _rows(text, fate))
"""Every flag that is known, today's first."""


def _index() -> Iterator[tuple[str, tuple[Flag, bool]]]:
    for flag in reversed(FLAGS):  # so that today's meaning of a spelling wins
        yield from ((name, (flag, False)) for name in flag.off)
        yield from ((name, (flag, True)) for name in flag.names)


_BY_NAME: Mapping[str, tuple[Flag, bool]] = MappingProxyType(dict(_index()))

_BY_ENV: Mapping[str, Flag] = MappingProxyType(
    {flag.env: flag for flag in reversed(FLAGS) if flag.env}
)

OLD_ENV: Mapping[str, str] = MappingProxyType(
    {
        "LLAMA_ARG_MODEL_DRAFT": "--spec-draft-model",
        "LLAMA_ARG_HFD_REPO": "--spec-draft-hf",
        "LLAMA_ARG_HF_REPO_DRAFT": "--spec-draft-hf",
        "LLAMA_ARG_DRAFT_P_MIN": "--spec-draft-p-min",
        "LLAMA_ARG_DRAFT_P_SPLIT": "--spec-draft-p-split",
        "LLAMA_ARG_CACHE_TYPE_K_DRAFT": "--spec-draft-type-k",
        "LLAMA_ARG_CACHE_TYPE_V_DRAFT": "--spec-draft-type-v",
        "LLAMA_ARG_CPU_MOE_DRAFT": "--spec-draft-cpu-moe",
        "LLAMA_ARG_N_CPU_MOE_DRAFT": "--spec-draft-n-cpu-moe",
        "LLAMA_ARG_WEBUI": "--ui",
        "LLAMA_ARG_WEBUI_CONFIG": "--ui-config",
        "LLAMA_ARG_WEBUI_CONFIG_FILE": "--ui-config-file",
    }
)
"""Variables that older builds read and today's ignores in silence → the flag they stood for."""

SUCCESSORS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "--draft-max": MappingProxyType(
            {
                "draft": "--spec-draft-n-max",
                "ngram-mod": "--spec-ngram-mod-n-max",
                "ngram-map": "--spec-{type}-size-m",
            }
        ),
        "--draft-min": MappingProxyType(
            {"draft": "--spec-draft-n-min", "ngram-mod": "--spec-ngram-mod-n-min"}
        ),
        "--spec-ngram-size-n": MappingProxyType(
            {"ngram-mod": "--spec-ngram-mod-n-match", "ngram-map": "--spec-{type}-size-n"}
        ),
        "--spec-ngram-size-m": MappingProxyType({"ngram-map": "--spec-{type}-size-m"}),
        "--spec-ngram-min-hits": MappingProxyType({"ngram-map": "--spec-{type}-min-hits"}),
    }
)
"""A refused flag → what sets it today, by the family of the type that drafts."""

RENAMED: Mapping[str, str] = MappingProxyType(
    {
        "--p-split": "--spec-draft-p-split",
        "--draft-model": "--spec-draft-model",
    }
)
"""A flag that is gone → the one that does the same today, with the same value."""

OPTIONAL_VALUES: Mapping[str, tuple[str, tuple[str, ...]]] = MappingProxyType(
    {
        "--flash-attn": ("on", ("on", "off", "auto")),
        "--fit": ("on", ("on", "off")),
        "--log-colors": ("on", ("on", "off", "auto")),
        "--numa": ("distribute", ("distribute", "isolate", "numactl", "mirror")),
    }
)
"""Flags that were switches once and need a value today → what the switch meant, what may follow.

Today such a flag without a value takes the next word for one, whatever it is.
"""

TRUTHS: Mapping[str, bool] = MappingProxyType(
    {
        **dict.fromkeys(("on", "enabled", "true", "1"), True),
        **dict.fromkeys(("off", "disabled", "false", "0"), False),
    }
)
"""How llama-server reads a switch that a variable sets."""

REPEATABLE = frozenset(
    {
        *("--override-tensor", "--spec-draft-override-tensor", "--override-kv"),
        *("--lora", "--lora-scaled", "--control-vector", "--control-vector-scaled"),
        *("--logit-bias", "--reverse-prompt", "--dry-sequence-breaker", "--spec-type"),
    }
)
"""Canonical names of the flags that add up when they are repeated; of any other the last wins."""


def normal(word: str) -> str:
    """Return a flag as it is looked up: llama-server takes ``--top_p`` for ``--top-p``."""
    return word.replace("_", "-") if word.startswith("--") else word


def find(word: str) -> tuple[Flag, bool] | None:
    """Return the flag that ``word`` spells, and whether it says yes; None where none is known."""
    return _BY_NAME.get(normal(word))


def flag_named(name: str) -> Flag:
    """Return the flag of a spelling that is in the table. Raises KeyError for any other."""
    return _BY_NAME[name][0]


def by_env(name: str) -> tuple[Flag, bool] | None:
    """Return the flag that a variable sets, and whether it says yes.

    ``LLAMA_ARG_NO_…`` negates a switch whatever its value. Variables that only older builds read
    are found too: they are keys of OLD_ENV, or belong to a flag of another fate than TODAY.
    """
    flag = _BY_ENV.get(name)
    if flag is not None:
        return flag, True
    if name in OLD_ENV:
        return flag_named(OLD_ENV[name]), True
    if name.startswith("LLAMA_ARG_NO_"):
        flag = _BY_ENV.get(name.replace("LLAMA_ARG_NO_", "LLAMA_ARG_", 1))
        if flag is not None and flag.off:
            return flag, False
    return None


def family(kind: str) -> str:
    """Return the family of a speculation type, as SUCCESSORS names it; empty where it has none."""
    if kind.startswith("draft-"):
        return "draft"
    return "ngram-map" if kind in {"ngram-simple", "ngram-map-k", "ngram-map-k4v"} else kind


def successors(name: str, kinds: Iterable[str]) -> tuple[str, ...]:
    """Return what sets today what the refused flag ``name`` set, for the types that draft.

    Empty where no flag does: ngram-cache has a fixed length, and a lookup has no least one.
    """
    words = SUCCESSORS.get(name, {})
    found = [words[family(kind)].format(type=kind) for kind in kinds if family(kind) in words]
    return tuple(dict.fromkeys(found))


def guess(word: str) -> str:
    """Return today's flag that an unknown one was probably meant to be, or an empty string.

    A wrong number of dashes is the commonest slip: ``--ts`` for ``-ts``.
    """
    known = [name for name, (flag, _) in _BY_NAME.items() if flag.fate is Fate.TODAY]
    dashes = [name for name in known if name.lstrip("-") == normal(word).lstrip("-")]
    long = [name for name in known if name.startswith("--") and word.startswith("--")]
    close = get_close_matches(normal(word), long, n=1, cutoff=0.8)
    return next(iter((*dashes, *close)), "")
