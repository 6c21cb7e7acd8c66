"""The workload: the built-in prompts, or the user's own file, as plain text or JSONL.

Plain text holds one prompt a line; blank lines and lines that start with ``#`` are skipped.
JSONL holds one object a line: ``prompt`` (text) or ``messages`` (a list of ``role`` and
``content``), and perhaps ``task`` and ``id``. A file is JSONL if its name ends in ``.jsonl`` or
its first line that is not blank starts with ``{``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import chain, zip_longest
from pathlib import Path
from typing import Final

from spectui.domain.errors import WorkloadError
from spectui.domain.profile import BUILTIN, TASKS
from spectui.domain.runs import Prompt
from spectui.domain.text import clean, nearest

OWN_TASK: Final = "own"
"""The task of a prompt that names none."""

ROLES: Final = ("system", "user", "assistant")
ONE_OBJECT: Final = 'each line of JSONL is one object like {"prompt": "…"}'
KEYS: Final = ("prompt", "messages", "task", "id")
MAX_BYTES: Final = 64 * 1024 * 1024
"""Files above this are refused: they are no prompts, and each run would send them all."""

NAME_LENGTH: Final = 64
"""The most characters of a task or an id: they are columns of tables and of file formats."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Prompts to send, each text once. ``duplicates`` were dropped: the first of each is kept.

    A text that is sent twice within a launch turns n-gram pools and caches into fake wins.
    """

    prompts: tuple[Prompt, ...]
    duplicates: int = 0


def load_prompts(source: str | Path, tasks: Sequence[str] | None = None) -> tuple[Prompt, ...]:
    """Return the prompts of ``load_workload``, without the count of duplicates."""
    return load_workload(source, tasks).prompts


def load_workload(source: str | Path, tasks: Sequence[str] | None = None) -> Workload:
    """Read "builtin" or a file; keep the prompts of ``tasks``, all where None.

    Order is that of the file. Raises WorkloadError with the file and the line.
    """
    if source == BUILTIN:
        found = _builtin()
    else:
        path = Path(source)
        found = tuple(_parse(_read(path), _shown(path), jsonl=path.suffix.lower() == ".jsonl"))
    kept = _of_tasks(found, tasks, _shown(source))
    first = {prompt.messages: prompt for prompt in reversed(kept)}
    prompts = tuple(prompt for prompt in kept if first[prompt.messages] is prompt)
    return Workload(prompts, len(kept) - len(prompts))


def interleave(prompts: Iterable[Prompt], limit: int | None = None) -> tuple[Prompt, ...]:
    """Return the prompts one task after the other in turn, ``limit`` per task at most.

    Whoever stops a run early has still seen every task. The order within a task is kept; tasks
    take turns in the order of their first prompt. None: no limit.
    """
    by_task: dict[str, list[Prompt]] = {}
    for prompt in prompts:
        by_task.setdefault(prompt.task, []).append(prompt)
    rows = [row if limit is None else row[: max(limit, 0)] for row in by_task.values()]
    turns = chain.from_iterable(zip_longest(*rows))
    return tuple(prompt for prompt in turns if prompt is not None)


def digest(prompts: Iterable[Prompt]) -> str:
    """Return 16 hex digits over ids, tasks and messages, in order: equal means comparable."""
    rows = [[prompt.id, prompt.task, prompt.messages] for prompt in prompts]
    # ASCII: a lone surrogate, which JSON can spell, has no UTF-8
    return hashlib.sha256(json.dumps(rows, ensure_ascii=True).encode("ascii")).hexdigest()[:16]


def _builtin() -> tuple[Prompt, ...]:
    folder = files("spectui.workloads")
    return tuple(
        chain.from_iterable(
            _parse(
                (folder / f"{task}.jsonl").read_text(encoding="utf-8"), f"{task}.jsonl", jsonl=True
            )
            for task in TASKS
        )
    )


def _shown(source: str | Path) -> str:
    return clean(str(source), limit=400)


def _read(path: Path) -> str:
    shown = _shown(path)
    fix = 'name a file of prompts, or "builtin" for those that come with spectui'
    try:
        if path.is_dir():
            raise WorkloadError(f"{shown} is a folder", fix)
        if not path.is_file() and path.exists():
            # a pipe or a device would block or never end
            raise WorkloadError(f"{shown} is not a regular file", fix)
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise WorkloadError(f"{shown} does not exist", fix) from None
    except (OSError, ValueError) as error:
        why = clean(getattr(error, "strerror", None) or str(error), limit=200)
        raise WorkloadError(f"{shown} cannot be read ({why})", fix) from error
    if len(data) > MAX_BYTES:
        raise WorkloadError(
            f"{shown} is larger than {MAX_BYTES // 1024**2} MB", "keep the prompts that matter"
        )
    if b"\0" in data:
        # UTF-16 of plain English passes for UTF-8 with a NUL after each letter
        raise WorkloadError(f"{shown} holds NUL bytes, it is no UTF-8 text", "save it as UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise WorkloadError(
            f"{shown}, line {line}: not UTF-8 text", "save the file as UTF-8"
        ) from None


def _parse(text: str, shown: str, *, jsonl: bool) -> Iterator[Prompt]:
    # not splitlines: it also splits at U+2028 and form feeds, which may stand in a prompt
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = [
        (number, stripped)
        for number, line in enumerate(text.split("\n"), 1)
        if (stripped := line.strip())
    ]
    if jsonl or (lines and lines[0][1].startswith("{")):
        yield from _jsonl(lines, shown)
    else:
        yield from _plain(lines)


def _plain(lines: Iterable[tuple[int, str]]) -> Iterator[Prompt]:
    texts = (line for _, line in lines if not line.startswith("#"))
    for number, text in enumerate(texts, 1):
        yield Prompt(f"{OWN_TASK}-{number}", OWN_TASK, (("user", text),))


def _jsonl(lines: Iterable[tuple[int, str]], shown: str) -> Iterator[Prompt]:
    records = [(number, _Record(line, f"{shown}, line {number}")) for number, line in lines]
    named: dict[str, int] = {}
    for number, record in records:
        if record.id is None:
            continue
        if record.id in named:
            raise WorkloadError(
                f"{record.where}: the id {clean(record.id)!r} is that of line {named[record.id]}",
                "give each prompt an id of its own, or none",
            )
        named[record.id] = number
    taken, counts = set(named), dict[str, int]()
    for _, record in records:
        identity = record.id
        while identity is None or (record.id is None and identity in taken):
            counts[record.task] = counts.get(record.task, 0) + 1
            identity = f"{record.task}-{counts[record.task]}"
        taken.add(identity)
        yield Prompt(identity, record.task, record.messages)


class _Record:
    """One checked line of JSONL. ``where`` is the file and the line, for messages."""

    def __init__(self, line: str, where: str) -> None:
        self.where = where
        try:
            value: object = json.loads(line)
        except json.JSONDecodeError as error:
            what = f"{where}: not valid JSON ({error.msg} at column {error.colno})"
            raise WorkloadError(what, ONE_OBJECT) from None
        except (RecursionError, ValueError):
            # nesting without end, or a number with thousands of digits
            raise WorkloadError(f"{where}: JSON that cannot be read", ONE_OBJECT) from None
        if not isinstance(value, dict):
            raise self.error(f"{_kind(value)}, not an object", ONE_OBJECT)
        self._unknown(value)
        self.id = self._name(value, "id")
        self.task = self._name(value, "task") or OWN_TASK
        self.messages = self._messages(value)

    def error(self, what: str, fix: str) -> WorkloadError:
        return WorkloadError(f"{self.where}: {what}", fix)

    def _unknown(self, value: dict[str, object]) -> None:
        """Name the misspelt key of a line without a prompt; extra keys of other tools may stay."""
        for key in value:
            close = nearest(key, KEYS) if key not in KEYS else ""
            if close in {"prompt", "messages"} and not {"prompt", "messages"} & value.keys():
                raise self.error(f"unknown key {clean(key, limit=40)!r}", f"did you mean {close}?")

    def _name(self, value: dict[str, object], key: str) -> str | None:
        name = value.get(key)
        if name is None:
            return None
        if not isinstance(name, str) or not name.strip():
            raise self.error(f"{key} is {_kind(name)}", f"{key} must be text, or left out")
        shown = clean(name, limit=NAME_LENGTH + 1)
        if shown != name or len(name) > NAME_LENGTH:
            raise self.error(
                f"{key} {clean(name, limit=40)!r} is too long or holds control characters",
                f"{key} may have up to {NAME_LENGTH} printable characters",
            )
        return name

    def _messages(self, value: dict[str, object]) -> tuple[tuple[str, str], ...]:
        prompt, messages = value.get("prompt"), value.get("messages")
        if (prompt is None) == (messages is None):
            both = "neither prompt nor messages" if prompt is None else "both prompt and messages"
            raise self.error(both, "give one of them")
        if messages is None:
            return (("user", self._text(prompt, "prompt")),)
        if not isinstance(messages, list) or not messages:
            raise self.error(
                f"messages is {_kind(messages)}",
                'it must be a list like [{"role": "user", "content": "…"}]',
            )
        found = tuple(self._message(item, n) for n, item in enumerate(messages, 1))
        if found[-1][0] != "user":
            # some templates refuse it, others go on writing the given answer
            raise self.error(
                f"the last message is of {found[-1][0]}", "the last one must be user's"
            )
        return found

    def _message(self, item: object, number: int) -> tuple[str, str]:
        name = f"message {number}"
        if not isinstance(item, dict):
            raise self.error(f"{name} is {_kind(item)}", 'it must be {"role": …, "content": …}')
        role = item.get("role")
        if role not in ROLES:
            given = repr(clean(role, limit=40)) if isinstance(role, str) else _kind(role)
            raise self.error(f"the role of {name} is {given}", f"allowed are {', '.join(ROLES)}")
        return str(role), self._text(item.get("content"), f"the content of {name}")

    def _text(self, text: object, name: str) -> str:
        if not isinstance(text, str):
            raise self.error(f"{name} is {_kind(text)}", "it must be text")
        if not text.strip():
            raise self.error(f"{name} is empty", "write something to send")
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise self.error(
                f"{name} holds half a surrogate pair", "write the character itself"
            ) from None
        return text


def _kind(value: object) -> str:
    """Name a JSON value's type in words."""
    if isinstance(value, str):
        return "text" if value.strip() else "empty text"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    return "an object"


def _of_tasks(
    prompts: tuple[Prompt, ...], tasks: Sequence[str] | None, shown: str
) -> tuple[Prompt, ...]:
    if not prompts:
        raise WorkloadError(
            f"{shown} holds no prompt", "write one a line, or one JSON object a line"
        )
    if tasks is None:
        return prompts
    known = list(dict.fromkeys(prompt.task for prompt in prompts))
    for task in tasks:
        if task not in known:
            close = nearest(task, known)
            meant = f"did you mean {close}? " if close else ""
            listed = clean(", ".join(known), limit=300)
            what = f"{shown} has no task {clean(task, limit=40)!r}"
            raise WorkloadError(what, f"{meant}it has {listed}")
    kept = tuple(prompt for prompt in prompts if prompt.task in tasks)
    if not kept:
        raise WorkloadError("no task is chosen", f"choose of {clean(', '.join(known), limit=300)}")
    return kept
