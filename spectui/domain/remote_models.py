"""Models that a command lets llama-server download: where their file will be, and how to get it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from spectui.domain.imported import shown

FOLDER = "models"
"""The folder below the profile's own in which a downloaded model is expected."""

_QUANTISED = re.compile(r"[-_.](I?Q\d\w*|B?F16|MXFP4\w*)$", re.IGNORECASE)

_QUANT = "Q4_K_M"  # what llama-server looks for where a repository's name says nothing


def from_hub(flag: str, repository: str, file: str = "") -> tuple[str, str]:
    """Return the expected path of a Hugging Face model, and the sentence that says how to get it.

    ``repository`` is USER/MODEL with an optional ``:QUANT``; ``file`` names one file of it.
    """
    name, _, quant = repository.partition(":")
    model = re.sub(r"[-_.]?gguf$", "", name.rstrip("/").rpartition("/")[2], flags=re.IGNORECASE)
    leaf = file.replace("\\", "/").rpartition("/")[2]
    single = not quant and _QUANTISED.search(model)  # a repository of one file
    if not leaf:
        leaf = f"{model}.gguf" if single else f"{model}-{quant or _QUANT}.gguf"
    path = f"{FOLDER}/{_plain(leaf)}"
    wanted = file or f"--include '*{'' if single else quant or _QUANT}*.gguf'".replace("**", "*")
    how = (
        f"{flag} {shown(repository)}: spectui starts from files and downloads none; get it with"
        f" `hf download {shown(name)} {shown(wanted)} --local-dir {FOLDER}` or name the copy that"
        f" llama-server has in ~/.cache/huggingface/hub; {path} is a guess"
    )
    return path, how


def from_url(flag: str, url: str) -> tuple[str, str]:
    """Return the expected path of a model behind an address, and how to get it.

    User, password and query of the address may be secrets and are never repeated.
    """
    plain = re.sub(r"//[^/@]*@", "//", re.split(r"[?#]", url, maxsplit=1)[0])
    path = f"{FOLDER}/{_plain(plain.rpartition('/')[2] or 'model.gguf')}"
    how = (
        f"{flag} {shown(plain)}: spectui starts from files and downloads none; get it with"
        f" `curl -L -o {path} ADDRESS`"
    )
    return path, how


def from_docker(flag: str, repository: str) -> tuple[str, str]:
    """Return the expected path of a model of Docker Hub, and how to get it."""
    name, _, tag = repository.partition(":")
    path = f"{FOLDER}/{_plain(name.rpartition('/')[2])}-{_plain(tag or 'latest')}.gguf"
    full = name if "/" in name else f"ai/{name}"
    how = (
        f"{flag} {shown(repository)}: spectui starts from files and downloads none; get it with"
        f" `docker model pull {shown(full)}` and put its file to {path}, or name it there"
    )
    return path, how


def _plain(text: str) -> str:
    """Return a name without what a path could stumble over."""
    return re.sub(r"[^\w.+=-]", "_", text)[:200] or "model"


_FIM = ("--batch-size", "1024", "--ubatch-size", "1024", "--cache-reuse", "256")
_OSS = (
    *("--ubatch-size", "2048", "--batch-size", "32768", "--parallel", "2"),
    *("--ctx-size", "262144", "--temp", "1.0", "--top-p", "1.0", "--top-k", "0"),
    *("--min-p", "0.01"),
)


def _hub(repository: str, file: str = "") -> tuple[str, ...]:
    name = ("--hf-repo", f"ggml-org/{repository}")
    return (*name, "--hf-file", file) if file else name


def _coder(size: str) -> tuple[str, ...]:
    return _hub(f"Qwen2.5-Coder-{size}-Q8_0-GGUF", f"qwen2.5-coder-{size.lower()}-q8_0.gguf")


_HALF = ("--spec-draft-hf", "ggml-org/Qwen2.5-Coder-0.5B-Q8_0-GGUF")

PRESETS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "--fim-qwen-1.5b-default": (*_coder("1.5B"), *_FIM),
        "--fim-qwen-3b-default": (*_coder("3B"), *_FIM),
        "--fim-qwen-7b-default": (*_coder("7B"), *_FIM),
        "--fim-qwen-7b-spec": (*_coder("7B"), *_HALF, *_FIM),
        "--fim-qwen-14b-spec": (*_coder("14B"), *_HALF, *_FIM),
        "--fim-qwen-30b-default": (
            *_hub(
                "Qwen3-Coder-30B-A3B-Instruct-Q8_0-GGUF",
                "qwen3-coder-30b-a3b-instruct-q8_0.gguf",
            ),
            *_FIM,
        ),
        "--gpt-oss-20b-default": (*_hub("gpt-oss-20b-GGUF", "gpt-oss-20b-mxfp4.gguf"), *_OSS),
        "--gpt-oss-120b-default": (*_hub("gpt-oss-120b-GGUF"), *_OSS),
        "--vision-gemma-4b-default": _hub("gemma-3-4b-it-qat-GGUF"),
        "--vision-gemma-12b-default": _hub("gemma-3-12b-it-qat-GGUF"),
    }
)
"""llama-server's ready-made commands → the flags that they stand for."""
