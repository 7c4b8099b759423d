"""Fixtures for tests and for the examples in docstrings, which stand outside of tests/."""

from __future__ import annotations

import atexit
import os
import sys
import tempfile

import pytest

sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # three seconds; jsonschema works without it
if "PYTEST_XDIST_WORKER" in os.environ:
    atexit.register(os._exit, 0)  # registered first, runs last: DuckDB would print its types as leaked at exit


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run files of browser tests first: one of them alone at the end would leave the other workers idle."""
    items.sort(key=lambda item: item.get_closest_marker("browser") is None)


@pytest.fixture(autouse=True)
def temporary_files_of_examples(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the temporary files of examples into the temporary folder of the test run."""
    if isinstance(request.node, pytest.DoctestItem):
        folder = request.getfixturevalue("tmp_path")
        monkeypatch.setattr(tempfile, "tempdir", str(folder))
        if request.node.path.suffix == ".qmd":  # guides write files as a reader does
            monkeypatch.chdir(folder)
