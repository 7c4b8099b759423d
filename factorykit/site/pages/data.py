"""Data pages: every table with its columns, sources, licences and downloads."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import polars as pl

from factorykit.core.errors import SiteError
from factorykit.site.pages.markdown import (
    browser,
    callout,
    code,
    code_block,
    dashed,
    escaped,
    front,
    heading,
    link,
    linked,
    table,
)
from factorykit.site.table_data import PAGES

WITHOUT_PYTHON: Final = (
    (
        "DuckDB",
        "sql",
        """\
from 'SITE/tables/clusters.parquet' limit 5;
attach 'SITE/factorykit.duckdb' as fk (read_only);
select name, accelerators from fk.clusters order by accelerators desc nulls last limit 5;""",
    ),
    (
        "R",
        "r",
        """\
library(duckdb)
connection <- dbConnect(duckdb())
dbGetQuery(connection, "select name, tdp_w from 'SITE/tables/accelerators.parquet' order by tdp_w desc limit 5")""",
    ),
    (
        "JavaScript",
        "js",
        """\
const answer = await fetch("SITE/api/v1/accelerators/h100_sxm.json");
const { units, tables } = await answer.json();
console.log(tables.accelerators[0].tdp_w, units.tdp_w);""",
    ),
)
"""Examples by language; ``SITE`` stands for the address of the site."""
LOCAL_SITE: Final = "http://127.0.0.1:8000"
"""Address of `factorykit site serve`."""


def data_pages(data: Path, downloads: Path, site: str = LOCAL_SITE) -> dict[str, str]:
    """Return the data pages by name from ``datapackage.json``: an overview, and a page for each subject.

    Every table is written to ``downloads`` as Parquet, CSV and JSON.
    """
    about = "The tables behind the notebooks: one fact a row, every value with its source."
    head = front("Data", about, keywords="tables | download CSV, Parquet, JSON | dataset")
    descriptor = data / "datapackage.json"
    if not descriptor.is_file():
        return {"data": f"{head}\nNo table is built yet; `factorykit data build` builds them.\n"}
    try:
        package = json.loads(descriptor.read_text(encoding="utf-8"))
    except ValueError as error:
        raise SiteError(f"{descriptor}: no JSON ({error}); run `factorykit data build`") from error
    downloads.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(descriptor, downloads / descriptor.name)
    croissant = data / "croissant.json"
    if croissant.is_file():
        shutil.copyfile(croissant, downloads / croissant.name)
    also = " [croissant.json](downloads/croissant.json) describes the same tables in the Croissant format."
    overview = [
        head,
        escaped(package.get("description", "")),
        _entities(package),
        "Every table comes as Parquet, CSV and JSON. [datapackage.json](downloads/datapackage.json) describes them: "
        f"columns, units, keys, sources, licences and hashes.{also if croissant.is_file() else ''} "
        f"Version {escaped(package.get('version', ''))}.",
    ]
    overview += [
        heading("Without Python", "sec-without-python"),
        "Each table is a Parquet file, `tables/NAME.parquet`; `factorykit.duckdb` is all of them in one file. Both are "
        "read in parts over HTTPS. `api/v1` has a JSON document for each entity with every statement about it, the "
        "prices of each accelerator and the series of each quantity; [openapi.json](/api/v1/openapi.json) describes "
        "them, and [index.json](/api/v1/index.json) lists their keys. The version is part of every document.",
        *(
            part
            for name, language, text in WITHOUT_PYTHON
            for part in (f"### {name}", code_block(text.replace("SITE", site), language))
        ),
    ]
    pages = {"data": ""}
    for subject in package["subjects"]:
        name, about = dashed(subject["name"]), escaped(subject["description"])
        tables = [resource for resource in package["resources"] if resource["subject"] == subject["name"]]
        overview += [heading(link(name.capitalize(), f"data/{name}"), f"sec-{name}"), about, _contents(tables)]
        parts = [front(f"Tables: {name}", subject["description"])]
        parts += [_table(resource, data, downloads) for resource in tables]
        pages[f"data/{name}"] = "\n\n".join([*parts, f"{link('All tables', 'data')}."]) + "\n"
    return {**pages, "data": "\n\n".join(part for part in overview if part) + "\n"}


def _contents(resources: Sequence[dict[str, Any]]) -> str:
    """Return the list of tables, each with the meaning of a row and a link to its columns."""
    rows = []
    for resource in resources:
        name, about = resource["name"], " ".join(str(resource.get("description", "")).split())
        first = re.split(r"(?<=\.) ", about, maxsplit=1)[0].removeprefix("A row is ")
        place = link(resource.get("title") or name, f"data/{dashed(resource['subject'])}", f"table-{dashed(name)}")
        rows.append((place, browser(str(resource.get("rows", "")), name), first))
    return table([("Table", "-" * 26), ("Rows", "-" * 6 + ":"), ("A row is", "-" * 60)], rows) if rows else ""


def _entities(package: dict[str, Any]) -> str:
    """Return the sentence with the links to the entity pages."""
    titles = {resource["name"]: resource["title"] for resource in package["resources"] if resource["name"] in PAGES}
    links = ", ".join(browser(title, name) for name, title in titles.items())
    return f"A page for each row, with its statements, its history and its references: {links}." if links else ""


def _table(resource: dict[str, Any], data: Path, downloads: Path) -> str:
    name, file = resource["name"], data / str(resource["path"])
    try:
        frame = pl.read_parquet(file)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise SiteError(
            f"{file}: cannot be read ({str(error).splitlines()[0]}); run `factorykit data build`"
        ) from error
    shutil.copyfile(file, downloads / f"{name}.parquet")
    frame.write_csv(downloads / f"{name}.csv")
    (downloads / f"{name}.json").write_text(frame.write_json() + "\n", encoding="utf-8")
    title = resource.get("title") or name.replace("_", " ").capitalize()
    links = " ".join(
        f"[{kind} ({_size(downloads / f'{name}.{end}')})](/report/downloads/{name}.{end})"
        for kind, end in (("Parquet", "parquet"), ("CSV", "csv"), ("JSON", "json"))
    )
    links = f"{browser('Rows to sort and filter', name)} {links}"
    rows = [
        (code(field["name"]), field.get("unit") or "", field.get("type", ""), field.get("description", ""))
        for field in resource.get("schema", {}).get("fields", ())
    ]
    columns = [("Column", "-" * 28), ("Unit", "-" * 9), ("Type", "-" * 9), ("Meaning", "-" * 54)]
    about = escaped(resource.get("description", ""))
    return "\n\n".join(
        part
        for part in [
            heading(title, f"table-{dashed(name)}"),
            f"{browser(name, name)}: {frame.height} rows, {frame.width} columns. {about}",
            f"::: {{.fk-downloads}}\n{links}\n:::",
            _licences(resource),
            callout("note", f"{len(rows)} columns", table(columns, rows)),
            _sources(resource),
        ]
        if part
    )


def _licences(resource: dict[str, Any]) -> str:
    names = [
        linked(licence.get("title") or licence.get("name", ""), licence.get("path"))
        for licence in resource.get("licenses", ())
    ]
    return f"Licence: {', '.join(names)}." if names else ""


def _sources(resource: dict[str, Any]) -> str:
    rows = [f"- {linked(source.get('title', ''), source.get('path'))}" for source in resource.get("sources", ())]
    return callout("note", f"{len(rows)} sources", "\n".join(rows)) if rows else ""


def _size(file: Path) -> str:
    size = file.stat().st_size
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{max(1, round(size / 1e3))} kB"
