"""The one script that draws charts: Vega's bundle and the modules of ``runtime/`` in one classic script.

It stands alone so that the build can load it before the package is installed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

VEGA_LITE = "6.4"
PATCH = "1"
"""With it, the Vega-Lite that comes with vl-convert 1.9."""
SCHEMA = f"https://vega.github.io/schema/vega-lite/v{VEGA_LITE}.{PATCH}.json"
"""Vega-Lite schema of all charts."""
RUNTIME = Path(__file__).with_name("runtime")
BUILT = Path(__file__).parents[1] / "widgets" / "static" / "factorykit.js"

COMMENT = re.compile(r"^ *//.*\n|(?<=[;{}]) +// .*$", re.MULTILINE)
MARGIN = re.compile(r"^ +", re.MULTILINE)
IMPORT = re.compile(r'^import \{[^{}]*\} from "[\w./-]*/([\w-]+)\.mjs";\n', re.MULTILINE)
HEAD = "/* factorykit {digest}. Vega and Vega-Lite: BSD-3-Clause, (c) University of Washington IDL. */\n"
TAKEN = """\
import {{ View, parse, loader, logger, Error }} from "{npm}/vega@{vega}/+esm";
import {{ compile }} from "{npm}/vega-lite@{vega_lite}/+esm";
factorykitVega({{ View, parse, loader, logger, Error }}, {{ compile }});
"""
"""Modules of Vega that charts use, by name; nothing is fetched. Vega-Embed would add a tenth to the script."""
NPM = "https://cdn.jsdelivr.net/npm"
FRAME = (
    '(()=>{{"use strict";let vega,vegaLite;const factorykitVega=(...two)=>{{[vega,vegaLite]=two}};{{{vega}}}\n'
    "{runtime}}})();\n"
)


@cache
def runtime() -> str:
    """Return the modules of ``runtime/`` as one text, each behind those it imports; the style sheet as a constant."""
    style = json.dumps((RUNTIME / "chart.css").read_text(encoding="utf-8"))
    return f"const CHART_CSS = {style};\n{bundled(RUNTIME.glob('*.mjs'))}"


def bundled(files: Iterable[Path]) -> str:
    """Return modules as one text without imports, exports and comments, each behind those it imports."""
    modules = {file.stem: COMMENT.sub("", file.read_text(encoding="utf-8")) for file in sorted(files)}
    order = TopologicalSorter({name: IMPORT.findall(text) for name, text in modules.items()}).static_order()
    return "\n".join(re.sub(r"^export ", "", IMPORT.sub("", modules[name]), flags=re.MULTILINE) for name in order)


def page_script() -> str:
    """Return the script of a page: a classic script of about 0.9 MB that finds and draws every chart container.

    The wheel brings it; in a checkout it is built from Vega's bundle when a module of ``runtime/`` has changed.
    """
    head = HEAD.format(digest=digest())
    if BUILT.is_file():
        text = BUILT.read_text(encoding="utf-8")
        if text.startswith(head):
            return text
    return build()


def digest() -> str:
    """Return a short hash of the script's sources."""
    return hashlib.sha256("".join((runtime(), FRAME, TAKEN, VEGA_LITE, PATCH)).encode()).hexdigest()[:16]


def build() -> str:
    """Build the script, keep it beside the package where that can be written, and return it."""
    import vl_convert

    taken = TAKEN.format(npm=NPM, vega=vl_convert.get_vega_version(), vega_lite=f"{VEGA_LITE}.{PATCH}")
    vega = vl_convert.javascript_bundle(taken, vl_version=VEGA_LITE)
    text = HEAD.format(digest=digest()) + FRAME.format(vega=vega, runtime=MARGIN.sub("", runtime()))
    part = BUILT.with_name(f"factorykit.{os.getpid()}.part.js")
    try:
        BUILT.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text, encoding="utf-8")
        part.replace(BUILT)
    except OSError:
        part.unlink(missing_ok=True)
    return text
