"""Notebooks installed with the package."""

from __future__ import annotations

from pathlib import Path


def notebooks_folder() -> Path:
    """Return the folder of the notebooks: the installed package's, which have no outputs, else the repository's."""
    package = Path(__file__).parents[1]
    installed = package / "notebooks"
    return installed if installed.is_dir() else package.parent / "notebooks"
