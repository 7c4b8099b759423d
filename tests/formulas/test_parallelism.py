"""Schedules against an emulator, and collectives against each other."""

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factorykit.engine.evaluate import evaluate
from factorykit.formulas import network

GOLDEN = Path(__file__).parents[1] / "golden" / "schedules.csv"
NAMES = {"interleave v2": "interleaved", "1f1b_overlap": "1f1b"}
with GOLDEN.open(encoding="utf-8", newline="") as file:
    ROWS = list(csv.DictReader(file))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['schedule']}-{row['stages']}-{row['micro_batches']}")
def test_makespans_meet_the_emulator(row):
    chunks = float(row["chunks"])
    stage = {f"stage_{name}": chunks * float(row[name]) for name in ("forward_s", "backward_s", "weight_gradient_s")}
    overlapped = float(row["overlapped_s"]) * (chunks if row["schedule"] == "dualpipe_v" else 1.0)
    inputs = {
        **stage,
        "stage_overlapped_s": overlapped,
        "schedule": NAMES.get(row["schedule"], row["schedule"]),
        "pipeline_parallel": float(row["stages"]),
        "virtual_stages": chunks if row["schedule"] == "interleave v2" else 1.0,
        "micro_batches": float(row["micro_batches"]),
    }
    assert evaluate(inputs, "pipeline_makespan_s") == {"pipeline_makespan_s": float(row["makespan_s"])}


@given(st.sampled_from(["1f1b", "interleaved", "zb1p", "zb2p", "dualpipe", "dualpipe_v"]))
def test_one_stage_never_waits(schedule):
    inputs = {"schedule": schedule, "pipeline_parallel": 1, "virtual_stages": 1, "stage_forward_s": 1}
    inputs |= {"stage_backward_s": 2, "stage_weight_gradient_s": 1, "stage_overlapped_s": 3}
    assert evaluate(inputs, "pipeline_idle_s") == {"pipeline_idle_s": 0.0}


def test_a_second_pipeline_of_activations_fills_the_bubble_that_remains():
    """Qi et al.: no bubble where the three passes are equal, for 2p - 1 micro-batches in place of p."""
    inputs = {"pipeline_parallel": 8, "virtual_stages": 1, "stage_forward_s": 1, "stage_backward_s": 2}
    inputs |= {"stage_weight_gradient_s": 1, "stage_overlapped_s": 3, "micro_batches": 64}
    inputs |= {"layers": 32, "logits_layers": 0, "stage_layers": 4}
    outputs = ["pipeline_idle_s", "micro_batches_in_flight"]
    found = {name: evaluate(inputs | {"schedule": name}, outputs) for name in ("zb1p", "zb2p")}
    assert [list(values.values()) for values in found.values()] == [[7.0, 8.0], [0.0, 15.0]]


@given(st.floats(1e3, 1e12), st.sampled_from([16, 64, 512]))
def test_a_group_that_leaves_its_domain_is_slower(size, ranks):
    links = (9e11, 5e10, 1.0, 1.0, 0.0, 0.0)
    inside = network.two_tier_ring_s(size, float(ranks), float(ranks), *links)
    assert network.two_tier_ring_s(size, float(ranks), 8.0, *links) > inside


@pytest.mark.parametrize("collective", [network.ring_all_reduce_s, network.all_to_all_s])
def test_one_rank_sends_nothing(collective):
    assert collective(1e9, 1.0, 1e11, 1e-6) == 0.0
