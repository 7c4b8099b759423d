"""Things and statements: one row a thing, picked field by field from what is said, and nothing said is lost."""

from __future__ import annotations

import re

import polars as pl
import pytest

import factorykit as fk
from factorykit.core.errors import DatasetError
from factorykit.data.entities import KINDS, picked

MOMENTS = ["2022", "2024-06", "2025-06", "2026-09"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_thing_has_one_row_and_every_thing_spoken_of_has_one(kind):
    origin, key = KINDS[kind]
    rows = fk.table(kind).collect()
    assert rows[key].is_unique().all()
    assert set(rows[key]) == set(fk.table(origin).collect()[key])


@pytest.mark.parametrize("kind", KINDS)
def test_statements_hold_every_filled_cell_of_what_is_said(kind):
    origin, key = KINDS[kind]
    said = fk.table(origin).collect()
    beside = {"statement", key, "source", "locator", "as_of", "note", "preferred", "address"}
    cells = sum(said[name].count() for name in said.columns if name not in beside)
    assert fk.table("statements").filter(kind=kind).collect().height == cells


@pytest.mark.parametrize("kind", KINDS)
def test_a_cell_is_the_statement_picked_for_it(kind):
    key = KINDS[kind][1]
    rows = {row[key]: row for row in fk.table(kind).collect().to_dicts()}
    chosen = fk.table("statements").filter(pl.col("preferred").is_not_null(), kind=kind).collect()
    assert chosen.select("thing", "field").is_unique().all()
    own = {"accelerator", "accelerators", "tokens", "wall_days"} if kind == "models" else set()
    for row in chosen.to_dicts():
        if row["field"] not in own:
            assert rows[row["thing"]][row["field"]] in (row["value"], row["words"])


def test_the_maker_is_believed_before_a_data_set_and_that_before_the_press_and_the_documents():
    rows = pl.DataFrame(
        {
            "kind": "runs",
            "thing": "x",
            "field": "tokens",
            "value": [1.0, 2.0, 3.0, 4.0],
            "words": pl.Series([None] * 4, dtype=pl.String),
            "statement": ["x@a", "x@b", "x@c", "x@d"],
            "as_of": ["2026", "2025", "2024", "2023"],
            "preferred": pl.Series([None] * 4, dtype=pl.String),
            "order": [0, 1, 2, 3],
            "standing": [7.0, 5.0, 4.0, 0.0],
        }
    )
    for left in (4, 3, 2, 1):
        found = picked(rows.head(left)).filter(pl.col("preferred").is_not_null())
        assert found["value"].to_list() == [float(left)]


def test_a_benchmark_counts_what_took_part_and_is_picked_only_where_no_data_set_speaks():
    said = fk.table("statements").filter(kind="clusters", thing="nvidia_eos", field="accelerators").collect()
    counts = dict(said.select("source", "value").iter_rows())
    assert (counts["top500_2025_06"], counts["mlperf_training_4_1"]) == (3328.0, 3472.0)
    assert fk.table("clusters").filter(cluster="nvidia_eos").collect()["accelerators"].item() == 4608.0
    assert fk.table("clusters").filter(cluster="nvidia_tyche_hsg").collect()["accelerators"].item() == 5120.0


def test_chips_on_the_list_of_supercomputers_are_its_cores_over_those_of_a_chip():
    listed = fk.table("cluster_statements").filter(source="top500_2025_06").collect()
    assert listed.height >= 200
    for count, note in listed.select("accelerators", "note").iter_rows():
        cores, each = re.search(r"([\d,]+) accelerator cores over (\d+)", note).groups()
        assert count * int(each) == int(cores.replace(",", ""))


def test_a_seed_is_picked_only_where_nobody_else_speaks():
    said = fk.table("statements").filter(pl.col("kind") != "organisations").collect()
    kinds = fk.table("sources").select("source", source_kind="kind").collect()
    said = said.join(kinds, on="source")
    about = ["kind", "thing", "field"]
    better = said.filter(pl.col("source_kind") != "document").select(about).unique()
    seeds = said.filter(pl.col("source_kind") == "document", pl.col("preferred").is_not_null())
    beaten = seeds.join(better, on=about, how="semi").select("field").unique()["field"].to_list()
    assert set(beaten) <= {"accelerator", "accelerator_stated", "nodes"}  # beside a count that they alone give


def test_what_belongs_together_comes_from_one_statement():
    said = fk.table("statements").filter(pl.col("preferred").is_not_null(), kind="clusters").collect()
    counts = said.filter(pl.col("field").is_in(["accelerators", "accelerator", "accelerator_stated", "nodes"]))
    assert counts.group_by("thing").agg(pl.col("statement").n_unique())["statement"].max() == 1


def test_there_are_clusters_sites_and_models_enough_to_ask_about():
    asked = fk.sql(
        "select count(*) from clusters where example is null and accelerators is not null "
        "and first_operational is not null"
    )
    assert asked.item() >= 550
    powered = fk.sql("select count(power_reported_w), count(facility_power_computed_w) from clusters").row(0)
    assert powered[0] >= 150
    assert powered[1] >= 350
    assert fk.sql("select count(*) from sites where facility_power_w is not null").item() >= 30
    trained = "where tokens is not null and (accelerators is not null or accelerator_hours is not null)"
    assert fk.sql(f"select count(*) from models {trained}").item() >= 60


def test_computed_power_is_chips_their_nodes_and_pue():
    row = fk.sql(
        "select c.accelerators * (a.tdp_w + o.value / n.value) * p.value as expected, facility_power_computed_w "
        "from clusters c join accelerators a using (accelerator), "
        "(select value from defaults where quantity = 'node_overhead_power_w') o, "
        "(select value from defaults where quantity = 'accelerators_per_node') n, "
        "(select value from defaults where quantity = 'pue') p where cluster = 'microsoft_azure_eagle'"
    ).row(0)
    assert row[0] == pytest.approx(row[1])


@pytest.mark.parametrize(
    "join",
    [
        "clusters c join accelerators a using (accelerator)",
        "sites s join country_grids g using (country) join electricity e using (electricity_price)",
        "runs r join models m on r.model_key = m.model join clusters c on c.cluster = r.cluster",
        "clusters c join sites s on c.site_key = s.site join organisations o on o.organisation = s.organisation",
        "models m join architectures a using (architecture)",
    ],
)
def test_things_join(join):
    assert fk.sql(f"select count(*) from {join}").item() >= 3


def test_a_table_of_things_can_be_asked_as_of_a_month():
    before = fk.table("clusters", as_of="2024-12").filter(cluster="xai_colossus").collect()
    after = fk.table("clusters", as_of="2025-09").filter(cluster="xai_colossus").collect()
    assert (before["accelerators"].item(), after["accelerators"].item()) == (1e5, 2.3e5)
    assert fk.table("clusters", as_of="2024-12").collect_schema() == fk.table("clusters").collect_schema()


def test_the_later_the_more_is_known():
    sizes = [fk.table("clusters", as_of=when).collect().height for when in MOMENTS]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


@pytest.mark.parametrize("when", MOMENTS)
def test_nothing_is_said_of_a_later_time_than_asked(when):
    for kind in KINDS:
        assert (fk.table(kind, as_of=when).collect()["as_of"].str.slice(0, len(when)) <= when).all()


@pytest.mark.parametrize(("table", "when"), [("clusters", "June 2025"), ("clusters", "2025-6"), ("statistics", "2025")])
def test_a_time_that_is_none_is_refused(table, when):
    name = "sources" if table == "statistics" else table
    with pytest.raises(DatasetError, match="as_of"):
        fk.table(name, as_of=when)


def test_electricity_is_in_dollars_at_the_rate_named():
    row = fk.sql(
        "select electricity_usd_per_kwh / electricity_eur_per_kwh, usd_per_unit from electricity e "
        "join exchange_rates x on x.currency = 'EUR' and x.year = e.year "
        "where electricity_price = 'poland_wholesale_2024'"
    ).row(0)
    assert row[0] == pytest.approx(row[1], rel=1e-4)
    assert fk.sql("select count(*) from electricity where electricity_usd_per_kwh is null").item() == 0


def test_freshness_counts_the_rows_that_rest_on_a_source():
    fresh = fk.table("freshness").filter(source="epoch_data_centers").collect().row(0, named=True)
    tables = ("cluster_statements", "site_statements", "organisation_statements")
    rows = sum(fk.table(name).filter(source="epoch_data_centers").collect().height for name in tables)
    assert fresh["rows"] >= rows > 500
    assert fresh["accessed"] is not None
    assert set(fk.table("freshness").collect()["source"]) == set(fk.table("sources").collect()["source"])
