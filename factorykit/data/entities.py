"""Tables of entities: one row per entity, with the best value of each field and its source.

A statement is a row of one of the tables named in `KINDS`. The table `statements` has one row per statement and field.
For each field of an entity one statement is picked, by the kind of its source and then by date. The same rule serves
the build and the tables as of an earlier month.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import polars as pl

from factorykit.data import history

KINDS: Final = {
    "clusters": ("cluster_statements", "cluster"),
    "sites": ("site_statements", "site"),
    "models": ("model_statements", "model"),
    "runs": ("run_statements", "run"),
    "organisations": ("organisation_statements", "organisation"),
}
"""For each table of entities: its table of statements, and the column with the key of the entity."""
FIELD_GROUPS: Final = {
    "clusters": (
        (
            *("accelerators", "accelerators_low", "accelerators_high", "accelerators_stated", "accelerator"),
            *("accelerator_stated", "memory_stated", "nodes", "nodes_stated", "h100_equivalents", "first_operational"),
        ),
        ("facility_power_w", "it_power_w", "pue", "power_remark"),
        ("power_w_low", "power_w_high"),
        ("capital_usd_low", "capital_usd_high"),
        ("latitude", "longitude"),
        ("status", "planned_for"),
    ),
    "sites": (("facility_power_w", "it_power_w", "h100_equivalents", "capital_2025_usd", "status", "buildings"),),
    "runs": (
        ("accelerators", "accelerators_low", "accelerators_high"),
        ("accelerator", "accelerator_stated"),
        ("wall_days", "wall_days_low", "wall_days_high", "duration_stated"),
    ),
}
"""Fields that are picked together: all of a group come from one statement, chosen by the first field."""
FLOP_PER_WEIGHT_AND_TOKEN: Final = 6.0
"""As in the formula `training_flop`, which data may not import."""
PLANNED_STATUS: Final = ("under construction", "planned")
"""Status of statements about the future, which give way to every other statement about the same entity."""
SOURCE_KINDS: Final = {
    **dict.fromkeys(
        ("paper", "documentation", "datasheet", "repository"), "a paper, or a page of who built or made it"
    ),
    "dataset": "a data set that names its own sources",
    "benchmark": "a benchmark's list, which counts what took part in its run",
    **dict.fromkeys(("article", "note"), "the press or a note"),
    "document": "one of the five documents, for want of another source",
}
"""Kinds of sources with their descriptions, the most trusted first."""
BASES: Final = {
    "facility_power_w": "stated for the facility",
    "plausible": "reported, of chips or facility",
    "benchmark": "power of a benchmark run times PUE",
    "computed": "computed from the chips",
}
"""Bases of the power of a cluster, the best first."""
PLANNED_COLUMNS: Final = {"planned_facility_power_w": "facility_power_w", "planned_accelerators": "accelerators"}
"""Columns of what is still to be built, which are empty where it is no more than what stands."""
MAX_POWER_RATIO: Final = 2.5
"""Facility power over the design power of the chips up to which a reported power is taken."""
NAME_COLUMNS: Final = {"runs": "model"}
"""Field with the name of an entity, where it is not ``name``; its statement gives source and locator of the row."""
STATEMENT_COLUMNS: Final = ("statement", "source", "locator", "as_of", "note", "preferred", "address")
"""Columns about the statement itself, not about the entity."""


def statements(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return all statements: one row per statement and field, the picked ones with the reason.

    Columns are those of the table `statements`.
    """
    ranks = _ranks(tables["sources"])
    parts = []
    for kind, (origin, key) in KINDS.items():
        if origin not in tables:
            continue
        frame = tables[origin].with_row_index("order")
        beside = [name for name in STATEMENT_COLUMNS if name in frame.columns]
        fields = [name for name in frame.columns if name not in (*beside, key, "order", "line_of_file")]
        for name in fields:
            is_number = frame.schema[name] == pl.Float64
            parts.append(
                frame.filter(pl.col(name).is_not_null()).select(
                    "order",
                    pl.lit(kind).alias("kind"),
                    pl.col(key).alias("entity"),
                    pl.lit(name).alias("field"),
                    (pl.col(name) if is_number else pl.lit(None, pl.Float64)).alias("value"),
                    (pl.lit(None, pl.String) if is_number else pl.col(name)).alias("words"),
                    *beside,
                )
            )
    stated = pl.concat(parts, how="diagonal").join(ranks, on="source", how="left", maintain_order="left")
    return with_preferred(stated.sort("kind", "order", maintain_order=True)).drop("order", "standing")


def _ranks(sources: pl.DataFrame) -> pl.DataFrame:
    """Return the rank of each source: the position of its kind in `SOURCE_KINDS`."""
    places = {kind: float(place) for place, kind in enumerate(SOURCE_KINDS)}
    return sources.select("source", standing=pl.col("kind").replace_strict(places, return_dtype=pl.Float64))


def with_preferred(stated: pl.DataFrame) -> pl.DataFrame:
    """Fill ``preferred`` with the reason for the value picked for each field of each entity; null for the others.

    ``preferred`` of the given rows is a manual choice, which decides among sources of the same rank.
    """
    words = list(dict.fromkeys(SOURCE_KINDS.values()))
    levels = [words.index(text) for text in SOURCE_KINDS.values()]
    level = pl.col("standing").replace_strict(
        dict(zip(map(float, range(len(levels))), levels, strict=True)), return_dtype=pl.Int64, default=len(words) - 1
    )
    leads = {kind: [group[0] for group in groups] for kind, groups in FIELD_GROUPS.items()}
    group_of = {
        f"{kind}/{name}": group[0] for kind, groups in FIELD_GROUPS.items() for group in groups for name in group
    }
    path = pl.concat_str("kind", pl.lit("/"), "field")
    lead = pl.any_horizontal((pl.col("kind") == kind) & pl.col("field").is_in(names) for kind, names in leads.items())
    rows = stated.with_columns(
        group=path.replace(group_of).str.split("/").list.last(),
        is_lead=lead,
        level=level,
        newest=pl.col("as_of").str.split("/").list.last().fill_null(""),
        is_planned=((pl.col("field") == "status") & pl.col("words").is_in(PLANNED_STATUS)),
    ).with_columns(
        has_lead=pl.col("is_lead").any().over("kind", "entity", "group", "statement"),
        planned=pl.col("is_planned").any().over("kind", "statement"),
    )
    about = ["kind", "entity", "group"]
    best = (
        rows.sort(
            *about,
            ~pl.col("has_lead"),
            pl.col("level") == len(words) - 1,
            "planned",
            "level",
            pl.col("preferred").is_null(),
            pl.col("newest"),
            "order",
            descending=[False] * 8 + [True, False],
            maintain_order=True,
        )
        .group_by(about, maintain_order=True)
        .agg(pl.col("statement").first().alias("best"), of=pl.col("statement").n_unique())
    )
    reason = (
        pl.when(pl.col("of") == 1)
        .then(pl.format("the only statement: {}", pl.col("level").replace_strict(dict(enumerate(words)))))
        .otherwise(pl.format("{}; the newest such of {}", pl.col("level").replace_strict(dict(enumerate(words))), "of"))
    )
    return (
        rows.join(best, on=about, how="left", maintain_order="left")
        .with_columns(
            preferred=pl.when(pl.col("statement") == pl.col("best")).then(pl.coalesce("preferred", reason)),
        )
        .select(stated.columns)
    )


def rows(kind: str, stated: pl.DataFrame, columns: Mapping[str, Any]) -> pl.DataFrame:
    """Return a table of entities from the picked statements, with ``columns`` in order and type.

    Subjects of statements that are examples, such as a size of run, are no entities.
    """
    _, key = KINDS[kind]
    mine = stated.filter(pl.col("kind") == kind)
    mine = mine.join(mine.filter(field="example").select("entity"), on="entity", how="anti", maintain_order="left")
    chosen = mine.filter(pl.col("preferred").is_not_null())
    entities: dict[str, dict[str, Any]] = {}
    ahead = set(mine.filter(pl.col("words").is_in(PLANNED_STATUS), field="status")["statement"])
    newest: dict[str, tuple[bool, str]] = {}
    for row in chosen.iter_rows(named=True):
        entity = entities.setdefault(row["entity"], {key: row["entity"]})
        entity[row["field"]] = row["words"] if row["value"] is None else row["value"]
        date = (row["statement"] not in ahead, (row["as_of"] or "").partition("/")[0])
        newest[row["entity"]] = max(newest.get(row["entity"], date), date)
        if row["field"] == NAME_COLUMNS.get(kind, "name"):
            entity |= {
                name: row.get(name) for name in ("statement", "source", "locator", "note", "preferred", "address")
            }
    count = dict(mine.group_by("entity").agg(pl.col("statement").n_unique()).iter_rows())
    for name, entity in entities.items():
        entity |= {"as_of": newest[name][1] or None, "statement_count": float(count[name])}
    schema = {name: pl.Float64 if column == "number" else pl.String for name, column in columns.items()}
    return pl.DataFrame([{name: entity.get(name) for name in schema} for entity in entities.values()], schema=schema)


def complete(
    entities: dict[str, pl.DataFrame], stated: pl.DataFrame, tables: Mapping[str, pl.DataFrame]
) -> dict[str, pl.DataFrame]:
    """Return the tables of entities with columns from other tables: computed power, prices, runs of models."""
    runs = _computed(entities["runs"], entities["models"])
    return entities | {
        "clusters": _powered(entities["clusters"], stated, tables),
        "sites": _priced(entities["sites"], tables),
        "models": _trained(entities["models"], runs),
        "runs": runs,
    }


def _powered(clusters: pl.DataFrame, stated: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Add the design power of the chips, the one facility power with its basis, and what is still to be built."""
    assumed = dict(tables["defaults"].select("quantity", "value").iter_rows())
    per_node = pl.col("accelerators_per_node").fill_null(assumed["accelerators_per_node"])
    chip = tables["accelerators"].select("accelerator", tdp_w=pl.coalesce("tdp_w", "tdp_estimated_w"))
    by_kind = (
        tables["cluster_chips"]
        .join(chip, on="accelerator", how="left")
        .group_by("cluster", "of_statement")
        .agg(
            pl.col("accelerators").sum(),
            by_kind=pl.when(pl.col("tdp_w").count() == pl.len()).then((pl.col("accelerators") * pl.col("tdp_w")).sum()),
        )
        .unique(["cluster", "accelerators"])
        .drop("of_statement")
    )
    is_run = pl.col("source").is_in(tables["sources"].filter(kind="benchmark")["source"].implode())
    reported = stated.filter(pl.col("preferred").is_not_null(), kind="clusters", field="power_reported_w")
    reported = reported.select(cluster="entity", reported="value", is_run=is_run)
    ahead = tables["cluster_statements"].filter(pl.col("status").is_in(PLANNED_STATUS)).group_by("cluster")
    overhead = pl.col("accelerators") * assumed["node_overhead_power_w"] / per_node
    ratio = pl.col("reported") / pl.col("chips_power_w")
    plausible = pl.when(ratio.is_between(1.0, MAX_POWER_RATIO).fill_null(value=True)).then("reported")
    pue = pl.col("pue").fill_null(assumed["pue"])
    return (
        clusters.drop("chips_power_w", "planned_facility_power_w", "planned_accelerators")
        .join(chip, on="accelerator", how="left", maintain_order="left")
        .join(by_kind, on=["cluster", "accelerators"], how="left", maintain_order="left")
        .join(reported, on="cluster", how="left", maintain_order="left")
        .join(
            ahead.agg(
                planned_facility_power_w=pl.max_horizontal("facility_power_w", "power_reported_w").max(),
                planned_accelerators=pl.col("accelerators").max(),
            ),
            on="cluster",
            how="left",
            maintain_order="left",
        )
        .with_columns(chips_power_w=pl.coalesce("by_kind", pl.col("accelerators") * pl.col("tdp_w")))
        .with_columns(
            computed=(pl.col("chips_power_w") + overhead) * pue,
            plausible=pl.when(~pl.col("is_run")).then(plausible),
            benchmark=pl.when(pl.col("is_run")).then(plausible * pue),
        )
        .with_columns(
            facility_power_w=pl.coalesce(*BASES),
            facility_power_computed_w="computed",
            power_remark=pl.when(pl.coalesce("facility_power_w", "plausible", "benchmark").is_not_null())
            .then("power_remark")
            .when(pl.col("computed") > MAX_POWER_RATIO * pl.col("chips_power_w"))
            .then(pl.lit("computed: the rest of its node draws more than its small chips")),
            power_basis=pl.coalesce(
                pl.when(pl.col(name).is_not_null()).then(pl.lit(text)) for name, text in BASES.items()
            ),
        )
        .with_columns(
            pl.when(pl.col(name) > pl.col(of).fill_null(0.0)).then(pl.col(name)).alias(name)
            for name, of in PLANNED_COLUMNS.items()
        )
        .select(clusters.columns)
    )


def _priced(sites: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Add the newest electricity price of each site's area, and the largest planned power."""
    order = {"industrial": 0, "wholesale": 1, "commercial": 2, "all customers": 3}
    prices = (
        tables["electricity"]
        .with_columns(rank=pl.col("kind").replace_strict(order, return_dtype=pl.Int64))
        .sort("rank", pl.col("year"), descending=[False, True])
        .unique("name", keep="first", maintain_order=True)
        .select(area="name", price="electricity_price")
    )
    planned = (
        tables["site_statements"]
        .filter(pl.col("status") == "planned", pl.col("facility_power_w").is_not_null())
        .sort("facility_power_w", "as_of", descending=[True, False], maintain_order=True)
        .unique("site", keep="first", maintain_order=True)
        .select("site", most="facility_power_w", when="as_of")
    )
    return (
        sites.join(prices, on="area", how="left", maintain_order="left")
        .join(planned, on="site", how="left", maintain_order="left")
        .with_columns(electricity_price="price", planned_facility_power_w="most", planned_for="when")
        .drop("price", "most", "when")
    )


def _computed(runs: pl.DataFrame, models: pl.DataFrame) -> pl.DataFrame:
    """Add the training compute of the runs whose source states none: 6 FLOP per active parameter and token."""
    active = models.select(model_key="model", model_active="active_parameters")
    joined = runs.join(active, on="model_key", how="left", maintain_order="left")
    weights = pl.coalesce("active_parameters", "model_active")
    return joined.with_columns(
        training_flop=pl.coalesce("training_flop", FLOP_PER_WEIGHT_AND_TOKEN * weights * pl.col("tokens")),
        training_flop_basis=pl.when(pl.col("training_flop").is_not_null())
        .then(pl.lit("stated"))
        .when((weights * pl.col("tokens")).is_not_null())
        .then(pl.lit("computed")),
    ).select(runs.columns)


def _trained(models: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """Add the facts of the run that trained each model; of several runs, the one with the most facts."""
    facts = ["tokens", "training_flop", "accelerator", "accelerators", "accelerator_hours", "wall_days"]
    best = (
        runs.filter(pl.col("model_key").is_not_null())
        .with_columns(known=pl.sum_horizontal(pl.col(name).is_not_null() for name in facts))
        .sort("known", descending=True, maintain_order=True)
        .unique("model_key", keep="first", maintain_order=True)
        .select("model_key", "run", *facts)
    )
    return (
        models.drop("run", *facts)
        .join(best, left_on="model", right_on="model_key", how="left", maintain_order="left")
        .select(models.columns)
    )


def as_of(kind: str, when: str, tables: Mapping[str, pl.DataFrame], columns: Mapping[str, str]) -> pl.DataFrame:
    """Return a table of entities as of the end of ``when``, from the statements up to then.

    Entities without a statement by then are omitted, as are columns from other tables.
    """
    begins = pl.col("as_of").str.split("/").list.first().str.slice(0, len(when))
    origin, _ = KINDS[kind]
    earlier = tables[origin].filter((begins <= when).fill_null(value=False))
    return rows(kind, statements({"sources": tables["sources"], origin: earlier}), columns)


def derived(tables: Mapping[str, pl.DataFrame], columns: Mapping[str, Mapping[str, str]]) -> dict[str, pl.DataFrame]:
    """Return the derived tables by name."""
    stated = statements(tables)
    fresh = freshness(tables).select(list(columns["freshness"]))
    entities = complete({kind: rows(kind, stated, columns[kind]) for kind in KINDS}, stated, tables)
    series = history.months(tables).select(list(columns["months"]))
    return {"freshness": fresh, "statements": stated.select(list(columns["statements"])), "months": series, **entities}


def freshness(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return one row per source: dates of publication and access, and the rows that cite it."""
    named = [
        frame.select(
            "source",
            table=pl.lit(name),
            newest=(
                pl.col("as_of").str.split("/").list.last() if "as_of" in frame.columns else pl.lit(None, pl.String)
            ),
        )
        for name, frame in tables.items()
        if name != "sources" and "source" in frame.columns
    ]
    cited = (
        pl.concat(named)
        .group_by("source")
        .agg(
            pl.col("newest").max(),
            rows=pl.len().cast(pl.Float64),
            tables=pl.col("table").unique(maintain_order=True).str.join("; "),
        )
    )
    return (
        tables["sources"]
        .select("source", "published", "accessed")
        .join(cited, on="source", how="left", maintain_order="left")
        .with_columns(pl.col("rows").fill_null(0.0))
    )


def statement_tables() -> set[str]:
    """Return the tables of statements from which entities are picked field by field."""
    return {origin for origin, _ in KINDS.values()}


def required_tables() -> set[str]:
    """Return the tables that `derived` reads."""
    return {"sources", "accelerators", "cluster_chips", "defaults", "electricity"} | statement_tables() | history.NEEDED
