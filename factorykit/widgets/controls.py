"""Sliders, presets and reset, made from the vocabulary. The key of a control is the name of its quantity."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import anywidget
import ipywidgets
import traitlets
from IPython.core.getipython import get_ipython

from factorykit.charts.bundle import page_script
from factorykit.charts.control import Control, control
from factorykit.charts.live import word_label
from factorykit.core.errors import FactorykitError
from factorykit.core.vocabulary import quantity


class Scripted(anywidget.AnyWidget):
    """A widget that is drawn by the script of the charts; the kernel sends it where JupyterLab does not have it."""

    _esm = Path(__file__).with_name("widget.js")

    def __init__(self, **traits: Any) -> None:
        super().__init__(**traits)
        self.on_msg(self._answer)

    def _answer(self, _: Any, message: Any, __: Any) -> None:
        if isinstance(message, dict) and message.get("kind") == "script":
            self.send({"kind": "script"}, [page_script().encode()])


def shown(view: Any, page: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the contents of an output: the widget, and the chart of a page, its picture and its numbers.

    A program that runs a notebook to store its outputs (nbconvert, Quarto, papermill) would prefer the widget, and a
    page made so stays blank: nothing answers it there. Such a program gets the rest alone.
    """
    data, metadata = view if isinstance(view, tuple) else (view or {}, {})
    return {**({} if run_to_be_stored() else data), **page}, metadata


def run_to_be_stored() -> bool:
    """Return whether a program without a user runs this cell. Voila, which shows widgets, is not such a program."""
    kernel = getattr(get_ipython(), "kernel", None)
    if kernel is None or os.environ.get("SERVER_SOFTWARE", "").startswith("voila"):
        return False
    return kernel.get_parent().get("content", {}).get("allow_stdin") is False


class Slider(Scripted, ipywidgets.ValueWidget):  # type: ignore[misc]
    """A slider for one quantity: linear or logarithmic, in the unit of the vocabulary, printed in its display unit.

    The printed value can be typed over, units and all: ``24k``, ``30 min``, ``41 %``. `ipywidgets.interact`, ``jslink``
    and ``observe`` take it like any other slider.

    ipywidgets' own sliders move a value to the nearest of their steps as soon as they are shown; this one keeps the
    value it was given until it is moved.

    >>> Slider(control("mfu", 0.38)).text
    '38 %'
    """

    control = traitlets.Dict().tag(sync=True)
    value: traitlets.TraitType[Any, Any] = traitlets.TraitType(0.0).tag(sync=True)
    text = traitlets.Unicode().tag(sync=True)

    def __init__(self, made: Control) -> None:
        self._row = quantity(made.name)
        super().__init__(control=made.payload, value=made.value, text=self._row.text(made.value))

    def _answer(self, _: Any, message: Any, __: Any) -> None:
        super()._answer(_, message, __)
        if isinstance(message, dict) and message.get("kind") == "typed":
            try:
                self.value = float(self._row.check(str(message["text"])))
            except FactorykitError as error:
                self.send({"kind": "refused", "text": str(error)})

    @traitlets.validate("value")
    def _check(self, proposal: Any) -> float:
        return float(self._row.check(proposal["value"]))

    @traitlets.observe("value")
    def _print(self, change: Any) -> None:
        self.text = self._row.text(change["new"])


def slider(name: str, value: float) -> Slider:
    """Return the slider of a quantity, set to ``value``.

    Raises
    ------
    UnknownQuantity, ScenarioError
        If there is no such quantity, it has no slider, or it refuses the value.
    """
    return Slider(control(name, value))


def menu(name: str, words: Sequence[str], value: str) -> ipywidgets.Dropdown:
    """Return the drop-down of words that may stand for a quantity, as the chip."""
    options = [(word_label(name, word), word) for word in words]
    return ipywidgets.Dropdown(options=options, value=value, description=quantity(name).label)


def button(text: str, tooltip: str, act: Callable[[], object]) -> ipywidgets.Button:
    """Return a button that does one thing."""
    made = ipywidgets.Button(description=text, tooltip=tooltip)
    made.on_click(lambda _: act())
    return made
