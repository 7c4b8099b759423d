"""One life of a model: pre-training, post-training and serving one after the other on one fleet."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import polars as pl

from factorykit.core.constants import SECONDS_PER_DAY
from factorykit.core.errors import ScenarioError
from factorykit.core.validation import as_list
from factorykit.core.vocabulary import quantity
from factorykit.engine.evaluate import evaluate
from factorykit.engine.providers.accelerators import OWN_VALUES
from factorykit.engine.question import Question
from factorykit.model.planning.summary import Plan
from factorykit.model.post_training.plan import PostTrainingPlan
from factorykit.model.serving.plan import ServingPlan
from factorykit.model.serving.trace import Trace

SUMMED = ("days", "usd", "mwh", "carbon_t")
ENDS = ("", "_low", "_high")


def life(
    *stages: Plan | PostTrainingPlan | ServingPlan,
    days: float | str = 365.0,
    fleet: float | str | None = None,
    carbon_kg_per_kwh: float | str | None = None,
) -> pl.DataFrame:
    """Add up the life of a model: pre-training, post-training and serving, in turn on one fleet.

    Parameters
    ----------
    *stages
        Results of :func:`factorykit.plan`, :func:`factorykit.post_train` and :func:`factorykit.serve`, by time.
    days
        Days of each stage that serves.
    fleet
        Accelerators of the fleet; by default as many as the largest stage uses.
    carbon_kg_per_kwh
        Carbon of the electricity; that of the tables by default.

    Returns
    -------
    polars.DataFrame
        One row a stage, and ``total``: ``stage``, ``accelerators``, ``idle_accelerators`` of the fleet, ``start_day``,
        ``days``, ``usd``, ``mwh``, ``carbon_t`` [t] (each with 90 % interval), ``served_tokens`` (output) and
        ``usd_per_million_tokens``: of serving alone, and in the total with training.

    Raises
    ------
    ScenarioError
        If there is no stage or something else is one, or a stage needs more than the fleet or other chips.

    Notes
    -----
    Only used accelerators cost; energy of serving is that of busy ones. Errors of stages are independent: squares of
    their half intervals add up. Serving has no interval of time or money, since its accelerators are chosen.

    Examples
    --------
    >>> import factorykit as fk
    >>> tuned = fk.post_train("llama3_8b", 64, samples=1024)
    >>> whole = life(tuned, fk.serve("llama3_8b", "h100_sxm", load=20.0))
    >>> whole["stage"].to_list()
    ['post-training', 'serving', 'total']
    """
    carbon = quantity("carbon_kg_per_kwh").default if carbon_kg_per_kwh is None else carbon_kg_per_kwh
    read = Question.read({"wall_days": days, "carbon_kg_per_kwh": carbon}).values
    served, intensity = (float(value) for value in read.values())
    rows = [_row(stage, served) for stage in stages]
    if not rows:
        raise ScenarioError("life needs at least one stage, a result of plan, post_train or serve")
    most = max(row["accelerators"] for row in rows)
    size = most if fleet is None else _whole(fleet)
    if fleet is not None:
        _check_one_chip(*stages)
    if size < most:
        raise ScenarioError(f"fleet = {size:,.0f} is too small: a stage uses {most:,.0f} accelerators")
    start = 0.0
    for row in rows:
        row |= {"start_day": start, "idle_accelerators": size - row["accelerators"]}
        row |= {f"carbon_t{end}": row[f"mwh{end}"] * intensity for end in ENDS}
        start += row["days"]
    total: dict[str, Any] = {"stage": "total", "accelerators": most, "start_day": 0.0}
    total["served_tokens"] = sum(row["served_tokens"] for row in rows)
    for name in SUMMED:
        middle = total[name] = sum(row[name] for row in rows)
        total[f"{name}_low"] = middle - math.hypot(*(row[name] - row[f"{name}_low"] for row in rows))
        total[f"{name}_high"] = middle + math.hypot(*(row[f"{name}_high"] - row[name] for row in rows))
    bounds = [f"{name}{end}" for name in SUMMED for end in ENDS]
    columns = ("stage", "accelerators", "idle_accelerators", "start_day", *bounds, "served_tokens")
    tokens = pl.when(pl.col("served_tokens") > 0.0).then("served_tokens")
    frame = pl.DataFrame([*rows, total], infer_schema_length=None).select(columns)
    return frame.with_columns((pl.col("usd") / tokens * 1e6).alias("usd_per_million_tokens"))


def shared_fleet(
    serving: ServingPlan,
    training: Plan | PostTrainingPlan,
    requests_per_s: Trace | Iterable[float],
    *,
    fleet: float | str | None = None,
) -> pl.DataFrame:
    r"""Share a fleet over the day: training runs on the accelerators that serving leaves idle.

    .. math::
        m_h = g \left\lfloor \frac{\min(F - n_h, N)}{g} \right\rfloor, \qquad
        D_s = \frac{D\, N}{\bar m \left(1 - c\, t_R / 86400\right)}

    Parameters
    ----------
    serving, training
        Results of :func:`factorykit.serve`, and of :func:`factorykit.plan` or :func:`factorykit.post_train`.
    requests_per_s
        A trace, or the load of each hour of a day, of which some may be 0.
    fleet
        Accelerators :math:`F`; by default those that serving needs in its busiest hour.

    Returns
    -------
    polars.DataFrame
        One row an hour, and ``total``: ``hour``, ``requests_per_s``, ``serving_accelerators`` :math:`n_h`,
        ``training_accelerators`` :math:`m_h`, ``idle_accelerators`` (means in the total); in the total ``days``
        :math:`D_s` and ``usd`` of the training with 90 % interval.

    Raises
    ------
    ScenarioError
        If a plan is of another kind or of other chips, or the fleet is too small for the busiest hour or never leaves
        enough idle that the training fits.

    Notes
    -----
    Training of :math:`D` days on :math:`N` accelerators keeps its layout and its speed per accelerator on multiples of
    :math:`g`, whole replicas of trainer and rollouts, on which it fits in memory: fewer accelerators hold larger parts
    of weights and optimizer. It pays for those that it uses. Each of the :math:`c` changes of size a day costs the
    default restart time.

    Examples
    --------
    >>> import factorykit as fk
    >>> served, tuned = fk.serve("llama3_8b", "h100_sxm", load=400.0), fk.post_train("llama3_8b", 16, samples=1024)
    >>> shared_fleet(served, tuned, [400.0] * 12 + [40.0] * 12)["training_accelerators"].unique().to_list()
    [0.0, 8.0, 16.0]
    """
    if not isinstance(serving, ServingPlan) or not isinstance(training, Plan | PostTrainingPlan):
        got = f"{type(serving).__name__} and {type(training).__name__}"
        raise ScenarioError(f"serving must be a result of serve, and training one of plan or post_train, got {got}")
    _check_one_chip(serving, training)
    given = requests_per_s.hourly() if isinstance(requests_per_s, Trace) else as_list("requests_per_s", requests_per_s)
    rates = [0.0 if rate == 0 else float(quantity("requests_per_s").check(rate)) for rate in given]
    if not rates:
        raise ScenarioError("requests_per_s must have the load of at least one hour, got none")
    plan, row = serving.best, _row(training, 0.0)
    most = plan["users_per_accelerator"] * plan["replica_accelerators"] * plan["requests_per_s"] / plan["users"]
    busy = [math.ceil(rate / most - 1e-6) * plan["replica_accelerators"] for rate in rates]
    size = max(busy) if fleet is None else _whole(fleet)
    best, whole = _best(training), row["accelerators"]
    replica = math.prod(best[name] for name in ("tensor_parallel", "context_parallel", "pipeline_parallel"))
    trainers, rollouts = (best.get(f"{side}_accelerators") or whole for side in ("trainer", "rollout"))
    rollout = best.get("rollout_tensor_parallel") or 1.0
    least = max(replica * whole / trainers, rollout * whole / rollouts)
    group = float(math.lcm(int(replica), int(rollout)))
    free = [group * (min(size - occupied, whole) // group) for occupied in busy]
    fitting = {number for number in set(free) if number >= least and _fits(training, number / whole)}
    free = [number if number in fitting else 0.0 for number in free]
    changes = sum(a != b for a, b in pairwise([*free, *free[:1]])) * 24.0 / len(free)
    left = 1.0 - changes * float(quantity("restart_s").default or 0.0) / SECONDS_PER_DAY
    if size < max(busy) or max(free) <= 0.0:
        raise ScenarioError(
            f"fleet = {size:,.0f} is too small: serving needs {max(busy):,.0f} in its busiest hour and "
            f"{min(busy):,.0f} in its quietest, and the training a multiple of {group:,.0f} on which it fits in memory"
        )
    hours = {"hour": map(str, range(len(rates))), "requests_per_s": rates, "serving_accelerators": busy}
    frame = pl.DataFrame({**hours, "training_accelerators": free}, strict=False)
    frame = pl.concat([frame, frame.mean().with_columns(hour=pl.lit("total"))])
    used = pl.col("serving_accelerators") + pl.col("training_accelerators")
    longer = {"days": row["accelerators"] * len(free) / sum(free) / left, "usd": 1.0 / left}
    spent = {f"{name}{end}": row[f"{name}{end}"] * longer[name] for name in longer for end in ENDS}
    spent = {name: pl.when(hour="total").then(value) for name, value in spent.items()}
    return frame.with_columns((size - used).alias("idle_accelerators"), **spent)


def _best(stage: Any) -> dict[str, Any]:
    if not isinstance(stage, Plan | PostTrainingPlan | ServingPlan):
        raise ScenarioError(f"a stage must be a result of plan, post_train or serve, got {type(stage).__name__}")
    return stage.best.row(0, named=True) if isinstance(stage, Plan) else stage.best


def _whole(fleet: float | str) -> float:
    if (size := float(quantity("accelerators").check(fleet))) % 1.0:
        raise ScenarioError(f"fleet = {size!r} is not whole")
    return size


def _chip(stage: Any) -> str:
    asked = getattr(stage, "request", stage)
    key = _best(stage)["accelerator"]
    if own := getattr(asked, "own", {}).get(key):
        return f"{own['accelerator']}{OWN_VALUES}"
    return key + OWN_VALUES * getattr(asked, "has_own_values", False)


def _check_one_chip(*stages: Any) -> None:
    if len(chips := list(dict.fromkeys(map(_chip, stages)))) > 1:
        raise ScenarioError(f"a fleet has one kind of accelerator, got {' and '.join(chips)}; plan for one of them")


def _fits(training: Plan | PostTrainingPlan, share: float) -> bool:
    """Return whether a trainer fits in its layout on a share of its accelerators, with that share of its batch."""
    known = training.scenario if isinstance(training, Plan) else training.trainer
    smaller = {name: float(known[name]) * share for name in ("accelerators", "global_batch_size")}
    return float(evaluate({**known, **smaller}, "fits", assume=True)["fits"]) > 0.0


def _row(stage: Any, days: float) -> dict[str, Any]:
    """Return accelerators, days, money, energy and served tokens of a stage."""
    best = _best(stage)
    if isinstance(stage, Plan):
        named = (("days", "wall_days", 1.0), ("usd", "run_cost_usd", 1.0), ("mwh", "training_energy_kwh", 1e-3))
        row = {f"{name}{end}": best[f"{source}{end}"] * scale for name, source, scale in named for end in ENDS}
        return {"stage": "pre-training", "accelerators": best["accelerators"], **row, "served_tokens": 0.0}
    if isinstance(stage, PostTrainingPlan):
        row = {name: best[name] for name in best if name.startswith(("days", "usd", "mwh"))}
        energy = {f"mwh{end}": row["mwh"] * row[f"days{end}"] / row["days"] for end in ("_low", "_high")}
        return {"stage": "post-training", "accelerators": best["accelerators"], **row, **energy, "served_tokens": 0.0}
    megawatts = best["accelerators"] * best["facility_power_per_accelerator_w"] / 1e6
    values = {"days": days, "usd": days * 24.0 * best["cost_usd_per_h"], "mwh": days * 24.0 * megawatts}
    row = {f"{name}{end}": value for name, value in values.items() for end in ENDS}
    tokens = best["requests_per_s"] * best["output_tokens"] * days * SECONDS_PER_DAY
    return {"stage": "serving", "accelerators": best["accelerators"], **row, "served_tokens": tokens}
