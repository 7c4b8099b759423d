"""Which plans are best: those that keep the limits first, and those that no other one beats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from factorykit.core.constants import SECONDS_PER_DAY
from factorykit.model.performance.search import BEST_IS_MOST
from factorykit.model.planning.constraints import Wishes

if TYPE_CHECKING:
    import polars as pl


def ranked(plans: pl.DataFrame, wishes: Wishes, objective: str | None) -> pl.DataFrame:
    """Return the plans with what each one ``breaks``, the best first.

    Those that keep all limits come first, by the objective; then the others, the nearest first: by the
    product of the ratios of what they take to what is allowed. ``breaks`` is null where a plan keeps all limits.
    """
    import polars as pl

    over = overdrawn(plans, wishes)
    worst = pl.sum_horizontal(pl.lit(0.0), *(share.log().clip(0.0) for share in over.values()))
    broken = [
        pl.when(share > 1.0).then(pl.format("{} x the {}", _rounded(share), pl.lit(n))) for n, share in over.items()
    ]
    breaks = pl.concat_str(broken, separator=", ", ignore_nulls=True) if broken else pl.lit("")
    return (
        plans.with_columns(breaks=pl.when(breaks != "").then(breaks), worst=worst, value=value(wishes, objective))
        .sort("worst", "value", "accelerators", maintain_order=True)
        .drop("worst", "value")
    )


def _rounded(share: pl.Expr) -> pl.Expr:
    """Return a ratio as text of three digits, without decimals from a hundred on."""
    import polars as pl

    rounded = share.round_sig_figs(3)
    digits = rounded.cast(pl.String)
    return pl.when(rounded < 100.0).then(digits).otherwise(digits.str.strip_suffix(".0"))


def value(wishes: Wishes, objective: str | None) -> pl.Expr:
    """Return what makes a plan better, the less the better."""
    import polars as pl

    name = objective or wishes.objective()
    if name is None:
        return pl.col("wall_days") * pl.col("run_cost_usd")
    return -pl.col(name) if name in BEST_IS_MOST else pl.col(name)


def overdrawn(plans: pl.DataFrame, wishes: Wishes) -> dict[str, pl.Expr]:
    """Return what a plan takes over what is allowed, by limit."""
    import polars as pl

    over: dict[str, pl.Expr] = {}
    if wishes.deadline_s is not None:
        over["deadline"] = pl.col("wall_days") * SECONDS_PER_DAY / wishes.deadline_s
    if wishes.budget_usd is not None:
        money = pl.col("run_cost_usd")
        if "capital_usd" in plans.columns:
            money = pl.max_horizontal(money, "capital_usd")
        over["budget"] = money / wishes.budget_usd
    if wishes.facility_power_w is not None:
        over["power"] = pl.col("facility_power_w") / wishes.facility_power_w
    return over


def nondominated(rows: pl.DataFrame, results: Sequence[str]) -> pl.DataFrame:
    """Return the rows that no other one equals or beats in all results, by the first of them.

    >>> import polars as pl
    >>> nondominated(pl.DataFrame({"a": [1.0, 2.0, 3.0], "b": [3.0, 1.0, 2.0]}), ("a", "b")).rows()
    [(1.0, 3.0), (2.0, 1.0)]
    """
    listed = rows.sort(*results, maintain_order=True)
    kept: list[tuple[float, ...]] = []
    places = []
    for place, values in enumerate(listed.select(results).iter_rows()):
        if not any(all(a <= b for a, b in zip(other, values, strict=True)) for other in kept):
            kept.append(values)
            places.append(place)
    return listed[places]
