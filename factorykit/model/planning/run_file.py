"""A study that can be repeated: what is asked of a plan, in a TOML file."""

from __future__ import annotations

import inspect
import tomllib
from pathlib import Path
from typing import Any

from factorykit.core import text_io
from factorykit.core.errors import ScenarioError, UnknownName, nearest, short_repr
from factorykit.core.vocabulary import vocabulary
from factorykit.model.planning.plan import plan


def read_run(path: str | Path) -> dict[str, Any]:
    """Return what a file asks of :func:`factorykit.plan`, as its arguments.

    Parameters
    ----------
    path
        A TOML file with ``model`` and arguments of :func:`factorykit.plan`; quantities that are known stand beside them
        or under ``[given]``.

    Raises
    ------
    ScenarioError, UnknownName
        If the file cannot be read, names no model, or has a key that is no argument and no quantity.
    """
    content = text_io.content(path, error=ScenarioError)
    try:
        said = text_io.shallow(tomllib.loads(text_io.text(content)))
    except (ValueError, RecursionError) as error:
        raise ScenarioError(f"{path}: {error}") from None
    given = said.pop("given", {})
    if not isinstance(given, dict):
        raise ScenarioError(f"{path}: given = {short_repr(given)} is no table; write [given] above quantities")
    if twice := sorted(said.keys() & given.keys()):
        raise ScenarioError(f"{path} says {twice[0]} twice, above [given] and under it; leave one out")
    asked = said | given
    if "model" not in asked:
        raise ScenarioError(f"{path} names no model; write model = 'llama3_70b'")
    known = [name for name in inspect.signature(plan).parameters if name != "given"]
    for name in asked:
        if name not in known and name not in vocabulary():
            close = nearest(name, [*known, *vocabulary()])
            hint = f"; nearest is {close!r}" if close else ""
            raise UnknownName(f"{path}: {short_repr(name)} is no argument of plan and no quantity{hint}")
    return asked
