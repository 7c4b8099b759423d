"""Every combination of given values, as one frame or streamed to Parquet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from factorykit.borders import file_path, need, one_of, renamed, several
from factorykit.errors import FactorykitError, ScenarioError
from factorykit.model.engine.evaluate import evaluate
from factorykit.model.engine.read import Outputs, checked, chosen, value
from factorykit.quantities import quantity

if TYPE_CHECKING:
    import polars as pl

ROWS_IN_MEMORY = 50_000_000
"""Above this a sweep has to name a file: a few output columns more and it would not fit an ordinary machine."""


@overload
def sweep(
    inputs: Mapping[str, Any],
    grid: Mapping[str, Sequence[Any]],
    outputs: Outputs = None,
    out: None = None,
    engine: Literal["local", "ray"] = "local",
    *,
    using: Mapping[str, str] | None = None,
    assume: bool = False,
) -> pl.DataFrame: ...
@overload
def sweep(
    inputs: Mapping[str, Any],
    grid: Mapping[str, Sequence[Any]],
    outputs: Outputs,
    out: str | Path,
    engine: Literal["local", "ray"] = "local",
    *,
    using: Mapping[str, str] | None = None,
    assume: bool = False,
) -> pl.LazyFrame: ...
@renamed(base="inputs")
def sweep(
    inputs: Mapping[str, Any],
    grid: Mapping[str, Sequence[Any]],
    outputs: Outputs = None,
    out: str | Path | None = None,
    engine: Literal["local", "ray"] = "local",
    *,
    using: Mapping[str, str] | None = None,
    assume: bool = False,
) -> pl.DataFrame | pl.LazyFrame:
    """Evaluate every combination of the values in ``grid``.

    Parameters
    ----------
    inputs
        Quantities with one value, as in :func:`factorykit.evaluate`; the grid takes the place of a value.
    grid
        Values by quantity, words such as accelerators among them; the last quantity changes fastest.
    outputs
        Quantities asked for; by default everything that the inputs allow.
    out
        A Parquet file to stream to, in bounded memory; written whole or not at all. With ``engine="ray"`` a folder
        that does not exist yet.
    engine
        ``"local"``: polars on this machine. ``"ray"``: Ray Data, on the cluster that Ray is connected to.
    using
        Which model stands for a quantity that has rivals.
    assume
        Whether sourced defaults fill what nobody gave, as in :func:`factorykit.evaluate`.

    Returns
    -------
    DataFrame or LazyFrame
        One row per combination: the grid, then the outputs. With ``out``, a scan of what was written.

    Raises
    ------
    FactorykitError
        As :func:`factorykit.evaluate`, and for an empty grid or too many rows to return.

    Examples
    --------
    >>> run = {"active_parameters": 405e9, "tokens": 15.6e12, "accelerators": 16384, "peak_flop_per_s": 989e12}
    >>> sweep(run, {"mfu": [0.3, 0.4]}, "training_days")["training_days"].round(1).to_list()
    [90.3, 67.7]
    """
    import polars as pl

    one_of("engine", engine, ("local", "ray"))
    axes = axes_of(grid)
    values, rivals = checked(inputs, without=axes)
    rivals |= chosen(using)
    _evaluated(_ends(axes), values, outputs, rivals, assume)
    if engine == "ray":
        return _on_ray(values, axes, outputs, out, rivals, assume)
    lazy = _evaluated(_rows(axes), values, outputs, rivals, assume)
    if out is None:
        _refuse_many(axes)
        return lazy.collect(engine="streaming")
    path = file_path("out", out)
    part = path.with_name(f".{path.name}.part")
    try:
        lazy.sink_parquet(part)
        part.replace(path)
    except OSError as error:
        raise FactorykitError(f"{path} cannot be written: {error}; name a file in a folder that exists") from None
    finally:
        part.unlink(missing_ok=True)
    return pl.scan_parquet(path)


def axes_of(grid: Mapping[str, Sequence[float]]) -> dict[str, list[float | str]]:
    """Return the values of each quantity of a grid, checked.

    Raises
    ------
    UnknownQuantity, ScenarioError
    """
    if not isinstance(grid, Mapping):
        raise ScenarioError(f"grid is {type(grid).__name__}; give a mapping such as {{'mfu': [0.3, 0.4]}}")
    if not grid:
        raise ScenarioError("the grid is empty; give values for at least one quantity, e.g. {'mfu': [0.3, 0.4]}")
    axes = {}
    for name, values in grid.items():
        row = quantity(name)
        axes[name] = [value(row, given) for given in several(f"grid: {name}", values)]
        if not axes[name]:
            raise ScenarioError(f"grid: {name} has no values; give at least one")
    return axes


def column_of(name: str, values: Sequence[Any]) -> pl.Series:
    """Return the values of a quantity as a column: words as text, all else as doubles."""
    import polars as pl

    return pl.Series(values, dtype=pl.String if quantity(name).is_text else pl.Float64)


def combinations(axes: Mapping[str, Sequence[Any]]) -> int:
    """Return how many rows a grid has.

    >>> combinations({"mfu": [0.3, 0.4], "pue": [1.1, 1.2, 1.3]})
    6
    """
    count = 1
    for values in axes.values():
        count *= len(values)
    return count


def _refuse_many(axes: Mapping[str, Sequence[Any]]) -> None:
    rows = combinations(axes)
    if rows > ROWS_IN_MEMORY:
        raise ScenarioError(f"the grid has {rows:,} rows, more than {ROWS_IN_MEMORY:,}; name a file with out=")


def _rows(axes: Mapping[str, Sequence[Any]]) -> pl.LazyFrame:
    import polars as pl

    first, *others = [pl.LazyFrame({name: column_of(name, values)}) for name, values in axes.items()]
    for axis in others:
        first = first.join(axis, how="cross", maintain_order="left_right")
    return first


def _ends(axes: Mapping[str, Sequence[Any]]) -> pl.DataFrame:
    """Return a few combinations that hold every word and the ends of every series of numbers.

    Evaluated eagerly, they show what is missing or contradicts.
    """
    import polars as pl

    seen = {name: values if quantity(name).is_text else [values[0], values[-1]] for name, values in axes.items()}
    rows = max(map(len, seen.values()))
    return pl.DataFrame(
        {name: column_of(name, [values[i % len(values)] for i in range(rows)]) for name, values in seen.items()}
    )


def _evaluated(rows: Any, values: Mapping[str, Any], outputs: Outputs, using: Mapping[str, str], assume: bool) -> Any:
    """Return ``rows`` with the outputs and without the base, lazy or not as they came."""
    import polars as pl

    axes = rows.collect_schema().names()
    wider = evaluate(
        rows.with_columns(pl.lit(value).alias(name) for name, value in values.items()),
        outputs,
        using=using,
        assume=assume,
    )
    asked = [outputs] if isinstance(outputs, str) else list(outputs or ())
    new = [name for name in wider.collect_schema().names() if name not in values and name not in axes]
    return wider.select(list(dict.fromkeys([*axes, *new, *asked])))


def _on_ray(
    values: Mapping[str, Any],
    axes: Mapping[str, Sequence[Any]],
    outputs: Outputs,
    out: str | Path | None,
    using: Mapping[str, str],
    assume: bool,
) -> pl.LazyFrame:
    """Count the combinations, and let each batch of numbers become rows where it is evaluated."""
    import polars as pl

    ray_data = need("ray.data")
    if out is None:
        raise ScenarioError("engine='ray' writes Parquet; name a folder with out=")
    if Path(out).exists():
        raise ScenarioError(f"{out} exists; name a folder that does not, so that no old part is left in it")

    def batch(numbers: Any) -> Any:
        index = pl.from_arrow(numbers)
        return _evaluated(_decoded(index, axes), values, outputs, using, assume).to_arrow()  # type: ignore[arg-type]

    ray_data.range(combinations(axes)).map_batches(batch, batch_format="pyarrow").write_parquet(str(out))
    return pl.scan_parquet(Path(out) / "*.parquet")


def _decoded(index: pl.DataFrame, axes: Mapping[str, Sequence[Any]]) -> pl.DataFrame:
    """Return the combinations with these numbers, counted as in :func:`_rows`."""
    import polars as pl

    columns, stride = {}, combinations(axes)
    for name, values in axes.items():
        stride //= len(values)
        digit = index["id"] // stride % len(values)
        columns[name] = column_of(name, values).gather(digit)
    return pl.DataFrame(columns)
