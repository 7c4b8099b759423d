"""Charts of the time that accelerators wait for data."""

from __future__ import annotations

from factorykit.charts.live import Case, Live, Presets, first_of


def starvation_by_request(presets: Presets | None = None) -> Live:
    """Show the share of a step in which accelerators wait for data, by the bytes that a reader asks for at once."""
    start = {"inner_step_s": 6.0, "global_batch_size": 2048.0, "cache_hit_share": 0.0}
    start |= {"loader_exposed_s": "loader_starved_s", "outer_exposed_s": 0.0, "storage_left_bytes_per_s": 1e12}
    return Live(
        title="Waiting for data by the size of a request",
        base=start | dict(first_of(presets)),
        x="request_bytes",
        outputs=("starvation_share",),
        sliders=("readers", "request_bytes", "sample_bytes", "sample_prepare_s"),
        curves=(
            Case("Local disks", given={"request_s": 1e-4, "stream_bytes_per_s": 3e9}),
            Case("Parallel filesystem", given={"request_s": 1e-3, "stream_bytes_per_s": 1e9}),
            Case("Object store", given={"request_s": 0.03, "stream_bytes_per_s": 1e8}),
        ),
        readouts=("starvation_share", "step_read_bytes", "reader_bytes_per_s", "loader_bytes_per_s"),
        domain=(1e3, 1e9),
        y_domain={"starvation_share": (0.0, 1.0)},
        presets=presets or {},
        key="loader",
        source="Latencies and rates of a stream chosen here",
        description="Share of a step in which accelerators wait, by bytes of a request, for three kinds of storage.",
    )


def start_by_size(presets: Presets | None = None) -> Live:
    """Show the time from the start of a job to its first step, by its accelerators."""
    start = {"accelerators": 16384.0, "accelerators_per_node": 8.0, "parameters": 405e9}
    start |= {"storage_read_bytes_per_s": 2e12, "group_barriers": 6.0}
    return Live(
        title="Start of a job, by its accelerators",
        base=start | dict(first_of(presets)),
        x="accelerators",
        outputs=("job_start_s",),
        sliders=(
            "accelerators",
            "files_per_process",
            "metadata_per_s",
            "image_bytes_per_s",
            "group_barriers",
            "store_requests_per_s",
            "start_fixed_s",
        ),
        curves=(
            Case("Current settings"),
            Case("Files on local disks", given={"files_per_process": 0.0}),
            Case("Files and images on local disks", given={"files_per_process": 0.0, "image_bytes": 0.0}),
        ),
        readouts=("job_start_s", "metadata_storm_s", "image_load_s", "group_setup_s", "checkpoint_read_s"),
        domain=(256.0, 131072.0),
        log=("job_start_s",),
        doubling=("accelerators",),
        presets=presets or {},
        key="start",
        source="Sizes and rates chosen here; requests of a store after MegaScale",
        description="Seconds until the first step over the accelerators of a job; simultaneous requests grow with it.",
    )
