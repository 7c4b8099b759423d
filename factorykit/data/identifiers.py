"""One thing, one key: from a name as somebody writes it to the key that joins the tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple, TypeVar

from factorykit.core.errors import DatasetError, UnknownName, short_repr, unknown_name_message
from factorykit.core.validation import one_of
from factorykit.data.tables import resources, table

Name = TypeVar("Name", str, tuple[str, ...])

KINDS: Final = {
    "accelerator": ("accelerators", "accelerator", "name"),
    "organisation": ("organisations", "organisation", "name"),
    "cluster": ("clusters", "cluster", "name"),
    "model": ("runs", "run", "model"),
    "architecture": ("architectures", "architecture", "name"),
}
"""The table that holds the things of each kind, its column of keys and its column of names."""
OPTIONAL: Final = (
    r"nvidia|amd|intel|habana|google|amazon|aws|microsoft|meta|huawei|instinct|radeon|geforce|tesla|tensor|core|gpus?"
)
"""Words that may stand in the name of a chip or be left out."""
ANOTHER_CHIP: Final = r"pcie|nvl|max|ultra|cpx|ti|super|laptop|mobile|kunlun|bi|v\d+[a-z]?"
"""Words that make another chip of the one named beside them."""
COUNTED: Final = r"(?i)\b\d+ ?[x*\u00d7] ?(?=[a-z])(?!large)|(?<=\d)x(?=\d+\b)"
"""A count that stands before or behind a name without a space, as in 8xH100 and H100x8."""
MOST_LETTERS: Final = 10_000
"""Of a text in which a chip is looked for."""
LONGEST: Final = 8
"""Words of the longest name that is looked for in one piece."""


def identify(kind: str, name: str) -> str:
    """Return the key under which all tables know a thing.

    Case, dashes, spaces and, for chips, the maker's name do not matter. A name that fits several things fits none.

    Parameters
    ----------
    kind : str
        ``"accelerator"``, ``"organisation"``, ``"cluster"``, ``"model"`` (a training run) or ``"architecture"``.
    name : str
        A key, or a name as somebody writes it; the table ``aliases`` holds those that are known.

    Raises
    ------
    UnknownName
        If nothing of that kind goes under the name, with the nearest name, or several things do, with their keys.

    Examples
    --------
    >>> identify("accelerator", "H100 SXM5"), identify("accelerator", "NVIDIA H100 80GB HBM3")
    ('h100_sxm', 'h100_sxm')
    >>> identify("model", "llama-3.1 405b")
    'llama_3_1_405b'
    """
    one_of("kind of thing", kind, KINDS)
    names = _names(kind, _state())
    if not isinstance(name, str):
        raise UnknownName(unknown_name_message(kind, name, names.exact))
    said = " ".join(name.split())
    if said in names.exact:
        return names.exact[said]
    return _only(kind, said, names.loose.get(letters(kind, said), frozenset()), names)


def accelerator_in(text: str) -> str:
    """Return the key of the one chip that a longer text speaks of.

    The names that stand in the text count, the longer before the shorter within it, so that memory and form factor
    choose among the parts of one chip. Words that are no part of a name do not matter.

    Raises
    ------
    UnknownName
        If no chip is named, or several are, or a word makes another part of the one named (Rubin CPX, H200 PCIe).

    Examples
    --------
    >>> accelerator_in("8x H100 SXM5 80GB (700 W)"), accelerator_in("GB200 NVL72"), accelerator_in("A100 80 GB PCIe")
    ('h100_sxm', 'gb200', 'a100_pcie')
    """
    if not isinstance(text, str) or len(text) > MOST_LETTERS:
        raise UnknownName(unknown_name_message("accelerator", text, ()))
    return _accelerator_in(" ".join(text.split()), _state())


@lru_cache(maxsize=512)
def _accelerator_in(said: str, state: str) -> str:
    names = _names("accelerator", state)
    if said in names.exact:
        return names.exact[said]
    words = _words("accelerator", re.sub(COUNTED, " ", said))
    places = _places(words)
    places |= {one[:-1]: where for one, where in places.items() if one.endswith("s") and one not in names.loose}
    found = [(where, keys) for spelt, keys in names.spelt.items() if (where := _where(spelt, places))]
    longest = [keys for where, keys in found if not any(where < longer for longer, _ in found)]
    meant = frozenset.intersection(*longest) if longest else frozenset()
    if len(meant) != 1:
        return _only("accelerator", said, meant or frozenset().union(*longest), names)
    apart = {word for word in words if re.fullmatch(ANOTHER_CHIP, word)}
    return _only("accelerator", said, {key for key in meant if apart <= names.words[key]}, names)


def _places(words: tuple[str, ...]) -> dict[str, frozenset[int]]:
    """Return where each word of a text stands, and each run of words that may be one word elsewhere."""
    places: dict[str, frozenset[int]] = {}
    for first in range(len(words)):
        for last in range(first + 1, min(first + LONGEST, len(words)) + 1):
            joined = "".join(words[first:last])
            places[joined] = places.get(joined, frozenset()) | frozenset(range(first, last))
    return places


def _where(spelt: tuple[str, ...], places: Mapping[str, frozenset[int]]) -> frozenset[int]:
    """Return where the words of a name stand in a text; one with a bare number in one piece, others also apart."""
    if whole := places.get("".join(spelt)):
        return whole
    if any(word.isdigit() or word not in places for word in spelt):
        return frozenset()
    return frozenset().union(*(places[word] for word in spelt))


class _Names(NamedTuple):
    """What the things of one kind are called."""

    exact: dict[str, str]
    """The key of every name as written."""
    loose: dict[str, frozenset[str]]
    """The keys by the letters and digits of a name; several for what a whole generation of chips is called."""
    spelt: dict[tuple[str, ...], frozenset[str]]
    """The same by the words of a name."""
    words: dict[str, frozenset[str]]
    """All words in the names of each key."""


def spellings(kind: str) -> Mapping[str, str]:
    """Return the keys of a kind of thing by every name the tables hold, as written.

    >>> spellings("accelerator")["H100 SXM5"]
    'h100_sxm'
    """
    return MappingProxyType(_names(kind, _state()).exact)


def _state() -> str:
    """Return what changes when the tables that hold names are built anew."""
    known = resources()
    try:
        held = ("aliases", "generations", *(name for name, _, _ in KINDS.values()))
        return "".join(known[name]["hash"] for name in held)
    except KeyError as error:
        raise DatasetError(f"there is no table {error}; run `factorykit data build`") from None


@cache
def _names(kind: str, _state: str) -> _Names:
    of, column, title = KINDS[kind]
    told = list(table(of).select(column, title).unique(maintain_order=True).collect().iter_rows())
    aliases = table("aliases").filter(kind=kind).select("alias", "key").collect().iter_rows()
    exact = {key: key for key, _ in told} | {name: key for key, name in told if name} | dict(aliases)
    pairs = [(_words(kind, name), key) for name, key in exact.items()]
    words = _grouped((key, word) for each, key in pairs for word in each)
    spelt = _grouped(pairs)
    if kind == "accelerator":
        kin = table("generations").select("generation", "accelerator").collect().iter_rows()
        spelt = {(name,): keys for name, keys in _grouped(kin).items() if len(keys) > 1} | spelt
    loose = _grouped(("".join(each), key) for each, keys in spelt.items() for key in keys)
    return _Names(exact, loose, spelt, words)


def _grouped(pairs: Iterable[tuple[Name, str]]) -> dict[Name, frozenset[str]]:
    held: dict[Name, set[str]] = {}
    for name, one in pairs:
        held.setdefault(name, set()).add(one)
    return {name: frozenset(every) for name, every in held.items()}


def _only(kind: str, said: str, keys: Iterable[str], names: _Names) -> str:
    """Return the one key that fits, or raise with those that do or with the nearest name."""
    fitting = sorted(keys)
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise UnknownName(f"{kind} {short_repr(said)} fits several: {', '.join(fitting)}; give one of them")
    raise UnknownName(unknown_name_message(kind, said, list(names.exact)))


def letters(kind: str, name: str) -> str:
    """Return the words of a name that tell things apart, joined.

    >>> letters("accelerator", "NVIDIA A100-SXM4 80 GB")
    'a100sxm80gb'
    """
    return "".join(_words(kind, name))


def _words(kind: str, name: str) -> tuple[str, ...]:
    words = re.findall(r"[a-z0-9]+", name.lower())
    if kind == "accelerator":
        plain = re.sub(r"(?<=\d)[ -]?gi?b\b", "gb", re.sub(r"\bsxm[2456]\b", "sxm", name.lower()))
        words = re.findall(r"[a-z0-9]+", plain)
        words = [word for word in words if not re.fullmatch(OPTIONAL, word)] or words
    return tuple(words)
