"""Candidate layouts of a model over a number of accelerators, and the fastest that fits in memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from factorykit.core.vocabulary import quantity
from factorykit.data.tables import table
from factorykit.engine import rules
from factorykit.engine.question import Chain, Question
from factorykit.engine.resolve import layout_models
from factorykit.engine.run import add_columns
from factorykit.engine.step import Step, split
from factorykit.engine.unused import unused
from factorykit.formulas import arguments
from factorykit.formulas.functions import maximum, minimum, where
from factorykit.model.performance.activation_checkpointing import least_recomputed
from factorykit.model.performance.layout_features import LAYOUT_FEATURES, LOCAL_CORRECTION

if TYPE_CHECKING:
    from factorykit.model.performance.calibration import Calibration

SHARE: Final = "recompute_share"
MEMORY: Final = ("memory_peak_bytes", "fits")
BEST_IS_MOST: Final = ("predicted_mfu", "mfu", "goodput", "model_flop_per_s_per_accelerator")
"""Objectives that are maximised."""
MIN_SEQUENCE_PART: Final = 4096.0
"""Least tokens of a sequence on each of the accelerators that share it."""
MAX_TENSOR: Final = 16.0
MAX_EXPERT: Final = 64.0
MAX_STAGES: Final = 64.0
MODULES_YEAR: Final = 2025.5
"""Year from which software recomputes norms, activation functions and up-projections of models with experts alone
(``recompute_modules`` of Megatron-Core 0.13, July 2025)."""
POWERS: Final = tuple(2.0**i for i in range(11))
STAGES: Final = tuple(float(n) for n in range(1, int(MAX_STAGES) + 1) if 210**6 % n == 0)
"""Lengths of pipelines: products of powers of 2, 3, 5 and 7."""


@dataclass(frozen=True, slots=True)
class Part:
    """Candidate values of a part of a layout, and the condition of a value on fixed quantities.

    Like that of a rule, the condition applies to floats, polars expressions and terms.
    """

    values: tuple[Any, ...]
    holds: Callable[..., Any]


CANDIDATES: Final = MappingProxyType(
    {
        "tensor_parallel": Part(
            POWERS, lambda tensor_parallel, scale_up_domain: tensor_parallel <= minimum(scale_up_domain, MAX_TENSOR)
        ),
        "pipeline_parallel": Part(STAGES, lambda pipeline_parallel, layers: pipeline_parallel <= layers),
        "context_parallel": Part(
            POWERS,
            lambda context_parallel, sequence_length: (
                where(context_parallel > 1.0, sequence_length / context_parallel, MIN_SEQUENCE_PART)
                >= MIN_SEQUENCE_PART
            ),
        ),
        "virtual_stages": Part(
            (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0), lambda virtual_stages: virtual_stages >= 1.0
        ),
        "expert_parallel": Part(
            POWERS,
            lambda expert_parallel, experts: (
                where(
                    expert_parallel > 1.0,
                    where(experts > 1.0, experts % expert_parallel, 1.0) + maximum(expert_parallel - MAX_EXPERT, 0.0),
                    0.0,
                )
                == 0.0
            ),
        ),
        "micro_batch_size": Part((1.0, 2.0, 4.0, 8.0), lambda micro_batch_size: micro_batch_size >= 1.0),
        "zero_stage": Part((1.0, 2.0, 3.0), lambda zero_stage: zero_stage >= 1.0),
        "recompute": Part(
            ("none", "selective", "modules", "full"),
            lambda recompute, experts, software_year: (
                where(recompute == "modules", where(experts > 1.0, software_year, 0.0), MODULES_YEAR) >= MODULES_YEAR
            ),
        ),
        "schedule": Part(
            ("1f1b", "dualpipe"), lambda schedule, experts: where(schedule == "dualpipe", experts, 2.0) > 1.0
        ),
    }
)
"""The values that every search of layouts tries by default, in the order in which ties are resolved."""
PARTS: Final = tuple(CANDIDATES)
CONDITIONS: Final = MappingProxyType(
    {
        "zero_stage": lambda zero_stage, pipeline_parallel: where(pipeline_parallel > 1.0, zero_stage, 1.0) == 1.0,
        "virtual_stages": lambda virtual_stages, pipeline_parallel, layers: (
            where(
                virtual_stages > 1.0,
                where(
                    (layers + rules.EDGE_LAYERS) % pipeline_parallel <= rules.EDGE_LAYERS,
                    (layers + rules.EDGE_LAYERS) % (pipeline_parallel * virtual_stages),
                    0.0,
                )
                + where(pipeline_parallel > 1.0, 0.0, layers + 1.0),
                0.0,
            )
            <= rules.EDGE_LAYERS
        ),
    }
)
"""Conditions between parts: gradients stay whole in a pipeline, and even stages are cut into even chunks."""


def scheduled(framework: str | None) -> dict[str, list[Any]]:
    """Return as choices the default schedules that a framework has options for, none where its options are not known.

    >>> scheduled("megatron_lm"), scheduled("nemo")
    ({'schedule': ['1f1b']}, {})
    """
    if framework is None:
        return {}
    rows = table("launch_options").filter(framework=framework, quantity="schedule").collect()
    known = rows["condition"].str.extract(r"schedule=(\w+)").to_list()
    return {"schedule": [value for value in CANDIDATES["schedule"].values if value in known]} if known else {}


def fits_in_memory(fits: Any) -> Any:
    """Return whether a layout surely fits in memory."""
    return fits >= 1.0


def sure_room(accelerator_memory_bytes: Any, memory_band: Any) -> Any:
    """Return the peak of memory up to which a layout surely fits."""
    return accelerator_memory_bytes / (1.0 + memory_band)


def candidates(
    fixed: Mapping[str, Any], choices: Mapping[str, list[Any]], counts: Iterable[float]
) -> dict[str, list[Any]]:
    """Return the values to try for every part of a layout that is not fixed; ``choices`` replace the defaults."""
    chip = {"scale_up_domain": MAX_TENSOR, **(Question(fixed).get("scale_up_domain") or {})}
    known = {"experts": 0.0, "layers": 1.0, **chip, "software_year": MODULES_YEAR, **fixed}
    counts = list(counts)

    def default(name: str) -> list[Any]:
        part = CANDIDATES[name]
        _, *others = arguments(part.holds)
        values = [value for value in part.values if part.holds(value, *(known[other] for other in others))]
        if name == "pipeline_parallel":
            return [value for value in values if any(count % value == 0.0 for count in counts)]
        return values

    return {name: choices.get(name) or default(name) for name in PARTS if name not in fixed}


@dataclass(frozen=True)
class Layouts:
    """The search space of layouts: fixed quantities, candidates of the other parts, and the results wanted.

    ``varied`` are further columns of the layouts, ``chosen`` the parts whose candidates are given.
    """

    fixed: Mapping[str, Any]
    tried: Mapping[str, list[Any]]
    chosen: Collection[str]
    varied: tuple[str, ...]
    using: Mapping[str, str]
    outputs: tuple[str, ...]
    assume: bool = True
    calibration: Calibration | None = None

    @property
    def settled(self) -> tuple[str, ...]:
        """Quantities that the search determines for each layout."""
        share = (SHARE,) if "recompute" in self.tried and SHARE not in self.fixed else ()
        return (*share, *(LOCAL_CORRECTION if self.calibration else ()))

    @cached_property
    def _chain(self) -> Chain:
        wanted = dict.fromkeys((*self.outputs, *MEMORY, *(LAYOUT_FEATURES if self.calibration else ())))
        question = Question(self.fixed, self.using, tuple(wanted), self.assume)
        chain = question.over((*self.varied, *self.tried, *self.settled)).resolve()
        rules.check_layout(chain.known, self.fixed)
        return chain

    @property
    def unused(self) -> frozenset[str]:
        """Given quantities that the search could use instead of assumptions, and does not."""
        return frozenset(unused(self._chain.resolution.shape))

    @property
    def known(self) -> Mapping[str, Any]:
        """Quantities that all layouts share."""
        return self._chain.known

    def sensible(self, layouts: pl.LazyFrame) -> pl.LazyFrame:
        """Return the layouts that meet the conditions, with ``excluded_by``, the first rule that a layout breaks.

        Conditions and rules of parts that the layouts do not have yet are left out.
        """
        present = {*self.known, *layouts.collect_schema()}
        for name, holds in CONDITIONS.items():
            columns = {n: pl.lit(self.fixed[n]) if n in self.fixed else pl.col(n) for n in arguments(holds)}
            if name in self.tried and name not in self.chosen and {*present, *self.fixed}.issuperset(columns):
                layouts = layouts.filter(holds(*columns.values()))
        for step in split(self._chain.open_steps, rules.RULED)[0]:
            if present.issuperset(step.arguments):
                layouts = add_columns(layouts, [step])
                present.add(step.quantity)
        violated = rules.violated_rule(list(rules.applicable_rules(present, self.fixed)), self.known)
        return layouts.with_columns(violated.alias("excluded_by"))

    def with_memory(self, layouts: pl.LazyFrame) -> pl.LazyFrame:
        """Return the layouts with the least recomputation that fits, and their memory."""
        _, then = split(self._chain.open_steps, rules.RULED)
        if SHARE in self.settled:
            room = sure_room(self.known["accelerator_memory_bytes"], self.known["memory_band"])
            layouts = least_recomputed(layouts, split(then, {"memory_peak_bytes"})[0], room)
        return add_columns(layouts, split(then, {"fits"})[0])

    def with_outputs(self, layouts: pl.LazyFrame) -> pl.LazyFrame:
        """Return the layouts with their results."""
        known = self.known
        _, then = split(self._chain.open_steps, rules.RULED)
        _, rest = split(then, {"fits"})
        if self.calibration:
            layouts, rest = with_correction(self.calibration, layouts, rest, known)
        constant = [pl.lit(known[n]).alias(n) for n in self.outputs if n in known and n not in self.tried]
        return add_columns(layouts, rest).with_columns(constant)

    @property
    def fits(self) -> pl.Expr:
        """Whether layouts fit in memory, between 0 and 1."""
        return pl.lit(self.known["fits"]) if "fits" in self.known else pl.col("fits")


def best_layouts(
    fixed: Mapping[str, Any],
    counts: pl.DataFrame,
    choices: Mapping[str, list[Any]],
    using: Mapping[str, str],
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
        Values to try for parts of a layout, in place of `CANDIDATES`.
    using
        Alternative models.
    calibration
        Result of :func:`factorykit.calibrate`.

    Returns
    -------
    DataFrame
        ``counts``, the parts of the layout that are not fixed, ``layouts`` (the number that work and fit), and
        ``recompute_share`` where it is not fixed. A count without a layout that fits has null parts; one without a
        layout that works has no row. With a calibration also the correction of the layout.

    Raises
    ------
    MissingQuantity
        If a specification of the chip is unknown.
    ScenarioError
        If the model itself breaks a rule.
    """
    search, working = _working(fixed, counts, choices, using, calibration)
    fitting = search.with_outputs(search.with_memory(working.lazy()).filter(fits_in_memory(search.fits)))
    best = [pl.col(name).get(pl.col("step_s").arg_min(), null_on_oob=True) for name in (*search.tried, *search.settled)]
    fastest = fitting.group_by(counts.columns, maintain_order=True).agg(*best, pl.len().cast(pl.Int64).alias("layouts"))
    works = working.select(counts.columns).unique(maintain_order=True)
    return works.join(fastest.collect(), on=counts.columns, how="left", maintain_order="left").with_columns(
        pl.col("layouts").fill_null(0)
    )


def memory_needed(
    fixed: Mapping[str, Any], counts: pl.DataFrame, choices: Mapping[str, list[Any]], using: Mapping[str, str]
) -> tuple[float, float]:
    """Return the memory with which the smallest layout of the counts surely fits, and of an accelerator, in bytes."""
    search, working = _working(fixed, counts, choices, using)
    peaks = search.with_memory(working.lazy()).select("memory_peak_bytes").collect()["memory_peak_bytes"]
    return min(peaks.to_list()) * (1.0 + search.known["memory_band"]), search.known["accelerator_memory_bytes"]


def _working(
    fixed: Mapping[str, Any],
    counts: pl.DataFrame,
    choices: Mapping[str, list[Any]],
    using: Mapping[str, str],
    calibration: Calibration | None = None,
) -> tuple[Layouts, pl.DataFrame]:
    """Return the search space of the counts, and its layouts that work, whether they fit in memory or not."""
    tried = candidates(fixed, choices, counts["accelerators"])
    models = {**layout_models(), **using}
    search = Layouts(fixed, tried, choices, tuple(counts.columns), models, ("step_s",), calibration=calibration)
    works = pl.col("excluded_by").is_null()
    layouts = search.sensible(counts.lazy()).filter(works)
    for name, values in tried.items():
        part = pl.LazyFrame({name: values}, {name: pl.String if quantity(name).is_text else pl.Float64})
        layouts = search.sensible(layouts.join(part, how="cross", maintain_order="left_right")).filter(works)
    return search, layouts.collect()


def with_correction(
    calibration: Calibration, layouts: pl.LazyFrame, steps: Sequence[Step], known: Mapping[str, Any]
) -> tuple[pl.LazyFrame, tuple[Step, ...]]:
    """Return layouts with the correction from measured layouts nearby, and the remaining steps."""
    located, rest = split(steps, LAYOUT_FEATURES)
    layouts = add_columns(layouts, located)
    shared = {name: pl.lit(known[name]) for name in LAYOUT_FEATURES if name in known}

    def corrected(block: pl.DataFrame) -> pl.DataFrame:
        return block.hstack(
            calibration.local_correction(block.with_columns(**shared).select(pl.col(LAYOUT_FEATURES).fill_null(0.0)))
        )

    schema = {**layouts.collect_schema(), **dict.fromkeys(LOCAL_CORRECTION, pl.Float64)}
    return layouts.map_batches(corrected, schema=schema), rest
