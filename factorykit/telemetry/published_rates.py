"""Comparison of the failure rate of a log with published rates, and its empirical-Bayes estimate."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from factorykit.core.extras import need
from factorykit.core.validation import probability
from factorykit.formulas.reliability import node_failures_per_node_day_shrunk
from factorykit.model.reliability.reliability import published_rates, rate_interval
from factorykit.telemetry.failures import mtbf
from factorykit.telemetry.tidy import Log


class Prior(NamedTuple):
    """Gamma prior of the failure rate, as equivalent failures in equivalent node-days."""

    failures: float
    node_days: float


def prior() -> Prior:
    r"""Return the gamma prior of the failure rate from the published rates of whole fleets.

    .. math:: a_0 = \frac{\bar r^2}{s_r^2}, \quad b_0 = \frac{a_0}{\bar r}

    Notes
    -----
    A gamma distribution with the mean and the standard deviation of the rates of fleets and runs, each once, over all
    causes. The rates differ widely, so that the prior is equivalent to about one failure.

    References
    ----------
    .. [1] A. Gelman et al., "Bayesian Data Analysis," 3rd ed., CRC Press, 2013, section 2.6.

    Examples
    --------
    >>> failures, node_days = prior()
    >>> round(failures, 1), round(1000 * failures / node_days, 1)
    (1.4, 5.8)
    """
    rates = _fleets()["per_1000_node_days"] / 1000.0
    mean, spread = float(rates.mean()), float(rates.std())  # type: ignore[arg-type]
    equivalent_failures = (mean / spread) ** 2
    return Prior(equivalent_failures, equivalent_failures / mean)


def compare_with_published(
    log: Log, *, exposure: float | pl.DataFrame | None = None, confidence: float = 0.95
) -> pl.DataFrame:
    r"""Return the failure rate of a log, observed and shrunk to the published rates, together with these.

    Parameters
    ----------
    log, exposure, confidence
        As in :func:`mtbf`.

    Returns
    -------
    DataFrame
        One row per rate, lowest first: ``label``, ``node_days`` [d] (null if the source does not state them),
        ``failures`` [1], ``per_1000_node_days`` [1] with ``per_1000_low`` and ``per_1000_high``, and ``source``. The
        rows ``this cluster, observed`` and ``this cluster, shrunk`` are those of the log: the second is the mean of the
        posterior gamma distribution for :func:`prior`, with its quantiles as limits.

    Notes
    -----
    Sources count different things; see :func:`factorykit.reliability.published_rates`.

    Examples
    --------
    Ten days of two nodes without a failure:

    >>> import tempfile, pathlib, factorykit as fk
    >>> file = pathlib.Path(tempfile.mkdtemp(), "events.csv")
    >>> _ = file.write_text("at,node,kind\n2026-03-01,a,notice\n2026-03-11,b,notice\n")
    >>> rates = compare_with_published(fk.read_log(file), exposure=2)
    >>> rates.filter(label="this cluster, shrunk")["per_1000_node_days"].round(1).item()
    5.3
    """
    inside = probability("confidence", confidence)
    rate = mtbf(log, exposure=exposure).row(0, named=True)
    count, days, published = rate["failures"], rate["node_days"], prior()
    shape, scale = count + published.failures, 1000.0 / (days + published.node_days)
    quantile = need("scipy.stats").gamma(shape, scale=scale).ppf
    limits = rate_interval(count, days / 1000.0, confidence)
    shrunk = 1000.0 * node_failures_per_node_day_shrunk(count, days, published.failures, published.node_days)
    low, high = (float(quantile(0.5 * (1.0 - inside))), float(quantile(0.5 * (1.0 + inside))))
    columns = ("label", "node_days", "failures", "per_1000_node_days", "per_1000_low", "per_1000_high", "source")
    rows = [
        ("this cluster, observed", days, count, 1000.0 * count / days, *limits, "the logs"),
        ("this cluster, shrunk", days, count, shrunk, low, high, "the logs and the failures table"),
    ]
    kinds = {name: pl.String if name in ("label", "source") else pl.Float64 for name in columns}
    estimates = pl.DataFrame(rows, kinds, orient="row")
    return pl.concat([estimates, _fleets().select(columns)]).sort("per_1000_node_days", maintain_order=True)


def _fleets() -> pl.DataFrame:
    """Return the published rates of whole fleets and runs, each once."""
    rates = published_rates().filter(
        pl.col("category").is_null(), ~pl.col("source").str.starts_with("seed_"), pl.col("per_1000_node_days") > 0.0
    )
    return rates.unique("subject", keep="first", maintain_order=True).with_columns(
        label=pl.col("subject").str.replace(r" \(.*", "")
    )
