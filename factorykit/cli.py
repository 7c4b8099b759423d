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
import re
import shutil
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import factorykit as fk
from factorykit.core import atomic_io, text_io
from factorykit.core.errors import FactorykitError, ScenarioError, SiteError
from factorykit.core.extras import not_installed
from factorykit.core.units import begins_with_digit, parse
from factorykit.core.validation import one_of
from factorykit.core.vocabulary import Quantity, quantity, vocabulary

if TYPE_CHECKING:
    import polars as pl

GROUPS = {
    "data": "tables and their sources: build, list, show, query",
    "site": "the published pages: build, check, serve",
}
MAX_GRID_POINTS = 10_000_000
MAX_PRINTED_ROWS = 1_000_000
MAX_CELL = 50
"""Characters of a text in a printed table."""
MEASURED_ROWS = 1000
"""Rows of a table from which the width of its columns follows."""
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
        options = _parsed(arguments)
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


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = _parser()
    options, passed_on = parser.parse_known_args(arguments)
    if "inputs" in options:
        options.inputs = [*options.inputs, *(word for word in passed_on if not word.startswith("-"))]
        passed_on = [word for word in passed_on if word.startswith("-")]
    if passed_on and options.run is not _lab:
        unnamed = [word for word in passed_on if word.partition("=")[0].lstrip("-") in options]
        remedy = "; give its value without the name" if unnamed else ""
        parser.error(f"unrecognized arguments: {' '.join(passed_on)}{remedy}")
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
    groups: dict[str, Any] = {"": parser.add_subparsers(required=True, metavar="VERB")}
    rows = text_io.package_rows(Path(__file__).with_name("commands.csv"))
    for run in COMMANDS:
        group, _, verb = run.__name__[1:].partition("_")
        if group not in GROUPS:
            group, verb = "", run.__name__[1:].replace("_", "-")
        if group not in groups:
            added = groups[""].add_parser(group, help=GROUPS[group])
            groups[group] = added.add_subparsers(required=True, metavar="ACTION")
        text = str(run.__doc__)
        command = groups[group].add_parser(verb, help=f"{text[0].lower()}{text[1:-1]}", description=text, epilog=EPILOG)
        command.set_defaults(run=run)
        for row in rows:
            if f"{group} {verb}".strip() in row["commands"].split(", "):
                _add_argument(command, row)
    return parser


def _add_argument(command: argparse.ArgumentParser, row: dict[str, str]) -> None:
    """Add an argument of the table of commands; a name that ends in ``?``, ``*`` or ``+`` takes as many values."""
    first, *others = row["argument"].split()
    options = dict(KINDS.get(row["kind"]) or {"choices": row["kind"].split("|")})
    if first[-1] in "?*+":
        first, options["nargs"] = first[:-1], first[-1]
    named: dict[str, Any] = {"metavar": row["value"], "default": row["default"], "help": row["help"]}
    command.add_argument(first, *others, **options, **{name: text for name, text in named.items() if text})


def _list(text: str) -> list[str]:
    return text.split(",")


def _is_list(text: str) -> bool:
    """Return whether a text has several values; 16,384 is one number."""
    return "," in text and re.fullmatch(r"\d{1,3}(,\d{3})+", text) is None


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a count such as 1, 2, 3")
    return int(text)


KINDS: Final[Mapping[str, Mapping[str, Any]]] = {
    "text": {"type": str},
    "flag": {"action": "store_true"},
    "path": {"type": Path},
    "int": {"type": int},
    "float": {"type": float},
    "count": {"type": _count},
    "list": {"type": _list},
    "extend": {"type": _list, "action": "extend"},
    "append": {"action": "append", "required": True},
}
"""Kinds of arguments in the table of commands; others are choices with a bar between them."""


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
            wanted = f"; to compute it, write --output {name}" if name in vocabulary() and "output" in options else ""
            raise ScenarioError(f"{text!r} is not QUANTITY=VALUE, e.g. tokens=15.6e12{wanted}")
        given[quantity(name).name] = value
    return given


def _stated(options: argparse.Namespace, *others: str) -> dict[str, Any]:
    """Return the options that are given, without those of every command and ``others``."""
    others += ("model", "inputs", "json", "run", "passed_on")
    return {name: value for name, value in vars(options).items() if value is not None and name not in others}


def _scenario(options: argparse.Namespace) -> fk.Scenario:
    changes = _given(options)
    return fk.preset(options.preset).replace(**changes) if options.preset else fk.Scenario(**changes)


def _data_build(options: argparse.Namespace) -> None:
    """Validate data/sources and write the Parquet tables."""
    from factorykit.data import literals
    from factorykit.data.build import build

    report = build(options.out)
    changed = report.filter(report["changed"])["table"].to_list()
    if options.out is None and literals.write():
        changed.append("_names.pyi")
    print(f"{report.height} tables, {report['rows'].sum()} rows: {', '.join(changed) or 'nothing'} changed")


def _data_list(_: argparse.Namespace) -> pl.DataFrame:
    """List the tables."""
    return fk.tables()


def _data_show(options: argparse.Namespace) -> pl.DataFrame:
    """Print a table."""
    return fk.table(options.table).collect()


def _data_sql(options: argparse.Namespace) -> pl.DataFrame:
    """Query the tables, read only."""
    return fk.sql(options.query, timeout_s=options.timeout)


def _data_sources(options: argparse.Namespace) -> pl.DataFrame:
    """Print the sources of a table: citation, locator, licence."""
    return fk.sources(options.table, options.key)


def _data_connect(options: argparse.Namespace) -> pl.DataFrame:
    """Connect a public data set, or list them."""
    if options.name is None:
        return fk.connectors()
    table = fk.connect(options.name, options.file)
    if not options.json:
        print(fk.sources(options.name)["citation"].item())
    return fk.sql(options.query) if options.query else table.collect()


def _data_refresh(options: argparse.Namespace) -> None:
    """Compare publishers' new files with the tables."""
    from factorykit.data.public import refresh as data_refresh

    _print_changes(data_refresh.refresh(*options.origin, apply=options.apply), options)


def _data_changes(options: argparse.Namespace) -> pl.DataFrame | None:
    """Print the changelog of the data, newest last."""
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
    """List the defaults that --assume uses, with their sources."""
    return fk.assumed(_scenario(options), options.output)


def _evaluate(options: argparse.Namespace) -> pl.DataFrame | None:
    """Compute quantities from others."""
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
    """Evaluate every combination of given values."""
    if options.out is None and (rows := math.prod(map(_count_of, options.grid))) > MAX_PRINTED_ROWS:
        raise ScenarioError(f"the grid has {rows:,} rows, more than {MAX_PRINTED_ROWS:,}; name a file with --out")
    grid = dict(map(_axis, options.grid))
    if options.out is None:
        return fk.sweep(_scenario(options), grid, options.output, assume=options.assume)
    fk.sweep(_scenario(options), grid, options.output, options.out, options.engine, assume=options.assume)
    print(f"{math.prod(map(len, grid.values())):,} rows in {options.out}", file=sys.stderr)
    return None


def _simulate(options: argparse.Namespace) -> pl.DataFrame:
    """Simulate runs with failures and print the distribution of results."""
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
    """Print the computation of a quantity step by step."""
    explanation = fk.explain(_measured(_scenario(options), options), options.output, assume=options.assume)
    return explanation.to_frame() if options.json else print(explanation)


def _audit(options: argparse.Namespace) -> pl.DataFrame | int:
    """Recompute published claims and compare."""
    if options.claim:
        from factorykit.model.validation.audit import unfold

        return unfold(options.claim)
    rows = fk.audit(options.document, options.verdict)
    shown = ["claim", "verdict", "ratio", "recomputed", "unit", "printed", "subject", "claimed", "locator", "why"]
    _print_frame(rows if options.json else rows.select(shown), options.json)
    if not options.json:
        counts = rows.group_by("verdict", maintain_order=True).len().sort("len", descending=True).drop_nulls()
        print(f"{rows.height} claims: {', '.join(f'{count} {verdict}' for verdict, count in counts.iter_rows())}")
    errors = (fk.audit(options.document) if options.verdict else rows)["error"].drop_nulls()
    for error in errors:
        print(f"RecipeError: {error}", file=sys.stderr)
    return 1 if len(errors) else 0


def _search(options: argparse.Namespace) -> int:
    """List parallel layouts of a model on a cluster, best first."""
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


def _serve(options: argparse.Namespace) -> int:
    """Choose chips, layout and replicas that serve a load."""
    asked = _stated(options, "load", "trace", "launch")
    if "=" in (options.load or ""):
        options.inputs, options.load = [options.load, *options.inputs], None
    if options.trace:
        if options.load:
            raise ScenarioError("a load and --trace contradict each other; give one of them")
        options.load = fk.read_trace(options.trace)
        print(options.load, file=sys.stderr)
    if options.launch:
        asked = {"engine": options.launch} | asked
    deployment = fk.serve(options.model, load=options.load, **asked, **_given(options))
    _print_result(deployment, {"best": deployment.best, "breaks": deployment.breaks}, options, deployment.best)
    return 1 if deployment.breaks else 0


def _post_train(options: argparse.Namespace) -> None:
    """Split accelerators between rollouts and training."""
    result = fk.post_train(options.model, **_stated(options))
    _print_result(result, {"best": result.best}, options)


def _plan(options: argparse.Namespace) -> int:
    """Plan a run: accelerators, their number, layout, days and cost."""
    from factorykit.model.performance.layouts import scheduled
    from factorykit.model.planning.plan import read_run

    asked = read_run(options.model) if options.model.endswith(".toml") else {"model": options.model}
    asked = {**scheduled(options.launch), **asked, **_stated(options, "calibration", "as_run", "launch")}
    asked |= {"calibration": _calibrated(options), "as_run": options.as_run or asked.get("as_run", False)}
    asked |= {name: _list(text) if _is_list(text) else text for name, text in _given(options).items()}
    if "," in (counts := ",".join(options.counts or ())) and not _is_list(counts):
        one, several = counts.replace(",", ""), counts.replace(",", ", ")
        raise ScenarioError(f"--counts {counts} is one number or several; write {one}, or '{several}'")
    plan = fk.plan(asked.pop("model"), **asked)
    _print_result(plan, plan.to_dict(), options, plan.scenario if options.launch else None)
    return 0 if plan.best["breaks"].item() is None else 1


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _validate(options: argparse.Namespace) -> pl.DataFrame:
    """Compare the performance model with measured runs."""
    from factorykit.model.validation.validate import errors

    rows = text_io.read_frame(options.file) if options.file else None
    validated = fk.validate(rows, calibration=_calibrated(options))
    if options.by:
        return errors(validated, options.by)
    first = ("id", "error", "reason", "step_s", "measured_s")
    return validated.select(sorted(validated.columns, key=lambda name: (*first, name).index(name)))


def _calibrate(options: argparse.Namespace) -> pl.DataFrame | None:
    """Calibrate the performance model to measured runs."""
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
    """Write a report of cluster logs as one page."""
    from factorykit.site.cluster_report import report

    log = fk.read_log(options.logs, options.kind, zone=options.zone)
    for issue, count in log.counts.iter_rows():
        print(f"{count:>12,}  {issue}")
    log, logs = (log.anonymised(), []) if options.anonymise else (log, options.logs)
    print(report(log, options.out, logs=logs, kind=options.kind, zone=options.zone, price=options.price))


def _site_build(options: argparse.Namespace) -> None:
    """Run changed notebooks, render, check, and replace the folder atomically."""
    from factorykit.site import build

    print(build(options.out, renderer=options.renderer, run=not options.stored))


def _site_check(options: argparse.Namespace) -> None:
    """Check a rendered folder."""
    from factorykit.site import check

    print(check(options.folder))


def _site_serve(options: argparse.Namespace) -> None:
    """Serve a rendered folder on localhost."""
    from factorykit.site import serve

    serve(options.folder, port=options.port)


def _mcp(options: argparse.Namespace) -> None:
    """Serve the tools of an agent by the Model Context Protocol."""
    from factorykit.mcp import server

    server().run() if options.http is None else server().run("streamable-http", port=options.http)


def _schema(options: argparse.Namespace) -> None:
    """Print the JSON schema of the arguments of a tool, or of all."""
    from factorykit.mcp import schemas

    known = schemas()
    _print_json(known if options.tool is None else known[one_of("tool", options.tool, known)])


def _lab(options: argparse.Namespace) -> int:
    """Open the notebooks in JupyterLab on localhost; options are passed to jupyter lab."""
    from factorykit.widgets.lab import lab

    return lab(options.passed_on)


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
    texts = [[f"{cell:.7g}" if isinstance(cell, float) else str(cell) for cell in row] for row in cells]
    widths = [max(map(len, column)) for column in zip(frame.columns, *texts, strict=True)]
    ends = itertools.accumulate(min(size, MAX_CELL) + 3 for size in widths)
    return max(sum(end < width for end in ends), 1)


def _print_result(
    result: object, value: dict[str, Any], options: argparse.Namespace, settings: Mapping[str, Any] | None = None
) -> None:
    """Print a result, or with ``--launch`` the script that starts these settings; as JSON both."""
    if settings is not None and options.launch:
        result = value["script"] = fk.launch(settings, options.launch)
    _print_json(value) if options.json else print(result)


def _print_json(value: Any) -> None:
    print(json.dumps(text_io.json_value(value), ensure_ascii=False, indent=1))


COMMANDS: Final = (
    *(_data_build, _data_list, _data_show, _data_sql, _data_sources, _data_connect, _data_refresh, _data_changes),
    *(_assumed, _evaluate, _sweep, _simulate, _explain, _audit, _search, _serve, _post_train, _plan, _validate),
    *(_calibrate, _report, _site_build, _site_check, _site_serve, _mcp, _schema, _lab),
)
"""Commands in the order of ``factorykit --help``; name and help are those of the function."""


if __name__ == "__main__":
    sys.exit(main())
