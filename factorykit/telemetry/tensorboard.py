"""Reader for the scalars of TensorBoard event files.

A file is a sequence of records, each with a length and two checksums around a protocol buffer message, as in
``tensorflow/core/lib/io/record_writer`` and in ``event.proto`` and ``summary.proto`` of `TensorBoard
<https://github.com/tensorflow/tensorboard>`_.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

MAX_RECORD_BYTES: Final = 64_000_000
"""Length of a record above which it is invalid."""
VERSION: Final = b"brain.Event:"
"""Start of the version string in the first record."""
POLYNOMIAL: Final = 0x82F63B78
"""Polynomial of CRC-32C, bits reversed."""
MASK: Final = 0xA282EAD8
WALL_TIME, STEP, SUMMARY = 1, 2, 5
"""Field numbers of an event."""
TAG, SIMPLE_VALUE, TENSOR = 1, 2, 8
"""Field numbers of a summary value."""
DTYPE, CONTENT, FLOATS, DOUBLES = 1, 4, 5, 6
"""Field numbers of a tensor."""
FLOAT: Final = 1
"""Type number of single precision."""
FIXED_BYTES: Final = {1: 8, 5: 4}
"""Bytes of the values of a wire type."""
FORMATS: Final = {FLOAT: "<f", 2: "<d", 3: "<i", 9: "<q"}
"""Struct formats by type number: float, double, 32-bit and 64-bit integers."""


def is_event_file(start: bytes) -> bool:
    """Return whether a file starts like an event file."""
    return VERSION in start[12:64] and len(start) >= 24


def scalars(stream: BinaryIO) -> tuple[bytes, int, bool]:
    """Return the scalars by step as lines of JSON, the number of corrupt records, and whether the file is truncated.

    The time of a step is that of its first scalar.
    """
    steps: dict[int, tuple[float, dict[str, float]]] = {}
    corrupt, is_truncated = 0, False
    while head := stream.read(12):
        length = int.from_bytes(head[:8], "little")
        is_head = masked_crc(head[:8]) == int.from_bytes(head[8:], "little") and length <= MAX_RECORD_BYTES
        body = stream.read(length + 4) if is_head else b""
        if is_truncated := len(body) < length + 4:
            break
        if masked_crc(body[:length]) != int.from_bytes(body[length:], "little"):
            corrupt += 1
            continue
        try:
            at, step, values = _event(body[:length])
        except (ValueError, TypeError, AttributeError, LookupError, struct.error):
            corrupt += 1
            continue
        if values:
            steps.setdefault(step, (at, {}))[1].update(values)
    lines = (json.dumps({"wall_time": at, "step": step, "values": values}) for step, (at, values) in steps.items())
    return "\n".join(lines).encode(), corrupt, is_truncated


def _event(message: bytes) -> tuple[float, int, dict[str, float]]:
    fields: dict[int, Any] = dict(_fields(message))
    (at,) = struct.unpack("<d", fields.get(WALL_TIME, bytes(8)))
    values = dict(_tag_and_number(item) for _, item in _fields(fields.get(SUMMARY, b"")))
    return at, int(fields.get(STEP, 0)), {tag: value for tag, value in values.items() if tag and math.isfinite(value)}


def _tag_and_number(message: Any) -> tuple[str, float]:
    fields: dict[int, Any] = dict(_fields(message))
    number = _scalar(fields.get(TENSOR, b""))
    if SIMPLE_VALUE in fields:
        (number,) = struct.unpack(FORMATS[FLOAT], fields[SIMPLE_VALUE])
    return fields.get(TAG, b"").decode("utf-8", "replace"), float(number)


def _scalar(tensor: bytes) -> float:
    """Return the number in a tensor of one element, or NaN."""
    fields: dict[int, Any] = dict(_fields(tensor))
    form = FORMATS.get(fields.get(DTYPE, 0))
    packed = next((fields[name] for name in (CONTENT, FLOATS, DOUBLES) if fields.get(name)), b"")
    return float(struct.unpack(form, packed)[0]) if form and len(packed) == struct.calcsize(form) else math.nan


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the number and the value of each field of a message: an integer, or bytes."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(message, at)
            yield key >> 3, value
            continue
        length, at = _varint(message, at) if kind == 2 else (FIXED_BYTES[kind], at)
        if at + length > len(message):
            raise ValueError("a field exceeds its message")
        yield key >> 3, message[at : at + length]
        at += length


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place, byte in enumerate(message[at : at + 10]):
        value |= (byte & 127) << 7 * place
        if byte < 128:
            return value, at + place + 1
    raise ValueError("unterminated varint")


def masked_crc(data: bytes) -> int:
    """Return the checksum of a record: a rotated and shifted CRC-32C.

    >>> hex(masked_crc(b"123456789"))
    '0xc78ab0e5'
    """
    checksum = 0xFFFFFFFF
    for byte in data:
        checksum = TABLE[(checksum ^ byte) & 0xFF] ^ (checksum >> 8)
    checksum ^= 0xFFFFFFFF
    return ((checksum >> 15 | checksum << 17) + MASK) & 0xFFFFFFFF


def _remainder(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (POLYNOMIAL if byte & 1 else 0)
    return byte


TABLE: Final = tuple(map(_remainder, range(256)))
