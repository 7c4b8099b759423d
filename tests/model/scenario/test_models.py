"""Known models: their names, their sources, and the counts that follow."""

import pytest

import factorykit as fk
from factorykit.core.errors import UnknownName


@pytest.mark.parametrize(
    ("name", "billions", "active"),
    [
        ("llama3_70b", 70.6, 70.6),
        ("Llama 3 70B", 70.6, 70.6),
        ("llama-3.1-405b", 405.9, 405.9),
        ("GPT-3", 174.6, 174.6),
        ("DeepSeek V3", 671.0, 37.6),
        ("DeepSeek-R1", 671.0, 37.6),
        ("kimi k2", 1026.4, 32.9),
        ("Qwen3-Next 80B-A3B", 79.7, 3.9),
        ("Nemotron-4 340B", 341.0, 341.0),
        ("PaLM 540B", 540.4, 540.4),
        ("gemma 3 27b", 27.0, 27.0),
    ],
)
def test_a_model_is_found_by_its_names(name, billions, active):
    found = fk.evaluate(fk.architecture(name), ["parameters", "active_parameters"])
    assert found["parameters"] / 1e9 == pytest.approx(billions, abs=0.05)
    assert found["active_parameters"] / 1e9 == pytest.approx(active, abs=0.05)


def test_every_known_model_is_counted_and_sourced():
    for row in fk.table("architectures").collect().to_dicts():
        model = fk.architecture(row["architecture"])
        assert model == fk.architecture(row["name"])
        assert model.label == row["name"]
        assert set(model.sources.values()) == {f"{row['source']}, {row['locator']}"}
        found = fk.evaluate(model, ["parameters", "active_parameters"])
        assert 1e8 < found["active_parameters"] <= found["parameters"] < 3e12


@pytest.mark.parametrize("name", ["lama3_70b", "Llama 3 71B", "", None])
def test_an_unknown_model_is_answered_with_the_nearest(name):
    with pytest.raises(UnknownName, match="architecture"):
        fk.architecture(name)


def test_a_model_is_a_part_of_a_scenario():
    model = fk.architecture("llama3_8b")
    run = model.replace(tokens=15e12)
    assert run.sources["layers"] == model.sources["layers"]
    assert fk.evaluate(run, "training_flop")["training_flop"] == pytest.approx(6 * 8.03e9 * 15e12, rel=1e-3)


def test_search_takes_a_model_by_any_of_its_names():
    cluster = {"accelerators": 64, "accelerator": "h100_sxm"}
    choices = {"recompute": ["full"], "zero_stage": [1], "micro_batch_size": [1], "schedule": ["1f1b"]}
    by_key, by_name = (
        fk.search(name, cluster, global_batch_size=128, choices=choices).head(3).collect()
        for name in ("llama3_8b", "Llama 3 8B")
    )
    assert by_key.equals(by_name)
