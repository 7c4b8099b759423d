"""Charts of runs over several sites: distance and network between them."""

from __future__ import annotations

from typing import Final

from factorykit.charts.live import Case, Live, Presets, first_of

LATE: Final = 5.0 / 3.0
"""Steps behind which an exchange hides beside the backward pass, where its update comes a step late."""
METHODS: Final = (
    Case("Current settings"),
    Case("Gradients in every step", given={"inner_steps": 1.0, "outer_fragments": 1.0}),
    Case("Weights at once", given={"outer_fragments": 1.0}),
    Case("Fragments of 4 bits, a step late", given={"outer_bits": 4.0, "outer_hidden_steps": LATE}),
)
"""Methods for comparison: data parallelism, DiLoCo and its streaming variant."""


def utilization_by_rate(presets: Presets | None = None) -> Live:
    """Show the share of the time in which sites do not wait for each other, by the rate between them."""
    return _utilization("wan_bytes_per_s", (1.25e7, 1.25e13), "the rate between them", presets)


def utilization_by_distance(presets: Presets | None = None) -> Live:
    """Show the share of the time in which sites do not wait for each other, by the fibre between them."""
    return _utilization("site_distance_m", (1e3, 2e7), "their distance", presets)


def _utilization(x: str, domain: tuple[float, float], by: str, presets: Presets | None) -> Live:
    start = {"inner_steps": 100.0, "outer_fragments": 16.0, "training_sites": 2.0, "wan_bytes_per_s": 1.25e10}
    return Live(
        title=f"Utilization of sites by {by}",
        base={"parameters": 4.05e11, "inner_step_s": 10.0, "site_distance_m": 1e6} | start | dict(first_of(presets)),
        x=x,
        outputs=("site_utilization",),
        sliders=(
            "training_sites",
            "wan_bytes_per_s",
            "site_distance_m",
            "inner_steps",
            "outer_fragments",
            "outer_bits",
        ),
        curves=METHODS,
        readouts=("site_utilization", "outer_bytes", "outer_exchange_s", "site_reach_m", "wan_needed_bytes_per_s"),
        domain=domain,
        y_domain={"site_utilization": (0.0, 1.0)},
        presets=presets or {},
        key=f"sites-{x.partition('_')[0]}",
        source="Douillard et al. 2023 and 2025",
        description=f"Share of time in which sites compute, by {by}, for ways of keeping them together.",
    )
