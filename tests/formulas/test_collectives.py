import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import factorykit as fk
from factorykit.core.vocabulary import quantity
from factorykit.formulas import collectives

LINKS = (4.5e11, 5e10, 0.82, 0.92, 8.4e-6, 3.4e-6, 1.4e-5)
LLAMA = {
    **fk.architecture("llama3_405b"),
    "accelerator": "h100_sxm",
    "accelerators": 16384.0,
    "sequence_length": 8192.0,
    "global_batch_size": 2048.0,
    "micro_batch_size": 1.0,
    "tensor_parallel": 8.0,
    "pipeline_parallel": 16.0,
    "precision": "bf16",
}
RANKS = st.sampled_from([2.0, 8.0, 16.0, 64.0, 1024.0, 16384.0])


@pytest.fixture(scope="module")
def measured() -> pl.DataFrame:
    """Published times of collectives beside the results of the formulas for the same ranks and links."""
    rows = fk.table("collective_measurements").rename({"collective_s": "taken_s"}).collect()
    inputs = rows.with_columns(
        pl.col("collective_out_s").fill_null(quantity("collective_out_s").neutral), pl.lit(2.0).alias("network_tiers")
    )
    summed = pl.when(pl.col("in_network_reduction") == 1.0).then("in_network_collective_s").otherwise("collective_s")
    found = fk.evaluate(inputs, ["collective_s", "in_network_collective_s"])
    return found.with_columns(bus_off=pl.col("taken_s") / summed - 1.0)


def test_bus_bandwidths_of_nccl_are_met_within_fifteen_percent(measured):
    """180 sizes of 19 runs, four to 1,024 ranks; nothing was fitted on them."""
    plain = measured.filter(in_network_reduction=0.0)
    assert plain.height == 180
    assert plain["bus_off"].abs().median() < 0.10
    assert plain.filter(pl.col("collective_bytes") >= 2.0**30)["bus_off"].abs().median() < 0.07


def test_measured_sums_in_the_network_are_met_within_ten_percent(measured):
    """32 bus bandwidths with SHARP on two clusters of B200, 2 to 64 nodes; over two nodes a tree was faster."""
    summed = measured.filter(in_network_reduction=1.0)
    assert (summed.height, summed["collective_ranks"].max()) == (32, 512.0)
    assert summed["bus_off"].abs().median() < 0.05
    assert summed["bus_off"].abs().max() < 0.10
    faster = summed["in_network_collective_s"] < summed["collective_s"]
    assert (faster == (summed["collective_ranks"] > 16.0)).all()


@given(RANKS, st.floats(1e3, 1e11))
def test_sums_in_the_network_are_never_slower_than_trees_from_three_domains_on(ranks, size):
    beta = collectives.bus_factor("all_reduce", ranks)
    own = (beta, size, ranks, 8.0, 4.5e11, 5e10, 0.82, 0.92, 1.07)
    tree = collectives.tree_collective_s(*own, 8.4e-6, 3.4e-6, 1.4e-5)
    summed = collectives.in_network_collective_s(*own[:7], 0.765, 1.07, 2.0, 8.4e-6, 3.4e-6, 1.4e-5)
    assert summed <= tree * (1 + 1e-12) or ranks <= 16.0


@given(RANKS, st.floats(1e3, 1e11), st.sampled_from(["all_reduce", "all_gather", "reduce_scatter", "all_to_all"]))
def test_a_ring_never_beats_its_links(ranks, size, collective):
    beta = collectives.bus_factor(collective, ranks)
    taken = collectives.ring_collective_s(collective, beta, size, ranks, 8.0, *LINKS)
    assert collectives.bus_bytes_per_s(beta, size, taken) <= min(
        4.5e11 * 0.82, 8.0 * 5e10 * 0.92 if ranks > 8 else 1e99
    )


def test_no_bytes_take_the_hops_alone_and_one_rank_takes_nothing():
    """A ring of 64 in eights: 2 (56 + 7) hops; trees: two logarithms; aggregated trees: one."""
    start, up, out = 8.4e-6, 3.4e-6, 1.4e-5
    own = {
        "collective_bytes": 1e-12,
        "domain_ranks": 8.0,
        "scale_up_bytes_per_s": 4.5e11,
        "scale_out_bytes_per_s": 5e10,
    }
    hops = {
        "ring_collective_s": 2 * (56 * up + 7 * out),
        "tree_collective_s": 2 * (3 * up + 3 * out),
        "pat_collective_s": 7 * up + 3 * out,
        "exchange_collective_s": 63 * up,
    }
    found = fk.evaluate(own | {"collective_ranks": 64.0}, list(hops))
    alone = fk.evaluate(own | {"collective_ranks": 1.0, "network_tiers": 2.0}, [*hops, "in_network_collective_s"])
    wide = own | {"collective_bytes": 1e12, "scale_up_bytes_per_s": 1e14}
    two, three = (fk.evaluate(wide | {"collective_ranks": ranks}, list(hops)) for ranks in (16.0, 24.0))
    assert three["tree_collective_s"] / two["tree_collective_s"] == pytest.approx(2 * 23 / 24, rel=1e-2)
    for name, waiting in hops.items():
        assert found[name] == pytest.approx(start + waiting, rel=1e-6), name
    assert set(alone.values()) == {0.0}


def test_seven_to_one_oversubscription_slows_routed_tokens_but_not_rings():
    """Pods of 3,072 and 1:7 above [llama3, section 3.3.1]: rings are laid so that nothing is lost."""
    llama = LLAMA
    above = {"network_oversubscription": 7.0, "pod_accelerators": 3072.0}
    flat, over = (fk.evaluate(run, "step_s", assume=True)["step_s"] for run in (llama, llama | above))
    assert over == flat
    scattered = fk.evaluate(llama | above | {"pod_accelerators": 128.0}, "step_s", assume=True)["step_s"]
    assert scattered > flat
    group = {"sustained_out_share": 0.8, "expert_parallel": 64.0, "expert_tensor_parallel": 1.0}
    assert fk.evaluate(group | above | {"pod_accelerators": 16.0}, "exchange_out_share")["exchange_out_share"] < 0.2


def test_hashed_flows_keep_the_published_share_of_plain_ethernet_and_lengthen_the_step():
    """60 % of data throughput at scale [spectrumx2024]; 16 flows as Llama 3 [llama3, section 3.3.1], 64 ports."""
    hashed = fk.evaluate({"link_flows": 16.0, "switch_ports": 64.0}, "routing_share_ecmp")["routing_share_ecmp"]
    assert hashed == pytest.approx(0.60, abs=0.01)
    plain = fk.evaluate(LLAMA, "step_s", assume=True)["step_s"]
    assert fk.evaluate(LLAMA | {"routing_share": hashed}, "step_s", assume=True)["step_s"] > plain


@pytest.mark.parametrize(("rate", "algorithm_bytes_per_s"), [(1.25e10, 80e9), (2.5e10, 110e9)])
def test_sums_in_the_network_reach_the_expected_rate_of_dgx_a100(rate, algorithm_bytes_per_s):
    """80 GB/s with four adapters of 200 Gb/s, 110 with eight, limited by NVLink [NCCL issue 320, 2023-01-03]."""
    run = {"collective_bytes": 2.0**34, "collective_ranks": 256.0, "domain_ranks": 8.0, "network_tiers": 2.0}
    links = {"scale_up_bytes_per_s": 3e11, "scale_out_bytes_per_s": rate}
    taken = fk.evaluate(run | links, "in_network_collective_s")["in_network_collective_s"]
    assert 2.0**34 / taken == pytest.approx(algorithm_bytes_per_s, rel=0.15)


@pytest.mark.parametrize(
    ("chip", "chips", "wiring", "reduced", "cut"),
    [
        ("tpu_v4", 4096.0, "torus_3d", 1.1e15, 24e12),
        ("tpu_v5e", 256.0, "torus_2d", 51.2e12, 1.6e12),
        ("tpu_v6e", 256.0, "torus_2d", 102.4e12, 3.2e12),
    ],
)
def test_pods_reduce_and_are_cut_as_their_maker_states(chip, chips, wiring, reduced, cut):
    """All-reduce and bisection bandwidth per pod of Google's documentation, in rings over all axes."""
    pod = {"accelerator": chip, "accelerators": chips, "scale_up_share": 1.0, "context_parallel": 1.0}
    found = fk.evaluate(pod | {"data_parallel": chips}, ["ring_up_share", "scale_up_bytes_per_s"])
    assert chips * found["ring_up_share"] * found["scale_up_bytes_per_s"] == pytest.approx(reduced, rel=0.01)
    links = {"scale_out_bytes_per_s": found["scale_up_bytes_per_s"], "network_topology": wiring, "network_tiers": 0.0}
    through = fk.evaluate(pod | links, "bisection_bytes_per_s")["bisection_bytes_per_s"]
    assert through == pytest.approx(cut, rel=0.05)


@pytest.mark.parametrize(("chips", "closed"), [(16, True), (8, False), (2, False)])
def test_routed_tokens_on_a_ring_match_a_count_of_hops(chips, closed):
    """Every chip sends a part to every other by the shorter way, and half by each way where both are equal."""
    load = dict.fromkeys([(link, way) for link in range(chips) for way in (1, -1)], 0.0)
    for start in range(chips):
        for hops in range(1, chips):
            there = hops / chips if not closed else (1.0 if 2 * hops < chips else 0.5 * (2 * hops == chips))
            ends = start + hops < chips
            for way, far, part in ((1, hops, there), (-1, chips - hops, 1.0 - there)):
                amount = part if closed else float(ends if way == 1 else not ends)
                for step in range(far):
                    load[(start + way * step - (way < 0)) % chips, way] += amount / chips
    axes, pod = 2.0, 256.0
    counted = (1.0 - 1.0 / chips) / (max(load.values()) * 2.0 * axes)
    share = {"expert_parallel": float(chips), "accelerators": pod, "scale_up_domain": pod, "scale_up_share": 1.0}
    found = fk.evaluate(share | {"torus_axes": axes, "torus_side": 16.0}, "exchange_up_share")
    assert found["exchange_up_share"] == pytest.approx(counted, rel=1e-12)
