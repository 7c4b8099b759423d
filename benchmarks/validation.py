"""How far the performance model misses on rows that its constants never saw, split in every way that cannot flatter.

``python -m benchmarks.validation`` fits again without each family, publisher, framework and generation of chips in
turn (in folds), and on what was released before a time; then it calibrates on a few rows of a family left out and
writes what that leaves to data/sources/few_shots.csv. It prints median and 90th percentile of the miss, coverage of the
interval, and the order of layouts by tokens per FLOP. ``python -m benchmarks.validation serving`` prints how well
`factorykit.serve` chooses among measured configurations whose latencies it did not see.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from factorykit.data import tables
from factorykit.engine.providers.accelerators import chips
from factorykit.engine.providers.constants import constants
from factorykit.formulas import arguments
from factorykit.model.performance.calibration import Calibration, calibrate
from factorykit.model.performance.fit_constants import Measured, fit
from factorykit.model.performance.run_cells import software_year
from factorykit.model.serving import predict
from factorykit.model.serving.plan import DEVIATIONS
from factorykit.model.serving.predict import Rows
from factorykit.model.serving.risk import expected_cost
from factorykit.model.serving.validate import sweep
from factorykit.model.validation.validate import validate
from factorykit.model.validation.whole_runs import validate_runs

FOLDS = 5
MONTHS = (2023.5, 2024.5, 2025.5, 2026.25)
SHOTS = (3, 5, 10)
LEAST_ROWS = 10
DRAWS = 4
MOST_ROWS = 120
"""Rows of a family that are looked at in one draw."""
LIMITS = ("ttft", "tpot")
LENGTHS = ("input_tokens", "output_tokens")
LAYOUT = ("tensor_parallel", "attention_data_parallel", "pipeline_parallel", "expert_parallel")
SIDES = ("", "prefill_")
FIFTHS = np.arange(1, 5) / 5
WITHIN = 0.05
LEAST_CONFIGURATIONS = 4
FILE = Path(__file__).parents[1] / "data" / "sources" / "few_shots.csv"


def main() -> None:
    rows = tables.table("training_runs").collect()
    measured = Measured(rows, as_stated=True)
    kinds = groups(rows)[measured.frame["row"].to_list()]
    print("families out", line(validate(rows, leave_family_out=True)))
    for name in ("organisation", "framework", "generation"):
        print(f"{name} out", line(pl.concat(folds(measured, kinds[name].to_numpy(), rows))))
    for month in MONTHS:
        before = kinds["released"].to_numpy() < month
        values, _ = fit(measured, before, start=dict(constants()))
        later = rows[sorted(set(measured.frame["row"].to_numpy()[~before]))]
        print(f"released from {month} on", line(validate(later, calibration=values)))
    report_few_shots(few_shots(rows))
    whole_runs()


def serving() -> None:
    """Print how much less than the best measured one the chosen configuration of each sweep serves within limits.

    A sweep has the measured configurations (layout, workers, drafts and concurrency; repeated ones as geometric mean)
    of one engine, chip, model, number format and pair of lengths: at least four, of two layouts or more. Limits of the
    time to first token, of the time per output token and of both are at fifths of the measured range, in logarithms;
    those that no configuration keeps are left out. The configuration that `factorykit.serve` ranks first, by
    predictions without its layout or without its whole sweep, is compared with the best measured one within the limits
    by tokens/s per accelerator. A choice that breaks a limit as measured loses everything. Latencies that are known
    show what the error of the others costs.
    """
    rows = predict.measured()[0]
    names = ("engine", "chip", "model", "format")
    lengths = rows.decode.select(LENGTHS).iter_rows()
    sweeps = [" ".join(map(str, (*(w[name] for name in names), *s))) for w, s in zip(rows.words, lengths, strict=True)]
    layouts = [sweep(*each) for each in zip(rows.words, rows.decode.iter_rows(named=True), strict=True)]
    for what, groups, known in (
        ("layout left out", layouts, ()),
        ("sweep left out", sweeps, ()),
        ("layout left out, time to first token known", layouts, ("ttft",)),
        ("layout left out, time per output token known", layouts, ("tpot",)),
    ):
        found = [regrets(some) for _, some in configurations(rows, sweeps, groups, known).group_by("sweep")]
        for (limits,), some in pl.concat(found).sort("limits").group_by("limits", maintain_order=True):
            regret, kept = some["regret"], some["regret"].filter(some["regret"] < 1.0)
            print(
                f"{what}, limits {limits}: {some.height} choices in {some['sweep'].n_unique()} sweeps, "
                f"{(regret <= WITHIN).mean():.1%} within {WITHIN:.0%} of the best, {(regret == 1.0).mean():.1%} break "
                f"a limit; regret {regret.median():.1%} / {regret.quantile(0.9):.1%}, of those that break none "
                f"{kept.median():.1%} / {kept.quantile(0.9):.1%}"
            )


def configurations(rows: Rows, sweeps: Sequence[str], groups: Sequence[str], known: Sequence[str]) -> pl.DataFrame:
    """Return measured configurations of known size beside predictions without their groups; some latencies known."""
    physics, *residuals = predict.measured()[1:]
    left = [
        (residual, np.full(len(residual), 1e-3)) if name in known else predict.without(name, groups)
        for name, residual in zip(LIMITS, residuals, strict=True)
    ]
    found = pl.DataFrame(predict.summary(rows, physics, *left[0], *left[1]))
    truth = pl.DataFrame([pl.Series(n, v * np.exp(r)) for n, v, r in zip(LIMITS, physics[2:4], residuals, strict=True)])
    decode, prefill = (side.select(*LENGTHS, *LAYOUT, "draft_tokens") for side in (rows.decode, rows.prefill))
    frame = pl.concat(
        [decode, prefill.select(pl.all().name.prefix("prefill_")), rows.load, found, truth], how="horizontal"
    ).with_columns(sweep=pl.Series(sweeps), mode=pl.Series([row["mode"] for row in rows.words]))
    size, prompts = (pl.reduce(lambda a, b: a * b, [pl.col(side + name) for name in LAYOUT[:3]]) for side in SIDES)
    apart = pl.when(mode="agg").then(0.0).otherwise(prompts * pl.col("prefill_workers"))
    latency = pl.col("ttft") + (pl.col("output_tokens") - 1.0) * pl.col("tpot")
    frame = frame.with_columns(accelerators=size * pl.col("workers") + apart, rate=pl.col("concurrency") / latency)
    frame = frame.filter(pl.col("mode") != "disagg_open").with_columns(
        rate=pl.col("rate") * pl.col("output_tokens") / pl.col("accelerators"),
        predicted=pl.col("tokens_per_s") / pl.col("accelerators"),
    )
    same = ["sweep", "mode", *(side + name for side in SIDES for name in LAYOUT), "workers", "prefill_workers"]
    return frame.group_by(*same, "concurrency", "draft_tokens", *LENGTHS, maintain_order=True).agg(
        pl.col("^(ttft|tpot).*$", "rate", "predicted").log().mean().exp()
    )


def regrets(some: pl.DataFrame) -> pl.DataFrame:
    """Return for each limit the share of the best measured rate that the chosen configuration of a sweep lacks."""
    layouts = some.select(side + name for side in SIDES for name in LAYOUT).unique().height
    found = []
    ranges = {
        name: some.select(pl.col(name).min().log(), pl.col(name).max().log().alias("end")).row(0) for name in LIMITS
    }
    marks = {name: [None, *np.exp(low + (high - low) * FIFTHS)] for name, (low, high) in ranges.items()}
    for pair in itertools.product(*marks.values()) if some.height >= LEAST_CONFIGURATIONS and layouts > 1 else ():
        limits = {name: limit for name, limit in zip(LIMITS, pair, strict=True) if limit is not None}
        kept = pl.all_horizontal(True, *(pl.col(name) <= limit for name, limit in limits.items()))
        best = some.filter(kept)["rate"].max() if limits else None
        if best is None:
            continue
        deviations = {f"{n}_deviation": (pl.col(f"{n}_high_s") / pl.col(f"{n}_s")).log() / DEVIATIONS for n in LIMITS}
        over = {f"{name}_over": pl.col(f"{name}_s") / limits.get(name, np.inf) for name in LIMITS}
        ranked = some.with_columns(**deviations, **over, excess=pl.lit(1.0))
        cost = expected_cost(*(ranked[name] for name in arguments(expected_cost)))[0] / ranked["predicted"]
        excess = pl.max_horizontal("excess", *over)
        chosen = ranked.with_columns(excess, cost=cost, kept=kept).sort("excess", "cost").row(0, named=True)
        regret = 1.0 - chosen["rate"] / best if chosen["kept"] else 1.0
        found.append({"sweep": chosen["sweep"], "limits": " and ".join(limits), "regret": regret})
    return pl.DataFrame(found, {"sweep": pl.String, "limits": pl.String, "regret": pl.Float64})


def whole_runs() -> None:
    """Print the miss of GPU hours of whole runs, and that of 6 N D at 40 % of the peak."""
    judged = validate_runs().filter(pl.col("error").is_not_null())
    for name in ("error", "null_error"):
        median, tail = _miss(judged[name])
        print(f"GPU hours of {judged.height} whole runs, {name}: {median:.1%} / {tail:.1%}")


def groups(rows: pl.DataFrame) -> pl.DataFrame:
    """Return publisher, framework, generation of the chip and time of release of each row."""
    generation = {key: str(chip["generation"]) for key, chip in chips().items()}
    years = [software_year(row) or constants()["software_year"] for row in rows.iter_rows(named=True)]
    return rows.select(
        "organisation",
        pl.col("framework").fill_null(""),
        pl.col("accelerator").replace_strict(generation, default="").alias("generation"),
        pl.Series("released", years),
    )


def folds(measured: Measured, names: np.ndarray, rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield the rows of each fold of names, predicted with constants that saw none of them."""
    every = sorted(set(names), key=str)
    for fold in range(FOLDS):
        out = np.isin(names, every[fold::FOLDS])
        values, _ = fit(measured, ~out, start=dict(constants()))
        yield validate(rows[sorted(set(measured.frame["row"].to_numpy()[out]))], calibration=values)


def few_shots(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the miss of each family left out after none, some and most of its rows, beside the simplest calibration.

    That is to scale all predictions by the median of measured over predicted of the same rows. Rows are drawn four
    times, chosen by design once, and once all but a fifth, for each fifth.
    """
    before = validate(rows, leave_family_out=True).with_row_index("number").filter(pl.col("error").is_not_null())
    found = []
    for (family,), some in before.group_by("family", maintain_order=True):
        if some.height < LEAST_ROWS + max(SHOTS):
            continue
        for draw in range(DRAWS):
            order = np.random.default_rng(100 + draw).permutation(some["number"].to_numpy())[:MOST_ROWS].tolist()
            pool = rows[order].with_columns(pl.Series("number", order))
            taken = [("drawn", shots, pool.head(shots)) for shots in (0, *SHOTS)]
            if draw == 0:
                taken += [("chosen", shots, Calibration.design(pool, shots)) for shots in SHOTS]
                taken += [("most", 0, pool.filter(pl.int_range(pl.len()) % FOLDS != fold)) for fold in range(FOLDS)]
            found += [
                {"family": family, "how": how, "shots": shots, **_after(some, pool, own, str(family))}
                for how, shots, own in taken
            ]
        print(family, flush=True)
    judged = ("error", "ninetieth", "inside", "scaled_error", "scaled_ninetieth")
    return pl.DataFrame(found).group_by("family", "how", "shots", maintain_order=True).agg(pl.col(judged).mean())


def _after(before: pl.DataFrame, pool: pl.DataFrame, own: pl.DataFrame, family: str) -> dict[str, float]:
    """Return how far rows of a pool are missed once some were used, and by predictions that these scale."""
    rest = before.filter(pl.col("number").is_in(pool["number"]) & ~pl.col("number").is_in(own["number"]))
    ratio = 1.0
    others = rest
    if own.height:
        errors = before.filter(pl.col("number").is_in(own["number"]))["error"]
        ratio = float(1.0 / (1.0 + errors).median())  # type: ignore[arg-type]
        mine = calibrate(own, left_out=family)
        whole = replace(mine, constants={**constants(family), **mine.constants})
        others = validate(pool.filter(~pl.col("number").is_in(own["number"])), calibration=whole)
    (median, tail), (scaled, scaled_tail) = _miss(others["error"]), _miss((rest["error"] + 1.0) * ratio - 1.0)
    found = {"error": median, "ninetieth": tail, "inside": _inside(others)}
    return found | {"scaled_error": scaled, "scaled_ninetieth": scaled_tail}


def report_few_shots(found: pl.DataFrame) -> None:
    """Print the mean and the middle over families, and write each family's figures as a table."""
    for (how, shots), some in found.group_by("how", "shots", maintain_order=True):
        mean = some.select(pl.col(pl.Float64).mean()).row(0, named=True)
        middle = some.select(pl.col(pl.Float64).median()).row(0, named=True)
        within = some["inside"].is_between(0.85, 0.95).mean()
        print(
            f"{some.height} families, {shots or ''} {how}: {mean['error']:.1%} / {mean['ninetieth']:.1%}, middle "
            f"{middle['error']:.1%} / {middle['ninetieth']:.1%}; scaled {mean['scaled_error']:.1%} / "
            f"{mean['scaled_ninetieth']:.1%}; covered {mean['inside']:.0%}, {within:.0%} of families within 85 to 95, "
            f"{(some['inside'] < 0.85).sum()} below"
        )
    named = {"error": "median_absolute_error", "ninetieth": "ninetieth_absolute_error", "inside": "in_interval"}
    named |= {"scaled_error": "scaled_median_error", "scaled_ninetieth": "scaled_ninetieth_error"}
    table = found.select(
        pl.concat_str(
            "family", "how", pl.when(pl.col("how") != "most").then("shots"), separator="_", ignore_nulls=True
        ).alias("few_shots"),
        "family",
        pl.col("how").alias("rows_taken"),
        pl.when(pl.col("how") != "most").then("shots").alias("measured_rows"),
        *[pl.col(name).round(4).alias(column) for name, column in named.items()],
        source=pl.lit("factorykit_validation"),
        locator=pl.lit("python -m benchmarks.validation"),
        as_of=pl.lit(str(datetime.now(tz=UTC).date())),
        note=pl.lit(None, dtype=pl.String),
    )
    table.write_csv(FILE)


def _inside(validated: pl.DataFrame) -> float:
    seen = validated.filter(pl.col("error").is_not_null())
    return float(seen.select(pl.col("measured_s").is_between("step_low_s", "step_high_s").mean()).item())


def _miss(errors: pl.Series) -> tuple[float, float]:
    missed = errors.drop_nulls().abs()
    return float(missed.median()), float(missed.quantile(0.9))  # type: ignore[arg-type]


def line(validated: pl.DataFrame) -> str:
    """Return rows, median and tail of the miss, and coverage, in words."""
    seen = validated.filter(pl.col("error").is_not_null())
    inside: Any = seen.select(pl.col("measured_s").is_between("step_low_s", "step_high_s").mean()).item()
    median, tail = _miss(seen["error"])
    return f"{seen.height} rows, {median:.1%} / {tail:.1%}, covered {inside:.0%}, order {order(seen):.2f}"


def order(validated: pl.DataFrame, by: Sequence[str] = ("group",)) -> float:
    """Return the median rank correlation of FLOP utilization within groups: which layout uses the chips better."""
    ranked = validated.with_columns(measured_mfu=pl.col("predicted_mfu") * (pl.col("error") + 1.0))
    groups = ranked.group_by(*by).agg(
        pl.corr("predicted_mfu", "measured_mfu", method="spearman").alias("rank"), pl.len()
    )
    return float(groups.filter(pl.col("len") >= 8)["rank"].drop_nans().drop_nulls().median() or 0.0)  # type: ignore[arg-type]


if __name__ == "__main__":
    serving() if sys.argv[1:] == ["serving"] else main()
