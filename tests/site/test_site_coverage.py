"""The page of coverage lists quantities, verbs, tables, notebooks and lines of the documents."""

from functools import reduce
from pathlib import Path

import factorykit as fk
from factorykit.core.vocabulary import vocabulary
from factorykit.data.tables import resources
from factorykit.site.pages.coverage import coverage_page, state

ROOT = Path(__file__).parents[2]


def listed(row: dict, column: str) -> list[str]:
    return row[column].split("; ") if row[column] else []


def test_coverage_lists_everything_that_exists() -> None:
    rows = fk.table("coverage").collect().to_dicts()
    numbers = {path.stem[:2] for path in (ROOT / "notebooks").glob("*.ipynb")}
    for row in rows:
        assert set(listed(row, "quantities")) <= vocabulary().keys(), row["topic"]
        assert set(listed(row, "tables")) <= resources().keys(), row["topic"]
        assert set(listed(row, "notebooks")) <= numbers, row["topic"]
        for verb in listed(row, "verbs"):
            assert reduce(getattr, verb.split(".")[1:], fk), row["topic"]
        assert state(row) == "computed" or row["reproduces"] is None, row["topic"]


def test_every_topic_is_on_the_page_once() -> None:
    page = coverage_page(ROOT / "data")["coverage"]
    for topic in fk.table("coverage").collect()["topic"]:
        assert page.count(f"{{#{topic.replace('_', '-')}}}") == 1


def test_lines_of_the_documents_are_listed(shared: Path) -> None:
    for row in fk.table("coverage").collect().to_dicts():
        for place in listed(row, "places"):
            (document,) = (shared / "seeds").glob(f"{place[:3]}_*.txt")
            last = int(place.rpartition("L")[2].rpartition("-")[2])
            assert last <= len(document.read_text(encoding="utf-8").splitlines()), row["topic"]
