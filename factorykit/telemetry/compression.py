"""The end of plain and compressed files, and the readable part of truncated gzip files."""

from __future__ import annotations

import os
import zlib
from contextlib import suppress
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import BinaryIO, Final

from factorykit.core.errors import DatasetError

MAX_BYTES: Final = 1_000_000_000
"""Bytes of a compressed file, decompressed."""
BLOCK_BYTES: Final = 128 * 1024
"""Most bytes in a block of Zstandard; bytes that are read at once."""
GZIP: Final = b"\x1f\x8b"
ZSTD: Final = b"\x28\xb5\x2f\xfd"
SKIPPED: Final = b"\x2a\x4d\x18"
"""Last three bytes of the magic number of a frame that holds no content."""
DICTIONARY_BYTES: Final = (0, 1, 2, 4)
REPEATED: Final = 1
"""Type of a block that is one byte and its count."""


def ending(file: Path) -> tuple[bool, bytes]:
    """Return whether the compression of a file is truncated, and its last decompressed bytes, as far as known.

    Raises
    ------
    DatasetError
        If it decompresses to too much.
    """
    with file.open("rb") as stream:
        start = stream.read(len(ZSTD))
        stream.seek(0)
        if start.startswith(GZIP):
            return _ending_of_gzip(stream, file.name)
        if start == ZSTD:
            with mmap(stream.fileno(), 0, access=ACCESS_READ) as packed:
                return _ending_of_zstd(packed, file.name)
        stream.seek(-min(BLOCK_BYTES, file.stat().st_size), os.SEEK_END)
        return False, stream.read()


def _ending_of_gzip(stream: BinaryIO, name: str) -> tuple[bool, bytes]:
    """Decompress a file once, keeping its last bytes alone."""
    size, tail, packed, member = 0, b"", b"", zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        while packed := packed or stream.read(BLOCK_BYTES):
            if member.eof:
                packed = packed.lstrip(b"\0")
                member = zlib.decompressobj(zlib.MAX_WBITS | 16) if packed else member
                continue
            part = member.decompress(packed, BLOCK_BYTES)
            packed = member.unused_data or member.unconsumed_tail
            size += len(part)
            tail = (tail + part)[-BLOCK_BYTES:]
            _check_size(size, name)
    except zlib.error:
        return True, tail
    return not member.eof, tail


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


def truncated(file: Path) -> bytes:
    """Return the whole lines that can be read of a truncated gzip file: half a number is another number.

    Raises
    ------
    DatasetError
    """
    with file.open("rb") as stream:
        unpacked, rest = bytearray(), stream.read(MAX_BYTES)
    while rest.startswith(GZIP) and len(unpacked) < MAX_BYTES:
        member = zlib.decompressobj(zlib.MAX_WBITS | 32)
        with suppress(zlib.error):
            unpacked += member.decompress(rest, MAX_BYTES - len(unpacked))
        rest = member.unused_data
    if not (lines := bytes(unpacked[: unpacked.rfind(b"\n") + 1])):
        raise DatasetError(f"{file.name} cannot be unpacked; give the whole file, or what gzip -dc or zstd -dc writes")
    return lines


def _blocks_of(packed: mmap, at: int) -> tuple[int, bool]:
    """Return where the blocks of a frame start, and whether it has a checksum (RFC 8878, section 3.1)."""
    descriptor = int.from_bytes(packed[at + 4 : at + 5], "little")
    is_single = bool(descriptor & 32)
    size_bytes = (int(is_single), 2, 4, 8)[descriptor >> 6]
    return at + 5 + (not is_single) + DICTIONARY_BYTES[descriptor & 3] + size_bytes, bool(descriptor & 4)
