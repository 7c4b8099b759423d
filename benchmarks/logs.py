"""Time to read logs of 20 MB, compared with polars typing the same cells of the same files; journals as a study, and
SQL over a study of ten million failures.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

import factorykit as fk
from benchmarks import Row, pair
from factorykit.telemetry.formats import TABLES
from factorykit.telemetry.synthetic_logs import REPAIR_MEDIAN_S, REPAIR_SIGMA, SHARES, START

BYTES: Final = 20_000_000
NODES: Final = 64
Make = Callable[[int], str]
Typed = Callable[[Path], pl.LazyFrame]


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        for name in READERS:
            yield _compared(name, Path(folder, f"{name}.log"))
        journals = Path(folder, "journals")
        journals.mkdir()
        for number in range(100):
            text = "".join(_journal(number, line) for line in range(10_000))
            (journals / f"n{number}.log").write_text(text)
        lines = _lines([*journals.iterdir()]).select(pl.len())
        what, rival = "100 journals of 1 MB to a study", "polars counts their lines"
        yield pair(what, lambda: _study(journals), rival, lambda: _collected(lines), runs=3)
        yield from _queried(Path(folder, "study"))


def _queried(folder: Path) -> Iterator[Row]:
    """Yield queries of ten million failures, out of core; the targets are a tenth of those for a hundred million."""
    random, per_file = np.random.default_rng(1), 500_000
    weights = np.array([*SHARES.values()])
    for number in range(20):
        at = pl.lit(START) + pl.duration(microseconds=pl.col("at_s") * 1e6)
        repair = pl.duration(microseconds=pl.col("repair_s") * 1e6)
        drawn = {
            "at_s": random.uniform(0.0, 8.64e7, per_file),
            "repair_s": REPAIR_MEDIAN_S * np.exp(REPAIR_SIGMA * random.standard_normal(per_file)),
            "node": random.integers(5_000 * number, 5_000 * (number + 1), per_file),
            "cause": random.choice([*SHARES], per_file, p=weights / weights.sum()),
        }
        rows = pl.DataFrame(drawn).with_columns(at=at, until=at + repair, kind=pl.lit("failure"))
        rows = rows.with_columns(accelerator=None, job=None, code=None)
        place = folder / "events" / "source=events" / "day=2026-03-01" / f"node={number}"
        place.mkdir(parents=True)
        rows.select(pl.col(name).cast(kind) for name, kind in TABLES["events"].items()).write_parquet(
            place / "a.parquet"
        )
    study, c = fk.fleet.LogStudy(folder), pl.col
    events, repair_s = study.scan("events"), "avg(epoch(until - moment)) as repair_s"

    def by(key: pl.Expr) -> Callable[[], pl.DataFrame]:
        repair = (c("until") - c("at")).dt.total_microseconds() / 1e6
        return lambda: _collected(events.group_by(key).agg(pl.len(), repair.mean()))

    def ordered() -> pl.DataFrame:
        gap = c("at").shift(-1).over("node") - c("until")
        gaps = events.sort("node", "at").select(gap=gap.dt.total_minutes())
        return _collected(gaps.group_by("gap").len().sort("gap"))

    what, of_week = "10 M failures: ", c("at").dt.truncate("1w")
    cause = f"select cause, count(*) as failures, {repair_s} from events group by 1"
    week = f"select date_trunc('week', moment) as week, count(*) as failures, {repair_s} from events group by 1"
    spans = (
        "select epoch(following - until) // 60 as gap, count(*) from (select until, lead(moment) over "
        "(partition by node order by moment) as following from events) group by 1 order by 1"
    )
    for name, query, rival, most_s in (
        ("by cause", cause, by(c("cause")), 0.5),
        ("by week", week, by(of_week), 0.5),
        ("gaps of each node", spans, ordered, 6.0),
    ):
        yield pair(f"{what}{name}", lambda query=query: study.sql(query), "polars", rival, at_most_s=most_s, runs=3)


def _compared(name: str, file: Path) -> Row:
    header, make, typed = READERS[name]
    file.write_text(header + "".join(map(make, range(BYTES // len(make(12_345))))))
    ours, hand = (lambda: fk.read_log(file)), (lambda: _collected(typed(file)))
    return pair(f"20 MB of {name}", ours, "polars types the same cells", hand, at_most_ratio=4.0, runs=3)


def _collected(frame: pl.LazyFrame) -> pl.DataFrame:
    return frame.collect(engine="streaming")


def _study(logs: Path) -> None:
    with tempfile.TemporaryDirectory() as out:
        fk.read_log(logs, out=out)


def _journal(node: int, line: int) -> str:
    event = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus."
    text = event if line == 5_000 and node % 20 == 0 else "usb 1-1: new high-speed USB device number 4 using xhci_hcd"
    return f"{_day(line * 8)}T{_time(line * 8)}+00:00 n{node} kernel: {text}\n"


def _day(second: int) -> str:
    return f"2026-03-{second // 86_400 % 28 + 1:02d}"


def _time(second: int) -> str:
    return f"{second // 3600 % 24:02d}:{second // 60 % 60:02d}:{second % 60:02d}"


def _lines(file: Any) -> pl.LazyFrame:
    options: dict[str, Any] = {"has_header": False, "quote_char": None, "infer_schema": False, "new_columns": ["line"]}
    return pl.scan_csv(file, separator="\x1f", **options)


def _taken(file: Path, moment: str, form: str, **patterns: str) -> pl.LazyFrame:
    """Extract a time and numbers from lines."""
    line = pl.col("line")
    numbers = {name: line.str.extract(pattern).cast(pl.Float64) for name, pattern in patterns.items()}
    return _lines(file).select(at=line.str.extract(moment).str.to_datetime(form), **numbers)


def _table(file: Path, separator: str = ",") -> pl.LazyFrame:
    return pl.scan_csv(file, separator=separator, infer_schema=False, quote_char=None if separator == "|" else '"')


def _sacct(file: Path) -> pl.LazyFrame:
    moments = (pl.col(name).str.to_datetime("%Y-%m-%dT%H:%M:%S") for name in ("Submit", "Start", "End"))
    gpus = pl.col("AllocTRES").str.extract(r"gres/gpu=(\d+)").cast(float)
    cells = ("JobID", "User", "State", "NodeList")
    return _table(file, "|").select(*cells, *moments, pl.col("AllocNodes").cast(float), gpus)


def _smi(file: Path) -> pl.LazyFrame:
    power, share = (pl.col(f" {name}").str.strip_chars() for name in ("power.draw [W]", "utilization.gpu [%]"))
    return _table(file).select(
        pl.col("timestamp").str.to_datetime("%Y/%m/%d %H:%M:%S%.f"),
        pl.col(" index").str.strip_chars(),
        power.str.strip_suffix(" W").cast(float),
        share.str.strip_suffix(" %").cast(float) / 100.0,
    )


def _dcgm(file: Path) -> pl.LazyFrame:
    numbers = pl.col("DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_GPU_UTIL").cast(float)
    return _table(file).select(pl.col("timestamp").str.to_datetime("%Y-%m-%d %H:%M:%S"), "Hostname", "gpu", numbers)


def _records(file: Path, **kinds: Any) -> pl.LazyFrame:
    return pl.scan_ndjson(file, schema=kinds)


def _events(file: Path) -> pl.LazyFrame:
    involved = pl.Struct({"kind": pl.String, "name": pl.String})
    records = _records(file, involvedObject=involved, reason=pl.String, lastTimestamp=pl.String)
    return records.unnest("involvedObject").with_columns(pl.col("lastTimestamp").str.to_datetime("%Y-%m-%dT%H:%M:%SZ"))


def _scrapes(file: Path) -> pl.LazyFrame:
    line = pl.col("line")
    labels = (line.str.extract(f'{name}="([^"]*)"').alias(name) for name in ("Hostname", "gpu"))
    at, power = line.str.extract(r"\} \S+ (\d+)").cast(pl.Int64), line.str.extract(r"\} (\S+)").cast(float)
    return _lines(file).select(pl.from_epoch(at).alias("at"), *labels, power.alias("power"))


def _kubernetes(number: int) -> str:
    at = f"{_day(number)}T{_time(number)}Z"
    involved = {"kind": "Node" if number % 5 else "Pod", "name": f"n{number % NODES}", "uid": f"{number:032x}"}
    reason = ("NodeNotReady", "NodeReady", "Scheduled", "Pulled")[number % 4]
    record = {"kind": "Event", "metadata": {"name": f"e{number}", "creationTimestamp": at}, "involvedObject": involved}
    return json.dumps(record | {"reason": reason, "message": "x" * 40, "lastTimestamp": at, "count": 1}) + "\n"


READERS: Final[dict[str, tuple[str, Make, Typed]]] = {
    "slurm_sacct": (
        "JobID|User|State|Submit|Start|End|AllocNodes|AllocTRES|NodeList\n",
        lambda n: (
            f"{n}|u{n % 50}|COMPLETED|{_day(n)}T00:{n % 60:02d}:00|{_day(n)}T01:00:00|{_day(n)}T02:00:00|2|"
            f"cpu=192,gres/gpu=16,node=2|n[{n % 100:03d}-{n % 100 + 1:03d}]\n"
        ),
        _sacct,
    ),
    "nvidia_smi": (
        "timestamp, index, power.draw [W], utilization.gpu [%]\n",
        lambda n: (
            f"{_day(n).replace('-', '/')} {_time(n)}.000, {n % 8}, {300 + n % 400}.{n % 100:02d} W, {n % 101} %\n"
        ),
        _smi,
    ),
    "dcgm": (
        "timestamp,Hostname,gpu,DCGM_FI_DEV_POWER_USAGE,DCGM_FI_DEV_GPU_UTIL\n",
        lambda n: f"{_day(n)} {_time(n)},n{n % NODES},{n % 8},{300 + n % 400}.{n % 100:02d},{n % 101}\n",
        _dcgm,
    ),
    "megatron": (
        "",
        lambda n: (
            f" [{_day(n)} {_time(n)}.000000] iteration {n:8d}/ 1000000 | consumed samples: {n:12d} | "
            f"elapsed time per iteration (ms): {900 + n % 199}.{n % 10} | learning rate: 1.0E-04 | lm loss: 1.7E+00 |\n"
        ),
        lambda file: _taken(
            file, r"\[(.{26})", "%Y-%m-%d %H:%M:%S%.f", step=r"iteration +(\d+)/", ms=r"\(ms\): *([\d.]+)"
        ),
    ),
    "torchtitan": (
        "",
        lambda n: (
            f"[rank0]:[titan] {_day(n)} {_time(n)},123 - root - INFO - step: {n:2d}  loss:  3.1234  "
            "memory: 40.00GiB(50.00%)  tps: 7,123  tflops: 400.00  mfu: 40.11%\n"
        ),
        lambda file: _taken(
            file, r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+)", "%Y-%m-%d %H:%M:%S,%3f", step=r"step: *(\d+)"
        ),
    ),
    "kubernetes_events": ("", _kubernetes, _events),
    "gcm_nvml": (
        "",
        lambda n: (
            f'{{"time": {1_772_366_400 + n}, "gpu_id": {n % 8}, "hostname": "n{n % NODES}", "job_id": {n % 50}, '
            f'"power_draw": {300 + n % 300}.5, "gpu_util": {n % 101}}}\n'
        ),
        lambda file: _records(
            file,
            time=pl.Int64,
            gpu_id=pl.Int64,
            hostname=pl.String,
            job_id=pl.Int64,
            power_draw=pl.Float64,
            gpu_util=pl.Float64,
        ).with_columns(pl.from_epoch("time")),
    ),
    "openmetrics_power": (
        "",
        lambda n: (
            f'DCGM_FI_DEV_POWER_USAGE{{gpu="{n % 8}",modelName="NVIDIA H100 80GB HBM3",Hostname="n{n % NODES}"}} '
            f"{300 + n % 400}.{n % 1000:03d} {1_772_366_400 + n}\n"
        ),
        _scrapes,
    ),
}
"""Header, line and polars' own reading of the same cells, by format."""
