"""Print speeds and errors beside their targets; a missed target is a result, not an error."""

from __future__ import annotations

import importlib
import platform
import sys
from collections import Counter

from benchmarks import Missing

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
    "plan",
    "slider",
    "pages",
    "accuracy",
)


def main(topics: list[str]) -> None:
    print(f"Python {platform.python_version()}, {platform.machine()}; medians of alternating runs\n")
    print(f"{'what':<52}{'rival':<32}{'ours':>9}{'rival':>10}{'ratio':>10}  verdict and target")
    verdicts: Counter[str] = Counter()
    last_reason = ""
    for topic in topics or TOPICS:
        try:
            for row in importlib.import_module(f"benchmarks.{topic}").rows():
                verdicts[row.verdict] += 1
                alone = f" ({row.why_alone})" if row.why_alone not in ("", last_reason) else ""
                last_reason = row.why_alone
                judged = f"{row.verdict:<8}{row.target}{alone}"
                print(f"{row.what:<52}{row.rival:<32}{row.figures}  {judged}".rstrip(), flush=True)
        except Missing as missing:
            verdicts["skipped"] += 1
            print(f"{topic}: skipped; {missing}", flush=True)
    print(
        f"\n{verdicts['holds']} targets hold, {verdicts['missed']} are missed, {verdicts['skipped']} topics are skipped"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
