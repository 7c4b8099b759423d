"""Structure of the package: import order, lazy loading, and use of the vocabulary."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from surface import AGREED, lines

import factorykit as fk
from factorykit.core.vocabulary import vocabulary
from factorykit.formulas import arguments, catalogue, topic

PACKAGE = Path(fk.__file__).parent
LAYERS = ("core", "formulas", "data", "engine", "model", "telemetry", "charts", "widgets", "site", "mcp", "cli")
"""Packages of factorykit, from the lowest: each imports only those before it, and formulas and data not each other."""
MODULES = sorted(PACKAGE.rglob("*.py"))


def imported(path: Path) -> set[str]:
    """Return the packages of factorykit that a module imports, inside functions too."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("factorykit"):
            parts = node.module.split(".")
            names |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {a.name.split(".")[1] for a in node.names if a.name.startswith("factorykit.")}
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_lower_layers(path: Path) -> None:
    layer = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if layer != "__init__":
        allowed = {*LAYERS[: LAYERS.index(layer) + 1]} - ({"formulas"} if layer == "data" else set())
        assert imported(path) <= allowed


def import_graph() -> dict[str, set[str]]:
    """Return the modules of factorykit that each module imports, inside functions and for type checking too."""
    names = {".".join(path.relative_to(PACKAGE).with_suffix("").parts): path for path in MODULES}
    names = {name.removesuffix(".__init__"): path for name, path in names.items()}
    graph = {}
    for name, path in names.items():
        found = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("factorykit."):
                module = str(node.module).removeprefix("factorykit.")
                found |= {full if (full := f"{module}.{alias.name}") in names else module for alias in node.names}
            elif isinstance(node, ast.Import):
                found |= {alias.name.removeprefix("factorykit.") for alias in node.names}
        graph[name] = (found & names.keys()) - {name}
    return graph


def test_no_module_imports_itself_through_others() -> None:
    graph = import_graph()
    for name in graph:
        reached, waiting = set(), [*graph[name]]
        while waiting:
            reached.add(each := waiting.pop())
            waiting += graph[each] - reached
        assert name not in reached, name


PARTS = frozenset(f"engine.{name}" for name in ("resolve", "conditions", "run", "floats", "frames", "grids"))


@pytest.mark.parametrize("package", ["model", "telemetry", "charts", "widgets", "site", "cli"])
def test_questions_are_read_and_run_in_the_engine_alone(package: str) -> None:
    """`Question` is the only entrance: no module outside runs steps on inputs that it checked itself."""
    names = {"compute", "fold", "resolve", "evaluate_lazy", "evaluate_eager", "prepare", "check_consistency"}
    for path in MODULES:
        if path.relative_to(PACKAGE).parts[0].removesuffix(".py") == package:
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and (node.module or "") in {f"factorykit.{part}" for part in PARTS}:
                    assert names.isdisjoint(alias.name for alias in node.names), path


def test_import_loads_nothing_heavy() -> None:
    code = "import sys, factorykit as fk; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {
        "altair",
        "duckdb",
        "ipywidgets",
        "jupyterlab",
        "numpy",
        "pandas",
        "pint",
        "polars",
        "pyarrow",
        "scipy",
        "sympy",
    }
    assert not heavy & set(loaded)


def test_a_public_name_does_not_depend_on_earlier_imports() -> None:
    load = "import factorykit as fk, factorykit.model.validation.audit"
    code = f"{load}; print(fk.quantities().height == len(fk.quantities()))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "True\n"


def test_every_public_name_loads_and_is_documented() -> None:
    for name in fk.__all__:
        assert getattr(fk, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'tabel'"):
        fk.tabel  # noqa: B018


def test_every_quantity_of_the_vocabulary_can_be_shown() -> None:
    for row in vocabulary().values():
        assert re.fullmatch(r"[a-z][a-z0-9_]*", row.name)
        assert row.meaning, f"{row.name} has no meaning"
        assert row.kind in ("input", "derived", "input or derived")
        if row.slider_min is not None:
            assert row.slider_scale in ("linear", "log")
            assert row.holds(row.slider_max) or row.slider_max == row.upper
        if row.default is not None:
            assert row.holds(row.default), f"{row.name}: the default {row.default} breaks {row.bounds}"


def test_every_derived_quantity_has_a_formula_and_every_formula_is_marked_derived() -> None:
    assert all("derived" in vocabulary()[name].kind for name in catalogue())
    assert [name for name, row in vocabulary().items() if row.is_derived and name not in catalogue()] == []


def test_every_quantity_is_used() -> None:
    used = {name for formula in catalogue().values() for name in arguments(formula)} | set(catalogue())
    unused = [name for name in vocabulary() if name not in used]
    of_the_scheduler = ["node_failures_per_node_day", "nodes_per_pod", "pod_spread_penalty"]
    assert [n for n in unused if n not in of_the_scheduler] == ["accelerator"]  # provides the specification of a chip


def test_the_core_vocabulary_keeps_its_names_and_units(shared: Path) -> None:
    import polars as pl

    core = pl.read_csv(shared / "quantities_core.csv", infer_schema=False)
    for name, unit in core.select("name", "unit").rows():
        assert vocabulary()[name].unit == unit


def test_every_default_has_a_source() -> None:
    sourced = fk.table("defaults").collect()["quantity"].to_list()
    assert set(sourced) == {row.name for row in vocabulary().values() if row.default is not None}, (
        "data/sources/defaults.csv has one row for each default of factorykit/core/quantities.csv"
    )


def test_a_meaning_beyond_the_core_is_self_contained(shared: Path) -> None:
    import polars as pl

    core = pl.read_csv(shared / "quantities_core.csv", infer_schema=False)["name"]
    for row in vocabulary().values():
        if row.name not in core:
            code = [word for word in re.findall(r"\w+", row.meaning) if "_" in word]
            assert not code, f"{row.name}: its meaning uses names of other quantities: {code}"
            assert not row.meaning.startswith("the same"), f"{row.name}: its meaning needs the row before it"


def test_every_topic_and_subject_is_in_the_sidebar_of_the_site() -> None:
    described = (PACKAGE.parent / "_quarto.yml").read_text(encoding="utf-8")
    named = re.findall(r"^ +- report/((?:methods|data)/[\w-]+)\.qmd$", described, re.MULTILINE)
    topics = [f"methods/{re.sub('[._]', '-', topic(formula))}" for formula in catalogue().values()]
    subjects = json.loads((PACKAGE.parent / "data" / "datapackage.json").read_text(encoding="utf-8"))["subjects"]
    wanted = [*dict.fromkeys(topics), *(f"data/{subject['name']}" for subject in subjects)]
    assert set(wanted) - set(named) == set(), "name these pages under sidebar in _quarto.yml"
    assert set(named) - set(wanted) == set(), "these pages are no more; take them out of _quarto.yml"


def test_names_completed_by_editors_are_those_of_the_vocabulary_and_the_tables() -> None:
    from factorykit.data import literals as naming

    written = (PACKAGE / "core" / "_names.pyi").read_text(encoding="utf-8")
    assert written == naming.module(), "run `factorykit data build`"


def test_the_public_surface_equals_the_golden_file() -> None:
    assert list(lines()) == AGREED.read_text(encoding="utf-8").splitlines(), (
        "a public name or argument changed: if intended, add it to CHANGELOG.md and run `python tests/surface.py`"
    )


def test_actions_are_pinned_by_commit_and_packages_by_hash() -> None:
    root = PACKAGE.parent
    used = [
        line
        for file in (root / ".github/workflows").glob("*.yml")
        for line in re.findall(r"uses: (.*)", file.read_text())
    ]
    assert len(used) > 10
    assert [line for line in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[\d.]+", line)] == []
    lock = (root / "requirements.lock").read_text("utf-8")
    packages = re.split(r"\n(?=\S)", lock.strip())
    assert [package.split("==")[0] for package in packages if "--hash=sha256:" not in package] == []
