"""Widgets: sliders made from the vocabulary, and charts that change in place."""

from __future__ import annotations

from factorykit.core.extras import not_installed, public_names

try:
    import anywidget  # noqa: F401
except ModuleNotFoundError as error:
    raise not_installed(error) from None

from factorykit.widgets.controls import Slider, slider
from factorykit.widgets.explorer import Explorer, explore
from factorykit.widgets.live_chart import LiveChart

__all__ = ["Explorer", "LiveChart", "Slider", "explore", "slider"]
__dir__ = public_names(__name__)
