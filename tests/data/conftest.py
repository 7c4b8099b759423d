from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from factorykit.data import tables


@pytest.fixture
def copy(tmp_path, monkeypatch) -> Path:
    """A copy of the data folder that tests read, build and may damage."""
    folder = tmp_path / "data"
    shutil.copytree(tables.data_folder(), folder)
    monkeypatch.setenv("FACTORYKIT_DATA", str(folder))
    return folder


@pytest.fixture
def edit(copy):
    """Replace a text in one of the source files of the copy; the text must occur in it."""

    def replace(table: str, old: str, new: str) -> None:
        path = copy / "sources" / f"{table}.csv"
        content = path.read_text(encoding="utf-8")
        assert old in content
        path.write_text(content.replace(old, new, 1), encoding="utf-8")

    return replace
