"""``docker run`` and its likes → the server's words, its variables, and where its files lie."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from spectui.domain.imported import Notice, OldCommand, shown
from spectui.domain.old_paths import program_of

RUNTIMES = frozenset({"docker", "podman", "nerdctl", "docker.exe", "podman.exe"})

# the switches; any other option of `docker run` takes a value
_SWITCHES = frozenset(
    {
        *("--detach", "--interactive", "--tty", "--rm", "--init", "--privileged", "--read-only"),
        *("--publish-all", "--no-healthcheck", "--oom-kill-disable", "--sig-proxy", "--quiet"),
        *("--disable-content-trust", "--replace", "--tls-verify", "--http-proxy", "--env-host"),
    }
)
_LONG = {"-e": "--env", "-v": "--volume", "-p": "--publish"}
_SHORT_SWITCHES = frozenset("ditPq")
_IMAGE = re.compile(r"llama[-_.]?cpp|llama-server|ik[-_]llama", re.IGNORECASE)


@dataclass(slots=True)
class Container:
    """What a container is given."""

    image: str = ""
    entrypoint: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    env: list[tuple[str, str]] = field(default_factory=list)
    mounts: list[tuple[str, str]] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)

    def command(self, env: Iterable[tuple[str, str]] = (), name: str = "") -> OldCommand | None:
        """Return the server's command in it, None where it is none of llama.cpp's."""
        words = (*self.entrypoint, *self.words)
        if words and words[0] in {"--server", "-s"} and not self.entrypoint:
            words = words[1:]  # the images that hold every program choose one so
        elif words and words[0] in {"--run", "-r"} and not self.entrypoint:
            words = ("llama-cli", *words[1:])
        words = self._without_script(words)
        named = bool(words) and not words[0].startswith("-")
        if not named and not _IMAGE.search(self.image):
            return None
        program = words[0] if named else "llama-server"
        if re.search(r"ik[-_]llama", self.image, re.IGNORECASE) and program_of(program).server:
            program = f"ik_llama.cpp/{program_of(program).name}"
        return OldCommand(
            program=program,
            arguments=words[1:] if named else words,
            env=(*env, *self.env),
            mounts=tuple(self.mounts),
            container=True,
            name=name,
            notices=tuple(self.notices),
        )

    def _without_script(self, words: tuple[str, ...]) -> tuple[str, ...]:
        """Return the server's words where the container's own script passes them on to it."""
        name = words[0].rpartition("/")[2] if words else ""
        if name not in {"sh", "bash"} or len(words) < 3 or not re.fullmatch(r"-\w*c", words[1]):
            return words
        started = re.search(r"([\w./-]*llama-server)\b.*\$?\$@", words[2])
        if not started:
            return words
        why = "the container starts the server with a script: what that adds is not read"
        self.notices.append(Notice("substitution", why))
        return (started.group(1), *words[4:])  # the word after the script is its $0

    def mount(self, text: str) -> None:
        """Add ``HOST:CONTAINER[:OPTIONS]``; a volume without a host's path lies somewhere else."""
        found = re.match(r"((?:[A-Za-z]:)?[^:]*):([^:]+)", text)
        if not found:
            return
        host, inside = found.groups()
        if re.match(r"/|~|\.|\$|[A-Za-z]:", host):
            self.mounts.append((host, inside))
        else:
            why = f"the volume {shown(host, 40)} is docker's own: its files have no path here"
            self.notices.append(Notice("path-unmapped", why))

    def variable(self, text: str) -> None:
        """Add ``NAME=VALUE``; ``NAME`` alone is passed on from an environment nobody sees here."""
        name, equals, value = text.partition("=")
        if equals:
            self.env.append((name, value))
        elif name:
            why = f"{shown(name, 40)} is passed on from the shell: its value is not known here"
            self.notices.append(Notice("variable", why))

    def unread(self, file: str) -> None:
        """Say that a file of variables was not read."""
        why = f"variables in {shown(file, 80)} are not read: add those that matter"
        self.notices.append(Notice("env-file", why))


def container_of(words: Sequence[str]) -> Container | None:
    """Return the container of ``docker run …`` (words after ``docker``), None for other verbs."""
    rest = list(words)
    while rest and rest[0].startswith("-"):  # options of docker itself, and their values
        rest = rest[1:] if "=" in rest[0] else rest[2:]
    if rest[:1] == ["container"]:
        rest = rest[1:]
    if not rest or rest[0] not in {"run", "create", "exec"}:
        return None
    found, at = Container(), 1
    while at < len(rest) and rest[at].startswith("-"):
        name, value, at = _option(rest, at)
        _apply(found, name, value)
    found.image = rest[at] if at < len(rest) else ""
    found.words = tuple(rest[at + 1 :])
    return found


def _option(words: Sequence[str], at: int) -> tuple[str, str, int]:
    """Return an option's name, its value, and where the next one begins."""
    word = words[at]
    following = words[at + 1] if at + 1 < len(words) else ""
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        if equals or name in _SWITCHES:
            return name, value, at + 1
        return name, following, at + 2
    letters = word[1:]
    for number, letter in enumerate(letters):
        if letter not in _SHORT_SWITCHES:
            name, rest = f"-{letter}", letters[number + 1 :].removeprefix("=")
            return (
                (_LONG.get(name, name), rest, at + 1)
                if rest
                else (
                    _LONG.get(name, name),
                    following,
                    at + 2,
                )
            )
    return word, "", at + 1


def _apply(found: Container, name: str, value: str) -> None:
    if name == "--env":
        found.variable(value)
    elif name == "--env-file":
        found.unread(value)
    elif name == "--volume":
        found.mount(value)
    elif name == "--mount":
        parts = dict(part.partition("=")[::2] for part in value.split(","))
        source = parts.get("source", parts.get("src", ""))
        target = parts.get("target", parts.get("dst", parts.get("destination", "")))
        if source and target:
            found.mount(f"{source}:{target}")
    elif name == "--entrypoint":
        found.entrypoint = tuple(value.split())
