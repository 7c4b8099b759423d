"""factorykit: what an AI factory really takes.

Compute, power, failures, checkpoints and money, each number with its source. ``import factorykit as fk`` loads names
only; polars, DuckDB, charts and widgets load on use.

>>> import factorykit as fk
>>> fk.evaluate({"active_parameters": 405e9, "tokens": 15.6e12}, "training_flop")
{'training_flop': 3.7908e+25}
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from factorykit import charts, datasets, formulas, widgets
    from factorykit.datasets import build, sources, sql, table, tables
    from factorykit.errors import FactorykitError, FactorykitWarning
    from factorykit.model.evaluate import evaluate
    from factorykit.model.explain import explain
    from factorykit.model.presets import preset, presets
    from factorykit.model.scenario import Scenario
    from factorykit.quantities import quantities, quantity

__version__ = "0.1.0"

_HOME = {
    "FactorykitError": "errors",
    "FactorykitWarning": "errors",
    "Scenario": "model.scenario",
    "build": "datasets",
    "charts": "",
    "datasets": "",
    "evaluate": "model.evaluate",
    "explain": "model.explain",
    "formulas": "",
    "preset": "model.presets",
    "presets": "model.presets",
    "quantities": "quantities",
    "quantity": "quantities",
    "sources": "datasets",
    "sql": "datasets",
    "table": "datasets",
    "tables": "datasets",
    "widgets": "",
}

__all__ = [
    "FactorykitError",
    "FactorykitWarning",
    "Scenario",
    "build",
    "charts",
    "datasets",
    "evaluate",
    "explain",
    "formulas",
    "preset",
    "presets",
    "quantities",
    "quantity",
    "sources",
    "sql",
    "table",
    "tables",
    "widgets",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'factorykit' has no attribute {name!r}")
    home = _HOME[name]
    module = importlib.import_module(f"factorykit.{home or name}")
    value = getattr(module, name) if home else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
