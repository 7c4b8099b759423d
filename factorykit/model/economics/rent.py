"""Costs of a run at many providers, and their capacity for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import polars as pl

from factorykit.core.errors import ScenarioError
from factorykit.core.validation import boolean, cells, frame
from factorykit.core.vocabulary import parse_columns, vocabulary
from factorykit.data.tables import table
from factorykit.engine.question import Question
from factorykit.engine.resolve import compared
from factorykit.engine.unused import warn_of_idle

NEVER_S: Final = 1e15
"""Mean time between reclaims of capacity that is not reclaimed: 30 million years. [s]"""
PRICE: Final = "rental_usd_per_accelerator_h"
OUTPUTS: Final = ("spot_goodput", "egress_cost_usd", "offer_cost_usd")
TEXTS: Final = ("provider", "kind")


def rent(
    inputs: Mapping[str, Any],
    offers: pl.DataFrame | list[dict[str, Any]] | None = None,
    *,
    whole: bool = True,
    using: Mapping[str, str] | None = None,
    assume: bool = False,
) -> pl.DataFrame:
    """Price a run at every offer, cheapest first.

    Parameters
    ----------
    inputs
        Quantities of the run that give ``accelerators``, ``training_s``, ``accelerator_mtbf_s``,
        ``checkpoint_write_s``, ``restart_s``, ``downtime_s``, and ``transfer_bytes`` if an offer has a price of egress.
        ``spot_goodput="spot_tiered_goodput"`` counts with near and far checkpoints.
    offers
        A frame, or a list of rows: ``provider``, ``rental_usd_per_accelerator_h``, and where known ``kind``,
        ``offered_accelerators`` (null: unknown, and never counted as enough), ``spot_reclaim_mtbf_s`` (null: never
        reclaimed), ``egress_usd_per_byte`` (null: free; the price at the present location of the data). Any other
        quantity overrides that of the run. By default the cheapest on-demand offer of each provider in the table for
        the chip ``accelerator`` of the run, by default H100 SXM; their numbers of chips are unknown.
    whole
        A synchronous run needs all accelerators at one provider. If false, the work is many small jobs, and they go to
        the offers with the cheapest progress first, until all accelerators are found.
    using, assume
        As in :func:`factorykit.evaluate`.

    Returns
    -------
    DataFrame
        One row per offer: ``provider``, ``kind``, ``rental_usd_per_accelerator_h``, ``taken`` (accelerators it gives;
        null if its capacity is unknown), ``spot_goodput``, ``egress_cost_usd``, ``offer_cost_usd`` (of its part of the
        run; of the whole run if its capacity is unknown), ``over_cheapest`` (cost of a unit of work relative to the
        cheapest offer that takes any, or to the cheapest of all, less one), ``reason`` if it takes none. Offers that
        take none follow those that do; those of unknown capacity are last.

    Raises
    ------
    ScenarioError, FactorykitError
        If a column is missing, offers are empty, or a value is invalid.

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
    question = Question.read(inputs, (*OUTPUTS, "offer_fits"), using=using, assume=assume)
    values = question.values
    if "accelerators" not in values:
        raise ScenarioError("accelerators is missing; give the number that the run needs")
    wanted = float(values["accelerators"])
    replaced = {PRICE, "spot_usd_per_accelerator_h"} if offers is None else set()
    chosen_by = {"accelerator"} if offers is None else set()
    offers = _listed(str(values.get("accelerator", "h100_sxm"))) if offers is None else offers
    rows = _completed(offers, wanted, values)
    chain = question.on(rows.with_columns(spot_usd_per_accelerator_h=PRICE)).resolve()
    used = chain.resolution.used | compared(question.shape()) if assume else values.keys()
    idle = values.keys() - question.sources.keys() - (used - replaced | chosen_by)
    warn_of_idle({name: values[name] for name in sorted(idle)}, ("offers",))
    priced = chain.run()
    placed = _whole(priced, wanted) if boolean("whole", whole) else _spread(priced, wanted)
    is_unknown = pl.col("taken").is_null()
    takes = (pl.col("taken") > 0.0).fill_null(value=False)
    least = pl.coalesce(pl.col("unit_usd").filter(takes).min(), pl.col("unit_usd").min())
    share = pl.col("taken").fill_null(wanted) / wanted
    hours_usd = (pl.col("offer_cost_usd") - pl.col("egress_cost_usd")) * share
    return placed.with_columns(
        offer_cost_usd=pl.when(takes | is_unknown).then(hours_usd + pl.col("egress_cost_usd")),
        over_cheapest=(pl.col("unit_usd") - least) / least,
        reason=pl.when(is_unknown).then(pl.lit("unknown number of accelerators")).when(~takes).then("reason"),
    ).select(*TEXTS, PRICE, "taken", *OUTPUTS, "over_cheapest", "reason")


def _whole(priced: pl.DataFrame, wanted: float) -> pl.DataFrame:
    """Return the offers by the cost of the run, those with enough accelerators first."""
    has = pl.col("offered_accelerators").cast(pl.Int64)
    rows = priced.with_columns(
        unit_usd="offer_cost_usd",
        taken=pl.when(pl.col("is_known")).then(pl.col("offer_fits") * wanted),
        reason=pl.format("has {} accelerators, the run needs {}", has, pl.lit(int(wanted))),
    )
    return rows.sort(-pl.col("taken"), "unit_usd", nulls_last=True, maintain_order=True)


def _spread(priced: pl.DataFrame, wanted: float) -> pl.DataFrame:
    """Return the offers by the cost of progress, each filling the remaining demand."""
    has = pl.col("offered_accelerators")
    there = float(priced.filter("is_known")["offered_accelerators"].sum())
    if there < wanted:
        raise ScenarioError(
            f"offers of known size have {there:g} accelerators together, the work needs {wanted:g}; "
            "add offers or offered_accelerators"
        )
    rows = priced.with_columns(unit_usd=pl.col(PRICE) / pl.col("spot_goodput"), reason=pl.lit("cheaper offers suffice"))
    known = pl.when(pl.col("is_known")).then(has).otherwise(0.0)
    found_before = known.cum_sum() - known
    filled = rows.sort("unit_usd", maintain_order=True).with_columns(
        taken=pl.when(pl.col("is_known")).then(pl.min_horizontal((wanted - found_before).clip(0.0), has))
    )
    return filled.sort(~pl.col("is_known"), maintain_order=True)


def _listed(accelerator: str) -> pl.DataFrame:
    offers = table("rental_offers").filter(accelerator=accelerator, kind="on demand").collect()
    if offers.is_empty():
        raise ScenarioError(f"no provider of the table rental_offers has {accelerator!r} on demand; give offers")
    return offers.group_by("provider", "kind", maintain_order=True).agg(pl.col(PRICE).min())


def offered(offers: Any, needed: Sequence[str]) -> pl.DataFrame:
    """Return a frame of offers with rows and the needed columns.

    Raises
    ------
    ScenarioError
        If it is not a frame, has no rows, or lacks a column.
    """
    if isinstance(offers, list):
        rows = [cells("one of offers", row) for row in offers]
        offers = pl.DataFrame(rows, None if rows else needed, infer_schema_length=None, strict=False)
    offers = frame("offers", offers, needed)
    if offers.is_empty():
        raise ScenarioError("offers have no rows; give at least one")
    return offers


def _completed(offers: Any, wanted: float, values: Mapping[str, Any]) -> pl.DataFrame:
    """Return the offers with given values, or defaults: never reclaimed, free egress.

    ``is_known`` marks those with a known number of accelerators; the others are priced as if they had enough.
    """
    offers = parse_columns(offered(offers, ("provider", PRICE)))
    egress = "egress_usd_per_byte" if "egress_usd_per_byte" in {*offers.columns, *values} else "egress_cost_usd"
    defaults = {"offered_accelerators": wanted, "spot_reclaim_mtbf_s": NEVER_S, egress: 0.0}
    missing = [pl.lit(values.get(name), pl.Float64).alias(name) for name in defaults if name not in offers.columns]
    kind = [] if "kind" in offers.columns else [pl.lit(None, pl.String).alias("kind")]
    rows = offers.with_columns(*missing, *kind)
    known = [name for name in rows.columns if name in vocabulary()]
    for name, dtype in rows.select(*defaults).schema.items():
        if not dtype.is_numeric() and dtype != pl.Null:
            raise ScenarioError(f"column {name} is {dtype}, not numeric; cast it to Float64")
    filled = (pl.col(name).cast(pl.Float64).fill_null(value) for name, value in defaults.items())
    is_known = pl.col("offered_accelerators").is_not_null()
    return rows.select(*TEXTS, *known, is_known=is_known).with_columns(filled)
