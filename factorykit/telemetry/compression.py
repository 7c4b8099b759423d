"""Truncated gzip and Zstandard files, decompressed up to the cut."""

from __future__ import annotations

import zlib
from contextlib import suppress
from pathlib import Path
from typing import Final

from factorykit.core.errors import DatasetError

MAX_BYTES: Final = 1_000_000_000
"""Bytes read of a truncated file, compressed and decompressed."""
GZIP: Final = b"\x1f\x8b"
ZSTD: Final = b"\x28\xb5\x2f\xfd"
SKIPPED: Final = b"\x2a\x4d\x18"
"""Last three bytes of the magic number of a frame that holds no content."""
DICTIONARY_BYTES: Final = (0, 1, 2, 4)
SMALLEST_WINDOW: Final = 10
"""Power of two of the smallest window."""
REPEATED: Final = 1
"""Type of a block that is one byte, told how often."""


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
    """Return what members of gzip hold, one behind the other, until they end.

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
    """Return frames of Zstandard, the last of which ends with its last whole block and says no more how long it is.

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


def _header(packed: bytes, at: int) -> tuple[int, bytes, bool]:
    """Return where blocks of a frame start, its header without the size of what it holds, whether it has a checksum."""
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
        told = int.from_bytes(packed[at : at + 3], "little")
        end = at + 3 + (1 if told >> 1 & 3 == REPEATED else told >> 3)
        if end > len(packed):
            break
        at, last_at = end, at
        if told & 1:
            return packed[start:at], at, True
    if last_at < 0:
        return b"", len(packed), False
    marked = bytes([packed[last_at] | 1])
    return packed[start:last_at] + marked + packed[last_at + 1 : at], len(packed), False
