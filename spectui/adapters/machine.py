"""What this machine is, in a line, for the record of a measurement."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path

import psutil

from spectui.domain.text import clean


def physical_cores() -> int:
    """Return the number of cores, hyper-threads not counted; at least 1."""
    return psutil.cpu_count(logical=False) or os.cpu_count() or 1


def describe_cpu() -> str:
    """Return the processor's name and its number of logical cores."""
    cores = os.cpu_count() or 1
    name = _linux_cpu() or _mac_cpu() or platform.processor() or platform.machine()
    return f"{clean(name, limit=80)}, {cores} core{'s' if cores != 1 else ''}"


def _linux_cpu() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    found = re.search(r"^(?:model name|Hardware|Model)\s*:\s*(.+)$", text, re.MULTILINE)
    return found.group(1).strip() if found else ""


def _mac_cpu() -> str:
    if platform.system() != "Darwin":
        return ""
    try:
        command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=2, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
