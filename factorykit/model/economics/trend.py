"""Trend of a price: linear regression of its logarithm, with confidence limits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from factorykit.core.constants import JULIAN_DAYS_PER_YEAR
from factorykit.core.errors import ScenarioError, short_repr
from factorykit.core.extras import need
from factorykit.core.validation import float_columns, frame, one_of, probability, string
from factorykit.data.tables import table
from factorykit.formulas.cost import LOG_TWO, accelerator_usd_per_flop_per_s, real_usd

PRICE: Final = "accelerator_usd_per_flop_per_s"
PRECISIONS: Final = {"peak_16bit_flop_per_s": "16 bits, matrix units", "peak_32bit_flop_per_s": "32 bits, vector units"}


@dataclass(frozen=True, slots=True)
class Trend:
    """An exponential trend: the years in which the quantity halves, and the fitted line.

    ``halving_years`` is negative if it rises; ``halving_years_high`` is infinite if the interval includes a constant
    quantity. ``r_squared`` is the share of the variance of the logarithms that the line explains. ``line`` has one row
    per point: the abscissa, the quantity on the line, and ``low`` and ``high`` of the band of the line.
    """

    points: int
    halving_years: float
    halving_years_low: float
    halving_years_high: float
    r_squared: float
    line: pl.DataFrame


def price_performance(of_year: int | None = None) -> pl.DataFrame:
    """Return the price of a FLOP/s at the release of each chip.

    Parameters
    ----------
    of_year
        Year of the dollars, by consumer prices of the United States; nominal dollars by default.

    Returns
    -------
    DataFrame
        One row per chip and precision: ``name``, ``market``, ``precision``, ``year`` (with fraction),
        ``accelerator_usd`` [USD], ``peak_flop_per_s`` [FLOP/s], ``accelerator_usd_per_flop_per_s`` [USD s/FLOP].

    Raises
    ------
    UnknownName
        For a year without a price level.

    Examples
    --------
    >>> chips = price_performance().filter(name="NVIDIA H100 SXM5 80GB")
    >>> (chips["accelerator_usd_per_flop_per_s"] * 1e12).round(0).to_list()
    [34.0, 502.0]
    """
    day = pl.col("released").str.to_date()
    chips = table("chip_prices").with_columns(
        calendar_year=day.dt.year().cast(pl.Float64),
        year=day.dt.year() + (day.dt.ordinal_day() - 1) / JULIAN_DAYS_PER_YEAR,
    )
    if of_year is not None:
        levels = table("price_levels").filter(country="usa").select("year", "price_level").collect()
        level = dict(levels.iter_rows())
        one_of("price level of year", short_repr(of_year), [f"{year:.0f}" for year in level])
        chips = chips.join(levels.lazy().rename({"year": "calendar_year"}), on="calendar_year", how="left")
        chips = chips.with_columns(
            accelerator_usd=real_usd(pl.col("accelerator_usd"), pl.col("price_level"), level[of_year])
        )
    long = chips.unpivot(
        on=list(PRECISIONS),
        index=["name", "market", "year", "accelerator_usd"],
        variable_name="precision",
        value_name="peak_flop_per_s",
    )
    price = accelerator_usd_per_flop_per_s(pl.col("accelerator_usd"), pl.col("peak_flop_per_s"))
    return (
        long.drop_nulls("peak_flop_per_s")
        .with_columns(pl.col("precision").replace_strict(PRECISIONS), price.alias(PRICE))
        .select("name", "market", "precision", "year", "accelerator_usd", "peak_flop_per_s", PRICE)
        .sort("year", "name", "precision")
        .collect()
    )


def trend(rows: pl.DataFrame, quantity: str, by: str = "year", *, mass: float = 0.95) -> Trend:
    """Fit a constant pace: least squares of the logarithm of a quantity over years.

    Parameters
    ----------
    rows
        One row per observation, with the two columns; three or more.
    quantity
        Column that falls or rises; above zero.
    by
        Column of years.
    mass
        Share of the probability inside the interval.

    Returns
    -------
    Trend
        Halving time with its interval, and the line with its band.

    Raises
    ------
    ScenarioError, FactorykitError
        If a column is missing, a value is not above zero, years do not differ, or SciPy is missing.

    Examples
    --------
    >>> import polars as pl
    >>> falling = pl.DataFrame({"year": [2020.0, 2022.0, 2024.0], "usd": [4.0, 2.0, 1.0]})
    >>> round(trend(falling, "usd").halving_years, 6)
    2.0
    """
    stats = need("scipy.stats")
    names = by, quantity = string("by", by), string("quantity", quantity)
    if by == quantity:
        raise ScenarioError(f"by and quantity are both {by}; give the column of years and another one")
    seen = float_columns(frame("rows", rows, names), names).select(*dict.fromkeys(names)).sort(by)
    mass = probability("mass", mass)
    if seen.height < 3 or seen[by].n_unique() < 2:
        raise ScenarioError(f"{seen.height} rows at {seen[by].n_unique()} times; give three or more at two or more")
    good = seen.select((pl.col(quantity) > 0.0) & pl.col(quantity).is_finite() & pl.col(by).is_finite()).to_series()
    if good.null_count() or not good.all():
        raise ScenarioError(f"column {quantity} or {by} holds a value that is missing, not finite or not above zero")
    fit: Any = stats.linregress(seen[by].to_numpy(), seen[quantity].log().to_numpy())
    reach = float(stats.t.ppf(0.5 + 0.5 * mass, seen.height - 2))
    steepest, flattest = fit.slope - reach * fit.stderr, fit.slope + reach * fit.stderr
    away = pl.col(by) - seen[by].mean()
    band = reach * fit.stderr * (seen[by].var(ddof=0) + away**2).sqrt()  # type: ignore[operator]
    level = fit.intercept + fit.slope * pl.col(by)
    line = seen.select(
        by, level.exp().alias(quantity), (level - band).exp().alias("low"), (level + band).exp().alias("high")
    )
    return Trend(
        points=seen.height,
        halving_years=_halving(fit.slope),
        halving_years_low=_halving(steepest),
        halving_years_high=math.inf if steepest <= 0.0 <= flattest else _halving(flattest),
        r_squared=float(fit.rvalue) ** 2,
        line=line,
    )


def _halving(slope: float) -> float:
    return -LOG_TWO / float(slope) if slope else math.inf
