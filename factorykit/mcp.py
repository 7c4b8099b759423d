"""Model Context Protocol server with the tools of an agent: evaluate, plan, serve, life, search, audit, tables, SQL.

Every answer has the version, units, and 90 % intervals, assumptions and source rows where there are any.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

import polars as pl

import factorykit as fk
from factorykit.core.errors import FactorykitError, FactorykitWarning, ScenarioError, UnknownName, unknown_name_message
from factorykit.core.extras import need
from factorykit.core.notebooks import notebooks_folder
from factorykit.core.text_io import json_value
from factorykit.core.validation import integer, one_of
from factorykit.core.vocabulary import quantity, vocabulary
from factorykit.data.identifiers import KINDS, known_key
from factorykit.data.tables import resource_of
from factorykit.engine.question import Question
from factorykit.model.performance.layouts import scheduled
from factorykit.model.planning.uncertainty import INTERVAL, distributions, strata

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

DRAWS: Final = 256
MAX_ROWS: Final = 200
"""Rows of one answer; SQL selects others."""
MAX_TEXT: Final = 1000
"""Characters of a text in the answer to a query."""
INSTRUCTIONS: Final = (
    "Quantities of AI clusters: compute, time, power, failures, cost. Inputs map names of the vocabulary (the resource "
    "factorykit://vocabulary) to a number in its unit or a text with a unit: '15T', '30 min'. factorykit://tables "
    "lists the tables. Report the interval and the assumptions with a value."
)
Inputs = dict[str, float | str]
Arguments = dict[str, Any]


def evaluate(outputs: list[str] | str, inputs: Inputs | None = None, preset: str | None = None) -> dict[str, Any]:
    """Compute quantities, such as training_days, facility_power_w, failures_per_day, goodput or rental_cost_usd.

    Missing inputs are filled with sourced defaults, listed as assumptions; the interval is the 90 % range over those
    assumptions whose spread is known. A preset is a published run or cluster, such as llama_3_1_405b.
    """
    given, outputs = _given(inputs, preset), [outputs] if isinstance(outputs, str) else outputs
    values = fk.evaluate(given, outputs, assume=True)
    assumed = fk.assumed(given, outputs)
    ends = _intervals(given, outputs, assumed["quantity"].to_list())
    steps = Question.read(given, outputs, assume=True).resolve().explain().to_frame()
    rows = {
        name: {"value": value, "unit": quantity(name).unit, "text": quantity(name).text(value)}
        | {"interval": ends.get(name)}
        for name, value in values.items()
    }
    return _answer(rows, _units(values), ends, assumed.to_dicts(), _step_sources(steps))


def explain(output: str, inputs: Inputs | None = None, preset: str | None = None) -> dict[str, Any]:
    """Show the steps that compute a quantity: value, unit, formula and source of each."""
    given = _given(inputs, preset)
    explained = fk.explain(given, output, assume=True)
    steps, assumed = explained.to_frame().drop("latex"), fk.assumed(given, output)
    ends = _intervals(given, [output], assumed["quantity"].to_list())
    units = _units(steps["quantity"])
    return _answer(str(explained), units, ends, assumed.to_dicts(), _step_sources(steps), steps=steps.to_dicts())


def plan(
    model: str,
    tokens: float | str | None = None,
    deadline: float | str | None = None,
    budget: float | str | None = None,
    power: float | str | None = None,
    chips: list[str] | str | None = None,
    counts: list[float | str] | float | str | None = None,
    sites: list[str] | str | None = None,
    acquire: list[str] | str | None = None,
    objective: str | None = None,
    framework: str | None = None,
    as_run: bool = False,
    launch: str | None = None,
    inputs: Arguments | None = None,
) -> dict[str, Any]:
    """Plan a training run: accelerators, their number, layout, days, failures, power and cost, each with an interval.

    The model is a known one (llama3_70b), a size (70B) or 'largest'. Limits have units: '60 d', '20 M USD', '20 MW'.
    Machines are acquired by 'rent', 'own' or both. as_run takes what is not given from the model's published run.
    launch adds the script that starts it by megatron_lm, megatron_bridge, torchtitan or maxtext. Of inputs, quantities
    such as precision, a list gives values to choose from.
    """
    asked = {name: value for name, value in locals().items() if name not in ("launch", "inputs")}
    training_plan = fk.plan(**_joined(asked, scheduled(launch) | (inputs or {})))
    best = training_plan.best.to_dicts()[0]
    rows = training_plan.to_dict()
    text, assumed = rows.pop("answer"), rows.pop("assumed")
    cited = _cited(("accelerators", best["accelerator"]))
    rows |= {} if launch is None else {"script": fk.launch(training_plan.scenario, launch)}
    return _answer(text, _units(best), _ends(best), assumed, cited, values=best, **rows)


def serve(
    model: str,
    load: float | str | None = None,
    users: float | str | None = None,
    fleet: float | str | None = None,
    trace: str | None = None,
    ttft: float | str | None = None,
    tpot: float | str | None = None,
    input_tokens: float | str | None = None,
    output_tokens: float | str | None = None,
    chips: list[str] | str | None = None,
    precision: str = "fp8",
    engine: str = "vllm",
    objective: str = "cost_usd_per_h",
    inputs: Inputs | None = None,
) -> dict[str, Any]:
    """Choose chips, layout and replicas within limits of latency ('500 ms', '25 ms').

    One of load [requests/s], users, fleet (accelerators, of which the largest load is found) or trace (a file). Least
    is cost_usd_per_h, accelerators or j_per_token. Inputs are known quantities: rental_usd_per_accelerator_h, pue, ...
    """
    asked = {name: value for name, value in locals().items() if name not in ("trace", "inputs")}
    if load is not None and trace is not None:
        raise ScenarioError("load and trace contradict each other; give one of them")
    if trace is not None:
        asked["load"] = fk.read_trace(trace)
    deployment = fk.serve(**_joined(asked, inputs))
    best, cited = deployment.best, _cited(("accelerators", deployment.best["accelerator"]), ("serving_points", None))
    return _answer(best, _units(best), _ends(best), deployment.assumed.to_dicts(), cited, breaks=deployment.breaks)


def post_train(
    model: str,
    accelerators: float | str,
    chips: list[str] | str | None = None,
    algorithm: str = "grpo",
    inputs: Inputs | None = None,
) -> dict[str, Any]:
    """Split accelerators between rollouts and training: step time, days, cost, memory and use of both sides.

    Algorithms are grpo, dapo, ppo, distillation, sft and dpo. Inputs are other arguments of factorykit.post_train:
    steps, samples, batch, input_tokens, output_tokens, sequence_length, policy_lag_steps, precision, lora_rank, ...
    """
    asked = {name: value for name, value in locals().items() if name not in ("model", "inputs")}
    best = _stage("post_train", model, _joined(asked, inputs)).best
    cited = _cited(("accelerators", best["accelerator"]), ("rl_steps", None))
    return _answer(best, _units(best), _ends(best), [], cited)


def life(
    model: str,
    plan: Arguments | None = None,
    post_train: Arguments | None = None,
    serve: Arguments | None = None,
    days: float | str = 365.0,
    fleet: float | str | None = None,
    requests_per_s: list[float] | None = None,
) -> dict[str, Any]:
    """Add up pre-training, post-training and days of serving on one fleet in turn: days, dollars, energy, carbon.

    plan, post_train and serve are arguments of factorykit's functions of these names, such as {"accelerators": 64,
    "algorithm": "grpo"} and {"load": 20}; a missing stage is left out. With requests_per_s, the load of each hour of a
    day, the training shares the fleet with serving instead: the answer has the accelerators of both by hour.
    """
    asked = {"plan": plan, "post_train": post_train, "serve": serve}
    stages = {name: _stage(name, model, given) for name, given in asked.items() if given is not None}
    if requests_per_s is None:
        rows = fk.life(*stages.values(), days=days, fleet=fleet)
    else:
        training = stages.get("plan") or stages.get("post_train")
        rows = fk.shared_fleet(stages.get("serve"), training, requests_per_s, fleet=fleet)  # type: ignore[arg-type]
    ends = _ends(rows.row(-1, named=True))
    return _answer(rows.to_dicts(), _units(rows.columns), ends, [], _cited(("rental_offers", None)))


def _stage(name: str, model: str, arguments: Arguments) -> Any:
    """Return the result of factorykit's function of this name, after a check of the names of its arguments."""
    verb = getattr(fk, name)
    known = inspect.signature(verb).parameters
    for argument in arguments:
        if argument not in known and "given" not in known:
            raise UnknownName(unknown_name_message(f"argument of {name}", argument, list(known)))
    return verb(**{"model": model, **arguments})


def _joined(asked: Arguments, inputs: Arguments | None) -> Arguments:
    """Return arguments of a tool together with its inputs, among which none of them may stand."""
    if twice := asked.keys() & (inputs or {}).keys():
        raise ScenarioError(f"{min(twice)} is an argument of the tool; give it as such and not among inputs")
    return asked | (inputs or {})


def search(
    model: str,
    cluster: Inputs,
    global_batch_size: float | str,
    sequence_length: float | str = 4096,
    rows: int = 5,
) -> dict[str, Any]:
    """List parallel layouts of a model on a cluster ({"accelerators": 512, "accelerator": "h100_sxm"}), best first."""
    asked = {"sequence_length": sequence_length, **cluster}
    batch = float(quantity("global_batch_size").check(global_batch_size))
    layouts = fk.search(model, asked, global_batch_size=batch, assume=True).collect()
    shown = layouts.head(_rows(rows)).to_dicts()
    cited = _cited(("architectures", model), ("accelerators", cluster.get("accelerator")), ("training_runs", None))
    ends = _ends(shown[0]) if shown else {}
    return _answer(shown, _units(layouts.columns), ends, fk.assumed(asked).to_dicts(), cited, layouts=layouts.height)


def audit(document: str | None = None, verdict: str | None = None, claim: str | None = None) -> dict[str, Any]:
    """Recompute published claims: stated and recomputed value with interval, unit, locator and verdict."""
    claims = fk.audit(document, verdict)
    if claim is not None:
        claims = claims.filter(claim=one_of("claim", claim, claims["claim"].to_list()))
    shown = claims.head(MAX_ROWS).to_dicts()
    counts = dict(claims["verdict"].drop_nulls().value_counts().iter_rows())
    units = {row["claim"]: row["unit"] for row in shown if row["unit"]}
    ends = {row["claim"]: _ends(row) for row in shown if _ends(row)}
    cited = _cited(*(("sources", name) for name in claims["document"].unique(maintain_order=True)))
    return _answer(shown, units, ends, [], cited, claims=claims.height, verdicts=counts)


def table(name: str, key: str | None = None, rows: int = 50) -> dict[str, Any]:
    """Return rows of a table (clusters, accelerators, rental_offers, ...), or of one entity, with their sources."""
    kind = next((kind for kind, (of, *_) in KINDS.items() if of == resource_of(name)["name"]), None)
    key = (kind and known_key(kind, key)) or key
    sources, frame = fk.sources(name, key), fk.table(name)
    if key is not None:
        frame = frame.filter(pl.any_horizontal(pl.col(pl.String) == key))
    shown = frame.head(_rows(rows)).collect().to_dicts()
    columns, height = frame.collect_schema().names(), frame.select(pl.len()).collect().item()
    if key is None and "source" in columns:
        sources = sources.filter(pl.col("source").is_in({row["source"] for row in shown}))
    cited = sources.unique("source", maintain_order=True).head(MAX_ROWS).to_dicts()
    ends = _ends(shown[0]) if key and shown else {}
    return _answer(shown, _units(columns), ends, [], cited, rows=height)


def sql(query: str) -> dict[str, Any]:
    """Run one SELECT in DuckDB's SQL over the tables, read only, within 60 s and 2 GB."""
    result = fk.sql(query)
    used = [name for name in fk.tables()["table"] if re.search(rf"\b{name}\b", query)]
    cited = _cited(*((name, None) for name in used))
    if "source" in result.columns:
        cited = [row for row in cited if row["source"] in result["source"]]
    shown = result.head(MAX_ROWS).with_columns(pl.col(pl.String).str.slice(0, MAX_TEXT))
    return _answer(shown.to_dicts(), _units(result.columns), {}, [], cited, rows=result.height)


def _rows(asked: int) -> int:
    return min(integer("rows", asked, 1), MAX_ROWS)


TOOLS: Final = (evaluate, plan, serve, post_train, life, search, explain, audit, table, sql)


def server() -> MCPServer:
    """Return the server with its tools and resources."""
    tools = [need("mcp.server.mcpserver.tools").Tool.from_function(_json_or_error(tool)) for tool in TOOLS]
    pydantic = need("pydantic")
    checked = {"names": pydantic.model_validator(mode="before")(classmethod(_check_names))}
    for tool in tools:
        model = tool.fn_metadata.arg_model
        tool.fn_metadata.arg_model = pydantic.create_model(model.__name__, __base__=model, __validators__=checked)
        tool.parameters["additionalProperties"] = False
    created = need("mcp.server.mcpserver").MCPServer(
        "factorykit", instructions=INSTRUCTIONS, version=fk.__version__, tools=tools
    )
    resources: dict[str, Callable[..., str]] = {
        "factorykit://tables": lambda: fk.tables().write_json(),
        "factorykit://tables/{name}": lambda name: fk.table(name).collect().write_json(),
        "factorykit://vocabulary": lambda: fk.quantities().write_json(),
        "factorykit://notebooks": lambda: json.dumps(sorted(_notebooks())),
        "factorykit://notebooks/{name}": lambda name: _notebooks()[name],
    }
    for uri, read in resources.items():
        created.resource(uri, name=uri.partition("//")[2], mime_type="application/json")(read)
    return created


def _check_names(model: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """Refuse arguments that a tool does not have, which would be left out otherwise."""
    for name in arguments:
        if name not in model.model_fields:
            raise ValueError(unknown_name_message("argument", name, model.model_fields))
    return arguments


def _notebooks() -> dict[str, str]:
    """Return the source of the notebooks by name: text, and code as blocks of Python."""
    notebooks = {}
    for file in notebooks_folder().glob("*.ipynb"):
        cells = json.loads(file.read_text("utf-8"))["cells"]
        texts = ((cell["cell_type"], "".join(cell["source"])) for cell in cells)
        parts = (f"```python\n{text}\n```" if kind == "code" else text for kind, text in texts)
        notebooks[file.stem] = "\n\n".join(parts)
    return notebooks


def schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON schema of the arguments of every tool by its name."""
    return {tool.name: tool.input_schema for tool in asyncio.run(server().list_tools())}


def _json_or_error(tool: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Return a tool whose answers are JSON and whose warnings and errors reach the agent."""
    tool_error = need("mcp.server.mcpserver.exceptions").ToolError

    @wraps(tool)
    def call(*args: Any, **kwargs: Any) -> dict[str, Any]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", FactorykitWarning)
            try:
                answer = json_value(tool(*args, **kwargs))
            except FactorykitError as error:
                raise tool_error(f"{type(error).__name__}: {error}") from error
        return answer | {"warnings": list(dict.fromkeys(str(warning.message) for warning in caught))}

    return call


def _answer(answer: Any, units: Any, intervals: Any, assumptions: Any, sources: Any, **more: Any) -> dict[str, Any]:
    """Return an answer with its evidence: every tool has the same keys, empty where nothing was needed."""
    evidence = {"units": units, "intervals": intervals, "assumptions": assumptions, "sources": sources}
    return {"answer": answer, **more, **evidence, "version": fk.__version__}


def _cited(*rows: tuple[str, Any]) -> list[dict[str, Any]]:
    """Return the sources of rows of tables, each once; the locator only where a single row is named."""
    frames = [pl.DataFrame(schema={"source": pl.String})]
    for table, key in rows:
        columns = ["source", "citation", "url", *(["locator"] if key else []), "licence"]
        with suppress(UnknownName):  # a model from a file has no row
            frames.append(fk.sources(table, key).select(columns))
    return pl.concat(frames, how="diagonal").unique("source", maintain_order=True).head(MAX_ROWS).to_dicts()


def _step_sources(steps: pl.DataFrame) -> list[dict[str, str]]:
    return steps.filter(pl.col("source") != "").select("quantity", "source").unique(maintain_order=True).to_dicts()


def _ends(row: Mapping[str, Any]) -> dict[str, list[float]]:
    """Return the intervals of a row: the columns NAME_low and NAME_high."""
    pairs = ((name, name.replace("_low", "_high")) for name in row if "_low" in name)
    known = ((low.replace("_low", ""), [row[low], row[high]]) for low, high in pairs if row.get(high) is not None)
    return dict(known)


def _given(inputs: Inputs | None, preset: str | None) -> fk.Scenario:
    return fk.preset(preset).replace(**(inputs or {})) if preset else fk.Scenario(**(inputs or {}))


def _units(names: Iterable[str]) -> dict[str, str]:
    return {name: row.unit for name in names if (row := vocabulary().get(name)) and not row.is_text}


def _intervals(given: Mapping[str, Any], outputs: list[str], assumed: list[str]) -> dict[str, list[float]]:
    """Return the 90 % intervals of outputs over the published ranges of the defaults they assume."""
    drawn = {name: spread for name, spread in distributions({}).items() if name in assumed}
    if not drawn:
        return {}
    columns = {name: [spread.ppf(share) for share in strata(name, DRAWS, 0)] for name, spread in drawn.items()}
    results = Question.read(given, outputs, assume=True).on(pl.DataFrame(columns)).resolve().run()
    ends = {name: [float(results[name].quantile(end, "linear") or 0.0) for end in INTERVAL] for name in outputs}
    return {name: [low, high] for name, (low, high) in ends.items() if low < high}
