"""Tables of facts: kept by hand as CSV, built into Parquet, read lazily with polars or asked in SQL."""

from factorykit.datasets.build import build
from factorykit.datasets.catalogue import table, tables
from factorykit.datasets.identity import accelerator_in, identify
from factorykit.datasets.provenance import sources
from factorykit.datasets.public_data import connect, connectors
from factorykit.datasets.query import sql

__all__ = ["accelerator_in", "build", "connect", "connectors", "identify", "sources", "sql", "table", "tables"]
