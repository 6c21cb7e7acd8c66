"""A real Session over the real process and HTTP adapters; only the server is a stand-in."""

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from spectui.adapters.host import PsutilHost
from spectui.adapters.journal import JsonlJournal
from spectui.adapters.llama_http import LlamaClient
from spectui.adapters.llama_process import LlamaLauncher
from spectui.domain.errors import SourceAbsentError
from spectui.domain.profile import parse_profile
from spectui.domain.runs import Prompt
from spectui.session.session import Outside, Session
from spectui.session.supervisor import Engine, Patience

FAKE = Path(__file__).parents[1] / "fakes" / "fake_llama_server.py"

PROFILE = {
    "server": {"engine": "fake"},
    "models": {"target": "/m/target.gguf", "draft": "/m/draft.gguf"},
    "speculation": {"type": "draft-simple", "n_max": 4},
    "workload": {"max_tokens": 64},
}


class NoGpus:
    def read(self):
        raise SourceAbsentError("no NVIDIA GPU")

    def close(self):
        pass


class NoExport:
    def suggest(self):
        return "x.toml"

    def write(self, path, snapshot, run):
        return path


@dataclass
class Bench:
    """Makes Sessions on the stand-in and looks after their ends."""

    folder: Path
    sessions: list[Session] = field(default_factory=list)

    def __call__(
        self, *, prompts=6, profile=None, gpus=None, patience=None, notices=0, begin=True, **fake
    ):
        options = {"tps": 100, "time_scale": 0.02, **fake}
        flags = [
            arg
            for key, value in options.items()
            for arg in ("--fake", f"{key}={json.dumps(value)}")
        ]
        profile = parse_profile({**PROFILE, **(profile or {})})
        head = {
            "profile": PROFILE,
            "source": None,
            "engine": {"kind": "binary", "build": "fake"},
            "target": "/m/target.gguf",
            "draft": "/m/draft.gguf",
            "hardware": "a machine",
        }
        session = Session(
            profile=profile,
            engine=Engine(
                (sys.executable, str(FAKE), *flags),
                "binary",
                "",
                profile.models.target,
                profile.models.draft,
            ),
            notices=notices,
            prompts=[
                Prompt(f"p{i}", "code" if i % 2 else "math", (("user", f"count to {i}"),))
                for i in range(prompts)
            ],
            outside=Outside(
                launcher=LlamaLauncher(self.folder / "logs"),
                clients=LlamaClient,
                gpus=gpus or NoGpus(),
                host=PsutilHost(),
                journal=JsonlJournal(self.folder / "sessions", head),
                export=NoExport(),
                patience=patience or Patience(stall=5, stop=2),
            ),
        )
        self.sessions.append(session)
        if begin:
            session.start()
        return session


@pytest.fixture
def bench(tmp_path):
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    made = Bench(tmp_path)
    yield made
    for session in made.sessions:
        assert session.close(10)
    left = [p for p in psutil.Process().children(recursive=True) if p.pid not in before]
    assert not left, "a process was left running"
