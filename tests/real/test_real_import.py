"""Old commands, imported, on a real llama-server: they start, and do what they were meant to do."""

import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest

from spectui.adapters.command_text import find_commands
from spectui.adapters.dialect import dialect_of
from spectui.bootstrap import build_session
from spectui.domain.command import server_arguments
from spectui.domain.old_command import import_command
from spectui.domain.profile import parse_profile

pytestmark = pytest.mark.real

POSTS = sorted((Path(__file__).parents[1] / "domain" / "public_commands").glob("*.toml"))
HERE = re.compile(r"invalid device|failed to open file")  # no fault of the command
STOPS = re.compile(r"stops? today's|not start|does not know|needs one")

FRUGAL = "-t 1 -tb 1 -c 1024"
OLD = {
    "2024": f"{{server}} -m {{target}} -md {{draft}} --draft-max 4 --draft-min 1 {FRUGAL} -fa",
    "early-2026": f"{{server}} -m {{target}} --spec-type ngram-simple --draft-max 8 {FRUGAL}",
    "script": (
        f"#!/bin/sh\nMODEL={{target}}\nexport GGML_NO_BACKTRACE=1\n{{server}} \\\n  -m $MODEL \\\n"
        f"  --spec-default {FRUGAL} --port 8080 # as it was\n"
    ),
    "llama-swap": (
        "models:\n  a:\n    cmd: |\n      {server} --port ${{PORT}} -m {target} -md {draft}\n"
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


def complaint(engine, arguments):
    """Return what the binary says about the first option that it does not take, or nothing."""
    done = subprocess.run(
        [engine, *arguments, "-h"], capture_output=True, text=True, timeout=60, check=False
    )
    lines = (done.stderr + done.stdout).splitlines()
    return next((line for line in lines if line.startswith("error")), "") if done.returncode else ""


@pytest.mark.parametrize("path", POSTS, ids=lambda path: path.stem)
def test_the_binary_takes_what_a_post_became_and_agrees_on_what_it_was(path, real_engine):
    post = tomllib.loads(path.read_text(encoding="utf-8"))
    found = find_commands(post["command"])
    number = next((at for at, old in enumerate(found) if old.name == post.get("name")), None)
    old = found[post.get("number", 1) - 1 if number is None else number]
    imported = import_command(old)
    profile = parse_profile(imported.profile)
    became = complaint(
        real_engine,
        server_arguments(
            profile,
            profile.speculation,
            target=profile.models.target,
            draft=profile.models.draft,
            port=1,
            dialect=dialect_of(real_engine),
        ),
    )
    if "dialect" in imported.codes:  # ik_llama.cpp's own flags stay with its own program
        return
    assert became == "" or HERE.search(became)
    # told to stop today's server: it does; and nothing is told of a command that still works
    was = complaint(real_engine, old.arguments)
    told = [notice.message for notice in imported.warnings if STOPS.search(notice.message)]
    refused = bool(was) and not HERE.search(was)
    assert refused == bool({"renamed", "removed", "unknown-flag"} & set(imported.codes))
    assert refused or not told
