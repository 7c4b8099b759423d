"""An entity has one key in all tables, for every spelling of its name."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import polars as pl
import pytest

import factorykit as fk
from factorykit.core.errors import UnknownName
from factorykit.data import tables
from factorykit.data.identifiers import KINDS, accelerator_in

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
        ("accelerator", "a100-sxm-40", "a100_sxm_40gb"),
        ("accelerator", "AWS Trainium2", "trainium2"),
        ("organisation", "Amazon Web Services", "aws"),
        ("organisation", "NVidia", "nvidia"),
        ("cluster", "xAI (Colossus, Memphis)", "xai_colossus"),
        ("model", "Llama 3.1 405B", "llama_3_1_405b"),
        ("model", "deepseek v3", "deepseek_v3"),
    ],
)
def test_spellings_of_a_name_lead_to_the_key(kind, name, key):
    assert fk.identify(kind, name) == key


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        ("accelerator", "H1000", "no accelerator 'H1000'; nearest is 'H100'"),
        ("accelerator", "", "no accelerator ''"),
        ("accelerator", None, "name of the accelerator must be a string, got None"),
        ("organisation", "Metta", "nearest is 'Meta'"),
        ("chip", "H100", "no kind of entity 'chip'"),
        ("accelerator", "Blackwell", "is ambiguous: b100, b200, b300, gb10, gb200, gb300, rtx_5090"),
    ],
)
def test_an_unknown_or_ambiguous_name_is_answered_with_candidates(kind, name, message):
    with pytest.raises(UnknownName, match=message):
        fk.identify(kind, name)


def test_every_alias_leads_to_a_key_of_its_table_and_to_its_own():
    for kind, alias, key in fk.table("aliases").select("kind", "alias", "key").collect().iter_rows():
        table, column, _ = KINDS[kind]
        assert key in fk.table(table).select(column).collect()[column], (kind, alias)
        assert fk.identify(kind, alias) == key


def test_every_key_and_every_name_of_a_chip_is_known():
    for row in fk.table("accelerators").collect().to_dicts():
        for name in (row["accelerator"], row["name"]):
            assert fk.identify("accelerator", name) == accelerator_in(name) == row["accelerator"]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("A100-40GB SXM", "a100_sxm_40gb"),
        ("A100 (Perlmutter, 4 a node)", "a100_sxm_80gb"),
        ("NVIDIA A100 80 GB PCIe", "a100_pcie"),
        ("A100-80GB SXM (40 W less)", "a100_sxm_80gb"),
        ("8x H100 SXM5 80GB (700 W)", "h100_sxm"),
        ("10,000+ H100s", "h100_sxm"),
        ("H100-96GB (HBM2e, 500 W)", "h100_sxm"),
        ("H100 94GB NVL", "h100_nvl"),
        ("H800-80GB SXM", "h800_sxm"),
        ("HGX H200 8-GPU", "h200_sxm"),
        ("B200 (Blackwell)", "b200"),
        ("B200 SXM (power limited)", "b200"),
        ("GB200 NVL72", "gb200"),
        ("GB300 (Blackwell Ultra)", "gb300"),
        ("TPUv6e (Trillium)", "tpu_v6e"),
        ("TPU v5p-4096", "tpu_v5p"),
        ("AWS Trainium 2", "trainium2"),
        ("Gaudi 3 OAM", "gaudi3"),
        ("MI250X-GCD", "mi250x"),
        ("L40S", "l40s"),
        ("V100-SXM2-16GB", "v100_sxm_16gb"),
        ("A100 PCIe 40 GB", "a100_pcie_40gb"),
        ("8 x RTX 4090 24GB", "rtx_4090"),
        ("RTX PRO 6000 Blackwell Server Edition (96 GB)", "rtx_pro_6000_server"),
        ("RTX PRO 6000 Blackwell Workstation Edition", "rtx_pro_6000"),
        ("GH200 96GB", "gh200"),
        ("Ascend 910B (64 GB)", "ascend_910b"),
    ],
)
def test_a_chip_is_read_out_of_a_longer_text(text, key):
    assert accelerator_in(text) == key


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("H100 + H200", "is ambiguous: h100_sxm, h200_sxm"),
        (
            "Blackwell or TPU v7",
            "is ambiguous: b100, b200, b300, gb10, gb200, gb300, rtx_5090",
        ),
        ("Rubin CPX", "no accelerator 'Rubin CPX'; nearest is 'Rubin'"),
        ("H200 PCIe", "no accelerator 'H200 PCIe'"),
        ("TPU v5/v6", "no accelerator"),
        ("TPU v5", "is ambiguous"),
        ("RTX PRO 6000 Max-Q", "no accelerator"),
        ("RTX A1000", "no accelerator"),
        ("Meta MTIA v1 (MTIA 100)", "no accelerator"),
        ("Ascend (6,000 NPUs)", "no accelerator"),
        ("", "no accelerator"),
    ],
)
def test_a_text_that_names_no_chip_or_several_is_refused(text, message):
    with pytest.raises(UnknownName, match=re.escape(message)):
        accelerator_in(text)


def test_names_read_alone_and_in_a_text_are_the_same_chip():
    for alias, key in fk.table("aliases").filter(kind="accelerator").select("alias", "key").collect().iter_rows():
        assert accelerator_in(f"8 x {alias} in a node") == key, alias


def columns() -> list[tuple[str, str, str]]:
    """Return the columns that hold the name of one organisation, cluster or model."""
    kinds = {"vendor": "organisation", "operator": "organisation", "organisation": "organisation", "model": "model"}
    fields = [(name, field["name"]) for name, each in tables.resources().items() for field in each["schema"]["fields"]]
    # Most models of measured sweeps are sizes, and those of post-training are versions of a model.
    sizes = {("training_runs", "model"), ("rl_steps", "model")}
    found = [(*each, kinds[each[1]]) for each in fields if each[1] in kinds and each not in sizes]
    more = [("clusters", "name", "cluster"), ("cloud_providers", "cloud_provider", "organisation")]
    return [*found, *more, ("training_runs", "accelerator_stated", "accelerator")]


SEVERAL = {
    *("Google/Amazon", "KAIST/Samsung", "IBM+CoreWeave+NVIDIA", "Microsoft/NVIDIA", "NVIDIA_CoreWeave"),
    *("MMLU gap", "DeepSeek", "DeepSeek-V3 node", "Meta Llama 3"),
    "Ascend (6,000 NPUs)",
    *("BAAI (FlagPerf)", "BAAI", "Huawei (MindFormers)", "Meta (torchao)", "Stas Bekman (ml-engineering)"),
    *("OpenEuroLLM", "AMD (maxtext-slurm)", "Argonne / NERSC", "ScaleTorch", "Isambard-AI a5k project"),
    *("Nebius user PoC", "C. Yang (Google Cloud), gpu-tpu-pedia", "IBM (fms-acceleration)", "Fujitsu", "Dell"),
    *("Lenovo", "SCITIX", "GigaComputing", "QCT", "MangoBoost", "Kunlun"),
}
"""Names that stand for several entities, for a part of one, or for one that the tables do not hold."""


@pytest.mark.parametrize(("table", "column", "kind"), columns())
def test_every_name_in_a_table_leads_to_a_key(table, column, kind):
    rows = fk.table(table)
    if table == "run_statements":  # some are sizes and comparisons, which are no runs
        rows = rows.join(fk.table("runs"), on="run", how="semi")
    for name in rows.select(column).unique().collect()[column].drop_nulls():
        if name not in SEVERAL:
            accelerator_in(name) if kind == "accelerator" else fk.identify(kind, name)


def test_every_reference_between_tables_is_kept():
    for name, resource in tables.resources().items():
        for key in resource["schema"].get("foreignKeys", ()):
            (ours,), (theirs,) = key["fields"], key["reference"]["fields"]
            known = fk.table(key["reference"]["resource"] or name).select(pl.col(theirs).alias(ours)).unique()
            lost = fk.table(name).select(ours).drop_nulls().join(known, on=ours, how="anti").collect()
            assert lost.is_empty(), (name, ours)


def test_a_name_becomes_a_key_by_a_join():
    asked = fk.sql(
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
                found[name] = fk.identify("accelerator", name)
            except UnknownName:
                continue
        assert len(found) >= {"epoch_ml_hardware": 36, "gpu_rental_prices": 20, "epoch_data_center_chips": 12}[file]
