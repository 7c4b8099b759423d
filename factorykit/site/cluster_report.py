"""Cluster report: a self-contained page, and a notebook with the same content.

Both are generated from ``cluster.md``, whose cells are executed for the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import polars as pl
from nbformat import v4, writes

from factorykit.charts.bundle import page_script
from factorykit.charts.embed import BOOT
from factorykit.core import __version__, atomic_io
from factorykit.core.errors import FactorykitError, ScenarioError, short_repr
from factorykit.core.vocabulary import quantity
from factorykit.engine.html import html_text
from factorykit.site.csp import policy
from factorykit.site.page_layout import THEME, template
from factorykit.site.sources import run_cell
from factorykit.telemetry.exposure import fleet_nodes, window
from factorykit.telemetry.formats import TABLES
from factorykit.telemetry.tidy import Log

TEXT: Final = THEME / "cluster.md"
HEADING: Final = re.compile(r"## (.*?) \{#([\w-]+)\}$")
SOURCE: Final = "The logs of this report"
TITLE: Final = "Cluster report"
READ_TABLES: Final = """tables = ("events", "jobs", "steps", "power", "notes", "watched")
log = fk.Log(**{name: pl.read_parquet(f"log/{name}.parquet") for name in tables})"""
"""Cell that reads the stored tables of a log if its original files are not given."""


@dataclass(frozen=True)
class Block:
    """A heading, a paragraph, or the output of a cell."""

    text: str = ""
    level: int = 0
    name: str = ""
    html: str = ""
    is_soft: bool = False


def report(
    log: Log,
    out: Path,
    *,
    logs: Sequence[str] = (),
    kind: str | None = None,
    zone: str = "UTC",
    price: float | str | None = None,
) -> Path:
    """Write the report of a log as a self-contained ``index.html`` and as ``report.ipynb``.

    Parameters
    ----------
    log
        A log from :func:`factorykit.read_log`.
    out
        Output folder.
    logs, kind, zone
        Arguments of :func:`factorykit.read_log` for the notebook; without ``logs`` it reads the tables of the log from
        the adjacent folder ``log``.
    price
        Price of an accelerator-hour [USD/h]; optional, without it no costs are shown.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    ScenarioError
        If ``log`` is not a log, the price is out of bounds, or the folder has a page or notebook of another kind.
    """
    if not isinstance(log, Log):
        raise ScenarioError(f"log must be a Log, got {short_repr(log)}; read one with fk.read_log")
    name = "rental_usd_per_accelerator_h"
    prices = {} if price is None else {name: quantity(name).check(price)}
    names = {"fk": import_module("factorykit"), "pl": pl, "log": log, "source": SOURCE, "price": prices}
    script = page_script().replace("</script", "<\\/script")
    text = template("cluster.html").render(
        title=TITLE,
        summary=_summary(log),
        blocks=list(_blocks(names)),
        style=(THEME / "entities.css").read_text("utf-8"),
        script=script,
        policy=policy([script, BOOT]),
        version=__version__,
    )
    read = f"log = fk.read_log({[str(Path(file).resolve()) for file in logs]!r}, {kind!r}, zone={zone!r})"
    first_cell = (
        f"import polars as pl\n\nimport factorykit as fk\n\n{read if logs else READ_TABLES}\n"
        f"source, price = {SOURCE!r}, {prices!r}\nlog"
    )
    out.mkdir(parents=True, exist_ok=True)
    page, notebook = out / "index.html", out / "report.ipynb"
    for path in (page, notebook):
        if path.exists() and TITLE not in path.read_text("utf-8", errors="replace"):
            raise ScenarioError(f"{path} is no {TITLE.lower()}; give another folder")
    atomic_io.write_file(page, text)
    atomic_io.write_file(notebook, _notebook(first_cell))
    if not logs:
        _write_tables(log, out / "log")
    return page


def _write_tables(log: Log, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for field in fields(log):
        with atomic_io.replacing(folder / f"{field.name}.parquet") as part:
            getattr(log, field.name).write_parquet(part)


def _summary(log: Log) -> str:
    """Return a sentence with the period and size of the log."""
    counts = ", ".join(f"{frame.height:,} {name}" for name in TABLES if (frame := getattr(log, name)).height)
    try:
        start, end = window(log)
    except ScenarioError as error:
        return f"{counts}. {error}"
    span = f"{start:%Y-%m-%d} to {end:%Y-%m-%d}"
    nodes = max(len(fleet_nodes(log)), log.power["node"].n_unique())
    return f"{span} (UTC): {counts}, {nodes:,} nodes; {log.skipped:,} lines and rows skipped."


def _notebook(first_cell: str) -> str:
    """Return the notebook of the report; its first cell reads the logs."""
    cells = [v4.new_markdown_cell(f"# {TITLE}", id="title"), v4.new_code_cell(first_cell, id="read")]
    for number, (kind, source) in enumerate(parts()):
        text = HEADING.sub(r"## \1", source) if kind == "heading" else source
        make = v4.new_code_cell if kind == "code" else v4.new_markdown_cell
        cells.append(make(text, id=f"part-{number}"))
    return writes(v4.new_notebook(cells=cells))


def parts() -> Iterator[tuple[str, str]]:
    """Yield the blocks of ``cluster.md``: ``heading``, ``text`` or ``code``, and their source."""
    for block in re.split(r"\n{2,}(?=## |```|[A-Z])", TEXT.read_text("utf-8").strip()):
        if block.startswith("```python"):
            yield "code", block.removeprefix("```python\n").removesuffix("\n```")
        else:
            yield "heading" if block.startswith("## ") else "text", block


def _blocks(names: dict[str, Any]) -> Iterator[Block]:
    """Yield the blocks of the page; a cell without data skips the remaining cells of its section."""
    has_data = True
    for kind, source in parts():
        has_data |= kind == "heading"
        if kind == "heading":
            heading = HEADING.match(source)
            assert heading, source
            yield Block(text=heading[1], level=2, name=heading[2])
        elif kind == "text":
            yield Block(text=" ".join(source.split()))
        elif has_data:
            try:
                yield Block(html=_html(run_cell(source, names)))
            except FactorykitError as error:
                has_data = False
                yield Block(text=f"No data: {error}", is_soft=True)


def _html(value: Any) -> str:
    if isinstance(value, str):
        return f"<p>{html_text(value)}</p>"
    if hasattr(value, "_repr_html_"):
        return str(value._repr_html_())
    return str(value._repr_mimebundle_()["text/html"])
