"""A progress line at a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

Item = TypeVar("Item")
CLEAR: Final = "\r\x1b[K"
DELAY_S: Final = 2.0
"""Shorter work shows no progress. [s]"""
UPDATE_S: Final = 0.2
"""Shortest time between two updates at a terminal. [s]"""
LOG_S: Final = 60.0
"""Time between two lines in a log. [s]"""


def progress(items: Iterable[Item], count: int, kind: str, rows: int = 0) -> Iterator[Item]:
    """Yield the items; after `DELAY_S` a line at the terminal shows the progress, in a log one line every `LOG_S`.

    ``rows`` is the number of rows of an item, where their rate matters.
    """
    start = shown = time.monotonic()
    is_terminal = sys.stderr.isatty()
    for done, item in enumerate(items):
        now = time.monotonic()
        if now - start > DELAY_S and now - shown > (UPDATE_S if is_terminal else LOG_S):
            shown = now
            rate = done / (now - start)
            left = f", {(count - done) / rate:.0f} s left" if done else ""
            fast = f", {rate * rows:,.0f} rows/s" if rows and done else ""
            text = f"{done} of {count} {kind}{fast}{left}"
            _write(f"{CLEAR}{text}" if is_terminal else f"{text}\n")
        yield item
    if is_terminal and shown > start:
        _write(CLEAR)


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
