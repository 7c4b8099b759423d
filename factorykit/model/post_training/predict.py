"""Time of a step of post-training: rollouts by serving, updates by the training step, constants by published steps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from factorykit.core.errors import FactorykitError
from factorykit.core.vocabulary import quantity
from factorykit.data.tables import table
from factorykit.engine.evaluate import evaluate
from factorykit.formulas import arguments, catalogue
from factorykit.formulas.step.interval import NORMAL_95
from factorykit.model.post_training.rows import ASSUMED, Step, read_step

if TYPE_CHECKING:
    import numpy as np

CONSTANTS: Final = {
    "rollout_slowdown": 0.2,
    "update_slowdown": 0.2,
    "weight_sync_base_s": 0.3,
    "post_training_overhead_s": 0.7,
}
"""Constants that published steps move, each from its default; standard deviation of its logarithm before they do."""
NOISE: Final = 0.2
"""Standard deviation of the logarithm of a published step time, from versions and reruns of one configuration."""
TAIL: Final = ("replica_samples", "rollout_decode_steps", "running_requests", "longest_output_tokens")
MEMORY: Final = ("requests_in_memory", "served_weight_bytes", "request_kv_bytes")
DECODE: Final = ("decode_step_s", "prefill_s")
PLAIN: Final = {"update_slowdown": 1.0, "post_training_overhead_s": 0.0}
"""Constants of a step without rollouts, which is one of training: the others include the handling of samples."""
GENERATED: Final = (*TAIL, *MEMORY, *DECODE)
TRAINED: Final = ("step_s", "trained_share", "parameters", "memory_peak_bytes", "fits")
TIMES: Final = ("rollout_s", "policy_update_s", "log_probability_s", "weight_sync_s", "post_training_step_s")


def parts(step: Step) -> dict[str, Any]:
    """Return what the formulas of a step need: the tail and a decode step of its rollout, and an optimizer step.

    Memory for samples is that at half of their length, which they have in the mean of a rollout.
    """
    trained = evaluate(step.trainer, TRAINED, assume=True)
    known = {"tool_wait_s": 0.0, "reward_s": 0.0, **dict.fromkeys(GENERATED, 0.0), **trained, **step.step}
    if (rollout := step.rollout) is None:
        return {**PLAIN, **known, "weight_sync_base_s": 0.0}
    half = {**rollout, "output_tokens": max(0.5 * rollout["output_tokens"], 1.0)}
    memory = evaluate(half, MEMORY, assume=True)
    tail = evaluate({**rollout, "requests_in_memory": memory["requests_in_memory"]}, TAIL, assume=True)
    running = {**rollout, "concurrent_requests": tail["running_requests"]}
    return {**known, **memory, **tail, **evaluate(running, DECODE, assume=True)}


def times(part: Mapping[str, Any], constants: Mapping[str, float]) -> dict[str, Any]:
    """Return the times of steps [s]; ``part`` holds numbers or arrays of them."""
    values = {**constants, **part}
    for name in TIMES:
        formula = catalogue()[name]
        values[name] = formula(*(values[argument] for argument in arguments(formula)))
    return {name: values[name] for name in TIMES}


@cache
def published() -> tuple[list[int], dict[str, np.ndarray], np.ndarray, list[str]]:
    """Return numbers, parts, times and configurations of the steps of rl_steps that state all that is needed."""
    import numpy as np

    numbers, steps, measured, configurations = [], [], [], []
    for number, row in enumerate(table("rl_steps").collect().iter_rows(named=True)):
        try:
            steps.append(parts(read_step(row)))
        except FactorykitError:
            continue
        numbers.append(number)
        measured.append(row["step_time_s"])
        configurations.append(" ".join(str(row[name]) for name in ("model", "gpus", "policy")))
    part = {name: np.array([float(step[name]) for step in steps]) for name in steps[0]}
    return numbers, part, np.array(measured), configurations


def fit(without: str | None = None) -> dict[str, float]:
    """Return the constants that published steps and the defaults support best, without one configuration.

    Least squares of logarithms; residuals beyond 1.5 standard deviations weigh less.
    """
    import numpy as np
    from scipy.optimize import least_squares

    _, parts_of, times_of, configurations = published()
    kept = np.array([name != without for name in configurations])
    part, measured = {name: values[kept] for name, values in parts_of.items()}, times_of[kept]
    prior = np.log([float(quantity(name).default or 1.0) for name in CONSTANTS])

    def residual(point: np.ndarray) -> np.ndarray:
        step_s = times(part, dict(zip(CONSTANTS, np.exp(point), strict=True)))["post_training_step_s"]
        return np.append(np.log(measured / step_s) / NOISE, (point - prior) / [*CONSTANTS.values()])

    point = least_squares(residual, prior, loss="huber", f_scale=1.5).x
    return {name: float(value) for name, value in zip(CONSTANTS, np.exp(point), strict=True)}


@cache
def fitted() -> dict[str, float]:
    """Return the constants by all published steps."""
    return fit()


@cache
def left_out() -> tuple[np.ndarray, float]:
    """Return the times of the published steps, each without its configuration, and half the width of 90 % intervals.

    The half width, of logarithms, is the residual that nine of ten of these predictions keep, counted as one more.
    """
    import numpy as np

    _, parts_of, measured, configurations = published()
    seconds = np.empty(len(measured))
    for name in dict.fromkeys(configurations):
        kept = np.array(configurations) == name
        seconds[kept] = times({key: values[kept] for key, values in parts_of.items()}, fit(name))[TIMES[-1]]
    residual = np.sort(np.abs(np.log(measured / seconds)))
    order = min(int(np.ceil(0.9 * (len(residual) + 1))), len(residual))
    return seconds, float(residual[order - 1])


def predicted(steps: Sequence[Step]) -> list[dict[str, Any]]:
    """Return parts, times and the 90 % interval of the step time of each step."""
    rows = []
    for step in steps:
        part = parts(step)
        durations = times(part, fitted())
        half = math.hypot(left_out()[1], *(NORMAL_95 * ASSUMED[name] for name in step.assumed))
        rows.append({**part, **durations, **interval(durations["post_training_step_s"], half)})
    return rows


def interval(seconds: float, half: float) -> dict[str, float]:
    """Return the bounds of a 90 % interval around a step time."""
    return {"step_s": seconds, "step_low_s": seconds * math.exp(-half), "step_high_s": seconds * math.exp(half)}
