"""Commands in the configurations of llama-swap and docker compose, which are YAML."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from spectui.adapters.container_command import Container
from spectui.adapters.shell_words import Style, statements, style_of
from spectui.domain.errors import SpectuiError, UsageError
from spectui.domain.imported import Notice, OldCommand, shown

CommandOf = Callable[[Sequence[str], str], OldCommand | None]

_CONFIG = re.compile(r"^[ \t]*[\"']?(models|services|macros)[\"']?[ \t]*:", re.MULTILINE)
_MACRO = re.compile(r"\$\{([\w.-]+)\}")
_ROUNDS = 10  # macros in macros
_LONGEST = 1 << 16  # characters of one command


def commands_of_config(text: str, command_of: CommandOf) -> list[OldCommand] | None:
    """Return the commands of a configuration; None where ``text`` is none of these.

    Raises UsageError where it is one and not valid YAML.
    """
    if not _CONFIG.search(text):
        return None
    data = _yaml(text)
    if not isinstance(data, Mapping):
        return None
    models, services = data.get("models"), data.get("services")
    if isinstance(models, Mapping):
        shared = _texts(data.get("macros"))
        found = [_swapped(str(name), model, shared, command_of) for name, model in models.items()]
    elif isinstance(services, Mapping):
        found = [_service(str(name), service) for name, service in services.items()]
    else:
        return None
    return [command for command in found if command is not None]


def _yaml(text: str) -> object:
    try:
        import yaml  # noqa: PLC0415 - only a configuration needs it
    except ModuleNotFoundError:
        raise SpectuiError(
            "reading a configuration needs PyYAML", "pip install pyyaml, or give one command"
        ) from None
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError) as error:
        mark = getattr(error, "problem_mark", None)
        if isinstance(error, yaml.scanner.ScannerError):  # a quote that never ends: where it began
            mark = error.context_mark or mark
        where = f" (line {mark.line + 1})" if mark is not None else ""
        if re.search(r"^[ \t]*(cmd|command|image)[ \t]*:", text, re.MULTILINE):
            raise UsageError(
                f"this configuration is not valid YAML{where}", "repair it, or give one command"
            ) from None
        return None


def _texts(table: object) -> dict[str, str]:
    if not isinstance(table, Mapping):
        return {}
    simple = (str, int, float)
    return {str(key): _text(value) for key, value in table.items() if isinstance(value, simple)}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _swapped(
    name: str, model: object, shared: Mapping[str, str], command_of: CommandOf
) -> OldCommand | None:
    """Return the command of one of llama-swap's models."""
    if not isinstance(model, Mapping) or not isinstance(model.get("cmd"), str):
        return None
    notices: list[Notice] = []
    macros = {**shared, **_texts(model.get("macros")), "MODEL_ID": name, "PORT": "5800"}
    text = _expanded(str(model["cmd"]), macros, notices)
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    words = _words(" ".join(re.sub(r"\\\s*$", "", line) for line in lines), notices)
    env = model.get("env")
    pairs = [str(item).partition("=") for item in env] if isinstance(env, list) else []
    found = command_of([*(f"{key}={value}" for key, _, value in pairs if key), *words], name)
    if found is None:
        return None
    return _with(found, notices)


def _with(command: OldCommand, notices: Sequence[Notice]) -> OldCommand:
    return OldCommand(
        program=command.program,
        arguments=command.arguments,
        env=command.env,
        mounts=command.mounts,
        container=command.container,
        name=command.name,
        notices=(*dict.fromkeys(notices), *command.notices),
    )


def _expanded(text: str, macros: Mapping[str, str], notices: list[Notice]) -> str:
    """Return ``text`` with its macros in their place; macros may hold macros."""
    for _ in range(_ROUNDS):
        again = _MACRO.sub(lambda found: macros.get(found.group(1), found.group(0)), text)
        if len(again) > _LONGEST:
            raise UsageError("the macros of this configuration grow without end", "give a command")
        if again == text:
            break
        text = again
    for name in dict.fromkeys(found.group(1) for found in _MACRO.finditer(text)):
        why = f"${{{shown(name, 40)}}} has no value in the text: it stays as it is written"
        notices.append(Notice("variable", why))
    # what is left would be taken for a shell's variable, and be told once more
    return _MACRO.sub(lambda found: f"'{found.group(0)}'", text) if "'" not in text else text


def _words(
    text: str, notices: list[Notice], variables: Mapping[str, str] | None = None
) -> list[str]:
    known = {key: [value] for key, value in (variables or {}).items()}
    style = Style.CMD if style_of(text) is Style.CMD else Style.SH
    reader = statements(text, style, known)
    words = [word for statement in reader for word in statement.words]
    notices += [notice for notice in reader.notices if notice not in notices]
    return words


def _service(name: str, service: object) -> OldCommand | None:
    """Return the command of one service of docker compose."""
    if not isinstance(service, Mapping):
        return None
    notices: list[Notice] = []
    container = Container(image=str(service.get("image", "")) or name)
    if "build" in service and "image" not in service:
        container.image = name  # its program is told by its command, or by what it is called
    container.entrypoint = tuple(_list(service.get("entrypoint"), notices))
    container.words = tuple(_list(service.get("command"), notices))
    env = service.get("environment")
    if isinstance(env, Mapping):
        container.env = [(str(key), _text(value)) for key, value in env.items()]
    elif isinstance(env, list):
        for item in env:
            container.variable(str(item))
    if service.get("env_file"):
        container.unread("env_file")
    volumes = service.get("volumes")
    for volume in volumes if isinstance(volumes, list) else []:
        if isinstance(volume, Mapping):
            container.mount(f"{volume.get('source', '')}:{volume.get('target', '')}")
        else:
            container.mount(" ".join(_words(str(volume), notices)))
    found = container.command(name=name)
    return None if found is None else _with(found, notices)


def _list(value: object, notices: list[Notice]) -> list[str]:
    if isinstance(value, str):
        return _words(value, notices)
    if not isinstance(value, list):
        return []
    words: list[str] = []
    for item in value:
        text = _text(item)
        words += _words(text, notices) if "$" in text and " " not in text else [text]
    return words
