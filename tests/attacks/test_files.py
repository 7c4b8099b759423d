"""A mutated file is refused with a message or read correctly; no other exception or number occurs."""

from __future__ import annotations

from pathlib import Path

import pytest
from mutated import subjects, wrong

KINDS = list(dict.fromkeys(name.partition(" ")[0] for name in subjects()))

SLOW = ("study", "log")
"""Kinds that take a hundredth of a second each."""


def _all(kind: str) -> list[str]:
    return [name for name in subjects() if name.partition(" ")[0] == kind]


@pytest.mark.parametrize("kind", KINDS)
def test_a_mutated_file_is_refused_or_read_as_it_stands(kind: str, tmp_path: Path) -> None:
    names = _all(kind)
    for name in names:
        tried = (60 if kind in SLOW else 200) // len(names)
        found, answered = wrong(name, subjects()[name], tmp_path, 16, tried)
        assert found == []
        assert answered > 0


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_ten_thousand_mutations_of_a_file_are_refused_or_read_as_they_stand(kind: str, tmp_path: Path) -> None:
    names = _all(kind)
    assert [
        each for name in names for each in wrong(name, subjects()[name], tmp_path, 7, 10_000 // len(names))[0]
    ] == []
