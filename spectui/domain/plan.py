"""What a profile would launch, read leniently: also one that is refused can be looked at.

The profile's keys, ``server.args``, LLAMA_ARG_* variables and llama.cpp's configuration files all
set the same options; a Plan says which value each ends up with, and who set it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from spectui.domain.profile import BUILTIN, DEMO, EMBEDDED
from spectui.domain.speculation import KNOBS, OFF, TYPES, SpecType, canonical_type
from spectui.domain.text import clean

Table = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Option:
    """One of llama-server's options that matters here.

    ``variable`` is its environment variable, ``key`` the profile's key for it, ``switch`` whether
    it takes no value on the command line.
    """

    name: str
    flags: tuple[str, ...]
    variable: str = ""
    key: str = ""
    switch: bool = False


OPTIONS = (
    Option("context", ("-c", "--ctx-size"), "LLAMA_ARG_CTX_SIZE", "server.context"),
    Option("parallel", ("-np", "--parallel"), "LLAMA_ARG_N_PARALLEL", "server.parallel"),
    Option(
        "gpu_layers",
        ("-ngl", "--gpu-layers", "--n-gpu-layers"),
        "LLAMA_ARG_N_GPU_LAYERS",
        "server.gpu_layers",
    ),
    Option("device", ("-dev", "--device"), "LLAMA_ARG_DEVICE", "server.device"),
    Option("kv_k", ("-ctk", "--cache-type-k"), "LLAMA_ARG_CACHE_TYPE_K", "server.kv_k"),
    Option("kv_v", ("-ctv", "--cache-type-v"), "LLAMA_ARG_CACHE_TYPE_V", "server.kv_v"),
    Option(
        "draft_gpu_layers",
        ("--spec-draft-ngl", "-ngld", "--gpu-layers-draft", "--n-gpu-layers-draft"),
        "",
        "draft.gpu_layers",
    ),
    Option("draft_device", ("--spec-draft-device", "-devd", "--device-draft"), "", "draft.device"),
    Option(
        "draft_kv_k",
        ("--spec-draft-type-k", "-ctkd", "--cache-type-k-draft"),
        "LLAMA_ARG_SPEC_DRAFT_CACHE_TYPE_K",
        "draft.kv_k",
    ),
    Option(
        "draft_kv_v",
        ("--spec-draft-type-v", "-ctvd", "--cache-type-v-draft"),
        "LLAMA_ARG_SPEC_DRAFT_CACHE_TYPE_V",
        "draft.kv_v",
    ),
    Option("batch", ("-ub", "--ubatch-size"), "LLAMA_ARG_UBATCH"),
    Option("flash", ("-fa", "--flash-attn"), "LLAMA_ARG_FLASH_ATTN"),
    Option("fit", ("-fit", "--fit"), "LLAMA_ARG_FIT"),
    Option("mmproj", ("-mm", "--mmproj"), "LLAMA_ARG_MMPROJ"),
    Option("mmproj_url", ("-mmu", "--mmproj-url"), "LLAMA_ARG_MMPROJ_URL"),
    Option("unified", ("-kvu", "--kv-unified"), "LLAMA_ARG_KV_UNIFIED", switch=True),
    Option("full_window", ("--swa-full",), "LLAMA_ARG_SWA_FULL", switch=True),
    Option("kv_host", ("-nkvo", "--no-kv-offload"), "LLAMA_ARG_NO_KV_OFFLOAD", switch=True),
    Option("experts_host", ("-cmoe", "--cpu-moe"), "LLAMA_ARG_CPU_MOE", switch=True),
    Option("some_experts_host", ("-ncmoe", "--n-cpu-moe"), "LLAMA_ARG_N_CPU_MOE"),
    Option("tensors_elsewhere", ("-ot", "--override-tensor"), "LLAMA_ARG_OVERRIDE_TENSOR"),
)

REMOVED: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("--draft", "--draft-n", "--draft-max"), "speculation.n_max"),
        **dict.fromkeys(("--draft-min", "--draft-n-min"), "speculation.n_min"),
        "--spec-ngram-size-n": "speculation.ngram_simple.size_n",
        "--spec-ngram-size-m": "speculation.ngram_simple.size_m",
        "--spec-ngram-min-hits": "speculation.ngram_map_k4v.min_hits",
        "LLAMA_ARG_DRAFT_MAX": "speculation.n_max",
        "LLAMA_ARG_DRAFT_MIN": "speculation.n_min",
    }
)
"""Flags and variables that today's llama-server refuses to start with → the profile's key."""


@dataclass(frozen=True, slots=True)
class Outside:
    """An option that is set outside the profile. ``key`` as it is written there.

    ``source`` is a file's path, empty for the environment. ``passed_on`` tells whether the server
    sees it: spectui keeps some variables from it. A secret's ``value`` is empty.
    """

    source: str
    key: str
    value: str
    passed_on: bool = True

    @property
    def option(self) -> Option | None:
        """The option that it sets, None for one that does not matter here."""
        return _BY_WORD.get(self.key.lstrip("-").replace("_", "-").lower())

    @property
    def replacement(self) -> str:
        """The profile's key that took its place where llama-server refuses it, else empty."""
        return REMOVED.get(self.key) or REMOVED.get(f"--{self.key.replace('_', '-')}", "")


_BY_WORD: Mapping[str, Option] = MappingProxyType(
    {
        word.lstrip("-").replace("_", "-").lower(): option
        for option in OPTIONS
        for word in (*option.flags, option.variable)
        if word
    }
)


@dataclass(frozen=True, slots=True)
class Value:
    """An option's value as text, and where it comes from ("server.context", "server.args", …)."""

    text: str
    source: str


@dataclass(frozen=True, slots=True)
class Plan:
    """A profile's wishes, whatever shape it is in.

    ``type_given`` tells whether the type was written down. ``settings`` are the values below
    ``[speculation]`` by dotted key, unchecked; ``values`` the options by name, ``env`` the
    variables that the server gets besides.
    """

    engine: str = EMBEDDED
    port: int | None = None
    args: tuple[str, ...] = ()
    target: str = DEMO
    draft: str = ""
    types: tuple[str, ...] = (OFF,)
    type_given: bool = False
    settings: Table = field(default_factory=dict)
    prompts: str = BUILTIN
    tasks: tuple[str, ...] = ()
    evidence: Table = field(default_factory=dict)
    values: Mapping[str, Value] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_embedded(self) -> bool:
        """Whether the embedded engine is to run it."""
        return self.engine == EMBEDDED

    @property
    def kinds(self) -> tuple[SpecType, ...]:
        """The table's rows of its types; unknown ones are left out."""
        return tuple(TYPES[name] for name in self.types if name in TYPES)

    @property
    def types_text(self) -> str:
        """Its types in one harmless word."""
        return clean(",".join(self.types), limit=80)

    @property
    def speculates(self) -> bool:
        """Whether any type but none is set."""
        return any(name != OFF for name in self.types)

    @property
    def drafts_with_model(self) -> bool:
        """Whether a type runs a draft model or heads."""
        return any(kind.drafts_with_model for kind in self.kinds)

    def text(self, name: str) -> str:
        """Return an option's value, empty where nobody sets it."""
        value = self.values.get(name)
        return value.text if value else ""

    def number(self, name: str) -> int | None:
        """Return an option's value as a whole number, None where it is none."""
        try:
            return int(self.text(name))
        except ValueError:
            return None

    def is_on(self, name: str) -> bool:
        """Return whether a switch is on."""
        return self.text(name).lower() in {"1", "on", "true", "enabled"}

    def with_value(self, name: str, text: str) -> Plan:
        """Return a copy in which an option has another value."""
        return replace(self, values={**self.values, name: Value(text, "")})

    def setting(self, key: str) -> object:
        """Return what a knob is set to, or its default."""
        return self.settings.get(key, KNOBS[key].default)


def read_plan(data: Table, outside: Iterable[Outside] = ()) -> Plan:
    """Return what the tables in ``data`` ask for; what makes no sense is taken as not said."""
    server, models = _table(data, "server"), _table(data, "models")
    spec, workload = _table(data, "speculation"), _table(data, "workload")
    kind = _text(spec, "type", "")
    engine = _text(server, "engine", EMBEDDED)
    args = _texts(server.get("args"))
    port = server.get("port")
    # the embedded engine looks at neither variables nor configuration files
    around = () if engine == EMBEDDED else tuple(outside)
    return Plan(
        engine=engine,
        port=port if isinstance(port, int) and not isinstance(port, bool) else None,
        args=args,
        target=_text(models, "target", DEMO),
        draft=_text(models, "draft", ""),
        types=tuple(canonical_type(kind).split(",")) if kind else (OFF,),
        type_given=bool(kind),
        settings=_flat(spec),
        prompts=_text(workload, "prompts", BUILTIN),
        tasks=_texts(workload.get("tasks")),
        evidence=_table(data, "evidence"),
        values={**_outside(around), **_from_args(args), **_from_keys(data)},
        env={k: v for k, v in _table(server, "env").items() if isinstance(v, str)},
    )


def _table(data: Table, name: str) -> Table:
    table = data.get(name)
    return table if isinstance(table, Mapping) else {}


def _text(table: Table, key: str, default: str) -> str:
    value = table.get(key)
    return value if isinstance(value, str) and value.strip() else default


def _texts(value: object) -> tuple[str, ...]:
    listed = value if isinstance(value, list | tuple) else ()
    return tuple(item for item in listed if isinstance(item, str))


def _flat(table: Table) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            found |= {f"{key}.{inner}": item for inner, item in value.items()}
        elif key != "type":
            found[key] = value
    return found


def _outside(around: tuple[Outside, ...]) -> dict[str, Value]:
    # variables come after files, and later files after earlier ones: the last word stands
    ordered = sorted(around, key=lambda item: not item.source)
    return {
        item.option.name: Value(item.value, item.source or item.key)
        for item in ordered
        if item.option is not None and item.passed_on
    }


def words(args: Iterable[str]) -> Iterable[tuple[str, Option]]:
    """Yield each word of ``args`` that is one of OPTIONS' flags, with its option."""
    for arg in args:
        flag = arg.replace("_", "-") if arg.startswith("--") else arg
        option = _BY_WORD.get(flag.lstrip("-").lower()) if flag.startswith("-") else None
        if option is not None and flag in option.flags:
            yield arg, option


def _from_args(args: tuple[str, ...]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for index, arg in enumerate(args):
        for _, option in words((arg,)):
            value = "on" if option.switch else "".join(args[index + 1 : index + 2])
            found[option.name] = Value(value, "server.args")
    return found


def _from_keys(data: Table) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for option in OPTIONS:
        name, _, key = option.key.partition(".")
        value = _table(data, name).get(key) if key else None
        if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
            found[option.name] = Value(str(value), option.key)
    return found
