"""Kinds of columns, and the base classes of all tables."""

from __future__ import annotations

import re
from typing import Any, Final

import dataframely as dy

from factorykit.core.vocabulary import quantity

KEY: Final = r"^[a-z0-9][a-z0-9_]*$"
STATEMENT: Final = r"^[a-z0-9_]+@[a-z0-9_]+(\.[0-9]+)?$"
DAY: Final = r"^[0-9]{4}(-[0-9]{2}(-[0-9]{2})?)?(/[0-9]{4}(-[0-9]{2}(-[0-9]{2})?)?)?$"

ADDRESS: Final = r"^https?://\S+$"


def text(description: str, *, required: bool = False, one_of: tuple[str, ...] = (), **metadata: Any) -> dy.String:
    """Return a column of words; ``one_of`` lists the only ones allowed."""
    pattern = f"^({'|'.join(re.escape(word) for word in one_of)})$" if one_of else None
    return dy.String(nullable=not required, min_length=1, regex=pattern, description=description, metadata=metadata)


def key(description: str, *, unique: bool = False, pattern: str = KEY, **metadata: Any) -> dy.String:
    """Return a column with the subject of a row; ``unique`` if it identifies the row."""
    return dy.String(primary_key=unique, nullable=False, regex=pattern, description=description, metadata=metadata)


def reference(
    column: str, description: str, *, required: bool = False, pattern: str | None = KEY, **metadata: Any
) -> dy.String:
    """Return a column whose words are keys of another table, given as ``table.column``."""
    metadata = {"references": column, **metadata}
    return dy.String(nullable=not required, min_length=1, regex=pattern, description=description, metadata=metadata)


def sources(description: str) -> dy.String:
    """Return a column of several keys of sources, separated by semicolons."""
    description = f"{description}, keys separated by '; '"
    return reference("sources.source", description, pattern=None, separator="; ")


def day(description: str, *, required: bool = False, **metadata: Any) -> dy.String:
    """Return a column of days, or of months, years and spans of them, as exact as the source."""
    return dy.String(nullable=not required, regex=DAY, description=description, metadata=metadata or None)


def address() -> dy.String:
    """Return the column of the page on which a source found a statement."""
    return dy.String(nullable=True, regex=ADDRESS, description="page on which the source found it")


def number(
    unit: str, description: str, *, positive: bool = True, required: bool = False, **metadata: Any
) -> dy.Float64:
    """Return a column of numbers that no quantity of the vocabulary stands for."""
    metadata = {"unit": unit, **metadata}
    least = 0.0 if positive else None
    return dy.Float64(nullable=not required, min=least, description=description, metadata=metadata)


def share(description: str) -> dy.Float64:
    """Return a column of fractions between 0 and 1."""
    return dy.Float64(nullable=True, min=0.0, max=1.0, description=description, metadata={"unit": "1"})


def measured(name: str, description: str = "") -> dy.Float64:
    """Return a column of a quantity of the vocabulary, with that quantity's unit and bounds."""
    this = quantity(name)
    bounds: dict[str, Any] = {}
    if this.lower > float("-inf"):
        bounds["min" if this.bounds[0] == "[" else "min_exclusive"] = this.lower
    if this.upper < float("inf"):
        bounds["max" if this.bounds[-1] == "]" else "max_exclusive"] = this.upper
    meaning = f"{this.label}: {this.meaning}"
    return dy.Float64(
        nullable=True,
        description=f"{meaning}; {description}" if description else meaning,
        metadata={"unit": this.unit, "quantity": name},
        **bounds,
    )


class Table(dy.Schema):
    """Base of all tables."""


class Derived(Table):
    """Mark of the tables that are put together from others and have no file of their own."""


class Sourced(Table):
    """Base of the tables of statements, each with source, locator and date."""

    source = reference("sources.source", "source of the statement", required=True)
    locator = text("where in the source: line, section, table or page", required=True)
    as_of = day("time to which it applies, as exact as the source: a year, month, day, or from/to")
    note = text("other information in the source, and known errors")


class Stated(Sourced):
    """Base of the tables in which several sources describe one entity: a row is one statement."""

    statement = key("name of the row: subject @ source", unique=True, pattern=STATEMENT)
    preferred = text("why this statement is picked among those about the same entity; empty for the others")


class Entity(Derived, Sourced):
    """Base of the tables with one row per entity: its best values, field by field, picked from the statements about it.

    The table `statements` holds the source of each field and the other statements. Source, locator and note are those
    of the statement that gives the name; `as_of` is the newest date of a field of the row.
    """

    statement = text("the leading statement, from which the name is taken", required=True)
    preferred = text("why that statement leads; the reason for each field is in the table `statements`", required=True)
    statement_count = dy.Float64(nullable=False, min=1, description="number of statements", metadata={"unit": "1"})
