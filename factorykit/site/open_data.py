"""Export of the tables as Parquet, as one DuckDB file, and as JSON with an OpenAPI description."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import duckdb

from factorykit.data.tables import DESCRIPTOR
from factorykit.site.page_layout import PageContext
from factorykit.site.sources import Project
from factorykit.site.table_data import PAGES, DataPackage, Table, load

API: Final = "api/v1"
DATABASE: Final = "factorykit.duckdb"
STORAGE: Final = "STORAGE_VERSION 'v1.2.0', BLOCK_SIZE 16384"
"""Storage format of the DuckDB file: readable since DuckDB 1.2, with blocks suitable for range requests."""
GROUPS: Final = {
    "prices": ("accelerator", ("prices", "price_months", "rental_offers")),
    "series": ("quantity", ("months",)),
}
"""Collections other than entities: the column that identifies a document, and the tables of its rows."""


def add(project: Project, out: Path, context: PageContext) -> None:
    """Write Parquet files, the DuckDB file and the JSON documents below ``out``."""
    data = project.root / "data"
    package = load(data)
    if package is None:
        return
    (out / "tables").mkdir(exist_ok=True)
    (out / DATABASE).unlink(missing_ok=True)
    with duckdb.connect() as database:
        database.execute(f"ATTACH '{out / DATABASE}' AS whole ({STORAGE})")
        for name, table in package.tables.items():
            file = out / "tables" / f"{name}.parquet"
            shutil.copyfile(data / table.resource["path"], file)
            database.execute(f'CREATE TABLE whole."{name}" AS FROM read_parquet($file)', {"file": str(file)})
    collections = {kind: dict(_entities(package, kind)) for kind in PAGES if kind in package.tables}
    collections |= {name: dict(_group(package, *GROUPS[name])) for name in GROUPS}
    for name, documents in collections.items():
        (out / API / name).mkdir(parents=True, exist_ok=True)
        for key, tables in documents.items():
            units = {column: unit for of in tables for column, unit in _units(package.tables[of]).items()}
            _write(out / API / name / f"{key}.json", {"version": package.version, "units": units, "tables": tables})
    keys = {name: sorted(documents) for name, documents in collections.items()}
    _write(out / API / "index.json", {"version": package.version, "collections": keys})
    _write(out / API / "openapi.json", _openapi(package, keys, context))
    (out / "tables" / "README.md").write_text(_card(json.loads((data / DESCRIPTOR).read_text("utf-8"))), "utf-8")


def _entities(package: DataPackage, kind: str) -> Iterator[tuple[str, dict[str, list[dict[str, Any]]]]]:
    """Yield the key of each entity, with its row and the statements about it."""
    for row in package.tables[kind].frame.iter_rows(named=True):
        key = row[package.tables[kind].key]
        statements = package.statements.get((kind, key), [])
        yield key, {kind: [_filled(row)]} | ({"statements": list(map(_filled, statements))} if statements else {})


def _group(
    package: DataPackage, column: str, tables: tuple[str, ...]
) -> Iterator[tuple[str, dict[str, list[dict[str, Any]]]]]:
    """Yield each value of a column with the matching rows of the given tables."""
    groups: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for name in tables:
        for row in package.tables[name].frame.iter_rows(named=True) if name in package.tables else ():
            groups.setdefault(row[column], {}).setdefault(name, []).append(_filled(row))
    yield from groups.items()


def _filled(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


def _units(table: Table) -> dict[str, str]:
    return {name: column["unit"] for name, column in table.fields.items() if column.get("unit")}


def _openapi(package: DataPackage, keys: Mapping[str, list[str]], context: PageContext) -> dict[str, Any]:
    """Return the OpenAPI 3.1 description of the documents."""
    text = {"type": "string"}
    held = {name: [name, "statements"] if name in PAGES else GROUPS[name][1] for name in keys}
    used = {table for tables in held.values() for table in tables if table in package.tables}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "factorykit",
            "version": package.version,
            "license": {"name": "CC BY 4.0", "url": "https://creativecommons.org/licenses/by/4.0/"},
            "description": "AI clusters in sourced tables: entities with every statement about them, rental prices by "
            "accelerator, series by quantity. An absent cell is unknown. Within v1 columns are added, never renamed.",
        },
        "servers": [{"url": context.site or ".."}],
        "paths": {
            f"/{API}/index.json": {"get": _get("The keys of all collections", {"type": "object"})},
            **{
                f"/{API}/{name}/{{key}}.json": {
                    "parameters": [
                        {"name": "key", "in": "path", "required": True, "schema": text, "example": keys[name][0]}
                    ],
                    "get": _get(f"One document of {name}", _document(tables)),
                }
                for name, tables in held.items()
                if keys[name]
            },
        },
        "components": {"schemas": {name: _schema(package.tables[name]) for name in sorted(used)}},
    }


def _get(summary: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    content = {"application/json": {"schema": schema}}
    return {"summary": summary, "responses": {"200": {"description": summary, "content": content}}}


def _document(tables: tuple[str, ...] | list[str]) -> dict[str, Any]:
    """Return the JSON schema of a document: the version of the data, units by column, rows by table."""
    rows = {name: {"type": "array", "items": {"$ref": f"#/components/schemas/{name}"}} for name in tables}
    units = {"type": "object", "additionalProperties": {"type": "string"}}
    properties = {"version": {"type": "string"}, "units": units, "tables": {"type": "object", "properties": rows}}
    return {"type": "object", "required": [*properties], "properties": properties}


def _schema(table: Table) -> dict[str, Any]:
    """Return the JSON schema of a row of a table."""
    columns = {
        name: {"type": column["type"], "description": f"{column['description']} [{column.get('unit', 'text')}]"}
        for name, column in table.fields.items()
    }
    return {"type": "object", "description": table.resource["description"], "properties": columns}


def _card(package: Mapping[str, Any]) -> str:
    """Return the card of the tables for the Hugging Face Hub: a header in YAML, and the description of each table."""
    tables = package["resources"]
    header = {
        "pretty_name": package["title"],
        "license": package["licenses"][0]["name"].lower(),
        "tags": ["ai-infrastructure", "data-centers", "energy", "gpu", "training-compute"],
        "configs": [{"config_name": resource["name"], "data_files": resource["path"]} for resource in tables],
    }
    rows = [f"| {resource['name']} | {resource['rows']:,} | {resource['description']} |" for resource in tables]
    yaml = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in header.items()]
    head = ["", f"# {package['name']}", "", package["description"], "", "| table | rows | a row is |", "|---|---|---|"]
    return "\n".join(["---", *yaml, "---", *head, *rows, ""])


def _write(file: Path, document: Mapping[str, Any]) -> None:
    file.write_text(json.dumps(document, ensure_ascii=False) + "\n", "utf-8")
