"""Audit of claims: verdicts on well-known traps, rules, and broken recipes."""

from __future__ import annotations

import csv
from pathlib import Path

import polars as pl
import pytest

import factorykit as fk
from factorykit.cli import main
from factorykit.core.errors import UnknownName
from factorykit.data.build import build
from factorykit.model.validation.audit import VERDICTS, Claim, judge, unfold
from factorykit.model.validation.recipes import Span


@pytest.fixture(scope="module")
def rows() -> dict[str, dict]:
    return {row["claim"]: row for row in fk.audit().to_dicts()}


def test_every_claim_has_a_verdict_and_none_fails() -> None:
    frame = fk.audit()
    assert frame.height == 452
    assert frame["error"].null_count() == frame.height
    assert set(frame["verdict"]) == set(VERDICTS)
    assert frame["why"].str.len_chars().min() > 5


def test_only_claims_that_cannot_be_checked_have_no_recipe() -> None:
    without = fk.table("claims").filter(pl.col("recipe").is_null()).collect()["claim"]
    assert set(without) == set(fk.audit(verdict="not checkable")["claim"])
    assert len(without) < 70


TRAPS = {
    "c000_011": ("unit error", 24.3057e18),  # 24,576 x 989 TFLOP/s are EFLOP/s
    "c000_090": ("unit error", 47743.06),  # from the code of the document
    "c000_098": ("unit error", 40221.69),
    "c000_107": ("unit error", 3310.22),
    "c000_091": ("disagrees", 47.743),
    "c000_092": ("superseded", 78.43),  # 54 days are a snapshot
    "c000_086": ("disagrees", 1.1),  # the overhead multiplier that adds 10 %
    "c000_135": ("unit error", 43835.04),
    "c004_017": ("superseded", 989.4e12),  # 1,979 is a sparse rate
    "c001_059": ("disagrees", 148 / 419),
    "c001_069": ("superseded", 19),
    "c001_077": ("disagrees", 439),
    "c001_035": ("disagrees", 0.2089),
    "c001_127": ("disagrees", 1.46e6),
    "c003_013": ("unit error", 12500),
    "c000_024": ("superseded", 0),  # InfiniBand, where the operator states Ethernet
    "c004_036": ("superseded", 2.0),
    "c004_040": ("rounding", 3.5105),  # 4 to the printed digit
    "c004_025": ("agrees", 3.31),  # the project's own median
    "c001_110": ("identity", 1024),
    "c005_001": ("agrees", 15.674),  # 11 to 20 times, by the engine of the older chip
    "c005_002": ("rounding", 9494.0),  # eight of nine of these tokens are prompts
}


@pytest.mark.parametrize(("claim", "expected"), TRAPS.items(), ids=TRAPS)
def test_known_traps_have_the_expected_verdict(claim: str, expected: tuple[str, float], rows: dict[str, dict]) -> None:
    verdict, recomputed = expected
    assert rows[claim]["verdict"] == verdict
    assert rows[claim]["recomputed"] == pytest.approx(recomputed, rel=1e-4)


def test_verdicts_agree_with_the_readers_of_the_documents(shared: Path, rows: dict[str, dict]) -> None:
    with (shared / "facts" / "seeds" / "claims.csv").open(encoding="utf-8", newline="") as file:
        expected = {row["claim_id"].lower().replace("-", "_"): row for row in csv.DictReader(file)}
    assert set(expected) == {claim for claim, row in rows.items() if row["document"].startswith("seed_")}
    differing = {
        claim: (row["verdict"], rows[claim]["verdict"])
        for claim, row in expected.items()
        if row["verdict"] and row["verdict"].removesuffix(" by primary source") != rows[claim]["verdict"]
    }
    # Arithmetic on the text's own numbers, the project's own tables, the printed digits, like with like.
    arithmetic = ("c001_110", "c001_128", "c001_156", "c002_001", "c003_011")
    assert {claim for claim, (_, now) in differing.items() if now == "identity"} == set(arithmetic)
    moved = {claim: verdicts for claim, verdicts in differing.items() if claim not in arithmetic}
    assert moved == {
        "c000_062": ("not checkable", "agrees"),  # half a microsecond a hop, by its maker's book
        "c000_110": ("disagrees", "not checkable"),  # an MFU that the project chose
        "c001_044": ("not checkable", "agrees"),  # measured between 16 and 62 times, by the speed for a user
        "c001_137": ("disagrees", "not checkable"),  # compute alone against everything
        "c001_153": ("disagrees", "agrees"),  # the rate measured for small jobs
        "c000_159": ("not checkable", "agrees"),  # cold restarts of FT-HSDP
        "c000_163": ("not checkable", "agrees"),  # standbys of ByteRobust
        "c003_020": ("disagrees", "agrees"),  # "can exceed"
        "c004_025": ("disagrees", "agrees"),  # 22 providers in the table of prices
        "c004_027": ("disagrees", "rounding"),  # 1.77 for 2
        "c004_040": ("disagrees", "rounding"),  # 3.51 for 4
        "c000_052": ("rounding", "disagrees"),  # 5.6 us end a range that was printed to 5
        "c000_070": ("rounding", "disagrees"),  # 16 to 81 for 20 to 100
        "c001_098": ("rounding", "disagrees"),  # 1.3 to 2.5 for 2 to 4
        "c002_021": ("rounding", "disagrees"),  # 12 to 21 for 15 to 30
        "c004_016": ("rounding", "disagrees"),  # from 488 on for more than 500
        "c004_055": ("rounding", "disagrees"),  # 50 to 65 for 60 to 70
    }


def test_no_recipe_stores_its_answer() -> None:
    for claim, recipe in fk.table("claims").select("claim", "recipe").drop_nulls().collect().iter_rows():
        assert any(sign in recipe for sign in ("(", ".", "+", "*", "/")), (claim, recipe)
        assert not recipe.replace(".", "").replace("e", "").isdigit(), (claim, recipe)
        assert f"claims.{claim}" not in recipe, (claim, recipe)


def test_a_superseding_value_is_a_cell_of_the_named_source() -> None:
    claims = fk.table("claims").filter(pl.col("superseded_by").is_not_null()).collect()
    for claim, source in claims.select("claim", "superseded_by").iter_rows():
        assert source in unfold(claim)["source"].to_list(), claim
    assert set(claims["claim"]) == set(fk.audit(verdict="Superseded")["claim"])


def test_units_are_those_of_the_vocabulary_and_three_more() -> None:
    known = set(fk.quantities()["unit"]) | {"m2", "1/s", "USD/month"}
    assert set(fk.audit()["unit"]) <= known


RULES = [
    (Claim(100, None, None, None), 100.9, {}, "agrees"),
    (Claim(100, None, None, None), 104.9, {}, "rounding"),
    (Claim(4, None, None, None, "4 times"), 3.51, {}, "rounding"),
    (Claim(4, None, None, None, "4 times"), 3.49, {}, "disagrees"),
    (Claim(4.0, None, None, None, "4.0 times"), 3.79, {}, "disagrees"),
    (Claim(50000, None, None, None, "50,000 GPUs"), 49152.0, {}, "rounding"),
    (Claim(100000, None, None, None, "100,000 GPUs"), 84000.0, {}, "disagrees"),
    (Claim(100, None, None, None), 105.1, {}, "disagrees"),
    (Claim(100, None, None, None), 105.1, {"superseded": True}, "superseded"),
    (Claim(100, None, None, None), 101000.0, {}, "unit error"),
    (Claim(100, None, None, None), 0.099, {}, "unit error"),
    (Claim(100, None, None, None), 70000.0, {}, "disagrees"),
    (Claim(100, None, None, None), 70000.0, {"from_unit_error": True}, "unit error"),
    (Claim(100, None, None, None), 80.0, {"other_unit": 100.0}, "unit error"),
    (Claim(15, 10, 20, None), 11.0, {}, "agrees"),
    (Claim(15, 10, 20, None), 20.5, {}, "rounding"),
    (Claim(15, 10, 20, None), Span(12, 18), {}, "agrees"),
    (Claim(15, 10, 20, None, "10-20"), Span(18, 22), {}, "rounding"),
    (Claim(15, 10, 20, None, "10-20"), Span(18, 24), {}, "disagrees"),
    (Claim(7, 2.6, 14.5, None, "7 days"), Span(9, 33), {}, "disagrees"),
    (Claim(40, 30, 50, None, "30-50 %"), Span(30, 60), {}, "agrees"),
    (Claim(90, 90, None, None), 89.0, {}, "disagrees"),
    (Claim(90, 90, None, None), 200.0, {}, "agrees"),
    (Claim(None, None, 1, None), 0.06, {}, "agrees"),
    (Claim(17.8, None, None, 0.1), 17.66, {}, "disagrees"),
    (Claim(17.7, None, None, 0.1), 17.66, {}, "agrees"),
    (Claim(0, None, None, None), 15.0, {}, "disagrees"),
]


@pytest.mark.parametrize(("claim", "found", "options", "verdict"), RULES)
def test_the_rules(claim: Claim, found: float | Span, options: dict, verdict: str) -> None:
    assert judge(claim, found, **options) == verdict


def test_the_audit_filters_and_refuses_unknown_names() -> None:
    assert fk.audit("seed_004").height == 56
    assert set(fk.audit("seed_000", "unit error")["verdict"]) == {"unit error"}
    with pytest.raises(UnknownName, match="no document"):
        fk.audit("seed_00")
    with pytest.raises(UnknownName, match="nearest is 'agrees'"):
        fk.audit(verdict="agree")
    with pytest.raises(UnknownName, match="claim"):
        unfold("c000_999")


def test_a_recipe_is_split_into_its_parts() -> None:
    parts = unfold("c000_011")
    assert parts["part"].to_list()[:2] == ["claims.c000_002", "claims.c000_005"]
    assert parts["value"].to_list() == [24576, 989e12, 24576 * 989e12]
    assert unfold("c000_026").height == 0


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables in which the recipe of one claim fails."""
    import shutil

    from factorykit.data.tables import data_folder

    data = tmp_path / "data"
    shutil.copytree(data_folder(), data)
    monkeypatch.setenv("FACTORYKIT_DATA", str(data))
    claims = data / "sources" / "claims.csv"
    text = claims.read_text(encoding="utf-8")
    assert "claims.c000_006 * claims.c000_007" in text
    claims.write_text(text.replace("claims.c000_006 * claims.c000_007", "claims.c000_006 * claims.c000_999", 1))
    build()


@pytest.mark.usefixtures("broken")
def test_a_recipe_that_fails_has_no_verdict_and_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    row = fk.audit().row(1, named=True)
    assert row["verdict"] is None
    assert "c000_999" in row["error"]
    assert main(["audit", "--verdict", "agrees", "--json"]) == 1
    assert "RecipeError" in capsys.readouterr().err


def test_the_command_prints_and_filters(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "--document", "seed_002", "--verdict", "superseded"]) == 0
    out = capsys.readouterr().out
    assert "c002_004" in out
    assert out.endswith("3 claims: 3 superseded\n")
    assert main(["audit", "--claim", "c000_011"]) == 0
    assert "claims.c000_005" in capsys.readouterr().out
    assert main(["audit", "--document", "seed_9"]) == 2
