"""Every layout of a model over a cluster that works and fits, best first."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from factorykit.core.errors import MissingQuantity, ScenarioError, UnknownName, unknown_name_message
from factorykit.core.validation import as_list, boolean, mapping
from factorykit.core.vocabulary import quantity
from factorykit.engine import evaluate, rules
from factorykit.engine.chain import OF_A_LAYOUT, Step, ask
from factorykit.engine.grids import ROWS_A_BLOCK, Grid
from factorykit.engine.read import checked, chosen, value
from factorykit.engine.run import fold, parted, widened
from factorykit.model.performance.activation_checkpointing import least_recomputed
from factorykit.model.performance.calibration import Calibration
from factorykit.model.performance.layout_features import LAYOUT_FEATURES, LOCAL_CORRECTION
from factorykit.model.performance.layouts import BEST_IS_MOST, drawn_by
from factorykit.model.scenario.architectures import architecture
from factorykit.model.uncertainty.study import backends
from factorykit.model.uncertainty.study.parts import Design, column_of
from factorykit.model.uncertainty.study.study import answered

if TYPE_CHECKING:
    import polars as pl

    from factorykit.core.names import ArchitectureName, QuantityName

TENSOR_WAYS: Final = (1, 2, 4, 8, 16, 32, 64)
CHOICES: Final[Mapping[str, tuple[Any, ...]]] = {
    "tensor_parallel": TENSOR_WAYS,
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
    "recompute_share",
)
PART_OF_A_SEQUENCE: Final = 4096.0
"""Tokens that a rank keeps at least where a long sequence is split further than the usual ways."""
LONG_WAYS: Final = (32, 64, 128, 256)
UNEVEN_STAGES: Final = range(1, 9)
"""Chunks a stage that are tried whether or not they divide the layers: Llama 3.1 405B has 126 on 16 stages of eight."""
MOST_DIVIDED: Final = 1e12
"""Of which all divisors are tried, up to its root."""


def search(
    model: ArchitectureName | str | Mapping[str, Any],
    cluster: Mapping[str, Any],
    *,
    global_batch_size: float,
    objective: QuantityName | str = "step_s",
    choices: Mapping[str, Iterable[Any]] | None = None,
    keep_excluded: bool = False,
    out: str | Path | None = None,
    engine: str = "local",
    using: Mapping[str, str] | None = None,
    assume: bool = False,
    calibration: Mapping[str, float] | None = None,
) -> pl.LazyFrame:
    """List every layout of a model over a cluster that works and fits, best first.

    Parameters
    ----------
    model
        Name of a model that :func:`factorykit.architecture` knows, or a mapping of the quantities of one with
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
    out, engine
        A Parquet file, or the folder of a study and who makes its parts, as in :func:`factorykit.sweep`; what works is
        ranked when it is read.
    using
        Which model stands for a quantity that has rivals, as in :func:`factorykit.evaluate`.
    assume
        Whether sourced defaults fill what nobody gave, as in :func:`factorykit.evaluate`.
    calibration
        What :func:`factorykit.calibrate` found, as in :func:`factorykit.validate`.

    Returns
    -------
    polars.LazyFrame
        One row a layout: its parts, ``data_parallel``, ``micro_batches``, ``step_s`` with interval [s],
        ``predicted_mfu``, ``pipeline_bubble``, ``memory_peak_bytes`` [byte], ``fits``, ``recompute_share`` (where
        ``recompute`` is none: the least that lets the layout fit), the objective, and ``pareto``:
        whether no other layout is both as fast and as small. With ``keep_excluded`` also ``excluded_by``. Where no
        layout works there is no row; ``keep_excluded`` says why. Listed is what the chip has room for beside the
        process; ``fits`` is 0.5 where with buffers and fragments a run may still end for want of memory.

    Raises
    ------
    UnknownName, UnknownQuantity, MissingQuantity, ScenarioError
        If a name is unknown, a value is out of bounds, or inputs are missing.

    Examples
    --------
    >>> best = search("gpt3_175b", {"accelerators": 512, "accelerator": "a100_sxm_80gb"}, global_batch_size=1536)
    >>> best.select("tensor_parallel", "pipeline_parallel", "fits").collect().row(0)
    (8.0, 8.0, 0.5)
    """
    moved = {} if calibration is None else mapping("calibration", calibration)
    fixed, given = _scalars(model, {**mapping("cluster", cluster), **moved}, global_batch_size)
    choices = {} if choices is None else mapping("choices", choices)
    tried = _tried(fixed, choices)
    rivals = {name: rival for name, rival in OF_A_LAYOUT.items() if name not in fixed} | given | chosen(using)
    kept = boolean("keep_excluded", keep_excluded)
    paced = calibration if isinstance(calibration, Calibration) else None
    layouts = Layouts(fixed, tried, rivals, quantity(objective).name, tuple(choices), kept, assume, paced)
    if out is None and backends.check(engine) == "local":
        return layouts.ranked(layouts.judged(_grid(tried)))
    return layouts.ranked(answered(layouts, out, "search", engine))


@dataclass(frozen=True)
class Layouts(Design):
    """Every combination of the parts of a layout that are tried."""

    fixed: Mapping[str, Any]
    tried: Mapping[str, list[Any]]
    using: Mapping[str, str]
    objective: str
    asked_for: tuple[str, ...]
    keep_excluded: bool
    assume: bool
    calibration: Calibration | None = None

    @property
    def rows(self) -> int:
        """Layouts tried, of which a part may hold few."""
        return self._blocks.rows

    @property
    def parts(self) -> int:
        """Blocks of what is tried."""
        return self._blocks.blocks

    @cached_property
    def _blocks(self) -> Grid:
        return Grid({name: column_of(name, values) for name, values in self.tried.items()}, ROWS_A_BLOCK)

    def part(self, number: int) -> pl.DataFrame:
        """Return those of a block that work."""
        import polars as pl

        shared = {name: pl.lit(value) for name, value in self._blocks.slow(number).items()}
        block = self._blocks.fast(self._blocks.stretch(number)).with_columns(**shared)
        return self.judged(block.lazy().select(list(self.tried))).collect()

    @property
    def _told(self) -> dict[str, None]:
        return dict.fromkeys((*OUTPUTS, self.objective))

    @property
    def _wanted(self) -> tuple[str, ...]:
        return tuple(
            dict.fromkeys((*self._told, "memory_needed_bytes", *(LAYOUT_FEATURES if self.calibration else ())))
        )

    @property
    def _settled(self) -> set[str]:
        """Quantities that are found for each layout."""
        share = {"recompute_share"} if "recompute" in self.tried and "recompute_share" not in self.fixed else set()
        return share | (set(LOCAL_CORRECTION) if self.calibration else set())

    @cached_property
    def _folded(self) -> tuple[dict[str, Any], tuple[Step, ...]]:
        """What is known of every layout, and the steps that hang on it."""
        fixed = dict(self.fixed)
        chain = ask({*fixed, *self.tried, *self._settled}, self._wanted, self.using, fixed, assume=self.assume)
        known, left = fold(chain.steps, fixed)
        rules.check(known, fixed)
        return known, left

    def judged(self, grid: pl.LazyFrame) -> pl.LazyFrame:
        """Return the layouts of a grid that work and fit, in no order; with the others where these are kept."""
        import polars as pl

        fixed, tried, wanted, settled = self.fixed, self.tried, self._wanted, self._settled
        known, left = self._folded
        first, then = parted(left, rules.LOOKED_AT)
        lazy = widened(grid, first)
        lazy = lazy.filter(*_usual({name: pl.lit(word) for name, word in fixed.items()}, tried, self.asked_for))
        there = {*tried, *(step.quantity for step in first)}
        lazy = lazy.with_columns(rules.broken({*known, *there}, fixed, known).alias("excluded_by"))
        if not self.keep_excluded:
            lazy = lazy.filter(pl.col("excluded_by").is_null())
        if "recompute_share" in settled:
            lazy = least_recomputed(lazy, parted(then, {"memory_peak_bytes"})[0], known["accelerator_memory_bytes"])
        if self.calibration:
            lazy, then = drawn_by(self.calibration, lazy, then, known)
        lazy = widened(lazy, then)
        computed = {step.quantity for step in left} | {*tried, *settled}
        plain = [pl.lit(known[name]).alias(name) for name in wanted if name not in computed]
        needed = pl.col("memory_needed_bytes")
        lazy = lazy.with_columns(
            *plain,
            pl.when(pl.col("excluded_by").is_null() & (needed > known["accelerator_memory_bytes"]))
            .then(pl.lit("memory"))
            .otherwise("excluded_by")
            .alias("excluded_by"),
        )
        if self.keep_excluded:
            lazy = lazy.with_columns(
                pl.when(pl.col("excluded_by").is_null() | (pl.col("excluded_by") == "memory")).then(name).alias(name)
                for name in wanted
            )
        else:
            lazy = lazy.filter(pl.col("excluded_by").is_null())
        return lazy.select(*tried, *(name for name in self._told if name not in tried), "excluded_by")

    def ranked(self, lazy: pl.LazyFrame) -> pl.LazyFrame:
        """Return judged layouts with the best first, and which of them no other beats in time and memory at once."""
        import polars as pl

        works = pl.col("excluded_by").is_null()
        most = self.objective in BEST_IS_MOST
        lazy = lazy.sort(~works, self.objective, descending=[False, most], nulls_last=True)
        smallest = pl.when(works).then("memory_peak_bytes").sort_by("step_s", nulls_last=True).cum_min().shift(1)
        rank = pl.col("step_s").rank("ordinal").cast(pl.Int64) - 1
        pareto = works & (pl.col("memory_peak_bytes") < smallest.gather(rank).fill_null(math.inf))
        lazy = lazy.with_columns(pareto.fill_null(value=False).alias("pareto"))
        last = ["excluded_by"] if self.keep_excluded else []
        return lazy.select(pl.exclude("excluded_by", "pareto"), "pareto", *last)


def _scalars(
    model: str | Mapping[str, Any], cluster: Mapping[str, Any], global_batch_size: float
) -> tuple[dict[str, Any], dict[str, str]]:
    cluster = mapping("cluster", cluster)
    shape = {"sequence_length": 4096.0, **architecture(model)} if isinstance(model, str) else mapping("model", model)
    values, using = checked({**shape, **cluster, "global_batch_size": global_batch_size})
    values.setdefault("precision", "bf16")
    if "accelerator" not in values and "gemm_ceiling" not in values:
        raise ScenarioError("the cluster names no accelerator; give one, e.g. accelerator = 'h100_sxm'")
    if "accelerators" not in values:
        raise ScenarioError("the cluster gives no accelerators; give their number and the name of one")
    for name in ("accelerators", "global_batch_size", "layers"):
        if values.get(name, 1.0) != math.floor(values.get(name, 1.0)):  # type: ignore[arg-type]
            raise ScenarioError(f"{name} = {values[name]!r} is not whole")
        if values.get(name, 1.0) > MOST_DIVIDED:  # type: ignore[operator]
            raise ScenarioError(f"{name} = {values[name]:g} is more than {MOST_DIVIDED:g}, the most that is divided")
    return values, using


def _divisors(number: float) -> tuple[int, ...]:
    whole = int(number)
    small = [part for part in range(1, math.isqrt(whole) + 1) if whole % part == 0]
    return tuple(sorted({*small, *(whole // part for part in small)}))


def _domain(fixed: Mapping[str, Any]) -> float:
    """Return how many accelerators the fast fabric joins; tensor parallel is tried within it, further if asked."""
    try:
        return float(evaluate.answered(fixed, ("scale_up_domain",))[1]["scale_up_domain"])
    except MissingQuantity:
        return math.inf


def _tried(fixed: dict[str, Any], choices: Mapping[str, Iterable[Any]]) -> dict[str, list[Any]]:
    """Return the values to try by part of a layout; what the cluster or the model fixes is not tried."""
    strangers = [name for name in choices if name not in CHOICES]
    if strangers:
        raise UnknownName(unknown_name_message("part of a layout", strangers[0], CHOICES))
    experts = fixed.get("experts", 0.0)
    domain = _domain(fixed)
    usual = {
        **CHOICES,
        "tensor_parallel": tuple(ways for ways in TENSOR_WAYS if ways <= domain),
        "pipeline_parallel": tuple(p for p in _divisors(fixed["accelerators"]) if p <= fixed.get("layers", 1.0)),
        "context_parallel": (
            *CHOICES["context_parallel"],
            *(ways for ways in LONG_WAYS if ways * PART_OF_A_SEQUENCE <= fixed.get("sequence_length", 0.0)),
        ),
        "virtual_stages": sorted({*_divisors(fixed.get("layers", 1.0)), *UNEVEN_STAGES}),
        "expert_parallel": _divisors(experts) if experts > 1 else (1,),
    }
    tried = {}
    for name, values in usual.items():
        if name in fixed:
            continue
        row = quantity(name)
        tried[name] = [value(row, given) for given in as_list(name, choices.get(name, values))]
        if not tried[name]:
            raise ScenarioError(f"{name}: nothing to try; give at least one value")
    return tried


def _usual(fixed: Mapping[str, pl.Expr], tried: Collection[str], choices: Collection[str]) -> list[pl.Expr]:
    """Return what is tried unless somebody asks for another.

    Frameworks keep gradients and weights of a pipeline whole, and cut unlike chunks only where its stages are unlike.
    """
    import polars as pl

    part = {**fixed, **{name: pl.col(name) for name in tried}}
    if "layers" not in part:
        raise MissingQuantity(
            "the model has no layers; name one, or give the quantities of its architecture", ["layers"]
        )
    stages, layers = part["pipeline_parallel"], part["layers"]
    usual = {
        "zero_stage": (part["zero_stage"] < 2.0) | (stages == 1.0),
        "virtual_stages": (layers % stages != 0.0) | (layers % (stages * part["virtual_stages"]) == 0.0),
    }
    return [condition for name, condition in usual.items() if name in tried and name not in choices]


def _grid(tried: Mapping[str, list[Any]]) -> pl.LazyFrame:
    """Return every combination."""
    import polars as pl

    if not tried:
        raise ScenarioError("every part of the layout is fixed; use evaluate for a single layout")
    axes = [pl.LazyFrame({name: column_of(name, values)}) for name, values in tried.items()]
    return reduce(lambda grid, axis: grid.join(axis, how="cross"), axes)
