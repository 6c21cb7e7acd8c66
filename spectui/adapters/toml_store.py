"""Profiles as TOML files: read, change by command line, write."""

from __future__ import annotations

import os
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import tomli_w

from spectui.domain.errors import ProfileError, SpectuiError
from spectui.domain.profile import Profile, parse_profile, to_mapping, with_setting
from spectui.domain.text import clean

_LIMIT = 1 << 20  # bytes; a profile is a page of text


def load_profile(path: Path, settings: Iterable[str] = ()) -> Profile:
    """Return the profile in ``path`` with ``table.key=value`` settings applied.

    Relative paths in it are relative to its folder. Raises ProfileError.
    """
    data: Mapping[str, object] = _read(path)
    for setting in settings:
        data = with_setting(data, setting, toml_value)
    return parse_profile(data, file=str(path), resolve=_resolver(path.parent))


def toml_value(text: str) -> object:
    """Return ``text`` as TOML would read it as a value, or as the plain text that it is."""
    try:
        read = tomllib.loads(f"value = {text}")
    except ValueError:
        return text
    return read["value"] if len(read) == 1 else text


def _read(path: Path) -> dict[str, object]:
    try:
        with path.open("rb") as file:
            raw = file.read(_LIMIT + 1)
    except FileNotFoundError:
        fix = "give the path of a TOML profile, or try `spectui demo`"
        raise ProfileError(str(path), "there is no such file", fix) from None
    except IsADirectoryError:
        raise ProfileError(str(path), "this is a folder, not a profile") from None
    except OSError as error:
        raise ProfileError(str(path), f"cannot be read ({error.strerror})") from None
    if len(raw) > _LIMIT:
        raise ProfileError(str(path), "too large for a profile", "is this the right file?")
    try:
        return tomllib.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ProfileError(str(path), "not UTF-8 text", "is this the right file?") from None
    except tomllib.TOMLDecodeError as error:
        raise ProfileError(str(path), f"not valid TOML: {clean(str(error), limit=200)}") from None
    except ValueError:  # a number of thousands of digits
        raise ProfileError(str(path), "not valid TOML: a number is too long") from None
    except RecursionError:
        raise ProfileError(str(path), "nested too deeply to be a profile") from None


def _resolver(folder: Path) -> Callable[[str], str]:
    base = folder.absolute()

    def resolve(path: str) -> str:
        # `..` stays: behind a link only the system knows where it leads
        if not path.startswith("~"):
            return str(base / path)
        try:
            return str(Path(path).expanduser())
        except RuntimeError:
            fix = "write ./ before it if ~ is part of the name"
            raise ProfileError(clean(path, limit=200), "there is no such home", fix) from None

    return resolve


def save_profile(profile: Profile, path: Path) -> None:
    """Write a profile whole or not at all; files below its folder are named relative to it.

    Raises SpectuiError where it cannot be written; a file that was there stays as it was.
    """
    path = path.absolute()

    def relate(target: str) -> str:
        if not Path(target).is_relative_to(path.parent):
            return target
        short = str(Path(target).relative_to(path.parent))
        # without a slash an engine is a name, and a leading ~ a home
        return short if "/" in short and not short.startswith("~") else f"./{short}"

    save_text(toml_text(to_mapping(profile, relate=relate)), path)


def toml_text(data: Mapping[str, object]) -> str:
    """Return the tables of a profile as TOML."""
    return tomli_w.dumps(data)


def save_text(text: str, path: Path) -> None:
    """Write a text whole or not at all; a file that was there stays as it was.

    Raises SpectuiError where it cannot be written.
    """
    path = path.absolute()
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            Path(name).chmod(0o644)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        what = f"{path} cannot be written ({error.strerror})"
        raise SpectuiError(what, "choose another place") from None
