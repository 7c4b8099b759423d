"""Uncertainty of plans: one set of random draws, the same for every plan."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from statistics import NormalDist
from typing import Any, Final

import polars as pl

from factorykit.core.vocabulary import quantity
from factorykit.data import tables
from factorykit.engine.question import Question
from factorykit.model.economics.rent import PRICE
from factorykit.model.planning.candidates import RESULTS
from factorykit.model.uncertainty.distributions import Distribution, LogNormal

STEP: Final = "step_s"
SHARED_SD: Final = math.sqrt(0.5)
"""Standard deviation that chips share of a step time or a price: half of the variance, chosen."""
NORMAL_75: Final = 0.6744897501960817
"""75 % quantile of the standard normal distribution."""
MIN_PROVIDERS: Final = 5
INTERVAL: Final = (0.05, 0.95)


def distributions(given: Mapping[str, Distribution]) -> dict[str, Distribution]:
    """Return the distributions that are drawn: given ones, and the ranges of the table.

    A quantity with a given value is drawn, too, and not used, so that the other draws stay the same.
    """
    ranges = {name: LogNormal(low, high) for name, (low, high) in _ranges().items()}
    return ranges | dict(given)


@cache
def _ranges() -> Mapping[str, tuple[float, float]]:
    rows = tables.table("ranges").select("quantity", "low", "high").collect().iter_rows()
    return {name: (low, high) for name, low, high in rows}


def draw(drawn: Mapping[str, Distribution], chips: Sequence[str], n: int, seed: int) -> pl.DataFrame:
    """Return one row per draw: ``draw``, the quantities, and standard normal numbers for the step time and the price.

    Those of ``step <chip>`` and ``price <chip>`` share half their variance between chips.
    """
    table: dict[str, Any] = {"draw": range(n)}
    for name, distribution in drawn.items():
        row = quantity(name)
        values = (float(distribution.ppf(share)) for share in strata(name, n, seed))
        table[name] = [min(max(value, row.lower), row.upper) for value in values]
    for kind, shared in (("step", STEP), ("price", PRICE)):
        common = _normal(f"{shared} of all", n, seed)
        for chip in chips:
            table[f"{kind} {chip}"] = SHARED_SD * common + SHARED_SD * _normal(f"{kind} {chip}", n, seed)
    return pl.DataFrame(table)


def strata(name: str, n: int, seed: int) -> list[float]:
    """Return a random share of the probability from each of ``n`` equal strata: a column of a Latin hypercube.

    It follows from the name and the seed alone, so a further quantity leaves the others' draws as they are.

    >>> sorted(int(4 * share) for share in strata("mfu", 4, 0))
    [0, 1, 2, 3]
    """
    generator = random.Random(f"{seed} {name}")
    order = sorted(range(n), key=lambda _: generator.random())
    return [(stratum + generator.random()) / n for stratum in order]


def _normal(name: str, n: int, seed: int) -> pl.Series:
    return pl.Series([NormalDist().inv_cdf(share) for share in strata(name, n, seed)])


@cache
def price_sigma(accelerator: str) -> float:
    """Return the spread of a chip's rental price between providers: standard deviation of its logarithm.

    From the quartiles of their offers; where fewer than five providers offer it, of all chips with five or more.

    >>> 0.1 < price_sigma("h100_sxm") < 0.6
    True
    """
    offers = tables.table("rental_offers").filter(pl.col("accelerator").is_not_null(), kind="on demand")
    cheapest = offers.group_by("accelerator", "provider").agg(pl.col(PRICE).min())
    over = cheapest.with_columns(
        (pl.col(PRICE) / pl.col(PRICE).median().over("accelerator")).log().alias("log"),
        pl.len().over("accelerator").alias("providers"),
    ).filter(pl.col("providers") >= MIN_PROVIDERS)
    rows = over.collect()
    own = rows.filter(accelerator=accelerator)
    seen = (own if own.height else rows)["log"]
    low, high = (float(seen.quantile(share, "linear") or 0.0) for share in (0.25, 0.75))
    return (high - low) / (2.0 * NORMAL_75)


def futures(
    plans: pl.DataFrame,
    fixed: Mapping[str, Any],
    chip: str,
    draws: pl.DataFrame,
    using: Mapping[str, str],
    *,
    draw_price: bool,
) -> pl.DataFrame:
    """Return the results of the plans of ``chip`` in every draw: one row per plan and draw, with `RESULTS`.

    ``plans`` has one row per plan with its choices, ``step_s``, ``step_spread`` and the quantities of `RESULTS` that
    follow from them; ``fixed`` are the inputs that all of them share.
    """
    unknown = [name for name in draws.columns if name != "draw" and " " not in name]
    kept = [name for name in plans.columns if name not in (*RESULTS, *unknown)]
    rows = plans.select(*kept, STEP).join(
        draws.select("draw", *unknown, pl.col(f"step {chip}").alias("step"), pl.col(f"price {chip}").alias("price")),
        how="cross",
        maintain_order="left_right",
    )
    rows = rows.with_columns(pl.col(STEP) * (pl.col("step") * pl.col("step_spread")).exp())
    if draw_price:
        sigma = price_sigma(fixed["accelerator"])
        rows = rows.with_columns((pl.col(PRICE) * (pl.col("price") * sigma).exp()).alias(PRICE))
    known = {name: value for name, value in fixed.items() if name not in rows.columns}
    varying = [name for name in rows.columns if name not in ("draw", "plan", "step", "price")]
    outputs = tuple(name for name in RESULTS if name != STEP)
    chain = Question(known, using, outputs, assume=True).over(varying).resolve()
    constant = chain.known
    results = [name if name == STEP or name not in constant else pl.lit(constant[name]).alias(name) for name in RESULTS]
    return chain.extend(rows.lazy()).select("plan", "draw", *results).collect()


def intervals(drawn: pl.DataFrame, results: Iterable[str] = RESULTS) -> pl.DataFrame:
    """Return the ends of the 90 % interval of each result, one row per plan."""
    ends = [
        pl.col(name).quantile(share, "linear").alias(f"{name}_{end}")
        for name in results
        for share, end in zip(INTERVAL, ("low", "high"), strict=True)
    ]
    return drawn.group_by("plan", maintain_order=True).agg(ends)


def chance_less(drawn: pl.DataFrame, result: str, plan: int, other: int) -> float:
    """Return the share of draws in which a plan has less of a result than another."""
    values, other_values = (drawn.filter(plan=which).sort("draw")[result] for which in (plan, other))
    return float((values < other_values).sum() / values.len())
