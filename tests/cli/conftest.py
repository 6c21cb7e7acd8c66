"""The command line as a person runs it: a process of its own, a home of its own."""

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from fake_llama_server import install

ROOT = Path(__file__).parents[2]


@dataclass
class Shell:
    """Runs spectui in ``folder`` with a home below it."""

    folder: Path
    running: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def home(self):
        return self.folder / "home"

    def environment(self, **more):
        own = ("XDG_", "NO_COLOR", "LLAMA_", "HF_", "HUGGINGFACE_")  # of whoever runs the tests
        kept = {k: v for k, v in os.environ.items() if not k.startswith(own)}
        return {**kept, "HOME": str(self.home), "PYTHONPATH": str(ROOT), **more}

    def start(self, *argv, **environment):
        process = subprocess.Popen(
            [sys.executable, "-m", "spectui", *map(str, argv)],
            cwd=self.folder,
            env=self.environment(**environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.running.append(process)
        return process

    def __call__(self, *argv, **environment):
        """Run to the end; return exit status, stdout, stderr."""
        process = self.start(*argv, **environment)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    def profile(self, name="my.toml", *, engine=None, extra="", **fake):
        """Write a profile on the stand-in server and return its path."""
        if engine is None:
            options = {"tps": 100, "time_scale": 0.02, **fake}
            engine = install(self.folder, **options)
        for model in ("target.gguf", "draft.gguf"):
            (self.folder / model).write_bytes(b"GGUF\x03\0\0\0")
        path = self.folder / name
        path.write_text(
            f"""
[server]
engine = "{engine}"
[models]
target = "target.gguf"
draft = "draft.gguf"
[speculation]
type = "draft-simple"
n_max = 4
[workload]
max_tokens = 64
{extra}
""",
            encoding="utf-8",
        )
        return path


@pytest.fixture
def shell(tmp_path):
    (tmp_path / "home").mkdir()
    found = Shell(tmp_path)
    yield found
    for process in found.running:
        if process.poll() is None:
            process.kill()
        process.communicate()
