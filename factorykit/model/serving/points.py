"""Measured serving points in the vocabulary: model, chip, number format and layout of each row."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import date
from functools import cache
from typing import Any, Final, NamedTuple

from factorykit.core.errors import ScenarioError, UnknownName, short_repr, unknown_name_message
from factorykit.core.vocabulary import quantity
from factorykit.data.identifiers import accelerator_in, identify
from factorykit.data.tables import table
from factorykit.engine.evaluate import evaluate
from factorykit.engine.providers.accelerators import chips
from factorykit.model.scenario.architectures import architecture

RENAMED: Final = (
    (r"[^a-z0-9]+", "_"),
    (r"llama_?(\d)(_[13])?_(\d+)b", r"llama\1_\3b"),
    (r"^deepseek_(r1(?!_distill)|v3_1|v3).*", "deepseek_v3"),
    (r"^(kimi_k2|minimax_m2|glm_5).*", r"\1"),
    (r"^gpt_?oss", "gpt_oss"),
    (r"_a\d+b", ""),
)
"""Spellings of models that share an architecture of the tables."""
WEIGHT_BYTES: Final = {"bf16": 2.0, "fp8": 1.0, "int8": 1.0, "fp4": 0.5625, "int4": 0.5625}
"""Bytes of a stored weight with its scales, by number format."""
ENGINES: Final = {"vllm": "vllm", "sglang": "sglang", "trtllm": "trtllm|tensorrtllm|dynamotrt"}
FORMATS: Final = {"bf16": "[fpt]16", "int8": "int8|w8a", "fp8": "fp8|e4m3", "int4": "int4|w4a|awq|gptq", "fp4": "fp4"}
MODES: Final = {"agg": "agg", "disagg": "disagg"}
"""Engines, number formats and modes, with patterns of their spellings in lower case without punctuation."""
SERVER: Final = 8.0
"""Accelerators of one server, the most of a worker that shares them between prompts and decode."""
PCIE, NETWORK = 6.4e10, 5e10
"""Rates of links of chips that the table links lacks: PCIe 5 and a port of 400 Gb/s. [byte/s]"""
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


def word_of(kind: str, stated: object, known: Mapping[str, str]) -> str:
    """Return the last of the known words whose pattern a text has, without case and punctuation."""
    plain = re.sub(r"[^a-z0-9]", "", stated.lower()) if isinstance(stated, str) else ""
    found = [name for name, spellings in known.items() if re.search(spellings, plain)]
    if not found:
        raise UnknownName(unknown_name_message(kind, stated, known))
    return found[-1]


@cache
def architecture_of(model: str) -> str:
    """Return the architecture of a model's name or repository path; its weights may have any number format.

    >>> architecture_of("meta-llama/Llama-3.1-70B"), architecture_of("Qwen/Qwen3-235B-A22B-FP8")
    ('llama3_70b', 'qwen3_235b')
    """
    name = model.rpartition("/")[2].lower()
    for pattern, new in RENAMED:
        name = re.sub(pattern, new, name)
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
            unknown = dict.fromkeys(("peak_fp8_flop_per_s", "peak_fp4_flop_per_s", "scale_up_bytes_per_s"))
            return {"accelerator": row["serving_device"], **unknown, **row}
    return dict(chips()[accelerator_in(stated.replace("_", " "))])


def number_format(row: Mapping[str, Any]) -> str:
    """Return the number format of the weights, of the columns that state it or of the name of the model."""
    words = (row.get("moe_quant_mode"), row.get("gemm_quant_mode"), row.get("precision"), row.get("weight_data_types"))
    name = str(row.get("model_path") or row.get("benchmark"))
    default = f"{name} {'fp4' if 'gpt-oss' in name.lower() else 'bf16'}"
    return word_of("precision", " ".join(str(word) for word in words if word) or default, FORMATS)


def number_in(row: Mapping[str, Any], name: str, default: float | None = 1.0) -> float:
    """Return a cell, a number or its text, above 0; exports write 0 for the experts of a model that has none."""
    value = row.get(name)
    if default is not None and value in (None, "", 0.0 if "moe" in name else None):
        return default
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if not 0.0 < number < math.inf:
        expected = "given" if value in (None, "") else f"a finite number above 0, got {short_repr(value)}"
        raise ScenarioError(f"{name} must be {expected}")
    return number


def hardware(specification: Mapping[str, Any], width: str) -> dict[str, float]:
    """Return what a formula needs of a chip at one number format; without FP4 units it treats FP4 weights as INT4."""
    if missing := [name for name in NEEDED if not specification[name]]:
        raise ScenarioError(f"{specification['accelerator']}: the tables have no {', '.join(missing)}")
    peak = float(specification["peak_16bit_flop_per_s"])
    eight, four = (specification[f"peak_{name}_flop_per_s"] for name in ("fp8", "fp4"))
    peaks = {"fp8": float(eight or peak), "int8": float(eight or peak), "fp4": float(four or peak)}
    return {
        "peak_flop_per_s": peaks.get(width, peak),
        "peak_16bit_flop_per_s": peak,
        "served_bytes_per_parameter": WEIGHT_BYTES[width],
        "kv_bytes_per_element": 1.0 if width == "fp8" or (width == "fp4" and four) else 2.0,
        "accelerator_memory_bytes": float(specification["accelerator_memory_bytes"]),
        "memory_bytes_per_s": float(specification["memory_bytes_per_s"]),
        "scale_up_domain": float(specification.get("scale_up_domain") or SERVER),
        "scale_up_bytes_per_s": float(specification["scale_up_bytes_per_s"] or specification.get("fallback") or PCIE),
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
    if not agreeing:
        return []
    version, measured = row.get("backend_version"), _measured_on(row)
    latest = _day(measured or "2100-01") + TRIAL_DAYS
    agreeing = [recipe for recipe in agreeing if _day(recipe["first_used"]) <= latest] or agreeing
    agreeing = _nearest(agreeing, [abs(math.log(recipe["concurrency"] / concurrency)) for recipe in agreeing])
    agreeing = [recipe for recipe in agreeing if version and recipe.get("engine_version") == version] or agreeing
    days = [abs(_day(measured) - _day(recipe["first_used"])) if measured else 0.0 for recipe in agreeing]
    return _nearest(agreeing, days)


def _nearest(rows: list[dict[str, Any]], distances: list[float]) -> list[dict[str, Any]]:
    least = min(distances)
    return [row for row, distance in zip(rows, distances, strict=True) if distance == least]


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
    return {**row, **means, **unknown, "draft_tokens": drafts}


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
    return number_in(row, f"{prefix}batch_size", None) * number_in(row, f"{prefix}attention_dp_size") * workers


@cache
def shape(model: str) -> dict[str, float]:
    """Return the shape of a known model, with the layers that models without recurrent states leave to formulas."""
    known = {name: float(value) for name, value in architecture(model).items()}
    return {**evaluate(known, ("attention_layers", "ffn_layers")), **known}


def read_point(row: Mapping[str, Any]) -> Point:
    """Return a row of the table serving_points in the vocabulary.

    Raises
    ------
    FactorykitError
        If a word of it is unknown, a length or the load is missing, or a number is invalid.
    """
    if missing := [name for name in ("backend", "system", "model_path", "isl", "osl") if row.get(name) is None]:
        raise ScenarioError(f"{missing[0]} must be given")
    row = {**row, "mode": word_of("mode", row.get("mode") or "agg", MODES)}
    row |= {name: quantity(long).check(row[name]) for name, long in (("isl", "input_tokens"), ("osl", "output_tokens"))}
    specification, width = chip(str(row["system"])), number_format(row)
    model = architecture_of(str(row["model_path"]))
    words = {"engine": word_of("engine", row["backend"], ENGINES), "chip": str(specification["accelerator"])}
    words |= {"model": model, "mode": "agg", "format": width}
    separate = row["mode"] == "disagg"
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
    common = {**shape(model), **hardware(specification, width)}
    common |= {"input_tokens": row["isl"], "output_tokens": row["osl"], "draft_tokens": row["draft_tokens"]}
    decode = {**common, **_layout(row, "decode_" if separate else "")}
    tensor, heads, most = decode["tensor_parallel"], decode["attention_heads"], max(common["scale_up_domain"], SERVER)
    if not separate and (heads % tensor or tensor > most):
        raise ScenarioError(
            f"tp_size = {tensor:g} must divide the {heads:g} attention heads of {model} and be at most {most:g}, the "
            f"{words['chip']} of a node; give pp_size for a pipeline of nodes"
        )
    prefill = {**common, **_layout(row, "prefill_" if separate else "")}
    decode |= {"concurrent_requests": max(concurrency / workers, 1.0), "prefill_separate": float(separate)}
    prefill |= {"concurrent_requests": max(concurrency / prefill_workers, 1.0), "prefill_separate": 0.0}
    year, month = (float(part) for part in (_measured_on(row) or "2026-01").split("-")[:2])
    known = float(row.get("decode_num_workers") is not None) if separate else 0.0
    load = {"concurrency": concurrency, "month": (year - 2026.0) * 12.0 + month, "workers": workers, "known": known}
    load |= {"prefill_workers": prefill_workers, "recipes": float(len(found)) if separate else 0.0}
    return Point(words, decode, prefill, load)
