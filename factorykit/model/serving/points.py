"""Measured serving points in the vocabulary: model, chip, number format and layout of each row."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import date
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl

from factorykit.core import errors
from factorykit.core.errors import ScenarioError, UnknownName, short_repr
from factorykit.core.text_io import package_rows
from factorykit.core.vocabulary import quantity
from factorykit.data.identifiers import accelerator_in, identify, known_key
from factorykit.data.tables import table
from factorykit.engine.evaluate import evaluate
from factorykit.engine.providers.accelerators import CEILING_8BIT, cell, chips
from factorykit.model.performance.run_architectures import completed_shape, quantities
from factorykit.model.performance.run_cells import SEQUENCE_K, read_row
from factorykit.model.performance.source_terms import number as number_of
from factorykit.model.scenario.architectures import architecture

WEIGHT_BYTES: Final = {"bf16": 2.0, "fp8": 1.0, "int8": 1.0, "fp4": 0.5625, "int4": 0.5625}
"""Bytes of a stored weight with its scales, by number format."""
WORDS: Final = package_rows(Path(__file__).with_name("words.csv"))
ENGINES, FORMATS, PUBLISHED, MODES, SCENARIOS, ALGORITHMS = (
    {row["word"]: row["pattern"] for row in WORDS if row["kind"] == kind}
    for kind in ("engine", "precision", "published", "mode", "scenario", "algorithm")
)
"""Known words (``PUBLISHED`` are formats of published weights other than 16 bits), and patterns of their spellings in
lower case without punctuation; algorithms stand for others that need the same passes and models."""
OTHER: Final = "other"
"""Word of an engine, a chip or a model that has no measured points: its residual is that of all, less certain."""
SERVER: Final = 8.0
"""Accelerators of one server, the most of a worker that shares them between prompts and decode."""
PCIE, NETWORK = 6.4e10, 5e10
"""Rates of links of chips that the table links lacks: PCIe 5 and a port of 400 Gb/s. [byte/s]"""
COLUMNS: Final = package_rows(Path(__file__).with_name("columns.csv"))
"""Columns of the tables that rows of users may have: whether they are needed, and a pattern of their other names."""
NEEDED: Final = ("peak_16bit_flop_per_s", "accelerator_memory_bytes", "memory_bytes_per_s")
TRIAL_DAYS: Final = 14
"""Most days by which a recipe is measured before its first use."""
SIDES: Final = ("prefill", "decode")
PARTS: Final = ("tp_size", "attention_dp_size", "moe_ep_size")
RECIPE_KEY: Final = ("engine", "accelerator", "architecture", "number_format", "isl", "osl")
"""Columns of the table serving_recipes that a measured point shares with its recipe."""


class Point(NamedTuple):
    """One row: words for its family, quantities of decode and of prefill, and numbers that only its residual uses."""

    words: dict[str, str]
    decode: dict[str, float]
    prefill: dict[str, float]
    load: dict[str, float]


def word_of(kind: str, stated: object, known: Mapping[str, str], default: str | None = None) -> str:
    """Return the last of the known words whose pattern a text has, without case and punctuation, or the default."""
    plain = _plain(stated) if isinstance(stated, str) else ""
    found = [default, *(name for name, spellings in known.items() if re.search(spellings, plain))]
    if found[-1] is None:
        raise UnknownName(errors.unknown_name_message(kind, stated, known))
    return found[-1]


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def renamed(frame: pl.DataFrame, *tables: str) -> tuple[str, pl.DataFrame]:
    """Return the table whose needed columns a frame has, and the frame with its names; warn of misspelt others."""
    found = []
    for name in tables:
        left = {_plain(column): column for column in frame.columns if column not in table(name).collect_schema()}
        rows = [row for row in COLUMNS if row["table"] == name and row["column"] not in frame.columns]
        names = {}
        for row in rows:
            pattern = f"{_plain(row['column'])}|{row['other_names']}"
            if alias := next((plain for plain in left if re.fullmatch(pattern, plain)), None):
                names[left.pop(alias)] = row["column"]
        lacking = [row["column"] for row in rows if row["needed"] and row["column"] not in names.values()]
        needed = sum(bool(row["needed"]) for row in COLUMNS if row["table"] == name)
        found.append((len(lacking) / needed, -len(names), name, names, lacking, left))
    *_, name, names, lacking, left = min(found, key=itemgetter(0, 1))
    if lacking:
        missing, given = ", ".join(lacking), ", ".join(frame.columns)
        raise ScenarioError(f"rows must have the columns of the table {name}; missing are {missing}, got {given}")
    frame = frame.rename(names)
    known = {row["column"] for row in COLUMNS if row["table"] == name}
    missing = {column.removeprefix("silicon_"): column for column in sorted(known.difference(frame.columns))}
    for column in set(left.values()) - known:
        if close := errors.nearest(column.removeprefix("silicon_"), missing, errors.MISSPELT_SIMILARITY):
            errors.warn(f"column {column} is not read; nearest is {missing[close]!r}")
    return name, frame


@cache
def architecture_of(model: str) -> str:
    """Return the architecture of a model's name or repository path; its weights may have any number format.

    >>> architecture_of("meta-llama/Llama-3.1-70B"), architecture_of("Qwen/Qwen3-235B-A22B-FP8")
    ('llama3_70b', 'qwen3_235b')
    """
    name = model.rpartition("/")[2].lower()
    for row in WORDS:
        name = re.sub(row["pattern"], row["word"], name) if row["kind"] == "model" else name
    known = table("architectures").collect()["architecture"].to_list()
    found = [key for key in known if name == key or name.startswith(f"{key}_")]
    return max(found, key=len) if found else identify("architecture", model)


@cache
def chip(stated: str) -> dict[str, Any]:
    """Return the accelerator that a system names with its usual links, or the row of serving_devices.

    >>> chip("b200_sxm")["accelerator"]
    'b200'
    """
    for row in table("serving_devices").collect().iter_rows(named=True):
        if row["named"] in stated.lower():
            return {"accelerator": row["serving_device"], **row}
    return dict(chips()[accelerator_in(stated.replace("_", " "))])


def number_format(row: Mapping[str, Any]) -> str:
    """Return the number format of the weights, of the columns that state it or of the name of the model."""
    words = (row.get(name) for name in ("moe_quant_mode", "gemm_quant_mode", "precision", "weight_data_types"))
    stated = " ".join(str(word) for word in words if word not in (None, "", "auto"))
    name = str(row.get("model_path") or row.get("benchmark"))
    return word_of("precision", stated or f"{name} {word_of('format', name, PUBLISHED, 'bf16')}", FORMATS)


def number_in(row: Mapping[str, Any], name: str, default: float | None = 1.0) -> float:
    """Return a cell, a number or its text, above 0; exports write 0 for the experts of a model that has none."""
    value = row.get(name)
    if default is not None and value in (None, "", 0.0 if re.search("moe|draft", name) else None):
        return default
    try:
        text = re.sub(r"(?i)^[a-z_]+[ =:_-]*(?=\d)| ?[a-z]{2,}$", "", value.strip()) if isinstance(value, str) else None
        number = float(value) if text is None else number_of(text, SEQUENCE_K) or math.nan  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if not 0.0 < number < math.inf:
        expected = "given" if value in (None, "") else f"a finite number above 0, got {short_repr(value)}"
        raise ScenarioError(f"{name} must be {expected}")
    return number


def hardware(specification: Mapping[str, Any], width: str) -> dict[str, float]:
    """Return what a formula needs of a chip at one number format; without FP4 units it treats FP4 weights as INT4."""
    if missing := [name for name in NEEDED if not specification.get(name)]:
        raise ScenarioError(f"{specification['accelerator']}: the tables have no {', '.join(missing)}")
    peak, link = float(specification["peak_16bit_flop_per_s"]), specification.get("scale_up_bytes_per_s")
    eight, four = (specification.get(f"peak_{name}_flop_per_s") for name in ("fp8", "fp4"))
    peaks = {"fp8": float(eight or peak), "int8": float(eight or peak), "fp4": float(four or peak)}
    key, precision = specification["accelerator"], {"fp8": "fp8", "int8": "fp8", "fp4": "nvfp4"}.get(width, "bf16")
    ceilings = (cell("gemm_ceiling").values.get(f"{key} {name}") for name in (precision, "bf16"))
    stated = (specification.get(name) for name in ("prefill_flop_share", "gemm_ceiling"))
    return {
        "peak_flop_per_s": peaks.get(width, peak),
        "peak_16bit_flop_per_s": peak,
        "prefill_flop_share": float(next(filter(None, (*stated, *ceilings, CEILING_8BIT)))),
        "served_bytes_per_parameter": WEIGHT_BYTES[width],
        "kv_bytes_per_element": 1.0 if width == "fp8" or (width == "fp4" and four) else 2.0,
        "accelerator_memory_bytes": float(specification["accelerator_memory_bytes"]),
        "memory_bytes_per_s": float(specification["memory_bytes_per_s"]),
        "scale_up_domain": float(specification.get("scale_up_domain") or SERVER),
        "scale_up_bytes_per_s": float(link or specification.get("fallback") or PCIE),
        "scale_out_bytes_per_s": float(specification.get("scale_out_bytes_per_s") or NETWORK),
    }


@cache
def recipes() -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """Return the rows of the table serving_recipes by what a measured point shares with them, and by mode.

    Layouts of measured points with known workers stand in for those that have no recipe.
    """
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    known = set()
    for row in table("serving_recipes").collect().iter_rows(named=True):
        separate = bool(row["prefill_num_workers"])
        key = (*(row[name] for name in RECIPE_KEY), separate)
        known.add((key, row["concurrency"]))
        found.setdefault(key, []).append(_sized(row) if separate else {**row, "sizes": [_size(row, "decode")] * 2})
    for row in table("serving_points").collect().drop_nulls("decode_num_workers").iter_rows(named=True):
        names = (row["backend"], str(chip(row["system"])["accelerator"]), architecture_of(row["model_path"]))
        key = (*names, number_format(row), row["isl"], row["osl"], True)
        columns = [f"{side}_{part}" for side in SIDES for part in ("num_workers", *PARTS)]
        layout = {name: max(row[name], 1.0) for name in columns}
        layout |= {"concurrency": _concurrency(row, separate=True), "draft_tokens": 0.0}
        if (key, layout["concurrency"]) not in known:
            found.setdefault(key, []).append(_sized({**layout, "first_used": _measured_on(row) or "2026-01"}))
    return found


def _size(row: Mapping[str, Any], side: str) -> float:
    return number_in(row, f"{side}_tp_size") * number_in(row, f"{side}_attention_dp_size")


def _sized(row: dict[str, Any]) -> dict[str, Any]:
    sizes = [_size(row, side) for side in SIDES]
    workers = [row[f"{side}_num_workers"] for side in SIDES]
    whole = sum(size * count for size, count in zip(sizes, workers, strict=True))
    return {**row, "sizes": sizes, "workers": workers, "whole": [whole, whole]}


def published(row: Mapping[str, Any], words: Mapping[str, str], concurrency: float) -> list[dict[str, Any]]:
    """Return the recipes of a point that agree with the layout it states, nearest in concurrency, version and day.

    Exports print for each side the accelerators of a worker, or of the system, or 1. Recipes run when they change.
    """
    separate = row.get("mode") == "disagg"
    key = (*(words[name] for name in ("engine", "chip", "model", "format")), row["isl"], row["osl"], separate)
    candidates = recipes().get(key, [])
    if separate:
        stated, counts = [_size(row, side) for side in SIDES], [row.get(f"{side}_num_workers") for side in SIDES]
        agreeing = [
            recipe
            for recipe in candidates
            if stated in (recipe["sizes"], recipe["whole"], [1.0, 1.0]) and counts in ([None, None], recipe["workers"])
        ]
    else:
        layout = _layout(row, "") if candidates else {}
        size = math.prod(layout.get(name, 1.0) for name in ("tensor_parallel", "attention_data_parallel"))
        agreeing = [recipe for recipe in candidates if recipe["sizes"][0] == size]
    version, measured = row.get("backend_version"), _measured_on(row)
    latest = _day(measured or "2100-01") + TRIAL_DAYS

    def distance(recipe: Mapping[str, Any]) -> tuple[bool, float, bool, float]:
        later, load = _day(recipe["first_used"]) > latest, abs(math.log(recipe["concurrency"] / concurrency))
        days = abs(_day(measured) - _day(recipe["first_used"])) if measured else 0.0
        return later, load, not version or recipe.get("engine_version") != version, days

    least = min(map(distance, agreeing), default=None)
    return [recipe for recipe in agreeing if distance(recipe) == least]


def _measured_on(row: Mapping[str, Any]) -> str | None:
    stated = str(row.get("silicon_data_source") or row.get("locator") or "")
    dated = re.search(r"measured=(\d{4}-\d\d(?:-\d\d)?)", stated)
    return dated[1] if dated else None


def _day(stated: str) -> int:
    return date.fromisoformat(f"{stated}-15"[:10]).toordinal()


def _with_recipes(row: Mapping[str, Any], found: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the columns of a row with drafted tokens, and with the mean layout of its recipes if it has no workers."""
    drafts = sum(recipe["draft_tokens"] for recipe in found) / max(len(found), 1)
    unknown_layout = row.get("mode") == "disagg" and found and not row.get("decode_num_workers")
    names = [name for name in found[0] if name.startswith(SIDES)] if unknown_layout else []
    means = {name: math.exp(sum(math.log(recipe[name]) for recipe in found) / len(found)) for name in names}
    unknown = {f"{side}_moe_tp_size": None for side in SIDES} if means else {}
    return {**row, **means, **unknown, "draft_tokens": number_in(row, "draft_tokens", drafts)}


def _layout(row: Mapping[str, Any], prefix: str) -> dict[str, float]:
    """Return the layout of a worker; the product of the expert layout counts its accelerators where both are given.

    Some exports multiply two sizes that count the same accelerators, as others of the same measurement show: 64 for 8.
    """
    tensor = number_in(row, f"{prefix}tp_size")
    groups = number_in(row, f"{prefix}attention_dp_size")
    experts = number_in(row, f"{prefix}moe_ep_size")
    width = number_in(row, f"{prefix}moe_tp_size")
    accelerators = max(width * experts, 1.0)
    if accelerators == 1.0:
        accelerators = tensor * groups
    twice = tensor == groups > 1.0 or (width == experts > 1.0 and accelerators > SERVER)
    if not prefix and twice and accelerators == tensor * groups:
        accelerators = math.sqrt(accelerators)
        groups = accelerators if groups > tensor else 1.0
        tensor = accelerators / groups
    elif groups > 1.0 and tensor * groups != accelerators:
        tensor, groups = (1.0, accelerators) if tensor >= accelerators else (tensor, accelerators / tensor)
    elif tensor != accelerators and groups == 1.0:
        accelerators = max(tensor, accelerators)
        tensor = accelerators
    return {
        "tensor_parallel": tensor,
        "attention_data_parallel": groups,
        "expert_parallel": min(experts, accelerators),
        "pipeline_parallel": number_in(row, f"{prefix}pp_size"),
    }


def _concurrency(row: Mapping[str, Any], *, separate: bool) -> float:
    stated = re.search(r"silicon_concurrency=(\d+)", str(row.get("silicon_data_source") or ""))
    named = re.search(r"_c(\d+)(?:_|$)", str(row.get("id") or ""))
    if row.get("concurrency") is not None:
        return number_in(row, "concurrency")
    if known := stated or named:
        return float(known[1])
    prefix = "decode_" if separate else ""
    workers = number_in(row, "decode_num_workers") if separate else 1.0
    load = f"{prefix}batch_size" if row.get(f"{prefix}batch_size") else "concurrency"
    return number_in(row, load, None) * number_in(row, f"{prefix}attention_dp_size") * workers


@cache
def shape(model: str) -> dict[str, float]:
    """Return the shape of a known model, with the layers that models without recurrent states leave to formulas."""
    known = {name: float(value) for name, value in architecture(model).items()}
    return {**evaluate(known, ("attention_layers", "ffn_layers")), **known}


@cache
def similar(total: float, active: float) -> dict[str, float]:
    """Return the known shape of the most similar parameters, its layers in proportion; its heads share their keys."""
    known = pl.DataFrame([shape(name) for name in table("architectures").collect()["architecture"]])
    found = evaluate(known, ("parameters", "active_parameters")).filter(pl.col("kv_heads") < pl.col("attention_heads"))
    miss = (pl.col("parameters") / total).log().abs() + (pl.col("active_parameters") / active).log().abs()
    best = found.sort(miss).row(0, named=True)
    scaled = {name: best[name] * total / best["parameters"] for name in known.columns if name.endswith("layers")}
    return {**{name: best[name] for name in known.columns}, **scaled}


def model_of(row: Mapping[str, Any]) -> tuple[str, dict[str, float]]:
    """Return the key and the shape of a model; of an unknown one by the row's columns, or by the sizes in its name."""
    try:
        key = architecture_of(str(row["model_path"]))
        return key, shape(key)
    except UnknownName:
        if row.get("layers") and row.get("hidden"):
            found = quantities(completed_shape(read_row({**row, "model": "", "seq_len": 1.0}), []), [])
            return OTHER, {name: float(found[name] or 0.0) for name in shape("llama3_8b")}
        sizes = re.findall(r"(?i)(?<![a-z0-9.])a?(\d+\.?\d*)b(?![a-z])", str(row["model_path"]))
        if not sizes:
            raise
        return OTHER, similar(max(map(float, sizes)) * 1e9, min(map(float, sizes)) * 1e9)


def read_point(row: Mapping[str, Any]) -> Point:
    """Return a row of the table serving_points in the vocabulary; raise if a word or a number cannot be read."""
    if missing := [name for name in ("system", "model_path") if row.get(name) is None]:
        raise ScenarioError(f"{missing[0]} must be given")
    row = {**row, "mode": word_of("mode", row.get("mode") or "agg", MODES)}
    for name, long in (("isl", "input_tokens"), ("osl", "output_tokens")):
        row[name] = quantity(long).check(number_in(row, name, None))
    stated = {**row, "accelerator": known_key("accelerator", row["system"]) or OTHER}
    specification = stated if all(map(row.get, NEEDED)) else chip(str(row["system"]))
    (model, sizes), width = model_of(row), number_format(row)
    words = {"engine": word_of("engine", row.get("backend"), ENGINES, OTHER), "chip": str(specification["accelerator"])}
    words |= {"model": model, "mode": "agg", "format": width}
    separate = row["mode"] == "disagg"
    tensor = number_in(row, "accelerators") / number_in(row, "attention_dp_size") / number_in(row, "pp_size")
    row["tp_size"] = number_in(row, "tp_size", tensor)
    concurrency = _concurrency(row, separate=separate)
    found = published(row, words, concurrency)
    size = number_in(row, "tp_size") * number_in(row, "attention_dp_size")
    if not (separate or found) and size > SERVER:
        system = {**row, "mode": "disagg", **{f"{side}_tp_size": size for side in SIDES}}
        found = published(system, words, concurrency)
        separate, row = (True, system) if found else (False, row)
    if separate:
        exact = row.get("decode_num_workers") or (len(found) == 1 and found[0]["concurrency"] == concurrency)
        words["mode"] = "disagg" if exact else "disagg_open"
    row = _with_recipes(row, found)
    prefill_workers, workers = (number_in(row, f"{side}_num_workers") if separate else 1.0 for side in SIDES)
    common = {**sizes, **hardware(specification, width)}
    common |= {"input_tokens": row["isl"], "output_tokens": row["osl"], "draft_tokens": row["draft_tokens"]}
    decode = {**common, **_layout(row, "decode_" if separate else "")}
    tensor, heads = decode["tensor_parallel"], decode["attention_heads"]
    if not separate and heads % tensor:
        raise ScenarioError(f"tp_size = {tensor:g} must divide the {heads:g} attention heads of {row['model_path']}")
    if specification is stated or model == OTHER:
        evaluate(decode, ("served_weight_bytes",), assume=True)  # raises here where a row contradicts itself
    prefill = {**common, **_layout(row, "prefill_" if separate else "")}
    decode |= {"concurrent_requests": max(concurrency / workers, 1.0), "prefill_separate": float(separate)}
    prefill |= {"concurrent_requests": max(concurrency / prefill_workers, 1.0), "prefill_separate": 0.0}
    year, month = (float(part) for part in (_measured_on(row) or "2026-01").split("-")[:2])
    known = float(row.get("decode_num_workers") is not None) if separate else 0.0
    load = {"concurrency": concurrency, "month": (year - 2026.0) * 12.0 + month, "workers": workers, "known": known}
    load |= {"prefill_workers": prefill_workers, "recipes": float(len(found)) if separate else 0.0}
    return Point(words, decode, prefill, load)
