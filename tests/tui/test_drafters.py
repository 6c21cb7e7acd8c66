"""The drafters screen: what can draft for the target, best first, and why the others cannot."""

import time
from dataclasses import replace

import checks
import pytest
import scenes
from textual.widgets import Input

from spectui.domain.errors import ModelFileError, UsageError
from spectui.domain.models import ModelKind
from spectui.domain.speculation import Speculation
from spectui.tui.glyphs import SETS
from spectui.tui.screens.confirm import Confirm
from spectui.tui.screens.drafters import Drafters, taking
from spectui.tui.words import count, size


async def opened(f, found):
    f.controls.surveyed = found
    await f.press("r")
    assert isinstance(f.app.screen, Drafters)


def adopted(f):
    return [fix for name, fix in f.controls.calls if name == "adopt"]


async def test_the_suggestion_is_on_top_and_says_why(face):
    async with face() as f:
        await opened(f, checks.survey())
        rows = f.text.split("\n")
        at = next(i for i, row in enumerate(rows) if "suggested" in row)
        assert "▸ 1 draft-eagle3 with Qwen3-32B-EAGLE3.gguf" in rows[at + 1]
        assert "made for such a target" in rows[at + 2]
        assert "for Qwen3-32B-Q4_K_M.gguf · qwen3 · 33 B parameters · Q4_K_M" in rows[1]


async def test_possible_drafts_come_best_first_with_type_size_ratio_and_remark(face):
    async with face() as f:
        await opened(f, checks.survey())
        table = f.text.split("possible drafts (5)")[1].split("cannot draft")[0].split("\n")[1:6]
        assert ["EAGLE3" in table[0], "Qwen3-4B" in table[1]] == [True, True]
        assert " ".join(table[1].split("│")[1].split()) == (
            "3 Qwen3-4B-Q4_K_M.gguf draft-simple 2.4 GB 1:8.2 in the usual good range"
        )


async def test_every_other_file_has_its_reason(face):
    async with face() as f:
        await opened(f, checks.broken_too())
        rest = f.text.split("cannot draft for it (5)")[1]
        for name, why in (
            ("Llama-3.2-1B-Instruct-Q8_0.gguf", "special tokens"),
            ("Qwen3-1.7B-odd.gguf", "token 271"),
            ("mmproj-F16.gguf", "projector"),
            ("half.gguf", "it ends in its tensors"),
        ):
            [row] = [row for row in rest.split("\n") if name in row]
            assert why in row


async def test_the_one_in_use_is_marked(face):
    async with face(replace(scenes.idle(), draft="tiny Q8_0")) as f:
        await opened(f, checks.survey())
        [row] = [row for row in f.text.split("\n") if "in use" in row]
        assert "tiny Q8_0" in row


async def test_enter_takes_the_suggestion_and_goes_back_to_see_it_start(face):
    async with face() as f:
        await opened(f, checks.survey())
        await f.press("enter")
        [fix] = adopted(f)
        assert fix.changes == (
            ("speculation.type", "draft-eagle3"),
            ("models.draft", "/models/Qwen3-32B-EAGLE3.gguf"),
        )
        assert f.app.screen is f.dashboard


@pytest.mark.parametrize("keys", [("down", "down", "enter"), ("3",)])
async def test_the_cursor_and_the_digits_take_another(face, keys):
    async with face() as f:
        await opened(f, checks.survey())
        await f.press(*keys)
        [fix] = adopted(f)
        assert ("models.draft", "/models/Qwen3-4B-Q4_K_M.gguf") in fix.changes


async def test_a_click_takes_one(face):
    async with face(size=(80, 24)) as f:
        await opened(f, checks.survey())
        await f.click_text("Qwen3-14B")
        [fix] = adopted(f)
        assert ("models.draft", "/models/Qwen3-14B-Q4_K_M.gguf") in fix.changes


async def test_one_that_takes_runs_out_of_sight_asks_first(face):
    async with face(scenes.done()) as f:
        await opened(f, checks.survey())
        await f.press("enter")
        assert isinstance(f.app.screen, Confirm)
        await f.press("n")
        assert isinstance(f.app.screen, Drafters)
        assert adopted(f) == []


async def test_own_mtp_layers_are_suggested_without_a_file(face):
    async with face() as f:
        target = replace(checks.TARGET, mtp_layers=1)
        await opened(f, checks.survey(target))
        assert "▸ 1 draft-mtp " in f.text
        assert "1 MTP layer" in f.text
        await f.press("1")
        [fix] = adopted(f)
        assert fix.changes == (("speculation.type", "draft-mtp"), ("models.draft", None))


async def test_nothing_found_says_where_was_looked_and_what_to_do(face):
    async with face() as f:
        await opened(f, checks.nothing_found())
        assert "! no other model (*.gguf) was found" in f.text
        assert "/home/me/.cache/llama.cpp  llama.cpp's cache, not there" in f.text
        assert "/mnt/big  given, permission denied" in f.text
        assert "put a smaller model of the same family beside the target" in f.text
        await f.press("enter")
        [fix] = adopted(f)
        assert fix.changes == (("speculation.type", "ngram-mod"), ("models.draft", None))


async def test_a_target_that_cannot_be_one_has_nothing_to_take(face):
    async with face() as f:
        await opened(f, checks.survey(replace(checks.TARGET, kind=ModelKind.PROJECTOR)))
        assert "this file cannot be a target" in f.text
        assert "no model on this machine can draft for it" in f.text
        await f.press("enter", "1")
        assert adopted(f) == []


async def test_while_it_looks_it_says_for_how_long_and_escape_gives_it_up(face):
    async with face(hold=True) as f:
        await f.press("r")
        assert "reading the headers of the models on this machine, for 0 s" in f.text
        await f.press("enter", "1", "escape")
        assert f.app.screen is f.dashboard
        f.controls.end(checks.survey())
        await f.settle()
        assert [name for name, _ in f.controls.calls] == ["survey"]


@pytest.mark.parametrize(
    "error",
    [
        UsageError("this server runs elsewhere: spectui only watches it"),
        ModelFileError("model-truncated", "[b]big[/b].gguf ends in its header"),
    ],
)
async def test_a_refusal_is_told_and_r_tries_again(face, error):
    async with face() as f:
        f.controls.failure = error
        await f.press("r")
        assert f"✗ {error}" in f.text
        f.controls.failure = None
        f.controls.surveyed = checks.survey()
        await f.press("r")
        assert "suggested" in f.text


async def test_what_was_found_is_remembered_until_r_looks_again(face):
    async with face() as f:
        await opened(f, checks.survey())
        await f.press("escape", "r")
        assert "suggested" in f.text
        assert [name for name, _ in f.controls.calls] == ["survey"]
        f.controls.surveyed = checks.nothing_found()
        await f.press("r")
        assert "no other model" in f.text


async def test_the_filter_shows_what_has_all_its_words(face):
    async with face() as f:
        await opened(f, checks.survey())
        await f.press("slash", *"q8")
        assert "possible drafts (2)" in f.text
        assert "suggested" not in f.text
        assert "cannot draft for it (1)" in f.text  # its Llama is a Q8_0 too
        await f.press(*" tiny", "enter", "1")
        [fix] = adopted(f)
        assert ("models.draft", "/models/tiny Q8_0") in fix.changes


async def test_the_filter_takes_letters_that_are_keys_elsewhere(face):
    async with face() as f:
        await opened(f, checks.survey())
        await f.press("slash", *"qr1")
        assert f.app.screen.query_one(Input).value == "qr1"
        assert "no model has 'qr1' in it" in f.text
        await f.press("escape")
        assert "suggested" in f.text
        assert isinstance(f.app.screen, Drafters)
        await f.press("escape")
        assert f.app.screen is f.dashboard


async def test_down_goes_from_the_filter_to_the_list(face):
    async with face() as f:
        await opened(f, checks.survey())
        await f.press("slash", *"eagle", "down", "enter")
        [fix] = adopted(f)
        assert ("speculation.type", "draft-eagle3") in fix.changes


async def test_hundreds_of_files_are_drawn_and_filtered_quickly(face):
    async with face(size=(80, 24)) as f:
        await opened(f, checks.hundreds())
        assert "possible drafts (400)" in f.text
        screen = f.app.screen
        began = time.perf_counter()
        screen._words = ("draft-599",)
        screen._page.show(screen._whole)
        screen._words = ()
        screen._page.show(screen._whole)
        assert time.perf_counter() - began < 0.5
        await f.settle()
        await f.press("end")
        assert "draft-597.gguf" in f.text
        await f.press("home")
        assert "suggested" in f.text


@pytest.mark.parametrize("glyphs", sorted(SETS))
async def test_hostile_names_are_shown_and_never_act(face, glyphs):
    async with face(glyphs=glyphs, size=(80, 24)) as f:
        bad = replace(
            checks.DRAFTS[0], path=f"/models/x{checks.HOSTILE.replace('/', '')}.gguf", name="[b]"
        )
        await opened(f, checks.survey(replace(checks.TARGET, architecture="[b]"), (bad,)))
        assert "[bold red]x[]" in f.text
        assert "\x1b" not in f.text
        assert "\u202e" not in f.text
        if glyphs == "ascii":
            assert f.text.isascii()


async def test_files_of_one_name_are_told_apart_by_their_folder(face):
    async with face() as f:
        twins = [replace(checks.DRAFTS[0], path=f"/models/{name}/a.gguf") for name in ("x", "y")]
        await opened(f, checks.survey(others=twins))
        assert "a.gguf in x" in f.text
        assert "a.gguf in y" in f.text


def test_a_drafter_sets_the_knobs_that_it_cannot_follow():
    block = checks.model(
        "/m/d.gguf", 1e9, kind=ModelKind.DSPARK, block_size=7, confidence=False, anchored=True
    )
    now = Speculation.of("draft-simple", {"n_max": 16, "n_min": 9, "p_min": 0.5})
    assert taking("draft-dspark", block, now).changes == (
        ("speculation.type", "draft-dspark"),
        ("models.draft", "/m/d.gguf"),
        ("speculation.n_max", 7),
        ("speculation.n_min", 0),
        ("speculation.p_min", 0.0),
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "–"),
        (999, "999 B"),
        (372_400_000, "372 MB"),
        (4_440_000_000, "4.4 GB"),
        (999_600_000, "1.0 GB"),
        (9_960_000_000, "10 GB"),
        (5 * 10**15, "5000 TB"),
    ],
)
def test_sizes_are_written_as_model_pages_do(value, text):
    assert size(value) == text


@pytest.mark.parametrize(("value", "text"), [(135_000_000, "135 M"), (7_620_000_000, "7.6 B")])
def test_parameters_are_counted_in_words(value, text):
    assert count(value) == text
