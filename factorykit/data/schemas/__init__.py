"""Schemas of the tables: columns with unit, bounds and text, and the rules between them.

One class is one table: ``StorageSystems`` is the table ``storage_systems``. Its docstring is the table's text: a title,
then the meaning of a row. A new table is a class in the module of its subject, and a file ``data/sources/<table>.csv``
with the same columns; nothing else names it.

Only `factorykit.data.build` and tests import this package, since dataframely is needed to build tables and not to
read them.
"""

from __future__ import annotations

import inspect
import re
from typing import Any, Final

import dataframely as dy

from factorykit.data.schemas import (
    audit,
    economics,
    equipment,
    failures,
    operations,
    performance,
    serving,
    sources,
    training,
)
from factorykit.data.schemas.fields import Derived, Entity, Sourced, Stated, Table

SUBJECTS: Final = (sources, equipment, training, performance, serving, failures, economics, operations, audit)
"""Modules that define tables, in the order in which the tables are listed."""
VERSION: Final = "0.2.0"
"""Version of the data package: raised with every release that changes a value or a column."""
RELEASED: Final = "2026-11-21"
"""Day of that version."""


def schemas() -> dict[str, type[dy.Schema]]:
    """Return all tables by name, subject by subject."""
    return {
        re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower(): this
        for subject in SUBJECTS
        for name, this in vars(subject).items()
        if inspect.isclass(this) and issubclass(this, Table) and this.__module__ == subject.__name__
    }


def is_derived(schema: type[dy.Schema]) -> bool:
    """Return whether a table is put together from others, and has no file of its own."""
    return issubclass(schema, Derived)


def subjects() -> dict[str, str]:
    """Return the description of each subject by its name, in the order of the tables."""
    return {
        subject.__name__.rpartition(".")[2]: (inspect.getdoc(subject) or "").partition("\n")[0] for subject in SUBJECTS
    }


def columns(schema: type[dy.Schema]) -> dict[str, Any]:
    """Return the columns of a table in stored order: its own first, then those of the source."""
    every = schema.columns()
    last = [name for base in (Sourced, Stated, Entity) if issubclass(schema, base) for name in base.columns()]
    trailing = [name for name in dict.fromkeys(last) if name != "statement" or issubclass(schema, Entity)]
    leading = [name for name in every if name not in trailing]
    leading.sort(key=lambda name: (name != "statement", not (every[name].metadata or {}).get("entity")))
    return {name: every[name] for name in [*leading, *trailing]}
