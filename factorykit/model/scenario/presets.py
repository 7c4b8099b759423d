"""Scenarios of published runs and clusters, read from the ``presets`` table: every value with its source."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from factorykit.core.validation import one_of
from factorykit.data.tables import table
from factorykit.model.scenario.scenario import Scenario

if TYPE_CHECKING:
    import polars as pl

    from factorykit.core._names import PresetName


def presets() -> pl.DataFrame:
    """Return the presets, one row each: preset, label, kind (run, cluster or example) and its quantities.

    >>> "llama_3_1_405b" in presets()["preset"]
    True
    """
    import polars as pl

    rows = table("presets").group_by("preset", "label", "kind", maintain_order=True)
    return rows.agg(pl.col("quantity").alias("quantities")).collect()


def preset(name: PresetName | str) -> Scenario:
    """Return the published run or cluster called ``name`` as a scenario that knows its sources.

    Raises
    ------
    UnknownName
        With the nearest name.

    >>> preset("llama_3_1_405b").accelerators
    16384.0
    """
    return _read(one_of("preset", name, _names()))


@cache
def _names() -> tuple[str, ...]:
    return tuple(presets()["preset"])


@cache
def _read(name: str) -> Scenario:
    import polars as pl

    rows = table("presets").filter(pl.col("preset") == name).collect()
    values = dict(rows.select("quantity", "value").iter_rows())
    sources = {
        quantity: f"{source}, {locator}" if locator else source
        for quantity, source, locator in rows.select("quantity", "source", "locator").iter_rows()
    }
    return Scenario.sourced(rows["label"][0], values, sources)
