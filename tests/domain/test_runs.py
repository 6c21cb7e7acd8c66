import pytest

from spectui.domain.acceptance import Acceptance
from spectui.domain.runs import Arm, Request, Run, geometric_mean, per_prompt, summarise
from spectui.domain.speculation import Speculation
from spectui.domain.throughput import Timings


def request(prompt="a", tps=10.0, *, task="code", drafted=0, acceptance=None, error="", tokens=64):
    timings = Timings(predicted_n=tokens, predicted_ms=1, per_second=tps, drafted=drafted)
    return Request(
        prompt, task, 0.0, 1.0, timings, acceptance=acceptance, first_token=0.5, error=error
    )


def run(*requests, arm=None):
    return Run(1, arm or Arm(), 0.0, len(requests), requests, ended=9.0)


def test_the_geometric_mean():
    assert geometric_mean([2, 8]) == pytest.approx(4)
    assert geometric_mean([]) is None


def test_a_run_in_figures():
    found = summarise(run(request("a", 10), request("b", 40, task="math")))
    assert found.requests == 2
    assert found.tokens == 128
    assert found.decode_tps == pytest.approx(20)
    assert found.by_task == {"code": pytest.approx(10), "math": pytest.approx(40)}
    assert found.first_token == pytest.approx(0.5)


def test_an_empty_run_has_no_figures():
    found = summarise(run())
    assert found.requests == found.tokens == 0
    assert found.decode_tps is None
    assert found.spread is None


def test_failed_requests_count_nowhere_but_as_failed():
    found = summarise(run(request("a", 10), request("b", 1000, error="it broke")))
    assert (found.requests, found.failed) == (1, 1)
    assert found.decode_tps == pytest.approx(10)


def test_answers_of_one_token_have_no_speed():
    assert per_prompt(run(request("a", tokens=1))) == {}


def test_a_prompt_asked_twice_is_one_prompt():
    assert per_prompt(run(request("a", 2), request("a", 8))) == {"a": pytest.approx(4)}


def test_counts_that_were_not_read_are_not_mixed_with_those_that_were():
    # one of two requests could not be read: 15 drafted in 8 drafts, never 30 in 8
    read = Acceptance(15, 15, 8, (8, 7))
    found = summarise(run(request("a", drafted=15, acceptance=read), request("b", drafted=15)))
    assert found.acceptance.drafted == 15
    assert found.acceptance.mean_length == pytest.approx(23 / 8)
    assert not found.acceptance.exact


def test_without_any_counters_the_streams_own_counts_give_the_rate_alone():
    found = summarise(run(request("a", drafted=10), request("b", drafted=10)))
    assert found.acceptance.rate == 0
    assert found.acceptance.mean_length is None
    assert found.acceptance.unconditional == ()


def test_a_baseline_is_verified_by_both_counts():
    assert not run(request()).unverified
    assert run(request(drafted=3)).unverified == "baseline was still drafting"
    assert run(request(acceptance=Acceptance(2, 0, 1))).unverified
    four = Arm(Speculation.of("draft-simple", {"n_max": 4}))
    assert not run(request(drafted=3), arm=four).unverified
