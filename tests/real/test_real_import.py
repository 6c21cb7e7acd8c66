"""Old commands, imported, on a real llama-server: they start, and do what they were meant to do."""

import shlex

import pytest

from spectui.adapters.command_text import find_commands
from spectui.bootstrap import build_session
from spectui.domain.old_command import import_command
from spectui.domain.profile import parse_profile

pytestmark = pytest.mark.real

FRUGAL = "-t 1 -tb 1 -c 1024"
OLD = {
    "2024": f"{{server}} -m {{target}} -md {{draft}} --draft-max 4 --draft-min 1 {FRUGAL} -fa",
    "early-2026": f"{{server}} -m {{target}} --spec-type ngram-simple --draft-max 8 {FRUGAL}",
    "script": (
        f"#!/bin/sh\nMODEL={{target}}\nexport GGML_NO_BACKTRACE=1\n{{server}} \\\n  -m $MODEL \\\n"
        f"  --spec-default {FRUGAL} --port 8080 # as it was\n"
    ),
    "llama-swap": (
        "models:\n  a:\n    cmd: |\n      {server} --port ${{PORT}}\n      -m {target} -md {draft}\n"
        f"      --spec-type draft-simple --spec-draft-n-max 3 {FRUGAL}\n"
    ),
}


@pytest.mark.parametrize("name", OLD)
def test_an_imported_profile_starts_and_speculates(name, real_engine, real_models, tmp_path):
    files = {key: shlex.quote(value) for key, value in real_models.items()}
    [command] = find_commands(OLD[name].format(server=shlex.quote(real_engine), **files))
    profile = parse_profile(import_command(command).profile)
    session = build_session(profile, folder=tmp_path)
    session.start()
    try:
        session.launch(profile.speculation).result(60)
        assert session.snapshot.phase == "ready"
        assert [found.code for found in session.snapshot.findings] == []
    finally:
        assert session.close(20)
