"""Planner page: computes a training run in the browser with generated formulas."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from factorykit.charts import bundle
from factorykit.site.planner.controls import formulas, page_data
from factorykit.site.planner.model import in_json, model_script

__all__ = ["formulas_script", "model_script", "script"]

HERE: Final = Path(__file__).parent
ENGINE: Final = ("shapes", "draws", "rank", "engine", "serve")
PAGE: Final = ("shapes", "values", "link", "share", "config", "form", "pictures", "answer", "pins", "worker", "page")
LONG: Final = re.compile(r"(?<![\w.])\d+\.\d{9,}(?:e-?\d+)?")
"""Numbers of a script with more digits than are useful."""
SPACED: Final = re.compile(r" (=>|===|!==|&&|\|\||\?\?|\?|:) |(?<=\)) (?=\{)")
DECLARED: Final = re.compile(r"\b(const|let) (\w+) = ")
"""Spaces that a script does not need, where no text has them."""
FROM_CHARTS: Final = ("dom", "numbers", "bounds", "quoted")


@cache
def script() -> str:
    """Return the script of the planner."""
    return page_script("Engine", model_script(), ENGINE, page_data(), PAGE)


def page_script(name: str, model: str, engine: Iterable[str], data: Mapping[str, Any], page: Iterable[str]) -> str:
    """Return the script of a page: an engine with its model in a worker, and its client with its data on the page."""
    client = [bundle.RUNTIME / f"{module}.mjs" for module in FROM_CHARTS] + [HERE / f"{module}.mjs" for module in page]
    style = json.dumps((HERE / "planner.css").read_text(encoding="utf-8"))
    lines = [
        *("(() => {", '"use strict";', f"function factorykit{name}(port) {{", model),
        *(bundle.bundled(HERE / f"{module}.mjs" for module in engine), "serve(port, MODEL);", "}"),
        f'if (typeof document === "undefined") return factorykit{name}(self);',
        *(f"const PAGE = {in_json(data)};", bundle.bundled(client)),
        f"start(PAGE, {{ address: document.currentScript.src, serve: factorykit{name} }}, {style});",
        "})();\n",
    ]
    text = re.sub(r"(?<=[;{,])\n", "", bundle.MARGIN.sub("", "\n".join(lines)))
    text = DECLARED.sub(r"\1 \2=", SPACED.sub(r"\1", text))
    return LONG.sub(lambda number: f"{float(number[0]):.11g}", text)


def formulas_script() -> str:
    """Return the script with the formulas of the values; the page loads it when the first one is expanded."""
    return f"factorykitFormulas({in_json(formulas())});\n"
