import math
import random
import statistics

import pytest

from spectui.domain.comparison import (
    Answer,
    Comparison,
    Estimate,
    Tone,
    Verdict,
    answer,
    compare,
    estimate,
)
from spectui.domain.runs import Arm, Request, Run
from spectui.domain.speculation import Speculation
from spectui.domain.throughput import Timings

FOUR = Arm(Speculation.of("draft-simple", {"n_max": 4}))
EIGHT = Arm(Speculation.of("draft-simple", {"n_max": 8}))


def run(number, arm, speeds, task="code"):
    drafted = 0 if arm.is_baseline else 40
    requests = tuple(
        Request(
            prompt,
            task,
            0.0,
            1.0,
            Timings(predicted_n=128, predicted_ms=1.0, per_second=tps, drafted=drafted),
        )
        for prompt, tps in speeds.items()
    )
    return Run(number, arm, 0.0, len(requests), requests, ended=1.0)


def prompts(count, tps, spread=0.0, seed=1):
    noise = random.Random(seed)
    return {f"p{i}": tps * math.exp(noise.gauss(0, spread)) for i in range(count)}


def test_pairs_cancel_what_is_the_prompts_own():
    # prompts that differ tenfold in speed, every one of them 1.5 times faster
    base = {f"p{i}": 10.0 * 1.3**i for i in range(10)}
    found = compare(run(2, FOUR, {p: v * 1.5 for p, v in base.items()}), run(1, Arm(), base))
    assert found.overall is not None
    assert found.overall.speedup == pytest.approx(1.5)
    assert found.overall.low == pytest.approx(1.5)
    assert found.overall.verdict is Verdict.FASTER


def test_only_prompts_that_both_answered_count():
    found = compare(run(2, FOUR, {"a": 20, "b": 900}), run(1, Arm(), {"a": 10, "c": 1}))
    assert found.overall is not None
    assert found.overall.pairs == 1
    assert found.overall.speedup == pytest.approx(2)


def test_below_four_pairs_there_is_no_interval():
    for n in (1, 2, 3):
        found = estimate([0.1 * i for i in range(n)])
        assert found is not None
        assert found.low is None
        assert found.verdict is Verdict.UNDECIDED
    four = estimate([0.1, 0.2, 0.3, 0.4])
    assert four is not None
    assert four.low is not None
    assert four.high is not None
    assert four.low < four.speedup < four.high


def test_no_pairs_no_estimate():
    assert estimate([]) is None
    assert compare(run(2, FOUR, {"a": 1}), run(1, Arm(), {"b": 1})).overall is None


def test_the_interval_solves_the_bayes_factor_equation():
    """At its ends the factor of the docstring's formula is exactly 1 / alpha."""
    values = [0.05, 0.21, 0.13, 0.33, 0.02, 0.18, 0.27]
    found = estimate(values)
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    n, g = len(values), 4.0
    for end in (found.low, found.high):
        error = statistics.stdev(values) / math.sqrt(n)
        t = (statistics.fmean(values) - math.log(end)) / error
        nu = n - 1
        factor = (1 + n * g) ** -0.5 * ((1 + t**2 / nu) / (1 + t**2 / (nu * (1 + n * g)))) ** (
            (nu + 1) / 2
        )
        assert factor == pytest.approx(20)


@pytest.mark.parametrize("true", [0.0, 0.05])
def test_watching_all_the_time_misses_the_truth_in_at_most_five_of_a_hundred_sessions(true):
    noise, missed, sessions = random.Random(7), 0, 1000
    for _ in range(sessions):
        values = []
        for _ in range(60):
            values.append(noise.gauss(true, 0.06))
            found = estimate(values)
            if (
                found
                and found.low
                and found.high
                and not (found.low <= math.exp(true) <= found.high)
            ):
                missed += 1
                break
    assert missed <= 0.05 * sessions


def test_a_thirty_percent_gain_is_seen_within_eight_prompts():
    noise, needed = random.Random(3), []
    for _ in range(200):
        values = []
        while True:
            values.append(noise.gauss(math.log(1.3), 0.06))
            found = estimate(values)
            if found and found.verdict is Verdict.FASTER:
                break
        needed.append(len(values))
    assert statistics.median(needed) <= 8


def test_verdicts():
    assert Estimate(1.3, 1.2, 1.4, 30).verdict is Verdict.FASTER
    assert Estimate(0.8, 0.7, 0.9, 30).verdict is Verdict.SLOWER
    assert Estimate(1.0, 0.985, 1.015, 30).verdict is Verdict.TIE
    assert Estimate(1.01, 1.002, 1.018, 30).verdict is Verdict.TIE  # real, and nobody feels it
    assert Estimate(1.1, 0.95, 1.3, 30).verdict is Verdict.UNDECIDED
    assert Estimate(1.3, None, None, 2).verdict is Verdict.UNDECIDED


def test_the_answer_without_anything():
    assert answer([], {}, None) == Answer()


def test_an_arm_without_a_baseline_asks_for_one():
    found = answer([run(1, FOUR, {"a": 1})], {}, None)
    assert found.tone is Tone.WAITING
    assert "baseline" in found.text


def _answer(*arms):
    base = run(1, Arm(), prompts(12, 50))
    runs = [base, *(run(i, arm, prompts(12, tps, 0.01, i)) for i, (arm, tps) in enumerate(arms, 2))]
    return answer(runs, {r.number: compare(r, base) for r in runs[1:]}, 1)


def test_the_best_arm_is_named_with_its_interval():
    found = _answer((FOUR, 75), (EIGHT, 60))
    assert found.tone is Tone.GOOD
    assert found.run == 2
    assert found.text.startswith("n_max 4 is faster: 1.5")
    assert "12 prompts" in found.text


def test_turning_it_off_is_a_possible_answer():
    found = _answer((FOUR, 40), (EIGHT, 30))
    assert found.tone is Tone.BAD
    assert found.text.startswith("Turn it off: even n_max 4")


def test_a_tie_is_called_one():
    base = run(1, Arm(), prompts(12, 50))
    tied = run(2, FOUR, prompts(12, 50.2, 0.001))
    found = answer([base, tied], {2: compare(tied, base)}, 1)
    assert found.tone is Tone.NEUTRAL
    assert found.text.startswith("No difference")


def test_of_two_equals_the_shorter_draft_wins():
    base = run(1, Arm(), {"a": 10})
    runs = [base, run(2, EIGHT, {"a": 15}), run(3, FOUR, {"a": 15})]
    same = Estimate(1.5, 1.4, 1.6, 9)
    found = answer(runs, {2: Comparison(2, 1, same), 3: Comparison(3, 1, same)}, 1)
    assert found.run == 3


def test_one_lucky_prompt_does_not_replace_what_is_known():
    base = run(1, Arm(), prompts(30, 50))
    known = run(2, FOUR, prompts(30, 70, 0.01, 2))
    lucky = run(3, EIGHT, {"p0": 80})
    runs = [base, known, lucky]
    found = answer(runs, {r.number: compare(r, base) for r in runs[1:]}, 1)
    assert found.run == 2
    assert found.tone is Tone.GOOD


def test_a_baseline_that_would_not_turn_off_is_told():
    drafting = Run(
        1, Arm(), 0.0, 1, (Request("a", "code", 0, 1, Timings(predicted_n=9, drafted=4)),), 1.0
    )
    assert "would not turn off" in answer([drafting], {}, None).text


def test_the_baseline_under_way_is_told():
    found = answer([Run(1, Arm(), 0.0, 9)], {}, None)
    assert "being measured" in found.text


def test_an_arm_that_never_drafted_is_no_tie():
    base = run(1, Arm(), prompts(12, 50))
    idle = Run(2, FOUR, 0.0, 12, base.requests, ended=1.0)
    found = answer([base, idle], {2: compare(idle, base)}, 1)
    assert found.tone is Tone.BAD
    assert found.text.startswith("n_max 4 drafted nothing")


def test_a_baseline_cut_short_is_told():
    from dataclasses import replace

    base = replace(run(1, Arm(), prompts(3, 50)), stopped="stopped")
    assert "cut short" in answer([base], {}, 1).text
