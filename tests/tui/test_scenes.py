"""What is shown in every state, at every size: nothing crashes, nothing essential is lost."""

from dataclasses import replace

import pytest
import scenes

from spectui.domain.acceptance import Acceptance
from spectui.domain.phases import Phase
from spectui.domain.samples import Activity, Doing, Level, Notice, SourceState, SourceStatus
from spectui.tui.glyphs import SETS

SCENES = {
    "idle": scenes.idle,
    "loading": scenes.loading,
    "failed": scenes.failed,
    "measuring": scenes.measuring,
    "first prompt": lambda: scenes.measuring(0),
    "done": scenes.done,
    "many": scenes.many,
    "long names": scenes.long_names,
    "hostile": scenes.hostile,
    "unverified": scenes.unverified,
    "stale": scenes.stale,
    "cut short": scenes.cut_short,
    "troubled": scenes.troubled,
    "several types": scenes.combined,
}
SIZES = [(120, 36), (80, 24), (60, 18), (200, 60), (120, 20), (70, 60)]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", SCENES)
async def test_every_state_is_drawn_at_every_size(face, name, size):
    async with face(SCENES[name](), size=size) as f:
        rows = f.text.split("\n")
        assert len(rows) == size[1]
        assert any(sign in rows[0] for sign in scenes_signs())
        assert "m measure" in rows[-1]
        assert "q quit" in rows[-1]
        assert "knobs" in f.text
        assert "runs" in f.text


def scenes_signs():
    return SETS["braille"].phases.values()


@pytest.mark.parametrize("glyphs", sorted(SETS))
async def test_every_set_of_signs_draws_everything(face, glyphs):
    async with face(scenes.measuring(), glyphs=glyphs) as f:
        assert "n_max 4" in f.text
        if glyphs == "ascii":
            assert f.text.isascii()


async def test_an_empty_session_says_what_to_press(face):
    async with face() as f:
        assert "Nothing measured yet" in f.text
        assert "press m to measure" in f.text
        assert "no server is running" in f.text
        assert "no runs yet" in f.text
        assert "no NVIDIA GPU" in f.text
        assert "○ stopped" in f.text
        assert "the server has written nothing yet" in f.text


async def test_loading_says_for_how_long(face):
    async with face(scenes.loading()) as f:
        assert "loading 12 s" in f.text
        assert "the server is loading, for 12 s" in f.text


async def test_a_failure_says_why_and_where_to_look(face):
    async with face(scenes.failed()) as f:
        assert "✗ the server failed: the draft model cannot be loaded" in f.text
        assert "l log" in f.text


async def test_measuring_shows_progress_speed_and_the_arm_in_question(face):
    async with face(scenes.measuring()) as f:
        head = f.text.split("\n")[0]
        assert "◉ measuring n_max 4 12/36 · 2 min left" in head
        assert "now 71.3 · ▲ settled" in f.text
        assert "off 52.0" in f.text
        assert "12/36" in f.text.split("runs")[1]


async def test_a_measurement_without_an_estimate_shows_none(face):
    activity = Activity(Doing.MEASURING, "n_max 4", 0, 36, None)
    async with face(replace(scenes.measuring(0), activity=activity)) as f:
        assert "measuring n_max 4 0/36" in f.text
        assert " left" not in f.text


async def test_the_result_is_one_sentence_with_a_sign(face):
    async with face(scenes.done()) as f:
        assert (
            "✓ n_max 4 is faster: 1.28× the speed without it (1.13 to 1.46, 36 prompts)" in f.text
        )
        assert "rewrite 1.84×" in f.text


async def test_the_table_has_the_figures_of_every_run(face):
    async with face(scenes.done()) as f:
        table = f.text.split("─ runs ")[1]
        [baseline] = [row for row in table.split("\n") if "▪  off" in row]
        assert "baseline" in baseline
        [row] = [row for row in table.split("\n") if "▲  n_max 4" in row]
        assert row.split("││")[1].split()[:9] == (
            ["▲", "n_max", "4", "66.7", "1.28×", "1.13–1.46", "76", "%", "4.0"]
        )


async def test_forty_runs_scroll_and_the_newest_is_in_sight(face):
    async with face(scenes.many()) as f:
        assert f.dashboard.query_one("DataTable").row_count == 40
        assert "n_max 9 " in f.text.split("─ runs ")[1]


async def test_a_table_without_room_for_notes_is_still_whole(face):
    async with face(scenes.many(), size=(60, 18)) as f:
        assert "note" not in f.text
        assert "1.18×" in f.text


async def test_stopped_and_failed_requests_are_noted(face):
    many = scenes.many()
    few = scenes.told(many, [many.runs[0], many.runs[10], many.runs[20]])
    async with face(few) as f:
        assert "✗ 1 failed" in f.text
        assert "! cancelled" in f.text


async def test_a_baseline_that_drafted_is_called_so(face):
    async with face(scenes.unverified()) as f:
        assert "! baseline was still drafting" in f.text


async def test_old_readings_are_shown_with_their_age(face):
    async with face(scenes.stale()) as f:
        assert "! GPU: last reading 12 s ago, driver not loaded" in f.text
        assert "! CPU: last reading 12 s ago, slow to answer" in f.text
        assert "decode speed, tok/s  ! last reading 12 s ago" in f.text
        assert "acceptance by position  ! last reading 12 s ago" in f.text


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (SourceState("gpu"), "waiting for the first reading"),
        (SourceState("gpu", SourceStatus.FAILED, "driver not loaded"), "! driver not loaded"),
        (SourceState("gpu", SourceStatus.ABSENT, "no NVIDIA GPU"), "no NVIDIA GPU"),
    ],
)
async def test_without_a_gpu_the_machine_says_why(face, state, words):
    snapshot = scenes.idle()
    async with face(replace(snapshot, sources={**snapshot.sources, "gpu": state})) as f:
        assert f"GPU   {words}" in f.text


async def test_each_gpu_has_a_line_and_what_the_driver_hides_is_a_dash(face):
    async with face(scenes.long_names()) as f:
        assert "GPU 0 ━" in f.text
        [second] = [row for row in f.text.split("\n") if "GPU 1" in row]
        assert "–" in second


async def test_drafts_cut_short_are_marked_beside_the_draft_length(face):
    async with face(scenes.cut_short()) as f:
        assert "6.4 of 8 drafted !" in f.text
        assert "cut short" in f.text


async def test_cut_short_is_said_on_a_narrow_terminal_too(face):
    async with face(scenes.cut_short(), size=(60, 30)) as f:
        await f.press("v")
        assert "6.4/8" in f.text or "6.4 of 8 drafted !" in f.text


async def test_text_from_outside_is_shown_as_it_is_and_never_acts(face):
    async with face(scenes.hostile()) as f:
        assert "[bold red]x[/]" in f.text
        assert "\x1b" not in f.text
        assert "\u202e" not in f.text
        assert "owned" not in f.text
        assert f.toasts[0][0].startswith("notice [bold red]x[/]")
        await f.press("l")
        assert "[bold red]x[/]" in f.text
        assert "\x1b" not in f.text


@pytest.mark.parametrize("size", [(50, 15), (59, 40), (120, 17)])
async def test_a_terminal_too_small_gets_one_clear_line(face, size):
    async with face(scenes.done(), size=size) as f:
        rows = [row.strip() for row in f.text.split("\n") if row.strip()]
        assert rows == [f"{size[0]}×{size[1]} is too small: 60×18 needed, q quits"]
        await f.press("q")
        assert not f.app.is_running


async def test_growing_the_terminal_brings_the_dashboard_back(face):
    async with face(scenes.done(), size=(50, 15)) as f:
        await f.pilot.resize_terminal(120, 36)
        await f.settle()
        assert "is faster: 1.28×" in f.text


async def test_a_server_that_is_gone_is_told_over_the_result(face):
    gone = replace(scenes.done(), phase=Phase.GONE, reason="killed (signal 9)", running=None)
    async with face(gone) as f:
        assert "✗ the server is gone: killed (signal 9)" in f.text
        assert "faster: 1.28×" in f.text


async def test_notices_are_told_once_each_and_only_the_newest_of_many(face):
    notices = tuple(Notice(n, 100.0, Level.INFO, f"notice {n}") for n in range(1, 8))
    async with face(replace(scenes.idle(), notices=notices[:6])) as f:
        assert [text for text, _ in f.toasts] == [f"notice {n}" for n in range(3, 7)]
        await f.emit(replace(scenes.idle(), notices=notices))
        assert [text for text, _ in f.toasts][4:] == ["notice 7"]


async def test_the_same_figures_are_not_painted_again(face):
    async with face(scenes.done()) as f:
        painted = []
        for panel in f.dashboard.query("Panel"):
            panel.refresh = lambda *_, _id=panel.id, **__: painted.append(_id)
        await f.emit(replace(scenes.done()))
        assert painted == []


async def test_a_run_that_drafted_nothing_says_so(face):
    snapshot = scenes.done()
    summaries = {
        number: replace(summary, acceptance=Acceptance())
        for number, summary in snapshot.summaries.items()
    }
    # the stream counted drafts, the server's counters did not tell of positions
    async with face(replace(snapshot, summaries=summaries)) as f:
        assert "no counts by position" in f.text
    runs = tuple(
        replace(
            run,
            requests=tuple(
                replace(r, acceptance=None, timings=replace(r.timings, drafted=0, accepted=0))
                for r in run.requests
            ),
        )
        for run in snapshot.runs
    )
    async with face(replace(snapshot, summaries=summaries, runs=runs)) as f:
        assert "nothing was drafted" in f.text
        assert "! drafted" in f.text  # the note of its row
