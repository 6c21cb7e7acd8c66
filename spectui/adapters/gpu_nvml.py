"""NVIDIA GPUs, by NVML. Each value is None where the driver does not tell it.

``pynvml`` is imported at the first reading: a start of the program need not pay for it.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

from spectui.domain.errors import SourceAbsentError
from spectui.domain.samples import Gpu
from spectui.domain.text import clean

RETRY = 10.0
"""Seconds between attempts to initialise NVML: an attempt can take long, and wakes the driver."""

T = TypeVar("T")

_ABSENT = "no NVIDIA GPU"
_LOST = "the GPU was lost: reset it, or restart the machine"


class NvmlGpus:
    """Reads every GPU that the driver shows. Safe to call from any thread, one call at a time.

    After a GPU was lost or reset NVML is initialised again, at most every ``RETRY`` seconds.
    """

    def __init__(
        self, nvml: ModuleType | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Read through ``nvml``, by default pynvml."""
        self._nvml: Any = nvml
        self._clock = clock
        self._lock = threading.Lock()
        self._ready = False
        self._stale = False
        self._tried_at: float | None = None
        self._why = _ABSENT
        self._names: dict[int, str] = {}

    def read(self) -> tuple[Gpu, ...]:
        """Return one reading per GPU; may block for as long as the driver does.

        A lost GPU beside others keeps its row, with its name only. Raises SourceAbsentError where
        there is no GPU or no usable driver, OSError where none of them answers.
        """
        with self._lock:
            if self._stale or not self._ready:
                self._initialise()
            try:
                count = int(self._nvml.nvmlDeviceGetCount())
            except self._nvml.NVMLError as error:
                self._stale = True
                raise OSError(f"the NVIDIA driver fails: {clean(str(error), limit=80)}") from None
            if not count:
                raise SourceAbsentError(_ABSENT)
            rows = [self._device(index) for index in range(count)]
            if not any(alive for _, alive in rows):
                raise OSError(_LOST if self._stale else "the NVIDIA driver answers for no GPU")
            return tuple(gpu for gpu, _ in rows)

    def close(self) -> None:
        """Let go of the driver; a later ``read`` starts afresh."""
        with self._lock:
            self._shut_down()
            self._tried_at = None

    def _initialise(self) -> None:
        now = self._clock()
        early = self._tried_at is not None and now - self._tried_at < RETRY
        if early and self._ready:
            return  # stale, but what still answers is worth reading
        if early:
            raise SourceAbsentError(self._why)
        self._tried_at = now
        self._shut_down()
        if self._nvml is None:
            try:
                import pynvml  # noqa: PLC0415 - slow, and of no use on many machines
            except ImportError:
                raise SourceAbsentError(_ABSENT) from None
            self._nvml = pynvml
        try:
            self._nvml.nvmlInit()
        except self._nvml.NVMLError as error:
            self._why = self._reason(error)
            raise SourceAbsentError(self._why) from None
        self._ready = True

    def _shut_down(self) -> None:
        if self._ready:
            with contextlib.suppress(self._nvml.NVMLError):
                self._nvml.nvmlShutdown()
        self._ready = self._stale = False

    def _reason(self, error: Exception) -> str:
        nvml = self._nvml
        known = {
            nvml.NVML_ERROR_LIBRARY_NOT_FOUND: _ABSENT,
            nvml.NVML_ERROR_DRIVER_NOT_LOADED: "the NVIDIA driver is not loaded",
            nvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "NVIDIA driver and library versions differ",
            nvml.NVML_ERROR_NO_PERMISSION: "no permission to read the NVIDIA GPU",
        }
        return known.get(_code(error)) or f"the NVIDIA driver fails: {clean(str(error), limit=80)}"

    def _device(self, index: int) -> tuple[Gpu, bool]:
        """Return a reading, and whether the GPU still answers."""
        nvml = self._nvml
        name = self._names.get(index, f"GPU {index}")
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            raw = self._ask(nvml.nvmlDeviceGetName, handle)
            if raw:
                text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
                name = self._names[index] = clean(text, limit=80).strip() or name
            return self._values(index, name, handle), True
        except nvml.NVMLError as error:
            # a GPU that this user may not see fails too, and will do so again
            self._stale = self._stale or self._is_loss(error)
            return Gpu(index, name), False

    def _values(self, index: int, name: str, handle: object) -> Gpu:
        nvml, ask = self._nvml, self._ask
        use = ask(nvml.nvmlDeviceGetUtilizationRates, handle)
        memory = ask(nvml.nvmlDeviceGetMemoryInfo, handle)
        power = ask(nvml.nvmlDeviceGetPowerUsage, handle)
        limit = ask(nvml.nvmlDeviceGetEnforcedPowerLimit, handle)
        heat = ask(nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU)
        clock = ask(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM)
        return Gpu(
            index,
            name,
            # "not available" may come as the largest number there is
            utilisation=float(use.gpu) if use is not None and use.gpu <= 100 else None,
            memory_used=int(memory.used) if memory is not None else None,
            memory_total=int(memory.total) if memory is not None else None,
            power=power / 1000 if power is not None else None,
            power_limit=limit / 1000 if limit is not None else None,
            temperature=float(heat) if heat is not None else None,
            sm_clock=float(clock) if clock is not None else None,
        )

    def _ask(self, question: Callable[..., T], *args: object) -> T | None:
        """Return the answer, None where there is none; raises NVMLError where the GPU is lost."""
        try:
            return question(*args)
        except self._nvml.NVMLError as error:
            if self._is_loss(error):
                raise
            return None

    def _is_loss(self, error: Exception) -> bool:
        nvml = self._nvml
        lost = {
            nvml.NVML_ERROR_GPU_IS_LOST,
            nvml.NVML_ERROR_RESET_REQUIRED,
            nvml.NVML_ERROR_UNINITIALIZED,
        }
        return _code(error) in lost


def _code(error: Exception) -> object:
    """Return NVML's own number of an error."""
    return getattr(error, "value", None)
