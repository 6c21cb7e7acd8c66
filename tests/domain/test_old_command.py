"""Old commands → profiles: what people posted over the years, and each rule for itself.

``public_commands`` holds the posts: where each is from, what it says, and what it has to become.
"""

import json
import tomllib
from pathlib import Path

import pytest

from spectui.adapters.command_text import commands_of_words, find_commands
from spectui.adapters.toml_store import load_profile, save_text, toml_text
from spectui.domain.errors import UsageError
from spectui.domain.flags import FLAGS, SUCCESSORS, Fate, by_env, find, guess
from spectui.domain.imported import OldCommand
from spectui.domain.old_command import import_command
from spectui.domain.profile import parse_profile, to_mapping

POSTS = sorted((Path(__file__).parent / "public_commands").glob("*.toml"))


def post_of(path):
    """Return what a file says, and the command in it that is meant."""
    post = tomllib.loads(path.read_text(encoding="utf-8"))
    found = find_commands(post["command"])
    if "name" in post:
        return post, next(command for command in found if command.name == post["name"])
    return post, found[post.get("number", 1) - 1]


def imported(*words, env=()):
    return import_command(OldCommand("llama-server", tuple(words), env=tuple(env)))


def line(text):
    return imported(*text.split())


def speculation(text):
    return line(f"-m t.gguf {text}").profile["speculation"]


def messages(found, code):
    return [notice.message for notice in found.warnings if notice.code == code]


def test_there_are_twenty_posts_of_every_time_and_kind():
    posts = [tomllib.loads(path.read_text(encoding="utf-8")) for path in POSTS]
    assert len(POSTS) >= 20
    assert all(post["source"].startswith("https://") for post in posts)
    assert {post["posted"][:4] for post in posts} == {"2024", "2025", "2026"}
    assert len({post["command"] for post in posts}) == len(posts)


@pytest.mark.parametrize("path", POSTS, ids=lambda path: path.stem)
def test_a_public_command(path):
    post, command = post_of(path)
    found = import_command(command)
    assert found.profile == post["profile"]
    assert sorted(found.codes) == post["codes"]
    assert all(notice.message.isprintable() for notice in found.warnings)


@pytest.mark.parametrize("path", POSTS, ids=lambda path: path.stem)
def test_its_profile_is_one_that_spectui_loads_and_writes_again(path, tmp_path):
    _, command = post_of(path)
    profile = import_command(command).profile
    file = tmp_path / "my.toml"
    save_text(toml_text(profile), file)
    loaded = load_profile(file)
    direct = parse_profile(profile)
    assert loaded.speculation == direct.speculation
    assert loaded.server.args == direct.server.args
    assert parse_profile(to_mapping(loaded)) == loaded
    again = to_mapping(direct)
    assert {key: again[key] for key in profile} == profile


SECRETS = ("needakey", "sk-ik-llama")


def test_no_key_of_a_post_comes_out_again():
    told = 0
    for path in POSTS:
        post, command = post_of(path)
        found = import_command(command)
        out = json.dumps([found.profile, dict(found.env), [n.message for n in found.warnings]])
        assert not any(secret in out for secret in SECRETS)
        told += "secret-dropped" in post["codes"]
    assert told == len(SECRETS)


# how it drafts


@pytest.mark.parametrize(
    ("text", "expected", "codes"),
    [
        # before May 2026 a draft model was enough, and 16 and 0.75 were the defaults
        (
            "-md d.gguf --draft-max 8",
            {"type": "draft-simple", "n_max": 8, "p_min": 0.75},
            {"type-not-set", "renamed", "default-changed"},
        ),
        (
            "-md d.gguf --draft-n 8 --draft-p-min 0.5",
            {"n_max": 8, "p_min": 0.5},
            {"type-not-set", "renamed"},
        ),
        (
            "-md d.gguf -cd 100",
            {"n_max": 16, "p_min": 0.75},
            {"type-not-set", "removed", "default-changed"},
        ),
        # no flag tells the time: today's defaults stay, and both are told
        ("-md d.gguf", {"type": "draft-simple"}, {"type-not-set", "default-changed"}),
        # January to April 2026: types, and one length for all of them
        (
            "--spec-type ngram-mod --draft-max 32 --draft-min 2 --spec-ngram-size-n 8",
            {"type": "ngram-mod", "ngram_mod": {"n_max": 32, "n_min": 2, "n_match": 8}},
            {"renamed"},
        ),
        (
            "--spec-type ngram-map-k --draft-max 24",
            {"type": "ngram-map-k", "ngram_map_k": {"size_m": 24}},
            {"renamed"},
        ),
        # that server cut every draft at the general length, whatever its own
        (
            "--spec-type ngram-simple --draft-max 8 --spec-ngram-size-m 12",
            {"ngram_simple": {"size_m": 8}},
            {"renamed"},
        ),
        (
            "--spec-type ngram-simple --spec-ngram-size-m 40",
            {"ngram_simple": {"size_m": 16}},
            {"renamed", "default-changed"},
        ),
        (
            "--spec-type draft -md d.gguf",
            {"type": "draft-simple", "n_max": 16},
            {"renamed", "default-changed"},
        ),
        # today's words stay as they are
        (
            "-md d.gguf --spec-type draft-simple --spec-draft-n-max 5",
            {"type": "draft-simple", "n_max": 5},
            set(),
        ),
        ("--spec-type draft-mtp", {"type": "draft-mtp"}, set()),
        (
            "--spec-type ngram-mod --spec-type draft-mtp --spec-draft-n-max 2",
            {"type": "ngram-mod,draft-mtp", "n_max": 2},
            {"combined"},
        ),
        (
            "--spec-default",
            {"type": "ngram-mod", "ngram_mod": {"n_match": 24, "n_min": 48, "n_max": 64}},
            {"expanded"},
        ),
        # what a draft file's name tells
        ("-md q-eagle3.gguf", {"type": "draft-eagle3"}, {"type-not-set"}),
        ("-md mtp-q.gguf", {"type": "draft-mtp"}, {"type-not-set"}),
        # ik_llama.cpp
        ("--spec-type mtp:n_max=4,p_min=0.3", {"n_max": 4, "p_min": 0.3}, {"renamed", "dialect"}),
        (
            "-mtp --draft-max 2",
            {"type": "draft-mtp", "n_max": 2, "p_min": 0.75},
            {"renamed", "default-changed", "dialect"},
        ),
        # what nothing does, or what does nothing
        ("--draft-max 8", {"type": "none"}, {"no-effect"}),
        ("-md d.gguf --spec-type none", {"type": "none"}, {"no-effect"}),
        ("-md d.gguf --draft-max 0", {"type": "none"}, {"no-effect", "renamed"}),
        ("--spec-type draft-simple", {"type": "none"}, {"draft-missing"}),
        ("--spec-type ngram-cache --draft-max 4", {"type": "ngram-cache"}, {"removed"}),
        ("--spec-type ngram-simple --spec-draft-n-max 4", {"type": "ngram-simple"}, {"no-effect"}),
        ("--spec-type nonsense", {"type": "none"}, {"unknown-type"}),
        (
            "-md d.gguf --spec-type draft-eagle3,draft-mtp --spec-draft-n-max 2",
            {"type": "draft-eagle3"},
            {"no-effect"},
        ),
        (
            "-md d.gguf --spec-type draft-simple --spec-draft-n-min 9 --spec-draft-n-max 4",
            {"n_min": 4, "n_max": 4},
            {"no-effect"},
        ),
        (
            "-md d.gguf --spec-type draft-simple --spec-draft-n-max 999 --spec-draft-p-min 2",
            {"n_max": 64, "p_min": 1.0},
            {"out-of-range"},
        ),
        (
            "-md d.gguf --draft-max many",
            {"n_max": 16},
            {"type-not-set", "invalid-value", "renamed", "default-changed"},
        ),
    ],
)
def test_how_it_drafts(text, expected, codes):
    found = line(f"-m t.gguf {text}")
    got = found.profile["speculation"]
    assert {key: got.get(key) for key in expected} == expected
    assert set(found.codes) - {"relative-path"} == codes
    parse_profile(found.profile)


def test_what_the_command_would_really_have_done_is_told():
    found = line("-m t.gguf -md d.gguf --draft-max 8")
    [told] = messages(found, "type-not-set")
    assert "the draft would not have been used: the type was never set" in told
    [told] = messages(found, "renamed")
    assert (
        told == "--draft-max 8 is --spec-draft-n-max today; the old name stops today's llama-server"
    )


def test_a_length_of_zero_takes_the_assumed_type_back():
    found = line("-m t.gguf -md d.gguf --draft-max 0")
    assert "type-not-set" not in found.codes


def test_the_fork_drafts_without_a_type():
    found = line("-m t.gguf -md d.gguf -fmoe")
    assert "-md is enough for ik_llama.cpp" in messages(found, "type-not-set")[0]
    assert found.profile["server"]["args"] == ["-fmoe"]


# where it runs, and the rest


def test_places_and_sizes_are_keys_of_the_profile():
    found = line(
        "-m t.gguf -md d.gguf --spec-type draft-simple --spec-draft-n-max 2 -c 4096 -np 1 -ngl all"
        " -dev CUDA0 -ctk q8_0 -ctv q4_0 -ngld 7 -devd CUDA1 -ctkd f16 -ctvd q8_0"
    )
    assert found.profile["server"] == {
        "engine": "llama-server",
        "context": 4096,
        "parallel": 1,
        "gpu_layers": "all",
        "device": "CUDA0",
        "kv_k": "q8_0",
        "kv_v": "q4_0",
    }
    assert found.profile["draft"] == {
        "gpu_layers": 7,
        "device": "CUDA1",
        "kv_k": "f16",
        "kv_v": "q8_0",
    }
    assert set(found.codes) == {"relative-path"}


@pytest.mark.parametrize(
    ("text", "layers"),
    [("auto", "auto"), ("-1", "auto"), ("-2", "all"), ("99", 99), ("99999", "all"), ("7x", 7)],
)
def test_layers_as_llama_server_reads_them(text, layers):
    assert line(f"-m t.gguf -ngl {text}").profile["server"]["gpu_layers"] == layers


@pytest.mark.parametrize(
    ("text", "args", "code"),
    [
        ("-fa -lv 1", ["-fa", "on", "-lv", "1"], "renamed"),  # today -fa takes -lv for its value
        ("-fa", ["-fa", "on"], "renamed"),
        ("-fa off", ["-fa", "off"], ""),
        ("--no-mmap", ["--load-mode", "none"], "renamed"),
        ("--mlock", ["--load-mode", "mmap+mlock"], "renamed"),
        ("--mlock --no-mmap", ["--load-mode", "mlock"], "renamed"),
        ("--load-mode dio", ["--load-mode", "dio"], ""),
        ("--top_p 0.9", ["--top-p", "0.9"], ""),
        ("--p-split 0.2", ["--spec-draft-p-split", "0.2"], "renamed"),
        ("--temp=0.2", ["--temp", "0.2"], "renamed"),
        ("--defrag-thold 0.1", None, "ignored"),
        ("--grp-attn-n 4", None, "removed"),
        ("--port 8080 --host 0.0.0.0 --metrics", None, "owned"),
        ("--prompt hello", None, "not-a-server"),
        ("--frobnicate 7", None, "unknown-flag"),
        ("stray", None, "unknown-flag"),
        ("--chat-template", None, "invalid-value"),
        ("--grammar --jinja", None, "invalid-value"),
        ("-np 4", None, "parallel"),
        ("--mmproj p.gguf", ["--mmproj", "p.gguf"], "mmproj"),
        ("--embedding", ["--embedding"], "embedding"),
        ("-s 1 -s 2", ["-s", "2"], "duplicate"),
        ("--lora a --lora b", ["--lora", "a", "--lora", "b"], ""),
        ("--jinja --jinja", ["--jinja"], ""),
        ("--draft-model d.gguf", None, "renamed"),
    ],
)
def test_what_becomes_of_the_rest(text, args, code):
    found = line(f"-m t.gguf {text}")
    assert found.profile["server"].get("args") == args
    assert code in {*found.codes, ""}
    assert code or set(found.codes) <= {"relative-path"}
    parse_profile(found.profile)


def test_a_slip_of_dashes_is_recognised():
    assert guess("--ts") == "-ts"
    assert guess("--flash-atn") == "--flash-attn"
    assert guess("-zz") == guess("--xyzzy") == ""


@pytest.mark.parametrize(
    ("env", "expected", "code"),
    [
        ({"LLAMA_ARG_CTX_SIZE": "512"}, ("server", "context", 512), ""),
        ({"LLAMA_ARG_MODEL_DRAFT": "d.gguf"}, ("models", "draft", "d.gguf"), "ignored"),
        ({"LLAMA_ARG_DRAFT_MAX": "5", "LLAMA_ARG_SPEC_TYPE": "ngram-mod"}, None, "renamed"),
        ({"LLAMA_ARG_FLASH_ATTN": "on"}, ("server", "args", ["--flash-attn", "on"]), ""),
        ({"LLAMA_ARG_NO_MMAP": "1"}, ("server", "args", ["--load-mode", "none"]), "ignored"),
        ({"LLAMA_ARG_JINJA": "maybe"}, None, "invalid-value"),
        ({"LLAMA_ARG_NONSENSE": "1"}, None, "ignored"),
        ({"CUDA_VISIBLE_DEVICES": "1"}, ("server", "env", {"CUDA_VISIBLE_DEVICES": "1"}), ""),
        ({"HF_TOKEN": "hf_secret"}, None, "secret-dropped"),
        ({"HTTPS_PROXY": "http://me:secret@proxy"}, None, "secret-dropped"),
    ],
)
def test_variables(env, expected, code):
    found = imported("-m", "t.gguf", env=env.items())
    if expected:
        table, key, value = expected
        assert found.profile[table][key] == value
    assert code in {*found.codes, ""}
    assert "secret" not in json.dumps([found.profile, dict(found.env)])
    parse_profile(found.profile)


def test_words_win_over_variables():
    found = imported("-m", "t.gguf", "-c", "4", env=[("LLAMA_ARG_CTX_SIZE", "8")])
    assert found.profile["server"]["context"] == 4
    assert "duplicate" not in found.codes


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("-hf a/b-GGUF", "models/b-Q4_K_M.gguf"),
        ("-hf a/b-GGUF:Q8_0", "models/b-Q8_0.gguf"),
        ("-hf a/b-Q8_0-GGUF", "models/b-Q8_0.gguf"),
        ("-hf a/b-GGUF -hff sub/b.gguf", "models/b.gguf"),
        ("-mu https://me:secret@host/x/b.gguf?token=secret", "models/b.gguf"),
        ("-dr ai/smol:latest", "models/smol-latest.gguf"),
        ("-hf a/b -m here.gguf", "here.gguf"),
    ],
)
def test_models_that_would_be_downloaded(text, target):
    found = line(text)
    assert found.profile["models"]["target"] == target
    assert "remote-model" in found.codes
    assert "secret" not in "".join(notice.message for notice in found.warnings)


def test_a_model_called_as_spectuis_own_is_still_a_file():
    found = imported("-m", "demo", "-md", "demo")
    assert found.profile["models"] == {"target": "./demo", "draft": "./demo"}


@pytest.mark.parametrize("words", [[], ["--models-dir", "x"], ["-m", ""], ["-m"]])
def test_a_router_is_refused(words):
    with pytest.raises(UsageError, match="names no model"):
        imported(*words)


@pytest.mark.parametrize(
    ("program", "engine", "code"),
    [
        ("./build/bin/llama-server", "./build/bin/llama-server", "relative-path"),
        ("/opt/llama-server-b123", "/opt/llama-server-b123", ""),
        ("/opt/llama-cli", "/opt/llama-server", "not-a-server"),
        ("$LLAMA/llama-server", "$LLAMA/llama-server", ""),
        ("$SERVER", "llama-server", "program"),
        ("", "llama-server", "program"),
    ],
)
def test_the_engine(program, engine, code):
    found = import_command(OldCommand(program, ("-m", "/t.gguf")))
    assert found.profile["server"]["engine"] == engine
    assert code in {*found.codes, ""}


def test_the_app_serves_under_another_name():
    [command] = commands_of_words(["llama", "serve", "-m", "/t.gguf"])
    found = import_command(command)
    assert found.profile["server"]["engine"] == "llama-server"
    assert found.codes == ("program",)


# the table itself


def test_every_spelling_has_one_meaning():
    names = [name for flag in FLAGS for name in (*flag.names, *flag.off)]
    assert len(names) == len(set(names))


def test_every_successor_is_a_flag_of_today():
    for words in SUCCESSORS.values():
        for name in words.values():
            for kind in ("ngram-simple", "ngram-map-k", "ngram-map-k4v"):
                known = find(name.format(type=kind))
                assert known is not None
                assert known[0].fate is Fate.TODAY


def test_a_negating_variable():
    assert by_env("LLAMA_ARG_NO_KV_OFFLOAD") == (find("--kv-offload")[0], False)
    assert by_env("LLAMA_ARG_NO_SUCH") is None
