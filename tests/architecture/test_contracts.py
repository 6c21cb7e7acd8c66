"""The layers of the architecture hold, and what must start quickly imports nothing slow."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_import_contracts_hold():
    from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

    assert lint_imports(config_filename=str(ROOT / "pyproject.toml")) == EXIT_STATUS_SUCCESS


def loaded_by(statement):
    code = f"{statement}\nimport sys\nprint('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return set(done.stdout.split())


def test_the_version_pays_for_nothing_slow():
    modules = loaded_by(
        "from spectui.cli.main import run\ntry: run(['--version'])\nexcept SystemExit: pass"
    )
    assert not modules & {"textual", "httpx", "pynvml", "plotext", "psutil", "rich", "asyncio"}


def test_measuring_headless_loads_no_dashboard():
    modules = loaded_by("import spectui.cli.measure")
    assert "httpx" in modules
    assert not modules & {"textual", "plotext"}


def test_the_domain_is_pure():
    modules = loaded_by(
        "import spectui.domain.profile, spectui.domain.report, spectui.domain.evidence"
    )
    assert not modules & {"httpx", "psutil", "asyncio", "subprocess", "socket", "tomllib"}


def test_httpx_stands_in_one_module_only():
    users = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "spectui").rglob("*.py")
        if "import httpx" in path.read_text(encoding="utf-8")
    ]
    assert users == ["spectui/adapters/llama_http.py"]


def test_plotext_stands_in_renderers_only():
    for path in (ROOT / "spectui").rglob("*.py"):
        if "import plotext" in path.read_text(encoding="utf-8"):
            assert path.parent.name == "render", path
