"""The whole product on the embedded engine and a real model."""

import pytest

from spectui.bootstrap import build_session
from spectui.domain.profile import parse_profile

# One thread: two that wait for each other by spinning collapse when anything else runs.
ENGINE = {"engine": "embedded", "args": ["-c", "2048", "-t", "1"]}


@pytest.fixture
def measured(tmp_path):
    """Make Sessions of a profile's tables and close them."""
    made = []

    def make(tables, **options):
        profile = parse_profile({"server": ENGINE, "models": {"target": "demo"}, **tables})
        session = build_session(profile, folder=tmp_path, **options)
        made.append(session)
        session.start()
        return session

    yield make
    for session in made:
        assert session.close(20)
