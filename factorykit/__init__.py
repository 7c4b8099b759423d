"""Compute, time, power, failures and cost of AI training clusters, with a source or a formula for every number.

``import factorykit as fk`` loads only names; polars, DuckDB, charts and widgets are imported on first use.

>>> import factorykit as fk
>>> fk.evaluate({"active_parameters": 405e9, "tokens": 15.6e12}, "training_flop")
{'training_flop': 3.7908e+25}
"""

import sys

from factorykit.core import __version__ as __version__
from factorykit.core.extras import lazy_names, need

__getattr__, __all__ = lazy_names(__name__, __file__)


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


if "IPython" in sys.modules:
    need("factorykit.widgets.completion").register()
