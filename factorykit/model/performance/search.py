"""The layouts of a model over a cluster that work and fit in memory, best first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from factorykit.core.errors import MissingQuantity, ScenarioError, UnknownName, unknown_name_message
from factorykit.core.validation import as_list, boolean, mapping
from factorykit.core.vocabulary import quantity
from factorykit.engine.grids import MAX_BLOCK_ROWS, Grid
from factorykit.engine.question import Question, read_value
from factorykit.engine.resolve import layout_models
from factorykit.engine.unused import warn_of_idle
from factorykit.model.performance.calibration import Calibration, calibrated_on_software, framework_named
from factorykit.model.performance.layouts import (
    BEST_IS_MOST,
    PARTS,
    SHARE,
    Layouts,
    candidates,
    fits_in_memory,
    scheduled,
)
from factorykit.model.scenario.models import model_of
from factorykit.model.uncertainty.study import backends
from factorykit.model.uncertainty.study.parts import Design, column_of
from factorykit.model.uncertainty.study.study import answered

if TYPE_CHECKING:
    from factorykit.core._names import ArchitectureName, QuantityName

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
MAX_COUNT: Final = 1e12


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
    framework: str | None = None,
) -> pl.LazyFrame:
    """List the layouts of a model over a cluster that work and fit in memory, best first.

    Parameters
    ----------
    model
        Name of a known model, a size such as ``"70B"`` or ``"1T mixture"``, path of a ``config.json``, or a mapping of
        quantities. ``sequence_length`` is 4,096 tokens unless the model or the cluster gives it.
    cluster
        A mapping with ``accelerators``, ``accelerator`` and, if it is not bf16, ``precision``: that of a preset names
        no chip, so ``{**preset("meta_24k"), "accelerator": "h100_sxm"}``. Further quantities, such as
        ``scale_out_bytes_per_s``, ``tokens`` or ``rental_usd_per_accelerator_h``, count.
    global_batch_size
        Sequences of one optimizer step.
    objective
        Quantity that makes a layout better: the least of it is best, or the most of ``predicted_mfu``. Times and costs
        of a whole run follow from the step time if the cluster gives ``tokens`` and their inputs; those of a plan also
        count the pace of published campaigns.
    choices
        Values to try for parts of a layout instead of the defaults: ``{"zero_stage": [1], "recompute": ["full"]}``.
    keep_excluded
        Whether to keep the layouts that a rule excludes, after the others, with the rule in ``excluded_by``.
    out, engine
        A Parquet file, or the folder of a study and the backend that computes its parts, as in
        :func:`factorykit.sweep`; feasible layouts are ranked when they are read.
    using
        Alternative models by quantity, as in :func:`factorykit.evaluate`.
    assume
        Whether missing inputs are filled with sourced defaults, as in :func:`factorykit.evaluate`.
    calibration
        Result of :func:`factorykit.calibrate`, as in :func:`factorykit.validate`.
    framework
        Training framework of the ``frameworks`` table, such as ``"megatron_bridge"``: its features, the schedules of
        pipelines that :func:`factorykit.launch` knows of it, and the residual that layouts share with its published
        runs. The mean of all software by default.

    Returns
    -------
    polars.LazyFrame
        One row a layout: its parts, ``data_parallel``, ``micro_batches``, ``step_s`` with interval [s],
        ``predicted_mfu``, ``pipeline_bubble``, ``memory_peak_bytes`` [byte], ``fits``, ``recompute_share`` (where
        ``recompute`` is none: the least that lets the layout fit), the objective, and ``pareto``:
        whether no other layout is both as fast and as small. Layouts that may exceed the memory by buffers and
        fragments (``fits`` is 0.5) follow after those that fit. With ``keep_excluded`` also ``excluded_by``, the rule.

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
    corrections = {} if calibration is None else mapping("calibration", calibration)
    question = _read(model, {**mapping("cluster", cluster), **corrections}, global_batch_size, using)
    software, accelerator = None, question.values.get("accelerator")
    if framework is not None:
        if not isinstance(accelerator, str):
            raise ScenarioError("framework needs the name of an accelerator, e.g. accelerator = 'h100_sxm'")
        software = calibrated_on_software(framework, accelerator)
    fixed = {**(software or {}), **question.values}
    given = {} if choices is None else mapping("choices", choices)
    choices = {**scheduled(None if framework is None else framework_named(framework)), **given}
    if "layers" not in fixed:
        raise MissingQuantity(
            "the model has no layers; name one, or give the quantities of its architecture", ["layers"]
        )
    tried = candidates(fixed, _choices(choices), [float(fixed["accelerators"])])
    if not tried:
        raise ScenarioError("every part of the layout is fixed; use evaluate for a single layout")
    timed = {name: model for name, model in layout_models().items() if name not in fixed}
    outputs = tuple(dict.fromkeys((*OUTPUTS, quantity(objective).name)))
    measured = calibration if isinstance(calibration, Calibration) else software
    study = LayoutStudy(
        fixed=fixed,
        tried=tried,
        chosen=tuple(choices),
        varied=(),
        using={**timed, **question.using},
        outputs=outputs,
        assume=boolean("assume", assume),
        calibration=measured,
        objective=quantity(objective).name,
        keep_excluded=boolean("keep_excluded", keep_excluded),
    )
    idle = study.unused.intersection(cluster, question.values)
    warn_of_idle({name: fixed[name] for name in sorted(idle)}, ("a search",))
    if out is None and backends.check(engine) == "local":
        axes = [pl.LazyFrame({name: column_of(name, values)}) for name, values in tried.items()]
        grid = reduce(lambda grid, axis: grid.join(axis, how="cross", maintain_order="left_right"), axes)
        return study.ranked(study.evaluated(grid))
    return study.ranked(answered(study, out, "search", engine))


@dataclass(frozen=True)
class LayoutStudy(Layouts, Design):
    """A search space whose layouts are evaluated in blocks."""

    objective: str = "step_s"
    keep_excluded: bool = False

    @property
    def rows(self) -> int:
        """Number of layouts, most of which may be excluded."""
        return self._blocks.rows

    @property
    def parts(self) -> int:
        """Number of blocks."""
        return self._blocks.blocks

    @cached_property
    def _blocks(self) -> Grid:
        return Grid({name: column_of(name, values) for name, values in self.tried.items()}, MAX_BLOCK_ROWS)

    def part(self, number: int) -> pl.DataFrame:
        """Return the layouts of a block that work."""
        shared = {name: pl.lit(value) for name, value in self._blocks.slow(number).items()}
        block = self._blocks.fast(self._blocks.segment(number)).with_columns(**shared)
        return self.evaluated(block.lazy().select(list(self.tried))).collect()

    def evaluated(self, grid: pl.LazyFrame) -> pl.LazyFrame:
        """Return the layouts of a grid that work and fit, unordered, or all of them with ``keep_excluded``."""
        excluded = pl.col("excluded_by")
        lazy = self.sensible(grid)
        lazy = self.with_memory(lazy if self.keep_excluded else lazy.filter(excluded.is_null()))
        if self.keep_excluded:
            memory = pl.when(excluded.is_null() & (self.fits == 0.0)).then(pl.lit("memory")).otherwise(excluded)
            evaluated = memory.is_null() | (memory == "memory")
            lazy = self.with_outputs(lazy).with_columns(memory.alias("excluded_by"))
            lazy = lazy.with_columns(pl.when(evaluated).then(name).alias(name) for name in self.outputs)
        else:
            lazy = self.with_outputs(lazy.filter(self.fits > 0.0))
        outputs = (name for name in self.outputs if name not in self.tried)
        return lazy.select(*self.tried, *outputs, "excluded_by")

    def ranked(self, lazy: pl.LazyFrame) -> pl.LazyFrame:
        """Return the layouts with the best first, and whether no other one beats them in both time and memory."""
        works = pl.col("excluded_by").is_null()
        most = self.objective in BEST_IS_MOST
        tight = ~fits_in_memory(self.fits)
        order = (~works, works & tight, self.objective)
        lazy = lazy.sort(*order, descending=[False, False, most], nulls_last=True, maintain_order=True)
        smallest = pl.when(works).then("memory_peak_bytes").sort_by("step_s", nulls_last=True).cum_min().shift(1)
        rank = pl.col("step_s").rank("ordinal").cast(pl.Int64) - 1
        pareto = works & (pl.col("memory_peak_bytes") < smallest.gather(rank).fill_null(math.inf))
        lazy = lazy.with_columns(pareto.fill_null(value=False).alias("pareto"))
        last = ["excluded_by"] if self.keep_excluded else []
        return lazy.select(pl.exclude("excluded_by", "pareto"), "pareto", *last)


def _read(
    model: str | Mapping[str, Any],
    cluster: Mapping[str, Any],
    global_batch_size: float,
    using: Mapping[str, str] | None,
) -> Question:
    shape = {"sequence_length": 4096.0, **model_of(model)}
    given = {"precision": "bf16", **shape, **cluster, "global_batch_size": global_batch_size}
    if results := sorted((given.keys() & set(OUTPUTS)) - {SHARE}):
        raise ScenarioError(
            f"{results[0]} is not an input of a search; give a part of the layout, such as tensor_parallel"
        )
    question = Question.read(given, using=using)
    question.check_consistency()
    values = question.values
    if "nodes" in values and "accelerators" not in values:
        counted = Question(values, outputs=("accelerators",), assume=True).resolve().run()
        return _read(model, {**cluster, **counted}, global_batch_size, using)
    if "accelerator" not in values and "gemm_ceiling" not in values:
        raise ScenarioError("the cluster names no accelerator; give one, e.g. accelerator = 'h100_sxm'")
    if "accelerators" not in values:
        raise ScenarioError("the cluster gives no accelerators; give their number and the name of one")
    for name in ("accelerators", "global_batch_size", "layers"):
        if values.get(name, 1.0) != math.floor(values.get(name, 1.0)):  # type: ignore[arg-type]
            raise ScenarioError(f"{name} = {values[name]!r} is not whole")
        if values.get(name, 1.0) > MAX_COUNT:  # type: ignore[operator]
            raise ScenarioError(f"{name} = {values[name]:g} is more than {MAX_COUNT:g}")
    return question


def _choices(choices: Mapping[str, Iterable[Any]]) -> dict[str, list[Any]]:
    """Return the validated values to try instead of the default candidates."""
    unknown = [name for name in choices if name not in PARTS]
    if unknown:
        raise UnknownName(unknown_name_message("part of a layout", unknown[0], PARTS))
    tried = {}
    for name, values in choices.items():
        tried[name] = [read_value(quantity(name), given) for given in as_list(name, values)]
        if not tried[name]:
            raise ScenarioError(f"{name}: nothing to try; give at least one value")
    return tried
