"""What surrounds a launch, read from real files and programs; and what is damaged, read safely."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

from spectui.adapters import surroundings
from spectui.adapters.surroundings import (
    config_files,
    engine_devices,
    is_full,
    machine,
    place,
    port_problem,
    slow_disk,
    variables,
)
from spectui.domain.errors import SourceAbsentError
from spectui.domain.facts import Device
from spectui.domain.samples import Gpu

GIB = 1 << 30
NOWHERE = Path("/nowhere/config.ini")
NEVER_SHOWN = "sk-never-shown"

# -- configuration files ---------------------------------------------------------------------------


@pytest.fixture
def config(tmp_path):
    """Write the person's own configuration file and return what is read of it."""

    def read(text):
        file = tmp_path / "llama.cpp" / "config.ini"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        [found] = config_files({"XDG_CONFIG_HOME": str(tmp_path)}, NOWHERE)
        assert found.path == str(file)
        return found

    return read


def entries(found):
    assert not found.problem
    return {entry.key: entry.value for entry in found.entries}


def test_without_configuration_files_there_are_none(tmp_path):
    assert config_files({"XDG_CONFIG_HOME": str(tmp_path)}, NOWHERE) == ()
    assert config_files({"HOME": str(tmp_path)}, NOWHERE) == ()


def test_the_system_s_file_comes_before_the_person_s_own(tmp_path):
    system, own = tmp_path / "system.ini", tmp_path / ".config" / "llama.cpp" / "config.ini"
    own.parent.mkdir(parents=True)
    for file in (system, own):
        file.write_text("ctx-size = 512\n")
    found = config_files({"HOME": str(tmp_path)}, system)
    assert [file.path for file in found] == [str(system), str(own)]
    assert all(entry.source == file.path for file in found for entry in file.entries)


def test_only_sections_for_every_program_are_read(config):
    text = """
version = 1
ctx-size = 512
[default]
n-gpu-layers = 99   ; all of them
[*]
flash-attn = on     # a word
[some-model]
ctx-size = 8192
"""
    assert entries(config(text)) == {"ctx-size": "512", "n-gpu-layers": "99", "flash-attn": "on"}


def test_the_last_of_two_entries_stands(config):
    assert entries(config("c = 1\nc = 2\n")) == {"c": "2"}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_may_end_in_any_way(config, end):
    assert entries(config(f"c = 1{end}; a remark{end}{end}ngl=2{end}")) == {"c": "1", "ngl": "2"}


@pytest.mark.parametrize("line", ["ctx-size 512", "[default", "= 3", "9 = 3", "  key = 1", "\0"])
def test_a_line_that_llama_cpp_refuses_is_told_with_its_number(config, line):
    found = config(f"c = 1\n{line}\n")
    assert found.problem == "has a line that cannot be read (line 2)"
    assert found.entries == ()


def test_no_secret_leaves_a_configuration_file(config):
    found = config(f"api-key = {NEVER_SHOWN}\nhf-token = {NEVER_SHOWN}\nctx-size = 512\n")
    assert entries(found) == {"api-key": "", "hf-token": "", "ctx-size": "512"}
    assert NEVER_SHOWN not in repr(found)


def test_bytes_that_are_no_text_end_nothing(config):
    assert entries(config(b"alias = \xff\xfe\n")) == {"alias": "\ufffd\ufffd"}


def test_a_huge_configuration_file_is_not_read_through(config):
    assert config(b"#" * ((1 << 20) + 1)).problem == "is too large for a configuration file"


def test_a_configuration_file_that_cannot_be_read_says_why(tmp_path):
    folder = tmp_path / "config.ini"
    folder.mkdir()
    [found] = config_files({"XDG_CONFIG_HOME": str(tmp_path / "none")}, folder)
    assert found.problem == "cannot be read (Is a directory)"


# -- variables -------------------------------------------------------------------------------------


def test_only_variables_of_llama_server_are_told_and_which_of_them_it_sees():
    found = variables(
        {
            "PATH": "/bin",
            "LLAMA_ARG_CTX_SIZE": "512",
            "LLAMA_ARG_SPEC_TYPE": "draft-simple",
            "LLAMA_ARG_PORT": "80",
            "LLAMA_CACHE": "/c",
        }
    )
    assert [(one.key, one.value, one.passed_on) for one in found] == [
        ("LLAMA_ARG_CTX_SIZE", "512", True),
        ("LLAMA_ARG_PORT", "80", False),
        ("LLAMA_ARG_SPEC_TYPE", "draft-simple", False),
    ]


def test_no_secret_leaves_the_environment():
    names = ("LLAMA_API_KEY", "LLAMA_ARG_API_KEY", "LLAMA_ARG_HF_TOKEN", "LLAMA_ARG_SSL_KEY_FILE")
    found = variables(dict.fromkeys(names, NEVER_SHOWN))
    assert {one.key for one in found} == set(names)
    assert NEVER_SHOWN not in repr(found)


# -- GPUs ------------------------------------------------------------------------------------------

CUDA = """\
ggml_cuda_init: found 2 CUDA devices (Total VRAM: 48254 MiB):
  Device 0: NVIDIA GeForce RTX 3090, compute capability 8.6, VMM: yes, VRAM: 24127 MiB
  Device 1: NVIDIA GeForce RTX 3090, compute capability 8.6, VMM: yes, VRAM: 24127 MiB
Available devices:
  CUDA0: NVIDIA GeForce RTX 3090 (24127 MiB, 23871 MiB free)
  CUDA1: NVIDIA GeForce RTX 3090 (24127 MiB, 11 MiB free)
"""
VULKAN = """\
ggml_vulkan: Found 1 Vulkan devices:
ggml_vulkan: 0 = AMD Radeon Graphics (RADV GFX1151) (radv) | uma: 1 | fp16: 1 | bf16: 0
load_backend: loaded Vulkan backend from /opt/llama/libggml-vulkan.so
Available devices:
  Vulkan0: AMD Radeon Graphics (RADV GFX1151) (65536 MiB, 63500 MiB free)
"""
METAL = """\
ggml_metal_device_init: GPU name:   Apple M4 Max
ggml_metal_device_init: recommendedMaxWorkingSetSize  = 103079.22 MB
Available devices:
  Metal: Apple M4 Max (98304 MiB, 98303 MiB free)
  BLAS: Accelerate (0 MiB, 0 MiB free)
"""
ROCM = """\
ggml_cuda_init: found 1 ROCm devices:
  Device 0: AMD Radeon RX 7900 XTX, gfx1100 (0x1100), VMM: no, Wave Size: 32
Available devices:
  ROCm0: AMD Radeon RX 7900 XTX (24560 MiB, 24472 MiB free)
"""


def mib(name, what, total, free):
    return Device(name, what, total << 20, free << 20)


@pytest.fixture
def program(tmp_path):
    """Return the path of a program that runs a shell script, or prints a text."""

    def make(text=None, script="cat text; exit 0"):
        if text is not None:
            (tmp_path / "text").write_bytes(text if isinstance(text, bytes) else text.encode())
        file = tmp_path / "llama-server"
        file.write_text(f"#!/bin/sh\ncd '{tmp_path}'\n{script}\n")
        file.chmod(0o755)
        return str(file)

    return make


@pytest.mark.parametrize(
    ("text", "devices"),
    [
        (
            CUDA,
            (
                mib("CUDA0", "NVIDIA GeForce RTX 3090", 24127, 23871),
                mib("CUDA1", "NVIDIA GeForce RTX 3090", 24127, 11),
            ),
        ),
        (VULKAN, (mib("Vulkan0", "AMD Radeon Graphics (RADV GFX1151)", 65536, 63500),)),
        (METAL, (mib("Metal", "Apple M4 Max", 98304, 98303),)),
        (METAL.replace("  Metal:", "  MTL0:"), (mib("MTL0", "Apple M4 Max", 98304, 98303),)),
        (ROCM, (mib("ROCm0", "AMD Radeon RX 7900 XTX", 24560, 24472),)),
        ("Available devices:\n  (none)\n", ()),
        ("Available devices:\n", ()),
        (CUDA.replace("\n", "\r\n"), None),
    ],
    ids=["cuda", "vulkan", "metal", "metal-2026", "rocm", "none", "older-none", "windows-lines"],
)
def test_the_gpus_that_a_build_lists(program, text, devices):
    found = engine_devices(program(text))
    if devices is None:
        assert found
        assert len(found) == 2
    else:
        assert found == devices


def test_a_library_for_matrices_is_no_gpu(program):
    text = "Available devices:\n  BLAS: OpenBLAS (0 MiB, 0 MiB free)\n"
    assert engine_devices(program(text)) == ()


def test_memory_that_a_backend_does_not_tell_is_not_taken_for_none(program):
    text = "Available devices:\n  SYCL0: Intel Arc (0 MiB, 0 MiB free)\n"
    assert engine_devices(program(text)) == (Device("SYCL0", "Intel Arc", None, None),)


@pytest.mark.parametrize(
    "line",
    ["  CUDA0: x", "  CUDA0: x (-1 MiB, 3 MiB free)", f"  A: x ({'9' * 5000} MiB, 1 MiB free)"],
)
def test_a_line_that_makes_no_sense_is_left_out(program, line):
    assert engine_devices(program(f"Available devices:\n{line}\n")) == ()


def test_names_of_gpus_are_harmless(program):
    [found] = engine_devices(
        program(b"Available devices:\n  A\x1b[2J: \xff\x1b]0;x\x07y (1 MiB, 1 MiB free)\n")
    ) or [None]
    assert found is not None
    assert found.name.isprintable()
    assert found.what.isprintable()


@pytest.mark.parametrize(
    "script", ["echo 'error: invalid argument: --list-devices'; exit 1", "kill -ILL $$", "exit 0"]
)
def test_a_build_that_cannot_list_its_gpus_tells_nothing(program, script):
    assert engine_devices(program(script=script)) is None


def test_a_program_that_is_not_there_tells_nothing(tmp_path):
    assert engine_devices(str(tmp_path / "nothing")) is None


def test_a_program_that_does_not_end_tells_nothing(program, monkeypatch):
    monkeypatch.setattr("spectui.adapters.printed._PATIENCE", 0.2)
    assert engine_devices(program(CUDA, "cat text; sleep 60")) is None


def test_the_profile_s_variables_reach_the_build_that_is_asked(program):
    script = 'echo "Available devices:"; [ -z "$CUDA_VISIBLE_DEVICES" ] || tail -2 text'
    path = program(CUDA, script)
    assert engine_devices(path, {"CUDA_VISIBLE_DEVICES": ""}) == ()
    assert len(engine_devices(path, {"CUDA_VISIBLE_DEVICES": "0,1"}) or ()) == 2


class Gpus:
    """Stands in for NVML."""

    def __init__(self, found):
        self.found = found
        self.closed = 0

    def __call__(self):
        return self

    def read(self):
        if isinstance(self.found, Exception):
            raise self.found
        return self.found

    def close(self):
        self.closed += 1


def gpu(index, total=24 * GIB, used=1 * GIB):
    return Gpu(index=index, name="RTX 3090", memory_total=total, memory_used=used)


def test_the_machine_tells_what_is_free_as_far_as_it_knows(monkeypatch):
    gpus = Gpus((gpu(0), gpu(1, used=None), gpu(2, total=None)))
    monkeypatch.setattr(surroundings, "NvmlGpus", gpus)
    found = machine({})
    assert found.devices == (
        Device("CUDA0", "RTX 3090", 24 * GIB, 23 * GIB),
        Device("CUDA1", "RTX 3090", 24 * GIB, None),
        Device("CUDA2", "RTX 3090", None, None),
    )
    assert found.gpu_note == ""
    assert 0 < found.memory_free < found.memory_total
    assert gpus.closed == 1


def test_a_machine_without_a_gpu_says_why(monkeypatch):
    gpus = Gpus(SourceAbsentError("no NVIDIA driver\x1b[2J"))
    monkeypatch.setattr(surroundings, "NvmlGpus", gpus)
    found = machine({})
    assert found.devices == ()
    assert found.gpu_note.startswith("no NVIDIA driver")
    assert found.gpu_note.isprintable()
    assert gpus.closed == 1


def test_a_machine_that_hides_its_memory_is_still_described(monkeypatch):
    class Host:
        def read(self, _):
            raise OSError("no /proc")

    monkeypatch.setattr(surroundings, "PsutilHost", Host)
    found = machine({})
    assert (found.memory_total, found.memory_free) == (0, 0)


@pytest.mark.parametrize(
    ("environment", "hidden"),
    [
        ({}, ""),
        ({"CUDA_VISIBLE_DEVICES": ""}, "CUDA_VISIBLE_DEVICES="),
        ({"HIP_VISIBLE_DEVICES": "1"}, "HIP_VISIBLE_DEVICES=1"),
    ],
)
def test_a_variable_that_hides_gpus_is_named(environment, hidden):
    assert machine(environment).hidden == hidden


@pytest.mark.parametrize(("user", "sudo"), [(0, "ann"), (1000, "")])
def test_only_root_is_asked_who_it_was(monkeypatch, user, sudo):
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert machine({"SUDO_USER": "ann"}).sudo == sudo


# -- the port --------------------------------------------------------------------------------------


def test_a_port_in_use_is_told_and_a_free_one_is_not():
    assert port_problem(None) is None
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        found = port_problem(port)
        assert found is not None
        assert found.code == "port-in-use"
        assert f"port {port} is used by" in found.what
        assert found.fix
    assert port_problem(port) is None


def test_a_port_for_privileged_programs_is_called_one(monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    found = port_problem(80)
    assert found is not None
    assert (found.code, found.what) == ("port-privileged", "port 80 is for privileged programs")


# -- disks -----------------------------------------------------------------------------------------


def test_room_is_told_for_a_folder_that_is_not_there_yet(tmp_path):
    found = place(tmp_path / "not" / "yet", "why it is not the usual one")
    assert found.path == str(tmp_path / "not" / "yet")
    assert found.free is not None
    assert found.free > 0
    assert found.problem == "why it is not the usual one"


def test_room_that_cannot_be_told_is_not_made_up(tmp_path, monkeypatch):
    def refuse(_):
        raise PermissionError

    monkeypatch.setattr(surroundings.shutil, "disk_usage", refuse)
    assert place(tmp_path).free is None


@pytest.mark.parametrize(
    ("available", "flags", "blocks", "full"),
    [
        (0, 0, 1000, True),
        (255, 0, 1000, True),
        (256, 0, 1000, False),
        (0, os.ST_RDONLY, 1000, False),  # a read-only medium is always full
        (0, 0, 0, False),  # no disk at all: /proc
    ],
)
def test_a_disk_is_full_below_a_megabyte(monkeypatch, available, flags, blocks, full):
    told = SimpleNamespace(f_flag=flags, f_blocks=blocks, f_bavail=available, f_frsize=4096)
    monkeypatch.setattr(os, "statvfs", lambda _: told)
    assert is_full("/m/model.gguf") is full


def test_a_disk_that_cannot_be_asked_is_not_full():
    assert not is_full("/nowhere/model.gguf")
    assert not is_full("a\0b")


@pytest.fixture
def mounted(tmp_path):
    """Return what is said of a file below ``tmp_path`` / "big data" with these mounts."""
    folder = tmp_path / "big data"
    folder.mkdir()
    file = folder / "m.gguf"
    file.touch()

    def ask(*lines):
        mounts = tmp_path / "mountinfo"
        mounts.write_text("\n".join(lines))
        return slow_disk(str(file), mounts)

    ask.at = str(folder).replace(" ", "\\040")
    return ask


def mount(where, kind):
    return f"36 35 0:99 / {where} rw,noatime shared:1 - {kind} source rw"


@pytest.mark.parametrize(
    "kind", ["nfs4", "cifs", "9p", "fuse.sshfs", "fuse.rclone", "fuse.juicefs"]
)
def test_a_network_drive_is_slow(mounted, kind):
    assert mounted(mount("/", "ext4"), mount(mounted.at, kind)) == f"a network drive ({kind})"


def test_the_innermost_and_last_mount_counts(mounted):
    assert not mounted(mount(mounted.at, "nfs4"), mount(mounted.at, "ext4"), mount("/", "nfs4"))
    assert mounted(mount(mounted.at, "ext4"), mount(mounted.at, "nfs4"))


@pytest.mark.parametrize(
    "line", ["", "nonsense", "1 2 3 - nfs4", " - ", "36 35 0:1 / / rw -", "\0"]
)
def test_mounts_that_make_no_sense_are_left_out(mounted, line):
    assert mounted(line) == ""


def test_of_a_file_or_a_system_that_tells_nothing_nothing_is_said(tmp_path):
    assert slow_disk(str(tmp_path / "gone.gguf")) == ""
    assert slow_disk(str(tmp_path), tmp_path / "no-mountinfo") == ""
    assert slow_disk("a\0b") == ""


@pytest.mark.parametrize(
    ("disk", "rotates", "maker", "told"),
    [
        ("sda", "1", "ATA", "a rotating disk (sda)"),
        ("sda", "0", "ATA", ""),
        ("sda", "1", "QEMU", ""),
        ("vda", "1", "0x1af4", ""),
        ("nvme0n1", "0", "", ""),
    ],
)
def test_a_disk_that_says_it_rotates_is_believed_unless_it_is_virtual(
    tmp_path, disk, rotates, maker, told
):
    whole = tmp_path / "devices" / disk
    (whole / "queue").mkdir(parents=True)
    (whole / "queue" / "rotational").write_text(f"{rotates}\n")
    (whole / "device").mkdir()
    (whole / "device" / "vendor").write_text(f"{maker}     \n")
    part = whole / f"{disk}1"
    part.mkdir()
    numbers = tmp_path / "block"
    numbers.mkdir()
    (numbers / "8:0").symlink_to(whole)
    (numbers / "8:1").symlink_to(part)
    assert surroundings._rotating("8:0", numbers) == told
    assert surroundings._rotating("8:1", numbers) == told
    assert surroundings._rotating("9:9", numbers) == ""
