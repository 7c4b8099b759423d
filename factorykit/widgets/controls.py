"""Sliders, presets and reset, made from the vocabulary. The key of a control is the name of its quantity."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import ipywidgets

from factorykit.charts.live import Control
from factorykit.quantities import quantity


def slider(control: Control) -> ipywidgets.FloatSlider | ipywidgets.FloatLogSlider:
    """Return the slider of a control. Its value is in the unit of the vocabulary, whatever unit is printed beside it.

    >>> from factorykit.charts.live import control
    >>> slider(control("mfu", 0.38)).value
    0.38
    """
    look = {
        "value": control.value,
        "step": control.step,
        "readout": False,
        "tooltip": quantity(control.name).meaning,
        "layout": ipywidgets.Layout(width="96%", margin="0 2px"),
    }
    if control.scale == "log":
        low, high = math.log10(control.minimum), math.log10(control.maximum)
        return ipywidgets.FloatLogSlider(base=10, min=low, max=high, **look)
    return ipywidgets.FloatSlider(min=control.minimum, max=control.maximum, **look)


def labelled(control: Control, moved: ipywidgets.FloatSlider | ipywidgets.FloatLogSlider) -> ipywidgets.VBox:
    """Return the slider below its label and its present value, printed as the vocabulary says."""
    row = quantity(control.name)
    text = ipywidgets.HTML()

    def show(_: object = None) -> None:
        text.value = f"<b>{row.text(moved.value)}</b>"

    moved.observe(show, "value")
    show()
    head = ipywidgets.HBox(
        [ipywidgets.Label(control.label), text], layout=ipywidgets.Layout(justify_content="space-between")
    )
    return ipywidgets.VBox([head, moved], layout=ipywidgets.Layout(overflow="hidden"))


def sliders(controls: Iterable[Control]) -> dict[str, ipywidgets.FloatSlider | ipywidgets.FloatLogSlider]:
    """Return one slider per control, by the name of its quantity."""
    return {control.name: slider(control) for control in controls}


def preset_choice(presets: Mapping[str, object]) -> ipywidgets.Dropdown:
    """Return the drop-down of presets; its value is a label, or empty for own values."""
    return ipywidgets.Dropdown(
        options=[*((label, label) for label in presets), ("own values", "")], description="Preset"
    )


def reset_button() -> ipywidgets.Button:
    """Return the button that takes every slider back to where it started."""
    return ipywidgets.Button(description="Reset", tooltip="Back to the first values")
