"""Charts of network topologies: power, cost, and bandwidth of collectives."""

from __future__ import annotations

import altair as alt
import polars as pl

from factorykit.charts import encoding
from factorykit.charts.finish import finish
from factorykit.charts.live import START, Case, Live, Presets

WIRINGS = {
    "Fat tree": "fat_tree",
    "Rails alone": "rail_only",
    "Circuit switches on top": "optical_spine",
    "Dragonfly+": "dragonfly_plus",
    "Dragonfly": "dragonfly",
    "3D torus": "torus_3d",
}
DRAWN = ("Fat tree", "Rails alone", "Circuit switches on top", "Dragonfly+", "3D torus")
"""Topologies that a picture can distinguish: dragonfly and dragonfly+ differ by less than one percent."""


def fabrics(presets: Presets | None = None) -> Live:
    """Show the power and the cost of networks by topology, with equal endpoints."""
    return Live(
        title="Power and price of a fabric, by how it is wired",
        x="accelerators",
        outputs=("network_power_w", "network_capital_usd"),
        sliders=(
            "accelerators",
            "switch_ports",
            "network_oversubscription",
            "switch_power_w",
            "transceiver_power_w",
            "switch_usd",
            "link_usd",
        ),
        curves=tuple(Case(label, given={"network_topology": WIRINGS[label]}) for label in DRAWN),
        readouts=(
            "network_power_w",
            "network_capital_usd",
            "switches",
            "switch_links",
            "network_transceivers",
            "network_diameter",
            "bisection_bytes_per_s",
        ),
        domain=(256.0, 131072.0),
        log=("network_power_w", "network_capital_usd"),
        doubling=("accelerators", "switch_ports"),
        presets=presets or {},
        key="fabrics",
        source="Counts as in the fabrics table; powers and prices in the defaults table",
        description="Power and price grow with the endpoints and jump where a tree needs one layer more; a torus takes "
        "least of both, trees take most.",
    )


def bus_bandwidth(presets: Presets | None = None) -> Live:
    """Show the bus bandwidth of an all-reduce by size, with rings, trees and in-network reduction."""
    return Live(
        title="Bus bandwidth of an all-reduce, by size",
        x="collective_bytes",
        outputs=("bus_bytes_per_s",),
        sliders=(
            *("collective_ranks", "domain_ranks", "scale_up_bytes_per_s", "scale_out_bytes_per_s"),
            *("domain_reduction_share", "collective_out_s"),
        ),
        curves=(
            Case("Ring", given={"collective_algorithm": "ring"}),
            Case("Tree", given={"collective_algorithm": "tree"}),
            Case("Sums in the network", using={"collective_s": "in_network_collective_s"}),
        ),
        readouts=("collective_s", "ring_collective_s", "tree_collective_s", "in_network_collective_s"),
        domain=(65536.0, 17179869184.0),
        presets=presets or START,
        key="bus",
        source="Constants of NCCL's tuner, in the defaults table",
        description="Bus bandwidth rises with the size; trees lead where waiting rules, both meet where bytes "
        "rule, and sums in the network lie above both.",
    )


def measured_collectives(frame: pl.DataFrame, *, title: str, source: str) -> alt.LayerChart:
    """Show predicted against measured bus bandwidths.

    ``frame`` has one row per measurement: ``accelerator``, ``run``, ``collective_ranks``, ``collective_bytes``,
    ``bus_bytes_per_s`` as predicted and ``measured_bytes_per_s``.
    """
    scaled = frame.with_columns(
        predicted=pl.col("bus_bytes_per_s") / 1e9, measured=pl.col("measured_bytes_per_s") / 1e9
    )
    scale = alt.Scale(type="log", nice=False, padding=12)
    dots = (
        encoding.chart(scaled)
        .mark_circle(size=45, opacity=0.65)
        .encode(
            x=alt.X("measured:Q", title="Measured bus bandwidth [GB/s]", scale=scale, axis=alt.Axis(labelFlush=40)),
            y=alt.Y("predicted:Q", title="Predicted [GB/s]", scale=scale),
            color=alt.Color("accelerator:N", title="Chip"),
            tooltip=[
                alt.Tooltip("run:N", title="Run"),
                *encoding.tooltip(["collective_ranks", "collective_bytes"]),
                alt.Tooltip("measured:Q", title="Measured [GB/s]", format=".3~s"),
                alt.Tooltip("predicted:Q", title="Predicted [GB/s]", format=".3~s"),
            ],
        )
    )
    return finish(
        encoding.equality(scaled["measured"]) + dots,
        title,
        source=source,
        description="Predicted over measured bus bandwidth of each size and run on logarithmic axes; a dashed line for "
        "equality.",
        height=380,
    )
