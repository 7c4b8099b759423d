"""The layout and number of accelerators that serve a load within latency limits, at least cost."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeVar

import polars as pl

from factorykit.core.constants import SECONDS_PER_HOUR
from factorykit.core.errors import FactorykitError, ScenarioError, UnknownName, warn
from factorykit.core.extras import Plotted, need
from factorykit.core.validation import one_of
from factorykit.core.vocabulary import format_number, quantity
from factorykit.engine.providers.accelerators import BROUGHT
from factorykit.engine.question import Chain, Question
from factorykit.engine.unused import warn_of_idle, warn_of_shared
from factorykit.formulas import arguments
from factorykit.formulas.serving.throughput import serving_users
from factorykit.model.scenario.accelerators import own_chips, title_of
from factorykit.model.scenario.architectures import architecture
from factorykit.model.scenario.models import model_of
from factorykit.model.serving import predict
from factorykit.model.serving.points import ENGINES, FORMATS, architecture_of, chip, hardware, word_of
from factorykit.model.serving.residual import FAMILY
from factorykit.model.serving.risk import expected_cost
from factorykit.model.serving.trace import Trace

if TYPE_CHECKING:
    from factorykit.model.scenario.scenario import Scenario

Found = TypeVar("Found")
SIZES: Final = (1, 2, 4, 8)
"""Accelerators of a worker, or of a stage of its pipeline: those of one node."""
STAGES: Final = (1, 2, 4, 8)
"""Stages of the pipeline of a worker: whole nodes, except where their number and their layout are given."""
REQUESTS: Final = tuple(sorted({2**power for power in range(11)} | {3 * 2**power for power in range(9)}))
"""Concurrent requests of a decode worker."""
WORKERS: Final = ((1, 1), (1, 2), (1, 4), (2, 1), (4, 1))
"""Prefill and decode workers of a replica with separate prefill."""
NOTICEABLE_COST: Final = 1.05
"""Expected over median cost from which a plan states it."""
KEPT: Final = 200
"""Candidates with an interval: the best ones, and more where one of the others may be better."""
DEVIATIONS: Final = 1.645
"""Half the width of a 90 % interval in standard deviations."""
OBJECTIVES: Final = ("cost_usd_per_h", "accelerators", "j_per_token")
LIMITS: Final = {"ttft": "time_to_first_token_s", "tpot": "time_per_output_token_s"}
LONG: Final = {"ttft": 60.0, "tpot": 1.0}
"""Limits above which a number without a unit is probably in milliseconds [s]."""
ENDS: Final = (("", ""), ("_low", ""), ("_high", ""), ("", "_low"), ("", "_high"))
"""Time to first token and per output token: both medians, then one of them at either end of its interval."""
SINGLE: Final = "tpot cannot be given with output_tokens = 1: no token follows the first; give ttft or more tokens"
LAYOUT: Final = ("tensor_parallel", "attention_data_parallel", "expert_parallel")
CHOSEN: Final = (*LAYOUT, "concurrent_requests", "prefill_separate")
"""Quantities of a candidate that a caller may fix."""
SPECIFICATIONS: Final = (
    *("peak_flop_per_s", "peak_16bit_flop_per_s", "memory_bytes_per_s"),
    *("scale_up_domain", "scale_up_bytes_per_s", "scale_out_bytes_per_s"),
)
SHAPE: Final = ("requests_per_s", "input_tokens", "output_tokens")
DEMANDS: Final = {"load": SHAPE[0], SHAPE[0]: SHAPE[0], "users": "serving_users", "fleet": "accelerators"}
"""Ways to state the load, and their quantities."""
PRICES: Final = ("facility_power_per_accelerator_w", "rental_usd_per_accelerator_h")
STEP: Final = ("decode_attention_s", "accepted_tokens")
MAX_LOAD_SHARE: Final = 0.9
BELOW: Final = 1.0 - 1e-9
"""Share of the load that replicas carry at most, so that rounding adds no replica."""
MEMORY: Final = (
    *("requests_in_memory", "served_weight_bytes", "request_kv_bytes", "prefill_s", "replica_accelerators"),
    "time_per_output_token_s",
    *STEP,
)
ANSWERS: Final = {
    "serving_replicas": "replicas",
    "output_tokens_per_s": "tokens_per_s",
    "output_tokens_per_s_per_accelerator": "tokens_per_s_per_accelerator",
    "output_tokens_per_s_per_user": "tokens_per_s_per_user",
    "serving_j_per_token": "j_per_token",
    "serving_usd_per_input_token": "usd_per_million_input_tokens",
    "serving_usd_per_cached_token": "usd_per_million_cached_tokens",
    "serving_usd_per_output_token": "usd_per_million_output_tokens",
    "time_to_first_token_tail_s": "ttft_tail_s",
    "time_per_output_token_tail_s": "tpot_tail_s",
    "request_latency_s": "latency_s",
    "request_latency_tail_s": "latency_tail_s",
    "users_per_accelerator": "users_per_accelerator",
    "serving_users": "users",
}
"""Quantities of the answer and their columns."""


@dataclass(frozen=True)
class Request:
    """A validated request for a serving plan.

    ``question`` has the model, the load and the given values; ``own`` the chips with values of their own, by name;
    ``words`` engine, number format and model; ``limits`` the greatest latencies [s]; ``demand`` users or accelerators
    instead of a load.
    """

    question: Question
    chips: tuple[str, ...]
    own: Mapping[str, Scenario]
    words: Mapping[str, str]
    limits: Mapping[str, float]
    objective: str
    demand: Mapping[str, float]
    has_own_values: bool

    @property
    def fleet(self) -> float:
        """The accelerators of which all replicas are taken that fit, infinite if a load or users are given."""
        return self.demand.get("accelerators", math.inf)

    @property
    def least(self) -> pl.Expr:
        """What should be least: the objective, of a fleet the inverse of its load."""
        return pl.col(self.objective) if math.isinf(self.fleet) else 1.0 / pl.col("requests_per_s")

    @property
    def counts_replicas(self) -> bool:
        """Whether the objective rises with whole replicas."""
        return math.isinf(self.fleet) and self.objective in OBJECTIVES[:2]

    @property
    def excess(self) -> pl.Expr:
        """The latency farthest above its limit over that limit, at least 1."""
        over = [pl.col(f"{name}_s") / limit for name, limit in self.limits.items()]
        return pl.max_horizontal(pl.col("latency_s") * 0.0 + 1.0, *over)

    def ranked(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return candidates: those first that keep the limits best, then least expected objective, then smallest."""
        ratio = pl.col("expected_cost_ratio") if "expected_cost_ratio" in frame.columns else 1.0
        return frame.sort(self.excess, self.least * ratio, "accelerators", "latency_s", maintain_order=True)


@dataclass(frozen=True)
class ServingPlan(Plotted):
    """Answer of :func:`serve`.

    Attributes
    ----------
    request
        The validated request.
    best
        The chosen row of ``candidates`` by column.
    breaks
        Limits that no candidate keeps, in words; empty where the plan keeps all of them.
    candidates
        One row a chip, layout and concurrency that fits in memory, the best 200 or more.
    assumed
        The defaults that the answer uses, as of :func:`factorykit.assumed`.
    """

    request: Request = field(repr=False)
    best: dict[str, Any]
    breaks: tuple[str, ...]
    candidates: pl.DataFrame
    assumed: pl.DataFrame

    def frontier(self) -> pl.DataFrame:
        """Return the candidates that no other beats in both tokens/s per accelerator and tokens/s per user."""
        ordered = self.candidates.sort("tokens_per_s_per_user", "tokens_per_s_per_accelerator", descending=True)
        best = pl.col("tokens_per_s_per_accelerator")
        return ordered.filter(best > best.cum_max().shift(1).fill_null(0.0))

    def __str__(self) -> str:
        """Return the plan in two lines, and the limits that it breaks."""
        row, following = self.best, ""
        if row["tpot_s"]:
            low, middle, high = (row[f"tpot{end}_s"] * 1e3 for end in ("_low", "", "_high"))
            following = f"each next {middle:.1f} ms [{low:.1f}, {high:.1f}], "
        workers = f"{row['replica_accelerators']:.0f} ({_layout(row, '')})"
        if row["prefill_workers"]:
            ending = "s" * (row["decode_workers"] > 1)
            workers = f"{row['prefill_workers']:.0f} prefill ({_layout(row, 'prefill_')}) and "
            workers += f"{row['decode_workers']:.0f} decode worker{ending} ({_layout(row, '')})"
        likely = f", limits kept with {100 * row['limit_probability']:.0f} %" if row["limit_probability"] < 1.0 else ""
        if row["expected_cost_ratio"] > NOTICEABLE_COST:
            likely += f", expected cost {row['expected_cost_ratio']:.2f} times this"
        measured = "" if row["measured_points"] else "; no measured points of this engine, chip, model and mode"
        dollars, bearing, rate, users = (
            format_number(row[name])
            for name in (*map("usd_per_million_{}_tokens".format, ("output", "served")), "requests_per_s", "users")
        )
        lines = [
            f"{row['accelerators']:,.0f} {title_of(row['accelerator'], self.request)} in {row['replicas']:,.0f} "
            f"replica{'s' * (row['replicas'] > 1)} of {workers}, {row['concurrent_requests']:.0f} "
            f"request{'s' * (row['concurrent_requests'] > 1)} each, weights in {row['precision']}, {row['engine']}, "
            f"for {rate} requests/s of {users} users",
            f"first token {row['ttft_s']:.2f} s [{row['ttft_low_s']:.2f}, {row['ttft_high_s']:.2f}], {following}"
            f"{dollars} USD per million output tokens ({bearing} with prompts and idle accelerators){likely}{measured}",
        ]
        return "\n".join([*lines, *(f"breaks {limit}" for limit in self.breaks)])


def _layout(row: Mapping[str, Any], side: str) -> str:
    kind = "attention_data_parallel" if row[f"{side}attention_data_parallel"] > 1 else "tensor_parallel"
    stages = f", pipeline parallel {row['pipeline_parallel']:.0f}" if row["pipeline_parallel"] > 1 else ""
    return f"{kind.replace('_', ' ')} {row[side + kind]:.0f}{stages}"


def serve(
    model: Any,
    chips: str | Scenario | Iterable[str | Scenario] | None = None,
    *,
    load: Any = None,
    users: Any = None,
    fleet: Any = None,
    ttft: Any = None,
    tpot: Any = None,
    input_tokens: Any = None,
    output_tokens: Any = None,
    precision: str = "fp8",
    engine: str = "vllm",
    objective: str = "cost_usd_per_h",
    **given: Any,
) -> ServingPlan:
    """Choose chips, layout and replicas that serve a load within limits of latency, at least cost.

    Parameters
    ----------
    model
        A known model, such as ``llama3_70b`` or ``deepseek-ai/DeepSeek-R1``; or as :func:`factorykit.plan` takes it: a
        size (``"70B"``, ``"1T A32B"``), a ``config.json`` or a mapping of quantities.
    chips
        Chips to choose from, by default ``h200_sxm``. Those of your own, of :func:`factorykit.accelerator`, may stand
        among them.
    load
        Requests per second, mean; or a trace of :func:`factorykit.read_trace`, which also gives lengths, their
        variation and the share that the prefix cache holds.
    users
        Users who ask again ``user_think_s`` after each answer, instead of requests per second.
    fleet
        Accelerators, of which all replicas are taken that fit: the plan is then that of the largest load.
    ttft, tpot
        Greatest time to first token and per output token, as means; no limit if missing. Of one output token, which
        none follows, the time per output token is null.
    input_tokens, output_tokens
        Tokens of a request, mean; by default those of the trace, else 1,024.
    precision
        Number format of the weights: bf16, fp8, int8, fp4 or int4. A chip without FP4 units treats fp4 as int4.
    engine
        vllm, sglang or trtllm.
    objective
        Column of which the least is best: ``cost_usd_per_h``, ``accelerators`` or ``j_per_token``.
    **given
        Known quantities: ``rental_usd_per_accelerator_h``, ``pue``, ``draft_tokens``, ``cached_input_share``,
        ``serving_load_share``, ``latency_percentile``, ``output_tokens_cv``, a part of the layout
        (``tensor_parallel``, ``attention_data_parallel``, ``prefill_separate``) …

    Returns
    -------
    ServingPlan
        ``best``, ``breaks`` (limits that cannot be kept; the plan is then the nearest), ``candidates``, ``assumed`` and
        ``frontier()``. Columns: ``accelerator``, ``precision``, ``engine``, layout, workers, ``replicas``,
        ``accelerators``, ``requests_per_s``, ``users``, latencies with their tails at ``latency_percentile``, and of a
        replica ``tokens_per_s``;
        ``tokens_per_s_per_accelerator``, ``tokens_per_s_per_user``, ``users_per_accelerator``,
        ``tokens_per_s_per_mw``, ``j_per_token``, ``cost_usd_per_h``, dollars per million input, cached, output and
        ``served`` tokens (output, bearing prompts and idle accelerators, too), ``break_even_requests_per_s`` with an
        API, each but the tails with ``low`` and ``high`` (90 % interval); ``memory_left_bytes`` per accelerator,
        ``measured_points`` of the same engine, chip, model and mode (none is of a pipeline),
        ``limit_probability`` that all limits are kept, and ``expected_cost_ratio``.

    Raises
    ------
    FactorykitError
        If a name or value is invalid, values contradict each other, or the model fits on no chip in eight nodes; the
        message says how many bytes are missing.

    Notes
    -----
    Prompts and decode share accelerators or have workers of their own: at most eight accelerators, or a pipeline of two
    to eight such nodes. Latency at the concurrency of a saturated replica; the load share keeps the replicas below it.
    A limit is kept if the median keeps it. Of these candidates the least objective times ``expected_cost_ratio`` is the
    best: expected over median cost, in whole replicas, with time above limits bought back, so that wide intervals count
    against a candidate. Prompts that share the accelerators of decode have its error, since they are part of its time.

    Examples
    --------
    >>> plan = serve("llama3_70b", "h200_sxm", load=10.0, tpot="25 ms")
    >>> plan.breaks, plan.best["tpot_s"] <= 0.025
    ((), True)
    """
    asked = {name: value for name, value in locals().items() if name not in ("model", "given") and value is not None}
    need("numpy")
    request = _read(model, asked, given)
    rows, memory, used = _fitting(request)
    frame, answers = _best_with_intervals(request, rows, memory)
    in_memory = request.question.asking("requests_in_memory", *LIMITS.values()).on(rows.decode).resolve()
    assumed = pl.concat([in_memory.assumed(), answers.assumed()]).unique("quantity", maintain_order=True)
    used = used.union(CHOSEN, in_memory.resolution.used, answers.resolution.used)
    stated = given | {name: value for chip in request.own.values() for name, value in chip.items()}
    values = {**stated, **request.question.values}
    warn_of_idle({name: values[name] for name in sorted(stated.keys() - used)}, ("serving",))
    best = frame.row(0, named=True)
    breaks = tuple(
        f"{name} <= {limit:.4g} s: the nearest plan has {best[f'{name}_s']:.4g} s"
        for name, limit in request.limits.items()
        if best[f"{name}_s"] > limit
    )
    return ServingPlan(request, best, breaks, frame, assumed)


def _read(model: Any, asked: Mapping[str, Any], given: dict[str, Any]) -> Request:
    """Return the validated request from the arguments that are given, and known quantities."""
    objective = one_of("objective", asked.get("objective"), OBJECTIVES)
    if "fleet" in asked and objective != OBJECTIVES[0]:
        raise ScenarioError(f"objective = {objective!r} cannot be given with fleet, whose largest load is sought")
    if "chips" in asked and "accelerator" in given:
        raise ScenarioError("chips and accelerator are the same; give one of them")
    key, shape = named_model(model)
    named = given.pop("accelerator", shape.get("accelerator", "h200_sxm"))
    names, own = own_chips(asked.get("chips", named), given)
    load, demand = _demand({**asked, **{name: given.pop(name) for name in SHAPE[:1] if name in given}})
    load |= {name: asked.get(name, load.get(name, 1024.0)) for name in SHAPE[1:]}
    if results := sorted({"accelerators", *ANSWERS, *LIMITS.values()} & given.keys()):
        raise ScenarioError(
            f"{results[0]} is a result of serve; give load, users, fleet, ttft, tpot or a part of the layout instead"
        )
    question = Question.read({**shape, **load, **given}, assume=True)
    question.check_consistency()
    values = question.values
    if (stages := float(values.get("pipeline_parallel", 1.0))) % 1.0 or stages > max(STAGES):
        raise ScenarioError(f"pipeline_parallel = {stages:g} must be whole and at most {max(STAGES)}")
    if (share := float(values.get("serving_load_share", 0.0))) > MAX_LOAD_SHARE:
        warn(
            f"serving_load_share = {share:g}: no latency includes the wait for replicas; give up to {MAX_LOAD_SHARE:g}"
        )
    warn_of_shared({name: values[name] for name in given if name in values}, names)
    limits = _limits({name: asked[name] for name in LIMITS if name in asked})
    if values["output_tokens"] == 1.0 and "tpot" in limits:
        raise ScenarioError(SINGLE)
    words = {"engine": word_of("engine", asked.get("engine"), ENGINES), "model": key}
    words["format"] = word_of("precision", asked.get("precision"), FORMATS)
    return Request(question, names, own, words, limits, objective, demand, not BROUGHT.keys().isdisjoint(given))


def _limits(latencies: Mapping[str, Any]) -> dict[str, float]:
    """Return the limits of latency in seconds."""
    read = Question.read({LIMITS[name]: value for name, value in latencies.items()}).values
    limits = {name: float(read[LIMITS[name]]) for name in latencies}
    for name, limit in limits.items():
        value = latencies[name]
        if limit == 0.0:
            raise ScenarioError(f"{name} must be above 0 s, got {value}; give the greatest latency, or no limit")
        if limit > LONG[name] and not any(map(str.isalpha, str(value))):
            raise ScenarioError(f"{name} = {value} without a unit: give '{limit:g} ms' or '{limit:g} s'")
    return limits


def named_model(model: Any) -> tuple[str, Scenario]:
    """Return name and shape of a model: known by any of its published names, or as :func:`factorykit.plan` reads it."""
    try:
        key = architecture_of("" if not isinstance(model, str) or model.endswith(".json") else model)
    except UnknownName:
        shape = model_of(model)
        return shape.label or "model", shape
    return key, architecture(key)


def _demand(asked: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, float]]:
    """Return the quantities of a load, and the users or the accelerators from which requests per second follow."""
    given = {name: asked[name] for name in DEMANDS if name in asked}
    known = dict(given.pop("load").quantities) if isinstance(given.get("load"), Trace) else {}
    if len(given) > 1 or not (given or known):
        got = " and ".join(given) or "none"
        raise ScenarioError(f"serve needs one of load (requests per second, or a trace), users and fleet, got {got}")
    found = {DEMANDS[name]: value for name, value in given.items()}
    if not found or SHAPE[0] in found:
        return known | found, {}
    known.pop(SHAPE[0], None)
    return known, {name: float(quantity(name).check(value)) for name, value in found.items()}


def on_each_chip(chips: Iterable[str], find: Callable[[str], Found]) -> list[Found]:
    """Return what is found on the chips, with a warning for those that fail; raise if all do."""
    found, errors = [], []
    for name in chips:
        try:
            found.append(find(name))
        except FactorykitError as error:
            errors.append(error)
    if not found:
        raise errors[0] if len(errors) == 1 else ScenarioError("; ".join(dict.fromkeys(map(str, errors))))
    for error in errors:
        warn(f"left out: {error}")
    return found


def _fitting(request: Request) -> tuple[predict.Rows, pl.DataFrame, frozenset[str]]:
    """Return the candidates of all chips that fit: to predict, with memory and prices, and the quantities used."""
    rows, memory, used = zip(*on_each_chip(request.chips, lambda name: _fitting_on(request, name)), strict=True)
    words, *numbers = zip(*rows, strict=True)
    together = predict.Rows([*chain.from_iterable(words)], *map(pl.concat, numbers))
    return together, pl.concat(memory).with_row_index("row"), frozenset[str]().union(*used)


def _candidates(question: Question, precision: str) -> list[pl.DataFrame]:
    """Return decode and prefill workers of all layouts, numbers of workers and concurrencies on a chip."""
    stages = [question.values["pipeline_parallel"]] if "pipeline_parallel" in question.values else STAGES
    parts = len(stages) == 1 and not question.values.keys().isdisjoint(LAYOUT)
    sizes = [(count, size) for count in stages for size in (SIZES if count == 1.0 or parts else SIZES[-1:])]
    rows = [(size // groups, groups, groups, count) for count, size in sizes for groups in sorted({1, size})]
    layouts = pl.DataFrame(rows, (*LAYOUT, "pipeline_parallel"), orient="row").cast(pl.Float64)
    if not question.values.get("experts"):
        layouts = layouts.filter(pl.col("attention_data_parallel") == 1)
    key = question.values["accelerator"]
    specified = {"accelerator": key, **hardware({**chip(str(key)), **question.values}, precision)}
    tried = [question.values["concurrent_requests"]] if "concurrent_requests" in question.values else REQUESTS
    requests = pl.DataFrame({"concurrent_requests": tried}).cast(pl.Float64)
    least = pl.col("attention_data_parallel") * pl.col("pipeline_parallel")
    loads = layouts.join(requests, how="cross").filter(pl.col("concurrent_requests") >= least)
    alone = pl.DataFrame([specified]).join(loads, how="cross")
    mirrored = [pl.col(name).alias(f"prefill_{name}") for name in LAYOUT]
    together = alone.with_columns(*mirrored, prefill_workers=0.0, decode_workers=1.0, prefill_separate=0.0)
    workers = pl.DataFrame(WORKERS, ("prefill_workers", "decode_workers"), orient="row").cast(pl.Float64)
    others = layouts.select("pipeline_parallel", *mirrored)
    apart = alone.join(others, on="pipeline_parallel", maintain_order="left_right").join(workers, how="cross")
    both = pl.concat([together, apart.with_columns(prefill_separate=1.0)])
    for name in set(question.values) & set(both.columns):
        fixed = pl.col(name) == question.values[name]
        both = both.filter(fixed) if name in CHOSEN else both.with_columns(pl.lit(question.values[name]).alias(name))
    if both.is_empty():
        stated = ", ".join(f"{name} = {question.values[name]:g}" for name in CHOSEN if name in question.values)
        raise ScenarioError(
            f"no layout has {stated}: a worker has 1, 2, 4 or 8 accelerators, all tensor parallel, or with experts all "
            "attention data parallel and expert parallel; give others or none"
        )
    prompts = pl.col("concurrent_requests") * pl.col("decode_workers") / pl.max_horizontal("prefill_workers", 1.0)
    return [
        both,
        both.with_columns(
            pl.max_horizontal(prompts, 1.0).alias("concurrent_requests"),
            *(pl.col(f"prefill_{n}").alias(n) for n in LAYOUT),
        ),
    ]


def _with_memory(question: Question, sides: list[pl.DataFrame]) -> tuple[pl.DataFrame, pl.Series]:
    """Return the candidates with their memory and accelerators, and which of them fit."""
    decode, prefill = (question.asking(*MEMORY).on(side).resolve().run() for side in sides)
    share = question.asking("serving_memory_share").resolve().run()["serving_memory_share"]
    room = share * pl.col("accelerator_memory_bytes") - pl.col("served_weight_bytes")
    cache = pl.col("request_kv_bytes") * pl.col("concurrent_requests") / pl.col("replica_accelerators")
    size = pl.col("decode_workers") * pl.col("replica_accelerators")
    prompts = pl.col("prefill_workers") * prefill["replica_accelerators"]
    both = decode.with_columns(
        prefill["prefill_s"],
        **{name: pl.lit(question.values[name]) for name in ("input_tokens", "output_tokens")},
        memory_left_bytes=room - cache,
        prefill_accelerators=prompts,
        replica_accelerators=size + prompts,
        worker=size,
    )
    return both, (prefill["requests_in_memory"] >= 1.0) & (both["requests_in_memory"] >= both["concurrent_requests"])


def _fitting_on(request: Request, name: str) -> tuple[predict.Rows, pl.DataFrame, frozenset[str]]:
    """Return the candidates on a chip whose weights and cache fit, with memory and prices, and the quantities used."""
    specified = request.own.get(name, {"accelerator": name})
    question = replace(request.question, values={**request.question.values, **specified})
    prices = question.without(*SHAPE).asking(*PRICES).resolve()
    sides = _candidates(question, request.words["format"])
    every, fits = _with_memory(question, sides)
    if not fits.any():
        least = every.sort("memory_left_bytes").row(-1, named=True)
        missing = max(-least["memory_left_bytes"], least["request_kv_bytes"] / least["worker"])
        raise ScenarioError(
            f"weights and cache fit on no layout of {max(SIZES) * least['pipeline_parallel']:.0f} accelerators or "
            f"fewer: on {least['worker']:.0f} {name} about {missing / 1e9:,.1f} GB are missing on each;"
            " give chips with more memory, a narrower precision or fewer tokens"
        )
    sizes = every["replica_accelerators"]
    if (smallest := float(sizes.filter(fits).min())) > request.fleet:  # type: ignore[arg-type]
        raise ScenarioError(
            f"fleet = {request.fleet:g} is too small: one replica needs {smallest:.0f} accelerators or more"
        )
    decode, prefill, both = (frame.filter(fits & (sizes <= request.fleet)) for frame in (*sides, every))
    given = request.question.values
    shared = {n: pl.lit(v) for n, v in given.items() if not isinstance(v, str) and n not in decode}
    numbers = [side.drop("accelerator").with_columns(**shared) for side in (decode, prefill)]
    apart = pl.col("prefill_separate")
    load = both.select(
        pl.lit(predict.newest()).alias("month"),
        concurrency=pl.col("concurrent_requests") * pl.col("decode_workers"),
        workers="decode_workers",
        prefill_workers=pl.max_horizontal("prefill_workers", 1.0),
        known=apart,
        recipes=apart,
        waiting=1.0,
    )
    words = {**request.words, "chip": str(specified["accelerator"])}
    agg, disagg = ({**words, "mode": mode} for mode in ("agg", "disagg"))
    described = [disagg if split else agg for split in both["prefill_separate"]]
    known = [float(_measured_points()[_mode(row)]) for row in (agg, disagg)]
    both = both.with_columns(
        measured_points=(pl.col("pipeline_parallel") == 1.0) * pl.when(apart == 0.0).then(known[0]).otherwise(known[1]),
        accelerator=pl.lit(name),
        **{price: pl.lit(value) for price, value in prices.run().items()},
    )
    return predict.Rows(described, numbers[0], numbers[1], load), both, prices.resolution.used


@cache
def _measured_points() -> Counter[tuple[str, ...]]:
    """Return the number of measured points of every engine, chip, model and mode."""
    return Counter(map(_mode, predict.measured()[0].words))


def _mode(words: Mapping[str, str]) -> tuple[str, ...]:
    return *(words[name] for name in FAMILY), words["mode"][:3]


def _best_with_intervals(request: Request, rows: predict.Rows, memory: pl.DataFrame) -> tuple[pl.DataFrame, Chain]:
    """Return the best candidates, ranked and with intervals, and the chain of their answers.

    They are so many that none of the others has a median below the expected objective of the best.
    """
    import polars.selectors as cs

    found = pl.DataFrame(predict.latencies(rows, intervals=False))
    ranked = request.ranked(_answers(request, memory, found)[0])
    count = KEPT
    while True:
        chosen = ranked.head(count)["row"].to_list()
        taken = predict.Rows([rows.words[row] for row in chosen], *(frame[chosen] for frame in rows[1:]))
        frame, answers = _answers(request, memory[chosen], pl.DataFrame(predict.latencies(taken)))
        frame = request.ranked(frame)
        least = frame.select(request.least * pl.col("expected_cost_ratio")).item(0, 0)
        if not (others := ranked.slice(count).filter(request.excess <= 1.0, request.least <= least).height):
            break
        count += others
    words = {"engine": pl.lit(request.words["engine"]), "precision": pl.lit(request.words["format"])}
    frame = frame.drop("row").with_columns(**words)
    if request.question.values["output_tokens"] == 1.0:
        frame = frame.with_columns(pl.when(False).then(cs.starts_with("tpot", "tokens_per_s_per_user")))
    return frame, answers


def _answers(request: Request, memory: pl.DataFrame, found: pl.DataFrame) -> tuple[pl.DataFrame, Chain]:
    """Return candidates with throughput, cost and energy, with intervals where latencies have them, and their chain."""
    import polars.selectors as cs

    frame = memory.hstack(found.drop(cs.starts_with("tokens_per_s")))
    bands = ENDS if "tpot_low_s" in frame.columns else ENDS[:1]
    asked = pl.concat(
        frame.select(
            *(*PRICES, *STEP, "prefill_separate", "prefill_accelerators", "replica_accelerators"),
            pl.when(prefill_separate=0.0).then(scaled).otherwise("prefill_s").alias("prefill_s"),
            pl.max_horizontal("prefill_workers", 1.0).alias("prefill_workers"),
            (pl.col("concurrent_requests") * pl.col("decode_workers")).alias("concurrent_requests"),
            pl.col(f"ttft{first}_s").alias("time_to_first_token_s"),
            pl.col(f"tpot{following}_s").alias("time_per_output_token_s"),
        )
        for first, following in bands
        for scaled in [pl.col("prefill_s") * pl.col(f"tpot{following}_s") / pl.col("time_per_output_token_s")]
    )
    question = request.question.without(*asked.columns, *LAYOUT)
    asked = asked.with_columns(requests_per_s=_load(question, asked, request.demand))
    resolved = question.without("requests_per_s").asking(*ANSWERS).on(asked).resolve()
    scales = {name: 1e6 if "_usd_per_" in name else 1.0 for name in ANSWERS}
    answers = resolved.run().select(
        "requests_per_s",
        *((pl.col(name) * scales[name]).alias(short) for name, short in ANSWERS.items()),
        accelerators=pl.col("serving_replicas") * pl.col("replica_accelerators"),
        tokens_per_s_per_mw=1e6 / pl.col("serving_j_per_token"),
    )
    answers = answers.with_columns(cost_usd_per_h=pl.col("accelerators") * pl.concat([frame[PRICES[1]]] * len(bands)))
    tokens = pl.col("requests_per_s") * question.values["output_tokens"] * SECONDS_PER_HOUR
    answers = answers.with_columns(usd_per_million_served_tokens=1e6 * pl.col("cost_usd_per_h") / tokens)
    bill = answers.select(cluster_usd_per_h="cost_usd_per_h")
    even = question.without(*bill.columns).asking("break_even_requests_per_s").on(bill).resolve().run()
    answers = answers.with_columns(even["break_even_requests_per_s"])
    middle, *ends = (answers.slice(part * frame.height, frame.height) for part in range(len(bands)))
    columns = list(middle.get_columns())
    for name in middle.columns if ends else ():
        low, high = _interval(middle[name], [end[name] for end in ends])
        columns += [low.alias(f"{name}_low"), high.alias(f"{name}_high")]
    if ends:
        deviations = {
            f"{name}_deviation": (pl.col(f"{name}_high_s") / pl.col(f"{name}_s")).log() / DEVIATIONS for name in LIMITS
        }
        over = {f"{name}_over": pl.col(f"{name}_s") / request.limits.get(name, math.inf) for name in LIMITS}
        known = frame.with_columns(**deviations, **over)
        ratio, kept = expected_cost(*(known[name] for name in arguments(expected_cost)))
        if request.counts_replicas:
            needed = middle["users"] / middle["users_per_accelerator"] / frame["replica_accelerators"]
            ratio = ((needed * ratio * BELOW).ceil() / middle["replicas"]).clip(1.0)
        columns += [ratio.alias("expected_cost_ratio"), kept.alias("limit_probability")]
    return frame.drop("worker", LIMITS["tpot"], *STEP, *SPECIFICATIONS).hstack(columns), resolved


def _load(question: Question, asked: pl.DataFrame, demand: Mapping[str, float]) -> pl.Series | float:
    """Return requests per second of each row: given, of users, or the most that all replicas of a fleet carry."""
    if not demand:
        return float(question.values["requests_per_s"])
    names = ("users_per_accelerator", "request_latency_s", "user_think_s")
    users, latency, think = question.asking(*names).on(asked).resolve().run().select(names).get_columns()
    size = asked["replica_accelerators"]
    most = users * size * (demand.get("accelerators", 0.0) / size).floor() * BELOW
    return demand.get("serving_users", most) / serving_users(1.0, latency, think)


def _interval(value: pl.Series, moved: Sequence[pl.Series]) -> tuple[pl.Series, pl.Series]:
    """Return the ends of a result, from its values at both ends of each latency; deviations add in quadrature."""
    import numpy as np

    ratios = np.array([np.where(value > 0.0, value_moved / value, 1.0) for value_moved in moved]).reshape(2, 2, -1)
    down = np.hypot(*np.log(np.minimum(ratios.min(axis=1), 1.0)))
    up = np.hypot(*np.log(np.maximum(ratios.max(axis=1), 1.0)))
    return value * np.exp(-down), value * np.exp(up)
