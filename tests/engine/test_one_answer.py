"""One question, one answer: every verb gives the same number for the same inputs, or the same error."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

import factorykit as fk
from factorykit.charts.live import Live
from factorykit.core.vocabulary import quantity
from factorykit.engine.evaluate import evaluate
from factorykit.engine.question import Question
from factorykit.model.economics.build_or_rent import build_or_rent
from factorykit.model.operations.run_plan import NEEDED, run_plan

CHIPS = fk.table("accelerators").collect()["accelerator"].to_list()
PRESETS = fk.presets()["preset"].to_list()
RUN: dict[str, Any] = {"accelerators": 64.0, "mfu": 0.4, "tokens": 1e12, "active_parameters": 7e10, "parameters": 7e10}
LAYOUT: dict[str, Any] = {
    "layers": 32.0,
    "hidden_size": 4096.0,
    "attention_heads": 32.0,
    "kv_heads": 8.0,
    "ffn_size": 14336.0,
    "gated_ffn": 1.0,
    "vocabulary_size": 128256.0,
    "sequence_length": 8192.0,
    "accelerators": 64.0,
    "tensor_parallel": 4.0,
    "pipeline_parallel": 2.0,
    "micro_batch_size": 1.0,
    "global_batch_size": 256.0,
    "software_year": 2026.0,
}
WANTED = (
    *("training_s", "wall_days", "rental_cost_usd", "training_energy_kwh", "failures_per_day", "goodput"),
    *("checkpoint_interval_s", "facility_power_w", "cluster_peak_flop_per_s"),
)
Verb = Callable[[Mapping[str, Any], str], Any]


def _frame(inputs: Mapping[str, Any]) -> tuple[pl.DataFrame, dict[str, str]]:
    alternatives = {n: v for n, v in inputs.items() if isinstance(v, str) and not quantity(n).is_text}
    return pl.DataFrame([{n: v for n, v in inputs.items() if n not in alternatives}]), alternatives


def _of_frame(inputs: Mapping[str, Any], output: str) -> Any:
    frame, alternatives = _frame(inputs)
    return fk.evaluate(frame, output, using=alternatives)[output].item()


def _of_lazy_frame(inputs: Mapping[str, Any], output: str) -> Any:
    frame, alternatives = _frame(inputs)
    return fk.evaluate(frame.lazy(), output, using=alternatives).collect()[output].item()


def _swept(inputs: Mapping[str, Any], output: str) -> Any:
    axis = "accelerator" if "accelerator" in inputs else "accelerators"
    rest = {name: value for name, value in inputs.items() if name != axis}
    return fk.sweep(rest, {axis: [inputs[axis]]}, output)[output].item()


def _compared(inputs: Mapping[str, Any], output: str) -> Any:
    return fk.compare({"a": inputs, "b": inputs}, output).filter(role="output")["a"].item()


def _drawn(inputs: Mapping[str, Any], output: str) -> Any:
    value = float(inputs["accelerators"])
    rest = {name: value for name, value in inputs.items() if name != "accelerators"}
    spread = fk.Uniform(value * (1 - 1e-12), value * (1 + 1e-12))
    return fk.sample(rest, {"accelerators": spread}, output, 2)[output][0]


def _live(inputs: Mapping[str, Any], output: str) -> Any:
    live = Live(title="x", base=inputs, x="accelerators", outputs=(output,), sliders=("accelerators",))
    return live.now()[output]


def _read_back(inputs: Mapping[str, Any], output: str) -> Any:
    live = Live(title="x", base=inputs, x="accelerators", outputs=(output,), sliders=("accelerators",))
    return fk.evaluate(live.scenario(), output)[output]


VERBS: dict[str, Verb] = {
    "explain": lambda inputs, output: fk.explain(inputs, output)[-1].value,
    "DataFrame": _of_frame,
    "LazyFrame": _of_lazy_frame,
    "sweep": _swept,
    "compare": _compared,
    "sample": _drawn,
    "Scenario": lambda inputs, output: fk.evaluate(fk.Scenario(**inputs), output)[output],
    "assume": lambda inputs, output: fk.evaluate(inputs, output, assume=True)[output],
    "Live": _live,
    "Live.scenario": _read_back,
}


@pytest.fixture(scope="module")
def answers() -> Callable[[Mapping[str, Any], tuple[str, ...]], dict[str, float]]:
    """Results of `evaluate`, computed once for all verbs."""
    known: dict[tuple[Any, ...], dict[str, float]] = {}

    def answered(inputs: Mapping[str, Any], outputs: tuple[str, ...]) -> dict[str, float]:
        key = (*inputs.items(), outputs)
        if key not in known:
            known[key] = _answers(inputs, outputs)
        return known[key]

    return answered


def _answers(inputs: Mapping[str, Any], outputs: tuple[str, ...]) -> dict[str, float]:
    found = {}
    for output in outputs:
        try:
            found[output] = evaluate(inputs, output)[output]
        except fk.FactorykitError:
            continue
    return found


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_gives_a_preset_the_same_number(verb: str, answers: Any) -> None:
    for name in PRESETS:
        run = fk.preset(name)
        if "accelerators" not in run:
            continue
        for output, value in answers(run, WANTED).items():
            if output not in run:
                assert VERBS[verb](run, output) == pytest.approx(value, rel=1e-9), (name, output)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_gives_a_chip_the_same_number(verb: str, answers: Any) -> None:
    for chip in CHIPS:
        inputs = RUN | {"accelerator": chip}
        for output, value in answers(inputs, ("training_s", "cluster_peak_flop_per_s")).items():
            assert VERBS[verb](inputs, output) == pytest.approx(value, rel=1e-9), (chip, output)


@pytest.mark.parametrize("verb", ["explain", "DataFrame", "LazyFrame", "sweep", "compare", "Live"])
def test_every_verb_gives_a_layout_the_same_step(verb: str, answers: Any) -> None:
    for chip in CHIPS[::3]:
        for output, value in answers(LAYOUT | {"accelerator": chip}, ("step_s", "memory_peak_bytes")).items():
            assert VERBS[verb](LAYOUT | {"accelerator": chip}, output) == pytest.approx(value, rel=1e-9), (chip, output)


@pytest.mark.parametrize("verb", ["explain", "DataFrame", "sweep", "compare"])
def test_every_verb_refuses_a_chip_whose_cell_is_missing(verb: str) -> None:
    from factorykit.engine.providers.accelerators import cell

    for chip in (chip for chip in CHIPS if not cell("scale_out_bytes_per_s").has({"accelerator": chip})):
        with pytest.raises(fk.FactorykitError, match=r"the tables have no .*scale_out_bytes_per_s"):
            VERBS[verb](LAYOUT | {"accelerator": chip}, "step_s")


def _followed(inputs: dict[str, Any]) -> dict[str, Any]:
    """Return the inputs completed with the quantities that each error names, at their default."""
    usual = dict(fk.quantities().select("name", "default").drop_nulls().iter_rows())
    for _ in range(4):
        try:
            fk.evaluate(inputs, ("step_s", "memory_peak_bytes"))
        except fk.errors.MissingQuantity as error:
            inputs = inputs | {name: usual[name] for name in error.missing}
    return inputs


@pytest.mark.parametrize("chip", CHIPS)
def test_a_chip_ends_with_a_number_when_the_remedies_are_followed(chip: str) -> None:
    inputs = _followed(LAYOUT | {"accelerator": chip})
    found = fk.evaluate(inputs, ("step_s", "memory_peak_bytes"))
    parts = {"tensor_parallel": 4.0, "pipeline_parallel": 2.0, "micro_batch_size": 1.0, "virtual_stages": 1.0}
    rest = {name: value for name, value in inputs.items() if name not in parts} | {"recompute_share": 0.0}
    choices = {name: [value] for name, value in parts.items()} | {"recompute": ["none"], "schedule": ["1f1b"]}
    rows = fk.search(rest, {}, global_batch_size=256, choices=choices | {"zero_stage": [1]}, keep_excluded=True)
    row = rows.filter(pl.col("context_parallel") == 1.0).collect().row(0, named=True)
    assert {name: row[name] for name in found} == pytest.approx(found, rel=1e-9)


def test_a_wrong_layout_is_refused_by_every_verb_in_the_same_words() -> None:
    bad = LAYOUT | {"accelerator": "h100_sxm", "virtual_stages": 20.0}
    words = "virtual stages cut a pipeline into chunks that have layers"
    for verb in ("explain", "DataFrame", "compare"):
        with pytest.raises(fk.FactorykitError, match=words):
            VERBS[verb](bad, "step_s")
    assert VERBS["LazyFrame"](bad, "step_s") is None
    live = Live(title="x", base=bad, x="accelerators", outputs=("step_s",), sliders=("global_batch_size",))
    assert words in str(live.payload)


def test_a_simulation_starts_from_the_numbers_of_the_scenario() -> None:
    compared = 0
    for name in PRESETS:
        run = fk.preset(name)
        found = _answers(run, NEEDED)
        if len(found) == len(NEEDED):
            compared += 1
            start = run_plan(run)
            times = ("training_s", "checkpoint_interval_s", "cluster_mtbf_s")
            assert (start.training_s, start.interval_s, start.mtbf_s) == pytest.approx(tuple(found[n] for n in times))
    assert compared


def test_a_decision_uses_the_numbers_of_evaluate() -> None:
    run = fk.preset("llama_3_1_405b").replace(budget_usd=1e8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert build_or_rent(run).budget_share == pytest.approx(
            fk.evaluate(run, "budget_share")["budget_share"], rel=1e-9
        )


CONTRADICTION: dict[str, Any] = {"accelerators": 64.0, "accelerators_per_node": 8.0, "nodes": 9.0}
REFUSALS: dict[str, Callable[[], Any]] = {
    "evaluate": lambda: fk.evaluate(CONTRADICTION | {"accelerator_mtbf_s": 1e8}, "failures_per_day"),
    "explain": lambda: fk.explain(CONTRADICTION | {"accelerator_mtbf_s": 1e8}, "failures_per_day"),
    "assumed": lambda: fk.assumed(CONTRADICTION | {"accelerator_mtbf_s": 1e8}, "failures_per_day"),
    "DataFrame": lambda: fk.evaluate(pl.DataFrame([CONTRADICTION | {"accelerator_mtbf_s": 1e8}]), "failures_per_day"),
    "Scenario": lambda: fk.Scenario(**CONTRADICTION),
    "compare": lambda: _compared(CONTRADICTION | {"accelerator_mtbf_s": 1e8}, "failures_per_day"),
    "sweep": lambda: fk.sweep(CONTRADICTION, {"accelerator_mtbf_s": [1e8]}, "failures_per_day"),
    "sample": lambda: fk.sample(CONTRADICTION, {"accelerator_mtbf_s": fk.Uniform(1e8, 2e8)}, "failures_per_day", 2),
    "search": lambda: fk.search("llama3_8b", CONTRADICTION | {"accelerator": "h100_sxm"}, global_batch_size=256),
    "plan": lambda: fk.plan("llama3_8b", tokens="1T", chips="h100_sxm", **CONTRADICTION),
    "explore": lambda: fk.explore(CONTRADICTION | {"accelerator_mtbf_s": 1e8}, "failures_per_day"),
    "Live": lambda: _live(CONTRADICTION | {"accelerator_mtbf_s": 1e8}, "failures_per_day"),
}


@pytest.mark.parametrize("verb", REFUSALS)
def test_every_verb_refuses_inputs_that_contradict_each_other(verb: str) -> None:
    with pytest.raises(fk.FactorykitError, match=r"nodes = 9(\.0)? is inconsistent with the other inputs"):
        REFUSALS[verb]()


OVERFULL: dict[str, Any] = {"parameters": 7e10, "active_parameters": 9e10, "tokens": 1e12}
OVERFULL_CASES: dict[str, Callable[[], Any]] = {
    "evaluate": lambda: fk.evaluate(OVERFULL, "training_flop"),
    "explain": lambda: fk.explain(OVERFULL, "training_flop"),
    "assumed": lambda: fk.assumed(OVERFULL, "training_flop"),
    "DataFrame": lambda: fk.evaluate(pl.DataFrame([OVERFULL]), "training_flop"),
    "Scenario": lambda: fk.Scenario(**OVERFULL),
    "compare": lambda: _compared(OVERFULL, "training_flop"),
    "sweep": lambda: fk.sweep(OVERFULL, {"tokens": [1e12]}, "training_flop"),
    "sample": lambda: fk.sample(OVERFULL, {"tokens": fk.Uniform(1e12, 2e12)}, "training_flop", 2),
    "search": lambda: fk.search("llama3_8b", OVERFULL | H100, global_batch_size=256),
    "plan": lambda: fk.plan({**fk.architecture("llama3_8b"), **OVERFULL}, chips="h100_sxm", counts=64),
    "explore": lambda: fk.explore(OVERFULL, "training_flop", over="tokens"),
    "Live": lambda: _live(OVERFULL, "training_flop"),
}
H100 = {"accelerators": 64.0, "accelerator": "h100_sxm"}


@pytest.mark.parametrize("verb", OVERFULL_CASES)
def test_every_verb_refuses_more_active_parameters_than_parameters(verb: str) -> None:
    expected = r"parameters = 7e\+10, active_parameters = 9e\+10 violates the rule that active parameters are a part"
    with pytest.raises(fk.FactorykitError, match=f"{expected}|inconsistent"):
        OVERFULL_CASES[verb]()


@pytest.mark.parametrize("nodes", [{"nodes": 9.0}, {"nodes": 9.0, "accelerators_per_node": 8.0}])
def test_nodes_that_do_not_hold_the_accelerators_are_refused_in_the_same_words(nodes: dict[str, float]) -> None:
    run = RUN | H100 | nodes
    with pytest.raises(fk.FactorykitError, match=r"nodes = 9") as refusal:
        fk.Scenario(**run)
    words = f"{re.escape(str(refusal.value))}$"
    with pytest.raises(fk.FactorykitError, match=words):
        fk.evaluate(run, "training_days", assume=True)
    with pytest.raises(fk.FactorykitError, match=words):
        fk.sweep(run, {"tokens": [1e12]}, "training_days", assume=True)
    with pytest.raises(fk.FactorykitError, match=words):
        fk.search("llama3_8b", H100 | nodes, global_batch_size=256)


def test_contradicting_rows_of_a_lazy_frame_are_null() -> None:
    rows = pl.LazyFrame([CONTRADICTION, CONTRADICTION | {"nodes": 8.0}]).with_columns(accelerator_mtbf_s=1e8)
    found = fk.evaluate(rows, "failures_per_day").collect()["failures_per_day"]
    assert found.to_list() == [None, pytest.approx(86400.0 / (1e8 / 64.0))]


INCOMPLETE: dict[str, Any] = {"tokens": 1e12, "active_parameters": 7e9, "accelerators": 64.0, "accelerator": "h100_sxm"}
MISSING: dict[str, Callable[[], Any]] = {
    "evaluate": lambda: fk.evaluate(INCOMPLETE, "training_days"),
    "explain": lambda: fk.explain(INCOMPLETE, "training_days"),
    "DataFrame": lambda: fk.evaluate(pl.DataFrame([INCOMPLETE]), "training_days"),
    "LazyFrame": lambda: fk.evaluate(pl.LazyFrame([INCOMPLETE]), "training_days"),
    "compare": lambda: _compared(INCOMPLETE, "training_days"),
    "sweep": lambda: fk.sweep(INCOMPLETE, {"accelerators": [64.0]}, "training_days"),
    "sample": lambda: fk.sample(INCOMPLETE, {"tokens": fk.Uniform(1e12, 2e12)}, "training_days", 2),
}


@pytest.mark.parametrize("verb", MISSING)
def test_every_verb_names_the_missing_input_in_the_same_words(verb: str) -> None:
    with pytest.raises(
        fk.errors.MissingQuantity, match=r"training_days cannot be computed: give mfu \(Model FLOP"
    ) as e:
        MISSING[verb]()
    assert e.value.missing == ("mfu",)


def test_a_view_of_duckdb_holds_the_rows_of_a_frame(tmp_path: Path) -> None:
    runs = {"accelerator": ["h100_sxm", "b200"], "accelerators": [64.0, 128.0], "mfu": [0.4, 0.35]}
    frame = pl.DataFrame(runs).with_columns(tokens=1e12, active_parameters=7e9)
    outputs = ["training_days", "cluster_peak_flop_per_s"]
    frame.write_parquet(tmp_path / "runs.parquet")
    chain = Question.read(frame, outputs).resolve()
    with duckdb.connect() as base:
        base.execute(f"create view runs as from '{tmp_path / 'runs.parquet'}'")
        base.execute(f"copy ({chain.to_sql('runs')}) to '{tmp_path / 'found.parquet'}'")
    found = pl.read_parquet(tmp_path / "found.parquet")
    expected = chain.run()
    assert found.columns == expected.columns
    assert found["training_days"].to_list() == pytest.approx(expected["training_days"].to_list(), rel=1e-12)
