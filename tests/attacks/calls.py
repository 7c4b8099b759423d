"""Every public call with arguments that work, and what hostile arguments are made of."""

from __future__ import annotations

import atexit
import contextlib
import gzip
import inspect
import io
import random
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import polars as pl
from strange import STRANGE, damaged

import factorykit as fk
from factorykit.cli import main
from factorykit.model.performance.nearness import DOUBLINGS
from factorykit.quantities import vocabulary

ELASTIC = {"training_s": 1e6, "cluster_mtbf_s": 1e5, "replicas": 4.0, "reconfigure_s": 600.0, "correlated_share": 0.1}
ELASTIC |= {"checkpoint_interval_s": 1800.0, "cold_restart_s": 900.0}
RUN = {
    "active_parameters": 70e9,
    "parameters": 70e9,
    "tokens": 2e12,
    "accelerators": 1024.0,
    "accelerators_per_node": 8.0,
    "peak_flop_per_s": 989e12,
    "mfu": 0.4,
    "accelerator_mtbf_s": 3.2e8,
    "restart_s": 300.0,
    "downtime_s": 60.0,
    "checkpoint_write_s": 20.0,
    "rental_usd_per_accelerator_h": 2.5,
}
LAYOUT = {"sequence_length": 4096.0, "global_batch_size": 64.0, "micro_batch_size": 1.0, "tensor_parallel": 2.0}
LAWS = {"mfu": fk.Uniform(0.3, 0.5), "accelerator_mtbf_s": fk.LogNormal(2e8, 6e8)}
USING = {"checkpoint_interval_s": "checkpoint_interval_young_s"}
OFFER = {
    "provider": "one",
    "accelerator": "h100_sxm",
    "rental_usd_per_accelerator_h": 2.0,
    "offered_accelerators": 1024,
}
CLUSTER = {"accelerator": "h100_sxm", "accelerators": 8.0, "precision": "bf16"}


def _frame() -> pl.DataFrame:
    return pl.DataFrame({name: [value, value] for name, value in RUN.items()})


def _durations() -> list[float]:
    return [3.0, 5.0, 8.0, 13.0, 21.0, 34.0]


def _spec() -> dict[str, Any]:
    return {"mark": "bar", "data": {"values": [{"a": 1.0}]}, "encoding": {"x": {"field": "a"}}}


def _jobs() -> pl.DataFrame:
    return fk.workload("seren", 20)


def _imitated() -> dict[str, float]:
    hours = {"training_s": 1e5, "checkpoint_interval_s": 1800.0, "step_s": 300.0, "accelerator_power_w": 600.0}
    return hours | {
        "accelerators": 32.0,
        "accelerators_per_node": 8.0,
        "accelerator_mtbf_s": 8e5,
        "checkpoint_write_s": 30.0,
        "restart_s": 600.0,
        "downtime_s": 60.0,
    }


@cache
def _log() -> fk.Log:
    with tempfile.TemporaryDirectory() as folder:
        fk.fleet.imitate(folder, _imitated())
        return fk.read_log(folder)


@cache
def _study() -> Any:
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    fk.sweep(RUN, {"mfu": [0.3, 0.4]}, "wall_days", out=folder.name)
    return fk.study(folder.name)


@cache
def _logs() -> str:
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    fk.fleet.imitate(folder.name, _imitated())
    return folder.name


@cache
def _archive() -> Any:
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    fk.fleet.imitate_failures(Path(folder.name, "failures"), 16, 90.0, 1e6)
    return fk.fleet.archive(folder.name, 16)


@cache
def _packed() -> str:
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    file = Path(folder.name, "events.csv.gz")
    file.write_bytes(gzip.compress(b"when,node,kind\n2026-03-01,n1,failure\n2026-03-02,n2,failure\n"))
    return str(file)


@cache
def _slider() -> Any:
    return fk.widgets.slider("mfu", 0.4)


def _altair() -> Any:
    import altair as alt

    return alt.Chart(_frame()).mark_bar().encode(x="mfu:Q")


@cache
def _plan() -> fk.Plan:
    return fk.plan("llama3_8b", tokens="1T", chips="h100_sxm", counts=[64], deadline="30 d", draws=16)


@cache
def _explorer() -> Any:
    return fk.explore(RUN, over="mfu", sliders=["accelerators"])


def _pinned() -> Any:
    return _explorer() if _explorer().pins else _explorer().pin("one")


def _layouts() -> pl.DataFrame:
    same = {name: [2.0, 4.0] for name in DOUBLINGS}
    same |= {"peak_flop_per_s": [1e15] * 2, "recompute_share": [0.0, 1.0], "experts": [1.0, 8.0]}
    return pl.DataFrame(same)


@cache
def _calibration() -> fk.Calibration:
    return fk.calibrate(_found())


@cache
def calls() -> Mapping[str, tuple[Callable[..., Any], Mapping[str, Callable[[], Any]]]]:
    """Return every public function and constructor, each with makers of arguments that work."""
    run: dict[str, Any] = {"inputs": lambda: dict(RUN), "using": lambda: dict(USING), "assume": lambda: False}
    law = {"confidence": lambda: 0.9}
    price = {"rental_usd_per_accelerator_h": lambda: 2.5}
    levels = {
        "levels": lambda: (fk.checkpoint_patterns.Level(0.8, 1.0, 5.0), fk.checkpoint_patterns.Level(0.2, 30.0, 60.0)),
        "cluster_mtbf_s": lambda: 3600.0,
    }
    failing: dict[str, Any] = {
        "causes": lambda: (fk.Cause("gpu", repair_s=fk.lifetimes.Lognormal(3600.0, 1.0)),),
        "tiers": lambda: (fk.Tier("disk", 5.0),),
        "gap_s": lambda: None,
        "spare_nodes": lambda: 2,
        "restart_failure_probability": lambda: 0.1,
        "maintenance": lambda: fk.Maintenance(1e6, 1e3),
        "protected_restart": lambda: False,
    }
    curve = fk.lifetimes.survival_curve(_durations())
    fits = fk.lifetimes.fit(_durations())
    made: dict[str, tuple[Callable[..., Any], Mapping[str, Callable[[], Any]]]] = {
        "Calibration": (
            fk.Calibration,
            {each.name: (lambda name=each.name: getattr(_calibration(), name)) for each in fields(fk.Calibration)},
        ),
        "Calibration.load": (fk.Calibration.load, {"path": lambda: "/nowhere/calibration.json"}),
        "Live": (
            lambda **given: fk.charts.Live(**given)._repr_mimebundle_(),
            {"title": lambda: "t", "base": lambda: dict(RUN), "x": lambda: "accelerators"}
            | {"outputs": lambda: ("wall_days",), "sliders": lambda: ("mfu",), "curves": lambda: (fk.charts.Case("a"),)}
            | {"presets": lambda: {"one": dict(RUN)}, "band": lambda: {"mfu": 0.1}, "domain": lambda: (64.0, 4096.0)}
            | {"points": tuple, "readouts": lambda: ("goodput",), "y_domain": dict, "log": lambda: ("accelerators",)}
            | {"doubling": tuple, "only_where": dict, "menus": dict, "key": lambda: "chart", "source": lambda: "s"}
            | {"description": lambda: "d", "height": lambda: 300},
        ),
        "Case": (fk.charts.Case, {"label": lambda: "one", "using": lambda: dict(USING), "given": dict}),
        "Cause": (
            fk.Cause,
            {"name": lambda: "gpu", "weight": lambda: 1.0, "repair_s": lambda: None, "destroys": lambda: 0},
        ),
        "LogNormal": (fk.LogNormal, {"low": lambda: 1.0, "high": lambda: 2.0, "mass": lambda: 0.9}),
        "LogUniform": (fk.LogUniform, {"low": lambda: 1.0, "high": lambda: 2.0}),
        "Maintenance": (fk.Maintenance, {"every_s": lambda: 1e6, "duration_s": lambda: 1e3}),
        "Normal": (fk.Normal, {"mean": lambda: 1.0, "sd": lambda: 2.0, "low": lambda: 0.0, "high": lambda: 9.0}),
        "Plant": (fk.Plant, {each.name: partial(getattr, fk.Plant(), each.name) for each in fields(fk.Plant)}),
        "Plant.replace": (
            lambda **given: fk.Plant().replace(**given).nodes,
            {"accelerators": lambda: 64.0, "pod_spread_penalty": lambda: 0.1},
        ),
        "Plant.of": (fk.Plant.of, dict(run)),
        "Policy": (fk.Policy, {"backfill": lambda: True, "preempt": lambda: True, "packed": lambda: True}),
        "Quantiles": (fk.Quantiles, {"shares": lambda: (0.0, 0.5, 1.0), "values": lambda: (1.0, 2.0, 4.0)}),
        "Scenario": (fk.Scenario, {name: (lambda value=value: value) for name, value in RUN.items()}),
        "Scenario.replace": (fk.preset("llama_3_1_405b").replace, {"mfu": lambda: 0.5, "tokens": lambda: "15T"}),
        "Slider": (fk.widgets.slider, {"name": lambda: "mfu", "value": lambda: 0.4}),
        "Tier": (
            fk.Tier,
            {"name": lambda: "disk", "write_s": lambda: 5.0, "restore_s": lambda: 9.0, "every": lambda: 1}
            | {"lag_s": lambda: 0.0, "corrupt_probability": lambda: 0.0},
        ),
        "Triangular": (fk.Triangular, {"low": lambda: 1.0, "mode": lambda: 2.0, "high": lambda: 3.0}),
        "Uniform": (fk.Uniform, {"low": lambda: 1.0, "high": lambda: 2.0}),
        "accelerator": (fk.accelerator, {"name": lambda: "mine", "like": lambda: "h100_sxm", "mfu": lambda: 0.4}),
        "architecture": (fk.architecture, {"name": lambda: "llama3_70b"}),
        "assumed": (fk.assumed, {"inputs": lambda: dict(RUN), "outputs": lambda: "rental_cost_usd", "using": dict}),
        "attribute": (
            fk.attribute,
            {"start": lambda: dict(RUN), "end": lambda: RUN | {"mfu": 0.5}, "output": lambda: "wall_days"}
            | {"order": lambda: ["mfu"], "using": dict, "assume": lambda: False},
        ),
        "audit": (fk.audit, {"document": lambda: None, "verdict": lambda: "agrees"}),
        "bands": (fk.bands, {"frame": _frame, "outputs": lambda: "mfu", "shares": lambda: (0.1, 0.9), "by": tuple}),
        "calibrate": (fk.calibrate, {"rows": lambda: _found(), "left_out": lambda: "all_in"}),
        "charts.svg": (fk.charts.svg, {"spec": _spec, "width": lambda: 300}),
        "charts.mimebundle": (fk.charts.mimebundle, {"spec": _spec}),
        "charts.table": (fk.charts.table, {"frame": _frame}),
        "check_recipe": (
            fk.check_recipe,
            {"inputs": lambda: dict(RUN), "practices": tuple, "using": dict, "assume": lambda: False},
        ),
        "best_pattern": (fk.checkpoint_patterns.best_pattern, {**levels, "downtime_s": lambda: 1.0}),
        "first_order": (fk.checkpoint_patterns.first_order, dict(levels)),
        "pattern_s": (
            fk.checkpoint_patterns.pattern_s,
            {**levels, "counts": lambda: (2,), "checkpoint_interval_s": lambda: 100.0, "downtime_s": lambda: 0.0},
        ),
        "Level": (
            fk.checkpoint_patterns.Level,
            {"share": lambda: 0.5, "write_s": lambda: 2.0, "restart_s": lambda: 3.0},
        ),
        "compare": (
            fk.compare,
            {"scenarios": lambda: {"a": dict(RUN), "b": RUN | {"mfu": 0.5}}, "outputs": lambda: "wall_days"}
            | {"using": dict, "assume": lambda: False},
        ),
        "connect": (fk.connect, {"name": lambda: "epoch_notable_models", "path_or_url": lambda: "/nowhere/file.csv"}),
        "arguments": (fk.formulas.arguments, {"formula": lambda: fk.formulas.cost.rental_cost_usd}),
        "changes": (
            fk.datasets.changes,
            {"since": lambda: "/nowhere", "sources": lambda: None, "apply": lambda: False, "day": lambda: None},
        ),
        "refresh": (
            lambda origin, **given: fk.datasets.refresh(origin, **given),
            {"origin": lambda: "/nowhere", "sources": lambda: "/nowhere", "apply": lambda: False, "day": lambda: None},
        ),
        "accelerator_in": (fk.datasets.accelerator_in, {"text": lambda: "NVIDIA H100 SXM"}),
        "identify": (fk.identify, {"kind": lambda: "accelerator", "name": lambda: "H100"}),
        "sources": (fk.sources, {"table_name": lambda: "accelerators", "key": lambda: None}),
        "sql": (fk.sql, {"query": lambda: "select $a + 1 as b", "a": lambda: 3.0, "timeout_s": lambda: 5.0}),
        "table": (fk.table, {"name": lambda: "clusters", "as_of": lambda: "2025-06"}),
        "decide": (
            fk.decide,
            {"inputs": lambda: dict(RUN), "conditions": tuple, "assume": lambda: True, "using": dict},
        ),
        "empirical": (fk.empirical, {"values": lambda: [1.0, 2.0, 4.0]}),
        "evaluate": (fk.evaluate, {**run, "outputs": lambda: ["wall_days", "rental_cost_usd"]}),
        "evaluate frame": (fk.evaluate, {"inputs": _frame, "outputs": lambda: "wall_days", "assume": lambda: False}),
        "evaluate lazy": (
            lambda **given: _collected(fk.evaluate(**given)),
            {"inputs": lambda: _frame().lazy(), "outputs": lambda: ["wall_days"]},
        ),
        "exceedance": (fk.exceedance, {"frame": _frame, "output": lambda: "mfu", "points": lambda: 5}),
        "explain": (fk.explain, {**run, "output": lambda: "rental_cost_usd"}),
        "explore": (
            lambda what, output, **given: fk.explore(what, output, **given),
            {"what": lambda: dict(RUN), "output": lambda: "wall_days", "over": lambda: "mfu", "using": dict}
            | {"sliders": lambda: ["accelerators"], "against": lambda: ("deepseek_v3",)},
        ),
        "advise": (fk.fleet.advise, {"log": _log, "checkpoint_write_s": lambda: 20.0, **law}),
        "fleet.beside": (fk.fleet.beside, {"log": _log, "nodes": lambda: 3, **law}),
        "energy": (fk.fleet.energy, {"log": _log}),
        "goodput": (fk.fleet.goodput, {"log": _log, "accelerators": lambda: 64, **price}),
        "imitate": (
            fk.fleet.imitate,
            {"folder": lambda: "imitated", "inputs": _imitated, "seed": lambda: 0, "spare_nodes": lambda: 1}
            | {"slow": lambda: 1.1, "assume": lambda: False},
        ),
        "fleet.scenario": (fk.fleet.scenario, {"log": _log, "checkpoint_write_s": lambda: 20.0}),
        "step_times": (fk.fleet.step_times, {"log": _log, "layout": lambda: {"tp": 8}}),
        "stragglers": (fk.fleet.stragglers, {"log": _log, **price, **law}),
        "failures": (fk.fleet.failures, {"log": _log}),
        "mtbf": (fk.fleet.mtbf, {"log": _log, "by": lambda: "node", "nodes": lambda: 3, **law}),
        "stepfun": (fk.fault_traces.stepfun, {"path": lambda: "/nowhere/trace.csv"}),
        "lanl": (fk.fault_traces.lanl, {"path": lambda: Path("/nowhere/trace.csv")}),
        "titan": (fk.fault_traces.titan, {"path": lambda: "/nowhere/trace.csv"}),
        "Exponential": (fk.lifetimes.Exponential, {"mean_s": lambda: 5.0}),
        "Lognormal": (fk.lifetimes.Lognormal, {"median_s": lambda: 5.0, "sigma": lambda: 0.4}),
        "Weibull": (fk.lifetimes.Weibull, {"scale_s": lambda: 5.0, "shape": lambda: 0.8}),
        "beside": (fk.lifetimes.beside, {"curve": lambda: curve, "fits": lambda: fits}),
        "fit": (fk.lifetimes.fit, {"durations_s": _durations, "observed": lambda: [True] * 6, **law}),
        "law": (fk.lifetimes.law, {"fits": lambda: fits, "name": lambda: "weibull"}),
        "misfit_limit": (fk.lifetimes.misfit_limit, {"events": lambda: 30, **law}),
        "survival_curve": (
            fk.lifetimes.survival_curve,
            {"durations_s": _durations, "observed": lambda: None, "points": lambda: 4, **law},
        ),
        "outside": (
            fk.outside,
            {"inputs": _frame, "outputs": lambda: "wall_days", "using": dict, "assume": lambda: False},
        ),
        "Pattern": (
            fk.checkpoint_patterns.Pattern,
            {"checkpoint_interval_s": lambda: 60.0, "counts": lambda: (1,), "goodput": lambda: 0.9},
        ),
        "Plan": (
            fk.Plan,
            {name: partial(_part_of_plan, name) for name in ("question", "plans", "draws", "left_out")},
        ),
        "plan": (
            fk.plan,
            {"model": lambda: "llama3_8b", "tokens": lambda: "1T", "chips": lambda: ["h100_sxm"]}
            | {"counts": lambda: [64], "deadline": lambda: "30 d", "budget": lambda: "1M", "power": lambda: None}
            | {"draws": lambda: 16, "seed": lambda: 0, "sites": lambda: None, "objective": lambda: None}
            | {"calibration": _calibration},
        ),
        "preset": (fk.preset, {"name": lambda: "llama_3_1_405b"}),
        "price_performance": (fk.price_performance, {"of_year": lambda: 2024}),
        "quantity": (fk.quantity, {"name": lambda: "mfu"}),
        "read_log": (
            fk.read_log,
            {"path": lambda: "/nowhere/events.csv", "kind": lambda: "events", "columns": lambda: {"at": "when"}}
            | {"zone": lambda: "UTC"},
        ),
        "read_hf_config": (fk.read_hf_config, {"path": lambda: "/nowhere/config.json"}),
        "Interval": (fk.reliability.Interval, {"low": lambda: 1.0, "high": lambda: 2.0}),
        "copies_left_probability": (
            fk.reliability.copies_left_probability,
            {"nodes": lambda: 16, "copies": lambda: 2, "nodes_lost": lambda: 2},
        ),
        "count_interval": (fk.reliability.count_interval, {"failures": lambda: 12, **law}),
        "failures_range": (fk.reliability.failures_range, {"expected_failures": lambda: 12.0, **law}),
        "mtbf_interval_s": (
            fk.reliability.mtbf_interval_s,
            {"failures": lambda: 12, "observed_s": lambda: 1e6, **law},
        ),
        "nodes_up_probability": (
            fk.reliability.nodes_up_probability,
            {"nodes_needed": lambda: 60, "nodes": lambda: 64, "availability": lambda: 0.99},
        ),
        "published_rates": (fk.reliability.published_rates, dict(law)),
        "rate_interval": (fk.reliability.rate_interval, {"failures": lambda: 3, "exposure": lambda: 1e6, **law}),
        "renewal_failures": (
            fk.reliability.renewal_failures,
            {"span_s": lambda: 1e5, "accelerators": lambda: 10.0, "lifetime_scale_s": lambda: 1e5}
            | {"lifetime_shape": lambda: 0.8, "steps": lambda: 50},
        ),
        "series_mtbf_s": (fk.reliability.series_mtbf_s, {"parts": lambda: {"gpu": (8, 1e6), "nic": (8, 2e6)}}),
        "spares_binomial": (
            fk.reliability.spares_binomial,
            {"nodes": lambda: 64, "node_mtbf_s": lambda: 1e7, "node_repair_s": lambda: 1e4, **law},
        ),
        "spares_poisson": (fk.reliability.spares_poisson, {"nodes_in_repair": lambda: 3.0, **law}),
        "elastic_runs": (
            fk.replicas.elastic_runs,
            {"inputs": lambda: dict(ELASTIC), "runs": lambda: 3, "seed": lambda: 1, "using": dict},
        ),
        "redundant_lives": (
            fk.replicas.redundant_lives,
            {"inputs": lambda: {"nodes": 8.0, "node_mtbf_s": 1e7}, "runs": lambda: 3, "seed": lambda: 1, "using": dict},
        ),
        "spares_table": (
            fk.reliability.spares_table,
            {
                "inputs": lambda: RUN | {"node_repair_s": 3600.0, "node_failures_per_node_day": 0.001},
                "most": lambda: 3,
                "confidence": lambda: 0.99,
            },
        ),
        "weibull_mean_s": (
            fk.reliability.weibull_mean_s,
            {"lifetime_scale_s": lambda: 1e6, "lifetime_shape": lambda: 0.8},
        ),
        "weibull_scale_s": (
            fk.reliability.weibull_scale_s,
            {"lifetime_mean_s": lambda: 1e6, "lifetime_shape": lambda: 0.8},
        ),
        "rent": (
            fk.rent,
            {"inputs": lambda: RUN | {"accelerator": "h100_sxm"}, "offers": lambda: None, "whole": lambda: True}
            | {"using": dict, "assume": lambda: False},
        ),
        "sample": (
            fk.sample,
            {**run, "distributions": lambda: dict(LAWS), "outputs": lambda: "wall_days", "n": lambda: 8}
            | {"seed": lambda: 1, "method": lambda: "sobol", "grid": lambda: {"accelerators": [8.0, 16.0]}}
            | {"engine": lambda: "local", "out": lambda: None},
        ),
        "schedule": (fk.schedule, {"jobs": _jobs, "plant": fk.Plant, "policy": fk.Policy, "seed": lambda: 0}),
        "search": (
            fk.search,
            {"model": lambda: "llama3_8b", "cluster": lambda: dict(CLUSTER), "global_batch_size": lambda: 64.0}
            | {"objective": lambda: "step_s", "choices": lambda: {"tensor_parallel": [1, 2]}, "using": dict}
            | {"keep_excluded": lambda: False, "assume": lambda: True, "engine": lambda: "local", "out": lambda: None}
            | {"calibration": _calibration},
        ),
        "sensitivity": (
            fk.sensitivity,
            {**run, "distributions": lambda: dict(LAWS), "outputs": lambda: "wall_days", "n": lambda: 16}
            | {"swing": lambda: (0.1, 0.9), "seed": lambda: 0},
        ),
        "simulate": (fk.simulate, {**run, "runs": lambda: 3, "seed": lambda: 1, **failing}),
        "sweep": (
            fk.sweep,
            {**run, "grid": lambda: {"accelerators": [8.0, 16.0]}, "outputs": lambda: "wall_days"}
            | {"engine": lambda: "local", "out": lambda: None},
        ),
        "timeline": (fk.timeline, {**run, "seed": lambda: 1, **failing}),
        "trend": (
            fk.trend,
            {"rows": lambda: pl.DataFrame({"year": [2020, 2021, 2022, 2023], "mfu": [0.3, 0.35, 0.4, 0.5]})}
            | {"quantity": lambda: "mfu", "by": lambda: "year", "mass": lambda: 0.9},
        ),
        "validate": (
            fk.validate,
            {"rows": lambda: _runs().head(1), "leave_family_out": lambda: False, "calibration": _calibration},
        ),
        "practices": (fk.practices, {"group": lambda: "goodput"}),
        "validate_energy": (
            fk.validate_energy,
            {"rows": lambda: _stating("energy_mwh")},
        ),
        "validate_runs": (
            fk.validate_runs,
            {"rows": lambda: _stating("gpu_hours")},
        ),
        "Calibration.design": (fk.Calibration.design, {"found": _found, "k": lambda: 1}),
        "Calibration.near": (lambda layouts: _calibration().near(layouts), {"layouts": _layouts}),
        "Calibration.of": (
            lambda **given: _calibration().of(**given),
            {"scenario": lambda: {**fk.architecture("llama3_8b"), **CLUSTER, **LAYOUT}, "assume": lambda: False},
        ),
        "Calibration.save": (lambda path: _calibration().save(path), {"path": lambda: "calibration.json"}),
        "Explorer.at": (
            lambda **given: _explorer().at(**given),
            {"case": lambda: None, "mfu": lambda: 0.5, "accelerators": lambda: "2 k"},
        ),
        "Explorer.attribute": (
            lambda **given: _pinned().attribute(**given),
            {"label": lambda: "one", "output": lambda: "wall_days"},
        ),
        "Explorer.pin": (lambda label: _explorer().pin(label).unpin(label), {"label": lambda: "mine"}),
        "Explorer.preset": (lambda **given: _explorer().preset(**given), {"label": lambda: "As given"}),
        "Explorer.set": (lambda **given: _explorer().set(**given), {"mfu": lambda: 0.4, "accelerators": lambda: 512.0}),
        "Explorer.unpin": (lambda label: _explorer().pin("mine").unpin(label), {"label": lambda: "mine"}),
        "LiveChart": (fk.widgets.LiveChart, {"chart": _spec, "controls": dict}),
        "LiveChart.set": (lambda **given: _explorer().chart.set(**given), {"mfu": lambda: 0.4}),
        "LiveChart.set_frame": (
            lambda **given: _explorer().chart.set_frame(**given),
            {"frame": _frame, "table": lambda: "table"},
        ),
        "Log": (
            lambda **given: fk.Log(**given).anonymised(),
            {name: (lambda name=name: getattr(_log(), name)) for name in ("events", "jobs", "steps", "power", "notes")},
        ),
        "Plan.compare": (lambda **given: _plan().compare(**given), {"other": _plan}),
        "Plan.explain": (lambda **given: _plan().explain(**given), {"output": lambda: "wall_days"}),
        "Plan.scenario_of": (lambda **given: _plan().scenario_of(**given), {"row": lambda: _plan().best}),
        "Scenario.sourced": (
            fk.Scenario.sourced,
            {"label": lambda: "one", "values": lambda: dict(RUN), "sources": lambda: {"mfu": "me"}},
        ),
        "Study.sql": (
            lambda query: _study().sql(query),
            {"query": lambda: "select mfu, wall_days from study where mfu > 0.3"},
        ),
        "archive": (fk.fleet.archive, {"folder": lambda: "/nowhere", "nodes": lambda: 16}),
        "batch": (
            fk.batch,
            {"verb": lambda: "simulate", "cases": lambda: [{"inputs": dict(RUN), "runs": 2}], "out": lambda: "batch"}
            | {"engine": lambda: "local"},
        ),
        "charts.finish": (
            lambda **given: fk.charts.finish(_altair(), **given),
            {"title": lambda: "t", "source": lambda: "s", "description": lambda: "d", "subtitle": lambda: ""}
            | {"height": lambda: 300},
        ),
        "datasets.build": (fk.datasets.build, {"out": lambda: "tables", "sources": lambda: "/nowhere"}),
        "imitate_failures": (
            fk.fleet.imitate_failures,
            {"out": lambda: "failures", "nodes": lambda: 4, "days": lambda: 3, "node_mtbf_s": lambda: 1e5}
            | {"lifetime_shape": lambda: 1.0, "seed": lambda: 0, "engine": lambda: "local"},
        ),
        "imitate_jobs": (
            fk.fleet.imitate_jobs,
            {"out": lambda: "jobs", "workload": lambda: "seren", "nodes": lambda: 4, "days": lambda: 3}
            | {"node_mtbf_s": lambda: 1e6, "accelerators_per_node": lambda: 8, "load": lambda: 0.8, "seed": lambda: 0}
            | {"engine": lambda: "local"},
        ),
        "imitate_power": (
            fk.fleet.imitate_power,
            {"out": lambda: "power", "nodes": lambda: 2, "days": lambda: 1, "accelerator_power_w": lambda: 600.0}
            | {"accelerators_per_node": lambda: 8, "every_s": lambda: 3600.0, "busy_share": lambda: 0.9}
            | {"seed": lambda: 0, "engine": lambda: "local"},
        ),
        "Archive.mtbf": (
            lambda **given: _archive().mtbf(**given),
            {"by": lambda: "cause", "confidence": lambda: 0.9},
        ),
        "Archive.rolling_mtbf": (lambda days: _archive().rolling_mtbf(days), {"days": lambda: 7}),
        "Archive.survival": (lambda points: _archive().survival(points), {"points": lambda: 4}),
        "Archive.sql": (
            lambda **given: _archive().sql(**given),
            {"query": lambda: "select * from failures where repair_s > $least", "least": lambda: 60.0},
        ),
        "plan of lists": (
            fk.plan,
            {"model": lambda: "70B", "tokens": lambda: 1e12, "chips": lambda: ["h100_sxm", "h200_sxm"]}
            | {"counts": lambda: [256, 512], "acquire": lambda: ["rent"], "sites": lambda: ["usa", "swe"]}
            | {"tiers": lambda: ["one"], "precision": lambda: ["bf16", "fp8"], "pue": lambda: fk.Uniform(1.1, 1.3)}
            | {"offers": lambda: [dict(OFFER)], "draws": lambda: 8},
        ),
        "read_log packed": (
            fk.read_log,
            {"path": lambda: _packed(), "kind": lambda: "events", "columns": lambda: {"at": "when"}}
            | {"zone": lambda: "Europe/Berlin"},
        ),
        "law.ppf": (fk.lifetimes.Weibull(5.0, 0.8).ppf, {"q": lambda: 0.5}),
        "law.survival": (fk.lifetimes.Lognormal(5.0, 0.8).survival, {"t": lambda: 0.5}),
        "Exponential.ppf": (fk.lifetimes.Exponential(5.0).ppf, {"q": lambda: 0.5}),
        "Exponential.survival": (fk.lifetimes.Exponential(5.0).survival, {"t": lambda: 0.5}),
        "Lognormal.ppf": (fk.lifetimes.Lognormal(5.0, 0.8).ppf, {"q": lambda: 0.5}),
        "Weibull.survival": (fk.lifetimes.Weibull(5.0, 0.8).survival, {"t": lambda: 0.5}),
        "LogUniform.ppf": (fk.LogUniform(1.0, 2.0).ppf, {"q": lambda: 0.5}),
        "ppf": (fk.LogNormal(1.0, 2.0).ppf, {"q": lambda: 0.5}),
        "Quantiles.ppf": (fk.Quantiles((0.0, 1.0), (1.0, 2.0)).ppf, {"q": lambda: 0.5}),
        "Uniform.ppf": (fk.Uniform(1.0, 2.0).ppf, {"q": lambda: 0.5}),
        "Normal.ppf": (fk.Normal(1.0, 2.0).ppf, {"q": lambda: 0.5}),
        "Triangular.ppf": (fk.Triangular(1.0, 2.0, 3.0).ppf, {"q": lambda: 0.5}),
        "read_log of a folder": (
            fk.read_log,
            {"path": lambda: _logs(), "kind": lambda: None, "columns": lambda: None, "zone": lambda: "UTC"},
        ),
        "slider moved": (lambda value: setattr(_slider(), "value", value), {"value": lambda: 0.5}),
        "study": (fk.study, {"folder": lambda: _study().folder}),
        "Log read": (
            lambda **given: _read(fk.Log(**given)),
            {name: (lambda name=name: getattr(_log(), name)) for name in ("events", "jobs", "steps", "power", "notes")},
        ),
        "Scenario read": (
            lambda name: [fk.preset("llama_3_1_405b").get(name), name in fk.preset("llama_3_1_405b")],
            {"name": lambda: "mfu"},
        ),
        "Quantity.check": (fk.quantity("mfu").check, {"value": lambda: 0.4}),
        "workload": (
            fk.workload,
            {"name": lambda: "seren", "jobs": lambda: 5, "load": lambda: 0.8, "accelerators": lambda: 64}
            | {"seed": lambda: 0, "estimate_factor": lambda: 2.0},
        ),
    }
    commands = {f"command {line}": (_command, {"words": line.split}) for line in COMMANDS}
    return made | commands | _charts() | _formulas()


COMMANDS = (
    "evaluate --preset llama_3_1_405b goodput mfu=0.3 -o wall_days --json",
    "evaluate mfu=0.4 tokens=1T active_parameters=8B accelerators=64 accelerator=h100_sxm --assume -o training_s",
    "sweep --preset llama_3_1_405b -g mfu=0.3:0.5:3 -o wall_days",
    "simulate --preset llama_3_1_405b --assume --runs 3 --seed 1",
    "explain wall_days --preset llama_3_1_405b",
    "assumed --preset llama_3_1_405b -o wall_days",
    "search llama3_8b h100_sxm 64 --rows 3 --assume",
    "plan llama3_8b --tokens 1T --chips h100_sxm --counts 64 --deadline 30d",
    "data show clusters --json",
    "data sql select(1)",
    "data sources accelerators",
    "data list --json",
    "audit --verdict agrees",
    "report /nowhere --out report --kind events --zone UTC",
    "validate /nowhere.csv --by family",
    "calibrate /nowhere.csv --design 5 --out mine.json",
    "search llama3_8b h100_sxm 64 --rows 3 --calibration mine.json",
    "site check /nowhere",
)


def _command(words: Any) -> None:
    """Run words as the command line does: a status, and no word of Python."""
    if not isinstance(words, list):
        words = [words]
    words = [each for each in words if isinstance(each, str)]  # a shell gives nothing else
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
        try:
            status = main(words)
        except SystemExit as end:
            status = end.code
    if status not in (0, 1, 2) or "Traceback" in said.getvalue():
        raise RuntimeError(f"{words} ended with {status}: {said.getvalue()}")


def _part_of_plan(name: str) -> Any:
    return getattr(_plan(), name)


def _read(found: Any) -> list[Any]:
    """Return all that is to be read of an answer."""
    names = [name for name, kind in inspect.getmembers(type(found)) if isinstance(kind, (property, cached_property))]
    return [repr(found), *(getattr(found, name) for name in names)]


CHART = {
    "pl.DataFrame": _frame,
    "str": lambda: "mfu",
    "int": lambda: 3,
    "bool": lambda: False,
    "float | None": lambda: None,
    "Mapping[str, Mapping[str, Any]] | None": lambda: {"one": dict(RUN), "other": RUN | {"mfu": 0.5}},
    "Mapping[str, Mapping[str, Any]]": lambda: {"one": dict(RUN)},
    "Mapping[str, float | None]": lambda: {"mfu": None},
}
"""Makers of arguments by what the signature of a chart says."""


def _charts() -> dict[str, tuple[Callable[..., Any], Mapping[str, Callable[[], Any]]]]:
    """Return the charts of every topic, with frames that have a scenario's columns whatever they ask for."""
    topics = [each for each in map(fk.charts.__dict__.get, fk.charts.__all__) if inspect.ismodule(each)]
    return {
        f"{topic.__name__}.{name}": (
            function,
            {key: CHART[str(each.annotation)] for key, each in inspect.signature(function).parameters.items()},
        )
        for topic in topics
        for name, function in inspect.getmembers(topic, inspect.isfunction)
        if function.__module__ == topic.__name__ and not name.startswith("_")
    }


def _formulas() -> dict[str, tuple[Callable[..., Any], Mapping[str, Callable[[], Any]]]]:
    """Return the questions for every quantity of the newest topics, asked of the usual values of what it needs."""
    return {
        f"evaluate {name}": (
            partial(fk.evaluate, outputs=name),
            {"inputs": lambda formula=formula: {each: _usual(each) for each in fk.formulas.arguments(formula)}},
        )
        for name, formula in fk.formulas.catalogue().items()
        if formula.__module__.rpartition(".")[2] in ("sites", "loader", "diagnosis")
    }


def _usual(name: str) -> float:
    row = fk.quantity(name)
    if row.slider_min is None or row.slider_max is None:
        return next(value for value in (row.default, 1e6, 0.5) if value is not None and row.holds(value))
    return (row.slider_min + row.slider_max) / 2.0


def _collected(found: Any) -> Any:
    return found.collect() if isinstance(found, pl.LazyFrame) else found


@cache
def _runs() -> pl.DataFrame:
    return fk.table("training_runs").collect()


def _stating(column: str) -> pl.DataFrame:
    return _runs().filter(pl.col(column).is_not_null()).head(2)


@cache
def _found() -> pl.DataFrame:
    return _runs().filter(pl.col("id").str.starts_with("mb-")).head(2)


NAMED = {"Scenario", "Scenario.replace", "accelerator", "plan", "Plant.of", "Plant.replace", "advise", "fleet.scenario"}
NAMED |= {"sql", "Archive.sql", "Explorer.at", "Explorer.set", "LiveChart.set"}
"""Calls that take arguments of any name."""
SLOW = dict.fromkeys(("calibrate", "validate", "validate_runs", "validate_energy", "Live", "decide", "plan"), 0.15)
SLOW |= {"datasets.build": 0.02, "Plan.compare": 0.3, "Explorer.set": 0.5, "batch": 0.3, "read_log of a folder": 0.3}
SLOW |= {"plan of lists": 0.1, "imitate_jobs": 0.3, "imitate_failures": 0.3, "imitate_power": 0.3}
SLOW |= {"Archive.mtbf": 0.3, "Archive.survival": 0.3, "Archive.sql": 0.3}
SLOW |= {"fit": 0.3, "Study.sql": 0.3, "Calibration.design": 0.3}
SLOW |= {f"command {line}": 0.2 for line in COMMANDS}
"""Calls that take a hundred times as long as others, and how often they are made beside those."""


def attack(seed: int, number: int, *, evenly: bool = False) -> tuple[str, Callable[..., Any], dict[str, Any]]:
    """Return a call with one or two arguments damaged; the same seed and number are the same call.

    ``evenly`` makes slow calls as often as others.
    """
    chance = random.Random(f"{seed} {number}")
    known = sorted(calls())
    name = chance.choice(known) if evenly else chance.choices(known, [SLOW.get(name, 1.0) for name in known])[0]
    function, makers = calls()[name]
    arguments = {key: make() for key, make in makers.items()}
    for key in chance.sample(sorted(arguments), k=min(len(arguments), 1 + (chance.random() < 0.2))):
        if chance.random() < 0.05:  # what is right elsewhere
            other = calls()[chance.choice(known)][1]
            arguments[key] = other[chance.choice(list(other))]() if other else None
        else:
            arguments[key] = damaged(arguments[key], chance)
    if name in NAMED and chance.random() < 0.2:
        arguments[chance.choice((*STRANGE, *vocabulary()))] = damaged(0.5, chance)
    return name, function, arguments
