"""Build of the tables: CSV sources are validated and written as Parquet with their descriptor, all or nothing."""

from __future__ import annotations

import hashlib
import io
import json
import types
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from factorykit.core.atomic_io import locked, move_incoming, replace_files
from factorykit.core.errors import DatasetError, unknown_name_message
from factorykit.core.extras import need
from factorykit.core.text_io import csv_rows, parse_number
from factorykit.core.validation import file_path
from factorykit.core.vocabulary import unknown_quantity_message, vocabulary
from factorykit.data.croissant import croissant
from factorykit.data.entities import KINDS as ENTITIES
from factorykit.data.entities import derived, required_tables, statement_tables
from factorykit.data.identifiers import KINDS, letters
from factorykit.data.tables import CROISSANT, DESCRIPTOR, PLAIN, data_folder, with_checksum

if TYPE_CHECKING:
    import dataframely as dy

MAX_SHOWN: Final = 20
"""Faulty cells in the message of the error; its ``rows`` hold all of them."""
LINE: Final = "line_of_file"


@dataclass
class _Broken:
    """All faults, one per cell."""

    rows: list[tuple[str, int | None, str | None, str | None, str]] = field(default_factory=list)

    def add(self, file: Path, line: int | None, column: str | None, value: object, rule: str) -> None:
        self.rows.append((file.name, line, column, None if value is None else str(value), rule))

    def raise_if_any(self) -> None:
        if not self.rows:
            return
        schema = {"file": pl.String, "line": pl.Int64, "column": pl.String, "value": pl.String, "rule": pl.String}
        frame = pl.DataFrame(self.rows, schema=schema, orient="row").unique(maintain_order=True)
        frame = frame.sort("file", "line", maintain_order=True, nulls_last=False)
        lines = [
            f"  {file}{f' line {line}' if line else ''}: {f'{column} = {value!r}: ' if column else ''}{rule}"
            for file, line, column, value, rule in frame.head(MAX_SHOWN).iter_rows()
        ]
        more = f"\n  … and {frame.height - MAX_SHOWN} more in err.rows" if frame.height > MAX_SHOWN else ""
        files = frame["file"].n_unique()
        raise DatasetError(
            f"{frame.height} broken {'cell' if frame.height == 1 else 'cells'} in {files} "
            f"{'file' if files == 1 else 'files'}; nothing was built\n" + "\n".join(lines) + more,
            frame,
        )


def build(out: str | Path | None = None, *, sources: str | Path | None = None) -> pl.DataFrame:
    """Build the tables: check every CSV file, then write Parquet and the descriptors, all or nothing.

    The same sources give the same bytes. A file that would not change is not touched. Until everything is written the
    previous tables stay in place; once it is, readers see the new ones even if moving them is interrupted.

    Parameters
    ----------
    out : path, optional
        Folder of the tables; the one they are read from by default.
    sources : path, optional
        Folder of the CSV files; ``out/sources`` by default, or the folder of the package if there is none.

    Returns
    -------
    polars.DataFrame
        One row per table: ``table``, ``rows``, ``columns``, ``bytes``, ``sha256``, ``changed`` (false if the file was
        there already, byte for byte).

    Raises
    ------
    DatasetError
        If a file is missing or any row breaks a rule. ``rows`` holds all of them: file, line, column, value, rule.
    """
    need("factorykit.data.schemas")
    target = file_path("out", out) if out is not None else data_folder()
    origin = file_path("sources", sources) if sources is not None else target / "sources"
    if sources is None and not origin.is_dir():
        origin = data_folder() / "sources"
    if not origin.is_dir():
        raise DatasetError(f"{origin} is not a folder of CSV files; give sources=…")
    try:
        target.mkdir(parents=True, exist_ok=True)
        with locked(target):
            tables, files, changed = _built(origin, target)
    except OSError as error:
        raise DatasetError(
            f"{error.filename or target} cannot be written ({error.strerror}); give another out=…"
        ) from error
    rows = [
        (
            name,
            frame.height,
            frame.width,
            len(files[f"{name}.parquet"]),
            _sha256(files[f"{name}.parquet"]),
            f"{name}.parquet" in changed,
        )
        for name, frame in tables.items()
    ]
    return pl.DataFrame(rows, schema=("table", "rows", "columns", "bytes", "sha256", "changed"), orient="row")


def _built(origin: Path, target: Path) -> tuple[dict[str, pl.DataFrame], dict[str, bytes], set[str]]:
    """Return the tables, their files, and the names of the changed files."""
    released = need("factorykit.data.schemas").RELEASED
    tables = _checked(origin)
    files: dict[str, bytes] = {}
    for name, frame in tables.items():
        buffer = io.BytesIO()
        frame.write_parquet(buffer, compression="zstd", statistics=True)
        files[f"{name}.parquet"] = buffer.getvalue()
    for name in PLAIN:
        parquet = f"sha256:{_sha256(files[f'{name}.parquet'])}"
        files[f"{name}.json"] = with_checksum({"parquet": parquet, "rows": tables[name].to_dicts()})
    package = _package(tables, files)
    files[DESCRIPTOR] = with_checksum(package)
    files[CROISSANT] = (json.dumps(croissant(package, released), indent=1, ensure_ascii=False) + "\n").encode()
    changed = replace_files(files, target)
    for path in target.glob("*.parquet"):
        if path.name not in files:
            path.unlink()
    return tables, files, changed


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


# ------------------------------------------------------------------------------------------------ reading and checking


def _checked(origin: Path) -> dict[str, pl.DataFrame]:
    """Return the tables, or raise an error with all faulty cells."""
    from factorykit.data.schemas import columns, is_derived, schemas

    broken = _Broken()
    known = schemas()
    with suppress(PermissionError):  # of a read-only checkout
        move_incoming(origin)
    numbered: dict[str, pl.DataFrame] = {}
    for name, schema in known.items():
        if is_derived(schema):
            continue
        frame = _read(origin / f"{name}.csv", columns(schema), broken)
        if frame is not None:
            numbered[name] = frame
            _check_rules(origin / f"{name}.csv", schema, frame, broken)
    for path in sorted(origin.glob("*.csv")):
        if path.stem not in known or is_derived(known[path.stem]):
            broken.add(path, None, None, None, unknown_name_message("schema", path.stem, numbered))
    _derive(origin, known, numbered, broken)
    for name, frame in numbered.items():
        _check_references(origin / f"{name}.csv", columns(known[name]), frame, numbered, broken)
        _check_preferred(origin / f"{name}.csv", columns(known[name]), frame, broken)
    _check_names(origin, numbered, broken)
    broken.raise_if_any()
    return {name: numbered[name].drop(LINE) for name in known}


def _derive(
    origin: Path, known: Mapping[str, type[dy.Schema]], numbered: dict[str, pl.DataFrame], broken: _Broken
) -> None:
    """Add the derived tables whose sources are present, and check them."""
    from factorykit.data.schemas import columns, is_derived

    if not set(required_tables()) <= numbered.keys():
        return
    wanted = {name: types_of(columns(schema)) for name, schema in known.items() if is_derived(schema)}
    for name, frame in derived(numbered, wanted).items():
        numbered[name] = frame.with_columns(pl.lit(None, pl.Int64).alias(LINE))
        lined = frame.with_row_index(LINE, offset=1).with_columns(pl.col(LINE).cast(pl.Int64))
        _check_rules(origin / f"{name} (derived)", known[name], lined, broken)


def types_of(columns: Mapping[str, Any]) -> dict[str, str]:
    """Return the type of each column, ``number`` or ``string``."""
    return {name: "number" if column.dtype == pl.Float64 else "string" for name, column in columns.items()}


def _read(path: Path, columns: Mapping[str, Any], broken: _Broken) -> pl.DataFrame | None:
    """Return a CSV file with the line of each row, or None if it is not valid."""
    try:
        (_, header), *numbered = csv_rows(path.read_bytes()) or [(1, [])]
    except (ValueError, OSError) as error:
        reason = "is missing" if isinstance(error, FileNotFoundError) else error
        broken.add(path, None, None, None, f"the file {reason}")
        return None
    for line, row in numbered:
        if len(row) != len(header):
            broken.add(path, line, None, None, f"{len(row)} cells where the header has {len(header)}")
    rows = [row for _, row in numbered if len(row) == len(header)]
    lines = [line for line, row in numbered if len(row) == len(header)]
    for name in header:
        if name not in columns:
            broken.add(path, 1, name, name, unknown_name_message("column", name, columns))
    defaults = {name: of for name, column in columns.items() if (of := (column.metadata or {}).get("default_of"))}
    lacking = [name for name in columns if name not in header and name not in defaults]
    for name in lacking:
        broken.add(path, 1, name, None, "the column is missing")
    if lacking:
        return None
    if not rows:
        broken.add(path, 1, None, None, "the table is empty")
        return None
    cells = {name: [row[i].strip() or None for row in rows] for i, name in enumerate(header) if name in columns}
    series = [pl.Series(LINE, lines, pl.Int64)]
    for name, column in columns.items():
        if name in defaults:
            quantities = [vocabulary().get(cell or "") for cell in cells[defaults[name]]]
            series.append(pl.Series(name, [row and row.default for row in quantities], pl.Float64))
        elif column.dtype == pl.Float64:
            series.append(pl.Series(name, list(_numbers(path, name, cells[name], lines, broken)), pl.Float64))
        else:
            series.append(pl.Series(name, cells[name], pl.String))
    return pl.DataFrame(series)


def _numbers(
    path: Path, name: str, cells: list[str | None], lines: list[int], broken: _Broken
) -> Iterator[float | None]:
    for cell, line in zip(cells, lines, strict=True):
        value = None if cell is None else parse_number(cell)
        if value is None and cell is not None:
            broken.add(path, line, name, cell, "must be a finite number")
        yield value


def _check_rules(path: Path, schema: type[dy.Schema], frame: pl.DataFrame, broken: _Broken) -> None:
    """Add every cell that violates a rule of the schema."""
    import dataframely as dy

    columns = schema.columns()
    with_line: dict[str, Any] = {LINE: dy.Int64(nullable=False), "__module__": __name__}
    numbered: Any = types.new_class(schema.__name__, (schema,), exec_body=lambda body: body.update(with_line))
    _, failure = numbered.filter(frame)
    if failure.counts():
        details = failure.details()
        for row in details.to_dicts():
            for rule in failure.counts():
                if str(row[rule]) != "invalid":
                    continue
                name, _, kind = rule.rpartition("|")
                if name:
                    broken.add(path, row[LINE], name, row[name], _rule_text(columns[name], kind))
                elif rule == "primary_key":
                    keys = schema.primary_key()
                    value = ", ".join(str(row[key]) for key in keys)
                    broken.add(path, row[LINE], ", ".join(keys), value, "must not occur twice")
                else:
                    column = "value" if "value" in columns and rule.startswith("value") else None
                    broken.add(path, row[LINE], column, row[column] if column else None, rule.replace("_", " "))
    for low, high in ((low, low.replace("_low", "_high")) for low in columns if "_low" in low):
        if high in columns:
            for row in frame.filter(frame[low] > frame[high]).to_dicts():
                broken.add(path, row[LINE], low, row[low], f"must not be above {high} = {row[high]:g}")


def _rule_text(column: Any, kind: str) -> str:
    """Return a rule of a column as a sentence."""
    return {
        "nullability": "must not be empty",
        "min": f"must be at least {getattr(column, 'min', None)}",
        "min_exclusive": f"must be above {getattr(column, 'min_exclusive', None)}",
        "max": f"must be at most {getattr(column, 'max', None)}",
        "max_exclusive": f"must be below {getattr(column, 'max_exclusive', None)}",
        "regex": f"must look like {getattr(column, 'regex', None)}",
        "min_length": "must not be empty",
        "inf": "must be finite",
        "nan": "must be a number",
    }.get(kind, kind.replace("_", " "))


def _check_references(
    path: Path, columns: Mapping[str, Any], frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame], broken: _Broken
) -> None:
    """Add every key that is missing in the table it refers to."""
    for name, column in columns.items():
        metadata = column.metadata or {}
        if metadata.get("vocabulary"):
            for line, cell in frame.select(LINE, name).drop_nulls(name).iter_rows():
                if cell not in vocabulary() or vocabulary()[cell].is_text:
                    broken.add(path, line, name, cell, unknown_quantity_message(cell))
        if "references" not in metadata:
            continue
        other, _, key = metadata["references"].partition(".")
        if other not in tables:
            continue
        known = set(tables[other][key])
        for line, cell in frame.select(LINE, name).drop_nulls(name).iter_rows():
            for word in cell.split(metadata["separator"]) if "separator" in metadata else [cell]:
                if word not in known:
                    broken.add(
                        path, line, name, cell, unknown_name_message(f"{key} in {other}.csv", word, sorted(known))
                    )


def _check_preferred(path: Path, columns: Mapping[str, Any], frame: pl.DataFrame, broken: _Broken) -> None:
    """Add every entity without exactly one preferred statement, and every misnamed statement.

    Where entities are picked field by field, at most one statement is preferred: it decides among equal sources.
    """
    if "preferred" not in columns or "statement" not in columns or path.stem in {*ENTITIES, "statements"}:
        return
    many = path.stem in statement_tables()
    about = next(name for name, column in columns.items() if (column.metadata or {}).get("entity"))
    picked = frame.group_by(about, maintain_order=True).agg(pl.col(LINE).first(), pl.col("preferred").count())
    wrong = pl.col("preferred") > 1 if many else pl.col("preferred") != 1
    for name, line, count in picked.filter(wrong).iter_rows():
        most = "at most" if many else "exactly"
        broken.add(path, line, about, name, f"{most} one of its statements must be preferred, not {count}")
    for line, statement, name, source in frame.select(LINE, "statement", about, "source").drop_nulls().iter_rows():
        if statement.partition(".")[0] != f"{name}@{source}":
            broken.add(path, line, "statement", statement, f"must be {name}@{source}, or that with .2, .3, …")


def _check_names(origin: Path, tables: Mapping[str, pl.DataFrame], broken: _Broken) -> None:
    """Add every name of two entities, compared as `identify` compares names."""
    for kind, (of, key, title) in KINDS.items():
        claimed: dict[str, tuple[str, str]] = {}
        for name, columns in ((of, (key, key)), (of, (title, key)), ("aliases", ("alias", "key"))):
            if name not in tables:
                continue
            frame = tables[name].filter(kind=kind) if name == "aliases" else tables[name]
            for line, spelling, entity in zip(frame[LINE], frame[columns[0]], frame[columns[1]], strict=True):
                if spelling is None or entity is None:
                    continue
                first, where = claimed.setdefault(letters(kind, spelling), (entity, f"{name}.csv line {line}"))
                if first != entity:
                    rule = f"names the {kind} {entity} here and {first} in {where}; a name must be unique"
                    broken.add(origin / f"{name}.csv", line, columns[0], spelling, rule)


# ------------------------------------------------------------------------------------------------------- the descriptor


def _package(tables: Mapping[str, pl.DataFrame], files: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the Frictionless descriptor of the tables."""
    from factorykit.data.schemas import VERSION, schemas, subjects

    return {
        "$schema": "https://datapackage.org/profiles/2.0/datapackage.json",
        "name": "factorykit",
        "title": "factorykit: statements about AI factories, each with its source",
        "description": (
            "Clusters, sites, models, runs and organisations have one row per entity: the best value of each field, "
            "picked from the statements in the table `statements`. In the other tables each row is a statement with "
            "source, locator and date. Contradictory statements stand side by side; the column `preferred` of the "
            "picked one holds the reason. Quantities are in seconds, watts, bytes, FLOP and US dollars without "
            "prefixes. An empty cell means that the source does not state the value."
        ),
        "version": VERSION,
        "licenses": [
            {
                "name": "CC-BY-4.0",
                "title": "Creative Commons Attribution 4.0",
                "path": "https://creativecommons.org/licenses/by/4.0/",
            }
        ],
        "sources": [
            {"title": row["title"]} | ({"path": row["url"]} if row["url"] else {})
            for row in tables["sources"].to_dicts()
        ],
        "subjects": [{"name": name, "description": text} for name, text in subjects().items()],
        "resources": [_resource(name, schemas()[name], tables[name], files) for name in tables],
    }


def _resource(name: str, schema: type[dy.Schema], frame: pl.DataFrame, files: Mapping[str, bytes]) -> dict[str, Any]:
    from factorykit.data.schemas import columns

    title, _, text = (line.strip() for line in (schema.__doc__ or "").partition("\n"))
    every = columns(schema)
    unique = schema.primary_key()
    foreign = [
        (column, metadata.metadata["references"].split("."))
        for column, metadata in every.items()
        if "references" in (metadata.metadata or {}) and "separator" not in metadata.metadata
    ]
    content = files[f"{name}.parquet"]
    return {
        "name": name,
        "type": "table",
        "title": title.rstrip("."),
        "subject": schema.__module__.rpartition(".")[2],
        "description": " ".join(text.split()),
        "path": f"{name}.parquet",
        "format": "parquet",
        "mediatype": "application/vnd.apache.parquet",
        "size_bytes": len(content),
        "hash": f"sha256:{_sha256(content)}",
        "rows": frame.height,
        "schema": {
            "fields": [_field(column, metadata, column in unique) for column, metadata in every.items()],
            "missingValues": ["", "nan"],
            "primaryKey": unique,
            "foreignKeys": [
                {"fields": [column], "reference": {"resource": "" if other == name else other, "fields": [key]}}
                for column, (other, key) in foreign
            ],
        },
    }


def _field(name: str, column: Any, is_key: bool) -> dict[str, Any]:
    """Return a field of the descriptor: type, unit, description and constraints."""
    constraints: dict[str, Any] = {"required": True} if is_key or not column.nullable else {}
    for ours, theirs in (
        ("min", "minimum"),
        ("max", "maximum"),
        ("min_exclusive", "exclusiveMinimum"),
        ("max_exclusive", "exclusiveMaximum"),
        ("regex", "pattern"),
    ):
        if getattr(column, ours, None) is not None:
            constraints[theirs] = getattr(column, ours)
    metadata = column.metadata or {}
    return (
        {"name": name, "type": "number" if column.dtype == pl.Float64 else "string", "description": column.description}
        | {key: metadata[key] for key in ("unit", "quantity", "entity") if metadata.get(key)}
        | ({"references": metadata["references"]} if "references" in metadata else {})
        | ({"constraints": constraints} if constraints else {})
    )
