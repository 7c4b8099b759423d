"""Evaluation of mappings and frames, and invalid inputs."""

from __future__ import annotations

import math
import pickle
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import factorykit as fk
from factorykit.core.errors import CycleError, MissingQuantity, ScenarioError, UnknownQuantity

RUN = {
    "active_parameters": 405e9,
    "parameters": 405e9,
    "tokens": 15.6e12,
    "accelerators": 16384.0,
    "peak_flop_per_s": 989e12,
    "mfu": 0.41,
    "accelerator_mtbf_s": 54 * 86400 * 16384 / 419,
    "restart_s": 600.0,
    "downtime_s": 0.0,
    "checkpoint_bytes_per_parameter": 14.0,
    "storage_write_bytes_per_s": 2e12,
    "rental_usd_per_accelerator_h": 2.0,
}


def test_names_find_the_chain_from_parameters_to_cost() -> None:
    cost = fk.evaluate(RUN, "rental_cost_usd")["rental_cost_usd"]
    goodput = fk.evaluate(RUN, "goodput")["goodput"]
    by_hand = 6 * 405e9 * 15.6e12 / (16384 * 989e12 * 0.41) / goodput * 16384 / 3600 * 2
    assert cost == pytest.approx(by_hand, rel=1e-12)


@given(st.floats(1e8, 1e13), st.floats(1e9, 1e15), st.floats(0.01, 0.8))
def test_scalars_frames_and_lazy_frames_agree(parameters: float, tokens: float, mfu: float) -> None:
    run = RUN | {"parameters": parameters, "active_parameters": parameters, "tokens": tokens, "mfu": mfu}
    outputs = ["wall_days", "rental_cost_usd"]
    scalar = fk.evaluate(run, outputs)
    eager = fk.evaluate(pl.DataFrame([run]), outputs)
    lazy = fk.evaluate(pl.LazyFrame([run]), outputs)
    assert isinstance(lazy, pl.LazyFrame)
    assert_frame_equal(eager, lazy.collect())
    assert eager.select(outputs).row(0, named=True) == pytest.approx(scalar, rel=1e-12)


COUNTED: dict[str, Any] = {"parameters": 70e9, "tokens": 15e12, "accelerator": "h100_sxm"}


@pytest.mark.parametrize(
    ("output", "names"),
    [
        ("wall_days", ("parameters", "tokens", "accelerator")),
        ("checkpoint_write_s", ("parameters",)),
        ("failures_per_day", ()),
        ("facility_power_w", ("accelerator",)),
    ],
)
def test_a_count_is_asked_for_with_the_ways_to_state_it(output: str, names: tuple[str, ...]) -> None:
    asked = "give accelerators .*accelerators follows from nodes, accelerators_per_node"
    known = {name: COUNTED[name] for name in names}
    with pytest.raises(MissingQuantity, match=asked) as error:
        fk.evaluate(known, output, assume=True)
    assert error.value.missing == ("accelerators",)
    by_nodes, by_count = ({**known, **count} for count in ({"nodes": 8}, {"accelerators": 64}))
    assert fk.evaluate(by_nodes, output, assume=True) == fk.evaluate(by_count, output, assume=True)


@pytest.mark.parametrize("asked", ["accelerators", "parameters", "layers", "hidden_size"])
def test_no_question_assumes_a_count_or_the_shape_of_a_model(asked: str) -> None:
    with pytest.raises(MissingQuantity, match=asked):
        fk.evaluate({}, asked, assume=True)


def test_questions_that_need_no_count_are_answered_without_one() -> None:
    known = {"accelerator": "h100_sxm"}
    assert fk.evaluate(known, "node_power_w", assume=True)["node_power_w"] == 8 * 650.0 + 2000.0
    assert fk.evaluate(known, "facility_power_per_accelerator_w", assume=True) == pytest.approx(
        {
            "facility_power_per_accelerator_w": fk.evaluate(
                known | {"accelerators": 64}, "facility_power_w", assume=True
            )["facility_power_w"]
            / 64
        }
    )


def test_all_computable_outputs_are_the_default() -> None:
    assert fk.evaluate({"wall_s": 86400.0}) == {"wall_days": 1.0}


def test_a_lazy_plan_holds_no_python() -> None:
    plan = fk.evaluate(pl.LazyFrame([RUN]), "rental_cost_usd").explain()
    assert "python" not in plan.lower()


def test_whole_numbers_do_not_overflow() -> None:
    frame = pl.DataFrame({"active_parameters": [70_000_000_000], "tokens": [15_000_000_000_000]})
    assert fk.evaluate(frame, "training_flop")["training_flop"][0] == pytest.approx(6.3e24)


def test_other_columns_pass_through_and_rows_keep_their_order() -> None:
    frame = pl.DataFrame({"name": ["b", "a"], "wall_s": [2 * 86400, 86400]})
    assert fk.evaluate(frame, "wall_days").rows() == [("b", 172800.0, 2.0), ("a", 86400.0, 1.0)]


def test_a_wider_frame_can_be_evaluated_again() -> None:
    once = fk.evaluate(pl.DataFrame([RUN]), "training_flop")
    assert fk.evaluate(once, "training_days").width == once.width + 1


def test_a_given_quantity_is_not_computed() -> None:
    assert fk.evaluate(RUN | {"goodput": 0.5}, "goodput") == {"goodput": 0.5}


@pytest.mark.parametrize("model", ["young", "daly", "optimal"])
def test_an_alternative_model_can_be_chosen_by_name(model: str) -> None:
    alternative = f"checkpoint_interval_{model}_s"
    chosen = fk.evaluate(RUN | {"checkpoint_interval_s": alternative}, "checkpoint_interval_s")
    assert chosen["checkpoint_interval_s"] == fk.evaluate(RUN, alternative)[alternative]
    frame = fk.evaluate(pl.DataFrame([RUN]), "checkpoint_interval_s", using={"checkpoint_interval_s": alternative})
    assert frame["checkpoint_interval_s"][0] == pytest.approx(chosen["checkpoint_interval_s"], rel=1e-12)


BAD_VALUES = [38.0, 0.0, -0.1, math.nan, math.inf, None, "0.4 s", True, 1 + 2j, [0.4]]


@pytest.mark.parametrize("value", BAD_VALUES, ids=repr)
def test_a_bad_value_is_refused_by_name(value: object) -> None:
    with pytest.raises((ScenarioError, UnknownQuantity), match="mfu"):
        fk.evaluate(RUN | {"mfu": value}, "training_s")


def test_percent_is_answered_with_the_fraction() -> None:
    with pytest.raises(ScenarioError, match=r"mfu = 38\.0 is outside \(0, 1\]; give a fraction, e\.g\. 0\.38"):
        fk.evaluate(RUN | {"mfu": 38.0}, "training_s")


@pytest.mark.parametrize("value", [38.0, 0.0, -0.1, math.nan, math.inf, None], ids=repr)
def test_a_bad_cell_is_refused_by_column_and_row(value: float | None) -> None:
    frame = pl.DataFrame({"training_flop": 1e20, "cluster_peak_flop_per_s": 1e15, "mfu": [0.4, value]})
    with pytest.raises(ScenarioError, match=r"row 1 .1 of 2 rows are invalid.: mfu"):
        fk.evaluate(frame, "training_s")


@pytest.mark.parametrize("value", [38.0, 0.0, -0.1, math.nan, math.inf, None], ids=repr)
def test_a_bad_cell_of_a_lazy_frame_gives_null(value: float | None) -> None:
    frame = pl.LazyFrame({"training_flop": 1e20, "cluster_peak_flop_per_s": 1e15, "mfu": [0.4, value]})
    assert fk.evaluate(frame, "training_s").collect()["training_s"].is_null().to_list() == [False, True]


def test_a_typo_is_answered_with_the_nearest_name() -> None:
    with pytest.raises(UnknownQuantity, match="no quantity 'token'; nearest is 'tokens'"):
        fk.evaluate({"token": 1e12}, "training_flop")
    with pytest.raises(UnknownQuantity, match="nearest is 'training_flop'"):
        fk.evaluate(RUN, "training_flops")


def test_a_mistyped_column_is_found_when_its_quantity_is_missing() -> None:
    with pytest.raises(MissingQuantity, match="column 'token' is not a quantity; did you mean tokens"):
        fk.evaluate(pl.DataFrame({"token": [1e12], "active_parameters": [1e9]}), "training_flop")


def test_missing_inputs_are_named_with_the_outputs_they_unlock() -> None:
    with pytest.raises(MissingQuantity, match=r"mfu .* for training_s") as caught:
        fk.evaluate({name: value for name, value in RUN.items() if name != "mfu"}, "wall_days")
    assert caught.value.missing == ("mfu",)


def test_contradicting_inputs_are_refused() -> None:
    with pytest.raises(ScenarioError, match=r"training_flop = 1e\+20 is inconsistent"):
        fk.evaluate(RUN | {"training_flop": 1e20}, "training_s")
    with pytest.raises(ScenarioError, match=r"row 0: training_flop = .* is inconsistent"):
        fk.evaluate(pl.DataFrame([RUN | {"training_flop": 1e20}]), "training_s")


def test_consistent_inputs_are_accepted() -> None:
    assert fk.evaluate(RUN | {"training_flop": 6 * 405e9 * 15.6e12}, "training_flop")


def test_a_circular_choice_is_refused() -> None:
    run = {name: value for name, value in RUN.items() if name != "accelerators"} | {"deadline_s": 5e6}
    with pytest.raises(CycleError, match="accelerators"):
        fk.evaluate(run | {"accelerators": "required_accelerators"}, "wall_s")


def test_a_choice_in_another_unit_is_refused() -> None:
    with pytest.raises(ScenarioError, match="failures_per_day"):
        fk.evaluate(RUN | {"goodput": "failures_per_day"}, "wall_s")


@pytest.mark.parametrize("inputs", [[1.0], "tokens", 3, None], ids=repr)
def test_inputs_other_than_a_mapping_or_a_frame_are_refused(inputs: object) -> None:
    with pytest.raises(ScenarioError, match=r"must be a mapping such as .*, or a frame"):
        fk.evaluate(inputs, "training_flop")  # type: ignore[call-overload]


def test_frames_of_other_libraries_are_accepted() -> None:
    import duckdb

    pandas = pytest.importorskip("pandas")
    columns = {"active_parameters": [8e9], "tokens": [1e12]}
    with duckdb.connect() as database:
        arrow = database.sql("select 8e9::double as active_parameters, 1e12::double as tokens")
        for rows in (arrow, pandas.DataFrame(columns)):
            answer = fk.evaluate(rows, "training_flop")  # type: ignore[call-overload]
            assert answer.equals(fk.evaluate(pl.DataFrame(columns), "training_flop"))


def test_empty_frames_and_empty_outputs_are_refused() -> None:
    with pytest.raises(ScenarioError, match="no rows"):
        fk.evaluate(pl.DataFrame({"wall_s": []}), "wall_days")
    with pytest.raises(ScenarioError, match="outputs is empty"):
        fk.evaluate(RUN, [])


def test_a_column_of_words_is_refused() -> None:
    with pytest.raises(ScenarioError, match="column wall_s, row 0: wall_s = 'long' is not a value"):
        fk.evaluate(pl.DataFrame({"wall_s": ["long"]}), "wall_days")
    with pytest.raises(ScenarioError, match="column wall_s is Boolean"):
        fk.evaluate(pl.DataFrame({"wall_s": [True]}), "wall_days")


def test_a_run_that_never_ends_is_infinite_with_the_reason() -> None:
    with pytest.warns(fk.FactorykitWarning, match="wall_s is infinite: checkpoint_goodput = 0"):
        assert fk.evaluate(RUN | {"accelerator_mtbf_s": 1e5, "restart_s": 1e4}, "wall_s")["wall_s"] == math.inf


def test_a_scenario_is_immutable_hashable_and_picklable() -> None:
    run = fk.Scenario(**RUN)
    with pytest.raises(ScenarioError, match="replace"):
        run.mfu = 0.5  # type: ignore[misc]
    assert run.replace(mfu=0.5).mfu == 0.5
    assert run.mfu == 0.41
    assert pickle.loads(pickle.dumps(run)) == run
    assert hash(run) == hash(fk.Scenario(**RUN))


def test_an_explanation_ends_with_the_value_that_evaluate_gives() -> None:
    explanation = fk.explain(RUN, "rental_cost_usd")
    assert explanation[-1].value == fk.evaluate(RUN, "rental_cost_usd")["rental_cost_usd"]
    names = [step.quantity for step in explanation]
    for place, step in enumerate(explanation):
        assert all(needed in names[:place] for needed in names if needed in step.formula.split("; ")[0].split())
    assert explanation.to_frame()["unit"].to_list()[-1] == "USD"


@pytest.mark.parametrize("restart_s", [0.0, 5.0])
def test_an_overflow_is_not_blamed_on_a_harmless_zero(restart_s: float) -> None:
    run = {"checkpoint_segments": 10.0, "checkpoint_interval_s": 3600.0, "checkpoint_write_s": 60.0}
    run |= {"cluster_mtbf_s": 1.0, "restart_s": restart_s, "downtime_s": 0.0}
    with pytest.warns(fk.FactorykitWarning, match="is infinite: .*checkpoint_interval_s = 3600.*cluster_mtbf_s = 1"):
        assert fk.evaluate(run, "checkpoint_wall_s")["checkpoint_wall_s"] == math.inf


def test_a_percentage_in_a_column_is_answered_with_the_fraction() -> None:
    frame = pl.DataFrame({"mfu": [0.4, 38.0], "cluster_peak_flop_per_s": 1e18, "training_flop": 1e24})
    with pytest.raises(ScenarioError, match=r"row 1 .*38.0 is outside .*; give a fraction, e.g. 0.38"):
        fk.evaluate(frame, "training_s")


def test_accelerators_follow_from_nodes_and_are_not_assumed() -> None:
    run = {"parameters": "70B", "tokens": "15T", "accelerator": "h100_sxm"}
    by_nodes = fk.evaluate(run | {"nodes": 256}, "wall_days", assume=True)["wall_days"]
    by_accelerators = fk.evaluate(run | {"accelerators": 2048}, "wall_days", assume=True)["wall_days"]
    assert by_nodes == pytest.approx(by_accelerators, rel=1e-12)
    known = {"accelerator_mtbf_s": 1e8, "nodes": 256, "accelerators_per_node": 8}
    assert fk.evaluate(known, "failures_per_day")["failures_per_day"] == pytest.approx(86400.0 * 2048 / 1e8)


HALF = {"parameters": 7e10, "tokens": 15e12, "accelerators": 2048.0, "accelerator": "h100_sxm"}
INVERSES = (
    ("failures_per_day", 8.0, "cluster_mtbf_s", 10_800.0),
    ("failures_per_day", 8.0, "node_failures_per_node_day", 8.0 / 256.0),
    ("node_mtbf_s", 5389 * 3600.0, "cluster_mtbf_s", 5389 * 3600.0 / 256.0),
    ("node_failures_per_node_day", 0.0065, "cluster_mtbf_s", 86400 / (256 * 0.0065)),
    ("training_days", 100.0, "training_s", 8.64e6),
    ("wall_days", 100.0, "accelerator_hours", 2048 * 2400.0),
    ("accelerator_hours", 2048 * 2400.0, "wall_days", 100.0),
)


@pytest.mark.parametrize(("name", "value", "output", "expected"), INVERSES)
def test_a_given_result_replaces_an_assumption(name, value, output, expected) -> None:
    run = HALF | {name: value}
    assert fk.evaluate(run, output, assume=True)[output] == pytest.approx(expected, rel=1e-12)


def test_a_loader_that_is_described_is_part_of_the_step() -> None:
    run = {**fk.architecture("llama3_8b"), "accelerator": "h100_sxm", "accelerators": 64.0, "readers": 64.0}
    run |= {"global_batch_size": 256.0, "sequence_length": 4096.0, "sample_prepare_s": 2.0}
    found = fk.evaluate(run, ("step_s", "starvation_share"), assume=True)
    assert found["step_s"] == pytest.approx(256 * 2.0 / 64, rel=1e-3)
    assert found["starvation_share"] == pytest.approx(0.795, abs=5e-4)


def test_a_given_result_that_contradicts_an_assumption_is_refused() -> None:
    with pytest.raises(ScenarioError, match="cluster_usd_per_h = 8,000 USD/h is not used for rental_cost_usd"):
        fk.evaluate(HALF | {"cluster_usd_per_h": 8000.0}, "rental_cost_usd", assume=True)
    price = fk.evaluate(HALF, "cluster_usd_per_h", assume=True)
    found = fk.evaluate(HALF, "rental_cost_usd", assume=True)
    assert fk.evaluate(HALF | price, "rental_cost_usd", assume=True) == found


@pytest.mark.parametrize("given", [{"checkpoint_block_s": 5.0}, {"tensor_parallel": 8.0}, {"layers": 80.0}])
def test_an_input_that_only_another_model_uses_is_refused_for_one_output_and_reported_for_several(given: Any) -> None:
    (name,) = given
    with pytest.raises(ScenarioError, match=rf"{name} = .* not used for wall_days; (using=|.* would .* it and needs)"):
        fk.evaluate(HALF | given, "wall_days", assume=True)
    with pytest.raises(ScenarioError, match=f"{name} is not used for wall_days"):
        fk.sweep(HALF, {name: [*given.values()]}, "wall_days", assume=True)
    several = ("wall_days", "rental_cost_usd")
    with pytest.warns(fk.FactorykitWarning, match=f"{name} = .* is not used for wall_days, rental_cost_usd; "):
        fk.evaluate(HALF | given, several, assume=True)
    with pytest.warns(fk.FactorykitWarning, match=f"{name} is not used for wall_days"):
        fk.evaluate(pl.DataFrame([HALF | given]), "wall_days", assume=True)


def test_facts_of_a_run_that_other_inputs_replace_are_no_mistake() -> None:
    """The run has more parameters than active ones, and nodes that follow from its accelerators."""
    found = fk.evaluate(HALF, "training_days", assume=True)
    for known in ({"active_parameters": 7e10, "nodes": 256.0}, {"training_flop": 6.0 * 7e10 * 15e12}):
        assert fk.evaluate(HALF | {"parameters": 5e11} | known, "training_days", assume=True) == found


def test_a_choice_is_read_in_any_case_in_a_mapping_and_in_frames() -> None:
    given = {"accelerator": "H100", "accelerators": 64.0, "precision": "FP8"}
    expected = fk.evaluate({**given, "precision": "fp8"}, "cluster_peak_flop_per_s")["cluster_peak_flop_per_s"]
    frame = pl.DataFrame([given])
    found = [fk.evaluate(rows, "cluster_peak_flop_per_s") for rows in (frame, frame.lazy())]
    assert [rows.lazy().collect()["cluster_peak_flop_per_s"].item() for rows in found] == [expected] * 2
    assert fk.evaluate(given, "cluster_peak_flop_per_s")["cluster_peak_flop_per_s"] == expected
