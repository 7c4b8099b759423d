"""Rules of a layout: layouts that satisfy or violate each rule, as floats and as a column."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import factorykit as fk
from factorykit.core.errors import ScenarioError
from factorykit.engine import rules

KEPT_AND_BROKEN: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "tensor, pipeline and context parallel divide the accelerators": (
        [{"data_parallel": 1.0}, {"data_parallel": 16.0}],
        [{"data_parallel": 0.5}, {"data_parallel": 12.8}],
    ),
    "heads divide by tensor parallel": (
        [{"attention_heads": 64.0, "tensor_parallel": 8.0}, {"attention_heads": 8.0, "tensor_parallel": 8.0}],
        [{"attention_heads": 60.0, "tensor_parallel": 8.0}, {"attention_heads": 4.0, "tensor_parallel": 8.0}],
    ),
    "query heads divide over key-value heads": (
        [{"attention_heads": 64.0, "kv_heads": 8.0}],
        [{"attention_heads": 64.0, "kv_heads": 12.0}, {"attention_heads": 4.0, "kv_heads": 8.0}],
    ),
    "key-value heads divide by tensor parallel, or it by them": (
        [{"kv_heads": kv, "tensor_parallel": t} for kv, t in ((8.0, 4.0), (8.0, 8.0), (8.0, 16.0), (1.0, 8.0))],
        [{"kv_heads": kv, "tensor_parallel": t} for kv, t in ((12.0, 8.0), (8.0, 12.0))],
    ),
    "every stage has layers": (
        [{"layers": 8.0, "pipeline_parallel": 8.0}],
        [{"layers": 8.0, "pipeline_parallel": 9.0}],
    ),
    "virtual stages cut a pipeline into chunks that have layers": (
        [
            {"layers": 126.0, "pipeline_parallel": 16.0, "virtual_stages": 8.0},
            {"layers": 61.0, "pipeline_parallel": 16.0, "virtual_stages": 4.0},
            {"layers": 8.0, "pipeline_parallel": 1.0, "virtual_stages": 1.0},
            {"layers": 4.0, "pipeline_parallel": 16.0, "virtual_stages": 1.0},
        ],
        [
            {"layers": 60.0, "pipeline_parallel": 16.0, "virtual_stages": 4.0},
            {"layers": 80.0, "pipeline_parallel": 1.0, "virtual_stages": 2.0},
        ],
    ),
    "the batch divides into micro-batches": ([{"micro_batches": 4.0}], [{"micro_batches": 4.5}]),
    "interleaving needs micro-batches in multiples of the stages": (
        [
            {"micro_batches": 16.0, "pipeline_parallel": 8.0, "virtual_stages": 2.0},
            {"micro_batches": 12.0, "pipeline_parallel": 8.0, "virtual_stages": 1.0},
        ],
        [{"micro_batches": 12.0, "pipeline_parallel": 8.0, "virtual_stages": 2.0}],
    ),
    "the sequence divides by twice context parallel": (
        [{"sequence_length": 8192.0, "context_parallel": 4.0}, {"sequence_length": 4097.0, "context_parallel": 1.0}],
        [{"sequence_length": 8196.0, "context_parallel": 4.0}],
    ),
    "experts divide over expert parallel": (
        [{"experts": 64.0, "expert_parallel": 8.0}, {"experts": 0.0, "expert_parallel": 1.0}],
        [{"experts": 60.0, "expert_parallel": 8.0}],
    ),
    "only experts spread over expert parallel": (
        [{"experts": 8.0, "expert_parallel": 8.0}, {"experts": 0.0, "expert_parallel": 1.0}],
        [{"experts": 0.0, "expert_parallel": 8.0}, {"experts": 1.0, "expert_parallel": 2.0}],
    ),
    "expert parallel divides the accelerators of a stage": (
        [{"accelerators": 512.0, "pipeline_parallel": 4.0, "expert_parallel": 128.0}],
        [{"accelerators": 512.0, "pipeline_parallel": 4.0, "expert_parallel": 256.0}],
    ),
    "weights of fewer than 16 bits are frozen": (
        ({"weight_bits": 4.0, "lora_rank": 16.0}, {"weight_bits": 16.0, "lora_rank": 0.0}),
        ({"weight_bits": 4.0, "lora_rank": 0.0},),
    ),
    "a token visits some of the experts": (
        [{"experts": 8.0, "experts_per_token": k} for k in (1.0, 8.0)] + [{"experts": 0.0, "experts_per_token": 0.0}],
        [{"experts": 8.0, "experts_per_token": k} for k in (0.0, 9.0)],
    ),
    "zero bubble needs a pipeline without interleaving": (
        [
            {"schedule": "zb1p", "pipeline_parallel": 2.0, "virtual_stages": 1.0},
            {"schedule": "1f1b", "pipeline_parallel": 1.0, "virtual_stages": 2.0},
        ],
        [
            {"schedule": "zb1p", "pipeline_parallel": 1.0, "virtual_stages": 1.0},
            {"schedule": "zb1p", "pipeline_parallel": 2.0, "virtual_stages": 2.0},
        ],
    ),
    "DualPipe needs an even pipeline, twice as many micro-batches and no interleaving": (
        [
            {"schedule": "dualpipe", "pipeline_parallel": 4.0, "virtual_stages": 1.0, "micro_batches": 8.0},
            {"schedule": "1f1b", "pipeline_parallel": 3.0, "virtual_stages": 2.0, "micro_batches": 1.0},
        ],
        [
            {"schedule": "dualpipe", "pipeline_parallel": 3.0, "virtual_stages": 1.0, "micro_batches": 8.0},
            {"schedule": "dualpipe", "pipeline_parallel": 4.0, "virtual_stages": 2.0, "micro_batches": 8.0},
            {"schedule": "dualpipe", "pipeline_parallel": 4.0, "virtual_stages": 1.0, "micro_batches": 7.0},
        ],
    ),
    "a layer has a block of a kind once at most, and every layer has one": (
        [
            {"layers": 48.0, "attention_layers": 12.0, "linear_attention_layers": 36.0, "ffn_layers": 48.0},
            {"layers": 118.0, "attention_layers": 10.0, "linear_attention_layers": 54.0, "ffn_layers": 54.0},
        ],
        [
            {"layers": 48.0, "attention_layers": 49.0, "linear_attention_layers": 0.0, "ffn_layers": 48.0},
            {"layers": 48.0, "attention_layers": 0.0, "linear_attention_layers": 49.0, "ffn_layers": 48.0},
            {"layers": 48.0, "attention_layers": 12.0, "linear_attention_layers": 36.0, "ffn_layers": 49.0},
            {"layers": 118.0, "attention_layers": 10.0, "linear_attention_layers": 53.0, "ffn_layers": 54.0},
        ],
    ),
    "active parameters are a part of the parameters": (
        [{"parameters": 671e9, "active_parameters": 37e9}, {"parameters": 70e9, "active_parameters": 70e9}],
        [{"parameters": 70e9, "active_parameters": 90e9}],
    ),
    "a micro-batch is a part of the batch": (
        [{"global_batch_size": 256.0, "micro_batch_size": 256.0}],
        [{"global_batch_size": 256.0, "micro_batch_size": 512.0}],
    ),
    "a run has a step": (
        [{"tokens": 1e12, "global_batch_size": 2048.0, "sequence_length": 8192.0}],
        [{"tokens": 1.5e7, "global_batch_size": 2048.0, "sequence_length": 8192.0}],
    ),
    "training is a part of the wall-clock time": (
        [{"training_s": 9e5, "wall_s": 1e6}, {"training_s": 1e6, "wall_s": 1e6}],
        [{"training_s": 2e6, "wall_s": 1e6}],
    ),
    "a node has a whole number of accelerators": (
        [{"accelerators": 64.0, "nodes": 8.0}, {"accelerators": 68.0, "nodes": 8.5}],
        [{"accelerators": 64.0, "nodes": 9.0}],
    ),
}


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.name)
def test_a_rule_holds_for_a_layout_that_works_and_for_no_other(rule: rules.Rule) -> None:
    kept, broken = KEPT_AND_BROKEN[rule.name]
    verdicts = [bool(rule.holds(**layout)) for layout in (*kept, *broken)]
    assert verdicts == [True] * len(kept) + [False] * len(broken)
    rows = pl.DataFrame([*kept, *broken]).select(rule.holds(*map(pl.col, rule.arguments)).alias("holds"))
    assert rows["holds"].to_list() == verdicts


def test_every_example_belongs_to_an_existing_rule() -> None:
    assert KEPT_AND_BROKEN.keys() == {rule.name for rule in rules.RULES}


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.name)
def test_a_violated_rule_is_reported_with_a_remedy(rule: rules.Rule) -> None:
    for layout in KEPT_AND_BROKEN[rule.name][1]:
        with pytest.raises(ScenarioError, match=r"violates the rule that .*; (choose|ask)") as raised:
            rules.check_layout(layout)
        assert any(f"{other.name}; {other.remedy}" in str(raised.value) for other in rules.applicable_rules(layout))


def test_a_row_reports_the_first_rule_that_it_violates() -> None:
    layouts = pl.DataFrame({"data_parallel": [8.0, 0.5, 8.0, 0.5], "micro_batches": [2.0, 2.0, 2.5, 2.5]})
    violated = layouts.select(rules.violated_rule(list(rules.applicable_rules(layouts.columns))).alias("violated"))[
        "violated"
    ].to_list()
    accelerators = "tensor, pipeline and context parallel divide the accelerators"
    batch = "the batch divides into micro-batches"
    assert violated == [None, accelerators, batch, accelerators]


def test_a_rule_on_values_shared_by_all_rows_is_evaluated_too() -> None:
    rows = pl.DataFrame({"pipeline_parallel": [8.0, 16.0]})
    applicable = list(rules.applicable_rules({"layers", "pipeline_parallel"}))
    violated = rows.select(rules.violated_rule(applicable, fixed={"layers": 8.0}).alias("violated"))["violated"]
    assert violated.to_list() == [None, "every stage has layers"]


def test_a_given_mean_number_of_micro_batches_need_not_be_whole() -> None:
    rules.check_layout({"micro_batches": 4.5}, given={"micro_batches"})
    with pytest.raises(ScenarioError, match=r"4\.5 violates the rule that the batch divides into micro-batches"):
        rules.check_layout({"micro_batches": 4.5})


@pytest.mark.parametrize("rule", rules.GENERAL, ids=lambda rule: rule.name)
def test_given_values_that_contradict_each_other_are_refused_in_every_question(rule: rules.Rule) -> None:
    for values in KEPT_AND_BROKEN[rule.name][1]:
        for inputs in (known := {**values, "it_power_w": 1e6, "pue": 1.1}, pl.DataFrame([known])):
            with pytest.raises(ScenarioError, match=f"{next(iter(values))} = .* violates the rule that {rule.name}"):
                fk.evaluate(inputs, "facility_power_w")


@pytest.mark.parametrize("divided", rules.DIVIDED)
def test_rules_hold_where_a_layout_is_divided_and_nowhere_else(divided: str) -> None:
    assert rules.divides_layout({divided, "mfu"})
    assert not rules.divides_layout({"mfu"})
