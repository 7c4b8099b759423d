"""nbval compares numbers as numbers here, and a notebook that was committed without being run fails.

A change in the last bit passes, a change of a millionth does not. Pictures are left to the browser tests: text in a
still picture is measured with the fonts of the machine, and its numbers stand in the specification beside it.
"""

import json
import math
import os
import re
import tempfile
from pathlib import Path

import nbval.plugin as nbval

from factorykit.site.notebooks import kernel_environment

RELATIVE, ABSOLUTE = 1e-6, 1e-12
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d[\d_,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w])")
STILL = re.compile(r'<img class="fk-still"[^>]*>|\A<svg\b.*</svg>\s*\Z', re.DOTALL)
NAMED = re.compile(r"\bdata-[0-9a-f]{32}\b")
"""A set of data that Altair names after its bytes."""
RULES = re.compile(r"[─━═\-\s]+")


def close(one: float, other: float) -> bool:
    return one == other or math.isclose(one, other, rel_tol=RELATIVE, abs_tol=ABSOLUTE)


def number(text: str) -> float:
    return float(re.sub("[,_]", "", text))


def same_text(one: str, other: str) -> bool:
    if one == other:
        return True
    ones, others = NUMBER.findall(one), NUMBER.findall(other)
    words = [RULES.sub(" ", NUMBER.sub("#", text)).strip() for text in (one, other)]
    return (
        words[0] == words[1]
        and len(ones) == len(others)
        and all(a == b or close(number(a), number(b)) for a, b in zip(ones, others, strict=True))
    )


def same(one: object, other: object) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return one == other
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return close(float(one), float(other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, str) and isinstance(other, str):
        return same_text(*(NAMED.sub("data", STILL.sub("", text)) for text in (one, other)))
    return one == other


class Output:
    """An output that equals another whose words are the same and whose numbers are close."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return same(self.value, getattr(other, "value", other))

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return self.value if isinstance(self.value, str) else json.dumps(self.value, indent=1)


_home = tempfile.TemporaryDirectory()
_startup = Path(_home.name) / "profile_default" / "startup"
_startup.mkdir(parents=True)
(_startup / "pictures.py").write_text("""# Specifications are compared; pictures, which are not, take seconds to draw.
import vl_convert
vl_convert.vegalite_to_svg = lambda *_, **__: "<svg width='1' height='1'></svg>"
""")
os.environ |= kernel_environment(Path(_home.name))
_sanitize = nbval.IPyNbCell.sanitize
_format = nbval.IPyNbCell.format_output_compare
_run = nbval.IPyNbCell.runtest
_trim = nbval._trim_base64


def runtest(cell) -> None:
    if cell.options["check"] and cell.cell.source.strip() and cell.cell.execution_count is None:
        cell.raise_cell_error("committed without being run: nothing to compare")
    _run(cell)


nbval._trim_base64 = lambda value: _trim(str(value))
nbval.IPyNbCell.sanitize = lambda cell, value: Output(_sanitize(cell, value))
nbval.IPyNbCell.format_output_compare = lambda cell, key, one, other: _format(cell, key, str(one), str(other))
nbval.IPyNbCell.runtest = runtest
