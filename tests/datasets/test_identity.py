"""One thing has one key in all tables, however somebody writes its name."""

from __future__ import annotations

import csv
from pathlib import Path

import polars as pl
import pytest

import factorykit.datasets as data
from factorykit.datasets import catalogue
from factorykit.datasets.identity import KINDS
from factorykit.errors import UnknownName

PUBLIC = Path(__file__).parents[3] / "shared" / "public"


@pytest.mark.parametrize(
    ("kind", "name", "key"),
    [
        ("accelerator", "H100 SXM5", "h100_sxm"),
        ("accelerator", "NVIDIA H100 80GB HBM3", "h100_sxm"),
        ("accelerator", "h100-sxm", "h100_sxm"),
        ("accelerator", "h100_sxm", "h100_sxm"),
        ("accelerator", "nvidia a100-sxm4-80gb", "a100_sxm_80gb"),
        ("accelerator", "TPUv5p", "tpu_v5p"),
        ("accelerator", "Instinct MI355X", "mi355x"),
        ("accelerator", "trillium", "tpu_v6e"),
        ("organisation", "Amazon Web Services", "aws"),
        ("organisation", "NVidia", "nvidia"),
        ("cluster", "xAI (Colossus, Memphis)", "xai_colossus"),
        ("model", "Llama 3.1 405B", "llama_3_1_405b"),
        ("model", "deepseek v3", "deepseek_v3"),
    ],
)
def test_a_name_as_it_is_written_leads_to_the_key(kind, name, key):
    assert data.identify(kind, name) == key


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        ("accelerator", "H1000", "no accelerator 'H1000'; nearest is 'H100'"),
        ("accelerator", "", "no accelerator ''"),
        ("accelerator", None, "no accelerator None"),
        ("organisation", "Metta", "nearest is 'Meta'"),
        ("chip", "H100", "no kind of thing 'chip'"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(kind, name, said):
    with pytest.raises(UnknownName, match=said):
        data.identify(kind, name)


def test_every_alias_leads_to_a_key_of_its_table_and_to_its_own():
    for kind, alias, key in data.table("aliases").select("kind", "alias", "key").collect().iter_rows():
        table, column = KINDS[kind]
        assert key in data.table(table).select(column).collect()[column], (kind, alias)
        assert data.identify(kind, alias) == key


def test_every_key_and_every_name_of_a_chip_is_known():
    for row in data.table("accelerators").collect().to_dicts():
        names = [row["accelerator"], row["name"], row["epoch_name"]]
        names += (row["rental_ids"] or "").split("; ") + (row["also_called"] or "").split("; ")
        assert {data.identify("accelerator", name) for name in names if name} == {row["accelerator"]}


def columns() -> list[tuple[str, str, str]]:
    """Return the columns that hold the name of one organisation, cluster or model."""
    kinds = {"vendor": "organisation", "operator": "organisation", "organisation": "organisation", "model": "model"}
    fields = [
        (name, field["name"]) for name, each in catalogue.resources().items() for field in each["schema"]["fields"]
    ]
    # Most models of measured sweeps are sizes that stand for no model that anybody trained.
    found = [(*each, kinds[each[1]]) for each in fields if each[1] in kinds and each != ("training_runs", "model")]
    more = [("clusters", "name", "cluster"), ("cloud_providers", "cloud_provider", "organisation")]
    return [*found, *more, ("training_runs", "hardware", "accelerator")]


SEVERAL = {
    *("Google/Amazon", "KAIST/Samsung", "IBM+CoreWeave+NVIDIA", "Microsoft/NVIDIA", "NVIDIA_CoreWeave"),
    *("MMLU gap", "DeepSeek", "DeepSeek-V3 node", "Meta Llama 3"),
    *("H100-96GB (HBM2e, 500 W)", "MI250X-GCD", "Ascend (6,000 NPUs)"),
}
"""Names that stand for several things, for a part of one, or for one that the tables do not hold."""


@pytest.mark.parametrize(("table", "column", "kind"), columns())
def test_every_name_in_a_table_leads_to_a_key(table, column, kind):
    for name in data.table(table).select(column).unique().collect()[column].drop_nulls():
        if name not in SEVERAL:
            data.identify(kind, name)


def test_every_reference_between_tables_is_kept():
    for name, resource in catalogue.resources().items():
        for key in resource["schema"].get("foreignKeys", ()):
            (ours,), (theirs,) = key["fields"], key["reference"]["fields"]
            known = data.table(key["reference"]["resource"] or name).select(pl.col(theirs).alias(ours)).unique()
            lost = data.table(name).select(ours).drop_nulls().join(known, on=ours, how="anti").collect()
            assert lost.is_empty(), (name, ours)


def test_a_name_becomes_a_key_by_a_join():
    asked = data.sql(
        "select distinct a.key from runs r join aliases a on a.alias = r.organisation and a.kind = 'organisation' "
        "where r.run = 'llama_3_1_405b'"
    )
    assert asked["key"].to_list() == ["meta"]


@pytest.mark.skipif(not PUBLIC.is_dir(), reason="the public data sets in ../shared/public are not here")
def test_the_chips_of_public_data_sets_that_we_know_lead_to_our_keys():
    wanted = {"epoch_ml_hardware": "name", "gpu_rental_prices": "gpu", "epoch_data_center_chips": "chip_type"}
    for file, column in wanted.items():
        with (PUBLIC / f"{file}.csv").open(encoding="utf-8", newline="") as rows:
            names = {row[column] for row in csv.DictReader(rows)}
        found = {}
        for name in names:
            try:
                found[name] = data.identify("accelerator", name)
            except UnknownName:
                continue
        assert len(found) >= {"epoch_ml_hardware": 36, "gpu_rental_prices": 20, "epoch_data_center_chips": 12}[file]
