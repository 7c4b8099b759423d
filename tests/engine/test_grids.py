"""A grid in blocks has the same results as its rows in a frame."""

import math

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import factorykit as fk
from factorykit.engine.grids import Grid
from factorykit.engine.question import Question

RUN = {"active_parameters": 405e9, "tokens": 15.6e12, "accelerators_per_node": 8.0, "peak_flop_per_s": 989e12}
MODEL = {**fk.architecture("llama3_70b"), "sequence_length": 8192.0, "accelerator": "h100_sxm", "precision": "bf16"}
LAYOUT = {**MODEL, "accelerators": 512.0, "global_batch_size": 1024.0, "recompute": "none", "schedule": "1f1b"}


def crossed(axes: dict[str, list]) -> pl.DataFrame:
    rows = pl.DataFrame({"": [0]})
    for name, values in axes.items():
        rows = rows.join(pl.DataFrame({name: values}), how="cross", maintain_order="left_right")
    return rows.drop("")


@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=4), block_rows=st.integers(1, 200))
@settings(max_examples=60)
def test_the_blocks_of_a_grid_are_its_rows_in_order(lengths: list[int], block_rows: int) -> None:
    axes = {f"axis_{i}": [float(j) for j in range(length)] for i, length in enumerate(lengths)}
    grid = Grid({name: pl.Series(values) for name, values in axes.items()}, block_rows)
    blocks = [
        grid.fast(grid.segment(block)).with_columns(**{name: pl.lit(v) for name, v in grid.slow(block).items()})
        for block in range(grid.blocks)
    ]
    assert grid.rows == math.prod(lengths)
    assert max(block.height for block in blocks) <= block_rows
    assert pl.concat([block.select(list(axes)) for block in blocks]).equals(crossed(axes))


@pytest.mark.parametrize(
    ("values", "axes", "outputs", "assume"),
    [
        (
            RUN,
            {
                "accelerators": [1024.0, 16384.0],
                "mfu": [0.3, 0.4, 0.5],
                "accelerator_mtbf_s": [1e8, 1e9],
                "pue": [1.1, 1.3],
            },
            ["wall_days", "rental_cost_usd", "mfu", "goodput", "nodes"],
            True,
        ),
        (
            LAYOUT,
            {
                "tensor_parallel": [1.0, 2.0, 8.0, 64.0],
                "pipeline_parallel": [1.0, 3.0, 8.0],
                "micro_batch_size": [1.0, 7.0],
            },
            ["step_s", "memory_peak_bytes", "fits", "predicted_mfu"],
            False,
        ),
        (
            {"tokens": 1e12, "active_parameters": 7e10, "accelerators": 64.0},
            {"accelerator": ["h100_sxm", "b200"], "mfu": [0.3, 0.4]},
            ["training_days"],
            False,
        ),
        ({"hidden_size": 8.0}, {"layers": [3.0, 9.0], "dense_layers": [1.0, 5.0]}, ["moe_layers"], False),
    ],
    ids=["run", "layouts that break rules", "words", "impossible results"],
)
def test_a_grid_has_the_results_of_a_lazy_frame_of_its_rows(values, axes, outputs, assume, monkeypatch) -> None:
    rows = crossed(axes)
    wanted = [*axes, *(name for name in outputs if name not in axes)]
    whole = rows.lazy().with_columns(**{name: pl.lit(value) for name, value in values.items()})
    expected = fk.evaluate(whole, outputs, assume=assume).select(wanted).collect()
    series = {name: pl.Series(column) for name, column in axes.items()}
    for block_rows in (1, 3, 2**17):
        monkeypatch.setattr("factorykit.engine.grids.MAX_BLOCK_ROWS", block_rows)
        grid = Question(values, outputs=tuple(outputs), assume=assume).over(axes).resolve().grid(series, wanted)
        found = pl.concat([grid.block(number) for number in range(grid.grid.blocks)])
        for name in wanted:
            known = expected[name].is_not_null()
            assert found[name].is_not_null().equals(known)
            same = expected[name].filter(known).to_list()
            assert found[name].filter(known).to_list() == (
                same if name == "accelerator" else pytest.approx(same, rel=1e-12)
            )
