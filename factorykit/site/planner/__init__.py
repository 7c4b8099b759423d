"""The planner: a page that answers what a run takes, in the reader's browser, by the printed chain."""

from __future__ import annotations

from factorykit.site.planner.model import model_script

__all__ = ["model_script"]
