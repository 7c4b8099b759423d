"""Who says it: the source behind every row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from factorykit.core.errors import UnknownName
from factorykit.core.validation import one_of
from factorykit.data.entities import KINDS
from factorykit.data.tables import resource_of, table

if TYPE_CHECKING:
    import polars as pl

    from factorykit.core.names import TableName

CITED: Final = ("citation", "url", "locator", "as_of", "published", "accessed", "licence", "evidence")
"""Columns that tell what a source is and where in it."""


def sources(table_name: TableName | str, key: str | None = None) -> pl.DataFrame:
    """Return who says what a table says.

    A table of things (`clusters`, `sites`, `models`, `runs`, `organisations`) is answered field by field, since each
    value may come from somebody else: ``field`` names the column, ``statement`` the row it was picked from, and
    ``preferred`` why. A connected data set has one row: its publisher, with the credit that the licence requires as
    ``citation``.

    Parameters
    ----------
    table_name : str
        A table or view of `tables`.
    key : str, optional
        One thing of the table, such as a cluster or a preset, or one statement; all of them by default.

    Returns
    -------
    polars.DataFrame
        One row per row of the table and source, in the order of the table: what the row is about (``key``, and its own
        name where it has one), ``role`` (``says it`` or ``confirms it``), ``source``, ``citation``, ``url``,
        ``locator``, ``as_of``, ``published``, ``accessed``, ``licence``, ``evidence``. Null means not known.

    Raises
    ------
    UnknownName
        If there is no such table, or nothing of that name in it, with the nearest name.
    """
    import polars as pl

    resource = resource_of(table_name)
    if "attribution" in resource:
        return _publisher(resource, key)
    if resource["name"] in KINDS:
        return _of_things(resource["name"], key)
    fields = {field["name"]: field for field in resource["schema"]["fields"]}
    about = next(name for name, field in fields.items() if field.get("entity"))
    rows = table(table_name).with_row_index("number_of_row").collect()
    own = [name for name in ("statement", "quantity") if name in fields and name != about]
    named = [about, *(name for name in own if name == "statement")]
    if key is not None:
        known = pl.concat([rows[name].rename("key") for name in named]).unique(maintain_order=True).to_list()
        one_of(f"{about} in {table_name}", key, known)
        rows = rows.filter(pl.any_horizontal(pl.col(name) == key for name in named))
    names = [about, *own] if about != "source" else []
    optional = [name for name in ("locator", "as_of") if name in fields]
    said = rows.lazy().select("number_of_row", *names, "source", *optional, role=pl.lit("says it"))
    if "confirmed_by" in fields:
        more = (
            rows.lazy()
            .filter(pl.col("confirmed_by").is_not_null())
            .select("number_of_row", *names, source=pl.col("confirmed_by").str.split("; "), role=pl.lit("confirms it"))
            .explode("source")
        )
        said = pl.concat([said, more], how="diagonal")
    return (
        said.with_columns(pl.lit(None, pl.String).alias(name) for name in ("locator", "as_of") if name not in fields)
        .join(_cited(), on="source", how="left", maintain_order="left")
        .sort("number_of_row", maintain_order=True)
        .select(*names, "role", "source", *CITED)
        .collect()
    )


def _cited() -> pl.LazyFrame:
    """Return the sources as they are cited."""
    import polars as pl

    return table("sources").select(
        "source",
        citation=pl.concat_str("title", pl.col("author"), pl.col("published"), separator=". ", ignore_nulls=True),
        url=pl.coalesce("url", "file"),
        published="published",
        accessed="accessed",
        licence="licence",
        evidence="evidence",
    )


def _of_things(kind: str, key: str | None) -> pl.DataFrame:
    """Return who says each field of the things of one kind; a page on which a source found it stands for its own."""
    import polars as pl

    about = KINDS[kind][1]
    said = table("statements").filter(pl.col("preferred").is_not_null(), kind=kind).rename({"thing": about})
    if key is not None:
        known = table(kind).select(about).collect()[about].to_list()
        one_of(f"{about} in {kind}", key, known)
        said = said.filter(pl.col(about) == key)
    return (
        said.join(_cited(), on="source", how="left", maintain_order="left")
        .with_columns(role=pl.lit("says it"), url=pl.coalesce("address", "url"))
        .select(about, "field", "statement", "role", "source", *CITED, "preferred")
        .collect()
    )


def _publisher(resource: dict[str, Any], key: str | None) -> pl.DataFrame:
    """Return the publisher of a connected data set in the columns of `sources`."""
    import polars as pl

    name = resource["name"]
    if key is not None:
        raise UnknownName(f"{name} comes from one publisher as a whole; ask sources({name!r})")
    row = {
        "role": "publishes it",
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
