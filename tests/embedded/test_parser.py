from __future__ import annotations

import subprocess
import sys

import pytest

from spectui.domain.speculation import KNOBS, TYPES
from spectui.embedded.flags import FLAGS
from spectui.embedded.parser import Action, ArgumentError, parse, usage
from spectui.embedded.values import SPEC_TYPES, Member


def settings(*argv: str) -> dict[str, object]:
    return {item.path: item.value for item in parse(argv).assignments}


@pytest.mark.parametrize(
    ("argv", "path", "value"),
    [
        ("-m a.gguf", "model.path", "a.gguf"),
        ("--model a.gguf", "model.path", "a.gguf"),
        ("-md d.gguf", "speculative.draft.mparams.path", "d.gguf"),
        ("--model-draft d.gguf", "speculative.draft.mparams.path", "d.gguf"),
        ("--spec-draft-model d.gguf", "speculative.draft.mparams.path", "d.gguf"),
        ("--host 127.0.0.1,::1", "hostnames", ["127.0.0.1", "::1"]),
        ("--port 8095", "port", 8095),
        ("-c 4096", "n_ctx", 4096),
        ("--ctx-size 4096", "n_ctx", 4096),
        ("--ctx_size 4096", "n_ctx", 4096),
        ("-t 1", "cpuparams.n_threads", 1),
        ("-tb 2", "cpuparams_batch.n_threads", 2),
        ("-td 3", "speculative.draft.cpuparams.n_threads", 3),
        ("-b 256", "n_batch", 256),
        ("-ub 64", "n_ubatch", 64),
        ("-np 2", "n_parallel", 2),
        ("--parallel -1", "n_parallel", -1),
        ("-ngl 99", "n_gpu_layers", 99),
        ("-ngl auto", "n_gpu_layers", -1),
        ("--gpu-layers all", "n_gpu_layers", -2),
        ("-ngld 5", "speculative.draft.n_gpu_layers", 5),
        ("-ctk q8_0", "cache_type_k", Member("ggml_type", "GGML_TYPE_Q8_0")),
        ("-ctvd f32", "speculative.draft.cache_type_v", Member("ggml_type", "GGML_TYPE_F32")),
        ("--metrics", "endpoint_metrics", True),
        ("--no-slots", "endpoint_slots", False),
        ("--no-slots --slots", "endpoint_slots", True),
        ("--props", "endpoint_props", True),
        ("-kvu", "kv_unified", True),
        ("--no-kv-unified", "kv_unified", False),
        ("--no-kv-offload", "no_kv_offload", True),
        ("--jinja", "use_jinja", True),
        ("--no-warmup", "warmup", False),
        ("--no-webui", "ui", False),
        ("-n 16", "n_predict", 16),
        ("-s -1", "sampling.seed", 4294967295),
        ("--temp 0.5", "sampling.temp", 0.5),
        ("-lv 4", "verbosity", 4),
        ("--alias a,b", "model_alias", {"a", "b"}),
        ("--api-key a,b", "api_keys", ["a", "b"]),
        ("--spec-draft-p-min 0.6", "speculative.draft.p_min", 0.6),
        ("--draft-p-min .5", "speculative.draft.p_min", 0.5),
        ("--spec-synth-rates 0.9,0.8", "speculative.synth_rates", [0.9, 0.8]),
        ("--spec-synth-len 2.5", "speculative.synth_len", 2.5),
        ("--spec-ngram-simple-size-m 8", "speculative.ngram_simple.size_m", 8),
        ("--spec-ngram-map-k4v-min-hits 2", "speculative.ngram_map_k4v.min_hits", 2),
        ("--spec-ngram-mod-n-min 0", "speculative.ngram_mod.n_min", 0),
    ],
)
def test_an_option_sets_its_attribute(argv: str, path: str, value: object) -> None:
    assert settings(*argv.split())[path] == value


@pytest.mark.parametrize(
    ("word", "name"), [("on", "ENABLED"), ("1", "ENABLED"), ("off", "DISABLED"), ("auto", "AUTO")]
)
def test_flash_attention_takes_llama_servers_spellings(word: str, name: str) -> None:
    member = Member("llama_flash_attn_type", f"LLAMA_FLASH_ATTN_TYPE_{name}")
    assert settings("-fa", word) == {"flash_attn_type": member}


def test_every_type_and_knob_that_a_profile_knows_has_its_option() -> None:
    assert set(TYPES) == set(SPEC_TYPES)
    known = {name for flag in FLAGS for name in flag.names}
    assert {knob.flag for knob in KNOBS.values()} <= known


def test_no_spelling_belongs_to_two_options() -> None:
    spellings = [name for flag in FLAGS for name in (*flag.names, *flag.off)]
    assert len(spellings) == len(set(spellings))


def test_a_repeated_type_adds_up_and_a_none_counts_alone() -> None:
    parsed = parse(["--spec-type", "ngram-simple", "--spec-type", "draft-simple,ngram-mod"])
    assert all(item.adds for item in parsed.assignments)
    assert [len(item.value) for item in parsed.assignments] == [1, 2]  # type: ignore[arg-type]
    none = Member("common_speculative_type", "COMMON_SPECULATIVE_TYPE_NONE")
    assert settings("--spec-type", "ngram-mod,none") == {"speculative.types": [none, none]}


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        ("--no-such-flag", "error: invalid argument: --no-such-flag"),
        ("--port=80", "error: invalid argument: --port=80"),
        ("stray", "error: invalid argument: stray"),
        ("--port abc", 'error while handling argument "--port": stoi'),
        ("--port 99999999999", 'error while handling argument "--port": stoi'),
        ("--port", 'error while handling argument "--port": expected value for argument'),
        ("--temp warm", 'error while handling argument "--temp": stof'),
        ("-s x", 'error while handling argument "-s": stoul'),
        ("--spec-synth-rates 0.9,x", 'error while handling argument "--spec-synth-rates": stod'),
        (
            "-fa -m",
            "error while handling argument \"-fa\": error: unknown value for --flash-attn: '-m'",
        ),
        ("-ctk q9", 'error while handling argument "-ctk": Unsupported cache type: q9'),
        (
            "--spec-type draft",
            'error while handling argument "--spec-type": unknown speculative type: draft',
        ),
        (
            "--draft-max 8",
            (
                'error while handling argument "--draft-max": the argument has been removed.'
                " use --spec-draft-n-max or --spec-ngram-mod-n-max"
            ),
        ),
        (
            "--spec-ngram-simple-size-n 0",
            (
                'error while handling argument "--spec-ngram-simple-size-n":'
                " ngram size N must be between 1 and 1024 inclusive"
            ),
        ),
        (
            "--spec-draft-n-max -5",
            'error while handling argument "--spec-draft-n-max": invalid value',
        ),
        ("-np 0", 'error while handling argument "-np": error: invalid value for n_parallel'),
    ],
)
def test_a_bad_command_line_is_refused_in_llama_servers_words(argv: str, line: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        parse(argv.split())
    assert str(caught.value).splitlines()[0] == line


def test_what_the_engine_cannot_do_is_refused_not_ignored() -> None:
    with pytest.raises(ArgumentError, match="cannot do this; use a llama-server binary"):
        parse(["--log-file", "server.log"])


def test_version_ends_the_reading_and_help_does_not() -> None:
    assert parse(["--version", "--no-such-flag"]).action is Action.VERSION
    assert parse(["-h", "--port", "1"]).action is Action.HELP
    with pytest.raises(ArgumentError):
        parse(["-h", "--no-such-flag"])


def test_the_usage_names_every_spelling() -> None:
    text = usage()
    assert "-m,    --model FNAME                    the model to load" in text
    for flag in FLAGS:
        assert all(name in text for name in (*flag.names, *flag.off))


def test_a_command_line_is_read_without_the_engine() -> None:
    code = "import sys, spectui.embedded.__main__; print('xllamacpp' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout.strip() == "False"
