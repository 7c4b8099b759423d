"""Language of recipes: valid forms, and the rejection of all others."""

from __future__ import annotations

import pytest

from factorykit.core.errors import RecipeError
from factorykit.model.validation.recipes import MAX_CHARACTERS, Span, evaluate_recipe


def test_a_formula_is_called_by_the_quantities_it_needs() -> None:
    recipe = "cluster_peak_flop_per_s(accelerators=24576, peak_flop_per_s=989e12)"
    assert evaluate_recipe(recipe).value == 24576 * 989e12


def test_a_quantity_is_reached_through_the_chain_of_formulas() -> None:
    recipe = "training_days(active_parameters=37e9, tokens=14.8e12, accelerators=2048, peak_flop_per_s=989e12, mfu=0.4)"
    assert evaluate_recipe(recipe).value == pytest.approx(6 * 37e9 * 14.8e12 / (2048 * 989e12 * 0.4) / 86400)


def test_a_preset_gives_missing_inputs() -> None:
    assert evaluate_recipe('training_days(preset="deepseek_v3", mfu=0.8)').value == pytest.approx(
        evaluate_recipe('training_days(preset="deepseek_v3", mfu=0.4)').value / 2
    )


def test_cells_are_found_by_key_by_statement_and_in_presets() -> None:
    assert evaluate_recipe("accelerators.h100_sxm.tdp_w").value == 700
    assert evaluate_recipe('cluster_statements["meta_llama3_16k@llama3_paper"].accelerators').value == 16384
    assert evaluate_recipe("clusters.meta_llama3_16k.accelerators").value == 16384
    assert evaluate_recipe("presets.deepseek_v3.tokens").value == 14.8e12
    assert evaluate_recipe("claims.c000_002 / claims.c000_007").value == 3072


def test_parts_have_their_source() -> None:
    cell, constant = evaluate_recipe("accelerators.h100_sxm.tdp_w * SECONDS_PER_DAY").parts
    assert (cell.kind, cell.value, cell.unit, cell.source) == ("cell", 700, "W", "h100_ds")
    assert (constant.kind, constant.value) == ("constant", 86400)


def test_words_and_dates_of_cells_become_numbers() -> None:
    fabric = 'cluster_statements["xai_colossus@dcd_colossus"].scale_out_stated'
    assert evaluate_recipe(f'contains({fabric}, "ethernet") - contains({fabric}, "InfiniBand")').value == 1
    assert evaluate_recipe("year(accelerators.mi325x.launch)").value == pytest.approx(2024.79, abs=0.01)


def test_a_span_is_the_whole_recipe() -> None:
    assert evaluate_recipe("span(3, 4)").value == Span(3, 4)
    with pytest.raises(RecipeError, match="language of recipes"):
        evaluate_recipe("2 * span(3, 4)")
    with pytest.raises(RecipeError, match="must not begin above its end"):
        evaluate_recipe("span(4, 3)")


FORBIDDEN = [
    "__import__('os')",
    "open('x')",
    "().__class__",
    "accelerators.h100_sxm.__class__",
    "[x for x in (1,)]",
    "lambda: 1",
    "1 if 1 else 2",
    "1 < 2",
    "True",
    "'words'",
    "f'{1}'",
    "exec(code=1)",
    "nodes(**{})",
    "sqrt(2, 3)",
    "1; 2",
    "x := 1",
    "",
    "(" * 500 + "1" + ")" * 500,
    "1" + " + 1" * MAX_CHARACTERS,
]


@pytest.mark.parametrize("recipe", FORBIDDEN, ids=lambda recipe: recipe[:24] or "nothing")
def test_nothing_else_is_evaluated(recipe: str) -> None:
    with pytest.raises(RecipeError):
        evaluate_recipe(recipe)


WRONG = {
    "accelerators.h100_sx.tdp_w": "nearest is 'h100_sxm'",
    "accelerator.h100_sxm.tdp_w": "nearest is 'accelerators'",
    "accelerators.h100_sxm.tpd_w": "nearest is 'tdp_w'",
    "accelerators.h100_sxm": "give table.key.column",
    "accelerators.v100_sxm.peak_fp8_flop_per_s": "is empty",
    "accelerators.h100_sxm.vendor + 1": "must be a number, got the text 'NVIDIA'",
    "node(accelerators=8)": "nearest is 'nodes'",
    "nodes(accelerators=0, accelerators_per_node=8)": "outside",
    "training_days(mfu=0.4)": "cannot be computed",
    "SECONDS_PER_DAYS": "nearest is 'SECONDS_PER_DAY'",
    "1 / 0": "division by zero",
    "10.0 ** 400": ".",
    "(0 - 8) ** 0.5": "not a real number",
    "sqrt(0 - 1)": ".",
    "year(accelerators.h100_sxm.vendor)": "must be a date",
}


@pytest.mark.parametrize(("recipe", "message"), WRONG.items(), ids=WRONG)
def test_a_mistake_is_named(recipe: str, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        evaluate_recipe(recipe)
