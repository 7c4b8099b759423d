"""Confidence limits of failure rates, spares and renewal.

Functions that need quantiles or sums, which arithmetic formulas cannot express. SciPy is imported on use.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import polars as pl

from factorykit.core.constants import SECONDS_PER_DAY
from factorykit.core.errors import ScenarioError, short_repr
from factorykit.core.extras import need, public_names
from factorykit.core.validation import MAX_EXACT_INTEGER, finite_number, integer, probability
from factorykit.core.vocabulary import format_number, quantity
from factorykit.data.tables import table
from factorykit.engine.evaluate import evaluate
from factorykit.formulas.failure_cost import spares_usd_per_day
from factorykit.formulas.reliability import nodes_in_repair, unavailability

__dir__ = public_names(__name__)


MOST_NODES = 1e9
MOST_STEPS = 20_000
"""Most steps of the renewal equation, whose cost is quadratic; they take half a second."""
MOST_SPARES = 1_000_000
"""Most rows of a table of spares."""
ACCELERATORS_PER_NODE = 8.0
"""Accelerators per node where a source counts accelerators."""


class Interval(NamedTuple):
    """Two limits between which a quantity lies with the stated confidence."""

    low: float
    high: float

    def _repr_html_(self) -> str:
        return f"<span>{format_number(self.low)} to {format_number(self.high)}</span>"


def count_interval(failures: float, confidence: float = 0.95) -> Interval:
    r"""Return the exact (Garwood) confidence limits of the mean of a count.

    .. math:: \left[ \tfrac12 \chi^2_{\alpha/2,\, 2k},\; \tfrac12 \chi^2_{1-\alpha/2,\, 2k+2} \right]

    Parameters
    ----------
    failures
        Events counted, a whole number from 0 on.
    confidence
        Share of such intervals that hold the true mean, in (0, 1).

    Returns
    -------
    Interval
        Lower and upper limit of the mean of the Poisson distribution; the lower one is 0 for a count of 0.

    Raises
    ------
    ScenarioError
        If the count is no whole number or the confidence no share.

    References
    ----------
    .. [1] F. Garwood, "Fiducial limits for the Poisson distribution," Biometrika, vol. 28, pp. 437-442, 1936.

    Examples
    --------
    The 419 interruptions of Llama 3:

    >>> [round(limit, 1) for limit in count_interval(419)]
    [379.8, 461.1]
    """
    count, alpha = integer("failures", failures), 1.0 - probability("confidence", confidence)
    quantile = need("scipy.stats").chi2.ppf
    low = float(quantile(alpha / 2, 2 * count)) / 2 if count else 0.0
    return Interval(low, float(quantile(1 - alpha / 2, 2 * count + 2)) / 2)


def rate_interval(failures: float, exposure: float, confidence: float = 0.95) -> Interval:
    """Return the exact limits of a rate: the limits of the count over the exposure, in events per unit of exposure.

    >>> [round(1000 * limit, 2) for limit in rate_interval(419, 54 * 2048)]  # per 1,000 node-days
    [3.43, 4.17]
    """
    if finite_number("exposure", exposure) <= 0.0:
        raise ScenarioError(f"exposure = {short_repr(exposure)} is not above 0; give e.g. node-days or seconds")
    low, high = count_interval(failures, confidence)
    return Interval(low / exposure, high / exposure)


def mtbf_interval_s(failures: float, observed_s: float, confidence: float = 0.95) -> Interval:
    """Return the exact limits of the mean time between failures that were counted over a time; infinite above for 0.

    >>> [round(limit / 3600, 2) for limit in mtbf_interval_s(419, 54 * 86400)]
    [2.81, 3.41]
    """
    low, high = rate_interval(failures, observed_s, confidence)
    return Interval(1.0 / high, 1.0 / low if low else math.inf)


def failures_range(expected_failures: float, confidence: float = 0.95) -> Interval:
    """Return between which numbers the failures of one day, or one run, fall with at least this probability.

    Parameters
    ----------
    expected_failures
        Mean of the Poisson distribution: failures are independent and have a constant rate.
    confidence
        Probability that the number lies between the two or is one of them, in (0, 1).

    Examples
    --------
    A day at the rate of Llama 3:

    >>> failures_range(419 / 54)
    Interval(low=3.0, high=14.0)
    """
    mean = quantity("expected_failures").check(expected_failures)
    poisson = need("scipy.stats").poisson(mean)
    doubt = 1.0 - probability("confidence", confidence)
    return Interval(float(poisson.ppf(doubt / 2)), float(poisson.ppf(1 - doubt / 2)))


def spares_poisson(nodes_in_repair: float, confidence: float = 0.99) -> int:
    """Return the least number of spares that is enough at a given moment with this probability.

    Parameters
    ----------
    nodes_in_repair
        Mean number in repair: failures a day times days of repair.
    confidence
        Probability that no place stays empty, in (0, 1).

    Notes
    -----
    The number in repair is Poisson for every distribution of repair times if each repair begins at once.

    References
    ----------
    .. [1] C. Palm, "Analysis of the Erlang traffic formulae for busy-signal arrangements," Ericsson Tech., no. 6, 1938.

    Examples
    --------
    >>> spares_poisson(419 / 54), spares_poisson(419 / 54, 0.999)
    (15, 18)
    """
    mean = float(quantity("nodes_in_repair").check(nodes_in_repair))
    if mean > MOST_NODES:
        raise ScenarioError(f"nodes_in_repair = {mean:g} is more than {MOST_NODES:g}; give how many are down at a time")
    return round(float(need("scipy.stats").poisson.ppf(probability("confidence", confidence), mean)))


def spares_binomial(nodes: float, node_mtbf_s: float, node_repair_s: float, confidence: float = 0.99) -> int:
    """Return the least number of spares with which ``nodes`` are up at a given moment with this probability.

    Notes
    -----
    All servers, spares included, have the same failure rate and are repaired independently. So the servers that are
    down before the ``nodes``-th one that is up are negative binomial.

    Examples
    --------
    >>> spares_binomial(2048, 86400 / 0.0065, 86400)
    23
    """
    needed = integer("nodes", nodes)
    down = unavailability(_checked("node_mtbf_s", node_mtbf_s), _checked("node_repair_s", node_repair_s))
    wanted = probability("confidence", confidence)
    return int(need("scipy.stats").nbinom.ppf(wanted, needed, 1.0 - down)) if needed else 0


def nodes_up_probability(nodes_needed: float, nodes: float, availability: float) -> float:
    """Return the chance that at least ``nodes_needed`` of ``nodes`` servers are up at a given moment.

    >>> round(nodes_up_probability(2048, 2071, 0.993542), 3)
    0.995
    """
    needed, total = integer("nodes_needed", nodes_needed), integer("nodes", nodes)
    down = 1.0 - _checked("availability", availability)
    return float(need("scipy.stats").binom.cdf(total - needed, total, down))


def copies_left_probability(nodes: float, copies: float, nodes_lost: float) -> float:
    r"""Return the chance that checkpoints in the memory of peers survive the loss of some nodes at once.

    .. math:: \Pr = \sum_{j \ge 0} (-1)^j \binom{N/m}{j} \binom{N - j m}{k - j m} \Big/ \binom{N}{k}

    Parameters
    ----------
    nodes
        Servers, :math:`N`, in groups of ``copies`` that hold each other's checkpoints; a multiple of it.
    copies
        Copies of each checkpoint, that of the server itself included, :math:`m`.
    nodes_lost
        Servers lost at the same time, :math:`k`, any of them with the same probability.

    Notes
    -----
    A checkpoint is gone when all servers of its group are. The reference gives the first two terms, :math:`1 - (N/m)
    \binom{N - m}{k - m} / \binom{N}{k}`, which are exact below :math:`2 m` losses and a lower bound beyond; all terms
    are summed here, in whole numbers.

    References
    ----------
    .. [1] Z. Wang et al., "GEMINI: fast failure recovery in distributed training with in-memory checkpoints," SOSP
       2023, pp. 364-381, the group placement strategy.

    Examples
    --------
    Sixteen servers in pairs that lose two or three at once:

    >>> round(copies_left_probability(16, 2, 2), 3), round(copies_left_probability(16, 2, 3), 3)
    (0.933, 0.8)
    """
    total, size, lost = integer("nodes", nodes), integer("copies", copies), integer("nodes_lost", nodes_lost)
    if not size or total % size or not total:
        raise ScenarioError(f"nodes = {total} is no multiple of copies = {size}; give whole groups")
    if lost > total:
        raise ScenarioError(f"nodes_lost = {lost} is more than nodes = {total}")
    ways = sum(
        (-1) ** groups * math.comb(total // size, groups) * math.comb(total - groups * size, lost - groups * size)
        for groups in range(lost // size + 1)
    )
    return ways / math.comb(total, lost)


def spares_table(
    inputs: Mapping[str, Any],
    most: int | None = None,
    confidence: float = 0.999,
    *,
    using: Mapping[str, str] | None = None,
    assume: bool = False,
) -> pl.DataFrame:
    """Return the effect and the cost of each number of spares.

    Parameters
    ----------
    inputs
        Quantities that give or lead to ``nodes``, ``node_mtbf_s``, ``node_repair_s``, ``accelerators_per_node`` and
        ``rental_usd_per_accelerator_h``.
    most
        Largest number of spares; by default the one that is enough with ``confidence``.
    using, assume
        As in :func:`factorykit.evaluate`.

    Returns
    -------
    DataFrame
        One row per number of spares from 0 on, in that order: ``spare_nodes``, ``enough_probability`` [1] at a given
        moment, ``places_empty`` [1] on average, ``spares_usd_per_day`` [USD/d], ``standstill_usd_per_day`` [USD/d]:
        the rent of a cluster that stands still whenever a place is empty, and their sum ``usd_per_day`` [USD/d].

    Raises
    ------
    MissingQuantity, ScenarioError

    Notes
    -----
    Spares are hot and places are refilled at once. The number in repair is Poisson for every distribution
    of repair times. The job waits whenever more nodes are in repair than there are spares.
    """
    needed = ("nodes", "node_mtbf_s", "node_repair_s", "accelerators_per_node", "rental_usd_per_accelerator_h")
    values = evaluate(inputs, needed, using=using, assume=assume)
    nodes, mtbf, repair, per_node, price = (float(values[name]) for name in needed)
    mean = nodes_in_repair(nodes, mtbf, repair)
    last = integer("most", spares_poisson(mean, confidence) if most is None else most, 0, MOST_SPARES)
    poisson = need("scipy.stats").poisson
    numbers = [float(number) for number in range(last + 1)]
    enough = poisson.cdf(numbers, mean)
    # E[(X - s)+] = mean P(X >= s) - s P(X > s) for a Poisson X
    empty = mean * poisson.sf([number - 1 for number in numbers], mean) - numbers * poisson.sf(numbers, mean)
    spares = [spares_usd_per_day(number, per_node, price) for number in numbers]
    standstill = (1.0 - enough) * spares_usd_per_day(nodes, per_node, price)
    return pl.DataFrame(
        {
            "spare_nodes": numbers,
            "enough_probability": enough,
            "places_empty": empty,
            "spares_usd_per_day": spares,
            "standstill_usd_per_day": standstill,
            "usd_per_day": spares + standstill,
        }
    )


def published_rates(confidence: float = 0.95) -> pl.DataFrame:
    """Return the measured failure rates of runs and fleets per 1,000 node-days.

    Returns
    -------
    DataFrame
        One row per measured statement of the ``failures`` table from which a rate per node follows, in the order of
        the table: ``statement``, ``subject``, ``cause``, ``category``, ``node_days``, ``failures`` [1],
        ``per_1000_node_days`` [1], its exact limits ``per_1000_low`` and ``per_1000_high`` (null without a count), and
        ``source``. A node has eight accelerators where a source counts accelerators.

    Notes
    -----
    The rate is the count over nodes and time where all three are printed; otherwise the printed rate, or
    the one that follows from the printed time between failures or the failures per day of a number of nodes. Where a
    source prints count and rate but no time, ``node_days`` is the count over the rate; where it prints a time between
    failures alone, null.

    Sources count different things: interruptions of one job, faults of a fleet, job failures. A column of one unit does
    not make them one quantity.
    """
    rows = table("failures").filter(pl.col("kind") == "measured").collect()
    nodes = pl.coalesce("observed_nodes", pl.col("accelerators") / ACCELERATORS_PER_NODE)
    stated = pl.coalesce(
        "node_failures_per_node_day",
        SECONDS_PER_DAY / (pl.col("cluster_mtbf_s") * nodes),
        pl.col("failures_per_day") / nodes,
    )
    watched = pl.any_horizontal(pl.col("count", "node_failures_per_node_day").is_not_null())
    node_days = pl.when(watched).then(pl.coalesce(nodes * pl.col("window_days"), pl.col("count") / stated))
    rates = rows.select(
        "statement",
        "subject",
        "cause",
        "category",
        node_days.alias("node_days"),
        pl.col("count").alias("failures"),
        (1000.0 * pl.coalesce(pl.col("count") / node_days, stated)).alias("per_1000_node_days"),
        "source",
    ).filter(pl.col("per_1000_node_days").is_not_null())
    limits = [
        (None, None) if count is None or days is None else rate_interval(count, days / 1000.0, confidence)
        for count, days in rates.select("failures", "node_days").iter_rows()
    ]
    ends = pl.DataFrame(limits, schema={"per_1000_low": pl.Float64, "per_1000_high": pl.Float64}, orient="row")
    return pl.concat([rates.drop("source"), ends, rates.select("source")], how="horizontal")


def weibull_scale_s(lifetime_mean_s: float, lifetime_shape: float) -> float:
    """Return the scale at which Weibull lifetimes have this mean.

    >>> round(weibull_scale_s(20_000.0, 2.0), 2)
    22567.58
    """
    mean, shape = _checked("lifetime_mean_s", lifetime_mean_s), _checked("lifetime_shape", lifetime_shape)
    return mean / math.gamma(1.0 + 1.0 / shape)


def renewal_failures(
    span_s: float, accelerators: float, lifetime_scale_s: float, lifetime_shape: float, steps: int = 2000
) -> float:
    r"""Return the failures expected from bring-up on where every failed part is replaced by a new one.

    .. math:: H(t) = F(t) + \int_0^t H(t - x)\, \mathrm{d}F(x), \qquad n_b = n H(t)

    Notes
    -----
    The renewal equation by the midpoint rule of Xie [1]_ on ``steps`` equal steps; 2,000 of them agree with the series
    of Smith and Leadbetter [2]_ to 1e-6 for shapes from 0.4 and spans up to 1.5 scales. ``bring_up_failures`` is the
    closed form without replacement; this one tends to one failure per mean lifetime and part.

    References
    ----------
    .. [1] M. Xie, "On the solution of renewal-type integral equations," Commun. Stat. Simul. Comput., vol. 18, no. 1,
       pp. 281-293, 1989.
    .. [2] W. L. Smith and M. R. Leadbetter, "On the renewal function for the Weibull distribution," Technometrics, vol.
       5, no. 3, pp. 393-396, 1963.

    Raises
    ------
    ScenarioError
        If a value is outside its bounds, or more than half of the parts fail within half a step.

    Examples
    --------
    A constant rate renews itself:

    >>> round(renewal_failures(86400.0, 16384.0, 1.8e8, 1.0), 3)
    7.864
    """
    np = need("numpy")

    span, parts = _checked("span_s", span_s), _checked("accelerators", accelerators)
    scale, shape = _checked("lifetime_scale_s", lifetime_scale_s), _checked("lifetime_shape", lifetime_shape)
    count = integer("steps", steps)
    half_failed_s = scale * math.log(2.0) ** (1.0 / shape)
    fewest = max(1, math.ceil(min(span / max(2.0 * half_failed_s, 1e-300), MAX_EXACT_INTEGER)))
    if fewest > MOST_STEPS:
        raise ScenarioError(
            f"span_s = {span:g} is {fewest:.1g} times the half of the parts' life; from a few lives on, failures are "
            "the span over the mean life, scale times gamma(1 + 1/shape)"
        )
    if not fewest <= count <= MOST_STEPS:
        raise ScenarioError(f"steps = {count} is outside [{fewest}, {MOST_STEPS}] for this span and these lives")
    with np.errstate(over="ignore"):
        failed = -np.expm1(-((np.linspace(0.0, span, 2 * count + 1) / scale) ** shape))
    at, half = failed[::2], failed[1::2]
    first = half[0]
    renewals = np.zeros(count + 1)
    for i in range(1, count + 1):
        earlier = np.diff(renewals[:i]) @ half[i - 1 : 0 : -1] if i > 1 else 0.0
        renewals[i] = (at[i] + earlier - first * renewals[i - 1]) / (1.0 - first)
    return float(parts * renewals[-1])


def _checked(name: str, value: float) -> float:
    return float(quantity(name).check(value))
