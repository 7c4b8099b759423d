"""The split of accelerators between rollouts and training, step time, days and cost of post-training."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from factorykit.core.constants import SECONDS_PER_DAY
from factorykit.core.errors import ScenarioError
from factorykit.core.extras import need
from factorykit.core.vocabulary import quantity
from factorykit.engine.evaluate import evaluate
from factorykit.engine.unused import warn_of_shared
from factorykit.formulas import post_training as formulas
from factorykit.model.post_training.predict import TIMES, predicted
from factorykit.model.post_training.rows import LAYOUT, OFFLINE, PASSES, ROLLOUT_MEMORY_SHARE, Step, memory_of, step_of
from factorykit.model.scenario.accelerators import own_chips, title_of
from factorykit.model.serving.plan import named_model, on_each_chip
from factorykit.model.serving.points import ALGORITHMS, FORMATS, word_of

if TYPE_CHECKING:
    from factorykit.model.scenario.scenario import Scenario

PRICE: Final = "rental_usd_per_accelerator_h"
PRECISIONS: Final = {name: FORMATS[name] for name in ("bf16", "fp8")}
WIDTHS: Final = tuple(float(2**power) for power in range(6))
"""Tensor parallelism of a rollout replica."""
TRAINERS: Final = (1.0, 2.0, 3.0, *(part * 2.0**power for power in range(18) for part in range(4, 8)))
"""Accelerators that a trainer apart from rollouts may have: of any number, so that more of them are never slower."""


@dataclass(frozen=True)
class PostTrainingPlan:
    """Answer of :func:`post_train`.

    Attributes
    ----------
    best
        The first row of ``candidates`` by column.
    candidates
        One row a chip, split and width of rollout replicas: those that fit in memory first (``fits`` is 1, and 0.5
        where buffers may exceed it), then by cost and step time.
    trainer
        Quantities of the trainer of ``best``.
    own
        The chips with values of their own, by name.
    """

    best: dict[str, Any]
    candidates: pl.DataFrame
    trainer: Mapping[str, Any]
    own: Mapping[str, Scenario] = field(repr=False)

    def __str__(self) -> str:
        """Return the plan in three lines, and a fourth where the memory of the trainer may not suffice."""
        row = self.best
        split = f"{row['trainer_accelerators']:,.0f} train and {row['rollout_accelerators']:,.0f} generate"
        if row["rollout_accelerators"] == 0.0:
            split = f"{row['trainer_accelerators']:,.0f} train"
        elif row["colocated"]:
            idle = row["trainer_accelerators"] - row["rollout_accelerators"]
            aside = f" ({idle:,.0f} of them idle)" if idle else ""
            split = f"{row['accelerators']:,.0f} take turns to generate{aside} and to train"
        seconds = [quantity("step_s").text(row[name]) for name in ("step_s", "step_low_s", "step_high_s")]
        days = [quantity("wall_days").text(row[name]) for name in ("days", "days_low", "days_high")]
        generating = f"rollouts busy {100 * row['rollout_utilization']:.0f} %, " if row["rollout_accelerators"] else ""
        tight = [] if row["fits"] == 1.0 else [f"the trainer may need {row['memory_peak_bytes'] / 1e9:,.0f} GB"]
        return "\n".join(
            [
                f"{split} on {title_of(row['accelerator'], self)}, step {seconds[0]} [{seconds[1]}, {seconds[2]}], "
                f"limited by {row['limited_by']}",
                f"{generating}trainer busy {100 * row['trainer_utilization']:.0f} %",
                f"{days[0]} [{days[1]}, {days[2]}], {row['usd']:,.0f} USD "
                f"[{row['usd_low']:,.0f}, {row['usd_high']:,.0f}], {row['mwh']:,.3g} MWh",
                *tight,
            ]
        )


def post_train(
    model: Any,
    accelerators: float | str,
    chips: str | Scenario | Iterable[str | Scenario] | None = None,
    *,
    algorithm: str = "grpo",
    steps: float | str = 500.0,
    samples: float | str = 1024.0,
    batch: float | str | None = None,
    input_tokens: float | str = 256.0,
    output_tokens: float | str = 2048.0,
    sequence_length: float | str = 8192.0,
    policy_lag_steps: float | str = 0.0,
    precision: str = "bf16",
    lora_rank: float | str = 0.0,
    teacher: Any = None,
    tool_wait_s: float | str = 0.0,
    reward_s: float | str = 0.0,
    rental_usd_per_accelerator_h: float | str | None = None,
) -> PostTrainingPlan:
    """Split accelerators between rollouts and training: step time, days, dollars, memory and use of both sides.

    Parameters
    ----------
    model
        A known model, such as ``llama3_8b`` or ``Qwen/Qwen3-32B``, or another as for :func:`factorykit.plan`.
    accelerators, chips
        Their number, and chips to choose from at least cost, by default ``h100_sxm``. Those of your own, of
        :func:`factorykit.accelerator`, may stand among them.
    algorithm
        grpo, dapo, ppo (with a critic as large as the policy), distillation on samples of the student, or sft and dpo,
        which train on given sequences.
    steps
        Steps of the run.
    samples, batch
        Sequences of a step, and of an optimizer step; by default one update a step.
    input_tokens, output_tokens
        Tokens of a prompt and of a sample, mean.
    sequence_length
        Most tokens of prompt and sample.
    policy_lag_steps
        Steps by which rollouts may be off policy. At 0 the two sides take turns, otherwise they are apart.
    precision
        bf16 or fp8.
    lora_rank
        Rank of adapters; 0 trains all weights.
    teacher
        Model whose log-probabilities are distilled, by default one as large as the policy; it has accelerators of its
        own in memory, its time counts here.
    tool_wait_s
        Time that a sample waits for tools, all turns together [s].
    reward_s
        Time of rewards that nothing hides [s].
    rental_usd_per_accelerator_h
        Price, for all chips; that of the tables by default.

    Returns
    -------
    PostTrainingPlan
        ``best`` and ``candidates`` with ``trainer_accelerators``, ``rollout_accelerators``, ``colocated``, the layouts
        of both, ``step_s`` with its 90 % interval and parts [s], ``rollout_utilization``, ``trainer_utilization``,
        ``rollout_memory_bytes`` and ``memory_peak_bytes`` (trainer) [byte], ``limited_by``, and ``days``, ``usd`` (with
        intervals) and ``mwh`` of the run.

    Raises
    ------
    ScenarioError
        If the trainer or a rollout replica fits on no split; the message says which, and the memory it needs.

    Notes
    -----
    Without failures. The trainer recomputes activations and packs samples.

    Examples
    --------
    >>> found = post_train("llama3_8b", 16, policy_lag_steps=1, samples=2048, batch=512, sequence_length=4096)
    >>> found.best["trainer_accelerators"] + found.best["rollout_accelerators"]
    16.0
    """
    need("numpy")
    _, shape = named_model(model)
    prices = {} if rental_usd_per_accelerator_h is None else {PRICE: rental_usd_per_accelerator_h}
    names, own = own_chips(shape.get("accelerator", "h100_sxm") if chips is None else chips, prices)
    warn_of_shared(prices, names)
    algorithm = word_of("algorithm", algorithm, ALGORITHMS)
    read: dict[str, Any] = {"algorithm": algorithm, "precision": word_of("precision", precision, PRECISIONS)}
    if teacher is not None and algorithm != "distillation":
        raise ScenarioError(f"teacher needs algorithm = 'distillation', got {algorithm!r}")
    passes = PASSES[algorithm] * (1.0 if teacher is None else _active(named_model(teacher)[1]) / _active(shape))
    read["batch"] = float(quantity("global_batch_size").check(samples if batch is None else batch))
    read["steps"] = float(quantity("training_steps").check(steps))
    given = {"accelerators": accelerators, "rollout_samples": samples}
    given |= {"input_tokens": input_tokens, "output_tokens": output_tokens}
    given |= {"sequence_length": sequence_length, "policy_lag_steps": policy_lag_steps, "lora_rank": lora_rank}
    given |= {"tool_wait_s": tool_wait_s, "reward_s": reward_s, "forward_passes": passes}
    read |= {name: float(quantity(name).check(value)) for name, value in given.items()}
    idle = [name for name in ("policy_lag_steps", "tool_wait_s", "reward_s") if algorithm in OFFLINE and read[name]]
    if idle:
        raise ScenarioError(
            f"{idle[0]} cannot be given with {algorithm}, which trains on given sequences; leave it out"
        )
    for name in ("accelerators", "rollout_samples", "batch", "steps"):
        if read[name] % 1.0:
            raise ScenarioError(f"{name} = {read[name]!r} is not whole")
    if read["input_tokens"] + read["output_tokens"] > read["sequence_length"]:
        raise ScenarioError(
            f"input_tokens + output_tokens = {read['input_tokens'] + read['output_tokens']:,.0f} must be at most "
            f"sequence_length = {read['sequence_length']:,.0f}; give a longer sequence_length"
        )
    if read["batch"] > read["rollout_samples"]:
        raise ScenarioError(
            f"batch = {read['batch']:,.0f} must be at most samples = {read['rollout_samples']:,.0f}, those of a step"
        )
    specified = {name: own.get(name, {"accelerator": name}) for name in names}
    rows = [*chain(*on_each_chip(names, lambda name: _on_chip(name, specified[name], shape, read, prices)))]
    rows.sort(key=lambda row: (-row["fits"], *(row[name] for name in ("usd", "step_s", "trainer_accelerators"))))
    trainers = [row.pop("trainer") for row in rows]
    return PostTrainingPlan(rows[0], pl.DataFrame(rows), trainers[0], own)


def _active(shape: Mapping[str, Any]) -> float:
    return float(evaluate(shape, "active_parameters", assume=True)["active_parameters"])


def _splits(read: Mapping[str, Any]) -> Iterator[tuple[float, float]]:
    """Yield accelerators of the trainer and of rollouts: all for both on policy, otherwise rollouts have the rest."""
    count = read["accelerators"]
    if read["algorithm"] in OFFLINE:
        yield count, 0.0
    elif read["policy_lag_steps"] == 0.0:
        yield count, count
    else:
        yield from ((part, count - part) for part in TRAINERS if part < count)


def _on_chip(
    name: str, specified: Mapping[str, Any], shape: Mapping[str, Any], read: Mapping[str, Any], price: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the candidates of all splits on a chip with days, money and energy."""
    candidates, reasons = [], ["rollouts and training off policy need an accelerator each; give policy_lag_steps = 0"]
    for trainers, rollouts in _splits(read):
        try:
            candidates += _candidates(shape, specified, trainers, rollouts, read)
        except ScenarioError as error:
            reasons.append(str(error))
    if not candidates:
        raise ScenarioError(f"no split of {read['accelerators']:,.0f} {name} works: {reasons[-1]}")
    unit = evaluate({**specified, **price}, ("facility_power_per_accelerator_w", PRICE), assume=True)
    return [{"accelerator": name, **_summed(row, read, unit)} for row in candidates]


def _candidates(
    shape: Mapping[str, Any], specified: Mapping[str, Any], trainers: float, rollouts: float, read: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the predicted candidates of one split, by width of the rollout replicas."""
    step = {name: read[name] for name in ("policy_lag_steps", "tool_wait_s", "reward_s", "lora_rank", "forward_passes")}
    step["trained_models"] = 2.0 if read["algorithm"] == "ppo" else 1.0

    def busy(width: float) -> float:
        """Return the accelerators of whole replicas; the others are idle."""
        return rollouts - rollouts % width if width else rollouts

    def candidate(width: float, layout: Mapping[str, float]) -> Step:
        return step_of(
            shape,
            specified,
            read["precision"],
            trainer_accelerators=trainers,
            rollout_accelerators=busy(width),
            rollout_tensor_parallel=width,
            trainer_layout=layout,
            samples=read["rollout_samples"],
            batch=read["batch"],
            lengths=(read["input_tokens"], read["output_tokens"], read["sequence_length"]),
            **step,
        )

    first = candidate(0.0, {})
    layout = {name: float(first.trainer[name]) for name in LAYOUT}
    steps = {width: candidate(width, layout) for width in WIDTHS if width <= rollouts} or {0.0: first}
    shared = {**layout, "trainer_accelerators": trainers, "trainer": first.trainer}
    rows = [
        {**row, **shared, "rollout_accelerators": busy(width), "rollout_tensor_parallel": width}
        for width, row in zip(steps, predicted(list(steps.values())), strict=True)
    ]
    fitting = [row for row in rows if row["requests_in_memory"] >= 1.0 or not rollouts]
    if not fitting:
        least, room = rows[-1]["served_weight_bytes"], ROLLOUT_MEMORY_SHARE * memory_of(specified)
        raise ScenarioError(
            f"weights and the cache of one sample take more than the {room / 1e9:,.0f} GB that rollouts may fill on a "
            f"{specified['accelerator']}: the weights alone {least / 1e9:,.0f} GB on {max(steps):.0f} of them; give "
            "more accelerators or precision = 'fp8'"
        )
    return fitting


def _summed(row: Mapping[str, Any], read: Mapping[str, Any], unit: Mapping[str, float]) -> dict[str, Any]:
    """Return the columns of a candidate: use and memory of both sides, days, money and energy."""
    seconds, count = row["step_s"], read["accelerators"]
    days = {f"days{bound}": read["steps"] * row[f"step{bound}_s"] / SECONDS_PER_DAY for bound in ("", "_low", "_high")}
    hourly = count * unit[PRICE] * 24.0
    cached = row["running_requests"] * row["request_kv_bytes"] / max(row["rollout_tensor_parallel"], 1.0)
    return {
        "accelerators": count,
        **{name: row[name] for name in ("trainer_accelerators", "rollout_accelerators")},
        "colocated": row["rollout_accelerators"] > 0.0 and read["policy_lag_steps"] == 0.0,
        "rollout_tensor_parallel": row["rollout_tensor_parallel"],
        **{name: row[name] for name in (*LAYOUT, "step_s", "step_low_s", "step_high_s", *TIMES[:-1])},
        "rollout_utilization": formulas.rollout_utilization(row["rollout_s"], seconds),
        "trainer_utilization": formulas.trainer_utilization(row["log_probability_s"], row["policy_update_s"], seconds),
        "rollout_memory_bytes": row["served_weight_bytes"] + cached,
        "memory_peak_bytes": row["memory_peak_bytes"],
        "fits": row["fits"],
        "limited_by": _limit(row),
        **days,
        **{name.replace("days", "usd"): value * hourly for name, value in days.items()},
        "mwh": days["days"] * 24.0 * count * unit["facility_power_per_accelerator_w"] / 1e6,
        "trainer": row["trainer"],
    }


def _limit(row: Mapping[str, Any]) -> str:
    """Return the part of the step that takes longest, and of rollouts what decides their number of decode steps."""
    training = row["log_probability_s"] + row["policy_update_s"]
    parts = {
        "updates and log-probabilities" if row["log_probability_s"] else "updates": training,
        "new weights": row["weight_sync_s"],
        "rollouts": row["rollout_s"],
    }
    largest = max(parts, key=lambda name: parts[name])
    if largest != "rollouts":
        return largest
    if row["tool_wait_s"] > 0.5 * row["rollout_s"]:
        return "rollouts: tools"
    tail = row["longest_output_tokens"] / max(row["policy_lag_steps"], 1.0)
    return "rollouts: longest sample" if row["rollout_decode_steps"] >= tail else "rollouts: memory for samples"
