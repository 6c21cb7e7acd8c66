"""Shell text → simple commands, in the quoting of sh, of Windows' cmd, and of PowerShell.

Nothing is run and nothing is looked up: a variable has the value that the text itself gave it, a
command substitution stays as it stands, and so does a glob. Both are told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from math import prod

from spectui.domain.imported import Notice, shown


class Style(StrEnum):
    """Whose quoting a text is in."""

    SH = "sh"
    CMD = "cmd"
    POWERSHELL = "powershell"


@dataclass(slots=True)
class Statement:
    """One simple command: its words, and whether a new line (not ``;`` or ``&&``) began it."""

    words: list[str] = field(default_factory=list)
    on_new_line: bool = True


_WINDOWS = re.compile(r"(?:^|[\s\"'&])(?:[A-Za-z]:\\|\.{1,2}\\[A-Za-z])|%\w+%")
_PROMPT = re.compile(
    r"^[ \t]*(?:"
    r"[$%]"
    r"|(?:\([\w.-]{1,60}\)[ \t]*)?[\w.-]{1,60}@[\w.-]{1,60}:[^\s$#]{0,200}[$#]"  # user@host:~$
    r"|PS [^>\n]{0,200}>|[A-Z]:\\[^>\n]{0,200}>"
    r"|>{1,2}(?=[ \t]+-)"  # what a shell shows where a command goes on
    r")[ \t]+"
    r"|^[ \t]*\$(?=llama-(?:server|cli)\b)",  # a prompt without a blank, hardly a variable
    re.MULTILINE,
)
_FENCE = re.compile(r"^[ \t]*```.*$", re.MULTILINE)


def style_of(text: str) -> Style:
    """Return the quoting that a text seems to be in."""
    if re.search(
        r"`[ \t]*$|^\s*&\s+['\"(]|\$env:|^\s*\$\w+\s+=\s", text, re.MULTILINE | re.IGNORECASE
    ):
        return Style.POWERSHELL
    if re.search(r"\^[ \t]*$|^\s*(@echo|rem |::|set \"?\w+=)", text, re.MULTILINE | re.IGNORECASE):
        return Style.CMD
    if not _WINDOWS.search(text):
        return Style.SH
    # cmd knows no single quotes
    return Style.POWERSHELL if re.search(r"\s'[^'\n]*'(\s|$)", text) else Style.CMD


def statements(text: str, style: Style, variables: dict[str, list[str]]) -> Reader:
    """Return a reader of the simple commands in ``text``.

    ``variables`` are the words that each variable stands for; the caller adds to it while reading.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return Reader(_FENCE.sub("", _PROMPT.sub("", text)), style, variables)


class Reader:
    """Reads one simple command after the other; ``notices`` tell what could not be expanded."""

    def __init__(self, text: str, style: Style, variables: dict[str, list[str]]) -> None:
        """Read ``text`` from its beginning."""
        self._text, self._style, self._variables = text, style, variables
        self._at = 0
        self._done: list[str] = []
        self._word: list[str] | None = None
        self.notices: list[Notice] = []

    def __iter__(self) -> Iterator[Statement]:
        new_line = True
        while self._at < len(self._text):
            ended = self._step()
            if ended is None:
                continue
            if self._done:
                yield Statement(self._done, new_line)
                self._done = []
                new_line = ended == "\n"
            else:
                new_line = new_line or ended == "\n"
        self._finish()
        if self._done:
            yield Statement(self._done, new_line)

    def _step(self) -> str | None:
        """Read one character or more; return what ended a command, if something did."""
        c = self._text[self._at]
        if c in " \t\f\v" or self._calls(c):
            self._finish()
        elif c == "(" and self._array():
            return None
        elif c == "\n" or (c in ";|&()" and self._separates(c)):
            self._finish()
            self._at += 1
            return c
        elif c == "#" and self._word is None and self._style is not Style.CMD:
            self._skip_line()
            return None
        elif self._escape(c) or self._quote(c) or self._expand(c) or self._redirect(c):
            return None
        else:
            self._add(c)
        self._at += 1
        return None

    def _array(self) -> bool:
        """Read ``NAME=( words )`` into the variables."""
        name = re.fullmatch(r"(\w+)(\+?)=", "".join(self._word or ()))
        if self._style is not Style.SH or name is None:
            return False
        start, depth = self._at + 1, 0
        while self._at < len(self._text):
            depth += {"(": 1, ")": -1}.get(self._text[self._at], 0)
            self._at += 1
            if depth == 0:
                break
        inner = Reader(self._text[start : self._at - 1], self._style, self._variables)
        words = [word for statement in inner for word in statement.words]
        self.notices += inner.notices
        before = self._variables.get(name.group(1), []) if name.group(2) else []
        self._variables[name.group(1)] = [*before, *words]
        self._word = None
        return True

    def _calls(self, c: str) -> bool:
        """Whether ``c`` is PowerShell's call operator: it stands before a command."""
        begun = self._done or self._word is not None
        return c == "&" and self._style is Style.POWERSHELL and not begun

    def _separates(self, c: str) -> bool:
        if self._style is Style.SH:
            return True
        return c in "|&" or (c == ";" and self._style is Style.POWERSHELL)

    def _finish(self) -> None:
        if self._word is not None:
            self._done.append("".join(self._word))
            self._word = None

    def _add(self, text: str) -> None:
        if self._word is None:
            self._word = []
        self._word.append(text)

    def _skip_line(self) -> None:
        end = self._text.find("\n", self._at)
        self._at = len(self._text) if end < 0 else end

    def _escape(self, c: str) -> bool:
        """Read an escaped character, or a line's continuation."""
        sign = {Style.SH: "\\", Style.CMD: "^", Style.POWERSHELL: "`"}[self._style]
        rest = re.compile(r"[ \t]*(\n|$)").match(self._text, self._at + 1)
        if c in {sign, "\\"} and rest and (c == sign or self._word is None):
            self._finish()
            self._at = rest.end()
            return True
        if c != sign:
            return False
        self._add(self._text[self._at + 1 : self._at + 2])
        self._at += 2
        return True

    def _quote(self, c: str) -> bool:
        if c not in "\"'" or (c == "'" and self._style is Style.CMD):
            return False
        self._at += 1
        self._add("")
        while self._at < len(self._text) and self._text[self._at] != c:
            if c == '"' and self._inside_double():
                continue
            if self._style is Style.POWERSHELL and self._text.startswith('\\"', self._at):
                self._at += 1  # the program takes the backslash off, not PowerShell
            self._add(self._text[self._at])
            self._at += 1
        self._at += 1
        return True

    def _inside_double(self) -> bool:
        c, following = self._text[self._at], self._text[self._at + 1 : self._at + 2]
        sign = {Style.SH: "\\", Style.CMD: "\\", Style.POWERSHELL: "`"}[self._style]
        escaped = '"' if self._style is Style.CMD else '"$`\\\n'
        if c == sign and following and following in escaped:
            self._at += 2
            if following != "\n":
                self._add(following)
            return True
        return self._expand(c, quoted=True)

    def _redirect(self, c: str) -> bool:
        """Skip ``> file``, ``2>&1``, ``< file`` and a here-document."""
        if c not in "<>":
            return False
        blank = _BLANK.match(self._text, self._at)
        if blank:  # <MODEL>: something to fill in, as documentation writes it
            self._add(blank.group(0))
            self._at = blank.end()
            return True
        if self._word is not None and "".join(self._word).isdecimal():
            self._word = None
        self._finish()
        here = re.compile(r"<<-?[ \t]*['\"]?(\w+)['\"]?").match(self._text, self._at)
        if here:
            last = re.compile(rf"^[ \t]*{here.group(1)}[ \t]*$", re.MULTILINE)
            end = last.search(self._text, here.end())
            self._at = end.end() if end else len(self._text)
            return True
        found = re.compile(r"[<>]+&?[ \t]*(\"[^\"\n]*\"|'[^'\n]*'|[^\s;|&<>()]*)").match(
            self._text, self._at
        )
        self._at = found.end() if found else self._at + 1
        return True

    def _expand(self, c: str, *, quoted: bool = False) -> bool:
        if self._style is Style.CMD:
            return self._expand_percent(c, quoted=quoted)
        if self._style is Style.SH and (c == "`" or self._text.startswith("$(", self._at)):
            self._keep_substitution()
            return True
        found = _VARIABLE.match(self._text, self._at) if c == "$" else None
        if found is None:
            return False
        self._at = found.end()
        name = found.group(1) or found.group(2) or found.group(4)
        self._put(name, found.group(0), found.group(3), quoted=quoted)
        return True

    def _expand_percent(self, c: str, *, quoted: bool) -> bool:
        found = re.compile(r"%(\w+)%").match(self._text, self._at) if c == "%" else None
        if found is None:
            return False
        self._at = found.end()
        self._put(found.group(1), found.group(0), None, quoted=quoted)
        return True

    def _put(self, name: str, written: str, default: str | None, *, quoted: bool) -> None:
        key = name.upper() if self._style is Style.CMD else name
        words = self._variables.get(key)
        if words is None and default is not None:
            words = [default]
        if words is None and key in {"HOME", "USERPROFILE"} and not self._word:
            words = ["~"]
        if words is None and key == "PWD" and not self._word:
            words = ["."]
        if words is None:
            self._add(written)
            why = f"{shown(written, 60)} has no value in the text: it stays as it is written"
            self._note("variable", why)
        elif quoted and not written.endswith("[@]}"):
            self._add(" ".join(words))
        else:
            parts = words if quoted else [part for word in words for part in word.split()]
            for number, part in enumerate(parts):
                if number:
                    self._finish()
                self._add(part)

    def _keep_substitution(self) -> None:
        start, depth = self._at, 0
        if self._text[start] == "`":
            end = self._text.find("`", start + 1)
            self._at = len(self._text) if end < 0 else end + 1
        else:
            self._at += 1
            while self._at < len(self._text):
                depth += {"(": 1, ")": -1}.get(self._text[self._at], 0)
                self._at += 1
                if depth == 0:
                    break
        written = self._text[start : self._at]
        if (number := _computed(written)) is not None:
            self._add(str(number))
            return
        self._add(" ".join(written.split()))
        why = f"{shown(written, 60)} is neither run nor computed: write its result in its place"
        self._note("substitution", why)

    def _note(self, code: str, message: str) -> None:
        notice = Notice(code, message)
        if notice not in self.notices:
            self.notices.append(notice)


def _computed(written: str) -> int | None:
    """Return what ``$((32 * 1024))`` is; None for all that is more than a product of numbers."""
    product = re.fullmatch(r"\$\(\(([\d\s*]{1,60})\)\)", written)
    factors = [factor.strip() for factor in product.group(1).split("*")] if product else []
    return prod(map(int, factors)) if factors and all(map(str.isdecimal, factors)) else None


_BLANK = re.compile(r"<[A-Za-z][\w .:/-]{0,60}>")

# $NAME, ${NAME}, ${NAME[@]}, ${NAME:-default}, $env:NAME
_VARIABLE = re.compile(
    r"\$(?:env:(\w+)|\{(?:env:)?([A-Za-z_]\w*)(?:\[@\]|:?-([^}]*))?\}|([A-Za-z_]\w*))",
    re.IGNORECASE,
)
