"""What a model file says of itself: architecture, size, vocabulary, and what it can be used for."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


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


class TokenDifference(NamedTuple):
    """The first token that two vocabularies disagree about, with both texts as the files have them.

    The texts are untrusted.
    """

    id: int
    target: str
    draft: str


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

    ``path`` is the file to hand to llama-server (of a split model the first part), ``files`` all
    parts on disk, ``missing`` the names of those that are not, ``size`` in bytes of all files,
    ``tensors`` and ``parameters`` counted from the tensors of all files, ``active`` the parameters
    that one token goes through (fewer in a mixture of experts; 0 where it was not counted).
    ``detail`` says in words what a file of kind OTHER holds.

    ``context`` is what was trained for in tokens, ``layers`` without MTP layers, ``mtp_layers``
    the model's own MTP layers. ``kv_heads`` is per layer or one entry for all, 0 where a layer
    keeps no KV cache; ``key_length`` and ``value_length`` in elements of one head, ``window`` the
    sliding window in tokens. ``embedding`` is the hidden size, ``embedding_out`` what leaves the
    last layer where that differs.

    For drafts made for one target: ``block_size`` as a block drafter was trained,
    ``target_embedding`` the hidden size of the target it was made for, ``target_layers`` the
    target's layers that it reads, ``borrows`` whether it uses the target's own embedding or output
    matrix, ``anchored`` whether a block begins with a token that is drafted already, and
    ``confidence`` whether it tells how sure it is (without that, p_min must be 0).
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
    detail: str = ""
    tensors: int = 0
    active: int = 0
    embedding_out: int | None = None
    target_embedding: int | None = None
    target_layers: tuple[int, ...] = ()
    borrows: bool = False
    anchored: bool = True
    confidence: bool = True

    @property
    def longest_draft(self) -> int | None:
        """The longest draft of a block drafter in tokens; None for every other model.

        DFlash's block begins with the last accepted token, an anchored DSpark's does not.
        """
        if self.kind not in {ModelKind.DFLASH, ModelKind.DSPARK}:
            return None
        block = self.block_size if self.block_size is not None else 16  # llama.cpp's own default
        return block if self.kind is ModelKind.DSPARK and self.anchored else max(0, block - 1)


@dataclass(frozen=True, slots=True)
class BrokenModel:
    """A model file that cannot be used. ``code`` is a stable name, ``reason`` one sentence."""

    path: str
    size: int
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class SearchedFolder:
    """A folder that was looked in. ``what`` says whose it is, ``note`` what went wrong there."""

    path: str
    what: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All model files that were found, each once, in the order of the folders and their names."""

    models: tuple[ModelFacts, ...] = ()
    broken: tuple[BrokenModel, ...] = ()
    searched: tuple[SearchedFolder, ...] = ()
