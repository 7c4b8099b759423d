"""The end of plain and compressed files, and the text of truncated ones and of those that polars does not unpack."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import zlib
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, Final

from factorykit.core.errors import DatasetError
from factorykit.core.text_io import GZIP, XZ

MAX_BYTES: Final = 1_000_000_000
"""Bytes of a compressed file, decompressed."""
BLOCK_BYTES: Final = 128 * 1024
"""Most bytes in a block of Zstandard; bytes that are read at once."""
ZSTD: Final = b"\x28\xb5\x2f\xfd"
OPEN: Final[dict[bytes, Any]] = {GZIP: gzip.open, XZ: lzma.open, b"BZh": bz2.open}
SKIPPED: Final = b"\x2a\x4d\x18"
"""Last three bytes of the magic number of a frame that holds no content."""
DICTIONARY_BYTES: Final = (0, 1, 2, 4)
REPEATED: Final = 1
"""Type of a block that is one byte and its count."""


def ending(file: Path) -> tuple[bool, bytes]:
    """Return whether the compression of a file is truncated, and its last decompressed bytes, as far as known."""
    if (packing := packing_of(file)) and packing != ZSTD:
        return _unpacked(file, BLOCK_BYTES)
    with file.open("rb") as stream:
        if packing:
            with mmap(stream.fileno(), 0, access=ACCESS_READ) as packed:
                return _ending_of_zstd(packed, file.name)
        stream.seek(-min(BLOCK_BYTES, file.stat().st_size), os.SEEK_END)
        return False, stream.read()


def packing_of(file: Path) -> bytes:
    """Return the magic number of a compressed file; of another one nothing."""
    with file.open("rb") as stream:
        start = stream.read(8)
    return next((magic for magic in (*OPEN, ZSTD) if start.startswith(magic)), b"")


def _unpacked(file: Path, most: int) -> tuple[bool, bytes]:
    """Return whether the compression of a file is truncated, and at most so many of its last bytes."""
    text, size = bytearray(), 0
    try:
        with OPEN[packing_of(file)](file) as parts:
            while part := parts.read1(BLOCK_BYTES):
                size += len(part)
                _check_size(size, file.name)
                text += part
                del text[:-most]
    except (EOFError, OSError, zlib.error, lzma.LZMAError):
        return True, bytes(text)
    return False, bytes(text)


def _ending_of_zstd(packed: mmap, name: str) -> tuple[bool, bytes]:
    """Walk over the blocks of a file, each of which holds at most 128 KiB; its last bytes are not known."""
    at, size = 0, 0
    while at < len(packed):
        if packed[at + 1 : at + 4] == SKIPPED:
            at += 8 + int.from_bytes(packed[at + 4 : at + 8], "little")
            continue
        if packed[at : at + 4] != ZSTD:
            return True, b""
        at, is_checked = _blocks_of(packed, at)
        is_last = False
        while not is_last and at + 3 <= len(packed):
            header = int.from_bytes(packed[at : at + 3], "little")
            at, is_last = at + 3 + (1 if header >> 1 & 3 == REPEATED else header >> 3), bool(header & 1)
            size += BLOCK_BYTES
            _check_size(size, name)
        if not is_last:
            return True, b""
        at += 4 * is_checked
    return at > len(packed), b""


def _check_size(size: int, name: str) -> None:
    if size > MAX_BYTES + BLOCK_BYTES:
        raise DatasetError(f"{name} decompresses to more than {MAX_BYTES / 1e6:,.0f} MB; decompress and split it first")


def text_of(file: Path, is_truncated: bool) -> Path | bytes:
    """Return what polars reads: a file, or its text; of a truncated one the whole lines, if there are any."""
    packing = packing_of(file)
    if not is_truncated and packing in (b"", GZIP, ZSTD):
        return file
    text = b"" if packing == ZSTD else _unpacked(file, MAX_BYTES)[1]
    if is_truncated and not (text := text[: text.rfind(b"\n") + 1]):
        raise DatasetError(f"{file.name} cannot be unpacked; give the whole file, or what gzip -dc or zstd -dc writes")
    return text


def _blocks_of(packed: mmap, at: int) -> tuple[int, bool]:
    """Return where the blocks of a frame start, and whether it has a checksum (RFC 8878, section 3.1)."""
    descriptor = int.from_bytes(packed[at + 4 : at + 5], "little")
    is_single = bool(descriptor & 32)
    size_bytes = (int(is_single), 2, 4, 8)[descriptor >> 6]
    return at + 5 + (not is_single) + DICTIONARY_BYTES[descriptor & 3] + size_bytes, bool(descriptor & 4)
