"""How far a long question has come, told to a person at a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

Each = TypeVar("Each")
CLEAR: Final = "\r\x1b[K"
QUIET_S: Final = 2.0
"""A question that takes less says nothing. [s]"""
AGAIN_S: Final = 0.2
"""The line is written anew no sooner. [s]"""


def told(things: Iterable[Each], count: int, what: str, rows: int = 0) -> Iterator[Each]:
    """Yield the things; once they have taken `QUIET_S`, a line at the terminal says how far they are.

    ``rows`` is how many a thing holds, where their rate matters. Nothing is written where standard error is no
    terminal: files and notebooks hold answers only.
    """
    start = shown = time.monotonic()
    for done, thing in enumerate(things):
        now = time.monotonic()
        if now - start > QUIET_S and now - shown > AGAIN_S and sys.stderr.isatty():
            shown = now
            rate = done / (now - start)
            left = f", {(count - done) / rate:.0f} s left" if done else ""
            fast = f", {rate * rows:,.0f} rows/s" if rows and done else ""
            _write(f"{CLEAR}{done} of {count} {what}{fast}{left}")
        yield thing
    if shown > start:
        _write(CLEAR)


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
