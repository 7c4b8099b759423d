"""Monthly and summary tables: summaries follow from the published files, and counts from the studies."""

from __future__ import annotations

import csv
from pathlib import Path

import polars as pl
import pytest

import factorykit as fk

SHARED = Path(__file__).parents[3] / "shared"
here = pytest.mark.skipif(not SHARED.is_dir(), reason="the published files in ../shared are absent")


def read(name: str) -> list[dict[str, str]]:
    with (SHARED / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@here
def test_price_months_follow_from_the_published_prices():
    prices = pl.DataFrame(read("public/gpu_rental_prices.csv")).with_columns(
        pl.col("usd_per_gpu_hour").cast(pl.Float64), month=pl.col("date").str.slice(0, 7)
    )
    each = prices.group_by("gpu", "kind", "month", "provider").agg(pl.col("usd_per_gpu_hour").median())
    wanted = each.group_by("gpu", "kind", "month").agg(
        pl.len().alias("n"),
        *(pl.col("usd_per_gpu_hour").quantile(q, "linear").alias(f"q{q}") for q in (0, 0.25, 0.5, 0.75, 1)),
    )
    ours = fk.table("price_months").filter(source="rental_prices").collect()
    assert ours.height == wanted.height
    assert ours["offers"].sum() == prices.height
    name = "rental_usd_per_accelerator_h"
    quantiles = [f"{name}_{end}" for end in ("min", "quarter", "median", "three_quarters", "max")]
    found = {(r["rental_id"], r["kind"], r["month"]): r for r in ours.to_dicts()}
    for gpu, kind, month, n, *prices_of in wanted.iter_rows():
        row = found[gpu, kind.replace("on-demand", "on demand"), month]
        assert row["providers"] == n
        assert [row[column] for column in quantiles] == pytest.approx(prices_of, abs=1e-6)


@here
def test_grids_and_prices_are_those_published():
    grids = {row["country"]: row for row in fk.table("country_grids").collect().to_dicts()}
    published = [row for row in read("public/grid_energy_mix.csv") if row["carbon_intensity_gco2e_per_kwh"]]
    assert len(grids) == len(published)
    for row in published:
        ours = grids[row["iso_code"].lower()]
        assert ours["carbon_kg_per_kwh"] * 1000 == pytest.approx(float(row["carbon_intensity_gco2e_per_kwh"]))
    industrial = "select electricity_usd_per_kwh from electricity where electricity_price = 'us_industrial_2019'"
    assert fk.sql(industrial).item() == pytest.approx(0.0681)
    months = [
        r for r in read("public/ember_eu_wholesale_price_monthly.csv") if r["iso3"] == "DEU" and "2024" in r["month"]
    ]
    mean = sum(float(row["price_eur_per_mwh"]) for row in months) / 12
    germany = "select electricity_eur_per_kwh from electricity where electricity_price = 'germany_wholesale_2024'"
    assert len(months) == 12
    assert fk.sql(germany).item() * 1000 == pytest.approx(mean, abs=1e-3)


def test_no_grid_is_in_two_tables():
    regions, countries = fk.table("grids").collect(), fk.table("country_grids").collect()
    assert not set(regions["name"]) & set(countries["name"])
    assert not set(regions["source"]) & set(countries["source"])


@here
def test_prices_follow_from_the_published_prices():
    published = pl.DataFrame(read("public/gpu_rental_prices.csv")).with_columns(
        pl.col("usd_per_gpu_hour").cast(pl.Float64)
    )
    ends = ("low", "quarter", "median", "three_quarters", "high")
    for row in fk.table("prices").filter(source="rental_prices").collect().to_dicts():
        names, kind, _ = row["locator"].split("; ")
        offers = published.filter(pl.col("gpu").is_in(names.split(", ")), pl.col("kind") == kind)
        each = offers.group_by("provider").agg(pl.col("usd_per_gpu_hour").median())["usd_per_gpu_hour"]
        assert row["providers"] == len(each)
        wanted = [each.quantile(quantile, "linear") for quantile in (0, 0.25, 0.5, 0.75, 1)]
        assert [row[f"rental_usd_per_accelerator_h_{end}"] for end in ends] == pytest.approx(wanted, abs=1e-4)


@here
def test_no_root_cause_and_no_figure_of_reliability_is_lost():
    causes = fk.table("root_causes").collect()
    stated = read("facts/failure_root_causes.csv")
    assert causes["count"].to_list() == [float(row["count"]) for row in stated]
    assert causes["share"].to_list() == pytest.approx([float(row["share"]) for row in stated], abs=6e-5)
    assert causes["cause"].to_list() == [row["component"] for row in stated]
    factors = {"h": 3600.0, "1/1000": 1e-3, "TB": 1e12}
    figures = fk.table("reliability").collect().to_dicts()
    for row, ours in zip(read("facts/reliability_published.csv"), figures, strict=True):
        unit = "h" if row["unit"] == "hours" else row["unit"].split()[0]
        assert ours["value"] == pytest.approx(float(row["value"]) * factors.get(unit, 1.0)), row
        assert (ours["study"], ours["accelerators"]) == (row["study"], float(row["gpus"]) if row["gpus"] else None)


def test_counts_and_printed_shares_are_apart_and_intervals_are_exact():
    faulty = fk.table("root_causes").filter(root_cause="llama_3_405b_faulty_gpu").collect().row(0, named=True)
    assert faulty["share_printed"] == 0.301
    assert faulty["share"] == pytest.approx(148 / 419)
    stats = pytest.importorskip("scipy.stats")
    for row in fk.table("root_causes").collect().to_dicts():
        low, high = stats.chi2.ppf(0.025, 2 * row["count"]) / 2, stats.chi2.ppf(0.975, 2 * row["count"] + 2) / 2
        assert (row["count_low"], row["count_high"]) == (pytest.approx(low, abs=1e-3), pytest.approx(high, abs=1e-3))


def test_causes_agree_with_the_table_of_failures():
    ours = fk.sql("select sum(count) from root_causes where source = 'llama3_paper'").item()
    assert (
        ours == fk.sql("select sum(count) from failures where source = 'llama3_paper' and locator = 'Table 5'").item()
    )


@here
def test_prices_of_chips_are_those_published():
    columns = {"bf16_fp16_tensor_tflops": "peak_16bit_flop_per_s", "fp32_tflops": "peak_32bit_flop_per_s"}
    published = {row["name"]: row for row in read("public/epoch_ml_hardware.csv") if row["release_price_usd"]}
    published = {name: row for name, row in published.items() if any(row[column] for column in columns)}
    ours = {row["name"]: row for row in fk.table("chip_prices").filter(source="epoch_hardware").collect().to_dicts()}
    assert ours.keys() == published.keys()
    for name, row in published.items():
        assert ours[name]["accelerator_usd"] == float(row["release_price_usd"])
        assert ours[name]["released"] == row["release_date"]
        for theirs, column in columns.items():
            assert ours[name][column] == (pytest.approx(float(row[theirs]) * 1e12) if row[theirs] else None)


def test_prices_of_chips_agree_with_the_table_of_accelerators():
    joined = fk.sql(
        "select p.peak_16bit_flop_per_s as a, c.peak_16bit_flop_per_s as b from chip_prices p "
        "join accelerators c on p.accelerator = c.accelerator "
        # The price list has the rate of the RTX 4090 with FP16 accumulation.
        "where a is not null and b is not null and c.accelerator != 'rtx_4090'"
    )
    assert joined.height >= 10
    assert joined["a"].to_list() == pytest.approx(joined["b"].to_list(), rel=0.005)


@here
def test_exponentials_of_a_chip_follow_from_its_rate_in_fp32():
    of_64_lanes = ("v100", "t4", "a100", "a800")
    fp32 = {row["name"]: row["fp32_tflops"] for row in read("public/epoch_ml_hardware.csv") if row["fp32_tflops"]}
    rates = fk.table("generations").filter(source="nvidia_cuda_guide").collect()
    names = fk.table("aliases").filter(pl.col("alias").is_in(list(fp32)), kind="accelerator").collect()
    both = rates.join(names.select("alias", accelerator="key"), on="accelerator").filter(
        pl.col("exponentials_per_s").is_not_null() & (pl.col("accelerator") != "h20")
    )
    assert both["accelerator"].n_unique() >= 12
    for row in both.to_dicts():
        each = 64.0 if row["accelerator"].startswith(of_64_lanes) else 128.0
        expected = float(fp32[row["alias"]]) * 1e12 / (2.0 * each) * 16.0
        assert row["exponentials_per_s"] == pytest.approx(expected, rel=0.005), row["accelerator"]


@here
def test_offers_of_providers_follow_from_the_published_prices():
    prices = pl.DataFrame(read("public/gpu_rental_prices.csv")).with_columns(
        pl.col("usd_per_gpu_hour").cast(pl.Float64)
    )
    wanted = prices.group_by("provider", "gpu", "kind").agg(pl.col("usd_per_gpu_hour").median())
    offers = fk.table("rental_offers").filter(source="rental_prices").collect().to_dicts()
    ours = {(r["provider"], r["rental_id"], r["kind"]): r for r in offers}
    assert len(ours) == wanted.height
    for provider, gpu, kind, median in wanted.iter_rows():
        row = ours[provider, gpu, kind.replace("on-demand", "on demand")]
        assert row["rental_usd_per_accelerator_h"] == pytest.approx(median, rel=1e-5)


def test_every_chip_with_an_offer_has_a_price_and_custom_chips_have_one():
    priced = set(fk.table("prices").filter(kind="on demand").collect()["accelerator"])
    offered = set(fk.table("rental_offers").filter(kind="on demand").collect()["accelerator"])
    assert priced - offered == {"h800_sxm"}  # a price that its report assumes
    assert offered <= priced
    assert {"tpu_v5e", "tpu_v5p", "tpu_v6e", "tpu_v7", "trainium1", "trainium2", "b200", "gb200", "mi325x"} <= priced
    assert {"rtx_pro_6000", "a10", "l4", "t4", "rtx_3090", "rtx_4090", "rtx_5090", "gaudi2", "gaudi3"} <= priced
    assert {"gaudi2", "gaudi3"} <= set(fk.table("chip_prices").collect()["accelerator"])


def test_prices_of_egress_belong_to_providers_that_rent():
    providers = fk.table("rental_offers").collect()["provider"]
    assert fk.table("egress_prices").collect()["provider"].is_in(providers.to_list()).all()


def series(quantity: str, of: str) -> dict[str, float]:
    rows = fk.table("months").filter(quantity=quantity, of=of).collect()
    return dict(rows.select("month", "value").iter_rows())


def test_every_monthly_series_has_each_month_once_and_records_never_fall():
    rows = fk.table("months").collect()
    assert rows.select("quantity", "of", "month").is_unique().all()
    of = "largest cluster, chips of one kind"
    largest = list(series("accelerators", of).values())
    holders = fk.table("months").filter(of=of, status="existing").collect()
    kinds = fk.table("cluster_chips").collect()["accelerators"]
    assert holders["note"].null_count() == 0  # the cluster and its one kind of chip
    assert holders["value"].max() == kinds.max()
    assert holders["month"].max() < fk.table("months").filter(of=of, status="planned").collect()["month"].min()
    lowest = list(series("accelerator_usd_per_flop_per_s", "data-centre chips, lowest at release so far").values())
    assert largest == sorted(largest)
    assert lowest == sorted(lowest, reverse=True)
    for of in ("all frontier sites", "largest frontier site"):
        months = list(series("facility_power_w", of))
        assert (
            len(months)
            == 12 * (int(months[-1][:4]) - int(months[0][:4])) + int(months[-1][5:]) - int(months[0][5:]) + 1
        )


def test_the_power_of_all_sites_in_a_month_is_the_sum_of_their_latest_statements():
    total = fk.sql(
        "select sum(p) from (select last(facility_power_w order by as_of) as p from site_statements "
        "where facility_power_w is not null and status is not null and as_of < '2026-01' group by site)"
    )
    assert series("facility_power_w", "all frontier sites")["2025-12"] == pytest.approx(total.item())


def test_a_flop_costs_its_rent_over_the_rate():
    rent = series("rental_usd_per_accelerator_h", "NVIDIA H100 SXM5 80GB")["2026-08"]
    each = series("rental_usd_per_flop", "NVIDIA H100 SXM5 80GB")["2026-08"]
    assert each * 989.4e12 * 3600 == pytest.approx(rent)


@here
def test_electricity_by_month_is_that_of_the_publisher():
    rates = dict(fk.table("exchange_rates").filter(currency="EUR").select("year", "usd_per_unit").collect().iter_rows())
    published = {
        (row["iso3"].lower(), row["month"]): row for row in read("public/ember_eu_wholesale_price_monthly.csv")
    }
    rows = fk.table("electricity_months").collect()
    assert rows["country"].n_unique() >= 28
    for row in rows.to_dicts():
        euro = float(published[row["country"], row["month"]]["price_eur_per_mwh"]) / 1000
        assert row["electricity_eur_per_kwh"] == pytest.approx(euro, abs=1e-7)
        assert row["electricity_usd_per_kwh"] == pytest.approx(euro * rates[int(row["month"][:4])], abs=1e-6)
