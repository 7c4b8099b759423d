"""Any size of a model has a generated architecture of this size that can be divided."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import factorykit as fk
from factorykit.core.errors import ScenarioError, UnknownName
from factorykit.model.scenario.models import dense, mixture, model_of


@settings(deadline=None, max_examples=25)
@given(st.floats(6e8, 2e12))
def test_a_dense_architecture_has_the_requested_size(parameters: float) -> None:
    shape = dense(parameters)
    assert fk.evaluate(shape, "parameters")["parameters"] == pytest.approx(parameters, rel=0.02)
    assert shape.attention_heads % shape.kv_heads == 0.0
    assert shape.hidden_size == shape.attention_heads * shape.head_size
    assert 2.0 < float(shape.ffn_size) / float(shape.hidden_size) < 6.0


@pytest.mark.parametrize("name", ["llama3_8b", "llama3_70b", "llama3_405b"])
def test_published_sizes_have_their_published_depth_and_width(name: str) -> None:
    published = fk.architecture(name)
    made = dense(fk.evaluate(published, "parameters")["parameters"])
    assert (made.layers, made.hidden_size) == (published.layers, published.hidden_size)


@pytest.mark.parametrize("parameters", [2e11, 1e12])
def test_a_mixture_has_about_the_requested_size(parameters: float) -> None:
    shape = mixture(parameters)
    assert fk.evaluate(shape, "parameters")["parameters"] == pytest.approx(parameters, rel=0.05)
    assert shape.experts % 8.0 == 0.0


@pytest.mark.parametrize("size", ["70B", "70 B dense", 70e9, "70B parameters", "70 billion", "70e9"])
def test_a_size_is_parsed_in_several_spellings(size: object) -> None:
    assert model_of(size).layers == 80.0


def test_a_configuration_file_is_a_model(tmp_path: Path) -> None:
    config = {
        "model_type": "llama",
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    parameters = fk.evaluate(model_of(tmp_path / "config.json"), "parameters")["parameters"]
    assert parameters == fk.evaluate(fk.architecture("llama3_8b"), "parameters")["parameters"]


def test_a_generated_architecture_is_marked_as_chosen() -> None:
    assert model_of("30B").sources["layers"].startswith("chosen")


def test_an_invalid_model_is_refused() -> None:
    with pytest.raises(ScenarioError, match="size"):
        model_of(None)
    with pytest.raises(UnknownName, match="mixture"):
        model_of("70 GB")
    with pytest.raises(ScenarioError, match="give more"):
        dense(1e6)


def test_a_search_takes_a_size_as_a_plan_does() -> None:
    cluster = {"accelerators": 64, "accelerator": "h100_sxm"}
    sized, named = (
        fk.search(model, cluster, global_batch_size=64, assume=True).head(1).collect()
        for model in ("8.03B", {**model_of("8.03B"), "sequence_length": 4096.0})
    )
    assert sized.equals(named)


@pytest.mark.parametrize("billions", [30, 47, 60, 70, 90, 120, 200, 400, 600, 1000, 2000])
def test_a_mixture_has_the_requested_size(billions: int) -> None:
    found = fk.evaluate(model_of(f"{billions}B mixture"), "parameters")["parameters"]
    assert found == pytest.approx(billions * 1e9, rel=0.04)


def test_more_active_parameters_than_parameters_are_refused() -> None:
    with pytest.raises(ScenarioError, match="80B active parameters are more than all 70B"):
        model_of("70B A80B")
