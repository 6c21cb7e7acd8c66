"""The ways to draft that llama-server knows: one table of types, their knobs and limits.

``--spec-draft-n-max`` moves only the types with a draft model or heads; each n-gram type has a
length knob of its own, and ngram-cache none at all. A Speculation is what one arm runs with: one
type, or several joined by commas, of which llama-server asks each in a fixed order until one of
them has a draft.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

Number = int | float


class Draft(StrEnum):
    """Whether a type wants a draft model file."""

    NONE = "none"
    NEEDED = "needed"
    OPTIONAL = "optional"


@dataclass(frozen=True, slots=True)
class Knob:
    """One number a person may turn.

    ``key`` is its dotted path below ``[speculation]`` in a profile, ``flag`` llama-server's
    option, ``low`` and ``high`` the inclusive range outside which the server chokes, crashes or
    quietly does something else, ``step`` what one press of a key moves it by. ``short`` is how
    the name of an arm calls it, where that is not its label.
    """

    key: str
    flag: str
    label: str
    default: Number
    low: Number
    high: Number
    help: str
    step: Number = 1
    is_length: bool = False
    short: str = ""

    @property
    def integral(self) -> bool:
        """Whether only whole numbers make sense."""
        return isinstance(self.default, int)

    def check(self, value: object) -> str:
        """Return why ``value`` is refused, or an empty string."""
        wanted = "a whole number" if self.integral else "a number"
        allowed = f"{wanted} from {self.low} to {self.high}"
        if isinstance(value, bool) or not isinstance(value, int if self.integral else int | float):
            return f"{value!r} is not {allowed}"
        if not self.low <= value <= self.high:
            hint = ""
            if self.is_length and value == 0:
                hint = "; 0 is not off, the baseline is type none"
            return f"{value} is not {allowed}{hint}"
        return ""

    def clamp(self, value: Number) -> Number:
        """Return the allowed value nearest to ``value``."""
        value = min(max(value, self.low), self.high)
        return int(value) if self.integral else round(float(value), 4)


@dataclass(frozen=True, slots=True)
class SpecType:
    """One of llama-server's ``--spec-type`` names.

    ``fixed_length`` is the draft length where no knob sets it, in tokens.
    """

    id: str
    draft: Draft
    knobs: tuple[Knob, ...]
    summary: str
    fixed_length: int | None = None

    @property
    def drafts_with_model(self) -> bool:
        """Whether it runs a model or heads to draft, rather than looking the text up."""
        return self.draft is not Draft.NONE

    @property
    def length_knob(self) -> Knob | None:
        """The knob that sets the draft length, if one does."""
        return next((knob for knob in self.knobs if knob.is_length), None)


_DRAFT_KNOBS = (
    Knob(
        key="n_max",
        flag="--spec-draft-n-max",
        label="n_max",
        default=3,
        low=1,
        high=64,
        help="tokens to draft per step",
        is_length=True,
    ),
    Knob(
        key="n_min",
        flag="--spec-draft-n-min",
        label="n_min",
        default=0,
        low=0,
        high=64,
        help="drafts shorter than this are thrown away",
    ),
    Knob(
        key="p_min",
        flag="--spec-draft-p-min",
        label="p_min",
        default=0.0,
        low=0.0,
        high=1.0,
        step=0.05,
        help="stop drafting below this confidence",
    ),
)


def _lookup_knobs(name: str) -> tuple[Knob, ...]:
    table, flag = name.replace("-", "_"), f"--spec-{name}"
    return (
        Knob(
            key=f"{table}.size_m",
            flag=f"{flag}-size-m",
            label="size_m",
            default=48,
            low=1,
            high=1024,
            help="tokens to draft per step",
            is_length=True,
            short="m",
        ),
        Knob(
            key=f"{table}.size_n",
            flag=f"{flag}-size-n",
            label="size_n",
            default=12,
            low=1,
            high=1024,
            help="tokens to look up: shorter finds more and is wrong more often",
            short="n",
        ),
    )


# only this type looks at it; llama-server takes it for the other two and does nothing with it
_MIN_HITS = Knob(
    key="ngram_map_k4v.min_hits",
    flag="--spec-ngram-map-k4v-min-hits",
    label="min_hits",
    default=1,
    low=1,
    high=1024,
    help="how often the lookup must have been seen",
    short="hits",
)

INERT: Mapping[str, str] = MappingProxyType(
    {
        f"ngram_{name}.min_hits": f"llama-server does nothing with min_hits on ngram-{shown}"
        for name, shown in (("simple", "simple"), ("map_k", "map-k"))
    }
)
"""Keys that llama-server takes and ignores → why they are no knobs."""

_MOD_KNOBS = (
    Knob(
        key="ngram_mod.n_max",
        flag="--spec-ngram-mod-n-max",
        label="n_max",
        default=64,
        low=1,
        high=1024,
        help="tokens to draft per step",
        is_length=True,
    ),
    Knob(
        key="ngram_mod.n_match",
        flag="--spec-ngram-mod-n-match",
        label="n_match",
        default=24,
        low=1,
        high=1024,
        help="tokens to look up",
    ),
    Knob(
        key="ngram_mod.n_min",
        flag="--spec-ngram-mod-n-min",
        label="n_min",
        default=48,
        low=0,
        high=1024,
        help="drafts shorter than this are thrown away",
    ),
)

OFF = "none"

TYPES: Mapping[str, SpecType] = MappingProxyType(
    {
        kind.id: kind
        for kind in (
            SpecType(OFF, Draft.NONE, (), "no speculation: the baseline"),
            SpecType("draft-simple", Draft.NEEDED, _DRAFT_KNOBS, "a small model of the same kind"),
            SpecType("draft-mtp", Draft.OPTIONAL, _DRAFT_KNOBS, "the target's own MTP layers"),
            SpecType("draft-eagle3", Draft.NEEDED, _DRAFT_KNOBS, "an EAGLE-3 head"),
            SpecType("draft-dflash", Draft.NEEDED, _DRAFT_KNOBS, "a DFlash block drafter"),
            SpecType("draft-dspark", Draft.NEEDED, _DRAFT_KNOBS, "a DSpark block drafter"),
            SpecType(
                "ngram-simple", Draft.NONE, _lookup_knobs("ngram-simple"), "repeats of the text"
            ),
            SpecType(
                "ngram-map-k", Draft.NONE, _lookup_knobs("ngram-map-k"), "repeats, kept in a map"
            ),
            SpecType(
                "ngram-map-k4v",
                Draft.NONE,
                (*_lookup_knobs("ngram-map-k4v"), _MIN_HITS),
                "repeats, with four candidates a key",
            ),
            SpecType("ngram-mod", Draft.NONE, _MOD_KNOBS, "repeats, hashed across requests"),
            SpecType("ngram-cache", Draft.NONE, (), "statistics of the text", fixed_length=8),
        )
    }
)
"""Every type by its id, ``none`` first."""

KNOBS: Mapping[str, Knob] = MappingProxyType(
    {knob.key: knob for kind in TYPES.values() for knob in kind.knobs}
)
"""Every knob by its dotted key."""

DEFAULT = "default"
"""Another word for what ``--spec-default`` turns on: ngram-mod as it is."""

# the order in which llama-server asks its drafters, whatever the order on the command line
_TURN = (
    *("ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod", "ngram-cache"),
    *("draft-simple", "draft-eagle3", "draft-mtp", "draft-dflash", "draft-dspark"),
)


def canonical_type(text: str) -> str:
    """Return a type, or several with commas, as one setting is always written.

    Each once, in the order in which llama-server asks them; unknown words stay, at the end.
    """
    words = {word.strip() for word in text.split(",")} - {""}
    if DEFAULT in words:
        words = (words - {DEFAULT}) | {"ngram-mod"}
    known = [name for name in (OFF, *_TURN) if name in words]
    return ",".join([*known, *sorted(words - set(known))])


@dataclass(frozen=True, slots=True)
class Speculation:
    """What one arm speculates with: its type, and the knobs that were set, sorted by key.

    ``type`` may name several, joined by commas in the order in which llama-server asks them.

    Knobs that are not set have the table's default and are still passed to the server, so that a
    build with other defaults measures the same thing.
    """

    type: str = OFF
    settings: tuple[tuple[str, Number], ...] = ()

    @classmethod
    def of(cls, kind: str, settings: Mapping[str, Number] | None = None) -> Speculation:
        """Build one from a type, or several with commas, and dotted keys with their values."""
        return cls(canonical_type(kind), tuple(sorted((settings or {}).items())))

    @property
    def is_off(self) -> bool:
        """Whether this is the baseline."""
        return self.type == OFF

    @property
    def kinds(self) -> tuple[SpecType, ...]:
        """The table's rows of its types, in the order in which llama-server asks them."""
        return tuple(TYPES[name] for name in self.type.split(",") if name in TYPES)

    @property
    def knobs(self) -> tuple[Knob, ...]:
        """The knobs that act, each once."""
        return tuple(dict.fromkeys(knob for kind in self.kinds for knob in kind.knobs))

    @property
    def draft(self) -> Draft:
        """Whether a draft model file is wanted."""
        wanted = {kind.draft for kind in self.kinds}
        return next((d for d in (Draft.NEEDED, Draft.OPTIONAL) if d in wanted), Draft.NONE)

    @property
    def summary(self) -> str:
        """What it drafts from, in a few words."""
        return ", then ".join(kind.summary for kind in self.kinds)

    def label(self, knob: Knob) -> str:
        """Return what to call a knob beside the others: two types may have an n_max each."""
        alike = sum(other.label == knob.label for other in self.knobs) > 1
        table, _, _ = knob.key.rpartition(".")
        if not alike or not table:
            return knob.label
        return f"{table.rpartition('_')[2]} {knob.short or knob.label}"

    def value(self, knob: Knob) -> Number:
        """Return what ``knob`` is set to, or its default."""
        return dict(self.settings).get(knob.key, knob.default)

    def acting(self) -> Iterator[tuple[Knob, Number]]:
        """Yield the knobs that mean something for this type, with their values."""
        for knob in self.knobs:
            yield knob, self.value(knob)

    @property
    def draft_length(self) -> int | None:
        """The most tokens one draft can have; None when nothing drafts.

        A block drafter or MTP heads may be trained for fewer: the server then says so in its log.
        """
        lengths = [
            int(self.value(kind.length_knob)) if kind.length_knob else kind.fixed_length
            for kind in self.kinds
        ]
        return max((length for length in lengths if length is not None), default=None)

    def with_value(self, key: str, value: Number) -> Speculation:
        """Return a copy with one knob set."""
        return Speculation.of(self.type, {**dict(self.settings), key: value})

    def with_type(self, kind: str) -> Speculation:
        """Return a copy of another type; knobs set before are kept for the way back."""
        return Speculation(canonical_type(kind), self.settings)

    def same_as(self, other: Speculation) -> bool:
        """Whether a server would do the same with both: type and acting knobs are equal."""
        return self.type == other.type and tuple(self.acting()) == tuple(other.acting())

    @property
    def name(self) -> str:
        """A name for tables and charts: ``off``, ``n_max 4, p_min 0.6``, ``ngram-simple m8 n3``.

        The length is always named; any other knob only where it differs from its default.
        """
        if self.is_off:
            return "off"
        if len(self.kinds) == 1 and self.type == "draft-simple":
            # the usual case needs no type in its name, and 80 columns are few
            return self._told(self.kinds[0])
        return " + ".join(f"{kind.id} {self._told(kind)}".strip() for kind in self.kinds)

    def _told(self, kind: SpecType) -> str:
        told = [
            (knob, value)
            for knob in kind.knobs
            if (value := self.value(knob)) != knob.default or knob.is_length
        ]
        short = " ".join(f"{knob.short}{value:g}" for knob, value in told if knob.short)
        long = ", ".join(f"{knob.label} {value:g}" for knob, value in told if not knob.short)
        return " ".join(part for part in (short, long) if part)


def check(speculation: Speculation, *, has_draft: bool) -> tuple[tuple[str, str], ...]:
    """Return what a server would choke on: pairs of a dotted key and the reason.

    ``has_draft`` tells whether the profile names a draft model. Only knobs that act on the type
    are looked at. llama-server itself accepts p_min 2 and n_min > n_max and misbehaves.
    """
    names = speculation.type.split(",")
    for name in names:
        if name not in TYPES:
            return (("type", f"{name!r} is not one of {', '.join(TYPES)}"),)
    if OFF in names and len(names) > 1:
        return (("type", "none turns every other type off: write it alone, or leave it out"),)
    found = [(knob.key, why) for knob, value in speculation.acting() if (why := knob.check(value))]
    models = [kind.id for kind in speculation.kinds if kind.drafts_with_model]
    if len(models) > 1:
        found.append(("type", f"{' and '.join(models)} cannot share the one draft model"))
    if speculation.draft is Draft.NEEDED and not has_draft:
        found.append(("type", f"{models[-1]} needs a draft model; name one as models.draft"))
    if not found:
        found += [pair for kind in speculation.kinds if (pair := _never_drafts(speculation, kind))]
    return tuple(found)


def _never_drafts(speculation: Speculation, kind: SpecType) -> tuple[str, str] | None:
    least = next((knob for knob in kind.knobs if knob.label == "n_min"), None)
    most = kind.length_knob
    if not least or not most or speculation.value(least) <= speculation.value(most):
        return None
    low, high = speculation.value(least), speculation.value(most)
    return least.key, f"n_min {low} is above n_max {high}: nothing would ever be drafted"
