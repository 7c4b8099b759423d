"""Evaluation from inputs to outputs: specifications of a chip, defaults, missing inputs, and validity of results."""

from __future__ import annotations

import math
import warnings

import polars as pl
import pytest

import factorykit as fk
from factorykit.core.errors import FactorykitWarning, MissingQuantity, ScenarioError
from factorykit.engine.providers.defaults import defaults

PEAKS = fk.table("accelerators").filter(accelerator="b200").collect().row(0, named=True)
CHIP = {"accelerator": "b200", "accelerators": 8.0}


@pytest.mark.parametrize(
    ("precision", "column"),
    [({}, "16bit"), *(({"precision": p}, c) for p, c in (("bf16", "16bit"), ("fp16", "16bit"), ("fp8", "fp8")))],
)
def test_a_chip_brings_the_peak_of_its_precision_and_16_bits_by_default(precision: dict[str, str], column: str) -> None:
    peak = 8 * PEAKS[f"peak_{column}_flop_per_s"]
    assert fk.evaluate(CHIP | precision, "cluster_peak_flop_per_s")["cluster_peak_flop_per_s"] == peak
    frame = pl.DataFrame([CHIP | precision])
    assert fk.evaluate(frame, "cluster_peak_flop_per_s")["cluster_peak_flop_per_s"].item() == peak


@pytest.mark.parametrize("name", ["B200", "NVIDIA B200", "b200"])
def test_a_chip_is_found_by_its_aliases(name: str) -> None:
    peak = {"cluster_peak_flop_per_s": 8 * PEAKS["peak_16bit_flop_per_s"]}
    assert fk.evaluate(CHIP | {"accelerator": name}, "cluster_peak_flop_per_s") == peak


def test_a_given_value_overrides_the_cell_of_the_chip() -> None:
    assert fk.evaluate(CHIP | {"peak_flop_per_s": 1e15}, "cluster_peak_flop_per_s")["cluster_peak_flop_per_s"] == 8e15


def test_a_chip_that_lacks_a_precision_is_reported_with_the_precision() -> None:
    with pytest.raises(
        MissingQuantity,
        match=r"no rate of NVIDIA A100.* at precision = fp8, only at bf16, fp16; give one of these, or peak_",
    ):
        fk.evaluate(CHIP | {"accelerator": "a100_sxm_80gb", "precision": "fp8"}, "cluster_peak_flop_per_s")
    without = fk.table("accelerators").filter(pl.col("peak_16bit_flop_per_s").is_null()).collect()
    chip = without["accelerator"][0]
    with pytest.raises(MissingQuantity, match=r"the tables have no peak_flop_per_s; give peak_flop_per_s$"):
        fk.evaluate({"accelerator": chip, "accelerators": 8.0}, "cluster_peak_flop_per_s")


def test_nothing_is_assumed_without_a_request() -> None:
    run = {"accelerators": 64.0, "wall_s": 3600.0}
    with pytest.raises(MissingQuantity, match="rental_usd_per_accelerator_h"):
        fk.evaluate(run, "rental_cost_usd")
    price = defaults()["rental_usd_per_accelerator_h"].value
    assert fk.evaluate(run, "rental_cost_usd", assume=True)["rental_cost_usd"] == 64 * price
    for frame in (pl.DataFrame([run]), pl.LazyFrame([run])):
        assert (
            fk.evaluate(frame, "rental_cost_usd", assume=True).lazy().collect()["rental_cost_usd"].item() == 64 * price
        )


def test_the_price_of_a_named_chip_is_assumed_and_not_that_of_another() -> None:
    prices = {
        chip: fk.evaluate({"accelerator": chip}, "rental_usd_per_accelerator_h", assume=True)[
            "rental_usd_per_accelerator_h"
        ]
        for chip in ("a100_sxm_80gb", "h100_sxm", "b200")
    }
    assert prices["a100_sxm_80gb"] < prices["h100_sxm"] < prices["b200"]


LAYOUT = {
    **fk.architecture("llama3_70b"),
    "tokens": 2e12,
    "accelerators": 1024.0,
    "global_batch_size": 1024.0,
    "sequence_length": 8192.0,
    "tensor_parallel": 8.0,
}


@pytest.mark.parametrize("chip", ["h100_sxm", "mi300x", "b200", "a100_sxm_80gb"])
def test_assumed_days_of_a_layout_are_its_steps(chip: str) -> None:
    run = LAYOUT | {"accelerator": chip}
    found = fk.evaluate(run, ("step_s", "training_days"), assume=True)
    steps = LAYOUT["tokens"] / (LAYOUT["global_batch_size"] * LAYOUT["sequence_length"])
    assert found["training_days"] == pytest.approx(steps * found["step_s"] / 86400.0, rel=1e-12)
    assert fk.evaluate(run, "training_days", assume=True)["training_days"] == found["training_days"]
    assert "mfu" not in fk.assumed(run, "training_days")["quantity"].to_list()


@pytest.mark.filterwarnings("ignore:.*not used for")
def test_a_layout_overrides_no_given_utilization_and_times_no_unknown_chip() -> None:
    given = LAYOUT | {"accelerator": "h100_sxm", "mfu": 0.38}
    assert fk.evaluate(given, "training_days", assume=True) == fk.evaluate(given, "training_days")
    untimed = {"active_parameters": 7e10, "tokens": 2e12, "accelerators": 64.0, "peak_flop_per_s": 1e15}
    assert "mfu" in fk.assumed(untimed, "training_days")["quantity"].to_list()
    with pytest.raises(ScenarioError, match="tensor_parallel = 8 is not used for training_days; predicted_mfu for mfu"):
        fk.assumed(untimed | {"tensor_parallel": 8.0}, "training_days")


def test_a_word_that_is_no_alternative_model_is_refused() -> None:
    with pytest.raises(ScenarioError, match=r"goodput = 'etr' is not a number; .* nearest model of it is 'ettr'"):
        fk.evaluate({"training_s": 1e6, "goodput": "etr"}, "wall_s")
    with pytest.raises(
        ScenarioError, match="goodput = 'nodes' is not an alternative model of goodput; give a number or one of"
    ):
        fk.evaluate({"training_s": 1e6, "goodput": "nodes"}, "wall_s")


def test_defaults_that_grow_with_the_cluster_are_proportional_to_it() -> None:
    name, staff = next((n, row) for n, row in defaults().items() if row.grows_with == "accelerators")
    twice = {"accelerators": 2.0 * defaults()["accelerators"].value}
    assert fk.evaluate(twice, name, assume=True)[name] == pytest.approx(2.0 * staff.value, rel=1e-12)


UNSTABLE = {"checkpoint_interval_s": 6e5, "checkpoint_write_s": 60.0, "cluster_mtbf_s": 600.0, "restart_s": 60.0}
UNSTABLE |= {"training_s": 1e6, "downtime_s": 0.0}


def test_an_infinite_result_is_reported_with_the_intermediate_zeros() -> None:
    with pytest.warns(FactorykitWarning, match="wall_s is infinite: checkpoint_goodput = 0, goodput = 0"):
        assert math.isinf(fk.evaluate(UNSTABLE, "wall_s")["wall_s"])


def test_leaving_a_validity_range_warns_for_named_outputs_only() -> None:
    rare = {"checkpoint_write_s": 60.0, "cluster_mtbf_s": 100.0}
    with pytest.warns(FactorykitWarning, match="checkpoint_interval_young_s is valid for .* cluster_mtbf_s = 100"):
        fk.evaluate(rare, "checkpoint_interval_young_s")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "checkpoint_interval_young_s" in fk.evaluate(rare)


def test_a_result_out_of_bounds_is_reported_with_its_inputs() -> None:
    with pytest.raises(ScenarioError, match=r"moe_layers = -68 .* it follows from layers = 60, dense_layers = 128"):
        fk.evaluate({"layers": 60, "dense_layers": 128, "experts": 64}, "moe_layers")


def test_a_division_by_zero_blames_the_zero_alone() -> None:
    level = {"level_write_s": 60.0, "level_share": 0.0, "cluster_mtbf_s": 1e5}
    with pytest.warns(FactorykitWarning, match="level_interval_s is infinite: level_share = 0$"):
        assert math.isinf(fk.evaluate(level, "level_interval_s")["level_interval_s"])
