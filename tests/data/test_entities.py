"""Entities and statements: one row per entity, each field picked from its statements, and no statement lost."""

from __future__ import annotations

import re

import polars as pl
import pytest

import factorykit as fk
from factorykit.core.errors import DatasetError
from factorykit.data.entities import KINDS, with_preferred

MOMENTS = ["2022", "2024-06", "2025-06", "2026-09"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_stated_entity_has_exactly_one_row(kind):
    origin, key = KINDS[kind]
    rows = fk.table(kind).collect()
    assert rows[key].is_unique().all()
    stated = fk.table(origin).collect()
    if "example" in stated.columns:
        examples = stated.filter(pl.col("example").is_not_null())[key].unique().to_list()
        assert len(examples) >= 6
        stated = stated.filter(~pl.col(key).is_in(examples))
    assert set(rows[key]) == set(stated[key])


@pytest.mark.parametrize("kind", KINDS)
def test_statements_hold_every_filled_cell_of_their_tables(kind):
    origin, key = KINDS[kind]
    statements = fk.table(origin).collect()
    beside = {"statement", key, "source", "locator", "as_of", "note", "preferred", "address"}
    cells = sum(statements[name].count() for name in statements.columns if name not in beside)
    assert fk.table("statements").filter(kind=kind).collect().height == cells


@pytest.mark.parametrize("kind", KINDS)
def test_a_cell_is_the_statement_picked_for_it(kind):
    key = KINDS[kind][1]
    rows = {row[key]: row for row in fk.table(kind).collect().to_dicts()}
    chosen = fk.table("statements").filter(pl.col("preferred").is_not_null(), kind=kind).collect()
    assert chosen.select("entity", "field").is_unique().all()
    own = {"accelerator", "accelerators", "tokens", "wall_days"} if kind == "models" else set()
    own |= {"facility_power_w", "power_remark"} if kind == "clusters" else set()
    for row in chosen.to_dicts():
        if row["field"] not in own and row["entity"] in rows and row["field"] in rows[row["entity"]]:
            assert rows[row["entity"]][row["field"]] in (row["value"], row["words"])


def test_the_maker_is_preferred_to_a_data_set_then_the_press_then_the_documents():
    rows = pl.DataFrame(
        {
            "kind": "runs",
            "entity": "x",
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
        found = with_preferred(rows.head(left)).filter(pl.col("preferred").is_not_null())
        assert found["value"].to_list() == [float(left)]


def test_a_benchmark_counts_the_participants_and_is_picked_only_without_a_data_set():
    statements = fk.table("statements").filter(kind="clusters", entity="nvidia_eos", field="accelerators").collect()
    counts = dict(statements.select("source", "value").iter_rows())
    assert (counts["top500_2025_06"], counts["mlperf_training_4_1"]) == (3328.0, 3472.0)
    assert fk.table("clusters").filter(cluster="nvidia_eos").collect()["accelerators"].item() == 4608.0
    assert fk.table("clusters").filter(cluster="nvidia_tyche_hsg").collect()["accelerators"].item() == 5120.0


def test_chips_of_a_supercomputer_are_its_cores_over_the_cores_of_a_chip():
    listed = fk.table("cluster_statements").filter(source="top500_2025_06").collect()
    assert listed.height >= 200
    for count, note in listed.select("accelerators", "note").iter_rows():
        cores, each = re.search(r"([\d,]+) accelerator cores over (\d+)", note).groups()
        assert count * int(each) == int(cores.replace(",", ""))


def test_a_seed_is_picked_only_without_another_source():
    statements = fk.table("statements").filter(pl.col("kind") != "organisations").collect()
    kinds = fk.table("sources").select("source", source_kind="kind").collect()
    statements = statements.join(kinds, on="source")
    about = ["kind", "entity", "field"]
    better = statements.filter(pl.col("source_kind") != "document").select(about).unique()
    seeds = statements.filter(pl.col("source_kind") == "document", pl.col("preferred").is_not_null())
    beaten = seeds.join(better, on=about, how="semi").select("field").unique()["field"].to_list()
    assert set(beaten) <= {"accelerator", "accelerator_stated", "nodes"}  # beside a count that they alone give


def test_related_fields_come_from_one_statement():
    statements = fk.table("statements").filter(pl.col("preferred").is_not_null(), kind="clusters").collect()
    counts = statements.filter(pl.col("field").is_in(["accelerators", "accelerator", "accelerator_stated", "nodes"]))
    assert counts.group_by("entity").agg(pl.col("statement").n_unique())["statement"].max() == 1


def test_enough_clusters_sites_and_models_are_described():
    described = fk.sql("select count(*) from clusters where accelerators is not null and first_operational is not null")
    assert described.item() >= 550
    powered = fk.sql("select power_basis, count(*) from clusters where facility_power_w is not null group by all")
    assert dict(powered.iter_rows())["stated for the facility"] >= 55
    assert powered["count_star()"].sum() >= 450
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


def test_a_cluster_has_one_power_and_it_fits_its_chips_or_the_row_gives_the_reason():
    rows = fk.table("clusters").filter(pl.col("facility_power_w").is_not_null()).collect()
    assert rows["power_basis"].null_count() == 0
    ratio = pl.col("facility_power_w") / pl.col("chips_power_w")
    outside = rows.filter(~ratio.is_between(1.0, 2.5))
    assert outside.filter(pl.col("power_remark").is_null())["cluster"].to_list() == []
    inside = rows.filter(ratio.is_between(1.0, 2.5))
    assert inside.height > 10 * outside.height  # the reason is the exception
    assert inside.filter(pl.col("power_basis").str.contains("reported|benchmark")).height >= 80


def test_power_of_a_benchmark_run_counts_with_the_cooling_it_leaves_out():
    row = fk.sql(
        "select facility_power_w, (select max(power_reported_w) from cluster_statements where cluster = 'nyu_torch') "
        "* (select value from defaults where quantity = 'pue') from clusters where cluster = 'nyu_torch'"
    ).row(0)
    assert row[0] == pytest.approx(row[1])
    bases = fk.sql("select power_basis from clusters c where exists (from cluster_statements s where "
                   "s.cluster = c.cluster and s.facility_power_w is not null)")  # fmt: skip
    assert bases["power_basis"].unique().to_list() == ["stated for the facility"]


def test_a_mixture_of_experts_has_fewer_active_parameters_than_parameters():
    models = fk.table("models").collect()
    mixtures = fk.table("architectures").filter(pl.col("experts") > 1).collect()["architecture"].to_list()
    known = models.filter(pl.col("architecture").is_in(mixtures) | (pl.col("model") == "gshard_600b"))
    known = known.drop_nulls("active_parameters")
    assert known.height >= 5
    assert (known["active_parameters"] < 0.6 * known["parameters"]).all()


def test_a_cluster_has_a_position_only_where_more_than_the_country_is_known():
    clusters = fk.table("clusters").filter(pl.col("latitude").is_not_null()).collect()
    assert clusters.height >= 190
    assert clusters["site"].null_count() == 0
    together = clusters.group_by("latitude", "longitude").len()["len"]
    assert together.max() <= 6  # a campus; 154 stood in the middle of China


def test_every_run_with_parameters_and_tokens_has_its_training_compute():
    runs = fk.table("runs").collect()
    known = runs.filter(pl.col("parameters").is_not_null(), pl.col("tokens").is_not_null())
    missing = known.filter(pl.col("training_flop").is_null())["run"].to_list()
    assert set(missing) == {"pangu_sigma", "switch_c"}  # mixtures of which no source gives the active parameters
    assert known.height >= 70
    computed = runs.filter(training_flop_basis="computed").join(
        fk.table("models").select(model_key="model", active="active_parameters").collect(), on="model_key"
    )
    formula = fk.evaluate(
        computed.select(active_parameters=pl.coalesce("active_parameters", "active"), tokens="tokens"), "training_flop"
    )
    assert computed["training_flop"].to_list() == pytest.approx(formula["training_flop"].to_list())
    (threshold,) = fk.sql("select value from facts where fact = 'threshold_systemic_risk_flop'").row(0)
    above = runs.filter(pl.col("training_flop") >= threshold)
    assert {"llama_3_1_405b", "gpt_4", "nemotron_4_340b"} <= set(above["run"])


def test_cloud_regions_have_the_efficiency_and_the_electricity_that_their_operators_publish():
    found = fk.sql("select pue, water_l_per_kwh from cloud_regions where cloud_region = 'amazon_us_east_1'").row(0)
    assert found == (1.15, 0.12)
    columns = ["carbon_free_share", "carbon_kg_per_kwh"]
    region = fk.table("cloud_regions").filter(cloud_region="google_us_central1").select(columns).collect()
    grid = fk.table("grids").filter(grid="google_us_central1").select(columns).collect()
    assert region.row(0) == grid.row(0)
    assert fk.table("cloud_regions").collect()["pue"].count() >= 34


def test_existing_entities_have_no_date_after_the_newest_source():
    newest = fk.table("sources").select(pl.col("accessed").max()).collect().item()
    for kind in ("clusters", "sites", "cluster_chips"):
        assert fk.table(kind).filter(status="existing").collect()["as_of"].max() <= newest


def test_tranches_of_a_site_are_added_up_and_agree_with_its_h100_equivalents():
    total = fk.sql("select cluster, status, accelerators from clusters")
    counts = {name: (status, count) for name, status, count in total.iter_rows()}
    assert counts["xai_colossus_2_memphis"] == ("existing", 110_000 + 110_000 + 220_000)
    assert counts["microsoft_project_osmium"] == ("existing", 25_000 + 32_680 + 45_455)
    rate = {
        "A100": 624 / 1979,
        "H100": 1.0,
        "H200": 1.0,
        "B200": 5000 / 1979,
        "B300": 5000 / 1979,
        "Trainium2": 1299 / 1979,
    }
    stated = fk.sql(
        "select of_statement, k.accelerator_stated as kind, k.accelerators, s.h100_equivalents, c.power_remark "
        "from cluster_chips k join cluster_statements c on c.statement = k.of_statement "
        "join site_statements s on s.site = c.site_key and s.as_of = k.as_of where k.status = 'existing'"
    )
    by_statement = stated.filter(
        pl.col("kind").is_in(list(rate)).all().over("of_statement"), pl.col("power_remark").is_null()
    )
    for rows in by_statement.partition_by("of_statement"):
        weighed = sum(rate[kind] * count for kind, count in rows.select("kind", "accelerators").iter_rows())
        assert weighed == pytest.approx(rows["h100_equivalents"][0], rel=0.05), rows["of_statement"][0]
    assert by_statement["of_statement"].n_unique() >= 20


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
def test_entities_join(join):
    assert fk.sql(f"select count(*) from {join}").item() >= 3


def test_a_table_of_entities_can_be_read_as_of_a_month():
    before = fk.table("clusters", as_of="2024-12").filter(cluster="xai_colossus").collect()
    after = fk.table("clusters", as_of="2025-09").filter(cluster="xai_colossus").collect()
    assert (before["accelerators"].item(), after["accelerators"].item()) == (1e5, 2.3e5)
    assert fk.table("clusters", as_of="2024-12").collect_schema() == fk.table("clusters").collect_schema()


def test_later_dates_have_more_rows():
    sizes = [fk.table("clusters", as_of=when).collect().height for when in MOMENTS]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


@pytest.mark.parametrize("when", MOMENTS)
def test_no_row_is_later_than_the_requested_date(when):
    for kind in KINDS:
        assert (fk.table(kind, as_of=when).collect()["as_of"].str.slice(0, len(when)) <= when).all()


@pytest.mark.parametrize(("table", "when"), [("clusters", "June 2025"), ("clusters", "2025-6"), ("statistics", "2025")])
def test_an_invalid_date_is_refused(table, when):
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


def test_an_area_has_one_price_of_each_kind_and_year():
    areas = "select country, region, kind, year from electricity group by all having count(*) > 1"
    assert fk.sql(areas).is_empty()
    assert fk.sql("from electricity where (region is null) = contains(name, ', ')").is_empty()


def test_freshness_counts_the_rows_of_a_source():
    fresh = fk.table("freshness").filter(source="epoch_data_centers").collect().row(0, named=True)
    tables = ("cluster_statements", "site_statements", "organisation_statements")
    rows = sum(fk.table(name).filter(source="epoch_data_centers").collect().height for name in tables)
    assert fresh["rows"] >= rows > 500
    assert fresh["accessed"] is not None
    assert set(fk.table("freshness").collect()["source"]) == set(fk.table("sources").collect()["source"])
