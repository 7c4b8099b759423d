"""The command line: a verb for each of the main public functions.

Exit status: 0 success, 1 failed check (of a page, claim or run), 2 invalid use, 130 interrupt. An error is one line.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import json
import math
import os
import shutil
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import factorykit as fk
from factorykit.core import atomic_io, text_io
from factorykit.core.errors import FactorykitError, ScenarioError, SiteError
from factorykit.core.extras import not_installed
from factorykit.core.units import begins_with_digit, parse
from factorykit.core.validation import one_of
from factorykit.core.vocabulary import Quantity, quantity
from factorykit.data.query import MAX_SQL_SECONDS

if TYPE_CHECKING:
    import polars as pl

MAX_GRID_POINTS = 10_000_000
MAX_PRINTED_ROWS = 1_000_000
MAX_CELL = 50
"""Characters of a text in a printed table."""
MEASURED_ROWS = 1000
"""Rows of a table from which the width of its columns follows."""
POST_TRAINING = {
    "accelerator": "their name (default h100_sxm)",
    "algorithm": "grpo, dapo, ppo, distillation, sft or dpo (default grpo)",
    "steps": "steps of the run (default 500)",
    "samples": "sequences of a step (default 1024)",
    "batch": "sequences of an optimizer step; by default one update a step",
    "input_tokens": "tokens of a prompt, mean (default 256)",
    "output_tokens": "tokens of a sample, mean (default 2048)",
    "sequence_length": "most tokens of prompt and sample (default 8192)",
    "policy_lag_steps": "steps by which rollouts may be off policy (default 0: the two sides take turns)",
    "precision": "bf16 or fp8 (default bf16)",
    "lora_rank": "rank of adapters (default 0: all weights are trained)",
    "teacher": "model whose log-probabilities are distilled, by default one as large as the policy",
    "tool_wait_s": "time that a sample waits for tools, such as '30 s'",
    "reward_s": "time of rewards that nothing hides, such as '5 s'",
    "rental_usd_per_accelerator_h": "price, such as '$2.5'; that of the tables by default",
}
EPILOG = "Numbers without a unit are in seconds, watts, bytes, FLOP, USD or fractions; 30min and 500GB/s have a unit."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    if sys.stdout is None:
        return _fail(OSError("standard output is closed"), 2)
    warnings.showwarning = _one_line
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        options = _options(arguments)
        result = options.run(options)
        if result is not None and not isinstance(result, int):
            _print_frame(result, options.json)
            result = 0
        sys.stdout.flush()
        return result or 0
    except SiteError as error:
        return _fail(error, 1)
    except (FactorykitError, MemoryError) as error:
        return _fail(error, 2)
    except ModuleNotFoundError as error:
        return _fail(not_installed(error), 2)
    except BrokenPipeError:
        _discard_output()
        return 0
    except shutil.Error as error:
        return _fail(OSError(error.args[0][0][2]), 2)
    except OSError as error:
        _discard_output()
        return _fail(error, 2)
    except KeyboardInterrupt:
        return 130


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = _parser()
    options, passed_on = parser.parse_known_args(arguments)
    if "inputs" in options:
        options.inputs = [*options.inputs, *(word for word in passed_on if not word.startswith("-"))]
        passed_on = [word for word in passed_on if word.startswith("-")]
    if passed_on and options.run is not _lab:
        parser.error(f"unrecognized arguments: {' '.join(passed_on)}")
    options.passed_on = passed_on
    return options


def _discard_output() -> None:
    """Redirect the output to nowhere, so that Python does not write to a closed pipe again when it ends."""
    with contextlib.suppress(OSError):  # a replaced stream has no file descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(error: Exception, status: int) -> int:
    print(f"{type(error).__name__}: {error}", file=sys.stderr)
    return status


def _one_line(message: Warning | str, category: type[Warning], *_: Any) -> None:
    print(f"{category.__name__}: {message}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="factorykit", description="Compute, time, power, failures and cost of AI training clusters.", epilog=EPILOG
    )
    parser.add_argument("--version", action="version", version=f"factorykit {fk.__version__}")
    verbs = parser.add_subparsers(required=True, metavar="VERB")

    data = verbs.add_parser("data", help="tables and their sources: build, list, show, query")
    kinds = data.add_subparsers(required=True, metavar="ACTION")
    build = _verb(kinds, "build", _data_build, "validate data/sources and write the Parquet tables")
    build.add_argument("--out", type=Path, help="output folder (default: the tables that factorykit reads)")
    _json(_verb(kinds, "list", lambda _: fk.tables(), "list the tables"))
    show = _json(_verb(kinds, "show", lambda options: fk.table(options.table).collect(), "print a table"))
    show.add_argument("table")
    query = _json(_verb(kinds, "sql", _data_sql, "query the tables, read only"))
    query.add_argument("query")
    query.add_argument(
        "--timeout", type=float, metavar="S", default=MAX_SQL_SECONDS, help="time limit in seconds (default 60)"
    )
    sources = _json(_verb(kinds, "sources", _data_sources, "print the sources of a table: citation, locator, licence"))
    sources.add_argument("table")
    sources.add_argument("key", nargs="?")
    connect = _json(_verb(kinds, "connect", _data_connect, "connect a public data set, or list them"))
    connect.add_argument("name", nargs="?")
    connect.add_argument(
        "file", nargs="?", metavar="FILE|URL", help="CSV file or https:// address (default: the cache)"
    )
    connect.add_argument("--query", help="SQL query to print instead of the table")

    summary = "compare publishers' new files with the tables"
    refresh = _json(_verb(kinds, "refresh", _data_refresh, summary))
    refresh.add_argument(
        "origin", nargs="+", metavar="FOLDER|NAME=FILE|NAME=URL", help="files named like the data sets"
    )
    refresh.add_argument("--apply", action="store_true", help="write additions and changes to data/sources")
    changes = _json(_verb(kinds, "changes", _data_changes, "print the changelog of the data, newest last"))
    changes.add_argument(
        "--since", type=Path, metavar="FOLDER", help="compare data/sources with an earlier copy instead"
    )
    changes.add_argument("--apply", action="store_true", help="with --since: append the differences to the changelog")

    assumed = _json(_verb(verbs, "assumed", _assumed, "list the defaults that --assume uses, with their sources"))
    _inputs(assumed, assume=False)
    _outputs(assumed)

    evaluate = _json(_verb(verbs, "evaluate", _evaluate, "compute quantities from others"))
    _inputs(evaluate)
    _calibration(evaluate)
    _outputs(evaluate)
    evaluate.add_argument("--rows", metavar="FILE", help="Parquet or CSV file with one scenario per row")
    evaluate.add_argument("--out", type=Path, metavar="FILE", help="Parquet or CSV file for the results")

    sweep = _json(_verb(verbs, "sweep", _sweep, "evaluate every combination of given values"))
    _inputs(sweep)
    sweep.add_argument(
        "--grid",
        "-g",
        action="append",
        required=True,
        metavar="QUANTITY=VALUES",
        help="mfu=0.3,0.4, accelerator=h100_sxm,b200 or restart_s=1min:10min:8 (eight values); may be repeated",
    )
    _outputs(sweep)
    sweep.add_argument("--out", metavar="PATH", help="a .parquet file, or the folder of a study")
    sweep.add_argument("--engine", default="local", help="local, ray, or the address of a Ray cluster")

    simulate = _json(
        _verb(verbs, "simulate", _simulate, "simulate runs with failures and print the distribution of results")
    )
    _inputs(simulate)
    simulate.add_argument("--runs", type=int, default=10_000, help="number of runs (default 10,000)")
    simulate.add_argument("--seed", type=int, default=0, help="random seed (default 0)")
    simulate.add_argument("--out", type=Path, metavar="FILE", help="Parquet or CSV file with one row per run")

    explain = _json(_verb(verbs, "explain", _explain, "print the computation of a quantity step by step"))
    explain.add_argument("output", metavar="QUANTITY")
    _inputs(explain)
    _calibration(explain)

    audit = _json(_verb(verbs, "audit", _audit, "recompute published claims and compare"))
    audit.add_argument("--document", metavar="SOURCE", help="only the claims of one document, such as seed_000")
    audit.add_argument(
        "--verdict", help="agrees, identity, rounding, disagrees, 'unit error', superseded or 'not checkable'"
    )
    audit.add_argument("--claim", metavar="CLAIM", help="one claim with the steps of its recipe")
    search = _json(_verb(verbs, "search", _search, "list parallel layouts of a model on a cluster, best first"))
    search.add_argument("model", help="a known model, such as llama3_70b, a size such as 70B, or a config.json")
    search.add_argument(
        "cluster", help="accelerators=512,accelerator=h100_sxm; a preset and its chip: meta_24k,accelerator=h100_sxm"
    )
    search.add_argument("global_batch_size", help="sequences of one optimizer step")
    search.add_argument(
        "--sequence-length", default="4096", help="tokens of one sequence, e.g. 8192 or 8Ki (default 4096)"
    )
    search.add_argument(
        "--objective", default="step_s", metavar="QUANTITY", help="ranking of the layouts (default step_s)"
    )
    _assume(search)
    _calibration(search)
    _framework(search)
    search.add_argument("--rows", type=_count, default=10, help="number of layouts to print (default 10)")

    serve = _json(_verb(verbs, "serve", _serve, "choose chips, layout and replicas that serve a load"))
    serve.add_argument("model", help="a known model, such as llama3_70b or deepseek-ai/DeepSeek-R1, or a size: 70B")
    serve.add_argument("load", nargs="?", help="requests per second, such as 20")
    for name, text in (
        ("users", "users who ask again after each answer, instead of requests per second"),
        ("fleet", "accelerators, of which the largest load is found"),
        ("trace", "file of requests (Azure, Mooncake, CSV), which gives load and lengths"),
        ("ttft", "greatest time to first token, such as '500 ms'"),
        ("tpot", "greatest time per output token, such as '25 ms'"),
        ("input-tokens", "tokens of a prompt (default 1024)"),
        ("output-tokens", "tokens of an answer (default 1024)"),
        ("precision", "number format of the weights: bf16, fp8, int8, fp4 or int4 (default fp8)"),
        ("engine", "vllm, sglang or trtllm (default vllm)"),
        ("objective", "cost_usd_per_h, accelerators or j_per_token (default cost_usd_per_h)"),
    ):
        serve.add_argument(f"--{name}", metavar=name.upper(), help=text)
    serve.add_argument("inputs", nargs="*", metavar="QUANTITY=VALUE", help="known quantities: draft_tokens=2, pue=1.2")
    chips_help = "accelerators to choose from: h200_sxm,b200 (default h200_sxm)"
    serve.add_argument("--chips", metavar="A,B", type=lambda text: text.split(","), help=chips_help)

    post = _json(_verb(verbs, "post-train", _post_train, "split accelerators between rollouts and training"))
    post.add_argument("model", help="a known model, such as llama3_8b or Qwen/Qwen3-32B")
    post.add_argument("accelerators", help="their number, such as 64")
    for name, text in POST_TRAINING.items():
        post.add_argument(f"--{name.replace('_', '-')}", metavar="VALUE", help=text)

    plan = _json(_verb(verbs, "plan", _plan, "plan a run: accelerators, their number, layout, days and cost"))
    plan.add_argument(
        "model", help="a known model, a config.json, a size such as 70B, 'largest', or a run.toml with all arguments"
    )
    plan.add_argument("inputs", nargs="*", metavar="QUANTITY=VALUE", help="known quantities: precision=fp8, pue=1.2")
    for name, text in (
        ("tokens", "training tokens, such as 15T; compute-optimal by default"),
        ("deadline", "wall-clock time, such as 60d"),
        ("budget", "money for the run, such as '20 M USD'"),
        ("power", "power of the facility, such as 20MW"),
        ("objective", "quantity to minimise"),
    ):
        plan.add_argument(f"--{name}", metavar=name.upper(), help=text)
    for name, text in (
        ("chips", "accelerators to choose from: h100_sxm,b200"),
        ("counts", "numbers of accelerators to choose from: 1024,2048"),
        ("sites", "countries to choose from, by code or name: usa,france"),
        ("acquire", "rent, own, or rent,own"),
        ("tiers", "checkpoint tiers: storage only, local and storage, or both: one,two"),
    ):
        plan.add_argument(f"--{name}", metavar="A,B", type=lambda text: text.split(","), help=text)
    plan.add_argument("--as-run", action="store_true", help="chips, count and recipe of the model's published run")
    _calibration(plan)
    _framework(plan)

    validate = _json(_verb(verbs, "validate", _validate, "compare the performance model with measured runs"))
    validate.add_argument("file", nargs="?", help="CSV or Parquet with the columns of training_runs")
    _calibration(validate)
    validate.add_argument("--by", default=None, choices=("family", "group"), help="print errors by this column instead")

    calibrate = _json(_verb(verbs, "calibrate", _calibrate, "calibrate the performance model to measured runs"))
    calibrate.add_argument("file", help="CSV or Parquet with the columns of training_runs, step_time_s too")
    calibrate.add_argument("--out", "-o", type=Path, metavar="FILE", help="JSON file for --calibration")
    calibrate.add_argument("--design", type=_count, metavar="K", help="list the K most informative rows instead")

    report = _verb(verbs, "report", _report, "write a report of cluster logs as one page")
    report.add_argument("logs", nargs="+", metavar="LOGS", help="files or folders; plain, gzip or zstd")
    report.add_argument("--out", "-o", type=Path, default=Path("report"), help="folder to write to (default report)")
    report.add_argument("--kind", metavar="FORMAT", help="format of the files; recognised by default")
    report.add_argument("--zone", default="UTC", help="time zone of timestamps without one, e.g. Europe/Berlin")
    report.add_argument("--price", metavar="USD", help="price of an accelerator-hour, such as 2.5")
    report.add_argument("--anonymise", action="store_true", help="hash users, nodes and jobs, name no log files")

    site = verbs.add_parser("site", help="the published pages: build, check, serve")
    pages = site.add_subparsers(required=True, metavar="ACTION")
    site_build = _verb(
        pages, "build", _site_build, "run changed notebooks, render, check, and replace the folder atomically"
    )
    site_build.add_argument("--out", type=Path, default=Path("_site"))
    site_build.add_argument("--stored", action="store_true", help="render the stored outputs; run no notebook")
    site_build.add_argument("--renderer", choices=["auto", "quarto", "embedded"], default="auto")
    site_check = _verb(pages, "check", _site_check, "check a rendered folder")
    site_check.add_argument("folder", type=Path, nargs="?", default=Path("_site"))
    site_serve = _verb(pages, "serve", _site_serve, "serve a rendered folder on localhost")
    site_serve.add_argument("folder", type=Path, nargs="?", default=Path("_site"))
    site_serve.add_argument("--port", type=int, default=8000)

    mcp = _verb(verbs, "mcp", _mcp, "serve the tools of an agent by the Model Context Protocol")
    mcp.add_argument("--http", type=int, metavar="PORT", help="serve http://127.0.0.1:PORT/mcp instead of stdio")
    schema = _verb(verbs, "schema", _schema, "print the JSON schema of the arguments of a tool, or of all")
    schema.add_argument(
        "tool", nargs="?", metavar="TOOL", help="evaluate, plan, serve, search, explain, audit, table or sql"
    )

    _verb(verbs, "lab", _lab, "open the notebooks in JupyterLab on localhost; options are passed to jupyter lab")
    return parser


def _verb(verbs: Any, name: str, run: Any, text: str) -> argparse.ArgumentParser:
    parser = verbs.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.", epilog=EPILOG)
    parser.set_defaults(run=run)
    return parser


def _json(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _assume(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--assume", action="store_true", help="fill gaps with sourced defaults; `factorykit assumed` lists them"
    )


def _inputs(parser: argparse.ArgumentParser, *, assume: bool = True) -> None:
    if assume:
        _assume(parser)
    parser.add_argument("--preset", metavar="NAME", help="start from a published run or cluster")
    parser.add_argument(
        "inputs", nargs="*", metavar="QUANTITY=VALUE", help="tokens=15.6e12 or 15.6T; an alternative formula by name"
    )


def _outputs(parser: argparse.ArgumentParser) -> None:
    listed = {"action": "extend", "metavar": "A,B", "type": lambda text: text.split(",")}
    parser.add_argument("--output", "-o", **listed, help="outputs (default: all); may be repeated")


def _calibration(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--calibration", type=Path, metavar="FILE", help="output of `factorykit calibrate`")


def _framework(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--framework", help="training framework, such as megatron_bridge; all software by default")


def _calibrated(options: argparse.Namespace) -> fk.Calibration | None:
    return fk.Calibration.load(options.calibration) if options.calibration else None


def _measured(scenario: Any, options: argparse.Namespace) -> Any:
    calibration = _calibrated(options)
    return scenario if calibration is None else calibration.apply(scenario, assume=options.assume)


def _given(options: argparse.Namespace) -> dict[str, str]:
    """Return the quantities of the words QUANTITY=VALUE."""
    given = {}
    for text in options.inputs:
        name, equals, value = text.partition("=")
        if not equals:
            raise ScenarioError(f"{text!r} is not QUANTITY=VALUE, e.g. tokens=15.6e12")
        given[quantity(name).name] = value
    return given


def _scenario(options: argparse.Namespace) -> fk.Scenario:
    changes = _given(options)
    return fk.preset(options.preset).replace(**changes) if options.preset else fk.Scenario(**changes)


def _data_build(options: argparse.Namespace) -> None:
    from factorykit.data import literals
    from factorykit.data.build import build

    report = build(options.out)
    changed = report.filter(report["changed"])["table"].to_list()
    if options.out is None and literals.write():
        changed.append("_names.pyi")
    print(f"{report.height} tables, {report['rows'].sum()} rows: {', '.join(changed) or 'nothing'} changed")


def _data_sql(options: argparse.Namespace) -> pl.DataFrame:
    return fk.sql(options.query, timeout_s=options.timeout)


def _data_sources(options: argparse.Namespace) -> pl.DataFrame:
    return fk.sources(options.table, options.key)


def _data_connect(options: argparse.Namespace) -> pl.DataFrame:
    if options.name is None:
        return fk.connectors()
    table = fk.connect(options.name, options.file)
    if not options.json:
        print(fk.sources(options.name)["citation"].item())
    return fk.sql(options.query) if options.query else table.collect()


def _data_refresh(options: argparse.Namespace) -> None:
    from factorykit.data.public import refresh as data_refresh

    _print_changes(data_refresh.refresh(*options.origin, apply=options.apply), options)


def _data_changes(options: argparse.Namespace) -> pl.DataFrame | None:
    from factorykit.data.public import refresh as data_refresh

    if options.since is None:
        return fk.table("data_changes").collect()
    return _print_changes(data_refresh.changes(options.since, apply=options.apply), options)


def _print_changes(frame: pl.DataFrame, options: argparse.Namespace) -> None:
    _print_frame(frame, options.json)
    if not options.json:
        counts = frame["change"].value_counts().sort("count", descending=True).iter_rows()
        summary = ", ".join(f"{count} {kind}" for kind, count in counts) or "no differences"
        after = "written; run `factorykit data build`" if options.apply else "--apply writes it"
        print(f"{summary}; {after}" if frame.height else summary)


def _assumed(options: argparse.Namespace) -> pl.DataFrame:
    return fk.assumed(_scenario(options), options.output)


def _evaluate(options: argparse.Namespace) -> pl.DataFrame | None:
    asked: Any = _scenario(options)
    if not (asked or options.rows):
        raise ScenarioError("no quantity is given; give QUANTITY=VALUE, --preset or --rows")
    if options.rows:
        import polars as pl

        fixed = (pl.lit(value).alias(name) for name, value in asked.items())
        asked = text_io.read_frame(options.rows).with_columns(fixed)
    results = fk.evaluate(_measured(asked, options), options.output, assume=options.assume)
    if options.out is not None:
        _write(results if options.rows else [results], options.out)
    elif options.rows:
        return results
    elif options.json:
        _print_json(results)
    else:
        width = max(map(len, results), default=0)
        for name, value in results.items():
            print(f"{name:<{width}}  {quantity(name).text(value)}")
    return None


def _write(rows: pl.DataFrame | list[dict[str, float]], path: Path) -> None:
    import polars as pl

    frame = pl.DataFrame(rows)
    try:
        with atomic_io.replacing(path) as aside:
            if path.suffix == ".parquet":
                frame.write_parquet(aside)
            else:
                structs = [name for name, kind in frame.schema.items() if kind == pl.Struct]
                frame.unnest(structs, separator=".").write_csv(aside)
    except (OSError, pl.exceptions.ComputeError) as error:
        raise FactorykitError(f"{path} cannot be written: {error}; name a file in a folder that exists") from None


def _sweep(options: argparse.Namespace) -> pl.DataFrame | None:
    if options.out is None and (rows := math.prod(map(_count_of, options.grid))) > MAX_PRINTED_ROWS:
        raise ScenarioError(f"the grid has {rows:,} rows, more than {MAX_PRINTED_ROWS:,}; name a file with --out")
    grid = dict(map(_axis, options.grid))
    if options.out is None:
        return fk.sweep(_scenario(options), grid, options.output, assume=options.assume)
    fk.sweep(_scenario(options), grid, options.output, options.out, options.engine, assume=options.assume)
    print(f"{math.prod(map(len, grid.values())):,} rows in {options.out}", file=sys.stderr)
    return None


def _simulate(options: argparse.Namespace) -> pl.DataFrame:
    import polars as pl

    runs = fk.simulate(_scenario(options), options.runs, options.seed, assume=options.assume)
    if options.out is not None:
        _write(runs, options.out)
    shown = ["wall_s", "goodput", "failures", "lost_work_run_s", "recovery_s", "rental_cost_usd"]
    rows = [
        (name, runs[name].mean(), *(runs[name].quantile(q, "linear") for q in (0.05, 0.5, 0.95)))
        for name in shown
        if runs[name].null_count() == 0
    ]
    return pl.DataFrame(rows, schema=["quantity", "mean", "p05", "p50", "p95"], orient="row")


def _count_of(text: str) -> int:
    """Return the number of values of an axis without making them; one for an invalid axis."""
    values = text.partition("=")[2]
    count = values.rpartition(":")[2] if ":" in values else ""
    return int(count) if count.isdecimal() and len(count) < 20 else values.count(",") + 1


def _axis(text: str) -> tuple[str, list[Any]]:
    """Return a quantity and its values from ``name=a,b,c`` or ``name=low:high:count``."""
    name, equals, values = text.partition("=")
    row = quantity(name)
    if row.is_text and values:
        return name, values.split(",")
    try:
        if ":" not in values:
            return name, [_number(row, value) for value in values.split(",")]
        low, high, count = values.split(":")
        return name, _spaced(_number(row, low), _number(row, high), int(count), row.slider_scale == "log")
    except ValueError:
        sign = f"{name}=" if equals else f"{text}="
        raise ScenarioError(f"--grid {text!r} is not {sign}A,B,C or {sign}LOW:HIGH:COUNT") from None


def _number(row: Quantity, text: str) -> float:
    if not begins_with_digit(text):
        raise ValueError
    return parse(row, text)


def _spaced(low: float, high: float, count: int, by_factors: bool) -> list[float]:
    if not 2 <= count <= MAX_GRID_POINTS or (by_factors and not 0.0 < low < high):
        raise ValueError
    parts = [i / (count - 1) for i in range(count)]
    return [low * (high / low) ** part if by_factors else low + (high - low) * part for part in parts]


def _explain(options: argparse.Namespace) -> pl.DataFrame | None:
    explanation = fk.explain(_measured(_scenario(options), options), options.output, assume=options.assume)
    return explanation.to_frame() if options.json else print(explanation)


def _audit(options: argparse.Namespace) -> pl.DataFrame | int:
    if options.claim:
        from factorykit.model.validation.audit import unfold

        return unfold(options.claim)
    rows = fk.audit(options.document, options.verdict)
    shown = ["claim", "locator", "subject", "claimed", "printed", "unit", "recomputed", "ratio", "verdict", "why"]
    _print_frame(rows if options.json else rows.select(shown), options.json)
    if not options.json:
        counts = rows.group_by("verdict", maintain_order=True).len().sort("len", descending=True).drop_nulls()
        print(f"{rows.height} claims: {', '.join(f'{count} {verdict}' for verdict, count in counts.iter_rows())}")
    errors = (fk.audit(options.document) if options.verdict else rows)["error"].drop_nulls()
    for error in errors:
        print(f"RecipeError: {error}", file=sys.stderr)
    return 1 if len(errors) else 0


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a count such as 1, 2, 3")
    return int(text)


def _search(options: argparse.Namespace) -> int:
    cluster: dict[str, Any] = {"sequence_length": options.sequence_length}
    for part in options.cluster.split(","):
        name, equals, text = part.partition("=")
        cluster |= {name.strip(): text.strip()} if equals else fk.preset(name.strip())
    batch = quantity("global_batch_size").check(options.global_batch_size)
    asked: dict[str, Any] = {"global_batch_size": batch, "objective": options.objective}
    asked |= {"assume": options.assume, "calibration": _calibrated(options), "framework": options.framework}
    best = fk.search(options.model, cluster, **asked).head(options.rows).collect()
    if best.is_empty():
        rules = fk.search(options.model, cluster, **asked, keep_excluded=True).collect()["excluded_by"]
        print("no layout works; the rules that exclude them:", file=sys.stderr)
        for rule, count in rules.value_counts(sort=True).iter_rows():
            print(f"{count:>9,}  {rule}", file=sys.stderr)
        if options.json:
            print("[]")
        return 1
    if not options.json and best.height > 1:
        alike = [name for name in best.columns if best[name].n_unique() == 1]
        print("all:", ", ".join(f"{name} {_short(best[name][0])}" for name in alike))
        best = best.drop(alike)
    _print_frame(best, options.json)
    return 0


def _plan(options: argparse.Namespace) -> int:
    from factorykit.model.planning.plan import read_run

    asked = read_run(options.model) if options.model.endswith(".toml") else {"model": options.model}
    wishes = ("tokens", "deadline", "budget", "power", "objective", "chips", "counts", "sites", "acquire", "tiers")
    asked |= {name: value for name in wishes if (value := getattr(options, name)) is not None}
    asked |= {"calibration": _calibrated(options)} | ({"framework": options.framework} if options.framework else {})
    asked |= _given(options) | ({"as_run": True} if options.as_run else {})
    plan = fk.plan(asked.pop("model"), **asked)
    _print_result(plan, plan.to_dict(), options)
    return 0 if plan.best["breaks"].item() is None else 1


def _serve(options: argparse.Namespace) -> int:
    names = ("users", "fleet", "ttft", "tpot", "input_tokens", "output_tokens")
    names += ("precision", "engine", "objective", "chips")
    asked = {name: value for name in names if (value := getattr(options, name)) is not None}
    if "=" in (options.load or ""):
        options.inputs, options.load = [options.load, *options.inputs], None
    if options.trace:
        if options.load:
            raise ScenarioError("a load and --trace contradict each other; give one of them")
        options.load = fk.read_trace(options.trace)
        print(options.load, file=sys.stderr)
    deployment = fk.serve(options.model, load=options.load, **asked, **_given(options))
    _print_result(deployment, {"best": deployment.best, "breaks": deployment.breaks}, options)
    return 1 if deployment.breaks else 0


def _post_train(options: argparse.Namespace) -> None:
    asked = {name: value for name in POST_TRAINING if (value := getattr(options, name)) is not None}
    result = fk.post_train(options.model, options.accelerators, **asked)
    _print_result(result, {"best": result.best}, options)


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _validate(options: argparse.Namespace) -> pl.DataFrame:
    from factorykit.model.validation.validate import errors

    rows = text_io.read_frame(options.file) if options.file else None
    validated = fk.validate(rows, calibration=_calibrated(options))
    return errors(validated, options.by) if options.by else validated


def _calibrate(options: argparse.Namespace) -> pl.DataFrame | None:
    rows = text_io.read_frame(options.file)
    if options.design:
        return fk.Calibration.design(rows, options.design)
    calibration = fk.calibrate(rows)
    if options.out:
        calibration.save(options.out)
    if options.json:
        return _print_json(
            {"rows": calibration.rows, "summary": list(calibration.summary), "excluded": dict(calibration.excluded)}
        )
    print(f"{calibration.rows} rows used" + (f", written to {options.out}" if options.out else ""))
    for sentence in calibration.summary:
        print(sentence)
    for name, reason in calibration.excluded.items():
        print(f"not used: {name}: {reason}")
    return None


def _report(options: argparse.Namespace) -> None:
    from factorykit.site.cluster_report import report

    log = fk.read_log(options.logs, options.kind, zone=options.zone)
    for issue, count in log.counts.iter_rows():
        print(f"{count:>12,}  {issue}")
    log, logs = (log.anonymised(), []) if options.anonymise else (log, options.logs)
    print(report(log, options.out, logs=logs, kind=options.kind, zone=options.zone, price=options.price))


def _site_build(options: argparse.Namespace) -> None:
    from factorykit.site import build

    print(build(options.out, renderer=options.renderer, run=not options.stored))


def _site_check(options: argparse.Namespace) -> None:
    from factorykit.site import check

    print(check(options.folder))


def _site_serve(options: argparse.Namespace) -> None:
    from factorykit.site import serve

    serve(options.folder, port=options.port)


def _lab(options: argparse.Namespace) -> int:
    from factorykit.widgets.lab import lab

    return lab(options.passed_on)


def _mcp(options: argparse.Namespace) -> None:
    from factorykit.mcp import server

    server().run() if options.http is None else server().run("streamable-http", port=options.http)


def _schema(options: argparse.Namespace) -> None:
    from factorykit.mcp import schemas

    known = schemas()
    _print_json(known if options.tool is None else known[one_of("tool", options.tool, known)])


def _print_frame(frame: pl.DataFrame, as_json: bool) -> None:
    import polars as pl

    if as_json:
        return _print_json(frame.to_dicts())
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 10_000
    left_out = frame.columns[_fitting(frame, width) :]
    frame = frame.drop(left_out)
    with pl.Config(
        tbl_rows=-1,
        tbl_cols=-1,
        fmt_str_lengths=MAX_CELL,
        tbl_hide_dataframe_shape=True,
        tbl_hide_column_data_types=True,
        tbl_width_chars=width,
    ):
        print(frame)
    if left_out:
        print(f"{len(left_out)} more columns do not fit: {', '.join(left_out)}", file=sys.stderr)
    return None


def _fitting(frame: pl.DataFrame, width: int) -> int:
    """Return the number of leading columns that a terminal of some width shows in full, at least one."""
    cells = frame.head(MEASURED_ROWS).rows()
    widths = [max(len(str(cell)) for cell in column) for column in zip(frame.columns, *cells, strict=True)]
    ends = itertools.accumulate(min(size, MAX_CELL) + 3 for size in widths)
    return max(sum(end < width for end in ends), 1)


def _print_result(result: object, value: dict[str, Any], options: argparse.Namespace) -> None:
    _print_json(value) if options.json else print(result)


def _print_json(value: Any) -> None:
    print(json.dumps(text_io.json_value(value), ensure_ascii=False, indent=1))


if __name__ == "__main__":
    sys.exit(main())
