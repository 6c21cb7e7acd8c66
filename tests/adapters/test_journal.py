import json
import stat
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from spectui.adapters.journal import JsonlJournal, newest_record, read_record
from spectui.domain.acceptance import Acceptance
from spectui.domain.errors import SpectuiError
from spectui.domain.profile import parse_profile, to_mapping
from spectui.domain.runs import Arm, Request, Run
from spectui.domain.speculation import Speculation
from spectui.domain.throughput import Timings

PROFILE = parse_profile({"evidence": {"date": datetime(2026, 1, 1, tzinfo=UTC)}})
HEAD = {
    "source": None,
    "engine": {"kind": "binary", "build": ""},
    "target": "/m/t.gguf",
    "draft": "",
    "hardware": "a CPU",
    "profile": to_mapping(PROFILE),
}
RUN = Run(1, Arm(Speculation.of("draft-simple", {"n_max": 4, "p_min": 0.5})), 1.0, 3)
REQUEST = Request(
    "p1", "code", 1.0, 2.0, Timings(predicted_n=9), Acceptance(4, 3, 1, (1, 1, 1, 0)), 0.1, "stop"
)


def write(folder, *requests, head=HEAD):
    journal = JsonlJournal(folder, head)
    run = RUN
    journal.run_started(run, argv=("llama-server",), build="b11434", gpus=("RTX 3090",))
    for request in requests:
        run = run.with_request(request)
        journal.request_ended(run, request)
    journal.run_ended(replace(run, ended=5.0))
    journal.close()
    return journal.path


def test_a_record_reads_back_as_it_was(tmp_path):
    found = read_record(write(tmp_path, REQUEST))
    assert found.runs == (replace(RUN, requests=(REQUEST,), ended=5.0),)
    assert found.engine.build == "b11434"
    assert found.hardware == "a CPU, RTX 3090"


@pytest.mark.parametrize("text", ["a\u2028b", "a\x85b\u2029", "\ud800", "é\n\r\n\x0b\x1b[2J"])
def test_no_text_breaks_a_line_of_the_record(tmp_path, text):
    requests = [REQUEST, replace(REQUEST, prompt="p2", text=text), replace(REQUEST, prompt="p3")]
    path = write(tmp_path, *requests)
    assert list(read_record(path).runs[0].requests) == requests
    assert all(json.loads(line) for line in path.read_text(encoding="ascii").splitlines())


def test_nobody_else_may_read_it(tmp_path):
    path = write(tmp_path / "new", REQUEST)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_folder_that_cannot_be_written_is_told_once(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    told = []
    journal = JsonlJournal(tmp_path / "file" / "x", HEAD)
    journal.on_trouble(told.append)
    journal.request_ended(RUN, REQUEST)
    journal.request_ended(RUN, REQUEST)
    assert len(told) == 1
    assert "cannot be written" in told[0]


def test_the_newest_record(tmp_path):
    assert newest_record(tmp_path / "none") is None
    first = write(tmp_path / "a", REQUEST)
    assert newest_record(first.parent) == first


@pytest.mark.parametrize("text", ["", "{}", "[1]\n", "not json\n", '{"profile": {"x": 1}}\n'])
def test_what_is_no_record_is_told(tmp_path, text):
    path = tmp_path / "x.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SpectuiError):
        read_record(path)
    with pytest.raises(SpectuiError, match="cannot be read"):
        read_record(tmp_path / "none")
