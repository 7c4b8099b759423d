"""Studies of many calls of one function."""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import polars as pl

from factorykit.core.errors import FactorykitError, ScenarioError, short_repr
from factorykit.core.validation import as_list, mapping, one_of
from factorykit.model.uncertainty.study.parts import Design
from factorykit.model.uncertainty.study.study import answered, target

CASES_A_PART: Final = 16
"""Calls in a part: the work that a killed worker loses."""
VERBS: Final[Mapping[str, tuple[str, Callable[[Any], Any]]]] = {
    "plan": ("model.planning.plan", lambda result: result.plans),
    "schedule": ("model.operations.schedule", lambda result: result.summary),
    "search": ("model.performance.search", lambda result: result.collect()),
    "sensitivity": ("model.uncertainty.sample", lambda result: result),
    "simulate": ("model.operations.simulate", lambda result: result),
    "timeline": ("model.operations.simulate", lambda result: result),
}
"""Module of a function, and the rows of its result that are kept."""


def run_cases(verb: str, cases: Sequence[Mapping[str, Any]], out: str | Path, engine: str = "local") -> pl.LazyFrame:
    """Call one function with many sets of arguments and keep all rows as a study.

    Parameters
    ----------
    verb
        ``"plan"`` (rows of ``plans``), ``"schedule"`` (its ``summary``), ``"search"``, ``"sensitivity"``,
        ``"simulate"`` or ``"timeline"``.
    cases
        The arguments of each call, by name.
    out, engine
        Folder of the study, and its engine, as in :func:`factorykit.sweep`.

    Returns
    -------
    LazyFrame
        The rows of every case, with its number in ``case`` (from 0), and the ``error`` of a case without rows.

    Raises
    ------
    ScenarioError
        If the verb is unknown or there are no cases. An error in a case is a row.

    Examples
    --------
    >>> import tempfile
    >>> run = {"training_s": 4e6, "checkpoint_interval_s": 1100.0, "checkpoint_write_s": 60.0, "restart_s": 600.0}
    >>> cases = [{"inputs": run | {"cluster_mtbf_s": hours * 3600.0, "downtime_s": 0.0}, "runs": 3} for hours in (3, 0)]
    >>> with tempfile.TemporaryDirectory() as out:
    ...     rows = run_cases("simulate", cases, out).collect()
    >>> rows["case"].to_list(), rows["error"].null_count()
    ([0, 0, 0, 1], 3)
    """
    verb = one_of("verb of the cases", verb, VERBS)
    calls = tuple(dict(mapping(f"case {number}", case)) for number, case in enumerate(as_list("cases", cases)))
    if not calls:
        raise ScenarioError("cases must not be empty; give the arguments of at least one call")
    if (path := target(out, engine)) and path.suffix == ".parquet":
        raise ScenarioError(f"out = {str(out)!r}: cases may differ in their columns; give a folder")
    return answered(Cases(verb, calls), out, "cases", engine)


@dataclass(frozen=True)
class Cases(Design):
    """Calls of one function, by their arguments."""

    verb: str
    cases: tuple[dict[str, Any], ...]

    @property
    def rows(self) -> int:
        """Number of cases, each of which has any number of rows."""
        return len(self.cases)

    @property
    def parts(self) -> int:
        """Number of parts."""
        return -(-len(self.cases) // CASES_A_PART)

    def part(self, number: int) -> pl.DataFrame:
        """Return the rows of some cases."""
        first = number * CASES_A_PART
        frames = [self._case(case) for case in range(first, min(first + CASES_A_PART, len(self.cases)))]
        return pl.concat(frames, how="diagonal_relaxed")

    def _case(self, number: int) -> pl.DataFrame:
        module, rows = VERBS[self.verb]
        error = pl.lit(None, pl.String)
        try:
            frame = pl.DataFrame(rows(getattr(import_module(f"factorykit.{module}"), self.verb)(**self.cases[number])))
        except (FactorykitError, TypeError) as refusal:
            frame, error = pl.DataFrame({"case": [number]}), pl.lit(str(refusal))
        return frame.select(pl.lit(number, pl.Int64).alias("case"), pl.exclude("case"), error.alias("error"))

    def describe(self) -> dict[str, Any]:
        """Return the verb and the cases; a frame among their arguments by its digest."""
        return {"verb": self.verb, "cases": [json.loads(json.dumps(case, default=_text)) for case in self.cases]}


def _text(value: Any) -> Any:
    """Return the text of an argument; of a large one, its type and digest."""
    if isinstance(value, Mapping):
        return dict(value)
    written = repr(value)
    if len(written) < 1_000 and "\n" not in written:
        return written
    try:
        pickled = pickle.dumps(value)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise ScenarioError(
            f"{short_repr(value)} cannot be stored in a study ({type(error).__name__}); omit it"
        ) from error
    return f"{type(value).__name__} {hashlib.blake2b(pickled, digest_size=16).hexdigest()}"
