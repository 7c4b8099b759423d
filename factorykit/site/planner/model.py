"""Computation graph of :func:`factorykit.plan` as JavaScript, and its lookup tables, for the planner page."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Any, Final

from factorykit.charts.performance import MEMORY
from factorykit.charts.performance import PARTS as PARTS_OF_A_STEP
from factorykit.core.vocabulary import quantity
from factorykit.data.tables import table
from factorykit.engine.emit.javascript import brief, futures_function, needs, rules_list, tables
from factorykit.engine.providers.accelerators import chips
from factorykit.engine.question import Chain, Question
from factorykit.engine.step import SPECIFICATION, Step
from factorykit.model.economics.rent import PRICE
from factorykit.model.performance.layouts import BEST_IS_MOST, PARTS, SHARE
from factorykit.model.performance.layouts import MEMORY as LAYOUT_MEMORY
from factorykit.model.planning import candidates, summary, uncertainty
from factorykit.model.planning.candidates import OPTIMA, OWNED, RESULTS, alternative_models, outputs
from factorykit.model.planning.constraints import MAX_USUAL_DAYS, TIERS, WAYS
from factorykit.model.planning.plan import DRAWS
from factorykit.model.scenario import models
from factorykit.model.scenario.architectures import architecture
from factorykit.model.uncertainty.distributions import LogNormal
from factorykit.site.planner.layout_search import candidates_function, search_function

RUN: Final = ("accelerator", "precision", "accelerators", "tokens", "global_batch_size", "sequence_length")
"""Inputs of every question, in addition to the architecture of the model."""
ALWAYS: Final = (
    *("layers", "hidden_size", "ffn_size", "gated_ffn", "attention_heads", "vocabulary_size", "tied_embeddings"),
)
"""Quantities of a model given by every configuration file."""
PICTURED: Final = (
    *("active_parameters", "compute_optimal_step_tokens", "run_cost_owned_usd", "checkpoint_interval_optimal_s"),
    *("wasted_cost_usd", "spares_usd_per_day", "spare_nodes_enough", "step_spread", *MEMORY),
    *(name for names in PARTS_OF_A_STEP.values() for name in names),
)
"""Results required by the pictures and by the search for a batch size."""
UNPLANNED: Final = "not each of its layers has one block that mixes tokens and one feed-forward block; fk.plan plans it"
"""Reason for the absence of a known model from the page."""
DIGITS: Final = 6
"""Significant digits of a failure rate in the page."""
LARGEST: Final = 1e300
"""Stands for infinity in JSON."""


@cache
def shape() -> tuple[str, ...]:
    """Return the given quantities of a known model."""
    return tuple(name for name, value in architecture(models.FAMILY[-1]).items() if isinstance(value, float))


@cache
def architectures() -> Mapping[str, tuple[float, ...]]:
    """Return the architectures of the supported known models: those fully described by the quantities of the page."""
    names = table("architectures").select("architecture").collect()["architecture"]
    known = {name: architecture(name) for name in names}
    return {name: tuple(float(it[size]) for size in shape()) for name, it in known.items() if {*it} <= {*shape()}}


@cache
def unplanned() -> Mapping[str, tuple[str, str]]:
    """Return the names of the known models that the page does not support, with the reasons."""
    names = table("architectures").select("architecture").collect()["architecture"]
    others = {name: architecture(name) for name in names if name not in architectures()}
    return {name: (it.label, UNPLANNED) for name, it in others.items()}


@cache
def chain(tiers: str = "one") -> Chain:
    """Return the chain from the inputs of a question to all displayed results, for rented and owned machines."""
    given = {*shape(), *RUN, *PARTS}
    wanted = tuple(dict.fromkeys([name for way in WAYS for name in outputs(way)] + [*PICTURED]))
    return _chain(given, wanted, _alternatives(given, tiers))


def _chain(given: Iterable[str], outputs: Iterable[str], using: Mapping[str, str]) -> Chain:
    return Question({}, using, tuple(outputs), assume=True).over(given).resolve()


@cache
def every_step() -> Mapping[str, Step]:
    """Return the steps of all chains by their quantity; where the tiers differ, those of one tier."""
    return {step.quantity: step for tiers in ("two", "one") for step in chain(tiers).steps}


def _alternatives(given: Collection[str], tiers: str = "one") -> dict[str, str]:
    return alternative_models("rent", dict.fromkeys(given), TIERS[tiers])


def _filled() -> Chain:
    """Return the chain to the values that a configuration file may omit: grouped heads, their size, experts."""
    return _chain(ALWAYS, [name for name in shape() if name not in ALWAYS], {})


def _searched() -> Chain:
    given = {*shape(), *RUN, *PARTS, SHARE}
    return _chain(given, ("step_s", *LAYOUT_MEMORY), _alternatives(given))


def _futures(drawn: Iterable[str], tiers: str) -> tuple[Step, ...]:
    """Return the steps that depend on uncertain values, with the layout and its results fixed."""
    settled = {name for way in WAYS for name in _settled(way)}
    given = {*shape(), *RUN, *PARTS, *settled, *drawn, uncertainty.STEP}
    wanted = [name for name in RESULTS if name != uncertainty.STEP] + ["run_cost_owned_usd"]
    return _chain(given, wanted, _alternatives(given, tiers)).steps


def _settled(way: str) -> tuple[str, ...]:
    """Return the fixed values of a plan; see :func:`factorykit.model.planning.uncertainty.futures`."""
    changing = {*RESULTS, *uncertainty.distributions({})}
    return tuple(name for name in (*outputs(way), "step_spread") if name not in changing)


def draws() -> dict[str, Any]:
    """Return the distributions of the uncertain values: median, spread and bounds of lognormal distributions."""
    needed = {name for tiers in TIERS for step in chain(tiers).steps for name in (*step.arguments, step.quantity)}
    ranges = {
        name: {"median": drawn.ppf(0.5), "sigma": drawn.sigma, "lower": row.lower, "upper": min(row.upper, LARGEST)}
        for name, drawn in uncertainty.distributions({}).items()
        if isinstance(drawn, LogNormal) and name in needed
        for row in (quantity(name),)
    }
    return {"count": DRAWS, "sharedSd": uncertainty.SHARED_SD, "ranges": ranges}


@cache
def model_script() -> str:
    """Return JavaScript that defines ``MODEL``, the functions and tables of the planner engine."""
    drawn = tuple(uncertainty.distributions({}))
    moved = (*drawn, uncertainty.STEP, PRICE)
    searched = _searched().steps
    steps = every_step().values()
    lookups = tables(steps)
    names = {*shape(), *RUN, *PARTS, *(step.quantity for step in chain().steps)}
    results = [*RESULTS, "run_cost_owned_usd"]
    fill, search, *tiered = brief(
        [
            _filled().to_javascript("fill"),
            search_function(searched),
            *(chain(tiers).to_javascript(tiers) for tiers in TIERS),
            *(futures_function(_futures(drawn, tiers), moved, results) for tiers in TIERS),
        ]
    )
    listed = [
        f"{tiers}: {{chain: {tiers}, futures: FUTURES[{number}], interval: {json.dumps(_interval(tiers))}}}"
        for number, tiers in enumerate(TIERS)
    ]
    data = {
        "counts": {
            "odd": candidates.ODD_FACTORS,
            "steps": candidates.COUNT_STEPS,
            "bytes": candidates.BYTES_PER_PARAMETER,
            "mfu": candidates.TYPICAL_MFU,
            "minS": candidates.MIN_RUN_S,
            "maxS": candidates.MAX_RUN_S,
            "most": candidates.MAX_COUNT,
        },
        "usualDays": MAX_USUAL_DAYS,
        "binding": {
            "share": summary.BINDING_SHARE,
            "more": summary.MORE,
            "noticeable": summary.NOTICEABLE,
            "chip": summary.CHIP_LIMITS,
        },
        "bestIsMost": sorted(BEST_IS_MOST),
        "parts": PARTS,
        "shape": shape(),
        "architectures": architectures(),
        "sizes": {
            "family": models.family(),
            "base": models.FAMILY[-1],
            "head": models.HEAD_SIZE,
            "kept": models.KV_HEADS,
            "ratio": models.FFN_OVER_HIDDEN,
            "mixtures": models.mixtures(),
            "together": models.EXPERTS_STEP,
            "sizeStep": models.SIZE_STEP,
        },
        "outputs": {"rent": outputs("rent"), "own": [OWNED.get(name, name) for name in outputs("own")]},
        "settled": {way: _settled(way) for way in WAYS},
        "needs": needs(steps),
        "cells": [
            step.quantity for step in steps if step.origin == SPECIFICATION or step.arguments == ("accelerator",)
        ],
        "searched": [*dict.fromkeys(n for step in searched for n in (*step.arguments, step.quantity))],
        "draws": draws(),
        "probable": uncertainty.INTERVAL,
        "results": RESULTS,
        "moved": moved,
        "priceSigma": {chip: uncertainty.price_sigma(chip) for chip in chips()}
        | {"other": uncertainty.price_sigma("")},
    }
    return "\n".join(
        [
            "const MODEL = (() => {",
            f"const TABLES = {in_json({name: dict(values) for name, values in lookups.items()})};",
            *tiered[: len(TIERS)],  # functions that are alike stand together, since gzip looks back 32 kB
            f"const FUTURES = [{', '.join(tiered[len(TIERS) :])}];",
            f"const TIERS = {{{', '.join(listed)}}};",
            fill,
            candidates_function(),
            search,
            "const {chain} = TIERS.one;",
            f"return {{chain, tiers: TIERS, fill, candidates, search, rules: {rules_list(names)},...{in_json(data)}}};",
            "})();",
        ]
    )


def _interval(tiers: str) -> str:
    """Return the quantity that is the default checkpoint interval with the given tiers."""
    return {**OPTIMA, **TIERS[tiers]}["checkpoint_interval_s"]


def in_json(value: Any) -> str:
    """Return a value as compact JSON; integral numbers have no decimal point."""
    return json.dumps(_short(value), separators=(",", ":"), ensure_ascii=False, default=_plain)


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _short(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_short(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else value


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else list(value)
