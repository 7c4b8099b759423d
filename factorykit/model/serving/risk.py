"""Cost of a candidate whose latencies are uncertain, and the probability that it keeps its limits."""

from __future__ import annotations

from factorykit.core.types import Numeric
from factorykit.formulas.functions import exp, log, maximum, minimum


def _normal(x: Numeric) -> Numeric:
    """Return the distribution function of the normal distribution within 1.4e-4 (Bowling and others, 2009)."""
    bounded = maximum(minimum(x, 8.0), -8.0)
    return 1.0 / (1.0 + exp(bounded * (-1.5976 - 0.07056 * bounded * bounded)))


def _excess(over: Numeric, deviation: Numeric) -> tuple[Numeric, Numeric, Numeric]:
    """Return the mean excess over a limit, weighted by the latency over its median too, and the share that keeps it."""
    grown = exp(0.5 * deviation * deviation)
    at = log(maximum(over, 1e-30)) / deviation
    inside = grown * _normal(at + deviation)
    weighted = over * grown * grown * grown * grown * _normal(at + 2.0 * deviation)
    return over * inside - _normal(at), weighted - inside, _normal(-at)


def expected_cost(
    ttft_s: Numeric,
    ttft_deviation: Numeric,
    ttft_over: Numeric,
    tpot_s: Numeric,
    tpot_deviation: Numeric,
    tpot_over: Numeric,
    output_tokens: Numeric,
) -> tuple[Numeric, Numeric]:
    r"""Return the expected cost over that at median latencies, and the probability that both limits are kept.

    .. math::
        \frac{E\left[t_r \left(1 + (t_f / l_f - 1)^+ + (t_o / l_o - 1)^+\right)\right]}
        {\tilde t_f + (s - 1) \tilde t_o}, \qquad t_r = t_f + (s - 1)\, t_o

    Notes
    -----
    A request occupies its replica for :math:`t_r`, and time above a limit is bought back with as many more replicas.
    Latencies are independent and lognormal: a deviation is that of the logarithm, ``over`` the median over the limit,
    0 without a limit. The partial means are those of an option (Black and Scholes, 1973).

    Examples
    --------
    A first token of two seconds within two seconds, known within a tenth and within a factor of two:

    >>> [[round(x, 2) for x in expected_cost(2.0, sd, 1.0, 0.02, 0.1, 0.5, 101.0)] for sd in (0.1, 0.7)]
    [[1.05, 0.5], [2.12, 0.5]]
    """
    first, rest = ttft_s, (output_tokens - 1.0) * tpot_s
    late, late_weighted, in_time = _excess(ttft_over, ttft_deviation)
    slow, slow_weighted, fast = _excess(tpot_over, tpot_deviation)
    means = exp(0.5 * ttft_deviation * ttft_deviation), exp(0.5 * tpot_deviation * tpot_deviation)
    bought = first * (means[0] * (1.0 + slow) + late_weighted) + rest * (means[1] * (1.0 + late) + slow_weighted)
    return bought / (first + rest), in_time * fast
