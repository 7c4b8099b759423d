import pytest
from hypothesis import given
from hypothesis import strategies as st

import factorykit as fk
from factorykit.core.vocabulary import quantity

DGX = {"accelerators_per_node": 8, "accelerator_power_w": 700, "node_overhead_power_w": 4600}
positive = st.floats(1e-3, 1e6)


@given(power=positive, seconds=positive)
def test_energy_is_power_times_time(power, seconds):
    kwh = fk.formulas.energy.training_energy_kwh(power, seconds)
    assert kwh == pytest.approx(power / 1000 * seconds / 3600, rel=1e-12)


def test_the_documents_power_follows_from_5800_watts_a_node():
    """Blog post, L315-341: 19.6 MW for 24,576 and 83.4 MW for 100,000 chips."""
    node = {"accelerators_per_node": 8, "accelerator_power_w": 650, "node_overhead_power_w": 600}
    meta = fk.evaluate(node | {"accelerators": 24576, "pue": 1.10}, "facility_power_w")["facility_power_w"]
    colossus = fk.evaluate(node | {"accelerators": 100_000, "pue": 1.15}, "facility_power_w")["facility_power_w"]
    assert meta == pytest.approx(19.6e6, rel=0.002)
    assert colossus == pytest.approx(83.4e6, rel=0.002)


def test_dgx_power_makes_more_of_the_same_clusters():
    """DGX H100 user guide: 10.2 kW at most. Colossus is reported at about 150 MW."""
    meta = fk.evaluate(DGX | {"accelerators": 24576, "pue": 1.10}, "facility_power_w")["facility_power_w"]
    colossus = fk.evaluate(DGX | {"accelerators": 100_000, "pue": 1.15}, "facility_power_w")["facility_power_w"]
    assert meta == pytest.approx(34.5e6, rel=0.002)
    assert colossus == pytest.approx(150e6, rel=0.03)


def test_built_up_overhead_counts_the_network_once():
    fabric = {"accelerators": 2048, "nics_per_accelerator": 1, "network_planes": 1, "switch_ports": 64}
    watts = {"host_power_w": 1300, "nics_per_node": 8, "nic_power_w": 25, "fan_power_w": 1000}
    watts |= {"switch_power_w": 1000, "transceiver_power_w": 15, "accelerator_power_w": 650, "accelerators_per_node": 8}
    built = {"node_overhead_power_w": "node_overhead_power_built_w"}
    found = fk.evaluate(fabric | watts | built, ["it_power_w", "network_power_w", "nodes"])
    servers = found["nodes"] * (8 * 650 + 1300 + 8 * 25 + 1000)
    assert found["it_power_w"] == pytest.approx(servers + found["network_power_w"], rel=1e-12)


@pytest.mark.parametrize(("capacity_w", "dgx", "nvl72"), [(30e3, 0, 0), (50e3, 1, 0), (80e3, 1, 0), (132e3, 1, 1)])
def test_each_cooling_supports_the_racks_within_its_capacity(capacity_w, dgx, nvl72):
    """Four DGX H100 are 40.8 kW; an NVL72 rack is 120 kW."""
    assert fk.formulas.energy.cooling_fits(4 * 10_200.0, capacity_w) == dgx
    assert fk.formulas.energy.cooling_fits(120e3, capacity_w) == nvl72


def test_a_rack_filled_to_its_cooling_fits():
    racked = fk.formulas.energy.nodes_per_rack_cooled(30_000.0, 10_200.0)
    power = fk.formulas.energy.rack_power_w(racked, 10_200.0)
    assert fk.formulas.energy.cooling_fits(power, 30_000.0) == 1.0


def test_embodied_carbon_of_bloom_is_that_of_the_paper():
    """Luccioni et al. 2023, section 4.1: 11.2 t, of which servers 7.57 t and GPUs 3.64 t."""
    share = fk.formulas.energy.training_embodied_carbon_kg
    assert share(1_082_990.0, 2500.0 / 8, 6.0, 0.85) == pytest.approx(7570, rel=0.005)
    assert share(1_082_990.0, 150.0, 6.0, 0.85) == pytest.approx(3640, rel=0.005)


def test_hourly_matching_lies_between_nothing_and_the_grid():
    matched = fk.formulas.energy.training_carbon_matched_kg
    assert (matched(100.0, 0.0), matched(100.0, 1.0)) == (100.0, 0.0)


def test_the_parts_of_a_node_sum_to_the_metered_power():
    """MLPerf Training v4.0, smc-ac-power: 6,850 W a node of eight H100, switches metered apart."""
    parts = {name: quantity(name).default for name in ("host_power_w", "nics_per_node", "nic_power_w", "fan_power_w")}
    overhead = fk.formulas.energy.node_overhead_power_built_w(**parts, network_power_w=0.0, nodes=64.0)
    assert fk.formulas.energy.node_power_w(8.0, 700.0, overhead) == pytest.approx(6850.0)
