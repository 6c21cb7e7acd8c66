"""``python -m spectui.embedded ARGS``: to a supervisor, this is a llama-server.

Differences by intent: one slot unless ``-np`` says otherwise (llama-server: four slots with one
KV cache), a model is required (no router mode), no environment variables or configuration files,
and numbers must be numbers (llama-server reads ``8x`` as 8).
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence

from spectui.domain.errors import SpectuiError
from spectui.embedded import engine
from spectui.embedded.parser import Action, ArgumentError, Parsed, parse, usage


def main(argv: Sequence[str]) -> int:
    """Run as llama-server would with ``argv``; return the exit status."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # no traceback for Ctrl-C while loading
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        return _run(parse(argv))
    except (ArgumentError, SpectuiError) as error:
        print(error, file=sys.stderr)
    return 1


def _run(parsed: Parsed) -> int:
    if parsed.action is Action.HELP:
        print(usage())
    elif parsed.action is Action.VERSION:
        print(engine.version(), file=sys.stderr)
    elif not parsed.last("model.path"):
        raise ArgumentError("error: no model: name one with -m FILE")
    else:
        return engine.serve(parsed)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
