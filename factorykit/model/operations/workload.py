"""Synthetic jobs for a shared cluster, after published summaries of real ones."""

from __future__ import annotations

import math
from typing import Any, Final

import polars as pl

from factorykit.core.errors import FactorykitError, ScenarioError, short_repr
from factorykit.core.extras import need
from factorykit.core.validation import finite_number, integer, one_of
from factorykit.data.tables import table

MOST_JOBS: Final = 100_000_000
SINGLE_SHARE: Final = 0.55
"""Share of jobs on one accelerator in a synthetic workload; published medians are 1, so it is at least a half."""
PRIORITY_SHARES: Final = (0.3, 0.6, 0.1)
"""Shares of experimental, normal and critical jobs in a synthetic workload: an assumption, no trace publishes them."""


def workload(
    name: str,
    jobs: int = 10_000,
    load: float = 0.9,
    accelerators: int = 16384,
    seed: int = 0,
    *,
    estimate_factor: float = 2.0,
) -> pl.DataFrame:
    """Return synthetic jobs that follow the published summary of a cluster.

    Sizes are powers of two: ``SINGLE_SHARE`` of the jobs take one accelerator, the others fall off geometrically, with
    the published mean. Run times are lognormal about a median that grows with size and are truncated at the longest
    published one; mean run time, median run time and mean accelerator time of a job are the published ones. Arrivals
    are Poisson.

    Parameters
    ----------
    name
        A row of the ``workloads`` table: seren, kalos, philly or helios.
    jobs
        Rows.
    load
        Requested over available accelerator time.
    accelerators
        Size of the cluster for which the load is meant.
    seed
        The same seed gives the same rows.
    estimate_factor
        Mean ratio of the time a user asks for to the time the job takes.

    Returns
    -------
    DataFrame
        One row per job as :func:`schedule` takes them, in order of arrival. ``priority`` is 0, 1 or 2.

    Raises
    ------
    FactorykitError
        If the name is unknown, a number is out of range, or SciPy is missing.

    Examples
    --------
    >>> workload("kalos", 1000)["accelerators"].median()
    1.0
    """
    np = need("numpy")
    jobs, accelerators = integer("jobs", jobs, 1, MOST_JOBS), integer("accelerators", accelerators, 1)
    if finite_number("load", load) <= 0.0:
        raise ScenarioError(f"load must be above zero, got {short_repr(load)}")
    if finite_number("estimate_factor", estimate_factor) < 1.0:
        raise ScenarioError(
            f"estimate_factor = {short_repr(estimate_factor)} must be at least 1: the scheduler"
            " ends a job that exceeds its estimate"
        )
    published = table("workloads").filter(pl.col("accelerator_s_mean").is_not_null()).collect()
    known = one_of("workload", name, published["workload"])
    row = published.row(by_predicate=pl.col("workload") == known, named=True)
    sizes, shares = _sizes(row)
    medians, sigma = _run_times(row, sizes, shares)
    rng = np.random.default_rng(integer("seed", seed))
    kind = rng.choice(len(sizes), size=jobs, p=shares)
    run = np.minimum(medians[kind] * np.exp(sigma * rng.standard_normal(jobs)), row["run_s_max"])
    gaps = rng.exponential(row["accelerator_s_mean"] / (load * accelerators), size=jobs)
    return pl.DataFrame(
        {
            "arrival_s": np.cumsum(gaps),
            "accelerators": np.minimum(sizes[kind], accelerators),
            "run_s": run,
            "estimate_s": run * (1.0 + rng.exponential(estimate_factor - 1.0, size=jobs)),
            "priority": rng.choice(3, size=jobs, p=PRIORITY_SHARES).astype(float),
        }
    )


def _sizes(row: dict[str, Any]) -> tuple[Any, Any]:
    """Return powers of two and their shares, with the published mean."""
    np, optimize = need("numpy"), need("scipy.optimize")
    sizes = 2.0 ** np.arange(int(math.log2(row["accelerators_max"])) + 1)

    def shares(decay: float) -> Any:
        tail = decay ** np.arange(1, len(sizes))
        return np.append(SINGLE_SHARE, (1.0 - SINGLE_SHARE) * tail / tail.sum())

    decay = optimize.brentq(lambda decay: sizes @ shares(decay) - row["accelerators_mean"], 1e-6, 4.0)
    return sizes, shares(decay)


def _run_times(row: dict[str, Any], sizes: Any, shares: Any) -> tuple[Any, float]:
    """Return the median run time per size and the sigma of its logarithm.

    Three unknowns, the median on one accelerator, its growth with every doubling and sigma, meet three published
    numbers: mean and median run time and mean accelerator time. Run times are truncated at the longest published one.
    """
    np, optimize, special = need("numpy"), need("scipy.optimize"), need("scipy.special")
    longest, doublings = math.log(row["run_s_max"]), np.arange(len(sizes))

    def off(guess: Any) -> list[float]:
        mu, sigma = guess[0] + guess[1] * doublings, math.exp(guess[2])
        short = np.exp(mu + sigma**2 / 2.0) * special.ndtr((longest - mu - sigma**2) / sigma)
        means = short + row["run_s_max"] * special.ndtr((mu - longest) / sigma)
        below = shares @ special.ndtr((math.log(row["run_s_median"]) - mu) / sigma)
        return [
            math.log(shares @ means / row["run_s_mean"]),
            math.log(shares @ (sizes * means) / row["accelerator_s_mean"]),
            special.ndtri(below),
        ]

    solution = optimize.root(off, [math.log(row["run_s_median"]), 0.3, math.log(2.0)])
    if not solution.success:
        raise FactorykitError(f"{row['workload']}: no lognormal meets the published summary ({solution.message})")
    return np.exp(solution.x[0] + solution.x[1] * doublings), math.exp(solution.x[2])
