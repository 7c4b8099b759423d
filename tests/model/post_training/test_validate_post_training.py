"""Steps of post-training: formulas against simulation and identities, predictions against published steps."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import factorykit as fk
from factorykit.core.errors import ScenarioError
from factorykit.formulas import post_training as formulas
from factorykit.model.post_training.predict import parts, times
from factorykit.model.post_training.rows import read_step


def row(name: str) -> dict[str, object]:
    return fk.table("rl_steps").filter(id=name).collect().row(0, named=True)


def test_the_longest_sample_is_the_mean_of_simulated_maxima():
    draws = np.random.default_rng(3).lognormal(np.log(800.0) - 0.18, 0.6, (4000, 512)).max(axis=1).mean()
    assert formulas.longest_output_tokens(800.0, 512.0, 0.6, 1e9) == pytest.approx(draws, rel=0.05)


def test_a_rollout_with_equal_lengths_decodes_all_samples_to_the_end():
    steps = formulas.rollout_decode_steps(1000.0, 0.0, 64.0, 1000.0, 100.0, 1.0)
    assert (steps, formulas.running_requests(64.0, 1000.0, steps, 1.0)) == (1000.0, 64.0)


def test_a_rollout_that_does_not_fit_runs_in_turns():
    assert formulas.rollout_decode_steps(1000.0, 0.0, 64.0, 1000.0, 16.0, 1.0) == 4000.0


def test_off_policy_hides_the_shorter_side():
    on, off = (formulas.post_training_step_s(60.0, 2.0, 10.0, 30.0, 5.0, 3.0, lag) for lag in (0.0, 1.0))
    assert (on, off) == (110.0, 70.0)


def test_parts_of_a_published_step_are_those_measured():
    """NeMo RL v0.3, Llama 3.1 8B on eight H100: rollout 58 s, log-probabilities 18, updates 28, refit 5."""
    stated = row("nemo_rl_0_3_llama3_8b_8_megatron_published")
    defaults = {"rollout_slowdown": 1.2, "update_slowdown": 1.0, "weight_sync_base_s": 1.8}
    found = times(parts(read_step(stated)), defaults | {"post_training_overhead_s": 3.0})
    for name in ("rollout_s", "log_probability_s", "policy_update_s", "weight_sync_s"):
        assert found[name] == pytest.approx(stated[name], rel=0.25), name


def test_published_steps_are_predicted_without_their_configuration():
    found = fk.validate_post_training().filter(pl.col("error").is_not_null())
    error = np.abs(found["error"].to_numpy())
    inside = found.select(pl.col("measured_s").is_between("step_low_s", "step_high_s").mean()).item()
    assert found.height >= 28
    assert np.median(error) < 0.20
    assert np.quantile(error, 0.9) < 0.47
    assert inside > 0.85


def test_a_prediction_does_not_use_its_measurement():
    known = fk.table("rl_steps").filter(id="nemo_rl_0_6_qwen3_30b_32_bf16_sync").collect()
    bare = known.drop("step_time_s", "tokens_per_s_per_gpu", "rollout_s", "policy_update_s", "id")
    assert fk.validate_post_training(bare)["step_s"].item() == fk.validate_post_training(known)["step_s"].item()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"generation_mean_sequence_length": None}, "generation_mean_sequence_length must be given"),
        ({"model": "Atlantis"}, "no architecture"),
        ({"gpus": -8.0}, "gpus must be a finite number above 0"),
        ({"train_max_sequence_length": "many"}, "must be a finite number above 0, got 'many'"),
        ({"policy": "foo"}, "policy must be 'On policy' or give its lag"),
        ({"generation_tp_pp": "[0,1]"}, "generation_tp_pp must begin with 1 to"),
        ({"generation_tp_pp": "[64,1]"}, "generation_tp_pp must begin with 1 to 32"),
    ],
)
def test_a_row_that_cannot_be_predicted_names_the_cause(change, reason):
    found = fk.validate_post_training(pl.DataFrame([row("nemo_rl_0_6_qwen3_30b_32_bf16_sync") | change]))
    assert found["step_s"].item() is None
    assert reason in found["reason"].item()


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"policy": "1 step off"}, {"policy": "1-step Off"}),
        ({"policy": "One-step off-policy"}, {"policy": "1-step Off"}),
        ({"policy": "fully async"}, {"policy": "1-step Off"}),
        ({"policy": "async (staleness 4)"}, {"policy": "4-step Off"}),
        *(({"algorithm": name}, {}) for name in ("RLOO", "GSPO", "REINFORCE++", "reinforce_plus_plus_baseline")),
        *(({"algorithm": name}, {"algorithm": "DAPO"}) for name in ("Dr. GRPO", "dr_grpo", "DrGRPO", "CISPO")),
        ({"train_max_sequence_length": "4k", "gpus": "32 GPUs"}, {}),
        ({"train_tp_cp_ep_pp_vpp": "TP1 CP1 EP8 PP1", "generation_tp_pp": "TP2"}, {}),
        ({"section": "8xH100", "precision": "bfloat16"}, {}),
        ({"model": "Qwen3-30B-A3B-Base"}, {}),
    ],
)
def test_words_are_read_in_other_spellings(change, same):
    known = row("nemo_rl_0_6_qwen3_30b_32_bf16_sync")
    assert read_step(known | change) == read_step(known | same)


@pytest.mark.parametrize(
    ("change", "assumed"),
    [
        ({"algorithm": "foo"}, "algorithm"),
        ({"model": "of/mine-30B-A3B"}, "model"),
        ({"generation_tp_pp": None}, "generation_tp_pp"),
    ],
)
def test_what_is_unknown_is_predicted_with_a_wider_interval(change, assumed):
    known = row("nemo_rl_0_6_qwen3_30b_32_bf16_sync")
    first, found = fk.validate_post_training(pl.DataFrame([known, known | change])).iter_rows(named=True)
    assert (first["assumed"], found["assumed"]) == (None, assumed)
    assert found["step_high_s"] / found["step_low_s"] > first["step_high_s"] / first["step_low_s"]
    assert found["step_s"] == pytest.approx(first["step_s"], rel=0.3)


def test_usual_other_names_of_columns_are_found():
    known = pl.DataFrame([row("nemo_rl_0_6_qwen3_30b_32_bf16_sync")])
    names = {"section": "gpu", "gpus": "num_gpus", "generation_mean_sequence_length": "mean_response_length"}
    names |= {"train_max_sequence_length": "max_seq_len", "generation_global_batch": "rollout_batch_size"}
    assert fk.validate_post_training(known.rename(names)).equals(fk.validate_post_training(known))


def test_a_frame_of_other_columns_is_refused():
    with pytest.raises(ScenarioError, match="table rl_steps; missing are section, model, got x"):
        fk.validate_post_training(pl.DataFrame({"x": [1.0]}))
