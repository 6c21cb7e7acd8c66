"""What a preflight or a survey may return, for the screens that show it."""

from __future__ import annotations

from dataclasses import replace

from spectui.domain.findings import Finding, Fix, Severity
from spectui.domain.fitting import Fit
from spectui.domain.memory import Estimate, Part
from spectui.domain.models import (
    BrokenModel,
    ModelFacts,
    ModelKind,
    SearchedFolder,
    TokenDifference,
    Vocabulary,
)
from spectui.domain.pairing import Survey, candidates, suggest
from spectui.domain.preflight import Preflight, Question, Reply

MIB, GIB = 2**20, 2**30
HOSTILE = "[bold red]x[/] \x1b[2J\x1b]0;owned\x07 \u202eevil [@click=app.exit]click[/]"

TYPE_NONE = Finding(
    "draft-unused",
    Severity.BLOCKER,
    "the type is none, but a draft model is given: it would be loaded and never used",
    "",
    (
        Fix("set the type to draft-simple", (("speculation.type", "draft-simple"),)),
        Fix("leave the draft model out", (("models.draft", None),)),
    ),
)
PARALLEL = Finding(
    "parallel",
    Severity.WARNING,
    "parallel is 4: with several requests at work there is little idle time left to draft in",
    "measure with as many as there will be",
    (Fix("one slot", (("server.parallel", 1),)),),
)
PORT = Finding("port-free", Severity.GOOD, "port 8080 is free")


def questions(fits: Reply = Reply.YES) -> tuple[Question, ...]:
    return (
        Question("fits", "Does it all fit on the GPU?", fits, "about 5.42 GiB of 23.1 GiB free"),
        Question(
            "predictable",
            "Is the task predictable?",
            Reply.UNKNOWN,
            "code, rewrite, math and translation are, creative is not, science lies between:"
            " look at each task by itself",
        ),
        Question(
            "single",
            "Is one request at a time acceptable?",
            Reply.YES,
            "spectui sends one at a time (one slot); for many users at once measure with them",
        ),
        Question("draft", "Is there a fitting draft?", Reply.YES, "tiny-Q8_0.gguf fits"),
        Question(
            "measured",
            "Has it been measured?",
            Reply.NO,
            "there is no record of it: run `spectui measure PROFILE`",
        ),
    )


def estimate(scale: float = 1.0, *, host: int = 0, unknown: tuple[str, ...] = ()) -> Estimate:
    def part(name: str, size: int) -> Part:
        return Part(name, round(size * scale), host if name == "target weights" else 0)

    parts = (
        part("target weights", int(3.9 * GIB)),
        part("target KV cache", 896 * MIB),
        part("target compute", 310 * MIB),
        part("draft weights", 380 * MIB),
        part("draft KV cache", 112 * MIB),
        part("draft compute", 48 * MIB),
    )
    return Estimate(parts, 8192, whole=not host, unknown=unknown)


def fit(scale: float = 1.0, free: int | None = int(23.1 * GIB), **more) -> Fit:
    found = estimate(scale, **more)
    room = None if free is None else free - GIB
    fits = None if room is None else found.gpu <= room
    return Fit(found, on_gpu=True, free=free, room=room, fits=fits, why="")


def checked(*findings: Finding, fit: Fit | None = None, fits: Reply = Reply.YES) -> Preflight:
    return Preflight(questions(fits), findings, fit.estimate if fit else None, fit)


def fine() -> Preflight:
    return checked(PORT, fit=fit())


def trouble() -> Preflight:
    return checked(TYPE_NONE, PARALLEL, PORT, fit=fit())


def too_large() -> Preflight:
    large = fit(2.0, free=8 * GIB)
    finding = Finding(
        "out-of-memory-gpu",
        Severity.BLOCKER,
        "it will not fit on the GPU, by an estimate: about 10.9 GiB of 8.00 GiB free,"
        " 1.00 GiB kept free: the launch may fail for want of GPU memory",
        "a smaller quantisation, context or draft; or close what else uses the GPU",
        (
            Fix("a context of 2048", (("server.context", 2048),)),
            Fix("a KV cache of q8_0", (("server.kv_k", "q8_0"), ("server.kv_v", "q8_0"))),
            Fix("19 layers on the GPU", (("server.gpu_layers", 19),)),
        ),
    )
    return checked(finding, PORT, fit=large, fits=Reply.NO)


def twenty() -> Preflight:
    many = tuple(
        replace(PARALLEL, code=f"warning-{n}", what=f"finding {n} of twenty") for n in range(1, 21)
    )
    return checked(*many, fit=fit())


def hostile() -> Preflight:
    finding = Finding(
        HOSTILE, Severity.BLOCKER, HOSTILE, HOSTILE, (Fix(HOSTILE, (("models.draft", None),)),)
    )
    asked = tuple(replace(question, why=HOSTILE) for question in questions())
    return Preflight(asked, (finding,))


# -- models ----------------------------------------------------------------------------------------

QWEN = Vocabulary("gpt2", "qwen2", 151_936, bos=None, eos=151_645, add_bos=False, add_eos=False)
LLAMA = Vocabulary("gpt2", "llama-bpe", 128_256, bos=128_000, eos=128_009, add_bos=True)


def model(path: str, parameters: float, **more) -> ModelFacts:
    plain = {
        "size": int(parameters * 0.6),
        "architecture": "qwen3",
        "quantisation": "Q4_K_M",
        "vocabulary": QWEN,
        "embedding": 5120,
        "layers": 64,
    }
    return ModelFacts(path, files=(path,), parameters=int(parameters), **{**plain, **more})


TARGET = model("/models/Qwen3-32B-Q4_K_M.gguf", 32.8e9)
DRAFTS = (
    model("/models/Qwen3-4B-Q4_K_M.gguf", 4.0e9),
    model("/models/Qwen3-0.6B-Q8_0.gguf", 0.6e9, quantisation="Q8_0"),
    model("/models/tiny Q8_0", 1.7e9, quantisation="Q8_0"),
    model(
        "/models/Qwen3-32B-EAGLE3.gguf",
        0.9e9,
        kind=ModelKind.EAGLE3,
        architecture="eagle3",
        target_layers=(2, 32, 61),
        target_embedding=5120,
    ),
    model("/models/Qwen3-14B-Q4_K_M.gguf", 14.8e9),
)
OTHERS = (
    model("/models/Llama-3.2-1B-Instruct-Q8_0.gguf", 1.2e9, vocabulary=LLAMA, architecture="llama"),
    model("/models/mmproj-F16.gguf", 0.4e9, kind=ModelKind.PROJECTOR),
    model("/models/Qwen3-1.7B-odd.gguf", 1.7e9),
)


def survey(target: ModelFacts = TARGET, others=(*DRAFTS, *OTHERS), **more) -> Survey:
    differences = {"/models/Qwen3-1.7B-odd.gguf": TokenDifference(271, "\n\n", "\r\n")}
    judged = candidates(target, others, differences)
    return Survey(
        target,
        tuple(one for one in judged if not one.why_not),
        tuple(one for one in judged if one.why_not),
        suggest(target, judged),
        **more,
    )


SEARCHED = (
    SearchedFolder("/models", "beside the target"),
    SearchedFolder("/home/me/.cache/llama.cpp", "llama.cpp's cache", "not there"),
    SearchedFolder("/mnt/big", "given", "permission denied"),
)


def nothing_found() -> Survey:
    return survey(others=(), searched=SEARCHED)


def broken_too() -> Survey:
    broken = (
        BrokenModel("/models/half.gguf", 1000, "model-truncated", "it ends in its tensors"),
        BrokenModel(f"/models/{HOSTILE}.gguf", 10, "model-invalid", HOSTILE),
    )
    return survey(broken=broken)


def hundreds(count: int = 600) -> Survey:
    others = [
        model(f"/models/draft-{n:03}.gguf", 3e9 + n * 1e6, vocabulary=QWEN if n % 3 else LLAMA)
        for n in range(count)
    ]
    return survey(others=others)
