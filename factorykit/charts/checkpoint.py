"""Charts of checkpoint intervals: the share of time left for training."""

from __future__ import annotations

from factorykit.charts.live import START, Case, Live, Presets

INTERVAL_MODELS = {
    "Young": "checkpoint_interval_young_s",
    "Daly": "checkpoint_interval_daly_s",
    "Exact optimum": "checkpoint_interval_optimal_s",
}
MODELS = tuple(Case(label, {"checkpoint_interval_s": model}) for label, model in INTERVAL_MODELS.items())


def goodput_by_interval(presets: Presets | None = None) -> Live:
    """Show the checkpoint interval that leaves most time for training, and the cost of missing it.

    ``presets`` are scenarios by label; the first is the one to start from.
    """
    return Live(
        title="Time that ends up as training, by checkpoint interval",
        x="checkpoint_interval_s",
        outputs=("checkpoint_goodput",),
        sliders=("accelerators", "accelerator_mtbf_s", "checkpoint_write_s", "restart_s", "checkpoint_interval_s"),
        points=MODELS,
        readouts=("checkpoint_goodput", "cluster_mtbf_s", "failures_per_day", "checkpoint_interval_optimal_s"),
        band={"accelerator_mtbf_s": 0.25},
        domain=(10.0, 86400.0),
        y_domain={"checkpoint_goodput": (0.0, 1.0)},
        presets=presets or {},
        key="checkpoint",
        source="Daly 2006, equation 20; inputs in the presets table",
        description="Goodput rises with the checkpoint interval, is flat around the optimum and falls beyond it. "
        "The intervals of Young and Daly and the exact optimum are marked.",
    )


def interval_by_accelerators(presets: Presets | None = None) -> Live:
    """Show how the best interval shrinks as a job grows, and where the model formulas part."""
    return Live(
        title="Checkpoint interval that three formulas advise",
        x="accelerators",
        outputs=("checkpoint_interval_s",),
        sliders=("accelerators", "accelerator_mtbf_s", "checkpoint_write_s"),
        curves=MODELS,
        readouts=tuple(INTERVAL_MODELS.values()),
        domain=(64.0, 1e6),
        log=("checkpoint_interval_s",),
        presets=presets or {},
        key="interval",
        source="Young 1974; Daly 2006, equations 20 and 37; inputs in the presets table",
        description="The advised interval falls with the square root of the number of accelerators; "
        "the formulas part where a write lasts as long as the time between failures.",
    )


def interval_cost(presets: Presets | None = None) -> Live:
    """Show the extra cost per day of a checkpoint interval over the best one, and the cost of a failure."""
    return Live(
        title="Rent wasted a day, over the best checkpoint interval",
        x="checkpoint_interval_s",
        outputs=("interval_usd_per_day",),
        sliders=(
            "accelerators",
            "accelerator_mtbf_s",
            "checkpoint_write_s",
            "restart_s",
            "rental_usd_per_accelerator_h",
            "checkpoint_interval_s",
        ),
        points=MODELS,
        readouts=("interval_usd_per_day", "failure_cost_usd", "failures_usd_per_day", "checkpoint_interval_optimal_s"),
        band={"accelerator_mtbf_s": 0.25},
        domain=(10.0, 86400.0),
        presets=presets or {},
        key="interval-cost",
        source="Daly 2006, equation 20; inputs in the presets table",
        description="The cost is nothing at the best interval, stays low around it and rises on both sides.",
    )


def two_tiers(presets: Presets | None = None) -> Live:
    """Show the goodput of frequent local checkpoints with occasional remote ones."""
    return Live(
        title="Time that ends up as training, with near and far checkpoints",
        x="checkpoint_interval_s",
        outputs=("two_level_goodput",),
        sliders=(
            "cluster_mtbf_s",
            "level_one_share",
            "level_one_write_s",
            "level_two_write_s",
            "segments_per_pattern",
            "checkpoint_interval_s",
        ),
        curves=(Case("Near and far"), Case("Far only", given={"segments_per_pattern": 1.0, "level_one_share": 0.0})),
        readouts=("two_level_goodput", "two_level_interval_s", "segments_per_pattern_first_order"),
        domain=(10.0, 14400.0),
        y_domain={"two_level_goodput": (0.0, 1.0)},
        presets=presets or START,
        key="tiers",
        source="Moody et al. 2010; Benoit et al. 2017",
        description="Goodput by the interval of near checkpoints, with far ones every so often, beside far ones only.",
    )


def background_saves(presets: Presets | None = None) -> Live:
    """Show the goodput of asynchronous checkpoints, compared with checkpoints that stop the job.

    ``presets`` are scenarios by label; the first is the one to start from. The job stands still for the whole of
    ``checkpoint_write_s``, or for ``checkpoint_block_s`` until a save that is durable ``checkpoint_lag_s`` later.
    """
    return Live(
        title="Time that ends up as training, with saves in the background",
        x="checkpoint_interval_s",
        outputs=("checkpoint_goodput",),
        sliders=(
            "cluster_mtbf_s",
            "checkpoint_write_s",
            "checkpoint_block_s",
            "checkpoint_lag_s",
            "restart_s",
            "checkpoint_interval_s",
        ),
        curves=(
            Case("Standing still"),
            Case("In the background", {"checkpoint_goodput": "checkpoint_goodput_async"}),
        ),
        readouts=("checkpoint_goodput", "checkpoint_goodput_async", "checkpoint_interval_async_s"),
        domain=(10.0, 14400.0),
        y_domain={"checkpoint_goodput": (0.0, 1.0)},
        presets=presets or START,
        key="background",
        source="Daly 2006, equation 20; a durability lag acts as a longer restart",
        description="Goodput by the checkpoint interval where the job stands still for a save and where it goes on.",
    )
