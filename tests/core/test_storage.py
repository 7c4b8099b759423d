"""Files of object stores: tables are read from them, packages that are absent are named."""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl
import pytest

import factorykit as fk
from factorykit import cli
from factorykit.core import storage, text_io
from factorykit.core.errors import NotInstalled

ROWS = pl.DataFrame({"mfu": [0.3, 0.4], "training_flop": [1e24, 1e24], "cluster_peak_flop_per_s": [1e19, 1e19]})


def test_tables_are_read_from_a_bucket(bucket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"{bucket}/my rows/rows.parquet"
    ROWS.write_parquet(url)
    assert text_io.read_frame(url).equals(ROWS)
    assert fk.evaluate(pl.scan_parquet(url), "training_days").collect().height == 2
    assert cli.main(["evaluate", "--rows", url, "--output", "training_days", "--out", str(tmp_path / "a.csv")]) == 0
    assert pl.read_csv(tmp_path / "a.csv").height == 2
    with pytest.raises(fk.FactorykitError, match=r"none.csv cannot be read \(No such file"):
        text_io.read_frame(f"{bucket}/none.csv")


def test_a_folder_of_objects_is_listed_in_order(bucket: str) -> None:
    folder = storage.storage_path("folder", bucket)
    for name in ("b", "a/d", "a/c"):
        (folder / name).write_bytes(b"text")
    assert [str(path) for path in storage.files_in(folder)] == [f"{bucket}/{name}" for name in ("a/c", "a/d", "b")]
    assert storage.files_in(folder / "b") == [folder / "b"]
    with storage.local_copy(folder / "b") as copy:
        assert (copy.read_bytes(), copy.name) == (b"text", "b")
        assert copy.stat().st_mtime == (folder / "b").stat().st_mtime
    with pytest.raises(fk.FactorykitError, match="none cannot be read"), storage.local_copy(folder / "none"):
        pass


@pytest.mark.parametrize(("url", "package"), [("s3://bucket/a", "obstore"), ("hf://datasets/a/b", "huggingface_hub")])
def test_an_absent_package_is_named_with_its_extra(url: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("obstore.fsspec", package):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(NotInstalled, match=rf"{package} is not installed; pip install 'factorykit\[object-store\]'"):
        storage.storage_path("path", url)
