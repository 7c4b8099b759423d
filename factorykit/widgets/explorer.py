"""Explorers: a live chart with its sliders, presets and reset, in a notebook."""

from __future__ import annotations

from typing import Any

import ipywidgets
import polars as pl

from factorykit.charts.embed import outputs
from factorykit.charts.live import Case, Live
from factorykit.model.engine.answer import Answer
from factorykit.model.scenario.scenario import Scenario
from factorykit.widgets.controls import preset_choice, reset_button, sliders
from factorykit.widgets.live_chart import LiveChart


class Explorer:
    """A live chart and what moves it.

    Displayed in JupyterLab it is ipywidgets sliders over a chart that changes in place; the same output also carries
    the chart of the static page and its numbers as text.

    >>> from factorykit.charts.checkpoint import goodput_by_interval
    >>> explorer = Explorer(goodput_by_interval())
    >>> explorer.set(accelerators=1024).values["accelerators"]
    1024.0
    """

    def __init__(self, live: Live) -> None:
        self.live = live
        self.sliders = sliders(live.controls)
        self.chart = LiveChart(live, controls=self.sliders)
        self._fixed = {name: value for name, value in live.parameters.items() if name not in self.sliders}
        self._preset = preset_choice(live.presets)
        self._preset.observe(self._choose, "value")
        self._setting = False
        for slider in self.sliders.values():
            slider.observe(self._moved, "value")
        reset = reset_button()
        reset.on_click(lambda _: self.reset())
        bar = ipywidgets.HBox([self._preset, reset] if live.presets else [reset])
        grid = ipywidgets.GridBox(
            list(self.sliders.values()),
            layout=ipywidgets.Layout(
                grid_template_columns="repeat(auto-fill, minmax(15rem, 1fr))", grid_gap="4px 20px"
            ),
        )
        title = ipywidgets.HTML(f"<b style='font-size:1.1em'>{live.title}</b>")
        self.view = ipywidgets.VBox([title, bar, grid, self.chart])

    @property
    def values(self) -> dict[str, float | str]:
        """Every input as it stands, sliders and fixed ones, in the order of the vocabulary."""
        moved = {name: float(slider.value) for name, slider in self.sliders.items()}
        return {name: {**self._fixed, **moved}[name] for name in self.live.parameters}

    @property
    def scenario(self) -> Scenario:
        """What the screen shows, as a scenario: every input, word and rival model of the first curve, with sources."""
        return self.live.scenario(self.values)

    @property
    def now(self) -> Answer:
        """The printed quantities at the present setting: what ``evaluate(explorer.scenario, …)`` says."""
        return Answer(self.live.now(self.values))

    def at(self, case: Case | None = None, **quantities: Any) -> Answer:
        """Return the printed quantities as ``case`` has them, or with these inputs changed; nothing moves."""
        return Answer(self.live.now(self.live.values({**self.values, **quantities}), case))

    def rows(self) -> pl.DataFrame:
        """Return what the curves show at the present setting, one row per point of the axis."""
        return self.live.rows(self.values)

    def set(self, **quantities: Any) -> Explorer:
        """Move sliders, or change what is held fixed; the chart follows.

        Raises
        ------
        UnknownName, UnknownQuantity, ScenarioError
            If a name is no input of the chart, or a value is refused.
        """
        values = self.live.values(quantities)
        self._setting = True
        for name in quantities:
            if name in self.sliders:
                self.sliders[name].value = float(values[name])
            else:
                self._fixed[name] = values[name]
        self._setting = False
        self._moved()
        self.chart.signals = dict(self._fixed)
        return self

    def preset(self, label: str) -> Explorer:
        """Set every input as the preset called ``label`` has it."""
        return self.set(**self.live.preset(label))

    def reset(self) -> None:
        """Take every input back to where it started."""
        self.set(**self.live.parameters)
        self._preset.value = next(iter(self.live.presets), "")

    def summary(self) -> str:
        """Return what the chart shows at the present setting, as a few lines of numbers."""
        return self.live.summary(self.values)

    def _moved(self, _: Any = None) -> None:
        chosen = self._preset.value
        if chosen and not self._setting and self.values != self.live.preset(chosen):
            self._preset.value = ""

    def _choose(self, change: Any) -> None:
        if change["new"]:
            self.preset(change["new"])

    def _repr_mimebundle_(self, **_: Any) -> Any:
        view = self.view._repr_mimebundle_() or {}
        data, metadata = view if isinstance(view, tuple) else (view, {})
        return {**data, **outputs(self.live.payload, self.live.summary())}, metadata

    def __repr__(self) -> str:
        return self.summary()


def explore(live: Live) -> Explorer:
    """Return sliders over a live chart, for a notebook."""
    return Explorer(live)
