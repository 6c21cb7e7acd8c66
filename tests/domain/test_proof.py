from dataclasses import replace

import pytest

from spectui.domain import proof
from spectui.domain.acceptance import Acceptance
from spectui.domain.findings import Finding, Severity
from spectui.domain.runs import Arm, Request, Run
from spectui.domain.speculation import OFF, Speculation
from spectui.domain.throughput import Timings

DRAFT = Speculation.of("draft-simple", {"n_max": 4})


def codes(findings):
    return [finding.code for finding in findings]


def run(speculation, *acceptances, ended=None):
    requests = tuple(
        Request(
            str(number),
            "code",
            0.0,
            1.0,
            timings=Timings(64, 1000.0, drafted=found.drafted, accepted=found.accepted),
            acceptance=found,
        )
        for number, found in enumerate(acceptances)
    )
    return Run(1, Arm(speculation), 0.0, len(requests), requests, ended)


def drafted(length, drafts, rate=0.8, mean=None):
    """Return what ``drafts`` drafts of ``mean`` tokens (``length``) leave in the counters."""
    tokens = round(drafts * (mean or length))
    return Acceptance(tokens, round(tokens * rate), drafts, (round(drafts * rate),) * length)


def test_a_server_that_speculates_as_asked_is_fine():
    assert not proof.at_start(DRAFT, speculating=True, types=("draft-simple",))
    assert not proof.at_start(DRAFT, speculating=None)
    assert not proof.at_start(Speculation(), speculating=False, types=("none",))


def test_ready_and_not_speculating_is_told_with_the_cause_from_the_log():
    cause = Finding("vocab-mismatch", Severity.BLOCKER, "the vocabularies differ", "take another")
    [found] = proof.at_start(DRAFT, speculating=False, cause=cause)
    assert found.code == "vocab-mismatch"
    assert found.what == "ready, but not speculating: the vocabularies differ"
    assert found.advice == "take another"
    [found] = proof.at_start(DRAFT, speculating=False)
    assert found.code == proof.NOT_SPECULATING
    assert "draft-simple" in found.what


def test_a_baseline_that_speculates_is_told():
    [found] = proof.at_start(Speculation(), speculating=False, types=("none", "ngram-mod"))
    assert found.code == proof.STILL_DRAFTING
    assert "ngram-mod" in found.what
    assert codes(proof.of_run(run(Speculation.of(OFF), drafted(4, 10)))) == [proof.STILL_DRAFTING]


def test_other_types_than_asked_for_are_told():
    [found] = proof.at_start(DRAFT, speculating=True, types=("none", "draft-simple", "ngram-mod"))
    assert found.code == proof.OTHER_TYPES
    assert "draft-simple, ngram-mod" in found.what


def test_good_drafting_gives_no_finding():
    assert not proof.of_run(run(DRAFT, drafted(4, 100), drafted(4, 100)))
    assert not proof.of_run(run(DRAFT))


def test_nothing_drafted_is_told_once_there_are_answers():
    assert not proof.of_run(run(DRAFT, Acceptance()))
    assert codes(proof.of_run(run(DRAFT, Acceptance(), Acceptance()))) == [proof.NEVER_DRAFTED]
    [lookup] = proof.of_run(run(Speculation.of("ngram-mod"), Acceptance(), Acceptance()))
    assert "repeats" in lookup.advice


def test_a_broken_pairing_is_told():
    [found] = proof.of_run(run(DRAFT, drafted(4, 50, rate=0.0)))
    assert found.code == proof.NEVER_ACCEPTED
    assert found.severity is Severity.BLOCKER
    assert "200 tokens drafted" in found.what
    assert not proof.of_run(run(DRAFT, drafted(4, 20, rate=0.0)))


@pytest.mark.parametrize(("p_min", "said"), [(0.6, "p_min ends them"), (0.0, "by itself")])
def test_short_drafts_mean_that_n_max_is_not_the_knob(p_min, said):
    speculation = Speculation.of("draft-simple", {"n_max": 8, "p_min": p_min})
    [found] = proof.of_run(run(speculation, drafted(8, 100, mean=3.1)))
    assert found.code == proof.SHORT_DRAFTS
    assert "3.1 tokens long" in found.what
    assert said in found.what
    assert "turning n_max up changes nothing" in found.advice


def test_a_block_drafter_that_was_trained_for_less_is_told_with_the_length():
    speculation = Speculation.of("draft-dflash", {"n_max": 16})
    [found] = proof.of_run(run(speculation, drafted(7, 100)))
    assert found.code == proof.FEWER_POSITIONS
    assert found.fixes[0].changes == (("speculation.n_max", 7),)


def test_failed_requests_are_no_answers():
    one = run(DRAFT, Acceptance(), Acceptance())
    failed = replace(one, requests=tuple(replace(r, error="x") for r in one.requests))
    assert not proof.of_run(failed)
