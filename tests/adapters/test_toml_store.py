import tomllib

import pytest

from spectui.adapters.toml_store import load_profile, save_profile, toml_value
from spectui.domain.errors import ProfileError, SpectuiError
from spectui.domain.profile import parse_profile

TEXT = """
[server]
engine = "bin/llama-server"
args = ["-c", "4096"]

[models]
target = "models/target.gguf"
draft = "../draft.gguf"

[speculation]
type = "draft-simple"
n_max = 4
n_min = 0
p_min = 0.0

[workload]
prompts = "builtin"
tasks = ["code", "rewrite"]
max_tokens = 128
seed = 1
"""


@pytest.fixture
def profile_file(tmp_path):
    folder = tmp_path / "profiles"
    folder.mkdir()
    path = folder / "my.toml"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_relative_paths_are_relative_to_the_profile(profile_file, monkeypatch):
    monkeypatch.chdir("/")
    found = load_profile(profile_file)
    folder = profile_file.parent
    assert found.models.target == str(folder / "models" / "target.gguf")
    assert found.models.draft == str(folder / ".." / "draft.gguf")
    assert found.server.engine == str(folder / "bin" / "llama-server")


def test_load_export_load_is_the_identity(profile_file):
    first = load_profile(profile_file)
    (profile_file.parent.parent / "a").mkdir()
    for place in (profile_file.parent / "tuned.toml", profile_file.parent.parent / "a" / "b.toml"):
        save_profile(first, place)
        assert load_profile(place) == first


def test_an_export_in_the_same_folder_can_be_moved_with_it(profile_file):
    save_profile(load_profile(profile_file), profile_file.parent / "tuned.toml")
    written = tomllib.loads((profile_file.parent / "tuned.toml").read_text(encoding="utf-8"))
    assert written["models"]["target"] == "models/target.gguf"


def test_an_engine_beside_the_profile_stays_a_file_and_no_name(tmp_path):
    profile = parse_profile({"server": {"engine": str(tmp_path / "llama-server")}})
    save_profile(profile, tmp_path / "x.toml")
    assert load_profile(tmp_path / "x.toml").server.engine == str(tmp_path / "llama-server")


def test_settings_of_the_command_line_win(profile_file):
    found = load_profile(profile_file, ["speculation.n_max=8", "workload.tasks=['math']"])
    assert found.speculation.draft_length == 8
    assert found.workload.tasks == ("math",)


@pytest.mark.parametrize(
    ("text", "value"),
    [("4", 4), ("0.5", 0.5), ("true", True), ("draft-simple", "draft-simple"), ("'4'", "4")],
)
def test_values_of_the_command_line(text, value):
    assert toml_value(text) == value


def test_a_value_cannot_smuggle_in_another_key():
    assert toml_value("1\nother = 2") == "1\nother = 2"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"[server\n", "not valid TOML"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"x = " + b"[" * 5000, "nested too deeply"),
        (b"[speculation]\nn_max = 0\n", "speculation.n_max"),
        (b"# \xc3\xa9\n" + b"#" * (1 << 20), "too large"),
    ],
)
def test_broken_files(tmp_path, content, words):
    path = tmp_path / "broken.toml"
    path.write_bytes(content)
    with pytest.raises(ProfileError) as caught:
        load_profile(path)
    assert str(path) in str(caught.value)
    assert words in str(caught.value)
    assert caught.value.exit_code == 2


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(ProfileError, match="no such file"):
        load_profile(tmp_path / "none.toml")
    with pytest.raises(ProfileError, match="folder"):
        load_profile(tmp_path)


def test_a_byte_order_mark_is_no_reason_to_complain(tmp_path):
    path = tmp_path / "bom.toml"
    path.write_text("\ufeff" + "[workload]\nseed = 3\n", encoding="utf-8")
    assert load_profile(path).workload.seed == 3


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(SpectuiError, match="cannot be written"):
        save_profile(parse_profile({}), tmp_path / "file" / "x.toml")
    save_profile(parse_profile({}), tmp_path / "x.toml")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "x.toml"]


@pytest.mark.parametrize("name", ["~m.gguf", "~/m.gguf", "a b.gguf", "x/../m.gguf", "é.gguf"])
def test_odd_names_survive_being_written_and_read(tmp_path, name):
    first = parse_profile({"models": {"target": str(tmp_path / name)}})
    save_profile(first, tmp_path / "x.toml")
    assert load_profile(tmp_path / "x.toml") == first


def test_a_home_is_a_home_and_a_missing_one_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/home/someone")
    path = tmp_path / "x.toml"
    path.write_text('[models]\ntarget = "~/m.gguf"\n', encoding="utf-8")
    assert load_profile(path).models.target == "/home/someone/m.gguf"
    path.write_text('[models]\ntarget = "~nobody-of-that-name/m.gguf"\n', encoding="utf-8")
    with pytest.raises(ProfileError, match="no such home"):
        load_profile(path)


def test_a_number_of_thousands_of_digits_is_told(tmp_path):
    path = tmp_path / "x.toml"
    path.write_text(f"x = {'9' * 5000}", encoding="utf-8")
    with pytest.raises(ProfileError, match="not valid TOML"):
        load_profile(path)
