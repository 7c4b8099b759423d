"""Explorers: a live chart with its sliders, menus, presets and pins, in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import ipywidgets
import polars as pl
import traitlets

from factorykit.charts.embed import outputs as embedded
from factorykit.charts.explorer_spec import exploring
from factorykit.charts.live import Case, Live
from factorykit.core.errors import ScenarioError
from factorykit.core.extras import need
from factorykit.core.validation import one_of, string
from factorykit.core.vocabulary import quantity
from factorykit.model.planning.summary import address
from factorykit.model.scenario.compare import compare, decompose
from factorykit.model.scenario.presets import preset, presets
from factorykit.model.scenario.scenario import Scenario
from factorykit.widgets.controls import Slider, button, menu, shown
from factorykit.widgets.live_chart import LiveChart

MOST_PINS: Final = 4
GRID: Final = {"grid_template_columns": "repeat(auto-fill, minmax(15rem, 1fr))", "grid_gap": "4px 20px"}


class Explorer(ipywidgets.VBox):
    """A live chart with its sliders and menus.

    Displayed in JupyterLab it is ipywidgets sliders over a chart that changes in place; the same output also carries
    the chart of the static page and its numbers as text. ``explorer.observe(f, "scenario")`` calls ``f`` on change.

    >>> from factorykit.charts.checkpoint import goodput_by_interval
    >>> explorer = Explorer(goodput_by_interval())
    >>> explorer.set(accelerators=1024).values["accelerators"]
    1024.0
    """

    scenario = traitlets.Instance(
        Scenario, help="The setting on the screen: inputs, options, alternative models and sources."
    )

    def __init__(self, live: Live) -> None:
        self.live = live
        self.sliders = {made.name: Slider(made) for made in live.controls}
        self.menus = {name: menu(name, words, str(live.parameters[name])) for name, words in live.menus.items()}
        self.chart = LiveChart(live, controls=self.sliders)
        self.pins: dict[str, Scenario] = {}
        """Settings that stay in the picture, by label."""
        self._pinned: dict[str, dict[str, float | str]] = {}
        moving = {**self.sliders, **self.menus}
        self._fixed = {name: value for name, value in live.parameters.items() if name not in moving}
        labels = [*((label, label) for label in live.presets), ("own values", "")]
        self._preset = ipywidgets.Dropdown(options=labels, description="Preset")
        self._preset.observe(self._choose, "value")
        self._setting = False
        for control in moving.values():
            control.observe(self._moved, "value")
        for name, choice in self.menus.items():
            choice.observe(lambda change, name=name: self.chart.set(**{name: change["new"]}), "value")
        bar: list[ipywidgets.Widget] = [self._preset] if live.presets else []
        bar += [
            *self.menus.values(),
            button("Reset", "Back to the first values", self.reset),
            button("Pin", "Keep this setting in the picture", self.pin),
            button("Copy as Python", "The present setting as a line of Python", lambda: self._copy(self.code)),
        ]
        if self.link:
            bar.append(button("Copy as link", "This run on the planner's page", lambda: self._copy(str(self.link))))
        title = ipywidgets.HTML(f"<b style='font-size:1.1em'>{live.title}</b>")
        grid = ipywidgets.GridBox(list(self.sliders.values()), layout=ipywidgets.Layout(**GRID))
        row = ipywidgets.HBox(bar, layout=ipywidgets.Layout(flex_flow="row wrap"))
        super().__init__([title, row, grid, self.chart], scenario=live.scenario())

    @property
    def values(self) -> dict[str, float | str]:
        """Every input as it stands, sliders, menus and fixed ones, in the order of the vocabulary."""
        moved = {name: float(slider.value) for name, slider in self.sliders.items()}
        chosen = {name: str(choice.value) for name, choice in self.menus.items()}
        return {name: {**self._fixed, **moved, **chosen}[name] for name in self.live.parameters}

    @property
    def now(self) -> dict[str, float]:
        """The printed quantities at the present setting: the result of ``evaluate(explorer.scenario, …)``."""
        return self.live.now(self.values)

    def at(self, case: Case | None = None, **quantities: Any) -> dict[str, float]:
        """Return the printed quantities as ``case`` has them, or with these inputs changed; nothing moves."""
        return self.live.now(self.live.values({**self.values, **quantities}), case)

    def rows(self) -> pl.DataFrame:
        """Return the curves at the present setting, one row per point of the axis."""
        return self.live.rows(self.values)

    def set(self, **quantities: Any) -> Explorer:
        """Move sliders and menus, or change fixed inputs; the chart follows.

        Raises
        ------
        UnknownName, UnknownQuantity, ScenarioError
            If a name is no input of the chart, or a value is refused.
        """
        values = self.live.values(quantities)
        for name in self.menus:
            if values[name] not in (words := self.live.menus[name]):
                raise ScenarioError(f"{name} must be one of {', '.join(words)}, got {values[name]!r}")
        self._setting = True
        for name in quantities:
            if name in self.sliders:
                self.sliders[name].value = float(values[name])
            elif name in self.menus:
                self.menus[name].value = str(values[name])
            else:
                self._fixed[name] = values[name]
        self._setting = False
        self._moved()
        self.chart.signals = dict(self._fixed) | {name: choice.value for name, choice in self.menus.items()}
        return self

    def preset(self, label: str) -> Explorer:
        """Set every input as the preset called ``label`` has it."""
        return self.set(**self.live.preset(label))

    def close(self) -> None:
        """Remove the explorer and its parts from screen and memory: ipywidgets keeps widgets that are not closed."""
        for widget in {**_within(self), **_within(self._preset)}.values():
            ipywidgets.Widget.close(widget)

    def reset(self) -> None:
        """Take every input back to where it started."""
        self.set(**self.live.parameters)
        self._preset.value = next(iter(self.live.presets), "")

    def pin(self, label: str = "") -> Explorer:
        """Keep the present setting in the picture, under a label; up to four.

        Raises
        ------
        ScenarioError
            If four are pinned, or the label is taken.
        """
        label = string("label", label) or next(letter for letter in "ABCDE" if letter not in self.pins)
        if len(self.pins) == MOST_PINS or label in self.pins:
            reason = f"{label!r} is pinned" if label in self.pins else f"{MOST_PINS} settings are pinned"
            raise ScenarioError(f"{reason}; explorer.unpin({next(iter(self.pins))!r}) makes room")
        self.pins[label], self._pinned[label] = self.scenario, self.values
        self._show_pins()
        return self

    def unpin(self, label: str) -> Explorer:
        """Take a pinned setting out of the picture.

        Raises
        ------
        UnknownName
        """
        label = one_of("pin", label, self.pins)
        del self.pins[label], self._pinned[label]
        self._show_pins()
        return self

    def compare(self) -> pl.DataFrame:
        """Return the pinned settings and the present one side by side: inputs that differ, then the results.

        Raises
        ------
        ScenarioError
            If nothing is pinned.
        """
        if not self.pins:
            raise ScenarioError("nothing is pinned; explorer.pin('A') keeps the present setting, then move a slider")
        return compare({**self.pins, "now": self.scenario}, self.live.shown, assume=True)

    def decompose(self, label: str = "", output: str = "") -> pl.DataFrame:
        """Share the difference between a pinned setting and the present one among the inputs that differ.

        ``label`` defaults to the first pin, ``output`` to the first printed quantity.
        """
        label = one_of("pin", string("label", label) or next(iter(self.pins), ""), self.pins)
        return decompose(self.pins[label], self.scenario, string("output", output) or self.live.shown[0], assume=True)

    @property
    def code(self) -> str:
        """The present setting as a line of Python."""
        present = dict(self.scenario)
        keys = {label: key for key, label in presets().select("preset", "label").iter_rows()}
        for label in (*self.live.presets, self.live.title):
            if label in keys and (start := preset(keys[label])):
                changed = {name: value for name, value in present.items() if start.get(name) != value}
                changes = ", ".join(f"{name}={value!r}" for name, value in changed.items())
                return f'fk.preset("{keys[label]}")' + (f".replace({changes})" if changes else "")
        return f"fk.Scenario({', '.join(f'{name}={value!r}' for name, value in present.items())})"

    @property
    def link(self) -> str | None:
        """Address of the planner page with the present setting, from the site's root; None if it is not a run."""
        return address(self.live.scenario(self.values))

    def summary(self) -> str:
        """Return a summary of the chart at the present setting: a few lines of numbers."""
        return self.live.summary(self.values)

    def _moved(self, _: Any = None) -> None:
        if self._setting:
            return
        self.scenario = self.live.scenario(self.values)
        chosen = self._preset.value
        if chosen and self.values != self.live.preset(chosen):
            self._preset.value = ""

    def _choose(self, change: Any) -> None:
        if change["new"]:
            self.preset(change["new"])

    def _copy(self, text: str) -> None:
        self.chart.send({"kind": "copy", "text": text})

    def _show_pins(self) -> None:
        self.chart.pins = [
            {
                "label": label,
                "rows": [list(row) for row in self.live.rows(values).iter_rows()],
                "texts": self._texts(values),
            }
            for label, values in self._pinned.items()
        ]

    def _texts(self, values: Mapping[str, float | str]) -> dict[str, str]:
        shown = {**values, **self.live.now(values)}
        return {name: value if isinstance(value, str) else quantity(name).text(value) for name, value in shown.items()}

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return shown(super()._repr_mimebundle_(**options), embedded(self.live.payload, self.live.summary()))

    def _display_(self) -> Any:
        """Return the view for marimo, which supports sliders and chart but no boxes and buttons of ipywidgets."""
        marimo = need("marimo")

        return marimo.vstack([marimo.md(f"**{self.live.title}**"), *self.sliders.values(), self.chart])

    def __repr__(self) -> str:
        return self.summary()


def explore(
    inputs: Live | Mapping[str, Any] | str,
    *outputs: str | Iterable[str],
    over: str | None = None,
    sliders: Iterable[str] | None = None,
    against: Iterable[str] | Mapping[str, Mapping[str, Any]] = (),
    using: Mapping[str, str] | None = None,
) -> Explorer:
    """Return sliders over a chart that computes, for a notebook: made from names.

    Parameters
    ----------
    inputs
        A preset's name, a scenario or a mapping; or a ready-made chart of :mod:`factorykit.charts`.
    outputs
        Quantities to draw, one panel each; by default the days of the run.
    over
        The quantity along the axis: the accelerators, or the input that moves the first output most.
    sliders
        Quantities to move: by default the six that move the first output most. Words, as the chip, become menus.
    against
        Other runs in the same picture: names of presets, or scenarios by label.
    using
        Alternative models by quantity, as in :func:`factorykit.evaluate`.

    Returns
    -------
    Explorer
        A widget. ``scenario``, ``now`` and ``rows()`` return its state; ``set``, ``pin``, ``compare``, ``decompose``
        and ``code`` use it. Missing inputs are filled with sourced defaults, listed under "Held fixed".

    Raises
    ------
    UnknownQuantity, UnknownName, ScenarioError

    Examples
    --------
    >>> import factorykit as fk
    >>> explorer = fk.explore("llama_3_1_405b", "wall_days", "rental_cost_usd", over="accelerators")
    >>> round(explorer.set(mfu="38 %").now["wall_days"], 1)
    78.2
    """
    if isinstance(inputs, Live):
        return Explorer(inputs)
    return Explorer(exploring(inputs, *outputs, over=over, sliders=sliders, against=against, using=using))


def _within(widget: ipywidgets.Widget) -> dict[int, ipywidgets.Widget]:
    """Return a widget and all its parts: children, sliders, layouts and styles."""
    parts = {id(widget): widget}
    for value in widget.trait_values(sync=True).values():
        many = value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else (value,)
        for child in many:
            if isinstance(child, ipywidgets.Widget):
                parts |= _within(child)
    return parts
