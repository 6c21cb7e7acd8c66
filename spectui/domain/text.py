"""Text from outside is untrusted: logs, model metadata, generated text, errors of an API."""

import re
import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches

_ESCAPE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|\x9c|$)"  # OSC, DCS, SOS, PM, APC: titles, clipboard, links
    r"|\x1b[ -/]*[0-~]"  # two-byte escapes
    r"|\x9b[0-?]*[ -/]*[@-~]",  # CSI as one 8-bit byte
    re.DOTALL,
)
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def clean(text: str, *, limit: int = 2000) -> str:
    """Return one harmless line: no escape sequences, controls, direction marks or line breaks.

    At most ``limit`` characters; what is cut off is replaced by an ellipsis.
    """
    text = _ESCAPE.sub("", text[: limit * 4])
    text = text.replace("\t", "    ")
    text = "".join(
        " " if c in "\r\n\v\f\x85" else c
        for c in text
        if c in "\r\n\v\f\x85" or unicodedata.category(c) not in _HIDDEN
    )
    return text if len(text) <= limit else text[: limit - 1] + "…"


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known word that ``word`` was probably meant to be, or an empty string."""
    close = get_close_matches(word, list(known), n=1, cutoff=0.5)
    return close[0] if close else ""


def duration(seconds: float) -> str:
    """Return ``12 s``, ``3 min`` or ``1 h 05 min``."""
    whole = max(0, round(seconds))
    if whole < 90:
        return f"{whole} s"
    minutes = round(whole / 60)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02} min"
