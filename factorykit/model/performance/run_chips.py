"""Chips of training runs: number format, rates, memory, links and network."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from factorykit.core.errors import FactorykitError, ScenarioError
from factorykit.data.identifiers import accelerator_in
from factorykit.engine.providers import frameworks
from factorykit.engine.providers.accelerators import BROUGHT, brought, chip_in, chips
from factorykit.engine.providers.constants import constants
from factorykit.model.performance import source_terms
from factorykit.model.performance.run_cells import read_number, software_year

PRECISIONS: Final = ("bf16", "fp16", "fp8", "mxfp8", "nvfp4", "int8")
"""Number formats of matrix products that are modelled."""
INT8_TPU_YEAR: Final = 2023.0
"""Year of TPU v5e, the first TPU that multiplies 8-bit integers twice as fast as 16-bit numbers."""
EIGHT_BITS_YEAR: Final = 2024.0
"""All 75 submissions to MLPerf from that year on that state a number format state one of 8 bits."""
FABRICS: Final = {
    "omni_path": {"scale_out_share": 0.34},
    "efa": {"scale_out_share": 0.65, "scale_out_latency_s": 7e-4, "message_s": 1.5e-6},
}
"""Constants of networks other than InfiniBand.

Omni-Path: 135 of 400 Gb/s between nodes of Jean Zay, measured before BLOOM and a year later (S. Bekman, "Machine
learning engineering," 744d01e, network, Omni-Path); its adapters leave messages to the processor. EFA: the rate of the
tensor-parallel rows of nanotron over two and four nodes, and 0.7 ms for each further node of a ring; its messages go
through the processor, and DeepEP, which sends tokens one by one, takes 1.2 to 2 us for each."""
NEWER_EFA: Final = (1e11, 5e-7)
"""Link rate of a chip from which EFA is of its fourth generation, and the time of a message there: 15 rows of DeepEP on
B300, beside 12 of NCCL with the same layouts, between 0.3 and 0.75 us."""
POWER_LIMITED: Final = 0.72
"""Share of a chip's design power where a source states a limit but not its value: 500 of 700 W in Meta's fleet."""
MAX_MEMORY_RATIO: Final = 2.0
"""Ratio of a stated memory to that of the chip (A100 of 40 and 80 GB) beyond which it is that of the host or node, as
in "GH200 480GB"."""
PER_DEVICE: Final = (
    *("peak_flop_per_s", "peak_16bit_flop_per_s", "exponentials_per_s", "accelerator_memory_bytes"),
    *("memory_bytes_per_s", "scale_up_bytes_per_s", "scale_out_bytes_per_s"),
)
"""Quantities of a chip that its devices share."""


def split_into_devices(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a row of chips that software sees as several devices as a row of these devices."""
    chip = chip_in(row.get("accelerator")).get("accelerator")
    parts = source_terms.SEPARATE_DEVICES.get(str(chip), 1.0)
    if parts == 1.0 or row.get("devices_per_accelerator"):
        return row
    counts = {name: read_number(row, name) for name in ("accelerator_count", "accelerators_per_node", "dp")}
    sequences = read_number(row, "micro_batch")
    split = {"micro_batch": sequences / parts} if sequences and sequences % parts == 0.0 else {}
    more = {name: number * parts for name, number in counts.items() if number}
    return {**row, **more, **split, "devices_per_accelerator": parts, "chip_devices": parts}


def stated_precision(row: Mapping[str, Any], assumed: list[str]) -> str:
    """Return the number format of a row's matrix products."""
    stated = row.get("precision")
    if not stated:
        assumed.append("precision")
        late = row.get("kind") == "mlperf" and (software_year(row) or 0.0) >= EIGHT_BITS_YEAR
        return "fp8" if late and chip_in(row.get("accelerator")).get("peak_fp8_flop_per_s") else "bf16"
    if stated not in PRECISIONS:
        raise ScenarioError(
            f"precision {stated!r} is not modelled; give that of matrix products: bf16, fp16, fp8, mxfp8, nvfp4 or int8"
        )
    return str(stated)


def quantities(row: Mapping[str, Any], precision: str, assumed: list[str]) -> dict[str, Any]:
    """Return the quantities of a row's accelerator, links and network; values that the row states come first.

    Integers of 8 bits are calculated as FP8 is, at the rate of the chip for them.
    """
    try:
        key = accelerator_in(row["accelerator"])
    except FactorykitError as error:
        raise ScenarioError(f"{error}; for a chip outside the tables use fk.evaluate with fk.accelerator") from None
    known = chips()[key]
    chip: dict[str, Any] = brought(key, "bf16" if precision == "int8" else precision)
    if missing := [name for name in BROUGHT if name not in chip]:
        raise ScenarioError(f"{known['name']}: the tables have no {', '.join(missing)} at {precision}")
    if precision == "int8" and chip["chip_year"] >= INT8_TPU_YEAR:
        chip["peak_flop_per_s"] *= 2.0
    memory = row.get("accelerator_memory_bytes")
    if memory and memory <= MAX_MEMORY_RATIO * chip["accelerator_memory_bytes"]:
        chip["accelerator_memory_bytes"] = memory
    if devices := row.get("devices_per_accelerator"):
        chip |= {name: chip[name] / devices for name in PER_DEVICE}
        chip["scale_up_domain"] *= devices if known["scale_up_domain"] else 1.0
    if row.get("accelerators_per_node") and chip["scale_up_domain"] < frameworks.RACK:
        chip["scale_up_domain"] = row["accelerators_per_node"]
    limit, design = row.get("power_limit_w"), known["tdp_w"] or known["tdp_estimated_w"]
    unstated_limit = POWER_LIMITED if row.get("power_limited") else 1.0
    chip["power_limit_share"] = limit / design if limit and design else unstated_limit
    chip |= {name: row[name] for name in ("scale_up_bytes_per_s", "scale_out_bytes_per_s") if row.get(name)}
    if row.get("scale_out_bytes_per_s") is None and re.search(r"\d", str(row.get("network") or "")):
        assumed.append("network")
    network = {name: constants()[name] for name in ("scale_out_share", "scale_out_latency_s")} | {"message_s": 0.0}
    network |= FABRICS.get(row.get("fabric") or "", {})
    if chip["scale_out_bytes_per_s"] >= NEWER_EFA[0]:
        network["message_s"] = min(network["message_s"], NEWER_EFA[1])
    named = {"accelerator": key, "precision": "fp8" if precision == "int8" else precision}
    return {**chip, **network, **named, "chip_devices": row.get("chip_devices", 1.0)}
