"""What the name of an accelerator brings: peaks, measured ceilings, memory and links, from the tables."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from factorykit import datasets
from factorykit.errors import ScenarioError, UnknownName, unknown
from factorykit.formulas.step.rates import exponentials_per_s
from factorykit.quantities import neutral

if TYPE_CHECKING:
    import polars as pl

CEILING_16BIT: Final = 0.85
"""Ceiling of matrix products over the peak where nobody measured the chip; the measured ones span 0.51 to 0.97."""
CEILING_8BIT: Final = 0.80
"""The same in 8 bits."""
UNLIMITED_J_PER_FLOP: Final = 1e-12
"""Design power over peak of TPUs, whose power nobody states: enough to hold their clock. Others have that of H100."""
FEW_BITS: Final = MappingProxyType(
    {"fp8": "peak_fp8_flop_per_s", "mxfp8": "peak_fp8_flop_per_s", "nvfp4": "peak_fp4_flop_per_s"}
)
"""Column with the peak of each precision below 16 bits."""
BROUGHT: Final = (
    "peak_flop_per_s",
    "peak_16bit_flop_per_s",
    "gemm_ceiling",
    "gemm_ceiling_16bit",
    "accelerator_memory_bytes",
    "memory_bytes_per_s",
    "scale_up_bytes_per_s",
    "scale_up_domain",
    "scale_out_bytes_per_s",
    "chip_year",
    "design_j_per_flop",
    "exponentials_per_s",
    "evidence_families",
)
"""Quantities that an accelerator brings."""


@cache
def chips() -> Mapping[str, Mapping[str, Any]]:
    """Return every accelerator with the columns of its table, its measured ceilings, its generation and its usual link.

    A chip measured in 8 bits whose peak nobody states has twice its 16-bit peak, as every other one has.
    """
    rows = {row["accelerator"]: dict(row) for row in datasets.table("accelerators").collect().iter_rows(named=True)}
    for ceiling in datasets.table("ceilings").collect().iter_rows(named=True):
        chip = rows[ceiling["accelerator"]]
        chip[f"ceiling_{ceiling['precision']}"] = ceiling["gemm_flop_per_s"]
        if ceiling["precision"] == "fp8" and chip["peak_fp8_flop_per_s"] is None:
            chip["peak_fp8_flop_per_s"] = 2.0 * chip["peak_16bit_flop_per_s"]
    for chip in rows.values():
        chip["generation"], chip["exponentials_per_s"] = None, None
    for stated in datasets.table("generations").collect().iter_rows(named=True):
        rows[stated["accelerator"]].update({name: stated[name] for name in ("generation", "exponentials_per_s")})
    for link in datasets.table("links").collect().iter_rows(named=True):
        rows[link["accelerator"]].update(
            scale_out_bytes_per_s=link["scale_out_bytes_per_s"], fallback=link["scale_up_fallback_bytes_per_s"]
        )
    return MappingProxyType(rows)


@cache
def evidence() -> Mapping[str, frozenset[str]]:
    """Return the families of measured training runs seen on each accelerator."""
    rows = datasets.table("training_runs").select("hardware", "group", "kind", "layers").collect()
    seen: dict[str, set[str]] = {}
    for hardware, group, kind, layers in rows.iter_rows():
        if hardware and layers and kind in ("throughput", "mlperf"):
            with suppress(UnknownName):
                seen.setdefault(datasets.accelerator_in(hardware), set()).add(group.partition("-")[0])
    return MappingProxyType({chip: frozenset(families) for chip, families in seen.items()})


def _first_launch(chip: Mapping[str, Any]) -> float:
    """Return year and part of a year in which the first chip of a chip's generation was launched."""
    kin = [row for row in chips().values() if row["generation"] and row["generation"] == chip["generation"]] or [chip]
    launch = min(row["launch"] or "2026-01" for row in kin)
    return float(launch[:4]) + (float(launch[5:7] or "07") - 1.0) / 12.0


def specification(accelerator: str, precision: str = "bf16") -> dict[str, float]:
    """Return the quantities that an accelerator brings at a precision.

    Raises
    ------
    UnknownName
        If no accelerator has that name; nearest one offered.
    ScenarioError
        If the tables hold no peak for the precision, or no memory or link.

    >>> round(specification("h100_sxm", "fp8")["gemm_ceiling"], 3)
    0.709
    """
    row = chips().get(accelerator) or chips()[datasets.accelerator_in(accelerator)]
    sixteen = row["peak_16bit_flop_per_s"]
    peak = row[FEW_BITS[precision]] if precision in FEW_BITS else sixteen
    if not sixteen or not peak:
        raise ScenarioError(f"{row['name']}: the tables hold no dense peak in {precision}; give peak_flop_per_s")
    ceiling_16bit = row["ceiling_bf16"] / sixteen if row.get("ceiling_bf16") else CEILING_16BIT
    eight = row["ceiling_fp8"] / row["peak_fp8_flop_per_s"] if row.get("ceiling_fp8") else CEILING_8BIT
    if not row.get("ceiling_fp8") and row.get("ceiling_bf16"):
        eight = min(eight, ceiling_16bit)
    unstated = UNLIMITED_J_PER_FLOP if row["kind"] == "TPU" else neutral()["design_j_per_flop"]
    values = {
        "peak_flop_per_s": peak,
        "peak_16bit_flop_per_s": sixteen,
        "gemm_ceiling": eight if precision in FEW_BITS else ceiling_16bit,
        "gemm_ceiling_16bit": ceiling_16bit,
        "accelerator_memory_bytes": row["accelerator_memory_bytes"],
        "memory_bytes_per_s": row["memory_bytes_per_s"],
        "scale_up_bytes_per_s": row["scale_up_bytes_per_s"] or row.get("fallback"),
        "scale_up_domain": row["scale_up_domain"] or 8.0,
        "scale_out_bytes_per_s": row.get("scale_out_bytes_per_s"),
        "chip_year": _first_launch(row),
        "design_j_per_flop": row["tdp_w"] / sixteen if row["tdp_w"] else unstated,
        "exponentials_per_s": row["exponentials_per_s"] or exponentials_per_s(sixteen),
        "evidence_families": float(len(evidence().get(row["accelerator"], ()))),
    }
    empty = [name for name, value in values.items() if value is None]
    if empty:
        raise ScenarioError(f"{row['name']}: the tables do not say {', '.join(empty)}; give {' and '.join(empty)}")
    return values


def supplied(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values and what the accelerator named among them brings; a given value is kept.

    >>> supplied({"accelerator": "h100_sxm", "scale_up_domain": 256.0})["scale_up_domain"]
    256.0
    """
    precision = str(values.get("precision", "bf16"))
    return {**specification(str(values["accelerator"]), precision), "precision": precision, **values}


@cache
def _every() -> pl.DataFrame:
    import polars as pl

    rows = []
    for accelerator in chips():
        for precision in ("bf16", "fp16", *FEW_BITS):
            try:
                rows.append(
                    {"accelerator": accelerator, "precision": precision, **specification(accelerator, precision)}
                )
            except ScenarioError:
                continue
    return pl.DataFrame(rows)


def joined(frame: Any) -> Any:
    """Return a frame or lazy frame wider by what its column ``accelerator`` brings; columns it has are kept.

    Without a column ``precision`` runs are in bf16. What the tables do not say is null.

    Raises
    ------
    UnknownName
        If a frame that is not lazy names an accelerator that no table has.
    """
    import polars as pl

    have = frame.collect_schema()
    if isinstance(frame, pl.DataFrame):
        strangers = frame.filter(~pl.col("accelerator").is_in(list(chips())))["accelerator"]
        if len(strangers):
            raise UnknownName(unknown("accelerator", strangers[0], chips()))
    table = _every().lazy() if isinstance(frame, pl.LazyFrame) else _every()
    if "precision" not in have:
        frame = frame.with_columns(pl.lit("bf16").alias("precision"))
    kept = [name for name in table.collect_schema() if name in ("accelerator", "precision") or name not in have]
    brought: Any = table.select(kept)
    return frame.join(brought, on=["accelerator", "precision"], how="left", maintain_order="left")
