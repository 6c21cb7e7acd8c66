"""Failures told from logs: every capture of two builds, public reports, any wrapping."""

import json
import random
import re
import tracemalloc
from pathlib import Path

import pytest

from spectui.domain.failures import CLASSES, Examiner, diagnose

TEXTS = Path(__file__).parent / "failure_texts"
CAPTURES = TEXTS / "captures"
LOGS = Path(__file__).parents[1] / "real" / "logs"
PUBLIC = sorted((TEXTS / "public").glob("*.txt"))

CAPTURED = {
    "api-key": "api-key-rejected",
    "bad-arch": "architecture-unknown",
    "bad-spec-type": "argument-invalid",
    "bad-value": "argument-invalid",
    "corrupt-model": "model-truncated",
    "draft-without-type": "draft-unused",
    "huge-context": "out-of-memory-host",
    "log-jsonl": "model-missing",
    "missing-draft": "draft-load-failed",
    "missing-model": "model-missing",
    "mtp-without-heads": "mtp-missing",
    "n-max-zero": "argument-invalid",
    "no-metrics-flag": "metrics-disabled",
    "not-gguf": "model-invalid",
    "old-draft-max": "argument-removed",
    "port-in-use": "port-in-use",
    "router-mode": "router-mode",
    "spec-type-without-draft": "draft-missing",
    "synth-wrong-count": "synthetic-invalid",
    "truncated-model": "model-truncated",
    "unknown-arg": "argument-unknown",
    "vocab-mismatch": "vocab-mismatch",
    "wrong-dflash-draft": "draft-wrong-kind",
    "wrong-eagle3-draft": "draft-wrong-kind",
}
ALSO = {
    "huge-context": ("context-too-large",),
    "missing-draft": ("model-missing",),  # which of the two models it is matters most
    "wrong-dflash-draft": ("assertion",),
}
FORCED = {
    "dflash-eagle3-draft": "draft-wrong-kind",
    "dflash-plain-draft": "draft-wrong-kind",
    "dflash-target-width": "draft-wrong-kind",
    "draft-missing-dflash": "draft-missing",
    "draft-missing-dspark": "draft-missing",
    "draft-missing-eagle3": "draft-missing",
    "draft-missing-simple": "draft-missing",
    "draft-missing-together": "draft-missing",
    "dspark-no-confidence": "cutoff-unsupported",
    "eagle3-architecture": "draft-wrong-kind",
    "eagle3-dspark-draft": "draft-wrong-kind",
    "eagle3-hidden-size": "draft-wrong-kind",
    "eagle3-layers": "draft-wrong-kind",
    "eagle3-plain-draft": "draft-wrong-kind",
    "eagle3-target-width": "draft-wrong-kind",
    "mtp-no-heads": "mtp-missing",
    "mtp-plain-draft": "mtp-missing",
    "mtp-width": "draft-wrong-kind",
    "n-max-0-dflash": "argument-invalid",
    "n-max-0-dspark": "argument-invalid",
    "n-max-0-eagle3": "argument-invalid",
    "n-max-0-mtp": "argument-invalid",
    "n-max-0-simple": "argument-invalid",
    "n-min-above-n-max": None,  # llama-server takes it, and drafts nothing
    "p-min-2": None,  # likewise
    "simple-sidecar": "segfault",
    "target-eagle3": "model-wrong-kind",
    "target-sidecar": "segfault",
    "two-types-dflash-dspark": "drafting-failed",
    "two-types-heads-and-draft": "mtp-missing",
    "two-types-simple-eagle3": "drafting-failed",
    "two-types-simple-mtp": "drafting-failed",
    "type-missing": "draft-unused",
    "type-missing-eagle3": "draft-unused",
    "type-none-among-others": None,  # the other type drafts
    "type-none-dflash": "draft-unused",
    "vocabulary-eagle3": None,  # it works: only draft-simple compares vocabularies
    "vocabulary-eagle3-own-output": "draft-wrong-kind",
    "vocabulary-size": "vocab-mismatch",
    "vocabulary-token": "vocab-mismatch",
}
"""Pairings that were forced upon a real server: ``tests/real/test_real_pairings.py`` wrote them."""

STABLE = {
    "port-in-use",
    "model-missing",
    "model-invalid",
    "model-truncated",
    "architecture-unknown",
    "tensor-missing",
    "draft-load-failed",
    "draft-missing",
    "draft-unused",
    "draft-wrong-kind",
    "vocab-mismatch",
    "mtp-missing",
    "speculation-unsupported",
    "mmproj-failed",
    "out-of-memory-host",
    "out-of-memory-gpu",
    "gpu-error",
    "argument-removed",
    "argument-unknown",
    "argument-invalid",
    "synthetic-invalid",
    "assertion",
    "killed",
    "segfault",
    "illegal-instruction",
    "library-missing",
    "not-executable",
    "router-mode",
    "metrics-disabled",
    "api-key-rejected",
    "context-too-large",
    "permission-denied",
}
UP = "0.00.671.094 I srv  llama_server: model loaded"
START = "0.00.001.415 I srv  llama_server: initializing ..."
MISSING = (
    "gguf_init_from_file: failed to open GGUF file '/m/a model.gguf' (No such file or directory)"
)


def lines_of(path):
    return path.read_text(encoding="utf-8").splitlines()


def code(*lines, status=None):
    found = diagnose(lines, status)
    return found and found.code


def public(path):
    """Return what a public report's text has on top of it, the class and exit status; the text."""
    source, expected, *lines = lines_of(path)
    assert re.match(r"# https://github\.com/\S+/(issues|pull)/\d+$", source)
    name, status = re.fullmatch(r"# class: ([\w-]+)(?:, exit: (-?\d+))?", expected).groups()
    return name, int(status) if status else None, lines


@pytest.mark.parametrize(
    "path", sorted(CAPTURES.glob("*-fail-*")), ids=lambda path: path.stem.replace("-fail-", ":")
)
def test_every_captured_failure_is_told(path):
    name = path.stem.partition("-fail-")[2]
    lines = lines_of(path)
    found = diagnose(lines)
    assert found is not None
    assert found.code == CAPTURED[name]
    assert found.also == ALSO.get(name, ())
    assert found.line in path.read_text(encoding="utf-8").replace('\\"', '"')
    said = next(line for line in lines if line.startswith("exit:"))
    status = re.search(r"(-?\d+)$", said)
    assert found.exit == (int(status.group()) if status else None)


@pytest.mark.parametrize("path", sorted(CAPTURES.glob("*-fail-*")), ids=lambda path: path.stem)
def test_without_its_head_a_capture_says_the_same_where_the_log_says_it(path):
    name = path.stem.partition("-fail-")[2]
    told_by_head_alone = {"draft-without-type", "n-max-zero", "no-metrics-flag"}
    lines = path.read_text(encoding="utf-8").partition("\n---")[2].splitlines()
    assert code(*lines) == (None if name in told_by_head_alone else CAPTURED[name])


@pytest.mark.parametrize(
    "line",
    [
        "bash: line 1: /opt/llama/llama-server: No such file or directory",
        "-bash: ./build/bin/llama-server: No such file or directory",
        "sh: 1: ./llama-server: not found",
        "zsh: no such file or directory: ./llama-server",
        "zsh: command not found: llama-server",
        "fish: Unknown command: ./llama-server",
        "env: \u2018llama-server\u2019: No such file or directory",
    ],
)
def test_a_shell_that_finds_no_program(line):
    assert code(line, status=127) == "program-missing"


@pytest.mark.parametrize("path", sorted(LOGS.glob("*.txt")), ids=lambda path: path.stem)
def test_a_forced_pairing_is_told(path):
    assert code(*lines_of(path)) == FORCED[path.stem]


@pytest.mark.parametrize("path", sorted(CAPTURES.glob("*.log")), ids=lambda path: path.stem)
def test_a_log_with_nothing_wrong_tells_of_nothing(path):
    assert diagnose(lines_of(path)) is None
    assert diagnose(lines_of(path), 0) is None
    assert diagnose(lines_of(path), -15) is None


@pytest.mark.parametrize("path", PUBLIC, ids=lambda path: path.stem)
def test_texts_of_public_reports(path):
    name, status, lines = public(path)
    assert code(*lines, status=status) == name


def test_a_trained_draft_is_blamed_also_where_the_server_died_before_it_wrote_its_error():
    # what the log's own thread has not written yet is lost when the server stops itself
    eagle = "E llama_init_from_model: failed to initialize the context: eagle3 requires ctx_other"
    stopped = "common.cpp:2225: get_sub_batch: failed to add embedding at index 0 (error -2, n = 7)"
    log = [START, f"0.00.010.923 {eagle}", UP, f"/src/llama.cpp/common/{stopped}"]
    assert code(*log, status=-6) == "draft-wrong-kind"


def test_an_assertion_with_a_trained_draft_is_blamed_on_it_only_where_sizes_do_not_fit():
    command = "args: -m t.gguf -md d.gguf --spec-type draft-eagle3"
    up = "0.58.099.454 I common_specu: adding speculative implementation 'draft-eagle3'"
    failed = "/src/ggml.c:2273: GGML_ASSERT({}) failed"
    assert code(command, up, failed.format("ggml_can_repeat(b, a)")) == "draft-wrong-kind"
    assert code(command, up, failed.format("src_ss[0].axis != SPLIT_AXIS_1")) == "assertion"


@pytest.mark.parametrize("stem", ["permission-2024", "permission-library"])
def test_the_file_that_may_not_be_read_is_named(stem):
    _, _, lines = public(TEXTS / "public" / f"{stem}.txt")
    assert re.search(r"the file /\S+(?:gguf|so) may not be read", diagnose(lines).what)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("llama_model_load: error loading model: it is Tuesday", "it is Tuesday"),
        ("E srv load_model: failed to load model, 'm.gguf'", "'m.gguf'"),
        ("main: error: unable to load model", "unable to load model"),
    ],
)
def test_a_server_that_gives_up_for_a_reason_nobody_knows_has_failed(line, shown):
    found = diagnose([line])
    assert found.code == "unknown"
    assert shown in found.line
    assert code(line, UP) is None


SAID = "CUDA error: out of memory, exit status 137, error: invalid argument: --x"


@pytest.mark.parametrize(
    "lines",
    [
        [f'0.01.362.033 D Parsed message: {{"role":"assistant","content":"{SAID}"}}'],
        [f'srv log_server_r: request:  {{"messages":[{{"content":"{SAID}, Invalid API Key"}}]}}'],
        [f'VERB [log_server_request] request: {{"prompt":"{SAID}"}}'],
        [f'srv send: data stream, to_send: data: {{"content":"{SAID}"}}'],
        ["0.01.000.000 D chat: prompt='Why", SAID, "failed to load model", "?'"],
        ["0.01.000.000 D slot: next token: 198 '", SAID],
    ],
)
def test_what_people_and_models_write_is_no_failure(lines):
    assert code(START, UP, *lines) is None


def test_after_what_people_write_the_server_is_heard_again():
    lines = [START, UP, "0.01.000.000 D chat: prompt='Why", "failed to load model"]
    assert code(*lines, "/src/ggml.c:1: GGML_ASSERT(x) failed") == "assertion"
    assert code(*lines, "0.02.000.000 E CUDA error: out of memory") == "out-of-memory-gpu"
    refused = 'srv log_server_r: response: {"error":{"message":"Invalid API Key"}}'
    assert code(START, UP, refused) == "api-key-rejected"


def test_a_build_without_loadable_backends_says_so_of_each_and_runs():
    # https://github.com/ggml-org/llama.cpp/issues/23469
    line = "E load_backend: failed to find ggml_backend_init in build/libggml-cpu.so"
    assert code(START, line, line.replace("cpu", "cuda")) is None


def test_there_are_many_public_texts_and_they_cover_every_kind_of_gpu():
    assert len(PUBLIC) >= 12
    text = "".join(path.read_text(encoding="utf-8") for path in PUBLIC)
    for word in ("cudaMalloc", "ROCm", "vulkan", "metal", "hipMalloc"):
        assert word in text


def test_every_stable_name_is_in_the_table():
    assert not STABLE - {known.name for known in CLASSES}


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("permission-denied", MISSING.replace("No such file or directory", "Permission denied")),
        ("model-invalid", MISSING.replace("No such file or directory", "Is a directory")),
        ("model-invalid", "gguf_init_from_reader: failed to read magic"),
        ("model-truncated", "gguf_init_from_reader: failed to read key-value pairs"),
        ("tensor-missing", "llama_model_load: error loading model: missing tensor 'output.weight'"),
        (
            "tensor-missing",
            "error loading model: check_tensor_dims: tensor 'a.weight' has wrong shape; expected 1",
        ),
        ("speculation-unsupported", "srv load_model: speculative decoding not supported by this"),
        ("assertion", 'ggml.c:42: GGML_ASSERT(a == b && "no") failed'),
        ("segfault", "./run.sh: line 3: 4711 Segmentation fault      (core dumped) ./llama-server"),
        ("killed", "./run.sh: line 3: 4711 Killed                  ./llama-server -m x"),
        ("out-of-memory-host", "kernel: Out of memory: Killed process 4711 (llama-server)"),
        ("out-of-memory-host", "terminate called after throwing 'std::bad_alloc'"),
        ("not-executable", "bash: ./llama-server: Permission denied"),
        ("not-executable", "bash: ./llama-server: cannot execute binary file: Exec format error"),
        ("program-missing", "bash: llama-server: command not found"),
        ("api-key-rejected", "srv operator(): unauthorized: Invalid API Key"),
        ("metrics-disabled", "srv log_server_r: done request: GET /metrics 127.0.0.1 501"),
        ("router-mode", "srv llama_server: starting server in router mode. models will be"),
        ("disk-full", "write error: No space left on device"),
        ("draft-missing", "spec.cpp: failed to initialize: draft-eagle3 requires a draft context"),
        ("cutoff-unsupported", "DSpark draft has no confidence head: please set p-min 0"),
        ("gpu-missing", "warning: no usable GPU found, --gpu-layers option will be ignored"),
        ("gpu-missing", "ggml_cuda_init: failed to initialize CUDA: unknown error"),
        ("argument-invalid", "error: unknown value for --flash-attn: '--port'"),
        ("argument-unknown", "error: unknown argument: --spec-type"),
        ("port-in-use", "bind: Address already in use"),
        ("cache-type-invalid", "llama_init: quantized V cache requires flash_attn to be enabled"),
        ("download-failed", "common_download_file_single: curl_easy_perform() failed"),
        ("model-wrong-kind", "CLIP cannot be used as main model, use it with --mmproj instead"),
    ],
)
def test_further_texts(name, line):
    assert code(line) == name


@pytest.mark.parametrize(
    ("status", "name"),
    [
        (-9, "killed"),
        (137, "killed"),
        (-11, "segfault"),
        (139, "segfault"),
        (-4, "illegal-instruction"),
        (132, "illegal-instruction"),
        (-6, "assertion"),
        (134, "assertion"),
        (-7, "crashed"),
        (126, "not-executable"),
        (127, "library-missing"),
        (3221225477, "segfault"),
        (-1073741819, "segfault"),
        (3221225785, "library-missing"),
        (-1073741795, "illegal-instruction"),
        (1, "unknown"),
        (0, None),
        (-15, None),
        (143, None),
        (130, None),
        (None, None),
    ],
)
def test_an_exit_status_that_the_log_does_not_explain(status, name):
    found = diagnose([START, "0.00.002.000 I cmn  init: fine"], status)
    assert (found and found.code) == name
    if found:
        assert found.exit == status
        assert found.line == "cmn  init: fine"


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("exit: -11", -11),
        ("exit status 139", 139),
        ("runner has terminated: exit status 0xc0000005", 0xC0000005),
        ("llama-1 exited with code 137", 137),
        ("[WARN] <qwen> ExitError >> exit status 134, exit code: 134", 134),
        ("llama.service: Main process exited, code=killed, status=9/KILL", -9),
        ("llama.service: Main process exited, code=dumped, status=6/ABRT", -6),
        ("   Main PID: 10778 (code=dumped, signal=SEGV)", -11),
        ("llama.service: Main process exited, code=exited, status=132/n/a", 132),
        ("Exited (139) 3 minutes ago", 139),
    ],
)
def test_an_exit_status_in_the_log_itself(line, status):
    found = diagnose([START, "0.00.002.000 I cmn  init: fine", line])
    assert found is not None
    assert found.exit == status
    assert found.code in {"killed", "segfault", "assertion", "illegal-instruction"}


def test_a_status_that_is_given_counts_more_than_one_in_the_log():
    found = diagnose([MISSING, "llama-1 exited with code 1"], 2)
    assert (found.code, found.exit) == ("model-missing", 2)


@pytest.mark.parametrize(
    "wrapped",
    [
        "0.00.007.666 E {}",
        "12.59.007.666 E {}",
        "{}",
        "{}\r\n",
        "E {}",
        "\x1b[31m{}\x1b[0m",
        "\x1b[1;31m0.00.007.666 E \x1b[0m{}\x1b[0m\n",
        "llama-1  | {}",
        "llama-1  | 0.00.007.666 E {}",
        "Jan 26 17:50:35 my-host llama-server[1418]: {}",
        "2026-11-30T12:00:00.123456+01:00 my-host llama-server[1418]: 0.00.007.666 E {}",
        "llama-server[123]: {}",
        "2026-11-30T12:00:00.123456789Z stderr F 0.00.007.666 E {}",
        "2026-11-30 12:00:00 {}",
        "[52717] 0.00.007.666 E {}",
        "[llamacpp-router stdout] [52717] 0.00.007.666 E {}",
        "[INFO] {}",
    ],
)
def test_a_line_in_any_wrapping_is_told_and_shown_without_it(wrapped):
    found = diagnose([wrapped.format(MISSING)])
    assert found is not None
    assert found.code == "model-missing"
    assert found.line == MISSING
    assert "/m/a model.gguf" in found.what


@pytest.mark.parametrize(
    "line",
    [
        {"type": "log", "time": 4696, "level": "error", "msg": MISSING + "\n"},
        {"log": f"0.00.007.666 E {MISSING}\n", "stream": "stderr", "time": "2026-11-30T12:00:00Z"},
        {"level": "ERR", "msg": MISSING, "timestamp": 1713334952},
    ],
)
def test_json_lines(line):
    assert diagnose([json.dumps(line)]).line == MISSING


@pytest.mark.parametrize("line", ["{", '{"msg": 3}', '{"msg": null}', "[1]", "{}", '{"log": "{"}'])
def test_json_of_another_make_is_no_failure(line):
    assert diagnose([line]) is None


def test_an_empty_log_tells_of_nothing():
    assert diagnose([]) is None
    assert diagnose(["", "\n", "  "]) is None


def test_the_last_start_counts():
    failed = [START, f"0.00.004.000 E {MISSING}", "0.00.005.000 E srv: exiting due to model error"]
    fine = [START, UP]
    assert code(*failed) == "model-missing"
    assert code(*failed, *fine) is None
    assert code(*fine, *failed) == "model-missing"
    assert code(*failed, START, "0.00.004.000 I loading") is None
    assert code(*failed, "error: invalid argument: --oops") == "argument-unknown"
    assert diagnose([*failed, "error: invalid argument: --oops"]).also == ()


def test_stamps_that_go_back_are_another_start():
    first = f"0.08.004.000 E {MISSING}"
    assert code(first, "0.00.001.000 W something", UP) is None
    assert code(first, "0.08.003.999 E other") == "model-missing"  # threads overtake each other


def test_what_a_server_has_overcome_is_no_failure():
    tight = "0.00.100.000 E alloc_tensor_range: failed to allocate CUDA0 buffer of size 99"
    assert code(START, tight) == "out-of-memory-gpu"
    assert code(START, tight, UP) is None
    later = "CUDA error: out of memory"
    assert code(START, tight, UP, later, status=-6) == "out-of-memory-gpu"


def test_repeats_and_warnings_are_passed_over():
    start = [
        START,
        "0.00.100.000 E common_fit_params: encountered an error while trying to fit params to",
        "0.00.200.000 W operator(): failed to measure the memory of the extra model: failed to",
        "0.00.300.000 E llama: X requires ctx_other to be set (this warning is normal during",
    ]
    assert code(*start, UP) is None


def test_the_cause_comes_first_and_the_rest_beside_it():
    found = diagnose(
        [
            "0.00.1 x",
            "E spec common_specu: the target and draft vocabs are not compatible",
            "CUDA error: out of memory",
            "/src/ggml-cuda.cu:75: CUDA error",
        ],
        -6,
    )
    assert found.code == "out-of-memory-gpu"
    assert found.also == ("vocab-mismatch",)  # the abort is the same failure once more


def test_translated_vocabularies_of_2025_are_no_mismatch():
    assert (
        code("the target and draft vocabs are not compatible - tokens will be translated") is None
    )


LOADED = "0.00.476.656 I common_speculative_init_result: loading draft model 'tiny.gguf'"
TIMING = "0.01.000.000 I slot print_timing: id 0 |        eval time =  272.77 ms /   {} tokens (x)"
COMMAND = "$ ./llama-server -m target.gguf -md tiny.gguf"


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        ([COMMAND, START, LOADED, UP], "draft-unused"),
        ([f"{COMMAND} --spec-type ngram-simple", START, LOADED, UP], "draft-unused"),
        ([f"{COMMAND} --spec-type draft-simple", START, LOADED, UP], None),
        ([f"{COMMAND} --spec-type=ngram-mod,draft-simple", START, LOADED, UP], None),
        ([COMMAND.replace("tiny", "mtp-tiny"), START, UP], None),  # used unasked
        ([COMMAND, START, LOADED], None),  # not up yet
        ([COMMAND, "build: 5172 (eb1776b1) with cc", LOADED[13:], "main: model loaded"], None),
        ([START, LOADED, UP], None),  # it may still draft
        ([START, LOADED, UP, TIMING.format(16)], None),
        ([START, LOADED, UP, TIMING.format(200)], "draft-unused"),
        (["llama-server -m t --spec-type draft-eagle3", START, UP], "draft-missing"),
        (["llama-server -m t --spec-type draft-mtp", START, UP], None),
        ([f"{COMMAND} --spec-type draft-simple --spec-draft-n-max 0", START], "argument-invalid"),
    ],
)
def test_a_draft_that_nothing_uses(lines, name):
    assert code(*lines) == name


def test_drafts_of_which_none_is_ever_accepted():
    line = "0.02.000.000 I slot print: draft acceptance = 0.00000 (    0 accepted /   {} generated)"
    up = [START, LOADED, UP]
    assert code(*up, line.format(14)) is None  # chance
    assert code(*up, *[line.format(100)] * 3) == "draft-never-accepted"
    one = line.format(100).replace("    0 acc", "    1 acc")
    assert code(*up, *[line.format(100)] * 3, one) is None


def test_no_key_of_a_command_line_is_shown():
    found = diagnose(
        ["args: -m t --api-key hunter2 --hf-token=hunter2 --spec-type draft-dflash", START, UP]
    )
    assert found.code == "draft-missing"
    assert "hunter2" not in repr(found)


def test_sentences_are_filled_in_and_short_enough_to_read():
    found_all = [diagnose(lines, status) for _, status, lines in map(public, PUBLIC)]
    found_all += [diagnose(lines_of(path)) for path in CAPTURES.glob("*-fail-*")]
    for found in found_all:
        assert found is not None
        for sentence in (found.what, found.advice):
            assert "{" not in sentence
            assert not sentence.endswith(".")
            assert 10 < len(sentence) < 260
        assert "\x1b" not in found.line
        assert len(found.line) <= 302


def test_a_long_line_is_shown_around_what_tells():
    found = diagnose(["x" * 1000 + " ErrorOutOfDeviceMemory " + "y" * 5_000_000])
    assert found.code == "out-of-memory-gpu"
    assert "ErrorOutOfDeviceMemory" in found.line
    assert len(found.line) <= 302


def test_any_bytes_are_read_and_hostile_text_is_shown_harmless():
    dice = random.Random(3)
    words = [
        b"error ",
        b"failed to open ",
        b"draft model ",
        b"'",
        b"\x1b]0;",
        b"{",
        b"0.00.1",
        b"\xff",
    ]
    for _ in range(300):
        line = b"".join(dice.choice([*words, dice.randbytes(3)]) for _ in range(40))
        diagnose([line.decode("utf-8", "replace")])
    found = diagnose(["error: invalid argument: --a\x1b]0;owned\x07\u202eb"])
    assert found.line == "error: invalid argument: --ab"


@pytest.mark.parametrize(
    "bait",
    [
        *("error ", "failed to open ", "draft model ", "/a.cpp:1: ", "exec ", "n_ctx_seq (", "'"),
        *("CUDA error at ", '{"msg":', "tensor '", "synthetic acceptance ", "\x1b[31m", "a: b"),
        *("[1] | ", "failed to load ", "llama-server -", "llama-server ", "prompt", "request: "),
    ],
)
def test_no_line_takes_long(bait):
    diagnose([bait * (200_000 // len(bait))] * 20)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_log():
    dice = random.Random(5)
    size = 0
    tracemalloc.start()
    examiner = Examiner()
    for _ in range(8_000):
        line = f"unknown {''.join(dice.choices('abcdefghij', k=8))} failed {'x' * 350}"
        size += len(line)
        examiner.feed(line)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < size / 2
