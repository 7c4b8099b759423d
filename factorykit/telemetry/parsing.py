"""Parsing of cells: numbers, timestamps, names and categories as polars expressions."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from hashlib import blake2b
from pathlib import Path
from secrets import token_bytes
from typing import Final

import polars as pl

from factorykit.core.text_io import package_rows

OTHERWISE: Final = {"state": "unknown", "reason": "notice", "result": "notice", "xid_kind": "notice"} | {
    "kind": "unknown",
    "xid_cause": "software",
    "cause": "other",
}
"""Category of a word that is not in ``words.csv``: an Xid that is no failure of a part is caused by a program."""
SECRET: Final = (
    r"(?i)\b(?:sk|pk|hf|ghp|gho|ghs|github_pat|glpat|xox[abprs]|AKIA|ASIA|AIza|ya29|eyJ)[-_A-Za-z0-9.]{12,}"
    r"|(?:password|passwd|secret|token|api[-_]?key|bearer|authorization)[\"']?\s*[:=\s]\s*\S+"
    r"|\b[A-Za-z0-9+/_]{40,}={0,2}|://[^/\s:@]+:[^/\s@]+@"
)
"""Text that looks like a key: by the prefix of its issuer, by the word before it, or by its length."""
MIN_SECRET_BYTES: Final = 8
"""Shorter cells hold no key."""
HIDING_KEY: Final = token_bytes(32)
"""Key of the tokens of hidden text: the same text has the same token in all logs that a process reads."""
MAX_NAME_LETTERS: Final = 80
"""Of a longer name, the rest is replaced by a token."""
USUAL: Final = (
    ("%Y-%m-%dT%H:%M:%S", None),
    ("%Y-%m-%d %H:%M:%S", None),
    ("%Y-%m-%d %H:%M:%S%.f", None),
    ("%Y-%m-%d %H:%M:%S,%3f", None),
    ("%Y/%m/%d %H:%M:%S%.f", None),
    ("%Y-%m-%dT%H:%M:%S%.fZ", "UTC"),
    ("seconds since the epoch", "UTC"),
)
"""Forms of most timestamps, and their zone."""
WITH_YEAR: Final = "%b %e %H:%M:%S %Y"
LOCAL: Final = ("%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M", "%Y-%m-%d", "%Y%m%d %H:%M:%S", WITH_YEAR)
SINCE_EPOCH: Final = r"^\d{9,13}(?:\.\d+)?$"
OFFSET: Final = r"(?:Z| UTC|[+-]\d\d:?\d\d)$"
WITHOUT_YEAR: Final = r"^([A-Z]\w{2} +\d+ \d\d:\d\d:\d\d|\d{4} \d\d:\d\d:\d\d\.\d+)$"
"""Timestamps of syslog and glog, which have no year."""
GLOG: Final = "%m%d %H:%M:%S%.f %Y"
LEAP_YEAR: Final = 2024
TIME: Final = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "min": 60.0, "h": 3600.0}
POWER: Final = {"mW": 1e-3, "W": 1.0, "kW": 1e3}
SHARE: Final = {"%": 0.01, "share": 1.0}
UNITS: Final = {
    "s": TIME,
    "ms or K": {"ms or K": 1e-3, "K": 1.0},
    "ms": TIME,
    "W": POWER,
    "%": SHARE,
    "share": SHARE,
    "": {"": 1.0},
}
"""Units that a cell may have, by the unit of the cells of its column that have none; factors to our unit."""
DCGM_BLANK: Final = 2.0**47
"""The smallest of the numbers that DCGM has for missing values; ``words.csv`` has them."""
WRITTEN_UNITS: Final = ("W", "%")
"""Units that most cells of a column have."""
PASSES: Final = ("earliest", "latest")
"""The two passes of an hour that the clock repeats when summer time ends."""
DISORDER: Final = timedelta(minutes=10)
"""Time by which rows of a file may be out of order."""
PIECE: Final = re.compile(r"([^,\[\]]+)|\[([^\[\]]+)\]")
"""A plain piece of an item of a node list, or the numbers in its brackets."""
MAX_NODES: Final = 100_000
NUMBER: Final = r"^([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?) *"


def text(cell: pl.Expr, max_letters: float = MAX_NAME_LETTERS) -> pl.Expr:
    """Return a name, or a list of them; text that looks like a key, and the end of a long one, become tokens."""

    def masked(cells: pl.Series) -> pl.Series:
        is_suspect = (cells.str.len_bytes() >= MIN_SECRET_BYTES) & cells.str.contains(SECRET)
        is_long = cells.str.len_chars() > max_letters
        changed = cells.filter(is_suspect | is_long).unique().to_list()
        short = (
            f"{value[: MAX_NAME_LETTERS // 2]}~{_token(value)}" if len(value) > max_letters else value
            for value in changed
        )
        return cells.replace(changed, [*map(_hidden, short)]) if changed else cells

    return pl.when(has_value(cell)).then(cell).map_batches(masked, return_dtype=pl.String, is_elementwise=True)


def once(read: Callable[[pl.Expr], pl.Expr], cell: pl.Expr) -> pl.Expr:
    """Return what is read from cells; each distinct one is read once."""
    value = read(pl.col("cell"))
    kind = pl.LazyFrame(schema={"cell": pl.String}).select(value).collect_schema().dtypes()[0]

    def values(cells: pl.Series) -> pl.Series:
        is_rich = cells.head(1000).n_unique() > 500
        distinct = cells if is_rich else cells.unique()
        found = distinct.to_frame("cell").select(value).to_series()
        if found.equals(distinct, check_dtypes=True):
            return cells
        return found if is_rich else cells.replace_strict(distinct, found, return_dtype=kind)

    return cell.map_batches(values, return_dtype=kind, is_elementwise=True)


def _hidden(value: str) -> str:
    return re.sub(SECRET, lambda match: f"(hidden {_token(match[0])})", value)


def _token(value: str) -> str:
    return blake2b(value.encode(), key=HIDING_KEY, digest_size=5).hexdigest()


def number(cell: pl.Expr, unit: str = "") -> pl.Expr:
    """Return a finite number in our unit; one without a unit has that of its column.

    Separators of thousands, decimal commas and unknown units give no number, since they can be read in two ways.

    >>> cells = pl.Series(["300.5", "0.35 kW", "5,123", "1.234.567", "00:05:10"])
    >>> pl.select(number(pl.lit(cells), "W")).to_series().to_list()
    [300.5, 350.0, None, None, None]
    """
    factors = UNITS[unit]

    def numbers(cells: pl.Series) -> pl.Series:
        usual = cells.str.strip_suffix(f" {unit}") if unit in WRITTEN_UNITS else cells
        plain = usual.cast(pl.Float64, strict=False) * factors[unit]
        odd = cells.set(plain.is_not_null(), None)
        if odd.null_count() < len(odd):
            factor = odd.str.replace(NUMBER, "").replace_strict(factors, default=None, return_dtype=pl.Float64)
            plain = plain.zip_with(odd.is_null(), odd.str.extract(NUMBER).cast(pl.Float64, strict=False) * factor)
        is_none = ~(plain.is_between(0.0, 1.0) if factors is SHARE else plain.is_finite())
        if (plain >= DCGM_BLANK * factors[unit]).any():
            is_none |= cells.is_in([*words("blank")])
        return plain.set(is_none, None)

    return cell.map_batches(numbers, return_dtype=pl.Float64, is_elementwise=True)


def pace(cell: pl.Expr) -> pl.Expr:
    """Return the time of an iteration from a progress bar of tqdm.

    >>> pl.select(slow=pace(pl.lit("2.18s/it")), fast=pace(pl.lit("4.00it/s"))).row(0)
    (2.18, 0.25)
    """
    value = cell.str.extract(r"^([\d.]+)").cast(pl.Float64, strict=False)
    return pl.when(cell.str.ends_with("it/s")).then(1.0 / value).otherwise(value)


Form = tuple[str, str | None]


def usual(cells: pl.Series) -> Form:
    """Return the form that reads most timestamps: it is tried first, and alone where it reads all.

    >>> usual(pl.Series(["2026/03/01 12:00:00.000"]))
    ('%Y/%m/%d %H:%M:%S%.f', None)
    """
    counts = cells.to_frame("cell").select(_at_first(pl.col("cell"), form).count().alias(form[0]) for form in USUAL)
    return max(USUAL, key=lambda form: counts[form[0]].item())


def moment(cell: pl.Expr, zone: str, form: Form, some: pl.Series) -> pl.Expr:
    """Return a timestamp in UTC: ISO 8601 and similar forms, seconds since the epoch, or a day without a year.

    A timestamp without a zone is one of ``zone``; if any of ``some`` has no year, it is of the last year before the
    column ``modified``, the time of its ``file``, another column.
    """

    def moments(cells: pl.Series) -> pl.Series:
        rows = cells.to_frame("cell")
        first = rows.select(_in_utc(_at_first(pl.col("cell"), form), form[1] or zone)).to_series()
        odd = rows.select(pl.when(first.is_null()).then("cell"))
        return first if odd["cell"].null_count() == len(odd) else first.zip_with(~first.is_null(), _others(odd, zone))

    known = cell.map_batches(moments, return_dtype=pl.Datetime("us", "UTC"), is_elementwise=zone == "UTC")
    return known.fill_null(_in_utc(_in_last_year(cell), zone)) if some.str.contains(WITHOUT_YEAR).any() else known


def _others(rows: pl.DataFrame, zone: str) -> pl.Series:
    """Return timestamps of any form with a year."""
    cell = pl.col("cell")
    even = cell.str.replace_all("/", "-", literal=True).str.replace(r"(\d)T", "$1 ").str.replace(",", ".")
    other = pl.coalesce(even.str.to_datetime(pattern, time_unit="us", strict=False) for pattern in LOCAL)
    zoned = pl.when(even.str.contains(OFFSET)).then(even).str.replace("(?:Z| UTC)$", "+00:00")
    zoned = zoned.str.to_datetime("%Y-%m-%d %H:%M:%S%.f%z", time_unit="us", strict=False)
    return rows.select(pl.coalesce(_in_utc(other, zone), zoned, _in_utc(_since_epoch(cell), "UTC"))).to_series()


def _in_last_year(cell: pl.Expr) -> pl.Expr:
    """Return timestamps without a year, in the order of a file: the last one is not later than its modification.

    Where time goes back by half a year or more, a new year began; a late line of the old year goes forth again.
    """

    def with_years(rows: pl.Series) -> pl.Series:
        stamp, day, left = pl.col("stamp"), pl.col("day"), pl.col("left")
        limit = pl.col("modified").dt.replace_time_zone(None) + timedelta(days=1)
        step = (day - pl.col("before")).dt.total_days()
        turn = (step < -183).cast(pl.Int32) - (step > 360).cast(pl.Int32)
        is_this_year = pl.col("latest") <= limit.dt.replace(year=LEAP_YEAR)
        year = limit.dt.year() - (~is_this_year).cast(pl.Int32) - left
        frame = rows.struct.unnest().with_columns(day=_with_year(stamp + f" {LEAP_YEAR}"))
        frame = frame.with_columns(before=day.forward_fill().shift(1).over("file"))
        frame = frame.with_columns(turn=turn.fill_null(0)).with_columns(years=pl.col("turn").cum_sum().over("file"))
        frame = frame.with_columns(left=pl.col("years").last().over("file") - pl.col("years"))
        frame = frame.with_columns(latest=pl.when(left == 0).then(day)).with_columns(
            pl.col("latest").max().over("file")
        )
        return frame.select(_with_year(pl.concat_str(stamp, pl.lit(" "), year.cast(pl.String)))).to_series()

    stamps = pl.struct(cell.str.extract(WITHOUT_YEAR).alias("stamp"), "modified", "file")
    return stamps.map_batches(with_years, return_dtype=pl.Datetime("us"))


def _with_year(cell: pl.Expr) -> pl.Expr:
    return pl.coalesce(cell.str.to_datetime(form, time_unit="us", strict=False) for form in (WITH_YEAR, GLOG))


def is_local(cell: pl.Expr) -> pl.Expr:
    """Return whether a timestamp has no zone."""
    return ~cell.str.contains(f"{SINCE_EPOCH}|{OFFSET}")


def _at_first(cell: pl.Expr, form: Form) -> pl.Expr:
    known = form == USUAL[-1]
    return _since_epoch(cell) if known else cell.str.to_datetime(form[0], time_unit="us", strict=False)


def _since_epoch(cell: pl.Expr) -> pl.Expr:
    """Return seconds or milliseconds since 1970 as a timestamp."""
    number = cell.cast(pl.Float64, strict=False)
    since = pl.when(number.is_between(1e8, 1e13, closed="left")).then(number)
    return pl.when(since > 1e11).then(since * 1e3).otherwise(since * 1e6).cast(pl.Int64).cast(pl.Datetime("us"))


def _in_utc(local: pl.Expr, zone: str) -> pl.Expr:
    """Return the moments of local times in the order of a file.

    Where the clock repeats an hour, times are of its second pass from the row on at which they go back.
    """
    if zone == "UTC":
        return local.dt.replace_time_zone("UTC")
    first, second = (local.dt.replace_time_zone(zone, ambiguous=which, non_existent="null") for which in PASSES)
    repeated = (first != second).fill_null(False)
    goes_back = repeated & repeated.shift(1, fill_value=False) & (local.diff() < -DISORDER)
    passes = goes_back.fill_null(False).cast(pl.Int32).cum_sum().over(repeated.rle_id())
    return pl.when(passes % 2 == 0).then(first).otherwise(second).dt.convert_time_zone("UTC")


def has_value(cell: pl.Expr) -> pl.Expr:
    """Return whether a cell has a value."""
    return cell.is_not_null() & ~is_blank(cell)


def is_blank(cell: pl.Expr) -> pl.Expr:
    """Return whether a cell has a word for a missing value."""
    return cell.is_in([*words("blank")]).fill_null(False)


def accelerators(cell: pl.Expr) -> pl.Expr:
    """Return the accelerators among Slurm's trackable resources.

    >>> cells = pl.Series(["cpu=192,gres/gpu:h100=8,gres/gpu=8", "gres/gpu:a100=4,gres/gpu:tesla-v100=4"])
    >>> pl.select(accelerators(pl.lit(cells))).to_series().to_list()
    [8.0, 8.0]
    """
    total = cell.str.extract(r'(?:gres/gpu=|"name": ?"gpu",[^{}]*"count": ?)(\d+)(?:[,}]|$)').cast(pl.Float64)
    of_types = pl.when(total.is_null() & cell.str.contains("gres/gpu:", literal=True)).then(cell)
    counts = of_types.str.extract_all(r"gres/gpu:[^=,]+=\d+(?:,|$)").list.eval(
        pl.element().str.extract(r"=(\d+)").cast(pl.Float64)
    )
    return total.fill_null(counts.list.sum())


def word(of: str, cell: pl.Expr) -> pl.Expr:
    """Return the category of a word.

    >>> pl.select(a=word("state", pl.lit("CANCELLED by 1000")), b=word("cause", pl.lit("Xid 79 on GPU 3"))).row(0)
    ('cancelled', 'accelerator')
    """
    known, other = words(of), OTHERWISE[of]
    if of not in ("kind", "cause"):
        own = pl.when(cell.is_in([*known.values()])).then(cell)
        first = cell.str.extract(r"^(\w+)")
        default = pl.when(first.is_not_null() & (has_value(cell) | (other == "unknown"))).then(pl.lit(other))
        return own.fill_null(first.replace_strict(known, default=default, return_dtype=pl.String))
    categories = (pl.when(cell.str.contains(f"(?i){theirs}")).then(pl.lit(ours)) for theirs, ours in known.items())
    return pl.when(cell.is_not_null()).then(pl.coalesce(*categories, pl.lit(other)))


@cache
def words(of: str) -> dict[str, str]:
    """Return the categories of words of one kind."""
    rows = package_rows(Path(__file__).with_name("words.csv"))
    return {row["theirs"]: row["ours"] for row in rows if row["of"] == of}


def node_names(node_list: str) -> list[str]:
    """Return the nodes of a node list in the notation of Slurm; another notation as it stands.

    >>> node_names("node[01-03,7],rack[1-2]gpu-a")
    ['node01', 'node02', 'node03', 'node7', 'rack1gpu-a', 'rack2gpu-a']
    """
    names: list[str] = []
    for item in re.split(r",(?![^\[]*\])", node_list):
        pieces = [_numbers(ranges) if ranges else [text] for text, ranges in PIECE.findall(item)]
        if not all(pieces) or PIECE.sub("", item):
            return [node_list]
        products = itertools.product(*pieces) if item else []
        names += ["".join(parts) for parts in itertools.islice(products, MAX_NODES)]
    return names


def _numbers(ranges: str) -> list[str]:
    """Return the numbers of ranges such as 01-03,7; nothing where they are none."""
    numbers: list[str] = []
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        if not first.isdigit() or (last and not last.isdigit()):
            return []
        numbers += [f"{n:0{len(first)}}" for n in range(int(first), int(last or first) + 1)[:MAX_NODES]]
    return numbers
