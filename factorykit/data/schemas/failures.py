"""Tables of failures, their causes, recovery and checkpoint tiers."""

from __future__ import annotations

import dataframely as dy

from factorykit.data.schemas.fields import Sourced, Stated, key, measured, number, reference, share, text


class Failures(Stated):
    """Failures.

    A row is the statement of one source about how often, or how, something interrupts a run or fails in a fleet. Counts
    are as printed; ``share_printed`` keeps the source's percentage as a fraction even where its own counts disagree.
    """

    failure = key("failure and its place, under one name for all sources", entity=True)
    subject = text("the run, fleet or rule spoken about, as the source writes it", required=True)
    run = reference("runs.run", "run of the runs table")
    cluster = reference("clusters.cluster", "cluster of the clusters table")
    cause = text("failing part, or counted event", required=True)
    category = text("class of the cause, as the source groups it")
    kind = text(
        "how the number came about", required=True, one_of=("measured", "modelled", "projected", "estimated", "said")
    )
    accelerators = measured("accelerators")
    observed_nodes = number("1", "servers watched, where a source counts servers")
    window_days = number("d", "time over which was counted")
    count = number("1", "events counted")
    count_stated = text("qualifier of the count in the source: about, at least")
    share_printed = share("share of all events as printed")
    lost_share_printed = share("share of the lost accelerator time as printed")
    failures_per_day = measured("failures_per_day")
    expected_failures = measured("expected_failures")
    cluster_mtbf_s = measured("cluster_mtbf_s")
    accelerator_mtbf_s = measured("accelerator_mtbf_s")
    node_failures_per_node_day = measured("node_failures_per_node_day")
    goodput = measured("goodput", "effective training time as the source defines it")
    goodput_low = measured("goodput", "where the source states 'more than'")
    lost_work_s = measured("lost_work_s")
    restart_s = measured("restart_s")
    detection_s = number("s", "time until a failure is noticed and understood")
    rate_stated = text("how often, in the source's words")


class Reliability(Sourced):
    """Published reliability figures.

    A row is one figure of one study, in the unit of the row; the note says through which readings it was verified.
    """

    reliability_figure = key("study and figure", unique=True, entity=True)
    study = text("study", required=True)
    organisation = text("whose machines they are", required=True)
    system = text("cluster, fleet or run", required=True)
    accelerator = reference("accelerators.accelerator", "chip, where the source names exactly one")
    accelerator_stated = text("chips as the source writes them")
    accelerators = measured("accelerators")
    window_days = number("d", "time over which was counted")
    metric = text("stated metric", required=True)
    value = number("", "its value, in the unit of the row", required=True, positive=False)
    unit = text("unit of the value", required=True)
    value_stated = text("qualifier in the source: about, at least", one_of=("about", "at least"))
    kind = text("how the number came about", required=True, one_of=("measured", "projected"))


class RootCauses(Sourced):
    """Root causes of failures.

    A row is one cause in one study: its count, the uncertainty of the count, and its share. The interval is the exact
    one of 95 % for a Poisson count. `share` follows from the counts, `share_printed` is the study's own.
    """

    root_cause = key("study and cause", unique=True, entity=True)
    study = text("study", required=True)
    organisation = text("whose machines they are", required=True)
    cause = text("cause as the study names it", required=True)
    category = text("class of the cause, as the study groups it")
    accelerators = measured("accelerators")
    window_days = number("d", "time over which was counted")
    count = number("1", "events counted")
    count_low = number("1", "lower end of the interval of the expected count")
    count_high = number("1", "upper end of that interval")
    share = share("count over all events of the study")
    share_printed = dy.Float64(
        nullable=True, min=0.0, max=1.0, description="share as the study prints it", metadata={"unit": "1"}
    )


class LifetimeFits(Sourced):
    """Distributions fitted to records of single failures.

    A row is one distribution fitted here, by maximum likelihood, to one published record that is not shipped:
    ``benchmarks/fit_lifetimes.py`` makes the rows again from the publisher's file. Limits are of 95 %.
    """

    lifetime_fit = key("record, kind of time and distribution", unique=True, entity=True)
    record = text("whose failures they are", required=True)
    time = text("measured time", required=True, one_of=("between failures", "of repair", "of life"))
    distribution = text("fitted distribution", required=True, one_of=("exponential", "weibull", "lognormal"))
    events = number("1", "times that ended with the event")
    censored = number("1", "times that were still running when the record ended")
    left_out = number("1", "times of length zero, which none of these distributions has")
    mean_s = number("s", "mean of the distribution")
    scale_s = number("s", "mean of the exponential, scale of Weibull, median of the lognormal")
    scale_low_s = number("s", "lower limit of the scale")
    scale_high_s = number("s", "upper limit of the scale")
    parameter = number("1", "shape of Weibull, sigma of the lognormal; empty for the exponential")
    parameter_low = number("1", "lower limit of the parameter")
    parameter_high = number("1", "upper limit of the parameter")
    log_likelihood = number("1", "of times in seconds", positive=False)
    aic_difference = number("1", "Akaike's criterion less that of the best distribution")
    largest_misfit = number("1", "how far the survival of the distribution is at most from that of Kaplan and Meier")


class LifetimeCurves(Sourced):
    """Survival curves of records of single failures.

    A row is one point of the curve of Kaplan and Meier of one published record that is not shipped, with its limits of
    95 %: ``benchmarks/fit_lifetimes.py`` makes the rows again from the publisher's file.
    """

    lifetime_point = key("record, kind of time and number of the point", unique=True, entity=True)
    record = text("whose failures they are", required=True)
    time = text("measured time", required=True, one_of=("between failures", "of repair", "of life"))
    span_s = number("s", "time")
    survival = share("share that lasts longer")
    survival_low = share("its lower limit")
    survival_high = share("its upper limit")


class Recovery(Stated):
    """Recovery.

    A row is the statement of one source about one way to survive failures: overhead, time to recover, benefit.
    """

    recovery_strategy = key("name of the strategy in this table", entity=True)
    name = text("strategy as the source writes it", required=True)
    description = text("description")
    implementation = text("how it is done")
    overhead_share_low = share("lower end of the overhead, as a share of `overhead_of`")
    overhead_share_high = share("upper end of the overhead")
    overhead_of = text("reference of the overhead")
    restart_s_low = measured("restart_s", "lower end")
    restart_s_high = measured("restart_s", "upper end")
    frequency_stated = text("how often, as the source writes it")
    benefit = text("benefit according to the source")


class CheckpointTiers(Stated):
    """Checkpoints: tiers, sizes and intervals.

    A row is the statement of one source about one tier of checkpoint storage, the size of one checkpoint, or the cost
    of one interval. `kind` distinguishes them.
    """

    checkpoint_tier = key("name of the tier, size or interval in this table", entity=True)
    name = text("name in the source", required=True)
    kind = text("tier, size, frequency, cost, contents or retention", required=True)
    tier = number("1", "number of the tier, the fastest first")
    media = text("storage medium")
    checkpoint_interval_s_low = measured("checkpoint_interval_s", "lower end")
    checkpoint_interval_s_high = measured("checkpoint_interval_s", "upper end")
    storage_write_bytes_per_s = measured("storage_write_bytes_per_s")
    survives = text("which failure it survives")
    checkpoint_bytes = measured("checkpoint_bytes")
    checkpoint_stated = text("size, or its formula, as the source writes it")
    overhead_share_low = share("lower end of the share of time that writing costs")
    overhead_share_high = share("upper end of that share")
    lost_work_s_high = measured("lost_work_s", "the most, or the mean where the name states it")
    storage_bytes_per_day = number("byte/d", "written per day")
