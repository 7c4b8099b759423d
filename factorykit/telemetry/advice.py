"""The cluster of a log as a scenario, and the savings of a better checkpoint interval, spares, restarts and MTBF."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import polars as pl

from factorykit.core.constants import SECONDS_PER_DAY
from factorykit.core.errors import ScenarioError
from factorykit.core.validation import cells, mapping, probability
from factorykit.core.vocabulary import quantity
from factorykit.engine.evaluate import evaluate
from factorykit.model.reliability.reliability import spares_table
from factorykit.telemetry.attempts import started_attempts, steps_by_attempt
from factorykit.telemetry.failures import mtbf
from factorykit.telemetry.tidy import Log

INTERVAL: Final = "checkpoint_interval_optimal_s"


def scenario(log: Log, *, exposure: float | pl.DataFrame | None = None, **given: float | str) -> dict[str, float]:
    """Return the largest job and the cluster of a log as inputs of :func:`factorykit.evaluate`.

    Parameters
    ----------
    log
        A log with jobs from :func:`factorykit.read_log`.
    exposure
        Nodes and periods that were watched, as in :func:`mtbf`.
    **given
        Quantities that override the log or are missing in it, such as a price.

    Returns
    -------
    dict
        ``accelerators``, ``accelerators_per_node`` and ``nodes`` of the largest job; ``node_failures_per_node_day`` and
        ``accelerator_mtbf_s`` of the fleet; if the log has them, the medians ``node_repair_s``, ``step_s``,
        ``restart_s``, ``checkpoint_interval_s`` and ``checkpoint_write_s``; ``downtime_s`` is 0 by default: it is
        included in the restart.

    Raises
    ------
    ScenarioError, UnknownQuantity
        If the log has no jobs or no failures, or a given quantity is unknown or out of bounds.

    Examples
    --------
    >>> import tempfile, pathlib, factorykit as fk
    >>> file = pathlib.Path(tempfile.mkdtemp(), "jobs.csv")
    >>> _ = file.write_text('''job,state,started,ended,nodes,accelerators,node_list
    ... 7,node failure,2026-03-01,2026-03-05,2,16,n[1-2]
    ... 7,completed,2026-03-05,2026-03-11,2,16,n[1-2]
    ... ''')
    >>> inputs = scenario(fk.read_log(file), checkpoint_write_s="30 s")
    >>> inputs["nodes"], inputs["node_failures_per_node_day"], inputs["checkpoint_write_s"]
    (2.0, 0.05, 30.0)
    """
    overrides = {name: quantity(name).check(value) for name, value in given.items()}
    attempts = started_attempts(log)
    largest = attempts.sort("accelerators", descending=True, maintain_order=True).row(0, named=True)
    fleet = mtbf(log, exposure=exposure).row(0, named=True)
    if not fleet["failures"] or not largest["nodes"]:
        raise ScenarioError("the log has no failures, or no nodes of its jobs; a failure rate is needed")
    per_node = largest["accelerators"] / largest["nodes"]
    inputs = {
        "accelerators": largest["accelerators"],
        "accelerators_per_node": per_node,
        "nodes": largest["nodes"],
        "node_failures_per_node_day": SECONDS_PER_DAY / fleet["node_mtbf_s"],
        "accelerator_mtbf_s": per_node * fleet["node_mtbf_s"],
        "node_repair_s": fleet["node_repair_s"],
        "downtime_s": 0.0,
    }
    steps = steps_by_attempt(log, attempts)
    saves = steps.filter(pl.col("checkpoint_s") > 0.0)
    restarts = steps.filter("is_first").with_columns(pl.col("pause").clip(0.0))
    inputs |= {
        "step_s": steps["step_s"].median(),
        "checkpoint_write_s": saves["checkpoint_s"].median(),
        "restart_s": restarts.filter(pl.col("pause") > 0.0)["pause"].median(),
        "checkpoint_interval_s": steps.select((pl.col("period") * pl.col("step_s")).median()).item(),
    }
    return {name: value for name, value in {**inputs, **overrides}.items() if value is not None}


def advise(
    log: Log, *, exposure: float | pl.DataFrame | None = None, confidence: float = 0.95, **given: float | str
) -> pl.DataFrame:
    """Return changes to the cluster with their savings per day.

    Parameters
    ----------
    log
        A log with jobs from :func:`factorykit.read_log`.
    exposure
        As in :func:`scenario`.
    confidence
        Confidence level of the limits, in (0, 1).
    **given
        As in :func:`scenario`; a price, and quantities that the log lacks.

    Returns
    -------
    DataFrame
        One row per change: ``quantity``; ``current``, null if no log has it; ``best``, with ``best_low`` and
        ``best_high`` if it depends on the failure rate; ``failures_usd_per_day_saved`` [USD/d], negative if the change
        costs more and null without a price; ``change``. Changes: the checkpoint interval to its exact optimum, spare
        nodes from none to enough, restarts in half the time, half the failures.

    Raises
    ------
    ScenarioError
        If neither the log nor ``given`` has the time to write a checkpoint.
    """
    probability("confidence", confidence)
    base = scenario(log, exposure=exposure, **given)
    if "checkpoint_write_s" not in base:
        raise ScenarioError('the log has no checkpoint times; give checkpoint_write_s, e.g. "30 s"')
    fleet = mtbf(log, exposure=exposure, confidence=confidence).row(0, named=True)
    ends = [
        {**base, "accelerator_mtbf_s": base["accelerator_mtbf_s"] * fleet[end] / fleet["node_mtbf_s"]}
        for end in ("node_mtbf_s_low", "node_mtbf_s_high")
    ]
    current = base.get("checkpoint_interval_s")
    free = [{name: value for name, value in case.items() if name != "checkpoint_interval_s"} for case in (base, *ends)]
    best, low, high = (_value(inputs, INTERVAL) for inputs in free)
    is_priced = "rental_usd_per_accelerator_h" in base

    def usd_per_day(inputs: Mapping[str, float], name: str) -> float | None:
        return _value(inputs, name) if is_priced else None

    saved = current and usd_per_day(base, "interval_usd_per_day")
    rows: list[tuple[Any, ...]] = [
        ("checkpoint_interval_s", current, best, low, high, saved, "the optimal checkpoint interval"),
    ]
    if "node_repair_s" in base:
        enough = _value(base, "spare_nodes_enough")
        costs = spares_table(base, int(enough))["usd_per_day"] if is_priced else None
        saved = None if costs is None else costs[0] - costs[-1]
        rows.append(("spare_nodes", None, enough, None, None, saved, "spares for 99 % of the time instead of none"))
    if "restart_s" in base:
        restart_s, mtbf_s = base["restart_s"], fleet["node_mtbf_s"]
        faster = base | {"restart_faster_s": restart_s / 2.0}
        rarer = base | {"mtbf_factor": 2.0, "checkpoint_interval_s": current or best}
        saved = usd_per_day(faster, "restart_saving_usd_per_day")
        rows.append(("restart_s", restart_s, restart_s / 2.0, None, None, saved, "restarts in half the time"))
        saved = usd_per_day(rarer, "mtbf_saving_usd_per_day")
        rows.append(("node_mtbf_s", mtbf_s, 2.0 * mtbf_s, None, None, saved, "half the failures"))
    names = ("quantity", "current", "best", "best_low", "best_high", "failures_usd_per_day_saved", "change")
    kinds = {name: pl.String if name in ("quantity", "change") else pl.Float64 for name in names}
    return pl.DataFrame(rows, kinds, orient="row")


def step_times(log: Log, layout: Mapping[str, Any]) -> pl.DataFrame:
    r"""Return the step times of a log as rows for :func:`factorykit.calibrate` and :func:`factorykit.validate`.

    Parameters
    ----------
    log
        A log with steps from :func:`factorykit.read_log`.
    layout
        Columns of the ``training_runs`` table that logs lack, such as ``model``, ``hardware``, ``tp`` and
        ``global_batch``, for all jobs; or a mapping of such mappings by the name of the job.

    Returns
    -------
    DataFrame
        One row per job with a layout: ``id``, its name; ``step_time_s`` [s], the median; ``accelerator_count`` of the
        log; and the columns of the layout, which override it.

    Raises
    ------
    ScenarioError
        If no job with steps has a layout.

    Examples
    --------
    >>> import tempfile, pathlib, factorykit as fk
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> text = "job,state,started,ended,nodes,accelerators\n7,completed,2026-03-01,2026-03-02,1,8\n"
    >>> _ = (folder / "jobs.csv").write_text(text)
    >>> _ = (folder / "job-7.csv").write_text("at,step,step_s\n2026-03-01 01:00,1,4.5\n2026-03-01 01:01,2,4.5\n")
    >>> step_times(fk.read_log(folder), {"tp": 8}).row(0, named=True)
    {'id': '7', 'step_time_s': 4.5, 'accelerator_count': 8.0, 'tp': 8}
    """
    layout, attempts = mapping("layout", layout), started_attempts(log)
    times = (
        steps_by_attempt(log, attempts).group_by("job", maintain_order=True).agg(step_time_s=pl.col("step_s").median())
    )
    counts = attempts.group_by("job").agg(accelerator_count=pl.col("accelerators").max())
    is_by_job = all(isinstance(value, Mapping) for value in layout.values())
    rows = [
        {"id": row["job"], **row, **cells("layout", columns)}
        for row in times.join(counts, on="job", maintain_order="left").iter_rows(named=True)
        if (columns := layout.get(row["job"]) if is_by_job else layout)
    ]
    if not rows:
        raise ScenarioError(
            f"no job with steps has a layout; jobs with steps are {', '.join(times['job'][:5]) or 'none'}"
        )
    return pl.DataFrame(rows, infer_schema_length=None).drop("job")


def _value(inputs: Mapping[str, float], name: str) -> float:
    return float(evaluate(inputs, name)[name])
