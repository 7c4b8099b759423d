"""What the tables hold: for each table its columns with unit, bounds and text, and the rules between them.

One class is one table: ``StorageSystems`` is the table ``storage_systems``. Its docstring is the table's text: a title,
then what a row is. A new table is a class here or in a module of `MODULES`, and a file ``data/sources/<table>.csv``
with the same columns; nothing else names it.

Only `factorykit.datasets.build` and tests import this module, since dataframely is needed to build tables and not to
read them.
"""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any, Final

import dataframely as dy
import polars as pl

from factorykit.quantities import quantity, vocabulary

MODULES: Final = (
    __name__,
    "factorykit.datasets.schemas_equipment",
    "factorykit.datasets.schemas_practice",
    "factorykit.datasets.schemas_series",
    "factorykit.datasets.schemas_audit",
    "factorykit.datasets.schemas_performance",
)
"""Where the tables are defined, in the order in which they are listed."""
VERSION: Final = "0.1.0"
"""Version of the data package: raised with every release that changes a value or a column."""
RELEASED: Final = "2026-11-21"
"""Day of that version."""

KEY: Final = r"^[a-z0-9][a-z0-9_]*$"
STATEMENT: Final = r"^[a-z0-9_]+@[a-z0-9_]+(\.[0-9]+)?$"
DAY: Final = r"^[0-9]{4}(-[0-9]{2}(-[0-9]{2})?)?(/[0-9]{4}(-[0-9]{2}(-[0-9]{2})?)?)?$"


def text(description: str, *, required: bool = False, one_of: tuple[str, ...] = (), **metadata: Any) -> dy.String:
    """Return a column of words; ``one_of`` lists the only ones allowed."""
    pattern = f"^({'|'.join(re.escape(word) for word in one_of)})$" if one_of else None
    return dy.String(nullable=not required, min_length=1, regex=pattern, description=description, metadata=metadata)


def key(description: str, *, unique: bool = False, pattern: str = KEY, **metadata: Any) -> dy.String:
    """Return a column that names what a row is about; ``unique`` if the name is the row's own."""
    return dy.String(primary_key=unique, nullable=False, regex=pattern, description=description, metadata=metadata)


def reference(column: str, description: str, *, required: bool = False, **metadata: Any) -> dy.String:
    """Return a column whose words are keys of another table, given as ``table.column``."""
    return dy.String(
        nullable=not required,
        min_length=1,
        regex=KEY,
        description=description,
        metadata={"references": column, **metadata},
    )


def number(unit: str, description: str, *, positive: bool = True) -> dy.Float64:
    """Return a column of numbers that no quantity of the vocabulary stands for."""
    return dy.Float64(nullable=True, min=0.0 if positive else None, description=description, metadata={"unit": unit})


def share(description: str) -> dy.Float64:
    """Return a column of fractions between 0 and 1."""
    return dy.Float64(nullable=True, min=0.0, max=1.0, description=description, metadata={"unit": "1"})


def measured(name: str, description: str = "") -> dy.Float64:
    """Return a column of a quantity of the vocabulary, with that quantity's unit and bounds."""
    this = quantity(name)
    bounds: dict[str, Any] = {}
    if this.lower > float("-inf"):
        bounds["min" if this.bounds[0] == "[" else "min_exclusive"] = this.lower
    if this.upper < float("inf"):
        bounds["max" if this.bounds[-1] == "]" else "max_exclusive"] = this.upper
    said = f"{this.label}: {this.meaning}"
    return dy.Float64(
        nullable=True,
        description=f"{said}; {description}" if description else said,
        metadata={"unit": this.unit, "quantity": name},
        **bounds,
    )


class Table(dy.Schema):
    """Base of all tables."""


class Sourced(Table):
    """Base of the tables whose rows somebody says: who, where, as of when."""

    source = reference("sources.source", "who says it", required=True)
    locator = text("where in the source: line, section, table or page", required=True)
    as_of = dy.String(
        nullable=True,
        regex=DAY,
        description="the time of which it is said, as exact as the source: a year, month, day, or from/to",
    )
    note = text("what else the row says, and what is known to be wrong with it")


class Stated(Sourced):
    """Base of the tables in which several sources speak about one thing: a row is one statement."""

    statement = key("the row's own name: what it is about @ who says it", unique=True, pattern=STATEMENT)
    preferred = text("why this statement is picked among those about the same thing; empty for the others")


class Sources(Table):
    """Sources.

    A row is a document, paper, page, repository or data set that other tables take facts from.
    """

    source = key("name by which rows refer to it", unique=True, entity=True)
    title = text("title, and the part that was used", required=True)
    author = text("who wrote or published it")
    kind = text(
        "what it is",
        required=True,
        one_of=("document", "paper", "documentation", "article", "repository", "dataset", "datasheet", "note"),
    )
    published = dy.String(nullable=True, regex=DAY, description="when it appeared, as exact as known")
    accessed = dy.String(nullable=True, regex=DAY, description="when the facts were read")
    url = dy.String(nullable=True, regex=r"^https?://\S+$", description="where it is found")
    file = text("file name of a document that is no public page")
    licence = text("terms under which its facts are used here", required=True)
    evidence = text("how it was read: in full, an excerpt, quoted by others, from memory", required=True)
    facts = text("the facts taken from it")
    note = text("what to know before relying on it")


class Accelerators(Sourced):
    """Accelerators.

    A row is a chip as it is sold or rented. All rates are dense: without structured sparsity. Empty means that the
    sources do not say, disagree, or leave open whether a rate is dense; the note tells which.
    """

    accelerator = key("name of the chip in all tables", unique=True, entity=True)
    name = text("name as its maker writes it", required=True)
    vendor = text("who designs it", required=True)
    kind = text("what sort of chip", required=True, one_of=("GPU", "TPU", "ASIC", "APU"))
    launch = dy.String(nullable=True, regex=DAY, description="month of release, otherwise of announcement")
    status = text("whether it can be had", required=True, one_of=("shipping", "cloud only", "internal", "announced"))
    peak_bf16_flop_per_s = number("FLOP/s", "dense peak in bf16, or fp16 where there is no bf16")
    peak_fp8_flop_per_s = number("FLOP/s", "dense peak in 8-bit floating point")
    peak_fp4_flop_per_s = number("FLOP/s", "dense peak in 4-bit floating point")
    memory_bytes = number("byte", "memory on the package, printed GB times 1e9; makers write GB for what is often GiB")
    memory_type = text("kind of memory")
    memory_bytes_per_s = number("byte/s", "peak rate of that memory")
    tdp_w = number("W", "thermal design power of the chip or module")
    scale_up_both_directions_bytes_per_s = number("byte/s", "fast fabric per chip, both directions added")
    scale_up_bytes_per_s = measured("scale_up_bytes_per_s", "half of both directions; empty if direction is not said")
    scale_up_domain = measured("scale_up_domain")
    confidence = text("how well the sources agree", required=True, one_of=("high", "medium", "low"))
    confirmed_by = dy.String(
        nullable=True,
        min_length=1,
        description="further sources that were compared, keys separated by '; '",
        metadata={"references": "sources.source", "separator": "; "},
    )
    epoch_name = text("name in Epoch AI's data on machine learning hardware")
    rental_ids = text("names in the rental prices of gpurentalprices.com, separated by '; '")
    also_called = text("other names of the same chip, separated by '; '")


class Clusters(Stated):
    """Clusters and sites.

    A row is what one source says in one place about one cluster, pod or site. Sources differ by date, by what they
    count and by error; rows are never merged.
    """

    cluster = key("name of the cluster in all tables", entity=True)
    name = text("name as the source writes it", required=True)
    operator = text("whose models are trained on it")
    partner = text("who builds, owns or runs it with them")
    accelerator = reference("accelerators.accelerator", "chip, where the source names exactly one")
    accelerator_stated = text("chips as the source writes them")
    accelerators = measured("accelerators")
    accelerators_low = measured("accelerators", "lower end of a range")
    accelerators_high = measured("accelerators", "upper end of a range")
    accelerators_stated = text("what the source adds to the count: about, up to, target")
    memory_stated = text("memory per chip as the source writes it")
    peak_flop_per_s = measured("peak_flop_per_s", "dense bf16 as the source states it")
    nodes = measured("nodes")
    nodes_stated = text("nodes where the source gives words instead of a count")
    accelerators_per_node = measured("accelerators_per_node")
    scale_up_stated = text("fabric inside a node as the source writes it")
    scale_out_stated = text("network between nodes as the source writes it")
    cluster_peak_printed_flop_per_s = number(
        "FLOP/s", "peak of the whole cluster exactly as printed, with the source's own prefix even where it is wrong"
    )
    cluster_peak_printed = text("the unit as printed, and what is wrong with it")
    storage_stated = text("storage as the source writes it")
    it_power_w = measured("it_power_w")
    pue = measured("pue")
    facility_power_w = measured("facility_power_w")
    power_w_low = number("W", "lower end of a power that the source does not call IT or facility")
    power_w_high = number("W", "upper end of such a power; empty if the source says 'more than'")
    capital_usd_low = number("USD", "lower end of the cost to build it, nominal")
    capital_usd_high = number("USD", "upper end of the cost to build it, nominal")
    build_days = number("d", "time to build it")
    site = text("where it stands")
    purpose = text("what is trained on it")


class Failures(Stated):
    """Failures.

    A row is what one source says about how often, or how, something interrupts a run or fails in a fleet. Counts are
    as printed; ``share_printed`` keeps the source's percentage as a fraction even where its own counts disagree.
    """

    failure = key("what fails where, the same name in all sources", entity=True)
    subject = text("the run, fleet or rule spoken about, as the source writes it", required=True)
    run = reference("runs.run", "run of the runs table")
    cluster = reference("clusters.cluster", "cluster of the clusters table")
    cause = text("what fails, or what is counted", required=True)
    category = text("class of the cause, as the source groups it")
    kind = text(
        "how the number came about", required=True, one_of=("measured", "modelled", "projected", "estimated", "said")
    )
    accelerators = measured("accelerators")
    observed_nodes = number("1", "servers watched, where a source counts servers")
    window_days = number("d", "time over which was counted")
    count = number("1", "events counted")
    count_stated = text("what the source adds to the count: about, at least")
    share_printed = share("share of all events as printed")
    failures_per_day = measured("failures_per_day")
    expected_failures = measured("expected_failures")
    cluster_mtbf_s = measured("cluster_mtbf_s")
    accelerator_mtbf_s = measured("accelerator_mtbf_s")
    node_failures_per_node_day = measured("node_failures_per_node_day")
    goodput = measured("goodput", "effective training time as the source defines it")
    goodput_low = measured("goodput", "where the source says 'more than'")
    lost_work_s = measured("lost_work_s")
    restart_s = measured("restart_s")
    detection_s = number("s", "time until a failure is noticed and understood")
    rate_stated = text("how often, in the source's words")


class Costs(Stated):
    """Costs.

    A row is what one source says about one component of cost or one price. Money is in nominal US dollars of the time
    given in ``as_of``. A single number fills both ends of its range; an empty upper end means 'more than'.
    """

    cost = key("what is paid for, the same name in all sources", entity=True)
    subject = text("the run, cluster, product or industry spoken about, as the source writes it", required=True)
    run = reference("runs.run", "run of the runs table")
    cluster = reference("clusters.cluster", "cluster of the clusters table")
    accelerator = reference("accelerators.accelerator", "chip of the accelerators table")
    component = text("what is paid for", required=True)
    accelerators = measured("accelerators")
    cost_usd_low = number("USD", "lower end of a sum")
    cost_usd_high = number("USD", "upper end of a sum")
    cost_usd_per_year_low = number("USD/a", "lower end of a sum per year")
    cost_usd_per_year_high = number("USD/a", "upper end of a sum per year")
    cost_usd_per_month_low = number("USD/month", "lower end of a sum per month")
    cost_usd_per_month_high = number("USD/month", "upper end of a sum per month")
    cluster_usd_per_h_low = measured("cluster_usd_per_h", "lower end")
    cluster_usd_per_h_high = measured("cluster_usd_per_h", "upper end")
    rental_usd_per_accelerator_h_low = measured("rental_usd_per_accelerator_h", "lower end")
    rental_usd_per_accelerator_h_high = measured("rental_usd_per_accelerator_h", "upper end")
    electricity_usd_per_kwh = measured("electricity_usd_per_kwh")
    share_low = share("lower end of a share of a whole named in component")
    share_high = share("upper end of such a share")
    people_low = number("1", "lower end of a number of people")
    people_high = number("1", "upper end of a number of people")
    factor_per_two_years = number("1", "factor by which it changes in two years")
    basis = text("how the source gets there")


class Runs(Stated):
    """Training runs.

    A row is what one source says in one place about one training run, or about a size of run. Durations are wall-clock
    as the source gives them; MFU is the source's own, whatever it counts.
    """

    run = key("name of the run in all tables", entity=True)
    model = text("model as the source writes it", required=True)
    organisation = text("who trains it")
    parameters = measured("parameters")
    active_parameters = measured("active_parameters", "or all of them where a source gives one number")
    tokens = measured("tokens")
    training_flop = measured("training_flop", "as the source states it")
    cluster = reference("clusters.cluster", "cluster it ran on")
    accelerator = reference("accelerators.accelerator", "chip, where the source names exactly one")
    accelerator_stated = text("chips as the source writes them")
    accelerators = measured("accelerators")
    accelerators_low = measured("accelerators", "lower end of a range")
    accelerators_high = measured("accelerators", "upper end of a range")
    mfu = measured("mfu")
    wall_days = measured("wall_days")
    wall_days_low = measured("wall_days", "lower end of a range")
    wall_days_high = measured("wall_days", "upper end of a range")
    duration_stated = text("duration, or its formula, as the source writes it")
    accelerator_hours = measured("accelerator_hours")
    cost_usd = number("USD", "cost as the source states it, nominal")
    benchmark = text("results that the source names with the run")
    qualifier = text("what the source adds: estimated, about, up to")


class Presets(Sourced):
    """Presets.

    A row is one input of one published run, cluster or example, under its name in the vocabulary. What no source
    supports is left out. Values computed from printed facts say so in the note.
    """

    preset = key("name of the preset", unique=True, entity=True)
    label = text("name for reading", required=True)
    kind = text("what it describes", required=True, one_of=("run", "cluster", "example"))
    quantity = dy.String(
        primary_key=True, regex=KEY, description="quantity of the vocabulary", metadata={"vocabulary": True}
    )
    value = dy.Float64(nullable=False, description="its value, in the unit of the vocabulary", metadata={"unit": ""})

    @dy.rule()
    def value_is_within_the_bounds_of_its_quantity(cls) -> pl.Expr:  # noqa: N805
        """Compare each value with the bounds that the vocabulary gives its quantity."""
        inside = pl.lit(value=False)
        for name, this in vocabulary().items():
            if not this.is_text:
                value = pl.col("value")
                above = value >= this.lower if this.bounds[0] == "[" else value > this.lower
                below = value <= this.upper if this.bounds[-1] == "]" else value < this.upper
                inside = pl.when(pl.col("quantity") == name).then(above & below).otherwise(inside)
        return inside


class Pue(Sourced):
    """Power usage effectiveness.

    A row is what an operator or a survey says about its sites in a year.
    """

    entry = key("name of the row", unique=True, entity=True)
    operator = text("who runs the sites, or who asked", required=True)
    scope = text("which sites", required=True)
    pue = measured("pue")


class Cooling(Stated):
    """Cooling.

    A row is what one source says about one way of cooling racks, or about the cooling of one product.
    """

    cooling = key("the way of cooling, the same name in all sources", entity=True)
    approach = text("as the source writes it", required=True)
    description = text("what it is")
    cooling_capacity_w = measured("cooling_capacity_w", "as the source states it")
    capacity_stated = text("what the source adds: up to, more than")
    users = text("who uses it")
    advantage = text("what speaks for it")
    limitation = text("what speaks against it")
    pue = measured("pue")


class Grids(Sourced):
    """Grids.

    A row is the electricity of one country or cloud region in one year.
    """

    grid = key("name of the grid", unique=True, entity=True)
    name = text("name for reading", required=True)
    carbon_kg_per_kwh = measured("carbon_kg_per_kwh", "average of the grid")
    carbon_free_share = measured("carbon_free_share")
    electricity_usd_per_kwh = measured("electricity_usd_per_kwh", "nominal")


class Prices(Sourced):
    """Rental prices.

    A row is the distribution of list prices of one chip in one kind of offer: one price per provider, the median of its
    days. Nominal US dollars of 2026.
    """

    price = key("chip and kind of offer", unique=True, entity=True)
    accelerator = reference("accelerators.accelerator", "chip of the accelerators table", required=True)
    kind = text("kind of offer", required=True, one_of=("on demand", "spot"))
    providers = number("1", "providers with such an offer")
    usd_per_accelerator_h_low = measured("rental_usd_per_accelerator_h", "cheapest provider")
    usd_per_accelerator_h_quarter = measured("rental_usd_per_accelerator_h", "a quarter of the providers is cheaper")
    usd_per_accelerator_h_median = measured("rental_usd_per_accelerator_h", "half of the providers are cheaper")
    usd_per_accelerator_h_three_quarters = measured("rental_usd_per_accelerator_h", "three quarters are cheaper")
    usd_per_accelerator_h_high = measured("rental_usd_per_accelerator_h", "dearest provider")


class Fabrics(Sourced):
    """Network fabrics.

    A row is one topology of switches with 64 ports, as large as it can be, with its published cost.
    """

    fabric = key("name of the topology", unique=True, entity=True)
    name = text("name for reading", required=True)
    network_endpoints = measured("network_endpoints")
    network_planes = measured("network_planes")
    switch_ports = measured("switch_ports")
    switches = measured("switches", "as published")
    switch_links = measured("switch_links", "as published")
    network_capital_usd = measured("network_capital_usd", "as published, nominal")


class Energies(Sourced):
    """Energy of training runs.

    A row is the energy that a source states for a run, how it came about, and what is needed to compute it again.
    """

    energy = key("name of the run", unique=True, entity=True)
    name = text("model as the source writes it", required=True)
    accelerator_stated = text("chip as the source writes it", required=True)
    evidence = text(
        "how the stated energy came about; only measured energy or power can test a model",
        required=True,
        one_of=("measured", "measured power times hours", "assumed power times hours"),
    )
    stated_kwh = number("kWh", "energy as stated")
    accelerators = measured("accelerators")
    accelerator_hours = measured("accelerator_hours")
    active_parameters = measured("active_parameters")
    tokens = measured("tokens")
    peak_flop_per_s = measured("peak_flop_per_s")
    mfu = measured("mfu", "6ND over hours of runs on the same chip, for runs whose hours are not published")
    power_w_per_accelerator = number("W", "mean power per chip that goes with the stated energy")
    pue = measured("pue", "in the stated energy; empty where it stands before PUE")
    carbon_kg = number("kg", "emissions as stated")


class Rules(Sourced):
    """Decision rules.

    A row is one condition under which a source advises to build, to rent, or to aim at a value.
    """

    rule = key("name of the rule", unique=True, entity=True)
    decision = text("what is decided", required=True)
    branch = text("what the rule speaks for")
    condition = text("the condition in the source's words", required=True)
    quantity = dy.String(nullable=True, regex=KEY, description="quantity compared", metadata={"vocabulary": True})
    comparator = text("how it is compared", one_of=("<", "<=", ">", ">="))
    threshold = dy.Float64(nullable=True, description="with what, in the quantity's unit", metadata={"unit": ""})


class Levers(Sourced):
    """Cost levers.

    A row is one way to lower the cost of a run, with the saving that the source gives for it.
    """

    lever = key("name of the lever", unique=True, entity=True)
    name = text("as the source writes it", required=True)
    saving_low = share("lower end of the saving")
    saving_high = share("upper end of the saving")
    quantity = dy.String(nullable=True, regex=KEY, description="input that it moves", metadata={"vocabulary": True})
    detail = text("what the source adds")


class Stages(Sourced):
    """Scaling stages.

    A row is what a source says about clusters of one size, or about the step from one size to the next.
    """

    stage = key("name of the row", unique=True, entity=True)
    accelerators = measured("accelerators")
    nodes = measured("nodes")
    challenges = text("what is hard at this size")
    parallelism = text("how the model is split")
    network = text("network at this size")
    failures_stated = text("how often something fails, in the source's words")
    failures_per_day = measured("failures_per_day", "the same as a number")
    power_stated = text("power in the source's words")
    cooling_stated = text("cooling in the source's words")
    cluster_usd_per_h = measured("cluster_usd_per_h")
    change = text("what changes on the way to this size")


class Forecasts(Sourced):
    """Forecasts.

    A row is what a source expects of a year, or a size that it compares sites with.
    """

    forecast = key("name of the row", unique=True, entity=True)
    year = text("year or time spoken about")
    subject = text("what is forecast", required=True)
    stated = text("in the source's words", required=True)
    accelerators_low = measured("accelerators", "lower end")
    accelerators_high = measured("accelerators", "upper end; empty if the source says 'more than'")
    facility_power_w_low = measured("facility_power_w", "lower end")
    facility_power_w_high = measured("facility_power_w", "upper end")
    cost_usd = number("USD", "sum spoken about, nominal")
    factor = number("1", "factor spoken about")


class Recipes(Sourced):
    """Recipe of a frontier run.

    A row is a step, pitfall, signal or concept that a source names for large training runs.
    """

    item = key("name of the row", unique=True, entity=True)
    kind = text("what sort of item", required=True)
    step = number("1", "place in the source's order")
    title = text("name of the item", required=True)
    detail = text("what the source says about it")


class Workloads(Sourced):
    """Cluster workloads.

    A row is the summary of one published job trace.
    """

    workload = key("name of the trace", unique=True, entity=True)
    name = text("name for reading", required=True)
    jobs = number("1", "jobs that use GPUs")
    run_s_mean = number("s", "mean run time")
    run_s_median = number("s", "median run time")
    run_s_max = number("s", "longest run time")
    queue_s_mean = number("s", "mean time in the queue")
    queue_s_median = number("s", "median time in the queue")
    accelerators_mean = number("1", "mean GPUs of a job")
    accelerators_max = number("1", "GPUs of the largest job")
    accelerator_s_mean = number("s", "mean GPU time of a job: run time times GPUs")
    completed_share = share("share of jobs that complete")
    cancelled_share = share("share of jobs that are cancelled")
    failed_share = share("share of jobs that fail")


class Utilizations(Sourced):
    """Utilization.

    A row is a level of GPU utilization that a source states as found or as a target.
    """

    entry = key("name of the row", unique=True, entity=True)
    subject = text("which clusters", required=True)
    kind = text("whether it is found or aimed at", required=True, one_of=("found", "target"))
    utilization_low = measured("utilization", "lower end")
    utilization_high = measured("utilization", "upper end; empty if the source says 'more than'")


def schemas() -> dict[str, type[dy.Schema]]:
    """Return all tables by name, in the order of `MODULES`."""
    return {
        re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower(): this
        for module in map(importlib.import_module, MODULES)
        for name, this in vars(module).items()
        if inspect.isclass(this)
        and issubclass(this, Table)
        and this.__module__ == module.__name__
        and this not in (Table, Sourced, Stated)
    }


def columns(schema: type[dy.Schema]) -> dict[str, Any]:
    """Return a table's columns in the order they are stored: its own first, who says it after them."""
    every = schema.columns()
    last = [name for base in (Sourced, Stated) if issubclass(schema, base) for name in base.columns()]
    trailing = [name for name in dict.fromkeys(last) if name != "statement"]
    leading = [name for name in every if name not in trailing]
    leading.sort(key=lambda name: name != "statement")
    return {name: every[name] for name in [*leading, *trailing]}
