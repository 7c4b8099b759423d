"""What is to be trained: a known model, a configuration file, quantities, or a size with a shape that suits it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from factorykit.core.errors import MissingQuantity, ScenarioError, UnknownName, short_repr
from factorykit.core.validation import mapping
from factorykit.core.vocabulary import is_number, quantity
from factorykit.data.tables import table
from factorykit.engine.evaluate import evaluate
from factorykit.model.scenario.architectures import architecture
from factorykit.model.scenario.scenario import Scenario

SIZE: Final = re.compile(r"\s*([\d.]+\s*[kMBT])\s*(?:parameters?)?\s*(dense|mixture)?\s*")
FAMILY: Final = ("llama3_2_1b", "llama3_2_3b", "llama3_8b", "llama3_70b", "llama3_405b")
"""Dense models whose depth is interpolated for a size that nobody published: one family, five sizes."""
MOST_PARAMETERS: Final = 1e18
HEAD_SIZE: Final = 128.0
KV_HEADS: Final = 8.0
FFN_OVER_HIDDEN: Final = 3.5
"""Width of the feed-forward block over the hidden size in Llama 3 8B and 70B."""
EXPERTS_TOGETHER: Final = 8
"""Experts are added by as many, so that they divide over accelerators."""


def model_of(model: Any) -> Scenario:
    """Return a model as a part of a scenario that knows its sources.

    Parameters
    ----------
    model
        Name of a known model, path of a ``config.json``, a mapping of quantities, or a size: ``70e9``, ``"70B"``,
        ``"1T mixture"``.

    Raises
    ------
    UnknownName, ScenarioError

    Examples
    --------
    >>> model_of("llama3_70b").layers
    80.0
    >>> round(evaluate(model_of("30B dense"), "parameters")["parameters"] / 1e9, 1)
    30.0
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
        number = float(quantity("parameters").check(sized[1].replace(" ", "")))
        return mixture(number) if sized[2] == "mixture" else dense(number)
    if str(model).endswith(".json"):
        from factorykit.model.performance.hf_config import read_hf_config

        return read_hf_config(model)
    try:
        return architecture(str(model))
    except UnknownName as error:
        raise UnknownName(f"{error}; or give a config.json, or a size such as '70B' or '1T mixture'") from None


def dense(parameters: float) -> Scenario:
    """Return the shape of a dense model of this size: depth by interpolation in Llama 3, widths that fill the size.

    >>> dense(70.6e9).layers, dense(70.6e9).hidden_size
    (80.0, 8192.0)
    """
    if parameters > MOST_PARAMETERS:
        raise ScenarioError(f"parameters = {parameters:g} are more than {MOST_PARAMETERS:g}; no such model has a shape")
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
            f"parameters = {parameters:g}: with a vocabulary of {vocabulary:g} no layers are left; give a larger size"
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
    said = "chosen: depth by interpolation between the sizes of Llama 3, widths that fill the size"
    return Scenario.sourced(f"{parameters / 1e9:.3g}B dense", shape, dict.fromkeys(shape, said))


def mixture(parameters: float) -> Scenario:
    """Return the shape of a mixture of this size: the known one nearest in size, with more or fewer experts.

    >>> shape = mixture(1e12)
    >>> shape.experts, round(evaluate(shape, "parameters")["parameters"] / 1e12, 2)
    (376.0, 1.01)
    """
    sizes = mixtures()
    nearest = min(sizes, key=lambda name: abs(math.log(sizes[name] / parameters)))
    shape = dict(architecture(nearest))
    before, fewer = float(shape["experts"]), float(shape["experts"]) - 1.0
    one = sizes[nearest] - evaluate(shape | {"experts": fewer}, "parameters")["parameters"]
    wanted = before + (parameters - sizes[nearest]) / one
    experts = max(round(wanted / EXPERTS_TOGETHER), 1) * float(EXPERTS_TOGETHER)
    said = f"chosen: shape of {nearest}, with as many experts as fill the size"
    label = f"{parameters / 1e9:.4g}B mixture"
    return Scenario.sourced(label, shape | {"experts": experts}, dict.fromkeys(shape, said))


@cache
def family() -> tuple[tuple[float, float], ...]:
    """Return size and depth of every model of the family."""
    shapes = [architecture(name) for name in FAMILY]
    return tuple((evaluate(shape, "parameters")["parameters"], float(shape["layers"])) for shape in shapes)


def _interpolated(parameters: float) -> float:
    """Return the depth at a size, straight between neighbours on logarithmic axes and beyond the ends."""
    known = family()
    above = next((i for i, (size, _) in enumerate(known) if size >= parameters), len(known) - 1)
    (size, depth), (next_size, next_depth) = known[max(above, 1) - 1], known[max(above, 1)]
    slope = math.log(next_depth / depth) / math.log(next_size / size)
    return depth * (parameters / size) ** slope


@cache
def mixtures() -> Mapping[str, float]:
    """Return the size of every known mixture whose step time is modelled."""
    import polars as pl

    rows = table("architectures").filter(pl.col("experts") > 1.0).collect()
    found = {}
    for name in rows["architecture"]:
        shape = architecture(name)
        try:
            found[name] = evaluate(shape, "parameters")["parameters"]
        except (MissingQuantity, ScenarioError):
            continue
    return {name: size for name, size in found.items() if is_plain(architecture(name))}


def is_plain(shape: Scenario) -> bool:
    """Return whether the step time of a shape is modelled: every layer attends, to all tokens or a window."""
    odd = ("linear_attention_layers", "index_heads", "gated_attention")
    return (
        all(shape.get(name, 0.0) == 0.0 for name in odd) and shape.get("attention_layers", shape.layers) == shape.layers
    )
