"""Built tables, and missing or damaged files."""

from __future__ import annotations

import subprocess
import sys

import polars as pl
import pytest

import factorykit as fk
from factorykit.core.errors import DatasetError, UnknownName
from factorykit.data import tables
from factorykit.data.build import build
from factorykit.data.entities import KINDS

TABLES = list(tables.resources())


def test_tables_lists_every_table_with_its_description_rows_and_licence():
    listed = fk.tables()
    assert listed["table"].to_list() == TABLES
    assert listed.null_count().sum_horizontal().item() == 0
    for name, rows in listed.select("table", "rows").iter_rows():
        assert fk.table(name).select(pl.len()).collect().item() == rows


@pytest.mark.parametrize("name", TABLES)
def test_columns_are_float64_or_string(name):
    assert set(fk.table(name).collect_schema().dtypes()) <= {pl.Float64(), pl.String()}


@pytest.mark.parametrize("name", TABLES)
def test_no_number_is_nan_or_infinite(name):
    numbers = fk.table(name).select(pl.selectors.float()).collect()
    assert all(column.drop_nulls().is_finite().all() for column in numbers)


@pytest.mark.parametrize("name", TABLES)
def test_only_the_selected_columns_are_read(name):
    columns = fk.table(name).collect_schema().names()
    plan = fk.table(name).select(columns[0]).explain()
    assert f"PROJECT 1/{len(columns)} COLUMNS" in plan


STATED = [
    name
    for name, resource in tables.resources().items()
    if "preferred" in (fields := {field["name"] for field in resource["schema"]["fields"]}) and "statement" in fields
]


@pytest.mark.parametrize("name", sorted({*STATED} - {*KINDS, "statements"} - {origin for origin, _ in KINDS.values()}))
def test_one_statement_of_each_subject_is_preferred_with_a_reason(name):
    fields = tables.resources()[name]["schema"]["fields"]
    subject = next(field["name"] for field in fields if field.get("entity"))
    frame = fk.table(name).collect()
    preferred = frame.filter(pl.col("preferred").is_not_null())
    assert preferred[subject].is_unique().all()
    assert set(preferred[subject]) == set(frame[subject])
    assert preferred["preferred"].str.len_chars().min() > 10


def test_an_unknown_table_is_answered_with_the_nearest_name():
    with pytest.raises(UnknownName, match="nearest is 'clusters'"):
        fk.table("cluster")
    with pytest.raises(UnknownName, match="name of the table must be a string, got 3"):
        fk.table(3)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"PAR1" + b"\0" * 4000 + b"PAR1"])
@pytest.mark.parametrize("ask", [fk.table, lambda name: fk.sql(f"select * from {name}")])
def test_a_damaged_table_is_named_with_the_remedy(copy, damage, ask):
    (copy / "runs.parquet").write_bytes(damage)
    with pytest.raises(DatasetError, match=r"runs\.parquet is damaged .*factorykit data build"):
        ask("runs")


def test_a_flipped_byte_in_the_middle_of_a_table_is_noticed(copy):
    path = copy / "runs.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(DatasetError, match="damaged"):
        fk.table("runs")


def test_the_other_tables_can_be_read_when_one_is_damaged(copy):
    (copy / "runs.parquet").write_bytes(b"")
    assert fk.sql("select count(*) as n from clusters").item() > 30


def test_a_missing_table_and_a_missing_descriptor_are_named_with_the_remedy(copy):
    (copy / "runs.parquet").unlink()
    with pytest.raises(DatasetError, match=r"runs\.parquet is missing; run `factorykit data build`"):
        fk.table("runs")
    (copy / tables.DESCRIPTOR).unlink()
    with pytest.raises(DatasetError, match=r"datapackage\.json is missing"):
        fk.tables()


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"resources": 3}', b"\xff", b"[" * 100_000])
def test_an_invalid_descriptor_is_named_with_the_remedy(copy, content):
    (copy / tables.DESCRIPTOR).write_bytes(content)
    with pytest.raises(DatasetError, match=r"datapackage\.json cannot be read .*factorykit data build"):
        fk.tables()


@pytest.mark.parametrize("old", ['"type": "string"', '"path": "runs.parquet"', '"fields"', '"rows": 9', "Llama"])
def test_every_edit_of_the_descriptor_is_noticed(copy, old):
    path = copy / tables.DESCRIPTOR
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, f"{old[:-1]}0{old[-1]}", 1), "utf-8")
    for ask in (fk.tables, lambda: fk.table("runs"), lambda: fk.sql("from runs"), lambda: fk.sources("runs")):
        with pytest.raises(DatasetError, match="damaged or was edited"):
            ask()


@pytest.mark.parametrize("name", tables.PLAIN)
def test_rows_of_json_are_those_of_the_table_that_they_were_built_with(copy, name):
    assert tables.rows(name) == fk.table(name).collect().to_dicts()
    (copy / f"{name}.json").write_bytes(tables.with_checksum({"parquet": "sha256:0", "rows": []}))
    with pytest.raises(DatasetError, match=rf"{name}\.json does not belong to its table; run `factorykit data build`"):
        tables.rows(name)


def test_a_rebuilt_table_is_read_at_once(copy, edit):
    ask = "select value from presets where preset = 'llama_3_1_405b' and quantity = 'mfu'"
    assert fk.sql(ask).item() == 0.41
    edit("presets", "mfu,0.41", "mfu,0.42")
    build()
    assert fk.sql(ask).item() == 0.42


def test_reading_imports_neither_dataframely_nor_arrow_nor_numpy_and_exits_silently():
    code = (
        "import sys, duckdb, factorykit as d\n"
        "duckdb.execute('select ?', [1]).fetchall(); duckdbs_own = set(sys.modules)\n"
        "d.table('runs').collect(); d.sql('from clusters'); d.tables(); d.sources('runs')\n"
        "print([m for m in ('dataframely', 'pyarrow', 'numpy', 'pandas') if m in {*sys.modules} - duckdbs_own])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")
