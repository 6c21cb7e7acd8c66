"""The stand-in answers as the captured server did, and does what its script says."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from fake_llama_server import FakeLlamaServer, install

CAPTURES = Path(__file__).parent.parent / "adapters" / "captures"
SPECULATIVE = ("--metrics", "-np", "1", "-m", "target.gguf", "--spec-type", "draft-simple")
FAST = {"time_scale": 0.002}


def ask(url: str, method: str, path: str, body: str = "", wait: float = 5) -> tuple[int, str]:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=wait)
    with closing(connection):
        connection.request(method, path, body)
        with connection.getresponse() as answer:
            return answer.status, answer.read().decode()


def get(url: str, path: str, *, wait: float = 5) -> tuple[int, str]:
    return ask(url, "GET", path, wait=wait)


def chat(url: str, prompt: str = "hello", **fields: Any) -> str:
    asked = {"messages": [{"role": "user", "content": prompt}], "max_tokens": 40, "stream": True}
    body = json.dumps(asked | {"timings_per_token": True} | fields)
    status, text = ask(url, "POST", "/v1/chat/completions", body)
    assert status == 200, text
    return text


def events(text: str) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def values(page: str) -> dict[str, float]:
    rows = [line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#")]
    return {name.removeprefix("llamacpp:"): float(value) for name, value in rows}


def without_values(page: str) -> list[str]:
    return [line if line[0] == "#" else line.rsplit(" ", 1)[0] for line in page.splitlines()]


def shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items()}
    return [shape(value[0])] if isinstance(value, list) and value else type(value).__name__


@contextmanager
def process(*argv: str, **options: Any) -> Iterator[tuple[subprocess.Popen[str], str]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = str(Path(__file__).with_name("fake_llama_server.py"))
    child = subprocess.Popen(
        [sys.executable, "-S", program, "--port", str(port), *argv],
        env={**os.environ, "FAKE_LLAMA": json.dumps(options)},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield child, f"http://127.0.0.1:{port}"
    finally:
        child.kill()
        child.communicate()


def wait_until_ready(url: str) -> None:
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            if get(url, "/health")[0] == 200:
                return
        except OSError:
            pass
        time.sleep(0.02)
    pytest.fail("not ready")


@pytest.mark.parametrize("kind", ["baseline", "draft-simple", "ngram-simple"])
def test_metrics_have_the_lines_of_the_captured_page(kind: str) -> None:
    flags = {"baseline": (), "draft-simple": ("--spec-draft-n-max", "4")}
    more = flags.get(kind, ("--spec-ngram-simple-size-m", "8"))
    spec = () if kind == "baseline" else ("--spec-type", kind)
    with FakeLlamaServer("--metrics", *spec, *more, **FAST) as server:
        chat(server.url)
        page = get(server.url, "/metrics")[1]
    captured = (CAPTURES / f"b11434-{kind}-metrics-after.txt").read_text()
    assert without_values(page) == without_values(captured)


def test_metrics_before_any_request_are_the_captured_page_to_the_letter() -> None:
    with FakeLlamaServer(*SPECULATIVE, **FAST) as server:
        page = get(server.url, "/metrics")[1]
    assert page == (CAPTURES / "b11434-draft-simple-metrics-before.txt").read_text()


def test_counts_add_up_as_the_servers_do() -> None:
    with FakeLlamaServer(*SPECULATIVE, "--spec-draft-n-max", "4", **FAST) as server:
        for prompt in ("one", "two", "three"):
            chat(server.url, prompt, max_tokens=64)
        count = values(get(server.url, "/metrics")[1])
    drafts, accepted = (
        count["spec_decode_num_drafts_total"],
        count["spec_decode_num_accepted_tokens_total"],
    )
    positions = [n for name, n in count.items() if "per_pos" in name]
    plain = count["n_decode_total"] - 3 - drafts  # steps that drafted nothing
    assert count["tokens_predicted_total"] == 3 * 64 == 3 + drafts + accepted + plain
    assert sum(positions) == accepted
    assert positions == sorted(positions, reverse=True)
    assert len(positions) == 4


def test_the_stream_has_the_shape_of_the_captured_one() -> None:
    captured = (CAPTURES / "b11434-draft-simple-stream.sse").read_text()
    with FakeLlamaServer(*SPECULATIVE, "--spec-draft-n-max", "4", rates=[1.0], **FAST) as server:
        text = chat(server.url)
    mine, real = events(text), events(captured)
    for ours, theirs in ((mine[i], real[i]) for i in (0, 1, 2, -1)):
        assert shape(ours) == shape(theirs)
    assert text.rstrip().endswith("data: [DONE]")


def test_the_tokens_of_one_step_share_its_time_and_draft_counts() -> None:
    with FakeLlamaServer(*SPECULATIVE, "--spec-draft-n-max", "4", rates=[1.0], **FAST) as server:
        timings = [e["timings"] for e in events(chat(server.url, max_tokens=11))[1:]]
    assert "draft_n" not in timings[0]
    assert len({t["predicted_ms"] for t in timings[1:6]}) == 1
    assert [t["predicted_n"] for t in timings] == [*range(1, 12), 11]
    last = timings[-1]
    assert last["predicted_per_second"] == pytest.approx(10 / last["predicted_ms"] * 1000)
    assert (last["draft_n"], last["draft_n_accepted"]) == (8, 8)


def test_counters_stand_still_during_a_request_while_slots_move() -> None:
    with FakeLlamaServer(*SPECULATIVE, tps=200, draft_chance=0) as server:
        host = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
        body = json.dumps({"messages": [], "max_tokens": 200, "stream": True})
        host.request("POST", "/v1/chat/completions", body)
        answer = host.getresponse()
        while b"content" not in answer.readline():
            pass
        answer.readline()
        answer.readline()
        time.sleep(0.05)
        slots = json.loads(get(server.url, "/slots")[1])
        count = values(get(server.url, "/metrics")[1])
        answer.close()  # the client goes away: what was made is counted all the same
        host.close()
        end = time.monotonic() + 5
        while values(get(server.url, "/metrics")[1])["requests_processing"]:
            assert time.monotonic() < end
        after = values(get(server.url, "/metrics")[1])
    captured = json.loads((CAPTURES / "b11434-draft-simple-slots-midrequest.json").read_text())
    assert slots[0].keys() == captured[0].keys()
    assert slots[0]["is_processing"]
    assert slots[0]["next_token"][0]["n_decoded"] > 0
    assert shape(slots[0]["next_token"]) == shape(captured[0]["next_token"])
    assert count["tokens_predicted_total"] == 0
    assert count["prompt_tokens_total"] > 0
    assert count["requests_processing"] == 1
    assert 0 < after["tokens_predicted_total"] < 200


def test_speedup_is_what_the_script_says_on_average() -> None:
    def speed(*flags: str) -> float:
        with FakeLlamaServer("--metrics", *flags, speedup={"2": 1.2, "6": 1.6}, **FAST) as server:
            for n in range(12):
                chat(server.url, f"prompt {n}", max_tokens=300)
            count = values(get(server.url, "/metrics")[1])
        return count["tokens_predicted_total"] / count["tokens_predicted_seconds_total"]

    off = speed()
    assert off == pytest.approx(50, rel=0.01)
    assert speed(*SPECULATIVE, "--spec-draft-n-max", "4") / off == pytest.approx(1.4, rel=0.1)


def test_the_text_is_the_same_in_every_arm_unless_the_script_says_otherwise() -> None:
    def text(*flags: str, **options: Any) -> str:
        with FakeLlamaServer(*flags, **options, **FAST) as server:
            answer = json.loads(chat(server.url, stream=False))
        return str(answer["choices"][0]["message"]["content"])

    assert text() == text(*SPECULATIVE)
    assert text() != text(*SPECULATIVE, diverge_at=5)


def test_big_counters_are_printed_with_six_digits_and_positions_in_full() -> None:
    start = {"predicted": 1234567, "drafts": 9, "accepted_at": [1234567, 1000001]}
    with FakeLlamaServer(*SPECULATIVE, start=start) as server:
        page = get(server.url, "/metrics")[1]
    assert "llamacpp:tokens_predicted_total 1.23457e+06\n" in page
    assert 'position="0"} 1234567\n' in page


def test_spellings_of_other_builds() -> None:
    with FakeLlamaServer(*SPECULATIVE, spec_total=False) as server:
        page = get(server.url, "/metrics")[1]
    assert "llamacpp:spec_decode_num_drafts 0\n" in page
    assert "llamacpp:tokens_predicted_total 0\n" in page
    with FakeLlamaServer(*SPECULATIVE, spec_counters=False) as server:
        assert "spec_decode" not in get(server.url, "/metrics")[1]


def test_baseline_drafts_and_not_speculating() -> None:
    with FakeLlamaServer("--metrics", baseline_drafts=2, **FAST) as server:
        assert events(chat(server.url))[-1]["timings"]["draft_n"] > 0
    with FakeLlamaServer(*SPECULATIVE, not_speculating=True, **FAST) as server:
        assert "draft_n" not in events(chat(server.url))[-1]["timings"]
        assert json.loads(get(server.url, "/slots")[1])[0]["speculative"] is False


def test_slots_never_used_say_nothing_of_a_task() -> None:
    with FakeLlamaServer("-np", "2") as server:
        rows = json.loads(get(server.url, "/slots")[1])
    assert [sorted(row) for row in rows] == [["id", "is_processing", "n_ctx", "speculative"]] * 2


def test_errors_that_the_script_asks_for() -> None:
    with FakeLlamaServer(status={"/slots": 500}, fail_requests=[1], **FAST) as server:
        assert get(server.url, "/metrics")[0] == 501
        assert get(server.url, "/slots")[0] == 500
        with pytest.raises(AssertionError, match="scripted failure"):
            chat(server.url)
        assert chat(server.url).endswith("[DONE]\n\n")
        assert server.asked["/v1/chat/completions"] == 2


def test_a_wrong_key_is_refused_except_by_health() -> None:
    with FakeLlamaServer("--metrics", "--api-key", "k") as server:
        assert get(server.url, "/health")[0] == 200
        assert get(server.url, "/metrics")[0] == 401


def test_a_hanging_page_leaves_the_others_fast() -> None:
    with FakeLlamaServer("--metrics", hang={"/metrics": 30}) as server:
        with pytest.raises(TimeoutError):
            get(server.url, "/metrics", wait=0.1)
        assert get(server.url, "/health")[0] == 200


def test_loading_answers_503_as_captured() -> None:
    captured = json.loads((CAPTURES / "b11434-baseline-health-loading.json").read_text())
    with FakeLlamaServer(load_seconds=30) as server:
        for path in ("/health", "/metrics", "/slots"):
            status, body = get(server.url, path)
            assert (status, json.loads(body)) == (captured["status"], captured["body"])


def test_streams_that_break() -> None:
    cut = FakeLlamaServer(truncate_at_token=5, **FAST)
    with cut as server, pytest.raises(http.client.IncompleteRead):
        chat(server.url)
    with FakeLlamaServer(stream_error_at_token=5, **FAST) as server:
        assert events(chat(server.url))[-1]["error"]["code"] == 500
    with FakeLlamaServer(malformed_sse=True, no_timings=True, **FAST) as server:
        text = chat(server.url)
    assert "timings" not in text
    with pytest.raises(json.JSONDecodeError):
        events(text)


def test_options_by_arm_and_launch(tmp_path: Path) -> None:
    script = {
        "if_speculative": {"tps": 2},
        "if_length": {"8": {"tps": 3}},
        "launches_file": str(tmp_path / "launches"),
        "if_launch": {"4": {"tps": 4}},
    }
    eight = ("--spec-draft-n-max", "8")
    made = [FakeLlamaServer(*argv, **script) for argv in ((), SPECULATIVE, (*SPECULATIVE, *eight))]
    assert [server.get("tps") for server in made] == [None, 2, 3]
    assert FakeLlamaServer(**script).get("tps") == 4


def test_the_process_stops_on_sigterm_with_0_and_frees_its_port() -> None:
    with process("--metrics") as (child, url):
        wait_until_ready(url)
        child.send_signal(signal.SIGTERM)
        assert child.wait(5) == 0
        assert child.stderr
        said = child.stderr.read()
    assert "server is listening" not in said
    assert f"srv  llama_server: listening on {url}\n" in said
    assert said.endswith("cleaning up before exit...\n")


def test_sigterm_while_loading_ends_it_by_the_signal() -> None:
    with process(load_seconds=30) as (child, url):
        end = time.monotonic() + 10
        while time.monotonic() < end:
            try:
                assert get(url, "/health")[0] == 503
                break
            except OSError:
                time.sleep(0.02)
        child.terminate()
        assert child.wait(5) == -signal.SIGTERM


def test_a_process_that_ignores_sigterm() -> None:
    with process(ignore_sigterm=True) as (child, url):
        wait_until_ready(url)
        child.terminate()
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0.3)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"exit_code": 3, "log": ["E no"]}, 3),
        ({"exit_signal": "SIGABRT", "exit_after": 0.05}, -6),
        ({"fail_if_n_max_above": 2}, 1),
        ({"reject": ["--metrics"]}, 1),
        ({"removed": {"--metrics": "use nothing"}}, 1),
    ],
)
def test_ends_at_the_start(options: dict[str, Any], code: int) -> None:
    with process(*SPECULATIVE, **options) as (child, _):
        assert child.wait(5) == code
        assert child.stderr
        assert child.stderr.read()


def test_a_taken_port_is_refused_in_the_servers_words() -> None:
    with FakeLlamaServer() as other, process("--port", str(other.port)) as (child, _):
        assert child.wait(5) == 1
        assert child.stderr
        assert "couldn't bind HTTP server socket, hostname: 127.0.0.1" in child.stderr.read()


def test_crashes_after_requests_and_in_the_middle_of_one() -> None:
    with process(crash_after_requests=1, crash_signal=9, **FAST) as (child, url):
        wait_until_ready(url)
        chat(url)
        assert child.wait(5) == -9
    with process(crash_at_token=7, crash_code=4, **FAST) as (child, url):
        wait_until_ready(url)
        with pytest.raises((http.client.HTTPException, OSError)):
            chat(url)
        assert child.wait(5) == 4


def test_an_installed_program_answers_version_and_help(tmp_path: Path) -> None:
    program = install(tmp_path, build="b123-it's", launches_file=str(tmp_path / "n"))
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    assert "build 123, commit it's" in version.stderr
    assert not (tmp_path / "n").exists()
    assert subprocess.run([program, "--help"], capture_output=True, check=True).stdout
