"""Plans of post-training: splits, their limits, and plans that do not fit."""

from __future__ import annotations

import itertools
from typing import Any, Final

import pytest

import factorykit as fk
from factorykit.core.errors import FactorykitWarning, ScenarioError

GRPO: Final[dict[str, Any]] = {"samples": 2048, "batch": 512, "output_tokens": 1100, "sequence_length": 4096}


def test_a_split_uses_all_accelerators_and_the_slower_side_decides():
    row = fk.post_train("llama3_8b", 64, policy_lag_steps=1, **GRPO).best
    assert row["trainer_accelerators"] + row["rollout_accelerators"] == 64.0
    training = row["policy_update_s"] + row["log_probability_s"]
    assert row["step_s"] >= max(row["rollout_s"], training)
    assert max(row["rollout_utilization"], row["trainer_utilization"]) > 0.7
    assert row["days"] == pytest.approx(500.0 * row["step_s"] / 86400.0)
    assert row["usd_low"] < row["usd"] < row["usd_high"]


def test_the_best_split_is_the_fastest_that_fits():
    found = fk.post_train("Qwen/Qwen3-32B", 128, policy_lag_steps=1, **GRPO)
    fitting = found.candidates.filter(fits=1.0)
    assert found.best["step_s"] == fitting["step_s"].min()
    assert fitting["trainer_accelerators"].n_unique() > 3


@pytest.mark.parametrize(("first", "lag", "wait"), [(8, 1.0, 300.0), (14, 4.0, 0.0)])
def test_off_policy_more_accelerators_are_never_slower(first: int, lag: float, wait: float) -> None:
    given: dict[str, Any] = {"policy_lag_steps": lag, "tool_wait_s": wait}
    times = [fk.post_train("llama3_8b", n, **given).best["step_s"] for n in range(first, first + 11)]
    assert all(more <= fewer * (1.0 + 1e-9) for fewer, more in itertools.pairwise(times))


def test_chips_of_ones_own_are_compared_with_listed_ones():
    cheap = fk.accelerator("cheap", like="h100_sxm", rental_usd_per_accelerator_h="1 USD/h")
    plan = fk.post_train("llama3_8b", 16, ["h100_sxm", cheap], **GRPO)
    listed = fk.post_train("llama3_8b", 16, "H100", **GRPO).best
    assert (plan.best["accelerator"], "on cheap, like NVIDIA H100" in str(plan)) == ("cheap", True)
    assert plan.best["step_s"] == listed["step_s"]
    assert plan.best["usd"] == pytest.approx(16.0 * 24.0 * plan.best["days"])
    assert set(plan.candidates["accelerator"]) == {"h100_sxm", "cheap"}
    assert fk.post_train({**fk.architecture("llama3_8b"), "accelerator": "b200"}, 16).best["accelerator"] == "b200"
    larger = fk.accelerator("larger", like="h100_sxm", accelerator_memory_bytes="320 GB")
    with pytest.warns(FactorykitWarning, match="left out: no split of 4 h100_sxm works"):
        fitting = fk.post_train("llama3_70b", 4, ["h100_sxm", larger], algorithm="sft", lora_rank=0, **GRPO)
    assert fitting.best["memory_peak_bytes"] > 80e9


def test_accelerators_of_no_whole_replica_are_idle_while_all_take_turns():
    plan = fk.post_train("llama3_8b", 15, rental_usd_per_accelerator_h=2.0)
    assert plan.best["colocated"]
    assert "15 take turns to generate (1 of them idle) and to train" in str(plan)


def test_adapters_need_less_memory_to_train():
    full, lora = (fk.post_train("llama3_8b", 8, lora_rank=rank, **GRPO).best for rank in (0, 16))
    assert lora["memory_peak_bytes"] < 0.6 * full["memory_peak_bytes"]
    assert lora["weight_sync_s"] < 0.2 * full["weight_sync_s"]


def test_given_sequences_need_no_rollouts():
    row = fk.post_train("llama3_8b", 8, algorithm="dpo", samples=256).best
    assert (row["rollout_accelerators"], row["rollout_s"], row["weight_sync_s"]) == (0.0, 0.0, 0.0)
    assert row["log_probability_s"] == pytest.approx(row["policy_update_s"] / 3.0)
    plain = fk.post_train("llama3_8b", 8, algorithm="sft", samples=256).best
    assert plain["step_s"] == plain["policy_update_s"]
    assert plain["limited_by"] == "updates"


def test_a_size_is_read_as_by_the_other_verbs():
    named, sized = (fk.post_train(model, 8, algorithm="sft", samples=64).best for model in ("llama3_8b", "8B"))
    assert sized["step_s"] == pytest.approx(named["step_s"], rel=0.05)


def test_a_larger_teacher_takes_longer():
    small, large = (
        fk.post_train("llama3_8b", 8, algorithm="distillation", teacher=name, samples=256).best["log_probability_s"]
        for name in ("llama3_8b", "llama3_70b")
    )
    assert 8.0 < large / small < 10.0


def test_tools_that_take_longest_limit_the_step():
    quick, slow = (fk.post_train("llama3_8b", 64, tool_wait_s=wait, **GRPO).best for wait in (0, 600))
    assert slow["limited_by"] == "rollouts: tools"
    assert slow["step_s"] - quick["step_s"] == pytest.approx(600.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"model": "deepseek_v3", "accelerators": 8}, "the trainer fits on no layout of 8 h100_sxm"),
        ({"model": "llama3_405b", "accelerators": 8, "lora_rank": 8}, "fits on no layout|weights alone"),
        ({"model": "llama3_8b", "accelerators": 8, "output_tokens": 9000}, "must be at most sequence_length"),
        ({"model": "llama3_8b", "accelerators": 8, "teacher": "llama3_70b"}, "needs algorithm = 'distillation'"),
        ({"model": "llama3_8b", "accelerators": 8, "algorithm": "SFT", "tool_wait_s": 9}, "trains on given sequences"),
        ({"model": "llama3_8b", "accelerators": 8, "algorithm": "dpo", "policy_lag_steps": 1}, "policy_lag_steps"),
        ({"model": "llama3_8b", "accelerators": 8, "output_tokens": "2k"}, "can be 2,000 or 2,048"),
        ({"model": "llama3_8b", "accelerators": 1, "batch": 4096, "samples": 1024}, "at most samples = 1,024"),
        ({"model": "llama3_8b", "accelerators": 1, "policy_lag_steps": 1}, "off policy need an accelerator each"),
    ],
)
def test_an_invalid_plan_gives_the_reason(given, message):
    with pytest.raises(ScenarioError, match=message):
        fk.post_train(**given)


def test_words_are_read_in_any_case():
    upper, lower = (
        fk.post_train("llama3_8b", 8, algorithm=algorithm, precision=precision, **GRPO).best["step_s"]
        for algorithm, precision in (("GRPO", "FP8"), ("grpo", "fp8"))
    )
    assert upper == lower
