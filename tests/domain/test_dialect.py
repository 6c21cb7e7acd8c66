from pathlib import Path

import fake_help
import pytest

from spectui.domain.command import server_arguments
from spectui.domain.dialect import TODAY, read_help
from spectui.domain.profile import parse_profile
from spectui.domain.speculation import OFF, TYPES, Speculation

MODELS = {"target": "t.gguf", "draft": "d.gguf"}


def dialect(text):
    found = read_help(text)
    assert found is not None
    return found


NOW = dialect(fake_help.TODAY)
EARLY = dialect(fake_help.OF_EARLY_2026)
OLD = dialect(fake_help.OF_2024)
IK = dialect(fake_help.IK)


def spoken(spec, settings=None, words=TODAY):
    return words.speak(Speculation.of(spec, settings), draft="d.gguf")


def test_a_flag_that_help_lists_as_removed_is_not_spoken():
    assert "--draft-max" in NOW.removed
    assert "--draft-max" not in NOW.flags
    assert NOW.spelling("--spec-draft-n-max") == "--spec-draft-n-max"


def test_each_dialect_is_told_from_its_help():
    assert [d.name for d in (NOW, EARLY, OLD, IK)] == [
        "today's flags",
        "flags of early 2026",
        "flags of before 2026",
        "ik_llama.cpp",
    ]
    assert (NOW.lists, EARLY.lists, IK.staged) == (True, False, True)
    assert EARLY.types == (
        "none", "ngram-cache", "ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod",
    )  # fmt: skip
    assert "suffix" in (IK.types or ())
    assert OLD.types is None


@pytest.mark.parametrize(
    ("build", "name", "types"),
    [
        ("b9093", "flags of May 2026", 6),
        ("b10434", "today's flags", 11),
        ("b11434", "today's flags", 11),
    ],
)
def test_the_help_of_real_builds(build, name, types):
    words = dialect((Path(__file__).parent / "help_texts" / f"{build}-help.txt").read_text("utf-8"))
    assert words.name == name
    assert len(words.types or ()) == types
    assert "--draft-max" in words.removed
    expected = ["-md", "d.gguf", "--spec-draft-n-max", "4", "--spec-draft-n-min", "0"]
    if words.lists:
        expected = ["--spec-type", "draft-simple", *expected]
    assert spoken("draft-simple", {"n_max": 4}, words)[: len(expected)] == expected
    assert spoken(OFF, words=words) == ["--spec-type", "none"]


def test_a_text_without_flags_is_no_help():
    assert read_help("") is None
    assert read_help("Usage: something else entirely\n  -x  do x\n") is None


def test_the_same_setting_in_every_dialect():
    knobs = {"n_max": 4, "p_min": 0.6}
    assert spoken("draft-simple", knobs, NOW) == [
        *("--spec-type", "draft-simple", "-md", "d.gguf", "--spec-draft-n-max", "4"),
        *("--spec-draft-n-min", "0", "--spec-draft-p-min", "0.6"),
    ]
    old = ["-md", "d.gguf", "--draft-max", "4", "--draft-min", "0", "--draft-p-min", "0.6"]
    assert spoken("draft-simple", knobs, EARLY) == old
    assert spoken("draft-simple", knobs, OLD) == old
    assert spoken("draft-simple", knobs, IK) == [
        *("--spec-type", "draft:n_max=4,n_min=0,p_min=0.6", "-md", "d.gguf"),
    ]


def test_the_baseline_names_no_draft_model_and_no_length():
    assert spoken(OFF, words=NOW) == ["--spec-type", "none"]
    assert spoken(OFF, words=EARLY) == ["--spec-type", "none"]
    assert spoken(OFF, words=IK) == ["--spec-type", "none"]
    assert spoken(OFF, words=OLD) == []


def test_early_2026_cut_lookups_by_the_general_length_too():
    found = spoken("ngram-simple", {"ngram_simple.size_m": 8, "ngram_simple.size_n": 3}, EARLY)
    assert found == [
        *("--spec-type", "ngram-simple", "--spec-ngram-size-m", "8"),
        *("--draft-max", "8", "--spec-ngram-size-n", "3"),
    ]
    assert spoken("ngram-mod", words=EARLY) == [
        *("--spec-type", "ngram-mod", "--draft-max", "64"),
        *("--spec-ngram-size-n", "24", "--draft-min", "48"),
    ]


def test_stages_of_ik_llama_are_a_chain():
    knobs = {"n_max": 1, "ngram_mod.n_match": 8, "ngram_mod.n_min": 2}
    assert spoken("draft-mtp,ngram-mod", knobs, IK)[:4] == [
        *("--spec-type", "ngram-mod:n_max=64,ngram_size_n=8,n_min=2"),
        *("--spec-type", "mtp:n_max=1,n_min=0,p_min=0"),
    ]


@pytest.mark.parametrize(
    ("words", "kind", "said"),
    [
        (OLD, "ngram-mod", "only knows drafting with a draft model"),
        (OLD, "draft-mtp", "has no draft-mtp"),
        (EARLY, "draft-eagle3", "its types are none, ngram-cache"),
        (EARLY, "ngram-cache,ngram-mod", "one type at a time"),
    ],
)
def test_what_a_binary_cannot_do_is_refused_with_the_reason(words, kind, said):
    [(key, why), *_] = words.refuse(Speculation.of(kind))
    assert key == "type"
    assert said in why
    assert words.name in why


def test_one_old_flag_for_two_knobs_wants_them_equal():
    both = Speculation.of("ngram-mod,draft-simple", {"n_max": 4})
    [(key, why)] = EARLY.refuse(both)
    assert key == "n_max"
    assert "--draft-max" in why
    assert not EARLY.refuse(both.with_value("n_max", 64).with_value("n_min", 48))


@pytest.mark.parametrize("words", [NOW, TODAY], ids=["help", "assumed"])
def test_today_nothing_of_the_table_is_refused(words):
    for kind in TYPES:
        assert not words.refuse(Speculation.of(kind)), kind
    assert not words.refuse(Speculation.of("ngram-mod,draft-simple"))


def test_ik_llama_takes_every_type_but_eagle3():
    refused = [kind for kind in TYPES if IK.refuse(Speculation.of(kind))]
    assert refused == ["draft-eagle3"]


def test_a_knob_that_a_build_lacks_matters_only_when_it_is_turned():
    lacking = dialect(fake_help.OF_2024.replace("--draft-p-min P ", "--other P"))
    assert not lacking.refuse(Speculation.of("draft-simple", {"n_max": 4}))
    [(key, why)] = lacking.refuse(Speculation.of("draft-simple", {"p_min": 0.5}))
    assert key == "p_min"
    assert "no p_min" in why


PLACED = {
    "server": {"context": 8192, "parallel": 1, "gpu_layers": "all", "device": "CUDA0",
               "kv_k": "q8_0", "kv_v": "q8_0"},
    "draft": {"gpu_layers": 99, "device": "CUDA1", "kv_k": "f16", "kv_v": "f16"},
    "models": MODELS,
    "speculation": {"type": "draft-simple"},
}  # fmt: skip


def arguments(words, kind=None):
    profile = parse_profile(PLACED)
    speculation = profile.speculation if kind is None else Speculation.of(kind)
    return server_arguments(
        profile, speculation, target="t.gguf", draft="d.gguf", port=1, dialect=words
    )


def test_where_the_models_run_is_part_of_the_command():
    told = " ".join(arguments(NOW))
    assert "-c 8192 -np 1 -ngl all -dev CUDA0 -ctk q8_0 -ctv q8_0" in told
    assert "--spec-draft-ngl 99 --spec-draft-device CUDA1" in told
    assert "--spec-draft-type-k f16 --spec-draft-type-v f16" in told
    assert "-ngl 999" in " ".join(arguments(OLD))
    assert "-ngld 99 -devd CUDA1" in " ".join(arguments(EARLY))


def test_without_a_draft_model_nothing_is_said_of_where_it_runs():
    assert "--spec-draft-ngl" not in arguments(NOW, OFF)
    assert "CUDA1" not in arguments(NOW, "ngram-mod")


def test_metrics_and_slots_are_asked_of_a_binary_that_has_them():
    assert {"--metrics", "--slots"} <= set(arguments(OLD))
    assert "--metrics" in arguments(IK)
    assert "--slots" not in arguments(IK)
