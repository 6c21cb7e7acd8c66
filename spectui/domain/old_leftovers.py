"""What is left of an old command once models and drafting are taken out → ``server.args``."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from spectui.domain.flags import RENAMED, Fate, find
from spectui.domain.imported import shown
from spectui.domain.old_paths import PATH_FLAGS, Places
from spectui.domain.old_settings import HIDDEN, Setting, Settings
from spectui.domain.profile import OWNED_FLAGS

_OURS = frozenset(
    {
        *("--host", "--port", "--reuse-port", "--api-prefix", "--metrics", "--slots"),
        *("--ssl-key-file", "--ssl-cert-file", "--api-key-file", "--log-file", "--log-disable"),
        *("--log-jsonl", "--log-colors", "--log-prefix", "--log-timestamps", "--help", "--version"),
        *("--cache-list", "--completion-bash", "--list-devices", "--models-dir", "--models-preset"),
        *("--models-max", "--models-autoload"),
    }
)
"""Flags that spectui sets itself, or that would keep it from talking to its server."""

_LOADING = ("--load-mode", "--mmap", "--mlock", "--direct-io")

_WHY: Mapping[str, str] = MappingProxyType(
    {
        "--ctx-size-draft": "the draft's context follows the target's today",
        "--spec-draft-ctx-size": "the draft's context follows the target's today",
        "--spec-draft-replace": "tokens are no longer translated between vocabularies",
        "--spec-ngram-check-rate": "every token is looked up today",
        "--checkpoint-every-n-tokens": "--checkpoint-min-step is what there is today",
        "--grp-attn-n": "self-extend was taken out",
        "--grp-attn-w": "self-extend was taken out",
        "--slots-endpoint-disable": "spectui needs /slots",
        "--defrag-thold": "llama-server takes it and does nothing with it",
    }
)
"""Why a flag has no successor, where there is something to say."""

_FORK_HAS = frozenset({"--ctx-size-draft", "--p-split", "--mmap", "--mlock", "--dump-kv-cache"})
"""Flags that are gone from llama.cpp and still are ik_llama.cpp's."""


def args_of(found: Settings, places: Places, *, fork: bool, forked_program: bool) -> list[str]:
    """Take everything out of ``found`` and return what stays in ``server.args``.

    ``fork`` says that the command speaks ik_llama.cpp's dialect, ``forked_program`` that its
    program's path says so.
    """
    loading = [] if fork else _load_mode(found)
    sorted_out = _Sorted(fork)
    items, found.items = found.items, []
    for item in items:
        _sort(found, places, item, sorted_out)
    _tell(found, sorted_out, forked_program=forked_program)
    return [*sorted_out.args, *loading]


class _Sorted:
    """Where each leftover went."""

    def __init__(self, fork: bool) -> None:  # noqa: FBT001 - one switch, named at the one caller
        self.fork = fork
        self.args: list[str] = []
        self.ours: list[str] = []
        self.secret: list[str] = []
        self.forks: list[str] = []
        self.others: list[str] = []


def _sort(found: Settings, places: Places, item: Setting, out: _Sorted) -> None:
    name, fate = item.flag.name, item.flag.fate
    if name in HIDDEN:
        if not item.from_env:  # a variable is told with the other variables
            out.secret.append(item.written)
    elif name in _OURS or any(word in OWNED_FLAGS for word in (*item.flag.names, *item.flag.off)):
        out.ours.append(item.written)
    elif fate is Fate.TODAY:
        _keep(found, places, item, out)
    elif out.fork and (fate is Fate.FORK or name in _FORK_HAS):
        out.forks.append(item.written)
        _keep(found, places, item, out)
    elif name in RENAMED:
        found.note("renamed", f"{item.written} is {RENAMED[name]} today")
        out.args += [RENAMED[name], *item.values]
    elif fate is Fate.OTHER:
        out.others.append(item.written)
    else:
        code = "ignored" if fate is Fate.IGNORED else "removed"
        ends = "; today's llama-server does not start with it" if code == "removed" else ""
        why = f": {_WHY[name]}" if name in _WHY else ""
        if not (item.from_env and code == "removed"):  # that it is ignored is already told
            found.note(code, f"{item.written} is left out{why}{ends}")


def _keep(found: Settings, places: Places, item: Setting, out: _Sorted) -> None:
    name = item.flag.name
    if any(find(value.partition("=")[0]) for value in item.values):
        found.note("invalid-value", f"{item.written} would swallow the next flag: left out")
        return
    if name == "--mmproj-url":
        found.note("mmproj", f"{item.written}: download it and give it with --mmproj; left out")
        return
    values = [places.host(v) if name in PATH_FLAGS else v for v in item.values]
    if name == "--mmproj":
        found.note(
            "mmproj",
            f"{item.written} {shown(values[0])} stays: the vision part takes memory of its own,"
            " and before April 2026 a server with it did not draft",
        )
    if name in {"--embedding", "--rerank"}:
        found.note("embedding", f"{item.written} serves no text: nothing is drafted")
    word = item.written
    if item.from_env:
        word = name if item.positive else item.flag.off[-1]
    out.args += [word, *values]


def _load_mode(found: Settings) -> list[str]:
    """Return how the model is loaded, as ``--load-mode`` says today what four flags said before."""
    items = found.take_all(*_LOADING)
    last = {item.flag.name: item for item in items}
    old = [item for item in items if item.flag.name != "--load-mode"]
    new = last.get("--load-mode")
    if not old:
        return [new.flag.name, *new.values] if new else []
    says = {name: item.positive for name, item in last.items()}
    if new:
        mode = new.value
    elif says.get("--direct-io"):
        mode = "dio"
    elif says.get("--mlock"):
        mode = "mmap+mlock" if says.get("--mmap", True) else "mlock"
    elif "--mmap" in says:
        mode = "mmap" if says["--mmap"] else "none"
    else:
        return []
    words = ", ".join(dict.fromkeys(item.written for item in old))
    found.note(
        "renamed",
        f"{words} gave way to --load-mode {shown(mode, 20)}; newer builds do not start with it",
    )
    return ["--load-mode", mode]


def _tell(found: Settings, out: _Sorted, *, forked_program: bool) -> None:
    if out.ours:
        told = ", ".join(dict.fromkeys(out.ours))
        found.note("owned", f"left out, since spectui talks to its server its own way: {told}")
    for written in dict.fromkeys(out.secret):
        found.note("secret-dropped", f"the value of {written} is neither written nor shown")
    if out.others:
        told = ", ".join(dict.fromkeys(out.others))
        found.note("not-a-server", f"flags of llama-cli, not of the server, are left out: {told}")
    if out.forks:
        told = ", ".join(dict.fromkeys(out.forks))
        found.note(
            "dialect",
            f"today's llama-server does not know {told}: kept for ik_llama.cpp, whose words they"
            " are",
        )
    elif out.fork or forked_program:
        found.note(
            "dialect",
            "this is ik_llama.cpp's dialect: spectui puts the profile into the words of whichever"
            " llama-server it names",
        )
