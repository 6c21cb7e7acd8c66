"""Themes from files: the shipped ones are good, a bad one costs nothing but itself."""

from pathlib import Path

import pytest
import scenes
from textual.color import Color

from spectui.domain.errors import UsageError
from spectui.tui import themes
from spectui.tui.glyphs import BRAILLE
from spectui.tui.look import TONES, Look

SHIPPED = Path(__file__).parents[2] / "themes"


def contrast(one: str, other: str) -> float:
    """Return the contrast of WCAG 2, from 1 to 21."""

    def luminance(colour: str) -> float:
        parts = [part / 255 for part in Color.parse(colour).rgb]
        linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_the_shipped_themes_load_without_a_complaint():
    found, problems = themes.load([SHIPPED])
    assert problems == ()
    assert set(found) >= {"spectui-dark", "spectui-light", "spectui-contrast"}


@pytest.mark.parametrize("file", sorted(SHIPPED.glob("*.toml")), ids=lambda file: file.stem)
def test_a_shipped_theme_is_legible_and_tells_arms_apart(file):
    theme = themes.read(file)
    look = Look.of(theme, BRAILLE)
    quiet = {"faint": 1.5, "flight": 3.0}
    for tone in TONES:
        least = quiet.get(tone, 7.0 if "contrast" in file.stem else 4.5)
        assert contrast(look.colour(tone), theme.background) >= least, tone
    arms = {look.colour(tone) for tone in TONES if tone.startswith("arm")}
    assert len(arms) == 6


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("dark = ", "is not TOML"),
        ("dark = 1\n[colours]\nprimary = '#ffffff'", "dark is true or false"),
        ("[colours]\nprimary = 'no colour'", "colours.primary is not a colour"),
        ("[colours]\nprimary = 7", "colours.primary is not a colour"),
        ("[colours]\nsecondary = '#ffffff'", "colours.primary is missing"),
        ("[colors]\nprimary = '#ffffff'", "colors is not known, did you mean colours?"),
        ("[colours]\nprimary = '#ffffff'\n[tones]\ngoood = '#ffffff'", "did you mean good?"),
        ("colours = 1", "colours is not a table"),
    ],
)
def test_a_bad_file_is_left_out_and_why_is_told(tmp_path, text, words):
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    found, problems = themes.load([tmp_path])
    assert found == {}
    assert "mine.toml" in problems[0]
    assert words in problems[0]


def test_all_that_is_wrong_is_told_at_once(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text("[colours]\nprimary = 'x'\naccent = 'y'", encoding="utf-8")
    with pytest.raises(UsageError, match=r"primary.*accent"):
        themes.read(file)


def test_a_file_that_is_no_text_is_left_out(tmp_path):
    (tmp_path / "mine.toml").write_bytes(b"\xff\xfe\x00")
    assert themes.load([tmp_path])[0] == {}


def test_a_folder_that_is_not_there_has_no_themes(tmp_path):
    assert themes.load([tmp_path / "none"]) == ({}, ())


def test_a_theme_of_the_user_replaces_a_shipped_one(tmp_path):
    (tmp_path / "spectui-dark.toml").write_text("[colours]\nprimary = '#123456'", encoding="utf-8")
    found, _ = themes.load([SHIPPED, tmp_path])
    assert found["spectui-dark"].primary == "#123456"


def test_textuals_own_themes_get_derived_tones():
    from textual.theme import BUILTIN_THEMES

    for theme in BUILTIN_THEMES.values():
        look = Look.of(theme, BRAILLE)
        assert all(look.colour(tone).startswith("#") for tone in TONES)


async def test_a_theme_that_does_not_exist_falls_back_and_is_told(face):
    async with face(theme="nowhere") as f:
        assert f.app.theme == "spectui-dark"
        assert "there is no theme nowhere" in f.toasts[0][0]


async def test_without_any_theme_file_the_dashboard_still_opens(face, tmp_path):
    (tmp_path / "bad.toml").write_text("[", encoding="utf-8")
    async with face(theme_folders=[tmp_path]) as f:
        assert f.app.theme == themes.FALLBACK
        assert "Nothing measured yet" in f.text
        assert any("bad.toml" in text for text, _ in f.toasts)


@pytest.mark.parametrize("name", ["spectui-light", "spectui-contrast", "nord", "textual-ansi"])
async def test_every_theme_draws_the_dashboard(face, name):
    async with face(scenes.done(), theme=name) as f:
        if name in f.app.available_themes:
            assert f.app.theme == name
        assert "faster: 1.28×" in f.text


async def test_changing_the_theme_recolours_what_stands(face):
    async with face(scenes.done()) as f:
        before = f.app.look
        f.app.theme = "spectui-light"
        await f.settle()
        assert f.app.look != before
        assert f.dashboard.query_one("#speed").look == f.app.look
