"""How long ``import factorykit`` takes beside ``import polars``, in fresh interpreters."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

from benchmarks import Row, pair


def fresh(code: str) -> Callable[[], object]:
    return lambda: subprocess.run([sys.executable, "-c", code], check=True)


def rows() -> Iterator[Row]:
    polars = fresh("import polars")
    yield pair("import factorykit", fresh("import factorykit"), "import polars", polars, at_most_ratio=1.3)
    first = "import factorykit as fk; fk.evaluate({'wall_s': 1.0})"
    yield pair("import and evaluate a scenario", fresh(first), "import polars", polars, at_most_ratio=1.3)
