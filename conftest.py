"""What holds for examples in docstrings, too, which stand outside of tests/."""

from __future__ import annotations

import tempfile

import pytest


@pytest.fixture(autouse=True)
def examples_leave_nothing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an example's temporary files lie where those of tests do."""
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.setattr(tempfile, "tempdir", str(request.getfixturevalue("tmp_path")))
