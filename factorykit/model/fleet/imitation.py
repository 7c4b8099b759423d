"""Logs of a cluster that was simulated, where the truth is known: what verbs say of them can be held against it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from factorykit.borders import file_path, need, number, whole
from factorykit.errors import ScenarioError, shown
from factorykit.formulas.energy import accelerator_energy_kwh
from factorykit.model.engine.evaluate import evaluate
from factorykit.model.operations.run_plan import Cause
from factorykit.model.operations.simulate import timeline

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

BEGIN: Final = datetime(2026, 3, 1, tzinfo=UTC)
JOB: Final = "4711"
SAMPLED_STEPS: Final = 20
"""Steps of one node's log of its own time from one line to the next."""
SAMPLED_S: Final = 3600
"""Between two samples of power. [s]"""
NODE_SPREAD: Final = 0.004
"""Standard deviation of the logarithm of a node's own time in a step."""
POWER_SPREAD: Final = 0.03
IDLE_SHARE: Final = 0.15
"""Of the power of a busy accelerator that an idle one takes."""
REPAIR_MEDIAN_S: Final = 3600.0
REPAIR_SIGMA: Final = 1.0
SHARES: Final = {"accelerator": 5.0, "accelerator memory": 2.0, "network": 2.0, "host": 1.0}
REASONS: Final = {
    "accelerator": ("GPU has fallen off the bus", 79),
    "accelerator memory": ("uncorrectable ECC", 95),
    "network": ("InfiniBand port is down", None),
    "host": ("Not responding", None),
}
"""What Slurm's reason says of a cause, and the kernel."""
NEEDED: Final = ("step_s", "checkpoint_interval_s", "checkpoint_write_s", "cluster_mtbf_s", "accelerator_power_w")
MOST_ROWS: Final = 10_000_000
"""Of all logs together."""
WORKS: Final = ("restart", "kept", "lost")
"""States of a run in which its job holds its nodes."""
SIZES: Final = ("nodes", "accelerators_per_node", "training_s")


def imitate(
    folder: str | Path,
    inputs: Mapping[str, Any],
    *,
    seed: int = 0,
    spare_nodes: int = 2,
    slow: float = 1.05,
    assume: bool = False,
) -> dict[str, Any]:
    """Simulate one run and write the logs that a cluster would have written of it.

    Parameters
    ----------
    folder
        Where to write ``sacct.txt`` (attempts of the job), ``events.txt`` (Slurm's events of nodes), ``kernel.log``
        (Xids), ``slurm-4711.out`` (steps as Megatron tells them), ``nodes.csv`` (the own time of every node in every
        twentieth step) and ``power.csv`` (every accelerator, an hour apart).
    inputs
        Quantities that :func:`factorykit.timeline` needs, with ``nodes``, ``accelerators_per_node``, ``step_s`` and
        ``accelerator_power_w``; the checkpoint interval is rounded to whole steps.
    seed
        The same seed writes the same files.
    spare_nodes
        Nodes beside those of the job. Half of the repairs end within an hour.
    slow
        How much longer than the others one node takes for its part of a step, from 1 on.
    assume
        Whether sourced defaults fill what nobody gave, as in :func:`factorykit.evaluate`.

    Returns
    -------
    dict
        The truth: ``node_mtbf_s`` put in, ``failures`` drawn, ``goodput`` of the run, hours of all accelerators
        ``lost_h`` and ``restart_h``, the ``slow_node``, and ``accelerator_energy_kwh`` while the job held them.

    Raises
    ------
    MissingQuantity, ScenarioError

    Examples
    --------
    >>> import tempfile, factorykit as fk
    >>> folder = tempfile.mkdtemp()
    >>> hours = {"training_s": 864000.0, "step_s": 600.0, "checkpoint_interval_s": 3600.0, "checkpoint_write_s": 30.0}
    >>> cluster = {"accelerators": 32.0, "accelerators_per_node": 8.0, "accelerator_power_w": 600.0}
    >>> stops = {"accelerator_mtbf_s": 3e6, "restart_s": 600.0, "downtime_s": 60.0}
    >>> truth = imitate(folder, {**hours, **cluster, **stops})
    >>> log = fk.read_log(folder)
    >>> log.jobs.height - 1 == truth["failures"] == fk.fleet.mtbf(log)["failures"].item()
    True
    >>> fk.fleet.stragglers(log)["node"][0] == truth["slow_node"]
    True
    """
    import polars as pl

    if (slow := number("slow", slow)) < 1.0:
        raise ScenarioError(f"slow = {slow:g} is below 1; give how much longer the slow node takes, e.g. 1.05")
    out, spares, random = file_path("folder", folder), whole("spare_nodes", spare_nodes), whole("seed", seed)
    found = evaluate(inputs, [*NEEDED, *SIZES], assume=assume)
    step_s, interval_s, write_s, cluster_mtbf_s, power_w = (float(found[name]) for name in NEEDED)
    nodes, per_node, work_s = (round(float(found[name])) for name in SIZES)
    if nodes < 2:
        raise ScenarioError(f"nodes = {nodes}: one of them is slow and others fail; give two or more")
    rows = work_s * ((nodes + spares) * per_node / SAMPLED_S + (nodes / SAMPLED_STEPS + 1.0) / step_s)
    rows += nodes * work_s / cluster_mtbf_s
    if not rows <= MOST_ROWS:
        raise ScenarioError(f"these logs have {rows:,.0f} rows; give a shorter or smaller run, up to {MOST_ROWS:,}")
    between = max(round(interval_s / step_s), 1)
    causes = [Cause(name, weight) for name, weight in SHARES.items()]
    run = {**inputs, "checkpoint_interval_s": between * step_s}
    told = timeline(run, random, causes=causes, assume=assume)
    fleet = _Fleet(nodes, spares, random)
    attempts = [_Attempt.of(stretches, fleet) for stretches in _runs(told)]
    steps = pl.concat([_steps(attempt, step_s, write_s, between) for attempt in attempts])
    if steps.is_empty():
        raise ScenarioError(f"training_s = {work_s:g} is shorter than step_s = {step_s:g}; give a longer run")
    texts = {
        "sacct.txt": _sacct(attempts, nodes, per_node),
        "events.txt": _events(attempts),
        "kernel.log": _kernel(attempts),
        "slurm-4711.out": _megatron(steps, step_s),
    }
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, lines in texts.items():
            (out / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")
        _nodes(steps, attempts, fleet, step_s, slow).write_csv(out / "nodes.csv", float_precision=4)
        _power(attempts, fleet, per_node, power_w).write_csv(out / "power.csv", float_precision=1)
    except OSError as error:
        said = f"folder = {shown(str(out))} cannot be written: {error.strerror or error}; give another one"
        raise ScenarioError(said) from None
    held = told.group_by("state").agg(((pl.col("end_s") - pl.col("start_s")).sum() / 3600.0) * nodes * per_node)
    hours = dict(held.iter_rows())
    busy_h = sum(hours.get(state, 0.0) for state in WORKS)
    return {
        "node_mtbf_s": cluster_mtbf_s * nodes,
        "failures": float(sum(attempt.cause is not None for attempt in attempts)),
        "goodput": float(steps["step"].max()) * step_s / attempts[-1].end_s,  # type: ignore[arg-type]
        "lost_h": hours.get("lost", 0.0),
        "restart_h": hours.get("restart", 0.0),
        "slow_node": fleet.names[fleet.slow],
        "accelerator_energy_kwh": accelerator_energy_kwh(busy_h, power_w),
    }


class _Fleet:
    """Nodes by number: those that the job has, and when each of the others is whole again."""

    def __init__(self, nodes: int, spares: int, seed: int) -> None:
        np = need("numpy")
        self.draw = np.random.default_rng([seed, 1])
        self.names = [f"node{n:03d}" for n in range(nodes + spares)]
        self.on = list(range(nodes))
        self.free = dict.fromkeys(range(nodes, nodes + spares), 0.0)
        self.slow = nodes // 2

    def fail(self, at_s: float) -> tuple[int, float]:
        """Take a node other than the slow one away; return it and when it is whole again, its place filled."""
        place = int(self.draw.choice([n for n, node in enumerate(self.on) if node != self.slow]))
        node, back_s = self.on[place], at_s + REPAIR_MEDIAN_S * float(self.draw.lognormal(0.0, REPAIR_SIGMA))
        self.free[node] = back_s
        self.on[place] = min(self.free, key=lambda each: self.free[each])
        del self.free[self.on[place]]
        return node, back_s


@dataclass(frozen=True)
class _Attempt:
    """One start of the job: when, on which nodes, with which progress, and what ended it."""

    start_s: float
    begin_s: float
    end_s: float
    progress_s: float
    on: tuple[str, ...]
    cause: str | None
    failed: str
    back_s: float

    @classmethod
    def of(cls, run: tuple[float, float, float, float, str | None], fleet: _Fleet) -> _Attempt:
        start_s, begin_s, end_s, progress_s, cause = run
        on = tuple(fleet.names[node] for node in sorted(fleet.on))
        node, back_s = fleet.fail(end_s) if cause else (0, 0.0)
        return cls(start_s, begin_s, end_s, progress_s, on, cause, fleet.names[node], back_s)


def _runs(told: pl.DataFrame) -> Iterator[tuple[float, float, float, float, str | None]]:
    """Yield start, begin of the work, end, progress at the begin and cause of the end of every attempt."""
    import polars as pl

    works = told.with_columns(before=pl.col("progress_s").shift(1).fill_null(0.0)).filter(pl.col("state").is_in(WORKS))
    numbered = works.with_columns(attempt=pl.col("cause").is_not_null().cum_sum().shift(1).fill_null(0))
    ready = pl.col("end_s").filter(pl.col("state") == "restart").last()
    runs = numbered.group_by("attempt", maintain_order=True).agg(
        pl.col("start_s").first(),
        pl.coalesce(ready, pl.col("start_s").first()).alias("begin_s"),
        pl.col("end_s").last(),
        pl.col("before").first(),
        pl.col("cause").last(),
    )
    yield from runs.drop("attempt").iter_rows()


def _steps(attempt: _Attempt, step_s: float, write_s: float, between: int) -> pl.DataFrame:
    """Return the steps that end in an attempt: when, which, and how long the checkpoint before it took."""
    import polars as pl

    np = need("numpy")
    reach_s = attempt.progress_s + attempt.end_s - attempt.begin_s
    block_s = between * step_s + write_s
    first = int(attempt.progress_s // block_s) * between + 1
    step = np.arange(first, int(reach_s / step_s) + 2)
    done_s = step * step_s + (step - 1) // between * write_s
    kept = step[(done_s > attempt.progress_s) & (done_s <= reach_s * (1.0 + 1e-12))]
    done_s = kept * step_s + (kept - 1) // between * write_s
    wrote = ((kept - 1) % between == 0) & (kept > first)
    at_s = attempt.begin_s + done_s - attempt.progress_s
    return pl.DataFrame({"at_s": at_s, "step": kept, "checkpoint_write_s": np.where(wrote, write_s, 0.0)})


def _moment(at_s: float, end: str = "") -> str:
    return (BEGIN + timedelta(seconds=at_s)).strftime(f"%Y-%m-%dT%H:%M:%S{end}")


def _sacct(attempts: list[_Attempt], nodes: int, per_node: int) -> Iterator[str]:
    yield "JobID|User|State|Submit|Start|End|AllocNodes|AllocTRES|NodeList"
    since_s = 0.0
    for each in attempts:
        times = "|".join(map(_moment, (since_s, each.start_s, each.end_s)))
        state = "NODE_FAIL" if each.cause else "COMPLETED"
        yield f"{JOB}|ann|{state}|{times}|{nodes}|gres/gpu={nodes * per_node},node={nodes}|{','.join(each.on)}"
        since_s = each.end_s


def _events(attempts: list[_Attempt]) -> Iterator[str]:
    yield "NodeName|TimeStart|TimeEnd|State|Reason"
    for each in attempts:
        if each.cause:
            yield f"{each.failed}|{_moment(each.end_s)}|{_moment(each.back_s)}|DOWN|{REASONS[each.cause][0]}"


def _kernel(attempts: list[_Attempt]) -> Iterator[str]:
    for each in attempts:
        xid = REASONS[each.cause][1] if each.cause else None
        for late_s in range(3 if xid else 0):
            at = _moment(each.end_s + late_s, "+00:00")
            yield f"{at} {each.failed} kernel: NVRM: Xid (PCI:0000:3b:00): {xid}, pid='<unknown>', name=<unknown>"


def _megatron(steps: pl.DataFrame, step_s: float) -> Iterator[str]:
    for at_s, step in steps.select("at_s", "step").iter_rows():
        at = (BEGIN + timedelta(seconds=at_s)).strftime("%Y-%m-%d %H:%M:%S.%f")
        yield f" [{at}] iteration {step:8d}/ 1000000 | elapsed time per iteration (ms): {step_s * 1000.0:.1f} |"


def _nodes(steps: pl.DataFrame, attempts: list[_Attempt], fleet: _Fleet, step_s: float, slow: float) -> pl.DataFrame:
    """Return the own time of every node in some of the steps; the slow one takes the whole of it."""
    import polars as pl

    runs = pl.DataFrame({"start_s": [each.start_s for each in attempts], "node": [each.on for each in attempts]})
    some = steps.filter(pl.col("step") % SAMPLED_STEPS == 0).sort("at_s")
    rows = some.join_asof(runs, left_on="at_s", right_on="start_s").explode("node")
    spread = fleet.draw.lognormal(0.0, NODE_SPREAD, rows.height)
    own = pl.when(pl.col("node") == fleet.names[fleet.slow]).then(1.0).otherwise(1.0 / slow)
    at = pl.lit(BEGIN) + pl.duration(microseconds=(pl.col("at_s") * 1e6).cast(pl.Int64))
    return rows.select(
        at=at.dt.strftime("%Y-%m-%dT%H:%M:%SZ"), job=pl.lit(JOB), node="node", step="step", step_s=step_s * own * spread
    )


def _power(attempts: list[_Attempt], fleet: _Fleet, per_node: int, power_w: float) -> pl.DataFrame:
    """Return samples of every accelerator of the fleet: busy while the job holds its node."""
    import polars as pl

    np = need("numpy")
    at_s = np.arange(0, int(attempts[-1].end_s), SAMPLED_S)
    busy = np.zeros((len(at_s), len(fleet.names)), bool)
    place = {name: n for n, name in enumerate(fleet.names)}
    for each in attempts:
        when = (at_s >= each.start_s) & (at_s < each.end_s)
        busy[np.ix_(when, [place[name] for name in each.on])] = True
    share: np.ndarray = np.repeat(np.where(busy, 1.0, IDLE_SHARE), per_node)
    count = len(fleet.names) * per_node
    return pl.DataFrame(
        {
            "at": np.repeat([_moment(float(each), "Z") for each in at_s], count),
            "node": np.tile(np.repeat(fleet.names, per_node), len(at_s)),
            "accelerator": np.tile(np.arange(per_node), len(at_s) * len(fleet.names)).astype(str),
            "accelerator_power_w": power_w * share * fleet.draw.lognormal(0.0, POWER_SPREAD, len(share)),
        }
    )
