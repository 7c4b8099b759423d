"""One's own failure rate beside the published ones, and moved towards them where one's own count is small."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from factorykit.borders import need, share
from factorykit.formulas.reliability import node_failures_per_node_day_shrunk
from factorykit.logs.tidy import Log
from factorykit.model.fleet.faults import mtbf
from factorykit.model.reliability.statistics import published_rates, rate_interval

if TYPE_CHECKING:
    import polars as pl


class Prior(NamedTuple):
    """What other fleets count for: so many failures in so many node-days."""

    failures: float
    node_days: float


def prior() -> Prior:
    r"""Return what the published rates of whole fleets say before one's own count.

    .. math:: a_0 = \frac{\bar r^2}{s_r^2}, \quad b_0 = \frac{a_0}{\bar r}

    Notes
    -----
    A gamma law with the mean and the spread of the rates between fleets, each fleet or run once, all its causes
    together. Rates lie far apart, so that they count for about one failure.

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
    counted = (mean / spread) ** 2
    return Prior(counted, counted / mean)


def beside(log: Log, *, nodes: float | None = None, confidence: float = 0.95) -> pl.DataFrame:
    r"""Return one's own failure rate, counted and with the others in mind, beside the published ones.

    Parameters
    ----------
    log, nodes, confidence
        As in :func:`mtbf`.

    Returns
    -------
    DataFrame
        One row per rate, the lowest first: ``label``, ``node_days`` [d] (null where a source does not tell them),
        ``failures`` [1], ``per_1000_node_days`` [1] with ``per_1000_low`` and ``per_1000_high``, and ``source``. The
        rows ``yours, counted`` and ``yours, with the others in mind`` are of the log: the second is the mean of the
        gamma law that the count leaves of :func:`prior`, with its quantiles as limits.

    Notes
    -----
    Sources count different things; see :func:`factorykit.reliability.published_rates`.

    Examples
    --------
    Ten days of two nodes without a failure:

    >>> import tempfile, pathlib, factorykit as fk
    >>> file = pathlib.Path(tempfile.mkdtemp(), "events.csv")
    >>> _ = file.write_text("at,node,kind\n2026-03-01,a,notice\n2026-03-11,b,notice")
    >>> beside(fk.read_log(file)).filter(source="the logs and the failures table")["per_1000_node_days"].round(1).item()
    5.3
    """
    import polars as pl

    inside = share("confidence", confidence)
    own = mtbf(log, nodes=nodes).row(0, named=True)
    count, days, others = own["failures"], own["node_days"], prior()
    shape, scale = count + others.failures, 1000.0 / (days + others.node_days)
    quantile = need("scipy.stats").gamma(shape, scale=scale).ppf
    counted = rate_interval(count, days / 1000.0, confidence)
    shrunk = 1000.0 * node_failures_per_node_day_shrunk(count, days, others.failures, others.node_days)
    low, high = (float(quantile(0.5 * (1.0 - inside))), float(quantile(0.5 * (1.0 + inside))))
    columns = ("label", "node_days", "failures", "per_1000_node_days", "per_1000_low", "per_1000_high", "source")
    rows = [
        ("yours, counted", days, count, 1000.0 * count / days, *counted, "the logs"),
        ("yours, with the others in mind", days, count, shrunk, low, high, "the logs and the failures table"),
    ]
    kinds = {name: pl.String if name in ("label", "source") else pl.Float64 for name in columns}
    mine = pl.DataFrame(rows, kinds, orient="row")
    return pl.concat([mine, _fleets().select(columns)]).sort("per_1000_node_days", maintain_order=True)


def _fleets() -> pl.DataFrame:
    """Return the measured rates of whole fleets and runs, each once."""
    import polars as pl

    rates = published_rates().filter(
        pl.col("category").is_null(), ~pl.col("source").str.starts_with("seed_"), pl.col("per_1000_node_days") > 0.0
    )
    return rates.unique("subject", keep="first", maintain_order=True).with_columns(
        label=pl.col("subject").str.replace(r" \(.*", "")
    )
