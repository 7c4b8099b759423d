"""Known models: the shape of one as a part of a scenario, read from the ``architectures`` table with its source."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from factorykit.core.vocabulary import vocabulary
from factorykit.data.identifiers import identify
from factorykit.data.tables import table
from factorykit.model.scenario.scenario import Scenario

if TYPE_CHECKING:
    from factorykit.core._names import ArchitectureName


def architecture(name: ArchitectureName | str) -> Scenario:
    """Return the shape of the model called ``name`` as a part of a scenario that knows its sources.

    Parameters
    ----------
    name
        A row of the ``architectures`` table, or a name: ``"llama3_70b"``, ``"Llama 3 70B"``.

    Returns
    -------
    Scenario
        The quantities of the architecture, without prediction layers; parameters and FLOP follow from them.

    Raises
    ------
    UnknownName
        With the nearest name.

    Examples
    --------
    >>> llama = architecture("llama 3 70b")
    >>> llama.layers, llama.sources["layers"]
    (80.0, 'hf_configs, config.json of Llama 3.1 70B')
    >>> from factorykit import evaluate
    >>> evaluate(architecture("deepseek_v3"), "parameters")
    {'parameters': 671026404352.0}
    """
    return _read(identify("architecture", name))


@cache
def _read(key: str) -> Scenario:
    row = table("architectures").filter(architecture=key).collect()
    record = row.row(0, named=True)
    shape = {column: value for column, value in record.items() if column in vocabulary() and value is not None}
    source = f"{record['source']}, {record['locator']}"
    return Scenario.sourced(record["name"], shape, dict.fromkeys(shape, source))
