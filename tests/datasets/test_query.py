"""Questions in SQL: what is answered, and what cannot be reached."""

from __future__ import annotations

import polars as pl
import pytest

import factorykit.datasets as data
from factorykit.datasets import catalogue
from factorykit.errors import DatasetError, FactorykitWarning, QueryError

ATTEMPTS = [
    "select * from read_csv('/etc/passwd')",
    "select * from read_parquet('data/runs.parquet')",
    "select * from read_text('/etc/passwd')",
    "select * from '/etc/passwd'",
    "select * from 'data/runs.parquet'",
    "from 'https://example.org/a.csv'",
    "select * from glob('*')",
    "select * from sniff_csv('/etc/passwd')",
    "select * from query('from runs')",
    "select * from query_table('runs')",
    "select * from json_execute_serialized_sql('x')",
    "select getenv('HOME')",
    "select current_setting('temp_directory')",
    "select getvariable('x')",
    "select * from duckdb_settings()",
    "select * from duckdb_secrets()",
    "select * from information_schema.tables",
    "select * from pg_catalog.pg_tables",
    "select * from sqlite_master",
    "select write_log('x')",
    "select sleep_ms(1)",
    "copy runs to 'runs.csv'",
    "copy (select 1) to '/tmp/x.csv'",
    "attach 'x.db' as x",
    "detach memory",
    "use memory",
    "install httpfs",
    "load httpfs",
    "set threads = 1",
    "reset threads",
    "set enable_external_access = true",
    "pragma version",
    "call pragma_version()",
    "export database 'x'",
    "import database 'x'",
    "insert into runs select * from runs",
    "update runs set run = 'x'",
    "delete from runs",
    "drop table runs",
    "alter table runs drop run",
    "truncate runs",
    "create table x as select 1",
    "create view x as select 1",
    "create macro x() as 1",
    "create secret (type s3)",
    "prepare x as select 1",
    "explain analyze select 1",
    "begin transaction",
    "vacuum",
    "checkpoint",
    "with x as (delete from runs returning *) select * from x",
    "select 1; select 2",
    "show tables",
    "",
    "-- nothing",
]


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_nothing_but_the_tables_can_be_reached(attempt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(QueryError) as raised:
        data.sql(attempt)
    assert "\n" not in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def test_the_engine_itself_is_closed_should_a_query_slip_through(tmp_path):
    from factorykit.datasets.query import _ENGINE

    for slipped in ("from read_csv('/etc/passwd')", "set enable_external_access = true", "load httpfs"):
        with pytest.raises(Exception, match=r"disabled|locked|not allowed|Cannot"):
            _ENGINE.cursor().execute(slipped).fetchall()


def test_a_frame_of_the_caller_cannot_be_seen():
    mine = pl.DataFrame({"secret": [1.0]})
    with pytest.raises(QueryError, match="no table 'mine'"):
        data.sql("select * from mine")
    assert mine.height == 1


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("select * from cluster", "no table 'cluster'; nearest is 'clusters'"),
        ("select tokenz from runs", "no column 'tokenz'; nearest is 'tokens'"),
        ("select r.tokenz from runs r", "no column 'tokenz'; nearest is 'tokens'"),
        ("select meadian(tokens) from runs", "nearest is 'median'"),
        ("select from where", "syntax error"),
        ("select r.*, s.* from runs r join sources s using (source)", "name the columns apart with AS"),
        ("select * from runs where tokens > $least", "needs \\$least; give least="),
        ("select * from runs where tokens > ?", "write parameters as \\$name"),
        ("select cast('x' as double)", "Could not convert"),
    ],
)
def test_a_wrong_query_is_answered_in_one_line(query, said):
    with pytest.raises(QueryError, match=said) as raised:
        data.sql(query)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("query", [None, 3, ["select 1"], "   "])
def test_a_query_has_to_be_text(query):
    with pytest.raises(QueryError, match="a query is a text"):
        data.sql(query)


def test_parameters_are_values_and_never_sql():
    named = data.sql("select accelerators from clusters_preferred where cluster = $name", name="meta_24k")
    assert named["accelerators"].to_list() == [24576.0]
    assert data.sql("select * from runs where run = $name", name="x' or 'a' = 'a").height == 0
    with pytest.raises(QueryError, match="no parameter \\$other"):
        data.sql("select 1 as a", other=1)


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("with big as (from clusters where accelerators > 1e5) select cluster from big", None),
        ("from clusters_preferred", None),
        ("table sources", 5),
        ("describe runs", 32),
        ("summarize runs", 32),
        ("values (1), (2)", 2),
        ("select unnest([1, 2, 3]) as i", 3),
        ("select i from range(4) t(i)", 4),
        ("(select run from runs) union (select cluster from clusters)", None),
        ("with recursive t(i) as (select 1 union all select i + 1 from t where i < 5) select i from t", 5),
        ("select count(*) filter (mfu > 0.4) as n, median(mfu) from runs -- comment", 1),
    ],
)
def test_reading_queries_are_answered(query, rows):
    found = data.sql(query)
    assert found.height == rows if rows and rows != 5 else found.height >= 1


def test_sql_and_table_agree():
    asked = data.sql("select cluster, accelerators from clusters order by statement")
    scanned = data.table("clusters").sort("statement").select("cluster", "accelerators").collect()
    assert asked.equals(scanned)


@pytest.mark.parametrize(
    ("query", "said", "value"),
    [
        ("select memory_bytes from accelerators where accelerator = 'b200'", "accelerator_memory_bytes now", 1.8e11),
        (
            "select usd_per_accelerator_h_low from prices where price = 'h100_sxm_on_demand'",
            "rental_usd_per_accelerator_h_low now",
            1.99,
        ),
        ("select count(availability) from accelerator_statements_preferred", "availability_stated now", None),
    ],
)
def test_a_column_answers_to_its_old_name_with_a_warning(query, said, value):
    with pytest.warns(FactorykitWarning, match=f"{said}; the old names go with 0.3"):
        answer = data.sql(query).item()
    assert value is None or answer == pytest.approx(value)


def test_a_frame_has_old_columns_where_they_are_asked_for():
    with pytest.warns(FactorykitWarning, match="memory_bytes is accelerator_memory_bytes now"):
        before = data.table("accelerators_0_1").collect()
    now = data.table("accelerators").collect()
    assert before["memory_bytes"].equals(now["accelerator_memory_bytes"])
    assert before.width == now.width


def test_a_frame_asked_for_an_old_name_says_the_present_one():
    chips = data.table("accelerators")
    for asked in (chips.select("memory_bytes"), chips.filter(pl.col("memory_bytes") > 1e11).select("name")):
        with pytest.raises(DatasetError, match="memory_bytes is accelerator_memory_bytes now"):
            asked.collect()
    with pytest.raises(DatasetError, match="peak_bf16_flop_per_s is peak_16bit_flop_per_s now"):
        chips.select("peak_bf16_flop_per_s").collect_schema()
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match="no_such"):
        chips.select("no_such").collect()


def test_every_renamed_column_is_there():
    for name, columns in catalogue.RENAMED.items():
        if name in catalogue.resources():
            assert set(columns.values()) <= set(data.table(name).collect_schema())
            assert not columns.keys() & set(data.table(name).collect_schema())


def test_decimals_and_wide_integers_arrive_as_float64():
    found = data.sql("select 1.5 as a, sum(1) as b, count(*) as c, 2::double as d from runs")
    assert found.schema == {"a": pl.Float64, "b": pl.Float64, "c": pl.Int64, "d": pl.Float64}


def test_products_of_parameters_and_tokens_do_not_overflow():
    flop = data.sql("select 6 * parameters * tokens as c from runs_preferred where run = 'llama_3_1_405b'").item()
    assert flop == pytest.approx(3.8e25, rel=0.01)  # the paper, section 3.2, prints 3.8e25
