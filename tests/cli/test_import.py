"""``spectui import`` from end to end: what goes where, what is refused, and whether it runs."""

import contextlib
import io
import json
import stat
import tomllib

import pytest
from fake_llama_server import install
from hypothesis import given, settings, strategies as st

from spectui.adapters.toml_store import load_profile
from spectui.cli.main import run
from spectui.domain.profile import parse_profile

OLD = ("llama-server", "-m", "big.gguf", "-md", "small.gguf", "--draft-max", "8", "-np", "4")
TWO = """\
models:
  big:
    cmd: llama-server -m big.gguf
  small:
    cmd: llama-server -m s.gguf
"""


def imported(capsys, *words):
    status = run(["import", *map(str, words)])
    out, err = capsys.readouterr()
    return status, out, err


def test_the_profile_goes_to_stdout_and_what_there_is_to_say_to_stderr(capsys):
    status, out, err = imported(capsys, "--", *OLD)
    assert status == 0
    profile = parse_profile(tomllib.loads(out))
    assert (profile.models.target, profile.models.draft) == ("big.gguf", "small.gguf")
    assert profile.speculation.type == "draft-simple"
    assert profile.speculation.draft_length == 8
    first, *_ = err.splitlines()
    assert first == "What this command really does:"
    assert "the draft would not have been used: the type was never set" in err
    assert "--draft-max 8 is --spec-draft-n-max today" in err


def test_json_has_the_profile_the_variables_and_the_warnings(capsys):
    status, out, err = imported(capsys, "--json", "--", "CUDA_VISIBLE_DEVICES=1", *OLD)
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert set(found) == {"profile", "env", "warnings"}
    assert found["env"] == {"CUDA_VISIBLE_DEVICES": "1"}
    assert found["profile"]["server"]["parallel"] == 4
    codes = [warning["code"] for warning in found["warnings"]]
    assert {"type-not-set", "renamed", "parallel", "default-changed"} <= set(codes)
    assert all(set(warning) == {"code", "message"} for warning in found["warnings"])
    parse_profile(found["profile"])


def test_a_file_is_written_once_and_replaced_on_demand_only(tmp_path, capsys):
    path = tmp_path / "my.toml"
    status, out, err = imported(capsys, "-o", path, "--", *OLD)
    assert (status, out) == (0, "")
    assert f"wrote {path}; next: spectui doctor {path}" in err
    assert load_profile(path).speculation.draft_length == 8
    before = path.read_bytes()
    status, _, err = imported(capsys, "-o", path, "--", "llama-server", "-m", "other.gguf")
    assert status == 2
    assert "is there already" in err
    assert path.read_bytes() == before
    status, _, _ = imported(capsys, "-o", path, "--force", "--", "llama-server", "-m", "other.gguf")
    assert status == 0
    assert "other.gguf" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_from_a_file(tmp_path, capsys, encoding):
    script = tmp_path / "start.sh"
    script.write_text("#!/bin/sh\nexec llama-server \\\n  -m big.gguf \\\n  -c 4096\n", encoding)
    status, out, _ = imported(capsys, script)
    assert status == 0
    assert tomllib.loads(out)["server"]["context"] == 4096


def test_from_stdin(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(" ".join(OLD).encode())))
    status, out, _ = imported(capsys, "-")
    assert status == 0
    assert tomllib.loads(out)["models"]["target"] == "big.gguf"


def test_of_several_commands_the_first_or_the_named_one(tmp_path, capsys):
    swap = tmp_path / "swap.yaml"
    swap.write_text(TWO, encoding="utf-8")
    for words, target in (
        ((), "big.gguf"),
        (("--name", "small"), "s.gguf"),
        (("--number", "2"), "s.gguf"),
    ):
        status, out, err = imported(capsys, *words, swap)
        assert status == 0
        assert tomllib.loads(out)["models"]["target"] == target
        assert ("the first of 2 commands is taken" in err) is (not words)
    assert imported(capsys, "--number", "3", swap)[0] == 2
    status, _, err = imported(capsys, "--name", "smal1", swap)
    assert status == 2
    assert "did you mean small?" in err


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ((), 2, "no command given"),
        (("nowhere.sh",), 1, "No such file"),
        (("--", "vllm", "serve", "x"), 2, "no llama-server command"),
        (("--", "llama-server", "--models-dir", "/m"), 2, "router"),
    ],
)
def test_what_is_no_command_is_said_in_one_line(capsys, words, status, said):
    found, out, err = imported(capsys, *words)
    assert (found, out) == (status, "")
    assert said in err
    assert err.count("\n") == 1


def test_no_secret_comes_out_again(tmp_path, capsys):
    canary = "sk-canary-4711"
    secrets = ("--api-key", canary, f"--hf-token={canary}")
    words = ("--", f"HF_TOKEN={canary}", f"LLAMA_API_KEY={canary}", *OLD, *secrets)
    for how in ((), ("--json",), ("-o", tmp_path / "my.toml")):
        _, out, err = imported(capsys, *how, *words)
        assert canary not in out + err
    assert canary not in (tmp_path / "my.toml").read_text(encoding="utf-8")


def test_where_the_files_exist_the_imported_profile_is_measured(shell):
    engine = install(shell.folder, tps=100, time_scale=0.02)
    for model in ("big.gguf", "small.gguf"):
        (shell.folder / model).write_bytes(b"GGUF\x03\0\0\0")
    command = (engine, *OLD[1:7])
    status, _, err = shell("import", "-o", "my.toml", "--", *command)
    assert status == 0, err
    assert stat.S_IMODE((shell.folder / "my.toml").stat().st_mode) & 0o077 in {0, 0o044}
    status, out, err = shell("measure", "my.toml", "--limit", "1", "--json")
    assert status == 0, err
    base, arm = json.loads(out)["arms"]
    assert (base["drafted"], arm["name"]) == (0, "n_max 8, p_min 0.75")
    assert arm["drafted"] > 0


WORDS = st.lists(
    st.sampled_from(
        [
            *("llama-server", "-m", "a.gguf", "-md", "--draft-max", "8", "-np", "\\\n", "^", "`"),
            *("docker", "run", "-v", "/a:/b", "ghcr.io/x/llama.cpp:server", "'", '"', "$", "${X}"),
            *(
                "--spec-type",
                "draft-mtp,ngram-mod",
                "-ngl",
                "models:",
                "cmd:",
                "\n",
                "  ",
                "[Service]",
            ),
            *(
                "ExecStart=",
                "A=b",
                "export",
                ";",
                "&&",
                "|",
                "<<EOF",
                "EOF",
                "#",
                "\x1b[1m",
                "\0",
                "%A%",
            ),
        ]
    ),
    max_size=25,
).map(" ".join)


@given(st.text(max_size=200) | WORDS)
@settings(max_examples=300)
def test_whatever_is_given_there_is_a_profile_or_one_printable_line(text):
    out, err = io.StringIO(), io.StringIO()
    stdin = io.TextIOWrapper(io.BytesIO(text.encode("utf-8", "surrogatepass")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", stdin)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = run(["import", "-"])
    if status == 0:
        parse_profile(tomllib.loads(out.getvalue()))
    else:
        assert status == 2
        assert err.getvalue().endswith("\n")
        assert err.getvalue()[:-1].isprintable()
    assert "\x1b" not in out.getvalue() + err.getvalue()
