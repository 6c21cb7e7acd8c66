"""``spectui models``: tables, JSON, what can draft for a target, and what is wrong."""

import json
import os
import re

import pytest
from gguf_writer import TENSORS, WORDS, write_model, write_split

from spectui.adapters.gguf_file import read_model
from spectui.adapters.model_finder import Place, find_models, survey
from spectui.cli import main, model_lines, models

LARGE = [("blk.0.w", (64, 80_000), "Q8_0"), *TENSORS]


@pytest.fixture
def models_folder(tmp_path):
    folder = tmp_path / "models"
    write_model(folder / "target.gguf", tensors=LARGE, general={"name": "The Target"})
    write_model(folder / "draft.gguf", tensors=[("blk.0.w", (64, 10_000), "Q8_0")])
    write_model(folder / "other.gguf", tokens=[*WORDS[:20], "x\x1b[31m", *WORDS[21:]])
    write_split(folder, "split", 2)[1].unlink()
    (folder / "page.gguf").write_text("<html>")
    return folder


def only_line(err):
    lines = err.splitlines()
    assert len(lines) == 1, err
    assert lines[0].startswith("spectui: ")
    return lines[0]


def test_a_table_of_what_was_found(shell, models_folder):
    status, out, err = shell("models", models_folder)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    head = ["model", "arch", "params", "quant", "size", "context", "vocab"]
    assert lines[0].split() == head
    row = next(line for line in lines if line.startswith("target.gguf"))
    assert row.split() == ["target.gguf", "llama", "5.1", "M", "Q8_0", "5.5", "MB", "4,096", "40"]
    assert "part 2 of 2 missing" in out
    assert "page.gguf: is no GGUF file" in out
    assert lines[-1].startswith("4 models, 6.2 MB. What can draft for one: ")
    assert "\x1b" not in out


def test_json_of_what_was_found(shell, models_folder):
    status, out, err = shell("models", models_folder, "--json", "--no-caches")
    assert (status, err) == (0, "")
    found = json.loads(out)
    by_name = {facts["path"].rpartition("/")[2]: facts for facts in found["models"]}
    assert by_name["target.gguf"]["name"] == "The Target"
    assert by_name["target.gguf"]["kind"] == "model"
    assert by_name["target.gguf"]["vocabulary"]["size"] == 40
    assert [one["code"] for one in found["broken"]] == ["model-invalid"]
    assert [one["what"] for one in found["searched"]] == ["given"]


def test_what_can_draft_for_a_target(shell, models_folder):
    status, out, err = shell("models", "--target", models_folder / "target.gguf")
    assert (status, err) == (0, "")
    assert "The Target" in out
    assert "Suggested: draft-simple with" in out
    assert "8.0 times smaller" in out
    assert "gains little" in out
    possible, _, rest = out.partition("No drafts for it")
    assert "draft.gguf" in possible.partition("Possible drafts")[2]
    assert "token 20 is “x” in its vocabulary and “tok20” in the target's" in rest
    assert "split-00002-of-00002.gguf is missing" in rest
    assert "\x1b" not in out


def test_json_of_what_can_draft(shell, models_folder):
    status, out, _ = shell("models", "--target", models_folder / "target.gguf", "--json")
    assert status == 0
    found = json.loads(out)
    assert found["suggestion"]["type"] == "draft-simple"
    assert [one["path"] for one in found["fitting"]] == [str(models_folder / "draft.gguf")]
    assert found["fitting"][0]["ratio"] == pytest.approx(8, abs=0.1)
    assert all(one["why_not"] for one in found["unfit"])


LONG = "Some-Coder-30B-A3B-Instruct-UD-Q4_K_XL.gguf"


@pytest.fixture
def hundreds(models_folder):
    """A catalogue of 302 models in ten folders, with a broken one and one of two parts."""
    for number in range(298):
        path = models_folder / f"folder-{number % 10}" / f"model-{number:03}-Q4_K_M.gguf"
        vocabulary = WORDS if number % 3 else [f"w{i}" for i in range(300)]
        write_model(path, tokens=vocabulary)
    (models_folder / "draft.gguf").rename(models_folder / LONG)
    return find_models([Place(models_folder)])


@pytest.mark.parametrize("width", [80, 120])
def test_hundreds_of_models_fit_a_terminal(models_folder, hundreds, width):
    lines = model_lines.catalogue_lines(hundreds, width)
    assert len(hundreds.models) == 302
    assert all(len(line) <= width or line == LONG or str(models_folder) in line for line in lines)
    rows = [line for line in lines if re.match(r"model-\d{3}-Q4_K_M\.gguf +llama ", line)]
    assert len(rows) == 298
    folders = [f"{models_folder}/folder-{number}" for number in range(10)]
    assert [line for line in lines if line in folders] == folders
    assert any(line.startswith(LONG) for line in lines)


@pytest.mark.parametrize("width", [80, 120])
def test_what_can_draft_fits_a_terminal_and_a_reason_is_said_once(models_folder, hundreds, width):
    found = survey(read_model(models_folder / "target.gguf"), hundreds)
    lines = model_lines.survey_lines(found, width)
    assert all(len(line) <= width or str(models_folder) in line for line in lines)
    text = " ".join(" ".join(lines).split())
    assert text.count("its vocabulary has 300 tokens, the target's 40") == 1
    at = next(i for i, line in enumerate(lines) if "its vocabulary has 300 tokens" in line)
    listed = [line for line in lines[at:] if line.startswith("    ") and "model-" in line]
    assert len(listed) == 100


def test_a_folder_that_cannot_be_read_is_said_below_the_table(models_folder, monkeypatch):
    (models_folder / "closed").mkdir()
    real = os.scandir

    def scandir(folder):
        if str(folder).endswith("closed"):
            raise PermissionError(13, "Permission denied")
        return real(folder)

    monkeypatch.setattr("spectui.adapters.model_finder.os.scandir", scandir)
    lines = model_lines.catalogue_lines(find_models([Place(models_folder)]), 200)
    assert any(line.endswith("closed: permission denied") for line in lines)


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ([2], "part 2 of 9 missing"),
        ([3, 9], "parts 3 and 9 of 9 missing"),
        ([2, 3, 4, 5, 6, 7, 8], "parts 2, 3, 4, 5 and 6 and 2 more of 9 missing"),
    ],
)
def test_missing_parts_in_words(tmp_path, missing, words):
    paths = write_split(tmp_path, "big", 9)
    for number in missing:
        paths[number - 1].unlink()
    assert model_lines.notes(read_model(paths[0])) == words


def test_names_that_are_no_text_are_shown(shell):
    write_model(shell.folder / os.fsdecode(b"odd\xff") / os.fsdecode(b"a\xfe\x1b[31m.gguf"))
    status, out, err = shell("models", shell.folder, "--no-caches")
    assert (status, err) == (0, "")
    assert "a.gguf" in out
    assert json.loads(shell("models", shell.folder, "--no-caches", "--json")[1])["models"]


def test_a_cache_is_searched_unless_it_is_left_out(shell):
    write_model(shell.home / ".cache" / "llama.cpp" / "cached.gguf")
    (shell.folder / "empty").mkdir()
    assert "cached.gguf" in shell("models")[1]
    status, _, err = shell("models", "empty", "--no-caches")
    assert status == 1
    assert "no model file" in only_line(err)


def test_without_any_model_it_says_where_it_looked_and_what_to_do(shell):
    status, out, err = shell("models")
    assert (status, out) == (1, "")
    line = only_line(err)
    assert "~/.cache/huggingface/hub (not there)" in line
    assert "spectui models FOLDER" in line


@pytest.mark.parametrize(
    "argv",
    [
        ["nowhere"],
        ["--no-caches"],
        ["--target", "none.gguf"],
        ["--frobnicate"],
    ],
)
def test_wrong_usage_is_two(shell, argv):
    status, out, err = shell("models", *argv)
    assert (status, out) == (2, "")
    only_line(err)


def test_a_broken_target_is_one(shell):
    (shell.folder / "bad.gguf").write_text("<html>")
    status, out, err = shell("models", "--target", "bad.gguf")
    assert (status, out) == (1, "")
    assert "web page" in only_line(err)


def test_a_target_that_is_no_model_says_what_it_is(shell):
    write_model(shell.folder / "mmproj.gguf", "clip")
    status, out, _ = shell("models", "--target", "mmproj.gguf")
    assert status == 0
    assert "This file cannot be a target: it is a projector" in out


def test_a_reader_that_goes_away_is_no_fault(shell, models_folder):
    process = shell.start("models", models_folder)
    process.stdout.close()
    process.wait(timeout=60)
    assert "Traceback" not in process.stderr.read()


def test_control_c_leaves_quietly(monkeypatch, capsys, tmp_path):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(models, "find_models", interrupted)
    assert main.run(["models", str(tmp_path)]) == 130
    assert capsys.readouterr() == ("", "")


def test_progress_is_shown_only_after_a_second(monkeypatch, capsys):
    now = [100.0]
    monkeypatch.setattr(models.time, "monotonic", lambda: now[0])
    with models._Progress() as progress:
        progress(0, "/a.gguf")
        assert not capsys.readouterr().err
        now[0] += 1.5
        progress(1, "/b.gguf")
        progress(2, "/c.gguf")
    assert capsys.readouterr().err == "spectui: reading model files\n"


def test_progress_on_a_terminal_is_one_line_and_cleared(monkeypatch, capsys):
    now = [100.0]
    monkeypatch.setattr(models.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(models.sys.stderr, "isatty", lambda: True, raising=False)
    with models._Progress() as progress:
        now[0] += 1.5
        progress(7, "/x/\x1b[2Jb.gguf")
    err = capsys.readouterr().err
    assert err == "\r\x1b[K7 files read, now b.gguf\r\x1b[K"


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "–"), (950, "950"), (134_515_008, "135 M"), (7_600_000_000, "7.6 B"), (1e12, "1.0 T")],
)
def test_counts_in_words(count, text):
    assert model_lines.count_text(count) == text


@pytest.mark.parametrize(
    ("size", "text"), [(999, "999 B"), (98_362_432, "98 MB"), (4_400_000_000, "4.4 GB")]
)
def test_sizes_in_words(size, text):
    assert model_lines.size_text(size) == text
