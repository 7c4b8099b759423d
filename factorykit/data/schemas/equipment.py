"""Tables of the equipment: chips, clusters, nodes, networks, storage, power, cooling."""

from __future__ import annotations

import dataframely as dy

from factorykit.data.entities import BASES
from factorykit.data.schemas.fields import (
    STATEMENT,
    Entity,
    Sourced,
    Stated,
    address,
    day,
    key,
    measured,
    number,
    reference,
    share,
    sources,
    text,
)


class Accelerators(Sourced):
    """Accelerators.

    A row is a chip as it is sold or rented. All rates are dense: without structured sparsity. Empty means that the
    sources are silent, disagree, or leave open whether a rate is dense; the note names the case.
    """

    accelerator = key("name of the chip in all tables", unique=True, entity=True)
    name = text("name as its maker writes it", required=True)
    vendor = text("who designs it", required=True)
    kind = text("type of chip", required=True, one_of=("GPU", "TPU", "ASIC", "APU"))
    launch = day("month of release, otherwise of announcement")
    status = text("whether it can be had", required=True, one_of=("shipping", "cloud only", "internal", "announced"))
    peak_16bit_flop_per_s = measured("peak_16bit_flop_per_s", "fp16 where there is no bf16")
    peak_fp8_flop_per_s = number("FLOP/s", "dense peak in 8-bit floating point")
    peak_fp4_flop_per_s = number("FLOP/s", "dense peak in 4-bit floating point")
    accelerator_memory_bytes = measured(
        "accelerator_memory_bytes", "printed GB times 1e9; makers often write GB for GiB"
    )
    memory_type = text("kind of memory")
    memory_bytes_per_s = measured("memory_bytes_per_s")
    tdp_w = number("W", "thermal design power of the chip or module")
    tdp_estimated_w = number("W", "design power as estimated by others, where the maker states none")
    accelerator_power_w = measured("accelerator_power_w", "as its maker measured it in production")
    scale_up_both_directions_bytes_per_s = number("byte/s", "fast fabric per chip, both directions added")
    scale_up_bytes_per_s = measured("scale_up_bytes_per_s", "half of both directions; empty if that is unknown")
    scale_up_domain = measured("scale_up_domain")
    torus_axes = measured("torus_axes", "empty where switches join the chips, or where it is unknown")
    torus_side = measured("torus_side")
    confidence = text("how well the sources agree", required=True, one_of=("high", "medium", "low"))
    confirmed_by = sources("further sources that were compared")


class AcceleratorStatements(Stated):
    """Accelerators as documents state them.

    A row is the statement of one document about one chip, family of chips or part beside them. The checked figures are
    in the table `accelerators`; here rates stay as printed, with sparsity where the document counts it.
    """

    chip = key("name of the chip, family or part in this table", entity=True)
    accelerator = reference("accelerators.accelerator", "the chip of the accelerators table, where it is one")
    name = text("name as the source writes it", required=True)
    vendor = text("who designs it")
    kind = text("type of part", required=True)
    accelerator_memory_bytes = measured("accelerator_memory_bytes", "printed GB times 1e9")
    memory_stated = text("memory as the source writes it")
    memory_bytes_per_s = measured("memory_bytes_per_s")
    peak_printed_flop_per_s = number("FLOP/s", "16-bit rate exactly as printed, dense or with sparsity")
    peak_printed = text("name and definition of that rate in the source")
    fp8_stated = text("statement of the source about 8-bit rates")
    tdp_w = number("W", "thermal design power")
    accelerator_power_w = measured("accelerator_power_w")
    interconnect_stated = text("links of the part as the source writes them")
    rental_usd_per_accelerator_h_low = measured("rental_usd_per_accelerator_h", "lower end")
    rental_usd_per_accelerator_h_high = measured("rental_usd_per_accelerator_h", "upper end")
    price_usd_low = number("USD", "lower end of a purchase price, nominal")
    price_usd_high = number("USD", "upper end of a purchase price, nominal")
    relative_stated = text("how the source compares it with another part")
    availability_stated = text("whether it can be had, as the source writes it")
    role = text("purpose according to the source")


class ClusterFields(dy.Schema):
    """Columns of the tables about clusters."""

    name = text("name as the source writes it", required=True)
    operator = text("whose models are trained on it, or who owns it")
    organisation = reference("organisations.organisation", "that operator in the organisations table")
    partner = text("who builds, owns or runs it with them")
    accelerator = reference("accelerators.accelerator", "chip, where the source names exactly one")
    accelerator_stated = text("chips as the source writes them")
    accelerators = measured("accelerators")
    accelerators_low = measured("accelerators", "lower end of a range")
    accelerators_high = measured("accelerators", "upper end of a range")
    accelerators_stated = text("qualifier of the count in the source: about, up to, target")
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
    cluster_peak_printed = text("the unit as printed, and its error")
    storage_stated = text("storage as the source writes it")
    it_power_w = measured("it_power_w")
    pue = measured("pue")
    facility_power_w = measured("facility_power_w")
    power_remark = text("why its power per chip lies outside 1 to 2.5 times the design power of the chips")
    capital_usd_low = number("USD", "lower end of the cost to build it, nominal")
    capital_usd_high = number("USD", "upper end of the cost to build it, nominal")
    build_days = number("d", "time to build it")
    site = text("where it stands, as the source writes it")
    purpose = text("models trained on it")
    site_key = reference("sites.site", "site of the sites table on which it stands")
    country = reference("country_grids.country", "country of the country_grids table")
    latitude = number("degree", "north of the equator, where more than the country or region is known", positive=False)
    longitude = number("degree", "east of Greenwich", positive=False)
    sector = text("who pays for it: private, public or both")
    status = text(
        "phase: under construction is the next step of a site on which building was seen, planned any later step",
        one_of=("existing", "under construction", "planned", "decommissioned"),
    )
    certainty = text("how sure the source is that it is as described", one_of=("confirmed", "likely", "unlikely"))
    first_operational = day("day on which it first ran at this size")
    planned_for = text("when it is to run, as of the date of the row, in the source's words")
    h100_equivalents = number("1", "chips as so many H100, by their 8-bit or 16-bit rate, as the source computes it")
    superseded_by = text("the cluster that took its place, in the source's words")
    address = address()


class ClusterStatements(ClusterFields, Stated):
    """Statements about clusters.

    A row is the statement of one source, in one place, about one cluster or pod. Sources differ by date, by the counted
    unit and by error; rows are never merged. The table `clusters` picks from them.
    """

    cluster = key("name of the cluster in all tables", entity=True)
    example = text("why the row is an example and no cluster that stands somewhere, and in no row of `clusters`")
    power_w_low = number("W", "lower end of a power that the source does not call IT or facility")
    power_w_high = number("W", "upper end of such a power; empty if the source states 'more than'")
    power_reported_w = number("W", "power that the operator or the press states, whether of chips or of the site")


class ClusterChips(Sourced):
    """Chips of clusters, by kind.

    A row is the count of one kind of chip that stood, or is to stand, in one cluster on one day: the tranches of a site
    added up. The H100 equivalents of `site_statements` on the same day confirm the sums within 5 %, except where the
    power remark of the cluster states otherwise.
    """

    cluster_chip = key("statement and kind of chip", unique=True, entity=True)
    of_statement = key(
        "statement about the cluster that counts all its kinds together",
        pattern=STATEMENT,
        references="cluster_statements.statement",
    )
    cluster = reference("clusters.cluster", "the cluster", required=True)
    accelerator = reference("accelerators.accelerator", "chip, where it is one of the accelerators table")
    accelerator_stated = text("kind of chip as the source writes it", required=True)
    accelerators = measured("accelerators", "of this kind")
    status = text("phase, as in `clusters`", required=True, one_of=("existing", "under construction", "planned"))


class Clusters(ClusterFields, Entity):
    """Clusters.

    A row is one cluster or pod with the best value of each field, and one power. `statements` holds the source, the
    date and the reason of each choice, and `cluster_statements` all other statements about power.
    """

    cluster = key("name of the cluster in all tables", unique=True, entity=True)
    power_basis = text(
        "where `facility_power_w` comes from: reported power counts where it is 1 to 2.5 times the chips' design power",
        one_of=tuple(BASES.values()),
    )
    chips_power_w = number("W", "design power of all its chips, estimated where no maker states it")
    planned_facility_power_w = number("W", "largest facility power that is under construction or planned")
    planned_accelerators = number("1", "largest count of chips that is under construction or planned")
    facility_power_computed_w = number(
        "W",
        "computed, not reported: (design power of all chips + accelerators x share of a node's other power) x PUE, "
        "the last two from the table `defaults` where they are not stated",
    )


class ChipCounts(Sourced):
    """Chips in the world.

    A row is how many chips of one kind had been sold, or how many of one designer one owner held, at the end of a
    quarter, with the interval of the estimate; chips of all owners, or of all kinds, do not add up to one another.
    Estimated from revenues by Epoch AI, "AI Chip Sales", https://epoch.ai/data/ai-chip-sales, MIT licence, copyright
    2025 Epoch AI.
    """

    chip_count = key("designer, kind or owner, and month", unique=True, entity=True)
    series = text("counted unit", required=True, one_of=("chips of a kind", "chips of an owner"))
    designer = text("who designs the chips", required=True)
    owner = text("who holds them")
    accelerator = reference("accelerators.accelerator", "chip, where it is one of the accelerators table")
    accelerator_stated = text("kind of chip as the source writes it")
    day = day("last day of the count", required=True)
    accelerators_p05 = number("1", "chips, 5th percentile of the estimate")
    accelerators_median = number("1", "chips, median")
    accelerators_p95 = number("1", "chips, 95th percentile")
    h100_equivalents_p05 = number("1", "chips as so many H100, 5th percentile")
    h100_equivalents_median = number("1", "chips as so many H100, median")
    h100_equivalents_p95 = number("1", "chips as so many H100, 95th percentile")
    accelerators_power_w_p05 = number("W", "design power of the chips alone, 5th percentile")
    accelerators_power_w_median = number("W", "design power of the chips alone, median")
    accelerators_power_w_p95 = number("W", "design power of the chips alone, 95th percentile")


class SiteFields(dy.Schema):
    """Columns of the tables about sites."""

    name = text("name as the source writes it", required=True)
    project = text("project it belongs to")
    operator = text("who owns it")
    organisation = reference("organisations.organisation", "that owner in the organisations table")
    users = text("who uses it")
    country = reference("country_grids.country", "country of the country_grids table")
    area = text("state or country whose price of electricity it pays, as the table of electricity writes it")
    place = text("where it stands, as the source writes it")
    accelerator_stated = text("chips as the source writes them")
    status = text("whether this is so or is to be", one_of=("existing", "planned"))
    buildings = number("1", "buildings that run")
    it_power_w = measured("it_power_w")
    facility_power_w = measured("facility_power_w")
    h100_equivalents = number("1", "chips as so many H100, by their 8-bit rate")
    capital_2025_usd = number("USD", "cost of buildings and chips so far, in US dollars of 2025")
    water_m3_per_day = number("m3/day", "water it may draw")
    address = address()


class SiteStatements(SiteFields, Stated):
    """Statements about sites.

    A row is the statement of one source about one site of data centres at one time, past or planned. Chips, power and
    cost are those of the whole site. From Epoch AI, "Frontier Data Centers", https://epoch.ai/data/data-centers, CC BY
    4.0; columns were selected, renamed and converted.
    """

    site = key("name of the site in all tables", entity=True)


class Sites(SiteFields, Entity):
    """Sites.

    A row is one site of data centres with the newest value of each field that is not merely planned.
    """

    site = key("name of the site in all tables", unique=True, entity=True)
    planned_facility_power_w = number("W", "largest power that is planned for it")
    planned_for = text("when that power is planned")
    electricity_price = reference("electricity.electricity_price", "newest price of electricity of its area")


class Nodes(Stated):
    """Nodes, racks and pods.

    A row is the statement of one source about one kind of server, rack, pod or cluster product. Rates of compute stay
    as printed; `compute_printed` holds number format and sparsity as far as the source states them.
    """

    node = key("name of the server, rack or pod in this table", entity=True)
    name = text("name as the source writes it", required=True)
    level = text("level: node, rack, pod, cluster product", required=True)
    accelerator = reference("accelerators.accelerator", "chip, where the source names exactly one")
    accelerator_stated = text("chips as the source writes them")
    accelerators = measured("accelerators", "in one unit")
    memory_bytes = number("byte", "memory of all its accelerators, printed GB times 1e9")
    memory_stated = text("that memory as the source writes it")
    scale_up_stated = text("fast fabric inside as the source writes it")
    switches_stated = text("switches of that fabric")
    compute_printed_flop_per_s = number("FLOP/s", "rate of the whole unit exactly as printed, even where it is wrong")
    compute_printed = text("that rate as the source writes it")
    cpu = text("processors of the host")
    host_memory_bytes = number("byte", "memory of the host, printed TB times 1e12")
    host_memory_stated = text("that memory as the source writes it")
    local_storage_bytes = number("byte", "storage inside, printed TB times 1e12")
    local_storage_stated = text("that storage as the source writes it")
    network_stated = text("links to other nodes as the source writes them")
    node_power_w_low = measured("node_power_w", "lower end, of the unit in `level`")
    node_power_w_high = measured("node_power_w", "upper end; empty if the source states 'more than'")
    cooling = text("how it is cooled")
    weight_kg = number("kg", "weight")
    price_usd_low = number("USD", "lower end of a purchase price, nominal")
    price_usd_high = number("USD", "upper end of a purchase price, nominal")


class Networks(Stated):
    """Networks.

    A row is the statement of one source about one fabric, or its requirement for a network at one size. Rates count one
    direction unless `bandwidth_stated` differs; `scope` is per chip, node, rack or fabric.
    """

    network = key("name of the fabric or requirement in this table", entity=True)
    name = text("name as the source writes it", required=True)
    user = text("who runs it")
    technology = text("technology as the source writes it")
    scope = text("connected parts, or reference of the rate")
    link_bytes_per_s = number("byte/s", "one link, one direction: printed bit/s over 8")
    links = number("1", "links of the unit in `scope`")
    bandwidth_bytes_per_s = number("byte/s", "all links of the unit in `scope`")
    bandwidth_stated = text("rate as the source writes it")
    latency_s_low = number("s", "lower end of the time for a small message")
    latency_s_high = number("s", "upper end of that time")
    topology = text("how it is wired")
    advantages = text("advantages according to the source")
    limits = text("limits according to the source")


class Fabrics(Sourced):
    """Network fabrics.

    A row is one fabric of switches of one size, with the counts and the cost that its source prints.
    """

    fabric = key("name of the fabric in this table", unique=True, entity=True)
    name = text("name for reading", required=True)
    network_topology = text("how it is wired, where it is one of the vocabulary's words")
    network_endpoints = measured("network_endpoints")
    network_planes = measured("network_planes")
    switch_ports = measured("switch_ports")
    switches = measured("switches", "as published")
    switch_links = measured("switch_links", "as published")
    circuit_switches = measured("circuit_switches", "as published")
    network_capital_usd = measured("network_capital_usd", "as published, nominal")


class StorageSystems(Stated):
    """Storage systems.

    A row is the statement of one source about one storage system, or its requirement for storage.
    """

    storage_system = key("name of the system or requirement in this table", entity=True)
    name = text("name as the source writes it", required=True)
    user = text("who runs it")
    kind = text("type of storage", required=True)
    capacity_bytes = number("byte", "capacity where the source prints a number")
    capacity_stated = text("capacity as the source writes it")
    throughput_bytes_per_s = number("byte/s", "rate of the whole system; the note distinguishes reading and writing")
    throughput_stated = text("rate as the source writes it")
    cost_share_low = share("lower end of its share of a cluster's cost")
    cost_share_high = share("upper end of that share")
    features = text("other features according to the source")


class LoaderWorkloads(Sourced):
    """Workloads of data loading.

    A row is a workload of MLPerf Storage on one emulated accelerator: the bytes that a step reads, the time it
    computes, and the rates that results of v1.0 reached, or some of v3.0. Computed from the published logs; not
    official scores.
    """

    loader_workload = key("workload and emulated accelerator", unique=True, entity=True)
    name = text("name for reading", required=True)
    emulated = text("accelerator that is emulated by waiting", required=True)
    sample_bytes = measured("sample_bytes")
    global_batch_size = measured("global_batch_size", "of one accelerator")
    inner_step_s = measured("inner_step_s", "compute of one batch")
    busy_wanted = measured("busy_wanted", "least that a result needs")
    results = number("1", "closed results")
    accelerator_read_bytes_per_s = measured("accelerator_read_bytes_per_s", "median of the results")
    accelerator_read_bytes_per_s_low = measured("accelerator_read_bytes_per_s", "least of the results")
    accelerator_read_bytes_per_s_high = measured("accelerator_read_bytes_per_s", "most of the results")


class Power(Stated):
    """Power.

    A row is one power, energy, PUE or yearly bill that one source states for one chip, node, cluster or site. A single
    number fills both ends of its range; an empty upper end means 'more than'.
    """

    power_figure = key("figure, under one name for all sources", entity=True)
    subject = text("the chip, node, cluster or site spoken about, as the source writes it", required=True)
    cluster = reference("clusters.cluster", "cluster of the clusters table")
    kind = text("power, energy or price", required=True)
    power_w_low = number("W", "lower end of a power")
    power_w_high = number("W", "upper end of a power")
    pue_low = measured("pue", "lower end")
    pue_high = measured("pue", "upper end; alone, a limit not to exceed")
    energy_kwh_low = number("kWh", "lower end of an energy")
    energy_kwh_high = number("kWh", "upper end of an energy")
    annual_electricity_cost_usd = measured("annual_electricity_cost_usd")
    monthly_electricity_cost_usd = number("USD/month", "cost of electricity per month, nominal")
    basis = text("how the source gets there")


class Cooling(Stated):
    """Cooling.

    A row is the statement of one source about one way of cooling racks, or about the cooling of one product.
    """

    cooling = key("the way of cooling, the same name in all sources", entity=True)
    approach = text("as the source writes it", required=True)
    description = text("description")
    cooling_capacity_w = measured("cooling_capacity_w", "as the source states it")
    capacity_stated = text("qualifier in the source: up to, more than")
    users = text("who uses it")
    advantage = text("advantage")
    limitation = text("limitation")
    pue = measured("pue")


class Pue(Sourced):
    """Power usage effectiveness.

    A row is the statement of an operator or a survey about its sites in a year.
    """

    entry = key("name of the row", unique=True, entity=True)
    operator = text("who runs the sites, or who asked", required=True)
    scope = text("which sites", required=True)
    pue = measured("pue")
