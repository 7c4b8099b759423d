"""Published figures of practices compared with the formulas: goodput, spares, checkpoints, starts, bring-up."""

from __future__ import annotations

from math import inf
from typing import Any, Final

import polars as pl

from factorykit.core.validation import one_of
from factorykit.data.tables import table
from factorykit.model.validation.recipes import Span, Tables, evaluate_recipe

COMPUTED: Final[tuple[str, ...]] = ("computed_low", "computed_high", "error")
SHOWN: Final = (
    *("practice_figure", "name", "machines", "group", "practice", "setting", "quantity", "kind"),
    *("stated", "stated_low", "stated_high", *COMPUTED, "source", "locator", "note"),
)


def published_practices(group: str | None = None) -> pl.DataFrame:
    """Return every published figure of a practice with the number that its recipe computes.

    Parameters
    ----------
    group
        Only figures of ``goodput``, ``failures``, ``spares``, ``save``, ``start``, ``tenancy`` or ``bring-up``.

    Returns
    -------
    polars.DataFrame
        One row per figure, in the order of the table ``practice_figures``: ``name``, ``machines``, ``group``,
        ``practice``, ``setting`` (with it or without), ``quantity``, ``kind``; ``stated`` or ``stated_low`` and
        ``stated_high``, and ``computed_low`` and ``computed_high``, in the unit of the quantity; ``error``, the
        distance of the nearest computed number from the nearest stated one, over that: 0 where the ranges touch, null
        where nothing that is published leads to the figure; ``source``, ``locator``, ``note``.

    Raises
    ------
    UnknownName
        If there is no such group.

    Examples
    --------
    >>> published_practices("goodput").filter(practice_figure="ft_hsdp_replicas").select("stated", "error").row(0)
    (0.8, 0.0)
    """
    rows = table("practice_figures").collect()
    if group is not None:
        group = one_of("group", group, rows["group"].unique(maintain_order=True).to_list())
        rows = rows.filter(pl.col("group") == group)
    tables = Tables()
    computed = [_recomputed(row, tables) for row in rows.iter_rows(named=True)]
    return rows.hstack(pl.DataFrame(computed, schema=dict.fromkeys(COMPUTED, pl.Float64))).select(SHOWN)


def _recomputed(row: dict[str, Any], tables: Tables) -> dict[str, float | None]:
    if row["recipe"] is None:
        return dict.fromkeys(COMPUTED)
    value = evaluate_recipe(row["recipe"], tables).value
    low, high = (value.low, value.high) if isinstance(value, Span) else (value, value)
    stated = row["stated"]
    ends = (row["stated_low"], row["stated_high"]) if stated is None else (stated, stated)
    least, most = -inf if ends[0] is None else ends[0], inf if ends[1] is None else ends[1]
    error = low / most - 1.0 if low > most else high / least - 1.0 if high < least else 0.0
    return {"computed_low": low, "computed_high": high, "error": error}
