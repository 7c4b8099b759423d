"""Sources of the rows and fields of the tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from factorykit.core.errors import UnknownName
from factorykit.core.validation import one_of
from factorykit.data import identifiers
from factorykit.data.entities import KINDS
from factorykit.data.tables import resource_of, table

if TYPE_CHECKING:
    from factorykit.core._names import TableName

CITED: Final = ("citation", "url", "locator", "as_of", "published", "accessed", "licence", "evidence")
"""Columns that describe a source and the place in it."""


def sources(table_name: TableName | str, key: str | None = None) -> pl.DataFrame:
    """Return the sources of a table.

    A table of entities (`clusters`, `sites`, `models`, `runs`, `organisations`) has one source per field: ``field`` is
    the column, ``statement`` the row it was picked from, and ``preferred`` the reason. A connected data set has one
    row: its publisher, with the attribution that the licence requires as ``citation``.

    Parameters
    ----------
    table_name : str
        A table or view of `tables`.
    key : str, optional
        An entity of the table, such as a cluster or a preset, by key or known name, or a statement; all by default.

    Returns
    -------
    polars.DataFrame
        One row per row of the table and source, in the order of the table: its subject (``key``, and its own name
        where it has one), ``role`` (``states`` or ``confirms``), ``source``, ``citation``, ``url``,
        ``locator``, ``as_of``, ``published``, ``accessed``, ``licence``, ``evidence``. Null means unknown.

    Raises
    ------
    UnknownName
        If there is no such table, or the key is not in it, with the nearest name.
    """
    resource = resource_of(table_name)
    if "attribution" in resource:
        return _publisher(resource, key)
    if resource["name"] in KINDS:
        return _of_entities(resource["name"], key)
    fields = {field["name"]: field for field in resource["schema"]["fields"]}
    about = next(name for name, field in fields.items() if field.get("entity"))
    rows = table(table_name).with_row_index("number_of_row").collect()
    own = [name for name in ("statement", "quantity") if name in fields and name != about]
    named = [about, *(name for name in own if name == "statement")]
    if key is not None:
        known = pl.concat([rows[name].rename("key") for name in named]).unique(maintain_order=True).to_list()
        identified = identifiers.known_key(about, key) if about in identifiers.KINDS and key not in known else None
        key = one_of(f"{about} in {table_name}", identified or key, known)
        rows = rows.filter(pl.any_horizontal(pl.col(name) == key for name in named))
    names = [about, *own] if about != "source" else []
    optional = [name for name in ("locator", "as_of") if name in fields]
    stated = rows.lazy().select("number_of_row", *names, "source", *optional, role=pl.lit("states"))
    if "confirmed_by" in fields:
        more = (
            rows.lazy()
            .filter(pl.col("confirmed_by").is_not_null())
            .select("number_of_row", *names, source=pl.col("confirmed_by").str.split("; "), role=pl.lit("confirms"))
            .explode("source")
        )
        stated = pl.concat([stated, more], how="diagonal")
    return (
        stated.with_columns(pl.lit(None, pl.String).alias(name) for name in ("locator", "as_of") if name not in fields)
        .join(_cited(), on="source", how="left", maintain_order="left")
        .sort("number_of_row", maintain_order=True)
        .select(*names, "role", "source", *CITED)
        .collect()
    )


def _cited() -> pl.LazyFrame:
    """Return the sources with their citations."""
    return table("sources").select(
        "source",
        citation=pl.concat_str("title", pl.col("author"), pl.col("published"), separator=". ", ignore_nulls=True),
        url=pl.coalesce("url", "file"),
        published="published",
        accessed="accessed",
        licence="licence",
        evidence="evidence",
    )


def _of_entities(kind: str, key: str | None) -> pl.DataFrame:
    """Return the source of each field of the entities of one kind; the URL is that of the page, where it is known."""
    about = KINDS[kind][1]
    stated = table("statements").filter(pl.col("preferred").is_not_null(), kind=kind).rename({"entity": about})
    if key is not None:
        known = table(kind).select(about).collect()[about].to_list()
        key = one_of(f"{about} in {kind}", key, known)
        stated = stated.filter(pl.col(about) == key)
    return (
        stated.join(_cited(), on="source", how="left", maintain_order="left")
        .with_columns(role=pl.lit("states"), url=pl.coalesce("address", "url"))
        .select(about, "field", "statement", "role", "source", *CITED, "preferred")
        .collect()
    )


def _publisher(resource: dict[str, Any], key: str | None) -> pl.DataFrame:
    """Return the publisher of a connected data set in the columns of `sources`."""
    name = resource["name"]
    if key is not None:
        raise UnknownName(f"{name} comes from one publisher; call sources({name!r})")
    row = {
        "role": "publishes",
        "source": name,
        "citation": resource["attribution"],
        "url": resource["address"],
        "locator": resource["origin"],
        "as_of": None,
        "published": None,
        "accessed": resource["retrieved"],
        "licence": f"{resource['licenses'][0]['name']}, {resource['licenses'][0]['path']}",
        "evidence": f"the file itself, {resource['origin_hash']}",
    }
    return pl.DataFrame([row], schema=dict.fromkeys(row, pl.String))
