"""What is wrong with the launch: by sign and word, in as much room as there is, with a way out."""

from dataclasses import replace

import pytest
import scenes
from fake_controls import FakeControls
from textual.color import Color

from spectui.domain.attached import Attachment
from spectui.domain.errors import ServerError
from spectui.domain.findings import Finding, Fix, Severity
from spectui.domain.phases import Phase
from spectui.domain.speculation import Speculation
from spectui.tui import plans
from spectui.tui.screens.confirm import Confirm
from spectui.tui.screens.trouble import Trouble
from spectui.tui.widgets.banner import Banner


async def test_a_healthy_launch_has_no_banner(face):
    async with face(scenes.done()) as f:
        assert f.dashboard.query_one(Banner).size.height == 0
        assert "what's wrong" not in f.text


async def test_the_worst_is_told_in_full_with_every_way_out(face):
    async with face(scenes.troubled()) as f:
        assert "─ ✗ blocker · vocab-mismatch ─" in f.text
        said = " ".join(f.text.replace("│", " ").split())
        assert "llama-server has loaded the draft model and does not use it" in said
        assert "take a drafter of the same family" in f.text
        assert "f draft from repeats of the text   g leave the draft model out" in f.text
        assert "w +2 more" in f.text
        assert "w what's wrong" in f.text.split("\n")[-1]


async def test_at_80x24_it_takes_one_line_and_the_answer_stays(face):
    async with face(scenes.troubled(), size=(80, 24)) as f:
        rows = f.text.split("\n")
        assert "is faster: 1.28×" in rows[1]
        [row] = [row for row in rows if "blocker" in row]
        assert row.startswith(" ✗ blocker  ready, but not speculating: ")
        assert row.endswith("f fix  w +2 more")
        assert f.dashboard.query_one(Banner).size.height == 1


async def test_a_short_fix_is_named_on_a_small_terminal_too(face):
    async with face(scenes.refused(), size=(80, 24)) as f:
        [row] = [row for row in f.text.split("\n") if "blocker" in row]
        assert row.startswith(" ✗ blocker  port 8080 is taken by another program")
        assert row.endswith("f use a free port  w all")


@pytest.mark.parametrize(("key", "number"), [("f", 0), ("g", 1)])
async def test_one_key_applies_a_way_out(face, key, number):
    async with face(replace(scenes.idle(), findings=(scenes.MISMATCH,))) as f:
        await f.press(key)
        assert f.controls.calls == [("adopt", scenes.MISMATCH.fixes[number])]


async def test_a_click_applies_it_too(face):
    async with face(replace(scenes.idle(), findings=(scenes.MISMATCH,))) as f:
        await f.click_text("leave the draft model out")
        assert f.controls.calls == [("adopt", scenes.MISMATCH.fixes[1])]


async def test_a_letter_without_a_way_out_does_nothing(face):
    async with face(scenes.refused()) as f:
        await f.press("g", "h")
        assert f.controls.calls == []


async def test_digits_still_type_into_the_knob(face):
    async with face(scenes.refused()) as f:
        await f.press("1", "2")
        assert f.controls.calls == []
        assert f.dashboard.pending.speculation.draft_length == 12


async def test_a_failed_start_is_told_once_with_its_class(face):
    async with face(scenes.refused()) as f:
        assert "─ ✗ blocker · port-in-use ─" in f.text
        assert f.text.count("is taken by another program") == 1
        assert "✗ the server failed  l log" in f.text
        await f.press("f")
        assert f.controls.calls == [("adopt", scenes.NO_PORT.fixes[0])]


async def test_a_fix_that_takes_runs_out_of_sight_asks_first(face):
    async with face(scenes.troubled()) as f:
        await f.press("g")
        assert isinstance(f.app.screen, Confirm)
        assert "3 runs of before stay in the record" in f.app.screen._said
        await f.press("enter")
        assert f.controls.calls == []
        await f.press("g", "y")
        assert f.controls.calls == [("adopt", scenes.MISMATCH.fixes[1])]


async def test_a_fix_of_the_setting_alone_does_not_ask(face):
    async with face(scenes.troubled()) as f:
        await f.press("f")
        assert f.controls.calls == [("adopt", scenes.MISMATCH.fixes[0])]


async def test_a_fix_during_a_measurement_asks_and_leaves_cancelling_to_the_session(face):
    async with face(replace(scenes.measuring(), findings=(scenes.MISMATCH,))) as f:
        await f.press("f")
        assert "12 of 36" in f.app.screen._said
        await f.press("y")
        assert [name for name, _ in f.controls.calls] == ["adopt"]


def test_a_start_that_took_long_is_told_before_the_profile_changes():
    plan = plans.adopting(scenes.up(scenes.idle(), Speculation()), scenes.NO_PORT.fixes[0], 30.0)
    assert "The last start took 30 s" in plan.question
    assert plan.yes == "change it"


async def test_a_fix_that_fails_is_told_as_an_error(face):
    async with face(scenes.refused()) as f:
        f.controls.failure = ServerError("no room", "free some")
        await f.press("f")
        assert f.toasts == [("no room: free some", "error")]


async def test_the_knobs_follow_the_changed_profile(face):
    async with face(scenes.refused()) as f:
        await f.press("right", "f")
        await f.emit(replace(scenes.idle(), speculation=scenes.draft_simple(7)))
        assert f.dashboard.pending.speculation.draft_length == 7


async def test_w_opens_the_whole_and_a_digit_applies(face):
    async with face(scenes.troubled(), size=(80, 24)) as f:
        await f.press("w")
        assert isinstance(f.app.screen, Trouble)
        for words in ("✗ blocker", "! warning", "i hint", "turning n_max up changes nothing"):
            assert words in f.text
        assert "1 draft from repeats of the text" in f.text
        await f.press("1")
        assert f.controls.calls == [("adopt", scenes.MISMATCH.fixes[0])]
        assert f.app.screen is f.dashboard


async def test_in_the_whole_the_cursor_chooses_and_enter_alone_does_nothing(face):
    async with face(scenes.troubled()) as f:
        await f.press("w", "enter")
        assert f.controls.calls == []
        await f.press("down", "enter")
        assert f.controls.calls == [("adopt", scenes.MISMATCH.fixes[0])]


async def test_the_whole_follows_the_session(face):
    async with face(scenes.troubled()) as f:
        await f.press("w")
        await f.emit(scenes.done())
        assert "nothing is wrong any more" in f.text
        await f.press("1", "escape")
        assert f.controls.calls == []


async def test_w_without_trouble_says_so(face):
    async with face(scenes.done()) as f:
        await f.press("w")
        assert "nothing is wrong with this launch" in f.toasts[0][0]


async def test_a_hint_takes_one_line_even_where_there_is_room(face):
    async with face(scenes.troubled(scenes.SHORT)) as f:
        assert f.dashboard.query_one(Banner).size.height == 1
        assert "i hint  drafts are 2.1 tokens long on average" in f.text


async def test_it_goes_when_the_trouble_is_over(face):
    async with face(scenes.troubled()) as f:
        await f.emit(scenes.done())
        assert "blocker" not in f.text
        assert f.dashboard.query_one(Banner).size.height == 0


async def test_the_frame_has_the_colour_of_the_severity(face):
    async with face(scenes.troubled()) as f:
        colour = f.dashboard.query_one(Banner).styles.border_top[1]
        assert colour == Color.parse(f.app.look.colour("bad"))
        await f.emit(scenes.troubled(scenes.OTHER_FLAGS))
        colour = f.dashboard.query_one(Banner).styles.border_top[1]
        assert colour == Color.parse(f.app.look.colour("warn"))


@pytest.mark.parametrize("glyphs", ["block", "ascii"])
async def test_signs_and_words_do_without_colour_and_unicode(face, glyphs):
    async with face(scenes.troubled(), glyphs=glyphs) as f:
        assert "x blocker" in f.text
        if glyphs == "ascii":
            assert f.text.isascii()


async def test_hostile_text_is_shown_and_never_acts(face):
    bad = Finding(
        "[x]\x1b[2J", Severity.BLOCKER, scenes.HOSTILE, scenes.HOSTILE, (Fix("[b]go[/b]", ()),)
    )
    async with face(scenes.troubled(bad)) as f:
        assert "[bold red]x[/]" in f.text
        assert "f [b]go[/b]" in f.text
        assert "\x1b" not in f.text
        assert "\u202e" not in f.text
        await f.press("w")
        assert "1 [b]go[/b]" in f.text
        assert "\x1b" not in f.text


async def test_somebody_elses_server_is_diagnosed_and_never_changed(face):
    attached = Attachment("llama-server", types=("draft-simple",), speculating=False)
    snapshot = replace(scenes.troubled(), attached=attached, phase=Phase.READY)
    async with face(snapshot) as f:
        assert "blocker" in f.text
        assert "leave the draft model out" not in f.text
        await f.press("f")
        assert f.controls.calls == []
        assert "k check" not in f.text.split("\n")[-1]


def test_the_fake_adopts_as_the_session_does():
    controls = FakeControls()
    controls.adopt(scenes.NO_PORT.fixes[0])
    assert controls.calls == [("adopt", scenes.NO_PORT.fixes[0])]
