"""Tones → styles: what a theme makes of the words that renderers use."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from rich.style import Style
from textual.color import Color
from textual.theme import Theme

from spectui.tui.glyphs import ASCII, BRAILLE, Glyphs, ascii_only

ARM_COLOURS: Final = 6
"""How many colours arms have. Signs come by the seven, so that 42 arms differ in one of both."""

TONES: Final = (
    "text",
    "muted",
    "faint",
    "good",
    "bad",
    "warn",
    "pending",
    "accent",
    "flight",
    "base",
    *(f"arm{index}" for index in range(ARM_COLOURS)),
)
"""Every tone that has a colour. A theme may set each; Textual's own themes set none."""


@dataclass(frozen=True)
class Look:
    """Signs and colours. Equal where both are."""

    glyphs: Glyphs = BRAILLE
    colours: tuple[tuple[str, str], ...] = ()
    _styles: dict[str, Style] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, theme: Theme, glyphs: Glyphs) -> Look:
        """Take colours from a theme; what it does not set is derived from what it does."""
        found = {**_derived(theme), **_own(theme)}
        return cls(glyphs, tuple((tone, found[tone]) for tone in TONES))

    def colour(self, tone: str) -> str:
        """Return a tone's colour as ``#rrggbb``."""
        return dict(self.colours).get(tone, "#808080")

    def style(self, tone: str) -> Style:
        """Return the style of a tone, which may be followed by bold, reverse and underline."""
        found = self._styles.get(tone)
        if found is None:
            words = tone.split()
            colour = next((self.colour(word) for word in words if word in TONES), None)
            found = Style(
                color=colour,
                bold="bold" in words or None,
                reverse="reverse" in words or None,
                underline="underline" in words or None,
            )
            self._styles[tone] = found
        return found

    def text(self, text: str) -> str:
        """Return what the terminal can show of ``text``."""
        return ascii_only(text) if self.glyphs is ASCII and not text.isascii() else text


def _own(theme: Theme) -> dict[str, str]:
    return {
        tone: theme.variables[f"tone-{tone}"] for tone in TONES if f"tone-{tone}" in theme.variables
    }


def _derived(theme: Theme) -> dict[str, str]:
    made = theme.to_color_system().generate()
    text, back = _parse(made["foreground"]), _parse(made["background"])
    muted, faint = text.blend(back, 0.35), text.blend(back, 0.65)
    accent, primary = _parse(made["accent"]), _parse(made["primary"])
    good, warn, bad = (_parse(made[name]) for name in ("success", "warning", "error"))
    arms = (good, accent, primary.lighten(0.15), bad.lighten(0.1), warn, accent.blend(primary, 0.5))
    named = dict(zip((f"arm{i}" for i in range(ARM_COLOURS)), arms, strict=True)) | {
        "text": text,
        "muted": muted,
        "faint": faint,
        "good": good,
        "bad": bad,
        "warn": warn,
        "pending": warn,
        "accent": accent,
        "flight": muted,
        "base": muted,
    }
    return {tone: colour.hex6 for tone, colour in named.items()}


def _parse(text: str) -> Color:
    colour = Color.parse(text)
    # an ANSI theme leaves colours to the terminal; a middle grey is legible on both kinds
    return Color(128, 128, 128) if colour.ansi is not None else colour
