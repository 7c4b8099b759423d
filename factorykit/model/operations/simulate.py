"""Monte Carlo simulation of a run with failures, checkpoint tiers, restarts, spares and maintenance.

The plain case (failures at a constant rate, one tier) is drawn from its compound distribution: the number of failed
attempts and their times. All other cases step through the failures of all runs together. Both are vectorised over the
runs and seeded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Unpack

import polars as pl

from factorykit.core.errors import ScenarioError, warn
from factorykit.core.extras import need
from factorykit.core.validation import integer
from factorykit.model.operations.run_plan import RunConditions, RunPlan, run_plan

if TYPE_CHECKING:
    from factorykit.model.operations.draws import Attempt

DRAWS = "factorykit.model.operations.draws"
MOST_RUNS = 10_000_000
"""Most runs in memory."""


def simulate(
    inputs: Mapping[str, Any],
    runs: int = 10_000,
    seed: int = 0,
    *,
    using: Mapping[str, str] | None = None,
    assume: bool = False,
    **conditions: Unpack[RunConditions],
) -> pl.DataFrame:
    """Simulate whole runs with failures.

    Parameters
    ----------
    inputs
        Quantities that give or lead to ``training_s``, ``checkpoint_interval_s``, ``checkpoint_write_s``,
        ``cluster_mtbf_s``, ``restart_s`` and ``downtime_s``; with ``cluster_usd_per_h`` runs have a cost.
    runs
        Rows.
    seed
        The same seed gives the same rows.
    causes
        Causes of failures with their shares, repairs and destroyed tiers; by default one that takes no node.
    tiers
        Places for checkpoints, the nearest first; by default one with ``checkpoint_write_s`` of the scenario.
    gap_s
        Distribution of the time at risk between failures; by default exponential with ``cluster_mtbf_s``.
    spare_nodes
        Nodes held ready at the start; a job whose node is lost waits when none is left. By default never.
    restart_failure_probability
        Chance that a restart fails by itself and begins again.
    protected_restart
        Whether no failure can strike a restart.
    maintenance
        Planned stops.
    using, assume
        As in :func:`factorykit.evaluate`.

    Returns
    -------
    DataFrame
        One row per run: ``run`` counts from 1; ``wall_s`` [s]; ``goodput`` [1], work over wall-clock time; ``failures``
        [1]; ``lost_work_run_s`` [s], done again; ``recovery_s`` [s] in downtime and restarts, those of planned stops
        too; ``spare_wait_s`` [s]; ``maintenance_s`` [s]; ``rental_cost_usd`` [USD], null without a price. With
        ``causes`` a struct ``failures_by_cause``, with ``tiers`` a struct ``restores_by_tier``.

    Raises
    ------
    MissingQuantity, ScenarioError
        If a needed quantity cannot be computed, or a number is out of range.

    Warns
    -----
    FactorykitWarning
        If runs would practically never end; ``wall_s`` is infinite then, and the warning has the reason.

    Notes
    -----
    Work is cut into segments of ``checkpoint_interval_s`` that each end with a checkpoint; a shorter last one does
    too. A failure loses the work after the newest remaining copy, costs ``downtime_s`` in which nothing fails,
    then ``restart_s`` and the tier's ``restore_s``; a failure during that reads the same tier again, or a farther one
    if it needs it. The first start costs nothing. For one tier and a constant rate the mean is ``checkpoint_wall_s``
    and the standard deviation ``checkpoint_wall_sd_s``; for more tiers the mean is that of
    ``checkpoint_patterns.pattern_s``.

    Examples
    --------
    The rate of Llama 3, a minute to write, ten to restart:

    >>> run = {"training_s": 3802 * 1100.0, "checkpoint_interval_s": 1100.0, "checkpoint_write_s": 60.0,
    ...        "cluster_mtbf_s": 54 * 86400 / 419, "restart_s": 600.0, "downtime_s": 0.0}
    >>> simulate(run, runs=1000, seed=1)["wall_s"].mean() / 86400
    56.7...
    """
    planned = _planned("simulate", inputs, conditions, using=using, assume=assume)
    count = integer("runs", runs, 1, MOST_RUNS)
    drawn = need(DRAWS).draw(planned, count, integer("seed", seed))
    if drawn.endless:
        warn(f"wall_s is infinite{drawn.endless}")
    wall_s, *others = (pl.Series(name, values) for name, values in drawn.columns.items())
    frame = pl.DataFrame({"run": range(1, count + 1)}, {"run": pl.Float64}).with_columns(
        wall_s,
        (planned.training_s / wall_s).alias("goodput"),
        *others,
        (pl.lit(planned.usd_per_s, pl.Float64) * wall_s).alias("rental_cost_usd"),
    )
    for name, table, named in (
        ("failures_by_cause", drawn.failures_by_cause, planned.causes),
        ("restores_by_tier", drawn.restores_by_tier, planned.tiers),
    ):
        if table is not None:
            frame = frame.with_columns(pl.DataFrame(table, [part.name for part in named]).to_struct(name))
    return frame


def timeline(
    inputs: Mapping[str, Any],
    seed: int = 0,
    *,
    using: Mapping[str, str] | None = None,
    assume: bool = False,
    **conditions: Unpack[RunConditions],
) -> pl.DataFrame:
    """Simulate one run and return its states over time.

    Parameters
    ----------
    inputs, seed, causes, tiers, gap_s, spare_nodes, restart_failure_probability, protected_restart, maintenance
        As in :func:`simulate`, as are ``using`` and ``assume``.

    Returns
    -------
    DataFrame
        One row per stretch in the order of time: ``state`` (kept, lost, down, waiting, restart, maintenance),
        ``start_s`` and ``end_s`` [s] of wall-clock time, ``progress_s`` [s] of work and writes that is safe at its end,
        and ``cause`` of the failure that ends it, null if none does. Stretches of no length are left out.

    Notes
    -----
    ``kept`` is the work that the next failure leaves; a later failure that falls back further can still lose it, as
    ``progress_s`` shows.
    """
    planned = _planned("timeline", inputs, conditions, using=using, assume=assume)
    if reason := planned.endless():
        raise ScenarioError(f"the run would not end: {reason}")
    stretches = [row for attempt in need(DRAWS).follow(planned, integer("seed", seed)) for row in _stretches(attempt)]
    schema = {"state": pl.String, "start_s": pl.Float64, "end_s": pl.Float64, "progress_s": pl.Float64}
    rows = pl.DataFrame(stretches, schema | {"cause": pl.String}, orient="row")
    return rows.filter(pl.col("end_s") > pl.col("start_s"))


def _planned(verb: str, inputs: Mapping[str, Any], conditions: RunConditions, **options: Any) -> RunPlan:
    if unknown := conditions.keys() - RunConditions.__annotations__.keys():
        raise TypeError(f"{verb}() got an unexpected keyword argument {min(unknown)!r}")
    return run_plan(inputs, **conditions, **options)


def _stretches(attempt: Attempt) -> Iterator[tuple[str, float, float, float, str | None]]:
    """Yield state, start, end, safe progress and cause of each stretch up to the end of a stop."""
    began, kept = attempt.start_s + attempt.restart_s, max(attempt.work_s - attempt.lost_s, 0.0)
    end, back = began + attempt.work_s, attempt.at_s + attempt.work_s - attempt.lost_s
    yield "restart", attempt.start_s, began, attempt.at_s, None if attempt.work_s else attempt.cause
    yield "kept", began, began + kept, attempt.at_s + kept, None if attempt.lost_s else attempt.cause
    yield "lost", began + kept, end, back, attempt.cause
    yield "maintenance" if attempt.is_planned else "down", end, end + attempt.pause_s, back, None
    yield "waiting", end + attempt.pause_s, end + attempt.pause_s + attempt.wait_s, back, None
