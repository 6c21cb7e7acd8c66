import math

import pytest
from hypothesis import given, strategies as st

from spectui.domain.acceptance import Acceptance, Counters, between, resolution, standard_error


def test_the_figures_of_a_real_request():
    # build 11434, draft-simple at n_max 4: 203 drafted, 148 accepted, 51 drafts
    found = Acceptance(203, 148, 51, (46, 39, 33, 30))
    assert found.rate == pytest.approx(0.72906, abs=1e-5)  # as its log prints it
    assert found.mean_length == pytest.approx(3.90, abs=0.005)
    assert found.unconditional == pytest.approx((46 / 51, 39 / 51, 33 / 51, 30 / 51))
    assert found.conditional == pytest.approx((46 / 51, 39 / 46, 33 / 39, 30 / 33))


def test_nothing_drafted_has_no_figures():
    nothing = Acceptance()
    assert nothing.rate is None
    assert nothing.mean_length is None
    assert nothing.unconditional == ()
    assert nothing.conditional == ()


def test_drafted_and_never_accepted_is_zero_and_not_unknown():
    broken = Acceptance(633, 0, 211, (0, 0, 0))
    assert broken.rate == 0
    assert broken.mean_length == 1
    assert broken.unconditional == (0, 0, 0)
    assert broken.conditional == (0, None, None)


def test_a_position_that_no_draft_reached_has_no_conditional_rate():
    assert Acceptance(4, 2, 2, (2, 0, 0)).conditional == (1.0, 0.0, None)


def test_short_drafts_are_noticed():
    assert Acceptance(300, 100, 100, (60, 30, 10)).cut_short(4)
    assert not Acceptance(396, 100, 100, (60, 30, 10)).cut_short(4)
    assert not Acceptance().cut_short(4)
    # two answers of 40 tokens at n_max 8: each one's end cuts its last draft
    assert not Acceptance(79, 70, 11).cut_short(8, requests=2)
    assert Acceptance(60, 50, 11).cut_short(8, requests=2)
    assert not Acceptance(8, 8, 1, ()).cut_short(None)


def test_a_restart_between_two_readings_counts_from_zero():
    before = Counters(predicted=500, drafted=400, accepted=300, drafts=100, accepted_at=(100, 200))
    after = Counters(predicted=50, drafted=40, accepted=30, drafts=10, accepted_at=(10, 20))
    assert between(before, after) == Acceptance(40, 30, 10, (10, 20))


def test_a_restart_that_lost_its_positions_is_noticed():
    before = Counters(drafted=40, accepted=30, drafts=10, accepted_at=(10, 20))
    after = Counters(drafted=45, accepted=31, drafts=11)
    assert between(before, after) == Acceptance(45, 31, 11)


def test_positions_appear_with_the_first_speculative_request():
    before = Counters(drafted=0, accepted=0, drafts=0)
    after = Counters(drafted=8, accepted=3, drafts=2, accepted_at=(2, 1, 0, 0))
    assert between(before, after) == Acceptance(8, 3, 2, (2, 1, 0, 0))


def test_six_digit_counters_never_make_acceptance_exceed_what_positions_say():
    # 1,234,560 + 10 accepted prints as 1.23457e+06 both times; the positions are exact
    before = Counters(drafted=1.9e6, accepted=1.23456e6, drafts=5e5, accepted_at=(1_234_560,))
    after = Counters(drafted=1.9e6, accepted=1.23457e6, drafts=5e5, accepted_at=(1_234_563,))
    found = between(before, after)
    assert found.accepted == 3
    assert not found.exact


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, 0), (0, 0), (999_999, 0), (1e6, 10), (1.23457e6, 10), (9.99999e7, 100)],
)
def test_resolution_of_six_digits(value, expected):
    assert resolution(value) == expected


def test_standard_error():
    assert standard_error(0.5, 100) == pytest.approx(0.05)
    assert standard_error(0.5, 0) == math.inf


acceptances = st.builds(
    lambda drafts, length, chance: _acceptance(drafts, length, chance),  # noqa: PLW0108 - below
    st.integers(1, 200),
    st.integers(1, 12),
    st.randoms(use_true_random=False),
)


def _acceptance(drafts, length, random):
    """Draw drafts of full length whose accepted prefix is random."""
    prefixes = [random.randint(0, length) for _ in range(drafts)]
    at = tuple(sum(p > i for p in prefixes) for i in range(length))
    return Acceptance(drafts * length, sum(prefixes), drafts, at)


@given(acceptances)
def test_the_sum_over_positions_is_what_was_accepted(found):
    assert sum(found.accepted_at) == found.accepted
    assert found.mean_length == pytest.approx(1 + sum(found.unconditional))
    assert list(found.unconditional) == sorted(found.unconditional, reverse=True)


@given(acceptances)
def test_conditional_rates_multiply_to_the_unconditional_ones(found):
    product = 1.0
    for conditional, unconditional in zip(found.conditional, found.unconditional, strict=True):
        if conditional is None:
            break
        product *= conditional
        assert product == pytest.approx(unconditional)


@given(acceptances, acceptances)
def test_adding_acceptances_adds_every_count(one, two):
    both = one + two
    assert both.drafted == one.drafted + two.drafted
    assert sum(both.accepted_at) == sum(one.accepted_at) + sum(two.accepted_at)
    assert both == two + one
