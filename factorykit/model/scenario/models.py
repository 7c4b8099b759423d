"""Models by name, by ``config.json``, by their quantities, or by their size alone."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import polars as pl

from factorykit.core.errors import MissingQuantity, ScenarioError, UnknownName, short_repr
from factorykit.core.validation import mapping
from factorykit.core.vocabulary import is_number, quantity
from factorykit.data.tables import table
from factorykit.engine.evaluate import evaluate
from factorykit.model.scenario.architectures import architecture
from factorykit.model.scenario.hf_config import read_hf_config
from factorykit.model.scenario.scenario import Scenario

COUNT: Final = r"([\d.]+(?:e\d+)?)\s*(k|m(?:illion)?|b(?:n|illion)?|t(?:rillion)?|)"
SIZE: Final = re.compile(
    rf"\s*{COUNT}\s*(?:parameters?)?\s*(?:(dense)|(mixture(?: of experts)?|moe)|-?a\s*{COUNT})?\s*", re.IGNORECASE
)
"""A size as text: "70B", "70 billion", "70e9", "1T MoE", or "30B-A3B" with the parameters that a token uses."""
FAMILY: Final = ("llama3_2_1b", "llama3_2_3b", "llama3_8b", "llama3_70b", "llama3_405b")
"""Dense models of one family, between which the depth of a size is interpolated."""
MAX_PARAMETERS: Final = 1e18
HEAD_SIZE: Final = 128.0
KV_HEADS: Final = 8.0
FFN_OVER_HIDDEN: Final = 3.5
"""Width of the feed-forward block over the hidden size in Llama 3 8B and 70B."""
EXPERTS_STEP: Final = 8.0
"""Largest step of the number of experts, so that they divide over accelerators."""
SIZE_STEP: Final = 0.1
"""Share of a size that a step of the number of experts stays below; few large experts come one by one."""


def model_of(model: Any) -> Scenario:
    """Return a model as a scenario with sources.

    Parameters
    ----------
    model
        Name of a known model, path of a ``config.json``, a mapping of quantities, or a size: ``70e9``, ``"70B"``,
        ``"1T MoE"``, ``"1T A32B"`` with 32 billion active parameters.

    Raises
    ------
    UnknownName, ScenarioError

    Examples
    --------
    >>> model_of("llama3_70b").layers
    80.0
    >>> [round(evaluate(model_of(size), "parameters")["parameters"] / 1e9, 1) for size in ("30B dense", "30 billion")]
    [30.0, 30.0]
    """
    if isinstance(model, Mapping):
        sources = getattr(model, "sources", {})
        return Scenario.sourced(getattr(model, "label", ""), mapping("model", model), sources)
    if is_number(model):
        return dense(float(quantity("parameters").check(model)))
    if not isinstance(model, (str, Path)):
        raise ScenarioError(
            f"model must be a name, a config.json, a mapping of quantities or a size such as "
            f"'70B', got {short_repr(model)}"
        )
    if sized := SIZE.fullmatch(str(model)):
        number = _parameters(sized[1], sized[2])
        if sized[5]:
            return mixture(number, _parameters(sized[5], sized[6]))
        return mixture(number) if sized[4] else dense(number)
    if str(model).endswith(".json"):
        return read_hf_config(model)
    try:
        return architecture(str(model))
    except UnknownName as error:
        raise UnknownName(f"{error}; or give a config.json, or a size such as '70B' or '1T mixture'") from None


def _parameters(number: str, scale: str) -> float:
    return float(quantity("parameters").check(number + scale[:1].upper().replace("K", "k")))


def dense(parameters: float) -> Scenario:
    """Return the architecture of a dense model: depth interpolated in Llama 3, widths that give the size.

    >>> dense(70.6e9).layers, dense(70.6e9).hidden_size
    (80.0, 8192.0)
    """
    if parameters > MAX_PARAMETERS:
        raise ScenarioError(f"parameters = {parameters:g} are more than {MAX_PARAMETERS:g}")
    known = dict(architecture(FAMILY[-1]))
    layers = float(max(round(_interpolated(parameters)), 1))
    vocabulary = float(known["vocabulary_size"])
    squares = layers * (2.0 + 3.0 * FFN_OVER_HIDDEN)
    lines = 2.0 * vocabulary + layers * 2.0 * KV_HEADS * HEAD_SIZE
    hidden = (math.sqrt(lines * lines + 4.0 * squares * parameters) - lines) / (2.0 * squares)
    unit = max(min(2.0 ** math.floor(math.log2(hidden)) / 4.0, KV_HEADS * HEAD_SIZE), HEAD_SIZE)
    hidden = max(round(hidden / unit), 1) * unit
    heads = hidden / HEAD_SIZE
    kept = float(math.gcd(int(heads), int(KV_HEADS)))
    per_layer = 2.0 * hidden * hidden + 2.0 * hidden * kept * HEAD_SIZE + 2.0 * hidden
    rest = (parameters - 2.0 * vocabulary * hidden - hidden) / layers - per_layer
    ffn = round(rest / (3.0 * hidden) / HEAD_SIZE) * HEAD_SIZE
    if ffn <= 0:
        raise ScenarioError(
            f"parameters = {parameters:g}: no layers are possible with a vocabulary of {vocabulary:g}; give more"
        )
    shape = known | {
        "layers": layers,
        "hidden_size": hidden,
        "ffn_size": ffn,
        "attention_heads": heads,
        "kv_heads": kept,
        "head_size": HEAD_SIZE,
        "tied_embeddings": 0.0,
    }
    source = "chosen: depth by interpolation between the sizes of Llama 3, widths that fill the size"
    return Scenario.sourced(f"{_size(parameters)} dense", shape, dict.fromkeys(shape, source))


def mixture(parameters: float, active: float | None = None) -> Scenario:
    """Return a mixture of experts: the known one nearest in size, with other numbers of experts and experts per token.

    >>> shape = mixture(1e12)
    >>> shape.experts, round(evaluate(shape, "parameters")["parameters"] / 1e12, 2)
    (376.0, 1.01)
    >>> mixture(1e12, 20e9).experts_per_token
    3.0
    """
    sizes = mixtures()
    nearest = min(sizes, key=lambda name: abs(math.log(sizes[name] / parameters)))
    shape = dict(architecture(nearest))
    before, fewer = float(shape["experts"]), float(shape["experts"]) - 1.0
    expert_parameters = sizes[nearest] - evaluate(shape | {"experts": fewer}, "parameters")["parameters"]
    wanted = before + (parameters - sizes[nearest]) / expert_parameters
    step = EXPERTS_STEP
    while step > 1.0 and step * expert_parameters > SIZE_STEP * parameters:
        step /= 2.0
    shape["experts"] = max(round(wanted / step), 1) * step
    label = f"{_size(parameters)} mixture"
    if active is not None:
        if active > parameters:
            raise ScenarioError(f"{_size(active)} active parameters are more than all {_size(parameters)}")
        more = (active - evaluate(shape, "active_parameters")["active_parameters"]) / expert_parameters
        visited = max(round(float(shape["experts_per_token"]) + more), 1)
        shape["experts_per_token"] = min(float(visited), float(shape["experts"]))
        label = f"{_size(parameters)} A{_size(active)} mixture"
    source = f"chosen: shape of {nearest}, with as many experts as fill the size"
    return Scenario.sourced(label, shape, dict.fromkeys(shape, source))


def _size(parameters: float) -> str:
    """Return a number of parameters as sizes of models are written: 70B, 1.2T."""
    return f"{parameters / 1e12:.4g}T" if parameters >= 1e12 else f"{parameters / 1e9:.4g}B"


@cache
def family() -> tuple[tuple[float, float], ...]:
    """Return the size and depth of every model of the family."""
    shapes = [architecture(name) for name in FAMILY]
    return tuple((evaluate(shape, "parameters")["parameters"], float(shape["layers"])) for shape in shapes)


def _interpolated(parameters: float) -> float:
    """Return the depth at a size, linear on logarithmic axes."""
    known = family()
    above = next((i for i, (size, _) in enumerate(known) if size >= parameters), len(known) - 1)
    (size, depth), (next_size, next_depth) = known[max(above, 1) - 1], known[max(above, 1)]
    slope = math.log(next_depth / depth) / math.log(next_size / size)
    return depth * (parameters / size) ** slope


@cache
def mixtures() -> Mapping[str, float]:
    """Return the size of every known mixture whose step time is modelled."""
    rows = table("architectures").filter(pl.col("experts") > 1.0).collect()
    sizes = {}
    for name in rows["architecture"]:
        shape = architecture(name)
        try:
            sizes[name] = evaluate(shape, "parameters")["parameters"]
        except (MissingQuantity, ScenarioError):
            continue
    return {name: size for name, size in sizes.items() if is_plain(architecture(name))}


def is_plain(shape: Scenario) -> bool:
    """Return whether every layer of a model attends to all tokens or to a window."""
    odd = ("linear_attention_layers", "index_heads", "gated_attention")
    return (
        all(shape.get(name, 0.0) == 0.0 for name in odd) and shape.get("attention_layers", shape.layers) == shape.layers
    )
