"""Archives: results agree with the parameters of the simulation."""

import math
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

import factorykit as fk
from benchmarks.archive import SHAPE, write_failures

DAYS, NODES, MTBF_S = 400.0, 400, 864_000.0


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archive")
    write_failures(folder / "failures", NODES, DAYS, MTBF_S, 4)
    day = datetime(2026, 3, 2)
    jobs = [("completed", day, day + timedelta(hours=3), 8.0), ("node failure", day, day + timedelta(hours=1), 8.0)]
    (folder / "jobs").mkdir()
    pl.DataFrame(jobs, ["state", "started", "ended", "accelerators"], orient="row").write_parquet(
        folder / "jobs" / "a.parquet"
    )
    (folder / "power").mkdir()
    samples = pl.DataFrame({"at": [day, day, day + timedelta(days=7)], "accelerator_power_w": [100.0, 300.0, 500.0]})
    samples.write_parquet(folder / "power" / "a.parquet")
    return folder


def test_rates_are_counts_over_time_with_exact_limits(archived: Path) -> None:
    archive = fk.fleet.archive(archived, NODES)
    rows = pl.scan_parquet(archived / "failures" / "*.parquet").collect()
    rates = archive.mtbf("cause")
    assert dict(rates.select("cause", "failures").iter_rows()) == dict(rows["cause"].value_counts().iter_rows())
    assert rates["failures"].sum() == archive.mtbf("age")["failures"].sum() == archive.mtbf("month")["failures"].sum()
    watched_s = (rows["at"].max() - rows["at"].min()).total_seconds() * NODES
    assert rates["node_mtbf_s"][0] == pytest.approx(watched_s / rates["failures"][0], rel=1e-9)
    low, high = fk.reliability.mtbf_interval_s(rates["failures"][0], watched_s)
    assert rates["node_mtbf_s_low", "node_mtbf_s_high"].row(0) == pytest.approx((low, high), rel=1e-9)
    repairs = dict(rows.group_by("cause").agg(pl.col("repair_s").mean()).iter_rows())
    assert dict(rates.select("cause", "node_repair_s").iter_rows()) == pytest.approx(repairs, rel=1e-9)


def test_lifetimes_follow_the_weibull_distribution_of_the_simulation(archived: Path) -> None:
    """Weibull: S(t) = exp(-(t / scale)^shape), scale = mean / gamma(1 + 1 / shape); gaps are rounded up to minutes."""
    scale = MTBF_S / math.gamma(1.0 + 1.0 / SHAPE)
    for span_s, survival, spread in (
        fk.fleet.archive(archived, NODES).survival(12).filter(pl.col("survival") > 0.01).iter_rows()
    ):
        truth = math.exp(-((span_s / scale) ** SHAPE))
        assert survival == pytest.approx(
            truth, abs=5.0 * spread + 60.0 * SHAPE / scale * (scale / span_s) ** (1.0 - SHAPE)
        )


def test_survival_is_the_kaplan_meier_estimate(tmp_path: Path) -> None:
    """Observed gaps of 60, 120 and 240 s, a censored one of 180 s."""
    start = datetime(2026, 3, 1)
    at = [("a", 0), ("a", 60), ("b", 60), ("b", 180), ("c", 0), ("c", 240)]
    rows = [(start + timedelta(seconds=s), node, "host", 0.0) for node, s in at]
    (tmp_path / "failures").mkdir()
    frame = pl.DataFrame(rows, ["at", "node", "cause", "repair_s"], orient="row")
    frame.write_parquet(tmp_path / "failures" / "a.parquet")
    rates = fk.fleet.archive(tmp_path, 3).survival(100)
    last = {60: 1 - 1 / 5, 120: (1 - 1 / 5) * (1 - 1 / 3)}
    read = {round(s): v for s, v, _ in rates.iter_rows()}
    assert read[60] == pytest.approx(last[60], rel=1e-12)
    assert rates.filter(pl.col("span_s").is_between(121, 179))["survival"].unique().to_list() == [
        pytest.approx(last[120])
    ]


def test_a_rolling_mean_includes_days_without_failures(tmp_path: Path) -> None:
    start = datetime(2026, 3, 1, 6)
    rows = [(start + timedelta(days=day), "a", "host", 1.0) for day in (0, 0, 3)]
    (tmp_path / "failures").mkdir()
    frame = pl.DataFrame(rows, ["at", "node", "cause", "repair_s"], orient="row")
    frame.write_parquet(tmp_path / "failures" / "a.parquet")
    rates = fk.fleet.archive(tmp_path, 1).rolling_mtbf(2)
    assert rates["failures"].to_list() == [2.0, 2.0, 0.0, 1.0]
    assert rates["cluster_mtbf_s"].to_list() == [43_200.0, 86_400.0, None, 172_800.0]


def test_hours_and_power_are_summed_by_week(archived: Path) -> None:
    archive = fk.fleet.archive(archived, NODES)
    assert archive.goodput().row(0) == (datetime(2026, 3, 2), 2.0, 32.0, 0.75)
    assert archive.power().rows() == [(datetime(2026, 3, 2), 2.0, 200.0), (datetime(2026, 3, 9), 1.0, 500.0)]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (lambda folder: fk.fleet.archive(folder / "gone", 1), "has no Parquet files in failures, jobs, power"),
        (lambda folder: fk.fleet.archive(folder, 0), "nodes must be at least 1, got 0"),
        (lambda folder: fk.fleet.archive(folder, 1).mtbf("weak"), "nearest is 'week'"),
        (lambda folder: fk.fleet.archive(folder, 1).rolling_mtbf(0), "days must be at least 1, got 0"),
        (lambda folder: fk.fleet.archive(folder, 1).survival(1), "points must be between"),
        (lambda folder: fk.fleet.archive(folder, 1).sql("from read_csv('/etc/passwd')"), "known are failures"),
        (lambda folder: fk.fleet.archive(folder, 1).sql("drop view failures"), "DROP is not allowed"),
    ],
)
def test_invalid_queries_of_an_archive_are_refused(archived: Path, query, message: str) -> None:
    with pytest.raises(fk.FactorykitError, match=message):
        query(archived)


def test_files_without_a_needed_column_are_refused(tmp_path: Path) -> None:
    (tmp_path / "failures").mkdir()
    pl.DataFrame({"at": [datetime(2026, 3, 1)], "node": ["a"]}).write_parquet(tmp_path / "failures" / "a.parquet")
    with pytest.raises(fk.FactorykitError, match="has no column cause"):
        fk.fleet.archive(tmp_path, 1)
