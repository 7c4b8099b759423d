"""A report on one's own cluster: one page that holds all it needs, and the notebook that makes the same.

``cluster.md`` is both: what it says stands on the page and in the notebook, and its cells are run for the page.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import polars as pl

import factorykit
from factorykit import places
from factorykit.charts.bundle import page_script
from factorykit.charts.embed import BOOT
from factorykit.errors import FactorykitError, ScenarioError, shown
from factorykit.logs.formats import TABLES
from factorykit.logs.tidy import Log
from factorykit.model.engine.shown import html_text
from factorykit.model.fleet.faults import fleet_nodes, window
from factorykit.quantities import quantity
from factorykit.site.frame import THEME, template
from factorykit.site.policy import policy

TEXT: Final = THEME / "cluster.md"
HEADING: Final = re.compile(r"## (.*?) \{#([\w-]+)\}$")
SOURCE: Final = "The logs that this report was made from"
TITLE: Final = "Your cluster, as its logs tell it"


@dataclass(frozen=True)
class Block:
    """A heading, a paragraph, or what a cell shows."""

    text: str = ""
    level: int = 0
    name: str = ""
    html: str = ""
    is_silent: bool = False


def report(
    log: Log,
    out: Path,
    *,
    logs: Sequence[str] = (),
    kind: str | None = None,
    zone: str = "UTC",
    price: float | str | None = None,
) -> Path:
    """Write the report on a log: ``index.html``, which needs no other file and no network, and ``report.ipynb``.

    Parameters
    ----------
    log
        What :func:`factorykit.read_log` returns.
    out
        Folder to write to.
    logs, kind, zone
        What it was read from, for the notebook.
    price
        Of an accelerator-hour [USD/h]; without one nothing is told in money.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    ScenarioError
        If ``log`` is none, or the price is outside its bounds.
    """
    if not isinstance(log, Log):
        raise ScenarioError(f"log = {shown(log)} is no log; give what fk.read_log returns")
    rent = "rental_usd_per_accelerator_h"
    paid = {} if price is None else {rent: quantity(rent).check(price)}
    names = {"fk": factorykit, "pl": pl, "log": log, "source": SOURCE, "price": paid}
    script = page_script().replace("</script", "<\\/script")
    text = template("cluster.html").render(
        title=TITLE,
        told=_told(log),
        blocks=list(_blocks(names)),
        style=(THEME / "things.css").read_text("utf-8"),
        script=script,
        policy=policy([script, BOOT]),
        version=factorykit.__version__,
    )
    read = f"log = fk.read_log({[str(Path(each).resolve()) for each in logs]!r}, {kind!r}, zone={zone!r})"
    begin = f"import polars as pl\n\nimport factorykit as fk\n\n{read}\nsource, price = {SOURCE!r}, {paid!r}\nlog"
    out.mkdir(parents=True, exist_ok=True)
    page = out / "index.html"
    places.write_whole(page, text)
    places.write_whole(out / "report.ipynb", _notebook(begin))
    return page


def _told(log: Log) -> str:
    """Return what the report is of, in a sentence."""
    counts = ", ".join(f"{frame.height:,} {name}" for name in TABLES if (frame := getattr(log, name)).height)
    try:
        start, end = window(log)
    except ScenarioError as error:
        return f"{counts}. {error}"
    span = f"{start:%Y-%m-%d} to {end:%Y-%m-%d}"
    return f"{span} (UTC): {counts}, {len(fleet_nodes(log)):,} nodes; {log.left_out:,} lines and rows left out."


def _notebook(begin: str) -> str:
    """Return the notebook that shows the same: its first cell reads the logs."""
    import nbformat

    v4 = nbformat.v4
    cells = [v4.new_markdown_cell(f"# {TITLE}", id="title"), v4.new_code_cell(begin, id="read")]
    for number, (kind, source) in enumerate(parts()):
        text = HEADING.sub(r"## \1", source) if kind == "heading" else source
        make = v4.new_code_cell if kind == "code" else v4.new_markdown_cell
        cells.append(make(text, id=f"part-{number}"))
    return nbformat.writes(v4.new_notebook(cells=cells))


def parts() -> Iterator[tuple[str, str]]:
    """Yield what the text is made of: ``heading``, ``words`` or ``code``, and its source."""
    for block in re.split(r"\n{2,}(?=## |```|[A-Z])", TEXT.read_text("utf-8").strip()):
        if block.startswith("```python"):
            yield "code", block.removeprefix("```python\n").removesuffix("\n```")
        else:
            yield "heading" if block.startswith("## ") else "words", block


def _blocks(names: dict[str, Any]) -> Iterator[Block]:
    """Yield the blocks of the page; what a log does not tell ends the cells of its section."""
    is_told = True
    for kind, source in parts():
        is_told |= kind == "heading"
        if kind == "heading":
            found = HEADING.match(source)
            assert found, source
            yield Block(text=found[1], level=2, name=found[2])
        elif kind == "words":
            yield Block(text=" ".join(source.split()))
        elif is_told:
            try:
                yield Block(html=_html(_run(source, names)))
            except FactorykitError as error:
                is_told = False
                yield Block(text=f"Not told: {error}", is_silent=True)


def _run(source: str, names: dict[str, Any]) -> Any:
    """Run a cell and return the value of its last line, as a notebook shows it."""
    *before, last = ast.parse(source).body
    assert isinstance(last, ast.Expr)
    exec(compile(ast.Module(before, []), TEXT.name, "exec"), names)
    return eval(compile(ast.Expression(last.value), TEXT.name, "eval"), names)


def _html(value: Any) -> str:
    if isinstance(value, str):
        return f"<p>{html_text(value)}</p>"
    if hasattr(value, "_repr_html_"):
        return str(value._repr_html_())
    return str(value._repr_mimebundle_()["text/html"])
