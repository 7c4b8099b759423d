from collections import deque
from itertools import combinations, product

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import factorykit as fk
from factorykit.formulas import topology

PORTS = 64.0
TREES = ("fat_tree", "rail_optimized", "rail_only")


def fabrics() -> list[dict]:
    """Every published fabric that is wired in one of the vocabulary's ways."""
    wired = fk.table("fabrics").filter(pl.col("network_topology").is_not_null())
    return wired.with_columns(pl.col("switch_ports").fill_null(PORTS)).collect().to_dicts()


@pytest.mark.parametrize("fabric", fabrics(), ids=lambda fabric: fabric["fabric"])
def test_a_fabric_needs_the_published_counts(fabric):
    asked = [name for name in ("switches", "switch_links", "circuit_switches") if fabric[name] is not None]
    wired = ("network_topology", "network_endpoints", "network_planes", "switch_ports")
    found = fk.evaluate({name: fabric[name] for name in wired}, asked)
    assert dict(found) == {name: fabric[name] for name in asked}
    if fabric["network_capital_usd"]:
        prices = {"switch_usd": 81_920.0, "link_usd": 550.0}
        priced = fk.evaluate({name: fabric[name] for name in wired} | prices, "network_capital_usd")
        assert priced["network_capital_usd"] == pytest.approx(fabric["network_capital_usd"], rel=0.03)


@pytest.mark.parametrize(("endpoints", "tiers"), [(64, 1), (65, 2), (2048, 2), (2049, 3), (65536, 3), (65537, 4)])
def test_a_layer_more_begins_where_ports_run_out(endpoints, tiers):
    assert topology.network_tiers(float(endpoints), 1.0, 8.0, PORTS, 1.0, "fat_tree") == tiers


@given(st.sampled_from(TREES), st.sampled_from((2.0, 3.0, 4.0)), st.floats(1.0, 16.0), st.floats(64.0, 1e6))
def test_every_port_of_a_tree_is_used(wiring, tiers, oversubscription, endpoints):
    """Each endpoint takes one port of a switch, each link between switches two."""
    given = (endpoints, tiers, PORTS, oversubscription, wiring)
    ports = topology.switches(*given) * PORTS
    assert ports == pytest.approx(endpoints + 2.0 * topology.switch_links(*given), rel=1e-12)


def distances(links: list[tuple]) -> tuple[int, int]:
    """Number of links and the longest of the shortest ways of a graph."""
    beside: dict = {}
    for a, b in links:
        beside.setdefault(a, set()).add(b)
        beside.setdefault(b, set()).add(a)
    longest = 0
    for start in beside:
        far, todo = {start: 0}, deque([start])
        while todo:
            here = todo.popleft()
            for there in beside[here] - far.keys():
                far[there] = far[here] + 1
                todo.append(there)
        longest = max(longest, *far.values())
    return len(links), longest


def dragonfly(p: int) -> list[tuple]:
    """Groups of 2p switches, all joined; link n of a group goes to group n, counted from itself."""
    a, groups = 2 * p, 2 * p * p + 1
    local = [((g, i), (g, j)) for g in range(groups) for i, j in combinations(range(a), 2)]
    ends = {(g, (g + n + 1) % groups): (g, n // p) for g in range(groups) for n in range(a * p)}
    return local + [(ends[g, h], ends[h, g]) for g, h in combinations(range(groups), 2)]


def torus(side: int, dimensions: int) -> list[tuple]:
    chips = product(range(side), repeat=dimensions)
    step = [tuple(int(i == d) for i in range(dimensions)) for d in range(dimensions)]
    return [(c, tuple((x + s) % side for x, s in zip(c, way, strict=True))) for c in chips for way in step]


def fat_tree(k: int) -> list[tuple]:
    half = k // 2
    pods = [(("edge", p, e), ("pod", p, a)) for p in range(k) for e in range(half) for a in range(half)]
    return pods + [(("pod", p, a), ("core", a, c)) for p in range(k) for a in range(half) for c in range(half)]


@pytest.mark.parametrize(
    ("wiring", "ports", "endpoints", "links"),
    [
        ("fat_tree", 4.0, 16.0, fat_tree(4)),
        ("fat_tree", 8.0, 128.0, fat_tree(8)),
        ("dragonfly", 7.0, 72.0, dragonfly(2)),
        ("torus_2d", 4.0, 36.0, torus(6, 2)),
        ("torus_3d", 4.0, 125.0, torus(5, 3)),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_links_and_diameter_are_those_of_the_graph_built_switch_by_switch(wiring, ports, endpoints, links):
    tiers = topology.network_tiers(endpoints, 1.0, 8.0, ports, 1.0, wiring)
    counted = topology.switch_links(endpoints, tiers, ports, 1.0, wiring)
    assert (counted, topology.network_diameter(endpoints, tiers, wiring)) == distances(links)


def test_half_of_a_trees_endpoints_reach_the_other_half_and_a_quarter_of_a_dragonflys():
    wirings = ("fat_tree", "dragonfly", "dragonfly_plus")
    through = [topology.bisection_bytes_per_s(1e4, 1.0, 2.0, 4.0, word) for word in wirings]
    assert through == [1e4 / 2 / 4, 1e4 / 4, 1e4 / 4]
    assert topology.network_diameter(64.0, 1.0, "optical_spine") == 0.0
    assert topology.bisection_bytes_per_s(64.0, 1.0, 1.0, 4.0, "fat_tree") == 32.0  # one switch has no layer above it
    assert topology.bisection_bytes_per_s(36.0, 1.0, 0.0, 1.0, "torus_2d") == 2 * 6 * 1 / 4


def test_optics_end_at_mirrors_and_copper_has_none():
    tree, mirrors, copper = (
        topology.network_transceivers(4096.0, 3.0, 8192.0, 1.0, word, 4.0)
        for word in ("fat_tree", "optical_spine", "torus_2d")
    )
    assert (tree, mirrors, copper) == (2 * 8192 + 4096, 2 * 8192, 0.0)


def test_above_metas_pods_a_seventh_of_the_links_remains():
    """24,576 GPUs in pods of 3,072, 1:7 oversubscribed above [llama3, section 3.3.1]: full bisection inside."""
    meta = {
        "network_endpoints": 24_576.0,
        "network_planes": 1.0,
        "switch_ports": PORTS,
        "network_oversubscription": 7.0,
    }
    flat, thin = (fk.evaluate(meta | {"network_oversubscription": s}, ["switch_links", "switches"]) for s in (1.0, 7.0))
    assert flat["switch_links"] - thin["switch_links"] == pytest.approx(24_576 * 6 / 7)
    assert thin["switches"] < flat["switches"]


def test_a_dragonfly_beyond_its_radix_is_outside_its_range():
    fabric = pl.DataFrame({"network_endpoints": [262_656.0, 262_700.0], "network_planes": 1.0, "switch_ports": PORTS})
    ranges = fk.out_of_range(fabric.with_columns(network_topology=pl.lit("dragonfly")), "switches")["out_of_range"]
    assert ranges[0] is None
    assert "2p^2 (2p^2 + 1) of a dragonfly" in ranges[1]


def test_alibabas_rates_of_links_and_switches_predict_the_network_failures_of_llama_3():
    """35 of 419 interruptions in 54 days on 16,384 GPUs were the network's [llama3, table 5]."""
    fabric = {"accelerators": 16_384.0, "nics_per_accelerator": 1.0, "network_planes": 1.0, "switch_ports": PORTS}
    rates = {"link_mtbf_s": 30 * 86_400 / 0.00057, "switch_mtbf_s": 30 * 86_400 / 0.00051}
    chips = 54 * 86_400.0 * 16_384 / (419 - 35)
    asked = fabric | rates | {"accelerator_mtbf_s": chips, "cluster_mtbf_s": "cluster_mtbf_network_s"}
    stops = 54 * 86_400 / fk.evaluate(asked, "cluster_mtbf_s")["cluster_mtbf_s"]
    assert (stops - 384) / 35 == pytest.approx(1.0, abs=0.5)


def test_rails_alone_save_as_much_as_published():
    """38 to 77 % of the cost, 37 to 75 % of the power [wang2023rail]: switches and both ends of every link.

    A switch's part of them is unknown and the same throughout: 75 % of the cost of three layers and 60 % of the power
    give all four ends, since three layers become two or one.
    """
    wired = {"network_endpoints": 32_768.0, "network_planes": 1.0, "network_rails": 256.0}

    def parts(topology: str, ports: float) -> tuple[float, float]:
        given = wired | {"network_topology": topology, "switch_ports": ports}
        found = fk.evaluate(given, ["switches", "network_transceivers"])
        return found["switches"] * ports, found["network_transceivers"] + wired["network_endpoints"]

    for share, ends in ((0.75, (38, 77)), (0.6, (37, 75))):
        saved = []
        for ports in (64.0, 128.0):
            (switched, lit), (fewer, dark) = parts("fat_tree", ports), parts("rail_only", ports)
            saved.append(round(100 * (1 - share * fewer / switched - (1 - share) * dark / lit)))
        assert tuple(saved) == ends
