"""Models of training runs: the shape of a row, completed by the table of architectures."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import polars as pl

from factorykit.data.identifiers import identify, known_key, letters
from factorykit.data.tables import table
from factorykit.engine.evaluate import evaluate
from factorykit.engine.providers.constants import constants
from factorykit.model.performance import source_terms
from factorykit.model.performance.run_cells import SHAPE, STATES, software_year

IDENTIFYING: Final = ("layers", "hidden", "heads")
"""Columns that differ between models."""
MAX_SIZE_ROUNDING, LEAST_LETTERS = 0.1, 4
"""Deviation of the size in a name from the parameters, and letters by which a name without a size is known."""
DEFAULT_HEAD_SIZE: Final = 128.0
"""Size of a head where a source states no number of heads."""
SHORT_SEQUENCE, LONG_SEQUENCE, LONG_YEAR = 2048.0, 4096.0, 2023.6
"""Tokens of a sequence where a source does not state them: of GPT-3, and since Llama 2."""
MAX_UNGATED_DEVIATION: Final = 0.01
"""Deviation of the feed-forward width from four hidden sizes, as in GPT, above which a feed-forward is taken as gated
where a source does not state it."""
DEFAULT_VOCABULARY: Final = 51_200.0
"""Padded GPT-2 vocabulary, where a source states none."""
LEAST_GAIN: Final = 0.02
"""Share of the stated parameters that one dense layer less has to explain."""


def usual_sequence_length(year: float) -> float:
    """Return the tokens of a sequence where a source does not state them, by the year of the software."""
    return LONG_SEQUENCE if year >= LONG_YEAR else SHORT_SEQUENCE


def completed_shape(row: dict[str, Any], assumed: list[str]) -> dict[str, Any]:
    """Return a row with the shape of the known model of its name, or of a dense one of its size, as far as possible."""
    row = shape_by_name(row)
    sizes = re.findall(r"[ax]?\d+\.?\d* ?[bm]\b", str(row.get("model")).lower())  # of a mixture, that of experts, too
    total = row.get("total_params") or (source_terms.number(sizes[0]) if len(sizes) == 1 else None)
    is_dense = not (row.get("experts") or row.get("ep")) and row.get("active_params") in (None, total)
    if is_dense and total and not (row.get("layers") or row.get("hidden")):
        assumed += ["layers", "hidden_size"]
        row["layers"] = max(float(round((total / (12.0 * DEFAULT_HEAD_SIZE**2)) ** (1.0 / 3.0))), 1.0)
        row["hidden"] = DEFAULT_HEAD_SIZE * row["layers"]
    if row.get("seq_len") is None:
        assumed.append("sequence_length")
        row["seq_len"] = usual_sequence_length(software_year(row) or constants()["software_year"])
    if row.get("heads") is None and row.get("hidden"):
        assumed.append("attention_heads")
        row["heads"] = _default_heads(row["hidden"], row.get("head_dim") or DEFAULT_HEAD_SIZE, row.get("tp") or 1.0)
    return row


def shape_by_name(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with the missing columns of its shape, where the tables have a model of its name.

    The layers, hidden size and heads that the row states must be those of that model; otherwise it is another one.
    """
    known = _known_shape(str(row.get("model") or "")) or _sole_shape(row)
    if any(row.get(name) not in (None, "", known.get(SHAPE[name])) for name in IDENTIFYING):
        return row
    shape = {column: known[name] for column, name in SHAPE.items() if name in known}
    states = {name: value for name, value in known.items() if name in STATES and value is not None}
    return {**row, **states, **{name: value for name, value in shape.items() if row.get(name) in (None, "")}}


@cache
def models_measured(parts: tuple[str, ...]) -> int:
    """Return the number of known models that have any of these parts of a shape and a measured run."""
    rows = table("training_runs").select("model", "kind").unique().collect().iter_rows(named=True)
    named = {row["model"]: shape_by_name(row) for row in rows if row["kind"] in ("throughput", "mlperf")}
    return len({identify("architecture", name) for name, row in named.items() if any(map(row.get, parts))})


def quantities(row: Mapping[str, Any], assumed: list[str]) -> dict[str, float | None]:
    """Return the quantities of a completed row's model."""
    known = _known_model(row)
    is_mixture = (row.get("experts") or 0.0) > 1.0
    public = known if is_mixture and row.get("kv_heads") in (None, known.get("kv_heads")) else {}
    defaults = {"vocab": "vocabulary_size", "mlp_gated": "gated_ffn"}
    if not public and "attention_heads" not in assumed:
        defaults["kv_heads"] = "kv_heads"
    assumed += [name for column, name in defaults.items() if row.get(column) is None]
    feed_forward = _feed_forward(row, public, assumed)
    attending = row["layers"] - (row.get("linear_attention_layers") or 0.0)
    states = dict.fromkeys(STATES, 0.0) | {"attention_layers": attending, "ffn_layers": row["layers"]}
    return {
        **states,
        **{name: float(row[name]) for name in STATES if row.get(name) is not None},
        **_attention(row, known, public),
        **feed_forward,
        "layers": row["layers"],
        "hidden_size": row["hidden"],
        "vocabulary_size": row.get("vocab") or DEFAULT_VOCABULARY,
        "tied_embeddings": 1.0 - feed_forward["gated_ffn"],
        "mtp_layers": row.get("mtp_layers") or 0.0,
        "sequence_length": row["seq_len"],
        "stated_parameters": row.get("total_params") or None,
    }


def _attention(row: Mapping[str, Any], known: Mapping[str, Any], public: Mapping[str, Any]) -> dict[str, float]:
    """Return the heads, latent ranks and window; ``public`` is the known model if it has the row's heads."""
    heads = row["heads"]
    head_size = row.get("head_dim") or public.get("head_size") or row["hidden"] / heads
    return {
        "attention_heads": heads,
        "kv_heads": row.get("kv_heads") or public.get("kv_heads") or heads,
        "head_size": head_size,
        "value_head_size": public.get("value_head_size") or head_size,
        **{name: public.get(name) or 0.0 for name in ("rope_head_size", "q_lora_rank", "kv_lora_rank")},
        **{name: known.get(name) or 0.0 for name in ("attention_window", "windowed_layers_share")},
    }


def _feed_forward(row: Mapping[str, Any], public: Mapping[str, Any], assumed: list[str]) -> dict[str, float]:
    """Return the widths of feed-forwards and experts, and the number of experts."""
    experts, expert_width = row.get("experts") or 0.0, row.get("moe_ffn") or 0.0
    width = row.get("ffn") or (expert_width if experts > 1.0 else 0.0)
    if not width:
        width = 4.0 * row["hidden"]
        assumed.append("ffn_size")
    dense = public.get("dense_layers") or 0.0
    deviates = abs((expert_width or width) / row["hidden"] - 4.0) > MAX_UNGATED_DEVIATION
    return {
        "ffn_size": width,
        "gated_ffn": float(deviates if row.get("mlp_gated") is None else row["mlp_gated"]),
        "experts": experts,
        "experts_per_token": row.get("top_k") or 0.0,
        "shared_experts": row.get("shared_experts") or 0.0,
        "expert_ffn_size": expert_width or width,
        "expert_biases": public.get("expert_biases") or 0.0,
        # A model that was cut has as large a share of dense layers, but one.
        "dense_layers": max(float(round(dense * row["layers"] / public["layers"])), 1.0) if dense else 0.0,
    }


def _default_heads(hidden: float, size: float, tensor: float) -> float:
    """Return the number of heads of about a size that tensor parallelism divides, and that divides the hidden size.

    >>> _default_heads(8192.0, 128.0, 8.0), _default_heads(13824.0, 128.0, 8.0)
    (64.0, 96.0)
    """
    rounded = max(float(round(hidden / size)), 1.0)
    if rounded % tensor == 0.0:
        return rounded
    possible = [heads for heads in range(int(tensor), int(2.0 * rounded) + 1, int(tensor)) if hidden % heads == 0.0]
    return float(min(possible, key=lambda heads: abs(math.log(heads / rounded)))) if possible else rounded


@cache
def _by_name() -> Mapping[str, Mapping[str, Any]]:
    return {row["architecture"]: row for row in table("architectures").collect().iter_rows(named=True)}


@cache
def _known_shape(model: str) -> Mapping[str, Any]:
    key = known_key("architecture", model)
    return _by_name()[key] if key else {}


def _known_model(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the known model of a row's name if it is as wide, cut or padded as it may be, or the first of its size."""
    named = _known_shape(str(row.get("model") or ""))
    if all(row[name] == named.get(SHAPE[name]) for name in IDENTIFYING[1:]):
        return named
    size = {"hidden_size": row["hidden"], "attention_heads": row["heads"], "vocabulary_size": row.get("vocab") or 0.0}
    return next((known for known in _by_name().values() if size.items() <= known.items()), {})


def _sole_shape(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the only known model whose name begins with that of a row and has its size, layers, width and experts.

    >>> _sole_shape({"model": "gpt-oss", "total_params": 117e9})["architecture"]
    'gpt_oss_120b'
    """
    start = letters("architecture", str(row.get("model") or ""))
    matching = []
    for shape in _by_name().values():
        size, total = re.search(r"(\d+\.?\d*)b", shape["name"].lower()), row.get("total_params")
        near = not (total and size) or abs(float(size[1]) * 1e9 / total - 1.0) < MAX_SIZE_ROUNDING
        same = all(row.get(name) in (None, "", shape[SHAPE[name]]) for name in (*IDENTIFYING, "experts"))
        if near and same and letters("architecture", shape["name"]).startswith(start):
            matching.append(shape)
    return matching[0] if len(start) >= LEAST_LETTERS and len(matching) == 1 else {}


def nearest_to_stated_parameters(ready: pl.DataFrame) -> pl.DataFrame:
    """Return scenarios with one embedding or two, and with fewer dense layers, as meets the stated parameters best.

    Cut models keep fewer dense layers than the whole one.
    """
    stated = ready["stated_parameters"]
    best = ready.select("tied_embeddings", "dense_layers", miss=pl.lit(math.inf))
    cuts = (0.0, 1.0, 2.0, 3.0) if (ready["dense_layers"] > 0.0).any() else (0.0,)
    for cut, tied in itertools.product(cuts, (0.0, 1.0)):
        tried = ready.with_columns(pl.lit(tied).alias("tied_embeddings"), (pl.col("dense_layers") - cut).clip(0.0))
        miss = (evaluate(tried, "parameters")["parameters"] / stated - 1.0).abs() + cut * LEAST_GAIN
        nearer = (miss < best["miss"]).fill_null(value=False)
        tried = tried.select("tied_embeddings", "dense_layers", miss=miss)
        best = best.with_columns(pl.when(nearer).then(tried[name]).otherwise(name).alias(name) for name in best.columns)
    return ready.with_columns(best["tied_embeddings"], best["dense_layers"]).drop("stated_parameters")
