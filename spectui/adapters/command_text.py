"""llama-server commands in a text: shell, batch and PowerShell, docker, units, configurations.

Reading never runs, expands or looks up anything: see shell_words. What a configuration of
llama-swap or docker compose says is read by config_text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from spectui.adapters.config_text import commands_of_config
from spectui.adapters.container_command import RUNTIMES, container_of
from spectui.adapters.shell_words import Statement, Style, statements, style_of
from spectui.domain.errors import UsageError
from spectui.domain.flags import find
from spectui.domain.imported import Notice, OldCommand
from spectui.domain.old_command import looks_like
from spectui.domain.old_paths import program_of

LIMIT = 1 << 18
"""The most characters of a text that may hold a command."""

_GIVEN = {"PORT": ["8080"]}
"""llama-swap gives each command a port; a profile has none of it, so that any number will do."""

_DEPTH = 3  # sh -c "sh -c …"


def find_commands(text: str) -> tuple[OldCommand, ...]:
    """Return every llama-server command in ``text``, in its order.

    Servers are preferred to other programs of llama.cpp. Raises UsageError for a text that is far
    too long, or that says it is YAML and is not.
    """
    if len(text) > LIMIT:
        raise UsageError("this is too long for a command", "give the part that starts the server")
    text = text.removeprefix("\ufeff")
    found = commands_of_config(text, lambda words, name: command_of(words, name=name))
    if found is None:
        found = (
            _unit(text)
            if _UNIT.search(text)
            else list(_shell(text, style_of(text), dict(_GIVEN), 0))
        )
    found = [command for command in found if looks_like(command)]
    servers = [command for command in found if not program_of(command.program).other]
    return tuple(servers or found)


def commands_of_words(words: Sequence[str]) -> tuple[OldCommand, ...]:
    """Return the commands in words that a shell has split already: one, as a rule.

    A single word with blanks in it is a text that was quoted as a whole.
    """
    if len(words) == 1 and re.search(r"\s", words[0]):
        return find_commands(words[0])
    if script := _script_in(_unwrap(words)[1]):
        return find_commands(script)
    found = command_of(words)
    return (found,) if found is not None and looks_like(found) else ()


def command_of(
    words: Sequence[str], *, name: str = "", env: Sequence[tuple[str, str]] = ()
) -> OldCommand | None:
    """Return the command that these words are, wrappers and containers taken off; None for none."""
    variables, words = _unwrap(words)
    env = (*env, *variables)
    if not words:
        return None
    if program_of(words[0]).name in RUNTIMES:
        container = container_of(words[1:])
        return container.command(env, name) if container else None
    program, arguments = words[0], tuple(words[1:])
    if program.startswith("-"):
        program, arguments = "", tuple(words)
    return OldCommand(program, arguments, env=env, name=name)


_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_KEYWORDS = frozenset({"then", "do", "else", "{", "!", "if", "while", "&", "start", "call", "@"})
_SETTERS = frozenset({"export", "set", "declare", "local", "readonly", "typeset", "setx"})

# a wrapper before the program → its options that take a value
_WRAPPERS = {
    "sudo": ("-u", "-g", "-h", "-p", "-C", "-r", "-t", "-U", "--user", "--group"),
    "doas": ("-u", "-C"),
    "env": ("-u", "-C", "-S", "--unset", "--chdir"),
    "nohup": (),
    "exec": ("-a",),
    "time": ("-f", "-o"),
    "nice": ("-n",),
    "ionice": ("-c", "-n"),
    "numactl": ("-N", "-m", "-C", "-i", "-p", "--cpunodebind", "--membind", "--physcpubind"),
    "taskset": (),
    "stdbuf": ("-i", "-o", "-e"),
    "setsid": (),
    "timeout": ("-s", "-k", "--signal", "--kill-after"),
    "command": (),
    "caffeinate": ("-t", "-w"),
    "unbuffer": (),
    "chrt": (),
    "gdb": ("-ex",),
    "screen": ("-S", "-c", "-L"),
    "systemd-run": ("-p", "-u", "--unit", "--property"),
}
_WITH_ARGUMENT = {"taskset", "timeout", "chrt"}  # a mask, a duration, a priority


def _unwrap(words: Sequence[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the variables set before the program, and the words from the program on."""
    env: list[tuple[str, str]] = []
    rest = list(words)
    while rest:
        assigned = _ASSIGNMENT.fullmatch(rest[0])
        name = rest[0].rpartition("/")[2]
        if assigned:
            env.append((assigned.group(1), assigned.group(2)))
            rest = rest[1:]
        elif name in _WRAPPERS and len(rest) > 1:
            rest = _without_options(rest[1:], _WRAPPERS[name])
            if name in _WITH_ARGUMENT:
                rest = rest[1:]
        elif rest[0] in _KEYWORDS or rest[0].startswith("@echo"):
            rest = rest[1:]
        else:
            break
    return env, rest


def _without_options(words: list[str], with_value: Sequence[str]) -> list[str]:
    while words and words[0].startswith("-"):
        if words[0] == "--":
            return words[1:]
        words = words[2:] if words[0] in with_value else words[1:]
    return words


def _shell(
    text: str, style: Style, variables: dict[str, list[str]], depth: int
) -> Iterator[OldCommand]:
    exported: list[tuple[str, str]] = []
    reader = statements(text, style, variables)
    last: OldCommand | None = None
    told = 0
    for statement in reader:
        if last is not None and _goes_on(statement):
            last = replace(last, arguments=(*last.arguments, *statement.words))
            continue
        if last is not None:
            yield last
        last = None
        if _assigns(statement.words, style, variables, exported):
            if style is Style.POWERSHELL:  # "$m = 1" names what has no value yet
                told = len(reader.notices)
            continue
        _, words = _unwrap(statement.words)
        inner = _script_in(words)
        if inner and depth < _DEPTH:
            yield from _shell(inner, Style.SH, dict(variables), depth + 1)
            continue
        last = command_of(statement.words, env=tuple(exported))
        if last is not None:
            fresh = _relevant(reader.notices[told:], last)
            last = replace(last, notices=(*last.notices, *fresh))
        told = len(reader.notices)
    if last is not None:
        yield last


def _goes_on(statement: Statement) -> bool:
    """Whether a new line of nothing but flags belongs to the command before it.

    Continuations get lost when a command is copied.
    """
    return statement.on_new_line and find(statement.words[0].partition("=")[0]) is not None


def _relevant(notices: Sequence[Notice], command: OldCommand) -> tuple[Notice, ...]:
    return tuple(notices) if looks_like(command) else ()


def _script_in(words: Sequence[str]) -> str:
    if len(words) > 2 and words[0].rpartition("/")[2] in {"sh", "bash", "zsh", "dash"}:
        for at, word in enumerate(words[:-1]):
            if re.fullmatch(r"-\w*c", word):
                return words[at + 1]
    return ""


def _assigns(
    words: Sequence[str],
    style: Style,
    variables: dict[str, list[str]],
    exported: list[tuple[str, str]],
) -> bool:
    """Take a statement that only sets variables; return whether it is one."""
    rest = list(words)
    setter = bool(rest) and rest[0].lower() in _SETTERS
    if setter:
        rest = [word for word in rest[1:] if not re.fullmatch(r"[-+/]\w+", word)]
    if style is Style.POWERSHELL and len(words) >= 3 and words[1] == "=":
        target = re.match(r"\$(env:)?\{?(\w+)", words[0], re.IGNORECASE)
        rest = [f"{target.group(2)}={' '.join(words[2:])}"] if target else rest
        setter = bool(target and target.group(1))
    pairs = _pairs(rest)
    if len(pairs) != len(rest) or not rest:
        return setter
    for name, value in pairs:
        variables[name.upper() if style is Style.CMD else name] = [value]
        if setter:
            exported.append((name, value))
    return True


def _pairs(words: Iterable[str]) -> list[tuple[str, str]]:
    """Return the names and values of the words that are assignments."""
    found = [match for word in words if (match := _ASSIGNMENT.fullmatch(word))]
    return [(match.group(1), match.group(2)) for match in found]


_UNIT = re.compile(r"^\s*(\[(Service|Container)\]|ExecStart\s*=)", re.MULTILINE)


def _unit(text: str) -> list[OldCommand]:
    """Return the commands of a systemd unit, or of a Quadlet's container."""
    joined = re.sub(r"\\\s*\n", " ", text)
    lines = re.findall(r"^[ \t]*([A-Za-z]+)[ \t]*=[ \t]*(.*)$", joined, re.MULTILINE)
    env: list[tuple[str, str]] = []
    notices: list[Notice] = []
    image = ""
    volumes: list[str] = []
    starts: list[str] = []
    for key, value in lines:
        if key == "Environment":
            env += _pairs(word for s in statements(value, Style.SH, {}) for word in s.words)
        elif key == "EnvironmentFile":
            why = "variables of an EnvironmentFile are not read: add those that matter"
            notices.append(Notice("env-file", why))
        elif key == "Image":
            image = value.strip()
        elif key == "Volume":
            volumes.append(value.strip())
        elif key == "ExecStart":
            starts.append(value.lstrip("-@:+!|"))
        elif key == "Exec":
            starts.append(value)
    if image:
        option = " ".join(f"-v {volume}" for volume in volumes)
        starts = [f"podman run {option} {image} {start}" for start in starts]
    known = {name: [value] for name, value in env}
    return [
        replace(command, env=(*env, *command.env), notices=(*notices, *command.notices))
        for start in starts
        for command in _shell(start, Style.SH, dict(known), 0)
    ]
