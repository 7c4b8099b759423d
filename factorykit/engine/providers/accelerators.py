"""Specifications of accelerators from the tables: peaks, measured ceilings, memory and links."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from factorykit.core.errors import UnknownName
from factorykit.core.vocabulary import neutral_values
from factorykit.data import tables
from factorykit.data.identifiers import accelerator_in
from factorykit.formulas.expressions import Lookup, term
from factorykit.formulas.step.rates import exponentials_per_s

CEILING_16BIT: Final = 0.79
"""Ceiling of matrix products over the peak of chips without a measurement: the middle of 13 measured ones, which span
0.51 to 0.97."""
CEILING_TPU: Final = 0.95
"""The same of a TPU: a systolic array that holds its clock. MaxText trains at 0.67 of the peak of v5p, which with
attention, norms and exchange leaves products no less."""
CEILING_8BIT: Final = 0.75
"""The ceiling in 8 bits of chips without a measurement: 10 measured ones have 0.74 in the middle."""
UNLIMITED_J_PER_FLOP: Final = 1e-12
"""Design power over peak of a TPU without an estimate of its power: enough to hold its clock. Others have that of
H100."""
SYSTOLIC: Final = 1.57
"""Energy that a GPU takes for the products of a systolic array, whose operands pass from cell to cell: TPU v4 draws 1.3
to 1.9 times less power than A100 in systems of like size (Jouppi and others, "TPU v4," 2023), the middle of both."""
KEY: Final = "accelerator"
"""The quantity that names an accelerator."""
FEW_BITS: Final = MappingProxyType(
    {"fp8": "peak_fp8_flop_per_s", "mxfp8": "peak_fp8_flop_per_s", "nvfp4": "peak_fp4_flop_per_s"}
)
"""Column with the peak of each precision below 16 bits."""
SIXTEEN_BITS: Final = ("bf16", "fp16")


@dataclass(frozen=True, eq=False, slots=True)
class Cell:
    """One quantity of every chip: called with words, the value; called with terms, the look-up as a term."""

    quantity: str
    words: tuple[str, ...]
    values: Mapping[str, float] = field(repr=False)

    def __call__(self, *words: Any) -> Any:
        """Return the cell that the words name, or the look-up over terms."""
        if all(isinstance(word, str) for word in words):
            return self.values[" ".join(words)]
        return Lookup(f"accelerators.{self.quantity}", tuple(map(term, words)), self.values)

    def has(self, values: Mapping[str, Any]) -> bool:
        """Return whether there is a value for the words; where the second one is unknown, for any of them."""
        known = [values.get(word) for word in self.words]
        if all(isinstance(word, str) for word in known):
            return " ".join(map(str, known)) in self.values
        return known[0] is None or any(key.partition(" ")[0] == known[0] for key in self.values)


@cache
def chips() -> Mapping[str, Mapping[str, Any]]:
    """Return every accelerator with the columns of its table, its measured ceilings, its generation and its usual link.

    A chip measured in 8 bits without a stated peak has twice its 16-bit peak, as every other one has.
    """
    rows = {row["accelerator"]: dict(row) for row in tables.table("accelerators").collect().iter_rows(named=True)}
    for ceiling in tables.table("ceilings").collect().iter_rows(named=True):
        chip = rows[ceiling["accelerator"]]
        chip[f"ceiling_{ceiling['precision']}"] = ceiling["gemm_flop_per_s"]
        if ceiling["precision"] == "fp8" and chip["peak_fp8_flop_per_s"] is None:
            chip["peak_fp8_flop_per_s"] = 2.0 * chip["peak_16bit_flop_per_s"]
    columns = ("generation", "exponentials_per_s", "matrix_tile")
    for chip in rows.values():
        chip.update(dict.fromkeys(columns))
    for stated in tables.table("generations").collect().iter_rows(named=True):
        rows[stated["accelerator"]].update({name: stated[name] for name in columns})
    for link in tables.table("links").collect().iter_rows(named=True):
        rows[link["accelerator"]].update(
            scale_out_bytes_per_s=link["scale_out_bytes_per_s"], fallback=link["scale_up_fallback_bytes_per_s"]
        )
    return MappingProxyType(rows)


def chip_in(hardware: str | None) -> Mapping[str, Any]:
    """Return the chip that a text names, as `chips` has it; nothing where it names none that the tables know.

    >>> chip_in("H100 SXM5 80GB")["accelerator"], dict(chip_in("abacus"))
    ('h100_sxm', {})
    """
    try:
        return chips()[accelerator_in(hardware or "")]
    except UnknownName:
        return {}


@cache
def evidence(*by: str) -> Mapping[tuple[str, ...], float]:
    """Return the number of families of measured training runs seen with each combination of accelerator, framework ...

    >>> evidence("accelerator")["h100_sxm",] > evidence("framework", "vendor")["nanotron", "NVIDIA"]
    True
    """
    import polars as pl

    vendors = tables.table("accelerators").select("accelerator", "vendor")
    runs = tables.table("training_runs").filter(pl.col("kind").is_in(["throughput", "mlperf"]), pl.col("layers") > 0)
    families = pl.col("group").str.split("-").list.first().n_unique().cast(pl.Float64)
    seen = runs.join(vendors, on="accelerator").drop_nulls(by).group_by(by).agg(families).collect()
    return {tuple(key): count for *key, count in seen.iter_rows()}


def _first_launch(chip: Mapping[str, Any]) -> float:
    """Return year and part of a year in which the first chip of a chip's generation was launched."""
    named = chip["generation"]
    generation = [row for row in chips().values() if named and row["generation"] == named] or [chip]
    launch = min(row["launch"] or "2026-01" for row in generation)
    return float(launch[:4]) + (float(launch[5:7] or "07") - 1.0) / 12.0


def _peak(chip: Mapping[str, Any], precision: str) -> float | None:
    sixteen = chip["peak_16bit_flop_per_s"]
    return chip[FEW_BITS[precision]] if sixteen and precision in FEW_BITS else sixteen


def _ceiling(chip: Mapping[str, Any], precision: str) -> float | None:
    sixteen, peak = chip["peak_16bit_flop_per_s"], _peak(chip, precision)
    if not sixteen or not peak:
        return None
    measured = chip["ceiling_bf16"] / sixteen if chip.get("ceiling_bf16") else None
    if precision not in FEW_BITS:
        return measured or (CEILING_TPU if chip["kind"] == "TPU" else CEILING_16BIT)
    if chip.get("ceiling_fp8"):
        return chip["ceiling_fp8"] / chip["peak_fp8_flop_per_s"]
    return min(CEILING_8BIT, measured) if measured else CEILING_8BIT


def _design_j_per_flop(chip: Mapping[str, Any], _: str) -> float | None:
    if chip["tdp_w"] and chip["peak_16bit_flop_per_s"]:
        return chip["tdp_w"] / chip["peak_16bit_flop_per_s"]
    if chip["kind"] == "TPU" and chip["tdp_estimated_w"] and chip["peak_16bit_flop_per_s"]:
        return SYSTOLIC * chip["tdp_estimated_w"] / chip["peak_16bit_flop_per_s"]
    return UNLIMITED_J_PER_FLOP if chip["kind"] == "TPU" else float(neutral_values()["design_j_per_flop"])


def _exponentials_per_s(chip: Mapping[str, Any], _: str) -> float | None:
    sixteen = chip["peak_16bit_flop_per_s"]
    return chip["exponentials_per_s"] or (exponentials_per_s(sixteen) if sixteen else None)


BY_PRECISION: Final = ("peak_flop_per_s", "gemm_ceiling")
"""Quantities of a chip that depend on the number format."""
BROUGHT: Final[Mapping[str, Callable[[Mapping[str, Any], str], float | None]]] = MappingProxyType(
    {
        "peak_flop_per_s": _peak,
        "peak_16bit_flop_per_s": lambda chip, _: chip["peak_16bit_flop_per_s"],
        "gemm_ceiling": _ceiling,
        "gemm_ceiling_16bit": lambda chip, _: _ceiling(chip, "bf16"),
        "accelerator_memory_bytes": lambda chip, _: chip["accelerator_memory_bytes"],
        "memory_bytes_per_s": lambda chip, _: chip["memory_bytes_per_s"],
        "scale_up_bytes_per_s": lambda chip, _: chip["scale_up_bytes_per_s"] or chip.get("fallback"),
        "scale_up_domain": lambda chip, _: chip["scale_up_domain"] or 8.0,
        "torus_axes": lambda chip, _: chip["torus_axes"] or 0.0,
        "torus_side": lambda chip, _: chip["torus_side"] or float(neutral_values()["torus_side"]),
        "scale_out_bytes_per_s": lambda chip, _: chip.get("scale_out_bytes_per_s"),
        "chip_year": lambda chip, _: _first_launch(chip),
        "design_j_per_flop": _design_j_per_flop,
        "exponentials_per_s": _exponentials_per_s,
        "matrix_tile": lambda chip, _: chip["matrix_tile"] or float(neutral_values()["matrix_tile"]),
        "evidence_families": lambda chip, _: evidence("accelerator").get((chip["accelerator"],), 0.0),
    }
)
"""Specifications, and how each is read from the row of an accelerator; None where the tables have no value."""
OWN_VALUES: Final = " with values of your own"
"""Words after the name of an accelerator of which specifications are given."""
TABLE_OF: Final = MappingProxyType(
    {
        "gemm_ceiling": "ceilings",
        "gemm_ceiling_16bit": "ceilings",
        "scale_out_bytes_per_s": "links",
        "exponentials_per_s": "generations",
        "matrix_tile": "generations",
    }
)
"""Table that a quantity of a chip is read from, where it is not ``accelerators``."""


def missing_message(names: Collection[str], words: Mapping[str, str]) -> str:
    """Return the message for missing specifications of an accelerator.

    >>> missing_message(["peak_flop_per_s"], {"accelerator": "t4", "precision": "fp8"})
    'the tables have no rate of NVIDIA T4 at precision = fp8, only at bf16, fp16; give one of these, or peak_flop_per_s'
    """
    key = words.get("accelerator", "")
    chip = chips()[key]["name"] if key in chips() else "this accelerator"
    known = [precision for precision in (*SIXTEEN_BITS, *FEW_BITS) if key in chips() and _peak(chips()[key], precision)]
    if "peak_flop_per_s" in names and known:
        fault = f"the tables have no rate of {chip} at precision = {words.get('precision')}, only at {', '.join(known)}"
        return f"{fault}; give one of these, or {' and '.join(names)}"
    return f"{chip}: the tables have no {', '.join(names)}; give {' and '.join(names)}"


@cache
def cell(name: str) -> Cell:
    """Return one specification of every accelerator, by precision where it depends on it.

    >>> cell("accelerator_memory_bytes")("h100_sxm")
    80000000000.0
    >>> round(cell("gemm_ceiling")("h100_sxm", "fp8"), 3)
    0.709
    """
    words = ("accelerator", "precision") if name in BY_PRECISION else ("accelerator",)
    formats = (*SIXTEEN_BITS, *FEW_BITS) if name in BY_PRECISION else ("",)
    columns = {
        f"{key} {precision}".strip(): value
        for key, chip in chips().items()
        for precision in formats
        if (value := BROUGHT[name](chip, precision)) is not None
    }
    return Cell(name, words, MappingProxyType(columns))


def specification_source(name: str, accelerator: str) -> str:
    """Return source and locator of the row that a specification is read from.

    >>> specification_source("accelerator_memory_bytes", "h100_sxm")[:7]
    'h100_ds'
    """
    table = TABLE_OF.get(name, "accelerators")
    rows = tables.table(table).filter(accelerator=accelerator).select("source", "locator").collect()
    if rows.is_empty():
        return "rule of the model for accelerators without a measurement" if table != "links" else ""
    source, locator = rows.row(0)
    return f"{source}, {locator}" if locator else source


def brought(accelerator: str, precision: str = "bf16") -> dict[str, float]:
    """Return the specifications of an accelerator at a precision that the tables have.

    >>> "scale_out_bytes_per_s" in brought("h100_sxm")
    True
    """
    words = {"accelerator": accelerator, "precision": precision}
    cells = {name: cell(name) for name in BROUGHT}
    return {name: it(*(words[word] for word in it.words)) for name, it in cells.items() if it.has(words)}
