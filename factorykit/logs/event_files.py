"""TensorBoard's event files: records of a length and two checksums around messages of protocol buffers.

Only scalars are read: their tag, value, step and moment. The format is that of ``tensorflow/core/lib/io/record_writer``
and of ``event.proto`` and ``summary.proto``, which `TensorBoard <https://github.com/tensorflow/tensorboard>`_ keeps.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator
from typing import BinaryIO, Final

LARGEST_RECORD: Final = 64_000_000
"""Bytes of a record; what says more is no record."""
FIRST: Final = b"brain.Event:"
"""What the first record says of its version."""
POLYNOMIAL: Final = 0x82F63B78
"""Of CRC-32C, bits reversed."""
MASK: Final = 0xA282EAD8
WALL_TIME, STEP, SUMMARY = 1, 2, 5
"""Fields of an event."""
TAG, SIMPLE_VALUE, TENSOR = 1, 2, 8
"""Fields of a value in a summary."""
DTYPE, CONTENT, FLOATS, DOUBLES = 1, 4, 5, 6
"""Fields of a tensor."""
FLOAT: Final = 1
"""Type of a tensor of single precision."""
FORMATS: Final = {FLOAT: "<f", 2: "<d", 3: "<i", 9: "<q"}
"""How the numbers of a tensor are packed, by its type: float, double, and whole numbers of 32 and 64 bits."""


def is_one(start: bytes) -> bool:
    """Return whether a file begins like an event file."""
    return FIRST in start[12:64] and len(start) >= 24


def scalars(stream: BinaryIO) -> tuple[bytes, int, bool]:
    """Return the scalars of each step as a line of JSON, the records whose checksum is wrong, and whether one is cut.

    The moment of a step is that of its first scalar.
    """
    steps: dict[int, tuple[float, dict[str, float]]] = {}
    wrong, is_cut = 0, False
    while head := stream.read(12):
        length = int.from_bytes(head[:8], "little")
        if len(head) < 12 or not _is_right(head[:8], head[8:]) or length > LARGEST_RECORD:
            is_cut = True
            break
        body = stream.read(length + 4)
        if len(body) < length + 4:
            is_cut = True
            break
        if not _is_right(body[:length], body[length:]):
            wrong += 1
            continue
        try:
            at, step, values = _event(body[:length])
        except (ValueError, struct.error):
            wrong += 1
            continue
        if values:
            steps.setdefault(step, (at, {}))[1].update(values)
    lines = (json.dumps({"wall_time": at, "step": step, "values": values}) for step, (at, values) in steps.items())
    return "\n".join(lines).encode(), wrong, is_cut


def _event(message: bytes) -> tuple[float, int, dict[str, float]]:
    at, step, values = 0.0, 0, {}
    for field, told in _fields(message):
        if field == WALL_TIME and isinstance(told, bytes):
            at = float(struct.unpack("<d", told)[0])
        elif field == STEP and isinstance(told, int):
            step = told
        elif field == SUMMARY and isinstance(told, bytes):
            values |= dict(_value(each) for _, each in _fields(told) if isinstance(each, bytes))
    return at, step, {tag: value for tag, value in values.items() if tag and math.isfinite(value)}


def _value(message: bytes) -> tuple[str, float]:
    tag, number = "", math.nan
    for field, told in _fields(message):
        if not isinstance(told, bytes):
            continue
        if field == TAG:
            tag = told.decode("utf-8", "replace")
        elif field == SIMPLE_VALUE:
            number = struct.unpack(FORMATS[FLOAT], told)[0]
        elif field == TENSOR:
            number = _first(told)
    return tag, float(number)


def _first(tensor: bytes) -> float:
    """Return the number of a tensor that holds one."""
    told = dict(_fields(tensor))
    dtype = told.get(DTYPE)
    form = FORMATS.get(dtype) if isinstance(dtype, int) else None
    packed = next((each for name in (CONTENT, FLOATS, DOUBLES) if isinstance(each := told.get(name), bytes)), b"")
    return float(struct.unpack(form, packed)[0]) if form and len(packed) == struct.calcsize(form) else math.nan


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the number of each field of a message, and what it holds: a whole number, or bytes."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(message, at)
            yield key >> 3, value
            continue
        if kind == 2:
            length, at = _varint(message, at)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise ValueError(f"wire type {kind}")
        if at + length > len(message):
            raise ValueError("a field that is longer than its message")
        yield key >> 3, message[at : at + length]
        at += length


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 64, 7):
        if at >= len(message):
            break
        byte = message[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise ValueError("a number that does not end")


def masked(data: bytes) -> int:
    """Return the checksum that records carry: CRC-32C, rotated and shifted so that it is none of itself.

    >>> hex(masked(b"123456789"))
    '0xc78ab0e5'
    """
    checksum = 0xFFFFFFFF
    for byte in data:
        checksum = TABLE[(checksum ^ byte) & 0xFF] ^ (checksum >> 8)
    checksum ^= 0xFFFFFFFF
    return ((checksum >> 15 | checksum << 17) + MASK) & 0xFFFFFFFF


def _is_right(data: bytes, told: bytes) -> bool:
    return masked(data) == int.from_bytes(told, "little")


def _remainder(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (POLYNOMIAL if byte & 1 else 0)
    return byte


TABLE: Final = tuple(map(_remainder, range(256)))
