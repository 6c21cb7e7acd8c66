"""What surrounds a launch: configuration files, variables, GPUs, disks, the port.

llama-server reads ``/etc/llama.cpp/config.ini``, then ``config.ini`` in ``llama.cpp`` below
$XDG_CONFIG_HOME or ``~/.config``, then LLAMA_ARG_* variables, then its command line; each of them
has the last word over those before it (``common_params_parse_ex`` in llama.cpp's common/arg.cpp).
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from spectui.adapters.gpu_nvml import NvmlGpus
from spectui.adapters.host import PsutilHost
from spectui.adapters.machine import describe_cpu
from spectui.adapters.printed import printed
from spectui.adapters.program import child_environment
from spectui.adapters.tcp_port import free_port
from spectui.domain.errors import EngineError, PortError, SourceAbsentError
from spectui.domain.facts import ConfigFile, Device, Machine, Place, Problem
from spectui.domain.plan import Outside
from spectui.domain.text import clean

SYSTEM_CONFIG = Path("/etc/llama.cpp/config.ini")
_LARGEST = 1 << 20  # bytes of a configuration file that are looked at
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)
_VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")


# -- configuration files and variables -------------------------------------------------------------


def config_files(
    environment: Mapping[str, str], system: Path = SYSTEM_CONFIG
) -> tuple[ConfigFile, ...]:
    """Return llama.cpp's configuration files that exist, in the order in which it reads them."""
    base = environment.get("XDG_CONFIG_HOME")
    with contextlib.suppress(RuntimeError):
        base = base or str(Path(environment.get("HOME") or Path.home()) / ".config")
    paths = [system, *([Path(base) / "llama.cpp" / "config.ini"] if base else [])]
    return tuple(_config_file(path) for path in paths if _exists(path))


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def _config_file(path: Path) -> ConfigFile:
    try:
        with path.open("rb") as file:
            raw = file.read(_LARGEST + 1)
    except OSError as error:
        return ConfigFile(str(path), problem=f"cannot be read ({error.strerror})")
    if len(raw) > _LARGEST:
        return ConfigFile(str(path), problem="is too large for a configuration file")
    entries: dict[str, Outside] = {}
    try:
        for key, value in _ini(raw.decode("utf-8", "replace")):
            entries[key] = Outside(str(path), key, "" if _SECRET.search(key) else value)
    except ValueError as error:
        return ConfigFile(str(path), problem=str(error))
    return ConfigFile(str(path), tuple(entries.values()))


_HEADER = re.compile(r"\[[ \t]*([^\]]+?)[ \t]*\][ \t]*(?:[;#].*)?")
_ENTRY = re.compile(r"([A-Za-z_][\w.-]*)[ \t]*=[ \t]*(.*?)[ \t]*(?:[;#].*)?", re.ASCII)
_BLANK = re.compile(r"[ \t]*(?:[;#].*)?")


def _ini(text: str) -> Iterator[tuple[str, str]]:
    """Yield keys and values that every program takes: of no section, ``default`` and ``*``.

    Raises ValueError for a line that llama.cpp's own grammar refuses; it then refuses to start.
    """
    section = "default"
    for number, line in enumerate(re.split(r"\r\n|\n|\r", text), start=1):
        if header := _HEADER.fullmatch(line):
            section = header[1]
        elif entry := _ENTRY.fullmatch(line):
            if section in {"default", "*"} and entry[1] != "version":
                yield entry[1], entry[2]
        elif not _BLANK.fullmatch(line):
            raise ValueError(f"has a line that cannot be read (line {number})")


def variables(environment: Mapping[str, str]) -> tuple[Outside, ...]:
    """Return the variables that llama-server takes for options, and whether it gets to see them."""
    _, dropped = child_environment(environment)
    return tuple(
        Outside("", name, "" if _SECRET.search(name) else value, name not in dropped)
        for name, value in sorted(environment.items())
        if name.startswith("LLAMA_ARG_") or name == "LLAMA_API_KEY"
    )


# -- the machine -----------------------------------------------------------------------------------


def machine(environment: Mapping[str, str]) -> Machine:
    """Return processor, memory and GPUs; what cannot be read is left out."""
    total = used = 0
    with contextlib.suppress(OSError):
        host = PsutilHost().read(None)
        total, used = host.memory_total, host.memory_used
    devices, note = _nvidia()
    hidden = next((f"{name}={environment[name]}" for name in _VISIBLE if name in environment), "")
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    return Machine(
        cpu=describe_cpu(),
        memory_total=total,
        memory_free=max(0, total - used),
        devices=devices,
        gpu_note=note,
        hidden=clean(hidden, limit=80),
        sudo=environment.get("SUDO_USER", "") if root else "",
    )


def _nvidia() -> tuple[tuple[Device, ...], str]:
    gpus = NvmlGpus()
    try:
        return tuple(
            Device(
                f"CUDA{gpu.index}",
                gpu.name,
                gpu.memory_total,
                None
                if gpu.memory_total is None or gpu.memory_used is None
                else gpu.memory_total - gpu.memory_used,
            )
            for gpu in gpus.read()
        ), ""
    except (SourceAbsentError, OSError) as error:
        return (), clean(str(error), limit=120)
    finally:
        gpus.close()


_DEVICE = re.compile(r"\s+(\S[^:]*): (.*) \((\d{1,9}) MiB, (\d{1,9}) MiB free\)\s*", re.ASCII)
_LIBRARY = re.compile(r"BLAS|ZenDNN|zDNN|CPU", re.IGNORECASE)


def engine_devices(
    program: str, variables: Mapping[str, str] | None = None
) -> tuple[Device, ...] | None:
    """Return the GPUs that the llama-server ``program`` can use, None where it does not tell.

    It tells what its own build can see, NVIDIA or not, and how much of each is free. Libraries for
    matrices on the processor are in its list too, and are no GPU. ``variables`` are those that it
    gets besides spectui's own; they may hide some.
    """
    try:
        text, code = printed(program, "--list-devices", variables)
    except EngineError:
        return None
    if code is None:  # it had to be killed: what it said so far is not all
        return None
    lines = text.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith("Available devices")), None)
    if begin is None:
        return None
    found = (m for line in lines[begin + 1 :] if (m := _DEVICE.fullmatch(line)))
    return tuple(
        # 0 MiB in all: this backend does not tell
        Device(
            clean(m[1], limit=40),
            clean(m[2], limit=80),
            int(m[3]) << 20 or None,
            int(m[4]) << 20 if int(m[3]) else None,
        )
        for m in found
        if not _LIBRARY.match(m[1])
    )


def port_problem(port: int | None) -> Problem | None:
    """Return why a server could not bind ``port`` now, None if it could or none is named."""
    if port is None:
        return None
    try:
        free_port(port)
    except PortError as error:
        code = "port-privileged" if "privileged" in error.what else "port-in-use"
        return Problem(code, error.what, error.fix)
    return None


# -- disks -----------------------------------------------------------------------------------------

_NETWORK = re.compile(
    r"nfs\d?|cifs|smb\d|smbfs|afpfs|webdav|davfs|9p|drvfs|ceph|glusterfs|lustre|beegfs|gpfs"
    r"|fuse\.(sshfs|rclone|s3fs|gcsfuse|glusterfs|ceph.*|.*drive.*)|fuse\.juicefs",
)


def place(path: Path, problem: str = "") -> Place:
    """Return how much room there is for files in ``path``, which need not exist yet."""
    with contextlib.suppress(OSError):
        found = next(folder for folder in (path, *path.parents) if folder.exists())
        return Place(str(path), shutil.disk_usage(found).free, problem)
    return Place(str(path), None, problem)


def is_full(path: str) -> bool:
    """Return whether the disk that a file lies on can take no more; never of a read-only one."""
    try:
        found = os.statvfs(path)
    except (OSError, ValueError):
        return False
    writable = not found.f_flag & os.ST_RDONLY
    return writable and found.f_blocks > 0 and found.f_bavail * found.f_frsize < 1 << 20


def slow_disk(path: str, mounts: Path = Path("/proc/self/mountinfo")) -> str:
    """Return what kind of slow disk a file lies on ("a network drive (nfs4)"), or nothing.

    Linux tells; of other systems nothing is said.
    """
    try:
        real = Path(path).resolve()
        number = real.stat().st_dev
        kind = _file_system(real, mounts.read_text("utf-8", "replace"))
    except (OSError, ValueError):
        return ""
    if _NETWORK.fullmatch(kind):
        return f"a network drive ({kind})"
    return _rotating(f"{os.major(number)}:{os.minor(number)}")


def _file_system(path: Path, mounts: str) -> str:
    """Return the type of the file system of ``path``, from the text of mountinfo."""
    best, kind = -1, ""
    for line in mounts.splitlines():
        fields, _, rest = line.partition(" - ")
        words = fields.split()
        if len(words) < 5 or not rest:
            continue
        # blanks and backslashes are written as \040 and the like
        where = re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), words[4])
        # of two mounts at one place the later one is seen
        if path.is_relative_to(where) and len(where) >= best:
            best, kind = len(where), rest.split()[0]
    return kind


_VIRTUAL = frozenset({"QEMU", "Google", "Msft", "VMware", "VBOX", "Virtual"})


def _rotating(number: str, devices: Path = Path("/sys/dev/block")) -> str:
    """Return what disk it is if it says that it rotates; virtual disks say so without reason."""
    try:
        device = (devices / number).resolve(strict=True)
        disk = device if (device / "queue").is_dir() else device.parent
        rotates = (disk / "queue" / "rotational").read_text().strip() == "1"
        maker = (disk / "device" / "vendor").read_text("utf-8", "replace").split()
    except OSError:  # whatever has no maker is no disk of its own
        return ""
    real = rotates and disk.name.startswith("sd") and not _VIRTUAL.intersection(maker)
    return f"a rotating disk ({disk.name})" if real else ""
