import json
import tomllib

import pytest
import tomli_w

from spectui.domain.acceptance import Acceptance
from spectui.domain.errors import SpectuiError
from spectui.domain.evidence import Provenance, evidence, run_to_export
from spectui.domain.profile import parse_profile
from spectui.domain.report import report
from spectui.domain.runs import Arm, Request, Run
from spectui.domain.samples import EngineInfo
from spectui.domain.speculation import Speculation
from spectui.domain.throughput import Timings
from spectui.session.book import replay

PROFILE = parse_profile(
    {"models": {"draft": "/d.gguf"}, "speculation": {"type": "draft-simple", "n_max": 4}}
)
WHERE = Provenance("a CPU", "target.gguf", 98_362_432, "2026-12-01T12:00:00+00:00", "0.1.0")


def run(number, speculation, tps, *, prompts=6, acceptance=None, stopped=""):
    requests = tuple(
        Request(
            f"p{i}",
            "code",
            0.0,
            1.0,
            Timings(predicted_n=64, predicted_ms=1, per_second=tps * (1 + i / 100)),
            acceptance=acceptance,
            first_token=0.1,
        )
        for i in range(prompts)
    )
    return Run(number, Arm(speculation), 0.0, prompts, requests, 9.0, stopped)


def simple(n_max):
    return Speculation.of("draft-simple", {"n_max": n_max})


@pytest.fixture
def snapshot():
    drafted = Acceptance(40, 30, 10, (10, 8, 7, 5))
    runs = [
        run(1, Speculation(), 50),
        run(2, simple(4), 75, acceptance=drafted),
        run(3, simple(8), 60, acceptance=drafted),
    ]
    return replay(runs, EngineInfo("binary", "b11434"), "target.gguf", "draft.gguf")


def test_the_answers_run_is_exported_unless_another_is_named(snapshot):
    assert run_to_export(snapshot, None).number == 2
    assert run_to_export(snapshot, 3).number == 3
    with pytest.raises(SpectuiError, match="run 9"):
        run_to_export(snapshot, 9)


def test_nothing_measured_is_nothing_to_export():
    nothing = replay([], EngineInfo("binary", "x"), "t", "")
    with pytest.raises(SpectuiError, match="nothing was measured"):
        run_to_export(nothing, None)


def test_evidence_is_plain_toml(snapshot):
    found = evidence(snapshot, run_to_export(snapshot, None), WHERE)
    assert tomllib.loads(tomli_w.dumps(found)) == found
    assert found["speedup"] == pytest.approx(1.5)
    assert found["interval"] == [pytest.approx(1.5), pytest.approx(1.5)]
    assert found["verdict"] == "faster"
    assert found["pairs"] == 6
    assert found["acceptance_rate"] == 0.75
    assert found["mean_acceptance_length"] == 4.0
    assert found["engine"] == "binary b11434"
    assert found["answer"] == snapshot.answer.text


def test_the_evidence_of_another_run_does_not_claim_the_answer(snapshot):
    found = evidence(snapshot, run_to_export(snapshot, 3), WHERE)
    assert "answer" not in found
    assert found["setting"] == "n_max 8"


def test_a_baseline_alone_can_be_exported():
    alone = replay([run(1, Speculation(), 50)], EngineInfo("binary", "x"), "t", "")
    found = evidence(alone, run_to_export(alone, None), WHERE)
    assert found["setting"] == "off"
    assert "speedup" not in found
    assert "acceptance_rate" not in found


def test_the_report_is_plain_json_baseline_first(snapshot):
    found = report(snapshot, PROFILE, version="0.1.0", prompts=6)
    assert json.loads(json.dumps(found)) == found
    assert [arm["name"] for arm in found["arms"]] == ["off", "n_max 4", "n_max 8"]
    assert found["arms"][1]["unconditional"] == [1.0, 0.8, 0.7, 0.5]
    assert found["arms"][1]["speculation"] == {"type": "draft-simple", "n_max": 4}
    assert found["arms"][0]["warnings"] == []


def test_what_spoils_a_run_is_in_the_report():
    drafting = run(1, Speculation(), 50, acceptance=Acceptance(3, 0, 3, (0,)), stopped="stopped")
    found = report(
        replay([drafting], EngineInfo("binary", "x"), "t", ""), PROFILE, version="0", prompts=6
    )
    assert found["arms"][0]["warnings"] == ["baseline was still drafting", "stopped"]
    assert found["comparisons"] == []
    assert found["model"]["draft"] is None


def test_turning_it_off_exports_off():
    drafted = Acceptance(40, 30, 10, (10, 8, 7, 5))
    runs = [run(1, Speculation(), 50), run(2, simple(4), 30, acceptance=drafted)]
    slower = replay(runs, EngineInfo("binary", "x"), "t", "d")
    chosen = run_to_export(slower, None)
    assert chosen.arm.is_baseline
    assert evidence(slower, chosen, WHERE)["answer"].startswith("Turn it off")
    assert run_to_export(slower, 2).number == 2  # whoever asks for it by name gets it
