import pytest
from hypothesis import given
from hypothesis import strategies as st

import factorykit as fk
from factorykit.formulas import operations, scaling


def test_required_accelerators_finish_on_the_day():
    run = {"active_parameters": 405e9, "tokens": 15.6e12, "peak_flop_per_s": 989e12, "mfu": 0.4, "goodput": 0.9}
    needed = fk.evaluate(run | {"deadline_s": 60 * 86400.0}, "required_accelerators")["required_accelerators"]
    assert fk.evaluate(run | {"accelerators": needed}, "wall_s")["wall_s"] == pytest.approx(60 * 86400.0, rel=1e-12)


def test_reading_15_trillion_tokens_takes_a_thousandth_of_ten_gigabytes_a_second():
    """Blog post, L199 asks for 10 GB/s; 60 TB in 54 days are 0.0129 GB/s."""
    read = scaling.data_read_bytes_per_s(15e12, 4.0, 54 * 86400.0)
    assert read == pytest.approx(0.01286e9, rel=1e-3)
    assert scaling.data_read_share(read, 10e9) == pytest.approx(1 / 780, rel=0.01)


@given(st.floats(0.05, 1.0), st.floats(0.05, 1.0))
def test_idle_and_gain_are_two_sides(before, after):
    gained = operations.utilization_gain_usd_per_year(1000.0, after, before, 3.0)
    idle = operations.idle_usd_per_year(1000.0, before, 3.0) - operations.idle_usd_per_year(1000.0, after, 3.0)
    assert gained == pytest.approx(idle, abs=1e-6)


def test_13_million_a_year_lie_within_the_price_range():
    """Course chapter, L143: 50 to 90 % on 1,000 GPUs at 3 to 4 USD an hour."""
    low, high = (operations.utilization_gain_usd_per_year(1000.0, 0.9, 0.5, usd) for usd in (3.0, 4.0))
    assert low < 13e6 < high


def test_twice_the_batch_halves_the_bandwidth_that_is_needed():
    once = scaling.scale_out_needed_bytes_per_s(1e10, 4e11, 8e6, 1.6e19, 0.4)
    assert scaling.scale_out_needed_bytes_per_s(1e10, 4e11, 16e6, 1.6e19, 0.4) == pytest.approx(once / 2)
