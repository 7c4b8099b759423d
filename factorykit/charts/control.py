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
    minimum: float
    maximum: float
    scale: str
    value: float
    doubling: bool = False

    @property
    def payload(self) -> dict[str, Any]:
        """Specification for the script: a step is a part of the range, of its logarithm, or a doubling."""
        row = quantity(self.name)
        doublings = math.floor(math.log2(self.maximum / self.minimum)) if self.doubling else 0
        return {
            "name": self.name,
            "label": row.label,
            "meaning": row.meaning,
            "min": self.minimum,
            "max": self.minimum * 2.0**doublings if doublings else self.maximum,
            "scale": "doubling" if doublings else self.scale,
            "whole": row.unit == "1" and (row.slider_max or 0.0) > 10,
            "steps": doublings or SLIDER_STEPS,
        }


def control(name: str, value: float, *, doubling: bool = False) -> Control:
    """Return the control of a quantity that starts at ``value``; its range is widened to hold it.

    With ``doubling`` it moves by factors of two.

    Raises
    ------
    ScenarioError
        If the vocabulary has no slider for it, or the value is refused.

    >>> control("mfu", 0.4).maximum, control("mfu", 0.8).maximum
    (0.7, 0.8)
    """
    row = quantity(name)
    if row.slider_min is None or row.slider_max is None:
        raise ScenarioError(f"{name} has no slider; give slider_min and slider_max in the vocabulary")
    value = float(row.check(value))
    ends = min(row.slider_min, value), max(row.slider_max, value)
    return Control(name, *ends, row.slider_scale, value, doubling)
