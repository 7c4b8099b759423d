"""Time of one mean layer and one micro-batch on the fullest rank: arithmetic, launches and communication."""

from __future__ import annotations

from factorykit.core.types import Numeric
from factorykit.formulas.functions import ceil, equal, exp, maximum, minimum, sqrt, where

BACKWARD_ELEMENTWISE = 1.2
"""Traffic of the element-wise backward over its forward: masks and inputs read again, gradients written."""
FUSED_ATTENTION_YEAR = 2022.4
"""Year and part of a year in which fused attention was published (FlashAttention, May 2022)."""
CAST_BYTES = 4.0
"""Bytes per element of an 8-bit matrix product's input: 16 bits read, 8 written, and 8 once more transposed."""
SCALE_BYTES = 2.0
"""Bytes per element that are read before, where the scale is of the tensor at hand and no kernel before it found it."""
FOUR_BIT_BYTES = 3.0
"""Bytes per element more where products are in 4 bits: read once for the scale of the tensor, and once for the copy
that is transformed before it is transposed; the output is half as wide."""
ROUTED_BYTES = 20.0
"""Bytes per routed element: permuted, exchanged, sorted to experts, and all three back, each read and written in 16
bits; the first reads and the last writes each element once and not for every expert."""
UNROUTED_BYTES = 4.0
"""Bytes per element that the first permutation reads and the last one writes."""
EXPONENTIAL_PASSES = 2.0 / 3.5
"""Exponentials of a forward's worth of fused attention: a forward and backward take those of each score twice, in the
time of three and a half forwards' products (the backward has five products where the forward has two)."""
BIAS_BYTES = 28.0
"""Bytes per routed element where experts add a bias: its product with the token's weight is written in 32 bits, the sum
read in 16 and 32 bits and written, gathered from all experts, and written again in 16 bits (Megatron's
``_apply_bias``)."""
WIDENED_RATE = 0.3
"""Share of the rate of memory at which weights of few bits become 16: adapters beside 4-bit NormalFloat take 79 and 191
ms longer than beside 16 bits for a sequence of Llama 2 7B and 13B on A100 of 40 GB, two passes over all weights, of
which each reads 0.52 bytes and writes two (LitGPT, resource tables of October 2023)."""
GRAPHED = 0.9
"""Share of launches that a graph of a whole iteration or layer saves."""


def layer_gemm_s(
    micro_batch_tokens: Numeric,
    hidden_size: Numeric,
    ffn_size: Numeric,
    expert_ffn_size: Numeric,
    layers: Numeric,
    moe_layers: Numeric,
    experts: Numeric,
    experts_per_token: Numeric,
    expert_parallel: Numeric,
    expert_tensor_parallel: Numeric,
    expert_imbalance: Numeric,
    dispatch_masks: Numeric,
    grouped_tile_tokens: Numeric,
    sequence_length: Numeric,
    layer_dense_parameters: Numeric,
    routed_parameters: Numeric,
    tensor_parallel: Numeric,
    gemm_flop_per_s: Numeric,
    gemm_16bit_flop_per_s: Numeric,
    gemm_traffic_factor: Numeric,
    gemm_wave_outputs: Numeric,
    matrix_tile: Numeric,
    gradient_bytes_per_parameter: Numeric,
    weight_bits: Numeric,
    weight_bytes_per_parameter: Numeric,
    sustained_memory_bytes_per_s: Numeric,
) -> Numeric:
    r"""Time of one forward of one micro-batch through the weights of a mean layer.

    .. math::
        \sum_{i \in \{d, x\}} \frac{w_i}{F_g} \left(\overline{\lceil o_i \rceil / o_i}
        + \frac{W}{n_i} \overline{o_i^{-1}} + \frac{T_m}{T_x} [x]\right)
        + k_t \frac{w_i}{B_s} \left(\frac{2 + b_g}{3 T_i} + \frac{1}{h}
        + \frac{t_i}{f_i}\right)
        + \delta \iota \frac{4 T}{t} \frac{L_e}{L} \frac{k s h}{F_{16}}
        + [q < 8] \frac{2 + b_w}{0.3\, B_s} \left(\frac{N_d}{t} + \frac{L_e}{L} \frac{N_{re}}{e\, t_e}\right), \qquad
        w_d = \frac{2 T}{t} N_d, \qquad
        w_x = \iota \frac{2 T}{t} \frac{L_e}{L} \frac{k}{E} N_{re}

    Notes
    -----
    The second term is the traffic of a product: its inverse intensity is the sum of the inverse sizes. It makes small
    products slow without a fitted curve. The weights are read forward and backward, and their gradient is read and
    written as it accumulates: two plus :math:`b_g` bytes on average over three products, where 2 bytes are usual. An
    expert sees :math:`T_x = T k e t_e / (t E)` tokens of a micro-batch and is split :math:`t_e` ways; the fullest rank,
    with :math:`\iota` times the mean, sets the pace. A product is computed in waves of tiles, and the last one is
    partly filled: it takes the time of :math:`W` outputs, of the :math:`o` of one product, or of the :math:`n_x o_x` of
    all experts of a rank; a tile that reaches beyond the sides of a product takes its time, too, so that :math:`\lceil
    o \rceil` has sides of multiples of :math:`o_t`. A kernel that lays the tokens of all experts end to end computes a
    tile of :math:`T_m` tokens across the boundary of two experts for both of them, one more for each expert. Where
    padded experts are filled by products with masks (:math:`\delta = 1`), every token is multiplied with the
    :math:`\iota k s` places of its sequence, there and back, in 16 bits. Weights of fewer than 8 bits are widened to 16
    before each product, a pass over memory at a third of its rate.

    References
    ----------
    .. [williams2009]
    .. [nvidiagemm] tile quantization, wave quantization
    .. [lepikhin2020] section 2.2: dispatch and combination as products with masks
    .. [litgpt] tutorials/resource-tables.md: adapters beside weights of 4 bits and of 16
    .. [maxtext] src/maxtext/kernels/megablox/backend.py, make_group_metadata: tiles are visited once for each group

    Examples
    --------
    >>> shape, experts = (8192.0, 8192.0, 28672.0, 0.0, 80.0, 0.0), (0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 8192.0)
    >>> round(layer_gemm_s(*shape, *experts, 8.55e8, 0.0, 1.0, 7e14, 7e14, 1.2, 2e6, 128.0, 4.0, 16.0, 2.0, 2.7e12), 4)
    0.0228
    """
    moe = moe_layers / layers
    share = where(experts > 1.0, experts_per_token / maximum(experts, 1.0), 0.0)
    weights = (2.0 + gradient_bytes_per_parameter) / 3.0
    traffic = gemm_traffic_factor / sustained_memory_bytes_per_s
    tokens = 2.0 * micro_batch_tokens / tensor_parallel
    dense = tokens * layer_dense_parameters
    routed = tokens * expert_imbalance * moe * share * routed_parameters
    places = experts_per_token * sequence_length
    masks = 2.0 * tokens * expert_imbalance * moe * dispatch_masks * places * hidden_size
    width = where(moe < 1.0, ffn_size, hidden_size)
    thin = weights / micro_batch_tokens + 1.0 / hidden_size + tensor_parallel / maximum(width, 1.0)
    visited = micro_batch_tokens * maximum(share, 1e-9) * expert_parallel * expert_tensor_parallel / tensor_parallel
    sparse = weights / visited + 1.0 / hidden_size + expert_tensor_parallel / maximum(expert_ffn_size, 1.0)
    width, expert_width = maximum(width, 1.0) / tensor_parallel, maximum(expert_ffn_size, 1.0) / expert_tensor_parallel
    waves = gemm_wave_outputs * _part_waves(micro_batch_tokens, hidden_size, width)
    held = maximum(experts, 1.0) / expert_parallel
    routed_waves = gemm_wave_outputs / held * _part_waves(visited, hidden_size, expert_width)
    whole = _tiled(hidden_size, width, matrix_tile)
    routed_whole = _tiled(hidden_size, expert_width, matrix_tile)
    work = dense * (whole + waves) + routed * (routed_whole + routed_waves + grouped_tile_tokens / visited)
    beside = expert_parallel * expert_tensor_parallel
    stored = layer_dense_parameters / tensor_parallel + moe * routed_parameters / beside
    widened = where(weight_bits < 8.0, (2.0 + weight_bytes_per_parameter) / WIDENED_RATE * stored, 0.0)
    products = work / gemm_flop_per_s + masks / gemm_16bit_flop_per_s + traffic * (dense * thin + routed * sparse)
    return products + widened / sustained_memory_bytes_per_s


def _tiled(hidden_size: Numeric, width: Numeric, tile: Numeric) -> Numeric:
    """Return the outputs of whole tiles over those asked for, forward and for the gradients of input and weight."""
    tall, wide = (ceil(side / tile) * tile / side for side in (hidden_size, width))
    return (tall + wide + tall * wide) / 3.0


def _part_waves(tokens: Numeric, hidden_size: Numeric, width: Numeric) -> Numeric:
    """Return the mean of one over the outputs of a product, forward and for the gradients of input and weight."""
    return (1.0 / (tokens * width) + 1.0 / (tokens * hidden_size) + 1.0 / (hidden_size * width)) / 3.0


def layer_attention_s(
    micro_batch_tokens: Numeric,
    sequence_length: Numeric,
    attended_tokens: Numeric,
    attention_heads: Numeric,
    head_size: Numeric,
    rope_head_size: Numeric,
    value_head_size: Numeric,
    index_heads: Numeric,
    index_head_size: Numeric,
    layers: Numeric,
    attention_layers: Numeric,
    tensor_parallel: Numeric,
    flash_attention: Numeric,
    peak_16bit_flop_per_s: Numeric,
    gemm_ceiling_16bit: Numeric,
    exponentials_per_s: Numeric,
    gemm_16bit_flop_per_s: Numeric,
    attention_share: Numeric,
    attention_ramp_tokens: Numeric,
    misaligned_factor: Numeric,
    power_limit_share: Numeric,
    power_exponent: Numeric,
    software_year: Numeric,
    maturity_years: Numeric,
    maturity: Numeric,
    young_attention_share: Numeric,
    native_attention: Numeric,
    score_bytes: Numeric,
    sustained_memory_bytes_per_s: Numeric,
) -> Numeric:
    r"""Time of one forward of one micro-batch through the attention core of a mean layer.

    .. math::
        \frac{L_a}{L} \frac{T s_a a}{t\, \mu_a \mu_f \pi^{x}} \left(\frac{d + d_r + d_v}{F_{16} \kappa_{16} \eta_a}
        \left[1 + \frac{s_0}{s_a}\right]
        + \frac{1}{2 E} \frac{2}{3.5}\right) + \frac{L_a}{L} \frac{T s a_i d_i}{t F_{16} \kappa_{16} \eta_a}
        \quad \text{fused}, \qquad
        \frac{L_a}{L} \left[\frac{2 T s a (d + d_r + d_v) m_8}{t F_g} + \frac{b_s a T s}{3 t B_s}\right]
        \quad \text{unfused}

    Notes
    -----
    A fused kernel does the causal half, and of a window its band; an unfused one the whole square, and writes it to
    memory. Always in 16 bits, at a share of what the chip's matrix units reach: 0.57 of the peak of H100 and 0.64 of
    that of A100, in kernels that AIConfigurator measured. Every score takes one exponential forward and one backward,
    which is why attention keeps less of the peak where chips grew more matrix units than special function units.
    Kernels ripen twice, on the chip and since fused attention was published:
    :math:`\mu = 1 - (1 - m)(1 - \eta_{young})`, unless the kernel is known to be one for the chip's generation.
    Products of a head width that is no multiple of 8 leave the matrix units and take :math:`m_8` times as long; fused
    kernels pad it. Tiles on the diagonal and few tiles a head make short sequences slow: half as fast at :math:`s_0`
    attended tokens as far beyond. A kernel for the chip's generation runs the exponentials of one block beside the
    products of the next: of the two terms in the first brackets the longer one counts. The indexer of sparse attention
    scores all tokens, in products at the same rate.

    References
    ----------
    .. [dao2023] section 4.1
    .. [shah2024] section 3.1 and 3.2: exponentials beside products, in turns of two groups of warps
    .. [korthikanti2022] section 4.1
    .. [aiconfigurator] systems/data: context_attention_perf of SGLang 0.5.10

    Examples
    --------
    >>> shape = (8192.0, 8192.0, 8192.0, 64.0, 128.0, 0.0, 128.0, 0.0, 0.0, 80.0, 80.0, 1.0)
    >>> chip = (9.89e14, 0.8, 3.9e12, 7e14, 0.75, 400.0, 4.0, 1.0, 0.4, 2026.5, 1.5)
    >>> round(layer_attention_s(*shape, 1.0, *chip, 1.0, 0.3, 0.0, 25.0, 2.7e12), 5)
    0.00237
    """
    rows = micro_batch_tokens * attention_heads / tensor_parallel
    width = head_size + rope_head_size + value_head_size
    age = 1.0 - exp(-maximum(software_year - FUSED_ATTENTION_YEAR, 0.0) / maturity_years)
    slow = (1.0 - native_attention) * (1.0 - young_attention_share)
    ripe = (1.0 - (1.0 - maturity) * slow) * (1.0 - (1.0 - age) * slow)
    ramp = 1.0 + attention_ramp_tokens / attended_tokens
    rate = peak_16bit_flop_per_s * gemm_ceiling_16bit * attention_share
    products = ramp * width / rate
    exponentials = 0.5 * EXPONENTIAL_PASSES / exponentials_per_s
    score = products + exponentials - native_attention * minimum(products, exponentials)
    picking = micro_batch_tokens * sequence_length * index_heads * index_head_size / tensor_parallel
    picked = picking / rate
    fused = (rows * attended_tokens * score + picked) / (ripe * power_limit_share**power_exponent)
    square = rows * sequence_length
    longer = where(ceil(head_size / 8.0) * 8.0 > head_size, misaligned_factor, 1.0)
    product = 2.0 * width * longer / gemm_16bit_flop_per_s
    unfused = square * (product + score_bytes / (3.0 * sustained_memory_bytes_per_s))
    return attention_layers / layers * where(flash_attention > 0.0, fused, unfused)


def layer_elementwise_s(
    micro_batch_tokens: Numeric,
    hidden_size: Numeric,
    layer_blocks: Numeric,
    mixing_bytes: Numeric,
    adapter_bytes: Numeric,
    mixing_outputs: Numeric,
    ffn_size: Numeric,
    gated_ffn: Numeric,
    layers: Numeric,
    ffn_layers: Numeric,
    moe_layers: Numeric,
    experts_per_token: Numeric,
    shared_experts: Numeric,
    expert_ffn_size: Numeric,
    expert_biases: Numeric,
    precision: Numeric,
    recompute: Numeric,
    tensor_parallel: Numeric,
    kept_rows_share: Numeric,
    elementwise_factor: Numeric,
    eager_traffic_factor: Numeric,
    fused_kernels: Numeric,
    vendor_kernels: Numeric,
    software_gain_per_year: Numeric,
    software_year: Numeric,
    sustained_memory_bytes_per_s: Numeric,
) -> Numeric:
    r"""Time of one forward of one micro-batch through norms, residuals, activations and routing of a mean layer.

    .. math::
        k_e \left[1 + (1 - f)(k_{eager} - 1)\right] \mathrm{e}^{-\gamma (y - 2024)} \frac{T}{B_s}
        \left[(10 + 4 \alpha) \frac{n_b h}{t_s}
        + \frac{(1 + \alpha) (2 + 4 g) f + b_{mix} + b_{lora} + ((20 + 28 \beta) k + 4) h
        + (4 + 2 (1 - u) [\text{fp8}] + 3 [4 \text{ bits}]) (n_b h + o + f) [8 \text{ bits}]}{t}\right]

    Notes
    -----
    A norm and a residual sum for each block, the traffic around attention and states, and the activation, each read and
    written once in 16 bits; tokens on their way to experts and back in six passes, and where experts have a bias
    (:math:`\beta = 1`) once more, in 32 bits. Products in 8 bits or fewer cast
    their inputs first: of the projections, of attention's output and of both halves of the feed-forward. Kernels of the
    chip's maker (:math:`u`) find the scale of an 8-bit tensor where it is made; others read it once more.
    In 4 bits the tensor has a scale beside those of its blocks, and transposed copies are transformed before. Adapters
    add :math:`b_{lora}`. Eager code stores what fused kernels keep in registers. The year counts from 2022 to 2028.
    Norms and activations run once more where modules are recomputed, :math:`\alpha = 1 / 2.2` of each of 2.2 passes.

    References
    ----------
    .. [ivanov2021] table III
    .. [torchao] torchao/float8/README.md: dynamic scaling, overhead of max_abs and casts
    .. [megatronlm] megatron/core/transformer/moe/experts.py: biases of experts
    .. [nvfp4] section 4: scales of blocks and tensors, random Hadamard transforms

    Examples
    --------
    >>> shape = (8192.0, 8192.0, 2.0, 61440.0, 0.0, 8192.0, 28672.0, 1.0, 80.0, 80.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    >>> round(layer_elementwise_s(*shape, "bf16", "none", 1.0, 1.0, 1.0, 2.0, 1.0, 1.0, 0.0, 2024.0, 2.68e12), 5)
    0.00121
    """
    moe = moe_layers / layers
    dense = (ffn_layers - moe_layers) / layers
    inner = dense * ffn_size + moe * (experts_per_token + shared_experts) * expert_ffn_size
    visit_bytes = ROUTED_BYTES + BIAS_BYTES * expert_biases
    routed = moe * (visit_bytes * experts_per_token + UNROUTED_BYTES) * hidden_size
    two_levels = where(equal(precision, "nvfp4"), FOUR_BIT_BYTES, 0.0)
    scale = where(equal(precision, "fp8"), (1.0 - vendor_kernels) * SCALE_BYTES, two_levels)
    narrow = where(equal(precision, "bf16"), 0.0, where(equal(precision, "fp16"), 0.0, CAST_BYTES + scale))
    cast = narrow * (layer_blocks * hidden_size + mixing_outputs + inner)
    again = where(equal(recompute, "modules"), 1.0 / (1.0 + BACKWARD_ELEMENTWISE), 0.0)
    split = (1.0 + again) * (2.0 + 4.0 * gated_ffn) * inner + mixing_bytes + adapter_bytes + routed + cast
    moved = (10.0 + 4.0 * again) * layer_blocks * hidden_size * kept_rows_share + split / tensor_parallel
    era = exp(-software_gain_per_year * (minimum(maximum(software_year, 2022.0), 2028.0) - 2024.0))
    eager = 1.0 + (1.0 - fused_kernels) * (eager_traffic_factor - 1.0)
    return elementwise_factor * eager * era * micro_batch_tokens * moved / sustained_memory_bytes_per_s


def gemm_passes(recompute_share: Numeric, trained_share: Numeric) -> Numeric:
    r"""Matrix products of a forward and backward, in forwards.

    .. math:: q_g = 2 + \tau + \rho

    Notes
    -----
    The backward multiplies twice, for the gradient of the input and of the weight; a frozen weight needs no gradient.
    Recomputation runs the forward again.

    References
    ----------
    .. [chowdhery2022] appendix B: one forward and two for the backward
    .. [korthikanti2022] section 5: recomputation
    .. [hu2021] section 4.2: no gradients of frozen weights

    Examples
    --------
    >>> gemm_passes(1.0, 1.0), gemm_passes(0.0, 0.0)
    (4.0, 2.0)
    """
    return 2.0 + trained_share + recompute_share


def elementwise_passes(
    recompute_share: Numeric,
) -> Numeric:
    r"""Element-wise work of a forward and backward, in forwards.

    .. math:: q_e = 2.2 + \rho

    Notes
    -----
    The backward reads masks and inputs again and writes gradients: 1.2 times the traffic of the forward.

    References
    ----------
    .. [ivanov2021] table III

    Examples
    --------
    >>> elementwise_passes(0.0)
    2.2
    """
    return 1.0 + BACKWARD_ELEMENTWISE + recompute_share


def attention_passes(
    recompute_share: Numeric,
    recompute: Numeric,
    flash_attention: Numeric,
) -> Numeric:
    r"""Attention core of a forward and backward, in forwards.

    .. math:: q_a = 3 + \tfrac12 \phi + \max(\rho, \sigma)

    Notes
    -----
    A fused attention backward computes its scores once more (2.5 forwards). Recomputation runs the forward again,
    selective recomputation (:math:`\sigma = 1`) the attention core alone.

    References
    ----------
    .. [dao2023] section 4.1: backward 2.5 times
    .. [korthikanti2022] section 5

    Examples
    --------
    >>> attention_passes(0.0, "selective", 1.0)
    4.5
    """
    selective = where(equal(recompute, "selective"), 1.0, 0.0)
    return 3.0 + 0.5 * flash_attention + maximum(recompute_share, selective)


def layer_compute_s(
    layer_gemm_s: Numeric,
    layer_elementwise_s: Numeric,
    layer_attention_s: Numeric,
    layer_state_s: Numeric,
    gemm_passes: Numeric,
    elementwise_passes: Numeric,
    attention_passes: Numeric,
) -> Numeric:
    r"""Compute time of one micro-batch in a mean layer, forward and backward.

    .. math:: q_g T_g + q_e T_e + q_a (T_a + T_r)

    Notes
    -----
    Products, element-wise traffic and attention follow one another on a chip; any overlap is part of their rates.
    Kernels of states recompute in the backward as those of attention do.

    Examples
    --------
    >>> layer_compute_s(1.0, 0.5, 0.1, 0.0, 4.0, 3.0, 4.0)
    5.9
    """
    mixing = layer_attention_s + layer_state_s
    return gemm_passes * layer_gemm_s + elementwise_passes * layer_elementwise_s + attention_passes * mixing


def launch_s(
    layer_launch_s: Numeric,
    collective_launch_s: Numeric,
    collective_skew_s: Numeric,
    routing_launch_s: Numeric,
    expert_launch_s: Numeric,
    eager_launch_factor: Numeric,
    fused_kernels: Numeric,
    cuda_graphs: Numeric,
    grouped_experts: Numeric,
    experts: Numeric,
    expert_parallel: Numeric,
    layers: Numeric,
    layer_blocks: Numeric,
    moe_layers: Numeric,
    precision: Numeric,
    recompute_share: Numeric,
    tensor_parallel: Numeric,
    pipeline_parallel: Numeric,
    accelerators: Numeric,
    scale_up_domain: Numeric,
    software_gain_per_year: Numeric,
    software_year: Numeric,
) -> Numeric:
    r"""Time in which a processor launches one layer, forward and backward.

    .. math::
        (1 - 0.9 c) \left\{\frac{3 + \rho}{3} \left[\left(1 + (1 - f)(k_l - 1)\right) \tfrac{n_b}{2} T_0
        + \frac{L_e}{L} \left(T_r + (1 - u_g + [8 \text{ bits}]) \tfrac{E}{e} T_x\right)\right]
        \mathrm{e}^{-\gamma (y - 2024)}
        + [t > 1] \tfrac{n_b}{2} (4 + 2 \rho) \left(T_c + [p > 1, n > g] (1 - f)\, t\, T_s\right)\right\}

    Notes
    -----
    It rules where layers are small; beside larger ones it hides. Routing waits for the processor; experts that are not
    grouped launch one by one, as do the casts of each expert in 8 bits or fewer. A graph leaves a tenth. Where eager
    code also pipelines over several nodes, the ranks of a tensor-parallel group launch apart: nanotron's layers then
    took 10, 15, 24 and 50 ms on 2, 4, 8 and 16 ranks however small they were, and 4.5 ms without a pipeline or within
    one node.

    References
    ----------
    .. [fernandez2023] section 4

    Examples
    --------
    >>> constants, features = (1e-3, 5e-5, 5e-4, 5e-4, 1e-4, 2.0), (1.0, 0.0, 1.0)
    >>> layer = (0.0, 1.0, 80.0, 2.0, 0.0, "bf16", 0.0)
    >>> round(launch_s(*constants, *features, *layer, 8.0, 1.0, 8.0, 8.0, 0.05, 2024.0), 5)
    0.0012
    """
    era = exp(-software_gain_per_year * (minimum(maximum(software_year, 2022.0), 2028.0) - 2024.0))
    apart = where(accelerators > scale_up_domain, 1.0, 0.0)
    skewed = where(pipeline_parallel > 1.0, apart * (1.0 - fused_kernels) * tensor_parallel * collective_skew_s, 0.0)
    layer_collectives_s = layer_blocks * (2.0 + recompute_share) * (collective_launch_s + skewed)
    collectives = where(tensor_parallel > 1.0, layer_collectives_s, 0.0)
    eager = 1.0 + (1.0 - fused_kernels) * (eager_launch_factor - 1.0)
    narrow = where(equal(precision, "bf16"), 0.0, where(equal(precision, "fp16"), 0.0, 1.0))
    one_by_one = (1.0 - grouped_experts + narrow) * experts / expert_parallel * expert_launch_s
    routed = where(experts > 1.0, moe_layers / layers * (routing_launch_s + one_by_one), 0.0)
    passes = (3.0 + recompute_share) / 3.0
    launched = 0.5 * layer_blocks * eager * layer_launch_s + routed
    return (1.0 - GRAPHED * cuda_graphs) * (passes * launched * era + collectives)


def layer_s(
    layer_compute_s: Numeric,
    tensor_parallel_s: Numeric,
    context_parallel_s: Numeric,
    expert_parallel_s: Numeric,
    layer_fixed_s: Numeric,
    routing_wait_s: Numeric,
    cuda_graphs: Numeric,
    experts: Numeric,
    layers: Numeric,
    layer_blocks: Numeric,
    moe_layers: Numeric,
    recompute_share: Numeric,
    launch_s: Numeric,
    gather_s: Numeric,
    gather_overlap_share: Numeric,
    gather_contention_share: Numeric,
) -> Numeric:
    r"""Time of one micro-batch in a mean layer, forward and backward.

    .. math::
        T_l = \sqrt[4]{T_x^4 + T_{launch}^4}, \qquad
        T_x = T_{comp} + T_{tp} + T_{cp} + T_{ep} + \tfrac{3 + \rho}{6} n_b T_f + (1 - 0.9 c) \tfrac{L_e}{L} T_w, \qquad
        T = T_l + \max(T_{gather} - \eta_o T_l, 0) + \eta_c \min(T_{gather}, T_l)

    Notes
    -----
    Launching and computing overlap: the longer one dominates, the shorter one adds a little where they are close. A
    layer with experts waits for their counts of tokens, unless a graph holds it whole. Gathers hide behind compute and
    slow it.

    References
    ----------
    .. [isaev2023] section 3: processors taken by communication

    Examples
    --------
    >>> round(layer_s(0.03, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 80.0, 2.0, 0.0, 0.0, 0.04, 0.0, 0.5, 0.05), 4)
    0.0428
    """
    busy = layer_compute_s + tensor_parallel_s + context_parallel_s + expert_parallel_s
    waits = where(experts > 1.0, (1.0 - GRAPHED * cuda_graphs) * moe_layers / layers * routing_wait_s, 0.0)
    running = busy + 0.5 * layer_blocks * (3.0 + recompute_share) / 3.0 * layer_fixed_s + waits
    alone = sqrt(sqrt(running**4.0 + launch_s**4.0))
    exposed = maximum(gather_s - gather_overlap_share * alone, 0.0)
    return alone + exposed + gather_contention_share * minimum(gather_s, alone)
