import pytest
from hypothesis import given, strategies as st

from spectui.domain.command import server_arguments
from spectui.domain.errors import ProfileError, UsageError
from spectui.domain.findings import Fix
from spectui.domain.profile import (
    TASKS,
    Models,
    Profile,
    ServerSpec,
    WorkloadSpec,
    parse_profile,
    to_mapping,
    with_fix,
    with_setting,
)
from spectui.domain.speculation import KNOBS, TYPES, Speculation, check

FULL = {
    "server": {"engine": "/opt/llama-server", "args": ["-c", "4096"], "port": 8081},
    "models": {"target": "/m/target.gguf", "draft": "/m/draft.gguf"},
    "speculation": {
        "type": "draft-simple",
        "n_max": 4,
        "n_min": 0,
        "p_min": 0.0,
        "ngram_simple": {"size_n": 3, "size_m": 8},
    },
    "workload": {"prompts": "builtin", "tasks": ["code"], "max_tokens": 128, "seed": 1},
}


def test_an_empty_profile_is_the_demo_model_with_speculation_off():
    found = parse_profile({})
    assert found == Profile()
    assert found.speculation.is_off


def test_writing_gives_back_what_was_read():
    assert to_mapping(parse_profile(FULL)) == FULL


def test_where_models_run_is_read_and_given_back():
    tables = {
        "server": {
            "engine": "llama-server",
            "env": {"CUDA_VISIBLE_DEVICES": "0"},
            "context": 8192,
            "parallel": 1,
            "gpu_layers": "all",
            "device": "CUDA0",
            "kv_k": "q8_0",
            "kv_v": "q8_0",
        },
        "draft": {"gpu_layers": 0, "device": "none", "kv_k": "f16", "kv_v": "f16"},
    }
    profile = parse_profile(tables)
    assert profile.server.gpu_layers == "all"
    assert profile.draft.gpu_layers == "0"
    written = to_mapping(profile)
    assert (written["server"], written["draft"]) == (tables["server"], tables["draft"])


def test_the_default_of_llama_server_is_a_type_of_its_own_name():
    assert parse_profile({"speculation": {"type": "default"}}).speculation.type == "ngram-mod"


def test_evidence_is_kept_until_the_setting_changes():
    profile = parse_profile({**FULL, "evidence": {"speedup": 1.4}})
    assert to_mapping(profile)["evidence"] == {"speedup": 1.4}
    assert "evidence" not in to_mapping(profile.with_speculation(Speculation()))


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"servr": {}}, ["servr", "did you mean server"]),
        ({"server": {"engin": "x"}}, ["server.engin", "did you mean engine"]),
        ({"speculation": {"nmax": 4}}, ["speculation.nmax", "did you mean n_max"]),
        ({"speculation": {"zzz": 4}}, ["speculation.zzz", "known here are", "p_min"]),
        ({"speculation": {"type": "draft-simpel"}}, ["speculation.type", "draft-simple"]),
        ({"speculation": {"type": "draft-simple"}}, ["speculation.type", "models.draft"]),
        ({"speculation": {"n_max": "4"}}, ["speculation.n_max", "whole number from 1 to 64"]),
        ({"speculation": {"n_max": 0}}, ["speculation.n_max", "not off"]),
        ({"speculation": {"ngram_simple": {"size_x": 1}}}, ["ngram_simple.size_x", "size_"]),
        (
            {"speculation": {"ngram_simple": {"min_hits": 2}}},
            ["ngram_simple.min_hits", "does nothing", "take it out"],
        ),
        ({"speculation": {"type": "ngram-mod,none"}}, ["speculation.type", "alone"]),
        ({"speculation": {"type": "ngram-mod,ngram-smple"}}, ["did you mean ngram-simple"]),
        ({"server": {"context": 0}}, ["server.context", "whole number from 1"]),
        ({"server": {"parallel": "4"}}, ["server.parallel", "whole number"]),
        ({"server": {"gpu_layers": "most"}}, ["server.gpu_layers", '"auto" or "all"']),
        ({"server": {"gpu_layers": -1}}, ["server.gpu_layers", "from 0"]),
        ({"draft": {"gpu_layers": True}}, ["draft.gpu_layers", "whole number"]),
        ({"draft": {"kv_k": "q3"}}, ["draft.kv_k", "one of f32, f16"]),
        ({"draft": {"context": 4}}, ["draft.context", "known here are gpu_layers"]),
        ({"server": {"context": 4, "args": ["-c", "8"]}}, ["server.context", "keep one of them"]),
        ({"server": {"env": {"A B": "1"}}}, ["server.env.A B", "not a variable"]),
        ({"server": {"env": {"A": 1}}}, ["server.env.A", "not a text"]),
        ({"server": {"env": {"LLAMA_ARG_CTX_SIZE": "1"}}}, ["LLAMA_ARG_CTX_SIZE", "back"]),
        ({"server": {"env": {"HF_TOKEN": "x"}}}, ["HF_TOKEN", "a secret does not belong"]),
        ({"speculation": {"ngram_simple": 3}}, ["speculation.ngram_simple", "not a table"]),
        ({"workload": {"tasks": ["cod"]}}, ["workload.tasks", "did you mean code"]),
        ({"workload": {"tasks": "code"}}, ["workload.tasks", "a list of texts"]),
        ({"workload": {"max_tokens": 1}}, ["workload.max_tokens", "from 2"]),
        ({"workload": {"max_tokens": True}}, ["workload.max_tokens", "whole number"]),
        ({"server": {"port": 70000}}, ["server.port", "65535"]),
        ({"server": {"args": ["--port", "1"]}}, ["server.args", "--port", "server.port"]),
        ({"server": {"args": ["-md=x"]}}, ["server.args", "models.draft"]),
        ({"server": {"args": ["--spec-type", "x"]}}, ["server.args", "speculation.type"]),
        ({"server": {"args": ["--spec_type", "x"]}}, ["server.args", "speculation.type"]),
        ({"server": {"args": ["--spec-default"]}}, ["server.args", "speculation.type"]),
        ({"server": {"args": ["-hfd", "x"]}}, ["server.args", "models.draft"]),
        ({"server": {"args": ["-hf", "x"]}}, ["server.args", "models.target"]),
        ({"server": {"args": ["--api-key", "x"]}}, ["server.args", "could not talk"]),
        ({"server": {"engine": ""}}, ["server.engine", "a text"]),
        ({"models": {"target": "a\0b"}}, ["models.target", "NUL"]),
        ({"models": []}, ["[models] is not a table"]),
    ],
)
def test_every_complaint_names_file_key_and_what_is_allowed(tables, words):
    with pytest.raises(ProfileError) as caught:
        parse_profile(tables, file="my.toml")
    line = str(caught.value)
    assert line.startswith("my.toml")
    assert "\n" not in line
    for word in words:
        assert word in line


def test_control_sequences_in_a_key_do_not_reach_the_terminal():
    with pytest.raises(ProfileError) as caught:
        parse_profile({"\x1b[31mred": {}})
    assert "\x1b" not in str(caught.value)


def test_only_what_is_a_path_is_resolved():
    found = parse_profile(
        {"server": {"engine": "llama-server"}, "models": {"target": "demo"}},
        resolve=lambda path: f"/base/{path}",
    )
    assert found.server.engine == "llama-server"
    assert found.models.target == "demo"
    found = parse_profile(
        {"server": {"engine": "./llama-server"}, "workload": {"prompts": "mine.txt"}},
        resolve=lambda path: f"/base/{path}",
    )
    assert found.server.engine == "/base/./llama-server"
    assert found.workload.prompts == "/base/mine.txt"


def test_settings_of_the_command_line():
    data = with_setting(FULL, "speculation.n_max=8", int)
    assert parse_profile(data).speculation.draft_length == 8
    assert FULL["speculation"]["n_max"] == 4
    data = with_setting({}, "speculation.ngram_simple.size_m=16", int)
    assert data == {"speculation": {"ngram_simple": {"size_m": 16}}}


@pytest.mark.parametrize("text", ["n_max=4", "speculation.n_max", "", "=", "a..b=1", "server.=3"])
def test_malformed_settings_are_refused(text):
    with pytest.raises(UsageError):
        with_setting(FULL, text, str)


words = st.text("abcdefgh-_.é ", min_size=1, max_size=12).filter(str.strip)


@st.composite
def profiles(draw):
    kind = draw(st.sampled_from(list(TYPES)))
    settings = {}
    for knob in KNOBS.values():
        if draw(st.booleans()):
            number = st.integers if knob.integral else st.floats
            settings[knob.key] = draw(number(knob.low, min(knob.high, 60)))
    speculation = Speculation.of(kind, settings)
    if check(speculation, has_draft=True):
        speculation = Speculation.of(kind)
    return Profile(
        server=ServerSpec(
            draw(st.sampled_from(["embedded", "llama-server", "/opt/x"])),
            tuple(draw(st.lists(words.map(lambda w: f"x{w}"), max_size=3))),
            draw(st.none() | st.integers(1, 65535)),
        ),
        models=Models(draw(st.sampled_from(["demo", "/m/a.gguf"])), "/m/draft.gguf"),
        speculation=speculation,
        workload=WorkloadSpec(
            "builtin",
            tuple(draw(st.lists(st.sampled_from(TASKS), unique=True))),
            draw(st.integers(2, 10_000)),
            draw(st.integers(0, 2**32 - 1)),
        ),
    )


@given(profiles())
def test_any_profile_survives_being_written_and_read(profile):
    assert parse_profile(to_mapping(profile)) == profile


# -- the command ----------------------------------------------------------------------------------


def command(profile, speculation=None):
    return server_arguments(
        profile, speculation or profile.speculation, target="/t", draft="/d", port=99
    )


def test_the_command_of_a_draft_model():
    assert command(parse_profile(FULL)) == (
        *("-c", "4096", "-m", "/t", "--host", "127.0.0.1", "--port", "99"),
        *("--metrics", "--slots", "--spec-type", "draft-simple", "-md", "/d"),
        *("--spec-draft-n-max", "4", "--spec-draft-n-min", "0", "--spec-draft-p-min", "0"),
    )


def test_the_baseline_has_no_draft_model_and_no_length_of_zero():
    found = command(parse_profile(FULL), Speculation())
    assert found[-2:] == ("--spec-type", "none")
    assert "-md" not in found


def test_an_ngram_type_gets_its_own_length_and_no_draft_model():
    found = command(parse_profile(FULL), parse_profile(FULL).speculation.with_type("ngram-simple"))
    assert "-md" not in found
    assert "--spec-draft-n-max" not in found
    assert found[found.index("--spec-ngram-simple-size-m") + 1] == "8"


def test_p_min_is_written_as_people_write_it():
    found = command(parse_profile(FULL), Speculation.of("draft-simple", {"p_min": 0.15}))
    assert found[found.index("--spec-draft-p-min") + 1] == "0.15"


def test_a_fix_changes_sets_and_takes_away():
    profile = parse_profile({**FULL, "evidence": {"speedup": 1.4}})
    fix = Fix("try", (("server.port", None), ("server.context", 2048), ("speculation.n_max", 2)))
    with pytest.raises(ProfileError, match=r"-c in server\.args"):
        with_fix(profile, fix)
    fixed = with_fix(profile, Fix("try", (*fix.changes, ("server.args", []))))
    assert (fixed.server.port, fixed.server.context, fixed.server.args) == (None, 2048, ())
    assert fixed.speculation.draft_length == 2
    assert not fixed.evidence
    assert fixed.models == profile.models
