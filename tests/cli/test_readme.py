"""What the README shows can be typed as it stands."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from spectui.cli import main as command_line
from spectui.domain.profile import parse_profile

README = Path(__file__).parents[2] / "README.md"
TEXT = README.read_text(encoding="utf-8")
PROFILES = re.findall(r"^```toml\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
COMMANDS = re.findall(r"^spectui (.+?)\s*(?:#.*)?$", TEXT, re.MULTILINE)
NAMED = {shlex.split(line)[0] for line in COMMANDS}


def optional_lines(text: str) -> str:
    """Return ``text`` with the keys and tables that it shows behind a # put to use."""
    return re.sub(r"^# (?=\[|\w+ *=)", "", text, flags=re.MULTILINE)


@pytest.mark.parametrize("read", [str, optional_lines])
def test_its_profile_is_one(read):
    assert PROFILES
    for text in PROFILES:
        profile = parse_profile(tomllib.loads(read(text)))
        assert profile.models.draft == "draft.gguf"


@pytest.mark.parametrize("line", COMMANDS)
def test_its_commands_are_understood(line):
    words = shlex.split(line)
    if words[0] not in command_line._COMMANDS:
        words.insert(0, "open")
    parser = command_line._parser(words[0], command_line._module(words[0]))
    assert parser.parse_args(words).command == words[0]


def test_it_shows_every_command():
    assert set(command_line._COMMANDS) - {"open"} <= NAMED | {"demo"}
