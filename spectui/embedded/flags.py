"""llama-server's flags and what each sets on xllamacpp's CommonParams: one table.

The spellings are those of ``llama-server --help``. Environment variables and configuration files,
which llama-server reads too, are not looked at: what runs is what the command line says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from spectui.embedded import values as v


@dataclass(frozen=True, slots=True)
class Assignment:
    """Set the attribute at the dotted ``path`` below CommonParams to ``value``.

    ``adds`` says to add the value to what the path holds instead: lists grow, bits are set.
    """

    path: str
    value: object
    adds: bool = False


@dataclass(frozen=True, slots=True)
class Flag:
    """One option in all its spellings.

    ``off`` are the spellings that negate it. ``metavar`` is empty where it takes no value.
    ``assign`` turns its text (``on`` or ``off`` without a value) into assignments and raises
    BadValueError.
    """

    names: tuple[str, ...]
    help: str
    assign: Callable[[str], tuple[Assignment, ...]]
    off: tuple[str, ...] = ()
    metavar: str = ""


def _value(names: str, metavar: str, path: str, convert: v.Convert, about: str) -> Flag:
    """Return an option with a value; several paths in ``path`` all get it."""

    def assign(text: str) -> tuple[Assignment, ...]:
        value = convert(text)
        return tuple(Assignment(where, value) for where in path.split())

    return Flag(tuple(names.split()), about, assign, metavar=metavar)


def _adding(names: str, metavar: str, path: str, convert: v.Convert, about: str) -> Flag:
    """Return an option that adds up when it is repeated."""

    def assign(text: str) -> tuple[Assignment, ...]:
        return (Assignment(path, convert(text), adds=True),)

    return Flag(tuple(names.split()), about, assign, metavar=metavar)


def _sampling(names: str, path: str, convert: v.Convert, about: str, bit: str = "") -> Flag:
    """Return a sampling default; ``bit`` says that a person chose it, not the model's file."""

    def assign(text: str) -> tuple[Assignment, ...]:
        chosen = v.Member("common_params_sampling_config", f"COMMON_PARAMS_SAMPLING_CONFIG_{bit}")
        mark = (Assignment("sampling.user_sampling_config", chosen, adds=True),) if bit else ()
        return (Assignment(f"sampling.{path}", convert(text)), *mark)

    return Flag(tuple(names.split()), about, assign, metavar="N")


def _switch(names: str, off: str, path: str, about: str, *, inverted: bool = False) -> Flag:
    """Return an option without a value; ``inverted`` where the attribute says the opposite."""

    def assign(state: str) -> tuple[Assignment, ...]:
        return (Assignment(path, (state == "on") != inverted),)

    return Flag(tuple(names.split()), about, assign, tuple(off.split()))


def _nothing(names: str, off: str, about: str, metavar: str = "") -> Flag:
    """Return an option that already is as the engine works."""
    return Flag(tuple(names.split()), about, lambda _: (), tuple(off.split()), metavar)


def _refused(names: str, reason: str, metavar: str = "") -> Flag:
    def assign(_: str) -> tuple[Assignment, ...]:
        raise v.BadValueError(reason)

    return Flag(tuple(names.split()), reason, assign, metavar=metavar)


def _removed(names: str, instead: str) -> Flag:
    return _refused(names, f"the argument has been removed. use {instead}", "N")


def _spec_default(_: str) -> tuple[Assignment, ...]:
    mod = "speculative.ngram_mod"
    return (
        Assignment("speculative.types", [v.spec_type("ngram-mod")], adds=True),
        Assignment(f"{mod}.n_match", 24),
        Assignment(f"{mod}.n_min", 48),
        Assignment(f"{mod}.n_max", 64),
    )


_FLASH = v.on_off_auto(
    "--flash-attn",
    on=v.Member("llama_flash_attn_type", "LLAMA_FLASH_ATTN_TYPE_ENABLED"),
    off=v.Member("llama_flash_attn_type", "LLAMA_FLASH_ATTN_TYPE_DISABLED"),
    auto=v.Member("llama_flash_attn_type", "LLAMA_FLASH_ATTN_TYPE_AUTO"),
)
_LOAD_MODES = v.members(
    "llama_load_mode",
    "LLAMA_LOAD_MODE_",
    {
        "auto": "AUTO",
        "none": "NONE",
        "mmap": "MMAP",
        "mlock": "MLOCK",
        "mmap+mlock": "MMAP_MLOCK",
        "dio": "DIRECT_IO",
    },
)
_SPLIT_MODES = v.members(
    "llama_split_mode",
    "LLAMA_SPLIT_MODE_",
    {"none": "NONE", "layer": "LAYER", "row": "ROW", "tensor": "TENSOR"},
)
_PRIORITIES = v.members(
    "ggml_sched_priority",
    "GGML_SCHED_PRIO_",
    {"-1": "LOW", "0": "NORMAL", "1": "MEDIUM", "2": "HIGH", "3": "REALTIME"},
)
_REASONING = v.members(
    "common_reasoning_format",
    "COMMON_REASONING_FORMAT_",
    {
        "none": "NONE",
        "auto": "AUTO",
        "deepseek": "DEEPSEEK",
        "deepseek-legacy": "DEEPSEEK_LEGACY",
    },
)

_COMMON = (
    _value("-t --threads", "N", "cpuparams.n_threads", v.whole,
           "CPU threads to generate with (default: one core is left free where there are few)"),
    _value(
        "-tb --threads-batch",
        "N",
        "cpuparams_batch.n_threads",
        v.whole,
        "CPU threads to read prompts with (default: as --threads)",
    ),
    _value(
        "--prio", "N", "cpuparams.priority", v.one_of(_PRIORITIES, "invalid value"), "priority"
    ),
    _value("--poll", "N", "cpuparams.poll", v.whole, "how busily threads wait, 0 to 100"),
    _value("-c --ctx-size", "N", "n_ctx", v.whole, "context size (default: 0 = the model's)"),
    _value("-n --predict --n-predict", "N", "n_predict", v.whole, "tokens to predict"),
    _value("-b --batch-size", "N", "n_batch", v.whole, "logical batch size"),
    _value("-ub --ubatch-size", "N", "n_ubatch", v.whole, "physical batch size"),
    _value("--keep", "N", "n_keep", v.whole, "tokens of the first prompt to keep"),
    _switch("--swa-full", "", "swa_full", "full-size SWA cache"),
    _value("-fa --flash-attn", "[on|off|auto]", "flash_attn_type", _FLASH, "flash attention"),
    _switch("-kvo --kv-offload", "-nkvo --no-kv-offload", "no_kv_offload", "KV cache on the GPU",
            inverted=True),
    _switch("--repack", "-nr --no-repack", "no_extra_bufts", "repack weights", inverted=True),
    _value("-ctk --cache-type-k", "TYPE", "cache_type_k", v.cache_type, "KV cache type of K"),
    _value("-ctv --cache-type-v", "TYPE", "cache_type_v", v.cache_type, "KV cache type of V"),
    _value("-lm --load-mode", "MODE", "load_mode", v.one_of(_LOAD_MODES, "invalid value"),
           "auto, none, mmap, mlock, mmap+mlock or dio"),
    _value("-ot --override-tensor", "PATTERN=TYPE,...", "tensor_buft_overrides", v.text,
           "buffer types of tensors"),
    _value("-ngl --gpu-layers --n-gpu-layers", "N", "n_gpu_layers", v.layers,
           "layers on the GPU: a number, auto or all"),
    _value("-sm --split-mode", "MODE", "split_mode", v.one_of(_SPLIT_MODES, "invalid value"),
           "how to split over GPUs"),
    _value("-ts --tensor-split", "N0,N1,...", "tensor_split", v.shares, "shares of the GPUs"),
    _value("-mg --main-gpu", "INDEX", "main_gpu", v.whole, "the GPU to use"),
    _value("-fit --fit", "[on|off]", "fit_params", v.on_off("--fit"),
           "fit unset options to the memory"),
    _value("-fitc --fit-ctx", "N", "fit_params_min_ctx", v.whole, "least context of --fit"),
    _switch("--check-tensors", "", "check_tensors", "check the tensors' values"),
    _switch("--op-offload", "--no-op-offload", "no_op_offload", "offload host operations",
            inverted=True),
    _value("-m --model", "FNAME", "model.path", v.text, "the model to load"),
    _value("-lv --verbosity --log-verbosity", "N", "verbosity", v.whole,
           "0 generic, 1 error, 2 warning, 3 info, 4 trace, 5 debug (default: 3)"),
    Flag(("-v", "--verbose", "--log-verbose"), "log everything",
         lambda _: (Assignment("verbosity", 2**31 - 1),)),
    _switch("--offline", "", "offline", "no network access"),
    _nothing("--log-prefix", "", "prefix log lines (always)"),
    _nothing("--log-timestamps", "", "time stamps in log lines (always)"),
    _nothing("--no-log-jsonl", "", "no JSON log (always)"),
    _value("--log-colors", "[on|off|auto]", "", v.on_off_auto("--log-colors", on=0, off=0, auto=0),
           "accepted; the engine decides"),
)  # fmt: skip

_SAMPLING = (
    _sampling("-s --seed", "seed", v.seed, "RNG seed (default: -1 = random)"),
    _sampling("--temp --temperature", "temp", v.decimal, "temperature", "TEMP"),
    _sampling("--top-k", "top_k", v.whole, "top-k", "TOP_K"),
    _sampling("--top-p", "top_p", v.decimal, "top-p", "TOP_P"),
    _sampling("--min-p", "min_p", v.decimal, "min-p", "MIN_P"),
    _sampling("--typical --typical-p", "typ_p", v.decimal, "locally typical sampling"),
    _sampling("--repeat-last-n", "penalty_last_n", v.whole, "window of the penalties",
              "PENALTY_LAST_N"),
    _sampling("--repeat-penalty", "penalty_repeat", v.decimal, "repeat penalty", "PENALTY_REPEAT"),
    _sampling("--presence-penalty", "penalty_present", v.decimal, "presence penalty"),
    _sampling("--frequency-penalty", "penalty_freq", v.decimal, "frequency penalty"),
    _switch("--ignore-eos", "", "sampling.ignore_eos", "go on after the end of the stream"),
)  # fmt: skip

_D = "speculative.draft"
_SPECULATIVE = (
    _value("--spec-draft-threads -td --threads-draft", "N", f"{_D}.cpuparams.n_threads", v.whole,
           "threads of the draft model (default: as --threads)"),
    _value("--spec-draft-threads-batch -tbd --threads-batch-draft", "N",
           f"{_D}.cpuparams_batch.n_threads", v.whole, "the same for prompts"),
    _value("--spec-draft-type-k -ctkd --cache-type-k-draft", "TYPE", f"{_D}.cache_type_k",
           v.cache_type, "KV cache type of K of the draft model"),
    _value("--spec-draft-type-v -ctvd --cache-type-v-draft", "TYPE", f"{_D}.cache_type_v",
           v.cache_type, "KV cache type of V of the draft model"),
    _value("--spec-draft-n-max", "N", f"{_D}.n_max", v.at_least(0, "invalid value"),
           "tokens to draft (default: 3)"),
    _value("--spec-draft-n-min", "N", f"{_D}.n_min", v.whole, "fewest tokens to draft"),
    _value("--spec-draft-p-split --draft-p-split", "P", f"{_D}.p_split", v.decimal,
           "split probability"),
    _value("--spec-draft-p-min --draft-p-min", "P", f"{_D}.p_min", v.decimal,
           "least probability of a drafted token (default: 0.00)"),
    _switch("--spec-draft-backend-sampling", "--no-spec-draft-backend-sampling",
            f"{_D}.backend_sampling", "sample the draft on the backend"),
    _value("--spec-draft-sampling", "{greedy,probabilistic}", f"{_D}.probabilistic",
           v.one_of({"greedy": False, "probabilistic": True},
                    "invalid value, must be one of: greedy, probabilistic"),
           "how the draft is sampled"),
    _value("--spec-draft-ngl -ngld --gpu-layers-draft --n-gpu-layers-draft", "N",
           f"{_D}.n_gpu_layers", v.layers, "layers of the draft model on the GPU"),
    _value("--spec-draft-device -devd --device-draft", "DEVICES", f"{_D}.devices", v.text,
           "devices of the draft model, or none for the CPU"),
    _value("--spec-draft-override-tensor -otd --override-tensor-draft", "PATTERN=TYPE,...",
           f"{_D}.tensor_buft_overrides", v.text, "buffer types of the draft's tensors"),
    _value("--spec-draft-model -md --model-draft", "FNAME", f"{_D}.mparams.path", v.text,
           "the draft model"),
    _value("--spec-synth-len", "L", "speculative.synth_len", v.double,
           "mean synthetic acceptance length (benchmarking only)"),
    _value("--spec-synth-rates", "P0,P1,...", "speculative.synth_rates", v.decimals,
           "synthetic acceptance per position (benchmarking only)"),
    _adding("--spec-type", ",".join(v.SPEC_TYPES), "speculative.types", v.spec_types,
            "types of speculative decoding, added up (default: none)"),
    Flag(("--spec-default",), "ngram-mod with 24/48/64", _spec_default),
    _value("-lcs --lookup-cache-static", "FNAME", "speculative.ngram_cache.lookup_cache_static",
           v.text, "static lookup cache"),
    _value("-lcd --lookup-cache-dynamic", "FNAME", "speculative.ngram_cache.lookup_cache_dynamic",
           v.text, "dynamic lookup cache"),
)  # fmt: skip


def _ngram_flags() -> tuple[Flag, ...]:
    size = "ngram size {} must be between 1 and 1024 inclusive"
    found = []
    for name in ("ngram-simple", "ngram-map-k", "ngram-map-k4v"):
        path, flag = f"speculative.{name.replace('-', '_')}", f"--spec-{name}"
        for letter in ("n", "m"):
            limit = v.within(1, 1024, size.format(letter.upper()))
            about = "tokens to look up (12)" if letter == "n" else "tokens to draft (48)"
            found.append(
                _value(f"{flag}-size-{letter}", "N", f"{path}.size_{letter}", limit, about)
            )
        hits = v.at_least(1, "ngram min hits must be at least 1")
        found.append(_value(f"{flag}-min-hits", "N", f"{path}.min_hits", hits, "least hits (1)"))
    mod, flag = "speculative.ngram_mod", "--spec-ngram-mod"
    for knob, about in (("min", "fewest tokens to draft (48)"), ("max", "tokens to draft (64)")):
        limit = v.within(0, 1024, f"ngram n-{knob} must be between 0 and 1024 inclusive")
        found.append(_value(f"{flag}-n-{knob}", "N", f"{mod}.n_{knob}", limit, about))
    match = v.within(1, 1024, size.format("N"))
    found.append(_value(f"{flag}-n-match", "N", f"{mod}.n_match", match, "lookup length (24)"))
    return tuple(found)


_REMOVED = (
    _removed("--draft --draft-n --draft-max", "--spec-draft-n-max or --spec-ngram-mod-n-max"),
    _removed("--draft-min --draft-n-min", "--spec-draft-n-min or --spec-ngram-mod-n-min"),
    _removed("--spec-ngram-size-n",
             "the respective --spec-ngram-*-size-n or --spec-ngram-mod-n-match"),
    _removed("--spec-ngram-size-m", "the respective --spec-ngram-*-size-m"),
    _removed("--spec-ngram-min-hits", "the respective --spec-ngram-*-min-hits"),
)  # fmt: skip

_SERVER = (
    _value("-ctxcp --ctx-checkpoints --swa-checkpoints", "N", "n_ctx_checkpoints", v.whole,
           "context checkpoints of a slot"),
    _value("-cms --checkpoint-min-step", "N", "checkpoint_min_step", v.whole,
           "tokens between checkpoints"),
    _value("-cram --cache-ram", "N", "cache_ram_mib", v.whole, "most MiB of the prompt cache"),
    _switch("-kvu --kv-unified", "-no-kvu --no-kv-unified", "kv_unified",
            "one KV cache for all slots (default: only with -np -1)"),
    _value("--kv-unified-per-slot", "N", "kv_unified_per_slot", v.whole, "context of a slot"),
    _switch("--cache-idle-slots", "--no-cache-idle-slots", "cache_idle_slots", "save idle slots"),
    _switch("--context-shift", "--no-context-shift", "ctx_shift", "shift a full context"),
    _switch("-sp --special", "", "special", "put special tokens out"),
    _switch("--warmup", "--no-warmup", "warmup", "an empty run after loading"),
    _value("-np --parallel", "N", "n_parallel", v.slots,
           "slots (default: 1; -1 = 4 slots with one KV cache, llama-server's default)"),
    _switch("-cb --cont-batching", "-nocb --no-cont-batching", "cont_batching",
            "continuous batching"),
    _value("-a --alias", "STRING", "model_alias", lambda text: set(v.names(text)),
           "names of the model, comma-separated"),
    _value("--host", "HOST", "hostnames", v.hosts, "addresses to listen on (default: 127.0.0.1)"),
    _value("--port", "PORT", "port", v.whole, "port to listen on (default: 8080)"),
    _switch("--reuse-port", "", "reuse_port", "let several sockets bind to the port"),
    _value("--api-prefix", "PREFIX", "api_prefix", v.text, "path that the server serves from"),
    _switch("--ui --webui", "--no-ui --no-webui", "ui", "the web UI"),
    _adding("--api-key", "KEY", "api_keys", v.names, "keys, comma-separated"),
    _adding("--api-key-file", "FNAME", "api_keys", v.key_lines, "a file of keys"),
    _value("--chat-template-kwargs", "STRING", "default_template_kwargs", v.template_arguments,
           "arguments of the chat template, a JSON object"),
    _value("-to --timeout", "N", "timeout_read timeout_write", v.whole, "time-out in seconds"),
    _value("--sse-ping-interval", "N", "sse_ping_interval", v.whole, "seconds between pings"),
    _value("--threads-http", "N", "n_threads_http", v.whole, "threads of the HTTP server"),
    _switch("--cache-prompt", "--no-cache-prompt", "cache_prompt", "prompt cache"),
    _value("--cache-reuse", "N", "n_cache_reuse", v.whole, "least chunk to reuse"),
    _switch("--metrics", "", "endpoint_metrics", "serve /metrics"),
    _switch("--props", "", "endpoint_props", "allow POST /props"),
    _switch("--slots", "--no-slots", "endpoint_slots", "serve /slots"),
    _switch("--jinja", "--no-jinja", "use_jinja", "Jinja chat templates"),
    _value("--reasoning-format", "FORMAT", "reasoning_format",
           v.one_of(_REASONING, "Unknown reasoning format: {}"), "where thoughts go"),
    _value("--reasoning-budget", "N", "sampling.reasoning_budget_tokens", v.whole,
           "tokens to think"),
    _value("--chat-template", "TEMPLATE", "chat_template", v.text, "chat template"),
    _value("--chat-template-file", "FNAME", "chat_template", v.content, "a file with one"),
    _switch("--prefill-assistant", "--no-prefill-assistant", "prefill_assistant",
            "go on with the assistant's last message"),
    _value("-sps --slot-prompt-similarity", "N", "slot_prompt_similarity", v.decimal,
           "how alike prompts must be to share a slot"),
)  # fmt: skip

_ELSEWHERE = "the embedded engine cannot do this; use a llama-server binary"
_UNSUPPORTED = (
    _refused("--log-disable --log-jsonl --no-log-prefix --no-log-timestamps", _ELSEWHERE),
    _refused("--log-file", _ELSEWHERE, "FNAME"),
    _refused("-dev --device", _ELSEWHERE, "DEVICES"),
    _refused("-mu --model-url -hf -hfr --hf-repo -hff --hf-file -dr --docker-repo", _ELSEWHERE,
             "SOURCE"),
    _refused("--spec-draft-hf -hfd -hfrd --hf-repo-draft", _ELSEWHERE, "SOURCE"),
)  # fmt: skip

FLAGS: tuple[Flag, ...] = (
    *_COMMON,
    *_SAMPLING,
    *_SPECULATIVE,
    *_ngram_flags(),
    *_REMOVED,
    *_SERVER,
    *_UNSUPPORTED,
)
"""Every option but ``--help`` and ``--version``, which set nothing."""
