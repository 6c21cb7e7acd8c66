"""Programs and files of an old command: which server it is, and where a container's files lie."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from spectui.domain.imported import Notice, OldCommand, shown
from spectui.domain.profile import DEMO

SERVER = "llama-server"

PATH_FLAGS = frozenset(
    {
        *("--mmproj", "--chat-template-file", "--grammar-file", "--json-schema-file", "--path"),
        *("--lora", "--control-vector", "--lookup-cache-static", "--lookup-cache-dynamic"),
        *("--slot-save-path", "--media-path", "--ui-config-file", "--log-prompts-dir"),
        *("--mcp-servers-config",),
    }
)
"""Canonical names of the flags whose value is a file or a folder."""

_SERVERS = re.compile(r"(ik[-_])?llama[-_.](cpp[-_])?server\b.*", re.IGNORECASE)
_OTHERS = re.compile(
    r"llama-(cli|speculative(-simple)?|simple|run|lookup\w*|main|perplexity|bench|mtmd-cli"
    r"|completion)(\.exe)?|(main|speculative|lookup)(\.exe)?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Program:
    """The program of a command: its name without a folder, the folder, and what it is."""

    name: str
    folder: str
    server: bool
    other: bool
    fork: bool

    @property
    def known(self) -> bool:
        """Whether the name alone says that it is llama.cpp's."""
        return self.server or self.other


def program_of(text: str) -> Program:
    """Return what a program's path says about it."""
    path = text.replace("\\", "/") if re.match(r"([A-Za-z]:|\.{1,2})?\\|.*\.exe$", text) else text
    folder, slash, name = path.rpartition("/")
    server = bool(_SERVERS.fullmatch(name)) or name.lower() in {"server", "server.exe"}
    return Program(
        name=name,
        folder=folder + slash,
        server=server,
        other=bool(_OTHERS.fullmatch(name)),
        fork=bool(re.search(r"\bik[-_]llama", path, re.IGNORECASE)),
    )


@dataclass(slots=True)
class Places:
    """Turns a command's paths into the host's, and remembers what there is to say about them."""

    command: OldCommand
    _mapped: list[str] = field(default_factory=list)
    _lost: list[str] = field(default_factory=list)
    _relative: list[str] = field(default_factory=list)

    def host(self, path: str) -> str:
        """Return where a file of the command is on this machine, as far as the command tells."""
        if path == DEMO:  # the word stands for a model of spectui's own
            path = f"./{path}"
        if not self.command.container:
            self._see(path)
            return path
        for folder, inside in sorted(self.command.mounts, key=lambda pair: -len(pair[1])):
            inner = inside.rstrip("/")
            if path == inner or path.startswith(f"{inner}/"):
                self._mapped.append(path)
                return folder.rstrip("/") + path[len(inner) :] or "/"
        self._lost.append(path)
        return path

    def engine(self, program: Program) -> tuple[str, list[Notice]]:
        """Return the profile's engine for this program, and what to say about it."""
        if self.command.container:
            why = (
                "the command runs in a container: the profile names this machine's own"
                f" {SERVER}; the container's ports and GPU options are left out"
            )
            return SERVER, [Notice("container", why)]
        if not program.name:
            return SERVER, [Notice("program", f"no program is named: {SERVER} of PATH is taken")]
        if "$" in program.name or "%" in program.name:
            why = f"{shown(program.name, 60)} is not known here: {SERVER} of PATH is taken"
            return SERVER, [Notice("program", why)]
        if program.other:
            why = (
                f"{shown(program.name, 60)} is no server; its flags are read and the profile names"
                f" {program.folder}{SERVER}"
            )
            return f"{program.folder}{SERVER}", [Notice("not-a-server", why)]
        if program.folder:
            self._see(program.folder + program.name)
        return program.folder + program.name, []

    def _see(self, path: str) -> None:
        if not re.match(r"/|~|\\|[A-Za-z]:|\$", path):
            self._relative.append(path)

    def notices(self) -> list[Notice]:
        """Return what is to be said about the paths so far."""
        found: list[Notice] = []
        if self._mapped:
            why = "paths of the container are written as the host's, by its -v options"
            found.append(Notice("path-mapped", f"{why}: {_few(self._mapped)}"))
        if self._lost:
            why = "no -v option of the container says where these files are on the host"
            found.append(Notice("path-unmapped", f"{why}: {_few(self._lost)}"))
        if self._relative:
            why = (
                "relative paths are read from the profile's folder: put it where the command was"
                " run"
            )
            found.append(Notice("relative-path", f"{why} ({_few(self._relative)})"))
        return found


def _few(paths: list[str]) -> str:
    unique = list(dict.fromkeys(shown(path, 80) for path in paths))
    more = f" and {len(unique) - 3} more" if len(unique) > 3 else ""
    return ", ".join(unique[:3]) + more
