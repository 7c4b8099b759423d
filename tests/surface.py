"""The public surface as text, a line a name: `python tests/surface.py` writes it anew."""

from __future__ import annotations

import argparse
import inspect
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import factorykit as fk
from factorykit.cli import _parser

EXPERIMENTAL = ("charts", "widgets")
AGREED = Path(__file__).parent / "golden" / "surface.txt"


def lines() -> Iterator[str]:
    """Yield every public name with its arguments, those of classes, modules and the command line among them."""
    for name in fk.__all__:
        yield from _told(f"fk.{name}", getattr(fk, name), name in EXPERIMENTAL)
    yield from _commands("factorykit", _parser())


def _told(name: str, thing: Any, is_open: bool = False) -> Iterator[str]:
    if isinstance(thing, types.ModuleType):
        yield f"{name}: module{' (experimental)' if is_open else ''}"
        if not is_open and thing.__name__ != "factorykit.formulas":
            for inner, value in _inside(thing):
                yield from _told(f"{name}.{inner}", value)
    elif isinstance(thing, type):
        yield f"{name}{_arguments(thing) if not issubclass(thing, (BaseException, Warning)) else ': exception'}"
        known = [] if issubclass(thing, BaseException) else inspect.signature(thing).parameters
        for inner, value in vars(thing).items():
            if not inner.startswith("_") and inner not in known and not issubclass(thing, BaseException):
                called = inspect.isfunction(value) or isinstance(value, (classmethod, staticmethod))
                yield f"{name}.{inner}{_arguments(getattr(thing, inner)) if called else ''}"
    else:
        yield f"{name}{_arguments(thing)}"


def _inside(module: types.ModuleType) -> Iterator[tuple[str, Any]]:
    """Yield what a module itself defines, or names in ``__all__``: constants are private."""
    for name in getattr(module, "__all__", sorted(vars(module))):
        value = getattr(module, name)
        own = name in getattr(module, "__all__", ()) or getattr(value, "__module__", "") == module.__name__
        if not name.startswith("_") and own and callable(value):
            yield name, value


def _arguments(thing: Any) -> str:
    """Return arguments with kinds and plain defaults, without types, which may become more exact."""
    try:
        signature = inspect.signature(thing)
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
