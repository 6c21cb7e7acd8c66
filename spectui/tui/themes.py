"""Themes: one TOML file each, shipped with spectui or put into the user's own folder.

::

    dark = true
    [colours]               # Textual's base colours; the rest is derived from them
    primary = "#8ab4f8"     # the only one that is needed
    background = "#101418"
    [tones]                 # spectui's own; see look.TONES
    good = "#7bd88f"
    arm0 = "#ffb454"

The file's name is the theme's. A file that cannot be used never stops the dashboard: it is left
out, and why is told.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from platformdirs import user_config_path
from textual.color import Color, ColorParseError
from textual.theme import Theme

import spectui
from spectui.domain.errors import UsageError
from spectui.domain.text import nearest
from spectui.tui.look import TONES

DEFAULT: Final = "spectui-dark"
FALLBACK: Final = "textual-dark"

COLOURS: Final = (
    "primary",
    "secondary",
    "accent",
    "foreground",
    "background",
    "surface",
    "panel",
    "success",
    "warning",
    "error",
)


def folders() -> tuple[Path, ...]:
    """Return where themes are looked for; a later folder's theme replaces one of the same name."""
    package = Path(spectui.__file__).parent
    # in a wheel they lie inside the package, in a checkout beside it
    shipped = package / "themes"
    return (
        shipped if shipped.is_dir() else package.parent / "themes",
        user_config_path("spectui") / "themes",
    )


def load(places: Iterable[Path]) -> tuple[dict[str, Theme], tuple[str, ...]]:
    """Return the themes of all folders by name, and one sentence for each file left out."""
    found: dict[str, Theme] = {}
    problems: list[str] = []
    for place in places:
        try:
            files = sorted(place.glob("*.toml"))
        except OSError as error:
            problems.append(f"themes in {place} cannot be listed: {error.strerror}")
            continue
        for file in files:
            try:
                found[file.stem] = read(file)
            except UsageError as error:
                problems.append(str(error))
    return found, tuple(problems)


def read(file: Path) -> Theme:
    """Return the theme in a file. Raises UsageError with everything that is wrong with it."""
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"theme {file.name} cannot be read", str(error.strerror)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"theme {file.name} is not TOML", str(error)) from error
    wrong = [*_strangers("", table, ("dark", "colours", "tones"))]
    colours = _colours("colours", table, COLOURS, wrong)
    tones = _colours("tones", table, TONES, wrong)
    dark = table.get("dark", True)
    if not isinstance(dark, bool):
        wrong.append("dark is true or false")
    if "primary" not in colours and not wrong:
        wrong.append("colours.primary is missing")
    if wrong:
        raise UsageError(f"theme {file.name} left out", "; ".join(wrong))
    return Theme(
        name=file.stem,
        dark=dark,
        variables={f"tone-{tone}": colour for tone, colour in tones.items()},
        primary=colours["primary"],
        secondary=colours.get("secondary"),
        accent=colours.get("accent"),
        foreground=colours.get("foreground"),
        background=colours.get("background"),
        surface=colours.get("surface"),
        panel=colours.get("panel"),
        success=colours.get("success"),
        warning=colours.get("warning"),
        error=colours.get("error"),
    )


def _colours(
    name: str, table: dict[str, Any], known: Sequence[str], wrong: list[str]
) -> dict[str, str]:
    rows = table.get(name, {})
    if not isinstance(rows, dict):
        wrong.append(f"{name} is not a table")
        return {}
    wrong.extend(_strangers(f"{name}.", rows, known))
    parsed: dict[str, str] = {}
    for key in known:
        if key not in rows:
            continue
        try:
            parsed[key] = Color.parse(rows[key]).hex6
        except (ColorParseError, TypeError, AttributeError):
            wrong.append(f"{name}.{key} is not a colour: write it as #rrggbb")
    return parsed


def _strangers(where: str, rows: dict[str, Any], known: Sequence[str]) -> Iterable[str]:
    for key in rows:
        if key not in known:
            meant = nearest(key, known)
            hint = f", did you mean {meant}?" if meant else ""
            yield f"{where}{key} is not known{hint}"
