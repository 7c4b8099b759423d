"""Charts of the performance model: valid, named by the vocabulary, over fields that exist."""

import polars as pl
import pytest
from made_charts import STEPS

import factorykit as fk
from factorykit.charts import performance

FEW = {"context_parallel": [1], "zero_stage": [1], "schedule": ["1f1b"], "recompute": ["none", "full"]}


@pytest.fixture(scope="module")
def layouts():
    cluster = {"accelerators": 64, "accelerator": "a100_sxm_80gb"}
    return fk.search("llama2_70b", cluster, global_batch_size=256, choices=FEW).collect()


@pytest.fixture(scope="module")
def validated():
    return fk.validate().filter(pl.col("error").is_not_null())


@pytest.fixture
def run():
    return STEPS["Dense"]


def fields(spec):
    if isinstance(spec, dict):
        yield from ([spec["field"]] if isinstance(spec.get("field"), str) else [])
        for value in spec.values():
            yield from fields(value)
    elif isinstance(spec, list):
        for value in spec:
            yield from fields(value)


def test_layouts_are_shown_by_time_and_memory(layouts):
    spec = performance.time_and_memory(layouts, "Layouts").to_dict()
    known = set(layouts.columns) | {fk.charts.encoding.shown(name) for name in layouts.columns}
    assert set(fields(spec)) <= known
    assert "Step time [s]" in str(spec)


@pytest.mark.parametrize("chart", [performance.predicted_and_measured, performance.error_by_family])
def test_predictions_are_shown_beside_measurements(validated, chart):
    spec = chart(validated, "Runs").to_dict()
    assert set(fields(spec)) <= {*validated.columns, "percent", "at", "among"}
    assert spec["usermeta"]["source"]


def test_parts_of_a_step_are_stacked():
    parts = pl.DataFrame({"layout": ["a", "a"], "part": ["x", "y"], "seconds": [1.0, 2.0], "order": [0, 1]})
    spec = performance.step_parts(parts, "layout", "Parts").to_dict()
    assert set(fields(spec)) <= set(parts.columns)


def test_every_part_of_a_step_is_drawn(run):
    found = fk.evaluate(pl.DataFrame([run]), performance.ASKED).with_columns(layout=pl.lit("a"))
    parts = performance.parts_of_step(found, "layout")
    assert parts["seconds"].sum() == pytest.approx(found["step_s"].item(), rel=1e-12)
    assert parts["part"].to_list() == list(performance.PARTS)
    assert performance.step_parts(parts, "layout", "Parts").to_dict()


def test_every_part_of_the_memory_is_drawn(run):
    asked = [*performance.MEMORY, "accelerator_memory_bytes", "memory_peak_bytes"]
    found = fk.evaluate(pl.DataFrame([run]), asked).with_columns(layout=pl.lit("a"))
    assert found.select(pl.sum_horizontal(performance.MEMORY)).item() == found["memory_peak_bytes"].item()
    spec = performance.memory_parts(found, "layout", "Memory").to_dict()
    assert "Peak memory [byte]" in str(spec)
