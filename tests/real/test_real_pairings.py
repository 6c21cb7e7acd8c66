"""A draft that cannot serve its target, forced upon a real llama-server: what it says, how it ends.

Three ways: it does not start, it starts without speculation, or it dies at the first request. The
texts are kept in ``logs/``, one file a case, as ``args``, ``exit`` and the log; there the folder
that llama.cpp was built in is ``/build``. ``python tests/real/test_real_pairings.py`` writes them
again.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.real
pytest.importorskip("gguf")
if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[1] / "fakes"))

import httpx  # noqa: E402  (these come after the check for gguf and the path)
import tiny_models as tiny  # noqa: E402
from binary import find_binary  # noqa: E402
from server import FRUGAL  # noqa: E402

from spectui.adapters.gguf_file import first_difference, read_model  # noqa: E402
from spectui.domain.pairing import judge, needs_tokens  # noqa: E402

LOGS = Path(__file__).with_name("logs")
BUILT_IN = re.compile(r"\S*/llama\.cpp/(?=\S+:\d+: )")
STATUS = {"runs": None, "refuses": 1, "aborts": -signal.SIGABRT, "crashes": -signal.SIGSEGV}
NO_MTP = "context type MTP requested but model doesn't contain MTP layers"
NO_CONTEXT = "failed to initialize speculative decoding context: "
VOCABULARIES = "the target and draft vocabs are not compatible"


@dataclass(frozen=True, slots=True)
class Case:
    """One launch: ``ends`` is a key of STATUS; ``says`` is the telling text, empty for none."""

    name: str
    arguments: str
    ends: str
    says: str = ""
    speculative: bool | None = None  # /slots, None where it does not get ready
    drafts: bool = False  # after one request


CASES = [
    # the vocabulary is compared for draft-simple alone
    Case(
        "vocabulary-token",
        "-m target -md other-token --spec-type draft-simple",
        "runs",
        VOCABULARIES,
        speculative=False,
    ),
    Case(
        "vocabulary-size",
        "-m target -md more-tokens --spec-type draft-simple",
        "runs",
        VOCABULARIES,
        speculative=False,
    ),
    Case(
        "vocabulary-eagle3",
        "-m target -md eagle3-more-tokens --spec-type draft-eagle3",
        "runs",
        speculative=True,
        drafts=True,
    ),
    Case(
        "vocabulary-eagle3-own-output",
        "-m target -md eagle3-own-output --spec-type draft-eagle3",
        "aborts",
        "get_sub_batch: failed to add token ",
        speculative=True,
    ),
    # EAGLE-3 and DFlash for another target
    Case(
        "eagle3-target-width",
        "-m wide-target -md eagle3 --spec-type draft-eagle3",
        "aborts",
        "GGML_ASSERT(ggml_can_repeat(b, a)) failed",
    ),
    Case(
        "eagle3-hidden-size",
        "-m target -md eagle3-wide --spec-type draft-eagle3",
        "aborts",
        "get_sub_batch: failed to add embedding at index 0",
        speculative=True,
    ),
    Case(
        "eagle3-layers",
        "-m target -md eagle3-deep --spec-type draft-eagle3",
        "aborts",
        "EAGLE3: target layer id 5 exceeds target n_layer 3",
    ),
    Case(
        "eagle3-architecture",
        "-m closed-target -md eagle3 --spec-type draft-eagle3",
        "aborts",
        'GGML_ASSERT(t_layer_inp[il] != nullptr && "layer input tensor is null") failed',
        speculative=True,
    ),
    Case(
        "dflash-target-width",
        "-m target -md dflash-wide --spec-type draft-dflash",
        "aborts",
        "GGML_ASSERT(ggml_can_repeat(b, a)) failed",
    ),
    Case(
        "mtp-width",
        "-m mtp_target -md mtp-wide --spec-type draft-mtp",
        "aborts",
        "MTP input row width must match the target h_nextn width",
    ),
    # a file of another kind than the type
    Case(
        "eagle3-plain-draft",
        "-m target -md draft --spec-type draft-eagle3",
        "runs",
        f"{NO_CONTEXT}draft model is not eagle3 (expected 3 extract layers, got 0)",
        speculative=False,
    ),
    Case(
        "dflash-plain-draft",
        "-m target -md draft --spec-type draft-dflash",
        "aborts",
        "DFlash model has no target_layer_ids",
    ),
    Case(
        "eagle3-dspark-draft",
        "-m target -md dspark --spec-type draft-eagle3",
        "aborts",
        "get_sub_batch: failed to set the embedding of token",
        speculative=True,
    ),
    Case(
        "dflash-eagle3-draft",
        "-m target -md eagle3 --spec-type draft-dflash",
        "runs",
        "embd row width 192 does not match the decoder input 64",
        speculative=True,
    ),
    Case("mtp-plain-draft", "-m mtp_target -md draft --spec-type draft-mtp", "refuses", NO_MTP),
    Case("mtp-no-heads", "-m target --spec-type draft-mtp", "refuses", NO_MTP),
    Case("simple-sidecar", "-m mtp_target -md mtp_sidecar --spec-type draft-simple", "crashes"),
    Case("target-sidecar", "-m mtp_sidecar", "crashes"),
    Case(
        "target-eagle3",
        "-m eagle3",
        "refuses",
        "failed to create_context with model",
    ),
    # type and file do not both come
    Case("type-missing", "-m target -md draft", "runs", speculative=False),
    Case("type-missing-eagle3", "-m target -md eagle3", "runs", speculative=False),
    # said outright, none also turns off what a DFlash file would turn on by itself
    Case("type-none-dflash", "-m target -md dflash --spec-type none", "runs", speculative=False),
    Case(
        "type-none-among-others",
        "-m target -md draft --spec-type none,draft-simple",
        "runs",
        speculative=False,
    ),
    Case(
        "draft-missing-simple",
        "-m target --spec-type draft-simple",
        "runs",
        f"{NO_CONTEXT}draft-simple requires a draft context",
        speculative=False,
    ),
    Case("draft-missing-eagle3", "-m target --spec-type draft-eagle3", "runs", speculative=False),
    Case("draft-missing-dflash", "-m target --spec-type draft-dflash", "runs", speculative=False),
    Case("draft-missing-dspark", "-m target --spec-type draft-dspark", "runs", speculative=False),
    # draft-simple takes the n-gram type down with it; draft-eagle3 is only left out
    Case(
        "draft-missing-together",
        "-m target --spec-type ngram-mod,draft-simple",
        "runs",
        f"{NO_CONTEXT}draft-simple requires a draft context",
        speculative=False,
    ),
    # two types share one draft context: whatever comes second finds it used
    Case(
        "two-types-simple-eagle3",
        "-m target -md eagle3 --spec-type draft-simple,draft-eagle3",
        "runs",
        "failed to process speculative batch",
        speculative=True,
    ),
    Case(
        "two-types-simple-mtp",
        "-m mtp_target -md mtp_sidecar --spec-type draft-simple,draft-mtp",
        "runs",
        "failed to process speculative batch",
        speculative=True,
    ),
    Case(
        "two-types-dflash-dspark",
        "-m target -md dspark --spec-type draft-dflash,draft-dspark",
        "runs",
        "failed to process speculative batch",
        speculative=True,
    ),
    Case(
        "two-types-heads-and-draft",
        "-m mtp_target -md draft --spec-type draft-simple,draft-mtp",
        "refuses",
        NO_MTP,
    ),
    # knobs that no draft can follow
    Case(
        "dspark-no-confidence",
        "-m target -md dspark-no-confidence --spec-type draft-dspark --spec-draft-p-min 0.5",
        "runs",
        f"{NO_CONTEXT}DSpark draft has no confidence head: please set --spec-draft-p-min 0",
        speculative=False,
    ),
    *(
        Case(
            f"n-max-0-{kind}",
            f"{models} --spec-type draft-{kind} --spec-draft-n-max 0",
            "aborts",
            "GGML_ASSERT(n_outputs_max <= cparams.n_outputs_max) failed",
            speculative=True,
        )
        for kind, models in (
            ("simple", "-m target -md draft"),
            ("eagle3", "-m target -md eagle3"),
            ("mtp", "-m mtp_target"),
        )
    ),
    *(
        Case(
            f"n-max-0-{kind}",
            f"-m target -md {kind} --spec-type draft-{kind} --spec-draft-n-max 0",
            "runs",
            speculative=True,
        )
        for kind in ("dflash", "dspark")
    ),
    Case(
        "n-min-above-n-max",
        "-m target -md draft --spec-type draft-simple --spec-draft-n-min 5",
        "runs",
        speculative=True,
    ),
    Case(
        "p-min-2",
        "-m target -md draft --spec-type draft-simple --spec-draft-p-min 2",
        "runs",
        speculative=True,
    ),
]


@dataclass(frozen=True, slots=True)
class Outcome:
    """``status`` is None where the server still ran after one request."""

    status: int | None
    log: str
    speculative: bool | None = None
    drafted: int = 0


def write_models(folder: Path) -> dict[str, Path]:
    paths = asdict(tiny.write_family(folder))
    other = [*tiny.VOCABULARY]
    other[100] = "other"
    end = len(tiny.SPECIAL)
    more = [*tiny.VOCABULARY[:-end], *(f"t{number}" for number in range(200)), *tiny.SPECIAL]
    made = {
        "other-token": lambda out: tiny.write_draft(out, vocabulary=other),
        "more-tokens": lambda out: tiny.write_draft(out, vocabulary=more),
        "eagle3-more-tokens": lambda out: tiny.write_eagle3(out, vocabulary=more),
        "eagle3-own-output": lambda out: tiny.write_eagle3(out, vocabulary=more, own_ends=True),
        "dspark-no-confidence": lambda out: tiny.write_dspark(out, confidence=False),
        "eagle3-wide": lambda out: tiny.write_eagle3(out, target_width=96),
        "eagle3-deep": lambda out: tiny.write_eagle3(out, target_layers=(1, 5, 9)),
        "dflash-wide": lambda out: tiny.write_dflash(out, width=96),
        "mtp-wide": lambda out: tiny.write_mtp_sidecar(out, width=96),
        "wide-target": lambda out: tiny.write_target(out, width=96),
        "closed-target": lambda out: tiny.write_target(out, architecture="smollm3"),
    }
    for name, write in made.items():
        paths[name] = write(folder / f"{name}.gguf")
    return paths


def force(case: Case, models: dict[str, Path], log: Path) -> Outcome:
    """Launch, wait until it is ready, send one request, stop it."""
    binary = find_binary()
    assert binary is not None, "no llama-server: make real builds one"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [models[word].name if word in models else word for word in case.arguments.split()]
    argv = [str(binary), *FRUGAL, "--metrics", "--host", "127.0.0.1", "--port", str(port), *words]
    with (
        log.open("wb") as output,
        subprocess.Popen(
            argv,
            cwd=models["target"].parent,
            env={**os.environ, "GGML_NO_BACKTRACE": "1"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        ) as child,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30, trust_env=False) as client,
    ):
        try:
            speculative, drafted = _talk(client, child)
            status = child.wait(5) if drafted < 0 else child.poll()
        finally:
            child.terminate()
            child.wait(20)
    text = log.read_text(encoding="utf-8", errors="replace")
    return Outcome(status, BUILT_IN.sub("/build/llama.cpp/", text), speculative, max(drafted, 0))


def _talk(client: httpx.Client, child: subprocess.Popen[bytes]) -> tuple[bool | None, int]:
    """Return what /slots says and the drafted tokens of one request; -1 where it died."""
    until = time.monotonic() + 30
    while time.monotonic() < until and child.poll() is None:
        with contextlib.suppress(httpx.HTTPError):
            if client.get("/health").status_code == 200:
                break
        time.sleep(0.02)
    else:
        return None, -1
    speculative = client.get("/slots").json()[0]["speculative"]
    try:
        body = {"prompt": "abc", "n_predict": 24, "temperature": 0}
        answer = client.post("/completion", json=body)
    except httpx.HTTPError:
        return speculative, -1
    return speculative, answer.json().get("timings", {}).get("draft_n", 0)


# What the two files tell before any launch. Of all other cases the pair is fine, and what is wrong
# is the type, a knob or a file that is missing.
BEFOREHAND = {
    "vocabulary-token": "token 100 is",
    "vocabulary-size": "has 461 tokens",
    "vocabulary-eagle3": "has 461 tokens",
    "vocabulary-eagle3-own-output": "has 461 tokens",
    "eagle3-target-width": "reads a hidden size of 64, this one's is 96",
    "eagle3-hidden-size": "reads a hidden size of 96, this one's is 64",
    "eagle3-layers": "reads layer 9, and this one has 3",
    "eagle3-architecture": "llama-server may stop",
    "dflash-target-width": "reads a hidden size of 96, this one's is 64",
    "mtp-width": "reads a hidden size of 96, this one's is 64",
}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return write_models(tmp_path_factory.mktemp("pairings"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_pair_that_cannot_work_ends_as_it_is_known_to(case, models, tmp_path):
    found = force(case, models, tmp_path / "server.log")
    assert found.status == STATUS[case.ends], found.log
    assert found.speculative is case.speculative
    assert (found.drafted > 0) == case.drafts
    assert case.says in found.log
    kept = (LOGS / f"{case.name}.txt").read_text(encoding="utf-8")
    assert case.says in kept
    assert f"exit: {'still running' if found.status is None else found.status}\n" in kept


@pytest.mark.parametrize(
    "case", [case for case in CASES if " -md " in case.arguments], ids=lambda case: case.name
)
def test_what_is_wrong_with_a_pair_is_told_by_its_files(case, models):
    words = case.arguments.split()
    paths = [models[words[words.index(flag) + 1]] for flag in ("-m", "-md")]
    target, draft = map(read_model, paths)
    difference = first_difference(*paths) if needs_tokens(target, draft) else None
    found = judge(target, draft, difference)
    doubt = found.remark if "may stop" in found.remark else ""
    expected = BEFOREHAND.get(case.name, "")
    assert expected in (found.why_not or doubt)
    assert bool(expected) == bool(found.why_not or doubt)


def main() -> None:
    """Write the logs again."""
    LOGS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        models = write_models(Path(name))
        for case in CASES:
            found = force(case, models, Path(name) / "server.log")
            words = " ".join(
                models[word].name if word in models else word for word in case.arguments.split()
            )
            status = "still running" if found.status is None else found.status
            text = f"args: {words}\nexit: {status}\n---\n{found.log}"
            (LOGS / f"{case.name}.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
