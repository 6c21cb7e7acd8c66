"""``spectui doctor`` on real files: what it finds before a launch, for people and for programs."""

from __future__ import annotations

import json
import os
import shlex
import socket
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from fake_llama_server import install
from terminal import Terminal

pytest.importorskip("gguf")

import tiny_models as tiny

from spectui.cli.main import run

DEVICES = """\
Available devices:
  CUDA0: NVIDIA GeForce RTX 3090 (24124 MiB, {free} MiB free)
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    paths = {name: str(path) for name, path in asdict(tiny.write_family(folder)).items()}
    words = [*tiny.VOCABULARY]
    words[100] = "other"
    paths["other"] = str(tiny.write_draft(folder / "other.gguf", vocabulary=words))
    paths["wide-eagle3"] = str(tiny.write_eagle3(folder / "wide-eagle3.gguf", target_width=96))
    return paths


@pytest.fixture(scope="module")
def engines(tmp_path_factory):
    """Return stand-ins of llama-server that see no GPU, a GPU, and one with hardly any room."""
    folder = tmp_path_factory.mktemp("engines")
    real = install(folder)
    made = {}
    for name, said in {
        "none": "Available devices:",
        "gpu": DEVICES.format(free=23000),
        "full": DEVICES.format(free=1030),
    }.items():
        made[name] = folder / name
        made[name].write_text(
            f"#!/bin/sh\ncase \"$1$CUDA_VISIBLE_DEVICES\" in\n--list-devices) echo '{said}';;\n"
            f"--list-devices*) echo 'Available devices:';;\n*) exec {real} \"$@\";;\nesac\n",
            encoding="utf-8",
        )
        made[name].chmod(0o700)
    return {name: str(path) for name, path in made.items()}


@pytest.fixture
def home(tmp_path, monkeypatch):
    for name in [*os.environ]:
        if name.startswith(("XDG_", "LLAMA_", "CUDA_", "SUDO_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path, models, engines, home):
    """Write a profile of a good pair; a keyword changes a key, as in ``speculation__n_max=0``."""

    def write(**changes: object) -> Path:
        settings = {
            "server.engine": engines["none"],
            "server.parallel": 1,
            "models.target": models["target"],
            "models.draft": models["draft"],
            "speculation.type": "draft-simple",
            **{key.replace("__", "."): value for key, value in changes.items()},
        }
        path = tmp_path / "my.toml"
        lines = (f"{k} = {json.dumps(v)}\n" for k, v in settings.items() if v is not None)
        path.write_text("".join(lines), encoding="utf-8")
        return path

    return write


@pytest.fixture
def doctor(capsys, home):
    def doctor(*argv: object) -> tuple[int, Any]:
        status = run(["doctor", *map(str, argv), "--json"])
        out, err = capsys.readouterr()
        assert not err
        return status, json.loads(out)

    return doctor


def codes(found: dict[str, Any], severity: str = "blocker") -> list[str]:
    return [one["code"] for one in found["findings"] if one["severity"] == severity]


# -- caught before a launch ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"draft": "other"}, "vocab-mismatch", "token 100"),
        ({"type": None}, "draft-unused", "no type is set"),
        ({"draft": "wide-eagle3", "type": "draft-eagle3"}, "draft-wrong-kind", "hidden size of 96"),
        ({"n_max": 0}, "argument-invalid", "n_max is 0, which is not off"),
        ({"draft": "draft", "type": "draft-eagle3"}, "draft-wrong-kind", "is a model"),
        ({"draft": None}, "draft-missing", "needs a draft model"),
        ({"draft": None, "type": "draft-mtp"}, "mtp-missing", "needs MTP layers"),
    ],
)
def test_what_would_not_speculate_is_caught_before_the_launch(
    doctor, write, models, changes, code, words
):
    keys = {"draft": "models__draft", "type": "speculation__type", "n_max": "speculation__n_max"}
    data = {
        keys[key]: models[value] if key == "draft" and value else value
        for key, value in changes.items()
    }
    status, found = doctor(write(**data))
    assert status == 1
    assert codes(found) == [code]
    [finding] = [one for one in found["findings"] if one["code"] == code]
    assert words in finding["what"]
    assert finding["fixes"]
    assert found["verdict"].startswith("1 thing would fail")


def test_the_options_of_every_fix_mend_it(doctor, write, capsys, models):
    path = write(
        speculation__n_max=0,
        server__args=["--no-mmap", "-c", "1024"],
        models__draft=models["other"],
        server__context=2048,
    )
    before = codes(doctor(path)[1])
    assert set(before) == {"argument-invalid", "argument-removed", "set-twice", "vocab-mismatch"}
    run(["doctor", str(path)])
    lines = [line for line in capsys.readouterr().out.splitlines() if "--set " in line]
    assert len(lines) >= 8
    for line in lines:
        after = codes(doctor(path, *shlex.split(line[line.index("--set ") :]))[1])
        assert len(after) < len(before), line


def test_a_good_profile_is_fine(doctor, write):
    status, found = doctor(write())
    assert status == 0
    assert codes(found) == []
    assert codes(found, "warning") == []
    assert found["verdict"].startswith("nothing found that would fail")


def test_a_warning_is_no_failure(doctor, write):
    status, found = doctor(write(server__parallel=4))
    assert (status, codes(found, "warning")) == (0, ["parallel"])


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("someone/Model-8B-GGUF:Q4_K_M", "Model-8B-GGUF:Q4_K_M is no file on this machine"),
        ("https://example.org/m.gguf", "m.gguf is no file on this machine"),
        ("nope.gguf", "nope.gguf"),
    ],
)
def test_a_model_that_is_not_here_is_told_and_nothing_is_guessed(doctor, write, target, words):
    status, found = doctor(write(models__target=target))
    [finding] = [one for one in found["findings"] if one["code"] == "model-missing"]
    assert status == 1
    assert words in finding["what"]
    assert ("download it" in finding["advice"]) is (target != "nope.gguf")
    answers = {one["id"]: one["answer"] for one in found["questions"]}
    assert (answers["fits"], answers["draft"]) == ("unknown", "unknown")
    assert found["memory"] is None


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_model_without_permission_is_told(doctor, write, models, tmp_path):
    locked = tmp_path / "locked.gguf"
    locked.write_bytes(Path(models["draft"]).read_bytes())
    locked.chmod(0)
    status, found = doctor(write(models__draft=str(locked)))
    assert (status, codes(found)) == (1, ["permission-denied"])


def test_a_port_that_is_taken_is_told_with_its_way_out(doctor, write):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        path = write(server__port=port)
        status, found = doctor(path)
        assert (status, codes(found)) == (1, ["port-in-use"])
        assert doctor(path, "--set", "server.port=")[0] == 0
    assert doctor(path)[0] == 0


def test_an_engine_that_cannot_run_is_told(doctor, write, tmp_path):
    status, found = doctor(write(server__engine=str(tmp_path / "nope")))
    assert (status, codes(found)) == (1, ["program-missing"])
    plain = tmp_path / "plain"
    plain.write_text("x", encoding="utf-8")
    assert codes(doctor(write(server__engine=str(plain)))[1]) == ["not-executable"]


def test_what_changes_flags_behind_one_s_back_is_told(doctor, write, home, monkeypatch):
    folder = home / ".config" / "llama.cpp"
    folder.mkdir(parents=True)
    (folder / "config.ini").write_text("ctx-size = 512\n", encoding="utf-8")
    monkeypatch.setenv("LLAMA_ARG_CACHE_TYPE_K", "q4_0")
    monkeypatch.setenv("LLAMA_ARG_SPEC_TYPE", "none")
    monkeypatch.setenv("LLAMA_API_KEY", "a secret")
    path = write()
    status, found = doctor(path)
    assert status == 0
    assert codes(found, "warning") == ["config-file", "environment"]
    assert "environment-ignored" in codes(found, "hint")
    assert found["memory"]["context"] == 512
    assert "a secret" not in json.dumps(found)
    for one in found["findings"]:
        for fix in one["fixes"]:
            sets = [f"--set={key}={value}" for key, value in fix["changes"]]
            assert one["code"] not in codes(doctor(path, *sets)[1], "warning")


# -- the memory ------------------------------------------------------------------------------------


def test_the_estimate_is_shown_with_what_is_free_on_the_gpu(doctor, write, engines):
    _, found = doctor(write(server__engine=engines["gpu"], server__context=1024))
    memory = found["memory"]
    assert memory["estimate"] is True
    assert (memory["on_gpu"], memory["fits"]) == (True, True)
    assert memory["free"] == 23000 << 20
    assert memory["headroom"] == 1 << 30
    assert [part["name"] for part in memory["parts"]] == [
        *("target weights", "target KV cache", "target compute"),
        *("draft weights", "draft KV cache", "draft compute"),
    ]
    # 64 wide, two heads, f16: 256 bytes of K and V each cell and layer
    assert memory["parts"][1]["gpu"] == 1024 * 256 * tiny.LAYERS
    assert memory["gpu"] == sum(part["gpu"] for part in memory["parts"])
    fits = found["questions"][0]
    assert (fits["question"], fits["answer"]) == ("Does it all fit on the GPU?", "yes")


def test_too_little_room_on_the_gpu_is_told(doctor, write, engines):
    status, found = doctor(write(server__engine=engines["full"], server__gpu_layers="all"))
    assert (status, codes(found)) == (1, ["out-of-memory-gpu"])
    assert found["questions"][0]["answer"] == "no"


def test_a_gpu_that_the_profile_hides_is_no_gpu(doctor, write, engines):
    path = write(server__engine=engines["gpu"], server__env__CUDA_VISIBLE_DEVICES="")
    assert doctor(path)[1]["memory"]["on_gpu"] is True
    path.write_text(path.read_text() + 'server.env.CUDA_VISIBLE_DEVICES = "-1"\n')
    path.write_text(path.read_text().replace('CUDA_VISIBLE_DEVICES = ""\nse', "X = ''\nse"))
    assert doctor(path)[1]["memory"]["on_gpu"] is False


def test_a_draft_on_the_processor_is_told(doctor, write, engines):
    _, found = doctor(write(server__engine=engines["gpu"], draft__gpu_layers=0))
    assert codes(found, "warning") == ["draft-on-cpu"]


# -- for programs ----------------------------------------------------------------------------------


def test_the_shape_of_the_json(doctor, write):
    _, found = doctor(write(speculation__n_max=0))
    assert list(found) == ["verdict", "questions", "findings", "memory", "machine"]
    assert [one["id"] for one in found["questions"]] == [
        *("fits", "predictable", "single", "draft", "measured")
    ]
    for one in found["questions"]:
        assert list(one) == ["id", "question", "answer", "why"]
        assert one["answer"] in {"yes", "no", "unknown"}
    for one in found["findings"]:
        assert list(one) == ["code", "severity", "what", "advice", "fixes"]
        for fix in one["fixes"]:
            assert list(fix) == ["label", "changes"]
            assert all(isinstance(key, str) for key, _ in fix["changes"])
    assert list(found["memory"]) == [
        *("estimate", "context", "parts", "gpu", "host", "on_gpu", "free", "headroom"),
        *("fits", "unknown"),
    ]
    assert list(found["machine"]) == [
        *("cpu", "memory_total", "memory_free", "gpus", "engines", "config_files"),
        *("variables", "records"),
    ]


def test_without_a_profile_it_looks_at_the_machine_alone(doctor):
    status, found = doctor()
    assert status == 0
    assert (found["questions"], found["memory"]) == ([], None)
    assert {one["kind"] for one in found["machine"]["engines"]} == {"embedded", "binary"}


# -- for people ------------------------------------------------------------------------------------


def test_people_see_the_verdict_first_then_why(write, capsys, home):
    assert run(["doctor", str(write(speculation__n_max=0, server__parallel=4))]) == 1
    out = capsys.readouterr().out
    assert out.startswith("✗ my.toml: 1 thing would fail, 1 to look at")
    order = ["blocker  argument-invalid", "Five questions", "an estimate", "warning  parallel"]
    places = [out.index(words) for words in order]
    assert places == sorted(places)
    assert "→ set n_max to 3: --set speculation.n_max=3" in out
    assert "\x1b" not in out


@pytest.mark.parametrize(
    ("columns", "environment", "sign", "dot", "colours"),
    [
        (80, {}, "✗", "·", True),
        (120, {"NO_COLOR": "1"}, "✗", "·", False),
        (80, {"TERM": "dumb"}, "x", "-", False),
    ],
)
def test_it_fits_the_terminal(write, home, columns, environment, sign, dot, colours):
    path = write(speculation__n_max=0, server__parallel=4)
    program = [str(Path(os.sys.executable).with_name("spectui")), "doctor", path.name]
    env = {"HOME": str(home), **environment}
    with Terminal(program, columns=columns, rows=60, env=env, cwd=str(path.parent)) as seen:
        assert seen.wait_end() == 1
        assert seen.text.startswith(f"{sign} my.toml: 1 thing would fail")
        assert (b"\x1b[1;31m" in seen.raw) is colours
        assert (b"\x1b" in seen.raw) is colours
        beside = "Does it all fit in memory?  " in seen.text and columns >= 100
        assert beside is (columns >= 100)
        # a line that the terminal had to break begins in its first column
        starts = [line[:1] for line in seen.text.splitlines() if line]
        assert set(starts) <= {sign, "!", dot, " ", "F", "M"}


# -- wrong usage -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["nope.toml"], "nope.toml"),
        (["--set", "speculation.n_max=3"], "none is named"),
        (["my.toml", "--set", "n_max"], "not table.key=value"),
        (["broken.toml"], "TOML"),
    ],
)
def test_wrong_usage_ends_with_2_and_one_line(write, capsys, monkeypatch, argv, words):
    path = write()
    monkeypatch.chdir(path.parent)
    Path("broken.toml").write_text("[server", encoding="utf-8")
    assert run(["doctor", *argv]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert words in err
    assert len(err.splitlines()) == 1


def test_help_tells_the_codes_and_the_shape(capsys):
    with pytest.raises(SystemExit):
        run(["doctor", "--help"])
    out = " ".join(capsys.readouterr().out.split())
    assert "exit status: 0 nothing that would fail, 1 something would, 2 wrong usage" in out
    assert "findings [code, severity" in out
