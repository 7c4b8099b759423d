"""A frame as a table for reading: labels from the vocabulary, numbers with their units."""

from __future__ import annotations

from collections.abc import Collection
from html import escape
from typing import Any

import polars as pl

from factorykit.core.errors import UnknownName, unknown_name_message
from factorykit.core.vocabulary import SUPERSCRIPTS, Quantity, format_number, vocabulary

NAMES = ("quantity", "input", "output")


class Table:
    """A frame shown with the vocabulary's labels and units; as text it keeps the numbers in full.

    Where numbers are printed in the unit of the row's quantity, the column ``unit`` is redundant and left out.
    """

    def __init__(self, frame: pl.DataFrame, shares: Collection[str] = ()) -> None:
        self.frame = frame
        self.shares = frozenset(shares)

    def __repr__(self) -> str:
        with pl.Config(tbl_rows=-1, tbl_cols=-1, fmt_str_lengths=60, tbl_width_chars=9999) as config:
            config.set_tbl_formatting("MARKDOWN")
            return str(self.frame)

    def _repr_html_(self) -> str:
        has_units = "quantity" in self.frame.columns and set(self.frame["quantity"]) <= vocabulary().keys()
        shown = self.frame.drop("unit", strict=False) if has_units else self.frame
        numbers = {name: dtype.is_numeric() for name, dtype in shown.schema.items()}
        head = "".join(f"<th{_side(numbers[name])}>{escape(_label(name))}</th>" for name in shown.columns)
        rows = [
            [(self._cell(name, value, row.get("quantity")), numbers[name]) for name, value in row.items()]
            for row in shown.iter_rows(named=True)
        ]
        cells = ("".join(f"<td{_style(*cell)}>{_linked(cell[0])}</td>" for cell in row) for row in rows)
        body = "".join(f"<tr>{row}</tr>" for row in cells)
        return f'<table class="table fk-frame"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'

    def _cell(self, name: str, value: Any, of: Any) -> str:
        if value is None:
            return "–"
        if isinstance(value, bool):
            return "yes" if value else "no"
        if not isinstance(value, (int, float)):
            return vocabulary()[value].label if name in NAMES and value in vocabulary() else str(value)
        if name in self.shares:
            return f"{format_number(100.0 * value)} %"
        row = _quantity(name)[0] or vocabulary().get(of)
        if row:
            return row.text(float(value))
        number, exponential, power = format_number(float(value)).partition("e")
        return f"{number} × 10{str(int(power)).translate(SUPERSCRIPTS).replace('-', '⁻')}" if exponential else number


def table(frame: pl.DataFrame, shares: Collection[str] = ()) -> Table:
    """Return the frame as a table: one row per row, one column per column, in the same order.

    ``shares`` are columns of fractions, printed in percent. A column named after a quantity, or ``<quantity>_<word>``,
    is printed in its unit; a column ``quantity`` names the quantity in whose unit the row's other numbers are printed.

    Raises
    ------
    UnknownName
        If the frame has no column of that name.
    """
    for name in shares:
        if name not in frame.columns:
            raise UnknownName(unknown_name_message("column", name, frame.columns))
    return Table(frame, shares)


def _quantity(name: str) -> tuple[Quantity | None, str]:
    """Return the quantity of a column, and its statistic: ``mfu_low`` is the low end of ``mfu``."""
    stem, _, word = name.rpartition("_")
    if name not in vocabulary() and stem in vocabulary():
        return vocabulary()[stem], f", {word}"
    return vocabulary().get(name), ""


def _label(name: str) -> str:
    row, word = _quantity(name)
    return f"{row.label}{word}" if row else name.replace("_", " ").capitalize()


def _side(number: bool, more: str = "") -> str:
    """Return the style of a cell: numbers stand to the right and words to the left, whatever a front end does."""
    return f' style="text-align:{"right" if number else "left"}{more}"'


def _style(text: str, number: bool) -> str:
    return _side(number, ";white-space:nowrap" if number or len(text) <= 32 else "")


def _linked(text: str) -> str:
    safe = escape(text)
    return f'<a href="{safe}">{safe}</a>' if text.startswith("https://") else safe
