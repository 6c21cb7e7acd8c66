"""Where a server is that somebody else runs, and what opens it. Secrets never leave this file bare.

An address may carry secrets: ``http://user:password@host/?token=…``. They are kept apart from the
address that is shown, recorded and exported.
"""

from __future__ import annotations

import ipaddress
import re
from base64 import b64encode
from dataclasses import dataclass, field
from typing import NoReturn, Self
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

from spectui.domain.errors import UsageError
from spectui.domain.text import clean

DEFAULT_PORT = 8080
"""llama-server's own; used where neither a scheme nor a port is named."""

_HOST = re.compile(r"[\w.-]+|\[[0-9A-Fa-f:.]+(?:%\w+)?\]")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_ENDINGS = ("/v1/chat/completions", "/v1/models", "/v1", "/metrics", "/health", "/slots", "/props")
_OURS = frozenset({"model", "autoload"})  # of a router; what spectui itself says in a query
_HIDDEN = "…"
_SHORTEST = 3  # characters; anything shorter is no secret, and would black out half a sentence


class Secret:
    """A text that must not be shown: only ``reveal`` gives it away, whatever prints or keeps it."""

    __slots__ = ("_value",)

    def __init__(self, value: str = "") -> None:
        """Hold ``value``; an empty one stands for none."""
        self._value = value

    def reveal(self) -> str:
        """Return the text itself, for a request's header and for nothing else."""
        return self._value

    def hide(self, text: str) -> str:
        """Return ``text`` with the secret blacked out, also as it stands in an address."""
        if len(self._value) < _SHORTEST:
            return text
        for form in (self._value, quote(self._value, safe=""), quote_plus(self._value)):
            text = text.replace(form, _HIDDEN)
        return text

    def __bool__(self) -> bool:
        return bool(self._value)

    def __deepcopy__(self, _: object) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not written anywhere")

    def __repr__(self) -> str:
        return "Secret(…)" if self._value else "Secret()"

    __str__ = __repr__


@dataclass(frozen=True, slots=True)
class Access:
    """What opens a server: an API key, or a user with a password, and parts of the query."""

    key: Secret = field(default_factory=Secret)
    user: Secret = field(default_factory=Secret)
    query: tuple[tuple[str, Secret], ...] = ()

    @property
    def authorization(self) -> Secret:
        """The Authorization header, empty where there is nothing to say. A key goes first."""
        if self.key:
            return Secret(f"Bearer {self.key.reveal()}")
        return Secret(f"Basic {self._basic}") if self.user else Secret()

    @property
    def _basic(self) -> str:
        return b64encode(self.user.reveal().encode()).decode("ascii")

    def hide(self, text: str) -> str:
        """Return ``text`` without any of the secrets, should a server have repeated one."""
        user, _, password = self.user.reveal().partition(":")
        basic = Secret(self._basic if self.user else "")
        words = (self.key, self.user, Secret(password or user), basic, *(v for _, v in self.query))
        for word in words:
            text = word.hide(text)
        return text

    def with_key(self, key: Secret) -> Access:
        """Return a copy that has this key, where it is one."""
        return Access(key or self.key, self.user, self.query)


@dataclass(frozen=True, slots=True)
class Address:
    """A server's address without secrets: scheme, host, port, and a prefix of its paths.

    ``url`` has no slash at its end. ``model`` is the model that the address named, as llama-swap's
    ``/upstream/NAME`` and a router's ``?model=NAME`` do. ``local``: it is this machine.
    """

    url: str
    model: str
    local: bool
    access: Access = field(default_factory=Access)


def parse_address(text: str) -> Address:
    """Read what a person typed: with or without a scheme, a port, a path, a user.

    Raises UsageError, without repeating a secret.
    """
    given = text.strip()
    if given.isdecimal():
        given = f"127.0.0.1:{given}"
    elif given.startswith(":"):
        given = f"127.0.0.1{given}" if not given.startswith("::") else given
    scheme = _SCHEME.match(given)
    shown = _harmless(given)
    if scheme and scheme[1].lower() not in {"http", "https"}:
        raise UsageError(f"{scheme[1]} is not http or https", "write http://HOST:PORT")
    try:
        parts = urlsplit(given if scheme else f"http://{given}")
        host = _host(parts.netloc.rpartition("@")[2], shown)
        port = parts.port
    except ValueError:
        raise _wrong(shown) from None
    if port == 0:
        raise _wrong(shown)
    if not scheme and port is None:
        port = DEFAULT_PORT
    path, model = _path(parts.path)
    asked = parse_qsl(parts.query)
    user = unquote(parts.netloc.rpartition("@")[0])
    return Address(
        url=f"{parts.scheme.lower()}://{host}{f':{port}' if port else ''}{path}",
        model=model or dict(asked).get("model", ""),
        local=_is_local(host),
        access=Access(
            user=Secret(user if ":" in user or not user else f"{user}:"),
            query=tuple((name, Secret(value)) for name, value in asked if name not in _OURS),
        ),
    )


def _wrong(shown: str) -> UsageError:
    return UsageError(f"{shown} is not an address", "write http://HOST:PORT, PORT from 1 to 65535")


def _harmless(text: str) -> str:
    """Return what of a mistyped address may be repeated: no user, no query."""
    bare = re.split(r"[?#]", text, maxsplit=1)[0].rpartition("@")[2]
    return clean(bare, limit=100) or "this"


def _host(netloc: str, shown: str) -> str:
    host = netloc
    if not netloc.startswith("["):
        if netloc.count(":") > 1:
            raise UsageError(f"{shown} is not an address", "write IPv6 as http://[::1]:8080")
        host = netloc.partition(":")[0]
    else:
        host = netloc.partition("]")[0] + "]"
    if not _HOST.fullmatch(host):
        raise _wrong(shown)
    return host.lower()


def _path(path: str) -> tuple[str, str]:
    """Return the prefix that all paths have, and the model named behind ``/upstream/``."""
    path = path.rstrip("/")
    for ending in _ENDINGS:
        if path.endswith(ending):
            path = path.removesuffix(ending).rstrip("/")
            break
    prefix, marker, model = path.partition("/upstream/")
    if not marker:
        return path.removesuffix("/upstream"), ""
    return prefix, unquote(model)


def _is_local(host: str) -> bool:
    bare = host.strip("[]").partition("%")[0]
    if bare == "localhost" or bare.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(bare).is_loopback
    except ValueError:
        return False
