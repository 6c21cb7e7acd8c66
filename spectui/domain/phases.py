"""The phases of a supervised server and the only ways from one to another."""

from enum import StrEnum
from types import MappingProxyType


class Phase(StrEnum):
    """Where the server is in its life. The values are shown to people as they are."""

    STOPPED = "stopped"  # there is no process, and nobody wants one
    STARTING = "starting"  # the process is being created, nothing answers yet
    LOADING = "loading"  # it answers 503, or its log says that it reads the model
    READY = "ready"  # /health is 200 and no request is in flight
    BUSY = "busy"  # at least one request is in flight
    STOPPING = "stopping"  # it was told to end
    FAILED = "failed"  # it never became ready
    GONE = "gone"  # it was ready, and ended without having been told to


_P = Phase
LEGAL = MappingProxyType(
    {
        _P.STOPPED: frozenset({_P.STARTING}),
        _P.STARTING: frozenset({_P.LOADING, _P.READY, _P.FAILED, _P.STOPPING}),
        _P.LOADING: frozenset({_P.READY, _P.FAILED, _P.STOPPING}),
        _P.READY: frozenset({_P.BUSY, _P.STOPPING, _P.GONE}),
        _P.BUSY: frozenset({_P.READY, _P.STOPPING, _P.GONE}),
        _P.STOPPING: frozenset({_P.STOPPED}),
        _P.FAILED: frozenset({_P.STARTING, _P.STOPPED}),
        _P.GONE: frozenset({_P.STARTING, _P.STOPPED}),
    }
)
"""Phase → the phases that may follow it."""

ALIVE = frozenset({_P.STARTING, _P.LOADING, _P.READY, _P.BUSY, _P.STOPPING})
"""The phases in which a process exists."""

UP = frozenset({_P.READY, _P.BUSY})
"""The phases in which requests can be sent."""


class IllegalTransitionError(AssertionError):
    """A phase change that cannot happen: a mistake in spectui, never in the server."""


def transition(current: Phase, new: Phase) -> Phase:
    """Return ``new`` if ``current`` may be followed by it; staying in a phase is always legal.

    Raises IllegalTransitionError otherwise.
    """
    if new is not current and new not in LEGAL[current]:
        raise IllegalTransitionError(f"{current} cannot become {new}")
    return new
