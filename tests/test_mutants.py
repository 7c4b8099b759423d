"""Mutants: what is changed, that it is one place and always the same, and the list that is kept."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from benchmarks.mutants import SHARE, TESTS, changes, mutants, places, read, share

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    ("source", "changed"),
    [
        ("a < b", {"a <= b", "a >= b"}),
        ("a + b", {"a - b"}),
        ("a and not b", {"a or not b", "b"}),
        ("x = 0.0", {"1.0"}),
        ("x: int = 3", {"4"}),
        ("f(a, b)", {"f(b, a)"}),
        ("min(a, b)", {"max(a, b)"}),
        ("if a:\n    raise E(1 + 2)", {"if False:\n    raise E(1 + 2)"}),
        ("@cache(maxsize=5)\ndef f(a: Literal[1] = 2) -> None:\n    pass", {"3"}),
        ("warn(text, stacklevel=4)", set()),
    ],
)
def test_a_place_is_changed_as_it_should(source: str, changed: set[str]) -> None:
    assert {ast.unparse(new) for place in places(ast.parse(source)) for new in changes(place)} == changed


@pytest.mark.parametrize("module", TESTS)
def test_a_mutant_differs_from_its_module_and_is_the_same_every_time(module: str) -> None:
    source = (ROOT / "factorykit" / f"{module}.py").read_text(encoding="utf-8")
    made = mutants(module, source, 3)
    assert made == mutants(module, source, 3)
    assert all(compile(text, module, "exec") and text != ast.unparse(ast.parse(source)) for _, text in made)


@pytest.mark.parametrize("module", TESTS)
def test_the_tests_of_a_module_are_there(module: str) -> None:
    assert all((ROOT / file).is_file() for file in TESTS[module].split())


def test_enough_of_the_listed_mutants_are_killed() -> None:
    listed = read()
    assert {mutant.module for mutant in listed} == set(TESTS)
    assert {mutant.outcome for mutant in listed} <= {"killed", "survives"}
    assert all(mutant.by for mutant in listed if mutant.outcome == "killed")
    assert share(listed) >= SHARE


def test_what_survives_in_charts_and_frames_says_why_it_may() -> None:
    borders = [m for m in read() if m.module.startswith("charts/") or m.module == "model/engine/frames"]
    assert [mutant for mutant in borders if mutant.outcome == "survives" and not mutant.by] == []
