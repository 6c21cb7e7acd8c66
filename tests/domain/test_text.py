import unicodedata

from hypothesis import given, strategies as st

from spectui.domain.text import clean, nearest


def test_escape_sequences_vanish():
    assert clean("\x1b[31mred\x1b[0m") == "red"
    assert clean("\x1b]0;title\x07text") == "text"
    assert clean("\x1b]52;c;aGk=\x1b\\text") == "text"
    assert clean("a\x9b2Jb") == "ab"
    assert clean("\x1bPq#0\x1b\\z") == "z"


def test_a_line_stays_a_line():
    assert clean("a\nb\r\nc") == "a b  c"
    assert clean("a\tb") == "a    b"


def test_direction_marks_and_nul_vanish():
    assert clean("a\u202eb\u200bc\0d") == "abcd"


def test_markup_stays_as_it_is():
    assert clean("[bold]x[/bold]") == "[bold]x[/bold]"


def test_long_text_is_cut_with_a_sign():
    assert clean("x" * 5000, limit=10) == "x" * 9 + "…"


@given(st.text())
def test_nothing_that_controls_a_terminal_survives(text):
    assert not any(unicodedata.category(c) in {"Cc", "Cf", "Cs"} for c in clean(text))


def test_nearest():
    assert nearest("n_maks", ["n_max", "p_min"]) == "n_max"
    assert nearest("qqq", ["n_max", "p_min"]) == ""
