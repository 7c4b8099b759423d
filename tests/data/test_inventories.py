"""Every attribute that the inventories beside the project state is in the tables."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import pytest

import factorykit as fk

from . import inventories as kept

FACTS = Path(__file__).parents[3] / "shared" / "facts"
pytestmark = pytest.mark.skipif(not FACTS.is_dir(), reason="the inventories in ../shared/facts are absent")

# Inventory column -> the columns that may hold it, and the factor of its numbers. A column without a mapping fails the
# test.
CLUSTERS = {
    "name": "name",
    "lab": "operator",
    "operator_partner": "partner",
    "accelerator": "accelerator_stated",
    "accel_count": "accelerators",
    "count_low": "accelerators_low",
    "count_high": "accelerators_high",
    "count_qualifier": "accelerators_stated",
    "accel_memory": "memory_stated",
    "tflops_bf16_per_chip": ("peak_flop_per_s", 1e12),
    "nodes": "nodes nodes_stated",
    "gpus_per_node": "accelerators_per_node",
    "intra_node": "scale_up_stated",
    "inter_node": "scale_out_stated",
    "total_compute_stated": ("cluster_peak_printed_flop_per_s", 1e15),
    "total_compute_unit_stated": "cluster_peak_printed",
    "storage": "storage_stated",
    "power_mw_low": ("it_power_w power_w_low", 1e6),
    "power_mw_high": ("it_power_w power_w_high", 1e6),
    "pue": "pue",
    "facility_mw": ("facility_power_w", 1e6),
    "cost_low_usd": "capital_usd_low",
    "cost_high_usd": "capital_usd_high",
    "build_days": "build_days",
    "site": "site",
    "purpose": "purpose",
    "as_of": "as_of",
    "note": "note",
}
FAILURES = {
    "context": "subject",
    "category": "cause",
    "count": "count",
    "share_pct_printed": ("share_printed", 0.01),
    "rate_text": "rate_stated",
    "failures_per_day": "failures_per_day",
    "mtbf_hours": ("cluster_mtbf_s accelerator_mtbf_s", 3600.0),
    "gpus": "accelerators",
    "days": "window_days",
    "total_expected": "expected_failures",
    "note": "note",
}
MONEY = (
    "cost_usd",
    "cost_usd_per_year",
    "cost_usd_per_month",
    "cluster_usd_per_h",
    "rental_usd_per_accelerator_h",
    "electricity_usd_per_kwh",
    "share",
    "people",
    "factor_per_two_years",
)
COSTS = {
    "subject": "subject",
    "component": "component",
    "low": " ".join(f"{name} {name}_low" for name in MONEY),
    "high": " ".join(f"{name} {name}_high" for name in MONEY),
    "basis": "basis",
    "note": "note",
}
RUNS = {
    "model": "model",
    "lab": "organisation",
    "total_params_b": ("parameters", 1e9),
    "active_params_b": ("active_parameters", 1e9),
    "tokens_t": ("tokens", 1e12),
    "gpus": "accelerators accelerators_high",
    "gpu_type": "accelerator_stated",
    "mfu": "mfu",
    "days": "wall_days duration_stated",
    "days_expr": "duration_stated",
    "cost_usd": "cost_usd",
    "flops": "training_flop",
    "benchmark": "benchmark",
    "qualifier": "qualifier",
    "note": "note",
}
SOURCES = {"title": "title", "url": "url", "facts_used": "facts", "how_verified": "evidence"}
NAMED = (
    "accel cluster cooling cost forecast item layer lever network node org power provider record rule run scheduler "
    "stage storage strategy"
)
UNSTATED = {"source_key", "unit", "seed_file", "locator"} | {f"{word}_id" for word in NAMED.split()}
STATED_AS_DATE = {
    "early 2025": "2025",
    "2024-2026": "2024/2026",
    "announced Jan 2025": "2025-01",
    "published 2026-05-17": "2026-05-17",
}


def inventory(name: str) -> list[dict[str, str]]:
    with (FACTS / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def holds(row: dict[str, object], stated: str, columns: str, factor: float) -> bool:
    found = [row[column] for column in columns.split() if column in row and row[column] is not None]
    try:
        number = float(stated) * factor
    except ValueError:
        key = stated.lower().replace("-", "_")
        words = (stated.strip(), stated.replace("_", " "), key, STATED_AS_DATE.get(stated), kept.REWORDED.get(stated))
        return any(word in found for word in words if word) or in_range(stated, found)
    return any(math.isclose(number, float(value)) for value in found if not isinstance(value, str)) or stated in found


def in_range(stated: str, found: list[object]) -> bool:
    """Whether a range such as 16.2..81.0 is kept by its ends."""
    low, dots, high = stated.partition("..")
    return bool(dots) and {float(low), float(high)} <= {each for each in found if isinstance(each, float)}


INVENTORIES = [
    ("accelerators.csv", "accelerator_statements", kept.ACCELERATORS),
    ("checkpoint_tiers.csv", "checkpoint_tiers", kept.CHECKPOINT_TIERS),
    ("cloud_providers.csv", "cloud_providers", kept.CLOUD_PROVIDERS),
    ("cooling.csv", "cooling", kept.COOLING),
    ("decision_rules.csv", "rules", kept.RULES | {"threshold_value": "", "threshold_unit": ""}),
    ("expected_values.csv", "expected_values", kept.EXPECTED_VALUES),
    ("forecasts.csv", "forecasts", kept.FORECASTS | {"low": "", "high": ""}),
    ("functions.csv", "functions", kept.FUNCTIONS),
    ("labs_orgs.csv", "organisation_statements", kept.ORGANISATIONS),
    ("networks.csv", "networks", kept.NETWORKS),
    ("nodes.csv", "nodes", kept.NODES),
    ("optimisation_levers.csv", "levers", kept.LEVERS),
    ("parallelism.csv", "parallelism", kept.PARALLELISM),
    ("power.csv", "power", kept.POWER | {"value": "", "value_high": ""}),
    ("recipe_telemetry_pitfalls.csv", "recipes", kept.RECIPES),
    ("recovery.csv", "recovery", kept.RECOVERY),
    ("scaling_stages.csv", "stages", kept.STAGES),
    ("schedulers.csv", "schedulers", kept.SCHEDULERS | {"threshold_unit": ""}),
    ("software_stack.csv", "software_stack", kept.SOFTWARE_STACK),
    ("storage_systems.csv", "storage_systems", kept.STORAGE_SYSTEMS),
    ("clusters.csv", "cluster_statements", CLUSTERS),
    ("failures.csv", "failures", FAILURES),
    ("costs.csv", "costs", COSTS),
    ("models_runs.csv", "run_statements", RUNS),
]


@pytest.mark.parametrize(("file", "table", "mapping"), INVENTORIES)
def test_no_statement_of_the_documents_is_lost(file, table, mapping):
    rows = fk.table(table).collect().to_dicts()
    lost = []
    for stated in inventory(f"seeds/{file}"):
        assert stated.keys() - UNSTATED <= mapping.keys()
        source = "five_documents" if stated["seed_file"] == "000-004" else f"seed_{stated['seed_file'][:3]}"
        candidates = [r for r in rows if r["source"] == source and r["locator"] == stated["locator"]]
        wanted = [(c, *(to if isinstance(to, tuple) else (to, 1.0))) for c, to in mapping.items() if stated[c] and to]
        wanted += in_units(table, stated)
        missing = [[(c, stated[c]) for c, to, by in wanted if not holds(row, stated[c], to, by)] for row in candidates]
        if not any(not each for each in missing):
            lost.append((stated["locator"], min(missing, key=len, default="no row")))
    assert lost == []


def in_units(table: str, stated: dict[str, str]) -> list[tuple[str, str, float]]:
    """Return the columns of a row whose place depends on the unit that the row names."""
    if table == "power":
        to, factor = kept.POWER_UNITS[stated["unit"]]
        ends = {"value": f"{to} {to}_low", "value_high": f"{to} {to}_high"}
    elif table == "forecasts" and stated["low"]:
        to, factor = kept.FORECAST_UNITS[stated["unit"]]
        ends = {"low": f"{to} {to}_low", "high": f"{to} {to}_high"}
    elif table == "rules" and stated["threshold_value"]:
        ends, factor = {"threshold_value": "threshold"}, kept.RULE_UNITS[stated["threshold_unit"]]
    else:
        return []
    return [(column, to, factor) for column, to in ends.items() if stated[column]]


def test_no_inventory_is_forgotten():
    walked = {file for file, _, _ in INVENTORIES}
    audited = {"claims.csv", "conflicts.csv", "sources.csv"}
    assert walked | audited == {path.name for path in (FACTS / "seeds").iterdir()}


def test_no_source_of_the_inventories_is_lost():
    rows = {row["source"]: row for row in fk.table("sources").collect().to_dicts()}
    for stated in inventory("seeds/sources.csv"):
        row = rows.get(stated["source_key"]) or rows["fs3_readme"]
        assert all(holds(row, stated[c].strip(), to, 1.0) for c, to in SOURCES.items() if stated[c].strip())
    assert {f"seed_00{n}" for n in range(5)} <= rows.keys()


def test_no_value_of_the_curated_accelerators_is_lost():
    rows = {row["name"]: row for row in fk.table("accelerators").collect().to_dicts()}
    scaled = {
        "dense_bf16_tflops": ("peak_16bit_flop_per_s", 1e12),
        "dense_fp8_tflops": ("peak_fp8_flop_per_s", 1e12),
        "dense_fp4_tflops": ("peak_fp4_flop_per_s", 1e12),
        "memory_gb": ("accelerator_memory_bytes", 1e9),
        "memory_bw_gb_s": ("memory_bytes_per_s", 1e9),
        "tdp_w": ("tdp_w", 1.0),
        "scale_up_bw_gb_s": ("scale_up_both_directions_bytes_per_s", 1e9),
        "scale_up_domain": ("scale_up_domain", 1.0),
    }
    words = {"launch_ym": "launch"}
    same = {name: name for name in ("vendor", "status", "memory_type", "confidence")}
    curated = inventory("accelerators_curated.csv")
    assert len(curated) == 45
    # The ports of Gaudi that leave the node are no scale-up: three of 24 (Intel's documentation).
    # Values that the list lacked: H200 NVL from NVIDIA's page, 910C from the paper on CloudMatrix384, and
    # Rubin from a system description of MLPerf.
    since = {
        "dense_bf16_tflops": "835.5",
        "dense_fp8_tflops": "1670.5",
        "memory_bw_gb_s": "4800",
        "note": "Dense rates: half of",
    }
    inside = {
        "NVIDIA H200 NVL 141GB": since,
        "NVIDIA Rubin (per GPU, VR NVL72)": {"tdp_w": "2300", "note": "Announced figures"},
        "Intel Gaudi 2": {"scale_up_bw_gb_s": "525"},
        "Intel Gaudi 3": {"scale_up_bw_gb_s": "1050"},
        "Huawei Ascend 910C": {"scale_up_bw_gb_s": "784", "scale_up_domain": "384"},
    }
    for stated in curated:
        row = rows[stated["name"]]
        stated |= inside.get(stated["name"], {})
        for column, (to, factor) in scaled.items():
            assert row[to] == (pytest.approx(float(stated[column]) * factor) if stated[column] else None), (row, column)
        assert all(row[to] == (stated[column] or None) for column, to in (words | same).items()), row["name"]
        assert (row["note"] or "").startswith(stated["note"])
        for name in [stated["epoch_hardware_name"], *stated["rental_gpu_ids"].split("; ")]:
            assert not name or fk.identify("accelerator", name) == row["accelerator"]


def test_counts_of_the_llama_3_paper_are_those_of_its_table():
    ours = fk.sql("select count, share_printed from failures where source = 'llama3_paper' and locator = 'Table 5'")
    stated = [row for row in inventory("failure_root_causes.csv") if row["study"] == "Llama 3 405B"]
    assert sorted(ours["count"]) == sorted(float(row["count"]) for row in stated)
    assert ours["count"].sum() == 419
    assert ours["share_printed"].sum() == pytest.approx(0.949)
