"""Fixtures for every test."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("project", max_examples=30, deadline=None, derandomize=True)
settings.load_profile("project")

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of facts and golden cases beside the project."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("../shared is absent; its golden cases and public data sets are left out")
    return folder
