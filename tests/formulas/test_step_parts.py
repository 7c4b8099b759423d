"""The parts of a step sum to it, whatever the layout."""

import polars as pl
import pytest

import factorykit as fk
from factorykit.formulas import arguments
from factorykit.formulas.step import parts

PARTS = [*arguments(parts.step_lag_s)[1:], "step_lag_s", "outer_exposed_s", "loader_exposed_s"]
PLAIN = {
    "accelerator": "h100_sxm",
    "layers": 80,
    "hidden_size": 8192,
    "attention_heads": 64,
    "kv_heads": 8,
    "ffn_size": 28672,
    "gated_ffn": 1,
    "vocabulary_size": 128256,
    "sequence_length": 8192,
    "accelerators": 512,
    "global_batch_size": 512,
    "micro_batch_size": 1,
    "tensor_parallel": 8,
    "pipeline_parallel": 4,
}
LAYOUTS = {
    "dense": {},
    "one chip": {"accelerators": 1, "global_batch_size": 1, "tensor_parallel": 1, "pipeline_parallel": 1, "layers": 4},
    "recomputed": {"recompute": "full"},
    "sharded": {"zero_stage": 3, "tensor_parallel": 1, "pipeline_parallel": 1},
    "experts": {"experts": 64, "experts_per_token": 8, "expert_ffn_size": 2048, "expert_parallel": 16},
    "long": {"sequence_length": 131072, "context_parallel": 8},
    "interleaved": {"virtual_stages": 5, "schedule": "interleaved"},
    "two sites, hungry": {"training_sites": 2, "wan_bytes_per_s": 1e9, "loader_exposed_s": 0.5},
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_parts_of_a_step_are_positive_and_sum_to_it(name: str) -> None:
    found = fk.evaluate(PLAIN | LAYOUTS[name], [*PARTS, "step_s"])
    assert all(found[part] >= 0 for part in PARTS)
    assert sum(found[part] for part in PARTS) == pytest.approx(found["step_s"], rel=1e-12)


def test_parts_appear_where_their_cause_does() -> None:
    causes = {
        "step_collective_s": {"tensor_parallel": 1},
        "step_transfer_s": {"pipeline_parallel": 1},
        "pipeline_wait_s": {"pipeline_parallel": 1},
    }
    for part, absent in causes.items():
        assert fk.evaluate(PLAIN, part)[part] > 0
        assert fk.evaluate(PLAIN | absent, part)[part] == 0


def test_measured_runs_leave_no_part_negative() -> None:
    from factorykit.model.performance.training_runs import prepared

    ready, _ = prepared(fk.table("training_runs").collect())
    found = fk.evaluate(ready, [*PARTS, "step_s"])
    assert found.select(pl.min_horizontal(pl.col(PARTS).min())).item() >= -1e-9
