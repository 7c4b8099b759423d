"""Tables of how an AI factory is run: who, with which methods, tools and rules, and what is expected to come."""

from __future__ import annotations

import dataframely as dy

from factorykit.datasets.schemas import Sourced, Stated, key, measured, number, reference, share, text


class Organisations(Stated):
    """Organisations.

    A row is what one source says an organisation is: a lab, a vendor, a cloud, a partner. The key names it in all
    tables.
    """

    organisation = key("name of the organisation in all tables", entity=True)
    name = text("name as the source writes it", required=True)
    role = text("what it is, as the source sees it", required=True)


class Aliases(Sourced):
    """Aliases.

    A row is one name under which one thing goes, and its key in all tables. Joined on `alias`, a name as it is written
    becomes a key; `identify` does the same for a single name and is not particular about case, dashes and makers.
    """

    kind = dy.String(
        primary_key=True,
        regex="^(accelerator|organisation|cluster|model)$",
        description="what sort of thing",
    )
    alias = dy.String(
        primary_key=True,
        nullable=False,
        min_length=1,
        description="name as somebody writes it; one name may stand for things of several sorts",
        metadata={"entity": True},
    )
    key = key("key of the accelerators, organisations or clusters table; for a model, of the runs table")


class CloudProviders(Stated):
    """Cloud providers.

    A row is what one source says about one provider of accelerators: tier, offer, price and judgement.
    """

    cloud_provider = reference("organisations.organisation", "who rents them out", required=True, entity=True)
    name = text("name as the source writes it", required=True)
    tier = text("class in which the source puts it", required=True)
    offer = text("what it offers, as the source writes it")
    price_stated = text("price or saving as the source writes it")
    advantages = text("what the source holds in its favour")
    limits = text("what the source holds against it")


class CheckpointTiers(Stated):
    """Checkpoints: tiers, sizes and intervals.

    A row is what one source says about one tier of checkpoint storage, the size of one checkpoint, or the cost of one
    interval. `kind` says which.
    """

    checkpoint_tier = key("name of the tier, size or interval in this table", entity=True)
    name = text("what it is, as the source writes it", required=True)
    kind = text("tier, size, frequency, cost, contents or retention", required=True)
    tier = number("1", "number of the tier, the fastest first")
    media = text("what it is stored on")
    checkpoint_interval_s_low = measured("checkpoint_interval_s", "lower end")
    checkpoint_interval_s_high = measured("checkpoint_interval_s", "upper end")
    storage_write_bytes_per_s = measured("storage_write_bytes_per_s")
    survives = text("which failure it survives")
    checkpoint_bytes = measured("checkpoint_bytes")
    checkpoint_stated = text("size, or its formula, as the source writes it")
    overhead_share_low = share("lower end of the share of time that writing costs")
    overhead_share_high = share("upper end of that share")
    lost_work_s_high = measured("lost_work_s", "the most, or the mean where the name says so")
    storage_bytes_per_day = number("byte/d", "written per day")


class Recovery(Stated):
    """Recovery.

    A row is what one source says about one way to survive failures: overhead, time to recover, benefit.
    """

    recovery_strategy = key("name of the strategy in this table", entity=True)
    name = text("strategy as the source writes it", required=True)
    description = text("what it does")
    implementation = text("how it is done")
    overhead_share_low = share("lower end of what it costs, as a share of `overhead_of`")
    overhead_share_high = share("upper end of what it costs")
    overhead_of = text("what the overhead is a share of")
    restart_s_low = measured("restart_s", "lower end")
    restart_s_high = measured("restart_s", "upper end")
    frequency_stated = text("how often, as the source writes it")
    benefit = text("what the source says it gains")


class Schedulers(Stated):
    """Schedulers.

    A row is what one source says about one scheduler, one thing a scheduler must do, or a level of utilisation.
    """

    scheduler = key("name of the scheduler, requirement or level in this table", entity=True)
    name = text("name as the source writes it", required=True)
    kind = text("scheduler, requirement or utilisation level", required=True)
    properties = text("what it does or asks")
    used_by = text("who uses it, as the source says")
    utilisation_low = share("lower end of the share of accelerators in use")
    utilisation_high = share("upper end of that share")


class SoftwareStack(Stated):
    """Software stack.

    A row is the options that one source names for one layer of software, and what it recommends.
    """

    layer = key("name of the layer in this table", entity=True)
    name = text("layer as the source writes it", required=True)
    options = text("what it names, separated by commas", required=True)
    recommendation = text("what it recommends")


class Parallelism(Stated):
    """Parallelism and communication.

    A row is what one source says about one kind of parallelism, its traffic, a schedule, or a code base.
    """

    technique = key("name of the technique in this table", entity=True)
    name = text("name as the source writes it", required=True)
    kind = text("what sort of statement", required=True)
    pattern = text("what is done or sent")
    data_volume = text("how much is sent, as the source writes it")
    frequency = text("how often")
    example = text("an example or a size it is for")


class Functions(Stated):
    """Capabilities that the documents define or imply.

    A row is one thing the documents compute, tabulate or decide, with its inputs, its outputs and the numbers that come
    out. The expected values are in the table `expected_values`.
    """

    function = key("name of the capability: document and number", entity=True)
    name = text("what it does", required=True)
    defined_as = text("code, table, rule or prose", required=True)
    inputs = text("what it takes")
    outputs = text("what it gives")
    expected = text("numbers that come out, in words")
    caveat = text("what is wrong with it, or what to mind")
    computed_by = text(
        "what answers it here: formulas by name, calls as fk.name, tables as table:name, separated by '; '",
        required=True,
    )


class ExpectedValues(Stated):
    """Expected values.

    A row is one case of one capability: what the document's own rule gives, what the document prints, and what comes
    out once it is put right. Numbers are in the row's `unit`; a single number fills both ends of its range.
    """

    expected_value = key("capability and case", entity=True)
    function = reference("functions.function", "the capability", required=True)
    case = text("the case as the source writes it", required=True)
    inputs = text("what goes in")
    as_written_low = number("", "what the document's own rule gives, lower end", positive=False)
    as_written_high = number("", "what the document's own rule gives, upper end", positive=False)
    printed = text("what the document prints")
    corrected_low = number("", "what is right, lower end", positive=False)
    corrected_high = number("", "what is right, upper end", positive=False)
    unit = text("unit of the numbers, as the inventory writes it")
    recipe_as_written = text("how the document's own rule is repeated, in the language of the audit")
    recipe_corrected = text("how the right number is computed, in the language of the audit")
