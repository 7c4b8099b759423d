"""Tables of the performance model: measured training runs, shapes of models, ceilings and links of chips, constants."""

from __future__ import annotations

import dataframely as dy

from factorykit.datasets.schemas import KEY, STATEMENT, Sourced, key, measured, number, reference, text


class TrainingRuns(Sourced):
    """Measured training runs.

    A row is one published measurement of a training run: its configuration and its outcome, as the source states
    them. Empty means unknown. The columns ``check_`` hold ratios of a recount to what the source states.
    """

    id = key("name of the row", unique=True, pattern=r"^[a-z0-9][a-z0-9._-]*$", entity=True)
    kind = text("what sort of statement", required=True)
    group = text(
        "rows that are near-copies of each other; the word before the first hyphen is the family", required=True
    )
    model = text("model as the source writes it", required=True)
    year = number("1", "calendar year of the measurement")
    organisation = text("who measured")
    total_params = number("1", "parameters as stated")
    active_params = number("1", "active parameters as stated")
    layers = number("1", "layers")
    hidden = number("1", "hidden size")
    heads = number("1", "attention heads")
    kv_heads = number("1", "key-value heads")
    head_dim = number("1", "head size")
    ffn = number("1", "feed-forward size")
    mlp_gated = number("1", "1 if the feed-forward is gated")
    experts = number("1", "routed experts")
    top_k = number("1", "experts per token")
    moe_ffn = number("1", "width of one expert")
    shared_experts = number("1", "shared experts")
    vocab = number("1", "vocabulary")
    seq_len = number("1", "sequence length")
    tokens = number("1", "tokens of the run")
    hardware = text("chip as the source writes it")
    accelerator_count = number("1", "accelerators")
    tp = number("1", "tensor parallel")
    pp = number("1", "pipeline parallel")
    vp = number("1", "virtual stages")
    dp = number("1", "data parallel")
    ep = number("1", "expert parallel")
    cp = number("1", "context parallel")
    sharding = text("how state is sharded, as the source writes it")
    micro_batch = number("1", "sequences of one micro-batch")
    global_batch = number("1", "sequences of one step")
    global_batch_tokens = number("1", "tokens of one step")
    precision = text("number format as the source writes it")
    recompute = text("recomputation as the source writes it")
    step_time_s = number("s", "time of one step")
    tokens_per_s_per_gpu = number("1/s", "tokens per second and chip")
    gpu_hours = number("h", "chip-hours of the run")
    wall_days = number("d", "days of the run")
    mfu = number("1", "model FLOP utilization, by the source's own convention")
    hfu = number("1", "hardware FLOP utilization, by the source's own convention")
    tflops_per_gpu = number("1", "TFLOP/s per chip, by the source's own convention")
    flops_basis = text("model: recomputation not counted; hardware: counted")
    mem_gib_per_gpu = number("1", "GiB of memory per chip")
    energy_mwh = number("1", "MWh of the run")
    energy_basis = text("how the energy was found")
    power_w_per_accelerator = number("W", "power per chip")
    pue = number("1", "power usage effectiveness")
    co2_t = number("t", "emissions")
    cost_usd = number("USD", "cost, nominal")
    cost_basis = text("how the cost was found")
    interruptions = number("1", "interruptions of the run")
    effective_training_time = number("1", "share of time that trains")
    checkpoint_tb = number("1", "TB of a checkpoint")
    checkpoint_save_s = number("s", "time to save a checkpoint")
    network = text("network as the source writes it")
    confidence = text("published, derived by arithmetic, or estimated", required=True)
    check_params = number("1", "ratio of a recount to what the source states")
    check_world = number("1", "ratio of a recount to what the source states")
    check_step = number("1", "ratio of a recount to what the source states")
    check_tflops = number("1", "ratio of a recount to what the source states")
    check_mfu_6nd = number("1", "ratio of a recount to what the source states")
    flags = text("why a row does not add up")


class Architectures(Sourced):
    """Architectures.

    A row is the shape of one model as its public configuration file states it.
    """

    architecture = key("name of the model in all tables", unique=True, entity=True)
    name = text("name as its makers write it", required=True)
    layers = measured("layers")
    dense_layers = measured("dense_layers")
    hidden_size = measured("hidden_size")
    ffn_size = measured("ffn_size")
    gated_ffn = measured("gated_ffn")
    attention_heads = measured("attention_heads")
    kv_heads = measured("kv_heads")
    head_size = measured("head_size")
    rope_head_size = measured("rope_head_size")
    value_head_size = measured("value_head_size")
    query_rank = measured("query_rank")
    kv_rank = measured("kv_rank")
    vocabulary_size = measured("vocabulary_size")
    tied_embeddings = measured("tied_embeddings")
    experts = measured("experts")
    experts_per_token = measured("experts_per_token")
    shared_experts = measured("shared_experts")
    expert_ffn_size = measured("expert_ffn_size")
    mtp_layers = measured("mtp_layers")


class Ceilings(Sourced):
    """Matrix-product ceilings.

    A row is the best rate that any matrix product reached on one chip alone, dense, by a search over shapes.
    """

    ceiling = key("chip and precision", unique=True, pattern=STATEMENT, entity=True)
    accelerator = reference("accelerators.accelerator", "chip", required=True)
    precision = text("number format", required=True, one_of=("bf16", "fp8"))
    gemm_flop_per_s = number("FLOP/s", "best rate of a matrix product")


class Links(Sourced):
    """Links out of the scale-up domain.

    A row is the network link that a chip usually has in published systems; a run that states its own overrides it.
    """

    accelerator = dy.String(
        primary_key=True,
        nullable=False,
        regex=KEY,
        description="chip",
        metadata={"references": "accelerators.accelerator", "entity": True},
    )
    scale_out_bytes_per_s = measured("scale_out_bytes_per_s")
    scale_up_fallback_bytes_per_s = number(
        "byte/s", "fast fabric per chip and direction where the accelerators table is empty"
    )
    technology = text("kind of network", required=True)
    topology = text("how switches are joined", required=True)


class PerformanceConstants(Sourced):
    """Constants of the performance model.

    A row is one constant, the same for every model and chip. Rows with ``left_out`` hold the value found without the
    measured runs of that family, so that no family is judged by constants fitted on it.
    """

    constant = key("quantity and, after @, the family left out", unique=True, pattern=STATEMENT, entity=True)
    quantity = dy.String(
        nullable=False, regex=KEY, description="quantity of the vocabulary", metadata={"vocabulary": True}
    )
    left_out = text("family of measured runs that the value never saw; all_in if none", required=True)
    value = dy.Float64(nullable=False, description="its value, in the unit of the vocabulary", metadata={"unit": ""})
    relative_error = number("1", "standard error of a fitted value over the value; empty if it was not fitted")
    prior = number("1", "value that the fit starts from and leans on, in the unit of the vocabulary")
    prior_spread = number("1", "how far the fit may leave it: standard deviation of the logarithm")
    how = text("how the value was found", required=True)
