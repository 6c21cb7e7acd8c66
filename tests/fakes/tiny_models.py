r"""Models small enough to write in milliseconds, one for every way in which llama.cpp drafts.

All of them speak one vocabulary of 261 tokens: the 256 bytes (a token's number is its byte), one
merge (a BPE file must have some), and four special tokens. All are 64 wide with two heads.

The *target* needs what drafters read from it. EAGLE-3 takes the hidden states of three layers, so
it has three; its architecture is ``llama``, because only some hand inner hidden states out. Its
answer is known: the output matrix is the embedding moved on by one token along ``CYCLE``, so that
after ``assistant\n`` greedy decoding says ``a`` to ``o`` and a line feed, for ever. An n-gram
drafter finds that again: the cycle is longer than the 12 tokens that ngram-simple looks up, which
it must be. ngram-cache alone needs to read it in the prompt.

- ``draft-simple``: the same model with one layer. Everything it drafts is accepted.
- ``draft-mtp``: ``mimo2`` needs neither experts nor recurrent layers (only one layer with a
  sliding window) and can have several heads, of one layer each. A head passes the embedding of its
  token through to the shared output, so all is accepted here too. The heads are part of the
  target, or alone in a *sidecar* with embedding and output: the layers of the target are counted
  there, not stored.
- ``draft-eagle3``: one layer whose attention reads embedding and hidden state side by side, and
  ``fc`` from three hidden states to one. Embedding and output are the target's.
- ``draft-dflash``: one layer, ``fc``, a mask token and a trained block size. Embedding and output
  are the target's.
- ``draft-dspark``: the same plus a Markov head of rank 4 and a confidence head.

The last three are random, and none of their drafts is accepted unless acceptance is synthetic; but
DSpark reads its first token where the last one went in, and finds the one that follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from gguf import GGUFWriter, TokenType

WIDTH = 64
HEADS = 2
LAYERS = 3  # of the target
BLOCK = 4  # of DFlash and DSpark: four positions are denoised at once
RANK = 4  # of the Markov head
CONTEXT = 2048
CYCLE = b"\nabcdefghijklmno"  # what the target says after "assistant\n", over and over

Array = np.ndarray[Any, Any]
Tensors = dict[str, Array]
Keys = Mapping[str, object]
NONE: Keys = MappingProxyType({})


def _byte_letters() -> list[str]:
    """Return the letter by which a GPT-2 vocabulary writes each byte."""
    shown = {*range(33, 127), *range(161, 173), *range(174, 256)}
    hidden = iter(range(256, 512))
    return [chr(byte) if byte in shown else chr(next(hidden)) for byte in range(256)]


SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|mask|>")
VOCABULARY = (*_byte_letters(), "th", *SPECIAL)
TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content']"
    " + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


@dataclass(frozen=True, slots=True)
class Family:
    """The files that ``write_family`` writes: two targets, and a draft for every type."""

    target: Path
    draft: Path
    eagle3: Path
    dflash: Path
    dspark: Path
    mtp_target: Path
    mtp_sidecar: Path
    mtp_three_heads: Path


def write_family(folder: Path) -> Family:
    """Write every model into ``folder`` (2 MB, well under a second) and return the paths."""
    return Family(
        target=write_target(folder / "tiny-target.gguf"),
        draft=write_draft(folder / "tiny-draft-simple.gguf"),
        eagle3=write_eagle3(folder / "tiny-draft-eagle3.gguf"),
        dflash=write_dflash(folder / "tiny-draft-dflash.gguf"),
        dspark=write_dspark(folder / "tiny-draft-dspark.gguf"),
        mtp_target=write_mtp_target(folder / "tiny-target-mtp.gguf"),
        mtp_sidecar=write_mtp_sidecar(folder / "tiny-sidecar-mtp.gguf"),
        mtp_three_heads=write_mtp_target(folder / "tiny-target-mtp3.gguf", heads=3),
    )


def write_target(out: Path, *, width: int = WIDTH, architecture: str = "llama") -> Path:
    """Write the model that says ``CYCLE``, ``width`` wide. Returns ``out``.

    ``smollm3`` has the same tensors as ``llama`` and hands out no inner hidden states.
    """
    return _write_llama(out, layers=LAYERS, width=width, architecture=architecture)


def write_draft(
    out: Path, *, vocabulary: Sequence[str] = VOCABULARY, tokenizer: Keys = NONE
) -> Path:
    """Write the one-layer draft of the target; another ``vocabulary`` makes a pair that is refused.

    The special tokens come last in every vocabulary. ``tokenizer`` replaces keys of
    ``tokenizer.ggml``; None leaves one out. Returns ``out``.
    """
    return _write_llama(out, layers=1, vocabulary=vocabulary, tokenizer=tokenizer)


def write_mtp_target(out: Path, *, heads: int = 1) -> Path:
    """Write a one-layer ``mimo2`` that says ``CYCLE``, with MTP heads. Returns ``out``."""
    parts = _Parts()
    tensors = parts.ends() | parts.fused_layer(0)
    for head in range(1, 1 + heads):
        tensors |= parts.fused_layer(head) | parts.mtp_head(head)
    return _write(out, "mimo2", tensors, _mimo2(heads))


def write_mtp_sidecar(out: Path, *, heads: int = 1, width: int = WIDTH) -> Path:
    """Write the MTP heads of ``write_mtp_target`` alone. Returns ``out``."""
    parts = _Parts(width=width)
    tensors = parts.ends()
    for head in range(1, 1 + heads):
        tensors |= parts.fused_layer(head) | parts.mtp_head(head)
    return _write(out, "mimo2", tensors, _mimo2(heads, width))


def write_eagle3(
    out: Path,
    *,
    target_width: int = WIDTH,
    target_layers: Sequence[int] = range(LAYERS),
    vocabulary: Sequence[str] = VOCABULARY,
    own_ends: bool = False,
) -> Path:
    """Write an EAGLE-3 draft for a target of that width and depth. Returns ``out``.

    With ``own_ends`` it brings embedding and output for its whole vocabulary along.
    """
    parts = _Parts()
    tensors = {
        **(parts.ends(vocabulary) if own_ends else {}),
        "fc.weight": parts.matrix(WIDTH, 3 * target_width),
        "output_norm.weight": np.ones(WIDTH, np.float32),
        "blk.0.attn_norm_2.weight": np.ones(WIDTH, np.float32),
        **parts.layer(0, attention_input=2 * WIDTH),
    }

    def describe(writer: GGUFWriter) -> None:
        _shape(writer, layers=1)
        writer.add_array("eagle3.target_layers", [*target_layers])
        writer.add_uint32("eagle3.target_hidden_size", target_width)

    return _write(out, "eagle3", tensors, describe, vocabulary)


def write_dflash(out: Path, *, width: int = WIDTH) -> Path:
    """Write a DFlash draft for a target of the same width. Returns ``out``."""
    return _write(out, "dflash", _Parts(width=width).dflash(), _dflash(width))


def write_dspark(out: Path, *, from_anchor: bool = True, confidence: bool = True) -> Path:
    """Write a DSpark draft: DFlash with a Markov and a confidence head. Returns ``out``.

    Without ``from_anchor`` the first place of a block drafts nothing, as with DFlash.
    """
    parts = _Parts()
    tensors = parts.dflash() | {
        "markov_w1.weight": parts.matrix(len(VOCABULARY), RANK),
        "markov_w2.weight": parts.matrix(len(VOCABULARY), RANK),
    }
    if confidence:
        tensors["conf_proj.weight"] = parts.matrix(1, WIDTH + RANK)

    def describe(writer: GGUFWriter) -> None:
        _dflash(WIDTH)(writer)
        writer.add_bool("dflash.sample_from_anchor", from_anchor)
        writer.add_bool("dflash.has_confidence_head", confidence)

    return _write(out, "dflash", tensors, describe)


@dataclass(slots=True)
class _Parts:
    """Tensors by name, outermost dimension first, in float32; always the same numbers."""

    width: int = WIDTH
    numbers: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))

    def matrix(self, rows: int, columns: int, scale: float = 0.02) -> Array:
        """Return random numbers, by default too small for a layer to change what passes it."""
        return self.numbers.standard_normal((rows, columns), np.float32) * np.float32(scale)

    def ends(self, vocabulary: Sequence[str] = VOCABULARY) -> Tensors:
        """Return embedding and output: what is put in comes out as its successor in ``CYCLE``.

        Tokens outside the cycle follow themselves. Drawn from a generator of its own, so that
        every model has the same.
        """
        same = np.random.default_rng(0)
        embedding = same.standard_normal((len(vocabulary), self.width), np.float32)
        output = embedding.copy()
        for token, successor in zip(CYCLE, CYCLE[1:] + CYCLE[:1], strict=True):
            output[successor] = embedding[token]
        return {
            "token_embd.weight": embedding,
            "output.weight": output,
            "output_norm.weight": np.ones(self.width, np.float32),
        }

    def layer(self, number: int, *, attention_input: int = 0) -> Tensors:
        """Return a llama layer; queries, keys and values may be wider at their input."""
        source = attention_input or self.width
        attention = {
            "attn_q": self.matrix(self.width, source),
            "attn_k": self.matrix(self.width, source),
            "attn_v": self.matrix(self.width, source),
        }
        return self._numbered(number, attention | self._rest())

    def fused_layer(self, number: int) -> Tensors:
        """Return a layer whose queries, keys and values are one matrix, as ``mimo2`` wants them."""
        attention = {"attn_qkv": self.matrix(3 * self.width, self.width)}
        return self._numbered(number, attention | self._rest())

    def mtp_head(self, number: int) -> Tensors:
        """Return what an MTP layer has besides; the embedding passes, the hidden state does not."""
        width = self.width
        join = np.concatenate([np.eye(width), np.zeros((width, width))], axis=1, dtype=np.float32)
        head = {
            "nextn.eh_proj": join,
            "nextn.enorm": np.ones(width, np.float32),
            "nextn.hnorm": np.ones(width, np.float32),
        }
        return self._numbered(number, head)

    def dflash(self) -> Tensors:
        """Return a whole DFlash draft."""
        width = self.width
        norms = dict.fromkeys(
            ("blk.0.attn_q_norm.weight", "blk.0.attn_k_norm.weight"),
            np.ones(width // HEADS, np.float32),
        )
        return {
            "fc.weight": self.matrix(width, LAYERS * width),
            "enc.output_norm.weight": np.ones(width, np.float32),
            "output_norm.weight": np.ones(width, np.float32),
            **self.layer(0),
            **norms,
        }

    def _rest(self) -> Tensors:
        width = self.width
        return {
            "attn_norm": np.ones(width, np.float32),
            "attn_output": self.matrix(width, width),
            "ffn_norm": np.ones(width, np.float32),
            "ffn_gate": self.matrix(width, width),
            "ffn_up": self.matrix(width, width),
            "ffn_down": self.matrix(width, width),
        }

    @staticmethod
    def _numbered(number: int, tensors: Tensors) -> Tensors:
        return {f"blk.{number}.{name}.weight": values for name, values in tensors.items()}


Describe = Callable[[GGUFWriter], None]


def _write_llama(
    out: Path,
    *,
    layers: int,
    width: int = WIDTH,
    vocabulary: Sequence[str] = VOCABULARY,
    architecture: str = "llama",
    tokenizer: Keys = NONE,
) -> Path:
    parts = _Parts(width=width)
    tensors = parts.ends(vocabulary)
    for number in range(layers):
        tensors |= parts.layer(number)
    return _write(
        out, architecture, tensors, lambda to: _shape(to, layers, width), vocabulary, tokenizer
    )


def _shape(writer: GGUFWriter, layers: int, width: int = WIDTH) -> None:
    writer.add_block_count(layers)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(width)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(width // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)


def _mimo2(heads: int, width: int = WIDTH) -> Describe:
    def describe(writer: GGUFWriter) -> None:
        _shape(writer, layers=1 + heads, width=width)
        writer.add_nextn_predict_layers(heads)
        writer.add_expert_feed_forward_length(width)  # wanted even where there are no experts
        writer.add_sliding_window(CONTEXT)
        writer.add_sliding_window_pattern([True] * (1 + heads))  # one of them at least

    return describe


def _dflash(width: int) -> Describe:
    def describe(writer: GGUFWriter) -> None:
        _shape(writer, layers=1, width=width)
        writer.add_array("dflash.target_layers", list(range(LAYERS)))
        writer.add_uint32("dflash.block_size", BLOCK)

    return describe


def _tokenizer(writer: GGUFWriter, vocabulary: Sequence[str], changes: Keys) -> None:
    end, _, turn, mask = (len(vocabulary) - back for back in (4, 3, 2, 1))
    plain = len(vocabulary) - len(SPECIAL)
    keys = {
        "model": "gpt2",
        "pre": "gpt-2",
        "tokens": [*vocabulary],
        "token_type": [TokenType.NORMAL] * plain + [TokenType.CONTROL] * len(SPECIAL),
        "merges": ["t h"],
        "bos_token_id": end,
        "eos_token_id": turn,
        "mask_token_id": mask,
        "add_bos_token": False,
        **changes,
    }
    for key, value in keys.items():
        _add(writer, f"tokenizer.ggml.{key}", value)
    writer.add_chat_template(TEMPLATE)


def _add(writer: GGUFWriter, key: str, value: object) -> None:
    match value:
        case None:
            pass
        case bool():
            writer.add_bool(key, value)
        case int():
            writer.add_uint32(key, value)
        case str():
            writer.add_string(key, value)
        case list():
            writer.add_array(key, value)
        case _:
            raise TypeError(key)


def _write(
    out: Path,
    architecture: str,
    tensors: Tensors,
    describe: Describe,
    vocabulary: Sequence[str] = VOCABULARY,
    tokenizer: Keys = NONE,
) -> Path:
    with whole_file(out, architecture) as writer:
        writer.add_name(out.stem)
        describe(writer)
        _tokenizer(writer, vocabulary, tokenizer)
        for name, values in tensors.items():
            writer.add_tensor(name, values)
    return out


@contextmanager
def whole_file(out: Path, architecture: str) -> Iterator[GGUFWriter]:
    """Yield a writer; the file appears under its name only when it is whole."""
    out.parent.mkdir(parents=True, exist_ok=True)
    unfinished = out.with_name(f"{out.name}.part")
    writer = GGUFWriter(unfinished, architecture)
    try:
        yield writer
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        unfinished.replace(out)
    finally:
        writer.close()
        unfinished.unlink(missing_ok=True)
