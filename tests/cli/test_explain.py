"""``spectui explain``: a log from anywhere, for people and for programs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from spectui.cli.main import run

CAPTURES = Path(__file__).parents[1] / "domain" / "failure_texts" / "captures"
MISSING = "failed to open GGUF file 'nope.gguf' (No such file or directory)"


@pytest.fixture
def explain(capsys):
    def explain(*argv):
        status = run(["explain", *map(str, argv)])
        out, err = capsys.readouterr()
        return status, out, err

    return explain


def test_people_are_told_what_happened_where_it_says_so_and_what_to_do(explain):
    status, out, err = explain(CAPTURES / "b11434-fail-missing-draft.txt")
    assert (status, err) == (0, "")
    assert "the draft model nope.gguf could not be loaded" in out
    assert "(draft-load-failed)" in out
    assert "failed to load draft model, 'nope.gguf'" in out
    assert "exit  1" in out
    assert "also  model-missing" in out
    assert max(map(len, out.splitlines())) <= 100


def test_a_narrow_terminal_breaks_no_word_and_no_line_twice(explain, monkeypatch):
    monkeypatch.setattr("spectui.cli.explain.terminal_width", lambda: 60)
    _, out, _ = explain(CAPTURES / "b11434-fail-old-draft-max.txt")
    assert max(map(len, out.splitlines())) <= 60
    assert "--spec-ngram-mod-n-max" in out


def test_programs_get_exactly_five_fields(explain):
    status, out, err = explain(CAPTURES / "b11434-fail-missing-draft.txt", "--json")
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert set(found) == {"class", "line", "exit", "advice", "also"}
    assert found["class"] == "draft-load-failed"
    assert found["line"].endswith("failed to load draft model, 'nope.gguf'")
    assert found["exit"] == 1
    assert found["advice"]
    assert found["also"] == ["model-missing"]


def test_a_log_with_nothing_wrong(explain):
    log = CAPTURES / "b11434-draft-simple.log"
    assert explain(log) == (0, "Nothing is wrong as far as this log shows.\n", "")
    status, out, _ = explain(log, "--json")
    assert status == 0
    assert json.loads(out) == {"class": None, "line": "", "exit": None, "advice": "", "also": []}
    assert json.loads(explain(log, "--json", "--exit", "0")[1])["exit"] == 0


def test_an_exit_status_from_the_command_line(explain):
    log = CAPTURES / "b11434-baseline.log"
    for status in ("137", "-9"):
        found = json.loads(explain(log, "--json", f"--exit={status}")[1])
        assert found["class"] == "killed"
        assert found["exit"] == int(status)


def test_an_empty_log_says_so(explain, tmp_path):
    empty = tmp_path / "empty.log"
    empty.write_bytes(b"\n\n")
    assert explain(empty) == (0, "The log is empty.\n", "")


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r", b""])
def test_line_ends_bad_bytes_and_endless_lines(explain, tmp_path, end):
    log = tmp_path / "server.log"
    log.write_bytes(
        b"\xff\xfe\x00" * 100 + b"x" * 3_000_000 + (end or b"\n") + MISSING.encode() + end
    )
    assert json.loads(explain(log, "--json")[1])["class"] == "model-missing"


def test_a_line_across_two_reads_is_one_line(explain, tmp_path):
    log = tmp_path / "server.log"
    log.write_bytes(b"\n" * (65_536 - 20) + MISSING.encode())
    assert json.loads(explain(log, "--json")[1])["line"] == MISSING


@pytest.mark.parametrize("name", ["nope.log", ".", "a\0b"])
def test_a_log_that_cannot_be_read_is_one_clear_line(explain, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    status, out, err = explain(name)
    assert (status, out) == (1, "")
    assert err.startswith("spectui: ")
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("argv", [[], ["a", "b"], ["a", "--exit", "x"], ["a", "--frobnicate"]])
def test_wrong_usage(explain, argv):
    status, out, err = explain(*argv)
    assert (status, out) == (2, "")
    assert len(err.splitlines()) == 1


def test_a_log_from_a_pipe():
    done = subprocess.run(
        [sys.executable, "-m", "spectui", "explain", "-", "--json"],
        input=f"0.00.007.666 E {MISSING}\nllama-1 exited with code 1\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0
    assert done.stderr == ""
    assert json.loads(done.stdout)["class"] == "model-missing"
