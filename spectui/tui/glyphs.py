"""Three sets of signs: for terminals with braille, with line drawing only, and with ASCII only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from spectui.domain.comparison import Tone
from spectui.domain.phases import Phase


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One set. Every sign is one cell wide.

    ``arms`` are handed out in order, ``base`` is the baseline's. ``raster`` names how the speed
    chart draws dots, ``plot`` is plotext's marker for the lines of the acceptance chart. ``shades``
    fill a bar of several parts, ``room`` is what is left in it.
    """

    name: str
    raster: str
    plot: str
    arms: str
    base: str
    phases: Mapping[Phase, str]
    tones: Mapping[Tone, str]
    warn: str = "!"
    bad: str = "✗"
    good: str = "✓"
    hint: str = "i"
    arrow: str = "→"
    left: str = "◂"
    right: str = "▸"
    cursor: str = "▸"
    pending: str = "✎"
    full: str = "━"
    empty: str = "─"
    shades: str = "█▓▒░▚"
    room: str = "·"
    edge: str = "▴"
    above: str = "↑"
    below: str = "↓"
    dash: str = "┈"
    mark: str = "╎"
    tick: str = "┤"
    axis: str = "│"
    border: str = "round"


_P = Phase
BRAILLE = Glyphs(
    name="braille",
    raster="braille",
    plot="braille",
    arms="●▲■◆○△□",
    base="▪",
    phases=MappingProxyType(
        {
            _P.STOPPED: "○",
            _P.STARTING: "◔",
            _P.LOADING: "◑",
            _P.READY: "●",
            _P.BUSY: "◉",
            _P.STOPPING: "◌",
            _P.FAILED: "✗",
            _P.GONE: "✗",
        }
    ),
    tones=MappingProxyType({Tone.GOOD: "✓", Tone.BAD: "✗", Tone.NEUTRAL: "≈", Tone.WAITING: "…"}),
)

# what the fonts of the Linux console and of a VT have: code page 437 and Latin-1
_PLAIN_PHASES = MappingProxyType(
    {
        _P.STOPPED: "-",
        _P.STARTING: ".",
        _P.LOADING: ":",
        _P.READY: "o",
        _P.BUSY: "*",
        _P.STOPPING: ".",
        _P.FAILED: "x",
        _P.GONE: "x",
    }
)
_PLAIN_TONES = MappingProxyType(
    {Tone.GOOD: "+", Tone.BAD: "-", Tone.NEUTRAL: "=", Tone.WAITING: "."}
)

BLOCK = Glyphs(
    name="block",
    raster="block",
    plot="·",
    arms="ox+*#%@",
    base="=",
    phases=_PLAIN_PHASES,
    tones=_PLAIN_TONES,
    bad="x",
    good="+",
    left="<",
    right=">",
    cursor=">",
    pending="*",
    full="█",
    empty="░",
    shades="█▓▒░■",
    edge="^",
    dash="─",
    mark="│",
    border="solid",
)

ASCII = Glyphs(
    name="ascii",
    raster="ascii",
    plot=".",
    arms="ox+*#%@",
    base="=",
    phases=_PLAIN_PHASES,
    tones=_PLAIN_TONES,
    bad="x",
    good="+",
    arrow=">",
    left="<",
    right=">",
    cursor=">",
    pending="*",
    full="#",
    empty="-",
    shades="#%=~@",
    room=".",
    edge="^",
    above="^",
    below="v",
    dash="-",
    mark="|",
    tick="|",
    axis="|",
    border="ascii",
)

SETS: Mapping[str, Glyphs] = MappingProxyType({g.name: g for g in (BRAILLE, BLOCK, ASCII)})

_TO_ASCII = str.maketrans("×·←→…°–≈µ", "x-<>~'-~u")


def ascii_only(text: str) -> str:
    """Return ``text`` with every character outside ASCII replaced by one of the same width."""
    return text.translate(_TO_ASCII).encode("ascii", "replace").decode("ascii")


def detect(wanted: str | None, environ: Mapping[str, str], encoding: str | None) -> Glyphs:
    """Return the set that was asked for, else what the terminal can be trusted to show.

    An unknown name counts as not asked for.
    """
    if wanted is not None and wanted in SETS:
        return SETS[wanted]
    term = environ.get("TERM", "")
    if "utf" not in (encoding or "").lower() or term.startswith("vt") or term == "dumb":
        return ASCII
    return BLOCK if term == "linux" else BRAILLE
