"""Charts of serving over a plan, its loads and its prices."""

from __future__ import annotations

from functools import cache

import polars as pl
import pytest
from conftest_values import encoded_fields, known_fields

import factorykit as fk
from factorykit.charts import serving


@cache
def specs() -> dict[str, dict]:
    plan = fk.serve("llama3_8b", "h100_sxm", load=5.0)
    measured = pl.DataFrame(
        {
            "output_tokens_per_s_per_user": [50.0],
            "output_tokens_per_s_per_accelerator": [900.0],
            "tensor_parallel": [1.0],
            "concurrent_requests": [32.0],
        }
    )
    loads = pl.DataFrame({"requests_per_s": [1.0], "name": ["a"], "accelerators": [4.0], "low": [3.0], "high": [5.0]})
    titles = {"title": "T", "source": "S"}
    return {
        "frontier": serving.frontier(plan.frontier(), measured, **titles).to_dict(),
        "loads": serving.by_load(loads, "accelerators", **titles).to_dict(),
        "prices": serving.token_prices({"H100": plan.best}, **titles).to_dict(),
    }


@pytest.mark.parametrize("name", ["frontier", "loads", "prices"])
def test_a_chart_of_serving_is_valid_and_draws_its_interval(name: str) -> None:
    spec = specs()[name]
    assert encoded_fields(spec) <= known_fields(spec)
    assert {"high"} <= encoded_fields(spec)
    assert (spec["title"]["text"], spec["usermeta"]["source"]) == ("T", "S")


def test_prices_have_three_kinds_of_tokens() -> None:
    rows = next(iter(specs()["prices"]["datasets"].values()))
    assert [row["kind"] for row in rows] == ["Input", "Cached input", "Output"]
    assert rows[1]["usd"] < rows[0]["usd"] < rows[2]["usd"]
