"""Measurements of training runs: step times and memory that the rows of a frame state."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import polars as pl

from factorykit.core import units, validation
from factorykit.core.errors import ScenarioError, nearest, short_repr, warn
from factorykit.core.vocabulary import quantity
from factorykit.data.tables import table
from factorykit.engine.evaluate import evaluate
from factorykit.model.performance import source_terms
from factorykit.model.performance.run_cells import COLUMNS, MAX_NUMBER, NEEDED, NUMERIC, TEXTS

GIB: Final = 2.0**30
MEASURED: Final = {
    "step_time_s": ("seconds", "step_s", 1.0),
    "tokens_per_s_per_gpu": ("tokens per second", None, 1.0),
    "mfu": ("a share, at most 1,", None, 1.0),
    "hfu": ("a share, at most 1,", None, 1.0),
    "tflops_per_gpu": ("TFLOP/s", "peak_flop_per_s", 1e12),
    "mem_gib_per_gpu": ("GiB", "memory_peak_bytes", GIB),
}
"""Columns of measurements that give a step time or a memory: their unit in words, the quantity as which a cell with a
unit is read, and the unit in that of the quantity."""
MAX_COLUMNS_SHOWN: Final = 8
"""Columns of a frame that a message lists."""
MAX_LISTED: Final = 5
"""Columns or rows that a warning lists."""


def tidied(rows: Any) -> pl.DataFrame:
    """Return rows of training runs as a frame with text in the columns of text.

    Raises
    ------
    ScenarioError
        If they are no frame, are empty, have none of the columns that a prediction needs, or have lists in one.
    """
    frame = validation.frame("rows", rows).with_columns(pl.col(pl.Float32, pl.Float64).fill_nan(None))
    if frame.height == 0:
        raise ScenarioError("the frame has no rows; nothing can be validated")
    needed = ("hardware", *NEEDED)
    if not set(needed) & set(frame.columns):
        got = ", ".join(frame.columns[:MAX_COLUMNS_SHOWN]) or "none"
        raise ScenarioError(
            f"rows must have columns of fk.table('training_runs') such as {', '.join(needed)}, got columns {got}"
        )
    read = [name for name in (*TEXTS, *NUMERIC, *MEASURED) if name in frame.columns]
    for name in read:
        if frame.schema[name].is_nested():
            raise ScenarioError(f"column {name} is {frame.schema[name]}; give one number or text a row")
    texts = [name for name in read if name in TEXTS or not frame.schema[name].is_numeric()]
    frame = frame.with_columns(pl.col(texts).cast(pl.String, strict=False).str.strip_chars())
    _warn_of_unread(frame)
    _warn_of_unknown(frame)
    return frame


def _warn_of_unknown(frame: pl.DataFrame) -> None:
    """Warn of columns that are not read, with the nearest that is."""
    known = sorted({*table("training_runs").collect_schema(), *COLUMNS, *MEASURED})
    unknown = [name for name in frame.columns if name not in known]
    near = [(name, nearest(name.lower(), known, 0.7)) for name in unknown[:MAX_LISTED]]
    listed = [f"{short_repr(name)} (nearest is {close!r})" if close else short_repr(name) for name, close in near]
    listed += [f"{len(unknown) - MAX_LISTED} more"] if len(unknown) > MAX_LISTED else []
    if listed:
        warn(f"columns that the table training_runs does not have are not read: {', '.join(listed)}")


def positive(rows: pl.DataFrame, name: str, most: float = MAX_NUMBER) -> pl.Expr:
    """Return a column as numbers above zero and up to ``most``; other cells are null."""
    number = pl.col(name) if name in rows.columns else pl.lit(None, dtype=pl.Float64)
    if rows.schema.get(name) == pl.String:
        _, known_as, unit = MEASURED.get(name, ("", None, 1.0))
        number = number.map_elements(lambda text: measured_number(text, known_as, unit), return_dtype=pl.Float64)
    number = number.cast(pl.Float64, strict=False)
    return pl.when((number > 0.0) & (number <= most)).then(number)


def measured_number(text: str, known_as: str | None, unit: float) -> float | None:
    """Return the number in a cell, or None; a cell with a unit is read as a quantity and divided by the column's unit.

    >>> measured_number("~1,400 TFLOPs/GPU", "peak_flop_per_s", 1e12), measured_number("21.5K tok/s/GPU", None, 1.0)
    (1400.0, 21500.0)
    """
    plain = re.sub(r"^(?:~|\u2248|about|ca\.?) *| *\(.*\)$|(?<=\d),(?=\d{3}\b)", "", text)
    number = source_terms.number(re.sub(r"(?i) ?(?:t|tok|tokens?)\w*(?: ?/| per |/? ?s).*$| ?[mh]fu$", "", plain))
    if number is None and known_as:
        plain = re.sub(r"(?i)flops\b", "FLOPS", re.sub(r" ?/ ?(?:it|iter|step)\w*$", "", plain))
        with contextlib.suppress(ScenarioError):
            return units.parse(quantity(known_as), plain) / unit
    return number


def warn_of_lost(name: str, cells: Sequence[Any], unit: str) -> None:
    """Warn of measured cells that are not numbers of their column, which nothing is compared with."""
    if cells:
        stated = ", ".join(map(short_repr, cells[:3]))
        warn(f"{name} = {stated} {'is' if len(cells) == 1 else 'are'} not compared; give {unit} above 0")


def _warn_of_unread(rows: pl.DataFrame) -> None:
    """Warn of measured cells that are not numbers of their column, which nothing is compared with."""
    for name in (name for name in MEASURED if name in rows.columns):
        read = positive(rows, name, 1.0 if name in ("mfu", "hfu") else MAX_NUMBER)
        given = pl.col(name).cast(pl.String, strict=False)
        lost = rows.filter(given.is_not_null() & (given != "") & read.is_null())[name].unique(maintain_order=True)
        warn_of_lost(name, lost.to_list(), MEASURED[name][0])


def measured_step_s(rows: pl.DataFrame, ready: pl.DataFrame) -> pl.Series:
    """Return the measured time of a step: printed, or batch tokens over throughput, or batch FLOP over the FLOP rate.

    Where only a FLOP rate, an MFU or an HFU is printed, the whole attention square is counted, as most such sources
    do, MFU is of the dense 16-bit peak, and hardware FLOP include the recomputed forward pass. Such a rate needs the
    row's scenario, from ``ready``. A cell that is no positive number measures nothing, nor does a rate above the peak.
    """
    runs = ready if ready.is_empty() else ready.unique("row", keep="first", maintain_order=True)
    if not runs.is_empty():
        tokens, count = pl.col("global_batch_size") * pl.col("sequence_length"), pl.col("accelerators")
        read = runs.select("row", read_tokens=tokens, accelerator_count=count / pl.col("chip_devices"))
        numbered = rows.drop("accelerator_count", strict=False).with_row_index("row").cast({"row": pl.Int64})
        rows = numbered.join(read, on="row", how="left", maintain_order="left")
    column, share = partial(positive, rows), partial(positive, rows, most=1.0)
    basis = pl.col("flops_basis") if "flops_basis" in rows.columns else pl.lit(None, dtype=pl.String)
    of_hardware = (basis == "hardware") | (column("tflops_per_gpu").is_null() & share("mfu").is_null())
    batch_tokens = pl.coalesce(
        column("global_batch_tokens"), column("global_batch") * column("seq_len"), column("read_tokens")
    )
    rate = column("tokens_per_s_per_gpu") * column("accelerator_count")
    printed = rows.select(
        pl.int_range(pl.len(), dtype=pl.Int64).alias("row"),
        pl.coalesce(column("step_time_s"), batch_tokens / rate).alias("printed_s"),
        (batch_tokens / column("accelerator_count")).alias("tokens"),
        (column("tflops_per_gpu") * 1e12).alias("flop_per_s"),
        pl.coalesce(share("mfu"), share("hfu")).alias("utilization"),
        of_hardware.alias("of_hardware"),
    )
    if runs.is_empty():
        return printed["printed_s"].alias("measured_s")
    flop_per_token = "model_flop_per_token_full_attention"
    wide = printed.join(evaluate(runs, [flop_per_token]), on="row", how="left", maintain_order="left")
    passes = 1.0 + pl.when("of_hardware").then(pl.col("recompute_share") / 3.0).otherwise(0.0)
    achieved = pl.coalesce("flop_per_s", pl.col("utilization") * pl.col("peak_16bit_flop_per_s"))
    possible = pl.when(achieved <= pl.col("peak_flop_per_s")).then(achieved)
    derived = pl.col("tokens") * pl.col(flop_per_token) * passes / possible
    return wide.select(measured_s=pl.coalesce("printed_s", derived))["measured_s"]
