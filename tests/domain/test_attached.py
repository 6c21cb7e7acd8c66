"""What a server did since we came, from its counters and its slots."""

import pytest

from spectui.domain.acceptance import Counters
from spectui.domain.attached import Movement, ServerKind, Tally


def counters(predicted, seconds, drafts=0, at=(), **more):
    return Counters(
        predicted=predicted,
        predicted_seconds=seconds,
        drafted=drafts * len(at),
        accepted=sum(at),
        drafts=drafts,
        accepted_at=at,
        **more,
    )


def fed(*readings, whole=True):
    tally = Tally(whole=whole)
    for reading in readings:
        tally.feed(reading)
    return tally


def test_what_was_before_does_not_count():
    tally = fed(counters(1000, 10, 50, (40, 30)))
    assert tally.known
    assert (tally.tokens, tally.requests, tally.decode_tps) == (0, 0, None)
    assert tally.acceptance.drafts == 0
    assert tally.totals.accepted_at == (40, 30)


def test_a_movement_is_a_request_and_its_first_token_takes_no_time():
    tally = fed(counters(1000, 10, 50, (40, 30)))
    assert tally.feed(counters(1101, 12, 80, (60, 40))) == Movement(101, 1, 50.0)
    assert tally.decode_tps == 50
    assert tally.acceptance.drafts == 30
    assert tally.acceptance.unconditional == pytest.approx((20 / 30, 10 / 30))


def test_nothing_moved_is_no_movement():
    tally = fed(counters(5, 1))
    assert tally.feed(counters(5, 1)) is None
    assert tally.requests == 0


def test_requests_seen_ending_together_are_that_many():
    tally = fed(counters(0, 0))
    assert not tally.see([(0, 7), (1, 8)])
    assert tally.see([])
    assert tally.feed(counters(102, 2)) == Movement(102, 2, 50.0)


def test_counters_that_move_before_the_slot_is_seen_free_count_it_once():
    tally = fed(counters(0, 0))
    tally.see([(0, 7)])
    tally.feed(counters(51, 1))
    assert tally.see([])
    tally.feed(counters(102, 2))
    assert tally.requests == 2


def test_a_slot_with_a_new_task_means_that_the_old_one_ended():
    tally = fed(counters(0, 0))
    tally.see([(0, 7)])
    assert tally.see([(0, 9)])


def test_one_token_has_no_speed():
    tally = fed(counters(0, 0))
    assert tally.feed(counters(1, 0.0)) == Movement(1, 1, None)
    assert tally.decode_tps is None


def test_counters_that_fell_are_a_restart_and_all_in_them_is_new():
    tally = fed(counters(1000, 10, 50, (40, 30)))
    now = counters(40, 1, 8, (6, 5))
    assert tally.restarted(now, "", away=False)
    fresh = tally.after_restart(now)
    fresh.feed(now)
    assert fresh.tokens == 40
    assert fresh.acceptance.accepted_at == (6, 5)


def test_a_new_start_time_means_a_restart_only_where_the_server_was_away():
    """A llama-server that wakes from its sleep has a new one too, and its counters go on."""
    tally = Tally()
    assert not tally.restarted(counters(10, 1), "100", away=True)  # nothing to compare with
    tally.feed(counters(10, 1), "100")
    assert not tally.restarted(counters(12, 1), "100", away=True)
    assert not tally.restarted(counters(12, 1), "200", away=False)
    assert not tally.restarted(counters(12, 1), "", away=True)
    assert tally.restarted(counters(12, 1), "200", away=True)
    fresh = tally.after_restart(counters(12, 1))
    fresh.feed(counters(12, 1), "200")
    assert fresh.tokens == 0  # nobody knows what of it was counted before


def test_a_successor_counts_from_the_newest_reading():
    tally = fed(counters(0, 0), counters(51, 1))
    after = tally.successor()
    assert (after.tokens, after.requests) == (0, 0)
    after.feed(counters(102, 2))
    assert (after.tokens, after.decode_tps) == (51, 50)


def test_a_server_that_counts_tokens_as_they_come_tells_no_requests():
    tally = fed(Counters(predicted=10), Counters(predicted=30), whole=False)
    assert (tally.tokens, tally.requests, tally.decode_tps) == (20, 0, None)


def test_kinds_know_what_they_have():
    assert {kind for kind in ServerKind if not kind.has_slots} == {
        ServerKind.VLLM,
        ServerKind.SGLANG,
    }
    assert {kind for kind in ServerKind if kind.has_models} == {ServerKind.ROUTER, ServerKind.SWAP}
