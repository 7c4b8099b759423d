"""Comparison of a planned run with the published recipe of frontier runs."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import astuple, dataclass, fields
from typing import Any, Final

import polars as pl

from factorykit.core.errors import ScenarioError
from factorykit.core.validation import one_of, strings
from factorykit.core.vocabulary import quantity
from factorykit.data.tables import table
from factorykit.engine.question import Question
from factorykit.engine.rules import applicable_rules

PRACTICES: Final = {
    "overlap": ("recipe_4", "collectives overlap with compute"),
    "async_checkpoints": ("recipe_5", "checkpoints are written while training goes on"),
    "node_fencing": ("recipe_5", "a faulty node is fenced off and the run restarts by itself"),
    "sdc_checks": ("p_sdc", "health checks and gradient sanity checks for silent data corruption"),
    "gradient_norms": ("tel_gradnorm", "gradient norm of every layer is recorded"),
    "activation_norms": ("tel_actnorm", "activation norms are recorded"),
    "loss_spikes": ("tel_loss", "loss spikes raise an alarm"),
    "node_cohorts": ("tel_cohort", "every node's throughput is compared with the others"),
}
"""Steps without a number: their item in the ``recipes`` table, and their meaning."""

INTERVAL_S: Final = (900.0, 1800.0)
"""Recipe step 5: checkpoints every 15 to 30 minutes. [s]"""
NEAR_OPTIMUM: Final = 2.0
"""Factor on the best interval up to which about two points of goodput are lost. [1]"""
MAX_PLAIN_STAGES: Final = 16.0
"""Pitfall: no plain pipeline above about 16 stages. [1]"""
MIN_MFU: Final = 0.4
"""Recipe step 6. [1]"""
DEGREES: Final = ("tensor_parallel", "pipeline_parallel", "context_parallel", "data_parallel")
MEMORY: Final = {
    "memory_weights_bytes": "weights and optimizer",
    "memory_activations_bytes": "activations",
    "memory_workspace_bytes": "workspace",
    "memory_reserve_bytes": "reserve",
}
"""Terms of the peak memory, in words."""


@dataclass(frozen=True, slots=True)
class Row:
    """Verdict on one step of the recipe; ``reason`` is the cause of any other than met."""

    item: str
    step: str
    verdict: str
    found: str
    wanted: str
    reason: str | None = None


def check_recipe(
    inputs: Mapping[str, Any],
    practices: Collection[str] = (),
    *,
    using: Mapping[str, str] | None = None,
    assume: bool = False,
) -> pl.DataFrame:
    """Return the steps of the frontier recipe that a planned run meets, misses or breaks.

    Parameters
    ----------
    inputs
        Quantities of the run, as in :func:`factorykit.evaluate`: ``accelerators``, the layout (``tensor_parallel``,
        ``pipeline_parallel``, ``context_parallel``, ``data_parallel`` or a batch, ``zero_stage``, ``recompute``,
        ``schedule``), ``mfu``, ``checkpoint_interval_s`` and the inputs of the best interval. With an architecture, an
        ``accelerator`` and the whole layout, memory, bubble and utilization are computed; otherwise they are judged by
        the stated parts of the plan.
    practices
        Steps without a number that are in place, from ``PRACTICES``.
    using
        Model of each quantity that has alternatives, as in :func:`factorykit.evaluate`.
    assume
        Whether missing inputs are filled with sourced defaults, as in :func:`factorykit.evaluate`.

    Returns
    -------
    DataFrame
        One row per step: ``item`` of the recipes table, ``step``, ``verdict`` (met, missed, broken, unknown),
        ``found``, ``wanted``, ``reason`` (null where met), ``source`` and ``locator`` in the document. Broken means
        that the plan contradicts the step, missed that a practice is not named, unknown that a quantity is missing.

    Raises
    ------
    UnknownName, FactorykitError
        If a practice is unknown, or the plan is invalid.

    Examples
    --------
    >>> check_recipe({"mfu": 0.3}).filter(item="recipe_6")["reason"].item()
    '30 % is below 40 %'
    """
    question = Question.read(inputs, using=using, assume=assume)
    practices = [one_of("practice", name, PRACTICES) for name in strings("practices", practices)]
    known = _Known(question)
    rows = [
        _parallelism(known),
        _memory(known),
        _interval(known),
        _best_interval(known),
        _stages(known),
        _mfu(known),
        *(_practice(name, name in practices) for name in PRACTICES),
    ]
    sources = table("recipes").select("item", "source", "locator").collect()
    schema: dict[str, Any] = {field.name: pl.String for field in fields(Row)}
    frame = pl.DataFrame([astuple(row) for row in rows], schema, orient="row")
    return frame.join(sources, on="item", how="left", maintain_order="left")


@dataclass(frozen=True, slots=True)
class _Known:
    """Quantities of a plan, given or computed."""

    question: Question

    @property
    def values(self) -> Mapping[str, Any]:
        """The given values."""
        return self.question.values

    def of(self, *names: str, without: tuple[str, ...] = ()) -> dict[str, float] | None:
        """Return quantities that the plan states or that follow from it, or None if one is missing."""
        try:
            return self.question.without(*without).get(*names)
        except ScenarioError:
            return None


def _judged(item: str, step: str, wanted: str, actual: str, reason: str | None) -> Row:
    return Row(item, step, "met" if reason is None else "broken", actual, wanted, reason)


def _unknown(item: str, step: str, wanted: str, missing: str) -> Row:
    return Row(item, step, "unknown", "", wanted, f"give {missing}")


def _practice(name: str, there: bool) -> Row:
    item, wanted = PRACTICES[name]
    reason = None if there else f"the plan does not name {name}"
    return Row(item, name.replace("_", " "), "met" if there else "missed", "", wanted, reason)


def _parallelism(known: _Known) -> Row:
    item, step = "recipe_2", "parallelism"
    wanted = "the degrees divide the accelerators, the heads, the layers, the experts and the batch"
    values = known.values
    degrees = {name: float(values[name]) for name in DEGREES if name in values}
    if "accelerators" not in values or not degrees:
        return _unknown(item, step, wanted, "accelerators and tensor_parallel, pipeline_parallel or data_parallel")
    product = math.prod(degrees.values())
    actual = f"{values['accelerators']:g} accelerators over a product of degrees of {product:g}"
    left = float(values["accelerators"]) / product
    if left != 1.0 and ("data_parallel" in degrees or left % 1.0 or left < 1.0):
        return _judged(item, step, wanted, actual, f"{left:.4g} data-parallel copies; the number must be whole")
    for rule in applicable_rules(values):
        if not rule.holds(*(values[argument] for argument in rule.arguments)):
            return _judged(item, step, wanted, actual, f"{rule.name} does not hold; {rule.remedy}")
    return _judged(item, step, wanted, actual, None)


def _memory(known: _Known) -> Row:
    item, step = "recipe_3", "memory"
    wanted = "parameters, gradients, optimizer and activations split or recomputed until they fit"
    stage, recompute = known.values.get("zero_stage"), known.values.get("recompute")
    stated = [f"ZeRO {stage:g}"] if stage is not None else []
    stated += [f"recompute {recompute}"] if recompute else []
    computed = known.of("memory_peak_bytes", "accelerator_memory_bytes", *MEMORY)
    if computed is None:
        if not stated:
            return _unknown(
                item, step, wanted, "zero_stage and recompute, or an architecture, an accelerator and a layout"
            )
        meets = (stage is None or stage == 3.0) and recompute != "none"
        reason = None if meets else "the recipe needs ZeRO 3 and recomputation; a whole layout gives the memory"
        return _judged(item, step, wanted, ", ".join(stated), reason)
    shown = quantity("memory_peak_bytes").text
    peak, room = computed["memory_peak_bytes"], computed["accelerator_memory_bytes"]
    actual = ", ".join([*stated, f"peak {shown(peak)} of {shown(room)}"])
    largest = max(MEMORY, key=lambda name: computed[name])
    reason = f"{shown(peak - room)} too much; {MEMORY[largest]} take {shown(computed[largest])}"
    return _judged(item, step, wanted, actual, None if peak <= room else reason)


def _interval(known: _Known) -> Row:
    item, step, wanted = "recipe_5", "checkpoint interval", "15 to 30 min"
    interval = known.values.get("checkpoint_interval_s")
    if interval is None:
        return _unknown(item, step, wanted, "checkpoint_interval_s")
    meets = INTERVAL_S[0] <= interval <= INTERVAL_S[1]
    actual = quantity("checkpoint_interval_s").text(interval)
    return _judged(item, step, wanted, actual, None if meets else f"{actual} is outside 15 to 30 min")


def _best_interval(known: _Known) -> Row:
    item, step = "recipe_5", "checkpoint interval against the optimum"
    wanted = "within half and twice the interval that loses least"
    name = "checkpoint_interval_optimal_s"
    computed, interval = known.of(name, without=(name, "data_parallel")), known.values.get("checkpoint_interval_s")
    if computed is None or interval is None:
        return _unknown(item, step, wanted, "checkpoint_interval_s, checkpoint_write_s and accelerator_mtbf_s")
    shown, best = quantity(name).text, computed[name]
    ratio = interval / best
    reason = f"{ratio:.2g} times the best: " + ("more work is lost" if ratio > 1.0 else "more time goes into saves")
    meets = 1.0 / NEAR_OPTIMUM <= ratio <= NEAR_OPTIMUM
    return _judged(item, step, wanted, f"{shown(interval)}, best {shown(best)}", None if meets else reason)


def _stages(known: _Known) -> Row:
    item, step = "p_pp", "pipeline bubble"
    wanted = f"an interleaved or zero-bubble schedule above {MAX_PLAIN_STAGES:g} stages"
    stages, schedule = known.values.get("pipeline_parallel"), known.values.get("schedule")
    if stages is None:
        return _unknown(item, step, wanted, "pipeline_parallel")
    computed = known.of("pipeline_bubble")
    bubble = f"{quantity('pipeline_bubble').text(computed['pipeline_bubble'])} of the step idle" if computed else ""
    actual = ", ".join(filter(None, [f"{stages:g} stages", schedule or "unknown schedule", bubble]))
    meets = stages <= MAX_PLAIN_STAGES or schedule in ("interleaved", "zb1p", "zb2p", "dualpipe")
    reason = f"a plain schedule over {stages:g} stages" + (f" leaves {bubble}" if bubble else " leaves a long bubble")
    return _judged(item, step, wanted, actual, None if meets else reason)


def _mfu(known: _Known) -> Row:
    item, step, wanted, name = "recipe_6", "MFU", "40 % or more", "mfu"
    mfu, origin = known.values.get(name), ""
    if mfu is None and (computed := known.of("predicted_mfu")):
        mfu, origin = computed["predicted_mfu"], "predicted "
    if mfu is None:
        return _unknown(item, step, wanted, "mfu, or an architecture, an accelerator and a layout")
    actual = quantity(name).text(mfu)
    reason = None if mfu >= MIN_MFU else f"{origin}{actual} is below {quantity(name).text(MIN_MFU)}"
    return _judged(item, step, wanted, origin + actual, reason)
