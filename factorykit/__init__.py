"""Compute, time, power, failures and cost of AI training clusters, with a source or a formula for every number.

``import factorykit as fk`` loads only names; polars, DuckDB, charts and widgets are imported on first use.

>>> import factorykit as fk
>>> fk.evaluate({"active_parameters": 405e9, "tokens": 15.6e12}, "training_flop")
{'training_flop': 3.7908e+25}

The public names by task:

data
    changes, connect, connectors, identify, quantities, quantity, sources, sql, table, tables
compute
    accelerator, architecture, assumed, compare, decompose, evaluate, explain, formulas, out_of_range, preset,
    presets, read_hf_config, Scenario
explore
    bands, charts, exceedance, explore, from_samples, LogNormal, LogUniform, Normal, plot, Quantiles, run_cases,
    sample, sensitivity, study, sweep, Triangular, Uniform, widgets
plan
    build_or_rent, calibrate, Calibration, checkpoint_patterns, Cluster, FailureCause, launch, life, Maintenance, Plan,
    plan, Policy, post_train, PostTrainingPlan, price_performance, read_trace, rent, schedule, search, serve,
    ServingPlan, shared_fleet, simulate, simulate_serving, Tier, timeline, Trace, trend, workload
check
    audit, check_recipe, published_practices, validate, validate_energy, validate_plans, validate_post_training,
    validate_runs, validate_serving
operate
    fleet, lifetimes, Log, read_log, reliability, replicas
errors
    errors, FactorykitError, FactorykitWarning
"""

import sys
from importlib.util import find_spec

from factorykit.core import __version__ as __version__
from factorykit.core.extras import lazy_names, need

__getattr__, __all__ = lazy_names(__name__, __file__)


def __dir__() -> list[str]:
    """Return the public names, without those of the extra ``notebook`` where it is not installed."""
    drawn = () if find_spec("anywidget") else ("charts", "explore", "plot", "widgets")
    return [name for name in __all__ if name not in drawn]


if sys.modules.get("IPython"):
    need("factorykit.widgets.completion").register()
