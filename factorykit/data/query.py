"""Read-only SQL over the tables, answered by a DuckDB that can reach nothing else."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Final, TypeVar

from factorykit.core.errors import DatasetError, QueryError, ScenarioError, short_repr, unknown_name_message
from factorykit.core.storage import is_object
from factorykit.core.text_io import frame_of_relation
from factorykit.core.validation import finite_number
from factorykit.data.tables import REMEDY, available, data_folder, parquet_path, resource_of

if TYPE_CHECKING:
    import duckdb
    import polars as pl

Answer = TypeVar("Answer")
SETTINGS: Final = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
}
MAX_SQL_SECONDS: Final = 60.0
MAX_SQL_BYTES: Final = 2e9
MAX_FILE_QUERY_BYTES: Final = 1e9
"""Memory of a query over files that may be larger; the rest is spilled to disk."""
POLL_S: Final = 0.1
"""Interval between checks for an interrupt or the time limit. [s]"""
INTERRUPT_GRACE_S: Final = 0.5
"""Time that an interrupted query is given to stop. [s]"""
LOCKS: Final = ("SET enable_external_access = false", "SET lock_configuration = true")
TABLE_FUNCTIONS: Final = frozenset({"unnest", "range", "generate_series", "repeat_row", "json_each", "json_tree"})
"""Table functions that are allowed; the others read files, settings or the engine itself."""
FORBIDDEN: Final = re.compile(
    r"^(getenv|sleep_ms|setseed|setval|inet_.*|has_.*_privilege|current_setting|getvariable|set_config|write_log|pg_.*|current_(database|catalog|schemas?|user|role)"
    r"|session_user|user|version|nextval|currval|in_search_path|txid_current|current_connection_id"
    r"|current_query(_id)?|current_transaction_id|parse_duckdb_log_message)$"
)
"""Functions that reveal the machine or the engine, or change its state."""
QUERY_NODES: Final = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})


class _Engine:
    """A locked in-memory database that holds the tables, created on first use."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._loaded: set[str] = set()
        self._state: dict[str, str] = {}

    def cursor(self, names: Iterable[str] = (), max_bytes: float = MAX_SQL_BYTES) -> duckdb.DuckDBPyConnection:
        """Return a connection to a database in which ``names`` are tables in their newest version."""
        state = {name: resource["hash"] for name, resource in available().items()}
        state |= {"folder": str(data_folder()), "max_bytes": f"{max_bytes:g}"}
        with self._lock:
            if self._connection is None or state != self._state or not self._loaded.issuperset(names):
                self._connection, self._loaded = _load(set(names), self._loaded, max_bytes)
                self._state = state
            connection = self._connection
        return connection.cursor()


_ENGINE: Final = _Engine()


def _load(required: set[str], loaded_before: set[str], max_bytes: float) -> tuple[duckdb.DuckDBPyConnection, set[str]]:
    """Return a locked database with the required tables and those loaded before, and the names of its tables.

    A locked database accepts no more tables, so each new table needs a new database. A damaged table that is not
    required is skipped.
    """
    import duckdb

    settings: dict[str, Any] = SETTINGS | {"memory_limit": _bytes(max_bytes)}
    connection = duckdb.connect(":memory:", config=settings)
    loaded: set[str] = set()
    for name, resource in available().items():
        if name not in required | loaded_before:
            continue
        try:
            path = parquet_path(resource)
            connection.execute(f'CREATE TABLE "{name}" AS FROM read_parquet({quoted(path)})')
        except DatasetError:
            if name in required:
                raise
            continue
        except duckdb.Error as error:
            remedy = resource.get("remedy", REMEDY)
            if isinstance(error, duckdb.OutOfMemoryException):
                raise QueryError(f"the tables need more than max_bytes = {max_bytes:g}; give more") from None
            raise DatasetError(f"{resource['path']} cannot be read ({_first_line(error)}); {remedy}") from None
        loaded.add(name)
    for lock in LOCKS:
        connection.execute(lock)
    return connection, loaded


def _bytes(number: float) -> str:
    return f"{number / 1e6:.0f}MB"


def sql(
    query: str, /, *, timeout_s: float = MAX_SQL_SECONDS, max_bytes: float = MAX_SQL_BYTES, **params: object
) -> pl.DataFrame:
    """Return the result of one SELECT over the tables.

    Parameters
    ----------
    query : str
        One statement in DuckDB's SQL: SELECT, FROM, WITH, VALUES, DESCRIBE or SUMMARIZE. It sees the tables of
        `tables` and nothing else: no file, network, extension, setting or Python variable.
    timeout_s : float, optional
        Time limit [s]; Ctrl-C ends the query, too.
    max_bytes : float, optional
        Memory limit [byte], of the query and of its result.
    **params
        Values for ``$name`` in the query.

    Returns
    -------
    polars.DataFrame
        Rows in the order that the query requests; decimals and very wide integers are Float64.

    Raises
    ------
    QueryError
        If it is not such a statement, uses an unknown name (the nearest is suggested), fails, or exceeds a limit.
    ScenarioError
        If a limit is not a positive number.
    DatasetError
        If the file of a table is missing or damaged.

    Examples
    --------
    >>> sql("select name from accelerators where tdp_w > $least order by name", least=1300)["name"].to_list()
    ['AMD Instinct MI355X', 'NVIDIA GB300 (per GPU, NVL72)', 'NVIDIA Rubin (per GPU, VR NVL72)']
    """
    for name, limit in (("timeout_s", timeout_s), ("max_bytes", max_bytes)):
        if finite_number(name, limit) <= 0.0:
            raise ScenarioError(f"{name} must be above 0, got {limit:g}")
    names: set[str] = set()
    with _query_errors(lambda error: _explain(error, _columns(names))):
        parser = _ENGINE.cursor(max_bytes=max_bytes)
        statement = _statement(parser, query)
        names |= _table_names(query, parser)
        _check_params(statement.named_parameters, params)
        cursor = _ENGINE.cursor(names, max_bytes)
        given = params or None
        return _interruptible(cursor, lambda: frame_of_relation(cursor.sql(query, params=given), max_bytes), timeout_s)


def sql_over(
    folder: Path, views: Mapping[str, str], query: str, params: Mapping[str, object] | None = None
) -> pl.DataFrame:
    """Return the result of one SELECT over files of a folder, out of core and without a time limit.

    Parameters
    ----------
    folder
        The only folder that can be read.
    views
        DuckDB's query over its files, by name.
    query, params
        As in :func:`sql`; DuckDB's own table functions read these files.

    Raises
    ------
    QueryError
        As in :func:`sql`, or if the result is larger than 2 GB.
    """
    import duckdb

    settings: dict[str, Any] = {"python_enable_replacements": "false", "memory_limit": _bytes(MAX_FILE_QUERY_BYTES)}
    known = f"known {'are' if len(views) > 1 else 'is'} {', '.join(views)}"

    def columns() -> Iterator[str]:
        return (column for name in views for column in database.sql(f"FROM {name}").columns)

    with (
        duckdb.connect(config=settings) as database,
        _query_errors(lambda error: f"{_explain(error, columns())}; {known}"),
    ):
        if is_object(folder):
            database.register_filesystem(folder.fs)  # type: ignore[attr-defined]
        for name, view in views.items():
            database.execute(f"CREATE VIEW {name} AS {view}")
        database.execute(f"SET allowed_directories = [{quoted(folder)}]")
        for lock in LOCKS:
            database.execute(lock)
        _check_params(_statement(database, query).named_parameters, params or {})
        given = dict(params or {}) or None
        return _interruptible(database, lambda: frame_of_relation(database.sql(query, params=given), MAX_SQL_BYTES))


def quoted(path: Path) -> str:
    """Return a path as an SQL string."""
    return "'{}'".format(str(path.absolute()).replace("'", "''"))


def _statement(connection: duckdb.DuckDBPyConnection, query: object) -> duckdb.Statement:
    """Return the only statement of a query after checking that it reads."""
    if not isinstance(query, str) or not query.strip():
        raise QueryError(f"a query must be a string such as 'select * from clusters', got {short_repr(query)}")
    statements = connection.extract_statements(query)
    if len(statements) != 1:
        raise QueryError(f"a query must be one statement, got {len(statements)}")
    if (kind := statements[0].type.name) != "SELECT":
        raise QueryError(f"a query must be a SELECT; {kind} is not allowed")
    return statements[0]


@contextmanager
def _query_errors(explain: Callable[[Exception], str]) -> Iterator[None]:
    """Raise errors of DuckDB and polars as a `QueryError` of one line."""
    import duckdb
    import polars as pl

    try:
        yield
    except duckdb.Error as error:
        raise QueryError(explain(error)) from None
    except RecursionError:
        raise QueryError("the query or a parameter is nested too deeply") from None
    except pl.exceptions.PolarsError as error:
        raise QueryError(_first_line(error).removeprefix("got external error: ")) from None


def _interruptible(
    connection: duckdb.DuckDBPyConnection, work: Callable[[], Answer], timeout_s: float | None = None
) -> Answer:
    """Return the result of work with a connection, which Ctrl-C or the time limit ends.

    The work runs in a thread: DuckDB and polars do not check for signals while they transfer rows.

    Raises
    ------
    QueryError
        If it exceeds the time limit.
    """
    answer: Future[Answer] = Future()

    def run() -> None:
        try:
            answer.set_result(work())
        except BaseException as error:
            answer.set_exception(error)

    Thread(target=run, daemon=True).start()
    began = time.monotonic()
    try:
        # Polled, since a signal that another thread receives does not end a wait of this one.
        while not wait([answer], POLL_S).done:
            if timeout_s is not None and time.monotonic() - began >= timeout_s:
                raise QueryError(f"the query took longer than {timeout_s:g} s; simplify it or set timeout_s")
    except (KeyboardInterrupt, QueryError):
        connection.interrupt()
        wait([answer], INTERRUPT_GRACE_S)
        raise
    return answer.result()


def _check_params(expected: Iterable[str], given: Mapping[str, object]) -> None:
    """Raise if the parameters of the query are not the given ones."""
    expected = set(expected)
    if positional := sorted(name for name in expected if name.isdigit()):
        raise QueryError(f"write parameters as $name, not ${positional[0]} or ?")
    if missing := sorted(expected - given.keys()):
        raise QueryError(f"the query needs {', '.join(f'${name}' for name in missing)}; give {missing[0]}=…")
    if unused := sorted(given.keys() - expected):
        raise QueryError(f"the query has no parameter ${unused[0]}; write it in the query or omit {unused[0]}=…")


def _table_names(query: str, cursor: duckdb.DuckDBPyConnection) -> set[str]:
    """Return the tables that a query uses after checking its syntax tree against the allowed nodes and functions."""
    tree = json.loads(cursor.execute("SELECT json_serialize_sql($query)", {"query": query}).fetchall()[0][0])
    if tree["error"]:
        raise QueryError(f"a query must be a SELECT; {_first_line(tree['error_message'])}")
    nodes = list(_nodes(tree["statements"]))
    local = {entry["key"].lower() for node in nodes for entry in _entries(node)}
    known = available()
    names = set()
    for node in nodes:
        kind, function = node.get("type"), node.get("function_name")
        if isinstance(kind, str) and kind.endswith("_NODE") and kind not in QUERY_NODES:
            raise QueryError(f"a query must be a SELECT; {kind.removesuffix('_NODE').replace('_', ' ')} is not allowed")
        if kind == "SHOW_REF" and node.get("show_type") not in ("DESCRIBE", "SUMMARY"):
            raise QueryError("a query must be a SELECT; fk.tables() lists the tables")
        if kind == "TABLE_FUNCTION" and node["function"]["function_name"].lower() not in TABLE_FUNCTIONS:
            raise QueryError(f"{node['function']['function_name']}() is not allowed: a query reads only the tables")
        if isinstance(function, str) and FORBIDDEN.match(function.lower()):
            raise QueryError(f"{function}() is not allowed: a query reads only the tables")
        if kind in ("BASE_TABLE", "SHOW_REF") and (name := node.get("table_name")):
            schema = node.get("schema_name") or node.get("catalog_name")
            if name.lower() in local and not schema:
                continue
            if schema or name.lower() not in known:
                full_name = f"{schema}.{name}" if schema else name
                raise QueryError(unknown_name_message("table", full_name, [*known, *sorted(local)]))
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
    expressions = node.get("cte_map")
    return expressions.get("map", []) if isinstance(expressions, dict) else []


def _first_line(error: object) -> str:
    return str(error).strip().splitlines()[0].strip().rstrip("!:") if str(error).strip() else "no reason given"


def _columns(names: Iterable[str]) -> list[str]:
    return sorted({field["name"] for name in names for field in resource_of(name)["schema"]["fields"]})


def _explain(error: Exception, columns: Iterable[str]) -> str:
    """Return DuckDB's message as one line, with the nearest of the columns where one is unknown."""
    message = re.sub(r"^[A-Za-z ]+ Error: ", "", _first_line(error))
    column = re.search(r'(?:Referenced column|named|column name) "([^"]+)"', message)
    if column is None or ("not found" not in message and "does not have" not in message):
        hint = re.search(r'Did you mean "([^"]+)"', str(error))
        return f"{message}; nearest is {hint.group(1)!r}" if hint else message
    return unknown_name_message("column", column.group(1), columns)
