import polars as pl
import pytest

import factorykit as fk

RUN = {"active_parameters": 405e9, "tokens": 15.6e12, "accelerators": 16384.0, "peak_flop_per_s": 989e12}
GRID = {"mfu": [0.3, 0.4, 0.5], "goodput": [0.8, 0.9]}


def test_every_combination_is_a_row_and_the_last_quantity_changes_fastest():
    swept = fk.sweep(RUN, GRID, "wall_days")
    assert swept.select("mfu", "goodput").rows() == [(m, g) for m in GRID["mfu"] for g in GRID["goodput"]]
    for mfu, goodput, days in swept.rows():
        point = fk.evaluate(RUN | {"mfu": mfu, "goodput": goodput}, "wall_days")
        assert days == pytest.approx(point["wall_days"], rel=1e-12)


def test_the_grid_takes_the_place_of_a_base_value():
    assert fk.sweep(RUN, {"accelerators": [1.0, 2.0]}, "cluster_peak_flop_per_s").height == 2


def test_a_file_holds_the_rows_of_the_frame(tmp_path):
    scan = fk.sweep(RUN, GRID, ["wall_s", "wall_days"], out=tmp_path / "sweep.parquet")
    assert isinstance(scan, pl.LazyFrame)
    assert scan.collect().equals(fk.sweep(RUN, GRID, ["wall_s", "wall_days"]))
    assert [path.name for path in tmp_path.iterdir()] == ["sweep.parquet"]


def test_listed_rows_are_evaluated_in_their_order():
    rows = pl.DataFrame({"mfu": [0.5, 0.3], "name": ["b", "a"]})
    swept = fk.sweep(RUN, rows, "training_days")
    assert swept.columns == ["mfu", "name", "training_days"]
    assert swept.equals(fk.sweep(RUN, rows.lazy(), "training_days"))
    crossed = fk.sweep(RUN, {"mfu": [0.5, 0.3]}, "training_days")
    assert swept["training_days"].to_list() == pytest.approx(crossed["training_days"].to_list(), rel=1e-12)


@pytest.mark.parametrize(
    ("grid", "more", "message"),
    [
        ({}, {}, "the grid is empty"),
        ({"mfu": []}, {}, "mfu has no values"),
        ({"mfu": [0.3, 30.0]}, {}, "give a fraction, e.g. 0.3"),
        ({"mfuu": [0.3]}, {}, "nearest is 'mfu'"),
        ({"mfu": [0.3]}, {"engine": "spark"}, "must be local, ray"),
        ({"mfu": [0.3]}, {"engine": "ray"}, "needs out="),
        ({"mfu": [0.3]}, {"out": "/no/such/folder/x.parquet"}, "give a file in an existing folder"),
        ({"pue": [1.1]}, {}, "cannot be computed"),
    ],
)
def test_a_bad_sweep_is_refused(grid, more, message):
    with pytest.raises(fk.FactorykitError, match=message):
        fk.sweep(RUN, grid, "training_days", **more)


def test_too_many_rows_need_a_file():
    many = [1.0 + i for i in range(10_000)]
    with pytest.raises(fk.FactorykitError, match="give out=, a folder"):
        fk.sweep(
            {}, {"accelerators": many, "peak_flop_per_s": [1e12 * value for value in many]}, "cluster_peak_flop_per_s"
        )


def test_a_contradiction_shows_before_anything_is_computed():
    with pytest.raises(fk.FactorykitError, match="is inconsistent"):
        fk.sweep(RUN | {"cluster_peak_flop_per_s": 1e19}, GRID, "training_days")


@pytest.mark.parametrize(
    ("base", "grid", "outputs", "message"),
    [
        (RUN, {"mfu": 0.4}, "training_s", "mfu must be a list, got 0.4"),
        (RUN, [0.3, 0.4], "training_s", "grid is list"),
        (None, {"mfu": [0.4]}, "training_s", "inputs must be a mapping"),
        (RUN, {"mfu": [0.4]}, 7, "outputs must be a list, got 7"),
    ],
)
def test_an_invalid_grid_is_refused(base, grid, outputs, message):
    with pytest.raises(fk.FactorykitError, match=message):
        fk.sweep(base, grid, outputs)
