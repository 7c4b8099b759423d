"""Frames: integers become floats, and an undefined or impossible result is refused with its row."""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import Any

import polars as pl
import pytest

import factorykit as fk
from factorykit.core.errors import FactorykitWarning, MissingQuantity, ScenarioError


@pytest.mark.parametrize("frame", [pl.DataFrame, pl.LazyFrame])
@pytest.mark.parametrize("kind", [pl.Int64, pl.UInt64, pl.Float64])
def test_a_product_of_whole_numbers_is_that_of_floats(frame, kind) -> None:
    """2e5 accelerators of 9.89e14 FLOP/s are 1.978e20 FLOP/s, twenty times the range of a 64-bit integer."""
    whole = {"accelerators": [1000, 200_000], "peak_flop_per_s": [989 * 10**12] * 2}
    given = frame(whole, schema=dict.fromkeys(whole, kind))
    peaks = fk.evaluate(given, "cluster_peak_flop_per_s").lazy().collect()["cluster_peak_flop_per_s"]
    assert peaks.to_list() == [9.89e17, 1.978e20]


@pytest.mark.parametrize("kind", [pl.Int32, pl.UInt32])
def test_short_whole_numbers_make_long_products(kind) -> None:
    """2e5 accelerators for 54 days are 9.3e11 accelerator-seconds; 32 bits hold 4.3e9."""
    whole = {"accelerators": [200_000], "wall_s": [54 * 86_400]}
    held = fk.evaluate(pl.DataFrame(whole, schema=dict.fromkeys(whole, kind)), "accelerator_hours")
    assert held["accelerator_hours"].to_list() == [200_000 * 54 * 24.0]


FREE_SPARES = pl.DataFrame(
    {"spare_nodes": [1.0, 1e300], "accelerators_per_node": [8.0, 1e300], "rental_usd_per_accelerator_h": [2.0, 0.0]}
)
"""One spare node of eight accelerators at 2 USD/h, and infinitely many for nothing, whose cost is undefined."""


@pytest.mark.filterwarnings("ignore::factorykit.core.errors.FactorykitWarning")
def test_an_undefined_result_of_a_frame_is_refused_with_its_row() -> None:
    with pytest.raises(ScenarioError, match=r"row 1 \(1 of 2 rows are invalid\): spares_usd_per_day is undefined"):
        fk.evaluate(FREE_SPARES, "spares_usd_per_day")
    assert fk.evaluate(FREE_SPARES.head(1), "spares_usd_per_day")["spares_usd_per_day"].item() == 8 * 2.0 * 24


def test_an_undefined_result_of_a_lazy_frame_is_no_number() -> None:
    found = fk.evaluate(FREE_SPARES.lazy(), "spares_usd_per_day").collect()["spares_usd_per_day"]
    assert found.fill_nan(None).to_list() == [8 * 2.0 * 24, None]


def test_an_infinite_result_of_a_frame_is_kept_and_reported_with_its_row() -> None:
    run = {"checkpoint_interval_s": [1e3, 6e5], "checkpoint_write_s": 60.0, "cluster_mtbf_s": 600.0, "restart_s": 60.0}
    frame = pl.DataFrame(run | {"training_s": 1e6, "downtime_s": 0.0, "accelerators": 8.0})
    with pytest.warns(FactorykitWarning, match="wall_s is infinite in 1 of 2 rows, first in row 1"):
        found = fk.evaluate(frame, "wall_s")["wall_s"]
    assert [math.isinf(value) for value in found] == [False, True]


@pytest.mark.parametrize(("dense", "row"), [([3.0, 128.0], 1), ([128.0, 3.0], 0)])
def test_an_impossible_result_of_a_frame_is_refused_with_its_row(dense: list[float], row: int) -> None:
    frame = pl.DataFrame({"layers": 60.0, "dense_layers": dense, "experts": 64.0})
    with pytest.raises(ScenarioError, match=rf"row {row} .1 of 2 rows are invalid.: moe_layers = -68 is outside"):
        fk.evaluate(frame, "moe_layers")
    found = fk.evaluate(frame.lazy(), "moe_layers").collect()["moe_layers"].to_list()
    assert found == [57.0 if layers == 3.0 else None for layers in dense]


@pytest.mark.parametrize(("mfu", "held"), [(0.0, False), (1e-9, True), (1.0, True), (1.0001, False), (math.nan, False)])
def test_a_bound_is_included_or_excluded_as_its_bracket_shows(mfu: float, held: bool) -> None:
    frame = pl.LazyFrame({"mfu": [mfu], "cluster_peak_flop_per_s": 1e18, "training_flop": 1e24})
    assert (fk.evaluate(frame, "training_s").collect()["training_s"].item() is not None) == held


def test_an_output_that_was_given_is_checked_too() -> None:
    with pytest.raises(ScenarioError, match=r"row 1 .1 of 2 rows are invalid.: mfu = 38.0 is outside \(0, 1\]"):
        fk.evaluate(pl.DataFrame({"mfu": [0.38, 38.0], "number of row": ["a", "b"]}), "mfu")
    assert fk.evaluate(pl.LazyFrame({"mfu": [0.38, 38.0]}), "mfu").collect()["mfu"].to_list() == [0.38, None]


def test_columns_that_contradict_each_other_are_refused_with_the_row() -> None:
    frame = pl.DataFrame({"active_parameters": [1e9, 1e9], "tokens": 1e12, "training_flop": [6e21, 7e21]})
    with pytest.raises(ScenarioError, match=r"row 1 .*: training_flop = 7e\+21 is inconsistent"):
        fk.evaluate(frame, "training_flop")
    assert fk.evaluate(frame.head(1), "training_flop").height == 1


@pytest.mark.parametrize(("off", "agrees"), [(0.0, True), (9e-7, True), (-9e-7, True), (1.05e-6, False)])
def test_a_given_result_may_be_off_by_a_millionth_of_itself(off: float, agrees: bool) -> None:
    given = {"active_parameters": 1e9, "tokens": 1e12, "training_flop": 6e21 * (1.0 + off)}
    for inputs in (given, pl.DataFrame([given])):
        with nullcontext() if agrees else pytest.raises(ScenarioError, match="is inconsistent with the other"):
            fk.evaluate(inputs, "training_flop")


def test_a_chip_whose_cell_is_empty_is_named() -> None:
    frame = pl.DataFrame({"accelerator": ["h100_sxm", "a100_sxm_80gb"], "accelerators": 512, "precision": "fp8"})
    with pytest.raises(
        MissingQuantity,
        match=r"the tables have no rate of NVIDIA A100.* at precision = fp8, only at bf16, fp16",
    ):
        fk.evaluate(frame, "cluster_peak_flop_per_s")


def test_an_unknown_word_in_a_column_is_refused_with_the_words_that_are_known() -> None:
    frame = pl.DataFrame({"accelerator": "h100_sxm", "accelerators": 512, "precision": ["fp8", "int4"]})
    with pytest.raises(ScenarioError, match=r"row 1 .*: precision = 'int4' is not one of bf16"):
        fk.evaluate(frame, "cluster_peak_flop_per_s")


UNDEFINED = [
    ("spot_saving", {"spot_cost_usd": [0.0, 1.0], "rental_cost_usd": [0.0, 4.0]}, 0.75),
    ("bring_up_mtbf_s", {"span_s": [0.0, 100.0], "bring_up_failures": [0.0, 4.0], "lifetime_shape": 0.5}, 50.0),
    ("spot_tiered_saving", {"spot_tiered_cost_usd": [0.0, 1.0], "rental_cost_usd": [0.0, 2.0]}, 0.5),
]


@pytest.mark.parametrize(("name", "inputs", "second"), UNDEFINED, ids=[name for name, _, _ in UNDEFINED])
def test_an_undefined_result_is_null_in_a_lazy_frame(name: str, inputs: dict[str, Any], second: float) -> None:
    frame = pl.DataFrame(inputs)
    assert fk.evaluate(frame.lazy(), name).collect()[name].to_list() == [None, second]
    with pytest.raises(ScenarioError, match=f"row 0 .*: {name} is undefined"):
        fk.evaluate(frame, name)
