"""The text of /metrics → Counters, tolerantly: one bad line never costs the rest of the page.

llama-server and vLLM print the same speculation counters under different prefixes, and some builds
leave out the suffix ``_total``. ``n_decode_total`` counts calls, prompts included, and the gauges
of speed reset at every scrape: none of them is read.
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
}
_PER_POSITION = "spec_decode_num_accepted_tokens_per_pos"

_LINE = re.compile(
    r"(?:llamacpp|vllm):(\w{1,100})"
    r"(?:\{(.*)\})?"
    r"[ \t]+\+?([0-9][0-9.]{0,39}(?:[eE][+-]?[0-9]{1,3})?)"  # neither NaN, nor Inf, nor below 0
    r"(?:[ \t]+-?[0-9]+)?"  # a timestamp
    r"[ \t]*",
    re.ASCII,
)
_POSITION = re.compile(r'(?:^|,)[ \t]*position="([0-9]{1,6})"')


def parse_metrics(text: str) -> Counters:
    """Read the counters of one page of /metrics.

    A counter that is not there, or whose value makes no sense, is None. Series that differ in
    their labels (vLLM's engines) are added up. Positions may come in any order; one that is
    missing in between counts 0. Nothing is raised, whatever ``text`` is.
    """
    totals: dict[str, dict[str, float]] = {}
    positions: dict[int, dict[str, int]] = {}
    for name, labels, value in _samples(text):
        if name == _PER_POSITION:
            found = _POSITION.search(labels)
            if found and (at := int(found[1])) < MAX_POSITIONS:
                positions.setdefault(at, {})[labels] = _whole(value)
        elif name in _FIELDS:
            # a series printed twice has its last value, not the sum
            totals.setdefault(_FIELDS[name], {})[labels] = float(value)
    sums = {field: math.fsum(series.values()) for field, series in totals.items()}
    in_flight = sums.pop("in_flight", None)
    length = max(positions, default=-1) + 1
    return Counters(
        **sums,
        accepted_at=tuple(sum(positions.get(i, {}).values()) for i in range(length)),
        requests_in_flight=None if in_flight is None else round(in_flight),
    )


def _samples(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield (name without ``_total``, labels, value) of every line that can be read."""
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
        name, labels, value = match[1], match[2] or "", match[3]
        try:
            sensible = math.isfinite(float(value))
        except ValueError:
            continue
        if sensible:
            yield name.removesuffix("_total"), labels, value


def _whole(value: str) -> int:
    """Return a count; those of positions are printed in full, beyond a double's digits."""
    return int(value) if value.isdecimal() else round(float(value))
