"""From the text of an option's value to what CommonParams takes: llama-server's own rules.

Every converter takes the text and raises BadValueError with the words of llama-server. Members of
xllamacpp's enums are named, not imported, so that a command line can be read without the engine.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

_WHOLE = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_INT_MAX = 2**31 - 1
_MOST_DEVICES = 128


class BadValueError(ValueError):
    """A value that llama-server would refuse; ``str()`` is the reason it gives."""


@dataclass(frozen=True, slots=True)
class Member:
    """One member of an enum of xllamacpp, by name."""

    enum: str
    name: str


Convert = Callable[[str], object]


def whole(text: str) -> int:
    """Return a 32-bit number. Stricter than llama-server, which reads ``8x`` as 8."""
    if not _WHOLE.fullmatch(text) or not -_INT_MAX <= int(text) <= _INT_MAX:
        raise BadValueError("stoi")
    return int(text)


def decimal(text: str) -> float:
    """Return a decimal number."""
    if not _DECIMAL.fullmatch(text):
        raise BadValueError("stof")
    return float(text)


def decimals(text: str) -> list[float]:
    """Return comma-separated decimal numbers."""
    parts = text.split(",")
    if not all(_DECIMAL.fullmatch(part) for part in parts):
        raise BadValueError("stod")
    return [float(part) for part in parts]


def double(text: str) -> float:
    """Return a decimal number of double precision, which llama-server reports by another name."""
    found = decimals(text)
    return found[0] if len(found) == 1 else _refuse("stod")


def seed(text: str) -> int:
    """Return an unsigned 32-bit number; -1 wraps to the one that means a random seed."""
    if not _WHOLE.fullmatch(text):
        raise BadValueError("stoul")
    return int(text) & 0xFFFFFFFF


def within(low: int, high: int, reason: str) -> Convert:
    """Return a converter to a number from ``low`` to ``high``, else ``reason``."""

    def convert(text: str) -> int:
        number = whole(text)
        return number if low <= number <= high else _refuse(reason)

    return convert


def at_least(low: int, reason: str) -> Convert:
    """Return a converter to a number of at least ``low``."""
    return within(low, _INT_MAX, reason)


def slots(text: str) -> int:
    """Return the number of slots; -1 lets the engine choose four with one shared cache."""
    number = whole(text)
    return number or _refuse("error: invalid value for n_parallel")


def layers(text: str) -> int:
    """Return the number of layers for the GPU: a number, ``auto`` or ``all``."""
    return {"auto": -1, "all": -2}[text] if text in {"auto", "all"} else whole(text)


def text(value: str) -> str:
    """Return the value as it is."""
    return value


def names(value: str) -> list[str]:
    """Return comma-separated names, empty ones left out."""
    return [part for part in value.split(",") if part]


def hosts(value: str) -> list[str]:
    """Return the addresses to listen on, at least one."""
    return names(value) or _refuse("--host requires at least one address")


def one_of(members: Mapping[str, object], reason: str) -> Convert:
    """Return a converter by table; ``{}`` in ``reason`` becomes the refused text."""

    def convert(value: str) -> object:
        return members[value] if value in members else _refuse(reason.format(value))

    return convert


def _states(on: object, off: object, auto: object) -> dict[str, object]:
    table = dict.fromkeys(("on", "enabled", "true", "1"), on)
    table |= dict.fromkeys(("off", "disabled", "false", "0"), off)
    return table | dict.fromkeys(("auto", "-1"), auto)


def on_off_auto(flag: str, *, on: object, off: object, auto: object) -> Convert:
    """Return a converter of ``on``, ``off`` and ``auto``, in all of llama-server's spellings."""
    return one_of(_states(on, off, auto), f"error: unknown value for {flag}: '{{}}'")


def on_off(flag: str) -> Convert:
    """Return a converter of ``on`` and ``off``."""
    states = {
        key: state
        for key, state in _states(on=True, off=False, auto=None).items()
        if state is not None
    }
    return one_of(states, f"error: unknown value for {flag}: '{{}}'")


def shares(text: str) -> list[float]:
    """Return the shares of the GPUs, filled up to as many devices as the engine has room for."""
    try:
        found = decimals(text)
    except BadValueError:
        _refuse("stof")
    return [*found, *[0.0] * (_MOST_DEVICES - len(found))]


def content(value: str) -> str:
    """Return the text of the file that the value names."""
    try:
        return Path(value).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return _refuse(f"error: failed to open file '{value}'")


def key_lines(value: str) -> list[str]:
    """Return the keys of a file: one a line, comments and blank lines left out."""
    lines = (line.strip() for line in content(value).splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def template_arguments(value: str) -> dict[str, str]:
    """Return a JSON object as a mapping of keys to JSON texts."""
    try:
        found = json.loads(value)
    except ValueError as error:
        raise BadValueError(f"not a JSON object: {error}") from None
    if not isinstance(found, dict):
        raise BadValueError("not a JSON object")
    return {key: json.dumps(item) for key, item in found.items()}


SPEC_TYPES = (
    "none",
    "draft-simple",
    "draft-eagle3",
    "draft-mtp",
    "draft-dflash",
    "draft-dspark",
    "ngram-simple",
    "ngram-map-k",
    "ngram-map-k4v",
    "ngram-mod",
    "ngram-cache",
)


def spec_types(value: str) -> list[Member]:
    """Return the types of a comma list; with ``none`` among them, nothing else counts."""
    wanted = value.split(",")
    for name in wanted:
        if name not in SPEC_TYPES:
            raise BadValueError(f"unknown speculative type: {name}")
    if "none" in wanted:
        # twice, as it is in llama-server: only the single one of the default lets a DFlash, DSpark
        # or MTP file turn its type on by itself
        return [spec_type("none")] * 2
    return [spec_type(name) for name in wanted]


def spec_type(name: str) -> Member:
    """Return xllamacpp's member for one of llama-server's type names."""
    member = name.upper().replace("-", "_")
    return Member("common_speculative_type", f"COMMON_SPECULATIVE_TYPE_{member}")


def members(enum: str, prefix: str, spellings: Mapping[str, str]) -> dict[str, object]:
    """Return a table from spellings to members whose names start with ``prefix``."""
    return {key: Member(enum, prefix + name) for key, name in spellings.items()}


def cache_type(value: str) -> Member:
    """Return the member for a KV cache type."""
    known = {"f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1"}
    if value not in known:
        raise BadValueError(f"Unsupported cache type: {value}")
    return Member("ggml_type", f"GGML_TYPE_{value.upper()}")


def _refuse(reason: str) -> NoReturn:
    raise BadValueError(reason)
