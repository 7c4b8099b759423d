"""Print the table of speeds; the exit status is 1 where a target is missed."""

from __future__ import annotations

import importlib
import platform
import sys
from collections import Counter

from benchmarks import Missing, spoken

TOPICS = (
    "imports",
    "chain",
    "scalar",
    "tables",
    "logs",
    "simulation",
    "search",
    "schedule",
    "uncertainty",
    "study",
    "archive",
    "plan",
    "slider",
    "pages",
)


def main(topics: list[str]) -> int:
    print(f"Python {platform.python_version()}, {platform.machine()}; medians of alternating runs\n")
    print(f"{'what':<52}{'rival':<32}{'ours':>9}{'rival':>10}{'ratio':>10}  verdict and target")
    verdicts: Counter[str] = Counter()
    told = ""
    for topic in topics or TOPICS:
        try:
            for row in importlib.import_module(f"benchmarks.{topic}").rows():
                verdicts[row.verdict] += 1
                ratio = f"{row.ratio:.3g}" if row.ratio is not None else "–"
                alone = f" ({row.why_alone})" if row.why_alone != told else ""
                said, told = f"{row.verdict:<8}{row.target}{alone}", row.why_alone
                times = f"{spoken(row.ours_s):>9}{spoken(row.rival_s):>10}{ratio:>10}"
                print(f"{row.what:<52}{row.rival:<32}{times}  {said}".rstrip(), flush=True)
        except Missing as missing:
            verdicts["skipped"] += 1
            print(f"{topic}: skipped; {missing}", flush=True)
    print(
        f"\n{verdicts['holds']} targets hold, {verdicts['missed']} are missed, {verdicts['skipped']} topics are skipped"
    )
    return 1 if verdicts["missed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
