"""Tables of how clusters are run: workloads, utilization, schedulers, software, people's tasks."""

from __future__ import annotations

import dataframely as dy
import polars as pl

from factorykit.data.schemas.fields import Sourced, Stated, key, measured, number, share, text


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
    utilization_high = measured("utilization", "upper end; empty if the source states 'more than'")


class PracticeFigures(Sourced):
    """Published figures of practices.

    A row is one figure that a source states of a run, a test or a site with or without a practice, in the unit of its
    quantity: a number, a range or a bound. The recipe computes it from other statements, as in the audit; it
    is empty where nothing that is published leads to the figure.
    """

    practice_figure = key("practice and figure", unique=True, entity=True)
    name = text("name for reading", required=True)
    machines = text("whose machines they are", required=True)
    group = text(
        "subject of the figure",
        required=True,
        one_of=("goodput", "failures", "spares", "save", "start", "tenancy", "bring-up"),
    )
    practice = text("practice", required=True)
    setting = text("whether it is done", required=True, one_of=("with", "without"))
    quantity = key("quantity of the vocabulary", vocabulary=True)
    accelerators = measured("accelerators")
    stated = number("", "the number, in the unit of the vocabulary", positive=False)
    stated_low = number("", "lower end of a range, or 'at least'", positive=False)
    stated_high = number("", "upper end of a range, or 'at most'", positive=False)
    kind = text("how the figure came about", required=True, one_of=("measured", "modelled", "specified"))
    recipe = text("how the figure is computed here, as a range where its inputs are ranges")

    @dy.rule()
    def a_figure_states_a_number_or_a_bound(cls) -> pl.Expr:  # noqa: N805
        """Refuse a row that states nothing."""
        return pl.any_horizontal(pl.col("stated", "stated_low", "stated_high").is_not_null())


class Schedulers(Stated):
    """Schedulers.

    A row is the statement of one source about one scheduler, one duty of a scheduler, or a level of utilisation.
    """

    scheduler = key("name of the scheduler, requirement or level in this table", entity=True)
    name = text("name as the source writes it", required=True)
    kind = text("scheduler, requirement or utilisation level", required=True)
    properties = text("properties and requirements")
    used_by = text("users according to the source")
    utilisation_low = share("lower end of the share of accelerators in use")
    utilisation_high = share("upper end of that share")


class SoftwareStack(Stated):
    """Software stack.

    A row is the options that one source names for one layer of software, and its recommendation.
    """

    layer = key("name of the layer in this table", entity=True)
    name = text("layer as the source writes it", required=True)
    options = text("options, separated by commas", required=True)
    recommendation = text("recommendation")


class Functions(Stated):
    """Capabilities that the documents define or imply.

    A row is one result of the documents, with its inputs, its outputs and the numbers that come out. The expected
    values are in the table `expected_values`.
    """

    function = key("name of the capability: document and number", entity=True)
    name = text("description", required=True)
    defined_as = text("code, table, rule or prose", required=True)
    inputs = text("inputs")
    outputs = text("outputs")
    expected = text("numbers that come out, in words")
    caveat = text("errors or caveats")
    computed_by = text(
        "counterparts in factorykit: formulas by name, calls as fk.name, tables as table:name, separated by '; '",
        required=True,
    )


class LaunchOptions(Sourced):
    """Launch options.

    A row is an option of the command that starts a training framework or an inference engine, for one setting of a
    plan. Braces hold quantities, or arithmetic of them. Of the rows of a framework, in this order, those whose
    condition holds make up the command; a row without an option states that the setting is that of the framework.
    """

    launch_option = key("framework and number", unique=True, entity=True)
    framework = key("framework or engine")
    quantity = key("quantity of the vocabulary that it expresses")
    condition = text("when it is given: quantity = value or quantity >= value, several with ;")
    option = text("text of the option")
