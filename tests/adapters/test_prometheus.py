"""/metrics pages, real and broken, and what is read from them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from spectui.adapters.prometheus import MAX_PAGE, MAX_POSITIONS, parse_metrics, server_of
from spectui.domain.acceptance import Counters, between

CAPTURES = Path(__file__).parent / "captures"
PER_POS = "llamacpp:spec_decode_num_accepted_tokens_per_pos_total"


def captured(name: str) -> Counters:
    return parse_metrics((CAPTURES / f"{name}.txt").read_text())


def test_a_captured_page_reads_as_what_it_says() -> None:
    assert captured("b11434-draft-simple-metrics-after") == Counters(
        predicted=200,
        predicted_seconds=7.02356,
        prompt=56,
        prompt_seconds=0.326117,
        drafted=203,
        accepted=148,
        drafts=51,
        accepted_at=(46, 39, 33, 30),
        requests_in_flight=0,
    )


def test_the_older_build_reads_alike() -> None:
    older = captured("b10434-draft-simple-metrics-after")
    assert (older.drafted, older.accepted, older.drafts) == (208, 147, 52)
    assert sum(older.accepted_at) == 147


@pytest.mark.parametrize("kind", ["draft-simple", "ngram-simple"])
def test_what_positions_add_up_to_is_what_was_accepted(kind: str) -> None:
    read = captured(f"b11434-{kind}-metrics-after")
    assert sum(read.accepted_at) == read.accepted
    assert between(Counters(), read).exact


def test_a_baseline_has_drafted_nothing_and_yet_has_the_counters() -> None:
    read = captured("b11434-baseline-metrics-after")
    assert (read.drafted, read.accepted, read.drafts, read.accepted_at) == (0, 0, 0, ())
    assert read.speculative


def test_during_a_request_only_the_prompt_and_the_gauge_have_moved() -> None:
    before = captured("b11434-draft-simple-metrics-before")
    during = captured("b11434-draft-simple-metrics-midrequest")
    assert (before.requests_in_flight, during.requests_in_flight) == (0, 1)
    assert (before.prompt, during.prompt) == (0, 56)
    assert during.predicted == during.drafted == 0


def test_counters_without_total_read_alike() -> None:
    page = (CAPTURES / "b11434-draft-simple-metrics-after.txt").read_text()
    assert parse_metrics(page.replace("_total", "")) == parse_metrics(page)


def test_vllm_differs_in_the_prefix_and_its_engines_add_up() -> None:
    page = """
vllm:spec_decode_num_drafts_total{engine="0",model_name="a}b"} 10.0
vllm:spec_decode_num_drafts_total{engine="1",model_name="a}b"} 5.0
vllm:spec_decode_num_drafts_created{engine="0",model_name="a}b"} 1.7644e+09
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",position="0"} 7.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="1",position="0"} 2.0
vllm:generation_tokens_total{engine="0"} 99.0
vllm:num_requests_running{engine="0"} 3.0
"""
    read = parse_metrics(page)
    assert (read.drafts, read.accepted_at) == (15, (9,))
    assert (read.predicted, read.requests_in_flight) == (99, 3)


def test_vllm_without_speculation_has_no_counters_of_it() -> None:
    read = parse_metrics('vllm:generation_tokens_total{engine="0",model_name="m"} 9.0\n')
    assert (read.predicted, read.drafts) == (9, None)


TWO_MODELS = r"""
vllm:spec_decode_num_drafts_total{engine="0",model_name="a"} 10.0
vllm:spec_decode_num_drafts_total{engine="0",model_name="b \"x\""} 5.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{model_name="a",position="0"} 7.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{model_name="b \"x\"",position="0"} 2.0
vllm:num_requests_running 3.0
"""


@pytest.mark.parametrize(
    ("model", "drafts", "at"), [("a", 10, 7), ('b "x"', 5, 2), ("a LoRA", 15, 9), ("", 15, 9)]
)
def test_of_several_models_only_the_named_one_counts(model: str, drafts: int, at: int) -> None:
    read = parse_metrics(TWO_MODELS, model)
    assert (read.drafts, read.accepted_at, read.requests_in_flight) == (drafts, (at,), 3)


SGLANG = """
sglang:generation_tokens_total{engine_type="unified",model_name="m"} 1010.0
sglang:spec_verify_calls_total{engine_type="unified",model_name="m"} 300.0
sglang:num_requests_total{engine_type="unified",model_name="m"} 10.0
sglang:realtime_tokens_total{mode="prefill_compute",dp_rank="0",tp_rank="0"} 900.0
sglang:realtime_tokens_total{mode="decode",dp_rank="0",tp_rank="0"} 700.0
sglang:realtime_tokens_total{mode="decode",dp_rank="1",tp_rank="2"} 400.0
sglang:num_running_reqs{dp_rank="0",tp_rank="0"} 2.0
sglang:num_running_reqs{dp_rank="0",tp_rank="1"} 2.0
sglang:num_running_reqs{dp_rank="1",tp_rank="2"} 1.0
sglang:spec_accept_length{dp_rank="0",tp_rank="0"} 3.0
sglang:spec_accept_length{dp_rank="0",tp_rank="1"} 3.0
sglang:spec_accept_length{dp_rank="1",tp_rank="2"} 4.0
"""


def test_sglangs_calls_and_tokens_tell_what_was_accepted() -> None:
    read = parse_metrics(SGLANG)
    assert (read.drafts, read.accepted, read.drafted) == (300, 700, None)
    found = between(Counters(), read)
    assert found.mean_length == pytest.approx(1000 / 300)
    assert (found.rate, found.unconditional) == (None, ())


def test_sglangs_replicas_add_up_and_the_ranks_of_one_do_not() -> None:
    read = parse_metrics(SGLANG)
    assert read.predicted == 1100  # the counter that moves while a request runs
    assert read.requests_in_flight == 3
    assert read.said_length == 3.5


def test_an_sglang_that_counts_no_calls_still_says_how_long_its_drafts_are() -> None:
    read = parse_metrics('sglang:spec_accept_length{tp_rank="0"} 2.9\n')
    assert (read.said_length, read.drafts) == (2.9, None)
    assert parse_metrics('sglang:spec_accept_length{tp_rank="0"} 0.0\n').said_length is None


@pytest.mark.parametrize("prefix", ["llamacpp", "vllm", "sglang", ""])
def test_whose_page_it_is(prefix: str) -> None:
    assert server_of(f"# HELP x y\n{prefix or 'other'}:x 1\n") == prefix


def test_a_counter_that_is_not_there_reads_as_none() -> None:
    read = parse_metrics("llamacpp:tokens_predicted_total 5\n")
    assert read == Counters(predicted=5)
    assert not read.speculative
    assert parse_metrics("") == Counters()


def test_decode_calls_and_gauges_of_speed_are_not_read() -> None:
    page = "llamacpp:n_decode_total 9\nllamacpp:predicted_tokens_seconds 3\n"
    assert parse_metrics(page + "llamacpp:prompt_tokens_seconds 3\n") == Counters()


@pytest.mark.parametrize(
    "value", ["NaN", "+Inf", "-Inf", "-3", "1e999", "1.2.3", "1_0", "٣", "0x10", "", "12 junk"]
)
def test_a_bad_value_costs_its_own_line_only(value: str) -> None:
    page = f"llamacpp:tokens_predicted_total {value}\nllamacpp:prompt_tokens_total 7\n"
    assert parse_metrics(page) == Counters(prompt=7)


def test_garbage_between_lines_is_skipped() -> None:
    page = "<html>\n\x00\x1b[2J\n{}\nllamacpp:\nllamacpp:prompt_tokens_total\n# TYPE x counter\n"
    assert parse_metrics(page + "llamacpp:prompt_tokens_total 7\r\n") == Counters(prompt=7)


def test_timestamps_and_exponents_are_understood() -> None:
    page = "llamacpp:tokens_predicted_total 1.23457e+06 1796140031000\n"
    assert parse_metrics(page).predicted == 1234570


def test_positions_in_any_order_with_gaps() -> None:
    page = f'{PER_POS}{{position="3"}} 2\n{PER_POS}{{model="m", position="0"}} 9\n'
    assert parse_metrics(page).accepted_at == (9, 0, 0, 2)


def test_positions_keep_every_digit() -> None:
    page = f'{PER_POS}{{position="0"}} 9007199254740993\n'
    assert parse_metrics(page).accepted_at == (9007199254740993,)


def test_a_position_out_of_this_world_is_not_believed() -> None:
    page = f'{PER_POS}{{position="999999"}} 1\n{PER_POS}{{position="x"}} 1\n{PER_POS} 1\n'
    assert parse_metrics(page).accepted_at == ()
    page = f'{PER_POS}{{position="{MAX_POSITIONS}"}} 1\n'
    assert parse_metrics(page).accepted_at == ()


def test_a_series_printed_twice_counts_once() -> None:
    page = "llamacpp:prompt_tokens_total 7\nllamacpp:prompt_tokens 8\n"
    assert parse_metrics(page).prompt == 8


def test_a_huge_page_is_cut_at_a_whole_line() -> None:
    line = "llamacpp:prompt_tokens_total 123456789\n"
    page = "#" * (MAX_PAGE - len(line) - 10) + "\n" + line + line
    assert parse_metrics(page).prompt == 123456789
    began = time.perf_counter()
    assert parse_metrics("llamacpp:x{" + "}" * 10_000_000) == Counters()
    parse_metrics(line * 300_000)
    assert time.perf_counter() - began < 5


@given(st.text(alphabet='llamacp:spec_decode_num{}" \n0123456789.eE+-#', max_size=300))
def test_nothing_is_ever_raised(text: str) -> None:
    parse_metrics(text)
    parse_metrics(f"llamacpp:tokens_predicted_total{text}")
    parse_metrics(f"{PER_POS}{{position={text}}} {text}")
