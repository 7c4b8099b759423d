"""One thing, one key: from a name as somebody writes it to the key that joins the tables."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from factorykit.datasets.catalogue import resources, table
from factorykit.errors import DatasetError, UnknownName, unknown

KINDS: Final = {
    "accelerator": ("accelerators", "accelerator"),
    "organisation": ("organisations", "organisation"),
    "cluster": ("clusters", "cluster"),
    "model": ("runs", "run"),
}
"""The table and the column that hold the keys of each kind."""
OPTIONAL: Final = (
    r"nvidia|amd|intel|habana|google|amazon|aws|microsoft|meta|huawei|instinct|radeon|tesla|tensor|core|gpus?"
)
"""Words that may stand in the name of a chip or be left out."""


def identify(kind: str, name: str) -> str:
    """Return the key under which all tables know a thing.

    Case, dashes, spaces and, for chips, the maker's name do not matter. A name that fits several things fits none.

    Parameters
    ----------
    kind : str
        ``"accelerator"``, ``"organisation"``, ``"cluster"`` or ``"model"``.
    name : str
        A key, or a name as somebody writes it; the table ``aliases`` holds those that are known.

    Raises
    ------
    UnknownName
        If nothing of that kind goes under the name, with the nearest name.

    Examples
    --------
    >>> identify("accelerator", "H100 SXM5"), identify("accelerator", "NVIDIA H100 80GB HBM3")
    ('h100_sxm', 'h100_sxm')
    >>> identify("model", "llama-3.1 405b")
    'llama_3_1_405b'
    """
    if kind not in KINDS:
        raise UnknownName(unknown("kind of thing", kind, KINDS))
    exact, loose = _known(kind, _state())
    if not isinstance(name, str):
        raise UnknownName(unknown(kind, name, exact))
    said = " ".join(name.split())
    for found in (exact.get(said), loose.get(_letters(kind, said))):
        if found:
            return found
    raise UnknownName(unknown(kind, said, list(exact)))


def _state() -> str:
    """Return what changes when the tables that hold names are built anew."""
    known = resources()
    try:
        return "".join(known[name]["hash"] for name in ("aliases", *(name for name, _ in KINDS.values())))
    except KeyError as error:
        raise DatasetError(f"there is no table {error}; run `factorykit data build`") from None


@cache
def _known(kind: str, _state: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the keys by name: as written, and by letters and digits alone where that leaves one key."""
    of, column = KINDS[kind]
    exact = {key: key for key in table(of).select(column).unique(maintain_order=True).collect()[column]}
    named = table("aliases").filter(kind=kind).select("alias", "key").collect()
    exact |= {alias: key for alias, key in named.iter_rows() if alias not in exact}
    loose: dict[str, set[str]] = {}
    for alias, key in exact.items():
        loose.setdefault(_letters(kind, alias), set()).add(key)
    return exact, {letters: next(iter(keys)) for letters, keys in loose.items() if letters and len(keys) == 1}


def _letters(kind: str, name: str) -> str:
    """Return the words of a name that tell things apart, joined."""
    words = re.findall(r"[a-z0-9]+", name.lower())
    if kind == "accelerator":
        words = [word for word in words if not re.fullmatch(OPTIONAL, word)] or words
    return "".join(words)
