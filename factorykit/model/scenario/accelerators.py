"""Accelerators of the tables, or user-defined ones, as parts of scenarios."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Unpack

from factorykit.core.errors import ScenarioError, UnknownName, short_repr
from factorykit.core.validation import as_list, string
from factorykit.core.vocabulary import quantity
from factorykit.data.identifiers import identify, known_key
from factorykit.engine.providers.accelerators import BROUGHT, OWN_VALUES, chips, specification_source
from factorykit.model.scenario.scenario import Scenario

if TYPE_CHECKING:
    from factorykit.core._names import AcceleratorName, Quantities


def accelerator(
    name: AcceleratorName | str, like: AcceleratorName | str | None = None, **quantities: Unpack[Quantities]
) -> Scenario:
    """Return an accelerator as part of a scenario.

    Parameters
    ----------
    name
        An accelerator of the tables; with ``like`` the name of a new one.
    like
        Accelerator of the tables with the values that are not given.
    **quantities
        Values of this accelerator: ``peak_flop_per_s``, ``accelerator_memory_bytes``, ``memory_bytes_per_s``,
        ``scale_up_bytes_per_s``, ``scale_up_domain``, ``scale_out_bytes_per_s``, ``accelerator_power_w`` … The dense
        peak of a bf16 run stands for that of 16 bits, unless ``peak_16bit_flop_per_s`` is given.

    Returns
    -------
    Scenario
        Part of a scenario: ``{**accelerator("h100_sxm"), **run}``. Values of the tables are looked up when needed.

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
    if not (name := string("name", name).strip()):
        raise ScenarioError("name is empty; give that of an accelerator, or a new one with like")
    known = known_key("accelerator", name)
    if like is not None and known:
        raise ScenarioError(f"{name!r} is {chips()[known]['name']}, which is known; give the new one another name")
    if like is None and not known and quantities:
        raise UnknownName(f"no accelerator {name!r}; a new one needs like, a known accelerator such as 'b200'")
    key = identify("accelerator", name if like is None else like)
    label = chips()[key]["name"]
    for given in quantities:
        if given not in BROUGHT and quantity(given).is_text:
            raise ScenarioError(f"{given} is not a quantity of an accelerator; give numbers such as peak_flop_per_s")
    if "peak_16bit_flop_per_s" in quantities and "peak_flop_per_s" not in quantities:
        raise ScenarioError(
            "peak_16bit_flop_per_s leaves matrix products at the peak of the tables; give peak_flop_per_s, the dense "
            "peak at the precision of the run, alone for a run in 16 bits, or both"
        )
    if "peak_flop_per_s" in quantities:
        quantities.setdefault("peak_16bit_flop_per_s", quantities["peak_flop_per_s"])
    title = label if like is None else f"{name}, like {label}"
    sources = {
        "accelerator": specification_source("accelerator_memory_bytes", key),
        **dict.fromkeys(quantities, f"given for {name}"),
    }
    return Scenario.sourced(title, {"accelerator": key, **quantities}, sources)


def own_chips(chips: Any, given: Collection[str] = ()) -> tuple[tuple[str, ...], dict[str, Scenario]]:
    """Return the names of chips, and those of an :func:`accelerator` with values of its own by its name.

    Quantities that are ``given`` for all chips cannot be among the values of one.

    >>> own_chips([accelerator("mine", like="b200", peak_flop_per_s="3 PFLOP/s"), "H100"])[0]
    ('mine', 'h100_sxm')
    """
    if chips is None:
        return (), {}
    named: dict[str, Any] = {}
    for chip in (chips,) if isinstance(chips, (str, Scenario)) else as_list("chips", chips):
        name = own_name(chip) if isinstance(chip, Scenario) else identify("accelerator", string("one of chips", chip))
        specified = chip if isinstance(chip, Scenario) and len(chip) > 1 else {"accelerator": name}
        if named.setdefault(name, specified) != specified:
            raise ScenarioError(f"two of the chips are named {name!r}; give fk.accelerator a name, 'mine', and like=…")
        if twice := specified.keys() & set(given):
            raise ScenarioError(f"{min(twice)} is given for {name} and for all chips; give one of them")
    if not named:
        raise ScenarioError("chips are empty; give at least one, such as 'h100_sxm'")
    return tuple(named), {name: chip for name, chip in named.items() if isinstance(chip, Scenario)}


def own_name(chip: Scenario) -> str:
    """Return the name of an :func:`accelerator`: its own, or the key in the tables where it has none."""
    if "accelerator" not in chip:
        raise ScenarioError(f"{short_repr(chip)} names no accelerator; give fk.accelerator('mine', like='b200', …)")
    name, is_new, _ = chip.label.rpartition(", like ")
    return name if is_new else str(chip["accelerator"])


def title_of(key: str, request: Any) -> str:
    """Return the name of a chip of a plan for readers, and whether it has values of its own."""
    name = chips()[key]["name"] if key in chips() else request.own[key].label
    has_own_values = key in request.own or getattr(request, "has_own_values", False)
    return name + OWN_VALUES * (key in chips() and has_own_values)
