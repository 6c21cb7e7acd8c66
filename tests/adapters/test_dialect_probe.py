import json

import fake_help
import pytest
from fake_llama_server import install

from spectui.adapters.dialect import dialect_of
from spectui.domain.errors import EngineError


def program(folder, text):
    file = folder / "llama-server"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return str(file)


def test_a_binary_is_asked_for_its_words_and_its_version(tmp_path):
    found = dialect_of(str(install(tmp_path, build="b4321-abc")))
    assert found is not None
    assert found.name == "today's flags"
    assert found.version == "0.6.0-dev (build 4321, commit abc)"


def test_an_old_binary_is_known_by_its_help(tmp_path):
    help_file = tmp_path / "help.txt"
    help_file.write_text(fake_help.OF_2024)
    found = dialect_of(str(install(tmp_path, help_file=str(help_file))))
    assert found is not None
    assert found.types is None


def test_a_binary_is_asked_once_until_it_changes(tmp_path):
    count = tmp_path / "count"
    text = f"echo x >> '{count}'; cat '{tmp_path / 'help.txt'}'"
    (tmp_path / "help.txt").write_text(fake_help.TODAY)
    binary = program(tmp_path, text)
    cache = tmp_path / "cache"
    first = dialect_of(binary, cache)
    assert dialect_of(binary, cache) == first
    asked = count.read_text().count("x")
    assert asked == 2  # --help and --version

    program(tmp_path, text + "\n# another build")
    assert dialect_of(binary, cache) == first
    assert count.read_text().count("x") == 2 * asked


@pytest.mark.parametrize("damage", ["", "{}", "[1]", '{"binary": 1, "dialect": {}}'])
def test_a_damaged_answer_is_asked_again(tmp_path, damage):
    binary, cache = str(install(tmp_path)), tmp_path / "cache"
    first = dialect_of(binary, cache)
    [kept] = cache.iterdir()
    identity = json.loads(kept.read_text())["binary"]
    kept.write_text(damage or json.dumps({"binary": identity, "dialect": {"flags": 3}}))
    assert dialect_of(binary, cache) == first


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(tmp_path):
    (tmp_path / "cache").write_text("a file")
    assert dialect_of(str(install(tmp_path)), tmp_path / "cache") is not None


def test_help_without_flags_tells_nothing(tmp_path):
    assert dialect_of(program(tmp_path, "echo hello")) is None


def test_a_program_that_cannot_run_says_why(tmp_path):
    line = "llama-server: error while loading shared libraries: libggml.so: cannot open"
    with pytest.raises(EngineError) as caught:
        dialect_of(program(tmp_path, f"echo '{line}' >&2; exit 127"))
    assert "exit status 127" in str(caught.value)
    assert "libggml.so" in str(caught.value)
    with pytest.raises(EngineError, match="SIGILL"):
        dialect_of(program(tmp_path, "kill -ILL $$"))


def test_a_program_that_never_ends_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr("spectui.adapters.printed._PATIENCE", 0.2)
    assert dialect_of(program(tmp_path, "while :; do sleep 1; done")) is None
