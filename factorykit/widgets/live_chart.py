"""A chart in a notebook whose parameters are set from the kernel and by sliders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import traitlets
from ipywidgets import widget_serialization

from factorykit.charts.embed import chart_payload, outputs, summary
from factorykit.charts.live import Live
from factorykit.core import validation
from factorykit.core.errors import UnknownName, unknown_name_message
from factorykit.widgets.controls import Scripted, shown


class LiveChart(Scripted):
    """A chart that changes in place.

    Parameters
    ----------
    chart
        A :class:`~factorykit.charts.live.Live` chart, an Altair chart, or a Vega-Lite specification.
    controls
        Sliders by the name of the parameter they move. They act in the browser.

    Notes
    -----
    :meth:`set` sets parameters from the kernel. Zoom and hover stay as they are.
    """

    payload = traitlets.Dict().tag(sync=True)
    controls = traitlets.Dict().tag(sync=True, **widget_serialization)
    signals = traitlets.Dict().tag(sync=True)
    pins = traitlets.List().tag(sync=True)

    def __init__(self, chart: Any, controls: Mapping[str, Any] | None = None, **options: Any) -> None:
        self._live: Live | None = None
        self._spec: dict[str, Any] = {}
        if isinstance(chart, Live):
            self._live = chart
            payload = dict(chart.payload)
        else:
            is_altair = type(chart).__module__.startswith("altair.")
            self._spec = chart.to_dict() if is_altair else dict(validation.mapping("chart", chart))
            payload = chart_payload(self._spec)
        super().__init__(payload=payload, controls=dict(controls or {}), **options)

    def set(self, **values: float) -> None:
        """Set parameters of the chart.

        Raises
        ------
        UnknownName
            If the chart has no parameter of that name.
        """
        known = self._live.parameters if self._live else {param["name"]: None for param in self._spec.get("params", ())}
        for name in values:
            if name not in known:
                raise UnknownName(unknown_name_message("parameter", name, known))
        self.signals = {**self.signals, **validation.cells("values", values)}

    def summary(self) -> str:
        """Return a summary of the chart: a few lines of numbers."""
        return self._live.summary(self.signals) if self._live else summary(self._spec)

    def _repr_mimebundle_(self, **_: Any) -> Any:  # type: ignore[override]
        return shown(super()._repr_mimebundle_(), outputs(self.payload, self.summary()))
