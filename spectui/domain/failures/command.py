"""What a log tells of the command that started the server, where it has it at all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spectui.domain.speculation import TYPES, Draft

_COMMAND = re.compile(
    r"(?:^args: ?|(?:^|[\s\"'/])llama-server(?:\.exe)?[\"']? +(?=-)|^Cmd: \S{1,200} +(?=-))"
)
_NO_COMMAND = re.compile(r"rror|ault|Killed|Aborted|Illegal|usage:")
"""Before the program's name: a complaint about it, or a shell that tells how it died."""

_DRAFT_FLAGS = frozenset(
    {
        *("-md", "--model-draft", "--spec-draft-model"),
        *("-hfd", "-hfrd", "--hf-repo-draft", "--spec-draft-hf"),
    }
)
_SECRETS = frozenset({"--api-key", "-hft", "--hf-token"})
_SHOWN = 300


@dataclass(frozen=True, slots=True)
class CommandLine:
    """The options of it that matter. ``types`` are empty where none was given."""

    shown: str
    draft: str = ""
    types: tuple[str, ...] = ()
    zero_length: bool = False

    @classmethod
    def find(cls, text: str) -> CommandLine | None:
        """Return what ``text`` says if it is a command line of llama-server, else None."""
        if "llama-server" not in text and not text.startswith(("args:", "Cmd:")):
            return None
        found = _COMMAND.search(text)
        if found is None or _NO_COMMAND.search(text[: found.start()]):
            return None
        return cls.of(text[found.end() :].split())

    @classmethod
    def of(cls, words: Sequence[str]) -> CommandLine:
        """Return what ``words``, a program's arguments, say."""
        draft, length = "", ""
        types: list[str] = []
        for word, following in zip(words, [*words[1:], ""], strict=False):
            name, equals, joined = word.partition("=")
            value = (joined if equals else following).strip("'\"")
            if name in _DRAFT_FLAGS:
                draft = value
            elif name == "--spec-type":
                types += value.split(",")
            elif name == "--spec-default":
                types.append("ngram-mod")
            elif name == "--spec-draft-n-max":
                length = value
        kept = tuple(kind for kind in types if kind and kind != "none")
        return cls(" ".join(_without_secrets(words))[:_SHOWN], draft, kept, length == "0")

    @property
    def uses_draft(self) -> bool:
        """Whether one of the types can use a draft model; unknown types count as if they did."""
        return any(kind not in TYPES or TYPES[kind].draft is not Draft.NONE for kind in self.types)

    @property
    def drafts_with_model(self) -> bool:
        """Whether ``--spec-draft-n-max`` acts on one of the types."""
        return any(kind.startswith("draft") for kind in self.types)

    @property
    def trained(self) -> str:
        """Return the kind of draft that is made for one target only, or nothing."""
        kinds = ("eagle3", "dflash", "dspark")
        return next((kind for kind in kinds if f"draft-{kind}" in self.types), "")

    @property
    def joins_drafts(self) -> bool:
        """Whether two types want the one draft context that there is."""
        return sum(kind.startswith("draft") for kind in self.types) > 1

    @property
    def needs_draft(self) -> str:
        """Return the first type that cannot do without a draft model, or nothing."""
        return next(
            (kind for kind in self.types if kind in TYPES and TYPES[kind].draft is Draft.NEEDED), ""
        )


def _without_secrets(words: Sequence[str]) -> Iterator[str]:
    hide = False
    for word in words:
        name, equals, _ = word.partition("=")
        if hide:
            yield "…"
        else:
            yield f"{name}=…" if equals and name in _SECRETS else word
        hide = not equals and name in _SECRETS
