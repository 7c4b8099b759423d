"""Evidence out: what a log says of one's own cluster, in the words of every other verb.

Failures come as :mod:`factorykit.fault_traces` gives them, so that :mod:`factorykit.lifetimes` fits them; the ledger is
in accelerator-hours and money; advice is asked of the engine; step times go into :func:`factorykit.calibrate`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from factorykit.borders import lazily

if TYPE_CHECKING:
    from factorykit.model.fleet.advice import advise, scenario, step_times
    from factorykit.model.fleet.cohort import stragglers
    from factorykit.model.fleet.faults import failures, mtbf
    from factorykit.model.fleet.imitation import imitate
    from factorykit.model.fleet.ledger import goodput
    from factorykit.model.fleet.others import beside, prior
    from factorykit.model.fleet.parquet import archive
    from factorykit.model.fleet.watts import energy
    from factorykit.model.fleet.years import imitate_failures, imitate_jobs, imitate_power

_HOME: Final = {
    "advise": "advice",
    "archive": "parquet",
    "beside": "others",
    "energy": "watts",
    "failures": "faults",
    "goodput": "ledger",
    "imitate": "imitation",
    "imitate_failures": "years",
    "imitate_jobs": "years",
    "imitate_power": "years",
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
    "imitate_jobs",
    "imitate_power",
    "mtbf",
    "prior",
    "scenario",
    "step_times",
    "stragglers",
]
if not TYPE_CHECKING:  # a checker would take any name for known
    __getattr__ = lazily(__name__, _HOME)
