"""Tables described by ``datapackage.json``, prepared for pages: names, labels, numbers and links."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

import polars as pl

from factorykit.core.vocabulary import LARGE_NUMBERS, SI_PREFIXES, Quantity, format_number, vocabulary
from factorykit.data.entities import NAME_COLUMNS

PAGES: Final = {
    "accelerators": "chip",
    "clusters": "cluster",
    "sites": "site",
    "models": "model",
    "runs": "run",
    "organisations": "organisation",
    "sources": "source",
}
"""Tables whose rows have a page, and the noun for one row."""
TITLES: Final = NAME_COLUMNS | {"sources": "title"}
"""The column with the name of an entity, if it is not ``name``."""
PRICED: Final = "electricity"
PRICE: Final = ("name", "kind", "year", "electricity_usd_per_kwh")
"""The table referenced by prices, and the displayed columns of its rows."""
LONG: Final = re.compile(r"\b\d+\.\d{7,}\b")
"""Numbers in text with more digits than are useful."""
SI: Final = {"W", "Wh", "byte", "byte/s", "FLOP/s", "FLOP"}
"""Units that take prefixes."""
WORDED: Final = {"USD", "1", "h", "kWh"}
"""Units whose large values are written in millions, billions and trillions."""


@dataclass(frozen=True)
class Table:
    """One table of the package with its descriptor."""

    resource: Mapping[str, Any]
    frame: pl.DataFrame

    @property
    def name(self) -> str:
        """Name of the table."""
        return self.resource["name"]

    @cached_property
    def fields(self) -> dict[str, dict[str, Any]]:
        """Descriptors of the columns by name."""
        return {column["name"]: column for column in self.resource["schema"]["fields"]}

    @cached_property
    def key(self) -> str:
        """Column that identifies the subject of a row."""
        return next((name for name, column in self.fields.items() if column.get("entity")), next(iter(self.fields)))

    @property
    def title(self) -> str:
        """Column with the displayed name."""
        wanted = TITLES.get(self.name, "name")
        return wanted if wanted in self.fields else self.key

    @cached_property
    def references(self) -> dict[str, str]:
        """Columns that reference rows of other tables, with the referenced table."""
        named = {column: str(spec["references"]) for column, spec in self.fields.items() if "references" in spec}
        return {column: of.partition(".")[0] for column, of in named.items()}


@dataclass
class DataPackage:
    """All tables, prepared for the pages."""

    tables: dict[str, Table]
    version: str
    measured: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    served: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def find(self, name: str, **cells: str) -> list[dict[str, Any]]:
        """Return the rows of a table with the given cells; none if the table is missing."""
        if name not in self.tables:
            return []
        frame = self.tables[name].frame
        return (frame.filter(**cells) if cells else frame).to_dicts()

    @cached_property
    def names(self) -> dict[str, dict[str, str]]:
        """Names of the rows that other rows refer to, by table and key."""
        referred = {of for table in self.tables.values() for of in table.references.values()} | PAGES.keys()
        return {
            of: {
                row[table.key]: " ".join(
                    str(_priced(row) if of == PRICED else row[table.title] or row[table.key]).split()
                )
                for row in table.frame.select({table.key, table.title, *(PRICE if of == PRICED else ())}).to_dicts()
            }
            for of, table in self.tables.items()
            if of in referred
        }

    @cached_property
    def cited(self) -> dict[str, dict[str, Any]]:
        """Sources by key."""
        return {row["source"]: row for row in self.find("sources")}

    @cached_property
    def statements(self) -> dict[tuple[str, str], list[dict[str, Any]]]:
        """Statements about each entity, by table and key."""
        statements: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        for row in self.find("statements"):
            statements[row["kind"], row["entity"]].append(row)
        return statements

    @cached_property
    def aliases(self) -> dict[tuple[str, str], list[str]]:
        """Other names by table and key."""
        aliases: dict[tuple[str, str], list[str]] = defaultdict(list)
        for row in self.find("aliases"):
            for of in ("runs", "models") if row["kind"] == "model" else (f"{row['kind']}s",):
                aliases[of, row["key"]].append(row["alias"])
        return aliases

    @cached_property
    def referring(self) -> dict[tuple[str, str], dict[str, list[dict[str, Any]]]]:
        """Rows that refer to an entity, by the table and key of the entity, then by their table."""
        referring: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
        for name, table in self.tables.items():
            if name == "statements":
                continue
            for column, of in table.references.items():
                if of not in PAGES:
                    continue
                separator = "; " if "separator" in table.fields[column] or column == "confirmed_by" else None
                for row in table.frame.filter(table.frame[column].is_not_null()).iter_rows(named=True):
                    for key in row[column].split(separator) if separator else (row[column],):
                        referring[of, key][name].append(row)
        return referring

    def shown(self, table: Table, column: str, value: str | float) -> dict[str, Any]:
        """Return the displayed text and the link of a cell."""
        if not isinstance(value, str):
            return {"text": number(table.fields[column], value), "href": ""}
        of = table.references.get(column)
        if of and value in self.names.get(of, {}):
            href = f"../{of}/{value}.html" if of in PAGES else f"../../tables/{of}.html?q={value}"
            return {"text": self.names[of][value], "href": href}
        if re.match(r"https?://", value):
            return {"text": value, "href": value}
        return {"text": LONG.sub(lambda match: f"{float(match[0]):.4f}", value), "href": ""}

    def source(self, key: str | None, address: str | None = None) -> dict[str, str]:
        """Return the citation of a source next to a value: title, page, and web address."""
        row = self.cited.get(key or "", {})
        return {
            "text": str(row.get("title") or key or ""),
            "href": f"../sources/{key}.html" if key in self.cited else "",
            "url": address or row.get("url") or "",
        }


@cache
def _quantity(name: str | None) -> Quantity | None:
    return vocabulary().get(name) if name else None


def number(described: Mapping[str, Any], value: float) -> str:
    """Format a number of a column with its unit.

    >>> number({"name": "tdp_w", "unit": "W"}, 700.0), number({"name": "share", "unit": "1"}, 0.3531)
    ('700 W', '0.353')
    """
    this = _quantity(described.get("quantity") or described["name"])
    if this is not None and not this.is_text:
        return this.text(value)
    unit = str(described.get("unit") or "1")
    if unit == "a":
        return f"{value:.0f}"
    if unit == "1" and value == int(value) and abs(value) < 1e6:
        return f"{value:,.0f}"
    spoken = unit_text(unit)
    for scale, prefix in LARGE_NUMBERS if unit in WORDED else SI_PREFIXES if unit in SI else ():
        if abs(value) >= scale * 0.9995:
            return f"{format_number(value / scale)} {prefix}{spoken}".strip()
    digits = 6 if unit == "degree" else 3
    return f"{format_number(value, digits)} {spoken}".strip()


def unit_text(unit: str | None) -> str:
    """Return a unit as readers write it; empty for counts.

    >>> unit_text("byte/s"), unit_text("1")
    ('B/s', '')
    """
    return "" if unit in (None, "1") else unit.replace("byte", "B").replace("degree", "°").replace("m3", "m³")


def label(described: Mapping[str, Any]) -> str:
    """Return the title of a column: the label of its quantity, or its name as words.

    >>> label({"name": "power_reported_w", "unit": "W"}), label({"name": "tokens", "unit": "1"})
    ('Power reported', 'Training tokens')
    """
    name = str(described["name"])
    this = _quantity(described.get("quantity") or name)
    end = next((end for end in ("low", "high", "min", "max", "quarter", "median") if name.endswith(f"_{end}")), "")
    if this is not None:
        return f"{this.label}, {end}" if end else this.label
    words = re.sub(r"_(w|usd|bytes|bytes_per_s|flop_per_s|kwh|m3_per_day|s|h|key)$", "", name).replace("_", " ")
    words = re.sub(r"^least\b", "minimum", words)
    words = re.sub(r"\b(tdp|pue|it|mfu|fp8|fp4|cpu|usd|h100)\b", lambda match: match[0].upper(), words)
    return words[:1].upper() + words[1:]


def _priced(row: Mapping[str, Any]) -> str:
    price = row["electricity_usd_per_kwh"]
    shown = "" if price is None else f"{price:.3g} USD/kWh: "
    return f"{shown}{row['name']}, {row['kind']}, average of {row['year']:.0f}"


def load(data: Path) -> DataPackage | None:
    """Return the tables beside a descriptor, or None if there is none."""
    path = data / "datapackage.json"
    if not path.is_file():
        return None
    described = json.loads(path.read_text(encoding="utf-8"))
    tables = {
        resource["name"]: Table(resource, pl.read_parquet(data / resource["path"]))
        for resource in described["resources"]
        if (data / resource["path"]).is_file()
    }
    return DataPackage(tables, str(described.get("version", "")))
