"""What a model file says of itself: architecture, size, vocabulary, and what it can be used for."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class ModelKind(StrEnum):
    """What a GGUF file holds, as far as drafting is concerned."""

    MODEL = "model"
    MTP = "mtp"
    """An MTP sidecar: the heads of a target in a file of their own."""
    EAGLE3 = "eagle3"
    DFLASH = "dflash"
    DSPARK = "dspark"
    PROJECTOR = "mmproj"
    OTHER = "other"
    """An adapter, a vocabulary, an encoder, …: neither target nor draft."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """A model's tokenizer. ``size`` in tokens; ids are None where the file names none.

    ``model`` is the tokenizer's kind ("gpt2", "llama", …), ``pre`` its splitting rule.
    """

    model: str = ""
    pre: str = ""
    size: int = 0
    bos: int | None = None
    eos: int | None = None
    add_bos: bool | None = None
    add_eos: bool | None = None


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The header of one model, split files taken as one.

    ``size`` in bytes of all files, ``parameters`` counted from the tensors, ``context`` trained
    for in tokens, ``layers`` without MTP layers where the file tells, ``kv_heads`` per layer or one
    entry for all, ``key_length`` and ``value_length`` in elements of one head, ``window`` the
    sliding window in tokens, ``mtp_layers`` the target's own MTP layers, ``block_size`` the longest
    draft that a block drafter was trained for. ``missing`` names parts that are not on disk.
    """

    path: str
    files: tuple[str, ...] = ()
    size: int = 0
    kind: ModelKind = ModelKind.MODEL
    architecture: str = ""
    name: str = ""
    parameters: int = 0
    quantisation: str = ""
    context: int | None = None
    layers: int | None = None
    embedding: int | None = None
    heads: int | None = None
    kv_heads: tuple[int, ...] = ()
    key_length: int | None = None
    value_length: int | None = None
    window: int | None = None
    mtp_layers: int = 0
    block_size: int | None = None
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    missing: tuple[str, ...] = ()
