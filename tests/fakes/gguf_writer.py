"""Writes small GGUF files for tests: any keys, any tensors, and no tensor data but zeroes.

``write`` takes keys as Python values: bool, int (u32, or u64 where it must), float (f32), str,
lists of str or int (i32), or ``Typed`` where the type matters. ``write_model`` adds what llama.cpp
wants of a model, so that a test names only what it is about.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CODES = {
    "u8": (0, "B"),
    "i8": (1, "b"),
    "u16": (2, "H"),
    "i16": (3, "h"),
    "u32": (4, "I"),
    "i32": (5, "i"),
    "f32": (6, "f"),
    "bool": (7, "?"),
    "u64": (10, "Q"),
    "i64": (11, "q"),
    "f64": (12, "d"),
}
BLOCKS = {"F32": (0, 1, 4), "F16": (1, 1, 2), "Q4_0": (2, 32, 18), "Q8_0": (8, 32, 34)}

Tensor = tuple[str, Sequence[int], str]
"""Name, extents with that of a row first, type."""


@dataclass(frozen=True)
class Typed:
    """A value, or a list of values, of one of the types in CODES."""

    kind: str
    value: Any


def text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def _typed(value: Any) -> Typed:
    match value:
        case Typed():
            return value
        case bool():
            return Typed("bool", value)
        case int():
            return Typed("u32" if value < 1 << 32 else "u64", value)
        case float():
            return Typed("f32", value)
        case _:
            return Typed("i32", list(value))


def encode(value: Any) -> bytes:
    """Return a value with its type before it."""
    if isinstance(value, str | bytes):
        return struct.pack("<I", 8) + text(value)
    if isinstance(value, list | tuple) and value and isinstance(value[0], str | bytes):
        return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(text, value))
    typed = _typed(value)
    code, form = CODES[typed.kind]
    if isinstance(typed.value, list):
        items = struct.pack(f"<{len(typed.value)}{form}", *typed.value)
        return struct.pack("<IIQ", 9, code, len(typed.value)) + items
    return struct.pack(f"<I{form}", code, typed.value)


def header(
    keys: Mapping[str, Any], tensors: Sequence[Tensor] = (), *, version: int = 3
) -> tuple[bytes, int]:
    """Return a file's header, padded, and how many bytes of data follow it."""
    alignment = keys.get("general.alignment", 32)
    parts = [b"GGUF", struct.pack("<IQQ", version, len(tensors), len(keys))]
    parts += [text(key) + encode(value) for key, value in keys.items()]
    data = 0
    for name, shape, kind in tensors:
        code, block, width = BLOCKS[kind]
        elements = 1
        for extent in shape:
            elements *= extent
        parts.append(text(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape))
        parts.append(struct.pack("<IQ", code, data))
        data += -(-(elements // block * width) // alignment) * alignment
    raw = b"".join(parts)
    padding = -len(raw) % alignment if tensors else 0
    return raw + b"\0" * padding, data


def write(
    path: Path, keys: Mapping[str, Any], tensors: Sequence[Tensor] = (), *, version: int = 3
) -> Path:
    """Write a file; its data is a hole, so a large one costs nothing. Returns ``path``."""
    raw, data = header(keys, tensors, version=version)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(raw)
        file.truncate(len(raw) + data)
    return path


WORDS = [f"tok{i}" for i in range(40)]


def model_keys(architecture: str = "llama", **more: Any) -> dict[str, Any]:
    """Return a model's keys. ``more`` names further ones of the architecture, "__" for a dot.

    ``tokens``, ``general`` and ``tokenizer`` (both mappings) are taken out of ``more`` first.
    """
    tokens = more.pop("tokens", WORDS)
    general = more.pop("general", {})
    tokenizer = more.pop("tokenizer", {})
    own = {
        "block_count": 2,
        "context_length": 4096,
        "embedding_length": 64,
        "attention.head_count": 4,
        "attention.head_count_kv": 2,
        **{key.replace("__", "."): value for key, value in more.items()},
    }
    return {
        "general.architecture": architecture,
        **{f"general.{key}": value for key, value in general.items()},
        **{f"{architecture}.{key}": value for key, value in own.items() if value is not None},
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.add_bos_token": False,
        **{f"tokenizer.ggml.{key}": value for key, value in tokenizer.items()},
    }


TENSORS: tuple[Tensor, ...] = (
    ("token_embd.weight", (64, 40), "Q8_0"),
    ("blk.0.attn_norm.weight", (64,), "F32"),
    ("blk.0.attn_q.weight", (64, 64), "Q4_0"),
    ("blk.1.attn_q.weight", (64, 64), "Q4_0"),
    ("output.weight", (64, 40), "F16"),
)


def write_model(
    path: Path, architecture: str = "llama", *, tensors: Sequence[Tensor] = TENSORS, **more: Any
) -> Path:
    """Write a small model. Returns ``path``."""
    return write(path, model_keys(architecture, **more), tensors)


def write_split(folder: Path, stem: str, parts: int, **more: Any) -> list[Path]:
    """Write a split model, one tensor a part. Returns the parts' paths."""
    paths = []
    for number in range(parts):
        keys = model_keys(**more) if number == 0 else {}
        keys |= {"split.no": Typed("u16", number), "split.count": Typed("u16", parts)}
        keys |= {"split.tensors.count": Typed("i32", parts)}
        path = folder / f"{stem}-{number + 1:05}-of-{parts:05}.gguf"
        paths.append(write(path, keys, [(f"blk.{number}.attn_q.weight", (64, 64), "Q8_0")]))
    return paths
