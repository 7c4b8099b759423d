"""Sustained rates of a chip in a training step: matrix products, exponentials and memory traffic.

The constants are few, the same for every model and chip, and stand in the table ``performance_constants`` with the way
they were found.
"""

from __future__ import annotations

from factorykit.core.types import Numeric
from factorykit.formulas.functions import equal, exp, maximum, minimum, where

FLOP_PER_EXPONENTIAL = 256.0
"""Dense 16-bit FLOP in the time of one exponential on H100."""


def exponentials_per_s(peak_16bit_flop_per_s: Numeric) -> Numeric:
    r"""Default rate of exponentials: as many per FLOP as on H100.

    .. math:: F_{16} / 256

    Notes
    -----
    989 TFLOP/s beside 3.9 billion exponentials in a millisecond on H100; 128 FLOP on A100, 450 on B200, 234 on GB300.

    References
    ----------
    .. [shah2024] section 3.2

    Examples
    --------
    >>> exponentials_per_s(1.024e15) / 1e12
    4.0
    """
    return peak_16bit_flop_per_s / FLOP_PER_EXPONENTIAL


def maturity(software_year: Numeric, chip_year: Numeric, maturity_years: Numeric, vendor_kernels: Numeric) -> Numeric:
    r"""How far the software of a run has come on its chip.

    .. math:: 1 - (1 - u)\, \mathrm{e}^{-\max(y - y_c,\, 0) / \tau}

    Notes
    -----
    New chips run old kernels at first: FlashAttention 2 ran on H100 without its new instructions for a year. Who makes
    the chip has its kernels ready when it appears. A second chip of a generation runs the kernels of the first.

    References
    ----------
    .. [shah2024] section 1: 35 % of H100's peak before

    Examples
    --------
    >>> round(maturity(2025.5, 2022.75, 1.5, 0.0), 2)
    0.84
    """
    return 1.0 - (1.0 - vendor_kernels) * exp(-maximum(software_year - chip_year, 0.0) / maturity_years)


def held_rate_share(
    design_j_per_flop: Numeric, power_limit_share: Numeric, full_power_j_per_flop: Numeric, power_exponent: Numeric
) -> Numeric:
    r"""Share of its rate that power lets a chip hold through a long run of matrix products.

    .. math:: \min\left(\frac{\pi\, \epsilon}{\epsilon_0},\, 1\right)^{x}

    Notes
    -----
    A ceiling is one product on a cold chip. A100 has 1.28 W for each TFLOP/s of its peak and holds its clock, H100 has
    0.71, B200 0.44: of hundreds of products that SimuMax measured, A100 sustained 0.98 of its ceiling and B200 0.69.

    References
    ----------
    .. [simumax] configs/system: 697 matrix products measured on A100 and B200

    Examples
    --------
    >>> held_rate_share(1.28e-12, 1.0, 8e-13, 0.6), round(held_rate_share(4.44e-13, 1.0, 8e-13, 0.6), 2)
    (1.0, 0.7)
    """
    return minimum(power_limit_share * design_j_per_flop / full_power_j_per_flop, 1.0) ** power_exponent


def narrow_rate_share(
    design_j_per_flop: Numeric,
    power_limit_share: Numeric,
    full_power_j_per_flop: Numeric,
    narrow_power_share: Numeric,
    power_exponent: Numeric,
) -> Numeric:
    r"""Share of its rate that power lets a chip hold through a long run of products in 8 bits or fewer.

    .. math:: \min\left(\frac{\pi\, \epsilon}{w\, \epsilon_0},\, 1\right)^{x}

    Notes
    -----
    At its ceiling in 8 bits a chip multiplies twice as often as in 16 and moves as many bits, but a multiplier of half
    the width takes a quarter of the power: products in few bits hold their ceiling where those in 16 do not.

    References
    ----------
    .. [horowitz2014] figure 1.1.9: energy of multiplications in 8, 16 and 32 bits

    Examples
    --------
    >>> round(narrow_rate_share(4.44e-13, 1.0, 8e-13, 0.7, 0.6), 2)
    0.87
    """
    needed = narrow_power_share * full_power_j_per_flop
    return minimum(power_limit_share * design_j_per_flop / needed, 1.0) ** power_exponent


def gemm_16bit_flop_per_s(
    peak_16bit_flop_per_s: Numeric,
    gemm_ceiling_16bit: Numeric,
    gemm_share_16bit: Numeric,
    held_rate_share: Numeric,
    maturity: Numeric,
    young_gemm_share: Numeric,
    vendor_kernels: Numeric,
    maker_gain: Numeric,
) -> Numeric:
    r"""Rate that large matrix products sustain in 16 bits.

    .. math::
        F_{16}\, \kappa_{16}\, \eta_{16}\, \eta_p \left[1 - (1 - \mu)(1 - \eta_{young})\right]
        \left[1 + u (\eta_u - 1)\right]

    Notes
    -----
    The ceiling is measured on one chip alone; runs lose to heat, shapes and neighbours.

    References
    ----------
    .. [bekman2026] maximum achievable matmul FLOPS: the ceilings

    Examples
    --------
    >>> gemm_16bit_flop_per_s(1e15, 0.8, 0.85, 1.0, 1.0, 0.8, 0.0, 1.2) / 1e12
    680.0
    """
    grown = 1.0 - (1.0 - maturity) * (1.0 - young_gemm_share)
    gain = 1.0 + vendor_kernels * (maker_gain - 1.0)
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
    narrow_rate_share: Numeric,
    maturity: Numeric,
    young_gemm_share: Numeric,
    young_attention_share: Numeric,
    vendor_kernels: Numeric,
    maker_gain: Numeric,
) -> Numeric:
    r"""Rate that large matrix products sustain at the precision of the run.

    .. math::
        F\, \kappa\, \eta_{prec}\, \eta_{p,prec} \left[1 - (1 - \mu)(1 - \eta_{young})\right]
        \left[1 + u (\eta_u - 1)\right]

    Notes
    -----
    The casts that feed narrow products are counted as element-wise work. Formats of 8 bits and fewer are new with a
    chip, so that kernels for them ripen as slowly as those of attention.

    References
    ----------
    .. [bekman2026] maximum achievable matmul FLOPS: the ceilings

    Examples
    --------
    >>> gemm_flop_per_s(2e15, 0.7, "fp8", 0.85, 1.0, 0.9, 1.0, 1.0, 1.0, 0.8, 0.3, 0.0, 1.2) / 1e12
    1400.0
    """
    narrow = where(equal(precision, "fp8"), gemm_share_8bit, gemm_share_block)
    not_bf16 = where(equal(precision, "fp16"), gemm_share_16bit, narrow)
    sustained = where(equal(precision, "bf16"), gemm_share_16bit, not_bf16)
    young_narrow = where(equal(precision, "fp16"), young_gemm_share, young_attention_share)
    young = where(equal(precision, "bf16"), young_gemm_share, young_narrow)
    grown = 1.0 - (1.0 - maturity) * (1.0 - young)
    gain = 1.0 + vendor_kernels * (maker_gain - 1.0)
    held_not_bf16 = where(equal(precision, "fp16"), held_rate_share, narrow_rate_share)
    held = where(equal(precision, "bf16"), held_rate_share, held_not_bf16)
    share = gemm_ceiling * sustained * held
    return peak_flop_per_s * share * grown * gain


def sustained_memory_bytes_per_s(memory_bytes_per_s: Numeric, memory_rate_share: Numeric) -> Numeric:
    r"""Rate at which kernels stream memory.

    .. math:: B_m\, \eta_m

    Examples
    --------
    >>> sustained_memory_bytes_per_s(3.35e12, 0.8) / 1e12
    2.68
    """
    return memory_bytes_per_s * memory_rate_share
