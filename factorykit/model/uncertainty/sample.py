"""Samples of uncertain inputs, their quantiles, and sensitivity to each input."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import polars as pl

from factorykit.core import validation
from factorykit.core.errors import ScenarioError, short_repr
from factorykit.core.extras import need
from factorykit.core.validation import as_list, integer, mapping, one_of, string, strings
from factorykit.core.vocabulary import is_number
from factorykit.engine.question import Outputs, Question
from factorykit.model.uncertainty.distributions import Distribution, check
from factorykit.model.uncertainty.quasi_random import SOBOL_BITS, points_between
from factorykit.model.uncertainty.study.parts import Numbered, column_of, evaluate_rows, max_part_rows
from factorykit.model.uncertainty.study.study import ROWS_IN_MEMORY, answered
from factorykit.model.uncertainty.sweep import axes_of

if TYPE_CHECKING:
    from factorykit.core._names import QuantityName

MOST: Final = {"sobol": 2**SOBOL_BITS, "latin": ROWS_IN_MEMORY, "random": 2**53}
"""Draws that a method can number; a Latin hypercube is drawn as a whole."""


def sample(
    inputs: Mapping[str, Any],
    distributions: Mapping[str, Distribution],
    outputs: Outputs = None,
    n: int = 1024,
    seed: int = 0,
    *,
    method: Literal["sobol", "latin", "random"] = "sobol",
    grid: Mapping[str, Sequence[Any]] | None = None,
    out: str | Path | None = None,
    engine: str = "local",
    using: Mapping[str, str] | None = None,
    assume: bool = False,
) -> pl.DataFrame | pl.LazyFrame:
    """Draw uncertain inputs and evaluate every draw.

    Parameters
    ----------
    inputs
        Quantities that are known, as in :func:`factorykit.evaluate`; a distribution takes the place of a value.
    distributions
        Distributions of uncertain quantities; see :mod:`factorykit.model.uncertainty.distributions`.
    outputs, using, assume
        As in :func:`factorykit.evaluate`; by default all outputs that can be computed.
    n
        Draws. Sobol points are best at powers of two.
    seed
        The same seed gives the same rows.
    method
        Scrambled Sobol points, a Latin hypercube, or random points.
    grid
        Values of one or more quantities at which all draws are repeated, for a band along an axis.
    out, engine
        A Parquet file, or the folder of a study and its engine, as in :func:`factorykit.sweep`.

    Returns
    -------
    DataFrame or LazyFrame
        One row per draw and grid point: ``draw``, the grid, the uncertain inputs, the outputs. With ``out``, a scan of
        the written rows.

    Raises
    ------
    FactorykitError
        As :func:`factorykit.evaluate`, and for a distribution that leaves the bounds of its quantity.

    Examples
    --------
    >>> from factorykit.model.uncertainty.distributions import Uniform
    >>> run = {"active_parameters": 405e9, "tokens": 15.6e12, "cluster_peak_flop_per_s": 16384 * 989e12}
    >>> days = sample(run, {"mfu": Uniform(0.35, 0.45)}, "training_days", n=256)
    >>> [round(value) for value in bands(days, "training_days").row(0)[1:]]
    [61, 68, 76]
    """
    distributions, n = check(distributions), integer("n", n)
    if n < 1:
        raise ScenarioError("n = 0; give at least one draw, such as 1024")
    if n > MOST[kind := one_of("method", method, MOST)]:
        raise ScenarioError(f"n = {n:,} draws are more than {MOST[kind]:,}, the most by {kind}; give fewer")
    axes = {} if grid is None or (isinstance(grid, Mapping) and not mapping("grid", grid)) else axes_of(grid)
    question = Question.read(inputs, outputs, using=using, assume=assume, varying=distributions | axes)
    design = Drawn(distributions, n, integer("seed", seed), kind, axes, question)
    if out is None and design.rows <= ROWS_IN_MEMORY:
        return design.rows_between(0, design.rows)
    return answered(design, out, "sample", engine)


@dataclass(frozen=True)
class Drawn(Numbered):
    """Draws from distributions, all of them at every combination of some values."""

    distributions: Mapping[str, Distribution]
    n: int
    seed: int
    method: str
    axes: Mapping[str, tuple[Any, ...]]
    question: Question

    @property
    def rows(self) -> int:
        """Draws at every combination."""
        return self.n * math.prod(map(len, self.axes.values()))

    @property
    def rows_a_part(self) -> int:
        """Number of rows in a part."""
        return max_part_rows(self.question, [*self.axes, *self.distributions])

    def rows_between(self, first: int, last: int) -> pl.DataFrame:
        """Return the rows from ``first`` to before ``last``."""
        row, places, columns = pl.int_range(first, last, dtype=pl.Int64, eager=True), self.rows // self.n, {}
        for name, values in self.axes.items():
            places //= len(values)
            columns[name] = column_of(name, values).gather(row // (self.n * places) % len(values))
        cube = self._cube(first, last)
        for i, (name, distribution) in enumerate(self.distributions.items()):
            columns[name] = need("numpy").asarray(distribution.ppf(cube[:, i]), dtype=float)
        return evaluate_rows(self.question, pl.DataFrame(columns)).select((row % self.n).alias("draw"), pl.all())

    def _cube(self, first: int, last: int) -> Any:
        """Return the points of the unit cube at which the rows are drawn."""
        np = need("numpy")
        if self.n <= max(self.rows_a_part, last - first):
            return self._points[np.arange(first, last) % self.n]
        cuts = [first, *range(first - first % self.n + self.n, last, self.n), last]
        pieces = [(low % self.n, low % self.n + high - low) for low, high in pairwise(cuts)]
        return np.concatenate(
            [points_between(len(self.distributions), self.n, self.seed, self.method, *p) for p in pieces]
        )

    @cached_property
    def _points(self) -> Any:
        return points_between(len(self.distributions), self.n, self.seed, self.method, 0, self.n)

    def describe(self) -> dict[str, Any]:
        """Return the question, the distributions and the method of the draws."""
        distributions = {name: repr(distribution) for name, distribution in self.distributions.items()}
        drawn = {"distributions": distributions, "n": self.n, "seed": self.seed, "method": self.method}
        return self.question.describe() | drawn | {"grid": {name: list(values) for name, values in self.axes.items()}}


def bands(
    frame: pl.DataFrame,
    outputs: str | Iterable[str],
    shares: Sequence[float] = (0.05, 0.5, 0.95),
    *,
    by: str | Sequence[str] = (),
) -> pl.DataFrame:
    """Return quantiles of sampled outputs.

    Parameters
    ----------
    frame
        Rows of :func:`sample`.
    outputs
        Columns to summarise.
    shares
        Which quantiles; by default the middle and the ends of a 90 % band.
    by
        Columns of the grid, for a band along an axis.

    Returns
    -------
    DataFrame
        One row per output, or per grid point and output: ``by``, ``quantity``, then one column per share, named
        ``p05``, ``p50``, ``p95``.

    >>> import polars as pl
    >>> bands(pl.DataFrame({"mfu": [0.3, 0.4, 0.5]}), "mfu", (0.0, 0.5, 1.0)).rows()
    [('mfu', 0.3, 0.4, 0.5)]
    """
    names, keys = strings("outputs", outputs), strings("by", by)
    columns = {_share_name(share): float(share) for share in as_list("shares", shares)}
    frame = _sampled(frame, [*names, *keys])
    long = frame.unpivot(names, index=keys, variable_name="quantity", value_name="value")
    quantiles = [pl.col("value").quantile(share, "linear").alias(name) for name, share in columns.items()]
    return long.group_by(*keys, "quantity", maintain_order=True).agg(quantiles)


def _share_name(share: float) -> str:
    if not is_number(share) or not 0.0 <= share <= 1.0:
        raise ScenarioError(f"share = {short_repr(share)} is outside [0, 1]; give fractions, e.g. 0.05")
    return f"p{100 * float(share):04.1f}".removesuffix(".0").replace(".", "_")


def exceedance(frame: pl.DataFrame, output: str, points: int = 200) -> pl.DataFrame:
    """Return how likely an output is to exceed a value.

    Returns
    -------
    DataFrame
        At most ``points`` rows: the output, rising, and ``exceedance``, the share of draws above it. Draws without a
        result (null or NaN) do not count.

    >>> import polars as pl
    >>> exceedance(pl.DataFrame({"pue": [1.1, 1.2, 1.3, 1.4]}), "pue").rows()
    [(1.1, 0.75), (1.2, 0.5), (1.3, 0.25), (1.4, 0.0)]
    >>> exceedance(pl.DataFrame({"spare_nodes": [1.0, 1.0, 2.0, 1.0]}), "spare_nodes").rows()
    [(1.0, 0.25), (2.0, 0.0)]
    """
    frame = _sampled(frame, [string("output", output)])
    if not frame.schema[output].is_numeric():
        raise ScenarioError(f"column {output} is {frame.schema[output]}, not numeric; give an output that is a number")
    if integer("points", points) < 2:
        raise ScenarioError(f"points = {points!r} is too few for a curve; give 2 or more")
    results = frame.select(output).drop_nulls().drop_nans().sort(output)
    if results.is_empty():
        raise ScenarioError(f"{output} has no result in any of {frame.height} draws; evaluate one to see the reason")
    curve = results.with_columns(exceedance=1.0 - pl.int_range(1, pl.len() + 1) / pl.len())
    curve = curve.unique(output, keep="last", maintain_order=True)
    if curve.height <= points:
        return curve
    return curve[[round(i * (curve.height - 1) / (points - 1)) for i in range(points)]]


def _sampled(frame: pl.DataFrame, names: Iterable[str]) -> pl.DataFrame:
    frame = validation.frame("the sample", frame)
    if frame.is_empty():
        raise ScenarioError("the frame has no rows; give the rows of a sample")
    for name in names:
        if name not in frame.columns:
            raise ScenarioError(f"the frame has no column {short_repr(name)}; there are {', '.join(frame.columns)}")
        if frame.schema[name] == pl.Object:
            raise ScenarioError(f"column {short_repr(name)} holds objects of Python; give numbers or texts")
    return frame


def sensitivity(
    inputs: Mapping[str, Any],
    distributions: Mapping[str, Distribution],
    outputs: QuantityName | str | Iterable[QuantityName | str],
    n: int = 4096,
    seed: int = 0,
    *,
    swing: tuple[float, float] = (0.05, 0.95),
    using: Mapping[str, str] | None = None,
    assume: bool = False,
) -> pl.DataFrame:
    """Return the sensitivity of outputs to uncertain inputs.

    Two views side by side: Sobol indices, the share of the output's variance that an input explains alone and together
    with the others; and one-at-a-time bars, the output with this input low and high and all others at their medians.

    Parameters
    ----------
    inputs, distributions, using, assume
        As in :func:`sample`. The uncertain inputs are independent of each other.
    outputs
        One quantity or several.
    n
        Draws per matrix, a power of two; ``n * (inputs + 2)`` rows are evaluated.
    seed
        The same seed gives the same indices.
    swing
        Quantiles of the low and the high end of a bar.

    Returns
    -------
    DataFrame
        One row per output and input, the widest bar first: ``output``, ``input``, ``first_order``, ``total`` [1],
        ``input_low``, ``input_high`` in the input's unit, ``output_low``, ``output_median``, ``output_high`` in the
        output's unit. Indices are null where the output does not vary.

    Examples
    --------
    >>> from factorykit.model.uncertainty.distributions import LogNormal, Uniform
    >>> known = {"accelerators": 16384.0, "rental_usd_per_accelerator_h": 2.0}
    >>> doubt = {"active_parameters": LogNormal(100e9, 400e9), "mfu": Uniform(0.3, 0.5)}
    >>> run = known | {"tokens": 15e12, "peak_flop_per_s": 989e12, "goodput": 0.9}
    >>> sensitivity(run, doubt, "rental_cost_usd", n=256)["input"].to_list()
    ['active_parameters', 'mfu']
    """
    distributions = check(distributions)
    names = strings("outputs", outputs)
    question = Question.read(inputs, names, using=using, assume=assume, varying=distributions)

    def computed(columns: Mapping[str, Any]) -> Any:
        return evaluate_rows(question, pl.DataFrame(dict(columns))).select(names).to_numpy().T

    first, total = indices(computed, distributions, n, seed)
    bars = _bars(computed, distributions, swing)
    rows = [
        (output, name, first[o, i], total[o, i], *bars[i][0], *bars[i][1][o])
        for o, output in enumerate(names)
        for i, name in enumerate(distributions)
    ]
    ends = ("input_low", "input_high", "output_low", "output_median", "output_high")
    schema = {"output": pl.String, "input": pl.String} | dict.fromkeys(("first_order", "total", *ends), pl.Float64)
    frame = pl.DataFrame(rows, schema, orient="row").with_columns(pl.col("first_order", "total").fill_nan(None))
    width = (pl.col("output_high") - pl.col("output_low")).abs()
    place = pl.col("output").replace_strict({name: i for i, name in enumerate(names)}, return_dtype=pl.Int64)
    return frame.sort(place, width, descending=[False, True], maintain_order=True)


def indices(
    function: Callable[[Mapping[str, Any]], Any],
    distributions: Mapping[str, Distribution],
    n: int = 4096,
    seed: int = 0,
) -> tuple[Any, ...]:
    """Return Sobol indices of any function of independent inputs.

    Parameters
    ----------
    function
        Takes a mapping of arrays, one per input, and returns an array of shape (outputs, rows).
    distributions
        The inputs.
    n
        Draws per matrix, a power of two.
    seed
        The same seed gives the same indices.

    Returns
    -------
    tuple of arrays
        First-order and total indices, each of shape (outputs, inputs), by SciPy's estimators of Saltelli (2010); NaN
        for an output that does not vary.
    """
    need("scipy.stats.qmc")
    import numpy as np
    from scipy.stats import sobol_indices

    n = integer("n", n)
    if n < 2 or n & (n - 1):
        raise ScenarioError(f"n = {n!r} is no power of two; give one, such as 4096")
    if (rows := n * (len(distributions) + 2)) > ROWS_IN_MEMORY:
        raise ScenarioError(f"n = {n:,} draws make {rows:,} rows; give fewer, at most {ROWS_IN_MEMORY:,} rows")
    names = list(distributions)

    medians = {name: np.full(1, distribution.ppf(0.5)) for name, distribution in distributions.items()}
    middle = np.asarray(function(medians))
    varies = np.zeros(len(middle), dtype=bool)

    def on_rows(x: Any) -> Any:
        """Return outputs less their value at the medians, and an input that varies, so that SciPy meets no scalar."""
        values = np.asarray(function({name: np.ascontiguousarray(x[i]) for i, name in enumerate(names)})) - middle
        varies[:] |= (values != 0.0).any(axis=1)
        return np.vstack([values, x[:1]])

    sobol = sobol_indices(func=on_rows, n=n, dists=[distributions[name] for name in names], rng=integer("seed", seed))
    shape = (len(middle) + 1, len(names))
    parts = (np.reshape(part, shape)[:-1] for part in (sobol.first_order, sobol.total_order))
    return tuple(np.where(varies[:, None], part, np.nan) for part in parts)


def _bars(
    computed: Callable[[Mapping[str, Any]], Any], distributions: Mapping[str, Distribution], swing: tuple[float, float]
) -> list[tuple[tuple[float, float], list[tuple[float, float, float]]]]:
    import numpy as np

    low, high = pair if len(pair := as_list("swing", swing)) == 2 else (1.0, 0.0)
    if not (is_number(low) and is_number(high) and 0.0 <= low < high <= 1.0):
        raise ScenarioError(f"swing = {short_repr(swing)} is no rising pair in [0, 1]; give e.g. (0.05, 0.95)")
    medians = {name: float(d.ppf(0.5)) for name, d in distributions.items()}
    columns = {name: np.full(2 * len(distributions) + 1, medians[name]) for name in distributions}
    ends = []
    for i, (name, distribution) in enumerate(distributions.items()):
        ends.append((float(distribution.ppf(low)), float(distribution.ppf(high))))
        columns[name][2 * i : 2 * i + 2] = ends[-1]
    results = computed(columns)
    middle = results[:, -1]
    return [
        (ends[i], [(row[2 * i], middle[o], row[2 * i + 1]) for o, row in enumerate(results)]) for i in range(len(ends))
    ]
