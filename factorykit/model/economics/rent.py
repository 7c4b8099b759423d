"""One run at many providers: what it costs at each, and which of them can take it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from factorykit.core.errors import ScenarioError
from factorykit.core.validation import boolean, frame
from factorykit.core.vocabulary import parse_columns, vocabulary
from factorykit.data.tables import table
from factorykit.engine.question import Question

if TYPE_CHECKING:
    import polars as pl

NEVER_S: Final = 1e15
"""Stands for capacity that is never taken away: 30 million years between reclaims. [s]"""
PRICE: Final = "rental_usd_per_accelerator_h"
OUTPUTS: Final = ("spot_goodput", "egress_cost_usd", "offer_cost_usd")
TEXTS: Final = ("provider", "kind")


def rent(
    inputs: Mapping[str, Any],
    offers: pl.DataFrame | None = None,
    *,
    whole: bool = True,
    using: Mapping[str, str] | None = None,
    assume: bool = False,
) -> pl.DataFrame:
    """Price a run at every offer, cheapest first.

    Parameters
    ----------
    inputs
        Quantities of the run: ``accelerators``, what leads to ``training_s``, ``accelerator_mtbf_s``,
        ``checkpoint_write_s``, ``restart_s``, ``downtime_s``, and what leads to ``transfer_bytes`` where an offer has a
        price of egress. ``spot_goodput="spot_tiered_goodput"`` counts with near and far checkpoints.
    offers
        One row per offer: ``provider``, ``rental_usd_per_accelerator_h``, and where known ``kind``,
        ``offered_accelerators`` (null: not said, and never counted as enough), ``spot_reclaim_mtbf_s`` (null: never
        taken away), ``egress_usd_per_byte`` (null: nothing to pay; the price where the data lie now). Any other
        quantity takes the place of the run's own. By default what the table lists on demand for the chip
        ``accelerator`` of the run, H100 SXM where it names none: the cheapest form of each provider. None of them says
        how many chips it has.
    whole
        A synchronous run needs all accelerators at one provider. If false, the work is many small jobs, and they go to
        the offers with the cheapest progress first, until all accelerators are found.
    using
        Which model stands for a quantity that has rivals, as in :func:`factorykit.evaluate`.
    assume
        Whether sourced defaults fill what nobody gave, as in :func:`factorykit.evaluate`.

    Returns
    -------
    DataFrame
        One row per offer: ``provider``, ``kind``, ``rental_usd_per_accelerator_h``, ``taken`` (accelerators it gives;
        null where it does not say how many it has), ``spot_goodput``, ``egress_cost_usd``, ``offer_cost_usd`` (of what
        it takes; of the whole run where it does not say), ``over_cheapest`` (cost of a unit of work over the cheapest
        that takes any, or over the cheapest of all if none says so, less one), ``reason`` where it takes none. Offers
        that take none come after those that do, and those that do not say are last.

    Raises
    ------
    ScenarioError, FactorykitError
        If a column is missing, offers are empty, or a value is refused.

    Examples
    --------
    >>> import polars as pl
    >>> run = {"accelerators": 1024.0, "training_s": 1e6, "accelerator_mtbf_s": 1.8e8, "checkpoint_write_s": 60.0}
    >>> run |= {"restart_s": 600.0, "downtime_s": 0.0, "transfer_bytes": 1e13}
    >>> offers = pl.DataFrame({"provider": ["a", "b"], "rental_usd_per_accelerator_h": [2.0, 3.0]})
    >>> found = rent(run, offers.with_columns(offered_accelerators=pl.Series([2048.0, None])))
    >>> found.select("provider", "taken").rows()
    [('a', 1024.0), ('b', None)]
    """
    import polars as pl

    question = Question.read(inputs, (*OUTPUTS, "offer_fits"), using=using, assume=assume)
    values = question.values
    if "accelerators" not in values:
        raise ScenarioError("the run has no accelerators; give how many it needs")
    wanted = float(values["accelerators"])
    offers = _listed(str(values.get("accelerator", "h100_sxm"))) if offers is None else offers
    rows = _completed(offers, wanted)
    priced = question.on(rows.with_columns(spot_usd_per_accelerator_h=PRICE)).resolve().run()
    placed = _whole(priced, wanted) if boolean("whole", whole) else _spread(priced, wanted)
    unsaid = pl.col("taken").is_null()
    takes = (pl.col("taken") > 0.0).fill_null(value=False)
    least = pl.coalesce(pl.col("unit_usd").filter(takes).min(), pl.col("unit_usd").min())
    share = pl.col("taken").fill_null(wanted) / wanted
    hours_usd = (pl.col("offer_cost_usd") - pl.col("egress_cost_usd")) * share
    silent = pl.lit("not said how many accelerators it has")
    return placed.with_columns(
        offer_cost_usd=pl.when(takes | unsaid).then(hours_usd + pl.col("egress_cost_usd")),
        over_cheapest=(pl.col("unit_usd") - least) / least,
        reason=pl.when(unsaid).then(silent).when(~takes).then("reason"),
    ).select(*TEXTS, PRICE, "taken", *OUTPUTS, "over_cheapest", "reason")


def _whole(priced: pl.DataFrame, wanted: float) -> pl.DataFrame:
    """Return the offers by the cost of the run, those first that have all the accelerators."""
    import polars as pl

    has = pl.col("offered_accelerators").cast(pl.Int64)
    rows = priced.with_columns(
        unit_usd="offer_cost_usd",
        taken=pl.when(pl.col("says")).then(pl.col("offer_fits") * wanted),
        reason=pl.format("has {} accelerators, the run needs {}", has, pl.lit(int(wanted))),
    )
    return rows.sort(-pl.col("taken"), "unit_usd", nulls_last=True, maintain_order=True)


def _spread(priced: pl.DataFrame, wanted: float) -> pl.DataFrame:
    """Return the offers by the cost of progress, each giving what those before it leave to find."""
    import polars as pl

    has = pl.col("offered_accelerators")
    said = priced.filter("says")
    there = float(said["offered_accelerators"].sum())
    if there < wanted:
        raise ScenarioError(
            f"the offers that say how many they have, have {there:g} accelerators together, the work needs {wanted:g}; "
            "add offers or offered_accelerators"
        )
    rows = priced.with_columns(unit_usd=pl.col(PRICE) / pl.col("spot_goodput"), reason=pl.lit("cheaper offers suffice"))
    known = pl.when(pl.col("says")).then(has).otherwise(0.0)
    found_before = known.cum_sum() - known
    filled = rows.sort("unit_usd", maintain_order=True).with_columns(
        taken=pl.when(pl.col("says")).then(pl.min_horizontal((wanted - found_before).clip(0.0), has))
    )
    return filled.sort(~pl.col("says"), maintain_order=True)


def _listed(accelerator: str) -> pl.DataFrame:
    import polars as pl

    offers = table("rental_offers").filter(accelerator=accelerator, kind="on demand").collect()
    if offers.is_empty():
        raise ScenarioError(f"no provider of the table rental_offers has {accelerator!r} on demand; give offers")
    return offers.group_by("provider", "kind", maintain_order=True).agg(pl.col(PRICE).min())


def offered(offers: Any, needed: Sequence[str]) -> pl.DataFrame:
    """Return offers where they are a frame with rows and the needed columns.

    Raises
    ------
    ScenarioError
        If they are no frame, have no rows, or lack a column.
    """
    offers = frame("offers", offers, needed)
    if offers.is_empty():
        raise ScenarioError("offers have no rows; give at least one")
    return offers


def _completed(offers: pl.DataFrame, wanted: float) -> pl.DataFrame:
    """Return the offers with what they leave unsaid: never taken away, nothing to pay to move.

    ``says`` tells which of them say how many accelerators they have; the others are priced as if they had enough.
    """
    import polars as pl

    offers = parse_columns(offered(offers, ("provider", PRICE)))
    egress = "egress_usd_per_byte" if "egress_usd_per_byte" in offers.columns else "egress_cost_usd"
    unsaid = {"offered_accelerators": wanted, "spot_reclaim_mtbf_s": NEVER_S, egress: 0.0}
    missing = [pl.lit(None, pl.Float64).alias(name) for name in unsaid if name not in offers.columns]
    kind = [] if "kind" in offers.columns else [pl.lit(None, pl.String).alias("kind")]
    rows = offers.with_columns(*missing, *kind)
    known = [name for name in rows.columns if name in vocabulary()]
    for name, dtype in rows.select(*unsaid).schema.items():
        if not dtype.is_numeric() and dtype != pl.Null:
            raise ScenarioError(f"column {name} is {dtype}, not numeric; cast it to Float64")
    filled = (pl.col(name).cast(pl.Float64).fill_null(value) for name, value in unsaid.items())
    says = pl.col("offered_accelerators").is_not_null()
    return rows.select(*TEXTS, *known, says=says).with_columns(filled)
