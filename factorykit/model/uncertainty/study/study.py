"""Studies: folders of Parquet parts with the rows of one question."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import socket
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

import polars as pl

from factorykit.core import __version__, atomic_io, text_io
from factorykit.core.errors import DatasetError, FactorykitError, ScenarioError
from factorykit.core.storage import is_object, storage_path
from factorykit.data.query import quoted, sql_over
from factorykit.data.tables import available
from factorykit.engine.html import html_table
from factorykit.model.uncertainty.study import backends
from factorykit.model.uncertainty.study.parts import Design

MANIFEST: Final = "study.json"
VERIFIED: Final = ".verified.json"
"""File with size and time of the complete parts: their digests need not be computed again."""
PART: Final = re.compile(r"part-(\d{7,})-(\d+)-([0-9a-f]{32})\.parquet")
"""Name of a part: number, rows, and digest of its contents; a part with another digest is damaged."""
ROWS_IN_MEMORY: Final = 50_000_000
"""Most rows that are returned as a frame; more must be written to files."""
MANIFEST_FIELDS: Final = {"verb": str, "factorykit": str, "asked": dict, "rows": int, "parts": int}
"""Required fields of a manifest, and their types."""
OTHER_FILES: Final = (".csv", ".json", ".jsonl", ".ndjson", ".xlsx", ".arrow", ".feather", ".ipc", ".gz", ".zst")
"""File extensions that are refused as names of folders."""
MAX_VERIFIED_BYTES: Final = 2**30
"""Size of changed parts up to which their digests are verified before they are read, in about a second."""
STAGE: Final = ".parts-"
"""Prefix of the folder in which the parts of one machine are written."""


@dataclass(frozen=True, slots=True)
class Study:
    """A folder of parts; :attr:`rows` is a scan of the finished ones.

    Each part is written to a temporary file and renamed by its contents when it is complete, or is one object of a
    store, which appears when it is complete. If the process is killed, the finished parts are valid, and the same call
    resumes the study.
    """

    folder: Path
    manifest: Mapping[str, Any]

    @property
    def parts(self) -> int:
        """Number of parts of the whole study."""
        return self.manifest["parts"]

    @property
    def done(self) -> tuple[Path, ...]:
        """The finished parts, in order."""
        return tuple(path for _, path in sorted(_parts_in(self.folder).items()))

    @property
    def rows(self) -> pl.LazyFrame:
        """A scan of the finished parts."""
        done = [str(path) for path in self._finished()]
        if self.manifest["verb"] == "cases":
            return pl.concat(map(pl.scan_parquet, done), how="diagonal_relaxed")
        return pl.scan_parquet(done)

    def sql(self, query: str) -> pl.DataFrame:
        """Return the answer of DuckDB to one SELECT over the view ``study``, out of core.

        Raises
        ------
        QueryError
            If the query is invalid or fails.
        ScenarioError
            If no part is finished.
        """
        parts = ", ".join(map(quoted, self._finished()))
        return sql_over(self.folder, {"study": f"FROM read_parquet([{parts}], union_by_name = true)"}, query)

    def _finished(self) -> tuple[Path, ...]:
        if not (done := self.done):
            raise ScenarioError(f"{self.folder} has no finished part; repeat the call that made the study")
        changed = _changed(self.folder, done)
        if sum(path.stat().st_size for path in changed) <= MAX_VERIFIED_BYTES:
            _check_digests(changed)
        return done

    def verify(self) -> None:
        """Compute the digests of all finished parts, to find files that were damaged without a change of their time.

        Raises
        ------
        ScenarioError
            If a part is damaged.
        """
        _check_digests(self.done)

    def __repr__(self) -> str:
        return f"Study({str(self.folder)!r}): {len(self.done)} of {self.parts} parts, {self.manifest['rows']:,} rows"

    def _repr_html_(self) -> str:
        shown = {"verb": self.manifest["verb"], "rows": f"{self.manifest['rows']:,}"}
        shown |= {"parts": f"{len(self.done)} of {self.parts}", "version": self.manifest["factorykit"]}
        return html_table(("Study", str(self.folder)), list(shown.items()))


def study(folder: str | Path) -> Study:
    """Open a study: a folder of Parquet parts that ``sweep``, ``sample``, ``search`` or ``run_cases`` has written.

    Parameters
    ----------
    folder
        The folder that was given as ``out``, local or in an object store.

    Returns
    -------
    Study
        ``rows`` is a LazyFrame of the finished parts, ``sql`` queries the view ``study`` with DuckDB, ``manifest`` has
        the question, ``done`` the finished parts, and ``parts`` the number of all.

    Raises
    ------
    ScenarioError
        If the folder has no study.

    Examples
    --------
    >>> import tempfile, factorykit as fk
    >>> run = {"training_flop": 3.8e25, "cluster_peak_flop_per_s": 16384 * 989e12}
    >>> with tempfile.TemporaryDirectory() as out:
    ...     swept = fk.sweep(run, {"mfu": [0.3, 0.4]}, "training_days", out=out)
    ...     fk.study(out).sql("select min(training_days) as days from study")["days"].round(1).item()
    67.9
    """
    path = storage_path("folder", folder)
    try:
        manifest = text_io.parse_json(text_io.read_bytes(path / MANIFEST))
    except (DatasetError, ValueError):
        raise ScenarioError(f"{path} has no study; give the folder that was out=") from None
    if not isinstance(manifest, dict) or any(
        type(manifest.get(name)) is not kind for name, kind in MANIFEST_FIELDS.items()
    ):
        raise ScenarioError(
            f"{path / MANIFEST} must have {', '.join(MANIFEST_FIELDS)}; make the study in another folder"
        )
    return Study(path, manifest)


def answered(design: Design, out: str | Path | None, verb: str, engine: str) -> Any:
    """Return all rows of a design: a frame, or the scan of one file or of a study.

    Raises
    ------
    FactorykitError
        If there are too many for a frame, or the target has other contents.
    """
    path = target(out, engine)
    if path is None:
        if design.rows > ROWS_IN_MEMORY:
            raise ScenarioError(f"{design.rows:,} rows are more than {ROWS_IN_MEMORY:,}; give out=, a folder")
        return pl.concat(map(design.part, range(design.parts)))
    return _one_file(design, path) if path.suffix == ".parquet" else _complete(design, path, verb, engine).rows


def target(out: str | Path | None, engine: str) -> Path | None:
    """Return the path of the rows: a Parquet file, or the folder of a study.

    Raises
    ------
    ScenarioError
        If it is another kind of URL or file, or the engine needs a folder.
    """
    path = None if out is None else storage_path("out", out, written=True)
    if backends.check(engine) != "local" and (path is None or path.suffix == ".parquet"):
        raise ScenarioError(f"engine = {engine!r} needs out=, the folder of a study")
    if path is not None and path.suffix in OTHER_FILES:
        raise ScenarioError(f"out = {str(path)!r}: rows are written as Parquet; give a .parquet file or a folder")
    return path


def _one_file(design: Design, path: Path) -> pl.LazyFrame:
    """Stream the parts into one Parquet file, written completely or not at all."""
    from polars.io.plugins import register_io_source

    first = design.part(0)

    def parts(*_: Any) -> Iterator[pl.DataFrame]:
        yield first
        yield from map(design.part, range(1, design.parts))

    try:
        with atomic_io.replacing(path) as part:
            register_io_source(parts, schema=first.schema).sink_parquet(str(part))
    except (OSError, pl.exceptions.ComputeError) as error:
        raise FactorykitError(f"{path} cannot be written: {error}; give a file in an existing folder") from None
    return pl.scan_parquet(str(path))


def _complete(design: Design, folder: Path, verb: str, engine: str) -> Study:
    """Compute the missing parts of a study."""
    manifest = _manifest(design, verb)
    _claim(folder, manifest)
    held = _parts_in(folder)
    damaged = [path for path in _changed(folder, held.values()) if _digest(path) not in path.name]
    for path in damaged:
        path.unlink()
    missing = [number for number in range(design.parts) if held.get(number, folder) in (folder, *damaged)]
    size = design.rows // design.parts
    if is_object(folder):
        if missing:
            backends.run(engine, partial(put, str(folder)), design, missing, rows=size)
        return Study(folder, manifest)
    verified = _verified(folder)
    try:
        if missing:
            with atomic_io.temporary_folder(folder, f"{STAGE}{socket.gethostname()}-") as stage:
                backends.run(engine, partial(write, stage), design, missing, [stage], size)
    finally:
        current = {path.name: _size_and_time(path) for path in _parts_in(folder).values() if path.exists()}
        if current != verified:
            atomic_io.write_file(folder / VERIFIED, json.dumps(current))
    return Study(folder, manifest)


def _check_digests(parts: Iterable[Path]) -> None:
    for path in parts:
        if _digest_of(path, *_size_and_time(path)) not in path.name:
            raise ScenarioError(f"{path} is damaged; remove it and repeat the call that made the study")


def _changed(folder: Path, parts: Iterable[Path]) -> list[Path]:
    """Return the parts that changed since their digest was verified; a store checks its objects itself."""
    if is_object(folder):
        return []
    verified = _verified(folder)
    return [path for path in parts if verified.get(path.name) != _size_and_time(path)]


def _verified(folder: Path) -> dict[str, Any]:
    """Return size and time of the parts that were complete when a call ended."""
    try:
        record = text_io.parse_json(text_io.read_bytes(folder / VERIFIED))
    except (DatasetError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _size_and_time(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]


def write(stage: Path, design: Design, number: int) -> None:
    """Write one part to a temporary file, and rename it by its contents."""
    rows, part = design.part(number), stage / f"{number}-{token_hex(4)}"
    try:
        rows.write_parquet(part)
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.replace(stage.parent / f"part-{number:07d}-{rows.height}-{_digest(part)}.parquet")
    except OSError as error:
        raise FactorykitError(
            f"{stage.parent} cannot be written: {error}; free space and repeat the call, which resumes the study"
        ) from None


def put(folder: str, design: Design, number: int) -> None:
    """Write one part as an object of a store."""
    rows, packed = design.part(number), io.BytesIO()
    rows.write_parquet(packed)
    digest = hashlib.blake2b(packed.getbuffer(), digest_size=16).hexdigest()
    path = storage_path("out", folder, written=True) / f"part-{number:07d}-{rows.height}-{digest}.parquet"
    try:
        path.write_bytes(packed.getvalue())
    except Exception as error:  # the packages of object stores have no common error
        why = str(error).partition("\n")[0]
        raise FactorykitError(f"{path} cannot be written: {why}; repeat the call to resume") from None


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


@lru_cache(maxsize=4096)
def _digest_of(path: Path, _size: int, _modified: int) -> str:
    return _digest(path)


def _parts_in(folder: Path) -> dict[int, Path]:
    """Return the parts by number."""
    matches = ((PART.fullmatch(path.name), path) for path in folder.glob("*"))
    return {int(name[1]): path for name, path in matches if name}


def _manifest(design: Design, verb: str) -> dict[str, Any]:
    """Return the question, in plain values, with the versions of package and tables: they determine the rows."""
    try:
        asked = json.loads(json.dumps(design.describe(), default=repr))
    except FactorykitError:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        raise ScenarioError(f"the question cannot be written as JSON ({error}); give plain values") from error
    tables = {name: resource["hash"] for name, resource in available().items()}
    return {
        "verb": verb,
        "factorykit": __version__,
        "tables": hashlib.sha256(json.dumps(tables, sort_keys=True).encode()).hexdigest(),
        "asked": asked,
        "rows": design.rows,
        "parts": design.parts,
    }


def _claim(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write the manifest of a study into its folder, or check that the folder has this study and no other files."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        files = sorted(path.name for path in folder.glob("*") if not path.name.startswith("."))
        if MANIFEST in files:
            held = study(folder).manifest
            if differs := next(_differences(held, manifest), None):
                raise ScenarioError(f"{folder} has another study: {differs} differs; give another folder")
            return
        if files:
            raise ScenarioError(f"{folder} has {files[0]}; give a folder that is empty or does not exist")
        atomic_io.write_file(folder / MANIFEST, json.dumps(manifest, indent=1, ensure_ascii=False))
    except OSError as error:
        raise FactorykitError(f"{folder} cannot be written: {error}; give a folder in an existing one") from None


def _differences(held: Mapping[str, Any], manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the fields in which two manifests differ, those of the question one by one."""
    for name, value in manifest.items():
        if name == "asked":
            yield from (f"asked: {field}" for field in value if held[name].get(field) != value[field])
        if held.get(name) != value:
            yield name
