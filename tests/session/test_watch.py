"""A server that somebody else runs, watched over the real HTTP adapter while others use it."""

import contextlib
import json
import threading
import time
import urllib.request
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path

import pytest
from fake_llama_server import FakeLlamaServer
from session_tools import simple, until

from spectui.cli.watching import build_watching
from spectui.domain.address import Secret, parse_address
from spectui.domain.attached import Found, ServerKind
from spectui.domain.errors import RequestError, UsageError
from spectui.domain.phases import UP, Phase
from spectui.domain.runs import AS_IT_RUNS, WATCHED, Arm
from spectui.domain.samples import Level, SourceStatus
from spectui.session.attached import Pace

HURRIED = Pace(soon=0.02, steady=0.05, rarely=0.1, silence=0.4, metrics=0.05, slots=0.02)
DRAFTING = ("--metrics", "--spec-type", "draft-simple", "-md", "d.gguf", "--spec-draft-n-max", "4")
SLOW = {"tps": 200, "time_scale": 1}
FAST = {"tps": 200, "time_scale": 0.02}
KINDS = {
    None: ServerKind.LLAMA,
    "vllm": ServerKind.VLLM,
    "sglang": ServerKind.SGLANG,
    "router": ServerKind.ROUTER,
    "swap": ServerKind.SWAP,
}


def ask(server, tokens=40, text="hello", **body):
    """Send one request as somebody else would, and return the server's own timings of it."""
    request = urllib.request.Request(  # noqa: S310 - always the stand-in
        f"{server.url}/v1/chat/completions",
        json.dumps(
            {"messages": [{"role": "user", "content": text}], "max_tokens": tokens, **body}
        ).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
        return json.load(answer).get("timings")


@dataclass
class Bench:
    folder: Path
    sessions: list = field(default_factory=list)

    def __call__(self, server, *, key="", model="", url="", ready=True, pace=HURRIED):
        kind = KINDS[server.get("as")]
        found = Found(kind, model or ("org/model" if not kind.has_slots else "x.gguf"))
        session = build_watching(
            parse_address(url or server.url),
            Secret(key),
            found,
            limit=1,
            folder=self.folder,
            pace=pace,
        )
        self.sessions.append(session)
        session.start()
        if ready:
            until(lambda: session.snapshot.phase in UP)
            until(lambda: not waiting(session, kind))
        return session


def waiting(session, kind):
    names = ("metrics", "slots") if kind.has_slots else ("metrics",)
    return any(session.snapshot.sources[n].status is SourceStatus.WAITING for n in names)


@pytest.fixture
def watch(tmp_path, monkeypatch):
    monkeypatch.setattr("spectui.session.session._TICK", 0.05)
    monkeypatch.setattr("spectui.session.session._SPACING", 0.01)
    monkeypatch.setattr("spectui.session.session._BEAT", 0.02)
    made = Bench(tmp_path)
    yield made
    for session in made.sessions:
        assert session.close(10)


def watched(session):
    """Return the figures of what others let the server do, the newest run's."""
    runs = [run for run in session.snapshot.runs if run.arm == WATCHED]
    return session.snapshot.summaries[runs[-1].number]


def texts(session):
    return [notice.text for notice in session.snapshot.notices]


# -- what is seen ----------------------------------------------------------------------------------


def test_rate_and_decay_are_what_the_server_counts(watch):
    with FakeLlamaServer(*DRAFTING, **FAST) as server:
        ask(server)  # before anybody watched: not counted
        before = list(server.totals.accepted_at)
        session = watch(server)
        timings = []
        for i in range(3):
            timings.append(ask(server, text=f"count to {i}"))
            until(lambda: watched(session).requests == len(timings))
        found = watched(session)
        assert found.tokens == sum(t["predicted_n"] for t in timings)
        acceptance = found.acceptance
        assert acceptance.drafted == sum(t["draft_n"] for t in timings)
        assert acceptance.accepted == sum(t["draft_n_accepted"] for t in timings)
        now = server.totals.accepted_at
        assert list(acceptance.accepted_at) == [b - a for a, b in zip(before, now, strict=True)]
        shown = [point.tps for point in session.snapshot.settled]
        assert shown == pytest.approx([t["predicted_per_second"] for t in timings], rel=0.01)
        assert session.snapshot.attached.speculating is True
        assert session.snapshot.attached.types == ("draft-simple",)
        assert "accepted" in session.snapshot.answer.text


def test_speed_in_flight_is_that_of_the_request_under_way(watch):
    with FakeLlamaServer("--metrics", **SLOW) as server:
        session = watch(server)
        other = threading.Thread(target=ask, args=(server, 120))
        other.start()
        until(lambda: session.snapshot.phase is Phase.BUSY)
        until(lambda: len([p for p in session.snapshot.speed if p.tps]) > 1)
        other.join()
        rates = [point.tps for point in session.snapshot.speed if point.tps]
        assert sum(rates) / len(rates) == pytest.approx(200, rel=0.25)
        until(lambda: session.snapshot.phase is Phase.READY)
        until(lambda: session.snapshot.attached.tps is None)


def test_several_at_once_each_have_their_own_speed(watch):
    with FakeLlamaServer("--metrics", **SLOW) as server:
        session = watch(server)
        others = [threading.Thread(target=ask, args=(server, 60, f"{i}")) for i in range(3)]
        for other in others:
            other.start()
        for other in others:
            other.join()
        until(lambda: watched(session).tokens == 180)
        assert watched(session).decode_tps == pytest.approx(200, rel=0.03)
        assert 1 <= watched(session).requests <= 3


def test_an_idle_server_is_not_asked_for_its_slots_all_the_time(watch):
    with FakeLlamaServer("--metrics", **FAST) as server:
        watch(server)
        before = dict(server.asked)
        until(lambda: server.asked["/metrics"] > before["/metrics"] + 5)
        assert server.asked["/slots"] == before["/slots"]
        assert server.asked["/props"] == before["/props"]


def test_a_sleeping_server_sleeps_on_and_its_waking_is_no_restart(watch):
    with FakeLlamaServer(*DRAFTING, **FAST) as server:
        session = watch(server)
        ask(server)
        until(lambda: watched(session).requests == 1)
        server.options["sleeping"] = True
        before = server.asked["/metrics"]
        until(lambda: server.asked["/metrics"] > before + 5)
        assert server.woken == 0
        server.started_at += 100  # llama-server sets it anew when it loads the model again
        ask(server)
        until(lambda: watched(session).requests == 2)
        assert not session.snapshot.marks
        fresh = watch(server, ready=False)
        server.options["sleeping"] = True
        until(lambda: fresh.snapshot.phase in UP)
        assert fresh.close(10)


# -- a server that ends, and comes back ------------------------------------------------------------


def test_counters_that_fall_begin_a_new_run(watch):
    with FakeLlamaServer(*DRAFTING, **FAST) as server:
        session = watch(server)
        ask(server)
        until(lambda: watched(session).requests == 1)
        with server.lock:
            server.totals = type(server.totals)()
        until(lambda: session.snapshot.marks)
        first, second = (run for run in session.snapshot.runs if run.arm == WATCHED)
        assert first.stopped == "the server was restarted"
        assert second.ended is None
        assert session.snapshot.summaries[first.number].requests == 1
        timings = ask(server)
        until(lambda: watched(session).requests == 1)
        assert watched(session).acceptance.drafted == timings["draft_n"]


def test_a_server_that_goes_away_is_told_and_found_again(watch):
    server = FakeLlamaServer(*DRAFTING, **FAST).start()
    port, session = server.port, watch(server)
    ask(server)
    until(lambda: watched(session).requests == 1)
    server.stop()
    until(lambda: session.snapshot.phase is Phase.GONE)
    assert "does not accept connections" in session.snapshot.reason
    assert session.snapshot.running is None
    with FakeLlamaServer(*DRAFTING, "--port", str(port), load_seconds=60, **FAST) as again:
        again.started_at += 5
        until(lambda: session.snapshot.phase is Phase.LOADING)
        again.ready()
        until(lambda: session.snapshot.marks)
        timings = ask(again, 60)
        until(lambda: watched(session).tokens == 60)
        assert watched(session).acceptance.drafted == timings["draft_n"]
        assert [mark.label for mark in session.snapshot.marks] == ["restarted"]


def test_a_server_that_comes_back_without_drafts_is_not_taken_for_the_one_before(watch):
    server = FakeLlamaServer(*DRAFTING, **SLOW).start()
    port, session = server.port, watch(server)
    ask(server)
    until(lambda: session.snapshot.attached.types == ("draft-simple",))
    server.stop()
    until(lambda: session.snapshot.phase is Phase.GONE)
    with FakeLlamaServer("--metrics", "--port", str(port), **FAST):
        until(lambda: session.snapshot.attached.speculating is False)
        assert session.snapshot.attached.types == ()


def test_what_was_in_flight_when_a_server_went_away_is_not_shown_on(watch):
    server = FakeLlamaServer(*DRAFTING, **{"as": "vllm"}, **SLOW).start()
    session = watch(server)

    def disappointed():
        with contextlib.suppress(OSError, HTTPException):  # or a stream that ends too early
            ask(server, 2000)

    other = threading.Thread(target=disappointed)
    other.start()
    until(lambda: session.snapshot.attached.tps)
    server.stop()
    other.join()
    until(lambda: session.snapshot.phase is Phase.GONE)
    until(lambda: session.snapshot.attached.tps is None)


def test_one_lost_connection_is_an_accident(watch):
    with FakeLlamaServer("--metrics", **FAST) as server:
        session = watch(server)
        health, failed = session._attached.client.health, []

        async def flaky():
            if not failed:
                failed.append(True)
                raise RequestError("the connection broke")
            return await health()

        session._watched.client.health = flaky
        until(lambda: failed)
        before = server.asked["/health"]
        until(lambda: server.asked["/health"] > before + 2)
        assert session.snapshot.phase in UP
        assert not [n for n in session.snapshot.notices if n.level is Level.ERROR]


def test_late_is_not_gone(watch, monkeypatch):
    monkeypatch.setattr("spectui.adapters.llama_http._HEALTH", 0.1)
    with FakeLlamaServer("--metrics", **FAST) as server:
        session = watch(server)
        server.options["hang"] = {"/health": 0.15}
        before = server.asked["/health"]
        until(lambda: server.asked["/health"] > before + 1)
        assert session.snapshot.phase in UP


def test_silence_for_long_is_gone(watch, monkeypatch):
    monkeypatch.setattr("spectui.adapters.llama_http._HEALTH", 0.1)
    with FakeLlamaServer("--metrics", **FAST) as server:
        session = watch(server)
        server.options["hang"] = {"/health": 5}
        until(lambda: session.snapshot.phase is Phase.GONE)
        assert "did not answer in time" in session.snapshot.reason


def test_a_server_that_is_still_loading_is_waited_for(watch):
    with FakeLlamaServer("--metrics", load_seconds=0.3, **FAST) as server:
        session = watch(server, ready=False)
        until(lambda: session.snapshot.phase is Phase.LOADING)
        until(lambda: session.snapshot.phase is Phase.READY)


def test_closing_leaves_the_server_alone(watch):
    with FakeLlamaServer(*DRAFTING, **FAST) as server:
        session = watch(server)
        assert session.close(10)
        session.kill_now()
        asked = dict(server.asked)
        assert ask(server)["predicted_n"] == 40
        assert server.asked == {**asked, "/v1/chat/completions": 1}


# -- what is missing -------------------------------------------------------------------------------


def test_without_metrics_speed_is_shown_and_the_rest_is_told(watch):
    with FakeLlamaServer(*DRAFTING[1:], **SLOW) as server:
        session = watch(server)
        attached = session.snapshot.attached
        assert attached.missing == ("no acceptance by position: the server runs without --metrics",)
        assert attached.speculating is True
        assert "not known" in session.snapshot.answer.text
        other = threading.Thread(target=ask, args=(server, 200))
        other.start()
        until(lambda: session.snapshot.phase is Phase.BUSY)
        until(lambda: session.snapshot.attached.tps)
        other.join()
        until(lambda: session.snapshot.phase is Phase.READY)


def test_without_slots_acceptance_is_shown_and_the_rest_is_told(watch):
    with FakeLlamaServer(*DRAFTING, "--no-slots", **FAST) as server:
        session = watch(server)
        until(lambda: session.snapshot.attached.missing)
        assert session.snapshot.attached.missing == (
            "no speed in flight: the server runs with --no-slots",
        )
        timings = ask(server)
        until(lambda: watched(session).requests == 1)
        assert watched(session).acceptance.drafted == timings["draft_n"]
        assert session.snapshot.attached.speculating is True  # it has drafted


@pytest.mark.parametrize(("key", "said"), [("", "wants an API key"), ("wrong", "refuses the API")])
def test_a_wrong_key_is_told_and_no_prompt_is_sent(watch, key, said):
    with FakeLlamaServer("--metrics", "--api-key", "right", **FAST) as server:
        session = watch(server, key=key)
        until(lambda: len(session.snapshot.attached.missing) == 2)
        assert all(said in text for text in session.snapshot.attached.missing)
        assert "API key" in session.snapshot.attached.why_not_measure
        with pytest.raises(UsageError, match="API key"):
            session.measure(session.profile.speculation).result(5)
        assert server.chats == 0
        told = [text for text in texts(session) if "API key" in text]
        assert len(told) == 3  # each source once, and why nothing was sent


def test_the_right_key_opens_everything(watch):
    with FakeLlamaServer(*DRAFTING, "--api-key", "right", **FAST) as server:
        session = watch(server, key="right")
        until(lambda: session.snapshot.attached.speculating)
        assert session.snapshot.attached.missing == ()
        assert server.keys == {"Bearer right"}


def test_what_was_missing_may_come_back(watch):
    with FakeLlamaServer(*DRAFTING, **FAST) as server:
        server.options["status"] = {"/metrics": 501}
        session = watch(server)
        until(lambda: session.snapshot.attached.missing)
        server.options["status"] = {}
        session._loop.call_soon_threadsafe(session._reader.hurry)
        until(lambda: not session.snapshot.attached.missing)
        assert "acceptance by position can be shown now" in texts(session)


def test_a_build_that_counts_no_drafts_is_not_said_to_draft_nothing(watch):
    """An ik_llama.cpp: old /slots, and no counters of drafts although it drafts."""
    with FakeLlamaServer(*DRAFTING, slots_ik=True, spec_counters=False, **FAST) as server:
        session = watch(server)
        ask(server)
        until(lambda: watched(session).tokens == 40)
        attached = session.snapshot.attached
        assert attached.speculating is None
        assert attached.missing == ("no acceptance: this server counts no drafts",)
        assert "not known" in session.snapshot.answer.text
        assert watched(session).decode_tps


# -- what stands in its place ----------------------------------------------------------------------


def test_vllm_counts_as_tokens_come(watch):
    with FakeLlamaServer(*DRAFTING, **{"as": "vllm"}, **SLOW) as server:
        session = watch(server)
        other = threading.Thread(target=ask, args=(server, 200))
        other.start()
        until(lambda: session.snapshot.phase is Phase.BUSY)
        until(lambda: session.snapshot.attached.tps)
        other.join()
        until(lambda: watched(session).tokens == 200)
        assert list(watched(session).acceptance.accepted_at) == server.totals.accepted_at
        assert session.snapshot.attached.speculating is True
        assert session.snapshot.attached.missing == ()
        assert "/slots" not in server.asked


def test_vllm_without_counters_of_drafts_does_not_draft(watch):
    with FakeLlamaServer(**{"as": "vllm"}, **FAST) as server:
        session = watch(server)
        assert session.snapshot.attached.speculating is False
        assert session.snapshot.attached.missing == ()
        assert "does not speculate" in session.snapshot.answer.text


def test_sglang_tells_the_mean_length_and_no_positions(watch):
    with FakeLlamaServer(*DRAFTING, **{"as": "sglang"}, **FAST) as server:
        session = watch(server)
        ask(server, 41)
        until(lambda: watched(session).acceptance.drafts)
        totals = server.totals
        accepted = totals.predicted - totals.drafts - 1
        shown = watched(session).acceptance
        assert shown.mean_length == pytest.approx(1 + accepted / totals.drafts)
        assert (shown.rate, shown.unconditional) == (None, ())
        [missing] = session.snapshot.attached.missing
        assert missing == "no acceptance by position: SGLang does not count it"


def test_an_older_sglang_says_its_mean_length_itself(watch):
    with FakeLlamaServer(*DRAFTING, **{"as": "sglang"}, spec_counters=False, **FAST) as server:
        session = watch(server)
        until(lambda: session.snapshot.attached.said_length == 2.5)
        assert "2.5 tokens a step, says SGLang" in session.snapshot.answer.text


@pytest.mark.parametrize(("front", "here"), [("router", "loaded"), ("swap", "ready")])
def test_one_model_of_several_is_watched_and_none_is_loaded(watch, front, here):
    models = {"a": here, "b": "stopped" if front == "swap" else "unloaded"}
    with FakeLlamaServer(*DRAFTING, **{"as": front}, models=models, **FAST) as server:
        session = watch(server, model="a")
        timings = ask(server, model="a")
        until(lambda: watched(session).acceptance.drafted == timings["draft_n"])
        assert session.snapshot.attached.model == "a"
        other = watch(server, model="b", ready=False)
        until(lambda: other.snapshot.phase is Phase.FAILED)
        assert "spectui never does" in other.snapshot.reason
        time.sleep(0.1)
        assert server.loads == []
        models["b"] = here
        until(lambda: other.snapshot.phase in UP)


def test_a_prefix_of_all_paths(watch):
    with FakeLlamaServer(*DRAFTING, api_prefix="/llm", **FAST) as server:
        session = watch(server, url=f"{server.url}/llm")
        assert session.snapshot.attached.missing == ()
        assert session.snapshot.attached.speculating is True


# -- what may be asked -----------------------------------------------------------------------------


def test_the_workload_is_sent_on_request_and_is_not_mistaken_for_others(watch):
    with FakeLlamaServer(*DRAFTING, **FAST) as server:
        session = watch(server)
        ask(server)
        until(lambda: watched(session).requests == 1)
        session.measure(session.profile.speculation).result(30)
        found = session.snapshot
        [ours] = [run for run in found.runs if run.arm == AS_IT_RUNS]
        assert len(ours.requests) == ours.planned == len(session.prompts)
        assert not [request for request in ours.requests if request.error]
        summary = found.summaries[ours.number]
        assert summary.acceptance.drafted == sum(r.timings.drafted for r in ours.requests)
        assert found.baseline is None
        assert not found.comparisons.get(ours.number)
        until(lambda: session.snapshot.runs[-1].arm == WATCHED)
        ask(server)
        until(lambda: watched(session).requests == 1)
        assert watched(session).tokens == 40
        [first, last] = [run for run in session.snapshot.runs if run.arm == WATCHED]
        assert session.snapshot.summaries[first.number].requests == 1
        assert last.number > ours.number


def test_measuring_can_be_cancelled_and_the_server_goes_on(watch):
    with FakeLlamaServer(*DRAFTING, **SLOW) as server:
        session = watch(server)
        job = session.measure(session.profile.speculation)
        until(lambda: session.snapshot.in_flight)
        session.cancel().result(10)
        assert "stopped" in str(job.exception(5))
        until(lambda: session.snapshot.phase in UP)
        assert ask(server)["predicted_n"] == 40


def test_nothing_that_takes_a_restart_is_ever_done(watch, tmp_path):
    with FakeLlamaServer(*DRAFTING, **FAST) as server:
        session = watch(server)
        other = simple(8)
        for refused in (
            session.launch(other),
            session.stop_server(),
            session.measure_baseline(),
            session.measure_arms([Arm(other)]),
            session.measure(other),
        ):
            with pytest.raises(UsageError, match="spectui only watches"):
                refused.result(5)
        with pytest.raises(UsageError, match="no profile to export"):
            session.export(str(tmp_path / "x.toml")).result(5)
        assert session.check(other)
        assert session.snapshot.phase in UP
        assert session.snapshot.pid is None


def test_its_record_says_what_was_watched(watch, tmp_path):
    with FakeLlamaServer(*DRAFTING, "--api-key", "canary-5ecret", **FAST) as server:
        session = watch(server, key="canary-5ecret")
        session.measure(session.profile.speculation).result(30)
        assert session.close(10)
        [record] = (tmp_path / "attached").rglob("*.jsonl")
        text = record.read_text(encoding="utf-8")
        assert json.loads(text.splitlines()[0])["attached"]["url"] == server.url
        assert "as it runs" in text
        assert "canary" not in text
