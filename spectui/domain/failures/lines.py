"""One line of a log from anywhere: what the server said, without what others put before it.

llama-server's own stamps, its JSON lines, and the prefixes of docker, journald, Kubernetes,
llama-swap and llama-server's router are taken off. Every pattern is linear in the line's length.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from spectui.domain.text import clean

MAX_LINE = 4096
"""Characters of a line that are looked at; nothing that tells stands further back."""

_CONTAINER = re.compile(r"\[?[\w.-]{1,64}\]? {0,40}\| ?")
_JOURNAL = re.compile(
    r"(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT[\d:.,+Z-]{8,32})"
    r" [\w.-]{1,64} [^\s\[:]{1,64}(?:\[\d{1,10}\])?: ?"
)
_PROGRAM = re.compile(r"[\w./-]{0,64}(?:llama|server)[\w.-]{0,64}\[\d{1,10}\]: ?")
_DATE = re.compile(
    r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?[ \t]"
)
_STREAM = re.compile(r"std(?:out|err) [FP] ")
_BRACKET = re.compile(r"\[(?:INFO|WARN|ERROR|DEBUG|[\w-]{1,40} std(?:out|err))\] ?", re.IGNORECASE)
_CHILD = re.compile(r"\[ {0,4}\d{4,5}\] ?")
_OTHERS = (_CONTAINER, _JOURNAL, _PROGRAM, _DATE, _STREAM, _BRACKET)

_STAMP = re.compile(r"(\d{1,6})\.(\d\d)\.(\d{3})\.(\d{3}) ([A-Z]) ")
_LEVEL = re.compile(r"([IWED]) (?=[a-z_]+ *[:(]|[a-z]{3,4} {1,10}[a-z_]+)")
_NAMED_LEVEL = re.compile(r"(INFO|WARN|ERR|VERB|DEBUG)\w{0,4} ")


_LETTERS = {"I": "I", "W": "W", "E": "E", "D": "D", "V": "D", "T": "D", "F": "E"}


@dataclass(slots=True)  # not frozen: that would double the time that a line takes
class Line:
    """What one line says. ``level`` is I, W, E, D or empty where the line does not tell.

    ``stamp`` in seconds since the server's start, None without one; ``child`` tells whether a
    router passed it on from one of its servers.
    """

    text: str
    level: str = ""
    stamp: float | None = None
    child: bool = False


def read_line(raw: str) -> Line:
    """Return what ``raw`` says; any text is taken, at most ``MAX_LINE`` characters of it count."""
    text = raw[:MAX_LINE].rstrip("\r\n")
    if not text.isprintable():
        text = clean(text, limit=MAX_LINE)
    child = False
    for _ in range(4):  # docker's before journald's before the router's before the server's own
        stamped = _STAMP.match(text)
        if stamped:
            minutes, seconds, milli, micro = map(int, stamped.group(1, 2, 3, 4))
            stamp = minutes * 60 + seconds + milli / 1e3 + micro / 1e6
            return Line(text[stamped.end() :].strip(), _same(stamped.group(5)), stamp, child)
        if text.startswith("{"):
            return _json_line(text, child=child)
        passed_on = _CHILD.match(text)
        found = passed_on or next((m for p in _OTHERS if (m := p.match(text)) and m.end()), None)
        if found is None:
            break
        child = child or passed_on is not None
        text = text[found.end() :]
    levelled = _LEVEL.match(text) or _NAMED_LEVEL.match(text)
    if levelled is None:
        return Line(text.strip(), child=child)
    return Line(text[levelled.end() :].strip(), _same(levelled.group(1)), child=child)


def _same(level: str) -> str:
    """Return the letter for a level's letter or name; traces count as debug."""
    return _LETTERS.get(level[:1].upper(), "")


def _json_line(text: str, *, child: bool) -> Line:
    """Read a line of ``--log-jsonl``, of the JSON logger of 2024, or of docker's own log file."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return Line(text.strip(), child=child)
    if not isinstance(data, dict):
        return Line(text.strip(), child=child)
    inner = data.get("log")
    if isinstance(inner, str) and "stream" in data:
        return read_line(inner) if not inner.startswith("{") else Line(inner.strip(), child=child)
    words = data.get("msg")
    if not isinstance(words, str):
        return Line(text.strip(), child=child)
    when, level = data.get("time"), data.get("level")
    stamp = when / 1e6 if isinstance(when, int | float) and not isinstance(when, bool) else None
    # the JSON logger of 2024 keeps what matters beside the message
    more = data.get("error") or data.get("what") or ""
    said = f"{words} {more}" if isinstance(more, str) and more else words
    return Line(
        clean(said, limit=MAX_LINE).strip(),
        _same(level) if isinstance(level, str) else "",
        stamp,
        child,
    )
