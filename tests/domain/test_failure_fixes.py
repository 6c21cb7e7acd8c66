"""One-key ways out of a failure, for the profile at hand."""

from pathlib import Path

import pytest

from spectui.domain.failures import Remedy, diagnose, fixes_for

GPU = "ggml_cuda: allocating 9.00 MiB on device 0: cudaMalloc failed: out of memory"
HOST = "ggml_aligned_malloc: insufficient memory (attempted to allocate 1757812.50 MB)"
REMOVED = 'error while handling argument "{}": the argument has been removed. use {}'


def changes(profile, *lines):
    found = diagnose(lines)
    assert found is not None
    return {key: value for fix in fixes_for(found, profile) for key, value in fix.changes}


def test_a_taken_port_is_given_up_for_a_free_one():
    line = "srv start: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 8080"
    assert changes({"server": {"port": 8080}}, line) == {"server.port": None}
    assert changes({}, line) == {}  # it takes a free one anyway


@pytest.mark.parametrize(
    ("context", "lines", "smaller"),
    [
        (65536, [HOST], 32768),
        (10_000, [HOST], 4096),
        (80_000_000, ["W n_ctx_seq (80000000) > n_ctx_train (8192) -- overflow", HOST], 8192),
        (None, ["llama_context: n_ctx_seq     = 131072", HOST], 65536),
        (None, [HOST], 4096),
        (600, [HOST], None),
    ],
)
def test_a_smaller_context(context, lines, smaller):
    server = {} if context is None else {"context": context}
    assert changes({"server": server}, *lines).get("server.context") == smaller


def test_out_of_gpu_memory_offers_fewer_layers_and_the_draft_on_the_cpu():
    profile = {"server": {"gpu_layers": "all", "context": 4096}, "models": {"draft": "d.gguf"}}
    lines = ["load_tensors: offloaded 40/41 layers to GPU", GPU]
    found = [fix.changes for fix in fixes_for(diagnose(lines), profile)]
    assert found == [
        (("server.context", 2048),),
        (("server.gpu_layers", None),),
        (("server.gpu_layers", "30"),),
        (("draft.gpu_layers", "0"),),
        (("server.kv_k", "q8_0"), ("server.kv_v", "q8_0")),
    ]
    assert "draft.gpu_layers" not in changes({"server": {"context": 4096}}, GPU)


def test_cache_types_that_do_not_fit_go_back_to_the_default():
    line = "llama_init: quantized V cache requires flash_attn to be enabled"
    assert changes({"server": {"kv_v": "q8_0"}}, line) == {"server.kv_v": None}


@pytest.mark.parametrize(
    ("args", "line", "after"),
    [
        (["-t", "1", "--mlock"], "error: invalid argument: --mlock", ["-t", "1", "--load-mode"]),
        (["--old", "8", "-t", "1"], REMOVED.format("--old", "--new"), ["--new", "8", "-t", "1"]),
        (["--old=8"], REMOVED.format("--old", "--new or --newer"), ["--new", "8"]),
        (["-t", "1"], REMOVED.format("--old", "--new"), None),
        (["--n-max", "8"], REMOVED.format("--n-max", "the respective --a-*-max"), None),
    ],
)
def test_a_flag_that_was_renamed_is_translated(args, line, after):
    fixes = fixes_for(diagnose([line]), {"server": {"args": args}})
    written = [fix for fix in fixes if fix.label.startswith("write")]
    if after is None:
        assert written == []
    else:
        [fix] = written
        [(key, value)] = fix.changes
        assert key == "server.args"
        assert value[: len(after)] == after


def test_a_flag_that_is_unknown_is_left_out_with_its_value():
    line = "error: invalid argument: --odd"
    profile = {"server": {"args": ["-t", "1", "--odd", "3", "--mlock"]}}
    assert changes(profile, line) == {"server.args": ["-t", "1", "--mlock"]}
    assert changes({"server": {"args": ["--odd"]}}, line) == {"server.args": None}
    negative = {"server": {"args": ["--odd", "-1"]}}
    assert changes(negative, line) == {"server.args": None}


def test_an_old_name_of_a_type_becomes_todays():
    line = 'error while handling argument "--spec-type": unknown speculative type: draft'
    assert changes({"speculation": {"type": "x"}}, line) == {"speculation.type": "draft-simple"}


def test_a_draft_that_nothing_uses_is_used():
    lines = [
        "args: -m t -md d.gguf",
        "0.00.1 x",
        "0.00.476.656 I common: loading draft model 'd.gguf'",
        "0.00.671.094 I srv  llama_server: model loaded",
    ]
    profile = {"models": {"draft": "d.gguf"}, "speculation": {"type": "none"}}
    assert changes(profile, *lines) == {"speculation.type": "draft-simple"}


def test_a_draft_that_cannot_be_used_gives_way_to_drafts_from_the_text():
    line = "spec: the target and draft vocabs are not compatible"
    found = fixes_for(diagnose([line]), {"speculation": {"type": "draft-simple"}})
    assert [dict(fix.changes)["speculation.type"] for fix in found] == ["ngram-mod", "none"]


def test_a_length_of_zero_goes_back_to_the_default():
    line = "args: -md d.gguf --spec-type draft-simple --spec-draft-n-max 0"
    found = changes({"speculation": {"type": "draft-simple", "n_max": 0}}, line)
    assert found == {"speculation.n_max": None, "speculation.type": "none"}


def test_made_up_acceptance_and_a_projector_are_left_out():
    synthetic = "srv load_model: synthetic acceptance rates must contain 4 values, got 2"
    profile = {"server": {"args": ["--spec-synth-rates", "0.9,0.8", "-t", "1"]}}
    assert changes(profile, synthetic) == {"server.args": ["-t", "1"]}
    projector = "srv load_model: failed to load multimodal model, 'mm.gguf'"
    assert changes({"server": {"args": ["--mmproj", "mm.gguf"]}}, projector) == {
        "server.args": None
    }


def test_every_remedy_has_a_maker_and_no_profile_makes_it_stumble():
    from spectui.domain.failures import CLASSES, Diagnosis

    profiles = [{}, {"server": None}, {"server": {"args": 3, "context": "x", "gpu_layers": 7}}]
    offered = {remedy for known in CLASSES for remedy in known.remedies} | {Remedy.DEFAULT_LENGTH}
    assert offered == set(Remedy)
    found = Diagnosis("x", "", "", None, "", fixes=tuple(Remedy))
    for profile in profiles:
        for fix in fixes_for(found, profile):
            assert 0 < len(fix.label) < 60


LOGS = sorted((Path(__file__).parents[1] / "real" / "logs").glob("*.txt"))


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_a_draft_made_for_one_target_is_not_offered_for_any_other_type(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    found = diagnose(lines)
    draft = lines[0].partition(" -md ")[2].split(" ")[0]
    profile = {"models": {"draft": draft}, "speculation": {"type": "draft-eagle3"}}
    offered = found is not None and any(
        dict(fix.changes).get("speculation.type") == "draft-simple"
        for fix in fixes_for(found, profile)
    )
    made_for_one = any(kind in draft for kind in ("eagle3", "dflash", "dspark"))
    assert not (offered and made_for_one)


def test_a_plain_draft_under_the_wrong_type_is_offered_its_own():
    [path] = [path for path in LOGS if path.stem == "eagle3-plain-draft"]
    found = diagnose(path.read_text(encoding="utf-8").splitlines())
    profile = {"models": {"draft": "d.gguf"}, "speculation": {"type": "draft-eagle3"}}
    assert fixes_for(found, profile)[0].changes == (("speculation.type", "draft-simple"),)
