"""The text of /metrics → Counters, tolerantly: one bad line never costs the rest of the page.

llama-server and vLLM print the same speculation counters under different prefixes, and some builds
leave out the suffix ``_total``. ``n_decode_total`` counts calls, prompts included, and the gauges
of speed reset at every scrape: none of them is read.

SGLang counts verification calls and tokens, and its acceptance figures are gauges of the last
batch. Every call yields the accepted tokens and one more, and a request's first token comes out of
its prompt: so accepted = generated - calls - requests. What was drafted, and at which position it
was accepted, SGLang does not say.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from spectui.domain.acceptance import Counters

MAX_PAGE = 1_000_000
"""Characters read of a page; a real one has a few thousand."""

MAX_POSITIONS = 1024
"""Draft positions read; no knob goes beyond."""

_FIELDS = {
    "tokens_predicted": "predicted",
    "tokens_predicted_seconds": "predicted_seconds",
    "prompt_tokens": "prompt",
    "prompt_seconds": "prompt_seconds",
    "spec_decode_num_draft_tokens": "drafted",
    "spec_decode_num_accepted_tokens": "accepted",
    "spec_decode_num_drafts": "drafts",
    "requests_processing": "in_flight",
    # vLLM's own names
    "generation_tokens": "predicted",
    "num_requests_running": "in_flight",
    # SGLang's
    "spec_verify_calls": "drafts",
    "num_running_reqs": "in_flight",
}
_SGLANG = "sglang"
_SGLANG_REQUESTS = "num_requests"
_SGLANG_LIVE = "realtime_tokens"  # moves while a request runs; generation_tokens at its end
_SGLANG_LENGTH = "spec_accept_length"
_SGLANG_OWN = frozenset({_SGLANG_REQUESTS, _SGLANG_LENGTH})
_PER_POSITION = "spec_decode_num_accepted_tokens_per_pos"

_Sample = tuple[str, str, str, str]

_LINE = re.compile(
    r"(llamacpp|vllm|sglang):(\w{1,100})"
    r"(?:\{(.*)\})?"
    r"[ \t]+\+?([0-9][0-9.]{0,39}(?:[eE][+-]?[0-9]{1,3})?)"  # neither NaN, nor Inf, nor below 0
    r"(?:[ \t]+-?[0-9]+)?"  # a timestamp
    r"[ \t]*",
    re.ASCII,
)
_DECODING = re.compile(r'(?:^|,)[ \t]*mode="decode"')
_POSITION = re.compile(r'(?:^|,)[ \t]*position="([0-9]{1,6})"')
_MODEL = re.compile(r'(?:^|,)[ \t]*model_name="((?:[^"\\]|\\.)*)"')
_RANK = re.compile(r'(?:^|,)[ \t]*(?:tp|pp|moe_ep)_rank="[^"]*"')


def parse_metrics(text: str, model: str = "") -> Counters:
    """Read the counters of one page of /metrics.

    A counter that is not there, or whose value makes no sense, is None. Series that differ in
    their labels (vLLM's engines) are added up; of several models only ``model`` counts, where the
    page knows it. Positions may come in any order; one that is missing in between counts 0.
    Nothing is raised, whatever ``text`` is.
    """
    totals: dict[str, dict[str, float]] = {}
    positions: dict[int, dict[str, int]] = {}
    sglang: dict[str, dict[str, float]] = {}
    for prefix, name, labels, value in _of_model(list(_samples(text)), model):
        if name == _PER_POSITION:
            found = _POSITION.search(labels)
            if found and (at := int(found[1])) < MAX_POSITIONS:
                positions.setdefault(at, {})[labels] = _whole(value)
        elif name in _FIELDS:
            _take(totals.setdefault(_FIELDS[name], {}), prefix, labels, float(value))
        elif prefix == _SGLANG and (name in _SGLANG_OWN or _DECODING.search(labels)):
            _take(sglang.setdefault(name, {}), prefix, labels, float(value))
    said = sglang.pop(_SGLANG_LENGTH, {}).values()  # of each replica: no sum
    sums = {field: math.fsum(series.values()) for field, series in totals.items()}
    _derive(sums, {name: math.fsum(series.values()) for name, series in sglang.items()})
    in_flight = sums.pop("in_flight", None)
    length = max(positions, default=-1) + 1
    return Counters(
        **sums,
        accepted_at=tuple(sum(positions.get(i, {}).values()) for i in range(length)),
        requests_in_flight=None if in_flight is None else round(in_flight),
        said_length=math.fsum(said) / len(said) if any(said) else None,
    )


def _of_model(samples: list[_Sample], model: str) -> list[_Sample]:
    """Return the samples of ``model`` and those of none, or all where none is of ``model``."""
    if not model:
        return samples
    names = [found[1] if (found := _MODEL.search(labels)) else "" for _, _, labels, _ in samples]
    wanted = model.replace("\\", "\\\\").replace('"', '\\"')
    if wanted not in names:
        return samples
    return [one for one, name in zip(samples, names, strict=True) if name in {"", wanted}]


def _take(series: dict[str, float], prefix: str, labels: str, value: float) -> None:
    """Take a value; a series that is printed twice has its last one, not the sum.

    With ``--enable-metrics-for-all-schedulers`` every rank of one SGLang replica prints what all of
    them do together.
    """
    if prefix == _SGLANG:
        labels = _RANK.sub("", labels).removeprefix(",")
        value = max(value, series.get(labels, value))
    series[labels] = value


def _derive(sums: dict[str, float], sglang: dict[str, float]) -> None:
    """Add what SGLang's counters have between them, where they are its own."""
    requests = sglang.get(_SGLANG_REQUESTS)
    if requests is not None and "drafts" in sums and "predicted" in sums:
        accepted = sums["predicted"] - sums["drafts"] - requests
        sums.setdefault("accepted", max(0.0, accepted))
    if _SGLANG_LIVE in sglang:
        sums["predicted"] = sglang[_SGLANG_LIVE]


def server_of(text: str) -> str:
    """Return whose page it is: llamacpp, vllm, sglang, or an empty string."""
    return next((prefix for prefix, *_ in _samples(text)), "")


def _samples(text: str) -> Iterator[_Sample]:
    """Yield (prefix, name without ``_total``, labels, value) of every line that can be read."""
    page = text
    if len(text) > MAX_PAGE:
        # what was cut in two would read as a smaller number
        page = text[:MAX_PAGE].rpartition("\n")[0]
    for line in page.split("\n"):
        if line.startswith("#") or len(line) > 2000:
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None:
            continue
        prefix, name, labels, value = match[1], match[2], match[3] or "", match[4]
        try:
            sensible = math.isfinite(float(value))
        except ValueError:
            continue
        if sensible:
            yield prefix, name.removesuffix("_total"), labels, value


def _whole(value: str) -> int:
    """Return a count; those of positions are printed in full, beyond a double's digits."""
    return int(value) if value.isdecimal() else round(float(value))
