"""The checkup screen: the five questions, the memory, what would fail, and its ways out."""

import checks
import pytest
import scenes

from spectui.domain.errors import ServerError, UsageError
from spectui.domain.findings import Severity
from spectui.domain.preflight import Preflight
from spectui.tui.glyphs import SETS
from spectui.tui.render import memory
from spectui.tui.screens.checkup import Checkup
from spectui.tui.screens.confirm import Confirm


def names(f):
    return [name for name, _ in f.controls.calls]


async def opened(f, found):
    f.controls.found = found
    await f.press("k")
    assert isinstance(f.app.screen, Checkup)


async def test_it_answers_the_five_questions(face):
    async with face() as f:
        await opened(f, checks.fine())
        for question in checks.questions():
            [row] = [row for row in f.text.split("\n") if question.question in row]
            assert str(question.answer) in row
            assert question.why[:30] in row
        assert "✓ nothing found that would fail" in f.text
        assert "✓ fine    port 8080 is free" in f.text


async def test_on_a_narrow_terminal_the_answer_stands_below_the_question(face):
    async with face(size=(80, 24)) as f:
        await opened(f, checks.fine())
        rows = f.text.split("\n")
        at = next(i for i, row in enumerate(rows) if "Is there a fitting draft?" in row)
        assert "tiny-Q8_0.gguf fits" in rows[at + 1]


async def test_the_memory_is_drawn_with_numbers(face):
    async with face() as f:
        await opened(f, checks.fine())
        assert "GPU  about 5.61 GiB wanted of 23.1 GiB free" in f.text
        for part in (
            "█ target weights 3.90 GiB",
            "▓ draft weights 380 MiB",
            "▒ KV cache of both 1008 MiB",
            "░ work buffers 358 MiB",
            "· left 17.5 GiB",
        ):
            assert part in f.text


async def test_what_would_fail_comes_before_the_questions_and_the_rest_after_the_memory(face):
    async with face() as f:
        await opened(f, checks.trouble())
        order = ["1 thing would fail", "✗ blocker", "five questions", "memory", "! warning"]
        places = [f.text.index(words) for words in order]
        assert places == sorted(places)


async def test_a_digit_applies_a_fix_and_all_is_checked_again(face):
    async with face() as f:
        await opened(f, checks.trouble())
        f.controls.found = checks.fine()
        await f.press("1")
        assert f.controls.calls == [
            ("preflight", None),
            ("adopt", checks.TYPE_NONE.fixes[0]),
            ("preflight", None),
        ]
        assert "blocker" not in f.text
        assert "nothing found that would fail" in f.text


async def test_a_click_applies_a_fix(face):
    async with face() as f:
        await opened(f, checks.trouble())
        await f.click_text("leave the draft model out")
        assert ("adopt", checks.TYPE_NONE.fixes[1]) in f.controls.calls


async def test_enter_applies_only_what_the_cursor_is_on(face):
    async with face() as f:
        await opened(f, checks.trouble())
        await f.press("enter")
        assert "adopt" not in names(f)
        await f.press("down", "down", "enter")
        assert ("adopt", checks.TYPE_NONE.fixes[1]) in f.controls.calls


async def test_while_a_fix_is_applied_it_says_so_and_takes_no_second_one(face):
    async with face(hold=True) as f:
        await f.press("k")
        f.controls.end(checks.trouble())
        await f.settle()
        await f.press("1", "2")
        assert "applying: set the type to draft-simple, for 0 s" in f.text
        assert names(f) == ["preflight", "adopt"]
        f.controls.end(error=ServerError("it did not start", "see the log"))
        await f.settle()
        # the profile may have changed all the same
        assert names(f) == ["preflight", "adopt", "preflight"]
        assert f.toasts == [("it did not start: see the log", "error")]


async def test_a_fix_that_costs_runs_asks_and_no_leaves_all_as_it_was(face):
    async with face(scenes.done()) as f:
        await opened(f, checks.trouble())
        await f.press("2")
        assert isinstance(f.app.screen, Confirm)
        await f.press("n")
        assert names(f) == ["preflight"]
        assert "1 thing would fail" in f.text


async def test_while_it_checks_it_says_for_how_long_and_escape_gives_it_up(face):
    async with face(hold=True) as f:
        await f.press("k")
        assert "checking the profile, its files, the engine and this machine, for 0 s" in f.text
        await f.press("escape")
        assert f.app.screen is f.dashboard
        f.controls.end(checks.trouble())
        await f.settle()
        assert f.app.screen is f.dashboard


async def test_the_time_goes_on_while_it_checks(face):
    async with face(hold=True) as f:
        await f.press("k")
        f.app.screen._since -= 7
        f.app.screen._tick()
        await f.settle()
        assert "for 7 s" in f.text


async def test_a_check_that_fails_says_why_and_k_tries_again(face):
    async with face() as f:
        f.controls.failure = UsageError("the [b]profile[/b] is gone", "write it again")
        await f.press("k")
        assert "✗ the [b]profile[/b] is gone: write it again" in f.text
        f.controls.failure = None
        f.controls.found = checks.fine()
        await f.press("k")
        assert "nothing found that would fail" in f.text


async def test_k_checks_again(face):
    async with face() as f:
        await opened(f, checks.fine())
        f.controls.found = checks.trouble()
        await f.press("k")
        assert "1 thing would fail" in f.text


async def test_without_findings_it_is_short(face):
    async with face() as f:
        await opened(f, checks.checked())
        assert "nothing found that would fail" in f.text
        assert "what else" not in f.text
        assert "memory" not in f.text


async def test_without_a_profile_there_are_no_questions(face):
    async with face() as f:
        await opened(f, Preflight((), (checks.PORT,)))
        assert "five questions" not in f.text
        assert "port 8080 is free" in f.text


async def test_twenty_findings_scroll_and_all_their_fixes_can_be_reached(face):
    async with face(size=(80, 24)) as f:
        await opened(f, checks.twenty())
        assert "finding 20 of twenty" not in f.text
        await f.press("end")
        assert "finding 20 of twenty" in f.text
        await f.press("home")
        for _ in range(60):
            f.app.screen._page.action_move(1)
        await f.settle()
        assert "finding 20 of twenty" in f.text
        assert f.app.screen._page.cursor == 19
        await f.press("enter")
        assert ("adopt", checks.PARALLEL.fixes[0]) in f.controls.calls


async def test_hostile_text_is_shown_and_never_acts(face):
    async with face(size=(80, 24)) as f:
        await opened(f, checks.hostile())
        assert "[bold red]x[/]" in f.text
        assert "\x1b" not in f.text
        assert "owned" not in f.text
        assert f.app.is_running


@pytest.mark.parametrize("glyphs", sorted(SETS))
async def test_every_set_of_signs_says_it_in_words_as_well(face, glyphs):
    async with face(glyphs=glyphs) as f:
        await opened(f, checks.too_large())
        for word in ("blocker", "fine", "yes", "no", "unknown", "too much", "here it ends"):
            assert word in f.text
        if glyphs == "ascii":
            assert f.text.isascii()


async def test_another_theme_draws_it_in_other_colours(face):
    async with face() as f:
        await opened(f, checks.fine())
        f.app.theme = "spectui-light"
        await f.settle()
        assert f.app.screen._page.look == f.app.look


# -- the picture of the memory ---------------------------------------------------------------------


def drawn(fit, width=100, glyphs="braille"):
    return [line.plain for line in memory.draw(fit, width, SETS[glyphs])]


def test_a_launch_that_is_too_large_shows_where_the_memory_ends():
    rows = drawn(checks.fit(2.0, free=8 * checks.GIB))
    assert rows[0] == "GPU  about 11.2 GiB wanted, 8.00 GiB free: 3.21 GiB too much"
    assert len(rows[1]) == 100
    assert rows[2].index("▴") == round(100 * 8 / 11.21)


def test_little_room_is_warned_of():
    assert any(
        "less than 1.00 GiB of head-room" in row for row in drawn(checks.fit(free=6 * 2**30))
    )


def test_what_is_free_may_not_be_known():
    assert drawn(checks.fit(free=None))[0] == (
        "GPU  about 5.61 GiB wanted, what is free is not told"
    )


def test_weights_in_ram_have_a_bar_of_their_own():
    rows = drawn(checks.fit(host=2 * checks.GIB))
    assert "RAM  about 2.00 GiB wanted, what is free is not told" in rows


def test_what_could_not_be_counted_is_said():
    assert drawn(checks.fit(unknown=("the KV cache of the draft",)))[-1] == (
        "i not counted: the KV cache of the draft"
    )


@pytest.mark.parametrize(
    ("sizes", "width"), [((1, 1, 10**12), 20), ((5, 0, 5), 9), ((7, 7, 7), 10), ((3,), 4)]
)
def test_a_bar_is_as_wide_as_it_should_be_and_hides_no_part(sizes, width):
    cells = memory.split(sizes, width)
    assert sum(cells) == width
    assert all(bool(size) == bool(count) for size, count in zip(sizes, cells, strict=True))


def test_a_bar_of_nothing_is_nothing():
    assert memory.split([0, 0], 10) == [0, 0]


def test_a_bar_with_more_parts_than_cells_still_ends():
    assert memory.split([1, 1, 1], 2) == [1, 1, 1]


def test_severities_all_have_a_word():
    from spectui.tui.render import findings

    assert set(findings.WORDS) == set(findings.TONES) == set(Severity)
    assert len(set(findings.WORDS.values())) == len(Severity)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 MiB"),
        (300_000, "0.3 MiB"),
        (380 * checks.MIB, "380 MiB"),
        (5 * checks.GIB, "5.00 GiB"),
    ],
)
def test_memory_has_as_many_digits_as_it_deserves(size, text):
    from spectui.tui.words import memory as told

    assert told(size) == text
