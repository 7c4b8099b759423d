"""The data pages: every table with its columns, sources, licences and downloads."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from factorykit.errors import SiteError
from factorykit.site.pages.markdown import dashed, escaped, front, linked


def data_pages(data: Path, downloads: Path) -> dict[str, str]:
    """Return the pages of the data by name from ``datapackage.json``: an overview, and one page a subject.

    Every table goes to ``downloads`` as Parquet, CSV and JSON.
    """
    head = front("Data", "The tables behind the notebooks: one fact a row, every value with its source.")
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
    also = " [croissant.json](downloads/croissant.json) says the same in the words of Croissant."
    overview = [
        head,
        escaped(package.get("description", "")),
        "Every table comes as Parquet, CSV and JSON. [datapackage.json](downloads/datapackage.json) describes them: "
        f"columns, units, keys, sources, licences and hashes.{also if croissant.is_file() else ''} "
        f"Version {package.get('version', '')}.",
    ]
    pages = {"data": ""}
    for subject in package["subjects"]:
        name, said = subject["name"], escaped(subject["description"])
        tables = [each for each in package["resources"] if each["subject"] == name]
        overview += [f"## [{name.capitalize()}](data-{name}.qmd) {{#sec-{name}}}", said, _contents(tables)]
        parts = [front(f"Tables: {name}", subject["description"])]
        parts += [_table(resource, data, downloads) for resource in tables]
        pages[f"data-{name}"] = "\n\n".join([*parts, "[All tables](data.qmd)."]) + "\n"
    return {**pages, "data": "\n\n".join(part for part in overview if part) + "\n"}


def _contents(resources: Sequence[dict[str, Any]]) -> str:
    """Return the list of tables, each with what a row is and a link to its columns."""
    head = ["| Table | Rows | A row is |", f"|{'-' * 26}|{'-' * 6}:|{'-' * 60}|"]
    rows = []
    for each in resources:
        name, said = each["name"], " ".join(str(each.get("description", "")).split())
        first = re.split(r"(?<=\.) ", said, maxsplit=1)[0].removeprefix("A row is ")
        link = f"[{escaped(each.get('title') or name)}](data-{each['subject']}.qmd#table-{dashed(name)})"
        rows.append(f"| {link} | {each.get('rows', '')} | {escaped(first)} |")
    return "\n".join([*head, *rows]) if rows else ""


def _table(resource: dict[str, Any], data: Path, downloads: Path) -> str:
    import polars as pl

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
        f"[{kind} ({_size(downloads / f'{name}.{end}')})](downloads/{name}.{end})"
        for kind, end in (("Parquet", "parquet"), ("CSV", "csv"), ("JSON", "json"))
    )
    fields = resource.get("schema", {}).get("fields", ())
    rows = [
        f"| `{field['name']}` | {field.get('unit') or ''} | {field.get('type', '')} "
        f"| {escaped(' '.join(str(field.get('description', '')).split()))} |"
        for field in fields
    ]
    head = ["| Column | Unit | Type | Meaning |", f"|{'-' * 28}|{'-' * 9}|{'-' * 9}|{'-' * 54}|"]
    return "\n\n".join(
        part
        for part in [
            f"## {title} {{#table-{dashed(name)}}}",
            f"`{name}`: {frame.height} rows, {frame.width} columns. {escaped(resource.get('description', ''))}",
            f"::: {{.fk-downloads}}\n{links}\n:::",
            _licences(resource),
            f'::: {{.callout-note collapse="true" title="{len(rows)} columns"}}\n\n'
            + "\n".join([*head, *rows])
            + "\n\n:::",
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
    if not rows:
        return ""
    return "\n".join([f'::: {{.callout-note collapse="true" title="{len(rows)} sources"}}', *rows, ":::"])


def _size(file: Path) -> str:
    size = file.stat().st_size
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{max(1, round(size / 1e3))} kB"
