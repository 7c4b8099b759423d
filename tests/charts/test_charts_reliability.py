"""Charts of failures, runs and costs: valid, encoded fields exist, live values equal the formulas."""

from __future__ import annotations

import polars as pl
import pytest
from conftest_values import encoded_fields, known_fields

import factorykit as fk
from factorykit.charts import checkpoint, reliability
from factorykit.charts.live import Live

RATES = pl.DataFrame(
    {
        "label": ["A", "B"],
        "per_1000_node_days": [3.8, 6.5],
        "per_1000_low": [3.4, None],
        "per_1000_high": [4.2, None],
        "node_days": [110_592.0, None],
        "source": ["x", "y"],
    }
)
DAYS = pl.DataFrame(
    {"state": ["kept", "lost"], "cause": [None, "GPU"], "day": [0, 0], "from_h": [0.0, 3.0], "to_h": [3.0, 3.2]}
)
RUNS = pl.DataFrame({"wall_s": [4.9e6, 4.95e6, 5.0e6], "label": ["runs"] * 3})
TIMES = pl.DataFrame(
    {
        "distribution": ["record", "record", "weibull", "weibull"],
        "span_s": [60.0, 600.0, 60.0, 600.0],
        "survival": [0.9, 0.2, 0.88, 0.25],
        "survival_low": [0.8, 0.1, None, None],
        "survival_high": [0.95, 0.3, None, None],
    }
)
DAY_BY_SIZE = pl.DataFrame(
    {"accelerators": [1024.0, 16384.0], "failures_per_day": [0.5, 7.8], "low": [0.0, 3.0], "high": [2.0, 14.0]}
)
SPARES = pl.DataFrame(
    {
        "spare_nodes": [0.0, 1.0],
        "enough_probability": [0.4, 0.8],
        "spares_usd_per_day": [0.0, 400.0],
        "standstill_usd_per_day": [5e5, 1e5],
        "usd_per_day": [5e5, 100_400.0],
    }
)
CHARTS = {
    "a day by size": lambda: reliability.day_by_size(DAY_BY_SIZE, "Model", "A day"),
    "spares": lambda: reliability.spares(SPARES, "Model", "Spares"),
    "survival": lambda: reliability.survival(TIMES, "Record", "Times"),
    "rates": lambda: reliability.rates(RATES, "Table", "Rates"),
    "timeline": lambda: reliability.timeline(DAYS, "Simulation", "Run"),
    "spread": lambda: reliability.spread(RUNS, "wall_s", "Simulation", "Spread"),
}
LIVE = {
    "failures": reliability.failures_by_size,
    "bring-up": reliability.bring_up,
    "run time": reliability.run_time,
    "money": checkpoint.interval_cost,
    "tiers": checkpoint.two_tiers,
    "background": checkpoint.background_saves,
}
RUN = {
    "training_s": 4_182_200.0,
    "cluster_mtbf_s": 11_135.0,
    "checkpoint_interval_s": 1100.0,
    "checkpoint_write_s": 60.0,
    "restart_s": 600.0,
    "downtime_s": 0.0,
}


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_is_valid_and_encodes_existing_fields(name: str) -> None:
    spec = CHARTS[name]().to_dict()
    assert encoded_fields(spec) <= known_fields(spec)
    assert spec["description"]
    assert spec["usermeta"]["source"]


@pytest.mark.parametrize("name", LIVE)
def test_a_live_chart_equals_evaluate(name: str) -> None:
    live: Live = LIVE[name]({"x": RUN}) if name in ("run time", "tiers", "background") else LIVE[name]()
    now = live.now()
    given = {key: value for key, value in live.parameters.items() if key not in live.outputs}
    for output in live.outputs:
        assert now[output] == pytest.approx(fk.evaluate(given, output)[output], rel=1e-9)


def test_a_run_is_cut_at_midnight() -> None:
    story = pl.DataFrame(
        {"state": ["kept", "lost"], "cause": [None, "GPU"], "start_s": [0.0, 90_000.0], "end_s": [90_000.0, 172_800.0]}
    )
    days = reliability.by_day(story, 5)
    assert days.select("state", "day", "from_h", "to_h").rows() == [
        ("kept", 0, 0.0, 24.0),
        ("kept", 1, 0.0, 1.0),
        ("lost", 1, 1.0, 24.0),
    ]
