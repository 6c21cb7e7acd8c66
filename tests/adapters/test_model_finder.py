"""Finding model files: caches, links, split files, broken ones, and folders without end."""

import os
from pathlib import Path

import pytest
from gguf_writer import TENSORS, WORDS, write_model, write_split

from spectui.adapters import model_finder
from spectui.adapters.gguf_file import read_model
from spectui.adapters.model_finder import Place, cache_places, find_models, survey


def names(catalogue):
    return [Path(facts.path).name for facts in catalogue.models]


def found_in(*folders, **more):
    return find_models([Place(folder, **more) for folder in folders])


def test_models_are_found_at_every_depth_and_nothing_else(tmp_path):
    write_model(tmp_path / "b.gguf")
    write_model(tmp_path / "a" / "b" / "c" / "A.GGUF")
    (tmp_path / "notes.txt").write_text("no model")
    (tmp_path / "c.gguf.part").write_text("half a model")
    (tmp_path / "folder.gguf").mkdir()
    catalogue = found_in(tmp_path)
    assert names(catalogue) == ["b.gguf", "A.GGUF"]
    assert not catalogue.broken
    assert catalogue.searched[0].what == "given"
    assert not catalogue.searched[0].note


def test_a_file_may_be_given_instead_of_a_folder(tmp_path):
    write_model(tmp_path / "a.gguf")
    write_model(tmp_path / "b.gguf")
    assert names(found_in(tmp_path / "b.gguf")) == ["b.gguf"]


def test_a_split_model_is_one_entry(tmp_path):
    paths = write_split(tmp_path, "big", 3)
    write_model(tmp_path / "small.gguf")
    catalogue = found_in(tmp_path)
    assert names(catalogue) == [paths[0].name, "small.gguf"]
    assert len(catalogue.models[0].files) == 3


def test_a_missing_part_is_noted_and_a_missing_first_part_is_an_error(tmp_path):
    late, early = write_split(tmp_path / "a", "x", 3), write_split(tmp_path / "b", "y", 3)
    late[2].unlink()
    early[0].unlink()
    catalogue = found_in(tmp_path)
    assert catalogue.models[0].missing == (late[2].name,)
    assert [one.code for one in catalogue.broken] == ["model-missing"]
    assert catalogue.broken[0].reason == f"{early[0].name} is missing"


def test_a_broken_file_is_listed_with_its_reason(tmp_path):
    (tmp_path / "page.gguf").write_text("<html>")
    cut = write_model(tmp_path / "cut.gguf")
    os.truncate(cut, cut.stat().st_size - 500)
    (tmp_path / "gone.gguf").symlink_to(tmp_path / "nowhere")
    broken = {Path(one.path).name: one for one in found_in(tmp_path).broken}
    assert broken["page.gguf"].code == "model-invalid"
    assert broken["page.gguf"].reason.startswith("is no GGUF file")
    assert broken["page.gguf"].size == 6
    assert broken["cut.gguf"].code == "model-truncated"
    assert broken["cut.gguf"].reason.startswith("is cut off")
    assert broken["gone.gguf"].reason == "it is a link to a file that is not there"


def hub(folder, revision, blob, name="model.gguf", repository="models--org--repo"):
    """Lay a file out as Hugging Face's cache does: a blob, and a link below its revision."""
    base = folder / repository
    target = base / "blobs" / blob
    if not target.exists():
        write_model(target)
    link = base / "snapshots" / revision / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(os.path.relpath(target, link.parent))
    return link


def test_each_blob_of_hugging_faces_cache_is_one_model(tmp_path):
    first = hub(tmp_path, "aaa", "blob1")
    hub(tmp_path, "bbb", "blob1")
    hub(tmp_path, "bbb", "blob2", "other.gguf")
    catalogue = found_in(tmp_path)
    assert names(catalogue) == ["model.gguf", "other.gguf"]
    assert catalogue.models[0].path == str(first)


def test_a_split_model_in_hugging_faces_cache_keeps_its_names(tmp_path):
    paths = write_split(tmp_path / "blobs", "m", 2)
    snapshot = tmp_path / "models--x" / "snapshots" / "rev"
    snapshot.mkdir(parents=True)
    for number, path in enumerate(paths):
        blob = path.rename(path.with_name(f"sha{number}"))
        (snapshot / path.name).symlink_to(blob)
    catalogue = found_in(tmp_path / "models--x")
    assert names(catalogue) == [paths[0].name]
    assert len(catalogue.models[0].files) == 2


def test_links_in_a_circle_end(tmp_path):
    write_model(tmp_path / "a" / "m.gguf")
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    (tmp_path / "a" / "self").symlink_to(tmp_path / "a")
    (tmp_path / "round").symlink_to(tmp_path / "round")
    assert names(found_in(tmp_path, tmp_path / "a")) == ["m.gguf"]


def test_a_linked_folder_is_followed(tmp_path):
    write_model(tmp_path / "elsewhere" / "m.gguf")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "link").symlink_to(tmp_path / "elsewhere")
    assert names(found_in(tmp_path / "models")) == ["m.gguf"]


def test_an_unreadable_folder_is_noted_and_the_rest_is_found(tmp_path, monkeypatch):
    write_model(tmp_path / "a" / "m.gguf")
    (tmp_path / "closed").mkdir()
    real = os.scandir

    def scandir(folder):
        if Path(folder).name == "closed":
            raise PermissionError(13, "Permission denied")
        return real(folder)

    monkeypatch.setattr(model_finder.os, "scandir", scandir)
    catalogue = found_in(tmp_path)
    assert names(catalogue) == ["m.gguf"]
    assert catalogue.searched[0].note.endswith("closed: permission denied")


def test_a_folder_that_is_not_there_is_noted(tmp_path):
    assert found_in(tmp_path / "none").searched[0].note == "not there"


def test_a_search_is_bounded(tmp_path, monkeypatch):
    for number in range(6):
        write_model(tmp_path / str(number) / "m.gguf")
    deep = tmp_path / "0" / "1" / "2" / "3"
    write_model(deep / "deep.gguf")
    assert "deep.gguf" not in names(found_in(tmp_path, depth=2))
    assert names(found_in(tmp_path, depth=0)) == []
    monkeypatch.setattr(model_finder, "MAX_FILES", 3)
    catalogue = found_in(tmp_path)
    assert len(catalogue.models) == 3
    assert "3 files" in catalogue.searched[0].note
    monkeypatch.setattr(model_finder, "MAX_FOLDERS", 2)
    assert "2 folders" in found_in(tmp_path).searched[0].note


def test_a_folder_may_be_searched_alone_and_then_whole(tmp_path):
    write_model(tmp_path / "m.gguf")
    write_model(tmp_path / "below" / "n.gguf")
    catalogue = find_models([Place(tmp_path, depth=0), Place(tmp_path)])
    assert names(catalogue) == ["m.gguf", "n.gguf"]


def test_every_file_is_opened_once(tmp_path, monkeypatch):
    for number in range(30):
        write_model(tmp_path / str(number % 5) / f"{number}.gguf")
    opened = []
    real = os.open
    monkeypatch.setattr(
        "spectui.adapters.gguf_header.os.open",
        lambda path, flags: opened.append(path) or real(path, flags),
    )
    seen = []
    find_models([Place(tmp_path), Place(tmp_path)], lambda done, path: seen.append((done, path)))
    assert len(opened) == len(set(opened)) == 30
    assert [done for done, _ in seen] == list(range(30))


def test_a_search_can_be_stopped(tmp_path):
    def stop(done, _path):
        if done == 2:
            raise KeyboardInterrupt

    for number in range(4):
        write_model(tmp_path / f"{number}.gguf")
    with pytest.raises(KeyboardInterrupt):
        find_models([Place(tmp_path)], stop)


HOME = Path("/home/ann")


@pytest.mark.parametrize(
    ("environment", "platform", "expected"),
    [
        ({}, "linux", [".cache/llama.cpp", ".cache/huggingface/hub"]),
        ({}, "darwin", ["Library/Caches/llama.cpp", ".cache/huggingface/hub"]),
        ({"XDG_CACHE_HOME": "/x"}, "linux", ["/x/llama.cpp", "/x/huggingface/hub"]),
        ({"LLAMA_CACHE": "/l"}, "linux", ["/l", ".cache/huggingface/hub"]),
        ({"HF_HOME": "/hf"}, "linux", [".cache/llama.cpp", "/hf/hub"]),
        ({"HF_HUB_CACHE": "/hub", "HF_HOME": "/hf"}, "linux", [".cache/llama.cpp", "/hub"]),
        ({"LLAMA_CACHE": "/one", "HF_HUB_CACHE": "/one"}, "linux", ["/one"]),
        ({"LLAMA_CACHE": "~nobody-at-all"}, "linux", ["~nobody-at-all"]),
    ],
)
def test_where_caches_are(environment, platform, expected):
    places = [place.path for place in cache_places(environment, HOME, platform)]
    absolute = [Path(path) if path.startswith("~") else HOME / path for path in expected]
    assert places[: len(expected)] == absolute
    assert HOME / ".lmstudio/models" in places


@pytest.mark.parametrize(
    ("pointer", "folder"),
    [
        (b"/elsewhere/studio\n", "/elsewhere/studio"),
        (b"\n", None),
        (b"\xff\0", None),
        (None, None),
    ],
)
def test_lm_studio_may_keep_its_models_elsewhere(tmp_path, pointer, folder):
    if pointer is not None:
        (tmp_path / ".lmstudio-home-pointer").write_bytes(pointer)
    expected = Path(folder) if folder else tmp_path / ".lmstudio"
    assert expected / "models" in [place.path for place in cache_places({}, tmp_path)]


def test_a_file_in_a_folder_that_may_not_be_entered_is_noted(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "stat", refuse)
    assert found_in(tmp_path / "closed").searched[0].note == "permission denied"


def test_a_survey_compares_tokens_only_where_they_decide(tmp_path, monkeypatch):
    large = [("blk.0.w", (64, 20_000), "Q8_0"), *TENSORS]
    target = read_model(write_model(tmp_path / "target.gguf", tensors=large))
    write_model(tmp_path / "good.gguf")
    write_model(tmp_path / "differs.gguf", tokens=[*WORDS[:9], "x", *WORDS[10:]])
    write_model(tmp_path / "small.gguf", tokens=[f"t{i}" for i in range(300)])
    write_model(tmp_path / "clip.gguf", "clip")
    compared = []
    real = model_finder.first_difference
    monkeypatch.setattr(
        model_finder,
        "first_difference",
        lambda target, draft: compared.append(draft.name) or real(target, draft),
    )
    found = survey(target, found_in(tmp_path))
    assert compared == ["differs.gguf", "good.gguf"]
    assert [Path(one.facts.path).name for one in found.fitting] == ["good.gguf"]
    reasons = {Path(one.facts.path).name: one.why_not for one in found.unfit}
    assert reasons["differs.gguf"] == (
        "token 9 is “x” in its vocabulary and “tok9” in the target's"
    )
    assert "300 tokens" in reasons["small.gguf"]
    assert "projector" in reasons["clip.gguf"]
    assert found.suggestion.type == "draft-simple"
    assert found.suggestion.draft == str(tmp_path / "good.gguf")


def test_the_target_is_no_draft_of_itself_under_another_name(tmp_path, monkeypatch):
    write_model(tmp_path / "models" / "target.gguf")
    write_model(tmp_path / "models" / "draft.gguf")
    (tmp_path / "link.gguf").symlink_to(tmp_path / "models" / "target.gguf")
    monkeypatch.chdir(tmp_path)
    for name in ("models/target.gguf", "link.gguf"):
        found = survey(read_model(Path(name)), found_in(tmp_path / "models"))
        assert [Path(one.facts.path).name for one in found.fitting] == ["draft.gguf"]


def test_a_file_that_vanishes_between_listing_and_comparing_is_no_draft(tmp_path):
    target = read_model(write_model(tmp_path / "target.gguf"))
    gone = write_model(tmp_path / "gone.gguf")
    catalogue = found_in(tmp_path)
    gone.unlink()
    found = survey(target, catalogue)
    assert not found.fitting
    assert "cannot be read any more" in found.unfit[0].why_not


def test_a_survey_tells_where_was_looked_and_what_could_not_be_read(tmp_path):
    target = read_model(write_model(tmp_path / "target.gguf"))
    (tmp_path / "broken.gguf").write_text("no model", encoding="utf-8")
    found = survey(target, found_in(tmp_path))
    assert [Path(one.path).name for one in found.broken] == ["broken.gguf"]
    assert [folder.path for folder in found.searched] == [str(tmp_path)]
