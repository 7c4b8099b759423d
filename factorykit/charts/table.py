"""A frame as a table for reading: labels from the vocabulary, numbers with their units."""

from __future__ import annotations

from html import escape
from typing import Any

import polars as pl

from factorykit.quantities import rounded, vocabulary


class Table:
    """A frame shown with the vocabulary's labels and units; as text it keeps the numbers in full."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame

    def __repr__(self) -> str:
        with pl.Config(tbl_rows=-1, tbl_cols=-1, fmt_str_lengths=60, tbl_width_chars=9999) as config:
            config.set_tbl_formatting("MARKDOWN")
            return str(self.frame)

    def _repr_html_(self) -> str:
        numbers = {name: dtype.is_numeric() for name, dtype in self.frame.schema.items()}
        head = "".join(f"<th{_right(numbers[name])}>{escape(_label(name))}</th>" for name in self.frame.columns)
        rows = [
            [(_cell(name, value), numbers[name]) for name, value in row.items()]
            for row in self.frame.iter_rows(named=True)
        ]
        cells = ("".join(f"<td{_style(*cell)}>{_linked(cell[0])}</td>" for cell in row) for row in rows)
        body = "".join(f"<tr>{row}</tr>" for row in cells)
        return f'<table class="table fk-frame"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def table(frame: pl.DataFrame) -> Table:
    """Return the frame as a table: one row per row, one column per column, in the same order."""
    return Table(frame)


def _label(name: str) -> str:
    return vocabulary()[name].label if name in vocabulary() else name.replace("_", " ").capitalize()


def _right(number: bool) -> str:
    return ' style="text-align:right"' if number else ""


def _style(text: str, number: bool) -> str:
    """Return the style of a cell: numbers stand to the right, what is short stays on one line."""
    return _right(number) if number or len(text) > 32 else ' style="white-space:nowrap"'


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return vocabulary()[name].text(float(value)) if name in vocabulary() else rounded(float(value))
    return str(value)


def _linked(text: str) -> str:
    safe = escape(text)
    return f'<a href="{safe}">{safe}</a>' if text.startswith("https://") else safe
