"""A setting under edit: typing, stepping, changing type."""

import pytest
import scenes

from spectui.domain.speculation import TYPES, Speculation
from spectui.tui.pending import MAX_TYPED, Pending, choices


def typed(pending, text):
    for character in text:
        pending = pending.type(character)
    return pending


def test_it_begins_at_the_draft_length():
    assert Pending.of(scenes.draft_simple(4)).knob.label == "n_max"
    assert Pending.of(Speculation.of("ngram-simple")).knob.label == "size_m"
    assert Pending.of(Speculation()).knob is None


def test_steps_stay_within_the_limits():
    pending = Pending.of(scenes.draft_simple(2))
    for _ in range(5):
        pending = pending.step(-1, has_draft=True)
    assert pending.speculation.draft_length == 1


def test_p_min_moves_by_its_own_step():
    pending = Pending.of(scenes.draft_simple(4)).move(2).step(1, has_draft=True)
    assert pending.knob.key == "p_min"
    assert pending.speculation.value(pending.knob) == 0.05


def test_rows_go_round():
    pending = Pending.of(scenes.draft_simple(4))
    assert pending.move(3).row == 0
    assert pending.move(-2).row == 3


@pytest.mark.parametrize(("text", "value"), [("12", 12), ("0", 0), ("70000", 70000), ("4.5", 4.5)])
def test_a_typed_number_is_the_value_even_where_it_is_out_of_range(text, value):
    pending = typed(Pending.of(scenes.draft_simple(4)), text)
    assert pending.speculation.value(pending.knob) == value
    assert pending.problem == ""


@pytest.mark.parametrize("text", [".", "1.2.3"])
def test_a_text_that_is_no_number_is_a_problem_and_leaves_the_value(text):
    pending = typed(Pending.of(scenes.draft_simple(4)), text)
    assert "is not a number" in pending.problem
    assert pending.settle().problem == ""


def test_typing_has_an_end():
    pending = typed(Pending.of(scenes.draft_simple(4)), "1" * 20)
    assert pending.typed == "1" * MAX_TYPED


def test_nothing_is_typed_into_the_type():
    pending = Pending.of(scenes.draft_simple(4)).move(-1).type("5")
    assert pending.typed is None


def test_another_type_keeps_the_knobs_for_the_way_back():
    pending = Pending.of(scenes.draft_simple(9)).with_type("ngram-mod")
    assert pending.knob.label == "n_max"
    assert pending.with_type("draft-simple").speculation.draft_length == 9


def test_choices_say_what_needs_a_draft_model():
    without = dict(choices(has_draft=False))
    assert set(without) == set(TYPES)
    assert without["draft-simple"] == "needs a draft model"
    assert without["draft-mtp"] == without["ngram-mod"] == ""
    assert not any(why for _, why in choices(has_draft=True))


def test_stepping_through_types_leaves_out_what_cannot_be_used():
    pending = Pending(Speculation.of("none"))
    seen = []
    for _ in range(12):
        pending = pending.step(1, has_draft=False)
        seen.append(pending.speculation.type)
    assert "draft-simple" not in seen
    assert "ngram-cache" in seen
    assert "none" in seen
