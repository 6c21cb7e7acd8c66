"""An old llama-server command → a profile, and what the command really would have done.

Nothing is run, looked up or expanded here: words go in, tables of a profile come out. What is
harmless stays in ``server.args`` in today's words; what spectui sets itself, and what no
llama-server takes, is left out; every change is told.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from spectui.domain.flags import Fate, by_env, find
from spectui.domain.imported import Imported, Notice, OldCommand, is_secret
from spectui.domain.old_leftovers import args_of
from spectui.domain.old_models import models_of, sidecar_of, take_aside
from spectui.domain.old_paths import Places, program_of
from spectui.domain.old_settings import Setting, Settings, read_settings, whole
from spectui.domain.old_speculation import Drafting, settle
from spectui.domain.profile import KV_TYPES
from spectui.domain.speculation import TYPES


def looks_like(command: OldCommand) -> bool:
    """Whether these words are a llama-server's: by the program's name, or else by its flags."""
    program = program_of(command.program)
    names = {known[0].name for word in command.arguments if (known := find(word))}
    model = bool(names & {"--model", "--hf-repo", "--model-url", "--docker-repo"})
    if program.name.lower() in {"server", "server.exe", "main", "speculative", "lookup"}:
        return model  # other programs have these names too
    if program.known or _is_app(command):
        return True
    if not program.name or "$" in program.name or "%" in program.name:
        return model
    file = any(".gguf" in word.lower() for word in command.arguments)  # so it is no vLLM
    return model and file and len(names) > 3


def _is_app(command: OldCommand) -> bool:
    name = program_of(command.program).name.lower().removesuffix(".exe")
    return name == "llama" and command.arguments[:1] in {("serve",), ("server",), ("cli",)}


def import_command(command: OldCommand) -> Imported:
    """Return the profile that a command means today. Raises UsageError where it names no model."""
    command = _spoken_plainly(command)
    places = Places(command)
    program = program_of(command.program)
    found = read_settings(command.arguments, command.env)
    found.notices[:0] = command.notices
    engine, told = places.engine(program)
    found.notices += told
    fork = program.fork or _speaks_fork(found)
    take_aside(found)
    models = models_of(found, places)
    drafting = settle(found, draft=models.draft, remote=models.remote, fork=fork)
    draft = models.draft or sidecar_of(found, models, drafting.kinds)
    _unused_draft(found, draft, drafting)
    server: dict[str, object] = {"engine": engine} | _sizes(found) | _place(found, _TARGET)
    aside = _place(found, _DRAFT) if draft or drafting.with_model else _no_place(found)
    args = args_of(found, places, fork=fork, forked_program=program.fork)
    env = _environment(found, command.env)
    server |= ({"args": args} if args else {}) | ({"env": env} if env else {})
    profile: dict[str, object] = {
        "server": server,
        "models": {"target": models.target} | ({"draft": draft} if draft else {}),
        **({"draft": aside} if aside else {}),
        "speculation": _speculation(drafting),
    }
    return Imported(profile, env, tuple(dict.fromkeys([*found.notices, *places.notices()])))


def _spoken_plainly(command: OldCommand) -> OldCommand:
    """Drop what no file of text can hold, and the app's name before ``serve``."""

    def plain(word: str) -> str:
        return word.replace("\0", "").encode("utf-8", "replace").decode("utf-8")

    command = replace(
        command,
        program=plain(command.program),
        arguments=tuple(plain(word) for word in command.arguments),
        env=tuple((plain(name), plain(value)) for name, value in command.env),
        mounts=tuple((plain(host), plain(inside)) for host, inside in command.mounts),
    )
    if not _is_app(command):
        return command
    verb, folder = command.arguments[0], program_of(command.program).folder
    twin = "llama-cli" if verb == "cli" else "llama-server"
    why = f"`llama {verb}` is {twin} under another name: the profile names {folder}{twin}"
    return replace(
        command,
        program=f"{folder}{twin}",
        arguments=command.arguments[1:],
        notices=(*command.notices, Notice("program", why)),
    )


def _speaks_fork(found: Settings) -> bool:
    return any(
        item.flag.fate is Fate.FORK or (item.flag.name == "--spec-type" and ":" in item.value)
        for item in found.items
    )


def _unused_draft(found: Settings, draft: str, drafting: Drafting) -> None:
    if draft and not drafting.with_model:
        found.note(
            "no-effect",
            f"the draft model is loaded and never used: the type is {drafting.type}",
        )


_TARGET: Mapping[str, str] = {
    "gpu_layers": "--gpu-layers",
    "device": "--device",
    "kv_k": "--cache-type-k",
    "kv_v": "--cache-type-v",
}
_DRAFT: Mapping[str, str] = {
    "gpu_layers": "--spec-draft-ngl",
    "device": "--spec-draft-device",
    "kv_k": "--spec-draft-type-k",
    "kv_v": "--spec-draft-type-v",
}


def _sizes(found: Settings) -> dict[str, object]:
    result: dict[str, object] = {}
    context = _number(found, found.take("--ctx-size"))
    if context is not None and context > 0:  # 0: the model's own, which is llama-server's default
        result["context"] = min(context, 2**31 - 1)
    slots = _number(found, found.take("--parallel"))
    if slots is not None and slots > 0:
        result["parallel"] = min(slots, 1024)
    if slots is not None and slots > 1:
        found.note(
            "parallel",
            f"-np {slots} serves several requests at a time: drafting gains least then, and"
            " spectui measures one request at a time",
        )
    return result


def _number(found: Settings, item: Setting | None) -> int | None:
    if item is None:
        return None
    value = whole(item.value)
    if value is None:
        found.note("invalid-value", f"{item.text} is no number: left out")
    return value


def _place(found: Settings, names: Mapping[str, str]) -> dict[str, object]:
    result: dict[str, object] = {}
    for key, name in names.items():
        item = found.take(name)
        if item is None:
            continue
        if key == "gpu_layers":
            layers = _layers(item.value)
            if layers is None:
                found.note("invalid-value", f"{item.text} is no number of layers: left out")
            else:
                result[key] = layers
        elif key == "device":
            if item.value.strip():
                result[key] = item.value
        elif item.value in KV_TYPES:
            result[key] = item.value
        else:
            found.note("invalid-value", f"{item.text} is no type of a KV cache: left out")
    return result


def _layers(text: str) -> int | str | None:
    if text in {"auto", "all"}:
        return text
    layers = whole(text)
    if layers is None or 0 <= layers <= 10_000:
        return layers
    return "auto" if layers == -1 else "all"


def _no_place(found: Settings) -> dict[str, object]:
    for item in found.take_all(*_DRAFT.values()):
        found.note("no-effect", f"{item.text} has no effect: there is no draft model; left out")
    return {}


_VARIABLE = re.compile(r"(?!LLAMA_ARG_)[A-Za-z_][A-Za-z0-9_]*")


def _environment(found: Settings, env: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Return the variables that the profile sets for its server: no flags and no secrets."""
    result: dict[str, str] = {}
    secret: list[str] = []
    for name, value in env:
        if is_secret(name) or re.search(r"://[^/@\s]*:[^/@\s]*@", value):
            secret.append(name)
        elif by_env(name) is None and _VARIABLE.fullmatch(name):
            result[name] = value
    for name in dict.fromkeys(secret):
        found.note(
            "secret-dropped",
            f"the value of {name} is not written: set it in the shell that starts spectui if it"
            " is needed",
        )
    return result


def _speculation(drafting: Drafting) -> dict[str, object]:
    acting = {knob.key for kind in drafting.kinds for knob in TYPES[kind].knobs}
    result: dict[str, object] = {"type": drafting.type}
    tables: dict[str, dict[str, object]] = {}
    for key, value in drafting.knobs.items():
        name, dot, inner = key.partition(".")
        if key in acting and dot:
            tables.setdefault(name, {})[inner] = value
        elif key in acting:
            result[key] = value
    return result | tables
