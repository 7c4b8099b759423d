"""Tables of what an AI factory is made of: chips as documents state them, nodes, networks, storage, power, cooling."""

from __future__ import annotations

from factorykit.datasets.schemas import Stated, key, measured, number, reference, share, text


class AcceleratorStatements(Stated):
    """Accelerators as documents state them.

    A row is what one document says about one chip, family of chips or part beside them. The checked figures are in the
    table `accelerators`; here rates stay as printed, with sparsity where the document counts it.
    """

    chip = key("name of the chip, family or part in this table", entity=True)
    accelerator = reference("accelerators.accelerator", "the chip of the accelerators table, where it is one")
    name = text("name as the source writes it", required=True)
    vendor = text("who designs it")
    kind = text("what sort of part", required=True)
    memory_bytes = number("byte", "memory on the package, printed GB times 1e9")
    memory_stated = text("memory as the source writes it")
    memory_bytes_per_s = number("byte/s", "peak rate of that memory")
    peak_printed_flop_per_s = number("FLOP/s", "16-bit rate exactly as printed, dense or with sparsity")
    peak_printed = text("what the source calls that rate, and what it is")
    fp8_stated = text("what the source says about 8-bit rates")
    tdp_w = number("W", "thermal design power")
    accelerator_power_w = measured("accelerator_power_w")
    interconnect_stated = text("links of the part as the source writes them")
    rental_usd_per_accelerator_h_low = measured("rental_usd_per_accelerator_h", "lower end")
    rental_usd_per_accelerator_h_high = measured("rental_usd_per_accelerator_h", "upper end")
    price_usd_low = number("USD", "lower end of a purchase price, nominal")
    price_usd_high = number("USD", "upper end of a purchase price, nominal")
    relative_stated = text("how the source compares it with another part")
    availability = text("whether it can be had, as the source writes it")
    role = text("what the source says it is for")


class Nodes(Stated):
    """Nodes, racks and pods.

    A row is what one source says about one kind of server, rack, pod or cluster product. Rates of compute stay as
    printed; `compute_printed` says number format and sparsity as far as the source does.
    """

    node = key("name of the server, rack or pod in this table", entity=True)
    name = text("name as the source writes it", required=True)
    level = text("what it is: node, rack, pod, cluster product", required=True)
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
    node_power_w_high = measured("node_power_w", "upper end; empty if the source says 'more than'")
    cooling = text("how it is cooled")
    weight_kg = number("kg", "weight")
    price_usd_low = number("USD", "lower end of a purchase price, nominal")
    price_usd_high = number("USD", "upper end of a purchase price, nominal")


class Networks(Stated):
    """Networks.

    A row is what one source says about one fabric, or what it asks of a network at one size. Rates count one direction
    unless `bandwidth_stated` says otherwise; `scope` says whether per chip, node, rack or fabric.
    """

    network = key("name of the fabric or requirement in this table", entity=True)
    name = text("name as the source writes it", required=True)
    user = text("who runs it")
    technology = text("technology as the source writes it")
    scope = text("what it connects, or what the rate is per")
    link_bytes_per_s = number("byte/s", "one link, one direction: printed bit/s over 8")
    links = number("1", "links of the unit in `scope`")
    bandwidth_bytes_per_s = number("byte/s", "all links of the unit in `scope`")
    bandwidth_stated = text("rate as the source writes it")
    latency_s_low = number("s", "lower end of the time for a small message")
    latency_s_high = number("s", "upper end of that time")
    topology = text("how it is wired")
    advantages = text("what the source holds in its favour")
    limits = text("what the source holds against it")


class StorageSystems(Stated):
    """Storage systems.

    A row is what one source says about one storage system, or what it asks of storage.
    """

    storage_system = key("name of the system or requirement in this table", entity=True)
    name = text("name as the source writes it", required=True)
    user = text("who runs it")
    kind = text("what sort of storage", required=True)
    capacity_bytes = number("byte", "capacity where the source prints a number")
    capacity_stated = text("capacity as the source writes it")
    throughput_bytes_per_s = number("byte/s", "rate of the whole system; the note tells reading, writing or neither")
    throughput_stated = text("rate as the source writes it")
    cost_share_low = share("lower end of its share of a cluster's cost")
    cost_share_high = share("upper end of that share")
    features = text("what else the source says of it")


class Power(Stated):
    """Power.

    A row is one power, energy, PUE or yearly bill that one source states for one chip, node, cluster or site. A single
    number fills both ends of its range; an empty upper end means 'more than'.
    """

    power_figure = key("what is stated, the same name in all sources", entity=True)
    subject = text("the chip, node, cluster or site spoken about, as the source writes it", required=True)
    cluster = reference("clusters.cluster", "cluster of the clusters table")
    what = text("which power, energy or price it is", required=True)
    power_w_low = number("W", "lower end of a power")
    power_w_high = number("W", "upper end of a power")
    pue_low = measured("pue", "lower end")
    pue_high = measured("pue", "upper end; alone, a limit not to exceed")
    energy_kwh_low = number("kWh", "lower end of an energy")
    energy_kwh_high = number("kWh", "upper end of an energy")
    annual_electricity_cost_usd = measured("annual_electricity_cost_usd")
    monthly_electricity_cost_usd = number("USD/month", "cost of electricity per month, nominal")
    basis = text("how the source gets there")
