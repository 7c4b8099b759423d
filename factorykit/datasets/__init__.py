"""Tables of facts: kept by hand as CSV, built into Parquet, read lazily with polars or asked in SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from factorykit.borders import lazily

if TYPE_CHECKING:
    from factorykit.datasets.builder import build
    from factorykit.datasets.catalogue import table, tables
    from factorykit.datasets.identity import accelerator_in, identify
    from factorykit.datasets.provenance import sources
    from factorykit.datasets.public_data import connect, connectors
    from factorykit.datasets.query import sql
    from factorykit.datasets.refresher import changes, refresh

_HOME: Final = {
    "accelerator_in": "identity",
    "build": "builder",
    "changes": "refresher",
    "connect": "public_data",
    "connectors": "public_data",
    "identify": "identity",
    "refresh": "refresher",
    "sources": "provenance",
    "sql": "query",
    "table": "catalogue",
    "tables": "catalogue",
}
__all__ = [
    "accelerator_in",
    "build",
    "changes",
    "connect",
    "connectors",
    "identify",
    "refresh",
    "sources",
    "sql",
    "table",
    "tables",
]
if not TYPE_CHECKING:  # a checker would take any name for known
    __getattr__ = lazily(__name__, _HOME)
