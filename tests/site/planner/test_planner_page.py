"""The planner in a browser: typing, sliders, keyboard, links, and a phone."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import factorykit as fk
from factorykit.core.vocabulary import quantity
from factorykit.model.planning.plan import read_run
from factorykit.site.planner import formulas_script, launch_script, script

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
BLANK = (
    "<!doctype html><html lang=en><title>Plan</title><div data-factorykit-plan={}></div>"
    "<script src=plan.js></script><script src=plan-launch.js></script>"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that contains only the planner, opened as a file."""
    place = tmp_path_factory.mktemp("planner")
    (place / "plan.js").write_text(script(), encoding="utf-8")
    (place / "plan-formulas.js").write_text(formulas_script(), encoding="utf-8")
    (place / "plan-launch.js").write_text(launch_script(), encoding="utf-8")
    (place / "plan.html").write_text(BLANK.format("whole"), encoding="utf-8")
    return place


@pytest.fixture
def plan(context: Callable[..., Any], folder: Path) -> Iterator[Callable[..., Any]]:
    """Open the planner and wait for its answer; no error may occur on it."""
    wrong: list[str] = []
    pages = []

    def open_page(query: str = "") -> Any:
        page = context().new_page()
        page.set_viewport_size({"width": 1280, "height": 900})
        pages.append(page)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(f"file://{folder}/plan.html{query}")
        answered(page)
        return page

    yield open_page
    for page in pages:
        page.evaluate("localStorage.clear()")
        page.close()
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


def test_numbers_are_read_and_shown_as_in_python(plan: Callable[..., Any]) -> None:
    page = plan("?v=1")
    wrong = '[data-name="sequence_length"] .fkp-wrong'
    page.get_by_text("More choices").click()
    typed(page, "sequence_length", "32k")
    with pytest.raises(fk.FactorykitError) as refusal:
        quantity("sequence_length").check("32k")
    assert page.text_content(wrong).partition(" can be ")[2] == str(refusal.value).partition(" can be ")[2]
    typed(page, "sequence_length", "32Ki")
    assert page.url.endswith("?v=1&sequence_length=32768")
    typed(page, "accelerators", "32768")
    assert page.input_value('input[name="accelerators"]') == "32,768"
    typed(page, "tokens", "15")
    assert "Training tokens: 15 is unusual; usual is 10" in page.text_content(".fkp-noted")
    typed(page, "tokens", "15T")
    assert not page.text_content(".fkp-noted")


def test_a_run_as_it_was_has_no_limit_of_the_reader_and_goes_with_its_model(plan: Callable[..., Any]) -> None:
    page = plan("?v=2&model=llama3_405b&pue=1.2")
    page.get_by_role("button", name="As it was run").click()
    answered(page)
    assert "deadline" not in page.text_content(".fkp-says")
    days = fk.plan("llama3_405b", as_run=True).best["wall_days"].item()
    assert value(page, "wall_days") == f"{days:.3g} d"
    assert "accelerators=16384" in page.url
    page.select_option('select[name="model"]', "gpt3_175b")
    answered(page)
    assert page.url.endswith("?v=2&model=gpt3_175b&pue=1.2")


def test_a_field_that_is_needed_cannot_be_cleared(plan: Callable[..., Any]) -> None:
    page = plan("?v=2")
    typed(page, "tokens", "")
    assert "Training tokens is needed" in page.text_content('[data-name="tokens"] .fkp-wrong')
    assert "tokens" not in page.url
    typed(page, "deadline_s", "")
    assert page.url.endswith("deadline_s=none")


def test_typed_values_are_evaluated_stored_and_undone(plan: Callable[..., Any]) -> None:
    page = plan("?v=1")
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
    message = page.text_content(".fkp-noted")
    assert "there is no input mfu" in message
    assert "Restart time = -1 is outside [0, inf)" in message


def test_a_slider_by_keyboard_changes_the_readouts_and_is_announced(plan: Callable[..., Any]) -> None:
    page = plan("?v=1")
    names = ("goodput", "wall_days", "run_cost_usd", "failures_per_day")
    before = [value(page, name) for name in names]
    page.focus('[data-name="accelerators"] input[type=range]')
    page.keyboard.press("ArrowRight")
    answered(page)
    assert all(value(page, name) != old for name, old in zip(names, before, strict=True))
    days = value(page, "wall_days")
    page.wait_for_function("days => document.querySelector('.fkp-live').textContent.includes(days)", arg=days)


def test_a_number_unfolds_down_to_its_sources(plan: Callable[..., Any]) -> None:
    page = plan("?v=1")
    page.click('.fkp-readout:has([data-quantity="run_cost_usd"]) > summary')
    chain = page.locator('.fkp-readout:has([data-quantity="run_cost_usd"]) .fkp-chain')
    chain.locator("summary", has_text="Rental cost of the run").click()
    chain.locator('a[href="tables/rental_offers.html?q=h100_sxm"]').first.wait_for()
    lines = chain.locator(".fkp-rests li").all_inner_texts()
    assert lines[0].startswith("Rental price per accelerator-hour")
    (llama,) = [text for text in lines if "MTBF per accelerator" in text]
    assert llama.endswith("Llama Team 2024 (arxiv.org)")
    assert chain.locator('.fkp-rests a[rel="external"][href^="https://"]').count() >= 5
    chain.locator("summary", has_text="Accelerator-hours").click()
    chain.locator("summary", has_text="Wall-clock time").last.wait_for()
    assert "run_cost_usd = rental_cost_usd" in chain.inner_text()
    assert chain.locator('a[href^="report/methods/"]').count() >= 3


def test_pinned_plans_differ_in_the_changed_inputs(plan: Callable[..., Any]) -> None:
    page = plan("?v=1")
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
    page.click("text=Megatron-LM")
    launched = page.locator('[aria-label="Launch script"]')
    assert launched.input_value() == fk.launch(found["p"].scenario, "megatron_lm")
    typed(page, "accelerators", "2048")
    assert "--nodes=256 " in launched.input_value()


def test_a_chip_that_lacks_a_cell_asks_for_it_and_takes_it(plan: Callable[..., Any]) -> None:
    page = plan("?v=1&accelerator=h800_sxm&way=own")
    assert "the tables have no Price per node" in page.text_content(".fkp-refused")
    typed(page, "server_usd", "400 kUSD")
    assert page.text_content(".fkp-refused") == ""
    page.click('.fkp-readout:has([data-quantity="run_cost_usd"]) > summary')
    page.wait_for_selector(".fkp-readout[open] .fkp-formula")
    assert "run_cost_owned_usd = ownership_cost_usd" in page.inner_text(".fkp-readout[open] .fkp-formula")


def test_a_pasted_configuration_is_in_the_link_and_in_the_command(plan: Callable[..., Any], tmp_path: Path) -> None:
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
    (tmp_path / "run.toml").write_text(
        page.input_value(".fkp-text").split("END'\n")[1].split("END\n")[0], encoding="utf-8"
    )
    arguments = read_run(tmp_path / "run.toml")
    assert arguments["tiers"] == ["one", "two"]
    best = fk.plan(arguments.pop("model"), **arguments).best
    assert quantity("wall_days").text(best["wall_days"].item()) == days


def test_a_layout_by_hand_that_violates_a_rule_names_it(plan: Callable[..., Any]) -> None:
    hand = "tensor_parallel=8&pipeline_parallel=37&context_parallel=1&virtual_stages=1&expert_parallel=1"
    page = plan(f"?v=1&{hand}&micro_batch_size=1&zero_stage=1&recompute=full&schedule=1f1b")
    assert "divide the accelerators" in page.text_content(".fkp-refused")


def test_a_question_is_answered_in_a_sentence_after_the_picture_of_all_plans(plan: Callable[..., Any]) -> None:
    page = plan("?v=2&model=llama3_8b&tokens=1e12&chips=b200&budget_usd=1000000")
    page.wait_for_function("() => document.querySelectorAll('.fkp-pick').length > 20")
    found = fk.plan(
        "llama3_8b", tokens=1e12, chips=["h100_sxm", "b200"], deadline_s=5184000, budget_usd=1e6, acquire="rent"
    )
    best = found.best.row(0, named=True)
    sentence = page.text_content(".fkp-says")
    for name in ("wall_days", "run_cost_usd", "facility_power_w"):
        assert quantity(name).text(best[name]) in sentence
    chance = found.bottlenecks.filter(limit="deadline")["chance"].item()
    assert f"Chance of keeping the deadline: {100 * chance:.2g} %" in sentence.replace("100 %", "1e+02 %")
    assert page.locator(".fkp-pick").count() == found.plans.height
    typed(page, "deadline_s", "2 weeks")
    assert "deadline_s=1209600" in page.url
    page.fill('input[name="deadline_s"]', "60")
    page.press('input[name="deadline_s"]', "Enter")
    assert "has no unit; give '60 d'" in page.text_content('[data-name="deadline_s"] .fkp-wrong')
    assert page.input_value('input[name="deadline_s"]') == "60"


def test_where_nothing_fits_a_button_sets_the_smallest_sufficient_count(plan: Callable[..., Any]) -> None:
    page = plan("?v=1&accelerators=100")
    page.locator(".fkp-refused button", has_text="accelerators").wait_for()
    assert "No layout fits in memory: this needs" in page.text_content(".fkp-refused")
    page.locator(".fkp-refused button", has_text="accelerators").click()
    answered(page)
    assert page.text_content(".fkp-refused") == ""


def test_a_button_repeats_the_published_run_and_returns_to_today(plan: Callable[..., Any]) -> None:
    page = plan("?v=1&model=bloom_176b&accelerator=b200&accelerators=64")
    page.get_by_role("button", name="As it was run").click()
    answered(page)
    assert page.input_value('select[name="accelerator"]') == "a100_sxm_80gb"
    assert page.input_value('input[name="accelerators"]') == "384"
    then = value(page, "wall_days")
    page.get_by_role("button", name="Best today").click()
    answered(page)
    assert page.input_value('input[name="accelerators"]') == "384"
    assert float(value(page, "wall_days").split()[0]) < float(then.split()[0])


def test_a_price_of_zero_is_drawn(plan: Callable[..., Any]) -> None:
    page = plan("?v=1&model=llama3_8b&accelerators=256&tokens=1e12&rental_usd_per_accelerator_h=0")
    page.wait_for_selector("[data-drawn]")
    assert "NaN" not in page.locator(".fkp-answer").inner_html()


def test_a_price_of_one_accelerator_ends_the_comparison(plan: Callable[..., Any]) -> None:
    page = plan("?v=2&model=llama3_8b&tokens=1e12&chips=b200&deadline_s=2592000")
    page.evaluate("document.querySelectorAll('details').forEach((group) => { group.open = true; })")
    page.fill('input[name="rental_usd_per_accelerator_h"]', "2.5")
    page.press('input[name="rental_usd_per_accelerator_h"]', "Enter")
    answered(page)
    assert "the others are no longer compared" in page.text_content(".fkp-noted")
    best = fk.plan("llama3_8b", tokens="1T", chips="h100_sxm", deadline="30 d", rental_usd_per_accelerator_h=2.5).best
    assert quantity("run_cost_usd").text(best["run_cost_usd"].item()) in page.text_content(".fkp-says")


def test_fewer_spare_nodes_than_needed_are_named_as_in_python(plan: Callable[..., Any]) -> None:
    found = fk.plan("llama3_405b", tokens="15T", chips="h100_sxm", counts=[16384], spare_nodes=2, draws=2)
    note = next(line for line in str(found).splitlines() if "spare nodes:" in line)
    page = plan("?v=1&model=llama3_405b&tokens=1.5e13&accelerators=16384&spare_nodes=2")
    assert note[note.index("2 of ") :].strip() in page.text_content(".fkp-says")
