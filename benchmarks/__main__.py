"""Print the table of speeds."""

from __future__ import annotations

import importlib
import platform
import sys

TOPICS = ("imports", "chain", "scalar", "tables", "simulation", "search", "schedule", "uncertainty")


def main() -> None:
    print(
        f"Python {platform.python_version()}, {platform.machine()}; medians, alternating runs; ratios are what counts\n"
    )
    print(f"{'what':<52}{'rival':<34}{'ours':>10}{'rival':>10}{'ratio':>8}  target")
    for topic in sys.argv[1:] or TOPICS:
        for row in importlib.import_module(f"benchmarks.{topic}").rows():
            times = f"{row.ours_s * 1e3:>8.2f}ms{row.rival_s * 1e3:>8.2f}ms"
            print(f"{row.what:<52}{row.rival:<34}{times}{row.ratio:>8.2f}  {row.target}", flush=True)


main()
