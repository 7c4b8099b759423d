"""The address of the planner's page: a scenario as the question that it asks there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from factorykit.model.planning.layouts import PARTS

VERSION: Final = 1
"""Of the addresses written here; the page reads every version that was written."""
ACROSS: Final = (
    "training_sites",
    "inner_steps",
    "outer_fragments",
    "outer_bits",
    "wan_bytes_per_s",
    "site_distance_m",
)
"""What a run over several data centres asks for."""
ASKED: Final = (
    "accelerator",
    "accelerators",
    "precision",
    "tokens",
    "sequence_length",
    "global_batch_size",
    *PARTS,
    "accelerator_mtbf_s",
    "restart_s",
    "checkpoint_interval_s",
    "storage_write_bytes_per_s",
    "spare_nodes",
    "pue",
    "carbon_kg_per_kwh",
    "accelerator_power_w",
    "network_topology",
    *ACROSS,
    "rental_usd_per_accelerator_h",
    "electricity_usd_per_kwh",
)
"""Inputs that the page takes as they stand; what it computes itself, as utilization, is left to it."""


def address(inputs: Mapping[str, Any]) -> str | None:
    """Return where the planner asks about a run, from the site's top, or None where it has no model.

    >>> address({"parameters": 70e9, "tokens": 15e12, "accelerators": 2048.0, "mfu": 0.4})
    'plan.html?v=1&model=70B&accelerators=2048&tokens=1.5e13'
    """
    if "parameters" not in inputs:
        return None
    parameters = inputs["parameters"]
    kind = " mixture" if inputs.get("active_parameters", parameters) < parameters else ""
    given = {name: inputs[name] for name in ASKED if name in inputs}
    said = {name: value if isinstance(value, str) else _short(value) for name, value in given.items()}
    return f"plan.html?{urlencode({'v': VERSION, 'model': f'{parameters / 1e9:.12g}B{kind}', **said})}"


def _short(value: float) -> str:
    return f"{value:.12g}".replace("e+", "e")
