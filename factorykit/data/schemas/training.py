"""Tables of training: published and measured runs, shapes of models, layouts, recipes, stages of growth."""

from __future__ import annotations

from typing import Final, Literal

import dataframely as dy
import polars as pl

from factorykit.core.vocabulary import vocabulary
from factorykit.data.schemas.fields import Entity, Sourced, Stated, address, day, key, measured, number, reference, text

Closed = Literal["both", "left", "right", "none"]
CLOSED: Final[dict[str, Closed]] = {"[]": "both", "[)": "left", "(]": "right", "()": "none"}
"""Names of the interval types in polars, by brackets."""


class RunFields(dy.Schema):
    """Columns of the tables about runs."""

    model = text("model as the source writes it", required=True)
    organisation = text("who trains it")
    parameters = measured("parameters")
    active_parameters = measured("active_parameters", "or all of them where a source gives one number")
    tokens = measured("tokens")
    training_flop = measured("training_flop", "as the source states it; `runs` computes it where no source does")
    cluster = reference("clusters.cluster", "cluster it ran on")
    accelerator = reference("accelerators.accelerator", "chip, where the source names exactly one")
    accelerator_stated = text("chips as the source writes them")
    accelerators = measured("accelerators")
    accelerators_low = measured("accelerators", "lower end of a range")
    accelerators_high = measured("accelerators", "upper end of a range")
    mfu = measured("mfu")
    wall_days = measured("wall_days")
    wall_days_low = measured("wall_days", "lower end of a range")
    wall_days_high = measured("wall_days", "upper end of a range")
    duration_stated = text("duration, or its formula, as the source writes it")
    accelerator_hours = measured("accelerator_hours")
    cost_usd = number("USD", "cost as the source states it, nominal")
    benchmark = text("results that the source names with the run")
    qualifier = text("qualifier in the source: estimated, about, up to")
    model_key = reference("models.model", "the model of the models table that it trains")
    address = address()


class RunStatements(RunFields, Stated):
    """Statements about runs.

    A row is the statement of one source, in one place, about one training run, or about a size of run. Durations are
    wall-clock as the source gives them; MFU is the source's own, whatever it counts. The table `runs` picks from them.
    """

    run = key("name of the run in all tables", entity=True)
    example = text("why the row is an example and no run that took place, and in no row of `runs`")


class Runs(RunFields, Entity):
    """Training runs.

    A row is one training run with the best value of each field. `statements` holds the source of each. Sizes and
    comparisons that a document speaks of are no runs: `run_statements` holds them as examples.
    """

    run = key("name of the run in all tables", unique=True, entity=True)
    training_flop_basis = text(
        "whether the training compute is stated, or computed as 6 x active parameters x tokens",
        one_of=("stated", "computed"),
    )


class ModelFields(dy.Schema):
    """Columns of the tables about models."""

    name = text("name as the source writes it", required=True)
    made_by = text("who made it, as the source writes it")
    organisation = reference("organisations.organisation", "the first of its makers in the organisations table")
    released = day("when it appeared")
    parameters = measured("parameters")
    active_parameters = measured("active_parameters")
    architecture = reference("architectures.architecture", "its shape in the architectures table")
    address = address()


class ModelStatements(ModelFields, Stated):
    """Statements about models.

    A row is the statement of one source about one model: who made it, how large it is, when it appeared.
    """

    model = key("name of the model in all tables", entity=True)


class Models(ModelFields, Entity):
    """Models.

    A row is one model with the best value of each field, and the known facts of the run that trained it.
    """

    model = key("name of the model in all tables", unique=True, entity=True)
    run = reference("runs.run", "the run that trained it: of several the one of which most is known")
    tokens = measured("tokens", "of that run")
    training_flop = measured("training_flop", "of that run, as stated")
    accelerator = reference("accelerators.accelerator", "chip of that run")
    accelerators = measured("accelerators", "of that run")
    accelerator_hours = measured("accelerator_hours", "of that run")
    wall_days = measured("wall_days", "of that run")


PRECISIONS: Final = ("bf16", "fp16", "fp8", "mxfp8", "nvfp4", "int8", "tf32")
MEMORY_MEASURES: Final = ("allocated", "reserved", "process")
ENERGY_BASES: Final = ("measured", "measured power x hours", "tdp x hours", "estimated (power x hours)")
CAPTURED: Final = ("none", "yes", "transformer_engine", "full_iteration")
OPTIMIZERS: Final = ("adam_8bit", "adafactor", "sgd", "lion", "muon")


class TrainingRuns(Sourced):
    """Measured training runs.

    A row is one published measurement of a training run: its configuration and its outcome, as the source states
    them. Empty means unknown. Columns ending in ``_stated`` keep the source's words; predictions read the columns with
    numbers and fixed choices, never words. The columns ``check_`` hold ratios of a recount to the stated value.
    """

    id = key("name of the row", unique=True, pattern=r"^[a-z0-9][a-z0-9._-]*$", entity=True)
    kind = text("type of statement", required=True)
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
    accelerator = reference("accelerators.accelerator", "chip")
    accelerator_memory_bytes = measured("accelerator_memory_bytes", "where it differs from the accelerators table")
    devices_per_accelerator = number("1", "devices of one chip, where the source counts devices instead of chips")
    power_limit_w = number("W", "power limit of a chip, where the source states one")
    power_limited = number("1", "1 if the power of the chips is limited to a value that the source does not state")
    accelerator_stated = text("chip as the source writes it")
    accelerator_count = number("1", "accelerators")
    tp = number("1", "tensor parallel")
    pp = number("1", "pipeline parallel")
    vp = number("1", "virtual stages")
    dp = number("1", "data parallel")
    ep = number("1", "expert parallel")
    cp = number("1", "context parallel")
    etp = number("1", "expert tensor parallel")
    zero_stage = measured("zero_stage")
    optimizer_shards = measured("optimizer_shards", "where they are fewer than the ranks that hold a weight")
    offloaded_optimizer_share = measured("offloaded_optimizer_share")
    sharding_stated = text("how state is sharded, as the source writes it")
    micro_batch = number("1", "sequences of one micro-batch of all chips that share a model")
    global_batch = number("1", "sequences of one step")
    global_batch_tokens = number("1", "tokens of one step")
    precision = text("number format of matrix products", one_of=PRECISIONS)
    precision_stated = text("number format as the source writes it")
    recompute = text("layers or parts recomputed in the backward pass", one_of=("none", "selective", "modules", "full"))
    kept_share = measured("kept_share")
    activation_offload_share = measured("activation_offload_share")
    recompute_stated = text("recomputation as the source writes it")
    step_time_s = number("s", "time of one step")
    tokens_per_s_per_gpu = number("1/s", "tokens per second and chip")
    gpu_hours = number("h", "chip-hours of the run")
    gpu_hours_basis = text("step_time: the hours are steps times step time, without stops", one_of=("step_time",))
    wall_days = number("d", "days of the run")
    mfu = number("1", "model FLOP utilization, by the source's own convention")
    hfu = number("1", "hardware FLOP utilization, by the source's own convention")
    tflops_per_gpu = number("1", "TFLOP/s per chip, by the source's own convention")
    flops_basis = text("model: recomputation not counted; hardware: counted")
    mem_gib_per_gpu = number("1", "GiB of memory per chip")
    memory_measure = text(
        "memory that was read: tensors, the allocator's blocks, or all memory of the process", one_of=MEMORY_MEASURES
    )
    energy_mwh = number("1", "MWh of the run")
    energy_basis = text("how the energy was found", one_of=ENERGY_BASES)
    energy_boundary = text("it_equipment: the energy excludes cooling and conversion", one_of=("it_equipment",))
    power_w_per_accelerator = number("W", "power per chip")
    pue = number("1", "power usage effectiveness")
    co2_t = number("t", "emissions")
    cost_usd = number("USD", "cost, nominal")
    cost_basis = text("how the cost was found")
    interruptions = number("1", "interruptions of the run")
    effective_training_time = number("1", "share of time that trains")
    checkpoint_tb = number("1", "TB of a checkpoint")
    checkpoint_save_s = number("s", "time to save a checkpoint")
    accelerators_per_node = number("1", "chips of a node, where the source states them")
    scale_up_bytes_per_s = measured("scale_up_bytes_per_s", "where the link is slower than the chip's")
    scale_out_bytes_per_s = measured("scale_out_bytes_per_s", "as the source states it")
    fabric = text("network between nodes, where it is neither InfiniBand nor RoCE", one_of=("omni_path", "efa"))
    network_stated = text("network as the source writes it")
    framework = reference("frameworks.framework", "training software, or software whose own pages the source is")
    framework_stated = text("training software as the source writes it")
    framework_version = text("its version")
    cuda_graphs = text("parts of a step that CUDA graphs capture", one_of=CAPTURED)
    release_month = text("month of the software's release or of the measurement, as year-month")
    schedule = text("pipeline schedule", one_of=("1f1b", "dualpipe", "zb1p", "zb2p"))
    sequence_parallel = measured("sequence_parallel")
    mtp_layers = measured("mtp_layers")
    gradient_accumulation_steps = number("1", "micro-batches of each replica per step")
    optimizer = text("optimizer, where it is not Adam", one_of=OPTIMIZERS)
    optimizer_state_bits = number("1", "bits of a number of the optimizer state, where it is not 32")
    gradient_bits = number("1", "bits of an accumulated gradient, where the source states them")
    lora_rank = measured("lora_rank")
    lora_matrices = text("matrices with adapters", one_of=("all", "attention", "query_value"))
    adapter_dropout = measured("adapter_dropout")
    weight_bits = measured("weight_bits")
    fused_kernels = measured("fused_kernels", "where it differs from the framework's default")
    flash_attention = measured("flash_attention", "where it differs from the framework's default")
    native_attention = measured("native_attention", "as the source states it")
    dispatched_once = measured("dispatched_once", "where it differs from the framework's default")
    dispatch_masks = measured("dispatch_masks", "as the source states it")
    expert_imbalance = measured("expert_imbalance", "capacity factor, as the source states it")
    expert_overlap = measured("expert_overlap", "where it differs from the framework's default")
    interleaved_overlap = measured("interleaved_overlap", "where it differs from the framework's default")
    chunked_loss = measured("chunked_loss", "where it differs from the framework's default")
    whole_logits = measured(
        "whole_logits", "0.25: 16-bit logits in one kernel, 8 bytes instead of 14 a token and entry"
    )
    submitter = text("who submitted the result, where that is not who published it")
    confidence = text("published, derived by arithmetic, or estimated", required=True)
    check_params = number("1", "ratio of the recomputed value to that of the source")
    check_world = number("1", "ratio of the recomputed value to that of the source")
    check_step = number("1", "ratio of the recomputed value to that of the source")
    check_tflops = number("1", "ratio of the recomputed value to that of the source")
    check_mfu_6nd = number("1", "ratio of the recomputed value to that of the source")
    flags = text("why a row does not add up")


class FailedLayouts(Sourced):
    """Layouts without a result.

    A row is a layout of a published sweep for which its authors report no result; most ran out of memory, some failed
    otherwise, which is not stated.
    """

    layout = key("name of the row", unique=True, pattern=r"^[a-z0-9][a-z0-9._-]*$", entity=True)
    like = text("row of training_runs with the same model, chip and framework", required=True)
    accelerator_count = number("1", "accelerators")
    tp = number("1", "tensor parallel")
    pp = number("1", "pipeline parallel")
    dp = number("1", "data parallel")
    micro_batch = number("1", "sequences of one micro-batch of all chips that share a model")
    global_batch = number("1", "sequences of one step")
    zero = number("1", "stage of ZeRO sharding")


class MultiSiteRuns(Sourced):
    """Runs across data centres.

    A row is a run over several sites, measured or simulated by its authors: the exchanged data, how often, and the rate
    between sites, the time of an exchange or the utilization that they state. A simulated row gives the rate that its
    utilization needs.
    """

    multi_site_run = key("name of the row", unique=True, entity=True)
    name = text("name for reading", required=True)
    method = text("how sites are kept together", required=True)
    kind = text("whether the sites existed", required=True, one_of=("measured", "simulated"))
    parameters = measured("parameters")
    training_sites = measured("training_sites")
    inner_steps = measured("inner_steps")
    outer_bits = measured("outer_bits")
    outer_fragments = measured("outer_fragments")
    outer_hidden_steps = measured("outer_hidden_steps")
    inner_step_s = measured("inner_step_s")
    outer_exchange_s = measured("outer_exchange_s")
    wan_bytes_per_s = measured("wan_bytes_per_s")
    site_distance_m = measured("site_distance_m")
    wan_latency_s = measured("wan_latency_s")
    site_utilization = measured("site_utilization")


class Presets(Sourced):
    """Presets.

    A row is one input of one published run, cluster or example, under its name in the vocabulary. Values
    without a source are omitted. The note marks values computed from printed facts.
    """

    preset = key("name of the preset", unique=True, entity=True)
    label = text("name for reading", required=True)
    kind = text("described object", required=True, one_of=("run", "cluster", "example"))
    quantity = key("quantity of the vocabulary", unique=True, vocabulary=True)
    value = number("", "its value, in the unit of the vocabulary", required=True, positive=False)

    @dy.rule()
    def value_is_within_the_bounds_of_its_quantity(cls) -> pl.Expr:  # noqa: N805
        """Compare each value with the bounds that the vocabulary gives its quantity."""
        return _within_bounds()


class Defaults(Sourced):
    """Defaults.

    A row is the value at which a quantity of the vocabulary starts, and where that value comes from: stated by the
    source, computed from its numbers, neutral because it leaves the part out, or chosen here, without a statement about
    the world. Values that are asked for are where sliders start; no question assumes them.
    """

    quantity = key("quantity of the vocabulary", unique=True, vocabulary=True, entity=True)
    value = number("", "default of the vocabulary, in its unit", required=True, positive=False, default_of="quantity")
    basis = text("where it comes from", required=True, one_of=("stated", "computed", "neutral", "chosen"))
    grows_with = text("quantity that it is in proportion to, where that one is given; the value is that at its default")
    asked = text("a question that needs the quantity asks for it", one_of=("yes",))


class Ranges(Sourced):
    """Ranges.

    A row is the range in which a quantity lies nine times out of ten where it is not given; plans draw from it.
    """

    quantity = key("quantity of the vocabulary", unique=True, vocabulary=True, entity=True)
    low = number("", "5 % lie below", required=True, positive=False)
    high = number("", "5 % lie above", required=True, positive=False)

    @dy.rule()
    def low_is_below_high(cls) -> pl.Expr:  # noqa: N805
        """Compare the two ends."""
        return pl.col("low") < pl.col("high")

    @dy.rule()
    def ends_are_within_the_bounds_of_their_quantity(cls) -> pl.Expr:  # noqa: N805
        """Compare both ends with the bounds that the vocabulary gives the quantity."""
        return _within_bounds("low") & _within_bounds("high")


def _within_bounds(column: str = "value") -> pl.Expr:
    """Return whether numbers are within the bounds of their row's quantity; those that share bounds go together."""
    alike: dict[tuple[float, float, Closed], list[str]] = {}
    for this in vocabulary().values():
        if not this.is_text:
            alike.setdefault((this.lower, this.upper, CLOSED[this.bounds[0] + this.bounds[-1]]), []).append(this.name)
    return pl.any_horizontal(
        pl.col("quantity").is_in(names) & pl.col(column).is_between(low, high, closed=closed)
        for (low, high, closed), names in alike.items()
    )


class Architectures(Sourced):
    """Architectures.

    A row is the shape of one model as its public configuration file or its paper states it, zero where it has
    nothing of the kind; prediction layers are left out.
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
    attention_window = measured("attention_window")
    windowed_layers_share = measured("windowed_layers_share")
    q_lora_rank = measured("q_lora_rank")
    kv_lora_rank = measured("kv_lora_rank")
    vocabulary_size = measured("vocabulary_size")
    tied_embeddings = measured("tied_embeddings")
    experts = measured("experts")
    experts_per_token = measured("experts_per_token")
    shared_experts = measured("shared_experts")
    expert_ffn_size = measured("expert_ffn_size")
    mtp_layers = measured("mtp_layers")
    expert_biases = measured("expert_biases")
    gated_attention = measured("gated_attention")
    index_heads = measured("index_heads")
    index_head_size = measured("index_head_size")
    attention_layers = measured("attention_layers", "empty where all layers without a state attend")
    linear_attention_layers = measured("linear_attention_layers")
    ffn_layers = measured("ffn_layers", "empty where every layer has one")
    linear_key_heads = measured("linear_key_heads")
    linear_key_size = measured("linear_key_size")
    linear_value_heads = measured("linear_value_heads")
    linear_value_size = measured("linear_value_size")
    convolution_width = measured("convolution_width")
    linear_gates = measured("linear_gates")
    linear_gate_rank = measured("linear_gate_rank")
    step_rank = measured("step_rank")
    state_element_flop = measured("state_element_flop")


class ConfigDefaults(Sourced):
    """Defaults of configuration files.

    A row is the value that a field of a Hugging Face ``config.json`` has where the file leaves it out, by type of
    model; a few rows state facts for which there is no column.
    """

    model_type = key("type of model, as the field model_type names it", unique=True, entity=True)
    field = key("field of the file", unique=True)
    value = text("its value, as JSON writes it", required=True)


class Parallelism(Stated):
    """Parallelism and communication.

    A row is the statement of one source about one kind of parallelism, its traffic, a schedule, or a code base.
    """

    technique = key("name of the technique in this table", entity=True)
    name = text("name as the source writes it", required=True)
    kind = text("type of statement", required=True)
    pattern = text("operation or transfer")
    data_volume = text("how much is sent, as the source writes it")
    frequency = text("how often")
    example = text("an example or a size it is for")


class Recipes(Sourced):
    """Recipe of a frontier run.

    A row is a step, pitfall, signal or concept that a source names for large training runs.
    """

    item = key("name of the row", unique=True, entity=True)
    kind = text("type of item", required=True)
    step = number("1", "place in the source's order")
    title = text("name of the item", required=True)
    detail = text("details in the source")


class Stages(Sourced):
    """Scaling stages.

    A row is the statement of a source about clusters of one size, or about the step from one size to the next.
    """

    stage = key("name of the row", unique=True, entity=True)
    accelerators = measured("accelerators")
    nodes = measured("nodes")
    challenges = text("challenges at this size")
    parallelism = text("how the model is split")
    network = text("network at this size")
    failures_stated = text("how often something fails, in the source's words")
    failures_per_day = measured("failures_per_day", "the same as a number")
    power_stated = text("power in the source's words")
    cooling_stated = text("cooling in the source's words")
    cluster_usd_per_h = measured("cluster_usd_per_h")
    change = text("changes on the way to this size")


class RlSteps(Sourced):
    """Steps of reinforcement learning.

    A row is one published step time of post-training, with the columns of the NeMo RL performance summary and, where a
    source states them, the split of the accelerators and the parts of the step.
    """

    id = key("name of the row", unique=True, entity=True)
    section = text("chip and number format, as the source states them", required=True)
    framework = text("software", required=True)
    algorithm = text("algorithm", required=True)
    model = text("model, as the source states it", required=True)
    policy = text("on policy, or by how many steps off", required=True)
    train_max_sequence_length = number("1", "most tokens of a sequence")
    prompt_mean_sequence_length = number("1", "tokens of a prompt, mean")
    generation_mean_sequence_length = number("1", "tokens generated for a sample, mean")
    gpus = number("1", "accelerators")
    trainer_gpus = number("1", "accelerators of the trainer, where they are apart")
    rollout_gpus = number("1", "accelerators that generate, where they are apart")
    generation_global_batch = number("1", "samples of a step")
    train_global_batch = number("1", "samples of an optimizer step")
    generation_tp_pp = text("tensor and pipeline parallel of rollouts")
    train_tp_cp_ep_pp_vpp = text("tensor, context, expert and pipeline parallel, and virtual stages of the trainer")
    tokens_per_s_per_gpu = number("1/s", "tokens per second and accelerator")
    step_time_s = number("s", "time of a step")
    rollout_s = measured("rollout_s")
    log_probability_s = measured("log_probability_s")
    policy_update_s = measured("policy_update_s")
    weight_sync_s = measured("weight_sync_s")
