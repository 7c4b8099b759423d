"""Steps as a DuckDB query that adds computed columns to a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from factorykit.engine.run import part_groups, translate
from factorykit.engine.step import Step


def query(relation: str, steps: Sequence[Step], outputs: Mapping[str, Any]) -> str:
    """Return a query of a table or view with a column for each output.

    Parameters
    ----------
    relation
        Name of a table or view that has a column for every quantity that the steps need.
    steps
        Steps in order of computation.
    outputs
        The columns to add; a value other than None is the same in all rows.
    """
    text, added = f"SELECT * FROM {_quoted(relation)}", []
    for group in part_groups(steps):
        columns = ", ".join(f"{_expression(part)} AS {_quoted(name)}" for name, part in group)
        text = f"SELECT *, {columns} FROM ({text})"
        added += [name for name, _ in group]
    hidden = f" EXCLUDE ({', '.join(map(_quoted, added))})" if added else ""
    columns = (_quoted(n) if value is None else f"{_literal(value)} AS {_quoted(n)}" for n, value in outputs.items())
    return f"SELECT {', '.join([f'*{hidden}', *columns])} FROM ({text})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(value: Any) -> str:
    import duckdb

    return str(duckdb.ConstantExpression(value))


def _expression(part: Any) -> str:
    import duckdb

    made = translate(part, duckdb.ColumnExpression, _lookup)
    return _literal(made) if isinstance(made, (float, int, str)) else str(made)


def _lookup(words: list[Any], values: Mapping[str, float]) -> Any:
    import duckdb

    constant = duckdb.ConstantExpression
    key = duckdb.FunctionExpression(
        "concat_ws", constant(" "), *[constant(w) if isinstance(w, str) else w for w in words]
    )
    case: Any = None
    for text, value in values.items():
        test = key == constant(text)
        case = duckdb.CaseExpression(test, constant(value)) if case is None else case.when(test, constant(value))
    return case
