"""Studies: the same rows as the call without a folder, after interruptions too."""

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import factorykit as fk
from factorykit.model.uncertainty.quasi_random import points_between
from factorykit.model.uncertainty.study import parts as design

RUN = {"active_parameters": 405e9, "tokens": 15.6e12, "accelerators": 16384.0, "peak_flop_per_s": 989e12}
GRID = {"accelerator_mtbf_s": [1e8, 1e9], "goodput": [0.8, 0.9], "mfu": [0.3, 0.4, 0.5]}
DOUBT = {"mfu": fk.Uniform(0.35, 0.45), "tokens": fk.LogNormal(10e12, 20e12)}


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(design, "CELLS_A_PART", 20)
    monkeypatch.setattr("factorykit.engine.grids.MAX_BLOCK_ROWS", 3)


@pytest.fixture
def _eager_threads() -> Iterator[None]:
    """Let threads take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def swept(out: Path, **more: object) -> pl.LazyFrame:
    return fk.sweep(RUN, GRID, ["wall_days", "failures_per_day"], out=out, **more)


@pytest.fixture
def expected() -> pl.DataFrame:
    return fk.sweep(RUN, GRID, ["wall_days", "failures_per_day"])


def test_parts_hold_the_rows_of_the_frame_in_order(tmp_path: Path, expected: pl.DataFrame) -> None:
    assert swept(tmp_path / "study").collect().equals(expected)
    found = fk.study(tmp_path / "study")
    assert found.parts == len(found.done) > 1
    assert found.manifest["asked"]["grid"]["mfu"] == [0.3, 0.4, 0.5]
    assert found.sql("select count(*) as rows, max(wall_days) as most from study").row(0) == (
        expected.height,
        expected["wall_days"].max(),
    )


@pytest.mark.parametrize("method", ["sobol", "latin", "random"])
@pytest.mark.parametrize("n", [7, 100])
def test_draws_are_the_same_in_parts(tmp_path: Path, method: str, n: int) -> None:
    grid = {"goodput": [0.7, 0.8, 0.9]}
    drawn = fk.sample(RUN, DOUBT, "wall_days", n, seed=5, method=method, grid=grid)
    parts = fk.sample(RUN, DOUBT, "wall_days", n, seed=5, method=method, grid=grid, out=tmp_path / "study")
    assert fk.study(tmp_path / "study").parts > 1
    assert_frame_equal(parts.collect(), drawn, rel_tol=1e-13)


def test_rows_of_a_lazy_frame_make_a_study(tmp_path: Path, expected: pl.DataFrame) -> None:
    expected.select("mfu", "goodput").write_parquet(tmp_path / "rows.parquet")
    scan = fk.sweep(RUN, pl.scan_parquet(tmp_path / "rows.parquet"), "wall_days", out=tmp_path / "study")
    assert_frame_equal(scan.collect(), expected.select("mfu", "goodput", "wall_days"), rel_tol=1e-13)


@pytest.mark.parametrize("name", ["study", "rows.parquet", None])
def test_a_lazy_query_runs_once_however_its_rows_are_ordered(tmp_path: Path, name: str | None) -> None:
    """Each run of the query returns its rows in another order, as group_by may."""
    runs: list[int] = []

    def shuffled(rows: pl.DataFrame) -> pl.DataFrame:
        runs.append(len(runs))
        return rows.sample(fraction=1.0, shuffle=True, seed=len(runs))

    tokens = [1e12 + row for row in range(200)]
    query = pl.LazyFrame({"tokens": tokens}).map_batches(shuffled)
    run = {"active_parameters": 405e9}
    swept = fk.sweep(run, query, "training_flop", out=name and tmp_path / name).lazy().collect()
    assert sorted(swept["tokens"]) == tokens
    assert len(runs) == 1
    if name == "study":
        assert fk.study(tmp_path / name).parts > 1
        with pytest.raises(fk.FactorykitError, match="asked: order differs"):
            fk.sweep(run, query, "training_flop", out=tmp_path / name)
    assert {path.name for path in tmp_path.iterdir()} == ({name} if name else set())


@pytest.mark.parametrize("out", ["ftp://host/study", "hf://datasets/a/rows.parquet", "file:///tmp/study"])
def test_other_urls_are_refused(tmp_path: Path, out: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for call in (swept, lambda out: fk.run_cases("simulate", CASES, out)):
        with pytest.raises(fk.FactorykitError, match="expected a local path or s3://, gs://, az://; give a local"):
            call(out)
    assert not any(tmp_path.iterdir())


def test_a_study_resumes_from_its_intact_parts(tmp_path: Path, expected: pl.DataFrame) -> None:
    """One part is gone, one was cut, one was altered, one was never finished."""
    swept(tmp_path)
    first, second, third, *_ = fk.study(tmp_path).done
    kept = {path.name: path.stat().st_mtime_ns for path in fk.study(tmp_path).done}
    first.unlink()
    second.write_bytes(second.read_bytes()[:-9])
    third.write_bytes(third.read_bytes().replace(b"PAR1", b"PAR2", 1))
    stage = tmp_path / f".parts-{os.uname().nodename}-dead"
    stage.mkdir()
    (stage / "3-0a1b").write_bytes(b"half")
    assert swept(tmp_path).collect().equals(expected)
    assert not stage.exists()
    now = {path.name: path.stat().st_mtime_ns for path in fk.study(tmp_path).done}
    assert now.keys() == kept.keys()
    assert {name for name in now if now[name] != kept[name]} == {first.name, second.name, third.name}


def test_a_complete_study_opens_without_reading_its_parts(tmp_path: Path, expected: pl.DataFrame, monkeypatch) -> None:
    swept(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    with monkeypatch.context() as patch:
        patch.setattr("factorykit.model.uncertainty.study.study._digest", lambda path: 1 / 0)
        assert swept(tmp_path).collect().equals(expected)
        assert fk.study(tmp_path).rows.collect().equals(expected)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


def test_damage_that_leaves_size_and_time_is_found_when_asked(tmp_path: Path) -> None:
    swept(tmp_path)
    fk.study(tmp_path).verify()
    part = fk.study(tmp_path).done[1]
    status, content = part.stat(), part.read_bytes()
    part.write_bytes(content[:-20] + bytes([content[-20] ^ 1]) + content[-19:])
    os.utime(part, ns=(status.st_atime_ns, status.st_mtime_ns))
    study = importlib.import_module("factorykit.model.uncertainty.study.study")
    study._digest_of.cache_clear()
    with pytest.raises(fk.FactorykitError, match=r"part-0000001.* is damaged"):
        fk.study(tmp_path).verify()


def test_unfinished_studies_are_counted_by_their_parts(tmp_path: Path, expected: pl.DataFrame) -> None:
    swept(tmp_path)
    for path in fk.study(tmp_path).done[2:]:
        path.unlink()
    found = fk.study(tmp_path)
    assert repr(found).endswith(f"2 of {found.parts} parts, 12 rows")
    assert found.rows.collect().equals(expected.head(found.rows.collect().height))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda out: fk.sweep(RUN, GRID | {"mfu": [0.31]}, "wall_days", out=out),
            "another study: asked: outputs differs",
        ),
        (lambda out: fk.sample(RUN, DOUBT, "training_days", 7, out=out), "has another study: verb differs"),
        (lambda out: (out / "study.json").unlink() or swept(out), r"has part-0000000.*; give a folder that is empty"),
        (lambda out: (out / "study.json").write_text("[" * 9_000) and fk.study(out), "has no study"),
        (lambda out: (out / "study.json").write_text('{"parts": "3"}') and fk.study(out), "must have verb"),
        (lambda out: swept(out, engine="spark"), "must be local, ray"),
    ],
)
def test_a_folder_belongs_to_one_study(tmp_path: Path, change, message: str) -> None:
    swept(tmp_path)
    with pytest.raises(fk.FactorykitError, match=message):
        change(tmp_path)


def test_a_study_of_another_version_or_other_tables_is_not_resumed(tmp_path: Path) -> None:
    swept(tmp_path)
    manifest = json.loads((tmp_path / "study.json").read_text())
    for name in ("factorykit", "tables"):
        (tmp_path / "study.json").write_text(json.dumps(manifest | {name: "other"}))
        with pytest.raises(fk.FactorykitError, match=f"{name} differs"):
            swept(tmp_path)


@pytest.mark.parametrize(
    "query",
    ["select * from read_csv('/etc/passwd')", "copy study to 'x.csv'", "drop view study", "selec", "from gone", 5],
)
def test_a_question_to_a_study_reads_the_study_alone(tmp_path: Path, query) -> None:
    swept(tmp_path)
    with pytest.raises(fk.FactorykitError):
        fk.study(tmp_path).sql(query)


def test_a_damaged_part_and_an_empty_study_are_named(tmp_path: Path) -> None:
    swept(tmp_path)
    found = fk.study(tmp_path)
    found.done[0].write_bytes(b"PAR1")
    with pytest.raises(fk.FactorykitError, match="part-0000000"):
        found.sql("from study")
    for path in found.done:
        path.unlink()
    with pytest.raises(fk.FactorykitError, match="has no finished part"):
        found.sql("from study")


@pytest.mark.usefixtures("_eager_threads")
def test_draws_do_not_depend_on_other_threads() -> None:
    """Concurrent threads draw the same points as one alone."""
    firsts = [*range(0, 4096, 64)] * 4
    alone = [points_between(3, 4096, 1, "sobol", first, first + 64) for first in firsts]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda first: points_between(3, 4096, 1, "sobol", first, first + 64), firsts))
    assert all((one == other).all() for one, other in zip(alone, together, strict=True))


KILLED = """
import sys
import factorykit as fk
from factorykit.model.uncertainty.study import parts as design
design.CELLS_A_PART = 2**20
steps = [i / 1000 for i in range(200, 600)]
fk.sweep({"peak_flop_per_s": 989e12, "tokens": 1e13}, {"active_parameters": [1e9 * i for i in range(1, 126)],
         "mfu": steps, "accelerators": [float(i) for i in range(1, 401)]}, ["training_days"], out=sys.argv[1])
"""


@pytest.mark.long
def test_a_sweep_killed_at_any_moment_resumes_to_the_same_rows(tmp_path: Path) -> None:
    """Twenty million rows; each run is killed a little later than the one before, until one ends."""
    command, wait_s, kills = [sys.executable, "-c", KILLED, str(tmp_path)], 1.0, 0
    while True:
        process = subprocess.Popen(command)
        try:
            process.wait(wait_s)
            break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills, wait_s = kills + 1, wait_s + 0.3
    assert process.returncode == 0
    assert kills > 1
    found = fk.study(tmp_path)
    assert found.sql(
        "select count(*) as n, count(distinct (active_parameters, mfu, accelerators)) as d from study"
    ).row(0) == (20_000_000, 20_000_000)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


CASES = [
    {
        "inputs": {"training_s": 4e6, "checkpoint_interval_s": 1100.0, "checkpoint_write_s": 60.0, "restart_s": 600.0}
        | {"cluster_mtbf_s": hours * 3600.0, "downtime_s": 0.0},
        "runs": 5,
        "seed": 3,
    }
    for hours in (3.0, 0.0, 6.0)
]


def test_a_batch_holds_the_answers_of_its_cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("factorykit.model.uncertainty.study.cases.CASES_A_PART", 1)
    rows = fk.run_cases("simulate", CASES, tmp_path).collect()
    assert fk.study(tmp_path).parts == 3
    for number in (0, 2):
        one = fk.simulate(**CASES[number])
        assert_frame_equal(rows.filter(case=number).select(one.columns), one, check_dtypes=False)
    refused = rows.filter(case=1)
    assert refused["error"].item().startswith("cluster_mtbf_s = 0")
    assert fk.study(tmp_path).sql("select count(error) as refused, count(*) as rows from study").row(0) == (1, 11)


@pytest.mark.parametrize(
    ("verb", "case", "columns"),
    [
        (
            "plan",
            {"model": "llama3_8b", "tokens": "1T", "chips": ["h100_sxm"], "counts": [256]},
            {"wall_days", "run_cost_usd"},
        ),
        ("schedule", {"jobs": fk.workload("kalos", 20, seed=1)}, {"utilization", "makespan_s"}),
        (
            "search",
            {"model": "llama3_8b", "cluster": {"accelerators": 16, "accelerator": "h100_sxm"}, "global_batch_size": 64},
            {"step_s", "tensor_parallel"},
        ),
    ],
)
def test_every_verb_of_a_batch_keeps_its_rows(tmp_path: Path, verb: str, case: dict, columns: set[str]) -> None:
    rows = fk.run_cases(verb, [case], tmp_path).collect()
    assert columns <= {*rows.columns}
    assert rows["error"].null_count() == rows.height > 0
    fk.run_cases(verb, [case], tmp_path)


def test_layouts_in_parts_are_those_of_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("factorykit.model.performance.search.MAX_BLOCK_ROWS", 2_000)
    asked = {"model": "llama3_8b", "cluster": {"accelerators": 64, "accelerator": "h100_sxm"}, "global_batch_size": 256}
    asked["choices"] = {"context_parallel": [1, 2], "micro_batch_size": [1, 2], "schedule": ["1f1b"], "zero_stage": [1]}
    whole = fk.search(**asked).collect()
    parts = fk.search(**asked, out=tmp_path).collect()
    assert fk.study(tmp_path).parts > 1
    layout = [name for name in whole.columns if name in fk.study(tmp_path).manifest["asked"]["tried"]]
    ties = pl.exclude("pareto")
    assert_frame_equal(parts.sort(layout).select(ties), whole.sort(layout).select(ties), rel_tol=1e-12)
    assert parts.filter(fits=1.0)["step_s"].is_sorted()


DRIVEN = """
import sys
import ray
import factorykit as fk
if sys.argv[2] == "ray":
    ray.init(num_cpus=2, log_to_driver=False)
chips, shares = [1000.0 + i for i in range(20_000)], [0.2 + i / 4000 for i in range(1000)]
run = {"active_parameters": 405e9, "tokens": 1e13, "peak_flop_per_s": 989e12}
fk.sweep(run, {"accelerators": chips, "mfu": shares}, ["training_days"], out=sys.argv[1], engine=sys.argv[2])
"""


def driven(folder: Path, engine: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", DRIVEN, str(folder), engine])


def offspring(pid: int) -> dict[int, str]:
    """Return the processes that a process began, and these began, with their commands."""
    table = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(maxsplit=2) for line in table.splitlines()]
    found, parents = {}, {pid}
    while parents:
        begun = {int(one): words for one, parent, words in rows if int(parent) in parents and int(one) not in found}
        found |= begun
        parents = {*begun}
    return found


@pytest.mark.long
def test_workers_of_ray_make_the_same_parts_after_kills(tmp_path: Path) -> None:
    """A worker is killed, then the driver and its processes; the next call completes the study."""
    pytest.importorskip("ray", reason="Ray is an extra")
    assert driven(tmp_path / "local", "local").wait() == 0
    first = driven(tmp_path / "ray", "ray")
    while not any((tmp_path / "ray").glob("part-*")):
        assert first.poll() is None
        time.sleep(0.05)
    worker = next(pid for pid, words in offspring(first.pid).items() if "ray::" in words)
    os.kill(worker, signal.SIGKILL)
    time.sleep(0.3)
    for pid in (first.pid, *offspring(first.pid)):
        os.kill(pid, signal.SIGKILL)
    first.wait()
    assert driven(tmp_path / "ray", "ray").wait() == 0
    names = [sorted(path.name for path in (tmp_path / each).glob("part-*")) for each in ("local", "ray")]
    assert names[0] == names[1]
    assert len(names[0]) > 2


def test_an_unknown_column_of_a_study_has_the_nearest_name(tmp_path: Path) -> None:
    swept(tmp_path)
    with pytest.raises(fk.FactorykitError, match="no column 'wall_day'; nearest is 'wall_days'"):
        fk.study(tmp_path).sql("select wall_day from study")
