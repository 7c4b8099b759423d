"""Numbers that follow from definitions, not from measurement."""

from __future__ import annotations

from typing import Final

SECONDS_PER_MINUTE: Final = 60.0
SECONDS_PER_HOUR: Final = 3600.0
SECONDS_PER_DAY: Final = 86_400.0
HOURS_PER_DAY: Final = 24.0
DAYS_PER_YEAR: Final = 365.0
HOURS_PER_MONTH: Final = 730.0
"""A twelfth of 8,760 h. [h]"""
HOURS_PER_YEAR: Final = 8760.0
"""365 days; power contracts and the statements recomputed here count so. [h]"""
JOULES_PER_KWH: Final = 3.6e6
WATTS_PER_KILOWATT: Final = 1000.0
BITS_PER_BYTE: Final = 8.0
SECONDS_PER_YEAR: Final = 8766.0 * 3600.0
"""365.25 days; failure rates a year count so, as the golden cases of the reliability table do."""
HOURS_PER_FIT: Final = 1e9
"""Hours in which one FIT is one failure. [h]"""
