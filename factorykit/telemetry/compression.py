"""The end of plain and compressed files, and the readable part of truncated gzip and Zstandard files."""

from __future__ import annotations

import os
import zlib
from contextlib import suppress
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

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
SMALLEST_WINDOW: Final = 10
"""Power of two of the smallest window."""
REPEATED: Final = 1
"""Type of a block that is one byte and its count."""


class Ending(NamedTuple):
    """How a file ends: whether its compression is truncated, and its last decompressed bytes, as far as known."""

    is_truncated: bool
    tail: bytes


def ending(file: Path) -> Ending:
    """Return how a file ends.

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
        return Ending(False, stream.read())


def _ending_of_gzip(stream: BinaryIO, name: str) -> Ending:
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
        return Ending(True, tail)
    return Ending(not member.eof, tail)


def _ending_of_zstd(packed: mmap, name: str) -> Ending:
    """Walk over the blocks of a file, each of which holds at most 128 KiB; its last bytes are not known."""
    at, size = 0, 0
    while at < len(packed):
        if packed[at + 1 : at + 4] == SKIPPED:
            at += 8 + int.from_bytes(packed[at + 4 : at + 8], "little")
            continue
        if packed[at : at + 4] != ZSTD:
            return Ending(True, b"")
        at, _, is_checked = _header(packed, at)
        is_last = False
        while not is_last and at + 3 <= len(packed):
            at, is_last = _next_block(packed, at)
            size += BLOCK_BYTES
            _check_size(size, name)
        if not is_last:
            return Ending(True, b"")
        at += 4 * is_checked
    return Ending(at > len(packed), b"")


def _next_block(packed: bytes | mmap, at: int) -> tuple[int, bool]:
    """Return where the block at a place ends, and whether it is the last one of its frame."""
    header = int.from_bytes(packed[at : at + 3], "little")
    return at + 3 + (1 if header >> 1 & 3 == REPEATED else header >> 3), bool(header & 1)


def _check_size(size: int, name: str) -> None:
    if size > MAX_BYTES + BLOCK_BYTES:
        raise DatasetError(f"{name} decompresses to more than {MAX_BYTES / 1e6:,.0f} MB; decompress and split it first")


def truncated(file: Path) -> bytes:
    """Return the readable part of a truncated gzip or Zstandard file, the latter still compressed.

    Raises
    ------
    DatasetError
    """
    with file.open("rb") as stream:
        packed = stream.read(MAX_BYTES)
    found = whole_blocks(packed) if packed.startswith(ZSTD) else whole_lines(whole_members(packed))
    if not found:
        raise DatasetError(f"{file.name} cannot be unpacked; give the whole file")
    return found


def whole_members(packed: bytes) -> bytes:
    """Return the contents of the members of a gzip file, up to its end.

    >>> import gzip
    >>> whole_members(gzip.compress(b"one ") + gzip.compress(b"two")[:-9])
    b'one two'
    """
    found, rest = bytearray(), packed
    while rest.startswith(GZIP) and len(found) < MAX_BYTES:
        member = zlib.decompressobj(zlib.MAX_WBITS | 32)
        with suppress(zlib.error):
            found += member.decompress(rest, MAX_BYTES - len(found))
        rest = member.unused_data
    return bytes(found)


def whole_lines(text: bytes) -> bytes:
    """Return a text up to the end of its last whole line: half a number is another number."""
    return text[: text.rfind(b"\n") + 1]


def whole_blocks(packed: bytes) -> bytes:
    """Return frames of Zstandard; the last one ends with its last whole block and has no content size.

    Frames as RFC 8878, section 3.1, describes them. A block holds up to 128 KiB.
    """
    found, at = bytearray(), 0
    while packed[at : at + 4] == ZSTD or packed[at + 1 : at + 4] == SKIPPED:
        if packed[at : at + 4] != ZSTD:
            at += 8 + int.from_bytes(packed[at + 4 : at + 8], "little")
            continue
        start, header, is_checked = _header(packed, at)
        blocks, end, is_whole = _blocks(packed, start)
        if is_whole and end + 4 * is_checked <= len(packed):
            found += packed[at : end + 4 * is_checked]
        elif blocks:
            found += header + blocks
        at = end + 4 * is_checked
    return bytes(found)


def _header(packed: bytes | mmap, at: int) -> tuple[int, bytes, bool]:
    """Return where the blocks of a frame start, its header without the content size, and whether it has a checksum."""
    descriptor = int.from_bytes(packed[at + 4 : at + 5], "little")
    of_size, is_single, key = descriptor >> 6, bool(descriptor & 32), DICTIONARY_BYTES[descriptor & 3]
    window_at = at + 5
    key_at = window_at + (not is_single)
    size_at = key_at + key
    size_bytes = (1 if is_single else 0, 2, 4, 8)[of_size]
    start = size_at + size_bytes
    window = packed[window_at:key_at]
    if is_single:
        size = int.from_bytes(packed[size_at:start], "little") + 256 * (of_size == 1)
        window = bytes([max((size - 1).bit_length() - SMALLEST_WINDOW, 0) << 3])
    return start, ZSTD + bytes([descriptor & 3]) + window + packed[key_at:size_at], bool(descriptor & 4)


def _blocks(packed: bytes, start: int) -> tuple[bytes, int, bool]:
    """Return the whole blocks from here on with the last one marked as such, where they end, whether it is the last."""
    at, last_at = start, -1
    while at + 3 <= len(packed):
        end, is_last = _next_block(packed, at)
        if end > len(packed):
            break
        at, last_at = end, at
        if is_last:
            return packed[start:at], at, True
    if last_at < 0:
        return b"", len(packed), False
    marked = bytes([packed[last_at] | 1])
    return packed[start:last_at] + marked + packed[last_at + 1 : at], len(packed), False
