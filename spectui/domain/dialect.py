"""What one llama-server binary understands, read from its own help, and how to speak to it.

Flags were renamed, removed and given other meanings over the years, and forks went their own way.
A profile never changes with that: it is put into the words of the binary at hand, and what a
binary cannot do is refused with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from spectui.domain.speculation import KNOBS, OFF, TYPES, Number, SpecType, Speculation
from spectui.domain.text import clean

_SPELLINGS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "-md": ("--model-draft", "--spec-draft-model"),
        "--spec-draft-n-max": ("--draft-max", "--draft-n", "--draft"),
        "--spec-draft-n-min": ("--draft-min", "--draft-n-min"),
        "--spec-draft-p-min": ("--draft-p-min",),
        "--spec-draft-ngl": ("-ngld", "--gpu-layers-draft"),
        "--spec-draft-device": ("-devd", "--device-draft"),
        "--spec-draft-type-k": ("-ctkd", "--cache-type-k-draft"),
        "--spec-draft-type-v": ("-ctvd", "--cache-type-v-draft"),
        **{
            f"--spec-ngram-{name}-size-{end}": (f"--spec-ngram-size-{end}",)
            for name in ("simple", "map-k", "map-k4v")
            for end in ("n", "m")
        },
        "--spec-ngram-map-k4v-min-hits": ("--spec-ngram-min-hits",),
        "--spec-ngram-mod-n-max": ("--draft-max",),
        "--spec-ngram-mod-n-min": ("--draft-min",),
        "--spec-ngram-mod-n-match": ("--spec-ngram-size-n",),
    }
)
"""Today's flag → what it was called before, newest first."""

_OLD_TYPES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "draft-simple": ("draft",),
        "draft-mtp": ("mtp",),
        "draft-eagle3": ("eagle3",),
        "draft-dflash": ("dflash",),
        "draft-dspark": ("dspark",),
    }
)
"""Today's type → what it was or is called elsewhere."""

_STAGE_KEYS: Mapping[str, str] = MappingProxyType(
    {
        "size_m": "n_max",
        "size_n": "ngram_size_n",
        "n_match": "ngram_size_n",
        "min_hits": "ngram_min_hits",
    }
)
"""A knob's label → ik_llama.cpp's key in ``--spec-type TYPE:key=value``, where it differs."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The words that one binary takes.

    ``flags`` are the spellings that work, ``removed`` those it still lists and refuses. ``types``
    are its words for ``--spec-type``, None where it has no such option. ``lists`` tells whether
    they may be joined with commas, ``staged`` whether knobs stand behind the type as in
    ``mtp:n_max=3``, ``layer_words`` whether GPU layers may be "auto" or "all".
    """

    name: str
    flags: frozenset[str]
    removed: frozenset[str] = frozenset()
    types: tuple[str, ...] | None = None
    lists: bool = False
    staged: bool = False
    layer_words: bool = False
    version: str = ""

    def spelling(self, flag: str) -> str | None:
        """Return how this binary writes today's ``flag``; None where it has nothing like it."""
        return next(
            (word for word in (flag, *_SPELLINGS.get(flag, ())) if word in self.flags), None
        )

    def word(self, kind: SpecType) -> str | None:
        """Return this binary's word for a type, None where ``--spec-type`` cannot name it."""
        words = (kind.id, *_OLD_TYPES.get(kind.id, ()))
        return next((word for word in words if word in (self.types or ())), None)

    def refuse(self, speculation: Speculation) -> tuple[tuple[str, str], ...]:
        """Return what this binary cannot do of it: pairs of a dotted key and the reason."""
        found: list[tuple[str, str]] = []
        named = 0
        for kind in speculation.kinds:
            if kind.id == OFF:
                continue
            if self.word(kind) is not None:
                named += 1
            elif not self._by_model_alone(kind):
                found.append(("type", f"{self._me} has no {kind.id}{self._instead()}"))
                continue
            found += self._missing_knobs(speculation, kind)
        if named > 1 and not (self.lists or self.staged):
            found.append(("type", f"{self._me} takes one type at a time"))
        return tuple(found) or self._shared_knobs(speculation)

    def _by_model_alone(self, kind: SpecType) -> bool:
        """Whether giving a draft model is how this binary is told to use it."""
        old = "draft-simple" not in (self.types or ()) and "draft" not in (self.types or ())
        return kind.id == "draft-simple" and old and self.spelling("-md") is not None

    def _missing_knobs(self, speculation: Speculation, kind: SpecType) -> Iterable[tuple[str, str]]:
        for knob in kind.knobs:
            # a knob that is left at its default may stay unsaid
            matters = knob.is_length or speculation.value(knob) != knob.default
            if matters and not self.staged and self.spelling(knob.flag) is None:
                yield knob.key, f"{self._me} has no {knob.label} for {kind.id}"

    def _shared_knobs(self, speculation: Speculation) -> tuple[tuple[str, str], ...]:
        """Two types that one old flag would set must want the same of it."""
        wanted: dict[str, tuple[str, Number]] = {}
        for knob, value in speculation.acting():
            flag = self.spelling(knob.flag)
            if self.staged or flag is None:
                continue
            other, other_value = wanted.setdefault(flag, (knob.key, value))
            if other_value != value:
                why = f"{self._me} sets it together with {other}, by {flag}: make them equal"
                return ((knob.key, why),)
        return ()

    @property
    def _me(self) -> str:
        return f"this llama-server ({self.name})"

    def _instead(self) -> str:
        if not self.types:
            return "; it only knows drafting with a draft model"
        return f"; its types are {', '.join(self.types)}"

    def speak(self, speculation: Speculation, *, draft: str = "") -> list[str]:
        """Return the arguments that make this binary speculate so, draft model included.

        The baseline is ``--spec-type none`` without a draft model: a draft length of 0 is not off.
        Every knob that acts is passed, also at its default, since defaults differ between builds.
        Ask ``refuse`` first: what cannot be said is left out here.
        """
        words: list[str] = []
        if self.staged:
            for kind in speculation.kinds:
                words += ["--spec-type", self._stage(speculation, kind)]
        elif self.types is not None:
            names = [word for kind in speculation.kinds if (word := self.word(kind))]
            if names:
                words += ["--spec-type", ",".join(names)]
        if draft and any(kind.drafts_with_model for kind in speculation.kinds):
            words += [self.spelling("-md") or "-md", draft]
        return words if self.staged else [*words, *self._knobs(speculation)]

    def _stage(self, speculation: Speculation, kind: SpecType) -> str:
        pairs = {
            _STAGE_KEYS.get(knob.label, knob.label): speculation.value(knob) for knob in kind.knobs
        }
        told = ",".join(f"{key}={value:g}" for key, value in pairs.items())
        return f"{self.word(kind) or kind.id}{':' if told else ''}{told}"

    def _knobs(self, speculation: Speculation) -> list[str]:
        found: dict[str, str] = {}
        for knob, value in speculation.acting():
            flag = self.spelling(knob.flag)
            if flag is not None:
                found[flag] = f"{value:g}" if isinstance(value, float) else str(value)
            if knob.flag.endswith("-size-m") and flag == "--spec-ngram-size-m":
                # in that time the general length cut these drafts as well
                found.setdefault("--draft-max", str(value))
        return [word for pair in found.items() for word in pair]

    def layers(self, text: str) -> str | None:
        """Return a number of GPU layers as this binary takes it; None: leave the flag out."""
        if self.layer_words or text not in {"auto", "all"}:
            return text
        return None if text == "auto" else "999"


TODAY = Dialect(
    name="today's",
    flags=frozenset(
        {
            *_SPELLINGS,
            *(knob.flag for knob in KNOBS.values()),
            *("--spec-type", "--metrics", "--slots"),
        }
    ),
    types=tuple(TYPES),
    lists=True,
    layer_words=True,
)
"""What is spoken to the embedded engine, and to a binary whose help could not be read."""

# one entry's spellings at the beginning of a line of help: "-md,   --model-draft FNAME   …"
_ENTRY = re.compile(r" {0,12}(--?[A-Za-z][\w-]*(?:,\s*--?[A-Za-z][\w-]*)*)(?=[\s=]|$)")
_REMOVED = re.compile(r"argument has been removed|has been removed\b", re.IGNORECASE)
_TYPES = re.compile(r"types: ([\w-]+(?:, [\w-]+)+)")


@dataclass(slots=True)
class _Entry:
    names: tuple[str, ...]
    text: list[str] = field(default_factory=list)


def read_help(text: str, version: str = "") -> Dialect | None:
    """Return the dialect of a binary from what ``--help`` printed; None where it lists no flags.

    Removed flags are still listed by llama-server, with words that say so.
    """
    entries = _entries(text)
    if not any("--port" in entry.names for entry in entries):
        return None
    flags: set[str] = set()
    removed: set[str] = set()
    for entry in entries:
        gone = _REMOVED.search(" ".join(entry.text))
        (removed if gone else flags).update(entry.names)
    kinds = next((" ".join(e.text) for e in entries if "--spec-type" in e.names), None)
    layers = next((" ".join(e.text) for e in entries if "-ngl" in e.names), "")
    types = None if kinds is None else _type_words(kinds)
    staged = kinds is not None and ":k=v" in kinds
    return Dialect(
        name=_name(frozenset(flags), types, staged=staged),
        flags=frozenset(flags),
        removed=frozenset(removed - flags),
        types=types,
        lists=kinds is not None and "comma-separated" in kinds,
        staged=staged,
        layer_words="'auto'" in layers or "'all'" in layers,
        version=clean(version, limit=120),
    )


def _entries(text: str) -> list[_Entry]:
    found: list[_Entry] = []
    for line in text.splitlines():
        match = _ENTRY.match(line)
        if match:
            names = tuple(name.strip() for name in match.group(1).split(","))
            found.append(_Entry(names, [line[match.end() :].strip()]))
        elif found and line[:1].isspace():
            found[-1].text.append(line.strip())
    return found


def _type_words(text: str) -> tuple[str, ...]:
    listed = _TYPES.search(text)
    if listed:
        return tuple(listed.group(1).split(", "))
    head = next(iter(text.split()), "").strip("[]<>{}")
    return tuple(word for word in re.split(r"[|,]", head) if re.fullmatch(r"[a-z][\w-]*", word))


def _name(flags: frozenset[str], types: tuple[str, ...] | None, *, staged: bool) -> str:
    if staged or "--spec-autotune" in flags:
        return "ik_llama.cpp"
    if "--spec-draft-n-max" in flags:
        return "today's flags" if "draft-simple" in (types or ()) else "flags of May 2026"
    if types is not None:
        return "flags of early 2026"
    return "flags of before 2026" if "--draft-max" in flags else "no draft flags"
