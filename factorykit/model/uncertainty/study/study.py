"""A folder of Parquet parts that together are the answer to one question."""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final

from factorykit.core import __version__, atomic_io, text_io
from factorykit.core.errors import DatasetError, FactorykitError, ScenarioError
from factorykit.core.validation import file_path
from factorykit.data.query import quoted, sql_over
from factorykit.data.tables import available
from factorykit.engine.html import html_table
from factorykit.model.uncertainty.study import backends
from factorykit.model.uncertainty.study.parts import Design

if TYPE_CHECKING:
    import polars as pl

MANIFEST: Final = "study.json"
PART: Final = re.compile(r"part-(\d{7,})-(\d+)-([0-9a-f]{32})\.parquet")
"""Number, rows, and digest of the contents: a part that is not what its name says does not count."""
ROWS_IN_MEMORY: Final = 50_000_000
"""Above this rows have to be written: with a few columns they would not fit an ordinary machine."""
SAID: Final = {"verb": str, "factorykit": str, "asked": dict, "rows": int, "parts": int}
"""What a manifest says, among others."""
OTHER_FILES: Final = (".csv", ".json", ".jsonl", ".ndjson", ".xlsx", ".arrow", ".feather", ".ipc", ".gz", ".zst")
"""Ends of names that nobody gives to a folder."""
LOOKED_AT_BYTES: Final = 2**30
"""Of all parts together, up to which they are held to their names before they are read: about a second."""
STAGE: Final = ".parts-"
"""Beginning of the name of the folder in which parts are written, each machine's its own."""


@dataclass(frozen=True, slots=True)
class Study:
    """A folder of parts: :attr:`rows` is a scan of those that are there.

    A study grows part by part; each is written aside, and named by its contents when it is whole. So whatever is
    killed, what counts is right, and the same call goes on where the last one ended.
    """

    folder: Path
    manifest: Mapping[str, Any]

    @property
    def parts(self) -> int:
        """How many parts the whole study has."""
        return self.manifest["parts"]

    @property
    def done(self) -> tuple[Path, ...]:
        """The parts that are there, in order."""
        return tuple(path for _, path in sorted(_there(self.folder).items()))

    @property
    def rows(self) -> pl.LazyFrame:
        """A scan of the parts that are there."""
        import polars as pl

        done = self._some_done()
        if self.manifest["verb"] == "batch":
            return pl.concat(map(pl.scan_parquet, done), how="diagonal_relaxed")
        return pl.scan_parquet(list(done))

    def sql(self, query: str) -> pl.DataFrame:
        """Return the answer of DuckDB to one SELECT over the view ``study``, out of core.

        Raises
        ------
        QueryError
            If it is none, or fails.
        ScenarioError
            If no part is there.
        """
        parts = ", ".join(map(quoted, self._some_done()))
        return sql_over(self.folder, {"study": f"FROM read_parquet([{parts}], union_by_name = true)"}, query)

    def _some_done(self) -> tuple[Path, ...]:
        if not (done := self.done):
            raise ScenarioError(f"{self.folder} holds no part yet; make the call that began the study again")
        told = [(path, path.stat()) for path in done]
        if sum(found.st_size for _, found in told) <= LOOKED_AT_BYTES:
            for path, found in told:
                if _digest_of(path, found.st_mtime_ns, found.st_size) not in path.name:
                    raise ScenarioError(
                        f"{path} is damaged; make the call that began the study again: it makes it anew"
                    )
        return done

    def __repr__(self) -> str:
        return f"Study({str(self.folder)!r}): {len(self.done)} of {self.parts} parts, {self.manifest['rows']:,} rows"

    def _repr_html_(self) -> str:
        shown = {"verb": self.manifest["verb"], "rows": f"{self.manifest['rows']:,}"}
        shown |= {"parts": f"{len(self.done)} of {self.parts}", "version": self.manifest["factorykit"]}
        return html_table(("Study", str(self.folder)), list(shown.items()))


def study(folder: str | Path) -> Study:
    """Open a study: rows in a folder of Parquet parts, as ``sweep`` and its like write them.

    Parameters
    ----------
    folder
        What ``out`` named.

    Returns
    -------
    Study
        ``rows`` is a LazyFrame of the parts that are there, ``sql`` asks DuckDB over the view ``study``, ``manifest``
        says what was asked, ``done`` and ``parts`` how far it is.

    Raises
    ------
    ScenarioError
        If the folder holds no study.

    Examples
    --------
    >>> import tempfile, factorykit as fk
    >>> run = {"training_flop": 3.8e25, "cluster_peak_flop_per_s": 16384 * 989e12}
    >>> with tempfile.TemporaryDirectory() as out:
    ...     swept = fk.sweep(run, {"mfu": [0.3, 0.4]}, "training_days", out=out)
    ...     fk.study(out).sql("select min(training_days) as days from study")["days"].round(1).item()
    67.9
    """
    path = file_path("folder", folder)
    try:
        manifest = text_io.parse_json(text_io.read_bytes(path / MANIFEST))
    except (DatasetError, ValueError):
        raise ScenarioError(f"{path} holds no study; name the folder that out= named") from None
    if not isinstance(manifest, dict) or any(type(manifest.get(name)) is not kind for name, kind in SAID.items()):
        raise ScenarioError(f"{path / MANIFEST} does not say {', '.join(SAID)}; make the study again, elsewhere")
    return Study(path, manifest)


def answered(design: Design, out: str | Path | None, verb: str, engine: str) -> Any:
    """Return all rows of a design: a frame, or the scan of one file or of a study.

    Raises
    ------
    FactorykitError
        If they are too many for a frame, or what they should be written to holds something else.
    """
    import polars as pl

    path = target(out, engine)
    if path is None:
        if design.rows > ROWS_IN_MEMORY:
            raise ScenarioError(f"there are {design.rows:,} rows, above {ROWS_IN_MEMORY:,}; name a folder with out=")
        return pl.concat(map(design.part, range(design.parts)))
    return _one_file(design, path) if path.suffix == ".parquet" else _made(design, path, verb, engine).rows


def target(out: str | Path | None, engine: str) -> Path | None:
    """Return the path of the rows: a Parquet file, or the folder of a study.

    Raises
    ------
    ScenarioError
        If it is a URL or another kind of file, or the engine needs a folder.
    """
    if "://" in str(out):
        raise ScenarioError(f"out = {str(out)!r}: object stores are not supported; give a local or mounted folder")
    path = None if out is None else file_path("out", out)
    if backends.check(engine) != "local" and (path is None or path.suffix == ".parquet"):
        raise ScenarioError(f"engine = {engine!r} makes a study; name its folder with out=")
    if path is not None and path.suffix in OTHER_FILES:
        raise ScenarioError(f"out = {str(path)!r}: rows are written as Parquet; name a .parquet file, or a folder")
    return path


def _one_file(design: Design, path: Path) -> pl.LazyFrame:
    """Stream the parts into one Parquet file, written whole or not at all."""
    import polars as pl
    from polars.io.plugins import register_io_source

    first = design.part(0)

    def parts(*_: Any) -> Iterator[pl.DataFrame]:
        yield first
        yield from map(design.part, range(1, design.parts))

    try:
        with atomic_io.replacing(path) as aside:
            register_io_source(parts, schema=first.schema).sink_parquet(aside)
    except (OSError, pl.exceptions.ComputeError) as error:
        raise FactorykitError(f"{path} cannot be written: {error}; name a file in a folder that exists") from None
    return pl.scan_parquet(path)


def _made(design: Design, folder: Path, verb: str, engine: str) -> Study:
    """Make the parts of a study that are not there yet."""
    manifest = _manifest(design, verb)
    _claim(folder, manifest)
    done = {number for number, path in _there(folder).items() if _is_whole(path)}
    missing = [number for number in range(design.parts) if number not in done]
    with atomic_io.temporary_folder(folder, f"{STAGE}{socket.gethostname()}-") as stage:
        backends.run(engine, partial(write, stage), design, missing)
    return Study(folder, manifest)


def write(stage: Path, design: Design, number: int) -> None:
    """Write one part: aside, then beside the stage under the name that its contents give it."""
    rows, aside = design.part(number), stage / f"{number}-{token_hex(4)}"
    try:
        rows.write_parquet(aside)
        with aside.open("rb+") as file:
            os.fsync(file.fileno())
        aside.replace(stage.parent / f"part-{number:07d}-{rows.height}-{_digest(aside)}.parquet")
    except OSError as error:
        raise FactorykitError(f"{stage.parent} cannot be written: {error}; make room, call again to go on") from None


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


@lru_cache(maxsize=4096)
def _digest_of(path: Path, _modified: int, _size: int) -> str:
    return _digest(path)


def _there(folder: Path) -> dict[int, Path]:
    """Return the parts by number."""
    found = ((PART.fullmatch(path.name), path) for path in folder.iterdir())
    return {int(name[1]): path for name, path in found if name}


def _is_whole(path: Path) -> bool:
    """Return whether a part is what its name says; one that is not goes, to be made again."""
    name = PART.fullmatch(path.name)
    if name and _digest(path) == name[3]:
        return True
    path.unlink()
    return False


def _manifest(design: Design, verb: str) -> dict[str, Any]:
    """Return what was asked of which version and which tables, so that the rows can be made again.

    Raises
    ------
    ScenarioError
        If it cannot be written down.
    """
    try:
        asked = json.loads(json.dumps(design.said(), default=repr))
    except FactorykitError:
        raise
    except Exception as error:  # a mapping within itself, names that are no texts, whatever a stranger raises
        told = f"what is asked cannot be kept in a study ({type(error).__name__}); give plain values"
        raise ScenarioError(told) from error
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
    """Make the folder that of this study, or make sure that it is.

    Raises
    ------
    ScenarioError
        If it holds another study, with what differs, or something else.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        strangers = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
        if MANIFEST in strangers:
            held = study(folder).manifest
            if differs := next(_differences(held, manifest), None):
                raise ScenarioError(f"{folder} holds another study: {differs} differs; name another folder")
            return
        if strangers:
            raise ScenarioError(f"{folder} holds {strangers[0]}; name a folder that is empty or does not exist")
        atomic_io.write_file(folder / MANIFEST, json.dumps(manifest, indent=1, ensure_ascii=False))
    except OSError as error:
        raise FactorykitError(f"{folder} cannot be written: {error}; name a folder in one that exists") from None


def _differences(held: Mapping[str, Any], manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the fields in which two manifests differ, those of the question one by one."""
    for name, value in manifest.items():
        if name == "asked":
            yield from (f"asked: {field}" for field in value if held[name].get(field) != value[field])
        if held.get(name) != value:
            yield name
