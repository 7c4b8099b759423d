"""Static data of the planner page: controls, menus, labels, formulas and sources of values."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from typing import Any, Final

import polars as pl

from factorykit.charts.performance import PARTS as PARTS_OF_A_STEP
from factorykit.core import units
from factorykit.core.constants import SECONDS_PER_DAY
from factorykit.core.errors import ScenarioError
from factorykit.core.vocabulary import Quantity, quantity
from factorykit.data import tables
from factorykit.engine.assumptions import value_source
from factorykit.engine.providers.accelerators import BROUGHT, FEW_BITS, TABLE_OF, chips
from factorykit.engine.providers.defaults import defaults
from factorykit.engine.step import ALTERNATIVE, CALIBRATED, DEFAULT, FORMULA, NEUTRAL, SPECIFICATION, Step
from factorykit.formulas import catalogue, topic
from factorykit.formulas.expressions import as_text
from factorykit.model.economics.rent import PRICE
from factorykit.model.performance.layouts import CANDIDATES, PARTS
from factorykit.model.planning import uncertainty
from factorykit.model.planning.candidates import COUNT_STEPS
from factorykit.model.planning.constraints import LIKELY_UNITS, sites
from factorykit.model.planning.constraints import LIMITS as LIMIT_NAMES
from factorykit.model.planning.published_runs import conditions, published_runs
from factorykit.model.planning.summary import MULTI_SITE
from factorykit.model.reliability.reliability import published_rates
from factorykit.model.scenario import hf_config
from factorykit.model.scenario.architectures import architecture
from factorykit.site.pages.markdown import dashed
from factorykit.site.planner.model import ALWAYS, DIGITS, architectures, chain, every_step, shape, unplanned

RUN: Final[Mapping[str, Any]] = {"model": "llama3_405b", "accelerator": "h100_sxm", "precision": "bf16"} | {
    "tokens": 15.6e12,
    "sequence_length": 8192.0,
    "way": "rent",
    "tiers": "one",
}
PRESETS: Final[Mapping[int, Mapping[str, Any]]] = {
    1: {**RUN, "accelerators": 16384.0},
    2: {**RUN, "chips": "h200_sxm,b200", "deadline_s": 60.0 * SECONDS_PER_DAY},
}
"""Initial state by version number: the run with the most published values, with its accelerator count or a deadline.

An address holds the differences from the preset of its version. A changed preset needs a new version; old versions are
kept, so that stored addresses remain valid.
"""
MISSING: Final = tuple(
    name for name in BROUGHT if name not in ("evidence_families", "gemm_ceiling_16bit", "peak_16bit_flop_per_s")
)
"""Chip specifications that are requested as inputs if missing from the tables; all chips have a peak in 16 bits."""
NEAR: Final = ("level_one_write_s", "level_one_share", "level_one_restart_s")
"""Inputs of a local checkpoint tier."""
RENTED: Final = ("offer", "offers", "rental_usd_per_accelerator_h")
OWNED: Final = (
    *("server_usd", "utilization", "electricity_usd_per_kwh", "hardware_life_years", "discount_rate"),
    "network_topology",
)
GROUPS: Final = (
    (
        "The question",
        ("model", "tokens", "deadline_s", "budget_usd", "facility_power_w", "accelerator", "chips", "accelerators"),
    ),
    ("More choices", ("objective", "counts", "precision", "sequence_length", "global_batch_size", "calibration")),
    ("The chip, with values of your own", MISSING),
    ("The layout", PARTS),
    (
        "What breaks",
        (
            *("failures", "accelerator_mtbf_s", "restart_s", "tiers", *NEAR, "checkpoint_interval_s"),
            *("storage_write_bytes_per_s", "spare_nodes"),
        ),
    ),
    ("The site", ("site", "sites", "pue", "carbon_kg_per_kwh", "accelerator_power_w")),
    ("The network and further sites", ("network_topology", *MULTI_SITE)),
    ("The money", ("way", *RENTED, *OWNED[:-1])),
)
"""Controls by group, in the order of the page."""
PUBLISHED: Final = ("tokens", "sequence_length", "accelerators", "precision")
"""Values of the preset that are published for its run."""
LIMITS: Final = {"deadline_s": None, "budget_usd": None, "facility_power_w": (1e6, 1e9)}
"""Limits of a plan, with the range of the slider if the vocabulary has none."""
OBJECTIVES: Final = {
    "run_cost_usd": "least cost",
    "wall_days": "least time",
    "accelerators": "fewest accelerators",
    "training_energy_kwh": "least energy",
    "training_carbon_kg": "least carbon",
    "goodput": "highest goodput",
}
BEST: Final = ("accelerators", "global_batch_size", "checkpoint_interval_s", "spare_nodes", *PARTS)
"""Inputs that are optimized by default."""
DOUBLING: Final = ("sequence_length", "global_batch_size", *(p for p in PARTS if not quantity(p).is_text))
READOUTS: Final = (
    *("step_s", "predicted_mfu", "memory_peak_bytes", "failures_per_day", "goodput", "wall_days"),
    *("training_energy_kwh", "run_cost_usd"),
)
COSTS: Final = {
    "rent": (),
    "own": (
        *("it_capital_usd_per_year", "facility_capital_usd_per_year", "annual_electricity_cost_usd"),
        *("maintenance_usd_per_year", "staff_usd_per_year"),
    ),
}
SPELLED: Final = {
    "s": (
        *("s", "sec", "second", "seconds", "ms", "us", "ns", "min", "minute", "minutes", "h", "hour", "hours"),
        *("d", "day", "days", "week", "weeks", "mo", "month", "months", "year", "years", "yr"),
    ),
    "FLOP/s": ("TFLOP/s", "PFLOP/s", "FLOP/s"),
    "J/FLOP": ("pJ/FLOP", "J/FLOP"),
    "byte": ("GB", "TB", "GiB", "B"),
    "bit": ("bit",),
    "m": ("km", "m"),
    "1/s": ("1/s",),
    "byte/s": tuple(f"{p}{u}" for u in ("B/s", "b/s", "bit/s", "bps") for p in ("", "k", "M", "G", "T")),
    "W": ("W", "kW", "MW"),
    "USD": ("USD", "kUSD", "MUSD"),
    "USD/h": ("USD/h", "USD/hour", "USD", "ct/h"),
    "USD/kWh": ("USD/kWh", "USD/MWh", "ct/kWh"),
    "kg/kWh": ("kg/kWh", "g/kWh", "t/MWh", "kg/MWh"),
    "a": ("a", "yr", "year", "years", "mo", "month", "months"),
    "1": ("%", "tokens", "sequences", "accelerators", "GPUs", "chips", "nodes", "servers"),
    "1/a": ("%", "%/yr", "1/yr"),
}
"""Accepted units of a field by the unit of its quantity."""


ALSO: Final = (
    *("training_carbon_kg", "model_flop_per_s_per_accelerator", "data_parallel", "recompute_share"),
    *("checkpoint_interval_s", "spare_nodes", "capital_usd"),
)
DIFFERENT: Final = (*uncertainty.distributions({}), uncertainty.STEP, PRICE)
"""Additional results in the answer (``ALSO``), and inputs that vary between futures (``DIFFERENT``)."""


def page_data() -> dict[str, Any]:
    """Return the data of the JavaScript modules of the page as plain values."""
    steps = every_step().values()
    shown = dict.fromkeys([*(step.quantity for step in steps), *(n for step in steps for n in step.arguments)])
    named = dict.fromkeys([*(name for _, names in GROUPS for name in names), *MISSING])
    shaped = {name: quantity(name) for name in shape()}
    unfolded = between()
    menus = {"model": _models(), "accelerator": chip_menu(), "site": _sites(), "failures": _failures()}
    return {
        "version": max(PRESETS),
        "presets": PRESETS,
        "preset": PRESETS[max(PRESETS)],
        "optional": [*LIMITS, "accelerators", "chips"],
        "limits": [*LIMITS],
        "objectives": [*OBJECTIVES],
        "objectiveNames": OBJECTIVES,
        "runs": _runs(),
        "asRun": _as_run(),
        "constants": {step.quantity: quantity(step.quantity).bounds for step in steps if step.origin == CALIBRATED},
        "memories": [
            [key, chip["accelerator_memory_bytes"]] for key, chip in chips().items() if chip["accelerator_memory_bytes"]
        ],
        "groups": [{"title": title, "controls": list(names)} for title, names in GROUPS],
        "controls": {name: control(name) for name in named if name not in MENUS},
        "words": {part: [*CANDIDATES[part].values] for part in PARTS if quantity(part).is_text}
        | {"network_topology": list(quantity("network_topology").choices)},
        "ways": {"own": list(OWNED), "rent": list(RENTED), "either": [*OWNED, *RENTED]},
        "tiers": {"one": [], "two": list(NEAR), "best": list(NEAR)},
        "shape": {name: {"bounds": row.bounds, "always": name in ALWAYS} for name, row in shaped.items()},
        "best": list(BEST),
        "parts": list(PARTS),
        "also": list(ALSO),
        "ofChip": [step.quantity for step in steps if step.quantity in MISSING or step.arguments == ("accelerator",)],
        "published": {name: ["Llama Team 2024", "entities/sources/llama3_paper.html"] for name in PUBLISHED},
        "cells": list(MISSING),
        "release": version("factorykit"),
        "menus": menus,
        "unplanned": unplanned(),
        "offers": _offers(),
        "readouts": list(READOUTS),
        "stepParts": {label: list(names) for label, names in PARTS_OF_A_STEP.items()},
        "costs": {way: list(names) for way, names in COSTS.items()},
        "quantities": {
            name: words(quantity(name), with_meaning=name in named)
            for name in dict.fromkeys([*shown, *shaped, *LIMITS])
            if name not in unfolded
        },
        "steps": {name: _step(step) for name, step in every_step().items() if name in named},
        "twoTiers": {name: _step(step) for name, step in _only_of_two_tiers().items()},
    }


@cache
def between() -> dict[str, Step]:
    """Return the steps shown only in the expanded derivation of another value, by quantity."""
    seen = {name for names in (*PARTS_OF_A_STEP.values(), *COSTS.values()) for name in names}
    seen |= {*READOUTS, *ALSO, *DIFFERENT, *shape(), *(name for _, names in GROUPS for name in names), *MISSING}
    steps = {**every_step(), **_only_of_two_tiers()}
    return {name: step for name, step in steps.items() if step.origin in (FORMULA, ALTERNATIVE) and name not in seen}


def formulas() -> dict[str, Any]:
    """Return the formula and inputs of each step for one checkpoint tier, and of the steps that differ with two tiers.

    The result includes the labels of quantities used only in derivations, those of configuration files, and the pages
    of the publishers of values without a formula.
    """
    tiers = {"one": every_step(), "two": _only_of_two_tiers()}
    computed = {name: {output: _formula(step) for output, step in steps.items()} for name, steps in tiers.items()}
    labels = {name: words(quantity(name)) for name in between()}
    steps = {name: _step(step) for name, step in every_step().items()}
    return computed | {"quantities": labels, "config": _config(), "steps": steps, "publishers": _publishers()}


def _publishers() -> dict[str, str]:
    """Return the page of the publisher by the address, on this site, of a source or of a row that cites one."""
    urls = dict(
        tables.table("sources").filter(pl.col("url").is_not_null()).select("source", "url").collect().iter_rows()
    )
    sources = {f"entities/sources/{row.source}.html": row.source for row in defaults().values()}
    sources |= {
        f"entities/sources/{source}.html": source for source in ("llama3_paper", *(row[3] for row in _failures()))
    }
    sources |= {f"entities/accelerators/{key}.html": str(chip["source"]) for key, chip in chips().items()}
    for name, key in (
        ("rental_offers", "accelerator"),
        ("architectures", "architecture"),
        *((table, "accelerator") for table in TABLE_OF.values()),
    ):
        rows = tables.table(name).filter(pl.col(key).is_not_null()).select(key, "source").collect().iter_rows()
        sources = {f"tables/{name}.html?q={row}": source for row, source in rows} | sources
    return {address: urls[source] for address, source in sources.items() if source in urls}


@cache
def _only_of_two_tiers() -> dict[str, Step]:
    """Return the steps with two checkpoint tiers that differ from those with one, by quantity."""
    one_tier = every_step()
    return {
        step.quantity: step
        for step in chain("two").steps
        if (_step(step), _formula(step)) != (_step(one_tier[step.quantity]), _formula(one_tier[step.quantity]))
    }


COUNTS: Final = tuple(step * 2.0**power for power in range(1, 18) for step in COUNT_STEPS)
"""Positions of the slider for the number of accelerators, chosen for their many divisors."""
MENUS: Final = (
    *("model", "failures", "tiers", "site", "sites", "way", "offer", "offers"),
    *("accelerator", "chips", "counts", "precision", "objective", "calibration"),
)
"""Controls that are not a single numeric quantity."""


def control(name: str, range_: tuple[float, float] | None = None) -> dict[str, Any]:
    """Return bounds, slider and units of a quantity; the range of the slider is that of the vocabulary or given."""
    row = quantity(name)
    control: dict[str, Any] = {"bounds": row.bounds, "best": name in BEST}
    if row.is_text:
        return control
    ends = range_ or LIMITS.get(name) or (row.slider_min, row.slider_max)
    low, high = (1.0 if end is None else end for end in ends)
    high = min(max(high, low * 2.0), row.upper)
    if name == "accelerators":
        control["values"] = [count for count in COUNTS if low <= count <= high]
    return control | {
        "min": low,
        "max": high,
        "scale": "doubling" if name in DOUBLING else "log" if range_ or name in LIMITS else row.slider_scale,
        "whole": row.unit == "1" and high > 10,
        "binary": name in units.POWERS_OF_TWO,
        "usual": [end for end in row.usual_range if row.usual and math.isfinite(end)],
        "units": _units(row),
        "spread": not row.is_text and name not in (*LIMITS, *PUBLISHED, *PARTS, *BEST),
        "likely": next((unit for limit, (unit, _) in LIKELY_UNITS.items() if name == LIMIT_NAMES[limit]), ""),
    }


def _runs() -> list[list[Any]]:
    """Return published runs: key, name, model, accelerator, count, tokens, days, active parameters."""
    need = ("accelerator", "accelerators", "tokens", "parameters")
    rows = tables.table("runs").filter(pl.all_horizontal(pl.col(need).is_not_null())).collect()
    models = tables.table("models").select("model", "architecture").collect()
    shapes = dict(models.iter_rows())
    runs = []
    for row in rows.iter_rows(named=True):
        days = row["wall_days"] or (row["accelerator_hours"] or 0.0) / 24.0 / row["accelerators"]
        keys = (shapes.get(row["model_key"]), row["model_key"])
        key, chip = next((key for key in keys if key in architectures()), None), row["accelerator"]
        active = row["active_parameters"] or row["parameters"]
        kind = "mixture" if active < row["parameters"] else "dense"
        model = key or f"{row['parameters'] / 1e9:.4g}B {kind}"
        if days and chip in chips():
            run = [row["run"], row["model"], model, chip, row["accelerators"], row["tokens"], days, active]
            runs.append([float(f"{value:.6g}") if isinstance(value, float) else value for value in run])
    return runs


def _as_run() -> dict[str, dict[str, Any]]:
    """Return the settings that reproduce the published run of a model, by model."""
    named = {"chips": "accelerator", "counts": "accelerators"}
    models = published_runs().drop_nulls("architecture")["architecture"].unique().sort()
    return {name: {named.get(key, key): value for key, value in conditions(name).items()} for name in models}


def _config() -> dict[str, Any]:
    """Return the supported syntax of configuration files: field names and defaults by model type."""
    return {
        "names": {role: fields for role, fields in hf_config.FIELDS.items() if role != "ignored"},
        "inner": hf_config.LANGUAGE_MODELS,
        "parts": hf_config.PARTS,
        "activations": hf_config.FIELDS["activation"],
        "withGate": hf_config.GATED_ACTIVATIONS,
        "plain": hf_config.OTHER_ACTIVATIONS,
        "spacing": hf_config.FIELDS["expert_spacing"],
        "uncounted": hf_config.UNSUPPORTED_TYPES,
        "unimportant": hf_config.FIELDS["ignored"],
        "softmax": sorted(hf_config.ATTENTION_KINDS),
        "defaults": {kind: dict(fields) for kind, fields in hf_config.defaults_of_types().items()},
    }


@cache
def _units(row: Quantity) -> dict[str, float]:
    """Return the conversion factors from the accepted units of a quantity to its base unit.

    >>> _units(quantity("wan_bytes_per_s"))["Gbit/s"]
    125000000.0
    """
    factors = {}
    for unit in SPELLED.get(row.unit, ()):
        try:
            factors[unit] = units.parse(row, f"1 {unit}")
        except ScenarioError:
            continue
    return factors | ({"m": 60.0} if row.unit == "s" else {})


def words(row: Quantity, *, with_meaning: bool = False) -> list[Any]:
    """Return label and unit of a quantity, and where they are needed its display unit and scale, and its meaning."""
    all_words = [row.label, "year" if row.is_year else row.unit, row.display_unit, row.display_scale, row.meaning]
    return all_words[: 5 if with_meaning else 4 if row.display_unit else 2]


def _step(step: Step) -> list[Any]:
    """Return the provenance of a step: origin, address and source."""
    if step.origin in (FORMULA, ALTERNATIVE):
        name = step.quantity
        where = f"report/methods/{dashed(topic(catalogue()[name]))}.html#{dashed(name)}" if name in catalogue() else ""
        return [step.origin, where, ""]
    if step.origin == SPECIFICATION or step.arguments == ("accelerator",):
        source = value_source(step, {}) if step.origin == DEFAULT else ""
        table = "rental_offers" if step.quantity in RENTED else TABLE_OF.get(step.quantity)
        href = f"tables/{table}.html?q={{accelerator}}" if table else "entities/accelerators/{accelerator}.html"
        return ["chip", href, source.removeprefix("of the chip: ")]
    row = defaults().get(step.quantity)
    source = row.source if row and step.origin == DEFAULT else ""
    href = f"entities/sources/{source}.html" if source else ""
    if step.origin == CALIBRATED:
        href = f"tables/performance_constants.html?q={step.quantity}"
    source = value_source(step, {}) if step.origin in (DEFAULT, CALIBRATED, NEUTRAL) else ""
    return [step.origin, href, source]


def _formula(step: Step) -> list[Any]:
    """Return the formula of a step as text, empty if it has none, and its inputs."""
    has_formula = step.origin in (FORMULA, ALTERNATIVE) or (
        step.arguments and step.origin != SPECIFICATION and step.arguments != ("accelerator",)
    )
    return [as_text(step.term) if has_formula else "", list(step.arguments)]


def _models() -> list[list[Any]]:
    """Return key, name and address of every model supported by the planner."""
    return sorted(([key, architecture(key).label] for key in architectures()), key=lambda row: natural(row[1]))


def natural(text: str) -> list[Any]:
    """Return the key of a text by which numbers in it are in order."""
    return [int(part) if part.isdigit() else part.lower() for part in re.split(r"(\d+)", text)]


def chip_menu() -> list[list[Any]]:
    """Return key, name and precisions of every chip whose peak and memory are stated, the newest first."""
    known = [c for c in chips().values() if c["peak_16bit_flop_per_s"] and c["accelerator_memory_bytes"]]
    return [
        [chip["accelerator"], chip["name"], ["bf16", *(bits for bits, column in FEW_BITS.items() if chip[column])]]
        for chip in sorted(known, key=lambda chip: (chip["launch"] or "", chip["name"]), reverse=True)
    ]


def _sites() -> list[list[Any]]:
    """Return code, name, carbon intensity and electricity price of every country that has both."""
    names = dict(tables.table("country_grids").select("country", "name").collect().iter_rows())
    rows = sites().sort("site").iter_rows(named=True)
    listed = [
        [row["site"], names[row["site"]], row["carbon_kg_per_kwh"], row["electricity_usd_per_kwh"]] for row in rows
    ]
    return sorted(listed, key=lambda row: row[1])


def _failures() -> list[list[Any]]:
    """Return key, name, accelerator MTBF and source of published failure rates."""
    per_node = defaults()["accelerators_per_node"].value
    counted = pl.col("category").is_null() | (pl.col("source") == "delta_paper")
    ours = ~pl.col("source").str.starts_with("seed_") & ~pl.col("source").str.starts_with("tpu")
    whole = ~pl.col("cause").str.contains("planned|manual|^interruptions$|restarts")
    rows = published_rates().filter(counted, ours, whole)
    return [
        [
            row["statement"],
            f"{row['subject']}: {row['cause']}",
            float(f"{per_node * SECONDS_PER_DAY * 1000.0 / row['per_1000_node_days']:.{DIGITS}g}"),
            row["source"],
        ]
        for row in rows.iter_rows(named=True)
    ]


def _offers() -> dict[str, list[list[Any]]]:
    """Return the on-demand offers of every chip: key, provider, price, day and minimum count, the cheapest first."""
    names = {key: chip["name"] for key, chip in chips().items()}
    rows = tables.table("rental_offers").filter(kind="on demand").sort("rental_usd_per_accelerator_h").collect()
    offers: dict[str, list[list[Any]]] = {}
    for row in rows.iter_rows(named=True):
        if row["accelerator"] in names:
            offer = [row["rental_offer"], row["provider"], row["rental_usd_per_accelerator_h"], row["as_of"]]
            offers.setdefault(row["accelerator"], []).append(offer)
    return offers
