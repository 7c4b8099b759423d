"""Time of a step of post-training: rollouts by serving, updates by the training step, constants by published steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from factorykit.core.errors import FactorykitError
from factorykit.core.vocabulary import quantity
from factorykit.data.tables import table
from factorykit.engine.evaluate import evaluate
from factorykit.formulas import arguments, catalogue
from factorykit.model.post_training.rows import Step, read_step

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


class Published(NamedTuple):
    """Published steps that can be predicted: arrays of their parts, times and configurations."""

    rows: list[int]
    part: dict[str, np.ndarray]
    measured: np.ndarray
    configurations: list[str]


@cache
def published() -> Published:
    """Return the steps of the table rl_steps that state all that a prediction needs."""
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
    return Published(numbers, part, np.array(measured), configurations)


def fit(without: str | None = None) -> dict[str, float]:
    """Return the constants that published steps and the defaults support best, without one configuration.

    Gauss-Newton steps on logarithms; residuals beyond 1.5 standard deviations weigh less.
    """
    import numpy as np

    known = published()
    kept = np.array([name != without for name in known.configurations])
    part, measured = {name: values[kept] for name, values in known.part.items()}, known.measured[kept]
    prior = np.log([float(quantity(name).default or 1.0) for name in CONSTANTS])
    width = np.array(list(CONSTANTS.values()))

    def residual(point: np.ndarray) -> np.ndarray:
        step_s = times(part, dict(zip(CONSTANTS, np.exp(point), strict=True)))["post_training_step_s"]
        return np.log(measured / step_s) / NOISE

    point = prior
    for _ in range(20):
        left = residual(point)
        slope = np.column_stack([(residual(point + 1e-4 * axis) - left) / 1e-4 for axis in np.eye(len(prior))])
        weight = np.minimum(1.0, 1.5 / np.maximum(np.abs(left), 1e-9))[:, None]
        normal = slope.T @ (weight * slope) + np.diag(width**-2)
        point = point - np.linalg.solve(normal, slope.T @ (weight[:, 0] * left) + (point - prior) / width**2)
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

    known = published()
    seconds = np.empty(len(known.measured))
    for name in dict.fromkeys(known.configurations):
        kept = np.array([configuration == name for configuration in known.configurations])
        part = {key: values[kept] for key, values in known.part.items()}
        seconds[kept] = times(part, fit(name))["post_training_step_s"]
    residual = np.sort(np.abs(np.log(known.measured / seconds)))
    order = min(int(np.ceil(0.9 * (len(residual) + 1))), len(residual))
    return seconds, float(residual[order - 1])


def predicted(steps: Sequence[Step]) -> list[dict[str, Any]]:
    """Return parts, times and the 90 % interval of the step time of each step."""
    half = left_out()[1]
    rows = []
    for step in steps:
        part = parts(step)
        durations = times(part, fitted())
        rows.append({**part, **durations, **interval(durations["post_training_step_s"], half)})
    return rows


def interval(seconds: float, half: float) -> dict[str, float]:
    """Return the bounds of a 90 % interval around a step time."""
    import math

    return {"step_s": seconds, "step_low_s": seconds * math.exp(-half), "step_high_s": seconds * math.exp(half)}
