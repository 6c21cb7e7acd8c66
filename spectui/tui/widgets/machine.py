"""GPUs and the host: is the machine what limits it."""

from __future__ import annotations

from rich.cells import cell_len

from spectui.domain.samples import Gpu, Host, SourceStatus
from spectui.domain.text import clean
from spectui.tui.line import Line, shorten
from spectui.tui.render.gauge import gauge
from spectui.tui.widgets.panel import Panel
from spectui.tui.words import NONE, gib, trouble

MAX_ROWS = 5


class MachinePanel(Panel):
    """One line per GPU and one for the host, in the same columns."""

    def heading(self) -> Line:
        """Return the title, with the sources whose figures are old."""
        line = Line("machine", "muted bold")
        shown = {"gpu": bool(self.snapshot.gpus), "host": self.snapshot.host is not None}
        for name, label in (("gpu", "GPU"), ("host", "CPU")):
            wrong = trouble(self.snapshot, name)
            if wrong and shown[name]:
                line.add(f"  {self.look.glyphs.warn} {label}: {wrong}", "warn")
        return line

    def rows(self, width: int) -> int:
        """Return one line per GPU (at least one) and one for the host."""
        del width
        return min(max(len(self.snapshot.gpus), 1) + 1, MAX_ROWS)

    def draw(self, width: int, height: int) -> list[Line]:
        """Return the lines; GPUs for which there is no room are counted."""
        gpus = self.snapshot.gpus
        room = max(height - 1, 1)
        shown = gpus if len(gpus) <= room else gpus[: room - 1]
        lines = [self._gpu(gpu, width) for gpu in shown] or [self._no_gpu()]
        if len(shown) < len(gpus):
            lines.append(Line(f"and {len(gpus) - len(shown)} more GPUs", "muted"))
        return [*lines[:room], self._host(width)]

    def _no_gpu(self) -> Line:
        state = self.snapshot.sources.get("gpu")
        if state is None or state.status is SourceStatus.WAITING:
            return Line("GPU   ", "muted").add("waiting for the first reading", "muted")
        if state.status is SourceStatus.ABSENT:
            return Line("GPU   ", "muted").outside(state.reason or "no NVIDIA GPU", "text")
        wrong = trouble(self.snapshot, "gpu") or "no GPU was found"
        return Line("GPU   ", "muted").add(f"{self.look.glyphs.warn} {wrong}", "warn")

    def _gpu(self, gpu: Gpu, width: int) -> Line:
        bar, gap = _spacing(width)
        glyphs = self.look.glyphs
        line = Line(f"{'GPU ' + str(gpu.index):6}", "muted")
        use = gpu.utilisation
        line.extend(gauge(use / 100 if use is not None else None, bar, glyphs))
        line.add(f" {_figure(use, 3)} %{gap}")
        used, total = gpu.memory_used, gpu.memory_total
        line.add("memory ", "muted")
        line.extend(gauge(used / total if used is not None and total else None, bar, glyphs))
        text = f"{gib(used) if used is not None else NONE}/{gib(total) if total else NONE} GiB"
        line.add(f" {text:>13}{gap}")
        limit = f"/{gpu.power_limit:.0f}" if gpu.power_limit is not None else ""
        line.add(f"{_figure(gpu.power, 3)}{limit} W{gap}{_figure(gpu.temperature, 2)} °C{gap}")
        line.add(f"{_figure(gpu.sm_clock, 4)} MHz")
        name = Line("   ").add(shorten(clean(gpu.name, limit=60), 26), "muted")
        return line.extend(name) if line.width + name.width <= width else line

    def _host(self, width: int) -> Line:
        host = self.snapshot.host
        if host is not None:
            return self._host_line(host, width)
        state = self.snapshot.sources.get("host")
        if state is not None and state.status is SourceStatus.ABSENT:
            return Line("CPU   ", "muted").outside(state.reason, "text")
        wrong = trouble(self.snapshot, "host")
        if wrong:
            return Line("CPU   ", "muted").add(f"{self.look.glyphs.warn} {wrong}", "warn")
        return Line("CPU   ", "muted").add("waiting for the first reading", "muted")

    def _host_line(self, host: Host, width: int) -> Line:
        bar, gap = _spacing(width)
        glyphs = self.look.glyphs
        line = Line("CPU   ", "muted").extend(gauge(host.cpu / 100, bar, glyphs))
        line.add(f" {_figure(host.cpu, 3)} %{gap}").add("memory ", "muted")
        line.extend(gauge(host.memory_used / max(host.memory_total, 1), bar, glyphs))
        text = f"{gib(host.memory_used)}/{gib(host.memory_total)} GiB"
        line.add(f" {text:>13}{gap}")
        if host.server_memory is not None:
            server = f"{gib(host.server_memory)} GiB"
            line.add("server ", "muted").add(server)
            if host.server_cpu is not None:
                line.add(f", {host.server_cpu / 100:.1f}").add(f"/{host.cores} cores", "muted")
        else:
            line.add(f"{host.cores} cores", "muted")
        return line


def _spacing(width: int) -> tuple[int, str]:
    """Return the cells of a bar, and the blanks between two figures."""
    return (10, "   ") if width >= 100 else (6, "  ")


def _figure(value: float | None, width: int) -> str:
    text = NONE if value is None else f"{value:.0f}"
    return " " * (width - cell_len(text)) + text
