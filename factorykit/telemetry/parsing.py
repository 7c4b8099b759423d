"""Parsing of cells: numbers, timestamps, names and categories as polars expressions."""

from __future__ import annotations

import csv
import re
from functools import cache
from pathlib import Path
from typing import Final

import polars as pl

BLANK: Final = ("", "-", "Unknown", "None", "null", "N/A", "[N/A]", "n/a", "NaN", "(null)", "[Not Supported]")
"""What stands for nothing, in one format or another."""
OTHERWISE: Final = {"state": "unknown", "reason": "notice", "result": "notice", "xid_kind": "notice"} | {
    "kind": "notice",
    "xid_cause": "software",
    "cause": "other",
}
"""Word for what no row of ``words.csv`` knows: an Xid that is no failure of a part comes from a program."""
SECRET: Final = (
    r"(?i)\b(?:sk|pk|hf|ghp|gho|ghs|github_pat|glpat|xox[abprs]|AKIA|ASIA|AIza|ya29|eyJ)[-_A-Za-z0-9.]{12,}"
    r"|(?:password|passwd|secret|token|api[-_]?key|bearer|authorization)[\"']?\s*[:=\s]\s*\S+"
    r"|\b[A-Za-z0-9+/_]{40,}={0,2}|://[^/\s:@]+:[^/\s@]+@"
)
"""What looks like a key: by the prefixes of those who issue them, by the word before it, by its length."""
SHORTEST_SECRET: Final = 8
"""Bytes of what is looked at for a key."""
HIDDEN: Final = "(hidden)"
LONGEST: Final = 80
"""Characters of a name that are kept."""
USUAL: Final = (
    ("%Y-%m-%dT%H:%M:%S", None),
    ("%Y-%m-%d %H:%M:%S%.f", None),
    ("%Y/%m/%d %H:%M:%S%.f", None),
    ("%Y-%m-%dT%H:%M:%S%.fZ", "UTC"),
)
"""Forms of moments that most logs keep to, and the zone that they say."""
LOCAL: Final = ("%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M", "%Y-%m-%d")
SINCE_EPOCH: Final = r"^\d{9,13}(?:\.\d+)?$"
OFFSET: Final = r"(?:Z|[+-]\d\d:?\d\d)$"


def text(cell: pl.Expr) -> pl.Expr:
    """Return a name as it stands, without what looks like a key."""
    return listed(cell.str.slice(0, LONGEST))


def listed(cell: pl.Expr) -> pl.Expr:
    """Return a list of names as it stands."""
    told = pl.when(is_told(cell)).then(cell)
    hidden = pl.when(told.str.len_bytes() >= SHORTEST_SECRET).then(told).str.replace_all(SECRET, HIDDEN)
    return hidden.fill_null(told)


def number(cell: pl.Expr) -> pl.Expr:
    """Return the finite number that a cell begins with, whatever unit follows."""
    plain = cell.cast(pl.Float64, strict=False)
    odd = pl.when(plain.is_null()).then(cell)
    begins = odd.str.extract(r"^([-+]?[\d,]*\.?\d+(?:[eE][-+]?\d+)?)")
    value = plain.fill_null(begins.str.replace_all(",", "").cast(pl.Float64, strict=False))
    return pl.when(value.is_finite()).then(value)


Form = tuple[str, str | None]


def usual(told: pl.Series) -> Form:
    """Return the form that reads most of some moments: it is tried first, and alone where it reads all.

    >>> usual(pl.Series(["2026/03/01 12:00:00.000"]))
    ('%Y/%m/%d %H:%M:%S%.f', None)
    """
    return max(USUAL, key=lambda form: told.str.to_datetime(form[0], time_unit="us", strict=False).count())


def moment(cell: pl.Expr, zone: str, year: int, form: Form) -> pl.Expr:
    """Return a moment in UTC: ISO 8601 and its kin, seconds since the epoch, or a day of ``year`` as syslog writes it.

    A moment that says no zone is one of ``zone``.
    """
    first = _at_first(cell, form)
    odd = pl.when(first.is_null()).then(cell)
    even = odd.str.replace_all("/", "-", literal=True).str.replace("T", " ", literal=True).str.replace(",", ".")
    other = pl.coalesce(even.str.to_datetime(each, time_unit="us", strict=False) for each in LOCAL)
    syslog = pl.concat_str(odd.str.extract(r"^(\w{3} +\d+ \d\d:\d\d:\d\d)"), pl.lit(f" {year}"))
    other = other.fill_null(syslog.str.to_datetime("%b %e %H:%M:%S %Y", time_unit="us", strict=False))
    since = odd.str.extract(f"({SINCE_EPOCH})").cast(pl.Float64)
    since = (pl.when(since > 1e11).then(since * 1e3).otherwise(since * 1e6)).cast(pl.Int64).cast(pl.Datetime("us"))
    told = pl.when(even.str.contains(OFFSET)).then(even).str.replace("Z$", "+00:00")
    told = told.str.to_datetime("%Y-%m-%d %H:%M:%S%.f%z", time_unit="us", strict=False)
    return pl.coalesce(_in_utc(first, form[1] or zone), _in_utc(other, zone), told, _in_utc(since, "UTC"))


def is_local(cell: pl.Expr, form: Form) -> pl.Expr:
    """Return whether a moment says no zone."""
    first = _at_first(cell, form)
    odd = pl.when(first.is_null()).then(cell)
    is_odd = ~odd.str.contains(f"{SINCE_EPOCH}|{OFFSET}") & is_told(odd)
    return is_odd.fill_null(False) | (first.is_not_null() & (form[1] is None))


def _at_first(cell: pl.Expr, form: Form) -> pl.Expr:
    return cell.str.to_datetime(form[0], time_unit="us", strict=False)


def _in_utc(local: pl.Expr, zone: str) -> pl.Expr:
    if zone == "UTC":
        return local.dt.replace_time_zone("UTC")
    there = local.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
    return there.dt.convert_time_zone("UTC")


def is_told(cell: pl.Expr) -> pl.Expr:
    """Return whether a cell says something."""
    return cell.is_not_null() & ~cell.is_in(BLANK)


def accelerators(cell: pl.Expr) -> pl.Expr:
    """Return the accelerators among Slurm's trackable resources.

    >>> pl.select(accelerators(pl.lit("cpu=192,gres/gpu=8,node=1"))).item()
    8.0
    """
    return cell.str.extract(r"gres/gpu(?::\w+)?=(\d+)").cast(pl.Float64)


def word(of: str, cell: pl.Expr) -> pl.Expr:
    """Return our word for one of theirs.

    >>> pl.select(a=word("state", pl.lit("CANCELLED by 1000")), b=word("cause", pl.lit("Xid 79 on GPU 3"))).row(0)
    ('cancelled', 'accelerator')
    """
    known, other = words(of), OTHERWISE[of]
    if of not in ("kind", "cause"):
        own = pl.when(cell.is_in([*known.values()])).then(cell)
        first = cell.str.extract(r"^(\w+)")
        default = pl.when(first.is_not_null()).then(pl.lit(other))
        return own.fill_null(first.replace_strict(known, default=default, return_dtype=pl.String))
    found = (pl.when(cell.str.contains(f"(?i){theirs}")).then(pl.lit(ours)) for theirs, ours in known.items())
    return pl.when(cell.is_not_null()).then(pl.coalesce(*found, pl.lit(other)))


@cache
def words(of: str) -> dict[str, str]:
    """Return what others call things of one kind, and what we do."""
    with Path(__file__).with_name("words.csv").open(encoding="utf-8", newline="") as file:
        return {row["theirs"]: row["ours"] for row in csv.DictReader(file) if row["of"] == of}


def node_names(node_list: str) -> list[str]:
    """Return the nodes of a node list in the notation of Slurm.

    >>> node_names("node[01-03,7],gpu-a")
    ['node01', 'node02', 'node03', 'node7', 'gpu-a']
    """
    found: list[str] = []
    for stem, ranges, tail in re.findall(r"([^,\[\]]*)(?:\[([^\]]*)\])?([^,\[\]]*)(?:,|$)", node_list):
        if not ranges:
            found += [stem + tail] if stem + tail else []
            continue
        for part in ranges.split(","):
            first, _, last = part.partition("-")
            if not first.isdigit() or (last and not last.isdigit()):
                return [node_list]
            numbers = range(int(first), int(last or first) + 1)
            found += [f"{stem}{number:0{len(first)}}{tail}" for number in numbers[:100_000]]
    return found
