"""Planner page: computes a training run in the browser with generated formulas."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Final

from factorykit.charts import bundle
from factorykit.site.planner.controls import formulas, page_data
from factorykit.site.planner.model import in_json, model_script

__all__ = ["formulas_script", "model_script", "script"]

HERE: Final = Path(__file__).parent
ENGINE: Final = ("shapes", "draws", "rank", "engine", "serve")
PAGE: Final = ("shapes", "values", "link", "share", "config", "form", "pictures", "answer", "pins", "page")
FROM_CHARTS: Final = ("dom", "numbers", "bounds", "quoted")


@cache
def script() -> str:
    """Return the script of the planner, which is the engine in a worker and its client on a page."""
    page = [bundle.RUNTIME / f"{name}.mjs" for name in FROM_CHARTS] + [HERE / f"{name}.mjs" for name in PAGE]
    engine = bundle.bundled(HERE / f"{name}.mjs" for name in ENGINE)
    style = json.dumps((HERE / "planner.css").read_text(encoding="utf-8"))
    return bundle.MARGIN.sub(
        "",
        "\n".join(
            [
                "(() => {",
                '"use strict";',
                "function factorykitEngine(port) {",
                model_script(),
                engine,
                "serve(port, MODEL);",
                "}",
                'if (typeof document === "undefined") return factorykitEngine(self);',
                f"const PAGE = {in_json(page_data())};",
                bundle.bundled(page),
                f"start(PAGE, {{ address: document.currentScript.src, serve: factorykitEngine }}, {style});",
                "})();\n",
            ]
        ),
    )


def formulas_script() -> str:
    """Return the script with the formulas of the values; the page loads it when the first one is expanded."""
    return f"factorykitFormulas({in_json(formulas())});\n"
