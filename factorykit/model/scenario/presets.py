"""Scenarios of published runs and clusters, read from the ``presets`` table: every value with its source."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from factorykit.core.validation import one_of
from factorykit.data.identifiers import known_key
from factorykit.data.tables import rows, table
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

    groups = table("presets").group_by("preset", "label", "kind", maintain_order=True)
    return groups.agg(pl.col("quantity").alias("quantities")).collect()


def preset(name: PresetName | str) -> Scenario:
    """Return the published run or cluster called ``name`` as a scenario that knows its sources.

    Raises
    ------
    UnknownName
        With the nearest name.

    >>> preset("llama_3_1_405b").accelerators
    16384.0
    """
    known = dict.fromkeys(row["preset"] for row in rows("presets"))
    run = known_key("model", name) if isinstance(name, str) and name not in known else None
    return _read(run if run in known else one_of("preset", name, known))


@cache
def _read(name: str) -> Scenario:
    entries = {row["quantity"]: row for row in rows("presets") if row["preset"] == name}
    sources = {key: ", ".join(filter(None, (row["source"], row["locator"]))) for key, row in entries.items()}
    label = next(row["label"] for row in entries.values())
    return Scenario.sourced(label, {key: row["value"] for key, row in entries.items()}, sources)
