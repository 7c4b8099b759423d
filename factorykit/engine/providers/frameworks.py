"""What the name of training software brings: the features that it has by default at the time of a release."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any, Final

from factorykit.core.vocabulary import neutral_values
from factorykit.data.tables import table
from factorykit.formulas import catalogue

FROM: Final = (
    "cuda_graphs",
    "flash_attention",
    "tensor_overlap",
    "gradient_overlap",
    "grouped_experts",
    "dispatched_once",
    "expert_overlap",
    "interleaved_overlap",
)
"""Features that software has from a time on; the table's column ends in ``_from``."""

AMBIGUOUS: Final = "="
"""Stands before names that are of something else, too: "Hugging Face" is a place where models are published."""
RACK: Final = 32.0
"""Chips of one fast fabric from which on recipes take it for a rack: they capture graphs there."""
PARTLY_GRAPHED: Final = 0.5
"""Share of the launches of a layer that captured graphs of attention and routing save."""

FEATURES: Final = (
    *("maker_kernels", "fused_kernels", "evidence_software", "reduced_bytes_per_parameter", "grouped_tile_tokens"),
    *FROM,
)
"""Quantities that a framework brings."""


@cache
def frameworks() -> Mapping[str, Mapping[str, Any]]:
    """Return the rows of the ``frameworks`` table by their key."""
    return {row["framework"]: row for row in table("frameworks").collect().iter_rows(named=True)}


@cache
def _names(anywhere: bool) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return patterns of names and the framework each means, longest names first; only those that name nothing else."""
    pairs = [(name, key) for key, row in frameworks().items() for name in row["also_called"].split(";")]
    pairs = [(name.removeprefix(AMBIGUOUS), key) for name, key in pairs if not (anywhere and name[:1] == AMBIGUOUS)]
    pairs.sort(key=lambda pair: -len(pair[0]))
    return tuple((re.compile(rf"(?<![a-z]){re.escape(name.lower())}(?![a-z])"), key) for name, key in pairs)


@lru_cache(maxsize=512)
def find(text: str, *, anywhere: bool = False) -> str | None:
    """Return the framework that a text names, or None; the longest name within the text counts.

    Names that may also be of a publisher or a model count where a text is about software, not ``anywhere``.

    >>> find("Megatron-Bridge 0.4.2 / Megatron-Core"), find("MLPerf container (NeMo)"), find("own software")
    ('megatron_bridge', 'mlperf_container', None)
    """
    lowered = text.lower()
    return next((key for pattern, key in _names(anywhere) if pattern.search(lowered)), None)


def named(row: Mapping[str, Any]) -> str | None:
    """Return the framework that a measured run names, in its own column or in the words of its source."""
    texts = " ".join(str(row.get(name) or "") for name in ("locator", "source", "model"))
    return find(str(row.get("framework") or "")) or find(texts, anywhere=True)


@cache
def evidence() -> Mapping[str, frozenset[str]]:
    """Return the families of measured training runs seen with each framework."""
    rows = table("training_runs").select("group", "kind", "layers", "framework", "locator", "source", "model")
    seen: dict[str, set[str]] = {}
    for row in rows.collect().iter_rows(named=True):
        key = named(row)
        if key and row["layers"] and row["kind"] in ("throughput", "mlperf"):
            seen.setdefault(key, set()).add(row["group"].partition("-")[0])
    return {key: frozenset(families) for key, families in seen.items()}


def features(framework: str, software_year: float, vendor: str, scale_up_domain: float = 8.0) -> dict[str, float]:
    """Return the features that software of a time has by default on the chips of a vendor.

    >>> features("nanotron", 2025.1, "NVIDIA")["fused_kernels"]
    0.0
    >>> features("megatron_bridge", 2026.0, "NVIDIA")["interleaved_overlap"]
    1.0
    """
    row = frameworks()[framework]
    own = row["maker"] in (vendor, "own")
    partly = PARTLY_GRAPHED * ((row["layer_graphs_from"] or 1e9) <= software_year and scale_up_domain >= RACK)
    since = {name: float((row[f"{name}_from"] or 1e9) <= software_year) for name in FROM}
    return {
        "maker_kernels": row["maker_kernels"] if own else 0.0,
        "fused_kernels": row["fused_kernels"],
        "evidence_software": float(len(evidence().get(framework, ()))),
        "reduced_bytes_per_parameter": row["reduced_bytes"] or 2.0,
        "grouped_tile_tokens": (row["grouped_tile_tokens"] or 0.0) if own else 0.0,
        **since,
        "cuda_graphs": max(since["cuda_graphs"], partly),
    }


@lru_cache(maxsize=512)
def unnamed(software_year: float) -> dict[str, float]:
    """Return the features of software that nobody names: what the formulas say of its time.

    >>> unnamed(2025.5)["maker_kernels"]
    0.5
    """
    return {
        name: float(neutral_values()[name]) if name in neutral_values() else catalogue()[name](software_year)
        for name in FEATURES
    }
