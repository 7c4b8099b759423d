"""Traces of requests to a served model: files in two published formats, and requests drawn at random."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import Any, Final

import polars as pl

from factorykit.core import text_io, validation
from factorykit.core.constants import SECONDS_PER_HOUR
from factorykit.core.errors import ScenarioError, short_repr
from factorykit.core.extras import need
from factorykit.core.vocabulary import quantity

AZURE: Final = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
MOONCAKE: Final = ("timestamp", "input_length", "output_length")
COLUMNS: Final = ("arrival_s", "input_tokens", "output_tokens")
BLOCK_TOKENS: Final = 512
"""Tokens of a block that Mooncake names by an identifier."""
GAP_INTERVALS: Final = 20.0
"""Mean intervals without a request that make a gap; among 10^8 random arrivals there is one in five."""


@dataclass(frozen=True)
class Trace:
    """Requests in the order of their arrival.

    Attributes
    ----------
    requests
        One row a request: ``arrival_s`` since the first, ``input_tokens``, ``output_tokens``.
    problems
        Number of rows that are ``invalid`` (not a number, or a length below 1; they are left out), of times that are
        ``unordered`` (before that of the row above; rows are sorted), and of ``gaps`` (more than 20 mean intervals).
    cached_input_share
        Share of the input tokens whose block was part of an earlier prompt; None where the trace does not say.
    """

    requests: pl.DataFrame
    problems: dict[str, int]
    cached_input_share: float | None = None

    @property
    def quantities(self) -> dict[str, float]:
        """Load of the busiest hour, mean lengths and their variation, as :func:`factorykit.serve` takes them."""
        tokens = {name: self.requests[name] for name in COLUMNS[1:]}
        found = {"requests_per_s": max(self.hourly())}
        found |= {name: float(column.mean()) for name, column in tokens.items()}  # type: ignore[arg-type]
        found |= {f"{name}_cv": float(column.std(ddof=0)) / found[name] for name, column in tokens.items()}  # type: ignore[arg-type]
        return found | ({} if self.cached_input_share is None else {"cached_input_share": self.cached_input_share})

    def hourly(self) -> list[float]:
        """Return the requests per second of each hour from the first request on; one number for a shorter trace.

        An hour that the trace ends in is left out.
        """
        arrival = self.requests["arrival_s"]
        if (whole := int(arrival[-1] / SECONDS_PER_HOUR)) == 0:
            return [(arrival.len() - 1) / float(arrival[-1])]
        hours = (arrival / SECONDS_PER_HOUR).floor().cast(pl.Int64)
        return [float((hours == hour).sum()) / SECONDS_PER_HOUR for hour in range(whole)]

    def __str__(self) -> str:
        """Return the load in one line, and the problems of the file in another."""
        found = self.quantities
        load = ", ".join(f"{quantity(name).label.lower()} {value:.4g}" for name, value in found.items())
        counts = ", ".join(f"{count:,} {name}" for name, count in self.problems.items())
        return f"{self.requests.height:,} requests: {load}\n{counts}"

    @classmethod
    def drawn(
        cls,
        requests: int,
        requests_per_s: float | str,
        input_tokens: float | str,
        output_tokens: float | str,
        *,
        input_tokens_cv: float | str = 1.0,
        output_tokens_cv: float | str = 1.0,
        seed: int = 0,
    ) -> Trace:
        """Return requests that arrive at random times, with lengths of a lognormal distribution."""
        np = need("numpy")
        random = np.random.default_rng(validation.integer("seed", seed))
        count = validation.integer("requests", requests, 2, 10**8)
        given = {"requests_per_s": requests_per_s, "input_tokens": input_tokens, "output_tokens": output_tokens}
        given |= {"input_tokens_cv": input_tokens_cv, "output_tokens_cv": output_tokens_cv}
        read = {name: float(quantity(name).check(value)) for name, value in given.items()}
        columns = {"arrival_s": np.cumsum(random.exponential(1.0 / read["requests_per_s"], count))}
        for name in COLUMNS[1:]:
            variance = np.log(1.0 + read[f"{name}_cv"] ** 2)
            lengths = random.lognormal(np.log(read[name]) - 0.5 * variance, np.sqrt(variance), count)
            columns[name] = np.maximum(np.rint(lengths), 1.0)
        frame = pl.DataFrame(columns).with_columns(pl.col("arrival_s") - pl.first("arrival_s"))
        return cls(frame, {"invalid": 0, "unordered": 0, "gaps": 0})


def read_trace(path: str | PathLike[str]) -> Trace:
    r"""Read a trace of requests.

    Parameters
    ----------
    path
        A file of Azure's LLM inference traces (CSV: ``TIMESTAMP,ContextTokens,GeneratedTokens``), of Mooncake (a JSON
        object a line: ``timestamp`` in ms, ``input_length``, ``output_length``, ``hash_ids`` of blocks of 512 tokens),
        or a CSV with ``arrival_s,input_tokens,output_tokens``.

    Returns
    -------
    Trace
        ``requests``, ``quantities`` and ``problems``, how many rows are invalid and times out of order, and gaps. Give
        it to :func:`factorykit.serve` as ``load``.

    Raises
    ------
    ScenarioError
        If the file cannot be read, has neither format, or has fewer than two valid requests at different times.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> lines = ["TIMESTAMP,ContextTokens,GeneratedTokens", "2023-11-16 18:15:46.6805900,374,44"]
    >>> lines += ["2023-11-16 18:15:50.9951690,396,109", "2023-11-16 18:15:48.2200000,-5,20"]
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "trace.csv").write_text("\n".join(lines))
    ...     trace = read_trace(Path(folder, "trace.csv"))
    >>> trace.requests.height, trace.problems
    (2, {'invalid': 1, 'unordered': 1, 'gaps': 0})
    """
    content = text_io.read_bytes(path, error=ScenarioError)
    try:
        text = text_io.decode(content)
    except ValueError as error:
        raise ScenarioError(f"{path} {error}") from None
    frame, hashes = _mooncake(text) if text.lstrip().startswith("{") else (_azure(text), None)
    if frame is None:
        raise ScenarioError(
            f"{path} must have the columns {', '.join(AZURE)} or {', '.join(COLUMNS)}, or a JSON object with "
            f"{', '.join(MOONCAKE)} in each line"
        )
    unordered = int((frame["arrival_s"].drop_nulls().diff() < 0.0).sum())
    valid = pl.all_horizontal(pl.col(*COLUMNS).is_finite(), pl.col(*COLUMNS[1:]) >= 1.0)
    numbered = frame.with_row_index("row").with_columns(valid=valid.fill_null(False))
    kept = numbered.filter("valid").sort("arrival_s", maintain_order=True)
    if kept["arrival_s"].n_unique() < 2:
        raise ScenarioError(f"{path} must have two valid requests at different times, got {kept.height} valid requests")
    requests = kept.select(pl.col("arrival_s") - pl.first("arrival_s"), *COLUMNS[1:])
    mean = requests["arrival_s"][-1] / (requests.height - 1)
    gaps = int((requests["arrival_s"].diff() > GAP_INTERVALS * mean).sum())
    problems = {"invalid": frame.height - kept.height, "unordered": unordered, "gaps": gaps}
    prompts = zip(kept["row"], requests["input_tokens"], strict=True)
    share = None if hashes is None else _cached([(hashes[row], tokens) for row, tokens in prompts])
    return Trace(requests, problems, share)


def _azure(text: str) -> pl.DataFrame | None:
    try:
        frame = pl.read_csv(text.encode(), infer_schema=False)
    except pl.exceptions.PolarsError:
        return None
    if set(COLUMNS) <= set(frame.columns):
        return frame.select(pl.col(name).cast(pl.Float64, strict=False) for name in COLUMNS)
    if not set(AZURE) <= set(frame.columns):
        return None
    time = pl.col(AZURE[0]).str.replace(r"([+-]\d\d:?\d\d|Z)$", "").str.slice(0, 26)
    tokens = [pl.col(name).cast(pl.Float64, strict=False) for name in AZURE[1:]]
    moment = time.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit="us", strict=False)
    return frame.select(moment.dt.epoch("us") / 1e6, *tokens).rename(dict(zip(AZURE, COLUMNS, strict=True)))


def _mooncake(text: str) -> tuple[pl.DataFrame | None, list[Any] | None]:
    rows: list[list[float | None]] = []
    hashes: list[Any] = []
    for line in filter(str.strip, text.splitlines()):
        try:
            found = text_io.parse_json(line.encode())
        except ValueError:
            found = None
        found = found if isinstance(found, dict) else {}
        numbers = [found.get(name) for name in MOONCAKE]
        rows.append([float(n) if isinstance(n, (int, float)) and not isinstance(n, bool) else None for n in numbers])
        hashes.append(found.get("hash_ids"))
    if all(number is None for row in rows for number in row):
        return None, None
    frame = pl.DataFrame(rows, dict.fromkeys(COLUMNS, pl.Float64), orient="row").with_columns(pl.col("arrival_s") / 1e3)
    return frame, hashes if any(isinstance(row, list) for row in hashes) else None


def _cached(prompts: list[tuple[Any, float]]) -> float:
    """Return the share of input tokens in blocks that begin a prompt and were part of an earlier one."""
    seen: set[Any] = set()
    found = 0.0
    for blocks, tokens in prompts:
        names = [short_repr(block) for block in blocks] if isinstance(blocks, list) else []
        known = next((place for place, name in enumerate(names) if name not in seen), len(names))
        found += min(known * BLOCK_TOKENS, tokens)
        seen.update(names)
    return found / sum(tokens for _, tokens in prompts)
