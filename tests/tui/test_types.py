"""The type dialogue: one type or several, and the reason beside each that cannot be."""

from dataclasses import replace

import checks
import pytest
import scenes

from spectui.domain.dialect import read_help
from spectui.domain.models import ModelKind
from spectui.domain.speculation import TYPES, Speculation
from spectui.tui.glyphs import SETS
from spectui.tui.pending import silent, together
from spectui.tui.screens.types import Types
from spectui.tui.widgets.page import Page


def row_of(f, kind):
    return next(row for row in f.text.split("\n") if f"] {kind} " in row)


async def opened(f, survey=None):
    if survey is not None:
        f.controls.surveyed = survey
    await f.press("t")
    assert isinstance(f.app.screen, Types)


@pytest.mark.parametrize("size", [(120, 36), (80, 24)])
async def test_all_types_are_listed_with_what_they_are(face, size):
    async with face(scenes.done(), size=size) as f:
        await opened(f)
        for kind in TYPES:
            assert TYPES[kind].summary in row_of(f, kind)
        assert "▸ [x] draft-simple" in f.text


async def test_at_60x18_the_list_scrolls_and_the_keys_are_explained(face):
    async with face(scenes.done(), size=(60, 18)) as f:
        await opened(f)
        assert "escape closes" in f.text
        await f.press("end")
        assert "ngram-cache" in f.text
        await f.press("home")
        assert "[ ] none" in f.text


async def test_space_combines_in_the_order_in_which_they_are_asked(face):
    async with face(scenes.done()) as f:
        await opened(f)
        f.app.screen.query_one(Page).point_at(list(TYPES).index("ngram-simple"))
        await f.press("space")
        assert "[1] ngram-simple" in f.text
        assert "[2] draft-simple" in f.text
        assert "enter takes ngram-simple, then draft-simple: at most 48 tokens a draft" in f.text
        await f.press("enter")
        assert f.dashboard.pending.speculation.type == "ngram-simple,draft-simple"


async def test_enter_alone_takes_the_one_under_the_cursor(face):
    async with face(scenes.done()) as f:
        await opened(f)
        await f.press("end", "enter")
        assert f.dashboard.pending.speculation.type == "ngram-cache"


async def test_what_cannot_be_combined_says_with_what_and_stays_unmarked(face):
    async with face(scenes.done()) as f:
        await opened(f)
        assert "· not beside draft-simple" in row_of(f, "draft-eagle3")
        assert "not beside" not in row_of(f, "ngram-mod")
        await f.press("down", "space")
        assert (
            "space cannot add it: draft-simple and draft-mtp cannot share the one draft" in f.text
        )
        assert "[ ] draft-mtp" in f.text


async def test_none_takes_every_mark_away_and_a_mark_takes_none_away(face):
    async with face(scenes.combined()) as f:
        await opened(f)
        await f.press("home", "space")
        assert "[x] none" in f.text
        assert f.text.count("[x]") == 1
        await f.press("end", "space", "enter")
        assert f.dashboard.pending.speculation.type == "ngram-cache"


async def test_without_any_mark_left_it_is_the_baseline(face):
    async with face(scenes.done()) as f:
        await opened(f)
        await f.press("space", "enter")
        assert f.dashboard.pending.speculation.is_off


async def test_a_click_on_the_box_marks_and_a_click_on_the_name_takes(face):
    async with face(scenes.done()) as f:
        await opened(f)
        await f.click_text("[ ] ngram-mod")
        assert "[1] ngram-mod" in f.text
        await f.click_text("ngram-mod ")
        assert f.dashboard.pending.speculation.type == "ngram-mod,draft-simple"


async def test_without_a_draft_model_the_reason_stands_beside(face):
    snapshot = replace(scenes.idle(), has_draft=False, speculation=Speculation.of("ngram-simple"))
    async with face(replace(snapshot, draft="")) as f:
        await opened(f)
        for kind in ("draft-simple", "draft-eagle3", "draft-dflash", "draft-dspark"):
            assert "needs a draft model; name one as models.draft" in row_of(f, kind)
        await f.press("home", "down", "space", "enter")
        assert isinstance(f.app.screen, Types)
        assert "✗ draft-simple: needs a draft model" in f.text
        assert "r on the dashboard lists the drafters there are" in f.text


async def test_a_target_without_mtp_layers_is_found_out_while_the_dialogue_is_open(face):
    snapshot = replace(scenes.idle(), has_draft=False, draft="", speculation=Speculation())
    async with face(snapshot, hold=True) as f:
        await f.press("t")
        assert "the target's own MTP layers" in row_of(f, "draft-mtp")
        f.controls.end(checks.survey())
        await f.settle()
        assert "the target has no MTP layers" in row_of(f, "draft-mtp")


@pytest.mark.parametrize(
    ("draft", "kind", "why"),
    [
        ("Qwen3-32B-EAGLE3.gguf", "draft-simple", "another kind (EAGLE-3 draft)"),
        ("Qwen3-4B-Q4_K_M.gguf", "draft-eagle3", "the draft model is a plain model"),
        ("Qwen3-4B-Q4_K_M.gguf", "draft-mtp", "neither the target nor the draft has MTP layers"),
        ("Qwen3-1.7B-odd.gguf", "draft-simple", "token 271"),
    ],
)
async def test_a_draft_of_another_kind_is_no_draft_for_it(face, draft, kind, why):
    async with face(replace(scenes.idle(), draft=draft)) as f:
        await opened(f, checks.survey())
        assert why in row_of(f, kind)


async def test_a_sidecar_with_mtp_heads_is_enough(face):
    sidecar = checks.model("/m/heads.gguf", 1e9, kind=ModelKind.MTP)
    async with face(replace(scenes.idle(), draft="heads.gguf")) as f:
        await opened(f, checks.survey(others=(sidecar,)))
        assert "the target's own MTP layers" in row_of(f, "draft-mtp")


async def test_a_survey_that_fails_leaves_the_dialogue_as_it_was(face):
    async with face(hold=True) as f:
        await f.press("t")
        f.controls.end(error=ValueError("odd"))
        await f.settle()
        assert "the target's own MTP layers" in row_of(f, "draft-mtp")
        assert f.toasts == []


async def test_models_are_not_read_while_something_is_measured(face):
    async with face(scenes.measuring()) as f:
        await opened(f)
        assert f.controls.calls == []


OLD = """\
  -m,    --model FNAME                    model path
  --port PORT                             port to listen
  -md,   --model-draft FNAME              draft model
  --draft-max, --draft, --draft-n N       number of tokens to draft
  --draft-min, --draft-n-min N            minimum number
  --draft-p-min P                         minimum probability
"""


async def test_what_the_binary_does_not_know_is_refused_with_its_words(face):
    dialect = read_help(OLD)
    async with face() as f:
        f.controls.check = dialect.refuse
        await opened(f)
        assert "this llama-server (flags of before 2026) has no ngram-mod" in row_of(f, "ngram-mod")
        assert "✗ draft-simple" not in f.text
        assert "a small model of the same kind" in row_of(f, "draft-simple")


async def test_escape_changes_nothing(face):
    async with face(scenes.done()) as f:
        await opened(f)
        await f.press("end", "space", "escape")
        assert f.dashboard.pending.speculation.type == "draft-simple"


@pytest.mark.parametrize("glyphs", sorted(SETS))
async def test_every_set_of_signs_draws_it(face, glyphs):
    async with face(scenes.combined(), glyphs=glyphs) as f:
        await opened(f)
        assert "[1] ngram-simple" in f.text
        if glyphs == "ascii":
            assert f.text.isascii()


# -- the knobs of what was chosen ------------------------------------------------------------------


async def test_knobs_of_several_types_are_grouped_by_type(face):
    setting = Speculation.of("ngram-simple,draft-simple")
    async with face(scenes.combined(setting), size=(120, 60)) as f:
        panel = f.text.split("─ knobs ")[1].split("\n")
        rows = [row.split("│")[1].strip() for row in panel[1:9]]
        assert rows[0].startswith("type     2 types")
        assert rows[1] == "ngram-simple"
        assert rows[2].startswith("▸ size_m   48")
        assert rows[4] == "draft-simple"
        assert rows[5] == "n_max    3"


@pytest.mark.parametrize("size", [(120, 36), (80, 24), (60, 18)])
async def test_every_knob_of_six_types_can_be_reached(face, size):
    async with face(scenes.combined(), size=size) as f:
        knobs = f.dashboard.pending.speculation.knobs
        assert len(knobs) == 13
        f.dashboard.action_choose(0)
        for row, knob in enumerate(knobs, 1):
            f.dashboard.action_move(1)
            await f.pilot.pause()
            assert f.dashboard.pending.row == row
            panel = f.text.split("knobs ")[1]
            chosen = next(line for line in panel.split("\n") if "▸" in line and "◂ " in line)
            label = f.dashboard.pending.speculation.label(knob)
            assert f"▸ {knob.label}" in chosen or f"▸{label}" in chosen


async def test_a_panel_too_small_counts_what_is_out_of_sight(face):
    async with face(scenes.combined()) as f:
        assert "↓ 15 more" in f.text
        await f.click_text("↓ 15 more")
        assert f.dashboard.pending.row == 2


async def test_why_a_knob_is_not_there_is_said(face):
    setting = Speculation.of("ngram-simple")
    async with face(scenes.combined(setting), size=(120, 60)) as f:
        said = " ".join(f.text.split("─ knobs ")[1].replace("│", " ").split())
        assert "n_max, n_min and p_min have no effect on ngram-simple; its length is size_m" in said


async def test_at_80x24_it_is_said_on_the_row_of_the_type(face):
    async with face(scenes.combined(Speculation.of("ngram-simple")), size=(80, 24)) as f:
        await f.press("up")
        assert "repeats of the text; n_max, n_min and p_min have no e" in f.text


def test_each_type_says_what_moves_it_instead():
    assert silent(Speculation.of("draft-simple")) == silent(Speculation()) == ()
    assert silent(Speculation.of("ngram-cache")) == (
        "no knob acts on ngram-cache: it drafts 8 tokens at most",
    )
    assert silent(Speculation.of("ngram-mod")) == (
        "ngram-mod has an n_max of its own, apart from draft models'",
    )
    assert silent(Speculation.of("ngram-map-k"))[1] == (
        "llama-server does nothing with min_hits on ngram-map-k"
    )


def test_a_combination_is_as_long_as_its_longest():
    told = together(Speculation.of("draft-simple,ngram-cache"))
    assert told == "ngram-cache, then draft-simple: at most 8 tokens a draft"
    assert together(Speculation()) == "none"


async def test_other_types_of_the_same_number_are_pending_too(face):
    async with face(scenes.combined(Speculation.of("ngram-simple,draft-simple"))) as f:
        f.dashboard.pending = f.dashboard.pending.with_type("ngram-mod,draft-simple")
        await f.settle()
        assert "→ 2 types" in f.text
