import random

import pytest

import factorykit as fk
from factorykit.formulas import congestion

MIXTURE = {
    **fk.architecture("deepseek_v3"),
    "accelerator": "h800_sxm",
    "accelerators": 2048.0,
    "sequence_length": 4096.0,
    "global_batch_size": 15360.0,
    "micro_batch_size": 1.0,
    "pipeline_parallel": 16.0,
    "expert_parallel": 64.0,
    "precision": "fp8",
}


def test_a_buffer_of_12_mb_has_the_published_thresholds():
    """32 ports, eight classes, 22.4 kB of headroom: 24.47 kB, marks below 21.75 kB [zhu2015, section 4]."""
    switch = {"switch_buffer_bytes": 12e6, "switch_ports": 32.0, "lossless_classes": 8.0, "buffer_sharing": 8.0}
    outputs = ["pause_threshold_bytes", "mark_threshold_bytes"]
    found = fk.evaluate(switch | {"pause_headroom_bytes": 22_400.0}, outputs)
    assert [round(value / 1e3, 2) for value in found.values()] == [24.48, 21.76]
    assert found["pause_threshold_bytes"] == pytest.approx(24.47e3, abs=10)
    own = {"port_bytes_per_s": 5e9, "cable_m": 100.0, "frame_bytes": 1500.0}
    headroom = fk.evaluate(own, "pause_headroom_bytes")["pause_headroom_bytes"]
    assert headroom == pytest.approx(22_400.0, rel=0.11)
    faster = {"port_bytes_per_s": 5e10, "cable_m": 100.0, "frame_bytes": 4200.0, "switch_buffer_bytes": 12e6}
    assert fk.evaluate(switch | faster, outputs)["pause_threshold_bytes"] == 0.0


@pytest.mark.parametrize("domains", [2, 8, 32])
def test_receivers_that_pause_keep_the_throughput_of_a_switch_with_input_queues(domains):
    """58.6 % for very many [mckeown1999]; every input always has a frame for a random output."""
    chance = random.Random(7)
    heads = [chance.randrange(domains) for _ in range(domains)]
    passed, slots = 0, 40_000 // domains
    for _ in range(slots):
        chosen: dict[int, int] = {}
        for sender in chance.sample(range(domains), domains):
            chosen.setdefault(heads[sender], sender)
        for sender in chosen.values():
            heads[sender] = chance.randrange(domains)
        passed += len(chosen)
    kept = congestion.incast_share_paused(8.0 * domains, 1.0, 8.0)
    assert kept == pytest.approx(passed / slots / domains, rel=0.045)
    assert congestion.incast_share_paused(8e12, 1.0, 8.0) == pytest.approx(0.586, abs=5e-4)
    assert congestion.incast_share_paused(8.0, 1.0, 8.0) == 1.0


def test_pauses_slow_the_step_of_a_mixture_by_its_exchange_alone():
    plain, paused = (
        fk.evaluate(MIXTURE | given, ["step_s", "expert_parallel_s", "gradient_s"], assume=True)
        for given in ({}, {"incast_share": "incast_share_paused"})
    )
    assert paused["step_s"] > 1.02 * plain["step_s"]
    assert paused["expert_parallel_s"] > plain["expert_parallel_s"]
    assert paused["gradient_s"] == plain["gradient_s"]
