"""Errors can be pickled for process pools, and warnings name the line of the caller."""

from __future__ import annotations

import pickle
import warnings

import polars as pl
import pytest

import factorykit as fk
from factorykit.core.errors import DatasetError, FactorykitError, MissingQuantity


@pytest.mark.parametrize(
    "error", [MissingQuantity("tokens is missing", ["tokens"]), DatasetError("broken", pl.DataFrame({"line": [3]}))]
)
def test_an_error_survives_pickling(error: FactorykitError) -> None:
    copied = pickle.loads(pickle.dumps(error))
    assert (type(copied), str(copied)) == (type(error), str(error))
    assert str(vars(copied)) == str(vars(error))


def test_a_warning_names_the_line_that_called_the_package() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fk.evaluate({"mfu": 0.001}, "mfu")
    assert [(each.filename, each.category) for each in caught] == [(__file__, fk.FactorykitWarning)]
