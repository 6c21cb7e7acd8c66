"""The header of a GGUF file, read with struct and mmap: where each value lies, and what tensors.

A header is untrusted: it may lie about every length. So each is held against the bytes that are
there and against limits that no real model comes near, arrays are skipped and never built, and
text is decoded only when it is asked for. Versions 2 and 3 have the same layout.
"""

from __future__ import annotations

import mmap
import os
import stat
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from struct import Struct, error as StructError  # noqa: N812 - it is an exception's class
from typing import Final, NamedTuple, NoReturn

from spectui.adapters.gguf_types import TENSOR_TYPES
from spectui.domain.errors import ModelFileError
from spectui.domain.text import clean

MISSING: Final = "model-missing"
INVALID: Final = "model-invalid"
TRUNCATED: Final = "model-truncated"
DENIED: Final = "permission-denied"

DOWNLOAD_AGAIN: Final = "download it again"

MAPPED: Final = 256 << 20
"""Bytes from the start of the file that a header may take."""
MAX_LENGTH: Final = 1 << 30
"""Bytes of any text or list: llama.cpp's own limit."""
MAX_KEYS: Final = 16_384
MAX_KEY: Final = 1024
"""Bytes of one key."""
MAX_TENSORS: Final = 65_536
MAX_TENSOR_NAME: Final = 64
"""Bytes; llama.cpp has room for 63."""
MAX_TENSOR_TYPE: Final = 511
"""llama.cpp has 43 types, and forks number theirs up to 399."""
MAX_STRINGS: Final = 4_000_000
"""Elements of all arrays of text together: the largest of today have under a million."""
MAX_WALKED: Final = 40 << 20
"""Bytes of all arrays of text together: each page that is walked over counts as memory in use."""

STRING: Final = 8
ARRAY: Final = 9
BOOL: Final = 7
_SCALARS: Final = {
    0: Struct("<B"),
    1: Struct("<b"),
    2: Struct("<H"),
    3: Struct("<h"),
    4: Struct("<I"),
    5: Struct("<i"),
    6: Struct("<f"),
    BOOL: Struct("<B"),
    10: Struct("<Q"),
    11: Struct("<q"),
    12: Struct("<d"),
}
_FLOATS: Final = frozenset({6, 12})
_U32: Final = Struct("<I")
_U64: Final = Struct("<Q")
_OUT_OF_BOUNDS: Final = (StructError, OverflowError, IndexError)

_OTHER_FORMATS: Final = (
    (b"<", "it is a web page, so the download went wrong", DOWNLOAD_AGAIN),
    (b"version https://git-lfs", "it is a Git LFS pointer", "run `git lfs pull`"),
    (b"PK\x03\x04", "it is a zip or PyTorch file", "convert it, or download a GGUF"),
    (b"tjgg", "it is of the format before GGUF", "download a GGUF"),
    (b"fmgg", "it is of the format before GGUF", "download a GGUF"),
    (b"lmgg", "it is of the format before GGUF", "download a GGUF"),
    (b"\0\0\0\0", "it begins with zeroes, so the download went wrong", DOWNLOAD_AGAIN),
)


class Value(NamedTuple):
    """Where a value lies. ``kind`` is its type, of an array that of its elements.

    ``length`` is the number of elements, None where it is no array. ``start`` is the first byte of
    a scalar, of the text itself, or of the first element; ``end`` the byte after the last.
    """

    kind: int
    start: int
    end: int
    length: int | None = None


@dataclass(slots=True)
class Header:
    """A header, open for as long as ``open_header`` runs. ``size`` in bytes of the whole file."""

    path: Path
    size: int
    data: mmap.mmap
    version: int = 0
    values: dict[bytes, Value] = field(default_factory=dict)
    tensor_names: set[bytes] = field(default_factory=set)
    parameters: int = 0
    expert_parameters: int = 0
    """Those of them that belong to experts of which only some are used for a token."""
    bytes_by_type: Counter[int] = field(default_factory=Counter)
    """Bytes of the matrices (not of vectors), by tensor type; elements where a type is unknown."""

    def text(self, key: str, limit: int = 200) -> str:
        """Return a text in one harmless line, "" where there is none."""
        value = self.values.get(key.encode())
        if value is None or value.kind != STRING or value.length is not None:
            return ""
        raw = self.data[value.start : min(value.end, value.start + 4 * limit)]
        return clean(raw.decode("utf-8", "replace"), limit=limit).strip()

    def number(self, key: str) -> int | None:
        """Return a whole number that is not negative; None where there is none."""
        found = self.numbers(key)
        return found[0] if len(found) == 1 else None

    def numbers(self, key: str, limit: int = 1024) -> tuple[int, ...]:
        """Return an array of whole numbers, or a single one; nothing if one is out of reason."""
        value = self.values.get(key.encode())
        if value is None or value.kind not in _SCALARS or value.kind in _FLOATS:
            return ()
        count = 1 if value.length is None else value.length
        if count > limit:
            return ()
        scalar = _SCALARS[value.kind]
        found = tuple(
            int(scalar.unpack_from(self.data, value.start + i * scalar.size)[0])
            for i in range(count)
        )
        return found if all(0 <= number < 1 << 40 for number in found) else ()

    def flag(self, key: str) -> bool | None:
        """Return a truth value; None where there is none."""
        value = self.values.get(key.encode())
        if value is None or value.length is not None or value.kind != BOOL:
            return None
        return self.data[value.start] != 0

    def strings(self, key: str) -> Value | None:
        """Return where an array of text lies; None where there is none."""
        value = self.values.get(key.encode())
        if value is None or value.length is None or value.kind != STRING:
            return None
        return value


@contextmanager
def open_header(path: Path) -> Iterator[Header]:
    """Read the header of one file.

    Raises ModelFileError: missing, unreadable, no GGUF, broken, or shorter than its tensors say.
    """
    try:
        # a FIFO with a model's name must not keep us waiting for somebody to write to it
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        raise _unreadable(path, error) from None
    try:
        size = _size_of(path, descriptor)
        try:
            data = mmap.mmap(descriptor, min(size, MAPPED), access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise ModelFileError(INVALID, f"{shown(path)} cannot be read", str(error)) from None
    finally:
        os.close(descriptor)
    with data:
        header = Header(path, size, data)
        _Reader(header).read()
        yield header


def shown(path: Path) -> str:
    """Return a path as it may be shown."""
    return clean(str(path), limit=300)


def _unreadable(path: Path, error: OSError | ValueError) -> ModelFileError:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return ModelFileError(MISSING, f"{shown(path)} does not exist", "is the path right?")
    if isinstance(error, PermissionError):
        return ModelFileError(
            DENIED, f"{shown(path)} may not be read", "change its permissions, or its owner"
        )
    reason = clean(getattr(error, "strerror", None) or str(error), limit=120)
    return ModelFileError(INVALID, f"{shown(path)} cannot be read: {reason}")


def _size_of(path: Path, descriptor: int) -> int:
    """Return the size in bytes of what can be a model at all."""
    status = os.fstat(descriptor)
    if stat.S_ISDIR(status.st_mode):
        raise ModelFileError(INVALID, f"{shown(path)} is a folder", "name the file in it")
    if not stat.S_ISREG(status.st_mode):
        raise ModelFileError(INVALID, f"{shown(path)} is no regular file", "name a GGUF file")
    if status.st_size == 0:
        raise ModelFileError(INVALID, f"{shown(path)} is empty", DOWNLOAD_AGAIN)
    return status.st_size


def _guess(head: bytes) -> tuple[str, str]:
    """Return what a file is that is no GGUF, and what to do about it."""
    for start, what, fix in _OTHER_FORMATS:
        if head.startswith(start):
            return what, fix
    if head[8:10] == b'{"':
        return "it is a safetensors file", "convert it, or download a GGUF"
    return "it does not begin with GGUF", DOWNLOAD_AGAIN


class _Reader:
    """Walks a header once from its start to its end."""

    def __init__(self, header: Header) -> None:
        """Fill ``header``."""
        self._header = header
        self._data = header.data
        self._length = len(header.data)
        self._at = 0
        self._strings = 0
        self._walked = 0

    def read(self) -> None:
        try:
            self._magic()
            tensors, keys = self._counts()
            for _ in range(keys):
                self._pair()
            self._tensors(tensors)
        except _OUT_OF_BOUNDS:
            self._ends_early()

    def _wrong(self, what: str) -> NoReturn:
        raise ModelFileError(INVALID, f"{shown(self._header.path)}: {what}", DOWNLOAD_AGAIN)

    def _ends_early(self) -> NoReturn:
        if self._length < self._header.size:
            self._wrong(f"its header does not end within {MAPPED >> 20} MB")
        raise ModelFileError(
            TRUNCATED, f"{shown(self._header.path)} is cut off within its header", DOWNLOAD_AGAIN
        )

    def _skip(self, count: int) -> int:
        """Step over ``count`` bytes, which must all be there; return where they began."""
        start = self._at
        if count > MAX_LENGTH:
            self._wrong("its header is damaged (something of absurd length)")
        if count > self._length - start:
            self._ends_early()
        self._at = start + count
        return start

    def _u32(self) -> int:
        return int(_U32.unpack_from(self._data, self._skip(4))[0])

    def _u64(self) -> int:
        return int(_U64.unpack_from(self._data, self._skip(8))[0])

    def _magic(self) -> None:
        head = self._data[:24]
        if head[:4] != b"GGUF":
            what, fix = _guess(head)
            path = shown(self._header.path)
            raise ModelFileError(INVALID, f"{path} is no GGUF file ({what})", fix)
        self._at = 4

    def _counts(self) -> tuple[int, int]:
        """Return how many tensors and keys there are."""
        version = self._u32()
        if version and not version & 0xFFFF:
            self._wrong("it was written for big-endian machines, which llama.cpp refuses here")
        if version == 1:
            self._wrong("it is GGUF version 1, which llama.cpp no longer reads")
        if version not in {2, 3}:
            self._wrong(f"it is GGUF version {version}; 2 and 3 can be read")
        self._header.version = version
        tensors, keys = self._u64(), self._u64()
        if tensors > MAX_TENSORS or keys > MAX_KEYS:
            self._wrong("its header is damaged (far too many tensors or keys)")
        return tensors, keys

    def _pair(self) -> None:
        length = self._u64()
        if not 0 < length <= MAX_KEY:
            self._wrong("its header is damaged (a key without or of absurd length)")
        start = self._skip(length)
        key = self._data[start : self._at]
        if key in self._header.values:
            self._wrong(f"its header has {clean(key.decode('utf-8', 'replace'), limit=60)} twice")
        self._header.values[key] = self._value(self._u32())

    def _value(self, kind: int) -> Value:
        if kind == STRING:
            length = self._u64()
            return Value(kind, self._skip(length), self._at)
        if kind in _SCALARS:
            return Value(kind, self._skip(_SCALARS[kind].size), self._at)
        if kind != ARRAY:
            self._wrong(f"its header is damaged (there is no type {kind})")
        of, count = self._u32(), self._u64()
        if of == STRING:
            start = self._at
            self._walk(count)
            return Value(of, start, self._at, count)
        if of not in _SCALARS:
            self._wrong(f"its header is damaged (there is no list of type {of})")
        return Value(of, self._skip(count * _SCALARS[of].size), self._at, count)

    def _walk(self, count: int) -> None:
        """Step over ``count`` texts: the one loop whose speed is felt."""
        self._strings += count
        if count > (self._length - self._at) // 8:
            self._ends_early()
        if self._strings > MAX_STRINGS:
            self._wrong("its header is damaged (lists with far too many entries)")
        stop = min(self._length, self._at + MAX_WALKED - self._walked)
        at, unpack = self._at, _U64.unpack_from
        with memoryview(self._data)[:stop] as view:
            try:
                for _ in range(count):
                    at += 8 + unpack(view, at)[0]
            except _OUT_OF_BOUNDS:
                at = max(at, stop + 1)
        if at > self._length:
            self._ends_early()
        if at > stop:
            self._wrong("its header is damaged (lists of text of far too many bytes)")
        self._walked += at - self._at
        self._at = at

    def _tensors(self, count: int) -> None:
        header = self._header
        alignment = self._alignment()
        names = header.tensor_names
        total = 0  # bytes of data so far, each tensor padded
        last = 0  # the byte after the last one that a tensor needs
        known = True  # while all types are, offsets can be told
        for _ in range(count):
            name = self._tensor_name()
            if name in names:
                self._wrong(f"it has the tensor {clean(name.decode('utf-8', 'replace'))} twice")
            names.add(name)
            elements, row, is_matrix = self._shape()
            kind, offset = self._u32(), self._u64()
            if kind > MAX_TENSOR_TYPE:
                self._wrong(f"its header is damaged (there is no tensor type {kind})")
            header.parameters += elements
            header.expert_parameters += elements if b"_exps." in name else 0
            _, block, width = TENSOR_TYPES.get(kind, ("", 1, 0))
            if row % block:
                self._wrong("its header is damaged (a row that is no whole number of blocks)")
            size = elements // block * width
            known = known and width > 0
            if known and offset != total:
                self._wrong("its header is damaged (a tensor is not where it should be)")
            total += -(-size // alignment) * alignment
            last = max(last, offset + size)
            if is_matrix:
                header.bytes_by_type[kind] += size or elements
        if count:
            self._whole(-(-self._at // alignment) * alignment + last)

    def _alignment(self) -> int:
        value = self._header.values.get(b"general.alignment")
        if value is None:
            return 32
        alignment = self._header.number("general.alignment") or 0
        if value.kind != 4 or alignment.bit_count() != 1:
            self._wrong("its header is damaged (an alignment that is no power of two)")
        return alignment

    def _tensor_name(self) -> bytes:
        length = self._u64()
        if length >= MAX_TENSOR_NAME:
            self._wrong("its header is damaged (a tensor's name is too long)")
        start = self._skip(length)
        return self._data[start : self._at]

    def _shape(self) -> tuple[int, int, bool]:
        """Return a tensor's elements, those of one row, and whether it is more than a vector."""
        dimensions = self._u32()
        if dimensions > 4:
            self._wrong(f"its header is damaged (a tensor of {dimensions} dimensions)")
        elements, row = 1, 1
        for index in range(dimensions):
            extent = self._u64()
            row = extent if index == 0 else row
            elements *= extent
        if elements >= 1 << 63:
            self._wrong("its header is damaged (a tensor of absurd size)")
        return elements, row, dimensions > 1

    def _whole(self, needed: int) -> None:
        if needed > self._header.size:
            raise ModelFileError(
                TRUNCATED,
                f"{shown(self._header.path)} is cut off: {self._header.size:,} of at least "
                f"{needed:,} bytes are there",
                "finish the download, or start it again",
            )
