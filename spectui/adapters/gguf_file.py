"""What a GGUF file says of its model, split files as one, and where two vocabularies part.

Key names, and what makes a file a draft of which kind, are llama.cpp's (``llama-arch.cpp``,
``common_speculative_types_from_gguf``).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from spectui.adapters.gguf_header import INVALID, MISSING, Header, Value, open_header, shown
from spectui.adapters.gguf_types import FILE_TYPES, GUESSED, TENSOR_TYPES
from spectui.domain.errors import ModelFileError
from spectui.domain.models import ModelFacts, ModelKind, TokenDifference, Vocabulary

FIRST_COMPARED: Final = 5
"""llama.cpp compares the tokens of two vocabularies from this id on."""
MAX_PARTS: Final = 1000
MAX_LAYERS: Final = 512

_PART = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<total>\d{5})\.gguf", re.DOTALL)
_ENCODERS: Final = frozenset(
    {
        "bert",
        "modern-bert",
        "nomic-bert",
        "nomic-bert-moe",
        "neo-bert",
        "jina-bert-v2",
        "jina-bert-v3",
        "eurobert",
        "gemma-embedding",
        "llama-embed",
        "t5encoder",
        "wavtokenizer-dec",
    }
)
_DIFFUSERS: Final = frozenset({"dream", "llada", "llada-moe", "rnd1"})
_ASSISTANT: Final = "gemma4-assistant"
_LENGTH: Final = Struct("<Q")
_CHUNK: Final = 64 * 1024
_EXCUSED: Final = 4096
"""Tokens that differ in bytes and are the same to llama.cpp, before that is taken for hostile."""


class Part(NamedTuple):
    """The name of one part of a split model: ``stem``-0000N-of-0000M.gguf, counted from 1."""

    stem: str
    number: int
    total: int

    def name(self, number: int) -> str:
        """Return the name of another part."""
        return f"{self.stem}-{number:05}-of-{self.total:05}.gguf"


def part_of(path: Path) -> Part | None:
    """Return what a file's name says about being a part, None for a whole one."""
    found = _PART.fullmatch(path.name)
    if found is None:
        return None
    number, total = int(found["number"]), int(found["total"])
    return Part(found["stem"], number, total) if 1 <= number <= total else None


def read_model(path: Path) -> ModelFacts:
    """Read the header of a model; of a split model any part may be named.

    Parts that are not on disk are named in ``missing``. Raises ModelFileError if the first part is
    missing, or any part is broken or cut off.
    """
    part = part_of(path)
    first = path
    if part is not None and part.number > 1:
        with open_header(path) as header:
            if (header.number("split.count") or 1) > 1:
                first = path.with_name(part.name(1))
        if first != path and not first.exists():
            raise ModelFileError(
                MISSING, f"{shown(first)}, the first part of this model, is not there", "get it"
            )
    with open_header(first) as header:
        total = _Total(header)
        count = header.number("split.count") or 1
        if count > 1:
            _add_parts(total, first, header, count)
        return _facts(first, header, total)


def first_difference(
    target: Path, draft: Path, start: int = FIRST_COMPARED
) -> TokenDifference | None:
    """Return the first token from id ``start`` on that differs, None if all common ids agree.

    Compares the bytes in the files, as llama.cpp does: up to a zero byte, an empty token by its
    number. Files without a vocabulary have no common ids. Raises ModelFileError.
    """
    with ExitStack() as stack:
        pair = tuple(stack.enter_context(open_header(path)) for path in (target, draft))
        lists = [header.strings("tokenizer.ggml.tokens") for header in pair]
        if lists[0] is None or lists[1] is None:
            return None
        common = min(lists[0].length or 0, lists[1].length or 0)
        one, other = _Tokens(pair[0], lists[0]), _Tokens(pair[1], lists[1])
        for _ in range(min(start, common)):
            one.step()
            other.step()
        excused = 0
        while one.id < common and _to_difference(one, other):
            texts = one.peek(), other.peek()
            excused += 1
            if texts[0] != texts[1] or excused > _EXCUSED:
                return TokenDifference(one.id, *(text.decode("utf-8", "replace") for text in texts))
            one.step()
            other.step()
        return None


class _Tokens:
    """A place in a list of tokens. ``id`` is that of the token that begins at byte ``at``."""

    def __init__(self, header: Header, tokens: Value) -> None:
        """Begin with the first token."""
        self.data = header.data
        self.at = tokens.start
        self.end = tokens.end
        self.id = 0

    def _length(self) -> int:
        return int(_LENGTH.unpack_from(self.data, self.at)[0])

    def step(self) -> None:
        self.at += 8 + self._length()
        self.id += 1

    def peek(self) -> bytes:
        """Return the token's text as llama.cpp sees it, its first kilobyte."""
        begin = self.at + 8
        text = self.data[begin : begin + min(self._length(), 1024)].partition(b"\0")[0]
        return text or b"[EMPTY_%d]" % self.id

    def step_to(self, byte: int) -> None:
        """Go to the token that ``byte`` lies in."""
        at, number, data, unpack = self.at, self.id, self.data, _LENGTH.unpack_from
        while True:
            after = at + 8 + unpack(data, at)[0]
            if after > byte:
                break
            at, number = after, number + 1
        self.at, self.id = at, number


def _to_difference(one: _Tokens, other: _Tokens) -> bool:
    """Go to the first token whose bytes differ; return whether there is one."""
    shared = min(one.end - one.at, other.end - other.at)
    for offset in range(0, shared, _CHUNK):
        size = min(_CHUNK, shared - offset)
        mine = one.data[one.at + offset : one.at + offset + size]
        theirs = other.data[other.at + offset : other.at + offset + size]
        if mine != theirs:
            # up to here the bytes are equal, and so are the tokens' boundaries
            apart = offset + next(i for i in range(size) if mine[i] != theirs[i])
            begin = one.at
            one.step_to(begin + apart)
            other.step_to(other.at + apart)
            return True
    return False


class _Total:
    """What is summed over the parts of a model."""

    def __init__(self, header: Header) -> None:
        """Begin with the first part."""
        self.files: list[str] = []
        self.missing: list[str] = []
        self.size = 0
        self.parameters = 0
        self.expert_parameters = 0
        self.tensors: set[bytes] = set()
        self.bytes_by_type: Counter[int] = Counter()
        self.add(header)

    def add(self, header: Header) -> None:
        self.files.append(str(header.path))
        self.size += header.size
        self.parameters += header.parameters
        self.expert_parameters += header.expert_parameters
        self.tensors |= header.tensor_names
        self.bytes_by_type += header.bytes_by_type

    @property
    def dominant(self) -> str:
        """The type of most bytes of all matrices."""
        if not self.bytes_by_type:
            return ""
        kind, _ = self.bytes_by_type.most_common(1)[0]
        return TENSOR_TYPES[kind][0] if kind in TENSOR_TYPES else f"type {kind}"


def _add_parts(total: _Total, first: Path, header: Header, count: int) -> None:
    part = part_of(first)
    if count > MAX_PARTS or (header.number("split.no") or 0) > 0:
        raise ModelFileError(
            INVALID, f"{shown(first)} is not the first part of a model", "name the first one"
        )
    if part is None or part.total != count:
        total.missing.append(f"{count - 1} more parts (this one's name is not llama.cpp's)")
        return
    for number in range(2, count + 1):
        path = first.with_name(part.name(number))
        if not path.exists():
            total.missing.append(path.name)
            continue
        with open_header(path) as other:
            total.add(other)


def _facts(path: Path, header: Header, total: _Total) -> ModelFacts:
    architecture = header.text("general.architecture", 60)

    def number(key: str) -> int | None:
        return header.number(f"{architecture}.{key}")

    blocks = number("block_count")
    mtp = _mtp_layers(number("nextn_predict_layers") or 0, total)
    kind, detail = _kind(header, architecture, total, blocks or 0, mtp)
    layers = max(0, blocks - mtp) if blocks is not None and blocks <= MAX_LAYERS else None
    heads = max(header.numbers(f"{architecture}.attention.head_count"), default=None)
    embedding = number("embedding_length")
    head = embedding // heads if embedding and heads else None
    key_length, value_length = number("attention.key_length"), number("attention.value_length")
    special = kind in {ModelKind.EAGLE3, ModelKind.DFLASH, ModelKind.DSPARK}
    return ModelFacts(
        path=str(path),
        files=tuple(total.files),
        size=total.size,
        kind=kind,
        detail=detail,
        architecture=architecture,
        name=header.text("general.name", 120),
        parameters=total.parameters,
        active=_active(header, architecture, total),
        tensors=len(total.tensors),
        quantisation=_quantisation(header, total),
        context=number("context_length"),
        layers=layers,
        embedding=embedding,
        embedding_out=number("embedding_length_out"),
        heads=heads,
        kv_heads=_kv_heads(header, architecture, layers, heads),
        key_length=head if key_length is None else key_length,
        value_length=head if value_length is None else value_length,
        window=number("attention.sliding_window") or None,
        mtp_layers=mtp,
        block_size=number("block_size") if special else None,
        target_embedding=number("target_hidden_size") if kind is ModelKind.EAGLE3 else None,
        target_layers=header.numbers(f"{architecture}.target_layers") if special else (),
        borrows=special and not {b"token_embd.weight", b"output.weight"} <= total.tensors,
        anchored=header.flag(f"{architecture}.sample_from_anchor") is not False,
        confidence=header.flag(f"{architecture}.has_confidence_head") is not False,
        vocabulary=_vocabulary(header, number("vocab_size")),
        missing=tuple(total.missing),
    )


def _active(header: Header, architecture: str, total: _Total) -> int:
    """Return the parameters that one token goes through."""
    experts = header.number(f"{architecture}.expert_count") or 0
    used = max(header.numbers(f"{architecture}.expert_used_count"), default=0)
    if not 0 < used < experts:
        return total.parameters
    idle = total.expert_parameters * (experts - used) // experts
    return total.parameters - idle


def _mtp_layers(said: int, total: _Total) -> int:
    """Return the MTP layers that are there; a converter may drop them and leave the key."""
    there = any(b"nextn." in name for name in total.tensors)
    return said if said <= MAX_LAYERS and (there or total.missing) else 0


def _kind(
    header: Header, architecture: str, total: _Total, blocks: int, mtp: int
) -> tuple[ModelKind, str]:
    """Return what the file is, and in words what one of kind OTHER holds."""
    general = header.text("general.type", 40)
    if architecture == "clip" or general == "mmproj":
        return ModelKind.PROJECTOR, ""
    for holds, detail in (
        (general == "adapter", "an adapter (LoRA)"),
        (general == "imatrix" or architecture == "imatrix", "an importance matrix"),
        (general == "controlvector" or architecture == "controlvector", "a control vector"),
        (not total.tensors and not total.missing, "a vocabulary without weights"),
        (not architecture, "a file that names no architecture"),
        (architecture in _ENCODERS, "an encoder or embedding model"),
        (bool(header.number(f"{architecture}.pooling_type")), "an embedding or reranking model"),
        (architecture in _DIFFUSERS, "a diffusion model"),
    ):
        if holds:
            return ModelKind.OTHER, detail
    if architecture == "eagle3":
        return ModelKind.EAGLE3, ""
    if architecture == "dflash":
        markov = b"markov_w1.weight" in total.tensors
        return (ModelKind.DSPARK if markov else ModelKind.DFLASH), ""
    trunk = any(name.startswith(b"blk.0.") for name in total.tensors) and blocks != mtp
    if architecture == _ASSISTANT or (mtp and not trunk and not total.missing):
        return ModelKind.MTP, ""
    return ModelKind.MODEL, ""


def _quantisation(header: Header, total: _Total) -> str:
    said = header.number("general.file_type")
    if said is None or said & GUESSED:
        return total.dominant
    return FILE_TYPES.get(said, total.dominant)


def _kv_heads(
    header: Header, architecture: str, layers: int | None, heads: int | None
) -> tuple[int, ...]:
    """Return the KV heads of each layer, or one number for all."""
    found = header.numbers(f"{architecture}.attention.head_count_kv")
    if not found:
        found = (heads,) if heads is not None else ()
    if len(found) > 1:
        return found[:layers]
    interval = header.number(f"{architecture}.full_attention_interval") or 0
    if found and layers and interval > 1:  # the layers between are recurrent
        return tuple(_where(found[0], interval, layers))
    return found


def _where(heads: int, interval: int, layers: int) -> Iterator[int]:
    return (heads if (layer + 1) % interval == 0 else 0 for layer in range(layers))


def _vocabulary(header: Header, declared: int | None) -> Vocabulary:
    tokens = header.strings("tokenizer.ggml.tokens")
    return Vocabulary(
        model=header.text("tokenizer.ggml.model", 40),
        pre=header.text("tokenizer.ggml.pre", 40),
        size=(tokens.length or 0) if tokens is not None else declared or 0,
        bos=header.number("tokenizer.ggml.bos_token_id"),
        eos=header.number("tokenizer.ggml.eos_token_id"),
        add_bos=header.flag("tokenizer.ggml.add_bos_token"),
        add_eos=header.flag("tokenizer.ggml.add_eos_token"),
    )
