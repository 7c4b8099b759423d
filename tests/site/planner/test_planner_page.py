"""The planner in a browser, as its readers use it: by typing, sliding and keyboard, from a link, on a phone."""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import factorykit as fk
from factorykit.core.vocabulary import quantity
from factorykit.site.planner import formulas_script, script

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
BLANK = (
    "<!doctype html><html lang=en><title>Plan</title><div data-factorykit-plan={}></div><script src=plan.js></script>"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with nothing but the planner, opened as files are."""
    place = tmp_path_factory.mktemp("planner")
    (place / "plan.js").write_text(script(), encoding="utf-8")
    (place / "plan-formulas.js").write_text(formulas_script(), encoding="utf-8")
    (place / "plan.html").write_text(BLANK.format("whole"), encoding="utf-8")
    return place


@pytest.fixture
def plan(chromium: Any, folder: Path) -> Iterator[Callable[..., Any]]:
    """Open the planner and wait for its answer; nothing may go wrong on it."""
    wrong: list[str] = []
    context = chromium.new_context(viewport={"width": 1280, "height": 900})

    def open_page(query: str = "") -> Any:
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(f"file://{folder}/plan.html{query}")
        answered(page)
        return page

    yield open_page
    context.close()
    assert not wrong


def answered(page: Any) -> None:
    """Wait until the newest question is answered."""
    page.wait_for_selector("[data-answered]")
    page.wait_for_function(
        "() => { const d = document.querySelector('[data-answered]').dataset; return d.answered === d.asked; }"
    )


def value(page: Any, name: str) -> str:
    return page.text_content(f'.fkp-value[data-quantity="{name}"]')


def typed(page: Any, name: str, text: str) -> None:
    page.fill(f'input[name="{name}"]', text)
    page.press(f'input[name="{name}"]', "Enter")
    answered(page)


def test_what_is_typed_is_asked_remembered_and_taken_back(plan: Callable[..., Any]) -> None:
    page = plan()
    before = value(page, "wall_days")
    typed(page, "accelerators", "24k")
    assert value(page, "wall_days") != before
    assert page.url.endswith("?v=1&accelerators=24000")
    typed(page, "accelerators", "-5")
    assert "accelerators" in page.url
    assert "outside [1, inf)" in page.text_content('[data-name="accelerators"] .fkp-wrong')
    page.go_back()
    answered(page)
    assert value(page, "wall_days") == before
    assert page.input_value('input[name="accelerators"]') == "16,384"


def test_a_link_brings_the_same_answer_as_python(plan: Callable[..., Any]) -> None:
    page = plan("?v=1&model=llama3_70b&accelerators=2048&accelerator=b200&pue=1.3&mfu=2&restart_s=-1")
    best = fk.plan("llama3_70b", tokens=15.6e12, chips="b200", counts=[2048], pue=1.3).best.row(0, named=True)
    for name in ("step_s", "goodput", "wall_days", "run_cost_usd", "failures_per_day"):
        assert value(page, name) == quantity(name).text(best[name]), name
    said = page.text_content(".fkp-noted")
    assert "there is no input mfu" in said
    assert "Restart time = -1 is outside [0, inf)" in said


def test_a_slider_by_keyboard_changes_the_readouts_and_one_sentence_says_so(plan: Callable[..., Any]) -> None:
    page = plan()
    names = ("goodput", "wall_days", "run_cost_usd", "failures_per_day")
    before = [value(page, name) for name in names]
    page.focus('[data-name="accelerators"] input[type=range]')
    page.keyboard.press("ArrowRight")
    answered(page)
    assert all(value(page, name) != old for name, old in zip(names, before, strict=True))
    days = value(page, "wall_days")
    page.wait_for_function("days => document.querySelector('.fkp-live').textContent.startsWith(days)", arg=days)


def test_a_number_unfolds_down_to_its_sources(plan: Callable[..., Any]) -> None:
    page = plan()
    page.click('.fkp-readout:has([data-quantity="run_cost_usd"]) > summary')
    chain = page.locator('.fkp-readout:has([data-quantity="run_cost_usd"]) .fkp-chain')
    chain.locator("summary", has_text="Rental cost of the run").click()
    chain.locator('a[href="tables/rental_offers.html?q=h100_sxm"]').first.wait_for()
    said = chain.locator(".fkp-rests li").all_inner_texts()
    assert said[0].startswith("Rental price per accelerator-hour")
    (llama,) = [text for text in said if "MTBF per accelerator" in text]
    assert llama.endswith("Llama Team 2024 (arxiv.org)")
    assert chain.locator('.fkp-rests a[rel="external"][href^="https://"]').count() >= 5
    chain.locator("summary", has_text="Accelerator-hours").click()
    chain.locator("summary", has_text="Wall-clock time").last.wait_for()
    assert "run_cost_usd = rental_cost_usd" in chain.inner_text()
    assert chain.locator('a[href^="report/methods/"]').count() >= 3


def test_pinned_plans_differ_in_what_was_changed(plan: Callable[..., Any]) -> None:
    page = plan()
    page.click("text=Pin as A")
    page.select_option('select[name="accelerator"]', "b200")
    answered(page)
    rows = page.locator(".fkp-compare tr").all_inner_texts()
    assert rows[1].split("\t") == ["Accelerator", "NVIDIA B200 (HGX)", "NVIDIA H100 SXM5 80GB"]
    assert len(rows) == 1 + 1 + 8
    page.click("text=CSV")
    rows = {row["quantity"]: row for row in csv.DictReader(io.StringIO(page.input_value(".fkp-text")))}
    assert float(rows["wall_days"]["low"]) < float(rows["wall_days"]["value"]) < float(rows["wall_days"]["high"])
    page.click("text=BibTeX")
    assert page.url in page.input_value(".fkp-text")
    page.click("text=Python")
    code = page.input_value(".fkp-text")
    found: dict[str, Any] = {}
    exec(code.replace("print(p)", ""), found)
    assert value(page, "wall_days") == quantity("wall_days").text(found["p"].best["wall_days"].item())


def test_a_chip_that_lacks_a_cell_asks_for_it_and_takes_it(plan: Callable[..., Any]) -> None:
    page = plan("?v=1&accelerator=h800_sxm&way=own")
    assert "do not say Price per node" in page.text_content(".fkp-refused")
    typed(page, "server_usd", "400 kUSD")
    assert page.text_content(".fkp-refused") == ""
    page.click('.fkp-readout:has([data-quantity="run_cost_usd"]) > summary')
    page.wait_for_selector(".fkp-readout[open] .fkp-formula")
    assert "run_cost_owned_usd = ownership_cost_usd" in page.inner_text(".fkp-readout[open] .fkp-formula")


def test_a_pasted_configuration_is_in_the_link_and_in_the_command(plan: Callable[..., Any]) -> None:
    page = plan("?v=1&tokens=1e12&accelerators=256&tiers=best")
    page.select_option('select[name="model"]', label="Paste a config.json")
    sizes = {"num_hidden_layers": 24, "hidden_size": 3072, "intermediate_size": 9216, "vocab_size": 64000}
    heads = {"num_attention_heads": 24, "num_key_value_heads": 8, "hidden_act": "silu", "tie_word_embeddings": True}
    page.fill('[aria-label="A config.json of a model"]', json.dumps({"model_type": "llama", **sizes, **heads}))
    page.press('[aria-label="A config.json of a model"]', "Tab")
    answered(page)
    days = value(page, "wall_days")
    page.goto(page.url)
    answered(page)
    assert value(page, "wall_days") == days
    page.click("text=Command line")
    _, verb, model, *words = shlex.split(page.input_value(".fkp-text"))
    options = dict(zip(words[-8::2], words[-7::2], strict=True))
    assert (verb, options.pop("--tiers")) == ("plan", "one,two")
    given = dict(word.split("=") for word in words[:-8])
    options = {name.removeprefix("--"): value for name, value in options.items()}
    best = fk.plan(model, tiers=("one", "two"), **{n: _number(v) for n, v in (options | given).items()}).best
    assert quantity("wall_days").text(best["wall_days"].item()) == days


def _number(word: str) -> Any:
    return float(word) if word[0].isdigit() else word


def test_a_layout_by_hand_that_breaks_a_rule_says_which(plan: Callable[..., Any]) -> None:
    hand = "tensor_parallel=8&pipeline_parallel=7&context_parallel=1&virtual_stages=1&expert_parallel=1"
    page = plan(f"?v=1&{hand}&micro_batch_size=1&zero_stage=1&recompute=full&schedule=1f1b")
    assert "divide the accelerators" in page.text_content(".fkp-refused")
