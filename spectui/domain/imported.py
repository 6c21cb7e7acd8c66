"""What an old command is, and what importing it gives."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from spectui.domain.text import clean


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing to know about an imported command: a stable code and a sentence."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class OldCommand:
    """One llama-server command line as somebody wrote it, already split into words.

    ``program`` is as written, empty where only flags were given. ``env`` are the variables it was
    given. ``mounts`` are pairs of a folder of the host and where a container sees it; ``container``
    says that paths are the container's. ``name`` is what a configuration file calls it.
    ``notices`` are what reading it out of its text had to say.
    """

    program: str
    arguments: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    mounts: tuple[tuple[str, str], ...] = ()
    container: bool = False
    name: str = ""
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class Imported:
    """A profile as its TOML has it, the variables it sets for the server, and what to know."""

    profile: Mapping[str, object]
    env: Mapping[str, str]
    warnings: tuple[Notice, ...]

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of the warnings, each once, in their order."""
        return tuple(dict.fromkeys(notice.code for notice in self.warnings))


def shown(text: str, limit: int = 100) -> str:
    """Return a word of the command as a message may show it."""
    return clean(text, limit=limit)


_SECRET = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|API_?KEY|_KEY$", re.IGNORECASE)


def is_secret(name: str) -> bool:
    """Whether a variable of this name may hold what nobody else should see."""
    return bool(_SECRET.search(name))
