"""NVIDIA GPUs as NVML tells of them, and the many ways in which it does not."""

# ruff: noqa: N802 - the names are pynvml's

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from spectui.adapters.gpu_nvml import RETRY, NvmlGpus
from spectui.domain.errors import SourceAbsentError
from spectui.domain.samples import Gpu

NOT_SUPPORTED = pynvml.NVML_ERROR_NOT_SUPPORTED
LOST = pynvml.NVML_ERROR_GPU_IS_LOST


class FakeNvml:
    """pynvml with its error classes and constants, and invented GPUs.

    ``fails`` maps a function's name, or (name, GPU), to the error code it raises.
    """

    NVMLError = pynvml.NVMLError

    def __init__(self, gpus: int = 1, **fails: int) -> None:
        self.gpus = gpus
        self.fails: dict[Any, int] = dict(fails)
        self.name: str | bytes = "NVIDIA GeForce RTX 3090"
        self.use = 87
        self.begun = 0
        self.ended = 0

    def __getattr__(self, name: str) -> Any:
        if name.startswith("NVML_"):
            return getattr(pynvml, name)
        raise AttributeError(name)

    def _answer(self, name: str, value: Any, gpu: int | None = None) -> Any:
        code = self.fails.get((name, gpu), self.fails.get(name))
        if code is not None:
            raise pynvml.NVMLError(code)
        return value

    def nvmlInit(self) -> None:
        self._answer("init", None)
        self.begun += 1

    def nvmlShutdown(self) -> None:
        self.ended += 1
        self._answer("shutdown", None)

    def nvmlDeviceGetCount(self) -> int:
        return int(self._answer("count", self.gpus))

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return int(self._answer("handle", index, index))

    def nvmlDeviceGetName(self, gpu: int) -> str | bytes:
        name: str | bytes = self._answer("name", self.name, gpu)
        return name

    def nvmlDeviceGetUtilizationRates(self, gpu: int) -> Any:
        return self._answer("use", SimpleNamespace(gpu=self.use, memory=40), gpu)

    def nvmlDeviceGetMemoryInfo(self, gpu: int) -> Any:
        return self._answer("memory", SimpleNamespace(used=19 << 30, total=24 << 30), gpu)

    def nvmlDeviceGetPowerUsage(self, gpu: int) -> Any:
        return self._answer("power", 318_250, gpu)

    def nvmlDeviceGetEnforcedPowerLimit(self, gpu: int) -> Any:
        return self._answer("limit", 350_000, gpu)

    def nvmlDeviceGetTemperature(self, gpu: int, sensor: int) -> Any:
        assert sensor == pynvml.NVML_TEMPERATURE_GPU
        return self._answer("heat", 72, gpu)

    def nvmlDeviceGetClockInfo(self, gpu: int, kind: int) -> Any:
        assert kind == pynvml.NVML_CLOCK_SM
        return self._answer("clock", 1695, gpu)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def reader(nvml: FakeNvml, clock: Clock | None = None) -> NvmlGpus:
    fake: Any = nvml
    return NvmlGpus(fake, clock or Clock())


def test_a_gpu_reads_in_our_units() -> None:
    assert reader(FakeNvml()).read() == (
        Gpu(
            index=0,
            name="NVIDIA GeForce RTX 3090",
            utilisation=87.0,
            memory_used=19 << 30,
            memory_total=24 << 30,
            power=318.25,
            power_limit=350.0,
            temperature=72.0,
            sm_clock=1695.0,
        ),
    )


@pytest.mark.parametrize(
    ("question", "fields"),
    [
        ("use", {"utilisation"}),
        ("memory", {"memory_used", "memory_total"}),
        ("power", {"power"}),
        ("limit", {"power_limit"}),
        ("heat", {"temperature"}),
        ("clock", {"sm_clock"}),
    ],
)
def test_each_value_is_none_on_its_own(question: str, fields: set[str]) -> None:
    (gpu,) = reader(FakeNvml(**{question: NOT_SUPPORTED})).read()
    missing = {name for name in Gpu.__dataclass_fields__ if getattr(gpu, name) is None}
    assert missing == fields


def test_a_mig_gpu_keeps_what_it_tells() -> None:
    (gpu,) = reader(
        FakeNvml(use=NOT_SUPPORTED, power=pynvml.NVML_ERROR_NO_PERMISSION, clock=NOT_SUPPORTED)
    ).read()
    assert (gpu.utilisation, gpu.power, gpu.sm_clock) == (None, None, None)
    assert gpu.memory_total == 24 << 30


def test_a_use_beyond_100_per_cent_is_not_believed() -> None:
    nvml = FakeNvml()
    nvml.use = 0xFFFFFFFF
    assert reader(nvml).read()[0].utilisation is None


@pytest.mark.parametrize("name", [b"Tesla \x1b[31mT4\n", "Tesla \x1b[31mT4\n"])
def test_names_are_text_and_clean(name: str | bytes) -> None:
    nvml = FakeNvml()
    nvml.name = name
    assert reader(nvml).read()[0].name == "Tesla T4"


def test_a_nameless_gpu_has_its_number() -> None:
    assert reader(FakeNvml(name=NOT_SUPPORTED)).read()[0].name == "GPU 0"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, "no NVIDIA GPU"),
        (pynvml.NVML_ERROR_DRIVER_NOT_LOADED, "the NVIDIA driver is not loaded"),
        (
            pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
            "NVIDIA driver and library versions differ",
        ),
        (pynvml.NVML_ERROR_NO_PERMISSION, "no permission to read the NVIDIA GPU"),
        (pynvml.NVML_ERROR_UNKNOWN, "the NVIDIA driver fails: Unknown Error"),
    ],
)
def test_a_driver_that_is_absent_or_broken_says_which(code: int, said: str) -> None:
    with pytest.raises(SourceAbsentError, match=f"^{said}$"):
        reader(FakeNvml(init=code)).read()


def test_a_driver_without_devices_is_no_gpu() -> None:
    with pytest.raises(SourceAbsentError, match="no NVIDIA GPU"):
        reader(FakeNvml(gpus=0)).read()


def test_an_absent_driver_is_tried_again_every_so_often() -> None:
    clock, nvml = Clock(), FakeNvml(init=pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
    gpus = reader(nvml, clock)
    with pytest.raises(SourceAbsentError):
        gpus.read()
    nvml.fails.clear()
    clock.now += RETRY - 1
    with pytest.raises(SourceAbsentError, match="not loaded"):
        gpus.read()
    clock.now += 1
    assert len(gpus.read()) == 1


def test_a_lost_gpu_keeps_its_row_and_name_beside_others() -> None:
    nvml = FakeNvml(gpus=2)
    gpus = reader(nvml)
    gpus.read()
    nvml.fails["power", 1] = LOST
    well, lost = gpus.read()
    assert well.power == 318.25
    assert lost == Gpu(1, "NVIDIA GeForce RTX 3090")


def test_after_a_loss_nvml_begins_afresh_at_most_every_so_often() -> None:
    clock, nvml = Clock(), FakeNvml()
    gpus = reader(nvml, clock)
    gpus.read()
    nvml.fails = {"handle": LOST, "shutdown": LOST}
    clock.now += 1
    with pytest.raises(OSError, match="the GPU was lost"):
        gpus.read()
    clock.now += 1
    with pytest.raises(OSError, match="lost"):
        gpus.read()
    assert nvml.begun == 1
    nvml.fails.clear()
    clock.now += RETRY
    assert gpus.read()[0].utilisation == 87
    assert (nvml.begun, nvml.ended) == (2, 1)


def test_a_gpu_that_may_not_be_seen_is_not_called_lost() -> None:
    with pytest.raises(OSError, match="answers for no GPU"):
        reader(FakeNvml(handle=pynvml.NVML_ERROR_NO_PERMISSION)).read()


def test_a_driver_that_fails_later_is_begun_afresh() -> None:
    clock, nvml = Clock(), FakeNvml()
    gpus = reader(nvml, clock)
    gpus.read()
    nvml.fails["count"] = pynvml.NVML_ERROR_UNINITIALIZED
    with pytest.raises(OSError, match="the NVIDIA driver fails"):
        gpus.read()
    nvml.fails.clear()
    clock.now += RETRY
    assert len(gpus.read()) == 1
    assert nvml.begun == 2


def test_close_lets_go_once_and_may_be_followed_by_a_reading() -> None:
    nvml = FakeNvml()
    gpus = reader(nvml)
    gpus.close()
    gpus.read()
    gpus.close()
    gpus.close()
    assert (nvml.begun, nvml.ended) == (1, 1)
    assert len(gpus.read()) == 1


def test_pynvml_is_imported_late() -> None:
    code = "import sys; from spectui.adapters.gpu_nvml import NvmlGpus; NvmlGpus().close()"
    said = "; sys.exit('pynvml' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code + said], check=False).returncode == 0


def test_without_pynvml_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(SourceAbsentError, match="no NVIDIA GPU"):
        NvmlGpus().read()
