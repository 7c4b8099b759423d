"""factorykit: what an AI factory really takes.

Compute, power, failures, checkpoints and money, each number with its source. ``import factorykit as fk`` loads names
only; polars, DuckDB, charts and widgets load on use.

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
