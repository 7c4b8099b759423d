"""The public surface as text, one name per line; `python tests/surface.py` rewrites the golden file."""

from __future__ import annotations

import argparse
import inspect
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import factorykit as fk
from factorykit.cli import _parser
from factorykit.site.pages.api import members

EXPERIMENTAL = ("charts", "widgets")
AGREED = Path(__file__).parent / "golden" / "surface.txt"


def lines() -> Iterator[str]:
    """Yield every public name with its arguments, including members of classes and modules, and the command line."""
    for name in fk.__all__:
        yield from _describe(f"fk.{name}", getattr(fk, name), name in EXPERIMENTAL)
    yield from _commands("factorykit", _parser())


def _describe(name: str, item: Any, is_open: bool = False) -> Iterator[str]:
    if isinstance(item, types.ModuleType):
        yield f"{name}: module{' (experimental)' if is_open else ''}"
        if not is_open and item.__name__ != "factorykit.formulas":
            for inner, value in _inside(item):
                yield from _describe(f"{name}.{inner}", value)
    elif isinstance(item, type):
        yield f"{name}{_arguments(item) if not issubclass(item, (BaseException, Warning)) else ': exception'}"
        known = [] if issubclass(item, BaseException) else inspect.signature(item).parameters
        for inner, value in members(item).items():
            if not inner.startswith("_") and inner not in known and not issubclass(item, BaseException):
                called = inspect.isfunction(value) or isinstance(value, (classmethod, staticmethod))
                yield f"{name}.{inner}{_arguments(getattr(item, inner)) if called else ''}"
    else:
        yield f"{name}{_arguments(item)}"


def _inside(module: types.ModuleType) -> Iterator[tuple[str, Any]]:
    """Yield the names in ``__all__``, or else the callables that a module defines; constants are private."""
    for name in getattr(module, "__all__", sorted(vars(module))):
        item = getattr(module, name)
        own = name in getattr(module, "__all__", ()) or getattr(item, "__module__", "") == module.__name__
        if not name.startswith("_") and own and callable(item):
            yield name, item


def _arguments(item: Any) -> str:
    """Return arguments with kinds and plain defaults, without types, which may become more exact."""
    try:
        signature = inspect.signature(item)
    except (TypeError, ValueError):
        return ""
    plain = []
    for argument in signature.parameters.values():
        simple = isinstance(argument.default, (str, int, float, tuple, type(None)))
        default = argument.default if simple or argument.default is argument.empty else "…"
        plain.append(argument.replace(annotation=argument.empty, default=default))
    return str(signature.replace(parameters=plain, return_annotation=signature.empty)).replace("'…'", "…")


def _commands(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    verbs = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not verbs:
        options = (action.option_strings[0] if action.option_strings else action.dest for action in parser._actions)
        yield " ".join([name, *(option for option in options if option != "-h")])
    for action in verbs:
        for verb, inner in action.choices.items():
            yield from _commands(f"{name} {verb}", inner)


if __name__ == "__main__":
    AGREED.write_text("\n".join(lines()) + "\n", encoding="utf-8")
