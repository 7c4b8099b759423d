"""Fleet analysis of logs: failure rates, goodput, stragglers, energy, advice.

Failures have durations that :mod:`factorykit.lifetimes` fits; goodput is in accelerator-hours and money; advice
evaluates the model with the rates of the log; step times are input of :func:`factorykit.calibrate`.
"""

from factorykit.core.extras import lazy_names

__getattr__, __all__ = lazy_names(__name__, __file__)


def __dir__() -> list[str]:
    return __all__
