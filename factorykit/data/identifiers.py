"""Keys of entities from their names in other spellings."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
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
    "country": ("country_grids", "country", "name"),
}
"""Table of each kind of entity, its column of keys and its column of names."""
OPTIONAL: Final = (
    r"nvidia|amd|intel|habana|google|amazon|aws|microsoft|meta|huawei|instinct|radeon|geforce|tesla|tensor|core|gpus?"
)
"""Optional words in the name of a chip."""
ANOTHER_CHIP: Final = r"pcie|nvl|max|ultra|cpx|ti|super|laptop|mobile|kunlun|bi|v\d+[a-z]?"
"""Words that distinguish one chip from another of the same name."""
COUNTED: Final = r"(?i)\b\d+ ?[x*\u00d7] ?(?=[a-z])(?!large)|(?<=\d)x(?=\d+\b)"
"""A count directly before or after a name, as in 8xH100 and H100x8."""
MAX_TEXT: Final = 10_000
"""Characters of a text in which a chip is searched."""
MAX_NAME_WORDS: Final = 8
"""Words of the longest name that may be written without spaces."""


def identify(kind: str, name: str) -> str:
    """Return the key of an entity in all tables.

    Case, dashes, spaces and, for chips, the maker are ignored, and so are the repository of a model and words such as
    "Instruct". An ambiguous name is an error.

    Parameters
    ----------
    kind : str
        ``"accelerator"``, ``"organisation"``, ``"cluster"``, ``"model"`` (a training run),
        ``"architecture"`` or ``"country"``.
    name : str
        A key or a name; the table ``aliases`` holds known spellings.

    Raises
    ------
    UnknownName
        If the name is unknown, with the nearest name, or ambiguous, with the keys.

    Examples
    --------
    >>> identify("accelerator", "H100 SXM5"), identify("accelerator", "NVIDIA H100 80GB HBM3")
    ('h100_sxm', 'h100_sxm')
    >>> identify("model", "llama-3.1 405b"), identify("architecture", "meta-llama/Llama-3.1-70B-Instruct")
    ('llama_3_1_405b', 'llama3_70b')
    """
    return _only(kind, name, _keys(kind, name), _names(kind, _state()))


def _keys(kind: str, name: str) -> Collection[str]:
    names = _names(one_of("kind of entity", kind, KINDS), _state())
    text = " ".join(name.split()) if isinstance(name, str) else ""
    for spelling in model_names(text) if kind == "architecture" else (text,):
        if spelling in names.exact:
            return (names.exact[spelling],)
        if keys := names.loose.get(letters(kind, spelling)):
            return keys
    return ()


def model_names(text: str) -> list[str]:
    """Return the names that a description of a model may contain, the longest first.

    >>> model_names("meta-llama/Llama-3.1-8B-Instruct, QLoRA")
    ['meta-llama/Llama-3.1-8B-Instruct, QLoRA', 'Llama-3.1-8B-Instruct, QLoRA', 'Llama-3.1-8B-Instruct', 'Llama-3.1-8B']
    """
    short = text.rpartition("/")[2] if re.fullmatch(r"[\w.-]+/\S.*", text) else text
    bare = re.split(r"\s*[,(;]", short)[0]
    kinds = r"[ _-]+(?:instruct|base|chat|hf|it|sft|q?lora|pre-?train(?:ing|ed)?|fine-?tun(?:ing|ed)|v0\.\d)\b.*"
    plain = re.sub(r"^meta-(?=llama)", "", re.sub(kinds, "", bare, flags=re.IGNORECASE), flags=re.IGNORECASE)
    return list(dict.fromkeys((text, short, bare, plain)))


def known_key(kind: str, name: str | None) -> str | None:
    """Return the key of an entity, None if the name is missing, unknown or ambiguous.

    >>> known_key("accelerator", "H100 SXM5"), known_key("accelerator", "abacus")
    ('h100_sxm', None)
    """
    keys = _keys(kind, name) if name else ()
    return next(iter(keys)) if len(keys) == 1 else None


def accelerator_in(text: str) -> str:
    """Return the key of the chip named in a longer text.

    Longer names take precedence over shorter ones within them, so that memory and form factor select the variant of a
    chip. Other words are ignored.

    Raises
    ------
    UnknownName
        If no chip or several chips are named, or a word denotes an unknown variant (Rubin CPX, H200 PCIe).

    Examples
    --------
    >>> accelerator_in("8x H100 SXM5 80GB (700 W)"), accelerator_in("GB200 NVL72"), accelerator_in("A100 80 GB PCIe")
    ('h100_sxm', 'gb200', 'a100_pcie')
    """
    if not isinstance(text, str) or len(text) > MAX_TEXT:
        raise UnknownName(unknown_name_message("accelerator", text, ()))
    return _accelerator_in(" ".join(text.split()), _state())


@lru_cache(maxsize=512)
def _accelerator_in(text: str, state: str) -> str:
    names = _names("accelerator", state)
    if text in names.exact:
        return names.exact[text]
    words = _words("accelerator", re.sub(COUNTED, " ", text))
    places = _places(words)
    places |= {piece[:-1]: where for piece, where in places.items() if piece.endswith("s") and piece not in names.loose}
    spellings = [(where, keys) for spelt, keys in names.spelt.items() if (where := _where(spelt, places))]
    longest = [keys for where, keys in spellings if not any(where < longer for longer, _ in spellings)]
    meant = frozenset.intersection(*longest) if longest else frozenset()
    if len(meant) != 1:
        return _only("accelerator", text, meant or frozenset().union(*longest), names)
    apart = {word for word in words if re.fullmatch(ANOTHER_CHIP, word)}
    return _only("accelerator", text, {key for key in meant if apart <= names.words[key]}, names)


def _places(words: tuple[str, ...]) -> dict[str, frozenset[int]]:
    """Return the positions of each word of a text, and of each run of words, joined."""
    places: dict[str, frozenset[int]] = {}
    for first in range(len(words)):
        for last in range(first + 1, min(first + MAX_NAME_WORDS, len(words)) + 1):
            joined = "".join(words[first:last])
            places[joined] = places.get(joined, frozenset()) | frozenset(range(first, last))
    return places


def _where(spelt: tuple[str, ...], places: Mapping[str, frozenset[int]]) -> frozenset[int]:
    """Return the positions of the words of a name; they may be apart unless one of them is a number."""
    if whole := places.get("".join(spelt)):
        return whole
    if any(word.isdigit() or word not in places for word in spelt):
        return frozenset()
    return frozenset().union(*(places[word] for word in spelt))


class _Names(NamedTuple):
    """Names of the entities of one kind."""

    exact: dict[str, str]
    """Key of every name as written."""
    loose: dict[str, frozenset[str]]
    """Keys by the letters and digits of a name; several for the name of a generation of chips."""
    spelt: dict[tuple[str, ...], frozenset[str]]
    """Keys by the words of a name."""
    words: dict[str, frozenset[str]]
    """All words in the names of each key."""


def spellings(kind: str) -> Mapping[str, str]:
    """Return the keys of a kind of entity by every known name.

    >>> spellings("accelerator")["H100 SXM5"]
    'h100_sxm'
    """
    return MappingProxyType(_names(kind, _state()).exact)


def _state() -> str:
    """Return a hash of the tables that hold names."""
    known = resources()
    try:
        held = ("aliases", "generations", *(name for name, _, _ in KINDS.values()))
        return "".join(known[name]["hash"] for name in held)
    except KeyError as error:
        raise DatasetError(f"there is no table {error}; run `factorykit data build`") from None


@cache
def _names(kind: str, _state: str) -> _Names:
    of, column, title = KINDS[kind]
    named = list(table(of).select(column, title).unique(maintain_order=True).collect().iter_rows())
    aliases = table("aliases").filter(kind=kind).select("alias", "key").collect().iter_rows()
    exact = {key: key for key, _ in named} | {name: key for key, name in named if name} | dict(aliases)
    pairs = [(_words(kind, name), key) for name, key in exact.items()]
    words = _grouped((key, word) for spelling, key in pairs for word in spelling)
    spelt = _grouped(pairs)
    if kind == "accelerator":
        generations = table("generations").select("generation", "accelerator").collect().iter_rows()
        spelt = {(name,): keys for name, keys in _grouped(generations).items() if len(keys) > 1} | spelt
    loose = _grouped(("".join(spelling), key) for spelling, keys in spelt.items() for key in keys)
    return _Names(exact, loose, spelt, words)


def _grouped(pairs: Iterable[tuple[Name, str]]) -> dict[Name, frozenset[str]]:
    held: dict[Name, set[str]] = {}
    for name, member in pairs:
        held.setdefault(name, set()).add(member)
    return {name: frozenset(every) for name, every in held.items()}


def _only(kind: str, name: object, keys: Iterable[str], names: _Names) -> str:
    """Return the only matching key; otherwise raise an error with the candidates."""
    fitting = sorted(keys)
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise UnknownName(f"{kind} {short_repr(name)} is ambiguous: {', '.join(fitting)}; give one of them")
    raise UnknownName(unknown_name_message(kind, name, list(names.exact)))


def letters(kind: str, name: str) -> str:
    """Return the significant words of a name, joined.

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
