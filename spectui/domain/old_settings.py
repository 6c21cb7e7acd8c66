"""Words and variables of an old command → settings: which flag, which values, as written where."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from spectui.domain.flags import (
    OLD_ENV,
    OPTIONAL_VALUES,
    REPEATABLE,
    TRUTHS,
    Fate,
    Flag,
    by_env,
    find,
    guess,
    normal,
)
from spectui.domain.imported import Notice, is_secret, shown

HIDDEN = frozenset({"--api-key", "--hf-token", "--mcp-servers-json"})
"""Canonical names of the flags whose value is nobody's business."""


_FORK_UI = Flag(("--webui",), arity=1, fate=Fate.FORK)  # a switch in llama.cpp
_FORK_UIS = frozenset({"none", "auto", "llamacpp"})


@dataclass(frozen=True, slots=True)
class Setting:
    """One flag that a command sets: its values, whether it says yes, and how it was written."""

    flag: Flag
    values: tuple[str, ...]
    positive: bool
    written: str
    from_env: bool = False
    bare: bool = False

    @property
    def value(self) -> str:
        """The first value, empty where the flag takes none."""
        return self.values[0] if self.values else ""

    @property
    def text(self) -> str:
        """The setting as a message shows it; never with a secret."""
        values = ("…",) if self.flag.name in HIDDEN else self.values
        if self.bare:
            return self.written
        sign = "=" if self.from_env else " "
        return shown(sign.join((self.written, *values)))


@dataclass(slots=True)
class Settings:
    """Everything a command sets, in its order; what is taken out of it is dealt with."""

    items: list[Setting] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)

    def note(self, code: str, message: str) -> None:
        """Add something to know."""
        self.notices.append(Notice(code, message))

    def take_all(self, *names: str) -> list[Setting]:
        """Take out every setting of the flags with these canonical names."""
        taken = [item for item in self.items if item.flag.name in names]
        self.items = [item for item in self.items if item.flag.name not in names]
        return taken

    def take(self, *names: str) -> Setting | None:
        """Take out the settings of these flags; of several the last one counts."""
        return next(reversed(self.take_all(*names)), None)


def read_settings(arguments: Sequence[str], env: Iterable[tuple[str, str]]) -> Settings:
    """Return what the variables and then the words of a command set, as llama-server reads them.

    Variables come first, since words override them. What is no flag of any llama-server is noted
    and left out, and so is a flag whose value is missing.
    """
    found = Settings()
    for name, value in env:
        _read_env(found, name, value)
    words = _Words(arguments)
    for word in words:
        _read_word(found, words, word)
    found.items = list(_last_ones(found))
    return found


class _Words:
    """The words of a command, with a look at the next one."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words, self._at = words, 0

    def __iter__(self) -> Iterator[str]:
        while self._at < len(self._words):
            self._at += 1
            yield self._words[self._at - 1]

    @property
    def next(self) -> str | None:
        return self._words[self._at] if self._at < len(self._words) else None

    def pull(self, count: int) -> tuple[str, ...] | None:
        """Return the next ``count`` words and go past them; None where there are fewer."""
        if self._at + count > len(self._words):
            return None
        self._at += count
        return tuple(self._words[self._at - count : self._at])


def _read_word(found: Settings, words: _Words, word: str) -> None:
    known = find(word)
    if known is None and word.startswith("--") and "=" in word:
        name, _, value = word.partition("=")
        known = find(name)
        if known is not None and known[0].arity == 1:
            found.note("renamed", f"{name}=… is refused by llama-server: it is now two words")
            found.items.append(Setting(known[0], (value,), known[1], normal(name)))
            return
        known = None
    if known is None:
        _unknown(found, words, word)
        return
    flag, positive = known
    if flag.name == "--ui" and words.next in _FORK_UIS:
        flag = _FORK_UI
    choice = OPTIONAL_VALUES.get(flag.name)
    if choice is not None and not _may_follow(words.next, choice[1]):
        swallows = f" and would swallow {shown(words.next, 40)}" if words.next else ""
        found.note(
            "renamed",
            f"{word} without a value is of an older build; today's needs one{swallows}:"
            f" written as {word} {choice[0]}",
        )
        found.items.append(Setting(flag, (choice[0],), positive, normal(word), bare=True))
        return
    values = words.pull(flag.arity)
    if values is None:
        found.note("invalid-value", f"{word} has no value: left out")
        return
    found.items.append(Setting(flag, values, positive, normal(word)))


def _may_follow(word: str | None, allowed: tuple[str, ...]) -> bool:
    return word is not None and (word in allowed or word in TRUTHS or word == "-1")


def _unknown(found: Settings, words: _Words, word: str) -> None:
    if not re.match(r"--?[A-Za-z]", word):
        if word.strip("\\"):  # a backslash that continues nothing is a slip of the paper
            # its text stays unsaid: what lost its flag may be anything, a key too
            found.note("unknown-flag", "a word that belongs to no flag is left out")
        return
    name = word.partition("=")[0]
    following = words.next
    if "=" not in word and following is not None and not following.startswith("-"):
        words.pull(1)  # most flags take a value, and a stray word would be refused as well
    close = guess(name)
    hint = f"; did you mean {close}?" if close else ""
    found.note(
        "unknown-flag",
        f"{shown(name, 60)} is no flag of llama-server, which would not start: left out{hint}",
    )


def _read_env(found: Settings, name: str, value: str) -> None:
    known = by_env(name)
    if known is None:
        if name.startswith("LLAMA_ARG_"):
            found.note("ignored", f"{shown(name, 60)} is read by no llama-server: left out")
        return
    flag, positive = known
    if is_secret(name):
        found.items.append(Setting(flag, (value,), positive, name, from_env=True))
        return
    _note_old_variable(found, name, flag)
    if flag.arity:
        found.items.append(Setting(flag, (value,), positive, name, from_env=True))
        return
    if positive and value not in TRUTHS:
        found.note("invalid-value", f"{name} is neither on nor off: left out")
        return
    says = TRUTHS.get(value, True) if positive else False
    if says or flag.off:  # a switch that cannot be negated is simply not set
        found.items.append(Setting(flag, (), says, name, from_env=True))


def _note_old_variable(found: Settings, name: str, flag: Flag) -> None:
    if name in OLD_ENV:
        found.note(
            "ignored",
            f"{name} is ignored in silence by today's llama-server: taken as {OLD_ENV[name]}",
        )
    elif flag.fate is Fate.GONE:
        found.note("ignored", f"{name} is ignored in silence by today's llama-server")
    elif flag.fate is Fate.REFUSED:
        found.note("renamed", f"{name} stops today's llama-server with exit status 1")


def _last_ones(found: Settings) -> Iterator[Setting]:
    """Of a flag that is repeated only the last setting counts, as in llama-server."""
    last: dict[str, Setting] = {}
    for item in found.items:
        before = last.get(item.flag.name)
        alike = before is not None and (before.values, before.positive) == (
            item.values,
            item.positive,
        )
        if before and not alike and not before.from_env and item.flag.name not in REPEATABLE:
            found.note(
                "duplicate", f"{item.flag.name} is given twice; the last counts: {item.text}"
            )
        last[item.flag.name] = item
    for item in found.items:
        if item.flag.name in REPEATABLE or last[item.flag.name] is item:
            yield item


def whole(text: str) -> int | None:
    """Return a number as C's stoi reads it: what follows the digits is nobody's concern."""
    found = re.match(r"\s*([+-]?\d{1,12})", text)
    return int(found.group(1)) if found else None


def decimal(text: str) -> float | None:
    """Return a number as C's stof reads it, None where there is none or it is not finite."""
    found = re.match(r"\s*([+-]?(?:\d{1,40}\.?\d{0,40}|\.\d{1,40})(?:[eE][+-]?\d{1,2})?)", text)
    return float(found.group(1)) if found else None
