"""Mapping of the inventories beside the project to our tables: our column and the factor of its numbers.

Several columns separated by a space: any of them may hold the value. A column without a mapping fails the test.
"""

from __future__ import annotations

GBIT = 1e9 / 8

ACCELERATORS = {
    "name": "name",
    "vendor": "vendor",
    "kind": "kind",
    "memory_gb": ("accelerator_memory_bytes", 1e9),
    "memory_text": "memory_stated",
    "mem_bw_tb_s": ("memory_bytes_per_s", 1e12),
    "tflops_16bit_stated": ("peak_printed_flop_per_s", 1e12),
    "tflops_16bit_label": "peak_printed",
    "fp8_note": "fp8_stated",
    "tdp_w": "tdp_w",
    "typical_w": "accelerator_power_w",
    "interconnect": "interconnect_stated",
    "price_per_hr_low": "rental_usd_per_accelerator_h_low",
    "price_per_hr_high": "rental_usd_per_accelerator_h_high",
    "price_usd_low": "price_usd_low",
    "price_usd_high": "price_usd_high",
    "relative_claim": "relative_stated",
    "availability": "availability_stated",
    "role": "role",
    "note": "note",
}
NODES = {
    "name": "name",
    "level": "level",
    "accelerators": "accelerator_stated",
    "accel_per_unit": "accelerators",
    "gpu_memory": "memory_stated",
    "nvlink": "scale_up_stated",
    "nvswitch": "switches_stated",
    "compute": "compute_printed",
    "cpu": "cpu",
    "ram": "host_memory_stated",
    "local_storage": "local_storage_stated",
    "network": "network_stated",
    "power_kw_low": ("node_power_w_low", 1e3),
    "power_kw_high": ("node_power_w_high", 1e3),
    "cooling": "cooling",
    "weight_kg": "weight_kg",
    "price_low_usd": "price_usd_low",
    "price_high_usd": "price_usd_high",
    "note": "note",
}
NETWORKS = {
    "name": "name",
    "user": "user",
    "technology": "technology",
    "scope": "scope",
    "bandwidth_per_link_gbps": ("link_bytes_per_s", GBIT),
    "links": "links",
    "bandwidth_total_text": "bandwidth_stated",
    "bandwidth_gb_s": ("bandwidth_bytes_per_s", 1e9),
    "latency_us_low": ("latency_s_low", 1e-6),
    "latency_us_high": ("latency_s_high", 1e-6),
    "topology": "topology",
    "pros": "advantages",
    "cons": "limits",
    "note": "note",
}
STORAGE_SYSTEMS = {
    "name": "name",
    "user": "user",
    "kind": "kind",
    "capacity": "capacity_stated",
    "throughput_text": "throughput_stated",
    "throughput_gb_s": ("throughput_bytes_per_s", 1e9),
    "cost_share_low": "cost_share_low",
    "cost_share_high": "cost_share_high",
    "features": "features",
    "note": "note",
}
POWER = {"subject": "subject", "quantity": "kind", "expression": "basis", "note": "note"}
POWER_UNITS = {
    "W": ("power_w", 1.0),
    "kW": ("power_w", 1e3),
    "MW": ("power_w", 1e6),
    "MWh": ("energy_kwh", 1e3),
    "ratio": ("pue", 1.0),
    "USD/yr": ("annual_electricity_cost_usd", 1.0),
    "USD/month": ("monthly_electricity_cost_usd", 1.0),
}
COOLING = {
    "approach": "approach",
    "description": "description",
    "capacity_kw_per_rack": ("cooling_capacity_w", 1e3),
    "capacity_qualifier": "capacity_stated",
    "users": "users",
    "advantage": "advantage",
    "limitation": "limitation",
    "pue": "pue",
    "note": "note",
}
ORGANISATIONS = {"org": "name", "role": "role", "note": "note"}
CLOUD_PROVIDERS = {
    "provider": "name",
    "tier": "tier",
    "availability_or_specialty": "offer",
    "pricing_or_savings": "price_stated",
    "pros": "advantages",
    "cons": "limits",
    "note": "note",
}
CHECKPOINT_TIERS = {
    "kind": "kind",
    "tier": "tier",
    "name": "name",
    "media": "media",
    "interval_low_min": ("checkpoint_interval_s_low", 60.0),
    "interval_high_min": ("checkpoint_interval_s_high", 60.0),
    "write_gb_s": ("storage_write_bytes_per_s", 1e9),
    "survives": "survives",
    "size_gb": ("checkpoint_bytes", 1e9),
    "size_expression": "checkpoint_stated",
    "write_overhead_low_pct": ("overhead_share_low", 0.01),
    "write_overhead_high_pct": ("overhead_share_high", 0.01),
    "max_lost_work_min": ("lost_work_s_high", 60.0),
    "storage_tb_per_day": ("storage_bytes_per_day", 1e12),
    "note": "note",
}
RECOVERY = {
    "strategy": "name",
    "description": "description",
    "implementation": "implementation",
    "overhead_low_pct": ("overhead_share_low", 0.01),
    "overhead_high_pct": ("overhead_share_high", 0.01),
    "overhead_kind": "overhead_of",
    "recovery_low_min": ("restart_s_low", 60.0),
    "recovery_high_min": ("restart_s_high", 60.0),
    "frequency_text": "frequency_stated",
    "benefit": "benefit",
    "note": "note",
}
SCHEDULERS = {
    "name": "name",
    "kind": "kind",
    "properties": "properties",
    "used_by": "used_by",
    "threshold_low": ("utilisation_low", 0.01),
    "threshold_high": ("utilisation_high", 0.01),
    "note": "note",
}
SOFTWARE_STACK = {"layer": "name", "options": "options", "recommendation": "recommendation", "note": "note"}
PARALLELISM = {
    "kind": "kind",
    "name": "name",
    "pattern": "pattern",
    "data_volume": "data_volume",
    "frequency": "frequency",
    "example": "example",
    "note": "note",
}
RECIPES = {"kind": "kind", "step": "step", "title": "title", "detail": "detail", "note": "note"}
STAGES = {
    "gpus": "accelerators",
    "servers": "nodes",
    "challenges": "challenges",
    "parallelism": "parallelism",
    "network": "network",
    "failures": "failures_stated",
    "power": "power_stated",
    "cooling": "cooling_stated",
    "cost_per_hr_usd": "cluster_usd_per_h",
    "what_changes": "change",
    "note": "note",
}
RULES = {
    "decision": "decision",
    "branch": "branch",
    "condition": "condition",
    "comparator": "comparator",
    "note": "note",
}
RULE_UNITS = {"B params": 1e9, "USD": 1.0, "GPUs": 1.0, "ratio": 1.0, "fraction": 1.0, "stages": 1.0}
LEVERS = {
    "lever": "name",
    "saving_low_pct": ("saving_low", 0.01),
    "saving_high_pct": ("saving_high", 0.01),
    "detail": "detail",
    "note": "note",
}
FORECASTS = {"year": "year", "quantity": "subject", "value_text": "stated", "note": "note"}
FORECAST_UNITS = {
    "GPUs": ("accelerators", 1.0),
    "accelerators": ("accelerators", 1.0),
    "chips": ("accelerators", 1.0),
    "MW": ("facility_power_w", 1e6),
    "USD": ("cost_usd", 1.0),
    "x": ("factor", 1.0),
}
FUNCTIONS = {
    "feature_id": "function",
    "capability": "name",
    "defined_as": "defined_as",
    "inputs": "inputs",
    "outputs": "outputs",
    "expected_numbers": "expected",
    "caveat": "caveat",
}
EXPECTED_VALUES = {
    "feature_id": "function",
    "case": "case",
    "inputs": "inputs",
    "as_written": "as_written_low as_written_high",
    "printed_in_seed": "printed",
    "corrected": "corrected_low corrected_high",
    "unit": "unit",
    "note": "note",
}

REWORDED = {
    # read since the inventory was made
    "secondary tables read; datasheet values recalled": (
        "figures of the maker's white paper and product page as public notes transcribe them"
    ),
    "excerpt read (secondary); Llama figure recalled": (
        "excerpt read (secondary); the figure for Llama as others quote it"
    ),
    "textbook formula, recalled": "equations as later papers quote them; the tests hold them against the exact optimum",
    # paraphrased
    "'Frontier training in 2027 may require dedicated power plants'": "dedicated power plants may be needed by 2027",
    "'100,000 GPUs is the new 10,000.'": "100,000 accelerators take the place that 10,000 had",
    "16K -> 100K GPUs: 'You're building a data center, not renting one'": (
        "from 16K to 100K GPUs one builds a data centre instead of renting it"
    ),
    "Infrastructure is necessary but not sufficient; algorithmic efficiency is the true competitive moat": (
        "infrastructure alone does not suffice; algorithmic efficiency decides"
    ),
    "$13M/year on a 1,000-GPU cluster; 'single biggest lever for cost optimization'": (
        "13 million USD a year on a 1,000-GPU cluster; called the biggest lever"
    ),
    "On failure: try Tier 1 first (fastest recovery). If corrupted, fall back to Tier 2, then Tier 3": (
        "the fastest tier first; the next one where it is corrupted or lost"
    ),
    "a single GPU or node failure doesn't abort a weeks-long training job": (
        "one GPU or node that fails does not end the job"
    ),
    "'Storage I/O often becomes the bottleneck, not GPUs'; provision generously": (
        "named a frequent bottleneck before the GPUs; to be provisioned generously"
    ),
    "'more compute than the world's fastest supercomputer from 2010'": (
        "reported to exceed the fastest supercomputer of 2010"
    ),
    "'72 Blackwell GPUs treated as a single unit'": "72 GPUs as one unit",
    "'256 H100s to act as a single, giant GPU with shared memory'": "256 H100 that act as one GPU with shared memory",
    "'synchronized across the entire cluster with nanosecond precision'": (
        "reported to be synchronised to the nanosecond over the whole cluster"
    ),
    "1,024-GPU job needs all 1,024 at once; can't start with 900 and add 124": (
        "a job of 1,024 GPUs needs all at once; 900 first and 124 later is no start"
    ),
    "A bottleneck in any one component slows the entire factory": "the slowest component sets the pace of the factory",
    "FP8 'effectively doubling the throughput ... compared to the previous FP16 standard'; Transformer Engine; "
    "4th-gen Tensor Cores": "FP8 at about twice the rate of FP16; Transformer Engine; 4th-gen Tensor Cores",
    "custom-built data center; heat loads that would melt air-cooled racks; direct-to-chip or full immersion; "
    "on-site substations and redundant power feeds": (
        "custom-built data centre; heat beyond what air copes with; direct-to-chip or full immersion; on-site "
        "substations and redundant power feeds"
    ),
    "lower-priority jobs must checkpoint and yield their GPUs": "jobs of lower priority save their state and give way",
    "'H100 nodes draw 5.8 kW -> needs 40+ kW per rack with overhead'": (
        "nodes at 5.8 kW are reported to need more than 40 kW per rack"
    ),
    "H100 nodes draw 5.8 kW -> needs 40+ kW per rack with overhead": (
        "nodes at 5.8 kW are reported to need more than 40 kW per rack"
    ),
}
"""Sentences of the documents, and the same fact in the words of the tables."""
