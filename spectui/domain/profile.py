"""The profile: what to launch, what to speculate with and what to measure.

A profile is a mapping of tables, as TOML gives it. Reading one names file, key and the allowed
values in every complaint; writing one gives back exactly what was read, so that load → export →
load is the identity. Paths are kept as the caller resolved them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from spectui.domain.errors import ProfileError, UsageError
from spectui.domain.findings import Fix
from spectui.domain.speculation import (
    INERT,
    KNOBS,
    OFF,
    TYPES,
    Number,
    Speculation,
    canonical_type,
    check,
)
from spectui.domain.tables import Reader
from spectui.domain.text import clean, nearest

TASKS = ("math", "code", "translation", "creative", "science", "rewrite")
"""The tasks of the built-in workload, in the order in which they are shown."""

EMBEDDED = "embedded"
DEMO = "demo"
BUILTIN = "builtin"
"""The source that names the prompts which come with spectui."""

KV_TYPES = ("f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl", "q6_0", "q8_KV")
"""What a KV cache may be kept in; the last two are ik_llama.cpp's."""

Table = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """Which llama-server to run, and how. ``args`` are passed on as they are.

    ``port`` None: a free one. ``env`` are variables for it besides spectui's own environment.
    ``context`` in tokens, ``parallel`` in slots, ``gpu_layers`` a number, "auto" or "all";
    ``device``, ``kv_k`` and ``kv_v`` as llama-server names them. Empty or None: its own default.
    """

    engine: str = EMBEDDED
    args: tuple[str, ...] = ()
    port: int | None = None
    env: tuple[tuple[str, str], ...] = ()
    context: int | None = None
    parallel: int | None = None
    gpu_layers: str = ""
    device: str = ""
    kv_k: str = ""
    kv_v: str = ""


@dataclass(frozen=True, slots=True)
class DraftSpec:
    """Where the draft model runs; as in ServerSpec. Empty: as llama-server does by itself."""

    gpu_layers: str = ""
    device: str = ""
    kv_k: str = ""
    kv_v: str = ""


@dataclass(frozen=True, slots=True)
class Models:
    """Model files. ``target`` may be "demo"; ``draft`` is empty where the type needs none."""

    target: str = DEMO
    draft: str = ""


@dataclass(frozen=True, slots=True)
class WorkloadSpec:
    """What to send. ``tasks`` empty: all of them. ``max_tokens`` per answer, in tokens."""

    prompts: str = BUILTIN
    tasks: tuple[str, ...] = ()
    max_tokens: int = 128
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Profile:
    """Everything that one session runs with. ``evidence`` is what an export says of its proof."""

    server: ServerSpec = field(default_factory=ServerSpec)
    models: Models = field(default_factory=Models)
    draft: DraftSpec = field(default_factory=DraftSpec)
    speculation: Speculation = field(default_factory=Speculation)
    workload: WorkloadSpec = field(default_factory=WorkloadSpec)
    evidence: Table = field(default_factory=lambda: MappingProxyType({}))

    @property
    def has_draft(self) -> bool:
        """Whether a draft model is named."""
        return bool(self.models.draft)

    def with_speculation(self, speculation: Speculation) -> Profile:
        """Return a copy that speculates otherwise; what was proved of the old one is dropped."""
        return replace(self, speculation=speculation, evidence=MappingProxyType({}))


OWNED_FLAGS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                *("-m", "--model", "-mu", "--model-url", "-hf", "-hfr", "--hf-repo"),
                *("-dr", "--docker-repo", "--models-dir", "--models-preset"),
            ),
            "models.target",
        ),
        **dict.fromkeys(
            (
                *("-md", "--model-draft", "--spec-draft-model"),
                *("-hfd", "-hfrd", "--hf-repo-draft", "--spec-draft-hf"),
            ),
            "models.draft",
        ),
        "--port": "server.port",
        **dict.fromkeys(("--spec-type", "--spec-default"), "speculation.type"),
        **dict.fromkeys(
            (
                *("--host", "--reuse-port", "--api-key", "--api-key-file", "--api-prefix"),
                *("--ssl-key-file", "--ssl-cert-file", "--no-slots", "--log-file"),
                *("--log-disable", "-h", "--help", "--usage", "--version"),
            ),
            "",
        ),
        **{knob.flag: f"speculation.{knob.key}" for knob in KNOBS.values()},
        **dict.fromkeys(("--draft-max", "--draft-n", "--draft"), "speculation.n_max"),
        **dict.fromkeys(("--draft-min", "--draft-n-min"), "speculation.n_min"),
        "--draft-p-min": "speculation.p_min",
    }
)
"""llama-server's flags that the profile sets elsewhere → where. Empty: spectui sets it itself."""


def parse_profile(
    data: Table, *, file: str = "", resolve: Callable[[str], str] = lambda path: path
) -> Profile:
    """Return the profile in ``data``; ``resolve`` makes a path of it absolute.

    Raises ProfileError naming ``file``, the key and what is allowed there.
    """
    top = Reader(file, "", data)
    top.known(("server", "models", "draft", "speculation", "workload", "evidence"))
    models = _models(Reader(file, "models", data.get("models", {})), resolve)
    evidence = Reader(file, "evidence", data.get("evidence", {})).table
    return Profile(
        server=_server(Reader(file, "server", data.get("server", {})), resolve),
        models=models,
        draft=_draft(Reader(file, "draft", data.get("draft", {}))),
        speculation=_speculation(
            Reader(file, "speculation", data.get("speculation", {})), has_draft=bool(models.draft)
        ),
        workload=_workload(Reader(file, "workload", data.get("workload", {})), resolve),
        evidence=MappingProxyType(dict(evidence)),
    )


def _server(table: Reader, resolve: Callable[[str], str]) -> ServerSpec:
    table.known(("engine", "args", "port", "env", "context", "parallel", *_PLACES))
    engine = table.text("engine", EMBEDDED)
    args = table.texts("args")
    for arg in args:
        flag = arg.partition("=")[0]
        if flag.startswith("--"):  # llama-server takes --spec_type for --spec-type
            flag = flag.replace("_", "-")
        if flag in OWNED_FLAGS:
            key = OWNED_FLAGS[flag]
            fix = (
                f"set {key} instead" if key else "spectui could not talk to the server, or read it"
            )
            raise ProfileError(table.where("args"), f"{flag} is not for args", fix)
    _only_once(table, args)
    return ServerSpec(
        # a bare name is looked up in PATH, anything with a slash is a file
        engine=resolve(engine) if "/" in engine else engine,
        args=args,
        port=table.maybe_whole("port", 1, 65535),
        env=_environment(table),
        context=table.maybe_whole("context", 1, 2**31 - 1),
        parallel=table.maybe_whole("parallel", 1, 1024),
        gpu_layers=_layers(table),
        device=table.text("device"),
        kv_k=_kv_type(table, "kv_k"),
        kv_v=_kv_type(table, "kv_v"),
    )


_PLACES = ("gpu_layers", "device", "kv_k", "kv_v")

_ALSO_IN_ARGS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "context": ("-c", "--ctx-size"),
        "parallel": ("-np", "--parallel"),
        "gpu_layers": ("-ngl", "--gpu-layers", "--n-gpu-layers"),
        "device": ("-dev", "--device"),
        "kv_k": ("-ctk", "--cache-type-k"),
        "kv_v": ("-ctv", "--cache-type-v"),
    }
)


def _only_once(table: Reader, args: tuple[str, ...]) -> None:
    """Refuse what is said twice: of two values nobody knows which one was meant."""
    for key, flags in _ALSO_IN_ARGS.items():
        twice = [flag for flag in flags if flag in args and key in table.table]
        if twice:
            why = f"{twice[0]} in server.args says it too"
            raise ProfileError(table.where(key), why, "keep one of them")


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|API_?KEY", re.IGNORECASE)


def _environment(table: Reader) -> tuple[tuple[str, str], ...]:
    inner = Reader(table.file, f"{table.name}.env", table.table.get("env", {}))
    for name, value in inner.table.items():
        shown = inner.where(clean(str(name), limit=60))
        if not _NAME.fullmatch(str(name)):
            raise ProfileError(shown, "not a variable's name")
        if not isinstance(value, str) or "\0" in value:
            raise ProfileError(shown, "its value is not a text")
        if str(name).startswith("LLAMA_ARG_"):
            fix = "set it as a key of the profile, or in server.args"
            raise ProfileError(shown, "it changes flags behind the profile's back", fix)
        if _SECRET.search(str(name)):
            fix = "leave it in spectui's own environment, from where the server gets it"
            raise ProfileError(shown, "a secret does not belong into a profile", fix)
    return tuple((str(name), str(value)) for name, value in inner.table.items())


def _draft(table: Reader) -> DraftSpec:
    table.known(_PLACES)
    return DraftSpec(
        gpu_layers=_layers(table),
        device=table.text("device"),
        kv_k=_kv_type(table, "kv_k"),
        kv_v=_kv_type(table, "kv_v"),
    )


def _layers(table: Reader) -> str:
    value = table.table.get("gpu_layers", "")
    if isinstance(value, str) and (value in {"auto", "all"} or "gpu_layers" not in table.table):
        return value
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 10_000:
        raise table.fail("gpu_layers", 'a whole number from 0, "auto" or "all"')
    return str(value)


def _kv_type(table: Reader, key: str) -> str:
    value = table.text(key)
    if value and value not in KV_TYPES:
        raise table.fail(key, f"one of {', '.join(KV_TYPES)}")
    return value


def _models(table: Reader, resolve: Callable[[str], str]) -> Models:
    table.known(("target", "draft"))
    target = table.text("target", DEMO)
    draft = table.text("draft", "")
    return Models(
        target if target == DEMO else resolve(target),
        draft if draft in {"", DEMO} else resolve(draft),
    )


def _speculation(table: Reader, *, has_draft: bool) -> Speculation:
    tables = sorted({key.partition(".")[0] for key in KNOBS if "." in key})
    plain = [key for key in KNOBS if "." not in key]
    table.known(("type", *plain, *tables))
    kind = canonical_type(table.text("type", OFF))
    for word in kind.split(","):
        if word not in TYPES:
            close = nearest(word, TYPES)
            fix = f"did you mean {close}?" if close else ""
            what = f"{clean(repr(word))} is not one of {', '.join(TYPES)}"
            raise ProfileError(table.where("type"), what, fix)
    settings: dict[str, Number] = {}
    for name in (key for key in tables if key in table.table):
        inner = Reader(table.file, f"{table.name}.{name}", table.table[name])
        for key in inner.table:
            if (dotted := f"{name}.{key}") in INERT:
                raise ProfileError(inner.where(key), INERT[dotted], "take it out")
        inner.known(key.partition(".")[2] for key in KNOBS if key.startswith(f"{name}."))
        settings |= _numbers(inner, f"{name}.")
    outer = Reader(table.file, table.name, {k: v for k, v in table.table.items() if k in plain})
    speculation = Speculation.of(kind, settings | _numbers(outer, ""))
    for key, why in check(speculation, has_draft=has_draft):
        raise ProfileError(table.where(key), why)
    return speculation


def _numbers(table: Reader, prefix: str) -> dict[str, Number]:
    found: dict[str, Number] = {}
    for key, value in table.table.items():
        knob = KNOBS[prefix + key]
        if isinstance(value, int) and not isinstance(value, bool) and not knob.integral:
            value = float(value)  # noqa: PLW2901 - p_min = 0 is as good as 0.0
        why = knob.check(value)
        if why:
            raise ProfileError(table.where(key), clean(why, limit=200))
        assert isinstance(value, int | float)  # noqa: S101 - check() has seen to it
        found[prefix + key] = value
    return found


def _workload(table: Reader, resolve: Callable[[str], str]) -> WorkloadSpec:
    table.known(("prompts", "tasks", "max_tokens", "seed"))
    prompts = table.text("prompts", BUILTIN)
    tasks = table.texts("tasks")
    if prompts == BUILTIN:
        for task in tasks:
            if task not in TASKS:
                close = nearest(task, TASKS)
                fix = f"did you mean {close}?" if close else ""
                what = f"{clean(repr(task))} is not one of {', '.join(TASKS)}"
                raise ProfileError(table.where("tasks"), what, fix)
    return WorkloadSpec(
        prompts=prompts if prompts == BUILTIN else resolve(prompts),
        tasks=tasks,
        max_tokens=table.whole("max_tokens", 128, 2, 1_000_000),
        seed=table.whole("seed", 1, 0, 2**32 - 1),
    )


def to_mapping(
    profile: Profile, *, relate: Callable[[str], str] = lambda path: path
) -> dict[str, object]:
    """Return the tables of a profile, ready for TOML; ``relate`` shortens its paths.

    Values that equal a default and were never set are left out, except the ones a reader looks
    for first (engine, target, type).
    """
    server: dict[str, object] = {"engine": profile.server.engine}
    if "/" in profile.server.engine:
        server["engine"] = relate(profile.server.engine)
    if profile.server.args:
        server["args"] = list(profile.server.args)
    if profile.server.port is not None:
        server["port"] = profile.server.port
    if profile.server.env:
        server["env"] = dict(profile.server.env)
    server |= _set(context=profile.server.context, parallel=profile.server.parallel)
    server |= _places(profile.server)
    target, draft = profile.models.target, profile.models.draft
    models = {"target": target if target == DEMO else relate(target)}
    if draft:
        models["draft"] = draft if draft == DEMO else relate(draft)
    speculation: dict[str, object] = {"type": profile.speculation.type}
    tables: dict[str, dict[str, Number]] = {}
    for key, value in profile.speculation.settings:
        name, _, inner = key.partition(".")
        if inner:
            tables.setdefault(name, {})[inner] = value
        else:
            speculation[key] = value
    spec = profile.workload
    workload: dict[str, object] = {
        "prompts": spec.prompts if spec.prompts == BUILTIN else relate(spec.prompts),
        "max_tokens": spec.max_tokens,
        "seed": spec.seed,
    }
    if spec.tasks:
        workload["tasks"] = list(spec.tasks)
    result: dict[str, object] = {
        "server": server,
        "models": models,
        **({"draft": draft_places} if (draft_places := _places(profile.draft)) else {}),
        "speculation": speculation | tables,
        "workload": workload,
    }
    if profile.evidence:
        result["evidence"] = dict(profile.evidence)
    return result


def _places(spec: ServerSpec | DraftSpec) -> dict[str, object]:
    layers = int(spec.gpu_layers) if spec.gpu_layers.isdecimal() else spec.gpu_layers
    return _set(gpu_layers=layers, device=spec.device, kv_k=spec.kv_k, kv_v=spec.kv_v)


def _set(**values: object) -> dict[str, object]:
    return {key: value for key, value in values.items() if value not in {None, ""}}


def with_setting(data: Table, setting: str, parse: Callable[[str], object]) -> dict[str, object]:
    """Return ``data`` with one ``table.key=value`` of the command line applied.

    ``parse`` turns the text of the value into a value; no text takes the key away. Raises
    UsageError for a malformed one; whether the key exists is for parse_profile to say.
    """
    path, equals, text = setting.partition("=")
    keys = path.strip().split(".")
    if not equals or not all(keys) or len(keys) < 2:
        raise UsageError(
            f"{clean(setting, limit=80)!r} is not table.key=value",
            "write for example speculation.n_max=4",
        )
    return with_value(data, path.strip(), parse(text.strip()) if text.strip() else None)


def with_value(data: Table, path: str, value: object) -> dict[str, object]:
    """Return ``data`` with the dotted key ``path`` set; None takes it away.

    Raises UsageError where something on the way is not a table.
    """
    key, _, rest = path.partition(".")
    result = dict(data)
    if not rest:
        result.pop(key, None)
        return result if value is None else {**result, key: value}
    inner = result.get(key, {})
    if not isinstance(inner, Mapping):
        raise UsageError(f"{clean(path, limit=80)}: {clean(key, limit=40)} is not a table")
    result[key] = with_value(inner, rest, value)
    return result


def with_fix(profile: Profile, fix: Fix) -> Profile:
    """Return the profile with a fix's changes. Raises ProfileError where they make no sense."""
    data: Table = to_mapping(profile)
    for path, value in fix.changes:
        data = with_value(data, path, value)
    return parse_profile({**data, "evidence": {}}, file="the fix")
