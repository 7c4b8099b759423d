"""factorykit: what an AI factory really takes.

Compute, power, failures, checkpoints and money, each number with its source. ``import factorykit as fk`` loads names
only; polars, DuckDB, charts and widgets load on use.

>>> import factorykit as fk
>>> fk.evaluate({"active_parameters": 405e9, "tokens": 15.6e12}, "training_flop")
{'training_flop': 3.7908e+25}
"""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any

from factorykit.borders import need
from factorykit.errors import FactorykitError, FactorykitWarning
from factorykit.quantities import quantities, quantity  # now: loaded later, the module would take the name

if TYPE_CHECKING:
    from factorykit import charts, datasets, formulas, widgets
    from factorykit.datasets import connect, connectors, identify, sources, sql, table, tables
    from factorykit.logs.read import read_log
    from factorykit.logs.tidy import Log
    from factorykit.model import fleet
    from factorykit.model.engine.assumed import assumed
    from factorykit.model.engine.evaluate import evaluate
    from factorykit.model.engine.explain import explain
    from factorykit.model.engine.outside import outside
    from factorykit.model.evidence.audit import audit
    from factorykit.model.evidence.measured_energy import validate_energy
    from factorykit.model.evidence.practices import practices
    from factorykit.model.evidence.recipe_check import check_recipe
    from factorykit.model.evidence.validate import validate
    from factorykit.model.evidence.whole_runs import validate_runs
    from factorykit.model.market.decide import decide
    from factorykit.model.market.rent import rent
    from factorykit.model.market.trend import price_performance, trend
    from factorykit.model.operations.schedule import Plant, Policy, schedule
    from factorykit.model.operations.simulate import Cause, Maintenance, Tier, simulate, timeline
    from factorykit.model.operations.workload import workload
    from factorykit.model.performance.calibration import Calibration, calibrate
    from factorykit.model.performance.configurations import read_hf_config
    from factorykit.model.performance.search import search
    from factorykit.model.planning.plan import Plan, plan
    from factorykit.model.reliability import checkpoint_patterns, fault_traces, lifetimes, replicas
    from factorykit.model.reliability import statistics as reliability
    from factorykit.model.scenario.accelerators import accelerator
    from factorykit.model.scenario.compare import attribute, compare
    from factorykit.model.scenario.models import architecture
    from factorykit.model.scenario.presets import preset, presets
    from factorykit.model.scenario.scenario import Scenario
    from factorykit.model.study.batch import batch
    from factorykit.model.study.study import study
    from factorykit.model.uncertainty.distributions import (
        LogNormal,
        LogUniform,
        Normal,
        Quantiles,
        Triangular,
        Uniform,
        empirical,
    )
    from factorykit.model.uncertainty.sample import bands, exceedance, sample, sensitivity
    from factorykit.model.uncertainty.sweep import sweep
    from factorykit.widgets.explorer import explore

__version__ = "0.2.0"

_HOME = {
    "Calibration": "model.performance.calibration",
    "Cause": "model.operations.simulate",
    "Log": "logs.tidy",
    "LogNormal": "model.uncertainty.distributions",
    "LogUniform": "model.uncertainty.distributions",
    "Maintenance": "model.operations.simulate",
    "Normal": "model.uncertainty.distributions",
    "Plan": "model.planning.plan",
    "Plant": "model.operations.schedule",
    "Policy": "model.operations.schedule",
    "Quantiles": "model.uncertainty.distributions",
    "Scenario": "model.scenario.scenario",
    "Tier": "model.operations.simulate",
    "Triangular": "model.uncertainty.distributions",
    "Uniform": "model.uncertainty.distributions",
    "architecture": "model.scenario.models",
    "assumed": "model.engine.assumed",
    "attribute": "model.scenario.compare",
    "accelerator": "model.scenario.accelerators",
    "audit": "model.evidence.audit",
    "batch": "model.study.batch",
    "bands": "model.uncertainty.sample",
    "calibrate": "model.performance.calibration",
    "charts": "",
    "check_recipe": "model.evidence.recipe_check",
    "checkpoint_patterns": "model.reliability.checkpoint_patterns",
    "compare": "model.scenario.compare",
    "connect": "datasets",
    "connectors": "datasets",
    "datasets": "",
    "decide": "model.market.decide",
    "empirical": "model.uncertainty.distributions",
    "evaluate": "model.engine.evaluate",
    "exceedance": "model.uncertainty.sample",
    "explain": "model.engine.explain",
    "explore": "widgets.explorer",
    "fault_traces": "model.reliability.fault_traces",
    "fleet": "model.fleet",
    "formulas": "",
    "identify": "datasets",
    "lifetimes": "model.reliability.lifetimes",
    "outside": "model.engine.outside",
    "plan": "model.planning.plan",
    "practices": "model.evidence.practices",
    "preset": "model.scenario.presets",
    "presets": "model.scenario.presets",
    "price_performance": "model.market.trend",
    "read_hf_config": "model.performance.configurations",
    "read_log": "logs.read",
    "reliability": "model.reliability.statistics",
    "replicas": "model.reliability.replicas",
    "rent": "model.market.rent",
    "sample": "model.uncertainty.sample",
    "schedule": "model.operations.schedule",
    "search": "model.performance.search",
    "sensitivity": "model.uncertainty.sample",
    "simulate": "model.operations.simulate",
    "sources": "datasets",
    "sql": "datasets",
    "study": "model.study.study",
    "sweep": "model.uncertainty.sweep",
    "table": "datasets",
    "tables": "datasets",
    "timeline": "model.operations.simulate",
    "trend": "model.market.trend",
    "validate": "model.evidence.validate",
    "validate_energy": "model.evidence.measured_energy",
    "validate_runs": "model.evidence.whole_runs",
    "widgets": "",
    "workload": "model.operations.workload",
}

__all__ = [
    "Calibration",
    "Cause",
    "FactorykitError",
    "FactorykitWarning",
    "Log",
    "LogNormal",
    "LogUniform",
    "Maintenance",
    "Normal",
    "Plan",
    "Plant",
    "Policy",
    "Quantiles",
    "Scenario",
    "Tier",
    "Triangular",
    "Uniform",
    "accelerator",
    "architecture",
    "assumed",
    "attribute",
    "audit",
    "bands",
    "batch",
    "calibrate",
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
    "explore",
    "fault_traces",
    "fleet",
    "formulas",
    "identify",
    "lifetimes",
    "outside",
    "plan",
    "practices",
    "preset",
    "presets",
    "price_performance",
    "quantities",
    "quantity",
    "read_hf_config",
    "read_log",
    "reliability",
    "rent",
    "replicas",
    "sample",
    "schedule",
    "search",
    "sensitivity",
    "simulate",
    "sources",
    "sql",
    "study",
    "sweep",
    "table",
    "tables",
    "timeline",
    "trend",
    "validate",
    "validate_energy",
    "validate_runs",
    "widgets",
    "workload",
]


if not TYPE_CHECKING:  # a checker would take any name for known

    def __getattr__(name: str) -> Any:
        if name == "build":
            said = "fk.build is the command `factorykit data build`, and fk.datasets.build in Python; it goes with 0.3"
            warnings.warn(said, FactorykitWarning, stacklevel=2)
            return need("factorykit.datasets").build
        if name not in _HOME:
            raise AttributeError(f"module 'factorykit' has no attribute {name!r}")
        home = _HOME[name]
        module = need(f"factorykit.{home or name}")
        value = getattr(module, name, module) if home else module
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


if "IPython" in sys.modules:
    need("factorykit.completion").register()
