"""Data loading: readers, storage, caches, waiting times of a step, and the start of a job."""

from __future__ import annotations

from math import inf

from factorykit.core.types import Numeric
from factorykit.formulas.functions import maximum, minimum, where

LEAST_BYTES_PER_S = 1.0
"""Stands for a rate of nothing, by which no size can be divided."""


def step_read_bytes(global_batch_size: Numeric, sample_bytes: Numeric) -> Numeric:
    r"""Bytes of data that one step takes.

    .. math:: S_d = B\, b_s

    Notes
    -----
    A sample is a sequence of tokens or a picture, as it lies in storage.

    Examples
    --------
    2,048 sequences of 8,192 tokens in two bytes:

    >>> step_read_bytes(2048.0, 16384.0) / 1e6
    33.554432
    """
    return global_batch_size * sample_bytes


def reader_bytes_per_s(
    request_bytes: Numeric,
    request_s: Numeric,
    stream_bytes_per_s: Numeric,
    sample_bytes: Numeric,
    sample_prepare_s: Numeric,
) -> Numeric:
    r"""Rate at which one reader delivers.

    .. math:: B_q = \frac{R}{t_q + R / B_s + (R / b_s)\, t_p}

    Notes
    -----
    One request after the other: its first byte, its bytes, then the work of a processor on its samples. Shuffled single
    samples are small requests; shards that are read whole and shuffled in memory are large ones.

    References
    ----------
    .. [mlperfstorage2024] rules: a reader loads, decodes and hands over one sample after the other

    Examples
    --------
    From an object store, 30 ms to the first byte: sequences of 16 kB one by one, and shards of 64 MB, in MB/s:

    >>> [round(reader_bytes_per_s(size, 0.03, 1e8, 16384.0, 0.0) / 1e6, 1) for size in (16384.0, 6.4e7)]
    [0.5, 95.5]
    """
    preparing = request_bytes / sample_bytes * sample_prepare_s
    return request_bytes / (request_s + request_bytes / stream_bytes_per_s + preparing)


def cache_hit_share(cache_bytes: Numeric, dataset_bytes: Numeric, epochs: Numeric) -> Numeric:
    r"""Share of the bytes that come from caches near the accelerators.

    .. math:: h = \min\left(\frac{S_c}{S_D}, 1\right) \left(1 - \frac{1}{n_e}\right)

    Notes
    -----
    Samples in random order; a full cache keeps its content. The first pass fills it. A cache with least-recently-used
    eviction keeps nothing of a larger data set.

    Examples
    --------
    >>> cache_hit_share(2.5e12, 1e13, 1.0), cache_hit_share(2.5e12, 1e13, 5.0)
    (0.0, 0.2)
    """
    return minimum(cache_bytes / dataset_bytes, 1.0) * (1.0 - 1.0 / epochs)


def storage_left_bytes_per_s(
    storage_read_bytes_per_s: Numeric,
    checkpoint_bytes: Numeric,
    storage_write_bytes_per_s: Numeric,
    checkpoint_interval_s: Numeric,
    neighbour_storage_share: Numeric,
) -> Numeric:
    r"""Rate of the storage that neighbours and saves in the background leave to readers.

    .. math:: B_l = B_r \max\left(1 - q - \frac{S}{B_w \tau},\, 0\right)

    Notes
    -----
    On average; while a save is written readers get nothing, and a queue of batches has to last until it ends. Saves for
    which the job stands still take nothing from readers. Neighbours take their share all the time, of reads and writes.

    Examples
    --------
    5.67 TB to 0.1 TB/s every ten minutes, alone and beside a job that takes half:

    >>> [round(storage_left_bytes_per_s(1e11, 5.67e12, 1e11, 600.0, share) / 1e9, 1) for share in (0.0, 0.5)]
    [90.5, 40.5]
    """
    busy = checkpoint_bytes / (storage_write_bytes_per_s * checkpoint_interval_s)
    return storage_read_bytes_per_s * maximum(1.0 - neighbour_storage_share - busy, 0.0)


def checkpoint_shared_write_s(
    checkpoint_bytes: Numeric,
    storage_write_bytes_per_s: Numeric,
    storage_front_bytes_per_s: Numeric,
    data_read_bytes_per_s: Numeric,
    neighbour_storage_share: Numeric,
) -> Numeric:
    r"""Time of a save whose bytes pass the same front end as the data, and neighbours' bytes.

    .. math:: C_w = \frac{S}{\min\left((1 - q) B_w,\; (1 - q) B_f - B_d\right)}

    Notes
    -----
    Data go first: a batch that is late holds up the step. A byte a second where data leave nothing. Stands for
    ``checkpoint_write_s`` where a scenario names it.

    Examples
    --------
    5.67 TB to storage of 2 TB/s behind a front end of 1 TB/s, of which pictures take 0.8:

    >>> [round(checkpoint_shared_write_s(5.67e12, 2e12, 1e12, data, 0.0), 1) for data in (0.0, 8e11)]
    [5.7, 28.4]
    """
    own = 1.0 - neighbour_storage_share
    left = minimum(own * storage_write_bytes_per_s, own * storage_front_bytes_per_s - data_read_bytes_per_s)
    return checkpoint_bytes / maximum(left, LEAST_BYTES_PER_S)


def loader_bytes_per_s(
    readers: Numeric, reader_bytes_per_s: Numeric, storage_left_bytes_per_s: Numeric, cache_hit_share: Numeric
) -> Numeric:
    r"""Rate at which data reach the accelerators.

    .. math:: B_d = \min\left(n_r B_q,\; \frac{B_l}{1 - h}\right)

    Notes
    -----
    Readers or storage, whichever limits; cached samples do not load the storage.

    Examples
    --------
    >>> loader_bytes_per_s(64.0, 1e9, 4e10, 0.2) / 1e9
    50.0
    """
    missed = 1.0 - cache_hit_share
    stored = where(missed > 0.0, storage_left_bytes_per_s / where(missed > 0.0, missed, 1.0), inf)
    return minimum(readers * reader_bytes_per_s, stored)


def loader_starved_s(step_read_bytes: Numeric, loader_bytes_per_s: Numeric, inner_step_s: Numeric) -> Numeric:
    r"""Part of a mean step in which accelerators wait for data.

    .. math:: T_w = \max\left(\frac{S_d}{B_d} - T_i,\, 0\right)

    Notes
    -----
    Batches are read ahead, beside the step. Stands for ``loader_exposed_s`` where a scenario names it.

    Examples
    --------
    >>> round(loader_starved_s(1e10, 2e9, 4.0), 1)
    1.0
    """
    return maximum(step_read_bytes / loader_bytes_per_s - inner_step_s, 0.0)


def starvation_share(loader_exposed_s: Numeric, step_s: Numeric) -> Numeric:
    r"""Share of a step in which accelerators wait for data.

    .. math:: z = T_w / T

    Notes
    -----
    One minus the accelerator utilization of MLPerf Storage.

    Examples
    --------
    >>> starvation_share(0.5, 5.0)
    0.1
    """
    return loader_exposed_s / step_s


def accelerator_read_bytes_per_s(
    step_read_bytes: Numeric, accelerators: Numeric, inner_step_s: Numeric, busy_wanted: Numeric
) -> Numeric:
    r"""Rate that keeps one accelerator as busy as wanted.

    .. math:: B_1 = \frac{S_d}{n\, T_i}\, u

    References
    ----------
    .. [mlperfstorage2024] accelerator utilization of at least 90 %, CosmoFlow 70 %

    Examples
    --------
    U-Net3D on an H100: seven volumes of 147 MB in 0.323 s, in GB/s:

    >>> round(accelerator_read_bytes_per_s(7 * 146600628.0, 1.0, 0.323, 0.9) / 1e9, 2)
    2.86
    """
    return busy_wanted * step_read_bytes / (accelerators * inner_step_s)


def accelerators_fed(loader_bytes_per_s: Numeric, accelerator_read_bytes_per_s: Numeric) -> Numeric:
    r"""Accelerators that the loader keeps as busy as wanted.

    .. math:: n_f = B_d / B_1

    Notes
    -----
    A fraction where the last one waits a little more. Each takes the same batch.

    References
    ----------
    .. [mlperfstorage2024] the number that results report

    Examples
    --------
    >>> round(accelerators_fed(1.038e11, 2.86e9))
    36
    """
    return loader_bytes_per_s / accelerator_read_bytes_per_s


def metadata_storm_s(accelerators: Numeric, files_per_process: Numeric, metadata_per_s: Numeric) -> Numeric:
    r"""Time in which the processes of a starting job open their files.

    .. math:: T_m = n\, n_f / r_m

    Notes
    -----
    One process an accelerator, all at once, from one filesystem: interpreters look for each module in every folder of
    their path. Files in an image or on local disks are not counted.

    Examples
    --------
    16,384 processes with 10,000 look-ups each against 200,000 a second, in minutes:

    >>> round(metadata_storm_s(16384.0, 1e4, 2e5) / 60, 1)
    13.7
    """
    return accelerators * files_per_process / metadata_per_s


def image_load_s(nodes: Numeric, image_bytes: Numeric, image_bytes_per_s: Numeric) -> Numeric:
    r"""Time in which all servers fetch the image of a job.

    .. math:: T_g = n_s S_g / B_g

    Notes
    -----
    From registries that deliver a given rate in all; servers that hand parts on to each other raise it.

    Examples
    --------
    >>> image_load_s(2048.0, 2e10, 1e11)
    409.6
    """
    return nodes * image_bytes / image_bytes_per_s


def group_setup_s(accelerators: Numeric, group_barriers: Numeric, store_requests_per_s: Numeric) -> Numeric:
    r"""Time in which the processes of a starting job agree on their groups.

    .. math:: T_b = n\, n_b / r_b

    Notes
    -----
    One process an accelerator, and one store that answers their requests one after the other. A barrier of all after
    each group makes the number of barriers grow with the job, and the time with its square; groups that are set up in
    an order that needs few barriers let it grow with the job alone.

    References
    ----------
    .. [jiang2024megascale] section 3.5: from 1,047 s to less than 5 on 2,048 GPUs, less than 30 on more than 10,000

    Examples
    --------
    A thousand barriers, and one, of 2,048 processes:

    >>> [group_setup_s(2048.0, barriers, 2000.0) for barriers in (1000.0, 1.0)]
    [1024.0, 1.024]
    """
    return accelerators * group_barriers / store_requests_per_s


def job_start_s(
    start_fixed_s: Numeric,
    image_load_s: Numeric,
    metadata_storm_s: Numeric,
    group_setup_s: Numeric,
    checkpoint_read_s: Numeric,
) -> Numeric:
    r"""Time from the start of a job to its first step.

    .. math:: T_s = T_0 + T_g + T_m + T_b + C_r

    Notes
    -----
    One after the other. Kernels that compile are in the fixed part.

    References
    ----------
    .. [li2025bootseer] section 3: images, dependencies, checkpoints

    Examples
    --------
    >>> job_start_s(60.0, 120.0, 30.0, 10.0, 40.0)
    260.0
    """
    return start_fixed_s + image_load_s + metadata_storm_s + group_setup_s + checkpoint_read_s
