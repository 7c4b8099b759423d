r"""Calibration on published runs of the same software.

The residuals :math:`y_i`, logarithms of measured over predicted step time, of runs of one software on chips of one
maker are a Gaussian process with a hierarchical kernel:

.. math::
    k_{ij} = a^2 \left(w_f + w_g [g_i = g_j] + w_1 e^{-d_{ij}^2 / 2 l_1^2} + w_2 e^{-d_{ij}^2 / 2 l_2^2}
    + w_s [s_i = s_j]\right)

with a level of the software, of a generation of chips :math:`g`, of similar layouts at distance :math:`d`, and of a
publication :math:`s`, which is not shared with rows to predict: publishers and releases differ, and the more rows come
from one of them, the less each counts. Software or chips without runs have a residual of 0 and the whole spread of the
population.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from factorykit.core.extras import need
from factorykit.core.validation import float_columns, frame
from factorykit.model.performance.layout_features import LAYOUT_FEATURES, LOCAL_CORRECTION, features

if TYPE_CHECKING:
    import numpy as np
RUNS: Final = Path(__file__).with_name("software_runs.parquet")
"""Residuals of published runs, with their layouts; benchmarks/fit_software.py writes it."""
SIGNAL_SD: Final = 0.12
r"""Standard deviation :math:`a`, as a logarithm."""
SOFTWARE: Final = 0.02
GENERATION: Final = 0.04
SIMILAR: Final = 0.49
NEAR: Final = 0.49
PUBLICATION: Final = 0.3
"""Weights of the levels: of those tried, the best for rows, groups and publications left out in turn."""
NOISE: Final = 0.09
"""Variance of a single layout over the squared spread of its prediction."""
SIMILAR_LENGTH: Final = 0.7
NEAR_LENGTH: Final = 0.2
"""Length scales of similar layouts and of near ones, in that of :mod:`factorykit.model.performance.layout_features`."""
MAX_RESIDUAL: Final = 3.0
"""Spreads at which a residual is cut, so that a stalled run does not move its neighbours."""
DECIMALS: Final = 10
"""Decimals of a residual; those beyond depend on the order of sums, and that on the number of threads."""


@cache
def published_runs(software: str, without: frozenset[str] = frozenset()) -> pl.DataFrame:
    """Return the runs of a software, of all families but some."""
    return pl.read_parquet(RUNS).filter(pl.col("software") == software, ~pl.col("family").is_in(list(without)))


def shared_residual(
    layouts: pl.DataFrame, software: str = "", generation: str = "", without: Collection[str] | None = ()
) -> pl.DataFrame:
    """Return the residual that layouts share with published runs of their software.

    Parameters
    ----------
    layouts
        Layout features, and ``software``, ``generation`` and ``family`` of each layout where they are known.
    software, generation
        Software and generation of chips of the other layouts.
    without
        Families whose runs are left out; None for that of each layout.

    Returns
    -------
    polars.DataFrame
        ``step_pace``, and ``unexplained_variance``, posterior over prior variance of its logarithm.
    """
    layouts = float_columns(frame("layouts", layouts, LAYOUT_FEATURES), LAYOUT_FEATURES)
    usual = {"software": software, "generation": generation, "family": ""}
    keyed = layouts.with_columns(pl.lit(key).alias(name) for name, key in usual.items() if name not in layouts.columns)
    keyed = keyed.with_columns(pl.col("software").replace("", software)).with_row_index("layout")
    parts = []
    for (name, kind, *own), part in keyed.group_by("software", "generation", *(["family"] if without is None else [])):
        left_out = frozenset(own if without is None else without)
        parts.append(part.select("layout").hstack(_residual(part, str(name), str(kind), left_out)))
    return pl.concat(parts).sort("layout").drop("layout")


def _residual(layouts: pl.DataFrame, software: str, generation: str, without: frozenset[Any]) -> pl.DataFrame:
    """Return pace and unexplained variance of layouts of one software on one generation of chips."""
    np = need("numpy")
    mean, variance = np.zeros(layouts.height), np.ones(layouts.height)
    if published_runs(software, without).height:
        where, kin, whitening, residual = _posterior(software, without)
        cross = _kernel(features(layouts), where, kin == generation) @ whitening.T
        prior = SOFTWARE + GENERATION + SIMILAR + NEAR + PUBLICATION + NOISE
        mean, variance = cross @ residual, np.clip(1.0 - (cross**2).sum(axis=1) / prior, 0.0, 1.0)
    values = (np.exp(mean).round(DECIMALS), variance.round(DECIMALS))
    return pl.DataFrame(dict(zip(LOCAL_CORRECTION, values, strict=True)))


@cache
def _posterior(software: str, without: frozenset[str]) -> tuple[np.ndarray, ...]:
    """Return features and generations of the runs of a software, their whitening matrix and whitened residuals.

    The matrix is the inverse of the Cholesky factor of their covariance.
    """
    import numpy as np

    runs = published_runs(software, without)
    where, kin, family = features(runs), runs["generation"].to_numpy(), runs["family"].to_numpy()
    spread = runs["spread"].to_numpy()
    covariance = _kernel(where, where, kin[:, None] == kin) + PUBLICATION * (family[:, None] == family)
    noise = NOISE * runs["noise_ratio"].to_numpy() * (spread / SIGNAL_SD) ** 2
    residual = np.clip(runs["residual"].to_numpy(), -MAX_RESIDUAL * spread, MAX_RESIDUAL * spread)
    whitening = np.linalg.inv(np.linalg.cholesky(covariance + np.diag(noise)))
    return where, kin, whitening, whitening @ residual


def _kernel(first: np.ndarray, second: np.ndarray, same_generation: np.ndarray) -> np.ndarray:
    """Return the covariance of two sets of layouts of one software, of unit signal."""
    from factorykit.model.performance.gaussian_process import rbf_kernel

    similar, near = (rbf_kernel(first / scale, second / scale) for scale in (SIMILAR_LENGTH, NEAR_LENGTH))
    return SOFTWARE + GENERATION * same_generation + SIMILAR * similar + NEAR * near
