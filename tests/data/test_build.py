"""Building the tables: all errors are reported at once, builds are atomic, and equal sources give equal bytes."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import factorykit as fk
from factorykit.core.errors import DatasetError
from factorykit.data import tables
from factorykit.data.build import build


def contents(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir() if path.is_file()}


def test_all_broken_rows_of_all_files_are_reported_at_once(edit):
    edit("accelerators", "9.894e14", "-9.894e14")
    edit("accelerators", "shipping", "sold out")
    edit("cluster_statements", "meta_24k@seed_000,", "meta_24k@seed_009,")
    edit("costs", ",seed_000,", ",seed_900,")
    edit("presets", "tokens,1.56e13", "tokens,many")
    edit("presets", "mfu,0.41", "mfu,41")
    with pytest.raises(DatasetError, match="nothing was built") as raised:
        build()
    rows = raised.value.rows
    assert rows is not None
    assert rows.columns == ["file", "line", "column", "value", "rule"]
    assert set(rows["file"]) == {"accelerators.csv", "cluster_statements.csv", "costs.csv", "presets.csv"}
    found = {(row["column"], row["value"]) for row in rows.to_dicts()}
    assert {("status", "sold out"), ("peak_16bit_flop_per_s", "-989400000000000.0")} <= found
    assert {("source", "seed_900"), ("value", "many"), ("value", "41.0")} <= found


def test_a_broken_cell_is_named_by_file_line_column_value_and_rule(edit, copy):
    edit("accelerators", "9.894e14", "-9.894e14")
    lines = (copy / "sources" / "accelerators.csv").read_text(encoding="utf-8").splitlines()
    line = next(number for number, text in enumerate(lines, 1) if "-9.894e14" in text)
    with pytest.raises(DatasetError) as raised:
        build()
    assert raised.value.rows.row(0) == (
        "accelerators.csv",
        line,
        "peak_16bit_flop_per_s",
        "-989400000000000.0",
        "must be above 0.0",
    )
    assert f"accelerators.csv line {line}: peak_16bit_flop_per_s = '-989400000000000.0'" in str(raised.value)


HEADS = [
    ("run_statements", "mfu,", "mfuu,", "nearest is 'mfu'"),
    ("sources", "seed_001,", '"seed_001,', "not valid CSV"),
    ("cluster_statements", "\n", ",surplus\n", "no column 'surplus'"),
]
"""Faults of whole files; the cells of such a file are not checked."""
CELLS = [
    ("run_statements", "llama_3_1_405b@seed_000,", "llama_3_1_405b@seed_000,x,", "cells where the header has"),
    ("cluster_statements", "h100_sxm", "h100_smx", "nearest is 'h100_sxm'"),
    ("presets", "mfu,0.41", "mfu,nan", "must be a finite number"),
    ("accelerators", "nvidia_notes", "nvidia_nodes", "nearest is 'nvidia_notes'"),
    ("aliases", "VR200,rubin", "VR200,b200", "names the accelerator rubin here and b200 in aliases.csv line"),
]
KEYS = [
    ("presets", ",mfu,", ",mfus,", "nearest is 'mfu'"),
    ("failures", ",the only statement", ",", "exactly one of its statements must be preferred, not 0"),
    ("cluster_statements", ",colossus_1,", ",colossus_9,", "nearest is 'colossus_2'"),
    ("run_statements", ",meta_llama3_16k,h100", ",meta_llama3_17k,h100", "nearest is 'meta_llama3_16k'"),
    ("aliases", "accelerator,VR200,rubin", "accelerator,RUBIN,b200", "here and rubin in accelerators.csv line"),
]
TOGETHER = [
    ("presets", "mfu,0.41", "tokens,1.56e13", "must not occur twice"),
    ("cluster_statements", "5e7,5e8", "5e8,5e7", "must not be above power_w_high"),
    (
        "cluster_statements",
        "the RoCE cluster trained the largest model,",
        "the RoCE cluster trained the largest model,a second choice",
        "at most one of its statements must be preferred, not 2",
    ),
]


@pytest.mark.parametrize("faults", [HEADS, CELLS, KEYS, TOGETHER])
def test_each_kind_of_fault_is_explained(edit, faults):
    for table, old, new, _ in faults:
        edit(table, old, new)
    with pytest.raises(DatasetError) as raised:
        build()
    rules = raised.value.rows.rows(named=True)
    for table, _, _, message in faults:
        assert [row for row in rules if row["file"] == f"{table}.csv" and message in row["rule"]], (table, message)


def test_files_that_are_missing_empty_or_not_utf8_are_reported_together(copy):
    (copy / "sources" / "run_statements.csv").unlink()
    (copy / "sources" / "costs.csv").write_bytes(b"")
    (copy / "sources" / "failures.csv").write_bytes(b"\xff\xfe")
    (copy / "sources" / "cluster.csv").write_text("a\n1\n")
    with pytest.raises(DatasetError) as raised:
        build()
    assert {"run_statements.csv", "costs.csv", "failures.csv", "cluster.csv"} <= set(raised.value.rows["file"])


def test_a_refused_build_leaves_the_built_tables_untouched(edit, copy):
    before = contents(copy)
    edit("accelerators", "9.894e14", "-9.894e14")
    with pytest.raises(DatasetError):
        build()
    assert contents(copy) == before
    assert not list(copy.glob(".build-*"))


def test_a_build_interrupted_while_writing_leaves_the_previous_tables_whole(edit, copy, monkeypatch):
    before = contents(copy)
    edit("presets", "mfu,0.41", "mfu,0.42")
    write = Path.write_bytes

    def interrupted(path: Path, content: bytes) -> int:
        if path.name == tables.DESCRIPTOR:
            raise KeyboardInterrupt
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        build()
    assert contents(copy) == before
    assert not list(copy.glob(".build-*"))


def test_a_build_interrupted_while_moving_shows_the_new_tables_whole(edit, copy, monkeypatch):
    edit("presets", "mfu,0.41", "mfu,0.42")
    edit("accelerators", "9.894e14", "9.895e14")
    move = Path.replace

    def interrupted(path: Path, target: Path) -> Path:
        if path.suffix == ".json":
            raise KeyboardInterrupt
        return move(path, target)

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        build()
    mfu = "select value from presets where preset = 'llama_3_1_405b' and quantity = 'mfu'"
    peak = "select peak_16bit_flop_per_s from accelerators where accelerator = 'h100_sxm'"
    assert (fk.sql(mfu).item(), fk.sql(peak).item()) == (0.42, 9.895e14)
    monkeypatch.undo()
    assert not build(copy)["changed"].any()
    assert not (copy / tables.INCOMING).exists()


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pl.DataFrame]:
    """A folder built from the committed sources, and the report of the build."""
    folder = tmp_path_factory.mktemp("fresh")
    return folder, build(folder, sources=tables.data_folder() / "sources")


def test_building_twice_gives_the_same_bytes_and_touches_nothing(fresh, copy, tmp_path):
    folder, first = fresh
    again = build(folder, sources=copy / "sources")
    other = build(tmp_path / "other", sources=copy / "sources")
    assert first["changed"].all()
    assert not again["changed"].any()
    assert contents(folder) == contents(tmp_path / "other")
    assert_frame_equal(first.drop("changed"), other.drop("changed"))


def test_the_committed_tables_are_a_fresh_build_of_the_committed_sources(fresh):
    for name in tables.resources():
        assert_frame_equal(pl.read_parquet(fresh[0] / f"{name}.parquet"), fk.table(name).collect())


def test_an_unwritable_folder_is_a_plain_error(copy):
    (copy / "file").touch()
    with pytest.raises(DatasetError, match="cannot be written"):
        build(copy / "file" / "tables", sources=copy / "sources")


def test_the_descriptor_has_hash_size_and_rows_of_every_file():
    for resource in tables.descriptor()["resources"]:
        path = tables.data_folder() / resource["path"]
        assert resource["hash"] == f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
        assert resource["size_bytes"] == path.stat().st_size
        frame = pl.read_parquet(path)
        assert resource["rows"] == frame.height
        assert [field["name"] for field in resource["schema"]["fields"]] == frame.columns


def violates(name: str, constraint: str, limit: Any) -> pl.Expr:
    """Return which values of a column violate a constraint, as the Table Schema standard defines it."""
    value = pl.col(name)
    return {
        "required": value.is_null(),
        "minimum": value < limit,
        "maximum": value > limit,
        "exclusiveMinimum": value <= limit,
        "exclusiveMaximum": value >= limit,
        "pattern": ~value.str.contains(f"^(?:{limit})$") if constraint == "pattern" else pl.lit(value=False),
    }[constraint]


def test_the_tables_keep_the_types_keys_and_constraints_of_the_descriptor():
    frames = {name: pl.read_parquet(tables.data_folder() / each["path"]) for name, each in tables.resources().items()}
    for name, resource in tables.resources().items():
        frame, schema = frames[name], resource["schema"]
        for field in schema["fields"]:
            assert frame.schema[field["name"]] == (pl.Float64 if field["type"] == "number" else pl.String)
            for constraint, limit in field.get("constraints", {}).items():
                assert frame.filter(violates(field["name"], constraint, limit)).is_empty(), field["name"]
        assert not frame.select(schema["primaryKey"]).is_duplicated().any()
        for key in schema["foreignKeys"]:
            (ours,), (theirs,) = key["fields"], key["reference"]["fields"]
            known = frames[key["reference"]["resource"] or name][theirs]
            assert frame[ours].drop_nulls().is_in(known.implode()).all(), f"{name}.{ours}"


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_croissant_is_valid():
    croissant = pytest.importorskip("mlcroissant")
    described = croissant.Dataset(jsonld=tables.data_folder() / tables.CROISSANT).metadata
    assert not described.issues.errors
    assert not described.issues.warnings


def test_croissant_describes_every_table_and_column():
    described = json.loads((tables.data_folder() / tables.CROISSANT).read_text("utf-8"))
    found = {records["@id"]: [field["@id"] for field in records["field"]] for records in described["recordSet"]}
    assert found == {
        name: [f"{name}/{field['name']}" for field in resource["schema"]["fields"]]
        for name, resource in tables.resources().items()
    }


@pytest.mark.filterwarnings("ignore")
def test_croissant_reads_the_rows_that_we_read():
    croissant = pytest.importorskip("mlcroissant")
    for name in ("pandas", "pyarrow"):
        pytest.importorskip(name, reason="mlcroissant reads Parquet through pandas and pyarrow")
    described = croissant.Dataset(jsonld=tables.data_folder() / tables.CROISSANT)
    rows = list(described.records("grids"))
    ours = fk.table("grids").collect()
    assert len(rows) == ours.height
    assert rows[0]["grids/carbon_kg_per_kwh"] == ours["carbon_kg_per_kwh"][0]
