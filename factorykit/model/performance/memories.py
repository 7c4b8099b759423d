"""What printed memories of a few layouts say: how much more or less a software holds than is counted.

Logarithms of printed over predicted memories are explained by three constants and noise. Both have tails: a peak that
was read otherwise moves little, and software that keeps much more than is counted is believed once peaks agree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from factorykit.model.engine.evaluate import evaluate
from factorykit.model.performance.nearness import slope
from factorykit.model.performance.recomputation import ROUNDING
from factorykit.quantities import neutral

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

FACTORS: Final = ("state_factor", "activation_factor")
"""Quantities that leave memory as it is counted until somebody measures."""
SPREADS: Final[Mapping[str, float]] = {"state_factor": 0.05, "activation_factor": 0.1, "context_bytes": 0.3}
"""Constants of memory that one's own software moves, and the standard deviation of the logarithm of each."""
NOISE: Final = 0.1
"""Standard deviation of what a single layout misses alone."""
# Both as five rows of each of nine families say: where memory is counted well, they cost 0.1 points in the median;
# software that keeps 1.4 times the activations, or 1.2 times the state, is met within 7.5 % in place of 13 and 11.
TAILS: Final = 2.0
"""Degrees of freedom of rows and constants."""
IMPOSSIBLE: Final = 3.0
"""Printed over predicted, or the other way round, beyond which units are wrong or a part of the run is not told."""
TIMES: Final = 2
"""How often slopes are taken where the constants have come to."""
REWEIGHTED: Final = 10
"""How often weights of rows and priors follow the misses."""
TERMS: Final = ("memory_weights_bytes", "memory_activations_bytes", "memory_workspace_bytes", "memory_reserve_bytes")
"""Parts of a peak."""
OUTPUTS: Final = (
    *TERMS,
    *("first_stage_activation_bytes", "memory_needed_bytes", "memory_peak_bytes", "fragmentation_share"),
)
"""What a printed memory is made of."""


def reported_bytes() -> pl.Expr:
    """Return the memory that the logs of a run would print: of tensors, of what the allocator holds, of the process."""
    import polars as pl

    stage = pl.col("memory_weights_bytes") + pl.col("first_stage_activation_bytes")
    first = (pl.col("logs_first_stage") > 0.0) & (pl.col("pipeline_parallel") > 1.0)
    held = pl.when(first).then(stage).otherwise(pl.sum_horizontal(TERMS[:3]))
    process = pl.col("memory_peak_bytes") + pl.col("cached_share") * pl.col("memory_needed_bytes")
    return (
        pl.when(pl.col("logs") == "allocated")
        .then(held)
        .when(pl.col("logs") == "reserved")
        .then(held / (1.0 - pl.col("fragmentation_share")))
        .otherwise(pl.min_horizontal("accelerator_memory_bytes", process).clip(pl.col("memory_peak_bytes")))
        .alias("reported_bytes")
    )


@dataclass(frozen=True)
class Held:
    """What printed memories say."""

    constants: Mapping[str, float] = field(default_factory=dict)
    """Constants of memory by quantity."""
    sure: Mapping[str, float] = field(default_factory=dict)
    """Share of its spread that each keeps."""
    rows: tuple[int, ...] = ()
    """Numbers of the rows that said so."""


def learned(ready: pl.DataFrame, printed: pl.Series, constants: Mapping[str, float]) -> Held:
    """Return what printed peaks say of the constants of memory.

    Parameters
    ----------
    ready
        Scenarios of rows, as :func:`~factorykit.model.evidence.training_runs.prepared` gives them.
    printed
        Memory that each row prints [byte], by the number of the row; null where it prints none.
    constants
        Constants of the model; what is no constant of it is neutral.
    """
    import numpy as np
    import polars as pl

    names, start = list(SPREADS), {**neutral(), **constants}
    if ready.is_empty():
        return Held()
    ready = ready.with_columns(printed.gather(ready["row"]).alias("printed")).filter(pl.col("printed").is_not_null())
    if not ready.is_empty():
        ready = _standing(ready)
    if ready.is_empty():
        return Held()
    logged = np.log(ready["printed"].to_numpy())

    def missed(moved: np.ndarray) -> np.ndarray:
        values = {name: start[name] * math.exp(move) for name, move in zip(names, moved, strict=True)}
        return logged - np.log(_reported(ready, values)["reported_bytes"].to_numpy())

    prior, moved = np.array(list(SPREADS.values())) ** 2, np.zeros(len(names))
    width, known = prior, np.diag(1.0 / prior)
    for _ in range(TIMES):
        now = missed(moved)
        slopes = -slope(missed, moved, now, prior)
        target = now + slopes @ moved
        noise = np.full(len(logged), NOISE**2)
        for _ in range(REWEIGHTED):
            known = slopes.T @ (slopes / noise[:, None]) + np.diag(1.0 / width)
            moved = np.linalg.solve(known, slopes.T @ (target / noise))
            noise = (TAILS * NOISE**2 + (target - slopes @ moved) ** 2) / (TAILS + 1.0)
            width = (TAILS * prior + moved**2) / (TAILS + 1.0)
    sure = np.sqrt(np.diag(np.linalg.inv(known)) / prior)
    values = {name: start[name] * math.exp(move) for name, move in zip(names, moved, strict=True)}
    return Held(values, dict(zip(names, sure.tolist(), strict=True)), tuple(ready["row"].to_list()))


def _reported(ready: pl.DataFrame, values: Mapping[str, float]) -> pl.DataFrame:
    import polars as pl

    given = ready.drop("printed").with_columns(pl.lit(value).alias(name) for name, value in values.items())
    return evaluate(given, OUTPUTS).with_columns(reported_bytes())


def _standing(ready: pl.DataFrame) -> pl.DataFrame:
    """Return one scenario a row, the fastest that fits, of rows that memory can explain; copies of a layout once."""
    import polars as pl

    wide = evaluate(ready.drop("printed"), (*OUTPUTS, "step_s")).with_columns(reported_bytes())
    ratio = ready["printed"] / wide["reported_bytes"]
    over = (wide["memory_needed_bytes"] / ready["accelerator_memory_bytes"]).clip(1.0 + ROUNDING)
    best = (
        pl.DataFrame({"row": ready["row"], "over": over, "step_s": wide["step_s"], "ratio": ratio})
        .with_row_index("scenario")
        .sort("over", "step_s")
        .unique("row", keep="first", maintain_order=True)
        .filter(pl.col("ratio").is_between(1.0 / IMPOSSIBLE, IMPOSSIBLE))
    )
    some = ready[best["scenario"].to_list()]
    return some.unique([name for name in some.columns if name not in ("row", "group", "family")], maintain_order=True)
