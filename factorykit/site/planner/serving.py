"""Page *Serve*: computes :func:`factorykit.serve` in the browser, with generated formulas and the measured rows."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Final

from factorykit.core.errors import FactorykitError
from factorykit.core.vocabulary import quantity
from factorykit.data.tables import table
from factorykit.engine.emit.javascript import as_javascript, brief, tables
from factorykit.engine.providers.accelerators import chips
from factorykit.engine.question import Chain, Question
from factorykit.formulas import arguments
from factorykit.formulas.expressions import Symbol
from factorykit.formulas.serving.prefill import prefill_backlog_s
from factorykit.formulas.serving.throughput import serving_users
from factorykit.model.scenario.architectures import architecture
from factorykit.model.serving import plan, predict, residual
from factorykit.model.serving.features import tpot_features, ttft_features
from factorykit.model.serving.points import ENGINES, WEIGHT_BYTES, chip, hardware, shape
from factorykit.model.serving.risk import expected_cost
from factorykit.site.planner import controls, page_script
from factorykit.site.planner.model import in_json

ENGINE: Final = ("serving_process", "serving_engine")
PAGE: Final = ("shapes", "values", "link", "form", "pictures", "worker", "serving")
LIMITS: Final = {"time_to_first_token_s": (0.05, 60.0), "time_per_output_token_s": (0.002, 0.5)}
"""Limits and the ranges of their sliders."""
CONTROLS: Final = (
    *("requests_per_s", "input_tokens", "output_tokens", *LIMITS, "rental_usd_per_accelerator_h"),
    *("cached_input_share", "draft_tokens", "serving_load_share", "user_think_s", "pue"),
)
PARTS: Final = (*plan.STEP, "prefill_separate", "prefill_accelerators", "replica_accelerators")
LOADED: Final = ("prefill_s", "prefill_workers", "concurrent_requests")
"""Quantities that the answers of a candidate need besides prices and latencies: its own, and those of its load."""
ORDERING: Final = (
    *("serving_replicas", "request_latency_s", "users_per_accelerator", "serving_users", "serving_j_per_token"),
    *("output_tokens_per_s_per_user", "output_tokens_per_s_per_accelerator"),
)
"""Answers by which the page orders candidates and draws them."""
PROCESS: Final = ("WORDS", "FAMILY", "CALIBRATED", "LEFT_OUT", "LEAST_HALF_WIDTH", "JITTER", "JOINING")


@cache
def script() -> str:
    """Return the script of the page."""
    return page_script("Serving", model_script(), ENGINE, page_data(), PAGE)


@cache
def shapes() -> dict[str, dict[str, float]]:
    """Return the quantities of the known models by architecture."""
    names = table("architectures").select("architecture").collect()["architecture"]
    return {name: shape(name) for name in names}


@cache
def machines() -> dict[str, dict[str, Any]]:
    """Return what the formulas need of every chip with a price, by number format of the weights."""
    specifications = {}
    for name in chips():
        try:
            Question({"accelerator": name}, {}, plan.PRICES, assume=True).resolve()
            specifications[name] = {dtype: hardware(chip(name), dtype) for dtype in WEIGHT_BYTES}
        except (FactorykitError, TypeError):
            continue
    return specifications


def _chain(outputs: Iterable[str], given: Iterable[str]) -> Chain:
    return Question({}, {}, tuple(outputs), assume=True).over(given).resolve()


def model_script() -> str:
    """Return JavaScript that defines ``MODEL``: the functions, the tables and the measured rows of the engine."""
    rows = predict.measured()[0]
    sizes = tuple(dict.fromkeys(name for known in shapes().values() for name in known))
    side = [name for name in rows.decode.columns if name != "draft_tokens"]
    asked = (*plan.PRICES, *PARTS, *LOADED, *LIMITS, *plan.SHAPE, *(name for name in sizes if name in side))
    chains = {
        "decode": _chain([*plan.MEMORY, *predict.DECODE], side),
        "prefill": _chain([*plan.MEMORY, *predict.PREFILL], [*side, "queued_prefills", "serving_request_s"]),
        "answers": _chain(plan.ANSWERS, asked),
        "ranked": _chain(ORDERING, asked),
        "prices": _chain(plan.PRICES, ["accelerator"]),
    }
    printed = {"backlog": prefill_backlog_s, "ttftFeatures": ttft_features, "tpotFeatures": tpot_features}
    printed |= {"expectedCost": expected_cost, "users": serving_users}
    data = {
        "shapes": [sizes, {name: [it.get(size) for size in sizes] for name, it in shapes().items()}],
        "chips": machines(),
        "engines": {name: residual.constants(name) for name in ENGINES},
        "month": predict.newest(),
        "below": plan.BELOW,
        "deviations": plan.DEVIATIONS,
        "priceNames": plan.PRICES,
        "parts": PARTS,
        "answerNames": plan.ANSWERS,
        "orderingNames": ORDERING,
        "single": plan.SINGLE,
        **{name.lower(): getattr(plan, name) for name in ("SIZES", "STAGES", "REQUESTS", "WORKERS", "LIMITS")},
        **{name.lower(): getattr(residual, name) for name in PROCESS},
        "constants": {name: residual.constants(name) for name in plan.LIMITS},
        "weights": {name: _weights(predict.process(name)) for name in plan.LIMITS},
        "rows": _rows(rows),
    }
    lookups = {name: dict(values) for name, values in tables(chains["prices"].steps).items()}
    functions = brief([chain.to_javascript(name) for name, chain in chains.items()])
    functions += [f"const {name} = (g) => {_printed(function)};" for name, function in printed.items()]
    parts = f"{', '.join([*chains, *printed])}, ...{in_json(data)}"
    head = ["const MODEL = (() => {", f"const TABLES = {in_json(lookups)};"]
    return "\n".join([*head, *functions, f"return {{{parts}}};", "})();"])


def _printed(function: Callable[..., Any]) -> str:
    """Return the expression of an arithmetic function over the properties of ``g``; a tuple becomes an array."""
    result = function(*(Symbol(f"g.{name}") for name in arguments(function)))
    return f"[{', '.join(map(as_javascript, result))}]" if isinstance(result, tuple) else as_javascript(result)


def _weights(process: residual.Process) -> dict[str, str]:
    """Return what the means of a process multiply, of the joining and of all rows, as 64-bit numbers in base 64."""
    import numpy as np

    own = np.empty(len(process.words))
    for block in process.blocks.values():
        own[block.rows] = block.weights
    parts = {"joining": process.weights, "rows": own}
    return {name: b64encode(np.ascontiguousarray(array, "<f8").tobytes()).decode() for name, array in parts.items()}


def _rows(rows: predict.Rows) -> dict[str, Any]:
    """Return the measured rows by column: numbers of words in their lists, and what no model or chip determines."""
    words = {name: list(dict.fromkeys(row[name] for row in rows.words)) for name in residual.WORDS}
    cells = {name: [words[name].index(row[name]) for row in rows.words] for name in residual.WORDS}
    machine = [*hardware(chip(rows.words[0]["chip"]), rows.words[0]["format"])]
    values = rows.decode.select(machine).rows()
    devices = {f"{row['chip']} {row['format']}": cell for row, cell in zip(rows.words, values, strict=True)}
    decode, prefill, load = (
        {name: cells.to_list() for name, cells in frame.to_dict().items() if name not in {*sizes, *machine}}
        for sizes in [shapes()[rows.words[0]["model"]]]
        for frame in (rows.decode, rows.prefill, rows.load.drop("concurrency"))
    )
    own = {name: cells for name, cells in prefill.items() if decode[name] != cells}
    columns = {"words": words, "cells": cells, "machine": machine, "devices": devices}
    return columns | {"decode": decode, "prefill": own, "load": load}


def page_data() -> dict[str, Any]:
    """Return the controls, menus and labels of the page as plain values."""
    models = ([name, architecture(name).label] for name in shapes())
    return {
        "limitNames": plan.LIMITS,
        "noticeableCost": plan.NOTICEABLE_COST,
        "limits": [*LIMITS, "users", "fleet"],
        "controls": {name: controls.control(name, LIMITS.get(name)) | {"spread": False} for name in CONTROLS}
        | {name: controls.control(name, ends) | {"spread": False, "likely": "ms"} for name, ends in LIMITS.items()},
        "menus": {
            "model": sorted(models, key=lambda row: controls.natural(row[1])),
            "accelerator": [row for row in controls.chip_menu() if row[0] in machines()],
        },
        "offers": {name: [] for name in machines()},
        "quantities": {name: controls.words(quantity(name)) for name in CONTROLS},
    }
