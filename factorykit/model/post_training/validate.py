"""Comparison of predicted with published steps of post-training."""

from __future__ import annotations

from typing import Any

import polars as pl

from factorykit.core import validation
from factorykit.core.errors import FactorykitError, ScenarioError
from factorykit.core.extras import need
from factorykit.data.tables import table
from factorykit.model.post_training.predict import interval, left_out, predicted, published
from factorykit.model.post_training.rows import read_step
from factorykit.model.serving.points import renamed


def validate_post_training(rows: Any = None) -> pl.DataFrame:
    """Predict published steps of post-training, and compare.

    Parameters
    ----------
    rows
        A polars frame with columns of the ``rl_steps`` table or usual other names of them; measured columns may be
        missing. By default the shipped table, each step predicted with constants that were found without its
        configuration (model, accelerators and policy).

    Returns
    -------
    polars.DataFrame
        One row each, in the order given: ``id`` (the number of the row where the frame has none), ``step_s``,
        ``step_low_s`` and ``step_high_s`` [s] (bounds of the 90 % interval), ``measured_s`` [s], ``error`` (predicted
        over measured, less one), ``assumed`` (columns that the row lacks and words that are unknown, with which the
        interval is wider), and ``reason``, why a row has no prediction.

    Raises
    ------
    ScenarioError
        If ``rows`` is no frame, is empty, or has no model or chip.

    Examples
    --------
    >>> import polars as pl
    >>> row = {"section": "H100 BF16", "algorithm": "GRPO", "model": "Llama 3.1-8B", "policy": "On policy", "gpus": 8}
    >>> row |= {"train_max_sequence_length": 4096, "generation_mean_sequence_length": 800, "generation_tp_pp": "[1,1]"}
    >>> row |= {"generation_global_batch": 2048, "train_global_batch": 512, "train_tp_cp_ep_pp_vpp": "[1,1,1,2,n/a]"}
    >>> 80 < validate_post_training(pl.DataFrame([row]))["step_s"].item() < 160
    True
    """
    need("numpy")
    frame = table("rl_steps").collect() if rows is None else validation.frame("rows", rows)
    if frame.is_empty():
        raise ScenarioError("rows must have at least one row, got none")
    frame = renamed(frame, "rl_steps")[1]
    without, half = left_out()
    apart = dict(zip(published()[0], without, strict=True)) if rows is None else {}
    results = []
    for number, row in enumerate(frame.iter_rows(named=True)):
        found: dict[str, Any] = {"id": str(row.get("id") or number), "measured_s": row.get("step_time_s")}
        try:
            step = read_step(row)
            found["assumed"] = ", ".join(step.assumed) or None
            found |= interval(float(apart[number]), half) if number in apart else predicted([step])[0]
        except (FactorykitError, ValueError, TypeError) as error:
            found["reason"] = str(error)
        results.append(found)
    numbers = ("step_s", "step_low_s", "step_high_s", "measured_s")
    schema = {"id": pl.String, **dict.fromkeys(numbers, pl.Float64), "assumed": pl.String, "reason": pl.String}
    error = (pl.col("step_s") / pl.col("measured_s") - 1.0).alias("error")
    return pl.DataFrame(results, schema=schema, strict=False).select("id", *numbers, error, "assumed", "reason")
