"""Specification of a slider, read from the vocabulary."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from factorykit.core.errors import ScenarioError
from factorykit.core.vocabulary import quantity

SLIDER_STEPS: Final = 200


@dataclass(frozen=True)
class Control:
    """Specification of a slider, read from the vocabulary."""

    name: str
    label: str
    unit: str
    minimum: float
    maximum: float
    scale: str
    whole: bool
    value: float
    doubling: bool = False

    @property
    def payload(self) -> dict[str, Any]:
        """Specification for the script: a step is a part of the range, of its logarithm, or a doubling."""
        doublings = math.floor(math.log2(self.maximum / self.minimum)) if self.doubling else 0
        return {
            "name": self.name,
            "label": self.label,
            "meaning": quantity(self.name).meaning,
            "min": self.minimum,
            "max": self.minimum * 2.0**doublings if doublings else self.maximum,
            "scale": "doubling" if doublings else self.scale,
            "whole": self.whole,
            "steps": doublings or SLIDER_STEPS,
        }


def control(name: str, value: float, *, doubling: bool = False) -> Control:
    """Return the control of a quantity that starts at ``value``; its range is widened to hold it.

    With ``doubling`` it moves by factors of two.

    Raises
    ------
    ScenarioError
        If the vocabulary has no slider for it, or the value is refused.

    >>> control("mfu", 0.4).unit, control("mfu", 0.4).maximum
    ('%', 0.7)
    """
    row = quantity(name)
    if row.slider_min is None or row.slider_max is None:
        raise ScenarioError(f"{name} has no slider; give slider_min and slider_max in the vocabulary")
    value = float(row.check(value))
    unit = row.display_unit or ("" if row.unit == "1" else row.unit)
    return Control(
        name,
        row.label,
        unit,
        min(row.slider_min, value),
        max(row.slider_max, value),
        row.slider_scale,
        row.unit == "1" and row.slider_max > 10,
        value,
        doubling,
    )
