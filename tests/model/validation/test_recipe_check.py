import pytest

import factorykit as fk
from factorykit.core.vocabulary import vocabulary
from factorykit.model.validation.recipe_check import PRACTICES

PLAN = {
    "accelerators": 16384.0,
    "tensor_parallel": 8.0,
    "pipeline_parallel": 16.0,
    "context_parallel": 1.0,
    "data_parallel": 128.0,
    "zero_stage": 3.0,
    "recompute": "selective",
    "schedule": "interleaved",
    "mfu": 0.41,
    "checkpoint_interval_s": 1200.0,
    "checkpoint_write_s": 60.0,
    "accelerator_mtbf_s": 1.8e8,
}


LLAMA = {"accelerator": "h100_sxm", "sequence_length": 8192.0, "global_batch_size": 2048.0, "micro_batch_size": 1.0}


def whole(**changes):
    """Return a plan with the architecture of Llama 3.1 405B and its whole layout."""
    row = fk.table("architectures").filter(architecture="llama3_405b").collect().row(0, named=True)
    shape = {name: value for name, value in row.items() if value is not None and name in vocabulary()}
    layout = {name: value for name, value in PLAN.items() if name not in ("data_parallel", "mfu", "schedule")}
    return shape | LLAMA | layout | {"schedule": "1f1b"} | changes


def found(plan, step):
    return fk.check_recipe(plan).filter(step=step).row(0, named=True)


def verdicts(plan, practices=()):
    return dict(fk.check_recipe(plan, practices).select("step", "verdict").iter_rows())


def test_a_plan_that_follows_the_recipe_meets_every_step():
    assert set(verdicts(PLAN, PRACTICES).values()) == {"met"}


@pytest.mark.parametrize(
    ("change", "step"),
    [
        ({"data_parallel": 100.0}, "parallelism"),
        ({"zero_stage": 0.0}, "memory"),
        ({"recompute": "none"}, "memory"),
        ({"checkpoint_interval_s": 7200.0}, "checkpoint interval"),
        ({"pipeline_parallel": 32.0, "data_parallel": 64.0, "schedule": "1f1b"}, "pipeline bubble"),
        ({"mfu": 0.3}, "MFU"),
    ],
)
def test_each_step_can_be_broken(change, step):
    assert verdicts(PLAN | change, PRACTICES)[step] == "broken"


def test_15_minutes_are_too_long_at_a_hundred_thousand():
    """Failures every half hour: the recipe's interval is met, the optimum is not."""
    plan = PLAN | {"accelerators": 131072.0, "data_parallel": 1024.0, "checkpoint_interval_s": 1500.0}
    found = verdicts(plan)
    assert found["checkpoint interval"] == "met"
    assert found["checkpoint interval against the optimum"] == "broken"


def test_missing_quantities_are_unknown_and_missing_practices_missed():
    found = verdicts({})
    assert found["MFU"] == found["parallelism"] == "unknown"
    assert found["sdc checks"] == "missed"


def test_every_step_is_an_item_of_the_recipe():
    assert fk.check_recipe(PLAN)["locator"].null_count() == 0


def test_an_unknown_practice_offers_the_nearest():
    with pytest.raises(fk.FactorykitError, match="nearest is 'sdc_checks'"):
        fk.check_recipe({}, ["sdc_check"])


def test_with_the_whole_layout_memory_is_computed():
    """ZeRO 1 with full recomputation fits, although the recipe alone would reject it."""
    thrifty = whole(zero_stage=1.0, recompute="full")
    assert found(thrifty, "memory")["verdict"] == "met"
    assert fk.evaluate(thrifty, "fits")["fits"] == 1.0
    greedy = found(whole(zero_stage=1.0, recompute="none"), "memory")
    assert greedy["verdict"] == "broken"
    assert "too much; activations take" in greedy["reason"]


def test_with_the_whole_layout_bubble_and_utilization_are_computed():
    plan = whole(pipeline_parallel=32.0)
    computed = fk.evaluate({**plan}, ["pipeline_bubble", "predicted_mfu"])
    idle = f"{100 * computed['pipeline_bubble']:.3g} %"
    assert f"leaves {idle} of the step idle" in found(plan, "pipeline bubble")["reason"]
    assert found(plan, "MFU")["found"].startswith("predicted")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"tensor_parallel": 7.0}, "data-parallel copies"),
        ({"tensor_parallel": 256.0, "pipeline_parallel": 1.0}, "heads divide by tensor parallel"),
        ({"pipeline_parallel": 256.0, "tensor_parallel": 1.0}, "every stage has layers"),
    ],
)
def test_a_layout_that_does_not_divide_names_the_broken_rule(change, reason):
    row = found(whole(**change), "parallelism")
    assert row["verdict"] == "broken"
    assert reason in row["reason"]


def test_every_verdict_but_met_has_a_reason():
    for plan in ({}, PLAN, whole(), whole(tensor_parallel=7.0)):
        checked = fk.check_recipe(plan, ["overlap"])
        assert checked.filter(verdict="met")["reason"].null_count() == checked.filter(verdict="met").height
        assert checked.filter(checked["verdict"] != "met")["reason"].null_count() == 0
