"""Real logs of real failures: the line that tells, and the exit status in words."""

from pathlib import Path

import pytest

from spectui.session.reasons import how_it_ended, telling_line

CAPTURES = Path(__file__).parents[1] / "domain" / "failure_texts" / "captures"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("port-in-use", "couldn't bind HTTP server socket"),
        ("missing-model", "No such file or directory"),
        ("not-gguf", "invalid magic characters"),
        ("corrupt-model", "this GGUF file is version"),
        ("huge-context", "insufficient memory"),
        ("old-draft-max", "the argument has been removed"),
        ("unknown-arg", "invalid argument"),
        ("bad-value", "error while handling argument"),
        ("missing-draft", "failed to load draft model"),
        ("mtp-without-heads", "model doesn't contain MTP layers"),
        ("synth-wrong-count", "synthetic acceptance rates"),
    ],
)
def test_the_telling_line_of_a_real_failure(name, words):
    text = (CAPTURES / f"b11434-fail-{name}.txt").read_text(encoding="utf-8")
    log = text.partition("\n---")[2].splitlines()
    line = telling_line(log)
    assert line
    assert words in line
    assert "fit_params" not in line
    assert not line[0].isdigit()  # the time stamp is gone


def test_without_any_telling_line_the_last_one_is_shown():
    assert telling_line(["one", "two", ""]) == "two"
    assert telling_line(["0.00.001.000 I one", "0.00.001.000 I two"]) == "two"
    assert telling_line([]) == ""


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "exit status 0"),
        (127, "exit status 127"),
        (-9, "SIGKILL (often the kernel, out of memory)"),
        (-11, "SIGSEGV"),
        (-4, "SIGILL"),
        (-250, "signal 250"),
    ],
)
def test_exit_statuses_in_words(code, words):
    assert words in how_it_ended(code)
