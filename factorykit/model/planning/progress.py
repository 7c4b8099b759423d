"""How far a long question has come, told to a person at a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Final, TypeVar

Each = TypeVar("Each")
CLEAR: Final = "\r\x1b[K"
QUIET_S: Final = 2.0
"""A question that takes less says nothing. [s]"""


def told(things: list[Each], what: str) -> Iterator[Each]:
    """Yield the things; once they have taken `QUIET_S`, a line at the terminal says how many are left.

    Nothing is written where standard error is no terminal: files and notebooks hold answers only.
    """
    start, shown = time.monotonic(), False
    for done, thing in enumerate(things):
        if time.monotonic() - start > QUIET_S and sys.stderr.isatty():
            shown = True
            _write(f"{CLEAR}{done} of {len(things)} {what}")
        yield thing
    if shown:
        _write(CLEAR)


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
