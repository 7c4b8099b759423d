"""Change the code in one place, run the tests that should mind, and write down which changes nobody minded.

``make mutants`` goes over every module of `TESTS`; ``python -m benchmarks.mutants formulas/cost`` over some of them.
Each mutant lives in a copy of the project, never in the working tree. The list is `tests/mutants.csv`: ``by`` is the
test that killed a mutant, or, written by hand and kept from run to run, why a survivor may live.
"""

from __future__ import annotations

import ast
import copy
import csv
import importlib
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

ROOT: Final = Path(__file__).parent.parent
LIST: Final = ROOT / "tests" / "mutants.csv"
SEED: Final = 20_260
EACH: Final = 8
"""Mutants of one module."""
SLOWER: Final = 5.0
"""How many times as long as the tests of unchanged code a mutant may take before it counts as killed."""
SHARE: Final = 0.85
"""Share of mutants to be killed."""

STEP: Final = (
    "tests/formulas/test_step_identities.py tests/formulas/test_step_parts.py tests/formulas/test_parallelism.py"
)
ENGINE: Final = " ".join(f"tests/model/engine/test_{name}.py" for name in ("evaluate", "chain", "frames", "rules"))
LIVE: Final = " ".join(
    f"tests/charts/test_{name}.py" for name in ("encoding", "live_in_vega", "charts_live", "charts_topics")
)
TESTS: Final = {
    "formulas/cost": "tests/formulas/test_cost.py tests/formulas/test_ownership.py",
    "formulas/energy": "tests/formulas/test_energy.py",
    "formulas/checkpoint_tiers": "tests/formulas/test_checkpoint.py",
    "formulas/memory": "tests/formulas/test_memory.py",
    "formulas/collectives": "tests/formulas/test_collectives.py",
    "formulas/step/communication": STEP,
    "formulas/step/interval": STEP,
    "formulas/step/layer": STEP,
    "formulas/step/parts": STEP,
    "formulas/step/rates": STEP,
    "formulas/step/training": STEP,
    "formulas/step/whole": STEP,
    "formulas/topology": "tests/formulas/test_topology.py",
    "model/engine/agreement": ENGINE,
    "model/engine/chain": ENGINE,
    "model/engine/evaluate": ENGINE,
    "model/engine/frames": ENGINE,
    "model/engine/read": ENGINE,
    "model/engine/rules": ENGINE,
    "model/operations/schedule": "tests/model/operations/test_schedule.py",
    "model/performance/search": "tests/model/performance/test_search.py",
    "model/evidence/training_runs": "tests/model/evidence/test_validate.py",
    "datasets/builder": "tests/datasets/test_build.py",
    "site/checks": "tests/site/test_site_checks.py",
    "charts/encoding": LIVE,
    "charts/live": LIVE,
    "charts/program": LIVE,
    "cli": "tests/test_cli.py",
}
"""The test files that a module answers to, beside its own doctests."""

OPERATORS: Final[dict[type[ast.AST], tuple[type[ast.AST], ...]]] = {
    ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.Div,), ast.Div: (ast.Mult,), ast.FloorDiv: (ast.Div,),
    ast.Mod: (ast.Mult,), ast.Pow: (ast.Mult,), ast.BitAnd: (ast.BitOr,), ast.BitOr: (ast.BitAnd,),
    ast.And: (ast.Or,), ast.Or: (ast.And,),
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}  # fmt: skip
RIVALS: Final = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "any": "all", "all": "any"}


class Mutant(NamedTuple):
    """One change of one module, and what became of it."""

    module: str
    line: int
    before: str
    after: str
    outcome: str = ""
    by: str = ""


def places(tree: ast.Module) -> list[ast.expr | ast.If]:
    """Return what may be changed: no words of errors, no types, no decorators, nothing for a type checker alone."""
    found: list[ast.expr | ast.If] = []

    def walk(node: ast.AST) -> None:
        if isinstance(node, ast.Raise) or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            return
        if isinstance(node, (ast.If, ast.expr)) and any(True for _ in changes(node)):
            found.append(node)
        for field, value in ast.iter_fields(node):
            if field in {"annotation", "returns", "decorator_list"} or getattr(node, "arg", "") == "stacklevel":
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    walk(child)

    walk(tree)
    return found


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what may stand in the place of a node."""
    match node:
        case ast.BinOp(op=op) | ast.BoolOp(op=op):
            yield from (_with(node, op=other()) for other in OPERATORS.get(type(op), ()))
        case ast.Compare(ops=[op]):
            yield from (_with(node, ops=[other()]) for other in OPERATORS.get(type(op), ()))
        case ast.UnaryOp(op=ast.Not()):
            yield node.operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
        case ast.Constant(value=float(value)):
            yield ast.Constant(value * 1.1 if value else 1.0)
        case ast.If():
            yield _with(node, test=ast.Constant(value=False))
        case ast.IfExp():
            yield _with(node, body=node.orelse, orelse=node.body)
        case ast.Call(func=ast.Name(id=name)) if name in RIVALS:
            yield _with(node, func=ast.Name(RIVALS[name]))
        case ast.Call(args=[first, second, *more]) if not isinstance(second, ast.Starred):
            yield _with(node, args=[second, first, *more])


def _with(node: ast.AST, **fields: Any) -> ast.AST:
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


def mutants(module: str, source: str, count: int = EACH) -> list[tuple[Mutant, str]]:
    """Return mutants of a module with their source: the same ones for the same source."""
    draw = random.Random(f"{SEED} {module}")
    found = len(places(ast.parse(source)))
    drawn = []
    for place in sorted(draw.sample(range(found), min(count, found))):
        tree = ast.parse(source)
        old = places(tree)[place]
        new = draw.choice(list(changes(old)))
        mutant = Mutant(module, old.lineno, _said(old), _said(new))
        drawn.append((mutant, ast.unparse(ast.fix_missing_locations(_Put(old, new).visit(tree)))))
    return drawn


class _Put(ast.NodeTransformer):
    """Put one node in the place of another."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> Any:
        return self.new if node is self.old else self.generic_visit(node)


def _said(node: ast.AST) -> str:
    text = "if " + ast.unparse(node.test) if isinstance(node, ast.If) else ast.unparse(node)
    return " ".join(text.split())


class Copy:
    """A copy of the project in which one module at a time may be changed."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "project"
        unwanted = shutil.ignore_patterns(".*", "_site*", "notebooks", "*.egg-info")
        shutil.copytree(ROOT, self.root, ignore=unwanted)
        if (ROOT.parent / "shared").is_dir():
            (folder / "shared").symlink_to((ROOT.parent / "shared").resolve())
        os.environ["PYTHONPATH"] = str(self.root)

    def source(self, module: str) -> str:
        return self._file(module).read_text()

    def write(self, module: str, source: str) -> None:
        file = self._file(module)
        for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*"):
            compiled.unlink()
        file.write_text(source)

    def _file(self, module: str) -> Path:
        return self.root / "factorykit" / f"{module}.py"

    def killer(self, module: str, limit_s: float | None = None) -> str:
        """Return the first test of a module that fails, or "" where all pass; "time" where they take too long."""
        fork = multiprocessing.get_context("fork")
        here, there = fork.Pipe(duplex=False)
        child = fork.Process(target=self._test, args=(module, there, limit_s is None))
        child.start()
        there.close()
        try:
            return here.recv() if here.poll(limit_s) else "time"
        except EOFError:
            return "the interpreter ended"
        finally:
            child.kill()
            child.join()

    def _test(self, module: str, answer: Connection, keep_compiled: bool) -> None:
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        os.chdir(self.root)
        sys.path.insert(0, str(self.root))
        sys.dont_write_bytecode = not keep_compiled
        if not keep_compiled:
            os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        first = _First()
        options = ["-x", "-q", "-p", "no:cacheprovider", "-m", "not browser"]
        status = pytest.main([*options, f"factorykit/{module}.py", *TESTS[module].split()], plugins=[first])
        answer.send(first.failed or ("" if status == pytest.ExitCode.OK else str(status)))


class _First:
    """Remembers the first test that fails."""

    failed = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid


def judged(module: str, project: Copy) -> Iterator[Mutant]:
    """Yield the mutants of a module, each with the test that kills it or as one that survives."""
    source = project.source(module)
    started = time.monotonic()
    if failed := project.killer(module):
        raise SystemExit(f"{module}: {failed} fails without any change; mend it first")
    limit_s = 10.0 + SLOWER * (time.monotonic() - started)
    for mutant, changed in mutants(module, source):
        project.write(module, changed)
        by = project.killer(module, limit_s)
        yield mutant._replace(outcome="killed" if by else "survives", by=by)
    project.write(module, source)


def read(file: Path = LIST) -> list[Mutant]:
    """Return the list of mutants."""
    with file.open(newline="") as lines:
        return [Mutant(**{**row, "line": int(row["line"])}) for row in csv.DictReader(lines)]


def share(listed: list[Mutant]) -> float:
    """Return the share of mutants that are killed."""
    return sum(mutant.outcome == "killed" for mutant in listed) / len(listed)


def main(modules: list[str]) -> int:
    for name in ("altair", "duckdb", "numpy", "pint", "polars"):
        importlib.import_module(name)
    listed = {module: [m for m in read() if m.module == module] for module in TESTS} if LIST.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        project = Copy(Path(folder))
        for module in modules or TESTS:
            notes = {(m.before, m.after): m.by for m in listed.get(module, []) if m.outcome == "survives"}
            listed[module] = [
                m._replace(by=m.by or notes.get((m.before, m.after), "")) for m in judged(module, project)
            ]
            print(
                f"{module:<32}{sum(m.outcome == 'killed' for m in listed[module])} of {len(listed[module])}", flush=True
            )
            for mutant in listed[module]:
                if mutant.outcome != "killed":
                    print(f"  line {mutant.line}: {mutant.before}  ->  {mutant.after}", flush=True)
            with LIST.open("w", newline="") as lines:
                table = csv.writer(lines, lineterminator="\n")
                table.writerow(Mutant._fields)
                table.writerows(m for name in TESTS for m in listed.get(name, []))
    everything = read()
    print(f"{share(everything):.0%} of {len(everything)} mutants are killed; at least {SHARE:.0%} should be")
    return int(share(everything) < SHARE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
