"""Tables of the performance model: reached rates of chips and links, and constants fitted to measured runs."""

from __future__ import annotations

from factorykit.data.schemas.fields import STATEMENT, Sourced, key, measured, number, reference, share, text

GENERATIONS = (
    *("volta", "turing", "ampere", "ada", "hopper", "blackwell", "rubin"),
    *("cdna2", "cdna3", "cdna4", "tpu", "gaudi", "trainium"),
)


class Ceilings(Sourced):
    """Matrix-product ceilings.

    A row is the best rate that any matrix product reached on one chip alone, dense, by a search over shapes.
    """

    ceiling = key("chip and precision", unique=True, pattern=STATEMENT, entity=True)
    accelerator = reference("accelerators.accelerator", "chip", required=True)
    precision = text("number format", required=True, one_of=("bf16", "fp8"))
    gemm_flop_per_s = number("FLOP/s", "best rate of a matrix product")


class Generations(Sourced):
    """Generations of chips.

    A row is a chip with its generation, whose software it shares, and the rate of its special function units.
    """

    accelerator = key("chip", unique=True, references="accelerators.accelerator", entity=True)
    generation = text("generation of the chip", required=True, one_of=GENERATIONS)
    exponentials_per_s = measured("exponentials_per_s")
    matrix_tile = measured("matrix_tile")


class Links(Sourced):
    """Links out of the scale-up domain.

    A row is the network link that a chip usually has in published systems; a run that states its own overrides it.
    """

    accelerator = key("chip", unique=True, references="accelerators.accelerator", entity=True)
    scale_out_bytes_per_s = measured("scale_out_bytes_per_s")
    scale_up_fallback_bytes_per_s = number(
        "byte/s", "fast fabric per chip and direction where the accelerators table is empty"
    )
    technology = text("kind of network", required=True)
    topology = text("how switches are joined", required=True)


class CollectiveMeasurements(Sourced):
    """Measured collectives.

    A row is the time that NCCL's tests print for one collective, ranks and size, with the links between its ranks.
    """

    measurement = key("run, ranks where they differ, and size in MiB", unique=True, entity=True)
    run = text("rows of one output", required=True)
    collective = text("collective operation", required=True)
    accelerator = reference("accelerators.accelerator", "chip", required=True)
    collective_ranks = measured("collective_ranks")
    domain_ranks = measured("domain_ranks")
    scale_up_bytes_per_s = measured("scale_up_bytes_per_s")
    scale_out_bytes_per_s = measured("scale_out_bytes_per_s", "of the run's network, which may not be the chip's usual")
    domain_reduction_share = measured("domain_reduction_share", "0 where the switches of the domain do not add")
    in_network_reduction = measured("in_network_reduction")
    collective_out_s = measured("collective_out_s", "from the run's smallest size, which is no row; else empty")
    collective_bytes = measured("collective_bytes")
    collective_s = measured("collective_s", "as published")


class Frameworks(Sourced):
    """Training software.

    A row is a framework with its defaults and the maker of its kernels.
    """

    framework = key("name of the software", unique=True, entity=True)
    name = text("name for reading", required=True)
    also_called = text("further names, separated by semicolons", required=True)
    maker = text("vendor of the chips whose kernels it carries; own if it comes with each chip from its vendor")
    vendor_kernels = share("1 if that vendor also tunes the recipes, 0.5 if it only provides the kernels")
    fused_kernels = share("1 if element-wise chains run as one kernel each; 0 for eager code")
    balanced_stages = share("1 if pipeline stages are cut by their work")
    sequence_parallel = share("1 if norms are also split over tensor-parallel ranks, in releases since 2023")
    zero_stage = number("1", "least ZeRO stage that its sharded optimizer amounts to; empty for 1")
    whole_logits = share("1 if the loss is that of a library and every tensor-parallel rank has all logits")
    chunked_loss = share("1 if logits and loss are computed in chunks")
    state_bytes = number(
        "byte", "weights, gradients and optimizer of one parameter; empty for Adam with 32-bit master weights"
    )
    gradient_bytes = number("byte", "bytes of a gradient; empty for a 32-bit sum, or 16 bits where it is sharded")
    half_gradient_bytes = number(
        "byte",
        "bytes of the 32-bit copy that it keeps of each gradient in fp16; empty for one that lives for the update",
    )
    arising_gradients = share(
        "1 if gradients of a single micro-batch are allocated while activations are freed, and last until the update"
    )
    accumulated_bytes = number("byte", "bytes of each gradient that full sharding sums unsharded; empty for none")
    held_boundaries = measured("held_boundaries", "under full sharding, beside adapters; empty for none")
    update_bytes = number("byte", "temporary bytes of each weight in the update; empty for a fused one")
    gather_buffer_bytes = number("byte", "buffers of gathered weights and gradients under ZeRO 3; empty for none")
    bucket_bytes = number("byte", "bytes per gradient of the buckets of data-parallel reductions; empty for none")
    dropout = share("1 if models without a gate train with dropout")
    memory_measure = text(
        "memory that it reports: allocated tensors, reserved by the allocator, or of the process with its context",
        required=True,
        one_of=("allocated", "reserved", "process"),
    )
    cached_share = share(
        "memory that its allocator holds unused at the peak where there is room, above the need; empty for none"
    )
    reports_first_stage = share("1 if the memory that it reports is that of the first stage of a pipeline")
    selective_share = share("share of matrix products that its selective recomputation repeats")
    reduced_bytes = number("byte", "bytes of a gradient in the reductions of full sharding; empty for 2")
    grouped_tile_tokens = measured("grouped_tile_tokens", "on the maker's chips; empty for none")
    tensorwise_shards = share("1 if its sharded optimizer cuts tensors one by one; empty for flat buffers")
    batch_per_device = share("1 if its batch size is that of one device, also where several share a model")


class FrameworkFeatures(Sourced):
    """Features of training software.

    A row is a feature that recipes of a framework use from a release on; of other frameworks they never use it.
    """

    feature = key("feature and framework", unique=True, pattern=STATEMENT, entity=True)
    framework = reference("frameworks.framework", "training software", required=True)
    quantity = text(
        "quantity of the vocabulary, or layer_graphs: captured graphs launch attention and routing", required=True
    )
    since_year = number("a", "year and part of a year of the release")
    release = text("name of the release, where it is known")


class PerformanceConstants(Sourced):
    """Constants of the performance model.

    A row is one constant, the same for every model and chip. Rows with ``left_out`` hold the value found without the
    measured runs of that family, so that no family is judged by constants fitted on it.
    """

    constant = key("quantity and, after @, the family left out", unique=True, pattern=STATEMENT, entity=True)
    quantity = key("quantity of the vocabulary", vocabulary=True)
    left_out = text("family of measured runs that the value never saw; all_in if none", required=True)
    value = number("", "its value, in the unit of the vocabulary", required=True, positive=False)
    relative_error = number("1", "standard error of a fitted value over the value; empty if it was not fitted")
    prior = number("1", "value that the fit starts from and leans on, in the unit of the vocabulary")
    prior_spread = number("1", "how far the fit may leave it: standard deviation of the logarithm")
    how = text("how the value was found", required=True)


class HeldOut(Sourced):
    """Errors on held-out rows.

    A row is one way to keep measured runs from the constants of the performance model, and how far it then misses them:
    predicted over measured step time. `python -m benchmarks.validation` prints the rows.
    """

    held_out = key("held-out rows", unique=True, entity=True)
    rows_without = text("description of the held-out rows", required=True)
    rows = number("1", "measured runs predicted so")
    median_absolute_error = share("half of them are missed by less")
    ninetieth_absolute_error = share("nine tenths of them are missed by less")
    in_interval = share("share whose measured step lies in the predicted interval")
    order_in_sweeps = share("share of pairs of layouts of one sweep that it puts in the measured order")
    day = text("day of the computation", required=True)


class FewShots(Sourced):
    """Misses after a few measured layouts.

    A row is one family of measured runs that the constants never saw, and how far its other rows are missed once some
    of them calibrated the model; beside it, predictions scaled by the median of measured over predicted of the same
    rows. Means over four draws; `python -m benchmarks.validation` writes the rows.
    """

    few_shots = key("family, how rows were taken, and how many", unique=True, entity=True)
    family = text("family of measured runs", required=True)
    rows_taken = text(
        "how rows were taken: drawn, chosen by Calibration.design, or most (all but a fifth, each fifth in turn)",
        required=True,
        one_of=("drawn", "chosen", "most"),
    )
    measured_rows = number("1", "rows that calibrated; empty for most")
    median_absolute_error = number("1", "half of the other rows are missed by less")
    ninetieth_absolute_error = number("1", "nine tenths of the other rows are missed by less")
    in_interval = share("share of the other rows whose measured step lies in the predicted interval")
    scaled_median_error = number("1", "half of them are missed by less where predictions are scaled by one ratio")
    scaled_ninetieth_error = number("1", "nine tenths of them are missed by less where predictions are scaled")
