"""Measure the accelerator at hand and write one row a measurement."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

from benchmarks.accelerator.measure import FIELDS, measured, why_not


def main() -> int:
    reason = why_not()
    if reason:
        print(f"nothing measured: {reason}")
        return 0
    rows = list(measured())
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "accelerator.csv")
    with out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    for row in rows:
        print(f"{row['what']:<12}{row['precision']:<6}{row['shape']:<22}{row['value']:>14.4g} {row['unit']}")
    return 0


sys.exit(main())
