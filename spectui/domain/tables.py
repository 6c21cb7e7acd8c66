"""Reads tables as TOML gives them, with a message that names file, key and what is allowed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from spectui.domain.errors import ProfileError
from spectui.domain.text import clean, nearest


class Reader:
    """Reads one table: knows its file and name, so that every complaint says where it stands."""

    def __init__(self, file: str, name: str, table: object) -> None:
        """Take a table by its dotted name. Raises ProfileError where it is none."""
        self.file, self.name = file, name
        if not isinstance(table, Mapping):
            raise ProfileError(file, f"[{name}] is not a table" if name else "not a table")
        self.table: Mapping[str, object] = table

    def where(self, key: str) -> str:
        """Return the place of ``key`` for a message."""
        path = f"{self.name}.{key}" if self.name else key
        return f"{self.file}: {path}" if self.file else path

    def fail(self, key: str, allowed: str) -> ProfileError:
        """Return the error of a value that is not ``allowed``."""
        shown = clean(repr(self.table[key]), limit=60)
        return ProfileError(self.where(key), f"{shown} is not {allowed}")

    def known(self, keys: Iterable[str]) -> None:
        """Refuse every key but these."""
        names = list(keys)
        for key in self.table:
            if key not in names:
                close = nearest(str(key), names)
                path = clean(self.where(str(key)), limit=300)
                fix = f"did you mean {close}?" if close else f"known here are {', '.join(names)}"
                raise ProfileError(path, "unknown key", fix)

    def text(self, key: str, default: str = "") -> str:
        """Return a text that is not blank."""
        value = self.table.get(key, default)
        if not isinstance(value, str):
            raise self.fail(key, "a text")
        if key in self.table and not value.strip():
            raise self.fail(key, "a text with something in it; leave the key out for none")
        if "\0" in value:
            raise self.fail(key, "a text without NUL")
        return value

    def whole(self, key: str, default: int, low: int, high: int) -> int:
        """Return a whole number from ``low`` to ``high``."""
        value = self.table.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self.fail(key, f"a whole number from {low} to {high}")
        return value

    def maybe_whole(self, key: str, low: int, high: int) -> int | None:
        """Return a whole number from ``low`` to ``high``, None where the key is not there."""
        return self.whole(key, low, low, high) if key in self.table else None

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts."""
        value = self.table.get(key, [])
        if not isinstance(value, list | tuple) or not all(
            isinstance(item, str) and "\0" not in item for item in value
        ):
            raise self.fail(key, 'a list of texts, such as ["a", "b"]')
        return tuple(value)
