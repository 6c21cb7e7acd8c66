"""Run xllamacpp's server as llama-server would be run: the only file that imports the engine."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Iterable
from typing import Any

from spectui.domain.errors import EngineError
from spectui.embedded.demo_model import ENGINE_EXTRA, INSTALL_ENGINE, engine_build
from spectui.embedded.flags import Assignment
from spectui.embedded.parser import Parsed
from spectui.embedded.values import Member

_FEW_CORES = 4


def _threads(cores: int) -> tuple[Assignment, ...]:
    """Return the default thread count of a small machine; a large one's is the engine's own.

    With a thread on every core they wait for one another, spinning, whenever anything else runs:
    on two cores a hundredth of the speed was seen. Whoever measures runs something else.
    """
    return (Assignment("cpuparams.n_threads", max(1, cores - 1)),) if cores <= _FEW_CORES else ()


DEFAULTS = (
    Assignment("hostnames", ["127.0.0.1"]),
    Assignment("port", 8080),
    # one request at a time is what gets measured; llama-server's own default is four slots
    Assignment("n_parallel", 1),
    *_threads(os.cpu_count() or 1),
)


def load_engine() -> Any:  # noqa: ANN401 - xllamacpp ships no types
    """Import xllamacpp. Raises EngineError where it is missing or does not load."""
    engine_build()
    try:
        return importlib.import_module("xllamacpp")
    except ImportError as error:
        raise EngineError(f"the embedded engine does not load: {error}", INSTALL_ENGINE) from error


def version() -> str:
    """Return the two lines that ``--version`` prints. Raises EngineError."""
    info = load_engine().BUILD_INFO
    return (
        f"version: {engine_build()} (build {info['build_number']}, commit {info['commit']})\n"
        f"built with {info['compiler']} for {info['build_target']}"
    )


def parameters(engine: Any, assignments: Iterable[Assignment]) -> Any:  # noqa: ANN401 - untyped
    """Return CommonParams with the assignments applied.

    Raises EngineError where the installed xllamacpp has no such attribute or refuses the value.
    """
    params = engine.CommonParams()
    added: dict[str, Any] = {}
    for item in assignments:
        value = _resolved(engine, item.value)
        if item.adds:
            # the engine's own default (a type "none") must not stay among what is added
            value = added[item.path] = _sum(added.get(item.path), value)
        *parents, name = item.path.split(".")
        try:
            owner = params
            for parent in parents:
                owner = getattr(owner, parent)
            setattr(owner, name, value)
        except AttributeError as error:
            what = f"{engine_build()} has no {item.path}"
            raise EngineError(what, f"pip install -U {ENGINE_EXTRA}") from error
        except (AssertionError, TypeError, ValueError, OverflowError) as error:
            what = f"{engine_build()} refuses {item.value!r} for {item.path}"
            raise EngineError(what, str(error)) from error
    return params


def _sum(old: Any, new: Any) -> Any:  # noqa: ANN401 - lists of whatever, or bits
    if isinstance(new, list):
        return [*(old or ()), *new]
    return int(old or 0) | int(new)


def _resolved(engine: Any, value: object) -> object:  # noqa: ANN401 - untyped
    if isinstance(value, list):
        return [_resolved(engine, item) for item in value]
    if isinstance(value, Member):
        return getattr(getattr(engine, value.enum), value.name)
    return value


def serve(parsed: Parsed) -> int:
    """Load the model and serve until SIGTERM or SIGINT; return the exit status.

    Raises EngineError. While the engine loads, both signals kill at once, as they do with
    llama-server: it loads in one long call that no Python handler can interrupt.
    """
    engine = load_engine()
    params = parameters(engine, (*DEFAULTS, *parsed.assignments))
    try:
        _server = engine.Server(params)  # kept: dropping it would stop it
    except RuntimeError:
        # the engine's own log says why; its exception never does
        print(_why_not(parsed), file=sys.stderr, flush=True)
        return 1
    _wait_for_signal()
    # Not the engine's own shutdown, ``del server``: it waits up to 30 s for a request that is
    # still streaming, and for ever when it comes before the engine's main loop has begun. Nothing
    # is lost: connections and memory go back with the process.
    print("spectui.embedded: stopped by a signal", file=sys.stderr, flush=True)
    os._exit(0)


def _why_not(parsed: Parsed) -> str:
    model, draft = parsed.last("model.path"), parsed.last("speculative.draft.mparams.path")
    also = f", draft model '{draft}'" if draft else ""
    return f"error: the server did not start (model '{model}'{also}); the log says why"


def _wait_for_signal() -> None:
    """Return after SIGTERM or SIGINT."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    # a pipe, because a signal that lands on one of the engine's threads would wake nobody else
    signal.set_wakeup_fd(write_end)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    os.read(read_end, 1)
