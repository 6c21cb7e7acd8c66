"""What is said by a server that runs on all the same, and what its log shows as a whole."""

from __future__ import annotations

from spectui.domain.failures.kinds import FailureClass, Remedy, patterns

RUNNING: tuple[FailureClass, ...] = (
    FailureClass(
        "vocab-mismatch",
        patterns(
            r"target and draft vocabs are not compatible(?! - tokens)",
            r"draft model (?:vocab|bos|eos|special)[\w ]{0,40} must (?:closely )?match target",
            r"draft model .{0,400}is not compatible with the target model",
        ),
        "the draft model's vocabulary is not the target's, so nothing is drafted",
        "take a smaller model of the same family and version as the draft",
        remedies=(Remedy.FROM_TEXT, Remedy.NO_SPECULATION),
    ),
    FailureClass(
        "draft-missing",
        patterns(
            r"\b(?P<type>\w[\w-]{1,30}) requires a draft (?:context|model)",
            r"(?P<type>EAGLE3|DFlash|DSpark|MTP) requires ctx_tgt and ctx_dft",
        ),
        "{type} needs a draft model and none is given, so nothing is drafted",
        "name a draft model with -md, or choose a type that drafts from the text itself",
        remedies=(Remedy.FROM_TEXT, Remedy.NO_SPECULATION),
    ),
    FailureClass(
        "cutoff-unsupported",
        patterns(r"draft has no confidence head"),
        "this draft model has no confidence for p_min to cut off at, so nothing is drafted",
        "set --spec-draft-p-min 0",
        remedies=(Remedy.NO_CUTOFF,),
    ),
    FailureClass(
        "drafting-failed",
        patterns(
            r"failed to process speculative batch",
            r"llama_process\(ctx_dft\).{0,40} failed",
            r"failed to decode draft batch",
        ),
        "requests fail because drafting does: two types share one draft context, or the draft does"
        " not belong to its type",
        "keep one type with a draft model, and give it a draft of its own kind",
        remedies=(Remedy.NO_SPECULATION,),
    ),
    FailureClass(
        "speculation-unsupported",
        patterns(
            r"speculative decod(?:ing|e) (?:is )?not supported",
            r"draft model number of sequences is incompatible",
            r"failed to initialize speculative decoding context",
        ),
        "this model's memory cannot take tokens back, or the setting does not allow it, so nothing"
        " is drafted",
        "update llama.cpp (hybrid models need a build since April 2026), or run without"
        " speculation",
        remedies=(Remedy.NO_SPECULATION,),
    ),
    FailureClass(
        "router-mode",
        patterns(
            r"starting (?:router )?server in router mode",
            r"(?P<said>model name is missing from the request)",
        ),
        "no model was given, so llama-server runs as a router and has no model of its own",
        "give the model with -m; or ask the router with ?model=NAME&autoload=false",
    ),
    FailureClass(
        "metrics-disabled",
        patterns(
            r"(?P<said>does not support metrics endpoint[^\"\\]{0,60})",
            r"request: GET /metrics \S{1,80} 501",
        ),
        "the server's counters are off, so acceptance cannot be read from /metrics",
        "start the server with --metrics",
    ),
    FailureClass(
        "api-key-rejected",
        patterns(r"(?P<said>invalid API key)", r"unauthorized: "),
        "a request came with a wrong API key, or with none",
        "give the client the key that the server was started with (--api-key, --api-key-file,"
        " LLAMA_API_KEY)",
    ),
    FailureClass(
        "context-too-large",
        patterns(
            r"request \((?P<tokens>\d{1,10}) tokens\) exceeds the available context size"
            r" \((?P<context>\d{1,10})",
            r"exceeds the available context size|exceed_context_size_error",
            r"context size has been exceeded",
            r"input \((?P<tokens>\d{1,10}) tokens\) is larger than the max context size"
            r" \((?P<context>\d{1,10})",
        ),
        "a request is longer than the context that the server gives each slot",
        "start the server with a larger -c or fewer slots (-np 1), or send shorter prompts",
    ),
    FailureClass(
        "context-too-large",
        patterns(r"n_ctx_(?:seq|per_seq) \((?P<context>\d{1,12})\) > n_ctx_train \((\d{1,12})\)"),
        "the context asked for, {context} tokens, is longer than the model was trained for",
        "take a context that the model was trained for: it costs memory and what lies beyond is"
        " gibberish",
        remedies=(Remedy.SMALLER_CONTEXT,),
    ),
    FailureClass(
        "model-wrong-kind",
        patterns(
            r"CLIP cannot be used as main model",
            r"requires ctx_other to be set",
        ),
        "the file is a part of a model (a projector or a draft), not a model that runs by itself",
        "give the model itself with -m; a projector goes to --mmproj, a draft to -md",
        loading=True,
    ),
    FailureClass(
        "gpu-missing",
        patterns(
            r"no usable GPU found",
            r"ggml_(?:cuda|hip|vulkan|sycl|metal)_init: failed to init",
            r"failed to load \S{0,300}ggml-(?:cuda|hip|vulkan|sycl|metal)",
            r"compiled without (?:GPU support|support for GPU offload)",
            r"no device of requested type|_DEVICE_NOT_FOUND",
            r"SPLIT_MODE_TENSOR needs >= 1 devices|invalid value for main_gpu",
        ),
        "llama-server found no GPU that it can use, so everything runs on the CPU",
        "take a build for this GPU and look at its driver; in a container, pass the GPU through",
    ),
)
"""Said by a server that runs on all the same."""

UNUSED = FailureClass(
    "draft-unused",
    (),
    "a draft model is loaded and nothing drafts with it",
    "add --spec-type draft-simple (since June 2026 a draft model alone turns nothing on), or leave"
    " the draft model out",
    remedies=(Remedy.TYPE, Remedy.NO_SPECULATION),
)
REJECTED = FailureClass(
    "draft-never-accepted",
    (),
    "no token of any draft was ever accepted: the two models do not belong together",
    "take a draft of the target's family, or an unbroken one; until then, run without it",
    remedies=(Remedy.FROM_TEXT, Remedy.NO_SPECULATION),
)
ZERO_LENGTH = FailureClass(
    "argument-invalid",
    (),
    "a draft length of 0 does not turn speculation off: llama-server crashes or still drafts one"
    " token",
    "use --spec-type none to turn it off, or a length of 1 or more",
    remedies=(Remedy.DEFAULT_LENGTH, Remedy.NO_SPECULATION),
)
UNKNOWN = FailureClass(
    "unknown",
    (),
    "llama-server failed for a reason that spectui does not know",
    "read the log around that line, and search llama.cpp's issues for it",
)
