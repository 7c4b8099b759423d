"""Published layouts are among those that search lists, with the number that evaluate and validate give."""

import polars as pl
import pytest

import factorykit as fk
from factorykit.core.vocabulary import vocabulary
from factorykit.model.performance.calibration import Calibration
from factorykit.model.performance.training_runs import prepared

PARTS = ("tensor_parallel", "pipeline_parallel", "context_parallel", "virtual_stages", "expert_parallel")
# One layout each that its makers print: Meta's 126 layers on 16 stages, DeepSeek's 61 on 16 with 64 ways of experts,
# Nemotron-4 340B in 12 stages of eight chunks, Grok-1 with experts split by tensor parallelism, Megatron's GPT-3.
LAYOUTS = {
    "Llama 3.1 405B": ("llama3-paper-002", 8, 16),
    "DeepSeek-V3": ("deepseek-v3-step-001", 1, 16),
    "Nemotron-4 340B": ("nemo2407-h100-nemotron-340b-003", 8, 8),
    "Grok-1": ("dgxc-grok1-314b-007", 4, 8),
    "GPT-3 175B": ("megatron-2021-t1", 8, 8),
}


@pytest.fixture(scope="module")
def rows():
    return fk.table("training_runs").collect()


@pytest.mark.parametrize("model", LAYOUTS)
def test_a_published_layout_is_listed_with_one_number(rows, model):
    key, tensor, pipeline = LAYOUTS[model]
    row = rows.filter(pl.col("id").str.starts_with(key), tp=tensor) if tensor > 1 else rows.filter(id=key)
    row = row.filter(pp=pipeline).tail(1)
    ready, _ = prepared(row)
    validated = fk.validate(row, leave_family_out=False)["step_s"][0]
    steps = fk.evaluate(ready, ["step_s"])["step_s"]
    scenario = ready.row(int((steps / validated - 1.0).abs().arg_min()), named=True)
    given = {name: value for name, value in scenario.items() if name in vocabulary() and value is not None}
    names = {name: scenario[name] for name in ("software", "generation")}
    pace = Calibration({"software_year": scenario["software_year"]}, **names)
    assert fk.evaluate(pace.apply(given), "step_s")["step_s"] == pytest.approx(validated, rel=1e-9)
    batch = given.pop("global_batch_size")
    layout = {name: given.pop(name) for name in (*PARTS, "micro_batch_size")}
    model_part = {name: given.pop(name) for name in list(given) if name in fk.architecture("deepseek_v3")}
    given.pop("micro_batches", None)
    model_part["sequence_length"] = given.pop("sequence_length")
    found = fk.search(model_part, given, global_batch_size=batch, calibration=pace)
    listed = found.filter(*[pl.col(name) == value for name, value in layout.items()]).collect()
    assert listed.height == 1
    assert listed["step_s"][0] == pytest.approx(validated, rel=1e-9)
    assert listed["fits"][0] > 0.0
