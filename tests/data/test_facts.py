"""Content of the tables: every value has a source and equals the published one."""

from __future__ import annotations

import polars as pl
import pytest

import factorykit as fk
from factorykit.core.errors import UnknownName
from factorykit.core.vocabulary import quantity, vocabulary
from factorykit.data import tables

SOURCED = [name for name in tables.resources() if name not in ("sources", "freshness")]


@pytest.mark.parametrize("name", SOURCED)
def test_every_value_is_sourced_and_located(name):
    rows = fk.table(name).collect()
    assert rows.select("source", "locator").null_count().sum_horizontal().item() == 0
    assert set(rows["source"]) <= set(fk.table("sources").collect()["source"])


def test_every_source_is_cited_or_lists_its_facts():
    every = fk.table("sources").collect()
    cited = {source for name in SOURCED for source in fk.sources(name)["source"]}
    assert every.filter(pl.col("facts").is_null() & ~pl.col("source").is_in(sorted(cited)))["source"].to_list() == []
    assert every["evidence"].null_count() == 0


def test_every_quantity_column_has_the_unit_of_the_vocabulary():
    for name, resource in tables.resources().items():
        for field in resource["schema"]["fields"]:
            assert field["description"], (name, field["name"])
            if field["type"] == "number" and field["name"] in vocabulary():
                assert field["unit"] == quantity(field["name"]).unit, (name, field["name"])


def test_every_preset_is_valued_and_within_its_bounds():
    rows = fk.table("presets").collect()
    assert rows.select("preset", "quantity", "value", "source").null_count().sum_horizontal().item() == 0
    assert all(quantity(name).holds(value) for name, value in rows.select("quantity", "value").iter_rows())
    assert rows.group_by("preset").agg(pl.col("label", "kind").n_unique()).select("label", "kind").max().row(0) == (
        1,
        1,
    )


def test_values_computed_from_printed_facts_are_marked_as_computed():
    notes = dict(fk.table("presets").filter(preset="llama_3_1_405b").select("quantity", "note").collect().iter_rows())
    for name in ("accelerator_mtbf_s", "node_failures_per_node_day", "node_overhead_power_w", "carbon_kg_per_kwh"):
        assert notes[name].startswith("computed: ")


def test_computed_values_follow_from_their_notes():
    values = dict(fk.table("presets").filter(preset="llama_3_1_405b").select("quantity", "value").collect().iter_rows())
    assert values["accelerator_mtbf_s"] == pytest.approx(54 * 86400 * 16384 / 419)
    assert values["node_failures_per_node_day"] == pytest.approx(419 / (2048 * 54))
    assert values["carbon_kg_per_kwh"] == pytest.approx(8.93e6 / (30.84e6 * 0.7))
    assert values["node_overhead_power_w"] == 6850 - 8 * values["accelerator_power_w"]


def test_presets_and_accelerators_agree_on_the_peak_rate():
    rates = fk.table("accelerators").select("peak_16bit_flop_per_s").collect().to_series().drop_nulls().to_list()
    for value in fk.table("presets").filter(quantity="peak_flop_per_s").select("value").collect().to_series():
        assert min(abs(value / rate - 1) for rate in rates) < 1e-3


def test_rates_are_dense_and_fp8_is_no_slower_than_bf16():
    chips = fk.table("accelerators").collect()
    assert chips.filter(accelerator="h100_sxm")["peak_16bit_flop_per_s"].item() == pytest.approx(989e12, rel=1e-3)
    assert (chips["peak_fp8_flop_per_s"].drop_nulls() > 0).all()
    assert chips.filter(pl.col("peak_fp8_flop_per_s") < pl.col("peak_16bit_flop_per_s")).height == 0
    assert (
        chips.filter(pl.col("scale_up_bytes_per_s") != pl.col("scale_up_both_directions_bytes_per_s") / 2).height == 0
    )


def test_the_faulty_gpu_share_is_kept_as_printed_beside_its_count():
    rows = fk.table("failures").filter(pl.col("preferred").is_not_null(), failure="llama_3_1_405b_gpu")
    row = rows.select("count", "share_printed").collect().row(0)
    assert row == (148.0, 0.301)  # the paper's Table 5; 148 of 419 is 0.353


def test_the_printed_total_of_the_24k_cluster_is_a_thousand_times_too_small():
    row = fk.sql(
        "select cluster_peak_printed_flop_per_s, accelerators * peak_flop_per_s from cluster_statements "
        "where statement = 'meta_24k@seed_000'"
    ).row(0)
    assert row == (2.43e16, pytest.approx(2.43e19, rel=1e-3))


def test_contradicting_statements_are_kept_side_by_side():
    network = (
        fk.table("cluster_statements").filter(cluster="xai_colossus").select("scale_out_stated").collect().to_series()
    )
    assert network.str.contains("InfiniBand").sum() >= 3
    preferred = fk.table("clusters").filter(cluster="xai_colossus").collect()
    assert "Ethernet" in preferred["scale_out_stated"].item()


def test_sources_have_citation_locator_and_licence():
    rows = fk.sources("presets", "llama_3_1_405b")
    assert rows.filter(quantity="mfu")["citation"].item().startswith("The Llama 3 Herd of Models")
    assert rows.select("source", "citation", "locator", "licence", "evidence").null_count().sum_horizontal().item() == 0
    assert fk.sources("storage_systems", "all_flash_ceph").height == 1
    assert fk.sources("accelerators", "H100").equals(fk.sources("accelerators", "h100_sxm"))
    assert fk.sources("sources").height == fk.table("sources").collect().height


def test_sources_include_those_that_confirm_a_value():
    rows = fk.sources("accelerators", "h100_sxm")
    assert rows["role"].to_list() == ["states", "confirms", "confirms", "confirms"]
    assert "CC BY 4.0" in rows["licence"].to_list()


def test_sources_of_one_statement_can_be_selected():
    rows = fk.sources("cluster_statements", "meta_24k@seed_000.2")
    assert (rows.height, rows["locator"].item()) == (1, "L80 table 'GPU Cluster Comparison'")


def test_sources_of_an_entity_are_listed_by_field():
    rows = fk.sources("clusters", "xai_colossus")
    found = {row["field"]: row for row in rows.to_dicts()}
    assert found["scale_out_stated"]["source"] == "dcd_colossus"
    assert found["accelerators"]["source"] == "epoch_clusters"
    assert rows.select("citation", "locator", "preferred").null_count().sum_horizontal().item() == 0


def test_sources_of_something_unknown_name_the_nearest():
    with pytest.raises(UnknownName, match="nearest is 'meta_24k'"):
        fk.sources("clusters", "meta_24")


def test_ports_that_leave_a_node_are_counted_once():
    rows = fk.sql(
        "select scale_up_bytes_per_s + scale_out_bytes_per_s as both_ways "
        "from accelerators join links using (accelerator) "
        "where accelerator in ('gaudi2', 'gaudi3') order by accelerator"
    )
    # 24 ports of 100 and of 200 Gb/s (Intel's documentation).
    assert rows["both_ways"].to_list() == [24 * 12.5e9, 24 * 25e9]


def test_every_rental_offer_names_its_chip():
    offers = fk.table("rental_offers").collect()
    assert offers["accelerator"].null_count() == 0
    for key, name in offers.select("accelerator", "rental_id").unique().iter_rows():
        assert fk.identify("accelerator", name) == key


def test_rates_of_cards_are_dense_with_32_bit_accumulation():
    peaks = dict(fk.table("accelerators").select("accelerator", "peak_16bit_flop_per_s").collect().iter_rows())
    assert peaks["rtx_4090"] == 165.2e12
    assert peaks["rtx_5090"] == 209.5e12
    assert peaks["l4"] == 242e12 / 2
    assert peaks["gb10"] is None
