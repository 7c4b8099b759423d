"""How long one optimizer step takes: matrix products, memory traffic, communication, waiting, and what never hides.

A step is built from one mean layer and one micro-batch on the fullest rank. The constants are few, the same for every
model and chip, and stand in the table ``performance_constants`` with the way they were found.
"""

from __future__ import annotations

from factorykit.formulas.functions import equal, exp, log, maximum, minimum, sqrt, where
from factorykit.formulas.network import LN2, two_tier_ring_s
from factorykit.formulas.parallelism import pipeline_idle_s
from factorykit.typing import Numeric

NORMAL_95 = 1.6448536269514722
"""Quantile of the normal distribution: 90 % lie between minus and plus this many standard deviations."""
BACKWARD_ELEMENTWISE = 1.2
"""Traffic of the element-wise backward over its forward: masks and inputs read again, gradients written."""
FUSED_ATTENTION_YEAR = 2022.4
"""Year and part of a year in which fused attention was published (FlashAttention, May 2022)."""
CAST_BYTES = 4.0
"""Bytes per element of an 8-bit matrix product's input: 16 bits read, 8 written, and 8 once more transposed."""
FLOP_PER_EXPONENTIAL = 256.0
"""Dense 16-bit FLOP in the time of one exponential on H100."""
ROUTED_BYTES = 20.0
"""Bytes per routed element: permuted, exchanged, sorted to experts, and all three back, each read and written in 16
bits; the first reads and the last writes each element once and not for every expert."""
UNROUTED_BYTES = 4.0
"""Bytes per element that the first permutation reads and the last one writes."""


def tuned() -> Numeric:
    """Nobody tuned the run beyond what its software does, where nobody says otherwise.

    .. math:: u = 0

    Returns
    -------
    tuned : numeric
        1 if the chip's maker tuned the run and published it; such rows are best cases. [1]

    Notes
    -----
    Arithmetic; holds wherever its inputs do.

    References
    ----------
    .. [1] S. Bekman, "Machine learning engineering," 2026, chapter on accelerators: published rates and real ones.

    Examples
    --------
    >>> tuned()
    0.0
    """
    return 0.0


def power_limit_share() -> Numeric:
    r"""Full design power for the chip where nobody says otherwise.

    .. math:: \pi = 1

    Returns
    -------
    power_limit_share : numeric
        Power that a chip may draw over its design power. [1]

    Notes
    -----
    Arithmetic; holds wherever its inputs do.

    References
    ----------
    .. [1] NVIDIA, "H100 tensor core GPU," data sheet, 2023: configurable power.

    Examples
    --------
    >>> power_limit_share()
    1.0
    """
    return 1.0


def assumed_inputs() -> Numeric:
    """Everything about the layout was stated, where nobody says otherwise.

    .. math:: 0

    Returns
    -------
    assumed_inputs : numeric
        Inputs of the layout that nobody stated. [1]

    Notes
    -----
    Arithmetic; holds wherever its inputs do.

    References
    ----------
    .. [1] C. Isaev et al., "Calculon," SC 2023, doi 10.1145/3581784.3607102, section 4: inputs of a prediction.

    Examples
    --------
    >>> assumed_inputs()
    0.0
    """
    return 0.0


def exponentials_per_s(peak_16bit_flop_per_s: Numeric) -> Numeric:
    r"""Exponentials per second where nobody states the chip's special function units: as many per FLOP as on H100.

    .. math:: F_{16} / 256

    Parameters
    ----------
    peak_16bit_flop_per_s : numeric
        Dense peak of one chip in bf16 or fp16. [FLOP/s]

    Returns
    -------
    exponentials_per_s : numeric
        Exponentials that the special function units of one chip compute. [1/s]

    Notes
    -----
    989 TFLOP/s beside 3.9 billion exponentials in a millisecond on H100; 128 FLOP on A100, 450 on B200, 234 on GB300.

    References
    ----------
    .. [1] J. Shah et al., "FlashAttention-3," arXiv:2407.08608, 2024, section 3.2.

    Examples
    --------
    >>> exponentials_per_s(1.024e15) / 1e12
    4.0
    """
    return peak_16bit_flop_per_s / FLOP_PER_EXPONENTIAL


def maturity(software_year: Numeric, chip_year: Numeric, maturity_years: Numeric, tuned: Numeric) -> Numeric:
    r"""How far the software of a run has come on its chip.

    .. math:: 1 - (1 - u)\, \mathrm{e}^{-\max(y + \frac12 - y_c,\, 0) / \tau}

    Parameters
    ----------
    software_year : numeric
        Calendar year of the software a run used. [1]
    chip_year : numeric
        Year and part of a year in which the first chip of the generation was released. [1]
    maturity_years : numeric
        Time in which the lag of software behind a new chip falls by e. [1]
    tuned : numeric
        1 if the chip's maker tuned the run and published it; such rows are best cases. [1]

    Returns
    -------
    maturity : numeric
        1 for software as good as it gets on a chip; less for a chip that is new. [1]

    Notes
    -----
    The middle of the calendar year counts. New chips run old kernels at first: FlashAttention 2 ran on H100 without its
    new instructions for a year. Who makes the chip has its kernels ready when it appears. A second chip of a generation
    runs the kernels of the first.

    References
    ----------
    .. [1] J. Shah et al., "FlashAttention-3," arXiv:2407.08608, 2024, section 1: 35 % of H100's peak before.

    Examples
    --------
    >>> round(maturity(2025.0, 2022.75, 1.5, 0.0), 2)
    0.84
    """
    return 1.0 - (1.0 - tuned) * exp(-maximum(software_year + 0.5 - chip_year, 0.0) / maturity_years)


def design_j_per_flop() -> Numeric:
    r"""Design power over peak rate of H100 where nobody names the chip.

    .. math:: 700 \text{ W} / 989 \text{ TFLOP/s}

    Returns
    -------
    design_j_per_flop : numeric
        Design power of one chip over its dense peak in 16 bits. [J/FLOP]

    Notes
    -----
    Arithmetic; holds wherever its inputs do.

    References
    ----------
    .. [1] NVIDIA, "H100 tensor core GPU," data sheet, 2023.

    Examples
    --------
    >>> design_j_per_flop()
    7.07e-13
    """
    return 7.07e-13


def held_rate_share(
    design_j_per_flop: Numeric, power_limit_share: Numeric, full_power_j_per_flop: Numeric, power_exponent: Numeric
) -> Numeric:
    r"""Share of its rate that power lets a chip hold through a long run of matrix products.

    .. math:: \min\left(\frac{\pi\, \epsilon}{\epsilon_0},\, 1\right)^{x}

    Parameters
    ----------
    design_j_per_flop : numeric
        Design power of one chip over its dense peak in 16 bits. [J/FLOP]
    power_limit_share : numeric
        Power that a chip may draw over its design power. [1]
    full_power_j_per_flop : numeric
        Power over dense 16-bit peak from which on a chip holds its clock through matrix products. [J/FLOP]
    power_exponent : numeric
        Power of the power limit with which the rate falls. [1]

    Returns
    -------
    held_rate_share : numeric
        Share of the matrix-product ceiling that power lets a chip hold. [1]

    Notes
    -----
    A ceiling is one product on a cold chip. A100 has 1.28 W for each TFLOP/s of its peak and holds its clock, H100 has
    0.71, B200 0.44: of hundreds of products that SimuMax measured, A100 sustained 0.98 of its ceiling and B200 0.69.

    References
    ----------
    .. [1] MooreThreads, "SimuMax," 2026, configs/system: 697 matrix products measured on A100 and B200.

    Examples
    --------
    >>> held_rate_share(1.28e-12, 1.0, 8e-13, 0.6), round(held_rate_share(4.44e-13, 1.0, 8e-13, 0.6), 2)
    (1.0, 0.7)
    """
    return minimum(power_limit_share * design_j_per_flop / full_power_j_per_flop, 1.0) ** power_exponent


def gemm_16bit_flop_per_s(
    peak_16bit_flop_per_s: Numeric,
    gemm_ceiling_16bit: Numeric,
    gemm_share_16bit: Numeric,
    held_rate_share: Numeric,
    maturity: Numeric,
    young_gemm_share: Numeric,
    tuned: Numeric,
    tuning_gain: Numeric,
) -> Numeric:
    r"""Rate that large matrix products sustain in 16 bits.

    .. math::
        F_{16}\, \kappa_{16}\, \eta_{16}\, \eta_p \left[1 - (1 - \mu)(1 - \eta_{young})\right]
        \left[1 + u (\eta_u - 1)\right]

    Parameters
    ----------
    peak_16bit_flop_per_s : numeric
        Dense peak of one chip in bf16 or fp16. [FLOP/s]
    gemm_ceiling_16bit : numeric
        Best rate that any matrix product reached on the chip in 16 bits, over the dense peak. [1]
    gemm_share_16bit : numeric
        Share of the ceiling that long runs sustain over all matrix products in 16 bits. [1]
    held_rate_share : numeric
        Share of the matrix-product ceiling that power lets a chip hold. [1]
    maturity : numeric
        1 for software as good as it gets on a chip; less for a chip that is new. [1]
    young_gemm_share : numeric
        Share of the later matrix-product rate on the day a chip appears. [1]
    tuned : numeric
        1 if the chip's maker tuned the run and published it; such rows are best cases. [1]
    tuning_gain : numeric
        Rate of a run that the chip's maker tuned over that of others. [1]

    Returns
    -------
    gemm_16bit_flop_per_s : numeric
        Rate that large matrix products sustain in a long run in 16 bits. [FLOP/s]

    Notes
    -----
    The ceiling is measured on one chip alone; runs lose to heat, shapes and neighbours.

    References
    ----------
    .. [1] S. Bekman, "Machine learning engineering," 744d01e, 2026, maximum achievable matmul FLOPS.

    Examples
    --------
    >>> gemm_16bit_flop_per_s(1e15, 0.8, 0.85, 1.0, 1.0, 0.8, 0.0, 1.2) / 1e12
    680.0
    """
    grown = 1.0 - (1.0 - maturity) * (1.0 - young_gemm_share)
    gain = 1.0 + tuned * (tuning_gain - 1.0)
    sustained = gemm_ceiling_16bit * gemm_share_16bit * held_rate_share
    return peak_16bit_flop_per_s * sustained * grown * gain


def gemm_flop_per_s(
    peak_flop_per_s: Numeric,
    gemm_ceiling: Numeric,
    precision: Numeric,
    gemm_share_16bit: Numeric,
    gemm_share_8bit: Numeric,
    gemm_share_block: Numeric,
    held_rate_share: Numeric,
    maturity: Numeric,
    young_gemm_share: Numeric,
    tuned: Numeric,
    tuning_gain: Numeric,
) -> Numeric:
    r"""Rate that large matrix products sustain at the precision of the run.

    .. math::
        F\, \kappa\, \eta_{prec}\, \eta_p \left[1 - (1 - \mu)(1 - \eta_{young})\right]
        \left[1 + u (\eta_u - 1)\right]

    Parameters
    ----------
    peak_flop_per_s : numeric
        Dense peak of one chip at the precision of the run. [FLOP/s]
    gemm_ceiling : numeric
        Best rate that any matrix product reached on the chip at the precision of the run, over the dense peak. [1]
    precision : text
        Bf16 | fp8 | mxfp8 | nvfp4. [text]
    gemm_share_16bit : numeric
        Share of the ceiling that long runs sustain over all matrix products in 16 bits. [1]
    gemm_share_8bit : numeric
        Share of the ceiling that long runs sustain over all matrix products in 8-bit floating point. [1]
    gemm_share_block : numeric
        Share of the ceiling that long runs sustain over all matrix products in block-scaled formats (mxfp8 and nvfp4).
        [1]
    held_rate_share : numeric
        Share of the matrix-product ceiling that power lets a chip hold. [1]
    maturity : numeric
        1 for software as good as it gets on a chip; less for a chip that is new. [1]
    young_gemm_share : numeric
        Share of the later matrix-product rate on the day a chip appears. [1]
    tuned : numeric
        1 if the chip's maker tuned the run and published it; such rows are best cases. [1]
    tuning_gain : numeric
        Rate of a run that the chip's maker tuned over that of others. [1]

    Returns
    -------
    gemm_flop_per_s : numeric
        Rate that large matrix products sustain in a long run at the precision of the run. [FLOP/s]

    Notes
    -----
    The casts that feed narrow products are counted as element-wise work.

    References
    ----------
    .. [1] S. Bekman, "Machine learning engineering," 744d01e, 2026, maximum achievable matmul FLOPS.

    Examples
    --------
    >>> gemm_flop_per_s(2e15, 0.7, "fp8", 0.85, 1.0, 0.9, 1.0, 1.0, 0.8, 0.0, 1.2) / 1e12
    1400.0
    """
    narrow = where(equal(precision, "fp8"), gemm_share_8bit, gemm_share_block)
    not_bf16 = where(equal(precision, "fp16"), gemm_share_16bit, narrow)
    sustained = where(equal(precision, "bf16"), gemm_share_16bit, not_bf16)
    grown = 1.0 - (1.0 - maturity) * (1.0 - young_gemm_share)
    gain = 1.0 + tuned * (tuning_gain - 1.0)
    share = gemm_ceiling * sustained * held_rate_share
    return peak_flop_per_s * share * grown * gain


def sustained_memory_bytes_per_s(memory_bytes_per_s: Numeric, memory_rate_share: Numeric) -> Numeric:
    r"""Rate at which kernels stream memory.

    .. math:: B_m\, \eta_m

    Parameters
    ----------
    memory_bytes_per_s : numeric
        Peak rate of the memory on the package. [byte/s]
    memory_rate_share : numeric
        Share of the memory's peak rate that kernels sustain. [1]

    Returns
    -------
    sustained_memory_bytes_per_s : numeric
        Rate of the memory on the package that kernels sustain. [byte/s]

    Notes
    -----
    Arithmetic; holds wherever its inputs do.

    References
    ----------
    .. [1] J. McCalpin, "STREAM," 1995; on accelerators 80 to 92 % of the peak is usual.

    Examples
    --------
    >>> sustained_memory_bytes_per_s(3.35e12, 0.8) / 1e12
    2.68
    """
    return memory_bytes_per_s * memory_rate_share


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
    attention_parameters: Numeric,
    ffn_parameters: Numeric,
    shared_parameters: Numeric,
    routed_parameters: Numeric,
    tensor_parallel: Numeric,
    gemm_flop_per_s: Numeric,
    gemm_traffic_factor: Numeric,
    gradient_bytes_per_parameter: Numeric,
    sustained_memory_bytes_per_s: Numeric,
) -> Numeric:
    r"""Time of one forward of one micro-batch through the weights of a mean layer.

    .. math::
        \frac{w}{F_g} + k_t \frac{w}{B_s} \left(\frac{2 + b_g}{3 T_x} + \frac{1}{h} + \frac{t}{f_x}\right), \qquad
        w = \frac{2 T}{t} \left[N_{attn} + \tfrac{L_d}{L} N_{ffn} + \tfrac{L_e}{L} (\tfrac{k}{E} N_{re} + N_{sh})\right]

    Parameters
    ----------
    micro_batch_tokens : numeric
        Tokens of one micro-batch that one context-parallel rank sees. [1]
    hidden_size : numeric
        Width of the residual stream. [1]
    ffn_size : numeric
        Width of a dense feed-forward block. [1]
    expert_ffn_size : numeric
        Width of one routed expert. [1]
    layers : numeric
        Transformer blocks. [1]
    moe_layers : numeric
        Blocks with routed experts; prediction layers not counted. [1]
    experts : numeric
        Routed experts of a layer; 0 or 1 for a dense model. [1]
    experts_per_token : numeric
        Routed experts that one token visits. [1]
    expert_parallel : numeric
        Ways the experts are spread. [1]
    attention_parameters : numeric
        Weights of the matrices of one attention block; norms of low ranks included. [1]
    ffn_parameters : numeric
        Weights of the matrices of one dense feed-forward block. [1]
    shared_parameters : numeric
        Weights of the matrices of the shared experts of one layer. [1]
    routed_parameters : numeric
        Weights of the matrices of all routed experts of one layer. [1]
    tensor_parallel : numeric
        Ways one layer is split. [1]
    gemm_flop_per_s : numeric
        Rate that large matrix products sustain in a long run at the precision of the run. [FLOP/s]
    gemm_traffic_factor : numeric
        Time of a matrix product beyond its arithmetic, in units of reading and writing each matrix once. [1]
    gradient_bytes_per_parameter : numeric
        Bytes of one gradient: 2 or 4, or 6 where a 32-bit sum is kept beside 16-bit gradients. [byte]
    sustained_memory_bytes_per_s : numeric
        Rate of the memory on the package that kernels sustain. [byte/s]

    Returns
    -------
    layer_gemm_s : numeric
        Time of one forward of one micro-batch through the weights of a mean layer. [s]

    Notes
    -----
    The second term is the traffic of a product: its inverse intensity is the sum of the inverse sizes. It makes small
    products slow without a fitted curve. The weights are read forward and backward, and their gradient is read and
    written as it accumulates: two plus :math:`b_g` bytes in the mean of three products, where 2 bytes are usual. An
    expert sees :math:`T_x = T k e / E` tokens of a micro-batch.

    References
    ----------
    .. [1] S. Williams et al., "Roofline," Commun. ACM, vol. 52, no. 4, 2009.

    Examples
    --------
    >>> args = (8192.0, 8192.0, 28672.0, 0.0, 80.0, 0.0, 0.0, 0.0, 1.0, 1.5e8, 7.05e8, 0.0, 0.0, 1.0)
    >>> round(layer_gemm_s(*args, 7e14, 1.2, 4.0, 2.7e12), 4)
    0.0225
    """
    moe = moe_layers / layers
    share = where(experts > 1.0, experts_per_token / maximum(experts, 1.0), 0.0)
    mixed = (1.0 - moe) * ffn_parameters + moe * (share * routed_parameters + shared_parameters)
    work = 2.0 * micro_batch_tokens * (attention_parameters + mixed) / tensor_parallel
    rows = where(moe_layers > 0.0, micro_batch_tokens * maximum(share, 1e-9) * expert_parallel, micro_batch_tokens)
    width = where(moe_layers > 0.0, expert_ffn_size, ffn_size)
    weights = (2.0 + gradient_bytes_per_parameter) / 3.0
    inverse_intensity = weights / rows + 1.0 / hidden_size + tensor_parallel / maximum(width, 1.0)
    traffic = gemm_traffic_factor * work * inverse_intensity / sustained_memory_bytes_per_s
    return work / gemm_flop_per_s + traffic


def layer_attention_s(
    micro_batch_tokens: Numeric,
    sequence_length: Numeric,
    attended_tokens: Numeric,
    attention_heads: Numeric,
    head_size: Numeric,
    rope_head_size: Numeric,
    value_head_size: Numeric,
    tensor_parallel: Numeric,
    flash_attention: Numeric,
    peak_16bit_flop_per_s: Numeric,
    exponentials_per_s: Numeric,
    gemm_16bit_flop_per_s: Numeric,
    attention_share: Numeric,
    power_limit_share: Numeric,
    power_exponent: Numeric,
    software_year: Numeric,
    maturity_years: Numeric,
    maturity: Numeric,
    young_attention_share: Numeric,
    score_bytes: Numeric,
    sustained_memory_bytes_per_s: Numeric,
) -> Numeric:
    r"""Time of one forward of one micro-batch through the attention core of one layer.

    .. math::
        \frac{T s_a a}{t\, \mu_a \mu_f \pi^{x}} \left(\frac{d + d_r + d_v}{F_{16} \eta_a} + \frac{1}{2 E}\right)
        \quad \text{fused}, \qquad
        \frac{2 T s a (d + d_r + d_v)}{t F_g} + \frac{b_s a T s}{3 t B_s} \quad \text{unfused}

    Parameters
    ----------
    micro_batch_tokens : numeric
        Tokens of one micro-batch that one context-parallel rank sees. [1]
    sequence_length : numeric
        Tokens of one training sequence. [1]
    attended_tokens : numeric
        Tokens that a query scores, without the causal mask; mean of all queries and layers. [1]
    attention_heads : numeric
        Query heads of one attention block. [1]
    head_size : numeric
        Width of one attention head; hidden size over query heads where a model does not say otherwise. [1]
    rope_head_size : numeric
        Extra width of query and key that carries the position in multi-head latent attention. [1]
    value_head_size : numeric
        Width of one head's value; the head size where a model does not say otherwise. [1]
    tensor_parallel : numeric
        Ways one layer is split. [1]
    flash_attention : numeric
        1 if attention scores never reach memory. [1]
    peak_16bit_flop_per_s : numeric
        Dense peak of one chip in bf16 or fp16. [FLOP/s]
    exponentials_per_s : numeric
        Exponentials that the special function units of one chip compute. [1/s]
    gemm_16bit_flop_per_s : numeric
        Rate that large matrix products sustain in a long run in 16 bits. [FLOP/s]
    attention_share : numeric
        Rate of the products within fused attention over the dense 16-bit peak. [1]
    power_limit_share : numeric
        Power that a chip may draw over its design power. [1]
    power_exponent : numeric
        Power of the power limit with which the rate falls. [1]
    software_year : numeric
        Calendar year of the software a run used. [1]
    maturity_years : numeric
        Time in which the lag of software behind a new chip falls by e. [1]
    maturity : numeric
        1 for software as good as it gets on a chip; less for a chip that is new. [1]
    young_attention_share : numeric
        Share of the later attention rate on the day a chip appears. [1]
    score_bytes : numeric
        Bytes moved per element of the attention square by unfused attention; forward and backward. [byte]
    sustained_memory_bytes_per_s : numeric
        Rate of the memory on the package that kernels sustain. [byte/s]

    Returns
    -------
    layer_attention_s : numeric
        Time of one forward of one micro-batch through scores and values of one layer. [s]

    Notes
    -----
    A fused kernel does the causal half, and of a window its band; an unfused one the whole square, and writes it to
    memory. Always in 16 bits. Every score takes one exponential, which is why attention keeps less of the peak where
    chips grew more matrix units than special function units. Kernels ripen twice, on the chip and since fused attention
    was published: :math:`\mu = 1 - (1 - m)(1 - \eta_{young})`.

    References
    ----------
    .. [1] T. Dao, "FlashAttention-2," arXiv:2307.08691, 2023, section 4.1.
    .. [2] J. Shah et al., "FlashAttention-3," arXiv:2407.08608, 2024, section 3.2: exponentials beside products.
    .. [3] V. Korthikanti et al., arXiv:2205.05198, 2022, section 4.1.

    Examples
    --------
    >>> shape = (8192.0, 8192.0, 8192.0, 64.0, 128.0, 0.0, 128.0, 1.0)
    >>> chip = (9.89e14, 3.9e12, 7e14, 0.6, 1.0, 0.4, 2026.0, 1.5)
    >>> round(layer_attention_s(*shape, 1.0, *chip, 1.0, 0.3, 25.0, 2.7e12), 5)
    0.00252
    """
    rows = micro_batch_tokens * attention_heads / tensor_parallel
    width = head_size + rope_head_size + value_head_size
    age = 1.0 - exp(-maximum(software_year + 0.5 - FUSED_ATTENTION_YEAR, 0.0) / maturity_years)
    ripe = (1.0 - (1.0 - maturity) * (1.0 - young_attention_share)) * (
        1.0 - (1.0 - age) * (1.0 - young_attention_share)
    )
    score = width / (peak_16bit_flop_per_s * attention_share) + 0.5 / exponentials_per_s
    fused = rows * attended_tokens * score / (ripe * power_limit_share**power_exponent)
    square = rows * sequence_length
    unfused = square * (2.0 * width / gemm_16bit_flop_per_s + score_bytes / (3.0 * sustained_memory_bytes_per_s))
    return where(flash_attention > 0.0, fused, unfused)


def layer_elementwise_s(
    micro_batch_tokens: Numeric,
    hidden_size: Numeric,
    attention_heads: Numeric,
    kv_heads: Numeric,
    head_size: Numeric,
    ffn_size: Numeric,
    gated_ffn: Numeric,
    layers: Numeric,
    moe_layers: Numeric,
    experts_per_token: Numeric,
    shared_experts: Numeric,
    expert_ffn_size: Numeric,
    precision: Numeric,
    tensor_parallel: Numeric,
    kept_rows_share: Numeric,
    elementwise_factor: Numeric,
    software_gain_per_year: Numeric,
    software_year: Numeric,
    sustained_memory_bytes_per_s: Numeric,
) -> Numeric:
    r"""Time of one forward of one micro-batch through norms, residuals, activations and routing of a mean layer.

    .. math::
        k_e\, \mathrm{e}^{-\gamma (y - 2024)} \frac{T}{B_s} \left[\frac{20 h}{t_s}
        + \frac{(2 + 4 g) f + 6 (a + 2 a_{kv}) d + (20 k + 4) h + 4 (2 h + a d + f) [8 \text{ bits}]}{t}\right]

    Parameters
    ----------
    micro_batch_tokens : numeric
        Tokens of one micro-batch that one context-parallel rank sees. [1]
    hidden_size : numeric
        Width of the residual stream. [1]
    attention_heads : numeric
        Query heads of one attention block. [1]
    kv_heads : numeric
        Key and value heads of one attention block; fewer than the query heads where these share them. [1]
    head_size : numeric
        Width of one attention head; hidden size over query heads where a model does not say otherwise. [1]
    ffn_size : numeric
        Width of a dense feed-forward block. [1]
    gated_ffn : numeric
        1 if the block is SwiGLU-like (three matrices) else 0. [1]
    layers : numeric
        Transformer blocks. [1]
    moe_layers : numeric
        Blocks with routed experts; prediction layers not counted. [1]
    experts_per_token : numeric
        Routed experts that one token visits. [1]
    shared_experts : numeric
        Experts of the routed width that every token visits; a fraction if their width is another. [1]
    expert_ffn_size : numeric
        Width of one routed expert. [1]
    precision : text
        Bf16 | fp8 | mxfp8 | nvfp4. [text]
    tensor_parallel : numeric
        Ways one layer is split. [1]
    kept_rows_share : numeric
        Share of the activations of norms that one rank keeps: one over the tensor-parallel ways with sequence
        parallelism, else 1. [1]
    elementwise_factor : numeric
        Memory traffic outside matrix products, in units of that of a fused forward. [1]
    software_gain_per_year : numeric
        Share by which element-wise and launch time fall each year as software gets better. [1]
    software_year : numeric
        Calendar year of the software a run used. [1]
    sustained_memory_bytes_per_s : numeric
        Rate of the memory on the package that kernels sustain. [byte/s]

    Returns
    -------
    layer_elementwise_s : numeric
        Time of one fused forward of one micro-batch through all of a layer that is no matrix product. [s]

    Notes
    -----
    Two norms, two residual sums, rotation and copies of query, key and value, and the activation, each read and written
    once in 16 bits; tokens on their way to experts and back in six passes. Products in 8 bits or fewer cast their
    inputs first: of the projections, of attention's output and of both halves of the feed-forward. The year counts from
    2022 to 2028.

    References
    ----------
    .. [1] A. Ivanov et al., "Data movement is all you need," MLSys 2021, arXiv:2007.00072, table III.

    Examples
    --------
    >>> args = (8192.0, 8192.0, 64.0, 8.0, 128.0, 28672.0, 1.0, 80.0, 0.0, 0.0, 0.0, 0.0)
    >>> round(layer_elementwise_s(*args, "bf16", 1.0, 1.0, 1.3, 0.03, 2024.0, 2.7e12), 5)
    0.00157
    """
    moe = moe_layers / layers
    inner = (1.0 - moe) * ffn_size + moe * (experts_per_token + shared_experts) * expert_ffn_size
    heads = 6.0 * (attention_heads + 2.0 * kv_heads) * head_size
    routed = moe * (ROUTED_BYTES * experts_per_token + UNROUTED_BYTES) * hidden_size
    narrow = where(equal(precision, "bf16"), 0.0, where(equal(precision, "fp16"), 0.0, CAST_BYTES))
    cast = narrow * (2.0 * hidden_size + attention_heads * head_size + inner)
    split = (2.0 + 4.0 * gated_ffn) * inner + heads + routed + cast
    moved = 20.0 * hidden_size * kept_rows_share + split / tensor_parallel
    era = exp(-software_gain_per_year * (minimum(maximum(software_year, 2022.0), 2028.0) - 2024.0))
    return elementwise_factor * era * micro_batch_tokens * moved / sustained_memory_bytes_per_s


def gemm_passes(
    recompute_share: Numeric,
) -> Numeric:
    r"""Matrix products of a forward and backward, in forwards.

    .. math:: q_g = 3 + \rho

    Parameters
    ----------
    recompute_share : numeric
        Share of layers whose forward runs again in the backward. [1]

    Returns
    -------
    gemm_passes : numeric
        Forwards' worth of matrix products in one forward and backward of a layer; recomputation included. [1]

    Notes
    -----
    The backward multiplies twice, for the gradient of the input and of the weight; recomputation runs the forward
    again.

    References
    ----------
    .. [1] A. Chowdhery et al., "PaLM," arXiv:2204.02311, 2022, appendix B: one forward and two for the backward.
    .. [2] V. Korthikanti et al., arXiv:2205.05198, 2022, section 5: recomputation.

    Examples
    --------
    >>> gemm_passes(1.0)
    4.0
    """
    return 3.0 + recompute_share


def elementwise_passes(
    recompute_share: Numeric,
) -> Numeric:
    r"""Element-wise work of a forward and backward, in forwards.

    .. math:: q_e = 2.2 + \rho

    Parameters
    ----------
    recompute_share : numeric
        Share of layers whose forward runs again in the backward. [1]

    Returns
    -------
    elementwise_passes : numeric
        Forwards' worth of element-wise work in one forward and backward of a layer; recomputation included. [1]

    Notes
    -----
    The backward reads masks and inputs again and writes gradients: 1.2 times the traffic of the forward.

    References
    ----------
    .. [1] A. Ivanov et al., "Data movement is all you need," MLSys 2021, arXiv:2007.00072, table III.

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

    Parameters
    ----------
    recompute_share : numeric
        Share of layers whose forward runs again in the backward. [1]
    recompute : text
        None | selective | full. [text]
    flash_attention : numeric
        1 if attention scores never reach memory. [1]

    Returns
    -------
    attention_passes : numeric
        Forwards' worth of attention core in one forward and backward of a layer; recomputation included. [1]

    Notes
    -----
    A fused attention backward computes its scores once more (2.5 forwards). Recomputation runs the forward again,
    selective recomputation (:math:`\sigma = 1`) the attention core alone.

    References
    ----------
    .. [1] T. Dao, "FlashAttention-2," arXiv:2307.08691, 2023, section 4.1: backward 2.5 times.
    .. [2] V. Korthikanti et al., arXiv:2205.05198, 2022, section 5.

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
    gemm_passes: Numeric,
    elementwise_passes: Numeric,
    attention_passes: Numeric,
) -> Numeric:
    r"""Compute time of one micro-batch in a mean layer, forward and backward.

    .. math:: q_g T_g + q_e T_e + q_a T_a

    Parameters
    ----------
    layer_gemm_s : numeric
        Time of one forward of one micro-batch through the weights of a mean layer. [s]
    layer_elementwise_s : numeric
        Time of one fused forward of one micro-batch through all of a layer that is no matrix product. [s]
    layer_attention_s : numeric
        Time of one forward of one micro-batch through scores and values of one layer. [s]
    gemm_passes : numeric
        Forwards' worth of matrix products in one forward and backward of a layer; recomputation included. [1]
    elementwise_passes : numeric
        Forwards' worth of element-wise work in one forward and backward of a layer; recomputation included. [1]
    attention_passes : numeric
        Forwards' worth of attention core in one forward and backward of a layer; recomputation included. [1]

    Returns
    -------
    layer_compute_s : numeric
        Time of forward and backward of one micro-batch through a mean layer; recomputation included. [s]

    Notes
    -----
    Products, element-wise traffic and attention follow one another on a chip; what overlaps is in their rates.

    References
    ----------
    .. [1] M. Isaev et al., "Calculon," SC 2023, doi 10.1145/3581784.3607102, section 3: their times are summed.

    Examples
    --------
    >>> layer_compute_s(1.0, 0.5, 0.1, 4.0, 3.0, 4.0)
    5.9
    """
    return gemm_passes * layer_gemm_s + elementwise_passes * layer_elementwise_s + attention_passes * layer_attention_s


def tensor_parallel_s(
    micro_batch_tokens: Numeric,
    hidden_size: Numeric,
    tensor_parallel: Numeric,
    recompute_share: Numeric,
    software_year: Numeric,
    tensor_exposed_early: Numeric,
    tensor_exposed_late: Numeric,
    scale_up_domain: Numeric,
    scale_up_bytes_per_s: Numeric,
    scale_out_bytes_per_s: Numeric,
    scale_up_share: Numeric,
    scale_out_share: Numeric,
    scale_up_latency_s: Numeric,
    scale_out_latency_s: Numeric,
) -> Numeric:
    r"""Exposed tensor-parallel communication of one layer and micro-batch.

    .. math:: x (4 + 2 \rho) \cdot 2\, T_{rs}(2 T h, t)

    Parameters
    ----------
    micro_batch_tokens : numeric
        Tokens of one micro-batch that one context-parallel rank sees. [1]
    hidden_size : numeric
        Width of the residual stream. [1]
    tensor_parallel : numeric
        Ways one layer is split. [1]
    recompute_share : numeric
        Share of layers whose forward runs again in the backward. [1]
    software_year : numeric
        Calendar year of the software a run used. [1]
    tensor_exposed_early : numeric
        Share of tensor-parallel communication that compute does not hide in software before 2024. [1]
    tensor_exposed_late : numeric
        Share of tensor-parallel communication that compute does not hide in software from 2024 on. [1]
    scale_up_domain : numeric
        Accelerators joined by the fast fabric (8 in a DGX H100; 72 in an NVL72). [1]
    scale_up_bytes_per_s : numeric
        Scale-up bandwidth of one accelerator in one direction. [byte/s]
    scale_out_bytes_per_s : numeric
        Scale-out bandwidth of one accelerator in one direction. [byte/s]
    scale_up_share : numeric
        Share of the scale-up link rate that large collectives reach. [1]
    scale_out_share : numeric
        Share of the scale-out link rate that large collectives reach. [1]
    scale_up_latency_s : numeric
        Latency of one hop in the scale-up domain, software included. [s]
    scale_out_latency_s : numeric
        Latency of one hop between domains, software included. [s]

    Returns
    -------
    tensor_parallel_s : numeric
        Time of the exposed tensor-parallel collectives of one layer and micro-batch, forward and backward. [s]

    Notes
    -----
    Two all-reduces forward, two backward and two more where the forward runs again, each a reduce-scatter and an
    all-gather. A group wider than the scale-up domain is held to the network links of its ranks.

    References
    ----------
    .. [1] M. Shoeybi et al., "Megatron-LM," arXiv:1909.08053, 2019, section 3.

    Examples
    --------
    >>> links = (8.0, 4.5e11, 5e10, 1.0, 1.0, 0.0, 0.0)
    >>> round(tensor_parallel_s(8192.0, 8192.0, 8.0, 0.0, 2025.0, 0.9, 1.0, *links), 5)
    0.00209
    """
    exposed = where(software_year >= 2024.0, tensor_exposed_late, tensor_exposed_early)
    one_way = two_tier_ring_s(
        2.0 * micro_batch_tokens * hidden_size,
        tensor_parallel,
        minimum(tensor_parallel, scale_up_domain),
        scale_up_bytes_per_s,
        scale_out_bytes_per_s,
        scale_up_share,
        scale_out_share,
        scale_up_latency_s,
        scale_out_latency_s,
    )
    return where(tensor_parallel > 1.0, exposed * (4.0 + 2.0 * recompute_share) * 2.0 * one_way, 0.0)


def context_parallel_s(
    micro_batch_tokens: Numeric,
    kv_heads: Numeric,
    head_size: Numeric,
    context_parallel: Numeric,
    tensor_parallel: Numeric,
    context_exposed_share: Numeric,
    scale_up_domain: Numeric,
    scale_up_bytes_per_s: Numeric,
    scale_out_bytes_per_s: Numeric,
    scale_up_share: Numeric,
    scale_out_share: Numeric,
) -> Numeric:
    r"""Exposed context-parallel communication of one layer and micro-batch.

    .. math:: 3 x (c - 1) \frac{4 T a_{kv} d}{t B}

    Parameters
    ----------
    micro_batch_tokens : numeric
        Tokens of one micro-batch that one context-parallel rank sees. [1]
    kv_heads : numeric
        Key and value heads of one attention block; fewer than the query heads where these share them. [1]
    head_size : numeric
        Width of one attention head; hidden size over query heads where a model does not say otherwise. [1]
    context_parallel : numeric
        Ways one sequence is split. [1]
    tensor_parallel : numeric
        Ways one layer is split. [1]
    context_exposed_share : numeric
        Share of context-parallel communication that compute does not hide. [1]
    scale_up_domain : numeric
        Accelerators joined by the fast fabric (8 in a DGX H100; 72 in an NVL72). [1]
    scale_up_bytes_per_s : numeric
        Scale-up bandwidth of one accelerator in one direction. [byte/s]
    scale_out_bytes_per_s : numeric
        Scale-out bandwidth of one accelerator in one direction. [byte/s]
    scale_up_share : numeric
        Share of the scale-up link rate that large collectives reach. [1]
    scale_out_share : numeric
        Share of the scale-out link rate that large collectives reach. [1]

    Returns
    -------
    context_parallel_s : numeric
        Time of the exposed exchange of keys and values of one layer and micro-batch. [s]

    Notes
    -----
    Keys and values go once around the ring forward, and with their gradients backward.

    References
    ----------
    .. [1] H. Liu et al., "Ring attention with blockwise transformers," arXiv:2310.01889, 2023, section 3.

    Examples
    --------
    >>> context_parallel_s(4096.0, 8.0, 128.0, 2.0, 1.0, 0.5, 8.0, 4e11, 5e10, 1.0, 1.0)
    6.291456e-05
    """
    one_block = 4.0 * micro_batch_tokens * kv_heads * head_size / tensor_parallel
    crosses = tensor_parallel * context_parallel > scale_up_domain
    rate = where(crosses, scale_out_bytes_per_s * scale_out_share, scale_up_bytes_per_s * scale_up_share)
    return 3.0 * context_exposed_share * (context_parallel - 1.0) * one_block / rate


def expert_parallel_s(
    micro_batch_tokens: Numeric,
    hidden_size: Numeric,
    experts_per_token: Numeric,
    expert_parallel: Numeric,
    tensor_parallel: Numeric,
    layers: Numeric,
    moe_layers: Numeric,
    expert_exposed_share: Numeric,
    scale_up_domain: Numeric,
    scale_up_bytes_per_s: Numeric,
    scale_out_bytes_per_s: Numeric,
    scale_up_share: Numeric,
    scale_out_share: Numeric,
) -> Numeric:
    r"""Exposed all-to-alls of one micro-batch in a mean layer.

    .. math::
        4 x \frac{L_e}{L} \frac{2 T h}{t} \left[\frac{k (1 - 1/g)}{B_{up}} + \frac{n_d (1 - 1/D)}{B_{out}}\right],
        \qquad n_d = D \left(1 - (1 - 1/D)^k\right), \qquad D = e / g

    Parameters
    ----------
    micro_batch_tokens : numeric
        Tokens of one micro-batch that one context-parallel rank sees. [1]
    hidden_size : numeric
        Width of the residual stream. [1]
    experts_per_token : numeric
        Routed experts that one token visits. [1]
    expert_parallel : numeric
        Ways the experts are spread. [1]
    tensor_parallel : numeric
        Ways one layer is split. [1]
    layers : numeric
        Transformer blocks. [1]
    moe_layers : numeric
        Blocks with routed experts; prediction layers not counted. [1]
    expert_exposed_share : numeric
        Share of expert communication that compute does not hide. [1]
    scale_up_domain : numeric
        Accelerators joined by the fast fabric (8 in a DGX H100; 72 in an NVL72). [1]
    scale_up_bytes_per_s : numeric
        Scale-up bandwidth of one accelerator in one direction. [byte/s]
    scale_out_bytes_per_s : numeric
        Scale-out bandwidth of one accelerator in one direction. [byte/s]
    scale_up_share : numeric
        Share of the scale-up link rate that large collectives reach. [1]
    scale_out_share : numeric
        Share of the scale-out link rate that large collectives reach. [1]

    Returns
    -------
    expert_parallel_s : numeric
        Time of the exposed all-to-alls of a mean layer and one micro-batch. [s]

    Notes
    -----
    Dispatch and combine, forward and backward, 16 bits. A token crosses the network once per domain it visits,
    :math:`n_d` on average, and is copied inside. :math:`g` ranks of the group share a domain.

    References
    ----------
    .. [1] DeepSeek-AI, "DeepSeek-V3 technical report," arXiv:2412.19437, 2024, section 3.2.2.

    Examples
    --------
    >>> round(expert_parallel_s(4096.0, 7168.0, 8.0, 8.0, 1.0, 1.0, 1.0, 1.0, 8.0, 4e11, 5e10, 1.0, 1.0), 5)
    0.00411
    """
    local = maximum(minimum(expert_parallel, scale_up_domain / minimum(tensor_parallel, scale_up_domain)), 1.0)
    domains = maximum(expert_parallel / local, 1.0)
    visited = domains * (1.0 - (1.0 - 1.0 / domains) ** experts_per_token)
    token_bytes = 2.0 * micro_batch_tokens * hidden_size / tensor_parallel
    inside = token_bytes * experts_per_token * (1.0 - 1.0 / local) / (scale_up_bytes_per_s * scale_up_share)
    across = token_bytes * visited * (1.0 - 1.0 / domains) / (scale_out_bytes_per_s * scale_out_share)
    return 4.0 * expert_exposed_share * moe_layers / layers * (inside + across)


def launch_s(
    layer_launch_s: Numeric,
    collective_launch_s: Numeric,
    recompute_share: Numeric,
    tensor_parallel: Numeric,
    software_gain_per_year: Numeric,
    software_year: Numeric,
) -> Numeric:
    r"""Time in which a processor launches one layer, forward and backward.

    .. math:: \frac{3 + \rho}{3} T_0\, \mathrm{e}^{-\gamma (y - 2024)} + [t > 1] (4 + 2 \rho) T_c

    Parameters
    ----------
    layer_launch_s : numeric
        Time in which a processor launches one layer, forward and backward, without collectives. [s]
    collective_launch_s : numeric
        Time that launching one tensor-parallel collective adds. [s]
    recompute_share : numeric
        Share of layers whose forward runs again in the backward. [1]
    tensor_parallel : numeric
        Ways one layer is split. [1]
    software_gain_per_year : numeric
        Share by which element-wise and launch time fall each year as software gets better. [1]
    software_year : numeric
        Calendar year of the software a run used. [1]

    Returns
    -------
    launch_s : numeric
        Time in which a processor launches one layer, forward and backward, with the collectives of its layout. [s]

    Notes
    -----
    It rules where layers are small; beside larger ones it hides.

    References
    ----------
    .. [1] J. Fernandez et al., "The framework tax," EMNLP 2023, arXiv:2302.06117, section 4.

    Examples
    --------
    >>> round(launch_s(0.0015, 0.0001, 0.0, 8.0, 0.03, 2024.0), 4)
    0.0019
    """
    era = exp(-software_gain_per_year * (minimum(maximum(software_year, 2022.0), 2028.0) - 2024.0))
    collectives = where(tensor_parallel > 1.0, (4.0 + 2.0 * recompute_share) * collective_launch_s, 0.0)
    return (3.0 + recompute_share) / 3.0 * layer_launch_s * era + collectives


def gather_s(
    layers: Numeric,
    moe_layers: Numeric,
    attention_parameters: Numeric,
    ffn_parameters: Numeric,
    shared_parameters: Numeric,
    routed_parameters: Numeric,
    expert_parallel: Numeric,
    tensor_parallel: Numeric,
    data_parallel: Numeric,
    context_parallel: Numeric,
    zero_stage: Numeric,
    scale_up_domain: Numeric,
    scale_up_bytes_per_s: Numeric,
    scale_out_bytes_per_s: Numeric,
    scale_up_share: Numeric,
    scale_out_share: Numeric,
    scale_up_latency_s: Numeric,
    scale_out_latency_s: Numeric,
) -> Numeric:
    r"""Communication of fully sharded weights in a mean layer and one micro-batch.

    .. math::
        [z \ge 3]\; 3\, T_{rs}\!\left(\tfrac{2}{t} \left[N_{attn} + \tfrac{L_d}{L} N_{ffn} + \tfrac{L_e}{L}
        (N_{re} / e + N_{sh})\right],\, d c\right)

    Parameters
    ----------
    layers : numeric
        Transformer blocks. [1]
    moe_layers : numeric
        Blocks with routed experts; prediction layers not counted. [1]
    attention_parameters : numeric
        Weights of the matrices of one attention block; norms of low ranks included. [1]
    ffn_parameters : numeric
        Weights of the matrices of one dense feed-forward block. [1]
    shared_parameters : numeric
        Weights of the matrices of the shared experts of one layer. [1]
    routed_parameters : numeric
        Weights of the matrices of all routed experts of one layer. [1]
    expert_parallel : numeric
        Ways the experts are spread. [1]
    tensor_parallel : numeric
        Ways one layer is split. [1]
    data_parallel : numeric
        Copies of the model that share a batch. [1]
    context_parallel : numeric
        Ways one sequence is split. [1]
    zero_stage : numeric
        Stage of ZeRO sharding: 0 none, 1 optimizer, 2 gradients too, 3 weights too. [1]
    scale_up_domain : numeric
        Accelerators joined by the fast fabric (8 in a DGX H100; 72 in an NVL72). [1]
    scale_up_bytes_per_s : numeric
        Scale-up bandwidth of one accelerator in one direction. [byte/s]
    scale_out_bytes_per_s : numeric
        Scale-out bandwidth of one accelerator in one direction. [byte/s]
    scale_up_share : numeric
        Share of the scale-up link rate that large collectives reach. [1]
    scale_out_share : numeric
        Share of the scale-out link rate that large collectives reach. [1]
    scale_up_latency_s : numeric
        Latency of one hop in the scale-up domain, software included. [s]
    scale_out_latency_s : numeric
        Latency of one hop between domains, software included. [s]

    Returns
    -------
    gather_s : numeric
        Time of two gathers of weights and one scatter of gradients of one layer under ZeRO 3. [s]

    Notes
    -----
    Weights are gathered forward and backward, gradients scattered, in 16 bits.

    References
    ----------
    .. [1] S. Rajbhandari et al., "ZeRO," SC 2020, arXiv:1910.02054, section 7.2.2.

    Examples
    --------
    >>> links = (8.0, 4.5e11, 5e10, 1.0, 1.0, 0.0, 0.0)
    >>> round(gather_s(80.0, 0.0, 1.5e8, 7.05e8, 0.0, 0.0, 1.0, 1.0, 64.0, 1.0, 3.0, *links), 4)
    0.0126
    """
    moe = moe_layers / layers
    mixed = (1.0 - moe) * ffn_parameters + moe * (routed_parameters / expert_parallel + shared_parameters)
    ranks = data_parallel * context_parallel
    local = maximum(minimum(ranks, scale_up_domain / minimum(tensor_parallel, scale_up_domain)), 1.0)
    one = two_tier_ring_s(
        2.0 * (attention_parameters + mixed) / tensor_parallel,
        ranks,
        local,
        scale_up_bytes_per_s,
        scale_out_bytes_per_s,
        scale_up_share,
        scale_out_share,
        scale_up_latency_s,
        scale_out_latency_s,
    )
    return where(zero_stage >= 3.0, 3.0 * one, 0.0)


def layer_s(
    layer_compute_s: Numeric,
    tensor_parallel_s: Numeric,
    context_parallel_s: Numeric,
    expert_parallel_s: Numeric,
    layer_fixed_s: Numeric,
    recompute_share: Numeric,
    launch_s: Numeric,
    gather_s: Numeric,
    gradient_overlap_share: Numeric,
    gather_contention_share: Numeric,
) -> Numeric:
    r"""Time of one micro-batch in a mean layer, forward and backward.

    .. math::
        T_l = \sqrt{T_x^2 + T_{launch}^2}, \qquad T_x = T_{comp} + T_{tp} + T_{cp} + T_{ep} + \tfrac{3 + \rho}{3} T_f
        T = T_l + \max(T_{gather} - \eta_o T_l, 0) + \eta_c \min(T_{gather}, T_l)

    Parameters
    ----------
    layer_compute_s : numeric
        Time of forward and backward of one micro-batch through a mean layer; recomputation included. [s]
    tensor_parallel_s : numeric
        Time of the exposed tensor-parallel collectives of one layer and micro-batch, forward and backward. [s]
    context_parallel_s : numeric
        Time of the exposed exchange of keys and values of one layer and micro-batch. [s]
    expert_parallel_s : numeric
        Time of the exposed all-to-alls of a mean layer and one micro-batch. [s]
    layer_fixed_s : numeric
        Time of the gaps between kernels of one layer, forward and backward. [s]
    recompute_share : numeric
        Share of layers whose forward runs again in the backward. [1]
    launch_s : numeric
        Time in which a processor launches one layer, forward and backward, with the collectives of its layout. [s]
    gather_s : numeric
        Time of two gathers of weights and one scatter of gradients of one layer under ZeRO 3. [s]
    gradient_overlap_share : numeric
        Share of a micro-batch's time behind which gradients and gathered weights hide. [1]
    gather_contention_share : numeric
        Share of hidden gathering time that slows the compute it hides behind. [1]

    Returns
    -------
    layer_s : numeric
        Time of forward and backward of one micro-batch through a mean layer with all that is exposed. [s]

    Notes
    -----
    Launching and computing overlap: the longer one rules, the shorter one shows a little where they are alike. Gathers
    hide behind compute and slow it.

    References
    ----------
    .. [1] C. Isaev et al., "Calculon," SC 2023, doi 10.1145/3581784.3607102, section 3: processors taken by
       communication.

    Examples
    --------
    >>> layer_s(0.03, 0.0, 0.0, 0.0, 0.0, 0.0, 0.04, 0.0, 0.5, 0.05)
    0.05
    """
    busy = layer_compute_s + tensor_parallel_s + context_parallel_s + expert_parallel_s
    running = busy + (3.0 + recompute_share) / 3.0 * layer_fixed_s
    alone = sqrt(running * running + launch_s * launch_s)
    exposed = maximum(gather_s - gradient_overlap_share * alone, 0.0)
    return alone + exposed + gather_contention_share * minimum(gather_s, alone)


def logits_s(
    micro_batch_tokens: Numeric,
    embedding_parameters: Numeric,
    vocabulary_size: Numeric,
    mtp_layers: Numeric,
    tensor_parallel: Numeric,
    gemm_16bit_flop_per_s: Numeric,
    elementwise_factor: Numeric,
    sustained_memory_bytes_per_s: Numeric,
) -> Numeric:
    r"""Time of one micro-batch in the vocabulary's matrix and the loss, forward and backward.

    .. math:: (1 + L_m) \left[\frac{6 T N_{emb}}{t F_{16}} + k_e \frac{10 T V}{t B_s}\right]

    Parameters
    ----------
    micro_batch_tokens : numeric
        Tokens of one micro-batch that one context-parallel rank sees. [1]
    embedding_parameters : numeric
        Weights of one embedding matrix: vocabulary times width. [1]
    vocabulary_size : numeric
        Rows of the embedding, padding included. [1]
    mtp_layers : numeric
        Extra layers that predict further tokens, each with its own logits product. [1]
    tensor_parallel : numeric
        Ways one layer is split. [1]
    gemm_16bit_flop_per_s : numeric
        Rate that large matrix products sustain in a long run in 16 bits. [FLOP/s]
    elementwise_factor : numeric
        Memory traffic outside matrix products, in units of that of a fused forward. [1]
    sustained_memory_bytes_per_s : numeric
        Rate of the memory on the package that kernels sustain. [byte/s]

    Returns
    -------
    logits_s : numeric
        Time of forward and backward of one micro-batch through the vocabulary. [s]

    Notes
    -----
    In 16 bits also where layers run in 8. The loss reads and writes the logits in 32 bits. Prediction layers repeat it.

    References
    ----------
    .. [1] V. Korthikanti et al., arXiv:2205.05198, 2022, section 4.3.

    Examples
    --------
    >>> round(logits_s(8192.0, 1.05e9, 128256.0, 0.0, 1.0, 7e14, 1.3, 2.7e12), 4)
    0.0788
    """
    product = 6.0 * micro_batch_tokens * embedding_parameters / gemm_16bit_flop_per_s
    loss = elementwise_factor * 10.0 * micro_batch_tokens * vocabulary_size / sustained_memory_bytes_per_s
    return (1.0 + mtp_layers) * (product + loss) / tensor_parallel


def logits_exposed_s(
    logits_s: Numeric,
    layer_s: Numeric,
    layers: Numeric,
    stage_layers: Numeric,
    pipeline_parallel: Numeric,
) -> Numeric:
    r"""Time of the logits that adds to the pace of the pipeline.

    .. math:: T_v = \max\left[T_{voc} - (p L_s - L)\, T_l,\, 0\right]

    Parameters
    ----------
    logits_s : numeric
        Time of forward and backward of one micro-batch through the vocabulary. [s]
    layer_s : numeric
        Time of forward and backward of one micro-batch through a mean layer with all that is exposed. [s]
    layers : numeric
        Transformer blocks. [1]
    stage_layers : numeric
        Layers on the pipeline rank that has most of them. [1]
    pipeline_parallel : numeric
        Stages the layers are split into. [1]

    Returns
    -------
    logits_exposed_s : numeric
        Time of one micro-batch through the vocabulary that a lighter last stage does not make up for. [s]

    Notes
    -----
    With one stage the logits weigh on every micro-batch. With more, layers missing from a lighter last stage make up
    for them.

    References
    ----------
    .. [1] D. Narayanan et al., arXiv:2104.04473, 2021, section 2.

    Examples
    --------
    >>> round(logits_exposed_s(0.05, 0.01, 126.0, 8.0, 16.0), 2)
    0.03
    """
    lighter = (stage_layers * pipeline_parallel - layers) * layer_s
    return where(pipeline_parallel > 1.0, maximum(logits_s - lighter, 0.0), logits_s)


def stage_transfer_s(
    micro_batch_tokens: Numeric,
    hidden_size: Numeric,
    tensor_parallel: Numeric,
    pipeline_parallel: Numeric,
    virtual_stages: Numeric,
    scale_out_bytes_per_s: Numeric,
    scale_out_share: Numeric,
    scale_out_latency_s: Numeric,
) -> Numeric:
    r"""Time in which one micro-batch crosses between stages, forward and backward.

    .. math:: [p > 1]\; 4 v \left(\frac{2 T h}{t B_{out}} + \alpha\right) \cdot \tfrac12^{[v > 1]}

    Parameters
    ----------
    micro_batch_tokens : numeric
        Tokens of one micro-batch that one context-parallel rank sees. [1]
    hidden_size : numeric
        Width of the residual stream. [1]
    tensor_parallel : numeric
        Ways one layer is split. [1]
    pipeline_parallel : numeric
        Stages the layers are split into. [1]
    virtual_stages : numeric
        Model chunks per pipeline rank; 1 = not interleaved. [1]
    scale_out_bytes_per_s : numeric
        Scale-out bandwidth of one accelerator in one direction. [byte/s]
    scale_out_share : numeric
        Share of the scale-out link rate that large collectives reach. [1]
    scale_out_latency_s : numeric
        Latency of one hop between domains, software included. [s]

    Returns
    -------
    stage_transfer_s : numeric
        Time of sending and receiving one micro-batch between pipeline stages, forward and backward. [s]

    Notes
    -----
    Sent and received, each way; interleaved schedules hide half.

    References
    ----------
    .. [1] D. Narayanan et al., arXiv:2104.04473, 2021, section 4.1: scatter and gather over tensor-parallel ranks.

    Examples
    --------
    >>> round(stage_transfer_s(2048.0, 12288.0, 8.0, 8.0, 1.0, 2.5e10, 1.0, 0.0), 5)
    0.00101
    """
    one = 2.0 * micro_batch_tokens * hidden_size / (tensor_parallel * scale_out_bytes_per_s * scale_out_share)
    seen = where(virtual_stages > 1.0, 0.5, 1.0)
    sending = 4.0 * virtual_stages * (one + scale_out_latency_s) * seen
    return where(pipeline_parallel > 1.0, sending, 0.0)


def stage_s(
    stage_layers: Numeric, mtp_layers: Numeric, pipeline_parallel: Numeric, layer_s: Numeric, stage_transfer_s: Numeric
) -> Numeric:
    r"""Time of one micro-batch in the fullest stage.

    .. math:: (L_s + L_m / p)\, T_l + T_{p2p}

    Parameters
    ----------
    stage_layers : numeric
        Layers on the pipeline rank that has most of them. [1]
    mtp_layers : numeric
        Extra layers that predict further tokens, each with its own logits product. [1]
    pipeline_parallel : numeric
        Stages the layers are split into. [1]
    layer_s : numeric
        Time of forward and backward of one micro-batch through a mean layer with all that is exposed. [s]
    stage_transfer_s : numeric
        Time of sending and receiving one micro-batch between pipeline stages, forward and backward. [s]

    Returns
    -------
    stage_s : numeric
        Time of forward and backward of one micro-batch through the layers of the fullest stage. [s]

    Notes
    -----
    Prediction layers are spread over the stages, as a balanced layout does.

    References
    ----------
    .. [1] D. Narayanan et al., arXiv:2104.04473, 2021, section 2.2.

    Examples
    --------
    >>> stage_s(8.0, 0.0, 16.0, 0.01, 0.001)
    0.081
    """
    return (stage_layers + mtp_layers / pipeline_parallel) * layer_s + stage_transfer_s


def pipeline_wait_s(
    schedule: Numeric,
    pipeline_parallel: Numeric,
    virtual_stages: Numeric,
    stage_s: Numeric,
    recompute_share: Numeric,
) -> Numeric:
    r"""Idle time of a pipeline rank in one step.

    .. math:: T_{idle}\!\left(F = \tfrac{T_s}{3 + \rho},\; B_s = T_s - F,\; W = F,\; F{B} = T_s\right)

    Parameters
    ----------
    schedule : text
        1f1b | interleaved | zb1p | dualpipe | dualpipe_v; 1f1b with virtual stages is interleaved. [text]
    pipeline_parallel : numeric
        Stages the layers are split into. [1]
    virtual_stages : numeric
        Model chunks per pipeline rank; 1 = not interleaved. [1]
    stage_s : numeric
        Time of forward and backward of one micro-batch through the layers of the fullest stage. [s]
    recompute_share : numeric
        Share of layers whose forward runs again in the backward. [1]

    Returns
    -------
    pipeline_wait_s : numeric
        Idle time of a pipeline rank in a step. [s]

    Notes
    -----
    A backward is two forwards, three with recomputation, half of the plain two for gradients of weights.

    References
    ----------
    .. [1] P. Qi et al., "Zero bubble pipeline parallelism," arXiv:2401.10241, 2024, section 2.

    Examples
    --------
    >>> round(pipeline_wait_s("1f1b", 8.0, 1.0, 0.3, 0.0), 6)
    2.1
    """
    forward = stage_s / (3.0 + recompute_share)
    return pipeline_idle_s(schedule, pipeline_parallel, virtual_stages, forward, stage_s - forward, forward, stage_s)


def gradient_s(
    stage_sharded_parameters: Numeric,
    stage_replicated_parameters: Numeric,
    stage_expert_parameters: Numeric,
    gradient_bytes_per_parameter: Numeric,
    zero_stage: Numeric,
    data_parallel: Numeric,
    context_parallel: Numeric,
    expert_data_parallel: Numeric,
    tensor_parallel: Numeric,
    scale_up_domain: Numeric,
    scale_up_bytes_per_s: Numeric,
    scale_out_bytes_per_s: Numeric,
    scale_up_share: Numeric,
    scale_out_share: Numeric,
    scale_up_latency_s: Numeric,
    scale_out_latency_s: Numeric,
) -> Numeric:
    r"""Time to reduce gradients and gather new weights over the data-parallel ranks, once per step.

    .. math::
        T_{rs}\!\left((N_s + N_r)\, \beta,\, d c\right) + T_{rs}\!\left(N_x \beta,\, d_e\right), \qquad
        \beta = 2 b_g \quad (z = 0), \qquad b_g + 2 \quad (z \ge 1)

    Parameters
    ----------
    stage_sharded_parameters : numeric
        Weights of the fullest rank that tensor parallelism splits. [1]
    stage_replicated_parameters : numeric
        Weights of the fullest rank that every tensor-parallel rank repeats. [1]
    stage_expert_parameters : numeric
        Weights of routed experts on the fullest rank. [1]
    gradient_bytes_per_parameter : numeric
        Bytes of one gradient: 2 or 4, or 6 where a 32-bit sum is kept beside 16-bit gradients. [byte]
    zero_stage : numeric
        Stage of ZeRO sharding: 0 none, 1 optimizer, 2 gradients too, 3 weights too. [1]
    data_parallel : numeric
        Copies of the model that share a batch. [1]
    context_parallel : numeric
        Ways one sequence is split. [1]
    expert_data_parallel : numeric
        Copies of each expert over all accelerators. [1]
    tensor_parallel : numeric
        Ways one layer is split. [1]
    scale_up_domain : numeric
        Accelerators joined by the fast fabric (8 in a DGX H100; 72 in an NVL72). [1]
    scale_up_bytes_per_s : numeric
        Scale-up bandwidth of one accelerator in one direction. [byte/s]
    scale_out_bytes_per_s : numeric
        Scale-out bandwidth of one accelerator in one direction. [byte/s]
    scale_up_share : numeric
        Share of the scale-up link rate that large collectives reach. [1]
    scale_out_share : numeric
        Share of the scale-out link rate that large collectives reach. [1]
    scale_up_latency_s : numeric
        Latency of one hop in the scale-up domain, software included. [s]
    scale_out_latency_s : numeric
        Latency of one hop between domains, software included. [s]

    Returns
    -------
    gradient_s : numeric
        Time of reducing gradients and gathering new weights over data-parallel ranks once per step. [s]

    Notes
    -----
    At most four bytes of a gradient travel. ZeRO 3 moves its weights in every layer instead.

    References
    ----------
    .. [1] S. Rajbhandari et al., "ZeRO," SC 2020, arXiv:1910.02054, section 7.

    Examples
    --------
    >>> links = (8.0, 4.5e11, 5e10, 1.0, 1.0, 0.0, 0.0)
    >>> round(gradient_s(1e9, 0.0, 0.0, 4.0, 1.0, 64.0, 1.0, 64.0, 1.0, *links), 4)
    0.0148
    """
    sent = minimum(gradient_bytes_per_parameter, 4.0)
    per_parameter = sent + where(zero_stage >= 1.0, 2.0, sent)
    ranks = data_parallel * context_parallel
    per_domain = scale_up_domain / minimum(tensor_parallel, scale_up_domain)

    def exchanged(parameters: Numeric, copies: Numeric, local: Numeric) -> Numeric:
        return two_tier_ring_s(
            parameters * per_parameter,
            copies,
            local,
            scale_up_bytes_per_s,
            scale_out_bytes_per_s,
            scale_up_share,
            scale_out_share,
            scale_up_latency_s,
            scale_out_latency_s,
        )

    dense = stage_sharded_parameters + stage_replicated_parameters
    shared = exchanged(dense, ranks, maximum(minimum(ranks, per_domain), 1.0))
    routed = exchanged(stage_expert_parameters, maximum(expert_data_parallel, 1.0), 1.0)
    return where(zero_stage >= 3.0, 0.0, shared + routed)


def gradient_exposed_s(
    gradient_s: Numeric,
    stage_s: Numeric,
    pipeline_parallel: Numeric,
    virtual_stages: Numeric,
    gradient_overlap_share: Numeric,
    software_year: Numeric,
) -> Numeric:
    r"""Part of the gradient exchange that no compute hides.

    .. math::
        \max\left(T_{grad} - \eta_o T_s \left(1 + (p - 1) \frac{v - 1}{v}\right) [y \ge 2023],\, 0.1\, T_{grad}\right)

    Parameters
    ----------
    gradient_s : numeric
        Time of reducing gradients and gathering new weights over data-parallel ranks once per step. [s]
    stage_s : numeric
        Time of forward and backward of one micro-batch through the layers of the fullest stage. [s]
    pipeline_parallel : numeric
        Stages the layers are split into. [1]
    virtual_stages : numeric
        Model chunks per pipeline rank; 1 = not interleaved. [1]
    gradient_overlap_share : numeric
        Share of a micro-batch's time behind which gradients and gathered weights hide. [1]
    software_year : numeric
        Calendar year of the software a run used. [1]

    Returns
    -------
    gradient_exposed_s : numeric
        Part of the gradient exchange that no compute hides. [s]

    Notes
    -----
    Gradients travel during the last micro-batch's backward, new weights during the first one's forward; the first and
    last bucket never hide. With interleaved stages a chunk is done :math:`p` micro-batches of the next chunk before the
    end, so all chunks but the last hide behind those. Before 2023 training code did not overlap them.

    References
    ----------
    .. [1] S. Li et al., "PyTorch distributed," VLDB 2020, arXiv:2006.15704, section 3.2.
    .. [2] D. Narayanan et al., arXiv:2104.04473, 2021, section 2.2.2: order of chunks.

    Examples
    --------
    >>> gradient_exposed_s(1.0, 1.0, 1.0, 1.0, 0.5, 2025.0), gradient_exposed_s(1.0, 0.2, 5.0, 2.0, 0.5, 2025.0)
    (0.5, 0.7)
    """
    later_chunks = (pipeline_parallel - 1.0) * (virtual_stages - 1.0) / virtual_stages
    hidden = where(software_year >= 2023.0, gradient_overlap_share * stage_s * (1.0 + later_chunks), 0.0)
    return maximum(gradient_s - hidden, 0.1 * gradient_s)


def optimizer_s(
    stage_sharded_parameters: Numeric,
    stage_replicated_parameters: Numeric,
    stage_expert_parameters: Numeric,
    zero_stage: Numeric,
    data_parallel: Numeric,
    context_parallel: Numeric,
    expert_data_parallel: Numeric,
    optimizer_bytes_per_parameter: Numeric,
    sustained_memory_bytes_per_s: Numeric,
) -> Numeric:
    r"""Time of the update: state, gradients and weights read and written once.

    .. math:: \frac{2 b_o + 6}{B_s} \left(\frac{N_s + N_r}{[d c]_{z \ge 1}} + \frac{N_x}{[d_e]_{z \ge 1}}\right)

    Parameters
    ----------
    stage_sharded_parameters : numeric
        Weights of the fullest rank that tensor parallelism splits. [1]
    stage_replicated_parameters : numeric
        Weights of the fullest rank that every tensor-parallel rank repeats. [1]
    stage_expert_parameters : numeric
        Weights of routed experts on the fullest rank. [1]
    zero_stage : numeric
        Stage of ZeRO sharding: 0 none, 1 optimizer, 2 gradients too, 3 weights too. [1]
    data_parallel : numeric
        Copies of the model that share a batch. [1]
    context_parallel : numeric
        Ways one sequence is split. [1]
    expert_data_parallel : numeric
        Copies of each expert over all accelerators. [1]
    optimizer_bytes_per_parameter : numeric
        Optimizer bytes for one weight; 12 for a 32-bit master weight and two Adam moments. [byte]
    sustained_memory_bytes_per_s : numeric
        Rate of the memory on the package that kernels sustain. [byte/s]

    Returns
    -------
    optimizer_s : numeric
        Time of the memory traffic of one update. [s]

    Notes
    -----
    Arithmetic; holds wherever its inputs do.

    References
    ----------
    .. [1] S. Rajbhandari et al., "ZeRO," SC 2020, arXiv:1910.02054, section 3.1.

    Examples
    --------
    >>> round(optimizer_s(1e9, 0.0, 0.0, 0.0, 8.0, 1.0, 8.0, 12.0, 2.7e12), 4)
    0.0111
    """
    dense = stage_sharded_parameters + stage_replicated_parameters
    ranks = where(zero_stage >= 1.0, data_parallel * context_parallel, 1.0)
    expert_ranks = where(zero_stage >= 1.0, maximum(expert_data_parallel, 1.0), 1.0)
    moved = 2.0 * optimizer_bytes_per_parameter + 6.0
    return moved * (dense / ranks + stage_expert_parameters / expert_ranks) / sustained_memory_bytes_per_s


def step_s(
    micro_batches: Numeric,
    stage_s: Numeric,
    logits_exposed_s: Numeric,
    stage_layers: Numeric,
    pipeline_wait_s: Numeric,
    gradient_exposed_s: Numeric,
    optimizer_s: Numeric,
    straggler_share: Numeric,
    accelerators: Numeric,
    layer_update_s: Numeric,
    step_fixed_s: Numeric,
) -> Numeric:
    r"""Time of one optimizer step.

    .. math:: \left[m (T_s + T_v) + T_{idle} + T_{grad} + T_{opt}\right] (1 + \lambda \log_2 n) + L_s T_u + T_0

    Parameters
    ----------
    micro_batches : numeric
        Micro-batches of one data-parallel rank in a step. [1]
    stage_s : numeric
        Time of forward and backward of one micro-batch through the layers of the fullest stage. [s]
    logits_exposed_s : numeric
        Time of one micro-batch through the vocabulary that a lighter last stage does not make up for. [s]
    stage_layers : numeric
        Layers on the pipeline rank that has most of them. [1]
    pipeline_wait_s : numeric
        Idle time of a pipeline rank in a step. [s]
    gradient_exposed_s : numeric
        Part of the gradient exchange that no compute hides. [s]
    optimizer_s : numeric
        Time of the memory traffic of one update. [s]
    straggler_share : numeric
        Share by which a step gets longer with each doubling of accelerators. [1]
    accelerators : numeric
        Chips that work on the run. [1]
    layer_update_s : numeric
        Time per layer and step that does not depend on size, such as launching the optimizer. [s]
    step_fixed_s : numeric
        Time per step that does not depend on anything, such as data, logging and synchronisation. [s]

    Returns
    -------
    step_s : numeric
        Predicted time of one optimizer step. [s]

    Notes
    -----
    The slowest of many chips sets the pace of all, hence the logarithm. Parts that sum to the step are in
    `factorykit.formulas.step_parts`.

    References
    ----------
    .. [1] D. Narayanan et al., arXiv:2104.04473, 2021, section 2.

    Examples
    --------
    >>> step_s(10.0, 0.1, 0.0, 80.0, 0.0, 0.0, 0.0, 0.0, 8.0, 0.0, 0.0)
    1.0
    """
    working = micro_batches * (stage_s + logits_exposed_s) + pipeline_wait_s + gradient_exposed_s + optimizer_s
    slowed = working * (1.0 + straggler_share * log(accelerators) / LN2)
    return slowed + stage_layers * layer_update_s + step_fixed_s


def pipeline_bubble(pipeline_wait_s: Numeric, step_s: Numeric) -> Numeric:
    """Idle share of the step.

    .. math:: T_{idle} / T_{step}

    Parameters
    ----------
    pipeline_wait_s : numeric
        Idle time of a pipeline rank in a step. [s]
    step_s : numeric
        Predicted time of one optimizer step. [s]

    Returns
    -------
    pipeline_bubble : numeric
        Idle share of the step. [1]

    Notes
    -----
    Arithmetic; holds wherever its inputs do.

    References
    ----------
    .. [1] D. Narayanan et al., arXiv:2104.04473, 2021, section 2.2.1.

    Examples
    --------
    >>> pipeline_bubble(1.0, 10.0)
    0.1
    """
    return pipeline_wait_s / step_s


def step_spread(
    spread_model: Numeric,
    spread_new_chip: Numeric,
    spread_assumed: Numeric,
    spread_scale: Numeric,
    scale_seen: Numeric,
    evidence_families: Numeric,
    assumed_inputs: Numeric,
    accelerators: Numeric,
) -> Numeric:
    r"""Spread of the step time, as standard deviation of its logarithm.

    .. math::
        \sqrt{\sigma_0^2 + \frac{\sigma_c^2}{1 + n_f} + a \sigma_a^2 + \left(\sigma_s \max(\log_2 n / n_s, 0)\right)^2}

    Parameters
    ----------
    spread_model : numeric
        Standard deviation of the logarithm of measured over predicted step time. [1]
    spread_new_chip : numeric
        Further standard deviation of the logarithm of the step time on a chip without measured rows. [1]
    spread_assumed : numeric
        Further standard deviation of the logarithm of the step time for each assumed input of the layout. [1]
    spread_scale : numeric
        Further standard deviation of the logarithm of the step time for each doubling of accelerators beyond the
        largest scale seen. [1]
    scale_seen : numeric
        Most accelerators in a measured row that the constants were fitted on. [1]
    evidence_families : numeric
        Families of measured rows on this chip among those the constants were fitted on. [1]
    assumed_inputs : numeric
        Inputs of the layout that nobody stated. [1]
    accelerators : numeric
        Chips that work on the run. [1]

    Returns
    -------
    step_spread : numeric
        Standard deviation of the logarithm of the step time. [1]

    Notes
    -----
    Wider where evidence is thin: few families :math:`n_f` on the chip, assumed inputs, a scale never measured.

    References
    ----------
    .. [1] A. Gelman et al., "Bayesian data analysis," 3rd ed., 2013, section 5.4: groups never seen.

    Examples
    --------
    >>> step_spread(0.1, 0.0, 0.0, 0.0, 1e4, 0.0, 0.0, 8.0)
    0.1
    """
    beyond = maximum(log(accelerators / scale_seen) / LN2, 0.0) * spread_scale
    chip = spread_new_chip * spread_new_chip / (1.0 + evidence_families)
    assumed = assumed_inputs * spread_assumed * spread_assumed
    return sqrt(spread_model * spread_model + chip + assumed + beyond * beyond)


def step_low_s(step_s: Numeric, step_spread: Numeric) -> Numeric:
    r"""Lower end of the 90 % prediction interval.

    .. math:: T\, \mathrm{e}^{-1.645 \sigma}

    Parameters
    ----------
    step_s : numeric
        Predicted time of one optimizer step. [s]
    step_spread : numeric
        Standard deviation of the logarithm of the step time. [1]

    Returns
    -------
    step_low_s : numeric
        Lower end of the 90 % prediction interval. [s]

    Notes
    -----
    Measured over predicted times are about lognormal.

    References
    ----------
    .. [1] A. Gelman et al., "Bayesian data analysis," 3rd ed., 2013, section 2.

    Examples
    --------
    >>> round(step_low_s(10.0, 0.1), 2)
    8.48
    """
    return step_s * exp(-NORMAL_95 * step_spread)


def step_high_s(step_s: Numeric, step_spread: Numeric) -> Numeric:
    r"""Upper end of the 90 % prediction interval.

    .. math:: T\, \mathrm{e}^{1.645 \sigma}

    Parameters
    ----------
    step_s : numeric
        Predicted time of one optimizer step. [s]
    step_spread : numeric
        Standard deviation of the logarithm of the step time. [1]

    Returns
    -------
    step_high_s : numeric
        Upper end of the 90 % prediction interval. [s]

    Notes
    -----
    Measured over predicted times are about lognormal.

    References
    ----------
    .. [1] A. Gelman et al., "Bayesian data analysis," 3rd ed., 2013, section 2.

    Examples
    --------
    >>> round(step_high_s(10.0, 0.1), 2)
    11.79
    """
    return step_s * exp(NORMAL_95 * step_spread)


def step_tokens(global_batch_size: Numeric, sequence_length: Numeric) -> Numeric:
    """Tokens of one optimizer step.

    .. math:: B s

    Parameters
    ----------
    global_batch_size : numeric
        Sequences of one optimizer step. [1]
    sequence_length : numeric
        Tokens of one training sequence. [1]

    Returns
    -------
    step_tokens : numeric
        Tokens of one optimizer step: global batch times sequence length. [1]

    Notes
    -----
    Arithmetic; holds wherever its inputs do.

    References
    ----------
    .. [1] T. Brown et al., arXiv:2005.14165, 2020, table 2.1: batch in tokens.

    Examples
    --------
    >>> step_tokens(2048.0, 8192.0)
    16777216.0
    """
    return global_batch_size * sequence_length


def training_steps(tokens: Numeric, step_tokens: Numeric) -> Numeric:
    """Optimizer steps of a run.

    .. math:: D / (B s)

    Parameters
    ----------
    tokens : numeric
        Tokens seen in the run. [1]
    step_tokens : numeric
        Tokens of one optimizer step: global batch times sequence length. [1]

    Returns
    -------
    training_steps : numeric
        Optimizer steps in which the run sees its tokens. [1]

    Notes
    -----
    Arithmetic; holds wherever its inputs do.

    References
    ----------
    .. [1] T. Brown et al., arXiv:2005.14165, 2020, table 2.1.

    Examples
    --------
    >>> training_steps(1e12, 1e6)
    1000000.0
    """
    return tokens / step_tokens


def model_flop_per_s_per_accelerator(
    model_flop_per_token: Numeric, step_tokens: Numeric, step_s: Numeric, accelerators: Numeric
) -> Numeric:
    r"""Model FLOP per second of one accelerator.

    .. math:: \frac{C_t B s}{T n}

    Parameters
    ----------
    model_flop_per_token : numeric
        Model FLOP of one token, forward and backward; causal attention counted half; no recomputation. [FLOP]
    step_tokens : numeric
        Tokens of one optimizer step: global batch times sequence length. [1]
    step_s : numeric
        Predicted time of one optimizer step. [s]
    accelerators : numeric
        Chips that work on the run. [1]

    Returns
    -------
    model_flop_per_s_per_accelerator : numeric
        Model FLOP of a step over its time and its accelerators. [FLOP/s]

    Notes
    -----
    Causal attention counted half, no recomputation.

    References
    ----------
    .. [1] A. Chowdhery et al., "PaLM," arXiv:2204.02311, 2022, appendix B.

    Examples
    --------
    >>> model_flop_per_s_per_accelerator(1e12, 1e6, 10.0, 1000.0) / 1e12
    100.0
    """
    return model_flop_per_token * step_tokens / (step_s * accelerators)


def predicted_mfu(model_flop_per_s_per_accelerator: Numeric, peak_flop_per_s: Numeric) -> Numeric:
    """Model FLOP utilization that the predicted step time means.

    .. math:: F_{model} / F

    Parameters
    ----------
    model_flop_per_s_per_accelerator : numeric
        Model FLOP of a step over its time and its accelerators. [FLOP/s]
    peak_flop_per_s : numeric
        Dense peak of one chip at the precision of the run. [FLOP/s]

    Returns
    -------
    predicted_mfu : numeric
        Achieved over peak rate at the stated precision. [1]

    Notes
    -----
    Of the dense peak at the precision of the run. Stands for ``mfu`` where a scenario names it.

    References
    ----------
    .. [1] A. Chowdhery et al., "PaLM," arXiv:2204.02311, 2022, appendix B.

    Examples
    --------
    >>> predicted_mfu(4e14, 1e15)
    0.4
    """
    return model_flop_per_s_per_accelerator / peak_flop_per_s


def training_stepped_s(training_steps: Numeric, step_s: Numeric) -> Numeric:
    r"""Training time without stops, from the predicted time of a step.

    .. math:: T_{st} = \frac{D}{B s} T

    Parameters
    ----------
    training_steps : numeric
        Optimizer steps in which the run sees its tokens. [1]
    step_s : numeric
        Predicted time of one optimizer step. [s]

    Returns
    -------
    training_stepped_s : numeric
        Training time as the number of steps times the step time; a rival that counts attention and all that is exposed.
        [s]

    Notes
    -----
    Stands for ``training_s`` where a scenario names it: goodput, energy and cost follow from it.

    References
    ----------
    .. [1] A. Chowdhery et al., "PaLM," arXiv:2204.02311, 2022, appendix B.

    Examples
    --------
    >>> training_stepped_s(1e6, 10.0)
    10000000.0
    """
    return training_steps * step_s
