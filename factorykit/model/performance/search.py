"""Every layout of a model over a cluster that works and fits, best first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from factorykit import datasets
from factorykit.errors import ScenarioError, UnknownName, unknown
from factorykit.model.engine import rules
from factorykit.model.engine.chain import chain, choice
from factorykit.model.engine.evaluate import checked
from factorykit.model.engine.run import columns, fold
from factorykit.model.supply.chips import specification
from factorykit.model.supply.fitted import constants
from factorykit.quantities import quantity, vocabulary

if TYPE_CHECKING:
    import polars as pl

CHOICES: Final[Mapping[str, tuple[Any, ...]]] = {
    "tensor_parallel": (1, 2, 4, 8, 16, 32, 64),
    "pipeline_parallel": (),
    "context_parallel": (1, 2, 4, 8, 16),
    "virtual_stages": (),
    "expert_parallel": (),
    "micro_batch_size": (1, 2, 4, 8, 16),
    "zero_stage": (0, 1, 2, 3),
    "recompute": ("none", "selective", "full"),
    "schedule": ("1f1b", "zb1p", "dualpipe"),
}
"""What is tried for each part of a layout; an empty tuple means every divisor of what it splits."""
OUTPUTS: Final = (
    "data_parallel",
    "micro_batches",
    "step_s",
    "step_low_s",
    "step_high_s",
    "predicted_mfu",
    "pipeline_bubble",
    "memory_peak_bytes",
    "fits",
)
BEST_IS_MOST: Final = ("predicted_mfu", "mfu", "goodput", "model_flop_per_s_per_accelerator")
"""Objectives of which more is better."""


def search(
    model: str | Mapping[str, Any],
    cluster: Mapping[str, Any],
    *,
    global_batch_size: float,
    objective: str = "step_s",
    choices: Mapping[str, Iterable[Any]] | None = None,
    keep_excluded: bool = False,
) -> pl.LazyFrame:
    """List every layout of a model over a cluster that works and fits, best first.

    Parameters
    ----------
    model
        Name of a row of the ``architectures`` table, or a mapping of the quantities of an architecture with
        ``sequence_length`` (4,096 tokens for a name, unless the cluster says otherwise).
    cluster
        A mapping with ``accelerators``, ``accelerator`` and, if it is not bf16, ``precision``: that of a preset names
        no chip, so ``{**preset("meta_24k"), "accelerator": "h100_sxm"}``. Further quantities, such as
        ``scale_out_bytes_per_s``, ``tokens`` or ``rental_usd_per_accelerator_h``, count.
    global_batch_size
        Sequences of one optimizer step.
    objective
        Quantity that makes a layout better: the least of it is best, or the most of ``predicted_mfu``. Times and costs
        of a whole run follow from the step time if the cluster gives ``tokens`` and what they need.
    choices
        Values to try for parts of a layout instead of the usual ones: ``{"zero_stage": [1], "recompute": ["full"]}``.
    keep_excluded
        Whether to keep the layouts that a rule excludes, after the others, with the rule in ``excluded_by``.

    Returns
    -------
    polars.LazyFrame
        One row a layout: its parts, ``data_parallel``, ``micro_batches``, ``step_s`` with interval [s],
        ``predicted_mfu``, ``pipeline_bubble``, ``memory_peak_bytes`` [byte], ``fits``, the objective, and ``pareto``:
        whether no other layout is both as fast and as small. With ``keep_excluded`` also ``excluded_by``. Where no
        layout works there is no row; ``keep_excluded`` says why.

    Raises
    ------
    UnknownName, UnknownQuantity, MissingQuantity, ScenarioError
        If a name is unknown, a value is out of bounds, or inputs are missing.

    Examples
    --------
    >>> best = search("gpt3_175b", {"accelerators": 512, "accelerator": "a100_sxm_80gb"}, global_batch_size=1536)
    >>> best.select("tensor_parallel", "pipeline_parallel", "fits").collect().row(0)
    (8.0, 4.0, 1.0)
    """
    import polars as pl

    fixed, using = _scalars(model, cluster, global_batch_size)
    tried = _tried(fixed, choices or {})
    if objective not in vocabulary():
        quantity(objective)
    rival = {"training_s": choice("training_s", "training_stepped_s"), "mfu": choice("mfu", "predicted_mfu")}
    rival = {name: other for name, other in rival.items() if name not in fixed} | using
    wanted = tuple(dict.fromkeys((*OUTPUTS, objective)))
    given = {*fixed, *tried}
    steps = chain(given, wanted, rival)
    known, left = fold(steps, {**constants(), **fixed})
    rules.check({name: value for name, value in known.items() if name not in {*CHOICES, *rules.COMPUTED}})
    grid = _grid(tried, fixed)
    rule = _rule(fixed)
    lazy = grid.with_columns(rule.alias("excluded_by"))
    if not keep_excluded:
        lazy = lazy.filter(pl.col("excluded_by").is_null())
    for layer in columns(left):
        lazy = lazy.with_columns(layer)
    computed = {step.quantity for step in left} | set(tried)
    plain = [pl.lit(known[name]).alias(name) for name in wanted if name not in computed]
    lazy = lazy.with_columns(
        *plain,
        pl.when(pl.col("excluded_by").is_null() & (pl.col("fits") < 1.0))
        .then(pl.lit("memory"))
        .otherwise("excluded_by")
        .alias("excluded_by"),
    )
    if keep_excluded:
        lazy = lazy.with_columns(
            pl.when(pl.col("excluded_by").is_null() | (pl.col("excluded_by") == "memory")).then(name).alias(name)
            for name in wanted
        )
    else:
        lazy = lazy.filter(pl.col("excluded_by").is_null())
    lazy = lazy.sort(
        pl.col("excluded_by").is_not_null(), objective, descending=[False, objective in BEST_IS_MOST], nulls_last=True
    )
    works = pl.col("excluded_by").is_null()
    smallest = pl.when(works).then("memory_peak_bytes").sort_by("step_s", nulls_last=True).cum_min().shift(1)
    rank = pl.col("step_s").rank("ordinal").cast(pl.Int64) - 1
    pareto = works & (pl.col("memory_peak_bytes") < smallest.gather(rank).fill_null(math.inf))
    kept = [*tried, *(name for name in wanted if name not in tried), "pareto"]
    return lazy.with_columns(pareto.fill_null(value=False).alias("pareto")).select(
        *kept, *(["excluded_by"] if keep_excluded else [])
    )


def _scalars(
    model: str | Mapping[str, Any], cluster: Mapping[str, Any], global_batch_size: float
) -> tuple[dict[str, Any], dict[str, str]]:
    if not isinstance(cluster, Mapping):
        raise ScenarioError(
            f"cluster {cluster!r} is no mapping; give {{'accelerators': 512, 'accelerator': 'h100_sxm'}}"
        )
    shape = _architecture(model) if isinstance(model, str) else dict(model)
    values, using = checked({**shape, **cluster, "global_batch_size": global_batch_size})
    precision = str(values.setdefault("precision", "bf16"))
    if "accelerator" in values:
        values = {**specification(str(values.pop("accelerator")), precision), **values}
    elif "gemm_ceiling" not in values:
        raise ScenarioError("the cluster names no accelerator; give one, e.g. accelerator = 'h100_sxm'")
    if "accelerators" not in values:
        raise ScenarioError("the cluster gives no accelerators; give their number and the name of one")
    for name in ("accelerators", "global_batch_size", "layers"):
        if values.get(name, 1.0) != math.floor(values.get(name, 1.0)):  # type: ignore[arg-type]
            raise ScenarioError(f"{name} = {values[name]!r} is not whole")
    return values, using


def _architecture(name: str) -> dict[str, Any]:
    rows = datasets.table("architectures").collect()
    found = rows.filter(architecture=name)
    if found.is_empty():
        raise UnknownName(unknown("architecture", name, rows["architecture"]))
    row = found.row(0, named=True)
    shape = {key: value for key, value in row.items() if key in vocabulary() and value is not None}
    return {"sequence_length": 4096.0, **shape}


def _divisors(number: float) -> tuple[int, ...]:
    whole = int(number)
    return tuple(part for part in range(1, whole + 1) if whole % part == 0)


def _tried(fixed: dict[str, Any], choices: Mapping[str, Iterable[Any]]) -> dict[str, list[Any]]:
    """Return the values to try by part of a layout; what the cluster or the model fixes is not tried."""
    strangers = [name for name in choices if name not in CHOICES]
    if strangers:
        raise UnknownName(unknown("part of a layout", strangers[0], CHOICES))
    experts = fixed.get("experts", 0.0)
    usual = {
        **CHOICES,
        "pipeline_parallel": tuple(p for p in _divisors(fixed["accelerators"]) if p <= fixed.get("layers", 1.0)),
        "virtual_stages": _divisors(fixed.get("layers", 1.0)),
        "expert_parallel": _divisors(experts) if experts > 1 else (1,),
    }
    tried = {}
    for name, values in usual.items():
        if name in fixed:
            continue
        row, wanted = quantity(name), choices.get(name, values)
        if isinstance(wanted, str) or not isinstance(wanted, Iterable):
            raise ScenarioError(f"{name}: {wanted!r} is one value; give a list, [{wanted!r}]")
        tried[name] = [row.check(value) for value in wanted]
        if not tried[name]:
            raise ScenarioError(f"{name}: nothing to try; give at least one value")
    return tried


def _grid(tried: Mapping[str, list[Any]], fixed: Mapping[str, Any]) -> pl.LazyFrame:
    """Return every combination, thinned as soon as a rule can tell."""
    import polars as pl

    grid: pl.LazyFrame | None = None
    for name, values in tried.items():
        part = pl.LazyFrame({name: values}, schema={name: pl.String if quantity(name).is_text else pl.Float64})
        grid = part if grid is None else grid.join(part, how="cross")
    if grid is None:
        raise ScenarioError("every part of the layout is fixed; use evaluate for a single layout")
    del fixed
    return grid


def _rule(fixed: Mapping[str, Any]) -> pl.Expr:
    """Return the name of the first rule that excludes a layout, or null."""
    import polars as pl

    def part(name: str) -> Any:
        return pl.lit(fixed[name]) if name in fixed else pl.col(name)

    tensor, pipeline, context = (part(f"{kind}_parallel") for kind in ("tensor", "pipeline", "context"))
    experts, chunks, size = part("expert_parallel"), part("virtual_stages"), part("micro_batch_size")
    count, layers, heads = fixed["accelerators"], fixed["layers"], fixed["attention_heads"]
    kv = fixed.get("kv_heads", heads)
    routed = fixed.get("experts", 0.0)
    replicas = count / (tensor * pipeline * context)
    batches = fixed["global_batch_size"] / (size * replicas)
    stage = (layers / pipeline).ceil()
    schedule, zero = part("schedule"), part("zero_stage")
    whole = replicas == replicas.floor()
    named = {
        "tensor, pipeline and context parallel divide the accelerators": whole & (replicas >= 1.0),
        "heads divide by tensor parallel": (heads % tensor == 0) & ((kv % tensor == 0) | (tensor % kv == 0)),
        "tensor parallel stays in the scale-up domain": tensor <= fixed.get("scale_up_domain", math.inf),
        "every stage has layers": (pipeline <= layers) & (stage * (pipeline - 1.0) < layers),
        "the sequence divides by twice context parallel": (context == 1.0)
        | (fixed["sequence_length"] % (2.0 * context) == 0),
        "the batch divides into micro-batches": (batches >= 1.0) & (batches == batches.floor()),
        "virtual stages divide the layers of a stage": (chunks == 1.0)
        | ((pipeline > 1.0) & (layers % (pipeline * chunks) == 0)),
        "interleaving needs micro-batches in multiples of the stages": (chunks == 1.0) | (batches % pipeline == 0),
        "experts divide over expert parallel": (experts == 1.0)
        | ((routed % experts == 0) & ((count / pipeline) % experts == 0)),
        "a pipeline keeps its gradients and weights whole": (pipeline == 1.0) | (zero < 2.0),
        "zero bubble needs a pipeline without interleaving": (schedule != "zb1p")
        | ((pipeline > 1.0) & (chunks == 1.0)),
        "DualPipe needs an even pipeline, twice as many micro-batches and no interleaving": (schedule != "dualpipe")
        | ((pipeline > 1.0) & (pipeline % 2.0 == 0) & (batches >= 2.0 * pipeline) & (chunks == 1.0)),
    }
    verdict = pl.lit(None, dtype=pl.String)
    for name, holds in reversed(named.items()):
        verdict = pl.when(~holds).then(pl.lit(name)).otherwise(verdict)
    return verdict
