"""Training frameworks: names, and the features that each has by default at the time of a release."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any, Final

from factorykit.core.vocabulary import neutral_values
from factorykit.data.tables import table
from factorykit.engine.providers.accelerators import evidence
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
"""Features that software has from a release on, by the table ``framework_features``."""
AMBIGUOUS: Final = frozenset(
    {"MosaicML", "Hugging Face", "HuggingFace", "PEFT", "JAX", "PyTorch", "Lightning", "OLMo", "OLMo-core", "veScale"}
)
"""Names of software that publications also use for a publisher, a library or a model."""
RACK: Final = 32.0
"""Chips of a scale-up domain from which recipes treat it as a rack and capture graphs."""
PARTLY_GRAPHED: Final = 0.5
"""Share of the launches of a layer that captured graphs of attention and routing save."""

FEATURES: Final = (
    *("vendor_kernels", "fused_kernels", "evidence_software", "reduced_bytes_per_parameter", "grouped_tile_tokens"),
    "tensorwise_shards",
    *FROM,
)
"""Quantities that a framework determines."""


@cache
def frameworks() -> Mapping[str, Mapping[str, Any]]:
    """Return the rows of the ``frameworks`` table by their key."""
    return {row["framework"]: row for row in table("frameworks").collect().iter_rows(named=True)}


@cache
def releases() -> Mapping[str, Mapping[str, float]]:
    """Return the year and part of a year from which each framework has each feature."""
    since: dict[str, dict[str, float]] = {}
    for row in table("framework_features").collect().iter_rows(named=True):
        since.setdefault(row["framework"], {})[row["quantity"]] = row["since_year"]
    return since


@cache
def _names(is_publication: bool) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return patterns of names with the key of each framework, longest names first."""
    pairs = [(name, key) for key, row in frameworks().items() for name in row["also_called"].split(";")]
    pairs = [pair for pair in pairs if not (is_publication and pair[0] in AMBIGUOUS)]
    pairs.sort(key=lambda pair: -len(pair[0]))
    return tuple((re.compile(rf"(?<![a-z]){re.escape(name.lower())}(?![a-z])"), key) for name, key in pairs)


@lru_cache(maxsize=512)
def find(text: str, *, is_publication: bool = False) -> str | None:
    """Return the key of the framework in a description of software, or None; the longest name counts.

    The framework it builds on is given in parentheses, and counts where nothing else is a name. In a publication,
    names that may also be of a publisher or a model do not count.

    >>> find("Megatron-Bridge 0.4.2 / Megatron-Core"), find("MLPerf container (NeMo)"), find("own software")
    ('megatron_bridge', 'mlperf_container', None)
    >>> find("Primus (Megatron-LM)"), find("NeMo Megatron (neuronx)")
    ('primus', 'neuron')
    """
    if text in frameworks():
        return text
    lowered = text.lower()
    names = [(pattern, key) for pattern, key in _names(is_publication) if pattern.search(lowered)]
    before = lowered.partition("(")[0]
    return next((key for pattern, key in names if r"\(" in pattern.pattern or pattern.search(before)), None) or next(
        (key for _, key in names), None
    )


def features(framework: str, software_year: float, vendor: str, scale_up_domain: float = 8.0) -> dict[str, float]:
    """Return the features that software of a time has by default on the chips of a vendor.

    >>> features("nanotron", 2025.1, "NVIDIA")["fused_kernels"]
    0.0
    >>> features("megatron_bridge", 2026.0, "NVIDIA")["interleaved_overlap"]
    1.0
    """
    row = frameworks()[framework]
    own = row["maker"] in (vendor, "own")
    has = {name for name, year in releases().get(framework, {}).items() if year <= software_year}
    partly = PARTLY_GRAPHED * ("layer_graphs" in has and scale_up_domain >= RACK)
    since = {name: float(name in has) for name in FROM}
    return {
        "vendor_kernels": row["vendor_kernels"] if own else 0.0,
        "fused_kernels": row["fused_kernels"],
        "evidence_software": evidence("framework", "vendor").get((framework, vendor), 0.0),
        "reduced_bytes_per_parameter": row["reduced_bytes"] or 2.0,
        "grouped_tile_tokens": (row["grouped_tile_tokens"] or 0.0) if own else 0.0,
        "tensorwise_shards": row["tensorwise_shards"] or 0.0,
        **since,
        "cuda_graphs": max(since["cuda_graphs"], partly),
    }


@lru_cache(maxsize=512)
def unnamed(software_year: float) -> dict[str, float]:
    """Return the features of unknown software of a time, by the formulas.

    >>> unnamed(2025.5)["vendor_kernels"]
    0.5
    """
    return {
        name: float(neutral_values()[name]) if name in neutral_values() else catalogue()[name](software_year)
        for name in FEATURES
    }
