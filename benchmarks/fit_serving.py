"""Fit of the serving residuals to the tables serving_points and inference_results; writes serving_constants.csv.

Run as ``python -m benchmarks.fit_serving``. Hyperparameters maximise the penalised marginal likelihood of whole sweeps
drawn at random; half widths of intervals are those that hold 90 % of the points, left out alone, with
their sweep, and with their chip.
"""

from __future__ import annotations

import csv
import itertools
import sys
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl
from scipy.optimize import least_squares, minimize

import factorykit as fk
from factorykit.engine import run
from factorykit.formulas.serving import calibration
from factorykit.model.serving import predict
from factorykit.model.serving.points import ENGINES, OTHER, read_point
from factorykit.model.serving.residual import (
    CALIBRATED,
    LEFT_OUT,
    Process,
    bounded,
    constants,
    covariance,
    left_out,
    noise_variance,
    precision_of,
    same_words,
    widened,
)
from factorykit.model.serving.validate import sweep

PATH: Final = Path(__file__).parents[1] / "data" / "sources" / "serving_constants.csv"
PHYSICAL: Final = ("EXPERT_LOAD", "EXPERT_LAYER_S", "STEP_TOKEN_S", "DRAFT_S", "SCALE_OUT_MESSAGE_S")
"""Constants of `formulas.serving.calibration`."""
DEFAULTS: Final = ("draft_acceptance", "serving_layer_s", "serving_step_s", "serving_message_s")
QUEUE: Final = ("queued_share", "serving_request_s", "first_token_steps", "balancing_steps")
LEAST_NOISE: Final = 0.15
"""Least noise of separate prefill: copies of one measurement in the table must not pass for repeated ones."""
BOUND: Final = 2.0
"""Bound of residuals of the time to first token, a factor of 7.4, which 3 % of the rows exceed by stalls."""
LARGEST_LINEAR: Final = 0.015
"""Largest deviation of the part that is linear in features: above, models and chips without rows are extrapolated."""
LEAST_ROWS: Final = 50
"""Rows of an engine, chip or model with a width of its own, at which half of it counts; a tenth of a table's least."""
STEPS: Final = (1.5, 0.75)
"""Changes of logits of shares that carry over, and twice those of logarithms of deviations."""
LEAST_GAIN: Final = 0.001
"""Least fall of the mean relative error for which a constant is changed."""
FIRST_LENGTH: Final = 3.0
FIRST_NOISE: Final = 0.2
ROWS: Final = 1200
ITERATIONS: Final = 60


def prior(name: str, logarithm: float) -> tuple[float, float]:
    """Return the penalty of one constant, of its logarithm or its logit, and its slope."""
    centre, width = (0.0, 2.5) if "carry" in name else (1.0, 1.2) if name.startswith("length") else (-1.2, 1.5)
    distance = (logarithm - centre) / width
    return 0.5 * distance**2, distance / width


def decoded(names: list[str], point: np.ndarray) -> dict[str, float]:
    """Return constants of the optimiser's variables: shares by the logistic function, others by the exponential."""
    return {
        name: float(1.0 / (1.0 + np.exp(-x))) if "carry" in name else float(np.exp(x))
        for name, x in zip(names, point, strict=True)
    }


def likelihood_slopes(
    values: dict[str, float], x: np.ndarray, same: dict[str, np.ndarray], words: list, weight: np.ndarray
) -> dict[str, float]:
    """Return the slopes of the negative log likelihood: of logarithms, and of logits of shares that carry over.

    ``weight`` is its derivative by the covariance. Rasmussen and Williams, equation 5.9.
    """
    alone = dict.fromkeys(values, 0.0)
    scaled = x / np.array([values[f"length_{column}"] for column in range(x.shape[1])])
    apart = [(column[:, None] - column) ** 2 for column in scaled.T]
    kernels = {}
    for part, length in (("near", 1.0), ("far", values["far_length"])):
        carried = np.prod([np.where(e, 1.0, values[f"{part}_carry_{w}"]) for w, e in same.items()], axis=0)
        kernels[part] = weight * values[part] ** 2 * np.exp(-0.5 * sum(apart) / length**2) * carried
        alone[part] = 2.0 * kernels[part].sum()
        for word, equal in same.items():
            share = values[f"{part}_carry_{word}"]
            alone[f"{part}_carry_{word}"] = (1.0 - share) * kernels[part][~equal].sum()
    both = kernels["near"] + kernels["far"] / values["far_length"] ** 2
    alone["far_length"] = (kernels["far"] * sum(apart)).sum() / values["far_length"] ** 2
    alone |= {f"length_{column}": (both * squares).sum() for column, squares in enumerate(apart)}
    alone["linear"] = 2.0 * values["linear"] ** 2 * (weight * (4.0 + x @ x.T)).sum()
    alone |= {f"offset_{w}": 2.0 * values[f"offset_{w}"] ** 2 * weight[equal].sum() for w, equal in same.items()}
    for mode in dict.fromkeys(row["mode"] for row in words):
        rows = np.array([row["mode"] == mode for row in words])
        alone[f"noise_{mode}"] = 2.0 * values[f"noise_{mode}"] ** 2 * np.diag(weight)[rows].sum()
    return alone


def fitted(
    target: str, words: list, features: np.ndarray, residual: np.ndarray, sweeps: np.ndarray
) -> dict[str, float]:
    """Return the constants of one target."""
    modes = dict.fromkeys(row["mode"] for row in words)
    start = {f"length_{column}": FIRST_LENGTH for column in range(features.shape[1])}
    start = {f"noise_{mode}": FIRST_NOISE for mode in modes} | start | constants(target)
    others = ("half_width", "deviation", "width_", "noise_", "length_", "bound")
    names = [name for name in start if not name.startswith(others)]
    names += [f"noise_{mode}" for mode in modes] + [f"length_{column}" for column in range(features.shape[1])]
    order = np.random.default_rng(1).permutation(np.unique(sweeps))
    chosen = np.concatenate([np.flatnonzero(sweeps == name) for name in order])[:ROWS]
    some, x, y = [words[row] for row in chosen], features[chosen], residual[chosen]
    same = same_words(some, some)

    def loss(point: np.ndarray) -> tuple[float, np.ndarray]:
        values = decoded(names, point)
        total = covariance(values, x, x, same) + np.diag(noise_variance(values, some))
        try:
            inverse = np.linalg.inv(total)
        except np.linalg.LinAlgError:
            return 1e10, np.zeros(len(names))
        weights = inverse @ y
        slopes = likelihood_slopes(values, x, same, some, 0.5 * (inverse - np.outer(weights, weights)))
        penalties = [prior(name, v) for name, v in zip(names, point, strict=True)]
        value = 0.5 * y @ weights + 0.5 * np.linalg.slogdet(total)[1] + sum(each for each, _ in penalties)
        return value, np.array([slopes[name] + slope for name, (_, slope) in zip(names, penalties, strict=True)])

    first = [np.log(start[n] / (1.0 - start[n])) if "carry" in n else np.log(start[n]) for n in names]
    found = minimize(loss, first, jac=True, method="L-BFGS-B", options={"maxiter": ITERATIONS})
    values = decoded(names, found.x)
    for name in values:
        if name.startswith("noise_disagg"):
            values[name] = max(values[name], LEAST_NOISE)
    values["linear"] = min(values["linear"], LARGEST_LINEAR)
    if len(words) >= 10 * LEAST_ROWS:
        values |= {"bound": BOUND} if target == "ttft" else {}
        values = transferred(values, words, features, residual, sweeps)
    return values | half_widths(values, words, features, residual, sweeps)


def transferred(values: dict, words: list, features: np.ndarray, residual: np.ndarray, sweeps: np.ndarray) -> dict:
    """Return constants that also predict rows of chips, models and engines that were left out.

    The likelihood of rows hardly sees what carries over to groups without rows. Constants are changed one at a time
    while the quantiles of errors fall, each relative to its first value: of rows left out alone, with their sweep, and
    with their chip, model and engine.
    """
    same = same_words(words, words)
    groups = [np.arange(len(words)), sweeps, sweeps, *(np.array([row[word] for row in words]) for word in CALIBRATED)]

    def errors(trial: dict) -> np.ndarray:
        precision = np.linalg.inv(covariance(trial, features, features, same) + np.diag(noise_variance(trial, words)))
        left = [left_out(precision, bounded(trial, residual), group)[0] - residual for group in groups]
        return np.array([np.quantile(np.abs(each), (0.5, 0.75, 0.9)) for each in left])

    first = errors(values)
    best = 1.0
    names = [name for name in values if name.startswith(("near", "far", "offset", "noise_agg"))]
    for step in STEPS:
        for name in names:
            for sign in (1.0, -1.0):
                old = values[name]
                logit = np.log(old / (1.0 - old)) + sign * step if "carry" in name else 0.0
                new = 1.0 / (1.0 + np.exp(-logit)) if "carry" in name else old * np.exp(sign * 0.5 * step)
                score = (errors({**values, name: float(new)}) / first).mean()
                if score < best - LEAST_GAIN:
                    best, values = score, {**values, name: float(new)}
                    print(f"{name} {old:.3g} -> {new:.3g}: {best:.4f}", flush=True)
                    break
    return values


def half_widths(values: dict, words: list, features: np.ndarray, residual: np.ndarray, sweeps: np.ndarray) -> dict:
    """Return by mode and what was left out the typical deviation, and the half width of 90 % intervals in it.

    Then a factor for each engine, chip and model, so that as many of its rows, left out likewise, are in their
    interval; it is closer to one where rows are few. That of an unknown chip or model holds as many rows of left-out
    ones, and is at least the upper quartile of those of the known rows.
    """
    modes, found = np.array([row["mode"] for row in words]), {}
    chips = np.array([row["chip"] for row in words])
    precision = precision_of(values, words, features)
    left = [left_out(precision, bounded(values, residual), groups) for groups in (np.arange(len(words)), sweeps, chips)]
    for name, (mean, variance) in zip(LEFT_OUT, left, strict=True):
        score = np.abs(mean - residual) / np.sqrt(variance)
        for mode in dict.fromkeys(modes):
            rows = modes == mode
            found[f"deviation_{mode}_{name}"] = float(np.exp(np.log(variance[rows]).mean() / 2.0))
            found[f"half_width_{mode}_{name}"] = float(np.quantile(score[rows], 0.9, method="higher"))
    for name, (mean, variance) in [*zip(LEFT_OUT, left, strict=True)] * 3:
        ratio = np.abs(mean - residual) / widened(found, words, variance)
        for mode in dict.fromkeys(modes):
            found[f"half_width_{mode}_{name}"] *= float(np.quantile(ratio[modes == mode], 0.9, method="higher"))
    for word in CALIBRATED * 3 if len(words) >= 10 * LEAST_ROWS else ():
        ratios = [np.abs(mean - residual) / widened(found, words, variance) for mean, variance in left]
        for name in dict.fromkeys(row[word] for row in words):
            rows = np.array([row[word] == name for row in words])
            if (count := int(rows.sum())) >= LEAST_ROWS:
                change = np.log(np.mean([np.quantile(ratio[rows], 0.9, method="higher") for ratio in ratios]))
                key = f"width_{word}_{name}"
                found[key] = found.get(key, 1.0) * float(np.exp(change * count / (count + LEAST_ROWS)))
    for word in ("chip", "model") if len(words) >= 10 * LEAST_ROWS else ():
        names = np.array([row[word] for row in words])
        mean, variance = left_out(precision, bounded(values, residual), names)
        others = [{**row, word: OTHER} for row in words]
        noisy = float(np.quantile([found.get(f"width_{word}_{name}", 1.0) for name in names], 0.75))
        width = unknown_width(np.abs(mean - residual) / widened(found, others, variance), names)
        found[f"width_{word}_{OTHER}"] = max(width, noisy)
    return found


def unknown_width(ratio: np.ndarray, names: np.ndarray) -> float:
    """Return the factor by which intervals that hold 90 % of the rows are wider, at least 1; each name counts alike."""
    shares = np.linspace(0.0, 1.0, 1000)
    return max(float(np.quantile([np.quantile(ratio[names == name], shares) for name in np.unique(names)], 0.9)), 1.0)


def unknown_engine(words: list) -> dict[str, dict[str, float]]:
    """Return by target the width of intervals of an engine without points, and the constants of its queue.

    Each engine is predicted without its points, with the geometric means of the constants of the others. The width,
    over that of a known engine, holds 90 % of the rows; each engine counts alike.
    """
    own = {engine: dict(constants(engine)) for engine in ENGINES}
    engines = np.array([row["engine"] for row in words])
    points = [read_point(row) for row in fk.table("serving_points").collect().iter_rows(named=True)]
    ratios: dict[str, list[np.ndarray]] = {"ttft": [], "tpot": []}
    for engine, known in own.items():
        mine = engines == engine
        constants(engine).update(mean_constants([values for name, values in own.items() if name != engine]))
        rows = predict.rows_of([points[row] for row in np.flatnonzero(mine)])
        found = predict.physics(rows)
        others = [{**row, "engine": OTHER} for row in rows.words]
        for target, physics, features in (
            ("ttft", found.ttft, found.ttft_features),
            ("tpot", found.tpot, found.tpot_features),
        ):
            _, every, residual = predict.known(target)
            measured = getattr(predict.measured()[1], target)[mine] * np.exp(residual[mine])
            rest = [words[row] for row in np.flatnonzero(~mine)]
            mean, half = Process(target, rest, every[~mine], residual[~mine]).predict(others, features)
            ratios[target].append(np.abs(np.log(measured / physics) - mean) / half)
        constants(engine).update(known)
    names = np.concatenate([np.full(len(each), engine) for engine, each in zip(own, ratios["ttft"], strict=True)])
    width = f"width_engine_{OTHER}"
    widths = {name: {width: unknown_width(np.concatenate(found), names)} for name, found in ratios.items()}
    return widths | {OTHER: mean_constants(list(own.values()))}


def mean_constants(engines: list[dict[str, float]]) -> dict[str, float]:
    """Return the geometric means of the constants of engines."""
    return {name: float(np.exp(np.mean([np.log(values[name]) for values in engines]))) for name in engines[0]}


def refitted(values: dict, rows: tuple) -> dict:
    """Return constants with new half widths."""
    kept = {name: value for name, value in values.items() if not name.startswith("width_")}
    return {**kept, **half_widths(kept, *rows)}


def physical() -> dict[str, float]:
    """Return the constants of the formulas, of defaults and of engines that fit both latencies best.

    Robust least squares of logarithms, half the weight on the first token, that of separate prefill left out, which
    benchmarks inflate by set-up; rows of a model, chip and engine that has many count less. They are rounded by hand
    into `formulas.serving.calibration`, `quantities.csv` and `serving_constants.csv`.
    """
    rows, found, ttft, tpot = predict.measured()
    groups = [" ".join(row[word] for word in CALIBRATED) for row in rows.words]
    _, at, counts = np.unique(groups, return_inverse=True, return_counts=True)
    weight = counts[at] ** -0.25
    shared = 0.5 * np.array([row["mode"] == "agg" for row in rows.words])
    defaults = dict(fk.quantities().select("name", "default").iter_rows())
    first = {name: getattr(calibration, name) for name in PHYSICAL} | {name: defaults[name] for name in DEFAULTS}
    first |= {f"{name} {engine}": constants(engine)[name] for engine in ENGINES for name in QUEUE}

    def residuals(point: np.ndarray) -> np.ndarray:
        values = dict(zip(first, np.exp(point).tolist(), strict=True))
        for name in PHYSICAL:
            setattr(calibration, name, values[name])
        for cached in (run.column_groups, run._columns, run._parts):  # they hold the former constants
            getattr(cached, "cache_clear", lambda: None)()
        for engine, name in itertools.product(ENGINES, QUEUE):
            constants(engine)[name] = values[f"{name} {engine}"]
        given = {name: pl.lit(values[name]) for name in DEFAULTS}
        sides = [side.with_columns(**given) for side in (rows.decode, rows.prefill)]
        new = predict.physics(predict.Rows(rows.words, *sides, rows.load))
        both = [tpot + np.log(found.tpot / new.tpot), shared * (ttft + np.log(found.ttft / new.ttft))]
        return np.concatenate([weight * each for each in both])

    best = least_squares(residuals, np.log(list(first.values())), loss="soft_l1", f_scale=0.3, max_nfev=20)
    return dict(zip(first, np.exp(best.x).tolist(), strict=True))


def main() -> None:
    """Fit the three targets and write the table; with ``physical``, print the constants of the formulas."""
    if sys.argv[1:] == ["physical"]:
        for name, value in physical().items():
            print(f"{name} {value:.3g}")
        return
    rows, found, ttft, tpot = predict.measured()
    words = rows.words
    sweeps = np.array([sweep(*each) for each in zip(words, rows.decode.iter_rows(named=True), strict=True)])
    groups, features, residual = predict.benchmark_residuals()
    systems = np.array([" ".join([row["chip"], row["engine"], row["model"]]) for row in groups])
    targets = {
        "tpot": (words, found.tpot_features, tpot, sweeps),
        "ttft": (words, found.ttft_features, ttft, sweeps),
        "benchmark": (groups, features, residual, systems),
    }
    only = sys.argv[1:] or list(targets)
    results = {
        name: fitted(name, *rows) if name in only else refitted(constants(name), rows) for name, rows in targets.items()
    }
    results |= {engine: constants(engine) for engine in ENGINES}
    for name in targets:
        constants(name).clear()
        constants(name).update(results[name])
    unknown = unknown_engine(words)
    results = {name: {**values, **unknown.pop(name, {})} for name, values in results.items()} | unknown
    with PATH.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["serving_constant", "target", "name", "value", "source", "locator", "as_of", "note"])
        for target, values in results.items():
            for name, value in values.items():
                key = f"{target}@{name}"
                writer.writerow(
                    [key, target, name, f"{value:.4g}", "factorykit_fit", "benchmarks/fit_serving.py", "2026-11", ""]
                )


if __name__ == "__main__":
    main()
