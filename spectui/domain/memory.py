"""How much memory a launch will want: weights, KV caches and compute buffers, on GPU and in RAM.

The KV cache follows llama.cpp's own arithmetic (``llama_kv_cache`` and ``llama_kv_cache_iswa`` in
src/, build 11434) and is exact where a header tells enough. Weights are the files' sizes, and
compute buffers a rule of thumb: together an estimate, and labelled as one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from spectui.domain.models import ModelFacts

GIB = 1 << 30
HEADROOM = GIB
"""Bytes to leave free on each device: what llama.cpp's ``--fit-target`` leaves by default."""

KV_BLOCKS: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        "f32": (1, 4),
        "f16": (1, 2),
        "bf16": (1, 2),
        "q8_0": (32, 34),
        "q5_1": (32, 24),
        "q5_0": (32, 22),
        "q4_1": (32, 20),
        "q4_0": (32, 18),
        "iq4_nl": (32, 18),
    }
)
"""A cache type's block: elements, and bytes (ggml-common.h)."""

# Every n-th layer attends to everything and the others to a window; True: the first of the n does,
# else the last (load_swa_pattern in src/models). A file may carry a pattern of its own.
_WINDOWED: Mapping[str, tuple[int, bool]] = MappingProxyType(
    {
        "gemma2": (2, False),
        "gpt-oss": (2, False),
        "gemma3": (6, False),
        "plamo3": (8, False),
        **dict.fromkeys(
            ("cohere2", "exaone4", "exaone-moe", "olmo2", "mellum", "muse-glimmer", "afmoe"),
            (4, False),
        ),
        "llama4": (4, False),
        **dict.fromkeys(("smallthinker", "laguna", "cohere2moe"), (4, True)),
    }
)
_WINDOW: Mapping[str, int] = MappingProxyType(
    {"gemma2": 4096, "exaone4": 4096, "exaone-moe": 128, "llama4": 8192}
)
_OWN_PATTERN = frozenset(
    {"gemma3n", "gemma4", "step35", "mimo2", "granite_swa", "spark2_5", "maple", "lfm2"}
)
_RECURRENT = frozenset({"mamba", "mamba2", "rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7"})
_EVERY_FOURTH = frozenset({"qwen3next", "qwen35", "qwen35moe"})
_HYBRID = frozenset(
    {
        *("jamba", "plamo2", "granitehybrid", "lfm2", "lfm2moe", "nemotron_h", "nemotron_h_moe"),
        *("falcon-h1", "minimax-01", "qwen4exp", *_EVERY_FOURTH),
    }
)
_LATENT = frozenset({"deepseek2", "deepseek2-ocr", "mistral4"})
_UNKNOWN = frozenset(
    {
        *("deepseek32", "deepseek4", "glm-dsa", "glm5-next", "hy_v4", "dots3note", "kimi-k3"),
        *("kimi-linear", "bailingmoe3", "minimax-m3", "gemma4-assistant"),
    }
)


@dataclass(frozen=True, slots=True)
class Use:
    """How one model is run. ``context`` in tokens for all ``slots`` together.

    ``unified``: the slots share one cache. ``layers`` on the GPU, the output layer counted as one
    more; None: all, 0: none. ``kv_host`` keeps the cache in RAM. ``batch`` is the physical batch
    in tokens, ``full_window`` llama-server's ``--swa-full``.
    """

    context: int
    slots: int = 4
    unified: bool = True
    kv_k: str = "f16"
    kv_v: str = "f16"
    layers: int | None = None
    kv_host: bool = False
    batch: int = 512
    full_window: bool = False


@dataclass(frozen=True, slots=True)
class Cache:
    """A KV cache: bytes of each layer, and what is not quite known about it (a few words)."""

    layers: tuple[int, ...]
    note: str = ""

    @property
    def size(self) -> int:
        """Bytes of all layers."""
        return sum(self.layers)


@dataclass(frozen=True, slots=True)
class Part:
    """One row of the estimate: bytes on the GPU and in RAM."""

    name: str
    gpu: int
    host: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a launch will want. ``unknown`` says what could not be counted; ``context`` in tokens.

    ``whole`` tells whether every layer of the target and of the draft goes to the GPU.
    """

    parts: tuple[Part, ...]
    context: int
    whole: bool
    unknown: tuple[str, ...] = ()

    @property
    def gpu(self) -> int:
        """Bytes on the GPU, head-room not counted."""
        return sum(part.gpu for part in self.parts)

    @property
    def host(self) -> int:
        """Bytes in RAM, head-room not counted."""
        return sum(part.host for part in self.parts)


def gib(size: int) -> str:
    """Return bytes as ``1.50 GiB``, from ten of them ``24.0 GiB``, and below one ``380 MiB``."""
    value = size / GIB
    if abs(value) >= 10:
        return f"{value:.1f} GiB"
    if abs(value) >= 1:
        return f"{value:.2f} GiB"
    small = size / (1 << 20)
    return f"{small:.0f} MiB" if abs(small) >= 10 else f"{small:.1f} MiB"


def kv_cache(model: ModelFacts, use: Use) -> Cache | None:
    """Return the KV cache of ``model`` without its MTP layers; None where it cannot be told.

    A row is ``heads x length`` elements in the cache type's blocks; a layer has one for K and one
    for V in each cell; cells are the context padded to 256, for each stream of its own where the
    slots are not unified.
    """
    architecture = model.architecture
    if architecture in _RECURRENT:
        return Cache((), "keeps a small state instead of a cache; it is not counted")
    if architecture in _UNKNOWN or not model.layers:
        return None
    rows = [_row_bytes(model, use, layer) for layer in range(model.layers)]
    if any(row is None for row in rows):
        return None
    cells, streams = _cells(use)
    windowed, note = _windowed(model)
    window = _window_cells(model, use, cells)
    note = note or _hybrid_note(model)
    return Cache(
        tuple(
            (row or 0) * (window if layer in windowed else cells) * streams
            for layer, row in enumerate(rows)
        ),
        note,
    )


def mtp_cache(model: ModelFacts, use: Use) -> int | None:
    """Return the bytes of the KV cache of ``model``'s MTP layers, which draft."""
    row = _row_bytes(model, use, (model.layers or 1) - 1)
    if row is None or model.architecture in _UNKNOWN:
        return None
    cells, streams = _cells(use)
    return row * cells * streams * model.mtp_layers


def _pad(count: int) -> int:
    return -(-count // 256) * 256


def _cells(use: Use) -> tuple[int, int]:
    """Return (cells of a stream, streams), as llama_context pads and divides them."""
    context = _pad(use.context)
    if use.unified or use.slots == 1:
        return context, 1
    return _pad(context // use.slots), use.slots


def _row_bytes(model: ModelFacts, use: Use, layer: int) -> int | None:
    """Return the bytes of one cell of one layer, None where the header does not tell enough."""
    if not model.kv_heads or model.key_length is None or model.value_length is None:
        return None
    if use.kv_k not in KV_BLOCKS or use.kv_v not in KV_BLOCKS:
        return None
    every_fourth = model.architecture in _EVERY_FOURTH and len(model.kv_heads) == 1
    if every_fourth and (layer + 1) % 4:  # the usual interval where the file names none
        return 0
    heads = model.kv_heads[layer] if layer < len(model.kv_heads) else model.kv_heads[-1]
    row = _elements(use.kv_k, heads * model.key_length)
    if model.architecture in _LATENT and heads == 1:
        return row  # the compressed K serves as V as well
    return row + _elements(use.kv_v, heads * model.value_length)


def _elements(kind: str, count: int) -> int:
    elements, size = KV_BLOCKS[kind]
    return -(-count // elements) * size


def _windowed(model: ModelFacts) -> tuple[frozenset[int], str]:
    """Return the layers that only keep a window, and a note where that is not sure."""
    name, layers = model.architecture, model.layers or 0
    if name in _OWN_PATTERN and (model.window or name == "gemma3n"):
        return frozenset(), "at most: some layers keep only a window"
    period, dense_first = _WINDOWED.get(name, (0, False))
    if not period or not (model.window or name in _WINDOW):
        return frozenset(), ""
    if name == "exaone4" and layers != 64:  # only its largest model has windows
        return frozenset(), ""
    dense = 0 if dense_first else period - 1
    return frozenset(i for i in range(layers) if i % period != dense), ""


def _window_cells(model: ModelFacts, use: Use, cells: int) -> int:
    window = model.window or _WINDOW.get(model.architecture, 0)
    if use.full_window or not window:
        return cells
    return min(cells, _pad(min(cells, window * (use.slots if use.unified else 1) + use.batch)))


def _hybrid_note(model: ModelFacts) -> str:
    if model.architecture not in _HYBRID:
        return ""
    told = len(model.kv_heads) > 1 or model.architecture in {*_EVERY_FOURTH, "falcon-h1"}
    state = "the state of its recurrent layers is not counted"
    return state if told else "at most: not every layer has a cache"


def compute_buffer(model: ModelFacts, use: Use, outputs: int = 1) -> int:
    """Return the working memory of a batch in bytes: a rule of thumb.

    Seen of llama-server 11434 on a 576 wide model: two bytes a cell and token of the batch for the
    attention mask, and 13 values of 4 bytes for each of the width and token; logits besides.
    """
    cells, _ = _cells(use)
    batch = min(use.batch, use.context)
    width = 13 * 4 * (model.embedding or 4096)
    return batch * (2 * cells + width) + 4 * outputs * model.vocabulary.size


def estimate(
    target: ModelFacts,
    use: Use,
    draft: ModelFacts | None = None,
    draft_use: Use | None = None,
    *,
    mtp: bool = False,
    draft_length: int = 0,
    projector: int = 0,
) -> Estimate:
    """Return what a launch of ``target`` will want, with ``draft`` or its own MTP layers.

    ``draft_use`` gives a draft's layers and cache types; its context and slots are the target's,
    as in llama-server. ``projector`` is the size of an mmproj file in bytes.
    """
    outputs = use.slots * (1 + draft_length)
    parts, unknown = _model_parts("target", target, use, outputs)
    whole = _is_whole(target, use)
    mine = replace(
        draft_use or replace(use, kv_k="f16", kv_v="f16"),
        context=use.context,
        slots=use.slots,
        unified=use.unified,
        batch=use.batch,
    )
    if mtp and draft is None:
        cache = mtp_cache(target, mine)
        if cache is None:
            unknown.append("the KV cache of the MTP layers")
        parts.append(_placed("MTP KV cache", cache or 0, use if not use.kv_host else _host(use)))
        parts.append(_placed("MTP compute", compute_buffer(target, mine, use.slots), use))
    elif draft is not None:
        more, missing = _model_parts("draft", draft, mine, use.slots)
        parts += more
        unknown += missing
        whole = whole and _is_whole(draft, mine)
    if projector:
        parts.append(_placed("projector", projector, use))
    return Estimate(tuple(parts), use.context, whole, tuple(unknown))


def _host(use: Use) -> Use:
    return replace(use, layers=0)


def _is_whole(model: ModelFacts, use: Use) -> bool:
    return use.layers is None or use.layers > (model.layers or 0)


def _placed(name: str, size: int, use: Use, note: str = "") -> Part:
    on_gpu = use.layers is None or use.layers > 0
    return Part(name, size if on_gpu else 0, 0 if on_gpu else size, note)


def _model_parts(
    name: str, model: ModelFacts, use: Use, outputs: int
) -> tuple[list[Part], list[str]]:
    count = (model.layers or 0) + 1
    on_gpu = count if use.layers is None else min(use.layers, count)
    weights = model.size * on_gpu // count
    parts = [Part(f"{name} weights", weights, model.size - weights)]
    unknown: list[str] = []
    cache = kv_cache(model, use)
    if cache is None:
        unknown.append(f"the KV cache of the {name}")
    else:
        # the last layers go to the GPU, and the output after them counts as one
        first = max(0, count - on_gpu)
        gpu = 0 if use.kv_host or not on_gpu else sum(cache.layers[first:])
        parts.append(Part(f"{name} KV cache", gpu, cache.size - gpu, cache.note))
    parts.append(_placed(f"{name} compute", compute_buffer(model, use, outputs), use))
    return parts, unknown


def largest_context(fits: Callable[[int], bool], most: int, least: int = 1024) -> int | None:
    """Return the largest context in steps of 256 tokens that ``fits``, None where none does."""
    low, high = least // 256, max(least, most) // 256
    if not fits(low * 256):
        return None
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle * 256):
            low = middle
        else:
            high = middle - 1
    return low * 256
