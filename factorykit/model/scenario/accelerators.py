"""An accelerator of the tables, or one's own, as part of a scenario."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from factorykit.core.errors import ScenarioError
from factorykit.core.validation import string
from factorykit.core.vocabulary import quantity
from factorykit.data.identifiers import identify
from factorykit.engine.providers.accelerators import BROUGHT, chips, told
from factorykit.model.scenario.scenario import Scenario

if TYPE_CHECKING:
    from factorykit.core.names import AcceleratorName, Quantities


def accelerator(
    name: AcceleratorName | str, like: AcceleratorName | str | None = None, **quantities: Unpack[Quantities]
) -> Scenario:
    """Return an accelerator as part of a scenario.

    Parameters
    ----------
    name
        A chip of the tables; with ``like`` any name, of a chip that the tables do not hold.
    like
        The chip of the tables that this one resembles in all that is not given.
    **quantities
        What this chip is given: ``peak_flop_per_s``, ``accelerator_memory_bytes``, ``memory_bytes_per_s``,
        ``scale_up_bytes_per_s``, ``scale_up_domain``, ``scale_out_bytes_per_s``, ``accelerator_power_w`` … The dense
        peak of a bf16 run stands for that of 16 bits, unless ``peak_16bit_flop_per_s`` says otherwise.

    Returns
    -------
    Scenario
        To be joined with a run or a cluster: ``{**accelerator("h100_sxm"), **run}``. What the tables say is looked up
        when it is needed.

    Raises
    ------
    UnknownName, UnknownQuantity, ScenarioError

    Examples
    --------
    >>> mine = accelerator("mine", like="h100_sxm", peak_flop_per_s="2 PFLOP/s", accelerator_memory_bytes="192 GB")
    >>> mine.label, mine.accelerator_memory_bytes
    ('mine, like NVIDIA H100 SXM5 80GB', 192000000000.0)
    >>> from factorykit.engine.evaluate import evaluate
    >>> evaluate({**mine, "accelerators": 1000.0}, "cluster_peak_flop_per_s")
    {'cluster_peak_flop_per_s': 2e+18}
    """
    name = string("name", name)
    key = identify("accelerator", name if like is None else like)
    label = chips()[key]["name"]
    for each in quantities:
        if each not in BROUGHT and quantity(each).is_text:
            raise ScenarioError(f"{each} is no quantity of an accelerator; give numbers such as peak_flop_per_s")
    if "peak_flop_per_s" in quantities:
        quantities.setdefault("peak_16bit_flop_per_s", quantities["peak_flop_per_s"])
    title = label if like is None else f"{name}, like {label}"
    sources = {"accelerator": told("accelerator_memory_bytes", key), **dict.fromkeys(quantities, f"given for {name}")}
    return Scenario.sourced(title, {"accelerator": key, **quantities}, sources)
