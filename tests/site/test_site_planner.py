"""Navigation on a phone: from the front page to a plan, and from a number to its source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import factorykit as fk
from factorykit.core.vocabulary import quantity

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
NEWEST = "() => { const d = document.querySelector('[data-answered]')?.dataset; return d && d.answered === d.asked; }"


def test_from_the_front_page_on_a_phone_to_a_trillion_parameters_on_16384_gpus(visit: Callable[..., Any]) -> None:
    page = visit("index.html", width=390, height=844, is_mobile=True, has_touch=True)
    page.wait_for_function(NEWEST)
    assert page.locator('nav[aria-label="Main"] a').first.text_content().strip() == "Plan"
    page.select_option('select[name="model"]', label="A size, such as 70B or 1T MoE")
    page.fill('[aria-label="Size of the model"]', "1T MoE")
    page.press('[aria-label="Size of the model"]', "Enter")
    page.select_option('select[name="accelerator"]', "b200")
    page.fill('input[name="tokens"]', "20T")
    page.press('input[name="tokens"]', "Enter")
    page.wait_for_function(NEWEST)
    page.tap("text=The whole plan")
    page.wait_for_url("**/plan.html?**")
    assert len(page.url.partition("/plan.html")[2]) < 150
    page.wait_for_function(NEWEST)
    best = fk.plan("1T mixture", tokens="20T", chips="b200", counts=[16384]).best.row(0, named=True)
    for name in ("wall_days", "run_cost_usd", "predicted_mfu"):
        assert page.text_content(f'[data-quantity="{name}"]') == quantity(name).text(best[name])
    layout = page.text_content(".fkp-layout")
    assert page.locator(".fkp-layout").bounding_box()["y"] < page.locator(".fkp-form").bounding_box()["y"]
    degrees = {axis: best[f"{axis}_parallel"] for axis in ("data", "tensor", "pipeline", "context", "expert")}
    assert ", ".join(f"{axis} {degree:.0f}" for axis, degree in degrees.items() if degree > 1.0) in layout

    page.focus('input[name="tokens"] ~ input[type=range]')
    page.mouse.wheel(0, 500)
    page.wait_for_function(
        "(y => 0 <= y && y < 120)(document.querySelector('.fkp-readouts').getBoundingClientRect().y)"
    )
    assert page.locator(".fkp-readouts").bounding_box()["height"] < 844 / 4

    page.tap('.fkp-readout:has([data-quantity="run_cost_usd"]) > summary')
    page.locator(".fkp-chain summary", has_text="Rental cost of the run").first.wait_for()
    page.goto(page.locator('[data-name="accelerator"] .fkp-who a').evaluate("link => link.href"))
    assert page.locator('a[href*="entities/sources"], a[href*="../sources/"]').count()
