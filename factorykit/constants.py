"""Numbers that follow from definitions, not from measurement."""

from __future__ import annotations

from typing import Final

SECONDS_PER_HOUR: Final = 3600.0
SECONDS_PER_DAY: Final = 86_400.0
HOURS_PER_YEAR: Final = 8760.0
"""365 days; power contracts and the statements recomputed here count so. [h]"""
JOULES_PER_KWH: Final = 3.6e6
WATTS_PER_KILOWATT: Final = 1000.0
