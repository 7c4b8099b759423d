"""One's own cluster as a scenario, and what changing its interval, spares, restarts and failures is worth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from factorykit.borders import cells, mapping, share
from factorykit.constants import SECONDS_PER_DAY
from factorykit.errors import ScenarioError
from factorykit.logs.tidy import Log
from factorykit.model.engine.evaluate import evaluate
from factorykit.model.fleet.faults import mtbf
from factorykit.model.fleet.ledger import attempted, steps_of
from factorykit.model.reliability.statistics import spares_table
from factorykit.quantities import quantity

if TYPE_CHECKING:
    import polars as pl

INTERVAL: Final = "checkpoint_interval_optimal_s"


def scenario(log: Log, **given: float | str) -> dict[str, float]:
    """Return what a log says of its largest job and its cluster, as inputs of every other verb.

    Parameters
    ----------
    log
        What :func:`factorykit.read_log` returns, with jobs.
    **given
        Quantities that are known better, or that no log tells, such as a price; they win.

    Returns
    -------
    dict
        ``accelerators``, ``accelerators_per_node`` and ``nodes`` of the largest job; ``node_failures_per_node_day`` and
        ``accelerator_mtbf_s`` of the fleet; as far as logs tell them ``node_repair_s``, ``step_s``, ``restart_s``,
        ``checkpoint_interval_s`` and ``checkpoint_write_s``, medians; ``downtime_s`` is 0 unless given: it is in the
        restart.

    Raises
    ------
    ScenarioError, UnknownQuantity
        If the log tells no jobs or no failures, or a quantity given is none or out of its bounds.

    Examples
    --------
    >>> import tempfile, pathlib, factorykit as fk
    >>> file = pathlib.Path(tempfile.mkdtemp(), "jobs.csv")
    >>> _ = file.write_text('''job,state,started,ended,nodes,accelerators,on
    ... 7,node failure,2026-03-01,2026-03-05,2,16,n[1-2]
    ... 7,completed,2026-03-05,2026-03-11,2,16,n[1-2]
    ... ''')
    >>> told = scenario(fk.read_log(file), checkpoint_write_s="30 s")
    >>> told["nodes"], told["node_failures_per_node_day"], told["checkpoint_write_s"]
    (2.0, 0.05, 30.0)
    """
    import polars as pl

    known = {name: quantity(name).check(value) for name, value in given.items()}
    attempts = attempted(log)
    largest = attempts.sort("accelerators", descending=True, maintain_order=True).row(0, named=True)
    fleet = mtbf(log).row(0, named=True)
    if not fleet["failures"] or not largest["nodes"]:
        raise ScenarioError("the log tells no failures, or no nodes of its jobs; there is no rate to advise on")
    per_node = largest["accelerators"] / largest["nodes"]
    told = {
        "accelerators": largest["accelerators"],
        "accelerators_per_node": per_node,
        "nodes": largest["nodes"],
        "node_failures_per_node_day": SECONDS_PER_DAY / fleet["node_mtbf_s"],
        "accelerator_mtbf_s": per_node * fleet["node_mtbf_s"],
        "node_repair_s": fleet["node_repair_s"],
        "downtime_s": 0.0,
    }
    steps = steps_of(log, attempts)
    saves = steps.filter(pl.col("checkpoint_s") > 0.0)
    restarts = steps.filter("is_first").with_columns(pl.col("pause").clip(0.0))
    told |= {
        "step_s": steps["step_s"].median(),
        "checkpoint_write_s": saves["checkpoint_s"].median(),
        "restart_s": restarts.filter(pl.col("pause") > 0.0)["pause"].median(),
        "checkpoint_interval_s": steps.select((pl.col("period") * pl.col("step_s")).median()).item(),
    }
    return {name: value for name, value in {**told, **known}.items() if value is not None}


def advise(log: Log, *, confidence: float = 0.95, **given: float | str) -> pl.DataFrame:
    """Return what to change on this cluster, and what a day of that is worth.

    Parameters
    ----------
    log
        What :func:`factorykit.read_log` returns, with jobs.
    confidence
        Of the limits, in (0, 1).
    **given
        As in :func:`scenario`; a price, and what the log does not tell.

    Returns
    -------
    DataFrame
        One row per lever: ``quantity``; ``now``, null where no log tells it; ``best``, with ``best_low`` and
        ``best_high`` where it follows from the failure rate; ``failures_usd_per_day_saved`` [USD/d], what the change is
        worth, negative where it costs more and null without a price; ``what`` is changed. Levers: the checkpoint
        interval to its exact optimum, spare nodes from none to enough, restarts in half the time, half as many
        failures.

    Raises
    ------
    ScenarioError
        If neither the log nor ``given`` tells how long a checkpoint takes to write.
    """
    import polars as pl

    share("confidence", confidence)
    base = scenario(log, **given)
    if "checkpoint_write_s" not in base:
        raise ScenarioError('no log tells how long a checkpoint takes; give checkpoint_write_s, e.g. "30 s"')
    fleet = mtbf(log, confidence=confidence).row(0, named=True)
    ends = [
        {**base, "accelerator_mtbf_s": base["accelerator_mtbf_s"] * fleet[end] / fleet["node_mtbf_s"]}
        for end in ("node_mtbf_s_low", "node_mtbf_s_high")
    ]
    best, low, high = (_asked(_without(each, "checkpoint_interval_s"), INTERVAL) for each in (base, *ends))
    now = base.get("checkpoint_interval_s")
    is_priced = "rental_usd_per_accelerator_h" in base

    def worth(inputs: Mapping[str, float], name: str) -> float | None:
        return _asked(inputs, name) if is_priced else None

    saved = now and worth(base, "interval_usd_per_day")
    rows: list[tuple[Any, ...]] = [
        ("checkpoint_interval_s", now, best, low, high, saved, "the interval at its best"),
    ]
    if "node_repair_s" in base:
        enough = _asked(base, "spare_nodes_enough")
        costs = spares_table(base, int(enough))["usd_per_day"] if is_priced else None
        saved = None if costs is None else costs[0] - costs[-1]
        rows.append(("spare_nodes", None, enough, None, None, saved, "spares for 99 % of the time, beside none"))
    if "restart_s" in base:
        restart_s, mtbf_s = base["restart_s"], fleet["node_mtbf_s"]
        faster = base | {"restart_faster_s": restart_s / 2.0}
        rarer = base | {"mtbf_factor": 2.0, "checkpoint_interval_s": now or best}
        saved = worth(faster, "restart_saving_usd_per_day")
        rows.append(("restart_s", restart_s, restart_s / 2.0, None, None, saved, "restarts in half the time"))
        saved = worth(rarer, "mtbf_saving_usd_per_day")
        rows.append(("node_mtbf_s", mtbf_s, 2.0 * mtbf_s, None, None, saved, "half as many failures"))
    names = ("quantity", "now", "best", "best_low", "best_high", "failures_usd_per_day_saved", "what")
    kinds = {name: pl.String if name in ("quantity", "what") else pl.Float64 for name in names}
    return pl.DataFrame(rows, kinds, orient="row")


def step_times(log: Log, layout: Mapping[str, Any]) -> pl.DataFrame:
    r"""Return the step times of a log as rows that :func:`factorykit.calibrate` and :func:`factorykit.validate` take.

    Parameters
    ----------
    log
        What :func:`factorykit.read_log` returns, with steps.
    layout
        What no log tells: columns of the ``training_runs`` table, such as ``model``, ``hardware``, ``tp`` and
        ``global_batch``, for all jobs; or by the name of a job a mapping of those.

    Returns
    -------
    DataFrame
        One row per job with a layout: ``id``, its name; ``step_time_s`` [s], the median; ``accelerator_count`` as the
        log tells it; and the columns of the layout, which win.

    Raises
    ------
    ScenarioError
        If no job with steps has a layout.

    Examples
    --------
    >>> import tempfile, pathlib, factorykit as fk
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> text = "job,state,started,ended,nodes,accelerators\n7,completed,2026-03-01,2026-03-02,1,8"
    >>> _ = (folder / "jobs.csv").write_text(text)
    >>> _ = (folder / "job-7.csv").write_text("at,step,step_s\n2026-03-01 01:00,1,4.5\n2026-03-01 01:01,2,4.5")
    >>> step_times(fk.read_log(folder), {"tp": 8}).row(0, named=True)
    {'id': '7', 'step_time_s': 4.5, 'accelerator_count': 8.0, 'tp': 8}
    """
    import polars as pl

    layout, attempts = mapping("layout", layout), attempted(log)
    times = steps_of(log, attempts).group_by("job", maintain_order=True).agg(step_time_s=pl.col("step_s").median())
    counts = attempts.group_by("job").agg(accelerator_count=pl.col("accelerators").max())
    is_by_job = all(isinstance(value, Mapping) for value in layout.values())
    rows = [
        {"id": row["job"], **row, **cells("layout", of)}
        for row in times.join(counts, on="job", maintain_order="left").iter_rows(named=True)
        if (of := layout.get(row["job"]) if is_by_job else layout)
    ]
    if not rows:
        raise ScenarioError(
            f"no job with steps has a layout; jobs with steps are {', '.join(times['job'][:5]) or 'none'}"
        )
    return pl.DataFrame(rows, infer_schema_length=None).drop("job")


def _without(inputs: Mapping[str, float], name: str) -> dict[str, float]:
    return {each: value for each, value in inputs.items() if each != name}


def _asked(inputs: Mapping[str, float], name: str) -> float:
    return float(evaluate(inputs, name)[name])
