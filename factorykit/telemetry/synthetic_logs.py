"""Synthetic logs of a simulated run with known failures, slow node and energy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import polars as pl

from factorykit.core.constants import SECONDS_PER_HOUR
from factorykit.core.errors import ScenarioError, short_repr
from factorykit.core.extras import need
from factorykit.core.validation import file_path, finite_number, integer
from factorykit.engine.evaluate import evaluate
from factorykit.formulas.energy import accelerator_energy_kwh
from factorykit.model.operations.run_plan import FailureCause
from factorykit.model.operations.simulate import timeline

if TYPE_CHECKING:
    import numpy as np

START: Final = datetime(2026, 3, 1, tzinfo=UTC)
JOB: Final = "4711"
SAMPLED_STEPS: Final = 20
"""Steps between two lines of the step times by node."""
SAMPLED_S: Final = 3600
"""Sampling interval of power. [s]"""
NODE_SPREAD: Final = 0.004
"""Standard deviation of the logarithm of the step time of a node."""
POWER_SPREAD: Final = 0.03
IDLE_SHARE: Final = 0.15
"""Power of an idle accelerator relative to a busy one."""
REPAIR_MEDIAN_S: Final = 3600.0
REPAIR_SIGMA: Final = 1.0
SHARES: Final = {"accelerator": 5.0, "accelerator memory": 2.0, "network": 2.0, "host": 1.0}
REASONS: Final = {
    "accelerator": ("GPU has fallen off the bus", 79),
    "accelerator memory": ("uncorrectable ECC", 95),
    "network": ("InfiniBand port is down", None),
    "host": ("Not responding", None),
}
"""Reason in Slurm and Xid in the kernel log by cause."""
NEEDED: Final = ("step_s", "checkpoint_interval_s", "checkpoint_write_s", "cluster_mtbf_s", "accelerator_power_w")
MAX_ROWS: Final = 10_000_000
"""Rows of all logs together."""
ALLOCATED_STATES: Final = ("restart", "kept", "lost")
"""States of the run in which the job holds its nodes."""
SIZES: Final = ("nodes", "accelerators_per_node", "training_s")


def simulate_logs(
    folder: str | Path,
    inputs: Mapping[str, Any],
    *,
    seed: int = 0,
    spare_nodes: int = 2,
    slowdown: float = 1.05,
    assume: bool = False,
) -> dict[str, Any]:
    """Simulate a run and write its logs.

    Parameters
    ----------
    folder
        Folder for ``sacct.txt`` (attempts of the job), ``events.txt`` (node events of Slurm), ``kernel.log`` (Xid
        errors), ``slurm-4711.out`` (steps logged by Megatron-LM), ``nodes.csv`` (the own time of every node in every
        twentieth step) and ``power.csv`` (hourly samples of every accelerator).
    inputs
        Inputs of :func:`factorykit.timeline`, with ``nodes``, ``accelerators_per_node``, ``step_s`` and
        ``accelerator_power_w``; the checkpoint interval is rounded to whole steps.
    seed
        Random seed.
    spare_nodes
        Nodes in addition to those of the job. The median repair time is an hour.
    slowdown
        Step time of one slow node relative to the others, at least 1.
    assume
        Whether missing inputs are filled with documented defaults, as in :func:`factorykit.evaluate`.

    Returns
    -------
    dict
        True values: ``node_mtbf_s`` of the inputs, the number of ``failures``, ``goodput`` of the run, ``lost_h`` and
        ``restart_h`` of all accelerators, the ``slow_node``, and ``accelerator_energy_kwh`` while the job was running.

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
    >>> truth = simulate_logs(folder, {**hours, **cluster, **stops})
    >>> log = fk.read_log(folder)
    >>> log.jobs.height - 1 == truth["failures"] == fk.fleet.mtbf(log)["failures"].item()
    True
    >>> fk.fleet.stragglers(log)["node"][0] == truth["slow_node"]
    True
    """
    if (slowdown := finite_number("slowdown", slowdown)) < 1.0:
        raise ScenarioError(f"slowdown must be at least 1, got {slowdown:g}; give e.g. 1.05")
    out, spares, random = file_path("folder", folder), integer("spare_nodes", spare_nodes), integer("seed", seed)
    values = evaluate(inputs, [*NEEDED, *SIZES], assume=assume)
    step_s, interval_s, write_s, cluster_mtbf_s, power_w = (float(values[name]) for name in NEEDED)
    nodes, per_node, work_s = (round(float(values[name])) for name in SIZES)
    if nodes < 2:
        raise ScenarioError(f"nodes must be at least 2, got {nodes}: one node is slow and others fail")
    rows = work_s * ((nodes + spares) * per_node / SAMPLED_S + (nodes / SAMPLED_STEPS + 1.0) / step_s)
    rows += nodes * work_s / cluster_mtbf_s
    if not rows <= MAX_ROWS:
        raise ScenarioError(f"the logs have {rows:,.0f} rows, the limit is {MAX_ROWS:,}; give a shorter or smaller run")
    interval = max(round(interval_s / step_s), 1)
    causes = [FailureCause(name, weight) for name, weight in SHARES.items()]
    run = {**inputs, "checkpoint_interval_s": interval * step_s}
    states = timeline(run, random, causes=causes, assume=assume)
    fleet = _Fleet(nodes, spares, random)
    attempts = [*_attempts(states, fleet)]
    steps = pl.concat([_steps(attempt, step_s, write_s, interval) for attempt in attempts])
    if steps.is_empty():
        raise ScenarioError(f"training_s = {work_s:g} must be longer than step_s = {step_s:g}")
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
        _nodes(steps, attempts, fleet, step_s, slowdown).write_csv(out / "nodes.csv", float_precision=4)
        _power(attempts, fleet, per_node, power_w).write_csv(out / "power.csv", float_precision=1)
    except OSError as error:
        reason = error.strerror or error
        raise ScenarioError(f"folder {short_repr(str(out))} cannot be written ({reason}); give another") from None
    held = states.group_by("state").agg(
        ((pl.col("end_s") - pl.col("start_s")).sum() / SECONDS_PER_HOUR) * nodes * per_node
    )
    hours = dict(held.iter_rows())
    busy_h = sum(hours.get(state, 0.0) for state in ALLOCATED_STATES)
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
    """Nodes by number: those of the job, and the time at which each of the others is repaired."""

    def __init__(self, nodes: int, spares: int, seed: int) -> None:
        np = need("numpy")
        self.random = np.random.default_rng([seed, 1])
        self.names = [f"node{n:03d}" for n in range(nodes + spares)]
        self.allocated = list(range(nodes))
        self.free = dict.fromkeys(range(nodes, nodes + spares), 0.0)
        self.slow = nodes // 2

    def fail(self, at_s: float) -> tuple[int, float]:
        """Replace a random node other than the slow one; return it and the time of its repair."""
        place = int(self.random.choice([n for n, node in enumerate(self.allocated) if node != self.slow]))
        node, back_s = self.allocated[place], at_s + REPAIR_MEDIAN_S * float(self.random.lognormal(0.0, REPAIR_SIGMA))
        self.free[node] = back_s
        self.allocated[place] = min(self.free, key=lambda spare: self.free[spare])
        del self.free[self.allocated[place]]
        return node, back_s


class _Attempt(NamedTuple):
    """One attempt of the job: its times, progress at the start, the cause of its end, its nodes and the failed one."""

    start_s: float
    begin_s: float
    end_s: float
    progress_s: float
    cause: str | None
    nodes: tuple[str, ...]
    failed: str
    back_s: float


def _attempts(states: pl.DataFrame, fleet: _Fleet) -> Iterator[_Attempt]:
    """Yield the attempts of a run on a fleet, whose nodes fail."""
    allocated = states.with_columns(before=pl.col("progress_s").shift(1).fill_null(0.0)).filter(
        pl.col("state").is_in(ALLOCATED_STATES)
    )
    numbered = allocated.with_columns(attempt=pl.col("cause").is_not_null().cum_sum().shift(1).fill_null(0))
    ready = pl.col("end_s").filter(pl.col("state") == "restart").last()
    runs = numbered.group_by("attempt", maintain_order=True).agg(
        pl.col("start_s").first(),
        pl.coalesce(ready, pl.col("start_s").first()).alias("begin_s"),
        pl.col("end_s").last(),
        pl.col("before").first(),
        pl.col("cause").last(),
    )
    for run in runs.drop("attempt").iter_rows():
        nodes = tuple(fleet.names[node] for node in sorted(fleet.allocated))
        node, back_s = fleet.fail(run[2]) if run[-1] else (0, 0.0)
        yield _Attempt._make((*run, nodes, fleet.names[node], back_s))


def _steps(attempt: _Attempt, step_s: float, write_s: float, interval: int) -> pl.DataFrame:
    """Return the steps that end in an attempt: time, number, and the length of the checkpoint before it."""
    np = need("numpy")
    reach_s = attempt.progress_s + attempt.end_s - attempt.begin_s
    block_s = interval * step_s + write_s
    first = int(attempt.progress_s // block_s) * interval + 1
    step = np.arange(first, int(reach_s / step_s) + 2)
    done_s = step * step_s + (step - 1) // interval * write_s
    kept = step[(done_s > attempt.progress_s) & (done_s <= reach_s * (1.0 + 1e-12))]
    done_s = kept * step_s + (kept - 1) // interval * write_s
    is_saved = ((kept - 1) % interval == 0) & (kept > first)
    at_s = attempt.begin_s + done_s - attempt.progress_s
    return pl.DataFrame({"at_s": at_s, "step": kept, "checkpoint_write_s": np.where(is_saved, write_s, 0.0)})


def _timestamp(at_s: float, end: str = "") -> str:
    return (START + timedelta(seconds=at_s)).strftime(f"%Y-%m-%dT%H:%M:%S{end}")


def _sacct(attempts: list[_Attempt], nodes: int, per_node: int) -> Iterator[str]:
    yield "JobID|User|State|Submit|Start|End|AllocNodes|AllocTRES|NodeList"
    submitted_s = 0.0
    for attempt in attempts:
        times = "|".join(map(_timestamp, (submitted_s, attempt.start_s, attempt.end_s)))
        state = "NODE_FAIL" if attempt.cause else "COMPLETED"
        yield f"{JOB}|ann|{state}|{times}|{nodes}|gres/gpu={nodes * per_node},node={nodes}|{','.join(attempt.nodes)}"
        submitted_s = attempt.end_s


def _events(attempts: list[_Attempt]) -> Iterator[str]:
    yield "NodeName|TimeStart|TimeEnd|State|Reason"
    for attempt in attempts:
        if attempt.cause:
            period = f"{_timestamp(attempt.end_s)}|{_timestamp(attempt.back_s)}"
            yield f"{attempt.failed}|{period}|DOWN|{REASONS[attempt.cause][0]}"


def _kernel(attempts: list[_Attempt]) -> Iterator[str]:
    for attempt in attempts:
        xid = REASONS[attempt.cause][1] if attempt.cause else None
        for delay_s in range(3 if xid else 0):
            at = _timestamp(attempt.end_s + delay_s, "+00:00")
            yield f"{at} {attempt.failed} kernel: NVRM: Xid (PCI:0000:3b:00): {xid}, pid='<unknown>', name=<unknown>"


def _megatron(steps: pl.DataFrame, step_s: float) -> Iterator[str]:
    for at_s, step in steps.select("at_s", "step").iter_rows():
        at = (START + timedelta(seconds=at_s)).strftime("%Y-%m-%d %H:%M:%S.%f")
        yield f" [{at}] iteration {step:8d}/ 1000000 | elapsed time per iteration (ms): {step_s * 1000.0:.1f} |"


def _nodes(
    steps: pl.DataFrame, attempts: list[_Attempt], fleet: _Fleet, step_s: float, slowdown: float
) -> pl.DataFrame:
    """Return the own time of every node in some steps; the slow node takes the whole step time."""
    runs = pl.DataFrame(
        {"start_s": [attempt.start_s for attempt in attempts], "node": [attempt.nodes for attempt in attempts]}
    )
    sampled = steps.filter(pl.col("step") % SAMPLED_STEPS == 0).sort("at_s")
    rows = sampled.join_asof(runs, left_on="at_s", right_on="start_s").explode("node")
    spread = fleet.random.lognormal(0.0, NODE_SPREAD, rows.height)
    own = pl.when(pl.col("node") == fleet.names[fleet.slow]).then(1.0).otherwise(1.0 / slowdown)
    at = pl.lit(START) + pl.duration(microseconds=(pl.col("at_s") * 1e6).cast(pl.Int64))
    return rows.select(
        at=at.dt.strftime("%Y-%m-%dT%H:%M:%SZ"), job=pl.lit(JOB), node="node", step="step", step_s=step_s * own * spread
    )


def _power(attempts: list[_Attempt], fleet: _Fleet, per_node: int, power_w: float) -> pl.DataFrame:
    """Return power samples of every accelerator, busy while the job runs on its node."""
    np = need("numpy")
    at_s = np.arange(0, int(attempts[-1].end_s), SAMPLED_S)
    busy = np.zeros((len(at_s), len(fleet.names)), bool)
    place = {name: n for n, name in enumerate(fleet.names)}
    for attempt in attempts:
        when = (at_s >= attempt.start_s) & (at_s < attempt.end_s)
        busy[np.ix_(when, [place[name] for name in attempt.nodes])] = True
    share: np.ndarray = np.repeat(np.where(busy, 1.0, IDLE_SHARE), per_node)
    count = len(fleet.names) * per_node
    return pl.DataFrame(
        {
            "at": np.repeat([_timestamp(float(second), "Z") for second in at_s], count),
            "node": np.tile(np.repeat(fleet.names, per_node), len(at_s)),
            "accelerator": np.tile(np.arange(per_node), len(at_s) * len(fleet.names)).astype(str),
            "accelerator_power_w": power_w * share * fleet.random.lognormal(0.0, POWER_SPREAD, len(share)),
        }
    )
