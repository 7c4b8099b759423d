"""Laws of lifetimes, gaps and repair times, and their fit to what was seen, with what the fit misses."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from factorykit.errors import FactorykitError, ScenarioError
from factorykit.model.reliability import share, weibull_mean_s
from factorykit.quantities import quantity

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True)
class Exponential:
    """Constant rate: what is to come does not depend on what was.

    >>> round(float(Exponential(3600.0).ppf(0.5)))
    2495
    """

    mean_s: float

    def __post_init__(self) -> None:
        quantity("lifetime_mean_s").check(self.mean_s)

    def ppf(self, q: Any) -> Any:
        """Return quantiles [s]."""
        import numpy as np

        return -self.mean_s * np.log1p(-q)

    def survival(self, t: Any) -> Any:
        """Return the chance to last longer than ``t`` [s]."""
        import numpy as np

        return np.exp(-t / self.mean_s)


@dataclass(frozen=True, slots=True)
class Weibull:
    """Early failures for a shape below 1, wear-out above.

    >>> round(float(Weibull(3600.0, 0.7).survival(3600.0)), 4)
    0.3679
    """

    scale_s: float
    shape: float

    def __post_init__(self) -> None:
        quantity("lifetime_scale_s").check(self.scale_s)
        quantity("lifetime_shape").check(self.shape)

    @property
    def mean_s(self) -> float:
        """Mean [s]."""
        return weibull_mean_s(self.scale_s, self.shape)

    def ppf(self, q: Any) -> Any:
        """Return quantiles [s]."""
        import numpy as np

        return self.scale_s * (-np.log1p(-q)) ** (1.0 / self.shape)

    def survival(self, t: Any) -> Any:
        """Return the chance to last longer than ``t`` [s]."""
        import numpy as np

        return np.exp(-((t / self.scale_s) ** self.shape))


@dataclass(frozen=True, slots=True)
class Lognormal:
    """The logarithm is normal: heavy tails, as of repair times.

    >>> round(float(Lognormal(3600.0, 1.9).ppf(0.95)) / 3600, 1)
    22.8
    """

    median_s: float
    sigma: float

    def __post_init__(self) -> None:
        quantity("node_repair_median_s").check(self.median_s)
        quantity("node_repair_sigma").check(self.sigma)

    @property
    def mean_s(self) -> float:
        """Mean [s]."""
        return self.median_s * math.exp(0.5 * self.sigma * self.sigma)

    def ppf(self, q: Any) -> Any:
        """Return quantiles [s]."""
        import numpy as np
        from scipy.special import ndtri

        return self.median_s * np.exp(self.sigma * ndtri(q))

    def survival(self, t: Any) -> Any:
        """Return the chance to last longer than ``t`` [s]."""
        import numpy as np
        from scipy.special import ndtr

        with np.errstate(divide="ignore"):
            return ndtr(-np.log(np.asarray(t) / self.median_s) / self.sigma)


def fit(
    durations_s: Sequence[float] | pl.Series,
    observed: Sequence[bool] | pl.Series | None = None,
    confidence: float = 0.95,
) -> pl.DataFrame:
    """Fit three laws to durations by maximum likelihood.

    Parameters
    ----------
    durations_s
        Times, all above 0. [s]
    observed
        Whether each time ended with the event; False is right censored: still running at its end. By default all did.
    confidence
        Of the intervals of the parameters, in (0, 1).

    Returns
    -------
    DataFrame
        One row per law, best first: ``law``; ``mean_s`` [s]; ``parameter`` [1], the shape of Weibull or sigma
        of the lognormal, with ``parameter_low`` and ``parameter_high``; ``scale_s`` [s] (mean, scale or median) with
        ``scale_low_s`` and ``scale_high_s``; ``log_likelihood``; ``aic_difference`` to the best; and
        ``largest_misfit`` [1]: how far its survival is at most from that of Kaplan and Meier; ``events`` and
        ``censored`` [1].

    Raises
    ------
    ScenarioError
        If a time is not above 0, lengths differ, or fewer than two events were seen.
    FactorykitError
        If lifelines is not installed.

    Notes
    -----
    Fits and Kaplan-Meier curves are those of lifelines; intervals are symmetric on the scale of its estimates. The best
    of three laws can still be wrong: look at ``largest_misfit``, and above :func:`misfit_limit` reject it.

    Examples
    --------
    >>> fits = fit([float(t) for t in range(60, 6000, 60)])
    >>> fits["law"][0], round(fits["parameter"][0], 1)
    ('weibull', 1.7)
    """
    import numpy as np
    import polars as pl

    times, seen = _checked(durations_s, observed)
    lifelines = _lifelines()
    alpha = 1.0 - share("confidence", confidence)
    kaplan = lifelines.KaplanMeierFitter().fit(times, seen)
    steps = kaplan.survival_function_.index.to_numpy()[1:]
    curve = kaplan.survival_function_.to_numpy()[:, 0]
    rows = []
    for name, law, fitted in _fitted(lifelines, times, seen, alpha):
        table = fitted.summary
        low, high = (column for column in table.columns if column.startswith("coef lower") or "coef upper" in column)
        first, second = ("lambda_", "rho_") if name != "lognormal" else ("mu_", "sigma_")
        limits = [float(table.loc[first, column]) for column in (low, high)]
        scale = law.mean_s if name == "exponential" else law.scale_s if name == "weibull" else law.median_s
        if name == "lognormal":
            limits = [math.exp(limit) for limit in limits]
        shape = name != "exponential"
        survival = law.survival(steps)
        rows.append(
            {
                "law": name,
                "mean_s": law.mean_s,
                "parameter": float(table.loc[second, "coef"]) if shape else None,
                "parameter_low": float(table.loc[second, low]) if shape else None,
                "parameter_high": float(table.loc[second, high]) if shape else None,
                "scale_s": scale,
                "scale_low_s": limits[0],
                "scale_high_s": limits[1],
                "log_likelihood": float(fitted.log_likelihood_),
                "aic": float(fitted.AIC_),
                "largest_misfit": float(np.maximum(np.abs(survival - curve[1:]), np.abs(survival - curve[:-1])).max()),
                "events": float(seen.sum()),
                "censored": float((~seen).sum()),
            }
        )
    frame = pl.DataFrame(rows).sort("aic", maintain_order=True)
    difference = (pl.col("aic") - pl.col("aic").min()).alias("aic_difference")
    return (
        frame.with_columns(difference)
        .drop("aic")
        .select(
            *(name for name in frame.columns if name not in ("aic", "largest_misfit", "events", "censored")),
            "aic_difference",
            "largest_misfit",
            "events",
            "censored",
        )
    )


def law(fits: pl.DataFrame, name: str | None = None) -> Exponential | Weibull | Lognormal:
    """Return a fitted law, ready to be drawn from; by default the best one.

    >>> law(fit([float(t) for t in range(60, 6000, 60)]), "exponential").mean_s
    3000.0...
    """
    import polars as pl

    rows = fits if name is None else fits.filter(pl.col("law") == name)
    if rows.is_empty():
        raise ScenarioError(f"no law {name!r} among the fits; there are {', '.join(fits['law'])}")
    row = rows.row(0, named=True)
    match row["law"]:
        case "exponential":
            return Exponential(row["scale_s"])
        case "weibull":
            return Weibull(row["scale_s"], row["parameter"])
        case _:
            return Lognormal(row["scale_s"], row["parameter"])


def misfit_limit(events: float, confidence: float = 0.95) -> float:
    """Return the misfit that a right law stays below with this confidence (Kolmogorov; large samples).

    A law whose parameters were fitted to the same data stays clearly below; exceeding this limit is damning.

    >>> round(misfit_limit(100), 3)
    0.136
    """
    alpha = 1.0 - share("confidence", confidence)
    return math.sqrt(-0.5 * math.log(alpha / 2.0)) / math.sqrt(events)


def faults(path: str) -> pl.DataFrame:
    """Read a fault trace of nodes and return gaps and repairs as durations.

    Parameters
    ----------
    path
        CSV with ``node``, ``start_day``, ``end_day``, ``repair_hours``, ``fault_class``, such as StepFun's trace.

    Returns
    -------
    DataFrame
        One row per fault in the order of its start, plus one row for the time since the last fault: ``gap_s`` [s] since
        the fault before, anywhere in the fleet; ``gap_observed``, false in the last row; ``repair_s`` [s] and
        ``repair_observed``, false where the repair was still going on at the end of the trace; ``node`` and ``cause``.
        Zero gaps and repairs are kept.

    Raises
    ------
    DatasetError
        If the file cannot be read or lacks a column.
    """
    import polars as pl

    from factorykit.constants import SECONDS_PER_DAY, SECONDS_PER_HOUR
    from factorykit.errors import DatasetError

    needed = ("node", "start_day", "end_day", "repair_hours", "fault_class")
    try:
        rows = pl.read_csv(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DatasetError(f"{path}: cannot be read as CSV: {error}; give a fault trace") from None
    if missing := [name for name in needed if name not in rows.columns]:
        raise DatasetError(f"{path}: no column {', '.join(missing)}; a fault trace has {', '.join(needed)}")
    rows = rows.sort("start_day", maintain_order=True)
    end = float(rows.select(pl.max_horizontal(pl.col("start_day").max(), pl.col("end_day").max())).item())
    gaps = rows.select(
        "node",
        pl.col("fault_class").alias("cause"),
        (pl.col("start_day").diff() * SECONDS_PER_DAY).alias("gap_s"),
        pl.col("start_day").diff().is_not_null().alias("gap_observed"),
        (pl.col("repair_hours") * SECONDS_PER_HOUR).alias("repair_s"),
        (pl.col("end_day") < end).alias("repair_observed"),
    )
    last = pl.DataFrame(
        {"gap_s": [(end - float(rows["start_day"].max())) * SECONDS_PER_DAY], "gap_observed": [False]}  # type: ignore[arg-type]
    )
    return pl.concat([gaps, last], how="diagonal")


def _checked(durations_s: Any, observed: Any) -> tuple[Any, Any]:
    import numpy as np

    try:
        times = np.asarray(durations_s, float)
        seen = np.ones(len(times), bool) if observed is None else np.asarray(observed, bool)
    except (TypeError, ValueError) as error:
        raise ScenarioError(f"durations_s cannot be read as numbers: {error}; give seconds") from None
    if len(times) != len(seen):
        raise ScenarioError(f"{len(times)} durations and {len(seen)} in observed; give one for each")
    if not np.all(np.isfinite(times) & (times > 0.0)):
        bad = int(np.flatnonzero(~(np.isfinite(times) & (times > 0.0)))[0])
        raise ScenarioError(
            f"durations_s[{bad}] = {times[bad]!r} is not above 0; leave out or widen times of length zero"
        )
    if seen.sum() < 2:
        raise ScenarioError(f"{int(seen.sum())} events were seen; a fit needs two or more")
    return times, seen


def _lifelines() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            import lifelines
        except ImportError:
            raise FactorykitError("fits need lifelines; pip install 'factorykit[reliability]'") from None
    return lifelines


def _fitted(lifelines: Any, times: Any, seen: Any, alpha: float) -> list[tuple[str, Any, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exponential = lifelines.ExponentialFitter(alpha=alpha).fit(times, seen)
        weibull = lifelines.WeibullFitter(alpha=alpha).fit(times, seen)
        lognormal = lifelines.LogNormalFitter(alpha=alpha).fit(times, seen)
    return [
        ("exponential", Exponential(float(exponential.lambda_)), exponential),
        ("weibull", Weibull(float(weibull.lambda_), float(weibull.rho_)), weibull),
        ("lognormal", Lognormal(math.exp(float(lognormal.mu_)), float(lognormal.sigma_)), lognormal),
    ]
