"""Old name of :mod:`factorykit.formulas.step.parts`; it goes with 0.3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from factorykit.formulas import moved


def __getattr__(name: str) -> Callable[..., Any]:
    return moved(__name__, name)
