"""Bad input: one clear line, the right exit status, nothing running."""

import socket

import pytest
from session_tools import started_with

import spectui


def only_line(err):
    assert "Traceback" not in err
    lines = err.splitlines()
    assert len(lines) == 1, err
    assert lines[0].startswith("spectui: ")
    return lines[0]


def test_version(shell):
    assert shell("--version") == (0, f"spectui {spectui.__version__}\n", "")


@pytest.mark.parametrize("command", [[], ["measure"], ["demo"], ["export"], ["open"]])
def test_every_command_has_help(shell, command):
    status, out, err = shell(*command, "--help")
    assert status == 0
    assert out.startswith("usage: spectui")
    assert not err


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["measure"],
        ["--frobnicate"],
        ["measure", "x.toml", "--limit", "0"],
        ["measure", "x.toml", "--limit", "many"],
        ["measure", "x.toml", "extra"],
        ["demo", "--glyphs", "crayon"],
        ["none.toml"],
        ["measure", "none.toml"],
    ],
)
def test_wrong_usage_is_two(shell, argv):
    status, out, err = shell(*argv)
    assert status == 2
    assert not out
    assert "Traceback" not in err
    assert err.splitlines()[-1].startswith("spectui: ")


@pytest.mark.parametrize("argv", [["demo"], ["open", "my.toml"], ["my.toml"]])
def test_without_a_terminal_the_dashboard_says_what_to_use(shell, argv):
    shell.profile()
    status, _, err = shell(*argv)
    assert status == 2
    assert "spectui measure" in only_line(err)


def test_a_broken_profile_names_file_key_and_what_is_allowed(shell):
    shell.profile(extra="[speculation.ngram_simple]\nsize_m = 0\n")
    status, _, err = shell("measure", "my.toml")
    assert status == 2
    line = only_line(err)
    assert "my.toml: speculation.ngram_simple.size_m" in line
    assert "from 1 to 1024" in line


@pytest.mark.parametrize(
    ("setting", "status", "words"),
    [
        ("models.target=none.gguf", 2, "there is no file"),
        ("models.target=.", 2, "folder"),
        ("models.target=my.toml", 2, "not a GGUF model file"),
        ("models.draft=none.gguf", 2, "models.draft"),
        ("server.engine=./none", 1, "server.engine"),
        ("server.engine=no-such-llama-server", 1, "not in PATH"),
        ("server.engine=./target.gguf", 1, "chmod"),
        ("server.engine=.//", 1, "folder"),
        ("workload.prompts=none.txt", 2, "none.txt"),
        ("workload.tasks=['cod']", 2, "did you mean code"),
        ("speculation.n_max=0", 2, "not off"),
        ("speculation.nmax=4", 2, "did you mean n_max"),
        ("server.port=70000", 2, "65535"),
        ("nonsense", 2, "table.key=value"),
    ],
)
def test_what_is_wrong_is_seen_before_anything_starts(shell, setting, status, words):
    found, out, err = shell("measure", shell.profile(), "--set", setting)
    assert found == status, err
    assert words in only_line(err)
    assert not out
    assert not started_with(shell.home)


def test_a_port_in_use_names_its_owner(shell):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        status, _, err = shell("measure", shell.profile(), "--set", f"server.port={port}")
    assert status == 1
    assert str(port) in err
    assert "python" in err
    assert "Traceback" not in err


def test_an_output_that_exists_is_refused_before_measuring(shell):
    profile = shell.profile()
    status, _, err = shell("measure", profile, "-o", profile)
    assert status == 2
    assert "exists already" in only_line(err)


def test_a_limit_that_is_no_number_is_told_in_plain_words(shell):
    _, _, err = shell("measure", "x.toml", "--limit", "x")
    assert "'x' is not a whole number from 1" in err


def test_arms_that_do_not_speculate_are_no_arms(shell):
    off = ("--set", "speculation.type=none")
    status, _, err = shell("measure", shell.profile(), *off, "--arms", "speculation.n_max=1,4")
    assert status == 2
    assert "no arm speculates" in only_line(err)


def test_nothing_to_compare(shell):
    status, _, err = shell("measure", shell.profile(), "--arms", "speculation.type=none")
    assert status == 2
    assert "--arms" in only_line(err)


def test_a_slip_of_a_command_is_told(shell):
    status, _, err = shell("measur", "x.toml")
    assert status == 2
    assert "did you mean measure" in err


def test_a_knob_that_does_not_move_the_type_makes_no_arms(shell):
    lookup = ("--set", "speculation.type=ngram-simple")
    profile = shell.profile()
    status, _, err = shell("measure", profile, *lookup, "--arms", "speculation.n_max=4,8")
    assert status == 2
    assert "speculation.ngram_simple.size_m" in only_line(err)


def test_an_output_nowhere_is_refused_before_measuring(shell):
    profile = shell.profile()
    for place, words in (("none/x.toml", "there is no folder"), (".", "is a folder")):
        status, _, err = shell("measure", profile, "-o", place)
        assert status == 2
        assert words in only_line(err)
