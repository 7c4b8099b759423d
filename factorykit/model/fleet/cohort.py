"""Who is slow: every node beside the others that took part in the same steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from factorykit.borders import need, share
from factorykit.errors import ScenarioError
from factorykit.formulas.cost import rental_cost_usd
from factorykit.logs.tidy import Log
from factorykit.model.fleet.faults import window
from factorykit.model.fleet.ledger import attempted, priced

if TYPE_CHECKING:
    import polars as pl

LEAST: Final = 3
"""Nodes that tell of a step, from which their median says how long it usually takes."""


def stragglers(
    log: Log, *, rental_usd_per_accelerator_h: float | str | None = None, confidence: float = 0.95
) -> pl.DataFrame:
    r"""Return how slow each node is beside its cohort, and what that costs.

    .. math:: x_i = \operatorname{median}_k \frac{t_{ik}}{\operatorname{median}_j t_{jk}}, \quad
        w_i = \frac{\sum_{k: t_{ik} = \max} (t_{ik} - \max_{j \ne i} t_{jk})}{\sum_k \max_j t_{jk}}

    Parameters
    ----------
    log
        What :func:`factorykit.read_log` returns, with times of steps by node: each node's own part, before it waits for
        the others.
    rental_usd_per_accelerator_h
        Price of an hour; by default hours have none.
    confidence
        Of the limits, in (0, 1).

    Returns
    -------
    DataFrame
        One row per node, the one that costs most first: ``node``; ``steps`` [1] compared; ``pace`` [1], its median time
        over that of the cohort, with ``pace_low`` and ``pace_high``; ``slowest_share`` [1] of steps in which it is the
        slowest; ``step_share`` [1], how much of each step the others wait for it alone; ``accelerator_hours`` [h] of
        its jobs that this took, and ``rental_cost_usd`` [USD].

    Raises
    ------
    ScenarioError
        If no three nodes tell of the same step.

    Notes
    -----
    A cohort is a step of a job. What a node costs is what would be saved if the next slowest set the pace. Limits are
    exact for steps that are independent of each other, which neighbours are not quite.

    Examples
    --------
    >>> import tempfile, pathlib, factorykit as fk
    >>> file = pathlib.Path(tempfile.mkdtemp(), "steps.csv")
    >>> _ = file.write_text("at,step,node,step_s\n2026-03-01,1,a,2.0\n2026-03-01,1,b,2.5\n2026-03-02,1,c,2.0")
    >>> stragglers(fk.read_log(file)).select("node", "pace", "step_share").row(0)
    ('b', 1.25, 0.2)
    """
    import polars as pl

    window(log)
    by_step = ["job", "step"]
    told = log.steps.filter(pl.col("node").is_not_null(), pl.col("step_s").is_not_null())
    ranked = told.with_columns(
        usual=pl.col("step_s").median().over(by_step),
        rank=pl.col("step_s").rank("ordinal", descending=True).over(by_step),
        nodes=pl.len().over(by_step),
    ).filter(pl.col("nodes") >= LEAST)
    if ranked.is_empty():
        raise ScenarioError("no three nodes tell of the same step; give step times by node: step,node,step_s")
    second = pl.col("step_s").filter(pl.col("rank") == 2).first().over(by_step)
    is_slowest = pl.col("rank") == 1
    waited = pl.when(is_slowest).then(pl.col("step_s") - second).otherwise(0.0)
    whole_s = ranked.filter(is_slowest)["step_s"].sum()
    found = (
        ranked.with_columns(waited=waited, pace=pl.col("step_s") / pl.col("usual"))
        .group_by("node", maintain_order=True)
        .agg(
            steps=pl.len().cast(pl.Float64),
            paces=pl.col("pace").sort(),
            slowest_share=is_slowest.mean(),
            step_share=pl.col("waited").sum() / whole_s,
        )
        .sort("step_share", "node", descending=[True, False])
    )
    doubt = 0.5 * (1.0 - share("confidence", confidence))
    below = pl.lit(pl.Series(need("scipy.stats").binom.ppf(doubt, found["steps"].to_numpy(), 0.5)).cast(pl.Int64))
    held = held_hours(log)
    price = priced(rental_usd_per_accelerator_h)
    lost = pl.col("step_share") * held
    return found.select(
        "node",
        "steps",
        pace=pl.col("paces").list.median(),
        pace_low=pl.col("paces").list.get((below - 1).clip(0)),
        pace_high=pl.col("paces").list.get(pl.col("steps").cast(pl.Int64) - below.clip(1)),
        slowest_share="slowest_share",
        step_share="step_share",
        accelerator_hours=lost,
        rental_cost_usd=None if price is None else rental_cost_usd(lost, price),
    ).with_columns(pl.col("accelerator_hours", "rental_cost_usd").cast(pl.Float64))


def held_hours(log: Log) -> float | None:
    """Return the hours of accelerators that jobs with steps held; nothing where no log tells of jobs."""
    import polars as pl

    try:
        ran = attempted(log)
    except ScenarioError:
        return None
    stepped = ran.join(log.steps.select("job").unique(), on="job", how="semi")
    hours = (pl.col("ended") - pl.col("started")).dt.total_seconds() / 3600.0 * pl.col("accelerators")
    return float(stepped.select(hours.sum()).item()) if stepped.height else None
