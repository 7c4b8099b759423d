"""Memory of the most loaded rank: weights, gradients, optimizer state, activations and workspace."""

from __future__ import annotations

from factorykit.core.types import Numeric
from factorykit.formulas.functions import equal, maximum, minimum, where

AGAIN = 50.0 / 34.0
"""Activations of a layer at work over those it keeps, where it is recomputed: the gradients of the two inner tensors of
a plain feed-forward, of 8 bytes a token and hidden element each, live beside the 34 bytes."""
GATHERED_BYTES = 2.0
"""Bytes for each token and hidden element that eager code keeps of gathered inputs on every tensor-parallel rank: one
of two inputs on average, as measured of nanotron's layouts before and after it gathered them again."""
MOST_GATHERED = 8.0
"""Ranks beyond which these bytes shrink with their number: larger groups were measured after that."""


def micro_batch_tokens(micro_batch_size: Numeric, sequence_length: Numeric, context_parallel: Numeric) -> Numeric:
    """Tokens of one micro-batch on one rank.

    .. math:: T = b s / c

    Examples
    --------
    >>> micro_batch_tokens(1.0, 8192.0, 2.0)
    4096.0
    """
    return micro_batch_size * sequence_length / context_parallel


def gradient_bytes_per_parameter(zero_stage: Numeric) -> Numeric:
    r"""Default number of bytes of one gradient.

    .. math:: b_g = 2 \quad (z \ge 2), \qquad 4 \quad \text{otherwise}

    Notes
    -----
    Megatron sums gradients in 32 bits; ZeRO 2 and 3 as published keep 16.

    References
    ----------
    .. [rajbhandari2020] section 3.1
    .. [megatronlm] megatron/training/theoretical_memory_usage.py: 18 bytes

    Examples
    --------
    >>> gradient_bytes_per_parameter(1.0)
    4.0
    """
    return where(zero_stage >= 2.0, 2.0, 4.0)


def stage_ffn_layers(stage_layers: Numeric, layers: Numeric, ffn_layers: Numeric) -> Numeric:
    r"""Feed-forward blocks of the fullest stage: as many as a mean stage of that depth has.

    .. math:: L_{s,f} = L_s L_f / L

    Examples
    --------
    >>> stage_ffn_layers(8.0, 80.0, 80.0)
    8.0
    """
    return stage_layers * ffn_layers / layers


def stage_moe_layers(stage_ffn_layers: Numeric, moe_layers: Numeric) -> Numeric:
    r"""Default number of layers with routed experts on the rank that has most of them.

    .. math:: L_{s,e} = \min(L_{s,f}, L_e)

    Notes
    -----
    Never less than the truth: some stage may have no dense layer. The reference takes the mean over stages.

    Examples
    --------
    >>> stage_moe_layers(4.0, 58.0)
    4.0
    """
    return minimum(stage_ffn_layers, moe_layers)


def stage_sharded_parameters(
    stage_layers: Numeric,
    stage_ffn_layers: Numeric,
    stage_moe_layers: Numeric,
    mtp_layers: Numeric,
    mixing_parameters: Numeric,
    ffn_parameters: Numeric,
    shared_parameters: Numeric,
    embedding_parameters: Numeric,
    tied_embeddings: Numeric,
    tensor_parallel: Numeric,
    pipeline_parallel: Numeric,
) -> Numeric:
    r"""Weights of the fullest rank that tensor parallelism splits.

    .. math::
        N_s = \frac{1}{t} \left[(L_s + L_m) N_{mix} + (L_{s,f} - L_{s,e}) N_{ffn} + L_{s,e} N_{sh} + k_v N_{emb}\right]

    Notes
    -----
    An embedding sits on the first stage and the logits' matrix on the last, so a rank holds :math:`k_v = 1` of them;
    with one stage both, unless they are one matrix. Prediction layers count on the same rank, as the reference does.

    References
    ----------
    .. [megatronlm] megatron/training/theoretical_memory_usage.py

    Examples
    --------
    >>> stage_sharded_parameters(12.0, 12.0, 0.0, 0.0, 603979776.0, 1207959552.0, 0.0, 629145600.0, 1.0, 8.0, 8.0)
    2796552192.0
    """
    experts_too = stage_moe_layers + where(stage_moe_layers > 0.0, mtp_layers, 0.0)
    dense = stage_ffn_layers + mtp_layers - experts_too
    matrices = where(pipeline_parallel > 1.0, 1.0, 2.0 - tied_embeddings)
    blocks = (stage_layers + mtp_layers) * mixing_parameters + dense * ffn_parameters
    return (blocks + experts_too * shared_parameters + matrices * embedding_parameters) / tensor_parallel


def stage_embedding_parameters(
    embedding_parameters: Numeric,
    tied_embeddings: Numeric,
    tensor_parallel: Numeric,
    pipeline_parallel: Numeric,
) -> Numeric:
    r"""Weights of embedding and logits' matrix on the fullest rank; a part of the sharded weights.

    .. math:: N_v = k_v N_{emb} / t

    Examples
    --------
    >>> stage_embedding_parameters(629145600.0, 1.0, 8.0, 8.0)
    78643200.0
    """
    matrices = where(pipeline_parallel > 1.0, 1.0, 2.0 - tied_embeddings)
    return matrices * embedding_parameters / tensor_parallel


def stage_replicated_parameters(
    stage_layers: Numeric,
    stage_moe_layers: Numeric,
    mtp_layers: Numeric,
    replicated_parameters: Numeric,
    router_parameters: Numeric,
    norm_vectors: Numeric,
    hidden_size: Numeric,
) -> Numeric:
    """Weights of the fullest rank that every tensor-parallel rank repeats: norms and routers.

    .. math:: N_r = (L_s + L_m) N_{rep} + L_{s,e} N_{ro} + n_v h

    References
    ----------
    .. [megatronlm] megatron/training/theoretical_memory_usage.py

    Examples
    --------
    >>> stage_replicated_parameters(12.0, 0.0, 0.0, 49152.0, 0.0, 2.0, 12288.0)
    614400.0
    """
    experts_too = stage_moe_layers + where(stage_moe_layers > 0.0, mtp_layers, 0.0)
    norms = (stage_layers + mtp_layers) * replicated_parameters + norm_vectors * hidden_size
    return norms + experts_too * router_parameters


def stage_expert_parameters(
    stage_moe_layers: Numeric,
    mtp_layers: Numeric,
    routed_parameters: Numeric,
    expert_parallel: Numeric,
    expert_tensor_parallel: Numeric,
) -> Numeric:
    r"""Weights of routed experts on the fullest rank.

    .. math:: N_x = \frac{L_{s,e} N_{re}}{e t_e}

    References
    ----------
    .. [megatronlm] megatron/training/theoretical_memory_usage.py

    Examples
    --------
    >>> stage_expert_parameters(4.0, 0.0, 11274289152.0, 64.0, 1.0)
    704643072.0
    """
    experts_too = stage_moe_layers + where(stage_moe_layers > 0.0, mtp_layers, 0.0)
    return experts_too * routed_parameters / (expert_parallel * expert_tensor_parallel)


def memory_weights_bytes(
    stage_sharded_parameters: Numeric,
    stage_replicated_parameters: Numeric,
    stage_expert_parameters: Numeric,
    stage_embedding_parameters: Numeric,
    weight_bytes_per_parameter: Numeric,
    gradient_bytes_per_parameter: Numeric,
    optimizer_bytes_per_parameter: Numeric,
    lora_rank: Numeric,
    trained_share: Numeric,
    offloaded_weights_share: Numeric,
    offloaded_gradients_share: Numeric,
    offloaded_optimizer_share: Numeric,
    zero_stage: Numeric,
    data_parallel: Numeric,
    context_parallel: Numeric,
    optimizer_shards: Numeric,
    expert_data_parallel: Numeric,
    schedule: Numeric,
    state_factor: Numeric,
    accumulated_gradient_bytes: Numeric,
) -> Numeric:
    r"""Weights, gradients and optimizer state on the most loaded rank.

    .. math::
        k_S \left[(N_s + N_r)\, \beta(n_z) + N_x\, \beta\!\left(\frac{d_e n_z}{d c}\right)
        + \frac{\max(2 - b_w, 0) N_v}{[n_z]_{z \ge 3}} + \tau b_a (N_s + N_r + N_x)\right], \qquad
        \beta(d) = (1 - \omega_w) \frac{b_w k_w + 2 \tau [r > 0]}{[d]_{z \ge 3}}
        + (1 - \omega_g) \frac{\tau b_g}{[d]_{z \ge 2}} + (1 - \omega_o) \frac{\tau b_o}{[d]_{z \ge 1}}

    Notes
    -----
    The bracket divides by :math:`d` from that ZeRO stage on and by one below. Hybrid sharding keeps several copies of
    the shards, each on :math:`n_z` of the :math:`d c` ranks. DualPipe keeps two copies of the weights,
    :math:`k_w = 2`. Experts are sharded over their own copies. Only a share :math:`\tau` is trained; adapters come
    beside the frozen weights. Gradients of several micro-batches that are exchanged once take :math:`b_a` bytes each
    until then, on every rank. Embeddings and norms keep 16 bits where weights are quantized. Shares :math:`\omega`
    stay in host memory. :math:`k_S` is the ratio of measured to predicted memory, from calibration.

    References
    ----------
    .. [rajbhandari2020] figure 1
    .. [zhao2023] section 3.2.2: hybrid sharding
    .. [megatronlm] docs: distributed optimizer
    .. [pytorch] torch/distributed/fsdp: no_sync, set_requires_gradient_sync
    .. [hu2021] section 4.2: neither gradients nor optimizer state of frozen weights
    .. [ren2021] section 3

    Examples
    --------
    >>> weights, bytes_of_each = (1e9, 0.0, 0.0, 0.0), (2.0, 4.0, 12.0)
    >>> ranks = (1.0, 8.0, 1.0, 8.0, 8.0)
    >>> memory_weights_bytes(*weights, *bytes_of_each, 0.0, 1.0, 0.0, 0.0, 0.0, *ranks, "1f1b", 1.0, 0.0) / 1e9
    7.5
    """
    copies = where(equal(schedule, "dualpipe"), 2.0, 1.0)
    adapters = where(lora_rank > 0.0, 2.0 * trained_share, 0.0)

    def sharded(shards: Numeric, stage: float) -> Numeric:
        return where(zero_stage >= stage, shards, 1.0)

    def per_parameter(shards: Numeric) -> Numeric:
        weights = (1.0 - offloaded_weights_share) * (weight_bytes_per_parameter * copies + adapters)
        gradients = (1.0 - offloaded_gradients_share) * trained_share * gradient_bytes_per_parameter
        optimizer = (1.0 - offloaded_optimizer_share) * trained_share * optimizer_bytes_per_parameter
        return weights / sharded(shards, 3.0) + gradients / sharded(shards, 2.0) + optimizer / sharded(shards, 1.0)

    dense = (stage_sharded_parameters + stage_replicated_parameters) * per_parameter(optimizer_shards)
    whole = maximum(2.0 - weight_bytes_per_parameter, 0.0) * (1.0 - offloaded_weights_share)
    embedded = whole * stage_embedding_parameters / sharded(optimizer_shards, 3.0)
    shards_of_experts = expert_data_parallel * optimizer_shards / (data_parallel * context_parallel)
    experts = stage_expert_parameters * per_parameter(maximum(shards_of_experts, 1.0))
    held = stage_sharded_parameters + stage_replicated_parameters + stage_expert_parameters
    return state_factor * (dense + experts + embedded + trained_share * accumulated_gradient_bytes * held)


def host_peak_bytes(
    stage_sharded_parameters: Numeric,
    stage_replicated_parameters: Numeric,
    stage_expert_parameters: Numeric,
    weight_bytes_per_parameter: Numeric,
    gradient_bytes_per_parameter: Numeric,
    optimizer_bytes_per_parameter: Numeric,
    trained_share: Numeric,
    offloaded_weights_share: Numeric,
    offloaded_gradients_share: Numeric,
    offloaded_optimizer_share: Numeric,
    zero_stage: Numeric,
    data_parallel: Numeric,
    context_parallel: Numeric,
    expert_data_parallel: Numeric,
    activation_offload_share: Numeric,
    recompute_share: Numeric,
    micro_batches_in_flight: Numeric,
    stage_layers: Numeric,
    micro_batch_tokens: Numeric,
    hidden_size: Numeric,
    kept_rows_share: Numeric,
) -> Numeric:
    r"""Memory of the host, or of its drives, that the offloaded part of one accelerator's state takes.

    .. math::
        \left(\frac{N_s + N_r}{[d c]_{z \ge 1}} + \frac{N_x}{[d_e]_{z \ge 1}}\right)
        (\omega_w b_w + \tau \omega_g b_g + \tau \omega_o b_o) + m_f L_s \rho \omega \frac{2 T h}{t_s}

    Notes
    -----
    Ranks whose state is sharded keep a share each; together they hold it once.

    References
    ----------
    .. [ren2021] section 3: 16-bit gradients, 32-bit weights and two moments on the host
    .. [zeroinfinity] section 5.1

    Examples
    --------
    >>> weights, bytes_of_each, shares = (13e9, 0.0, 0.0), (2.0, 2.0, 12.0), (1.0, 0.0, 1.0, 1.0)
    >>> host_peak_bytes(*weights, *bytes_of_each, *shares, 2.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 40.0, 1.0, 1.0, 1.0) / 1e9
    182.0
    """
    trained = offloaded_gradients_share * gradient_bytes_per_parameter
    trained = trained_share * (trained + offloaded_optimizer_share * optimizer_bytes_per_parameter)
    per_parameter = offloaded_weights_share * weight_bytes_per_parameter + trained
    ranks = where(zero_stage >= 1.0, data_parallel * context_parallel, 1.0)
    expert_ranks = where(zero_stage >= 1.0, maximum(expert_data_parallel, 1.0), 1.0)
    dense = stage_sharded_parameters + stage_replicated_parameters
    state = (dense / ranks + stage_expert_parameters / expert_ranks) * per_parameter
    inputs = recompute_share * activation_offload_share * 2.0 * micro_batch_tokens * hidden_size * kept_rows_share
    return state + micro_batches_in_flight * stage_layers * inputs


def dropout(gated_ffn: Numeric) -> Numeric:
    r"""Default for whether dropout masks are kept.

    .. math:: \delta = 1 - g

    Examples
    --------
    >>> dropout(1.0)
    0.0
    """
    return 1.0 - gated_ffn


def flash_attention(software_year: Numeric) -> Numeric:
    r"""Default for whether attention is fused.

    .. math:: \phi = 1 \quad (y \ge 2023), \qquad 0 \quad \text{otherwise}

    Notes
    -----
    FlashAttention appeared in 2022 and was usual in training code a year later.

    Examples
    --------
    >>> flash_attention(2022.0)
    0.0
    """
    return where(software_year >= 2023.0, 1.0, 0.0)


def recompute_share(recompute: Numeric) -> Numeric:
    r"""Default share of layers recomputed.

    .. math:: \rho = 1 \quad \text{for full}, \qquad 0 \quad \text{otherwise}

    Notes
    -----
    Selective recomputation repeats the attention core alone, which the attention terms count.

    Examples
    --------
    >>> recompute_share("full")
    1.0
    """
    return where(equal(recompute, "full"), 1.0, 0.0)


def kept_rows_share(sequence_parallel: Numeric, tensor_parallel: Numeric) -> Numeric:
    r"""Share of the activations outside matrix products that one tensor-parallel rank keeps.

    .. math:: 1/t_s = 1/t \quad \text{with sequence parallelism}, \qquad 1 \quad \text{without}

    References
    ----------
    .. [korthikanti2022] section 4.2.2

    Examples
    --------
    >>> kept_rows_share(1.0, 8.0)
    0.125
    """
    return where(sequence_parallel > 0.0, 1.0 / tensor_parallel, 1.0)


def layer_activation_bytes(
    micro_batch_tokens: Numeric,
    hidden_size: Numeric,
    layer_blocks: Numeric,
    mixing_kept_bytes: Numeric,
    mixing_outputs: Numeric,
    ffn_size: Numeric,
    gated_ffn: Numeric,
    layers: Numeric,
    ffn_layers: Numeric,
    moe_layers: Numeric,
    experts_per_token: Numeric,
    shared_experts: Numeric,
    expert_ffn_size: Numeric,
    dropout: Numeric,
    precision: Numeric,
    recompute: Numeric,
    tensor_parallel: Numeric,
    expert_tensor_parallel: Numeric,
    kept_rows_share: Numeric,
    fused_kernels: Numeric,
    eager_activation_factor: Numeric,
    activation_factor: Numeric,
) -> Numeric:
    r"""Bytes that a mean layer keeps of one micro-batch for its backward, without attention scores.

    .. math::
        A_l = k_A \Big[ [t > 1]\, u\, 2\, T h + \left(1 + u (k_a - 1)\right)
        \Big\{n_b T h \frac{2 + w + \delta}{t_s}
        + \frac{T}{t}\left[k_{mix} + w o + (4 + 2 g - 2 + w) f\right]\Big\} \Big]

    Notes
    -----
    A norm input of 2 bytes for each block, inputs of the matrix products of :math:`w` bytes (2; 1 in 8 bits), query,
    key, value or the inputs of a state, the feed-forward's inner tensors (one more with a gate) and dropout masks. With
    16-bit numbers and a plain feed-forward of 4 h it is :math:`34\, T h / t` under sequence parallelism. Layers with
    experts keep each visited expert's input, inner tensors and output, input and output on every rank that an expert is
    split over, for a mean layer. Where modules are recomputed, the outputs of norms, activations and experts are not
    kept, and the inputs of activations take :math:`w` bytes. Eager code (:math:`u = \max(1 - 2 f, 0)`) keeps the inputs
    of each operation, some of them whole on every tensor-parallel rank. :math:`k_A` is the ratio of measured to
    predicted memory, from calibration.

    References
    ----------
    .. [korthikanti2022] table 2
    .. [deepseekv3] sections 3.2.3 and 3.3.3: recomputed modules, and activations in 8 bits
    .. [megatronlm] megatron/core/transformer/moe/README.md: fine-grained recomputation

    Examples
    --------
    >>> shape = (2.0, 384.0, 64.0, 256.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 256.0)
    >>> layer_activation_bytes(1.0, 64.0, *shape, 1.0, "bf16", "none", 1.0, 1.0, 1.0, 1.0, 1.25, 1.0) / 64.0
    34.0
    """
    width = where(equal(precision, "bf16"), 2.0, where(equal(precision, "fp16"), 2.0, 1.0))
    moe = moe_layers / layers
    kept = where(equal(recompute, "modules"), 0.0, 1.0)
    rows = layer_blocks * hidden_size * (2.0 + kept * width + dropout)
    inner = (1.0 + gated_ffn) * (kept * 2.0 + (1.0 - kept) * width) + kept * width
    visits = (width + kept * 2.0) * hidden_size * expert_tensor_parallel
    routed = experts_per_token * (visits + inner * expert_ffn_size)
    sparse = routed + shared_experts * inner * expert_ffn_size
    split = mixing_kept_bytes + width * mixing_outputs
    blocks = (ffn_layers - moe_layers) / layers * inner * ffn_size + moe * sparse
    unfused = maximum(1.0 - 2.0 * fused_kernels, 0.0)
    eager = 1.0 + unfused * (eager_activation_factor - 1.0)
    whole = GATHERED_BYTES * hidden_size / maximum(tensor_parallel / MOST_GATHERED, 1.0)
    gathered = where(tensor_parallel > 1.0, unfused * whole, 0.0)
    token_bytes = gathered + eager * (rows * kept_rows_share + (split + blocks) / tensor_parallel)
    return activation_factor * micro_batch_tokens * token_bytes


def layer_score_bytes(
    micro_batch_tokens: Numeric,
    sequence_length: Numeric,
    attention_heads: Numeric,
    layers: Numeric,
    attention_layers: Numeric,
    tensor_parallel: Numeric,
    flash_attention: Numeric,
    recompute: Numeric,
) -> Numeric:
    r"""Bytes that a mean layer keeps of the attention square of one micro-batch.

    .. math::
        A_s = \frac{L_a}{L} \frac{5 a s T}{t} \quad \text{unfused}, \qquad
        \frac{L_a}{L} \frac{4 a T}{t} \quad \text{fused}, \qquad 0 \quad \text{selective}

    Notes
    -----
    Softmax output, dropout mask and dropout output; a fused kernel keeps the logarithm of the sum alone.

    References
    ----------
    .. [korthikanti2022] section 4.1
    .. [dao2022] algorithm 1

    Examples
    --------
    >>> layer_score_bytes(2048.0, 2048.0, 96.0, 96.0, 96.0, 8.0, 0.0, "none")
    251658240.0
    """
    rows = micro_batch_tokens * attention_heads * attention_layers / (layers * tensor_parallel)
    kept = where(flash_attention > 0.0, 4.0 * rows, 5.0 * sequence_length * rows)
    return where(equal(recompute, "selective"), 0.0, kept)


def micro_batches_in_flight(
    schedule: Numeric,
    pipeline_parallel: Numeric,
    virtual_stages: Numeric,
    micro_batches: Numeric,
    layers: Numeric,
    logits_layers: Numeric,
    stage_layers: Numeric,
) -> Numeric:
    r"""Micro-batches of a full stage whose activations the first stage, or the second, holds at once.

    .. math::
        m_f = \min\left(m, p + \tfrac{p - 1}{v} [v > 1]\right), \qquad \min(m, p + 1) \quad \text{DualPipe}, \qquad
        \min(m, 2 p - 1) \quad \text{zb2p}

    Notes
    -----
    Interleaving holds more, and twice as many fill the bubbles of zb2p; fewer micro-batches than stages hold fewer.
    Where the stages have room for two layers more and are not cut by their work, the first and the last stage have one
    less, and the second holds most: one micro-batch less, :math:`2 / v` with interleaving, or two in zb2p.

    References
    ----------
    .. [korthikanti2022] section 4.2.3
    .. [deepseekv3] table 2
    .. [qi2024] section 2.3

    Examples
    --------
    >>> [micro_batches_in_flight(name, 8.0, 1.0, 64.0, 32.0, 0.0, 4.0) for name in ("1f1b", "zb2p")]
    [8.0, 15.0]
    >>> micro_batches_in_flight("1f1b", 8.0, 1.0, 64.0, 30.0, 0.0, 4.0)
    7.0
    """
    interleaved = pipeline_parallel + where(virtual_stages > 1.0, (pipeline_parallel - 1.0) / virtual_stages, 0.0)
    two_ways = where(equal(schedule, "dualpipe"), 1.0, where(equal(schedule, "dualpipe_v"), 1.0, 0.0))
    plain = where(equal(schedule, "zb2p"), 2.0 * pipeline_parallel - 1.0, interleaved)
    held = where(two_ways > 0.0, pipeline_parallel + 1.0, plain)
    at_most = maximum(micro_batches, 1.0)
    first = minimum(at_most, where(pipeline_parallel > 1.0, held, 1.0))
    fewer = where(virtual_stages > 1.0, 2.0 / virtual_stages, where(equal(schedule, "zb2p"), 2.0, 1.0 - two_ways))
    uneven = maximum(first * (1.0 - 1.0 / stage_layers), minimum(at_most, held - fewer))
    room = where(logits_layers > 0.0, 0.0, pipeline_parallel * stage_layers - layers)
    return where(room >= 2.0, uneven, first)


def logits_bytes(
    micro_batch_tokens: Numeric,
    hidden_size: Numeric,
    vocabulary_size: Numeric,
    tensor_parallel: Numeric,
    whole_logits: Numeric,
    fused_kernels: Numeric,
    chunked_loss: Numeric,
    micro_batches: Numeric,
) -> Numeric:
    r"""Output of the last norm and logits of one micro-batch in 32 bits, on the rank that computes them.

    .. math:: A_v = 4 T \left(\frac{h}{t} + (1 + \max(u [m > 1], w))(1 - c) \frac{V}{t_v}\right)

    Notes
    -----
    Eager code (:math:`u = \max(1 - 2 f, 0)`) still refers to the logits of the micro-batch before; the loss of a
    library keeps the exponentials beside the logits; a loss in chunks keeps neither. Logits are split over
    tensor-parallel ranks, :math:`t_v = t`, unless every rank has all of them, :math:`w`, as the loss of a library
    wants them.

    References
    ----------
    .. [korthikanti2022] section 4.3

    Examples
    --------
    >>> logits_bytes(2048.0, 12288.0, 51200.0, 8.0, 0.0, 1.0, 0.0, 16.0)
    65011712.0
    """
    ways = where(whole_logits > 0.0, 1.0, tensor_parallel)
    before = where(micro_batches > 1.0, maximum(1.0 - 2.0 * fused_kernels, 0.0), 0.0)
    copies = 1.0 + maximum(before, whole_logits)
    kept = copies * (1.0 - chunked_loss) * vocabulary_size / ways
    return 4.0 * micro_batch_tokens * (hidden_size / tensor_parallel + kept)


def layer_kept_bytes(
    layer_activation_bytes: Numeric,
    layer_score_bytes: Numeric,
    recompute_share: Numeric,
    kept_share: Numeric,
    activation_offload_share: Numeric,
    micro_batch_tokens: Numeric,
    hidden_size: Numeric,
    kept_rows_share: Numeric,
) -> Numeric:
    r"""Bytes that a mean layer keeps of one micro-batch, those of recomputed layers being their input alone.

    .. math:: A_k = (1 - \rho)(\kappa A_l + A_s) + \rho (1 - \omega) \frac{2 T h}{t_s}

    Notes
    -----
    Parts of a layer, such as its experts, may be computed again: then a share :math:`\kappa` is kept. A share
    :math:`\omega` of the inputs of recomputed layers may wait in the memory of the host.

    References
    ----------
    .. [korthikanti2022] section 5
    .. [zeroinfinity] section 5.1.2: activations on the host

    Examples
    --------
    >>> layer_kept_bytes(34.0 * 2048.0 * 12288.0, 0.0, 1.0, 1.0, 0.0, 2048.0, 12288.0, 1.0)
    50331648.0
    """
    input_alone = (1.0 - activation_offload_share) * 2.0 * micro_batch_tokens * hidden_size * kept_rows_share
    kept = kept_share * layer_activation_bytes + layer_score_bytes
    return (1.0 - recompute_share) * kept + recompute_share * input_alone


def first_stage_activation_bytes(
    micro_batches_in_flight: Numeric,
    stage_layers: Numeric,
    layer_kept_bytes: Numeric,
    micro_batch_tokens: Numeric,
    hidden_size: Numeric,
    dropout: Numeric,
    tensor_parallel: Numeric,
) -> Numeric:
    r"""Activations that a rank of the first stage keeps for the backward, without logits.

    .. math:: A_1 = m_f \left[L_s A_k + \frac{T (8 + \delta h)}{t}\right]

    Notes
    -----
    Token numbers take 8 bytes and the embedding's dropout mask one.

    References
    ----------
    .. [korthikanti2022] sections 4.1 to 4.3

    Examples
    --------
    >>> layer = 34.0 * 2048.0 * 12288.0 / 8.0
    >>> first_stage_activation_bytes(8.0, 12.0, layer, 2048.0, 12288.0, 1.0, 8.0) / 2**20
    9816.015625
    """
    embedded = micro_batch_tokens * (8.0 + dropout * hidden_size) / tensor_parallel
    return micro_batches_in_flight * (stage_layers * layer_kept_bytes + embedded)


def last_stage_activation_bytes(
    first_stage_activation_bytes: Numeric,
    stage_layers: Numeric,
    layer_kept_bytes: Numeric,
    logits_bytes: Numeric,
    pipeline_parallel: Numeric,
) -> Numeric:
    r"""Activations that a rank of the last stage keeps for the backward, logits among them.

    .. math:: A_p = L_s A_k + A_v \quad (p > 1), \qquad A_1 + A_v \quad \text{otherwise}

    Notes
    -----
    The last stage holds one micro-batch.

    References
    ----------
    .. [korthikanti2022] section 4.3

    Examples
    --------
    >>> last_stage_activation_bytes(8e9, 12.0, 8e7, 1e9, 8.0)
    1960000000.0
    """
    return where(pipeline_parallel > 1.0, stage_layers * layer_kept_bytes, first_stage_activation_bytes) + logits_bytes


def memory_activations_bytes(first_stage_activation_bytes: Numeric, last_stage_activation_bytes: Numeric) -> Numeric:
    r"""Activations that the most loaded rank keeps for the backward: of the first stage, or of the last.

    .. math:: M_a = \max(A_1, A_p)

    References
    ----------
    .. [korthikanti2022] sections 4.1 to 4.3
    .. [megatronlm] megatron/training/theoretical_memory_usage.py

    Examples
    --------
    >>> memory_activations_bytes(8e9, 2e9)
    8000000000.0
    """
    return maximum(first_stage_activation_bytes, last_stage_activation_bytes)


def memory_workspace_bytes(
    memory_activations_bytes: Numeric,
    first_stage_activation_bytes: Numeric,
    last_stage_activation_bytes: Numeric,
    logits_bytes: Numeric,
    recompute_share: Numeric,
    layer_activation_bytes: Numeric,
    layer_score_bytes: Numeric,
    micro_batch_tokens: Numeric,
    hidden_size: Numeric,
    ffn_size: Numeric,
    vocabulary_size: Numeric,
    tensor_parallel: Numeric,
    pipeline_parallel: Numeric,
    kept_rows_share: Numeric,
    whole_logits: Numeric,
    chunked_loss: Numeric,
    zero_stage: Numeric,
    stage_layers: Numeric,
    stage_sharded_parameters: Numeric,
    stage_expert_parameters: Numeric,
    embedding_parameters: Numeric,
    weight_bytes_per_parameter: Numeric,
    offloaded_weights_share: Numeric,
    update_bytes_per_parameter: Numeric,
    gather_buffer_bytes: Numeric,
    trained_share: Numeric,
    optimizer_shards: Numeric,
    held_boundaries: Numeric,
) -> Numeric:
    r"""Peak of the temporary memory within a step.

    .. math::
        M_t &= \max\left[R + M_g - M_a,\; \tau b_u \frac{N_s + N_x}{n_z} - M_a\right] \\
        R &= \max\left\{[p > 1] (A_1 + A_r),\; A_p - A_v + \max(A_v + G_v,\, A_r)\right\}, \quad
        A_r = \tfrac{50}{34} [\rho > 0] (A_l + A_s) + [z \ge 3 \land \tau < 1]\, b\, \rho L_s \frac{2 T h}{t_s}, \quad
        G_v = (1 - c)(2 + 4 w) \frac{T V}{t_v} \\
        M_g &= \max\left\{\left([z \ge 3 \lor \omega_w > 0]\, 2 \min(b_w, 2) + [z \ge 3]\, 2 \tau\right)
        \frac{N_s + N_x}{L_s},\; [z \ge 3] \frac{(2 + 2 \tau) N_{emb}}{t}\right\}
        + [z \ge 3] M_b + [b_w < 2] \frac{2 h f}{t} + [p > 1] \frac{4 T h}{t_s}

    Notes
    -----
    A layer that is recomputed lives with its gradients, once the logits and their gradient of 16 bits, and of 32 bits
    in the loss of a library, are gone. ZeRO 3 and weights on the host bring the layer at work and the next one; under
    ZeRO 3 the gradient of that layer stands whole before it is scattered, or the logits' matrix and its own; some
    software keeps buffers :math:`M_b` of fixed size for both. Hooks on the inputs of frozen layers (:math:`b = 1`)
    keep them and their gradients to the end of the backward pass. Of quantized weights one matrix stands in 16 bits; a
    stage receives and sends. An update that works on all weights at once takes :math:`b_u` bytes of each when the
    activations are gone.

    References
    ----------
    .. [zeroinfinity] section 3
    .. [dettmers2023] section 3: weights return to 16 bits one matrix at a time
    .. [pytorch] torch/distributed/fsdp/_runtime_utils.py, _register_post_backward_reshard_only_hook

    Examples
    --------
    >>> held, logits = (1e9, 0.9e9, 1e9, 0.1e9), 2.0 * 2048.0 * 51200.0 / 8.0
    >>> shape = (2048.0, 12288.0, 49152.0, 51200.0, 8.0, 1.0, 0.125, 0.0, 0.0, 1.0, 96.0, 1e9, 0.0, 6e8)
    >>> memory_workspace_bytes(*held, 0.0, 1e9, 0.0, *shape, 2.0, 0.0, 0.0, 0.0, 1.0, 8.0, 0.0) == logits
    True
    """
    hooked = where(zero_stage >= 3.0, where(trained_share < 1.0, held_boundaries, 0.0), 0.0) * recompute_share
    kept = hooked * stage_layers * 2.0 * micro_batch_tokens * hidden_size * kept_rows_share
    again = where(recompute_share > 0.0, AGAIN * (layer_activation_bytes + layer_score_bytes), 0.0) + kept
    ways = where(whole_logits > 0.0, 1.0, tensor_parallel)
    bytes_per_logit = (1.0 - chunked_loss) * (2.0 + 4.0 * whole_logits)
    gradient = bytes_per_logit * micro_batch_tokens * vocabulary_size / ways
    first = where(pipeline_parallel > 1.0, first_stage_activation_bytes + again, 0.0)
    last = last_stage_activation_bytes - logits_bytes + maximum(logits_bytes + gradient, again)
    parameters = stage_sharded_parameters + stage_expert_parameters
    layer = 2.0 * minimum(weight_bytes_per_parameter, 2.0) * parameters / stage_layers
    whole = 2.0 * trained_share * parameters / stage_layers
    matrix_of_logits = (2.0 + 2.0 * trained_share) * embedding_parameters / tensor_parallel
    gathered = maximum(layer + whole, matrix_of_logits)
    brought = where(zero_stage >= 3.0, gathered + gather_buffer_bytes, where(offloaded_weights_share > 0.0, layer, 0.0))
    matrix = where(weight_bytes_per_parameter < 2.0, 2.0 * hidden_size * ffn_size / tensor_parallel, 0.0)
    between = where(pipeline_parallel > 1.0, 4.0 * micro_batch_tokens * hidden_size * kept_rows_share, 0.0)
    working = maximum(first, last) + brought + matrix + between
    updating = trained_share * update_bytes_per_parameter * parameters / optimizer_shards
    return maximum(working, updating) - memory_activations_bytes


def fragmentation_share(software_year: Numeric, fused_kernels: Numeric) -> Numeric:
    r"""Default share of memory that the allocator cannot hand out.

    .. math:: 0.02 + 0.02\, (1 - f) \quad (y \ge 2024), \qquad 0.10 \quad \text{otherwise}

    Notes
    -----
    PyTorch 2.1 of October 2023 brought segments that grow, which leave little unused; eager code leaves more. Assumed,
    and in line with the memory that BigScience (2022), nanotron (2025) and SimuMax (2026) measured.

    Examples
    --------
    >>> fragmentation_share(2026.0, 1.0)
    0.02
    """
    return where(software_year >= 2024.0, 0.04 - 0.02 * fused_kernels, 0.10)


def memory_reserve_bytes(
    memory_weights_bytes: Numeric,
    memory_activations_bytes: Numeric,
    memory_workspace_bytes: Numeric,
    fragmentation_share: Numeric,
    graph_pool_share: Numeric,
    context_bytes: Numeric,
    network_buffer_bytes: Numeric,
    accelerators: Numeric,
    scale_up_domain: Numeric,
) -> Numeric:
    r"""Memory that no tensor can use: the process's context, network buffers, pools of graphs, fragmentation.

    .. math:: M_{ctx} + [n > g_{up}] M_{net} + \gamma M_a + \frac{\epsilon}{1 - \epsilon} (M_w + M_a + M_t)

    Notes
    -----
    Collective libraries open buffers towards every peer once a job leaves the scale-up domain. A captured graph
    of a whole step keeps the memory it once used.

    Examples
    --------
    >>> memory_reserve_bytes(9.8e9, 0.0, 0.0, 0.02, 0.0, 1e9, 3e9, 8.0, 8.0) / 1e9
    1.2
    """
    tensors = memory_weights_bytes + memory_activations_bytes + memory_workspace_bytes
    network = where(accelerators > scale_up_domain, network_buffer_bytes, 0.0)
    pools = graph_pool_share * memory_activations_bytes
    return context_bytes + network + pools + tensors * fragmentation_share / (1.0 - fragmentation_share)


def memory_peak_bytes(
    memory_weights_bytes: Numeric,
    memory_activations_bytes: Numeric,
    memory_workspace_bytes: Numeric,
    memory_reserve_bytes: Numeric,
) -> Numeric:
    """Memory that the most loaded rank needs.

    .. math:: M_w + M_a + M_t + M_r

    Notes
    -----
    Weights, activations and workspace peak together at the worst; a sum, so never too low by overlap in time.

    Examples
    --------
    >>> memory_peak_bytes(40e9, 10e9, 1e9, 2e9)
    53000000000.0
    """
    return memory_weights_bytes + memory_activations_bytes + memory_workspace_bytes + memory_reserve_bytes


def memory_needed_bytes(
    memory_weights_bytes: Numeric,
    memory_activations_bytes: Numeric,
    memory_workspace_bytes: Numeric,
    context_bytes: Numeric,
) -> Numeric:
    """Memory without which the most loaded rank cannot run: tensors and the process itself.

    .. math:: M_n = M_w + M_a + M_t + M_{ctx}

    Notes
    -----
    An allocator that runs out of memory releases the unused space between tensors, so that part of the peak is not
    needed.

    Examples
    --------
    >>> memory_needed_bytes(40e9, 10e9, 1e9, 1e9)
    52000000000.0
    """
    return memory_weights_bytes + memory_activations_bytes + memory_workspace_bytes + context_bytes


def fits(
    memory_peak_bytes: Numeric, memory_needed_bytes: Numeric, accelerator_memory_bytes: Numeric, memory_band: Numeric
) -> Numeric:
    r"""Whether the layout fits the memory of the most loaded rank: 1 if yes, 0 if no, one half if within the error.

    .. math::
        1 \quad (M (1 + b) \le M_{chip}), \qquad 0 \quad (M_n > M_{chip} (1 + b)), \qquad
        \tfrac12 \quad \text{otherwise}

    Notes
    -----
    The band is the typical difference of measured and predicted peaks.

    Examples
    --------
    >>> fits(53e9, 51e9, 80e9, 0.1), fits(78e9, 71e9, 80e9, 0.1), fits(95e9, 91e9, 80e9, 0.1)
    (1.0, 0.5, 0.0)
    """
    surely = memory_peak_bytes * (1.0 + memory_band) <= accelerator_memory_bytes
    never = memory_needed_bytes > accelerator_memory_bytes * (1.0 + memory_band)
    return where(surely, 1.0, where(never, 0.0, 0.5))
