"""Supervising, measuring, restarting to compare: the whole Session, faults included."""

import signal
import threading
import time

import psutil
import pytest
from processes import is_alive
from session_tools import simple, until

from spectui.adapters.journal import read_record
from spectui.domain import proof
from spectui.domain.errors import SpectuiError, UsageError
from spectui.domain.phases import LEGAL, Phase
from spectui.domain.runs import Arm
from spectui.domain.samples import Doing, SourceStatus
from spectui.domain.speculation import Speculation


def record(session):
    """Collect every snapshot from now on."""
    seen = []
    session.subscribe(seen.append)
    return seen


def server_of(session):
    """Return the server's process."""
    return psutil.Process(until(lambda: session.snapshot.pid))


def test_measuring_compares_with_a_baseline_it_measures_first(bench):
    session = bench()
    session.measure(simple(4)).result(30)
    found = session.snapshot
    assert [run.arm.name for run in found.runs] == ["off", "n_max 4"]
    assert found.runs[0].drafted == 0
    assert found.baseline == 1
    overall = found.comparisons[2].overall
    assert overall.pairs == 6
    assert overall.low < overall.speedup < overall.high
    assert found.answer.run == 2
    assert [mark.label for mark in found.marks] == ["off", "n_max 4"]
    assert found.phase is Phase.READY
    assert found.running.speculation == simple(4)


def test_the_next_setting_reuses_the_baseline(bench):
    session = bench()
    session.measure(simple(4)).result(30)
    session.measure(simple(8)).result(30)
    assert [run.arm.name for run in session.snapshot.runs] == ["off", "n_max 4", "n_max 8"]
    assert set(session.snapshot.comparisons) == {2, 3}


def test_acceptance_is_what_the_counters_say(bench):
    session = bench()
    session.measure(simple(4)).result(30)
    summary = session.snapshot.summaries[2]
    run = session.snapshot.runs[1]
    assert summary.acceptance.drafted == sum(r.timings.drafted for r in run.requests)
    assert summary.acceptance.accepted == sum(r.timings.accepted for r in run.requests)
    assert sum(summary.acceptance.accepted_at) == summary.acceptance.accepted
    assert len(summary.acceptance.accepted_at) == 4
    assert summary.tokens == 6 * 64


def test_the_warm_up_is_counted_nowhere(bench):
    session = bench(prompts=1)
    session.measure(Speculation()).result(30)
    run = session.snapshot.runs[0]
    assert [r.prompt for r in run.requests] == ["p0"]


def test_every_phase_change_is_a_legal_one(bench):
    session = bench(load_seconds=0.3)
    seen = record(session)
    session.measure(simple(4)).result(30)
    session.stop_server().result(10)
    until(lambda: session.snapshot.phase is Phase.STOPPED)
    phases = [snapshot.phase for snapshot in seen]
    assert Phase.LOADING in phases
    assert Phase.BUSY in phases
    assert set(phases) <= set(LEGAL)


def test_progress_counts_requests_and_estimates_time(bench):
    session = bench()
    seen = record(session)
    session.measure(simple(4)).result(30)
    measuring = [s.activity for s in seen if s.activity.doing is Doing.MEASURING]
    assert {a.total for a in measuring} == {12}
    assert [a.done for a in measuring] == sorted(a.done for a in measuring)
    assert any(a.seconds_left is not None for a in measuring)
    assert session.snapshot.activity.doing is Doing.IDLE


def test_in_flight_speed_agrees_with_the_servers_own_figure(bench):
    session = bench(prompts=1, time_scale=1, tps=150, profile={"workload": {"max_tokens": 400}})
    for setting in (Speculation(), simple(4)):
        seen = record(session)
        session.measure(setting).result(30)
        flights = [s.in_flight for s in seen if s.in_flight and s.in_flight.max_tokens == 400]
        settled = session.snapshot.runs[-1].requests[0].timings.per_second
        last = flights[-1]
        assert last.tokens > 100
        assert last.so_far == pytest.approx(settled, rel=0.1)
        assert last.tps == pytest.approx(settled, rel=0.25)


def test_a_setting_that_does_not_start_gives_way_to_the_last_good_one(bench):
    session = bench(fail_if_n_max_above=8)
    session.measure(simple(4)).result(30)
    with pytest.raises(SpectuiError, match="GPU has too little free memory") as caught:
        session.measure(simple(16)).result(30)
    assert "smaller context" in str(caught.value)
    found = session.snapshot
    assert found.phase is Phase.READY
    assert found.running.speculation == simple(4)
    assert [run.arm.name for run in found.runs] == ["off", "n_max 4", "n_max 16"]
    assert "memory" in found.runs[2].stopped  # the reason stays where the runs are
    assert found.answer.run == 2
    until(lambda: any("n_max 4 runs again" in n.text for n in session.snapshot.notices))


def test_a_first_start_that_fails_says_why(bench):
    session = bench(exit_code=1, log=["0.00.004.101 E srv start: couldn't bind HTTP server socket"])
    with pytest.raises(SpectuiError, match=r"could not listen.*exit status 1"):
        session.launch(simple(4)).result(30)
    found = until(lambda: session.snapshot if session.snapshot.phase is Phase.FAILED else None)
    assert "exit status 1" in found.reason
    assert found.pid is None


def test_a_signal_is_told_by_its_name(bench):
    session = bench(exit_signal=int(signal.SIGSEGV))
    with pytest.raises(SpectuiError, match="SIGSEGV"):
        session.launch(simple(4)).result(30)


def test_a_server_killed_while_measuring_keeps_what_was_measured(bench):
    session = bench(prompts=40, time_scale=0.1)
    future = session.measure(Speculation())
    until(lambda: session.snapshot.runs and len(session.snapshot.runs[0].requests) >= 2)
    server_of(session).kill()
    with pytest.raises(SpectuiError):
        future.result(10)
    found = until(lambda: session.snapshot if session.snapshot.phase is Phase.GONE else None)
    assert "SIGKILL" in found.reason
    assert len([r for r in found.runs[0].requests if not r.error]) >= 2
    assert found.runs[0].stopped
    session.launch(simple(4)).result(30)  # and it can be started again
    assert session.snapshot.phase is Phase.READY


def test_a_server_killed_while_idle_is_gone(bench):
    session = bench()
    session.launch(simple(4)).result(30)
    server_of(session).kill()
    until(lambda: session.snapshot.phase is Phase.GONE)
    assert "SIGKILL" in session.snapshot.reason
    session.stop_server().result(5)
    until(lambda: session.snapshot.phase is Phase.STOPPED)


def test_cancelling_is_immediate_and_keeps_what_has_ended(bench):
    session = bench(prompts=40, time_scale=1)
    future = session.measure(Speculation())
    until(lambda: session.snapshot.runs and session.snapshot.runs[0].requests, 20)
    began = time.monotonic()
    session.cancel().result(5)
    assert time.monotonic() - began < 1
    with pytest.raises(SpectuiError, match="stopped"):
        future.result(5)
    until(lambda: session.snapshot.activity.doing is Doing.IDLE)
    run = session.snapshot.runs[0]
    assert run.stopped == "stopped"
    assert run.requests
    assert session.snapshot.phase is Phase.READY  # the server stays


def test_a_baseline_cut_short_is_measured_again(bench):
    session = bench(prompts=20, time_scale=0.1)
    future = session.measure(Speculation())
    until(lambda: session.snapshot.runs and session.snapshot.runs[0].requests)
    session.cancel().result(5)
    with pytest.raises(SpectuiError):
        future.result(5)
    session.measure(simple(4)).result(60)
    assert [run.arm.name for run in session.snapshot.runs] == ["off", "off", "n_max 4"]
    assert session.snapshot.baseline == 2


def test_cancelling_a_launch_leaves_nothing_running(bench):
    session = bench(load_seconds=1000)
    future = session.launch(simple(4))
    until(lambda: session.snapshot.phase is Phase.LOADING)
    pid = session.snapshot.pid
    session.cancel().result(5)
    with pytest.raises(SpectuiError):
        future.result(5)
    assert not is_alive(pid)
    until(lambda: session.snapshot.phase is Phase.STOPPED)


def test_a_baseline_that_still_drafts_is_no_baseline(bench):
    session = bench(baseline_drafts=3)
    session.measure(simple(4)).result(30)
    found = session.snapshot
    assert found.runs[0].unverified == "baseline was still drafting"
    assert found.baseline is None
    assert not found.comparisons
    assert any("still drafting" in notice.text for notice in found.notices)


def test_settings_a_server_would_choke_on_start_nothing(bench):
    session = bench()
    with pytest.raises(UsageError, match="n_min"):
        session.measure(simple(4, n_min=5)).result(5)
    assert session.snapshot.phase is Phase.STOPPED
    assert not session.snapshot.runs


def test_a_second_job_is_refused_while_one_runs(bench):
    session = bench(prompts=20, time_scale=0.2)
    first = session.measure(Speculation())
    until(lambda: session.snapshot.activity.doing is not Doing.IDLE)
    with pytest.raises(UsageError, match="still"):
        session.measure(simple(4)).result(5)
    session.cancel().result(5)
    with pytest.raises(SpectuiError):
        first.result(5)


def test_a_stopped_server_ends_the_measurement(bench):
    session = bench(prompts=20, time_scale=0.2)
    future = session.measure(Speculation())
    until(lambda: session.snapshot.runs)
    session.stop_server().result(10)
    with pytest.raises(SpectuiError):
        future.result(5)
    until(lambda: session.snapshot.phase is Phase.STOPPED)


def test_measuring_the_baseline_goes_back_to_the_setting_before(bench):
    session = bench()
    session.launch(simple(4)).result(30)
    session.measure_baseline().result(30)
    assert session.snapshot.running.speculation == simple(4)
    assert [run.arm.name for run in session.snapshot.runs] == ["off"]


@pytest.mark.slow
def test_a_slow_metrics_page_holds_up_nothing_else(bench):
    session = bench(hang={"/metrics": 6})
    session.launch(simple(4)).result(30)
    began = until(lambda: session.snapshot.host and session.snapshot.at)
    until(lambda: session.snapshot.sources["metrics"].status is SourceStatus.SLOW)
    host = session.snapshot.sources["host"]
    assert host.status is SourceStatus.OK
    assert host.read_at > began


def test_a_reader_that_hangs_is_called_slow_and_stops_nobody(bench):
    release = threading.Event()

    class Hanging:
        def read(self):
            release.wait(30)
            return ()

        def close(self):
            pass

    session = bench(gpus=Hanging())
    try:
        session.measure(simple(4)).result(30)
        until(lambda: session.snapshot.sources["gpu"].status is SourceStatus.SLOW)
        assert session.snapshot.sources["host"].status is SourceStatus.OK
    finally:
        release.set()


def test_no_gpu_is_no_fault(bench):
    session = bench()
    until(lambda: session.snapshot.sources["gpu"].status is SourceStatus.ABSENT)
    assert session.snapshot.sources["gpu"].reason == "no NVIDIA GPU"


def test_a_stream_without_timings_is_timed_here(bench):
    session = bench(no_timings=True, time_scale=0.2)
    session.measure(simple(4)).result(60)
    request = session.snapshot.runs[1].requests[0]
    assert request.decode_tps is not None
    assert request.timings.predicted_n == 64
    assert request.acceptance.drafted > 0  # /metrics still tells


def test_counters_past_a_million_are_marked_as_rounded(bench):
    start = {"predicted": 1_234_567, "drafted": 1_234_567, "accepted": 1_000_001, "drafts": 999_000}
    session = bench(start=start, if_baseline={"start": {}})
    session.measure(simple(4)).result(30)
    acceptance = session.snapshot.summaries[2].acceptance
    assert not acceptance.exact
    assert sum(acceptance.accepted_at) == acceptance.accepted


def test_one_failed_request_does_not_end_a_run(bench):
    session = bench(fail_requests=[3])
    session.measure(simple(4)).result(30)
    summary = session.snapshot.summaries[2]
    assert (summary.requests, summary.failed) == (5, 1)
    assert session.snapshot.comparisons[2].overall.pairs == 5


def test_a_server_that_always_fails_is_given_up(bench):
    session = bench(fail_requests=list(range(2, 99)))
    with pytest.raises(SpectuiError, match="in a row failed"):
        session.measure(simple(4)).result(30)


@pytest.mark.parametrize("fault", [{"truncate_at_token": 20}, {"stream_error_at_token": 20}])
def test_a_broken_answer_is_a_failed_request(bench, fault):
    session = bench(**fault)
    with pytest.raises(SpectuiError):
        session.measure(Speculation()).result(30)
    assert not any(run.requests and not run.requests[0].error for run in session.snapshot.runs)


def test_garbage_in_the_stream_is_told_and_not_crashed_on(bench):
    session = bench(malformed_sse=True)
    session.measure(Speculation()).exception(30)
    assert session.snapshot.phase is Phase.READY
    assert session.snapshot.activity.doing is Doing.IDLE


def test_a_port_in_use_is_refused(bench, tmp_path):
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        session = bench(profile={"server": {"engine": "fake", "port": port}})
        with pytest.raises(SpectuiError, match=str(port)):
            session.launch(simple(4)).result(10)
    assert session.snapshot.phase is Phase.FAILED
    [found] = session.snapshot.findings
    assert found.code == "port-in-use"
    assert found.fixes[0].changes == (("server.port", None),)


def test_a_server_that_neither_answers_nor_moves_is_given_up(bench):
    from spectui.session.supervisor import Patience

    session = bench(load_seconds=10_000, patience=Patience(stall=1, stop=1))
    with pytest.raises(SpectuiError, match="has not moved for 1 s"):
        session.launch(simple(4)).result(20)


def test_what_was_measured_is_on_disk_request_by_request(bench, tmp_path):
    session = bench(prompts=3)
    session.measure(simple(4)).result(30)
    session.close(10)
    [path] = (tmp_path / "sessions").glob("*.jsonl")
    found = read_record(path)
    assert found.runs == session.snapshot.runs


def test_a_record_cut_off_anywhere_is_still_read(bench, tmp_path):
    session = bench(prompts=3)
    session.measure(Speculation()).result(30)
    session.close(10)
    [path] = (tmp_path / "sessions").glob("*.jsonl")
    whole = path.read_bytes()
    head = whole.index(b"\n") + 1
    for cut in range(head, len(whole), 997):
        path.write_bytes(whole[:cut])
        requests = sum(len(run.requests) for run in read_record(path).runs)
        assert requests == whole[:cut].count(b'"event": "request"') - (
            b'"event": "request"' in whole[:cut].rpartition(b"\n")[2]
        )


def test_closing_at_any_moment_leaves_nothing(bench):
    for delay in (0.0, 0.1, 0.3, 0.6, 1.0):
        session = bench(prompts=30, time_scale=0.1, load_seconds=0.3)
        session.measure(simple(4))
        time.sleep(delay)
        assert session.close(10)


def test_asking_a_closed_session_is_answered(bench):
    session = bench()
    session.close(5)
    with pytest.raises(SpectuiError, match="ended"):
        session.measure(simple(4)).result(5)


def test_a_server_that_ignores_sigterm_is_killed(bench):
    session = bench(ignore_sigterm=True)
    session.launch(simple(4)).result(30)
    pid = server_of(session).pid
    session.stop_server().result(10)
    assert not is_alive(pid)


# -- what happens at the same time --------------------------------------------------------------


@pytest.mark.parametrize("pause", [0.0, 0.05, 0.3])
def test_started_again_while_it_stops_there_is_one_server_and_it_is_known(bench, pause):
    session = bench(ignore_sigterm=True)  # stopping takes its whole deadline
    session.launch(simple(4)).result(30)
    first = server_of(session).pid
    stopping = session.stop_server()
    time.sleep(pause)
    session.launch(simple(8)).result(30)
    stopping.result(10)
    assert session.snapshot.phase is Phase.READY
    assert session.snapshot.running.speculation == simple(8)
    assert not is_alive(first)
    assert is_alive(server_of(session).pid)


def test_cancelled_while_the_old_server_ends_it_is_stopped(bench):
    session = bench(ignore_sigterm=True)
    session.launch(simple(4)).result(30)
    future = session.launch(simple(8))
    until(lambda: session.snapshot.phase is Phase.STOPPING)
    session.cancel().result(5)
    assert future.exception(5)
    until(lambda: session.snapshot.phase is Phase.STOPPED)
    session.launch(simple(4)).result(30)


def test_cancelled_twice_while_loading_it_is_stopped(bench):
    session = bench(load_seconds=1000, ignore_sigterm=True)
    future = session.launch(simple(4))
    until(lambda: session.snapshot.phase is Phase.LOADING)
    cancels = [session.cancel(), session.cancel()]
    for cancel in cancels:
        cancel.result(10)
    assert future.exception(5)
    until(lambda: session.snapshot.phase is Phase.STOPPED)


def test_a_crash_in_the_midst_of_an_answer_is_told_as_one(bench):
    session = bench(crash_after_requests=3, crash_at_token=10, crash_code=3)
    error = session.measure(Speculation()).exception(30)
    assert "exit status 3" in str(error)
    [run] = session.snapshot.runs
    assert "exit status 3" in run.stopped
    assert sum(bool(request.error) for request in run.requests) == 1


def test_a_request_that_broke_off_is_not_added_to_its_neighbour(bench):
    session = bench(fail_requests=[3], prompts=5)
    session.measure_arms([Arm(simple(4))]).result(30)
    for request in session.snapshot.runs[0].requests:
        if not request.error:
            assert request.acceptance.drafted == request.timings.drafted


def test_a_driver_that_hangs_does_not_hold_up_the_end(bench):
    release = threading.Event()

    class Hanging:
        def read(self):
            release.wait(30)
            return ()

        close = read

    session = bench(gpus=Hanging())
    time.sleep(0.2)
    began = time.monotonic()
    assert session.close(5)
    assert time.monotonic() - began < 3
    release.set()


def test_a_listener_that_fails_stops_nobody(bench):
    session = bench()

    def broken(snapshot):
        raise RuntimeError("no")

    session.subscribe(broken)
    seen = record(session)
    session.launch(simple(4)).result(30)
    until(lambda: seen and seen[-1].phase is Phase.READY)
    assert any("listener failed" in notice.text for notice in session.snapshot.notices)


def test_several_arms_go_on_where_one_does_not_start(bench):
    session = bench(fail_if_n_max_above=8, prompts=4)
    arms = [Arm(), Arm(simple(2)), Arm(simple(16)), Arm(simple(4))]
    error = session.measure_arms(arms).exception(60)
    assert "n_max 16" in str(error)
    runs = session.snapshot.runs
    assert [run.arm.name for run in runs] == ["off", "n_max 2", "n_max 16", "n_max 4"]
    assert [len(run.requests) for run in runs] == [4, 4, 0, 4]
    assert "too little free memory" in runs[2].stopped
    assert "smaller context" not in runs[2].stopped  # advice has its place elsewhere
    assert [mark.label for mark in session.snapshot.marks] == ["off", "n_max 2", "n_max 4"]


def test_time_left_runs_down_while_a_server_loads(bench):
    session = bench(load_seconds=2.5)
    seen = record(session)
    session.measure(simple(4)).result(30)
    loading = [
        s.activity.seconds_left
        for s in seen
        if s.phase is Phase.LOADING and s.activity.arm == "n_max 4"
    ]
    assert len(loading) >= 2
    assert loading == sorted(loading, reverse=True)
    assert loading[0] > loading[-1]


@pytest.mark.slow
def test_a_server_that_dies_between_an_answer_and_its_counters_is_told(bench):
    session = bench(crash_after_requests=3, crash_code=1)
    error = session.measure(simple(4)).exception(30)
    assert "the server went away" in str(error)
    assert "fault" not in str(error)
    assert session.snapshot.runs[0].stopped
    assert "cut short" in session.snapshot.answer.text


def test_the_setting_last_asked_for_is_the_one_to_go_on_from(bench):
    session = bench(fail_if_n_max_above=9)
    assert session.snapshot.speculation == simple(4)
    session.measure(simple(8)).result(30)
    assert session.snapshot.speculation == simple(8)
    session.measure_baseline().result(30)
    assert session.snapshot.speculation == simple(8)
    assert session.measure(simple(16)).exception(30)
    assert session.snapshot.speculation == simple(8)  # which runs again


def test_the_charts_time_stands_still_while_nothing_is_done(bench):
    session = bench()
    session.measure(simple(4)).result(30)
    time.sleep(0.6)  # the last beat of the job
    first = session.snapshot
    time.sleep(2)
    later = session.snapshot
    assert later.at - first.at > 1
    assert later.chart_at - first.chart_at < 0.6
    assert later.chart_at >= max(point.ended for point in later.settled)


def test_an_arm_that_never_drafts_is_told(bench):
    session = bench(not_speculating=True)
    session.measure(simple(4)).result(30)
    assert session.snapshot.runs[1].undrafted == "drafted nothing"
    assert "n_max 4 drafted nothing" in session.snapshot.answer.text


def codes(session):
    return [finding.code for finding in session.snapshot.findings]


def test_a_server_that_is_ready_and_does_not_speculate_is_told(bench):
    session = bench(not_speculating=True)
    session.launch(simple(4)).result(30)
    assert codes(session) == [proof.NOT_SPECULATING]
    assert any("not speculating" in notice.text for notice in session.snapshot.notices)


def test_the_log_says_why_it_does_not_speculate(bench):
    line = "0.00.004.101 W common_speculative_init: the target and draft vocabs are not compatible"
    session = bench(not_speculating=True, log=[line])
    session.launch(simple(4)).result(30)
    assert codes(session) == ["vocab-mismatch"]
    assert session.snapshot.findings[0].what.startswith("ready, but not speculating")


def test_a_good_launch_has_no_findings(bench):
    session = bench()
    session.measure(simple(4)).result(30)
    assert codes(session) == []


def test_a_broken_pairing_is_told_once_it_shows(bench):
    session = bench(rates=[0.0] * 4, prompts=12)
    session.measure(simple(4)).result(30)
    assert codes(session) == [proof.NEVER_ACCEPTED]
    told = [n for n in session.snapshot.notices if "no draft was ever accepted" in n.text]
    assert len(told) == 1


def test_a_setting_that_did_not_start_leaves_its_fixes_while_another_runs(bench):
    session = bench(fail_if_n_max_above=8)
    session.measure(simple(4)).result(30)
    with pytest.raises(SpectuiError):
        session.measure(simple(16)).result(30)
    assert session.snapshot.phase is Phase.READY
    [found] = session.snapshot.findings
    assert found.code == "out-of-memory-gpu"
    assert found.fixes
    session.measure(simple(2)).result(30)
    assert codes(session) == []
