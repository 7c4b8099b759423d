"""Constants by definition."""

from __future__ import annotations

from typing import Final

SECONDS_PER_MINUTE: Final = 60.0
SECONDS_PER_HOUR: Final = 3600.0
SECONDS_PER_DAY: Final = 86_400.0
HOURS_PER_DAY: Final = 24.0
DAYS_PER_YEAR: Final = 365.0
JULIAN_DAYS_PER_YEAR: Final = 365.25
"""Mean length of a calendar year. [d]"""
HOURS_PER_MONTH: Final = 730.0
"""A twelfth of 8,760 h. [h]"""
HOURS_PER_YEAR: Final = 8760.0
"""365 days, as in power contracts and published claims. [h]"""
JOULES_PER_KWH: Final = 3.6e6
WATTS_PER_KILOWATT: Final = 1000.0
BITS_PER_BYTE: Final = 8.0
SECONDS_PER_YEAR: Final = 8766.0 * 3600.0
"""365.25 days, as in failure rates per year. [s]"""
HOURS_PER_FIT: Final = 1e9
"""One FIT is one failure in this time. [h]"""
