"""The table of failures.

The order is the order of causes: where a log shows several, the first one here is the cause and
the others follow from it or stand beside it.
"""

from __future__ import annotations

from spectui.domain.failures.kinds import FailureClass
from spectui.domain.failures.loading import LOADING
from spectui.domain.failures.running import REJECTED, RUNNING, UNKNOWN, UNUSED
from spectui.domain.failures.starting import CRASH, START

CLASSES: tuple[FailureClass, ...] = (
    *START,
    *LOADING,
    *CRASH,
    UNUSED,
    *RUNNING,
    REJECTED,
    UNKNOWN,
)
"""All of them, causes first."""

BY_NAME = {known.name: known for known in reversed(CLASSES)}
