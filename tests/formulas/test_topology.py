import pytest

import factorykit as fk

PORTS = 64.0
# Zhao et al., "Insights into DeepSeek-V3", ISCA 2025, arXiv:2505.09343, table 3
PUBLISHED = [(2048, 1, 96, 2048, 9e6), (16384, 8, 768, 16384, 72e6), (65536, 1, 5120, 131072, 491e6)]


@pytest.mark.parametrize(("endpoints", "planes", "switches", "links", "usd"), PUBLISHED)
def test_a_fat_tree_needs_what_the_paper_counts(endpoints, planes, switches, links, usd):
    fabric = {"accelerators": endpoints, "nics_per_accelerator": 1, "network_planes": planes, "switch_ports": PORTS}
    prices = {"switch_usd": 81_920.0, "link_usd": 550.0}
    found = fk.evaluate(fabric | prices, ["switches", "switch_links", "network_capital_usd"])
    assert (found["switches"], found["switch_links"]) == (switches, links)
    assert found["network_capital_usd"] == pytest.approx(usd, rel=0.03)


@pytest.mark.parametrize(("endpoints", "tiers"), [(64, 1), (65, 2), (2048, 2), (2049, 3), (65536, 3), (65537, 4)])
def test_a_layer_more_begins_where_ports_run_out(endpoints, tiers):
    assert fk.formulas.topology.network_tiers(float(endpoints), 1.0, PORTS) == tiers


def test_ports_are_conserved():
    """Every port is used: each endpoint takes one, each link between switches two."""
    endpoints, tiers = 65536.0, 3.0
    ports = fk.formulas.topology.switches(endpoints, tiers, PORTS) * PORTS
    assert ports == endpoints + 2.0 * fk.formulas.topology.switch_links(endpoints, tiers)
