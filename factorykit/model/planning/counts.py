"""How many accelerators are tried, and the batch that goes with each number."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from factorykit.core.constants import SECONDS_PER_DAY
from factorykit.core.errors import ScenarioError
from factorykit.core.validation import as_list
from factorykit.core.vocabulary import quantity
from factorykit.engine.evaluate import evaluate

if TYPE_CHECKING:
    import polars as pl

BYTES_PER_PARAMETER: Final = 16.0
"""Weights, gradients and optimizer of a mixed-precision run: fewer accelerators than hold these are not tried."""
USUAL_MFU: Final = 0.4
LONGEST_S: Final = 1000.0 * SECONDS_PER_DAY
SHORTEST_S: Final = 2.0 * SECONDS_PER_DAY
"""A run at a usual utilization takes from this long to as long as above on the numbers that are tried. [s]"""
MOST: Final = 131072.0
STEPS: Final = (4.0, 5.0, 6.0, 7.0)
"""Numbers between two powers of two."""


def usual(fixed: Mapping[str, Any]) -> list[float]:
    """Return the numbers of accelerators that are tried where nobody gives any.

    They follow from the model, the tokens and the chip alone, never from a wish: a plan for a longer deadline is chosen
    among the same ones.
    """
    asked = ("training_flop", "parameters", "peak_flop_per_s", "accelerator_memory_bytes", "scale_up_domain")
    found = evaluate(fixed, asked, assume=True)
    rate = found["peak_flop_per_s"] * USUAL_MFU
    least = BYTES_PER_PARAMETER * found["parameters"] / found["accelerator_memory_bytes"]
    low = max(least, found["training_flop"] / rate / LONGEST_S, 1.0)
    high = min(max(found["training_flop"] / rate / SHORTEST_S, 16.0 * low), MOST)
    powers = range(math.floor(math.log2(low)) - 3, math.ceil(math.log2(high)) + 1)
    counts = {step * 2.0**power for power in powers for step in STEPS}
    if (domain := found["scale_up_domain"]) > 8.0 and math.log2(domain) % 1.0:
        counts |= {domain * 2.0**power for power in range(11)}
    return sorted(n for n in counts if low <= n <= high and n % 1.0 == 0.0 and (n <= 8.0 or n % 8.0 == 0.0))


def given(counts: Any) -> list[float]:
    """Return the numbers of accelerators that somebody gave, each checked."""
    row = quantity("accelerators")
    listed = [counts] if isinstance(counts, str) or not isinstance(counts, Iterable) else as_list("counts", counts)
    read = [float(row.check(each)) for each in listed]
    for number in read:
        if number % 1.0:
            raise ScenarioError(f"accelerators = {number!r} is not whole")
    if not read:
        raise ScenarioError("counts are empty; give at least one number of accelerators")
    return sorted(set(read))


def batches(counts: Iterable[float], fixed: Mapping[str, Any], tokens_per_step: float) -> pl.DataFrame:
    """Return one row per number of accelerators, with a batch near ``tokens_per_step`` that divides over them.

    >>> batches([1024.0, 1536.0], {"sequence_length": 8192.0}, 2.0**24).rows()
    [(1024.0, 2048.0), (1536.0, 1536.0)]
    """
    import polars as pl

    listed = list(counts)
    frame = {"accelerators": listed}
    if "global_batch_size" not in fixed:
        if not math.isfinite(tokens_per_step):
            raise ScenarioError("no batch suits so many tokens; give global_batch_size")
        sequences = max(tokens_per_step / fixed["sequence_length"], 1.0)
        frame["global_batch_size"] = [_near(sequences, number) for number in listed]
    return pl.DataFrame(frame, dict.fromkeys(frame, pl.Float64))


def _near(sequences: float, accelerators: float) -> float:
    odd = int(accelerators)
    while odd % 2 == 0:
        odd //= 2
    return odd * 2.0 ** max(round(math.log2(max(sequences / odd, 1.0))), 0)
