"""Evidence out: what a log says of one's own cluster, in the words of every other verb.

Failures come as :mod:`factorykit.fault_traces` gives them, so that :mod:`factorykit.lifetimes` fits them; the ledger is
in accelerator-hours and money; advice is asked of the engine; step times go into :func:`factorykit.calibrate`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from factorykit.model.fleet.faults import failures, mtbf

_HOME: Final = {"failures": "faults", "mtbf": "faults"}
__all__ = ["failures", "mtbf"]
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _HOME:
            raise AttributeError(f"module 'factorykit.fleet' has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(f"factorykit.model.fleet.{_HOME[name]}"), name)
        globals()[name] = value
        return value
