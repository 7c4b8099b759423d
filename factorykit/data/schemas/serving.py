"""Tables of serving: measured latency by layout, and published inference results."""

from __future__ import annotations

from factorykit.data.schemas.fields import Sourced, day, key, measured, number, reference, text


class ServingPoints(Sourced):
    """Serving points.

    A row is one measured point of an inference engine on one layout at one concurrency, with the columns of its source.
    Milliseconds are as in the source. Rows of several exports of one database may repeat a measurement.
    """

    id = key("name of the row", unique=True, pattern=r"^[a-z0-9][a-z0-9_.-]*$", entity=True)
    backend = text("inference engine", required=True)
    backend_version = text("version of the engine")
    model_path = text("model, as the source states it", required=True)
    system = text("chip, as the source states it", required=True)
    precision = text("number format, as the source states it")
    mode = text("prompts and decode on the same accelerators, or apart", required=True, one_of=("agg", "disagg"))
    isl = number("1", "input tokens")
    osl = number("1", "output tokens")
    gemm_quant_mode = text("number format of matrix products")
    moe_quant_mode = text("number format of routed experts")
    concurrency = number("1", "requests in flight over all workers")
    batch_size = number("1", "requests of one group of attention data parallelism")
    tp_size = number("1", "tensor parallel")
    pp_size = number("1", "pipeline parallel")
    attention_dp_size = number("1", "attention data parallel")
    moe_tp_size = number("1", "tensor parallel of experts")
    moe_ep_size = number("1", "expert parallel")
    prefill_batch_size = number("1", "prompts of one prefill worker")
    prefill_num_workers = number("1", "prefill workers")
    prefill_tp_size = number("1", "tensor parallel of prefill workers")
    prefill_pp_size = number("1", "pipeline parallel of prefill workers")
    prefill_attention_dp_size = number("1", "attention data parallel of prefill workers")
    prefill_moe_tp_size = number("1", "tensor parallel of the experts of prefill workers")
    prefill_moe_ep_size = number("1", "expert parallel of prefill workers")
    decode_batch_size = number("1", "requests of one group of a decode worker")
    decode_num_workers = number("1", "decode workers")
    decode_tp_size = number("1", "tensor parallel of decode workers")
    decode_pp_size = number("1", "pipeline parallel of decode workers")
    decode_attention_dp_size = number("1", "attention data parallel of decode workers")
    decode_moe_tp_size = number("1", "tensor parallel of the experts of decode workers")
    decode_moe_ep_size = number("1", "expert parallel of decode workers")
    silicon_ttft_ms = number("ms", "time to first token")
    silicon_tpot_ms = number("ms", "time per output token")


class ServingRecipes(Sourced):
    """Serving recipes.

    A row is one published configuration of a benchmark: the workers of both sides at one concurrency, those of prefill
    missing where prompts and decode share accelerators, and the days of its use. No result is in it.
    """

    serving_recipe = key("name of the row", unique=True, pattern=r"^[a-z0-9_]+$", entity=True)
    engine = text("inference engine", required=True)
    accelerator = reference("accelerators.accelerator", "chip", required=True)
    architecture = reference("architectures.architecture", "model", required=True)
    number_format = text("number format of the weights", required=True)
    isl = number("1", "input tokens")
    osl = number("1", "output tokens")
    concurrency = number("1", "requests in flight over all workers")
    prefill_num_workers = number("1", "prefill workers")
    prefill_tp_size = number("1", "tensor parallel of prefill workers")
    prefill_moe_ep_size = number("1", "expert parallel of prefill workers")
    prefill_attention_dp_size = number("1", "attention data parallel of prefill workers")
    decode_num_workers = number("1", "decode workers")
    decode_tp_size = number("1", "tensor parallel of decode workers")
    decode_moe_ep_size = number("1", "expert parallel of decode workers")
    decode_attention_dp_size = number("1", "attention data parallel of decode workers")
    draft_tokens = number("1", "tokens that the prediction layers of the model draft in each decode step")
    engine_version = text("version of the engine, of rows without separate prefill")
    first_used = day("first day in the configuration", required=True)
    last_used = day("last day in the configuration that was read", required=True)


class ServingDevices(Sourced):
    """Serving devices.

    A row is a device of inference results that is no accelerator of a training cluster: a node of two processors, or a
    card of two small chips.
    """

    serving_device = key("device", unique=True, entity=True)
    named = text("word in the name of the device or processor, in lower case", required=True)
    peak_16bit_flop_per_s = measured("peak_16bit_flop_per_s")
    accelerator_memory_bytes = measured("accelerator_memory_bytes")
    memory_bytes_per_s = measured("memory_bytes_per_s")


class ServingBenchmarks(Sourced):
    """Serving benchmarks.

    A row is what one source states of a language model of MLPerf Inference: the tokens of its requests, their mean and
    variation, or the limits that the 99th percentile of the latencies of a scenario has to keep.
    """

    serving_benchmark = key("model of the benchmark, and what is stated of it", unique=True, entity=True)
    architecture = reference("architectures.architecture", "its architecture", required=True)
    scenario = text("scenario with these limits", one_of=("Server", "Interactive"))
    input_tokens = measured("input_tokens")
    output_tokens = measured("output_tokens")
    input_tokens_cv = measured("input_tokens_cv")
    output_tokens_cv = measured("output_tokens_cv")
    time_to_first_token_tail_s = measured("time_to_first_token_tail_s")
    time_per_output_token_tail_s = measured("time_per_output_token_tail_s")


class InferenceResults(Sourced):
    """Inference results.

    A row is one result of one submission to MLPerf Inference, closed division: tokens per second of a whole system.
    """

    id = key("submission, model and scenario", unique=True, pattern=r"^[a-z0-9][a-z0-9_.-]*$", entity=True)
    submitter = text("submitter", required=True)
    system = text("system", required=True)
    benchmark = text("model and accuracy of the benchmark", required=True)
    scenario = text("scenario of the benchmark", required=True, one_of=("Offline", "Server", "Interactive"))
    nodes = number("1", "nodes")
    accelerator = reference("accelerators.accelerator", "chip, where it is one and known")
    accelerator_stated = text("chip, as the source states it")
    accelerators_per_node = number("1", "chips of one node")
    processor = text("host processor")
    software = text("software", required=True)
    weight_data_types = text("number format of the weights")
    tokens_per_s = number("1/s", "output tokens per second of the system")


class ServingConstants(Sourced):
    """Constants of serving: of engines, and of the residuals.

    A row is one constant of the Gaussian process of a latency or of benchmark throughput: standard deviations of
    logarithms, shares that carry over between groups, length scales of features in their order, and half widths of 90 %
    intervals in standard deviations. Those of an engine are the prompts before an arriving one, over the requests in
    flight in a benchmark, the overhead of a request, and the decode steps for which its first token waits: always, and
    where attention is data parallel (one step for engines without such rows).
    """

    serving_constant = key(
        "name of the row: target and name", unique=True, pattern=r"^[a-z0-9_]+@[A-Za-z0-9_]+$", entity=True
    )
    target = text(
        "what is predicted, or the engine of which it is a constant",
        required=True,
        one_of=("ttft", "tpot", "benchmark", "vllm", "sglang", "trtllm", "other"),
    )
    name = text("constant", required=True)
    value = number("1", "value")
