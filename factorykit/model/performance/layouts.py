"""The best layout of a model over each number of accelerators of a chip: few hundred sensible ones are tried."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from factorykit.core.errors import MissingQuantity
from factorykit.core.vocabulary import quantity
from factorykit.engine import rules
from factorykit.engine.chain import OF_A_LAYOUT, Step, ask
from factorykit.engine.evaluate import answered
from factorykit.engine.run import fold, parted, widened
from factorykit.formulas import arguments
from factorykit.formulas.functions import maximum, minimum, where
from factorykit.model.performance.activation_checkpointing import least_recomputed
from factorykit.model.performance.layout_features import LAYOUT_FEATURES, LOCAL_CORRECTION

if TYPE_CHECKING:
    import polars as pl

    from factorykit.model.performance.calibration import Calibration

PARTS: Final = (
    "tensor_parallel",
    "pipeline_parallel",
    "context_parallel",
    "virtual_stages",
    "expert_parallel",
    "micro_batch_size",
    "zero_stage",
    "recompute",
    "schedule",
)
"""Parts of a layout, in the order in which they are told."""
SHARE: Final = "recompute_share"
CHOSEN: Final = ("step_s", "memory_peak_bytes", "fits")
SHORTEST_PIECE: Final = 4096.0
"""Tokens of a sequence below which nobody cuts it over accelerators."""
MOST_TENSOR_WAYS: Final = 16.0
MOST_EXPERT_WAYS: Final = 64.0
MOST_STAGES: Final = 64.0
BEST_IS_MOST: Final = ("predicted_mfu", "mfu", "goodput", "model_flop_per_s_per_accelerator")
"""Objectives that are maximised."""
POWERS: Final = tuple(2.0**i for i in range(11))


@dataclass(frozen=True, slots=True)
class Habit:
    """What somebody would try for a part of a layout: values, and what each has to meet beside what is fixed.

    The condition is read like that of a rule, on floats and terms alike.
    """

    values: tuple[Any, ...]
    holds: Callable[..., Any]


HABITS: Final = MappingProxyType(
    {
        "tensor_parallel": Habit(
            POWERS,
            lambda tensor_parallel, scale_up_domain: tensor_parallel <= minimum(scale_up_domain, MOST_TENSOR_WAYS),
        ),
        "pipeline_parallel": Habit(
            POWERS, lambda pipeline_parallel, layers: pipeline_parallel <= minimum(layers, MOST_STAGES)
        ),
        "context_parallel": Habit(
            POWERS,
            lambda context_parallel, sequence_length: (
                where(context_parallel > 1.0, sequence_length / context_parallel, SHORTEST_PIECE) >= SHORTEST_PIECE
            ),
        ),
        "virtual_stages": Habit((1.0, 2.0, 4.0, 8.0), lambda virtual_stages: virtual_stages >= 1.0),
        "expert_parallel": Habit(
            POWERS,
            lambda expert_parallel, experts: (
                where(
                    expert_parallel > 1.0,
                    where(experts > 1.0, experts % expert_parallel, 1.0)
                    + maximum(expert_parallel - MOST_EXPERT_WAYS, 0.0),
                    0.0,
                )
                == 0.0
            ),
        ),
        "micro_batch_size": Habit((1.0, 2.0, 4.0, 8.0), lambda micro_batch_size: micro_batch_size >= 1.0),
        "zero_stage": Habit((1.0, 2.0, 3.0), lambda zero_stage: zero_stage >= 1.0),
        "recompute": Habit(("none", "selective", "full"), lambda recompute: where(recompute == "", 0.0, 1.0) == 1.0),
        "schedule": Habit(
            ("1f1b", "dualpipe"), lambda schedule, experts: where(schedule == "dualpipe", experts, 2.0) > 1.0
        ),
    }
)
"""Powers of two, tensor parallel within the fast fabric, sequences cut into long pieces, DualPipe for mixtures."""
TOGETHER: Final = MappingProxyType(
    {
        "zero_stage": lambda zero_stage, pipeline_parallel: where(pipeline_parallel > 1.0, zero_stage, 1.0) == 1.0,
        "virtual_stages": lambda virtual_stages, pipeline_parallel: (
            where(pipeline_parallel > 1.0, 1.0, virtual_stages) == 1.0
        ),
    }
)
"""What a part that nobody asks for has to meet beside the others: gradients stay whole with a pipeline."""


def sensible(fixed: Mapping[str, Any], choices: Mapping[str, list[Any]], counts: Iterable[float] = ()) -> pl.LazyFrame:
    """Return the layouts that somebody would try, one row each, without the parts that are fixed: see `HABITS`.

    Where the batch is given, a pipeline may take up the odd part of a count that does not divide it.
    """
    import polars as pl

    known = {"experts": 0.0, "layers": 1.0, "scale_up_domain": _domain(fixed), **fixed}
    grid: pl.LazyFrame | None = None
    for name, habit in HABITS.items():
        if name in fixed:
            continue
        values: Iterable[Any] = choices.get(name) or _tried(habit, known)
        if name == "pipeline_parallel" and name not in choices and "global_batch_size" in fixed:
            values = _stages(min(float(known["layers"]), MOST_STAGES), counts)
        part = pl.LazyFrame({name: list(values)}, {name: pl.String if quantity(name).is_text else pl.Float64})
        grid = part if grid is None else grid.join(part, how="cross", maintain_order="left_right")
    if grid is None:
        return pl.LazyFrame({"tensor_parallel": [fixed["tensor_parallel"]]})
    for name, holds in TOGETHER.items():
        if name not in fixed and name not in choices:
            grid = grid.filter(holds(*(pl.lit(fixed[n]) if n in fixed else pl.col(n) for n in arguments(holds))))
    return grid


def sure_room(accelerator_memory_bytes: Any, memory_band: Any) -> Any:
    """Return the peak of memory up to which a layout surely fits: what a plan recomputes for."""
    return accelerator_memory_bytes / (1.0 + memory_band)


def _tried(habit: Habit, known: Mapping[str, Any]) -> list[Any]:
    _, *beside = arguments(habit.holds)
    return [value for value in habit.values if habit.holds(value, *(known[each] for each in beside))]


def best_layouts(
    fixed: Mapping[str, Any],
    counts: pl.DataFrame,
    choices: Mapping[str, list[Any]],
    rivals: Mapping[str, str],
    calibration: Calibration | None = None,
) -> pl.DataFrame:
    """Return the fastest layout that works and fits, one row per count.

    Parameters
    ----------
    fixed
        Quantities that are the same for all rows, with ``accelerator``, ``precision`` and the model.
    counts
        One row per count: ``accelerators`` and, where it is chosen, ``global_batch_size``.
    choices
        Values to try for parts of a layout, in place of the sensible ones.
    rivals
        Which model stands for a quantity.
    calibration
        What measured layouts say of those near them.

    Returns
    -------
    DataFrame
        ``counts``, the parts of the layout that are not fixed, ``layouts`` (how many work and fit). Where the search
        settles it, ``recompute_share``: with ``recompute`` none the least that lets the layout fit. A count without a
        layout that fits has null parts; one without a layout that works has no row. Calibrated ones have their pace.

    Raises
    ------
    MissingQuantity
        If the tables do not say of the chip what a layout needs.
    ScenarioError
        If the model itself is not modelled.
    """
    import polars as pl

    grid = sensible(fixed, choices, counts["accelerators"])
    grid = grid.select(name for name in grid.collect_schema() if name not in fixed)
    varied = [*counts.columns, *grid.collect_schema()]
    recomputed = [SHARE] if "recompute" in varied and SHARE not in fixed else []
    settled = [*recomputed, *(LOCAL_CORRECTION if calibration else ())]
    wanted = (*CHOSEN, *(LAYOUT_FEATURES if calibration else ()))
    chain = ask({*fixed, *varied, *settled}, wanted, OF_A_LAYOUT | dict(rivals), fixed, assume=True)
    known, left = fold(chain.steps, fixed)
    rules.check(known, fixed)
    first, then = parted(left, rules.LOOKED_AT)
    lazy = (
        counts.lazy().join(grid, how="cross", maintain_order="left_right") if grid.collect_schema() else counts.lazy()
    )
    lazy = widened(lazy, first)
    there = {*varied, *(step.quantity for step in first)}
    working = lazy.filter(rules.broken({*known, *there}, fixed, known).is_null()).collect()
    lazy = working.lazy()
    peak, _ = parted(then, {"memory_peak_bytes"})
    if recomputed:
        lazy = least_recomputed(lazy, peak, sure_room(known["accelerator_memory_bytes"], known["memory_band"]))
    memory, rest = parted(then, {"fits"})
    lazy = widened(lazy, memory)
    lazy = lazy.filter((pl.lit(known["fits"]) if "fits" in known else pl.col("fits")) >= 1.0)
    if calibration:
        lazy, rest = drawn_by(calibration, lazy, rest, known)
    lazy = widened(lazy, rest)
    step = pl.lit(known["step_s"]) if "step_s" in known else pl.col("step_s")
    parts = [*(name for name in PARTS if name in varied), *settled]
    told = [pl.col(name).get(step.arg_min(), null_on_oob=True).alias(name) for name in parts]
    found = lazy.group_by(counts.columns, maintain_order=True).agg(*told, pl.len().cast(pl.Int64).alias("layouts"))
    works = working.select(counts.columns).unique(maintain_order=True)
    return works.join(found.collect(), on=counts.columns, how="left", maintain_order="left").with_columns(
        pl.col("layouts").fill_null(0)
    )


def drawn_by(
    calibration: Calibration, layouts: pl.LazyFrame, steps: Sequence[Step], known: Mapping[str, Any]
) -> tuple[pl.LazyFrame, tuple[Step, ...]]:
    """Return layouts with the pace that measured ones near them say, and the steps that then remain.

    ``known`` is what all layouts share.
    """
    import polars as pl

    placing, rest = parted(steps, LAYOUT_FEATURES)
    layouts = widened(layouts, placing)
    shared = {name: pl.lit(known[name]) for name in LAYOUT_FEATURES if name in known}

    def near(block: pl.DataFrame) -> pl.DataFrame:
        return block.hstack(
            calibration.local_correction(block.with_columns(**shared).select(pl.col(LAYOUT_FEATURES).fill_null(0.0)))
        )

    schema = {**layouts.collect_schema(), **dict.fromkeys(LOCAL_CORRECTION, pl.Float64)}
    return layouts.map_batches(near, schema=schema), rest


def _stages(most: float, counts: Iterable[float]) -> list[float]:
    """Return the lengths of pipelines: powers of two, and those times odd divisors of the counts.

    >>> _stages(16.0, [384.0])
    [1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0]
    """
    odd = {part for n in counts for part in range(1, int(most) + 1, 2) if n % part == 0.0} | {1}
    return sorted({part * power for part in odd for power in POWERS if part * power <= most})


def _domain(fixed: Mapping[str, Any]) -> float:
    try:
        return float(answered(fixed, ("scale_up_domain",))[1]["scale_up_domain"])
    except MissingQuantity:
        return MOST_TENSOR_WAYS
