"""What the dashboard and the command line look for, and where."""

import argparse
from pathlib import Path

import pytest
from gguf_writer import TENSORS, WORDS, write_model

from spectui.adapters.gguf_file import read_model
from spectui.cli import dashboard
from spectui.domain.errors import ModelFileError
from spectui.domain.profile import Models, Profile
from spectui.drafts import places, survey_of

LARGE = [("blk.0.w", (64, 80_000), "Q8_0"), *TENSORS]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A home with nothing in it but what a test puts there."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("XDG_CACHE_HOME", "LLAMA_CACHE", "HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("HUGGINGFACE_HUB_CACHE", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "home"


def names(found):
    return [Path(one.facts.path).name for one in found]


def test_it_looks_in_folders_beside_the_models_and_in_the_caches(tmp_path, home):
    target = write_model(tmp_path / "a" / "target.gguf", tensors=LARGE)
    draft = write_model(tmp_path / "b" / "draft.gguf")
    write_model(tmp_path / "a" / "beside-target.gguf")
    write_model(tmp_path / "b" / "beside-draft.gguf")
    write_model(tmp_path / "a" / "below" / "not-looked-for.gguf")
    write_model(tmp_path / "given" / "below" / "given.gguf")
    write_model(home / ".cache" / "llama.cpp" / "cached.gguf")
    profile = Profile(models=Models(str(target), str(draft)))
    found = survey_of(profile, [tmp_path / "given"])
    assert found.target == read_model(target)
    assert sorted(names(found.fitting)) == [
        "beside-draft.gguf",
        "beside-target.gguf",
        "cached.gguf",
        "draft.gguf",
        "given.gguf",
    ]
    assert found.suggestion.type == "draft-simple"


def test_caches_may_be_left_out_and_no_folder_is_named_twice(tmp_path):
    target, draft = tmp_path / "target.gguf", tmp_path / "draft.gguf"
    where = places([tmp_path / "given"], target, draft, caches=False)
    assert [(place.path, place.what) for place in where] == [
        (tmp_path / "given", "given"),
        (tmp_path, "beside the target"),
    ]
    assert len(places()) == 4
    assert places(caches=False) == ()


def test_a_target_that_is_not_there_is_said(tmp_path):
    with pytest.raises(ModelFileError, match="does not exist"):
        survey_of(Profile(models=Models(str(tmp_path / "none.gguf"))))


@pytest.mark.embedded
def test_the_demo_model_is_a_target_too():
    found = survey_of(Profile())
    assert found.target.architecture == "llama"
    assert found.suggestion.type == "ngram-mod"


def test_the_dashboard_looks_for_drafts_of_its_profile(shell, monkeypatch):
    profile = shell.profile()
    write_model(shell.folder / "target.gguf", tensors=LARGE)
    write_model(shell.folder / "draft.gguf")
    write_model(shell.folder / "other.gguf", tokens=[*WORDS[:20], "x", *WORDS[21:]])
    benches = []

    def show(bench, options, begin=None):
        benches.append(bench)
        return 0

    monkeypatch.setattr(dashboard, "need_terminal", lambda: None)
    monkeypatch.setattr(dashboard, "show", show)
    options = argparse.Namespace(command="open", profile=profile, settings=(), limit=None)
    assert dashboard.main(options) == 0
    found = benches[0].survey().result(30)
    assert names(found.fitting) == ["draft.gguf"]
    assert names(found.unfit) == ["other.gguf"]
    assert benches[0].close(10)
