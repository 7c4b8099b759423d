"""One chart in a notebook that is drawn once and then fed: with numbers for its parameters, or with a frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import traitlets
from ipywidgets import widget_serialization

from factorykit.charts.embed import chart_payload, outputs, summary, summary_lines
from factorykit.charts.live import Live
from factorykit.core import validation
from factorykit.core.errors import ScenarioError, UnknownName, unknown_name_message
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
    ``signals`` sets parameters from the kernel; :meth:`set_frame` replaces the rows of a chart over
    ``alt.NamedData("table")``. Zoom and hover stay as they are.
    """

    payload = traitlets.Dict().tag(sync=True)
    controls = traitlets.Dict().tag(sync=True, **widget_serialization)
    signals = traitlets.Dict().tag(sync=True)
    buffers = traitlets.List().tag(sync=True)
    frame = traitlets.Dict().tag(sync=True)
    pins = traitlets.List().tag(sync=True)

    def __init__(self, chart: Any, controls: Mapping[str, Any] | None = None, **options: Any) -> None:
        self._live: Live | None = None
        self._spec: dict[str, Any] = {}
        self._frame: pl.DataFrame | None = None
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

    def set_frame(self, frame: pl.DataFrame, table: str = "table") -> None:
        """Replace the rows of the chart's data set ``table``; sent as bytes, eight a number and two a word.

        Raises
        ------
        ScenarioError
            If ``frame`` is no DataFrame, or a column is neither numbers nor words.
        """
        frame, table = validation.frame("frame", frame), validation.string("table", table)
        columns, buffers = [], []
        for column in frame.iter_columns():
            if column.dtype.is_numeric():
                columns.append({"name": column.name})
                buffers.append(column.cast(pl.Float64).fill_null(float("nan")).to_numpy().tobytes())
            elif column.dtype in (pl.String, pl.Categorical) or isinstance(column.dtype, pl.Enum):
                words = column.cast(pl.String).unique(maintain_order=True).to_list()
                if len(words) > 65535:
                    raise ScenarioError(f"{column.name} has {len(words)} different words; a chart takes 65,535")
                codes = {word: code for code, word in enumerate(words)}
                columns.append({"name": column.name, "words": words})
                numbers = column.cast(pl.String).replace_strict(codes, return_dtype=pl.UInt16)
                buffers.append(numbers.to_numpy().tobytes())
            else:
                raise ScenarioError(f"{column.name} is {column.dtype}; a chart takes numbers and words")
        self._frame = frame
        with self.hold_sync():
            self.buffers = buffers
            self.frame = {"table": table, "length": frame.height, "columns": columns}

    def summary(self) -> str:
        """Return a summary of the chart: a few lines of numbers."""
        if self._live:
            return self._live.summary(self.signals)
        return summary(self._spec) if self._frame is None else "\n".join(summary_lines(self._frame))

    def _repr_mimebundle_(self, **_: Any) -> Any:  # type: ignore[override]
        return shown(super()._repr_mimebundle_(), outputs(self.payload, self.summary()))
