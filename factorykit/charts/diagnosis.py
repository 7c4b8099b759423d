"""What silent corruption costs by how often it is looked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from factorykit.charts.asked import checked
from factorykit.charts.live import Case, Live, first_of


@checked
def corruption_by_tests(presets: Mapping[str, Mapping[str, Any]] | None = None) -> Live:
    """Show the share of the time that is kept under silent corruption, by the interval of tests for it."""
    start = {"sdc_detection_s": "sdc_test_lag_s", "checkpoint_interval_s": 1740.0, "checkpoint_write_s": 60.0}
    return Live(
        title="Time kept under silent corruption, by the interval of tests",
        base=start | {"restart_s": 600.0} | dict(first_of(presets)),
        x="sdc_test_interval_s",
        outputs=("sdc_test_goodput",),
        sliders=("sdc_test_interval_s", "sdc_mtbf_s", "sdc_test_s", "sdc_test_catch_share"),
        curves=(
            Case("Tests that catch as said"),
            Case("Tests that catch every tenth", given={"sdc_test_catch_share": 0.1}),
        ),
        readouts=("sdc_test_goodput", "sdc_test_lag_s", "sdc_test_interval_best_s"),
        domain=(600.0, 2.6e6),
        y_domain={"sdc_test_goodput": (0.0, 1.0)},
        presets=presets or {},
        key="corruption",
        source="Rates and shares chosen here",
        description="Goodput under silent corruption by the interval of tests that stop the job.",
    )
