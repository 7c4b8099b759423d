"""Questions in SQL, answered by a DuckDB that knows the tables and can reach nothing else."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Final, TypeVar

from factorykit.borders import number
from factorykit.datasets import catalogue
from factorykit.errors import DatasetError, FactorykitError, QueryError, ScenarioError, UnknownName, shown, unknown
from factorykit.files import frame_of
from factorykit.typing import is_text

if TYPE_CHECKING:
    import duckdb
    import polars as pl

Answer = TypeVar("Answer")
SETTINGS: Final = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "memory_limit": "4GB",
    "temp_directory": "",
}
MEMORY: Final = "1GB"
"""Of a query over files that may be larger; what needs more spills to disk."""
LOOKS_EVERY_S: Final = 0.1
"""Seconds between looks at whether a query was interrupted or has run out of time."""
ENDS_WITHIN_S: Final = 0.5
"""Seconds that an interrupted query is waited for."""
MOST_VALUES: Final = 1_000_000
"""Of a parameter; a thousand million take more memory than a machine has."""
LOCKS: Final = ("SET enable_external_access = false", "SET lock_configuration = true")
TABLE_FUNCTIONS: Final = frozenset({"unnest", "range", "generate_series", "repeat_row", "json_each", "json_tree"})
"""The only functions that may stand where a table stands; the others read files, settings or the engine itself."""
FORBIDDEN: Final = re.compile(
    r"^(getenv|sleep_ms|setseed|setval|inet_.*|has_.*_privilege|current_setting|getvariable|set_config|write_log|pg_.*|current_(database|catalog|schemas?|user|role)"
    r"|session_user|user|version|nextval|currval|in_search_path|txid_current|current_connection_id"
    r"|current_query(_id)?|current_transaction_id|parse_duckdb_log_message)$"
)
"""Functions that tell of the machine or the engine instead of the tables."""
QUERY_NODES: Final = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})


class _Engine:
    """A locked in-memory database that holds the tables, made when it is first asked."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._held: dict[str, str] = {}
        self._built: dict[str, str] = {}

    def cursor(self, names: Iterable[str] = ()) -> duckdb.DuckDBPyConnection:
        """Return a connection to a database in which ``names`` are tables as they were built last."""
        built = {name: resource["hash"] for name, resource in catalogue.available().items()}
        built["folder"] = str(catalogue.folder())
        views = catalogue.views()
        wanted = {views.get(name, name) for name in names}
        with self._lock:
            if self._connection is None or built != self._built or not wanted <= self._held.keys():
                self._connection, self._held = _load(wanted, self._held)
                self._built = built
            connection = self._connection
        return connection.cursor()


_ENGINE: Final = _Engine()


def _load(wanted: set[str], held_before: Iterable[str]) -> tuple[duckdb.DuckDBPyConnection, dict[str, str]]:
    """Return a database that holds the tables asked for so far and is closed to everything else, and these by hash.

    A locked database can take no more tables, so that each new one makes a new database; one that was held before, is
    damaged and not ``wanted`` is left out.
    """
    import duckdb

    connection = duckdb.connect(":memory:", config=dict(SETTINGS))
    held: dict[str, str] = {}
    asked = wanted | set(held_before)
    for name, resource in catalogue.available().items():
        if name not in asked:
            continue
        try:
            path = catalogue.path_of(resource)
            connection.execute(f'CREATE TABLE "{name}" AS FROM read_parquet({quoted(path)})')
        except DatasetError:
            if name in wanted:
                raise
            continue
        except duckdb.Error as error:
            remedy = resource.get("remedy", catalogue.REMEDY)
            raise DatasetError(f"{resource['path']} cannot be read ({_first_line(error)}); {remedy}") from None
        held[name] = resource["hash"]
        if view := resource.get("preferred"):
            connection.execute(f'CREATE VIEW "{view["name"]}" AS FROM "{name}" WHERE preferred IS NOT NULL')
    for lock in LOCKS:
        connection.execute(lock)
    return connection, held


def sql(query: str, *, timeout_s: float | None = None, **params: object) -> pl.DataFrame:
    """Return the answer to one SELECT over the tables.

    Parameters
    ----------
    query : str
        One statement in DuckDB's SQL: SELECT, FROM, WITH, VALUES, DESCRIBE or SUMMARIZE. It sees the tables and views
        of `tables` and nothing else: no file, network, extension, setting or Python variable.
    timeout_s : float, optional
        Seconds [s] after which the query is ended; by default it may take as long as it takes. Ctrl-C ends it, too.
    **params
        Values for ``$name`` in the query.

    Returns
    -------
    polars.DataFrame
        Rows in the order the query asks for; decimals and very wide integers arrive as Float64.

    Raises
    ------
    QueryError
        If it is no such statement, names something unknown (the nearest name is offered), fails, or takes too long.
    ScenarioError
        If ``timeout_s`` is no time.
    DatasetError
        If a table's file is missing or damaged.

    Examples
    --------
    >>> sql("select name from accelerators where tdp_w > $least order by name", least=1300)["name"].to_list()
    ['AMD Instinct MI355X', 'NVIDIA GB300 (per GPU, NVL72)']
    """
    if timeout_s is not None and number("timeout_s", timeout_s) <= 0.0:
        raise ScenarioError(f"timeout_s = {timeout_s:g} is not above 0; give seconds, e.g. 10")
    blank = _ENGINE.cursor()
    names: set[str] = set()
    with _in_words(lambda error: _explain(error, names)):
        statement = _statement(blank, query)
        names |= _tables_of(query, blank)
        _check_params(statement.named_parameters, params)
        cursor = _ENGINE.cursor(names)
        try:
            frame, old = ended(cursor, lambda: _answered(cursor, query, params, names), timeout_s)
        except TimeoutError:
            said = f"the query took longer than {timeout_s:g} s; ask for less, or give it more time"
            raise QueryError(said) from None
    for name, columns in old.items():
        catalogue.warn_of_old(name, columns)
    return frame


def sql_over(
    folder: Path, views: Mapping[str, str], query: str, params: Mapping[str, object] | None = None
) -> pl.DataFrame:
    """Return the answer to one SELECT over files of a folder, out of core and in at most a gigabyte.

    Parameters
    ----------
    folder
        All that can be read.
    views
        What DuckDB makes of its files, by name.
    query, params
        As in :func:`sql`, with DuckDB's own functions of tables for these files.

    Raises
    ------
    QueryError
    """
    import duckdb

    settings: dict[str, Any] = {"python_enable_replacements": "false", "memory_limit": MEMORY}
    there = f"there {'are' if len(views) > 1 else 'is'} {', '.join(views)}"
    with duckdb.connect(config=settings) as database, _in_words(lambda error: f"{_explain(error, ())}; {there}"):
        for name, view in views.items():
            database.execute(f"CREATE VIEW {name} AS {view}")
        database.execute(f"SET allowed_directories = [{quoted(folder)}]")
        for lock in LOCKS:
            database.execute(lock)
        _check_params(_statement(database, query).named_parameters, params or {})
        return ended(database, lambda: frame_of(database.sql(query, params=dict(params or {}) or None)))


def quoted(path: Path) -> str:
    """Return a path as a text of SQL."""
    return "'{}'".format(str(path.absolute()).replace("'", "''"))


def _statement(connection: duckdb.DuckDBPyConnection, query: object) -> duckdb.Statement:
    """Return the one statement of a query, which reads."""
    if not is_text(query) or not query.strip():
        raise QueryError(f"a query is a text such as 'select * from clusters', not {shown(query)}")
    statements = connection.extract_statements(query)
    if len(statements) != 1:
        raise QueryError(f"a query is one statement; this is {len(statements)}")
    if (kind := statements[0].type.name) != "SELECT":
        raise QueryError(f"a query reads with SELECT; {kind} is not allowed")
    return statements[0]


@contextmanager
def _in_words(explain: Callable[[Exception], str]) -> Iterator[None]:
    """Raise what DuckDB and polars complain of as the error of a query."""
    import duckdb
    import polars as pl

    try:
        yield
    except duckdb.Error as error:
        raise QueryError(explain(error)) from None
    except RecursionError:
        raise QueryError("a parameter is nested too deep; give numbers, texts or lists of them") from None
    except pl.exceptions.DuplicateError as error:
        raise QueryError(f"{_first_line(error)}; name the columns apart with AS") from None
    except pl.exceptions.PolarsError as error:
        raise QueryError(_first_line(error).removeprefix("got external error: ")) from None
    except (FactorykitError, TimeoutError, MemoryError):
        raise
    except Exception as error:  # whatever a stranger's object among the parameters raises
        raise QueryError(f"a parameter cannot be read ({type(error).__name__}); give numbers and texts") from error


def ended(connection: duckdb.DuckDBPyConnection, work: Callable[[], Answer], most_s: float | None = None) -> Answer:
    """Return what work with a connection comes to, unless it is interrupted or takes too long.

    It runs beside the thread that asks: DuckDB and polars look at no interrupt while rows are on their way.

    Raises
    ------
    TimeoutError
    """
    answer: Future[Answer] = Future()

    def worked() -> None:
        try:
            answer.set_result(work())
        except BaseException as error:
            answer.set_exception(error)

    Thread(target=worked, daemon=True).start()
    ends = math.inf if most_s is None else time.monotonic() + most_s
    try:
        # In short waits: a signal that another thread receives wakes no longer one.
        while not wait([answer], min(LOOKS_EVERY_S, max(ends - time.monotonic(), 0.0))).done:
            if time.monotonic() >= ends:
                raise TimeoutError
    except (KeyboardInterrupt, TimeoutError):
        connection.interrupt()
        wait([answer], ENDS_WITHIN_S)
        raise
    return answer.result()


def _answered(
    cursor: duckdb.DuckDBPyConnection, query: str, params: dict[str, object], names: Iterable[str]
) -> tuple[pl.DataFrame, dict[str, list[str]]]:
    """Return the rows of a query, and the columns by table that it calls by their old names."""
    relation, old = _asked(cursor, query, params, names)
    return frame_of(relation), old


def _asked(
    cursor: duckdb.DuckDBPyConnection, query: str, params: dict[str, object], names: Iterable[str]
) -> tuple[duckdb.DuckDBPyRelation, dict[str, list[str]]]:
    """Return the answer to a query, and the columns by table that it calls by their old names."""
    import duckdb

    try:
        return cursor.sql(query, params=params or None), {}
    except duckdb.BinderException:
        views = catalogue.views()
        tables = {views.get(name, name) for name in names}
        written = set(re.findall(r"\w+", query.lower()))
        old = {name: sorted(written & catalogue.RENAMED[name].keys()) for name in tables & catalogue.RENAMED.keys()}
        if not any(old.values()):
            raise
        for name, columns in old.items():
            renamed = "".join(f', "{catalogue.RENAMED[name][column]}" AS "{column}"' for column in columns)
            cursor.execute(f'CREATE TEMP VIEW "{name}" AS SELECT *{renamed} FROM memory.main."{name}"')
        for name in names:
            if name in views and views[name] in old:
                picked = f'FROM temp.main."{views[name]}" WHERE preferred IS NOT NULL'
                cursor.execute(f'CREATE TEMP VIEW "{name}" AS {picked}')
        return cursor.sql(query, params=params or None), {name: columns for name, columns in old.items() if columns}


def _check_params(expected: Iterable[str], given: Mapping[str, object]) -> None:
    """Raise if the query's parameters are not the ones given, or hold more than is worth copying."""
    expected = set(expected)
    if positional := sorted(name for name in expected if name.isdigit()):
        raise QueryError(f"write parameters as $name, not ${positional[0]} or ?")
    if lacking := sorted(expected - given.keys()):
        raise QueryError(f"the query needs {', '.join(f'${name}' for name in lacking)}; give {lacking[0]}=…")
    if spare := sorted(given.keys() - expected):
        raise QueryError(f"the query has no parameter ${spare[0]}; write it in the query or leave {spare[0]}=… out")
    for name, value in given.items():
        if _values(value) > MOST_VALUES:
            raise QueryError(f"{name} = {shown(value)} holds more than {MOST_VALUES:,} values; give fewer")


def _values(value: Any) -> int:
    """Return how many values a parameter holds, those of series within series too."""
    if isinstance(value, (list, tuple, dict)):
        return sum(map(_values, value.values() if isinstance(value, dict) else value))
    size = getattr(value, "size", 1)
    return size if isinstance(size, int) else 1


def _tables_of(query: str, cursor: duckdb.DuckDBPyConnection) -> set[str]:
    """Return the tables a query names, after making sure that it asks for nothing but tables."""
    tree = json.loads(cursor.execute("SELECT json_serialize_sql($query)", {"query": query}).fetchall()[0][0])
    if tree["error"]:
        raise QueryError(f"a query reads with SELECT; {_first_line(tree['error_message'])}")
    nodes = list(_nodes(tree["statements"]))
    local = {entry["key"].lower() for node in nodes for entry in _entries(node)}
    known = [*catalogue.available(), *catalogue.views()]
    names = set()
    for node in nodes:
        kind, inner = node.get("type"), node.get("function_name")
        if isinstance(kind, str) and kind.endswith("_NODE") and kind not in QUERY_NODES:
            raise QueryError(
                f"a query reads with SELECT; {kind.removesuffix('_NODE').replace('_', ' ')} is not allowed"
            )
        if kind == "SHOW_REF" and node.get("show_type") not in ("DESCRIBE", "SUMMARY"):
            raise QueryError("a query reads with SELECT; fk.tables() lists the tables")
        if kind == "TABLE_FUNCTION" and node["function"]["function_name"].lower() not in TABLE_FUNCTIONS:
            raise QueryError(f"{node['function']['function_name']}() is not allowed: a query reads the tables alone")
        if isinstance(inner, str) and FORBIDDEN.match(inner.lower()):
            raise QueryError(f"{inner}() is not allowed: a query reads the tables alone")
        if kind in ("BASE_TABLE", "SHOW_REF") and (name := node.get("table_name")):
            qualified = node.get("schema_name") or node.get("catalog_name")
            if name.lower() in local and not qualified:
                continue
            if qualified or name.lower() not in known:
                said = f"{qualified}.{name}" if qualified else name
                raise QueryError(unknown("table", said, [*known, *sorted(local)]))
            names.add(name.lower())
    return names


def _nodes(tree: object) -> Iterator[dict[str, Any]]:
    """Yield every object of a syntax tree."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


def _entries(node: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the common table expressions that a node defines."""
    found = node.get("cte_map")
    return found.get("map", []) if isinstance(found, dict) else []


def _first_line(error: object) -> str:
    return str(error).strip().splitlines()[0].strip().rstrip("!:") if str(error).strip() else "no reason given"


def _explain(error: Exception, names: Iterable[str]) -> str:
    """Return DuckDB's complaint as one line, with the nearest column where one is unknown."""
    said = re.sub(r"^[A-Za-z ]+ Error: ", "", _first_line(error))
    column = re.search(r'(?:Referenced column|named|column name) "([^"]+)"', said)
    if column is None or ("not found" not in said and "does not have" not in said):
        hint = re.search(r'Did you mean "([^"]+)"', str(error))
        return f"{said}; nearest is {hint.group(1)!r}" if hint else said
    known = {field["name"] for name in names for field in catalogue.find(name)[0]["schema"]["fields"]}
    return unknown("column", column.group(1), sorted(known))


__all__ = ["UnknownName", "sql"]
