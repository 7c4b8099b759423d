"""Readers of published failure records: times between failures and repair times.

The records are not shipped. Each reader checks the publisher's columns and returns durations for
:func:`factorykit.lifetimes.fit`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import polars as pl

from factorykit.core import text_io
from factorykit.core.constants import SECONDS_PER_DAY, SECONDS_PER_HOUR, SECONDS_PER_MINUTE
from factorykit.core.errors import DatasetError, short_repr
from factorykit.core.extras import public_names
from factorykit.core.validation import file_path

__dir__ = public_names(__name__)

MOMENT, MOMENT_SHOWN = "%m/%d/%Y %H:%M", "12/31/2004 23:59"
ROUNDED_H = 0.01
"""Hours by which the repair in a trace may miss the time from its start to its end: days have four digits."""
LANL_CAUSES = ("Facilities", "Hardware", "Human Error", "Network", "Undetermined", "Software")


def stepfun(path: str) -> pl.DataFrame:
    """Read StepFun's trace of faults on 400 servers, or any trace with its columns.

    Parameters
    ----------
    path
        CSV with ``node``, ``start_day``, ``end_day``, ``repair_hours`` and ``fault_class``: the file of the connector
        ``infinitehbd_faults``.

    Returns
    -------
    DataFrame
        One row per fault in the order of its start, plus one row for the time since the last fault: ``node``;
        ``cause``; ``gap_s`` [s] since the fault before, anywhere in the fleet; ``gap_observed``, false in the last row;
        ``repair_s`` [s] and ``repair_observed``, false where the repair was still going on at the end of the trace.
        Zero gaps and repairs are kept.

    Raises
    ------
    DatasetError
        If the file cannot be read or lacks a column, a cell is not of its kind, or a repair contradicts its days.

    References
    ----------
    .. [1] C. Shou et al., "InfiniteHBD," SIGCOMM 2025, arXiv:2502.03885; data at
       https://github.com/stepfun-ai/InfiniteHBD-Trace (Apache-2.0).
    """
    rows = _rows(path, ("start_day", "end_day", "repair_hours"), ("node", "fault_class"))
    lasted = (pl.col("end_day") - pl.col("start_day")) * (SECONDS_PER_DAY / SECONDS_PER_HOUR)
    odd = rows.with_row_index("row", 1).filter((lasted - pl.col("repair_hours")).abs() > ROUNDED_H)
    if odd.height:
        raise DatasetError(
            f"{path}: repair_hours = {odd['repair_hours'][0]:g} in row {odd['row'][0]} is not the time from start_day "
            "to end_day; correct one of them",
            odd,
        )
    rows = rows.sort("start_day", maintain_order=True)
    end = float(rows.select(pl.max_horizontal(pl.col("start_day").max(), pl.col("end_day").max())).item())
    faults = rows.select(
        "node",
        pl.col("fault_class").alias("cause"),
        (pl.col("start_day").diff() * SECONDS_PER_DAY).alias("gap_s"),
        pl.col("start_day").diff().is_not_null().alias("gap_observed"),
        (pl.col("repair_hours") * SECONDS_PER_HOUR).alias("repair_s"),
        (pl.col("end_day") < end).alias("repair_observed"),
    )
    quiet = rows.select(
        ((end - pl.col("start_day").max()) * SECONDS_PER_DAY).alias("gap_s"), gap_observed=pl.lit(False)
    )
    return pl.concat([faults, quiet], how="diagonal")


def lanl(path: str) -> pl.DataFrame:
    """Read the failures of the large systems at Los Alamos from 1996 to 2005 (LA-UR-05-7318).

    Parameters
    ----------
    path
        ``LA-UR-05-7318-failure-data-1996-2005.csv``, or the same packed as ``.xz``.

    Returns
    -------
    DataFrame
        One row per failure, by system and in the order of its start: ``system`` [1], ``node`` [1], ``cause`` (null
        where none is marked), ``started``, ``gap_s`` [s] since the failure before in the same system, null for its
        first, and ``repair_s`` [s], the down time. Zero gaps, failures noted for the same minute, are kept.

    Raises
    ------
    DatasetError
        If the file cannot be read or lacks a column, or a cell is not of its kind.

    References
    ----------
    .. [1] Los Alamos National Laboratory, LA-UR-05-7318, "Raw data on failures and interrupts," with its record layout;
       they ask to be named.
    .. [2] B. Schroeder and G. A. Gibson, "A large-scale study of failures in high-performance computing systems," DSN
       2006.
    """
    rows = _rows(path, ("System", "nodenumz", "Down Time"), LANL_CAUSES, moments=("Prob Started",))
    causes = pl.coalesce(pl.when(pl.col(name).is_not_null()).then(pl.lit(name)) for name in LANL_CAUSES)
    faults = rows.select(
        pl.col("System").alias("system"),
        pl.col("nodenumz").alias("node"),
        causes.alias("cause"),
        pl.col("Prob Started").alias("started"),
        (pl.col("Down Time") * SECONDS_PER_MINUTE).alias("repair_s"),
    ).sort("system", "started", maintain_order=True)
    gap = pl.col("started").diff().over("system").dt.total_seconds().cast(pl.Float64)
    return faults.select("system", "node", "cause", "started", gap.alias("gap_s"), "repair_s")


def titan(path: str) -> pl.DataFrame:
    """Read the lives of the 30,207 GPUs of Titan at Oak Ridge.

    Parameters
    ----------
    path
        ``gc_summary_loc.csv``: one row per GPU.

    Returns
    -------
    DataFrame
        One row per GPU: ``gpu`` (serial number), ``batch`` (old, or new after the rework of 2016 and 2017), ``life_s``
        [s] in service, ``dead``, false for a GPU that was still fine at the end or taken out for another reason,
        ``dead_memory`` (double-bit error) and ``dead_bus`` (off the bus); one GPU can be both.

    Raises
    ------
    DatasetError
        If the file cannot be read or lacks a column, or a cell is not of its kind.

    References
    ----------
    .. [1] G. Ostrouchov et al., "GPU lifetimes on Titan supercomputer: survival analysis and reliability," SC 2020;
       data at https://github.com/olcf/TitanGPULife.

    Examples
    --------
    The rate of a batch and its exact limits, in failures per GPU and year::

        new = fk.fault_traces.titan("gc_summary_loc.csv").filter(batch="new")
        years = new["life_s"].sum() / (365 * 86400)
        new["dead"].sum() / years, fk.reliability.rate_interval(float(new["dead"].sum()), years)
    """
    rows = _rows(path, ("time",), ("SN", "batch"), flags=("dead", "dead_dbe", "dead_otb"))
    return rows.select(
        pl.col("SN").alias("gpu"),
        "batch",
        pl.col("time").alias("life_s"),
        "dead",
        pl.col("dead_dbe").alias("dead_memory"),
        pl.col("dead_otb").alias("dead_bus"),
    )


def _rows(
    path: str,
    numbers: tuple[str, ...],
    words: tuple[str, ...],
    flags: tuple[str, ...] = (),
    moments: tuple[str, ...] = (),
) -> pl.DataFrame:
    """Return the columns of a record; a cell that is not of its column's kind is refused by line."""
    content, path = text_io.read_bytes(path), str(file_path("path", path))
    try:
        cells = text_io.csv_columns(content)
    except ValueError as error:
        raise DatasetError(f"{path} cannot be read: it {error}; give the file of the publisher") from None
    kinds: Mapping[str, tuple[Callable[[str], Any], type[pl.DataType], str]] = (
        dict.fromkeys(numbers, (_amount, pl.Float64, "number from 0 on"))
        | dict.fromkeys(words, (lambda cell: cell or None, pl.String, "text"))
        | dict.fromkeys(flags, ({"TRUE": True, "FALSE": False}.__getitem__, pl.Boolean, "TRUE or FALSE"))
        | dict.fromkeys(moments, (_moment, pl.Datetime, f"moment such as {MOMENT_SHOWN}"))
    )
    if missing := [name for name in kinds if name not in cells]:
        raise DatasetError(f"{path}: no column {', '.join(missing)}; this record has {', '.join(kinds)}")
    if not cells[next(iter(kinds))]:
        raise DatasetError(f"{path} has a header and no rows; give the file of the publisher")
    series = []
    for name, (read, dtype, expected) in kinds.items():
        values = []
        for row, cell in enumerate(cells[name], 1):
            try:
                values.append(read(cell.strip()))
            except (ValueError, KeyError):
                raise DatasetError(
                    f"{path}: {name} = {short_repr(cell)} in row {row} must be a {expected}; correct it"
                ) from None
        series.append(pl.Series(name, values, dtype))
    return pl.DataFrame(series)


def _amount(cell: str) -> float:
    value = text_io.parse_number(cell)
    if value is None or value < 0.0:
        raise ValueError
    return value


def _moment(cell: str) -> datetime:
    return datetime.strptime(cell, MOMENT)
