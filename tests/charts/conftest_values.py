"""Fields that a Vega-Lite specification encodes, and fields of its data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def _nodes(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        for value in node.values():
            yield from _nodes(value)
    elif isinstance(node, list):
        for value in node:
            yield from _nodes(value)


def encoded_fields(spec: dict[str, Any]) -> set[str]:
    """Fields that any channel encodes."""
    channels = [channel for node in _nodes(spec) for channel in _channels(node.get("encoding", {}))]
    return {channel["field"].replace("\\", "") for channel in channels if isinstance(channel.get("field"), str)}


def _channels(encoding: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for value in encoding.values():
        yield from (one for one in (value if isinstance(value, list) else [value]) if isinstance(one, dict))


def known_fields(spec: dict[str, Any]) -> set[str]:
    """Columns of the data and of every calculation."""
    rows = [row for node in _nodes(spec) for row in _rows(node)]
    rows += [row for rows in spec.get("datasets", {}).values() for row in rows]
    made = {node["as"] for node in _nodes(spec) if "calculate" in node}
    return made | {name for row in rows for name in row}


def _rows(node: dict[str, Any]) -> list[dict[str, Any]]:
    values = node.get("data", {}).get("values", []) if isinstance(node.get("data"), dict) else []
    return values if isinstance(values, list) else []
