import pytest

import factorykit as fk
from factorykit.model.recipe_check import PRACTICES

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


def test_what_is_not_given_is_not_said_and_practices_are_missed():
    found = verdicts({})
    assert found["MFU"] == found["parallelism"] == "not said"
    assert found["sdc checks"] == "missed"


def test_every_step_is_an_item_of_the_recipe():
    assert fk.check_recipe(PLAN)["locator"].null_count() == 0


def test_an_unknown_practice_offers_the_nearest():
    with pytest.raises(fk.FactorykitError, match="nearest is 'sdc_checks'"):
        fk.check_recipe({}, ["sdc_check"])
