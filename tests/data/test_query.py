"""Read-only SQL over the tables."""

from __future__ import annotations

import polars as pl
import pytest

import factorykit as fk
from factorykit.core.errors import QueryError, ScenarioError

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
def test_a_query_reads_only_the_tables(attempt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(QueryError) as raised:
        fk.sql(attempt)
    assert "\n" not in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def test_the_engine_is_locked_even_without_the_check_of_the_query(tmp_path):
    from factorykit.data.query import _ENGINE

    for query in ("from read_csv('/etc/passwd')", "set enable_external_access = true", "load httpfs"):
        with pytest.raises(Exception, match=r"disabled|locked|not allowed|Cannot"):
            _ENGINE.cursor().execute(query).fetchall()


def test_a_query_does_not_see_frames_of_the_caller():
    mine = pl.DataFrame({"secret": [1.0]})
    with pytest.raises(QueryError, match="no table 'mine'"):
        fk.sql("select * from mine")
    assert mine.height == 1


@pytest.mark.parametrize(
    ("query", "message"),
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
        ("select age(date '2025-01-02', date '2024-01-01') as d", "column 'd' is INTERVAL, which a frame cannot hold"),
        ("select {'a': interval 1 day} as s", "column 's' is INTERVAL"),
        ("select union_value(a := 1) as u", "column 'u' is UNION"),
    ],
)
def test_an_invalid_query_gives_a_message_of_one_line(query, message):
    with pytest.raises(QueryError, match=message) as raised:
        fk.sql(query)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("query", [None, 3, ["select 1"], "   "])
def test_a_query_must_be_a_string(query):
    with pytest.raises(QueryError, match="a query must be a string"):
        fk.sql(query)


def test_parameters_are_values_and_not_sql():
    named = fk.sql("select accelerators from clusters where cluster = $name", name="meta_24k")
    assert named["accelerators"].to_list() == [24576.0]
    assert fk.sql("select * from runs where run = $name", name="x' or 'a' = 'a").height == 0
    with pytest.raises(QueryError, match="no parameter \\$other"):
        fk.sql("select 1 as a", other=1)
    assert fk.sql("select $query as a", query=3)["a"].item() == 3


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("with big as (from clusters where accelerators > 1e5) select cluster from big", None),
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
def test_a_reading_query_is_answered(query, rows):
    found = fk.sql(query)
    assert found.height == rows if rows and rows != 5 else found.height >= 1


def test_sql_and_table_return_the_same_rows():
    asked = fk.sql("select cluster, accelerators from clusters order by statement")
    scanned = fk.table("clusters").sort("statement").select("cluster", "accelerators").collect()
    assert asked.equals(scanned)


def test_decimals_and_wide_integers_are_float64():
    found = fk.sql("select 1.5 as a, sum(1) as b, count(*) as c, 2::double as d from runs")
    assert found.schema == {"a": pl.Float64, "b": pl.Float64, "c": pl.Int64, "d": pl.Float64}


def test_products_of_parameters_and_tokens_do_not_overflow():
    flop = fk.sql("select 6 * parameters * tokens as c from runs where run = 'llama_3_1_405b'").item()
    assert flop == pytest.approx(3.8e25, rel=0.01)  # the paper, section 3.2, prints 3.8e25


def test_a_query_is_limited_in_time_and_memory():
    endless = "select sum(a.range) from range(10000000) a, range(10000000) b where a.range * b.range % 7 = 3"
    with pytest.raises(QueryError, match=r"took longer than 0\.2 s"):
        fk.sql(endless, timeout_s=0.2)
    with pytest.raises(QueryError, match=r"(?i)failed to allocate"):
        fk.sql("select list(range) from range(100000000)", max_bytes=5e7)
    with pytest.raises(QueryError, match="the result needs more than 3e"):
        fk.sql("select repeat(['a'], 10) as letters from range(200000)", max_bytes=3e7)
    with pytest.raises(QueryError, match=r"the result needs more than 5e\+07 bytes; aggregate it or add LIMIT"):
        fk.sql("from range(10000000)", max_bytes=5e7)
    with pytest.raises(QueryError, match="the tables need more than max_bytes"):
        fk.sql("from training_runs", max_bytes=1e6)
    for limit in ("timeout_s", "max_bytes"):
        with pytest.raises(ScenarioError, match=f"{limit} must be above 0, got -1"):
            fk.sql("select 1", **{limit: -1})
