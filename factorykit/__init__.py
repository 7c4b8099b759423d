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

from factorykit.quantities import quantities, quantity  # now: loaded later, the module would take the name

if TYPE_CHECKING:
    from factorykit import charts, datasets, formulas, widgets
    from factorykit.datasets import build, connect, connectors, identify, sources, sql, table, tables
    from factorykit.errors import FactorykitError, FactorykitWarning
    from factorykit.model import checkpoint_patterns, fault_traces, lifetimes, reliability
    from factorykit.model.audit import audit
    from factorykit.model.compare import attribute, compare
    from factorykit.model.decide import decide
    from factorykit.model.distributions import (
        LogNormal,
        LogUniform,
        Normal,
        Quantiles,
        Triangular,
        Uniform,
        empirical,
    )
    from factorykit.model.energy import validate_energy
    from factorykit.model.evaluate import evaluate
    from factorykit.model.explain import explain
    from factorykit.model.hf_config import read_hf_config
    from factorykit.model.outside import outside
    from factorykit.model.presets import preset, presets
    from factorykit.model.recipe_check import check_recipe
    from factorykit.model.rent import rent
    from factorykit.model.sample import bands, exceedance, sample, sensitivity
    from factorykit.model.scenario import Scenario
    from factorykit.model.schedule import Plant, Policy, schedule
    from factorykit.model.search import search
    from factorykit.model.simulate import Cause, Maintenance, Tier, simulate, timeline
    from factorykit.model.sweep import sweep
    from factorykit.model.trend import price_performance, trend
    from factorykit.model.validate import validate
    from factorykit.model.workload import workload

__version__ = "0.1.0"

_HOME = {
    "Cause": "model.simulate",
    "FactorykitError": "errors",
    "FactorykitWarning": "errors",
    "LogNormal": "model.distributions",
    "LogUniform": "model.distributions",
    "Maintenance": "model.simulate",
    "Normal": "model.distributions",
    "Plant": "model.schedule",
    "Policy": "model.schedule",
    "Quantiles": "model.distributions",
    "Scenario": "model.scenario",
    "Tier": "model.simulate",
    "Triangular": "model.distributions",
    "Uniform": "model.distributions",
    "attribute": "model.compare",
    "audit": "model.audit",
    "bands": "model.sample",
    "build": "datasets",
    "charts": "",
    "check_recipe": "model.recipe_check",
    "checkpoint_patterns": "model.checkpoint_patterns",
    "compare": "model.compare",
    "connect": "datasets",
    "connectors": "datasets",
    "datasets": "",
    "decide": "model.decide",
    "empirical": "model.distributions",
    "evaluate": "model.evaluate",
    "exceedance": "model.sample",
    "explain": "model.explain",
    "fault_traces": "model.fault_traces",
    "formulas": "",
    "identify": "datasets",
    "lifetimes": "model.lifetimes",
    "outside": "model.outside",
    "preset": "model.presets",
    "presets": "model.presets",
    "price_performance": "model.trend",
    "read_hf_config": "model.hf_config",
    "reliability": "model.reliability",
    "rent": "model.rent",
    "sample": "model.sample",
    "schedule": "model.schedule",
    "search": "model.search",
    "sensitivity": "model.sample",
    "simulate": "model.simulate",
    "sources": "datasets",
    "sql": "datasets",
    "sweep": "model.sweep",
    "table": "datasets",
    "tables": "datasets",
    "timeline": "model.simulate",
    "trend": "model.trend",
    "validate": "model.validate",
    "validate_energy": "model.energy",
    "widgets": "",
    "workload": "model.workload",
}

__all__ = [
    "Cause",
    "FactorykitError",
    "FactorykitWarning",
    "LogNormal",
    "LogUniform",
    "Maintenance",
    "Normal",
    "Plant",
    "Policy",
    "Quantiles",
    "Scenario",
    "Tier",
    "Triangular",
    "Uniform",
    "attribute",
    "audit",
    "bands",
    "build",
    "charts",
    "check_recipe",
    "checkpoint_patterns",
    "compare",
    "connect",
    "connectors",
    "datasets",
    "decide",
    "empirical",
    "evaluate",
    "exceedance",
    "explain",
    "fault_traces",
    "formulas",
    "identify",
    "lifetimes",
    "outside",
    "preset",
    "presets",
    "price_performance",
    "quantities",
    "quantity",
    "read_hf_config",
    "reliability",
    "rent",
    "sample",
    "schedule",
    "search",
    "sensitivity",
    "simulate",
    "sources",
    "sql",
    "sweep",
    "table",
    "tables",
    "timeline",
    "trend",
    "validate",
    "validate_energy",
    "widgets",
    "workload",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'factorykit' has no attribute {name!r}")
    home = _HOME[name]
    module = importlib.import_module(f"factorykit.{home or name}")
    value = getattr(module, name, module) if home else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
