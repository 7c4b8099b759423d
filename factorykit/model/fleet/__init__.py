"""Evidence out: what a log says of one's own cluster, in the words of every other verb.

Failures come as :mod:`factorykit.fault_traces` gives them, so that :mod:`factorykit.lifetimes` fits them; the ledger is
in accelerator-hours and money; advice is asked of the engine; step times go into :func:`factorykit.calibrate`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from factorykit.model.fleet.advice import advise, scenario, step_times
    from factorykit.model.fleet.cohort import stragglers
    from factorykit.model.fleet.faults import failures, mtbf
    from factorykit.model.fleet.imitation import imitate
    from factorykit.model.fleet.ledger import goodput
    from factorykit.model.fleet.others import beside, prior
    from factorykit.model.fleet.parquet import archive, imitate_failures
    from factorykit.model.fleet.watts import energy

_HOME: Final = {
    "advise": "advice",
    "archive": "parquet",
    "beside": "others",
    "energy": "watts",
    "failures": "faults",
    "goodput": "ledger",
    "imitate": "imitation",
    "imitate_failures": "parquet",
    "mtbf": "faults",
    "prior": "others",
    "scenario": "advice",
    "step_times": "advice",
    "stragglers": "cohort",
}
__all__ = [
    "advise",
    "archive",
    "beside",
    "energy",
    "failures",
    "goodput",
    "imitate",
    "imitate_failures",
    "mtbf",
    "prior",
    "scenario",
    "step_times",
    "stragglers",
]
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _HOME:
            raise AttributeError(f"module 'factorykit.fleet' has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(f"factorykit.model.fleet.{_HOME[name]}"), name)
        globals()[name] = value
        return value
