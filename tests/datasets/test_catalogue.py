"""Reading: tables, views, and what happens when a file is missing or damaged."""

from __future__ import annotations

import subprocess
import sys

import polars as pl
import pytest

import factorykit.datasets as data
from factorykit.datasets import catalogue
from factorykit.errors import DatasetError, UnknownName

TABLES = list(catalogue.resources())
VIEWS = list(catalogue.views())


def test_tables_lists_every_table_and_view_with_its_text_rows_and_licence():
    found = data.tables()
    assert found["table"].to_list() == sorted([*TABLES, *VIEWS], key=lambda name: found["table"].to_list().index(name))
    assert found.select("title", "text", "licence").null_count().sum_horizontal().item() == 0
    for name, rows in found.select("table", "rows").iter_rows():
        assert data.table(name).select(pl.len()).collect().item() == rows


@pytest.mark.parametrize("name", TABLES)
def test_numbers_are_float64_and_everything_else_is_text(name):
    assert set(data.table(name).collect_schema().dtypes()) <= {pl.Float64(), pl.String()}


@pytest.mark.parametrize("name", TABLES)
def test_no_number_is_nan_or_infinite(name):
    numbers = data.table(name).select(pl.selectors.float()).collect()
    assert all(column.drop_nulls().is_finite().all() for column in numbers)


@pytest.mark.parametrize("name", TABLES)
def test_only_the_columns_asked_for_are_read(name):
    columns = data.table(name).collect_schema().names()
    plan = data.table(name).select(columns[0]).explain()
    assert f"PROJECT 1/{len(columns)} COLUMNS" in plan


@pytest.mark.parametrize("view", VIEWS)
def test_a_preferred_view_has_one_row_per_thing_and_a_reason(view):
    table = catalogue.views()[view]
    (about,) = catalogue.resources()[table]["preferred"]["key"]
    frame = data.table(view).collect()
    assert frame[about].is_unique().all()
    assert set(frame[about]) == set(data.table(table).collect()[about])
    assert frame["preferred"].str.len_chars().min() > 10


def test_a_misspelt_table_is_answered_with_the_nearest():
    with pytest.raises(UnknownName, match="nearest is 'clusters'"):
        data.table("cluster")
    with pytest.raises(UnknownName, match="no table 3"):
        data.table(3)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"PAR1" + b"\0" * 4000 + b"PAR1"])
@pytest.mark.parametrize("ask", [data.table, lambda name: data.sql(f"select * from {name}")])
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
        data.table("runs")


def test_a_damaged_table_does_not_keep_the_others_from_being_asked(copy):
    (copy / "runs.parquet").write_bytes(b"")
    assert data.sql("select count(*) as n from clusters").item() > 30


def test_a_missing_table_and_a_missing_descriptor_are_named_with_the_remedy(copy):
    (copy / "runs.parquet").unlink()
    with pytest.raises(DatasetError, match=r"runs\.parquet is missing; run `factorykit data build`"):
        data.table("runs")
    (copy / catalogue.DESCRIPTOR).unlink()
    with pytest.raises(DatasetError, match=r"datapackage\.json is missing"):
        data.tables()


@pytest.mark.parametrize("content", ["{", "[]", '{"resources": 3}'])
def test_a_broken_descriptor_is_named_with_the_remedy(copy, content):
    (copy / catalogue.DESCRIPTOR).write_text(content)
    with pytest.raises(DatasetError, match=r"datapackage\.json cannot be read"):
        data.tables()


def test_a_rebuilt_table_is_seen_at_once(copy, edit):
    ask = "select value from presets where preset = 'llama_3_1_405b' and quantity = 'mfu'"
    assert data.sql(ask).item() == 0.41
    edit("presets", "mfu,0.41", "mfu,0.42")
    data.build()
    assert data.sql(ask).item() == 0.42


def test_reading_loads_neither_builder_nor_arrow_nor_numpy_and_ends_in_silence():
    code = (
        "import sys, duckdb, factorykit.datasets as d\n"
        "duckdb.execute('select ?', [1]).fetchall(); duckdbs_own = set(sys.modules)\n"
        "d.table('runs').collect(); d.sql('from clusters_preferred'); d.tables(); d.sources('runs')\n"
        "print([m for m in ('dataframely', 'pyarrow', 'numpy', 'pandas') if m in {*sys.modules} - duckdbs_own])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")
