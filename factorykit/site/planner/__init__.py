"""Planner page: computes a training run in the browser with generated formulas."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from factorykit.charts import bundle
from factorykit.core import __version__
from factorykit.core.vocabulary import quantity, vocabulary
from factorykit.data.tables import table
from factorykit.model.scenario.launch import EXPECTED, LAYOUT, LIGHTER, SERVED
from factorykit.site.planner.controls import formulas, page_data, words
from factorykit.site.planner.model import in_json, model_script

__all__ = ["formulas_script", "launch_script", "model_script", "script"]

HERE: Final = Path(__file__).parent
ENGINE: Final = ("shapes", "draws", "rank", "engine", "serve")
PAGE: Final = ("shapes", "values", "link", "share", "config", "form", "pictures", "answer", "pins", "worker", "page")
LONG: Final = re.compile(r"(?<![\w.])\d+\.\d{9,}(?:e-?\d+)?")
"""Numbers of a script with more digits than are useful."""
SPACED: Final = re.compile(r" (=>|===|!==|&&|\|\||\?\?|\?|:) |(?<=\)) (?=\{)")
DECLARED: Final = re.compile(r"\b(const|let) (\w+) = ")
"""Spaces that a script does not need, where no text has them."""
FIELD: Final = re.compile(r"\{([-\w+*/() ]+)\}")
WORD: Final = re.compile(r"[^\W\d]\w*")
OF_PLAN: Final = re.compile(r"(?<!\w)(?=[a-z]\w*\b(?!\())")
"""Numbers of an option, their words, and the place before a quantity; what stands before a bracket is a function."""
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


def launch_script() -> str:
    """Return the script that writes launch scripts on the pages, with the options of the table as functions."""
    rows, results = table("launch_options").collect().to_dicts(), [*EXPECTED, *SERVED.values()]
    known = {*vocabulary(), "ceil", LIGHTER}
    names = dict(table("frameworks").select("framework", "name").collect().iter_rows())
    data = {
        "words": {name: words(quantity(name)) for name in (*results, *LAYOUT)},
        "expected": results,
        "layout": [[name, quantity(name).neutral] for name in LAYOUT],
        "release": __version__,
        "frameworks": {name: names[name] for name in dict.fromkeys(row["framework"] for row in rows) if name in names},
    }
    options = []
    for row in rows:  # [framework, quantity, condition, function],
        parts = [
            f"written({OF_PLAN.sub('v.', part)})" if n % 2 and {*WORD.findall(part)} <= known else in_json(part)
            for n, part in enumerate(FIELD.split(row["option"] or ""))
        ]
        options.append(f"{in_json([*row.values()][1:4])[:-1]}, (v) => {' + '.join(parts)}],")
    modules = [bundle.RUNTIME / "dom.mjs", bundle.RUNTIME / "bounds.mjs"]
    modules += [HERE / f"{module}.mjs" for module in ("values", "worker", "launch")]
    end = 'if (typeof document === "undefined") return launch.bind(null, LAUNCH);\nstart(LAUNCH);\n})();\n'
    head = ["(() => {", '"use strict";', bundle.bundled(modules), f"const LAUNCH = {{...{in_json(data)}, rows: ["]
    return bundle.MARGIN.sub("", "\n".join([*head, *options, "]};", end]))
