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
        ({"model": "Atlantis 7B"}, "no architecture"),
        ({"gpus": -8.0}, "gpus must be a finite number above 0"),
        ({"train_max_sequence_length": "4k"}, "must be a finite number above 0, got '4k'"),
        ({"policy": "asynchronous"}, "policy must be 'On policy' or give its lag"),
        ({"algorithm": "foo"}, "no algorithm 'foo'"),
        ({"generation_tp_pp": "[0,1]"}, "generation_tp_pp must begin with 1 to"),
        ({"generation_tp_pp": "[64,1]"}, "generation_tp_pp must begin with 1 to 32"),
    ],
)
def test_a_row_that_cannot_be_predicted_names_the_cause(change, reason):
    found = fk.validate_post_training(pl.DataFrame([row("nemo_rl_0_6_qwen3_30b_32_bf16_sync") | change]))
    assert found["step_s"].item() is None
    assert reason in found["reason"].item()


def test_a_lag_is_read_with_and_without_its_hyphen():
    lags = [
        read_step(row("nemo_rl_0_6_qwen3_30b_32_bf16_sync") | {"policy": policy})
        for policy in ("1-step Off", "1 step off")
    ]
    assert lags[0] == lags[1]
    assert lags[0].step["policy_lag_steps"] == 1.0


def test_a_frame_of_other_columns_is_refused():
    with pytest.raises(ScenarioError, match="columns of the table rl_steps"):
        fk.validate_post_training(pl.DataFrame({"x": [1.0]}))
