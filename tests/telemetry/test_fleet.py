"""Fleet verbs: results for simulated logs agree with their true values."""

from __future__ import annotations

import math
import re
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import factorykit as fk
from factorykit.cli import main

RUN = {
    "training_s": 10 * 86400.0,
    "accelerators": 64.0,
    "accelerators_per_node": 8.0,
    "accelerator_mtbf_s": 8 * 8 * 86400.0,
    "checkpoint_interval_s": 1800.0,
    "checkpoint_write_s": 30.0,
    "restart_s": 600.0,
    "downtime_s": 120.0,
    "step_s": 60.0,
    "accelerator_power_w": 600.0,
}
PRICE = {"rental_usd_per_accelerator_h": 2.5}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logs")


@pytest.fixture(scope="module")
def simulated(folder: Path) -> tuple[fk.Log, dict[str, Any]]:
    truth = fk.fleet.simulate_logs(folder, RUN, seed=4)
    return fk.read_log(folder), truth


@pytest.fixture(scope="module")
def reported(simulated, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Report of the simulated logs and a hostile file."""
    out = tmp_path_factory.mktemp("report")
    hostile = out / "hostile.csv"
    rows = ["n<b>,failure,<script>alert(1)</script>", "node003,failure,password: hunter2", "node003,notice,"]
    hostile.write_text("at,node,kind,cause\n" + "".join(f"2026-03-0{n},{row}\n" for n, row in enumerate(rows, 2)))
    command = ["report", str(folder), str(hostile), "-o", str(out), "--price", "2.5 USD/h", "--anonymise"]
    assert main(command) == 0
    return out


def events(tmp_path: Path, text: str) -> fk.Log:
    (tmp_path / "events.csv").write_text(text)
    return fk.read_log(tmp_path / "events.csv")


def test_each_failure_counts_once_and_the_limits_contain_the_true_rate(simulated) -> None:
    log, truth = simulated
    rates = fk.fleet.mtbf(log).row(0, named=True)
    assert rates["failures"] == truth["failures"] > 5
    assert rates["node_mtbf_s_low"] < truth["node_mtbf_s"] < rates["node_mtbf_s_high"]
    assert fk.fleet.mtbf(log, "cause")["failures"].sum() == rates["failures"]
    assert set(fk.fleet.mtbf(log, "cause")["cause"]) <= {"accelerator", "accelerator memory", "network", "host"}
    by_age = fk.fleet.mtbf(log, "age")
    assert by_age["failures"].sum() == rates["failures"]
    assert by_age["node_days"].sum() == pytest.approx(rates["node_days"])


def test_the_ledger_adds_up_to_the_cluster_and_agrees_with_the_simulation(simulated) -> None:
    log, truth = simulated
    ledger = fk.fleet.goodput(log, **PRICE)
    hours = dict(ledger.select("part", "accelerator_hours").iter_rows())
    wall_h = RUN["training_s"] / truth["goodput"] / 3600.0
    whole = sum(value for part, value in hours.items() if part != "queue")
    assert whole == pytest.approx(10 * 8 * wall_h, rel=1e-2)
    assert hours["productive"] == pytest.approx(RUN["training_s"] * 64 / 3600.0, rel=1e-3)
    assert hours["lost work"] == pytest.approx(truth["lost_h"], rel=0.01)
    assert hours["restart"] == pytest.approx(truth["restart_h"], rel=0.01)
    assert ledger["share"].sum() == pytest.approx(1.0)
    assert ledger["rental_cost_usd"].sum() == pytest.approx(2.5 * whole)


def test_the_slow_node_is_found_with_its_true_slowdown(simulated) -> None:
    log, truth = simulated
    worst, second = fk.fleet.stragglers(log, **PRICE).head(2).iter_rows(named=True)
    assert worst["node"] == truth["slow_node"]
    assert worst["slowdown"] == pytest.approx(1.05, abs=0.002)
    assert worst["slowest_share"] > 0.9 > 0.1 > second["slowest_share"]
    assert 0.03 < worst["step_share"] < 1.0 - 1.0 / 1.05
    assert second["slowdown_low"] < 1.0 < second["slowdown_high"] + 0.001


def test_energy_is_assigned_to_the_job_on_the_node(simulated) -> None:
    log, truth = simulated
    job = fk.fleet.energy(log).filter(job="4711").row(0, named=True)
    assert job["accelerator_energy_kwh"] == pytest.approx(truth["accelerator_energy_kwh"], rel=0.01)
    assert job["coverage"] == pytest.approx(1.0, abs=0.01)


def test_a_log_is_a_scenario_with_the_true_values(simulated) -> None:
    log, _ = simulated
    inputs = fk.fleet.scenario(log, **PRICE)
    for name in ("accelerators", "checkpoint_interval_s", "checkpoint_write_s", "step_s"):
        assert inputs[name] == pytest.approx(RUN[name], rel=1e-3), name
    assert inputs["restart_s"] == pytest.approx(RUN["restart_s"], rel=0.01)
    advice = fk.fleet.advise(log, **PRICE)
    interval = advice.row(0, named=True)
    best = fk.evaluate(inputs, "checkpoint_interval_optimal_s")["checkpoint_interval_optimal_s"]
    assert interval["best"] == best
    assert interval["best_low"] < best < interval["best_high"]
    assert advice.filter(quantity="node_mtbf_s")["failures_usd_per_day_saved"].item() > 0.0


def test_a_rate_from_few_failures_is_shrunk_and_one_from_many_is_not(tmp_path: Path) -> None:
    none = events(tmp_path, "at,node,kind\n2026-03-01,a,notice\n2026-03-11,b,notice\n")
    rate = fk.fleet.compare_with_published(none, exposure=2).filter(label="this cluster, shrunk").row(0, named=True)
    prior = fk.fleet.prior()
    assert rate["per_1000_node_days"] == pytest.approx(1000 * prior.failures / (prior.node_days + 20))
    assert 0.0 < rate["per_1000_low"] < rate["per_1000_node_days"] < rate["per_1000_high"]
    assert fk.fleet.compare_with_published(none, exposure=1e6).row(0, named=True)["per_1000_node_days"] < 1e-3


def test_bursts_and_maintenance_are_not_separate_failures(tmp_path: Path) -> None:
    rows = ["03-01T00:00:00,a,notice,", "03-02T00:00:00,a,failure,accelerator", "03-02T00:09:00,a,failure,other"]
    rows += ["03-02T00:10:00,a,down,other", "03-02T12:00:00,a,failure,other", "03-03T00:10:00,a,up,"]
    rows += ["03-04T00:00:00,b,down,maintenance", "03-05T00:00:00,b,up,", "03-09T00:00:00,b,down,network"]
    log = events(tmp_path, "at,node,kind,cause\n" + "".join(f"2026-{row}\n" for row in [*rows, "03-11T00:00:00,a,up,"]))
    rates = fk.fleet.failures(log)
    assert rates.select("node", "cause", "repair_s", "repair_observed").rows() == [
        ("a", "accelerator", 86400.0 + 600.0, True),
        ("b", "network", 2 * 86400.0, False),
        (None, None, None, None),
    ]
    assert rates["gap_s"].to_list() == [None, 7 * 86400.0, 2 * 86400.0]


def test_repair_times_have_exact_limits(tmp_path: Path) -> None:
    rows = "".join(
        f"2026-03-{day:02d}T00:00,n{day},down\n2026-03-{day:02d}T{day:02d}:00,n{day},up\n" for day in range(1, 11)
    )
    rates = fk.fleet.mtbf(events(tmp_path, "at,node,kind\n" + rows), exposure=10).row(0, named=True)
    assert rates["node_repair_s"] / 3600 == 5.5
    assert [rates[f"node_repair_median_s{end}"] / 3600 for end in ("_low", "", "_high")] == [2.0, 5.5, 9.0]
    low, high = fk.reliability.mtbf_interval_s(10, 55 * 3600.0)
    assert (rates["node_repair_s_low"], rates["node_repair_s_high"]) == (low, high)


def test_verbs_name_the_data_that_a_log_lacks(tmp_path: Path) -> None:
    log = events(tmp_path, "at,node,kind\n2026-03-01,a,down\n2026-03-11,b,up\n")
    for verb in (fk.fleet.goodput, fk.fleet.stragglers, fk.fleet.energy, fk.fleet.scenario):
        with pytest.raises(fk.FactorykitError, match="give"):
            verb(log)
    never = fk.fleet.mtbf(log, exposure=2).row(0, named=True)
    assert (never["repairs"], never["node_repair_s"], math.isinf(never["node_repair_s_high"])) == (0.0, None, True)


def test_step_times_go_into_a_calibration(simulated) -> None:
    log, _ = simulated
    row = fk.table("training_runs").filter(pl.col("step_time_s").is_not_null()).head(1).collect().row(0, named=True)
    layout = {name: value for name, value in row.items() if name not in ("id", "step_time_s", "tokens_per_s_per_gpu")}
    rows = fk.fleet.step_times(log, layout)
    assert rows.select("id", "step_time_s").row(0) == ("4711", 60.0)
    assert fk.calibrate(rows.with_columns(step_time_s=pl.lit(row["step_time_s"]))).rows == 1


def test_a_report_is_one_page_without_secrets_or_names(reported: Path) -> None:
    page = (reported / "index.html").read_text().partition("<body>")[2]
    assert "No data" not in page
    assert page.count('class="factorykit-chart"') == 7
    for secret in ("<script>alert", "hunter2", "node003", "n<b>", "hostile.csv", ">4711<"):
        assert secret not in page, secret
    outside = re.findall(r"(?:src|href)=[\"'](?!#|data:)[^\"']*", page)
    assert outside == []


def test_an_anonymised_report_does_not_name_its_logs(reported: Path, folder: Path) -> None:
    notebook = (reported / "report.ipynb").read_text()
    assert str(folder) not in notebook
    assert "hostile" not in notebook
    tables = {file.stem: pl.read_parquet(file) for file in (reported / "log").iterdir()}
    assert not fk.Log(**tables).jobs["job"].str.contains("4711").any()


def test_a_report_replaces_reports_alone(reported: Path, tmp_path: Path) -> None:
    logs, page = str(reported / "hostile.csv"), tmp_path / "index.html"
    page.write_text("mine")
    assert main(["report", logs, "-o", str(tmp_path)]) != 0
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]
    assert page.read_text() == "mine"
    page.unlink()
    assert [main(["report", logs, "-o", str(tmp_path)]) for _ in range(2)] == [0, 0]


@pytest.mark.browser
def test_a_report_draws_its_charts_without_network(reported: Path, chromium) -> None:
    page = chromium.new_page()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto((reported / "index.html").as_uri())
    page.wait_for_function("document.querySelectorAll('.factorykit-chart .fk-view svg').length >= 7")
    assert [address for address in requests if not address.startswith(("file:", "data:", "blob:"))] == []
    page.close()


@pytest.mark.long
def test_the_notebook_of_a_report_runs(reported: Path) -> None:
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    notebook = nbformat.read(reported / "report.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, kernel_name="python3", resources={"metadata": {"path": str(reported)}}).execute()
    assert sum(cell.cell_type == "code" for cell in notebook.cells) > 10


@pytest.mark.parametrize(
    ("jobs", "first", "warning", "lost_steps", "failures"),
    [
        ("501,pretrain,ann,failed 502,pretrain,ann,completed", 301, "1 jobs continue another one", 60, 1),
        ("501,pretrain,ann,timeout 502,pretrain,ann,completed", 301, "1 jobs continue another one", 60, 0),
        ("501,pretrain,ann,failed 501,pretrain,ann,completed", 301, "", 60, 1),
        (
            "501,pretrain,ann,failed 500,pretrain,ann,failed 502,pretrain,ann,completed",
            301,
            "2 jobs continue another one",
            60,
            1,
        ),
        ("501,pretrain,ann,failed 502,pretrain,ann,completed", 361, "1 jobs continue another one", 0, 1),
        ("501,pretrain,ann,completed 502,pretrain,ann,completed", 301, "", 0, 0),
        ("501,pretrain,ann,failed 502,sft,ann,completed", 301, "", 0, 0),
        ("501,,ann,failed 502,,ann,completed", 301, "1 jobs seem to continue another one", 0, 0),
        ("501,,ann,failed 502,,bob,completed", 301, "", 0, 0),
        ("501,,ann,failed 502,,ann,completed", 1, "", 0, 0),
        ("501,a,ann,failed 502,a,ann,completed 503,a,ann,completed", 301, "1 jobs seem to continue another one", 0, 0),
    ],
)
def test_a_job_that_continues_another_one_is_the_same_training(
    tmp_path: Path, jobs: str, first: int, warning: str, lost_steps: int, failures: int
) -> None:
    """Steps of ten seconds: a job ends after 360 of them, another one goes on; 500 fails before, 503 runs beside it."""
    times = iter(["2026-03-01T00:00:00,2026-03-01T01:00:00", *["2026-03-01T01:05:00,2026-03-01T02:05:00"] * 2])
    between = "2026-03-01T01:01:00,2026-03-01T01:04:00"
    rows = "".join(f"{job},{between if job[:3] == '500' else next(times)},1,16\n" for job in jobs.split())
    (tmp_path / "jobs.csv").write_text(f"job,name,user,state,started,ended,nodes,accelerators\n{rows}")
    start = datetime(2026, 3, 1, tzinfo=UTC)
    names = [job[:3] for job in jobs.split() if job[:3] != "500"]
    lines = [(names[0], start + timedelta(seconds=10 * n), n) for n in range(1, 361)]
    later = start + timedelta(minutes=65)
    lines += [(names[1], later + timedelta(seconds=10 * (n - first + 1)), n) for n in range(first, first + 360)]
    text = "".join(f"{at:%Y-%m-%dT%H:%M:%S},{job},{step},10\n" for job, at, step in lines)
    (tmp_path / "steps.csv").write_text(f"at,job,step,step_s\n{text}")
    log = fk.read_log([tmp_path / "jobs.csv", tmp_path / "steps.csv"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ledger = fk.fleet.goodput(log, accelerators=32)
    assert [warning in str(each.message) for each in caught] == [True] * bool(warning)
    lost_h = dict(ledger.select("part", "accelerator_hours").iter_rows())["lost work"]
    assert 3600 * lost_h == pytest.approx(16 * 10 * lost_steps)
    assert fk.fleet.mtbf(log, exposure=2)["failures"].item() == failures


def test_step_logs_named_after_a_job_and_more_are_of_the_job(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text(
        "job,state,started,ended,nodes,accelerators\n7700,completed,2026-03-01,2026-03-02,1,8\n"
    )
    line = " [2026-03-01 00:{0:02d}:00] iteration {0:8d}/ 1000 | elapsed time per iteration (ms): 60000.0 |\n"
    for name in ("llama-8b-7700.out", "llama-8b-7800.out"):
        (tmp_path / name).write_text("".join(map(line.format, range(1, 31))))
    assert fk.read_log(tmp_path).steps.sort("job")["job"].unique(maintain_order=True).to_list() == [
        "7700",
        "llama-8b-7800",
    ]


def test_samples_of_a_node_that_two_jobs_share_are_of_none(tmp_path: Path) -> None:
    jobs = "1,completed,2026-03-01T00:00,2026-03-01T04:00,1,4,a\n2,completed,2026-03-01T01:00,2026-03-01T02:00,1,4,a\n"
    jobs += "3,completed,2026-03-01T04:00,2026-03-01T06:00,1,8,a\n"
    (tmp_path / "jobs.csv").write_text(f"job,state,started,ended,nodes,accelerators,node_list\n{jobs}")
    samples = "".join(f"2026-03-01T0{hour}:00,a,0,1000\n" for hour in range(7))
    (tmp_path / "power.csv").write_text(f"at,node,accelerator,accelerator_power_w\n{samples}")
    energy = fk.fleet.energy(fk.read_log(tmp_path))
    assert dict(energy.select("job", "accelerator_energy_kwh").iter_rows()) == {None: 4.0, "3": 2.0}


@pytest.mark.parametrize(("hours", "job"), [(1, "7"), (0, "train")])
def test_steps_outside_of_all_attempts_cause_a_warning(tmp_path: Path, hours: int, job: str) -> None:
    """The training writes local time, or its log has another name than the job."""
    (tmp_path / "jobs.csv").write_text(
        "job,state,started,ended,nodes,accelerators\n7,completed,2026-03-01,2026-03-02,1,8\n"
    )
    steps = "".join(f"2026-03-0{1 + hours}T00:{n:02d}:00,{job},{n},60\n" for n in range(1, 60))
    (tmp_path / "steps.csv").write_text(f"at,job,step,step_s\n{steps}")
    with pytest.warns(UserWarning, match=f"59 of 59 steps are in no attempt of their job, the first of {job}"):
        fk.fleet.goodput(fk.read_log(tmp_path))


def test_each_attempt_has_the_steps_of_the_node_that_reports_them(tmp_path: Path) -> None:
    rows = "7,requeued,2026-03-01T00:00,2026-03-01T01:00,1,8\n7,completed,2026-03-01T02:00,2026-03-01T03:00,1,8\n"
    (tmp_path / "jobs.csv").write_text(f"job,state,started,ended,nodes,accelerators\n{rows}")
    steps = "".join(f"2026-03-01T0{2 * (n > 59)}:{n % 60:02d}:00,7,{'ab'[n > 59]},{n},60\n" for n in range(1, 120))
    (tmp_path / "steps.csv").write_text(f"at,job,node,step,step_s\n{steps}")
    ledger = fk.fleet.goodput(fk.read_log(tmp_path), accelerators=8).filter(part="productive")
    assert ledger["accelerator_hours"].item() == pytest.approx(8 * 119 / 60, rel=0.02)


STEP_S = 10
LEDGERS: dict[str, tuple[list[tuple[float, int, float | None]], dict[str, float]]] = {
    "a hang": (
        [(STEP_S * n + 300 * (n > 37), n, STEP_S) for n in range(1, 101)],
        {"productive": 1000, "checkpoint": 0, "other": 300},
    ),
    "periodic pauses": (
        [(STEP_S * n + 30 * ((n - 1) // 20), n, STEP_S) for n in range(1, 101)],
        {"productive": 1000, "checkpoint": 120, "other": 0},
    ),
    "the first step and every tenth are logged": (
        [(50 + STEP_S * n, n, None) for n in (1, *range(10, 101, 10))],
        {"restart": 50, "productive": 1000},
    ),
    "the processes start again within an attempt": (
        [(STEP_S * n, n, STEP_S) for n in range(1, 51)]
        + [(620 + STEP_S * (n - 40), n, STEP_S) for n in range(41, 101)],
        {"productive": 1000, "lost work": 100, "restart": 120, "other": 0},
    ),
    "a return to an earlier checkpoint after a first one": (
        [(STEP_S * n, n, STEP_S) for n in range(1, 51)]
        + [(620 + STEP_S * (n - 40), n, STEP_S) for n in range(41, 46)]
        + [(800 + STEP_S * (n - 20), n, STEP_S) for n in range(21, 101)],
        {"productive": 1000, "lost work": 350},
    ),
    "eight processes log each step, some of them late": (
        sorted((STEP_S * n + 1.5 * rank, n, None) for n in range(1, 101) for rank in range(8))[:-1],
        {"productive": 1000, "lost work": 0, "checkpoint": 0, "restart": 0},
    ),
    "eight processes log each step": (
        [(STEP_S * n + rank / 100, n, None) for n in range(1, 101) for rank in range(8)],
        {"productive": 1000, "checkpoint": 0, "restart": 0},
    ),
}
"""Second, step and step time of each line of a job on one accelerator; seconds of parts of the ledger."""


@pytest.mark.parametrize("name", LEDGERS)
def test_the_time_between_steps_is_of_its_part(tmp_path: Path, name: str) -> None:
    lines, expected = LEDGERS[name]
    start = datetime(2026, 3, 1, tzinfo=UTC)
    at = [start + timedelta(seconds=second) for second, _, _ in lines]
    rows = [f"{time.isoformat()},7,{step},{step_s or ''}" for time, (_, step, step_s) in zip(at, lines, strict=True)]
    (tmp_path / "steps.csv").write_text("\n".join(["at,job,step,step_s", *rows, ""]))
    job = f"7,completed,{start.isoformat()},{at[-1].isoformat()},1,1"
    (tmp_path / "jobs.csv").write_text(f"job,state,started,ended,nodes,accelerators\n{job}\n")
    ledger = fk.fleet.goodput(fk.read_log(tmp_path), accelerators=1)
    seconds = {part: 3600 * hours for part, hours in ledger.select("part", "accelerator_hours").iter_rows()}
    assert {part: seconds[part] for part in expected} == pytest.approx(expected, abs=1.0)


@pytest.mark.parametrize(("first_day", "warned"), [(0, 0), (30, 1)])
def test_an_export_of_jobs_that_ended_late_causes_a_warning(tmp_path: Path, first_day: int, warned: int) -> None:
    """One job runs from the first day on, the others for an hour each; sacct lists those that ended since a day."""
    start = datetime(2026, 3, 1, tzinfo=UTC)
    began = [start, *(start + timedelta(days=first_day, hours=n) for n in range(200))]
    ended = [began[-1], *(at + timedelta(hours=1) for at in began[1:])]
    rows = [f"{n},completed,{at},{end},n1" for n, (at, end) in enumerate(zip(began, ended, strict=True))]
    (tmp_path / "jobs.csv").write_text("\n".join(["job,state,started,ended,node_list", *rows, ""]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fk.fleet.mtbf(fk.read_log(tmp_path))
    assert ["no job ended in the first 30" in str(warning.message) for warning in caught] == [True] * warned


def test_the_cost_of_a_straggler_is_the_time_to_the_second_slowest(tmp_path: Path) -> None:
    times = {"a": 2.0, "b": 2.2, "c": 2.5, "d": 4.0}
    rows = "".join(f"2026-03-0{day},{day},{node},{time}\n" for day in (1, 2) for node, time in times.items())
    (tmp_path / "steps.csv").write_text("at,step,node,step_s\n" + rows)
    slowest = fk.fleet.stragglers(fk.read_log(tmp_path)).row(0, named=True)
    assert (slowest["node"], slowest["step_share"]) == ("d", pytest.approx((4.0 - 2.5) / 4.0))
