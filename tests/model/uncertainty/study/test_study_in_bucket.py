"""Studies in an object store: the same rows as in a folder, resumed and queried there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import factorykit as fk
from factorykit.core import storage
from factorykit.model.uncertainty.study import parts as design

RUN = {"active_parameters": 405e9, "tokens": 15.6e12, "accelerators": 16384.0, "peak_flop_per_s": 989e12}
GRID = {"goodput": [0.8, 0.9], "mfu": [i / 100 for i in range(30, 45)]}


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(design, "CELLS_A_PART", 20)
    monkeypatch.setattr("factorykit.engine.grids.MAX_BLOCK_ROWS", 3)


def swept(out: object, grid: object = GRID) -> pl.LazyFrame:
    return fk.sweep(RUN, grid, ["wall_days", "training_days"], out=out)


def test_a_study_in_a_bucket_has_the_rows_and_parts_of_one_in_a_folder(bucket: str, tmp_path: Path) -> None:
    assert swept(f"{bucket}/runs/1").collect().equals(swept(tmp_path).collect())
    there, here = fk.study(f"{bucket}/runs/1"), fk.study(tmp_path)
    there.verify()
    assert [path.name for path in there.done] == [path.name for path in here.done]
    assert repr(there) == f"Study('{bucket}/runs/1'): {here.parts} of {here.parts} parts, 30 rows"
    query = "select goodput, min(wall_days) as days from study group by 1 order by 1"
    assert there.sql(query).equals(here.sql(query))


def test_a_query_reads_the_study_alone(bucket: str) -> None:
    swept(f"{bucket}/mine")
    swept(f"{bucket}/other")
    part = fk.study(f"{bucket}/other").done[0]
    with pytest.raises(fk.FactorykitError, match="Cannot access file"):
        fk.study(f"{bucket}/mine").sql(f"select * from read_parquet('{part}')")


def test_a_study_in_a_bucket_resumes(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writing fails after some parts; the call is repeated."""
    path_of, written = type(storage.storage_path("bucket", bucket)), []
    write = path_of.write_bytes

    def failing(path: Path, content: bytes) -> None:
        if len(written) == 5:
            raise RuntimeError("no space")
        written.append(path.name)
        write(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(path_of, "write_bytes", failing)
        with pytest.raises(fk.FactorykitError, match="cannot be written: no space; repeat the call to resume"):
            swept(bucket)
    kept = {path.name for path in fk.study(bucket).done}
    assert {*kept, "study.json"} == set(written)
    assert swept(bucket).collect().height == 30
    assert kept < {path.name for path in fk.study(bucket).done}
    with pytest.raises(fk.FactorykitError, match="has another study: asked"):
        swept(bucket, GRID | {"mfu": [0.31]})


KILLED = """
import sys
import factorykit as fk
from factorykit.engine import grids
from factorykit.model.uncertainty.study import parts as design
design.CELLS_A_PART = 2**11
grids.MAX_BLOCK_ROWS = 400
steps = [i / 1000 for i in range(200, 600)]
fk.sweep({"peak_flop_per_s": 989e12, "tokens": 1e13}, {"active_parameters": [1e9 * i for i in range(1, 126)],
         "mfu": steps, "accelerators": [1e3, 2e3]}, ["training_days"], out=sys.argv[1])
"""


@pytest.mark.long
def test_a_study_in_a_bucket_killed_at_any_moment_has_each_row_once(bucket: str) -> None:
    command, wait_s, kills = [sys.executable, "-c", KILLED, f"{bucket}/study"], 1.0, 0
    while True:
        process = subprocess.Popen(command)
        try:
            process.wait(wait_s)
            break
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills, wait_s = kills + 1, wait_s + 0.5
    assert (process.returncode, kills > 1) == (0, True)
    study = fk.study(f"{bucket}/study")
    study.verify()
    rows = study.rows.select("active_parameters", "mfu", "accelerators").collect()
    assert (rows.height, rows.n_unique(), len(study.done)) == (100_000, 100_000, study.parts)


def test_a_query_is_spooled_into_the_bucket_and_removed(bucket: str) -> None:
    query = pl.DataFrame(GRID | {"goodput": [0.9] * 15}).lazy().group_by("mfu").agg(pl.col("goodput").sum()).sort("mfu")
    assert swept(f"{bucket}/lazy", query).collect()["mfu"].to_list() == GRID["mfu"]
    assert [path.name for path in storage.storage_path("bucket", bucket).glob("*")] == ["lazy"]


def test_one_parquet_file_and_cases(bucket: str) -> None:
    assert swept(f"{bucket}/rows.parquet").collect().height == 30
    assert pl.scan_parquet(f"{bucket}/rows.parquet").collect().height == 30
    case = {"training_s": 4e6, "checkpoint_interval_s": 1100.0, "checkpoint_write_s": 60.0, "restart_s": 600.0}
    cases = [{"inputs": case | {"cluster_mtbf_s": mtbf_s, "downtime_s": 0.0}, "runs": 2} for mtbf_s in (1e4, 0.0)]
    rows = fk.run_cases("simulate", cases, f"{bucket}/cases").collect()
    assert rows["error"].null_count() == 2


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("s3://no-such-bucket/study", "cannot be reached: .*404 Not Found"),
        ("hf://datasets/ann/runs", "expected a local path or s3://, gs://, az://"),
        ("ftp://host/study", "expected a local path or s3://"),
        (Path("s3://bucket/study"), "a Path drops a slash of a URL; give it as text"),
    ],
)
@pytest.mark.usefixtures("s3")
def test_a_store_that_cannot_be_written_is_refused(out: object, message: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(fk.FactorykitError, match=message):
        swept(out)
    assert not any(tmp_path.iterdir())


def test_an_empty_prefix_and_a_folder_with_other_objects_are_refused(bucket: str) -> None:
    with pytest.raises(fk.FactorykitError, match="has no study"):
        fk.study(f"{bucket}/none")
    storage.storage_path("object", f"{bucket}/runs/a.txt").write_bytes(b"mine")
    with pytest.raises(fk.FactorykitError, match=r"has a.txt; give a folder that is empty"):
        swept(f"{bucket}/runs")
