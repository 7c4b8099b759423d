"""Simulation of elastic jobs, whose replicas leave and return, and of jobs on redundant servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import polars as pl

from factorykit.core.errors import ScenarioError
from factorykit.core.extras import public_names
from factorykit.core.validation import integer
from factorykit.engine.evaluate import evaluate

__dir__ = public_names(__name__)

NEEDED: Final = (
    "training_s",
    "cluster_mtbf_s",
    "replicas",
    "reconfigure_s",
    "correlated_share",
    "checkpoint_interval_s",
    "cold_restart_s",
    "replica_stall_s",
)
MOST_FAILURES: Final = 1e6
"""Failures of a run that counts as endless."""
MOST_HELD: Final = 1e8
"""Most numbers in memory."""


def elastic_runs(
    inputs: Mapping[str, Any],
    runs: int = 1000,
    seed: int = 0,
    *,
    using: Mapping[str, str] | None = None,
    assume: bool = False,
) -> pl.DataFrame:
    """Simulate runs whose replicas go on without the one that fails.

    A failure takes one replica away for ``reconfigure_s`` and lets all stand still for ``replica_stall_s`` of it, or,
    in the share that is correlated, takes the whole job back to its last checkpoint for ``cold_restart_s``. A replica
    that is struck while it returns begins again; nothing fails while all stand still.

    Parameters
    ----------
    inputs
        Quantities that give or lead to ``training_s``, ``cluster_mtbf_s``, ``replicas``, ``reconfigure_s``,
        ``correlated_share``, ``checkpoint_interval_s``, ``cold_restart_s`` and ``replica_stall_s``.
    runs, seed
        Rows; the same seed gives the same rows.
    using, assume
        As in :func:`factorykit.evaluate`.

    Returns
    -------
    DataFrame
        One row per run: ``wall_s``, ``goodput``, ``failures``, ``cold_restarts``.

    Raises
    ------
    MissingQuantity, ScenarioError

    Examples
    --------
    >>> job = {"training_s": 1e6, "cluster_mtbf_s": 1e4, "replicas": 10, "reconfigure_s": 600, "correlated_share": 0.0}
    >>> found = elastic_runs(job | {"checkpoint_interval_s": 1800, "cold_restart_s": 900}, runs=200)
    >>> round(found["goodput"].mean(), 3)
    0.994
    """
    import numpy as np

    rows = integer("runs", runs)
    values = evaluate(inputs, NEEDED, using=using, assume=assume)
    needed, mtbf, replicas, away, together, interval, cold, stall = (float(values[name]) for name in NEEDED)
    if needed / mtbf > MOST_FAILURES:
        raise ScenarioError(f"training_s = {needed:g} holds more than {MOST_FAILURES:g} failures; give a shorter run")
    count = max(round(replicas), 1)
    _check_size("runs times replicas", rows * count)
    draw = np.random.default_rng(integer("seed", seed))
    now, done = np.zeros(rows), np.zeros(rows)
    back = np.zeros((rows, count))
    failures, colds = np.zeros(rows), np.zeros(rows)
    active = np.arange(rows)
    while active.size:
        gap = draw.exponential(mtbf, active.size)
        missing = np.clip(np.minimum(back[active], (now[active] + gap)[:, None]) - now[active][:, None], 0.0, None)
        gained = gap - missing.mean(axis=1)
        enough = done[active] + gained >= needed
        ended = active[enough]
        share = (needed - done[ended]) / gained[enough]
        now[ended] += share * gap[enough]
        done[ended] = needed
        kept, gap, gained = active[~enough], gap[~enough], gained[~enough]
        now[kept] += gap
        done[kept] += gained
        failures[kept] += 1.0
        whole_job = draw.random(kept.size) < together
        struck = kept[~whole_job]
        back[struck, draw.integers(0, count, struck.size)] = now[struck] + away
        now[struck] += stall
        fallen = kept[whole_job]
        done[fallen] -= done[fallen] % interval
        now[fallen] += cold
        back[fallen] = 0.0
        colds[fallen] += 1.0
        active = kept
    return pl.DataFrame({"wall_s": now, "goodput": needed / now, "failures": failures, "cold_restarts": colds})


def redundant_lives(
    inputs: Mapping[str, Any],
    runs: int = 1000,
    seed: int = 0,
    *,
    using: Mapping[str, str] | None = None,
    assume: bool = False,
) -> pl.DataFrame:
    """Simulate how long a job lives whose servers work in pairs, until both of one pair have failed.

    Parameters
    ----------
    inputs
        Quantities that give or lead to ``nodes`` and ``node_mtbf_s``.
    runs, seed, using, assume
        As in :func:`elastic_runs`.

    Returns
    -------
    DataFrame
        One row per run: ``life_s``, and ``failures`` until then, the last one included.

    Raises
    ------
    MissingQuantity, ScenarioError

    Examples
    --------
    >>> lives = redundant_lives({"nodes": 2.0, "node_mtbf_s": 1e6}, runs=20_000)
    >>> round(lives["life_s"].mean() / 1.5e6, 1)
    1.0
    """
    import numpy as np

    values = evaluate(inputs, ("nodes", "node_mtbf_s"), using=using, assume=assume)
    pairs, rows = max(round(float(values["nodes"]) / 2.0), 1), integer("runs", runs)
    _check_size("nodes", 2.0 * pairs)
    _check_size("runs", rows)
    draw = np.random.default_rng(integer("seed", seed))
    lives, failures = np.empty(rows), np.empty(rows)
    for row in range(rows):
        ends = draw.exponential(float(values["node_mtbf_s"]), (pairs, 2))
        lives[row] = ends.max(axis=1).min()
        failures[row] = (ends <= lives[row]).sum()
    return pl.DataFrame({"life_s": lives, "failures": failures})


def _check_size(name: str, count: float) -> None:
    if count > MOST_HELD:
        raise ScenarioError(f"{name} = {count:g} exceed the memory limit; give at most {MOST_HELD:g}")
