import pytest
from hypothesis import given, strategies as st

from spectui.domain.throughput import DecodeMeter, SlotMeter, Timings


def test_the_servers_own_speed_is_believed():
    assert Timings(predicted_n=200, predicted_ms=7023.557, per_second=28.333).decode_tps == 28.333


def test_without_it_the_first_token_is_not_counted():
    # it comes out of the prompt's pass: 199 tokens were decoded
    found = Timings(predicted_n=200, predicted_ms=7023.557).decode_tps
    assert found == pytest.approx(28.33322, abs=1e-4)  # what the server printed for these figures


@pytest.mark.parametrize(
    "timings",
    [
        Timings(),
        Timings(predicted_n=1, predicted_ms=0.001, per_second=1_000_000.0),
        Timings(predicted_n=1, predicted_ms=0.0),
        Timings(predicted_n=5, predicted_ms=0.0),
    ],
)
def test_a_reply_of_one_token_has_no_speed(timings):
    assert timings.decode_tps is None


def test_a_burst_in_the_middle_of_a_step_changes_nothing():
    meter = DecodeMeter()
    tokens = 1
    meter.feed(tokens, 0.0)
    for step in range(1, 9):  # five tokens a step, 0.1 s each: 50 tok/s
        for _ in range(5):
            tokens += 1
            meter.feed(tokens, step * 0.1)
            if step > 2:
                assert meter.recent == pytest.approx(50)
                assert meter.so_far == pytest.approx(50)


def test_nothing_is_said_before_two_steps_are_over():
    meter = DecodeMeter()
    assert meter.recent is None
    meter.feed(1, 0.0)
    assert meter.recent is None
    meter.feed(2, 0.1)  # this step may go on
    assert meter.so_far is None
    meter.feed(3, 0.2)
    assert meter.so_far == pytest.approx(10)


def test_the_window_forgets_what_is_old():
    meter = DecodeMeter(window=1.0)
    for n in range(101):
        meter.feed(n, n * 0.1)  # 10 tok/s for ten seconds
    for n in range(1, 101):
        meter.feed(100 + n, 10 + n * 0.02)  # then 50 tok/s for two
    assert meter.recent == pytest.approx(50)
    assert meter.so_far == pytest.approx(199 / 11.98)


def test_time_that_goes_backwards_is_not_believed():
    meter = DecodeMeter()
    for tokens, seconds in ((1, 0.0), (2, 0.1), (3, 0.05), (4, 0.2), (5, 0.3)):
        meter.feed(tokens, seconds)
    assert meter.so_far is not None
    assert meter.so_far > 0


@given(
    st.lists(st.tuples(st.integers(1, 9), st.floats(0.005, 0.5)), min_size=3, max_size=60),
    st.floats(0.2, 5),
)
def test_speeds_lie_between_the_slowest_and_the_fastest_step(steps, window):
    meter = DecodeMeter(window)
    tokens, seconds = 1, 0.0
    meter.feed(tokens, seconds)
    for burst, took in steps:
        seconds += took
        for _ in range(burst):
            tokens += 1
            meter.feed(tokens, seconds)
    rates = [burst / took for burst, took in steps[:-1]]
    for found in (meter.recent, meter.so_far):
        assert found is not None
        assert min(rates) * 0.999 <= found <= max(rates) * 1.001


def test_slots_add_up_to_what_the_server_yields():
    meter = SlotMeter()
    assert meter.feed(10.0, {(0, 7): 20, (1, 8): 5}) is None
    assert meter.feed(12.0, {(0, 7): 60, (1, 8): 45}) == pytest.approx(40)


def test_a_new_task_in_a_slot_is_not_compared_with_the_old_one():
    meter = SlotMeter()
    meter.feed(10.0, {(0, 7): 500})
    assert meter.feed(11.0, {(0, 8): 3}) is None
    assert meter.feed(12.0, {(0, 8): 33}) == pytest.approx(30)
