"""``spectui measure`` and ``spectui export`` from end to end on the stand-in server."""

import json
import signal
import time

import pytest
from session_tools import started_with, until

from spectui.adapters.toml_store import load_profile
from spectui.cli.profile import arms_of
from spectui.domain.errors import UsageError
from spectui.domain.profile import parse_profile


def test_the_result_has_all_that_was_promised(shell):
    status, out, err = shell("measure", shell.profile(), "--limit", "1", "--json")
    assert status == 0, err
    result = json.loads(out)
    assert result["engine"]["kind"] == "binary"
    assert result["engine"]["build"]
    assert result["model"] == {"target": "target.gguf", "draft": "draft.gguf"}
    assert result["workload"]["prompts"] == 6
    assert result["workload"]["max_tokens"] == 64
    base, arm = result["arms"]
    assert (base["name"], arm["name"]) == ("off", "n_max 4")
    assert base["drafted"] == base["drafts"] == 0
    assert base["acceptance_rate"] is None
    assert base["mean_acceptance_length"] is None
    assert arm["speculation"] == {"type": "draft-simple", "n_max": 4}
    assert arm["requests"] == 6
    assert arm["tokens"] == 6 * 64
    assert len(arm["unconditional"]) == len(arm["conditional"]) == 4
    assert arm["acceptance_rate"] == pytest.approx(arm["accepted"] / arm["drafted"])
    assert arm["mean_acceptance_length"] == pytest.approx(1 + arm["accepted"] / arm["drafts"])
    assert set(arm["by_task"]) == {"math", "code", "translation", "creative", "science", "rewrite"}
    assert len(arm["per_prompt"]) == 6
    assert base["findings"] == []
    assert {found["severity"] for found in arm["findings"]} <= {"hint"}
    [comparison] = result["comparisons"]
    assert (comparison["arm"], comparison["against"]) == ("n_max 4", "off")
    low, high = comparison["interval"]
    assert low < comparison["speedup"] < high
    assert "launching n_max 4" in err  # what is over sooner than a glance is not told
    assert not started_with(shell.home)


def test_people_get_the_answer_and_a_table(shell):
    status, out, _ = shell("measure", shell.profile(), "--limit", "1")
    assert status == 0
    lines = out.splitlines()
    assert "n_max 4 is" in lines[0]
    assert any(line.startswith("off ") for line in lines)
    assert "\x1b" not in out


def test_arms_and_settings(shell):
    status, out, err = shell(
        *("measure", shell.profile(), "--limit", "1", "--json"),
        *("--set", "workload.tasks=['code']", "--arms", "speculation.n_max=1,8"),
    )
    assert status == 0, err
    result = json.loads(out)
    assert [arm["name"] for arm in result["arms"]] == ["off", "n_max 1", "n_max 8"]
    assert [len(arm["unconditional"]) for arm in result["arms"]] == [0, 1, 8]
    assert result["workload"]["prompts"] == 1
    assert result["comparisons"][0]["interval"] is None  # one pair


def test_an_arm_that_does_not_start_fails_and_keeps_the_rest(shell):
    profile = shell.profile(fail_if_n_max_above=8)
    status, out, err = shell(
        *("measure", profile, "--limit", "1", "--json", "--arms", "speculation.n_max=16,4")
    )
    assert status == 1
    base, failed, arm = json.loads(out)["arms"]
    assert (base["name"], failed["name"], arm["name"]) == ("off", "n_max 16", "n_max 4")
    assert failed["requests"] == 0
    assert "did not start" in failed["warnings"][0]
    assert arm["requests"] == base["requests"] == 6
    last = err.splitlines()[-1]
    assert "did not start" in last
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_ends_it_with_what_was_measured(shell, number, status):
    process = shell.start("measure", shell.profile(time_scale=0.2), "--json")
    until(lambda: list((shell.folder / "home").rglob("sessions/*.jsonl")))
    [path] = (shell.folder / "home").rglob("sessions/*.jsonl")
    until(lambda: path.read_text(encoding="utf-8").count('"event": "request"') >= 2)
    process.send_signal(number)
    out, err = process.communicate(timeout=15)
    assert process.returncode == status, err
    assert json.loads(out)["arms"][0]["requests"] >= 2
    assert "Traceback" not in err
    assert not started_with(shell.home)


def test_killed_outright_it_leaves_no_server(shell):
    process = shell.start("measure", shell.profile(time_scale=0.2), "--json")
    until(lambda: len(started_with(shell.home)) >= 3)  # itself, the guard, the server
    process.kill()
    until(lambda: not started_with(shell.home))


def test_a_server_killed_under_it_is_told_in_one_line(shell):
    process = shell.start("measure", shell.profile(time_scale=0.2), "--json")
    until(lambda: list((shell.folder / "home").rglob("sessions/*.jsonl")))
    server = until(
        lambda: [p for p in started_with(shell.home) if "--metrics" in p.cmdline()[-20:]]
    )
    deepest = max(server, key=lambda p: p.pid)
    deepest.kill()
    out, err = process.communicate(timeout=15)
    assert process.returncode == 1
    assert "Traceback" not in err
    assert json.loads(out)["arms"][0]["name"] == "off"


def test_the_tuned_profile_reproduces(shell):
    status, _, err = shell("measure", shell.profile(), "--limit", "1", "-o", "tuned.toml")
    assert status == 0, err
    tuned = load_profile(shell.folder / "tuned.toml")
    assert tuned.speculation.draft_length == 4
    assert tuned.evidence["speedup"] > 1
    assert tuned.evidence["pairs"] == 6
    for key in ("hardware", "engine", "model", "model_bytes", "date", "acceptance_rate"):
        assert tuned.evidence[key], key
    status, out, _ = shell("measure", "tuned.toml", "--limit", "1", "--json")
    assert status == 0
    assert json.loads(out)["arms"][1]["speculation"] == {"type": "draft-simple", "n_max": 4}


def test_export_takes_the_last_measurement(shell):
    profile = shell.profile()
    arms = ("--arms", "speculation.n_max=1,8")
    assert shell("measure", profile, "--limit", "1", *arms)[0] == 0
    status, _, err = shell("export", "-o", "best.toml")
    assert status == 0, err
    assert load_profile(shell.folder / "best.toml").speculation.draft_length == 8
    assert shell("export", "-o", "one.toml", "--run", "2")[0] == 0
    assert load_profile(shell.folder / "one.toml").speculation.draft_length == 1
    status, _, err = shell("export", "-o", "best.toml")
    assert status == 1
    assert "exists already" in err


def test_export_of_nothing(shell):
    status, _, err = shell("export")
    assert status == 1
    assert err.count("\n") == 1
    assert "nothing was measured" in err
    (shell.folder / "x.jsonl").write_text("{}\n", encoding="utf-8")
    assert shell("export", "x.jsonl")[0] == 1


def test_a_reader_that_goes_away_is_no_traceback(shell):
    process = shell.start("measure", shell.profile(), "--limit", "1", "--json")
    process.stdout.close()
    process.wait(30)
    err = process.stderr.read()
    assert "Traceback" not in err
    assert process.returncode == 1


def test_an_unreadable_home_is_no_reason_to_fail(shell):
    status, out, err = shell(
        *("measure", shell.profile(), "--limit", "1", "--json"), HOME="/proc/none"
    )
    assert status == 0, err
    assert len(json.loads(out)["arms"]) == 2
    assert "records go to" in err


def test_what_was_recorded_without_a_home_can_be_exported(shell):
    poor = {"HOME": "/proc/none", "TMPDIR": str(shell.folder / "home")}
    assert shell("measure", shell.profile(), "--limit", "1", **poor)[0] == 0
    assert shell("export", "-o", "x.toml", **poor)[0] == 0
    assert load_profile(shell.folder / "x.toml").evidence["engine"] == "binary b11434-fake"


def test_a_poor_encoding_costs_a_sign_and_not_the_result(shell):
    status, out, err = shell("measure", shell.profile(), "--limit", "1", PYTHONIOENCODING="ascii")
    assert status == 0, err
    assert "n_max 4" in out


def test_a_signal_that_the_parent_ignores_stays_ignored(shell):
    import subprocess
    import sys

    command = [sys.executable, "-m", "spectui", "measure", str(shell.profile()), "--limit", "2"]
    nohup = (
        "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN);"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", nohup, *command],
        cwd=shell.folder,
        env=shell.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    shell.running.append(process)
    until(lambda: list(shell.home.rglob("sessions/*.jsonl")))
    process.send_signal(signal.SIGHUP)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert "n_max 4" in out


def test_one_keypress_that_arrives_twice_is_one(shell):
    process = shell.start("measure", shell.profile(time_scale=0.2), "--json")
    until(lambda: list(shell.home.rglob("sessions/*.jsonl")))
    [path] = shell.home.rglob("sessions/*.jsonl")
    until(lambda: '"event": "request"' in path.read_text(encoding="utf-8"))
    process.send_signal(signal.SIGINT)
    time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=15)
    assert process.returncode == 130
    assert json.loads(out)["arms"][0]["requests"] >= 1


def test_arms_are_the_profiles_own_setting_or_what_is_asked_for():
    profile = parse_profile(
        {"models": {"draft": "d"}, "speculation": {"type": "draft-simple", "n_max": 4}}
    )
    assert [arm.name for arm in arms_of(profile, [])] == ["n_max 4"]
    both = arms_of(profile, ["speculation.n_max=1,2", "speculation.p_min=0,0.5"])
    assert [arm.name for arm in both] == [
        "n_max 1",
        "n_max 1, p_min 0.5",
        "n_max 2",
        "n_max 2, p_min 0.5",
    ]
    assert arms_of(parse_profile({}), []) == []
    types = arms_of(profile, ["speculation.type=none,ngram-cache,draft-simple"])
    assert [arm.name for arm in types] == ["ngram-cache", "n_max 4"]
    for wrong in ("workload.seed=1,2", "speculation.n_max", "speculation.n_max=", "n_max=1"):
        with pytest.raises(UsageError):
            arms_of(profile, [wrong])


def test_a_baseline_that_still_drafts_is_a_failure(shell):
    status, out, err = shell("measure", shell.profile(baseline_drafts=3), "--limit", "1", "--json")
    assert status == 1
    assert "still drafting" in err.splitlines()[-1]
    result = json.loads(out)
    [base] = [arm for arm in result["arms"] if arm["name"] == "off"]
    assert base["warnings"] == ["baseline was still drafting"]
    assert [found["code"] for found in base["findings"]] == ["baseline-drafting"]
    assert base["findings"][0]["severity"] == "blocker"
    assert result["comparisons"] == []


def test_people_see_what_was_measured(shell):
    _, out, _ = shell("measure", shell.profile(), "--limit", "1")
    assert "target.gguf ← draft.gguf · binary b11434-fake" in out
