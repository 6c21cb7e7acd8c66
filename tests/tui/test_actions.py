"""Every action of the dashboard, by its key, and that the same can be done by mouse and palette."""

from dataclasses import replace

import pytest
import scenes
from fake_controls import FakeControls
from textual.events import MouseScrollDown, MouseScrollUp

from spectui.domain.errors import ServerError
from spectui.domain.phases import Phase
from spectui.domain.samples import Level, Notice
from spectui.domain.speculation import Speculation
from spectui.tui.keys import ACTS
from spectui.tui.screens.confirm import Confirm
from spectui.tui.screens.export import Export
from spectui.tui.screens.help import Help
from spectui.tui.screens.log import LogScreen, LogView
from spectui.tui.screens.types import Types
from spectui.tui.widgets.knobs import Knobs
from spectui.tui.widgets.runs import RunsPanel


async def test_m_measures_the_setting_of_the_profile(face):
    async with face() as f:
        await f.press("m")
        assert f.controls.calls == [("measure", scenes.draft_simple(4))]


async def test_a_applies_what_was_turned(face):
    async with face(scenes.done()) as f:
        await f.press("right", "right", "a")
        [(name, wanted)] = f.controls.calls
        assert name == "measure"
        assert wanted.same_as(scenes.draft_simple(6))


async def test_enter_and_escape_restart_and_stop_nothing(face):
    # whoever presses one too many after a dialogue must not lose a run by it
    for scene in (scenes.done(), scenes.measuring()):
        async with face(scene) as f:
            await f.press("right", "enter", "escape", "enter", "escape")
            assert f.controls.calls == []


async def test_applying_type_none_measures_the_baseline(face):
    async with face(replace(scenes.idle(), speculation=Speculation())) as f:
        await f.press("a")
        assert f.controls.calls == [("measure_baseline", None)]


async def test_an_invalid_setting_is_refused_as_it_is_typed_and_when_applied(face):
    async with face(scenes.done()) as f:
        await f.press("0")
        assert "✗ 0 is not a whole number from 1" in f.text
        assert "refused: not valid" in f.text
        await f.press("a", "m")
        assert f.controls.calls == []
        assert f.toasts
        assert f.toasts[0][0].startswith("not applied: 0 is not a whole number from 1 to 64")


async def test_digits_type_a_value_and_enter_keeps_it(face):
    async with face(scenes.done()) as f:
        await f.press("1", "2")
        assert "4 → 12_" in f.text
        await f.press("enter", "a")
        assert f.controls.calls[0][1].same_as(scenes.draft_simple(12))


async def test_backspace_takes_back_and_an_empty_number_is_refused(face):
    async with face(scenes.done()) as f:
        await f.press("7", "backspace", "a")
        assert "type a number" in f.text
        assert f.controls.calls == []


async def test_n_min_above_n_max_is_refused(face):
    async with face(scenes.done()) as f:
        await f.press("down", "9")
        assert "n_min 9 is above n_max 4" in f.text.replace("\n", " ")


async def test_x_gives_up_a_typed_number_before_it_cancels_anything(face):
    async with face(scenes.measuring()) as f:
        await f.press("5", "x")
        assert f.controls.calls == []
        await f.press("x")
        assert f.controls.calls == [("cancel", None)]


async def test_z_goes_back_to_what_is_running(face):
    async with face(scenes.done()) as f:
        await f.press("right")
        assert "pending" in f.text
        await f.press("z")
        assert "as running" in f.text


async def test_b_measures_the_baseline(face):
    async with face() as f:
        await f.press("b")
        assert f.controls.calls == [("measure_baseline", None)]


async def test_s_starts_with_the_pending_setting_and_stops_what_runs(face):
    async with face() as f:
        await f.press("right", "s")
        assert f.controls.calls == [("launch", scenes.draft_simple(5))]
        await f.emit(scenes.done())
        assert "s stop" in f.text
        await f.press("s")
        assert f.controls.calls[-1] == ("stop_server", None)


async def test_x_cancels_only_what_is_under_way(face):
    async with face() as f:
        await f.press("x")
        assert f.controls.calls == []
        await f.emit(scenes.measuring())
        assert "x cancel" in f.text
        await f.press("x")
        assert f.controls.calls == [("cancel", None)]


async def test_applying_during_a_measurement_asks_and_cancels_first(face):
    async with face(scenes.measuring(), hold=True) as f:
        await f.press("right", "a")
        assert isinstance(f.app.screen, Confirm)
        assert "12 of 36" in f.app.screen._said
        await f.press("y")
        assert [name for name, _ in f.controls.calls] == ["cancel"]
        f.controls.end()
        await f.settle()
        assert [name for name, _ in f.controls.calls] == ["cancel", "measure"]


async def test_enter_on_that_question_means_no(face):
    async with face(scenes.measuring()) as f:
        await f.press("a", "enter")
        assert not isinstance(f.app.screen, Confirm)
        assert f.controls.calls == []


async def test_a_start_that_took_long_is_announced_before_the_next(face):
    async with face(scenes.loading()) as f:
        await f.emit(replace(scenes.done(), phase_since=88.0 + 30))
        await f.press("a")
        assert isinstance(f.app.screen, Confirm)
        assert "The last start took 30 s" in f.app.screen._said


async def test_c_goes_round_the_runs_that_drafted(face):
    async with face(scenes.many()) as f:
        newest = len(scenes.many().runs)
        await f.press("c")
        assert f.dashboard.against == newest - 2
        assert "chosen" in f.text
        await f.press("c")
        assert f.dashboard.against == newest - 3


async def test_c_says_so_where_there_is_nothing_to_compare(face):
    async with face(scenes.done()) as f:
        await f.press("c")
        assert f.toasts == [("there is no third run to compare with yet", "information")]


async def test_enter_on_a_row_compares_with_that_run(face):
    async with face(scenes.many()) as f:
        await f.press("tab")
        assert f.app.focused.parent is f.dashboard.query_one(RunsPanel)
        await f.press("ctrl+home", "down", "down", "enter")
        assert f.dashboard.against == 3
        assert "compared" in f.text
        await f.press("enter")
        assert f.dashboard.against is None


async def test_the_baseline_has_no_curve_to_compare(face):
    async with face(scenes.many()) as f:
        await f.press("tab", "ctrl+home", "enter")
        assert f.dashboard.against is None
        assert "drafted nothing" in f.toasts[0][0]


async def test_d_turns_to_conditional_and_back(face):
    async with face(scenes.done()) as f:
        assert "· unconditional" in f.text
        await f.press("d")
        assert "· conditional" in f.text
        await f.press("d")
        assert "· unconditional" in f.text


async def test_e_writes_the_profile_and_says_where(face):
    async with face(scenes.done()) as f:
        await f.press("e")
        assert isinstance(f.app.screen, Export)
        assert "tuned.toml" in f.text
        await f.press("enter")
        assert f.controls.calls == [("export", "tuned.toml")]
        assert "✓ written to /profiles/tuned.toml" in f.text
        await f.press("enter")
        assert f.app.screen is f.dashboard


async def test_an_export_that_fails_keeps_the_dialogue_and_says_why(face):
    async with face(scenes.done()) as f:
        f.controls.failure = ServerError("tuned.toml cannot be written", "choose another folder")
        await f.press("e", "enter")
        assert "✗ tuned.toml cannot be written: choose another folder" in f.text
        await f.press("escape")
        assert f.app.screen is f.dashboard


async def test_l_shows_the_log_and_follows_it(face):
    async with face(scenes.done(), size=(80, 24)) as f:
        await f.press("l")
        assert isinstance(f.app.screen, LogScreen)
        assert "slot print_timing: id  0 | task 1" in f.text
        await f.emit(replace(scenes.done(), log=tuple(f"line {i}" for i in range(200))))
        assert "line 199" in f.text
        f.app.screen.query_one(LogView).scroll_home(animate=False)
        await f.settle()
        await f.emit(replace(scenes.done(), log=tuple(f"line {i}" for i in range(201))))
        assert "line 200" not in f.text
        await f.press("escape")
        assert f.app.screen is f.dashboard


async def test_t_lists_types_and_takes_the_chosen_one(face):
    async with face(scenes.done()) as f:
        await f.press("t")
        assert isinstance(f.app.screen, Types)
        await f.press("down", "enter")
        assert "→ draft-mtp" in f.text


async def test_types_that_need_a_draft_model_cannot_be_chosen_without_one(face):
    snapshot = replace(scenes.idle(), has_draft=False, speculation=Speculation.of("ngram-simple"))
    async with face(snapshot) as f:
        await f.press("t")
        assert "needs a draft model" in f.text
        assert "models.draft" in f.text
        await f.press("home", "down", "enter")
        assert isinstance(f.app.screen, Types)  # draft-simple is refused
        assert "✗ draft-simple: needs a draft model" in f.text
        await f.press("down", "enter")
        assert f.dashboard.pending.speculation.type == "draft-mtp"


async def test_up_and_down_choose_the_type_row_and_left_and_right_turn_it(face):
    async with face(scenes.done()) as f:
        await f.press("up", "right")
        assert f.dashboard.pending.speculation.type == "draft-mtp"
        await f.press("left", "left")
        assert f.dashboard.pending.speculation.type == "none"
        assert "nothing drafts" in f.text


async def test_plus_and_minus_turn_the_knob(face):
    async with face(scenes.done()) as f:
        await f.press("plus", "plus", "minus")
        assert f.dashboard.pending.speculation.draft_length == 5


async def test_question_mark_explains_every_action(face):
    async with face(scenes.done(), size=(120, 120)) as f:
        await f.press("question_mark")
        assert isinstance(f.app.screen, Help)
        for act in ACTS:
            assert act.title in f.text
        await f.press("escape")
        assert f.app.screen is f.dashboard


async def test_v_goes_round_the_views_on_a_small_terminal(face):
    async with face(scenes.done(), size=(80, 24)) as f:
        assert "decode speed" in f.text
        await f.press("v")
        assert "acceptance by position" in f.text
        await f.press("v")
        assert "GPU 0" in f.text
        assert "decode speed" not in f.text
        await f.press("v")
        assert "decode speed" in f.text


async def test_q_quits_with_status_0(face):
    async with face(scenes.done()) as f:
        await f.press("q")
        assert f.app.return_code == 0
        assert not f.app.is_running


@pytest.mark.parametrize("key", ["q", "ctrl+c", "ctrl+q"])
async def test_quitting_while_measuring_asks_once_and_a_second_time_quits(face, key):
    async with face(scenes.measuring()) as f:
        await f.press(key)
        assert isinstance(f.app.screen, Confirm)
        assert f.app.is_running
        await f.press(key)
        assert f.app.return_code == 0
        assert not f.app.is_running


async def test_ctrl_c_quits_from_a_dialogue_too(face):
    async with face(scenes.done()) as f:
        await f.press("e", "ctrl+c")
        assert not f.app.is_running


async def test_every_action_is_in_the_palette(face):
    async with face() as f:
        titles = [command.title for command in f.app.get_system_commands(f.app.screen)]
        for act in ACTS:
            assert any(title.startswith(act.title) for title in titles)


async def test_a_palette_command_does_what_the_key_does(face):
    async with face() as f:
        command = next(
            c for c in f.app.get_system_commands(f.app.screen) if "baseline" in c.title.lower()
        )
        await command.callback()
        assert f.controls.calls == [("measure_baseline", None)]


def test_bindings_have_ids_that_a_keymap_can_name():
    ids = [act.binding.id for act in ACTS]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(
    ("words", "call"),
    [("b baseline", "measure_baseline"), ("a apply and measure", "measure"), ("s start", "launch")],
)
async def test_footer_and_buttons_can_be_clicked(face, words, call):
    async with face() as f:
        await f.click_text(words)
        assert [name for name, _ in f.controls.calls] == [call]


async def test_the_arrows_and_the_knobs_can_be_clicked(face):
    async with face(scenes.done()) as f:
        await f.click_text(" ▸  ")
        assert f.dashboard.pending.speculation.draft_length == 5
        await f.click_text("p_min")
        assert f.dashboard.pending.knob.label == "p_min"


async def test_the_wheel_turns_the_chosen_knob(face):
    async with face(scenes.done()) as f:
        knobs = f.dashboard.query_one(Knobs)
        for event in (MouseScrollUp, MouseScrollUp, MouseScrollDown):
            knobs.post_message(event(knobs, 1, 1, 0, 0, 0, shift=False, meta=False, ctrl=False))
            await f.settle()
        assert f.dashboard.pending.speculation.draft_length == 5


async def test_a_failure_is_told_once_though_it_comes_twice(face):
    async with face() as f:
        f.controls.failure = ServerError("no [b]room[/b]", "free some memory")
        await f.press("m")
        told = Notice(1, 100.0, Level.ERROR, "no [b]room[/b]: free some memory")
        await f.emit(replace(scenes.idle(), notices=(told,)))
        await f.emit(replace(scenes.idle(), notices=(told,)))
        assert f.toasts == [("no [b]room[/b]: free some memory", "error")]


async def test_what_a_person_stopped_is_not_told_as_an_error(face):
    async with face(scenes.idle(), hold=True) as f:
        await f.press("m")
        await f.emit(scenes.measuring())
        await f.press("x")
        f.controls.end(error=ServerError("stopped; what was measured is kept"))
        await f.settle()
        assert f.toasts == [("stopped; what was measured is kept", "information")]


async def test_a_future_that_fails_with_a_fault_is_told_with_its_kind(face):
    async with face(hold=True) as f:
        await f.press("m")
        f.controls.end(error=ValueError("odd"))
        await f.settle()
        assert f.toasts == [("ValueError: odd", "error")]


async def test_knobs_follow_the_session_until_somebody_turns_them(face):
    async with face() as f:
        await f.emit(replace(scenes.idle(), speculation=scenes.draft_simple(7)))
        assert f.dashboard.pending.speculation.draft_length == 7
        await f.press("right")
        await f.emit(replace(scenes.idle(), speculation=scenes.draft_simple(3)))
        assert f.dashboard.pending.speculation.draft_length == 8


async def test_the_app_never_closes_the_session(face):
    async with face(scenes.done()) as f:
        await f.press("q")
        assert f.controls.calls == []


async def test_a_phase_that_failed_offers_to_start_again(face):
    async with face(scenes.failed()) as f:
        assert f.app.snapshot.phase is Phase.FAILED
        await f.press("s")
        assert f.controls.calls[0][0] == "launch"


def test_the_fake_fits_the_protocol():
    from spectui.session.controls import Controls

    controls: Controls = FakeControls()
    assert controls.export_path() == "tuned.toml"
