"""Files of other programs, checks of the values that are read from them, and a mutator with a seed."""

from __future__ import annotations

import atexit
import csv
import gzip
import io
import json
import lzma
import math
import os
import random
import re
import shutil
import struct
import tempfile
import tomllib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

import factorykit as fk
from factorykit.core import text_io
from factorykit.core.text_io import GZIP
from factorykit.data import build, tables
from factorykit.data.public import connectors
from factorykit.data.schemas import columns, schemas
from factorykit.model.planning.plan import read_run
from factorykit.site.sources import joined, read_cells, text_of
from factorykit.telemetry.tensorboard import masked_crc

CONFIG = {
    "model_type": "llama",
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
    "hidden_act": "silu",
    "rope_scaling": {"factor": 8.0, "rope_type": "llama3"},
    "eos_token_id": [128001, 128008],
}
FIELDS = {"layers": "num_hidden_layers", "hidden_size": "hidden_size", "ffn_size": "intermediate_size"}
FIELDS |= {"attention_heads": "num_attention_heads", "kv_heads": "num_key_value_heads", "vocabulary_size": "vocab_size"}
TOML = """model = "llama3_8b"
tokens = "1T"
chips = ["h100_sxm"]
counts = [256, 512]
draws = 32

[given]
pue = 1.25
mfu = 0.41
"""
NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "id": "a", "metadata": {}, "source": ["# Title\n", "words"]},
        {"cell_type": "code", "id": "b", "metadata": {"tags": ["checks"]}, "source": "1 + 1", "execution_count": 1}
        | {"outputs": [{"output_type": "execute_result", "data": {"text/plain": "2"}, "metadata": {}}]},
    ],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}
CALIBRATION = {
    "constants": {"mfu": 0.4, "pue": 1.25},
    "summary": ["one"],
    "excluded": {"3": "no time"},
    "rows": 5,
    "layouts": [],
    "software": "nemo",
    "generation": "hopper",
    "without": ["a", "b"],
}
SACCT = """JobID|User|State|Submit|Start|End|AllocNodes|AllocTRES|NodeList
7|ann|NODE_FAIL|2026-03-01T08:00:00|2026-03-01T08:10:00|2026-03-01T20:00:00|2|gres/gpu=16|n[1-2]
7.batch||CANCELLED||2026-03-01T08:10:00|2026-03-01T20:00:00|1||n1
8|ben|COMPLETED|2026-03-01T08:00:00|2026-03-01T09:10:00|2026-03-02T20:00:00|2|gres/gpu=16|n[3-4]
"""
ENDED = {"startedAt": "2026-03-01T12:00:00Z", "finishedAt": "2026-03-01T13:00:00Z", "exitCode": 1}
POD = {
    "kind": "Pod",
    "metadata": {"name": "train-0", "namespace": "ann", "creationTimestamp": "2026-03-01T12:00:00Z"},
    "spec": {"nodeName": "n1", "containers": [{"resources": {"limits": {"nvidia.com/gpu": "8"}}}]},
    "status": {"phase": "Failed", "containerStatuses": [{"restartCount": 1, "state": {"terminated": ENDED}}]},
}
PODS = {"kind": "List", "items": [POD]}
ROWS = "tokens,accelerators,mfu\n1e12,512,0.4\n2e12,1024,0.38\n15.6e12,16384,0.41\n"


@dataclass(frozen=True)
class Subject:
    """A file: its contents, how it is read, and a check of the result for other contents."""

    content: bytes
    read: Callable[[Path], Any]
    right: Callable[[Any, bytes], bool]
    name: str = "file"


def _cells(content: bytes) -> dict[str, list[str]]:
    """Return the cells of a CSV by column, as Python's own reader gives them; empty lines are none."""
    header, *rows = [row for row in csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")) if row]
    return {name: [row[at] for row in rows] for at, name in enumerate(header)}


def _same(found: Sequence[Any], cells: Sequence[str], factor: float = 1.0) -> bool:
    wanted = [float(cell) * factor if cell.strip() else None for cell in cells]
    return len(found) == len(wanted) and all(
        one is other is None or (one is not None and other is not None and math.isclose(one, other, rel_tol=1e-12))
        for one, other in zip(found, wanted, strict=True)
    )


def _config(found: Any, content: bytes) -> bool:
    expected = json.loads(content)
    return all(
        found[name] == expected[field]
        for name, field in FIELDS.items()
        if found.sources.get(name) == f"config.json: {field}"
    )


def _connector(name: str) -> Subject:
    made_up = {"number": "2.5", "duration": "2.5", "text": "word", "boolean": "True", "date": "2026-07-05"}
    made_up |= {"moment": "2026-07-05T10:30"}
    mapped = connectors._columns()[name]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([column.theirs for column in mapped])
    for _ in range(2):
        writer.writerow([made_up[column.type] for column in mapped])

    header = out.getvalue().partition("\n")[0].encode()

    def right(found: pl.DataFrame, content: bytes) -> bool:
        content = content[max(content.find(header), 0) :]  # a title may stand above
        cells = {key.strip().casefold(): value for key, value in _cells(content).items()}
        numbers = [column for column in mapped if column.type in ("number", "duration")]
        return all(
            _same(found[column.ours].to_list(), cells[column.theirs.casefold()], column.factor) for column in numbers
            if column.theirs.casefold() in cells
        )  # fmt: skip

    return Subject(out.getvalue().encode(), lambda path: connectors.read(name, path), right)


def _sources() -> Subject:
    schema = columns(schemas()["costs"])
    content = (tables.data_folder() / "sources" / "costs.csv").read_bytes()

    def read(path: Path) -> pl.DataFrame:
        broken = build._Broken()
        frame = build._read(path, schema, broken)
        if frame is not None:
            build._check_rules(path, schemas()["costs"], frame, broken)
        broken.raise_if_any()
        assert frame is not None
        return frame

    def right(found: pl.DataFrame, content: bytes) -> bool:
        cells = _cells(content)
        return all(
            _same(found[name].to_list(), cells[name]) for name in found.columns if found[name].dtype == pl.Float64
        )

    return Subject(content, read, right)


def _table() -> Subject:
    content = (tables.data_folder() / "clusters.parquet").read_bytes()
    whole = fk.table("clusters").collect()

    def read(path: Path) -> pl.DataFrame:
        shutil.copy(tables.data_folder() / tables.DESCRIPTOR, path.parent)
        before = os.environ.get("FACTORYKIT_DATA")
        os.environ["FACTORYKIT_DATA"] = str(path.parent)
        tables._sha256.cache_clear()
        try:
            return fk.table("clusters").collect()
        finally:
            os.environ.pop("FACTORYKIT_DATA")
            os.environ.update({"FACTORYKIT_DATA": before} if before else {})

    return Subject(content, read, lambda found, _: found.equals(whole), "clusters.parquet")


def _parquet() -> Subject:
    out = io.BytesIO()
    pl.read_csv(ROWS.encode()).write_parquet(out)
    # Other Parquet files have no checksum of their pages, so that a flipped number cannot be detected.
    return Subject(out.getvalue(), text_io.read_frame, lambda *_: True)


@cache
def _studied() -> Path:
    """The folder of a small study."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    fk.sweep({"tokens": 1e12, "active_parameters": 7e9}, {"mfu": [0.3, 0.4], "pue": [1.1, 1.2]}, "training_flop",
             out=folder.name)  # fmt: skip
    return Path(folder.name)


def _study(name: str) -> Subject:
    """A file of a study, which is read with the others beside it."""
    whole = fk.study(_studied()).rows.collect()
    stored = json.loads((_studied() / "study.json").read_text("utf-8"))

    def read(path: Path) -> Any:
        for other in _studied().iterdir():
            if other.is_file() and other.name != path.name:
                shutil.copy(other, path.parent)
        found = fk.study(path.parent)
        return found.manifest, found.sql("select * from study order by mfu, pue")

    def right(found: Any, content: bytes) -> bool:
        manifest = json.loads(content) if name.endswith(".json") else stored
        return found[0] == manifest and found[1].sort("mfu", "pue").equals(whole.sort("mfu", "pue"))

    return Subject((_studied() / name).read_bytes(), read, right, name)


DAYS = range(1, 20)
EVENTS = "at,node,kind,cause\n" + "".join(f"2026-03-{day:02d}T0{day % 9}:00:00Z,n{day},failure,gpu\n" for day in DAYS)
"""Failures, as a CSV of the user."""


def _log(name: str, content: bytes, kind: str | None = None) -> Subject:
    """A log: all nodes and jobs that are read occur in it, except in a compressed file marked as truncated."""

    def right(found: fk.Log, content: bytes) -> bool:
        if content[:2] == GZIP:
            is_cut = any("truncated" in issue for issue in found.counts["issue"])
            return is_cut or set(found.events["node"]) <= {f"n{day}" for day in DAYS}
        try:
            text = content.decode()
        except UnicodeDecodeError:
            return True
        return all(name in (None, "(hidden)") or name in text for name in {*found.events["node"], *found.jobs["user"]})

    return Subject(content, lambda path: fk.read_log(path, kind), right, name)


def _event_file() -> bytes:
    def number(value: int) -> bytes:
        return (bytes([value & 127 | 128]) + number(value >> 7)) if value > 127 else bytes([value])

    def field(of: int, kind: int, payload: bytes) -> bytes:
        return number(of << 3 | kind) + (number(len(payload)) if kind == 2 else b"") + payload

    def record(message: bytes) -> bytes:
        length = struct.pack("<Q", len(message))
        return length + struct.pack("<I", masked_crc(length)) + message + struct.pack("<I", masked_crc(message))

    first = record(field(1, 1, struct.pack("<d", 1772366400.0)) + field(3, 2, b"brain.Event:2"))
    scalar = field(1, 2, field(1, 2, b"iteration-time") + field(2, 5, struct.pack("<f", 1.5)))
    steps = (
        field(1, 1, struct.pack("<d", 1772366400.0 + n)) + field(2, 0, number(n)) + field(5, 2, scalar)
        for n in range(20)
    )
    return first + b"".join(map(record, steps))


def subjects() -> Mapping[str, Subject]:
    """Return every kind of file that is read, by name."""
    texts = {
        "config": Subject(json.dumps(CONFIG, indent=1).encode(), fk.read_hf_config, _config),
        "run": Subject(TOML.encode(), read_run, _run),
        "notebook": Subject(
            json.dumps(NOTEBOOK, indent=1).encode(),
            lambda path: read_cells(text_of(path), path.name),
            _notebook,
        ),
        "calibration": Subject(json.dumps(CALIBRATION, indent=1).encode(), fk.Calibration.load, _calibration),
        "rows": Subject(ROWS.encode(), text_io.read_frame, _rows),
        "sources": _sources(),
        "table": _table(),
        "parquet": _parquet(),
        "study manifest": _study("study.json"),
        "study part": _study(next(path.name for path in _studied().iterdir() if path.suffix == ".parquet")),
        "log events": _log("events.csv", EVENTS.encode(), "events"),
        "log packed": _log("events.csv.gz", gzip.compress(EVENTS.encode()), "events"),
        "log tensorboard": _log("events.out.tfevents.1.n1", _event_file()),
        "log accounts": _log("sacct.txt", SACCT.encode()),
        "log pods": _log("pods.json", json.dumps(PODS, indent=1).encode()),
    }
    return texts | {f"connector {name}": _connector(name) for name in connectors.PUBLISHERS}


def _run(found: dict[str, Any], content: bytes) -> bool:
    expected = tomllib.loads(content.decode("utf-8-sig"))
    given = expected.pop("given", {})
    return repr(found) == repr(expected | given)


def _notebook(found: Any, content: bytes) -> bool:
    return [cell["cell_type"] for cell in json.loads(content)["cells"]] == [cell.kind for cell in found] and all(
        cell.source in joined(row["source"]) or cell.options
        for cell, row in zip(found, json.loads(content)["cells"], strict=True)
    )


def _calibration(found: Any, content: bytes) -> bool:
    expected = json.loads(content)
    return dict(found) == expected["constants"] and found.rows == expected["rows"]


def _rows(found: pl.DataFrame, content: bytes) -> bool:
    cells = _cells(content)
    return all(
        _same(found[name].to_list(), cells[name]) if found[name].dtype.is_numeric() else True for name in found.columns
    )


NUMBERS = (
    "1e999",
    "-5",
    "1_000",
    "nan",
    "inf",
    "0x10",
    "9" * 400,
    "1e308",
    "",
    "1,5",
    "1.5.2",
    "١٢",
    "1e-400",
    " 7 ",
    "+3",
)


def mutations(content: bytes, seed: int, number: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield mutated contents, each with its decompressed contents; the same seed yields the same."""
    chance = random.Random(seed)
    for _ in range(number):
        made = content
        for _ in range(1 + (chance.random() < 0.2)):
            made = chance.choice(MUTATORS)(made, chance)
        if chance.random() < 0.03:
            packed = chance.choice((gzip.compress, lzma.compress))(made)
            yield (packed if chance.random() < 0.5 else packed[: -chance.randrange(1, 9)]), made
        else:
            yield made, made


def _flip(content: bytes, chance: random.Random) -> bytes:
    if not content:
        return content
    made = bytearray(content)
    made[chance.randrange(len(made))] ^= 1 << chance.randrange(8)
    return bytes(made)


def _place(content: bytes, chance: random.Random) -> tuple[int, int]:
    first = chance.randrange(len(content) + 1)
    return first, min(len(content), first + chance.randrange(1, 40))


def _without(content: bytes, chance: random.Random) -> bytes:
    first, last = _place(content, chance)
    return content[:first] + content[last:]


def _twice(content: bytes, chance: random.Random) -> bytes:
    first, last = _place(content, chance)
    return content[:last] + content[first:]


def _cut(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content) + 1)]


def _line_twice(content: bytes, chance: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    return b"".join(lines[: (at := chance.randrange(len(lines) + 1))] + lines[max(at - 1, 0) :])


def _line_gone(content: bytes, chance: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    at = chance.randrange(len(lines) + 1)
    return b"".join(lines[:at] + lines[at + 1 :])


def _number(content: bytes, chance: random.Random) -> bytes:
    found = list(re.finditer(rb"\d[\d.e+]*", content))
    if not found:
        return content
    one = chance.choice(found)
    return content[: one.start()] + chance.choice(NUMBERS).encode() + content[one.end() :]


def _columns_swapped(content: bytes, chance: random.Random) -> bytes:
    rows = [line.split(b",") for line in content.split(b"\n")]
    width = len(rows[0])
    one, other = chance.randrange(width), chance.randrange(width)
    for row in rows if chance.random() < 0.5 else rows[:1]:
        if len(row) == width:
            row[one], row[other] = row[other], row[one]
    return b"\n".join(b",".join(row) for row in rows)


def _inserted(content: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(content) + 1)
    part = chance.choice(
        (b"\0", b"\xff", b"\r", b"\n", b'"', b"\x1b[2J", b"[" * 3000, b'{"a":' * 200, b"\xed\xa0\x80", b",")
    )
    return content[:at] + part + content[at:]


def _encoded(content: bytes, chance: random.Random) -> bytes:
    text = content.decode("utf-8", "replace")
    match chance.randrange(5):
        case 0:
            return b"\xef\xbb\xbf" + content
        case 1:
            return text.encode("utf-16")
        case 2:
            return text.replace("x", "ü").encode("latin-1", "replace")
        case 3:
            return content.replace(b"\n", b"\r\n")
        case _:
            return content.replace(b",", b";")


MUTATORS = (
    *(_flip, _flip, _without, _twice, _cut, _line_twice, _line_gone, _number, _number, _number),
    *(_columns_swapped, _inserted, _encoded),
)


def wrong(name: str, subject: Subject, folder: Path, seed: int, number: int) -> tuple[list[str], int]:
    """Return the errors in a number of mutations of a file, and how many of them were read."""
    found: list[str] = []
    path, answered = folder / subject.name, 0
    for content, seen in mutations(subject.content, seed, number):
        path.write_bytes(content)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                read = subject.read(path)
        except fk.FactorykitError as error:
            if any(len(line) > 300 for line in str(error).split("\n")):
                found.append(f"{name}: a line of {len(str(error))} characters")
            continue
        except BaseException as error:
            found.append(f"{name}: {type(error).__name__}: {str(error)[:100]} of {content[:60]!r}")
            continue
        answered += 1
        try:
            right = subject.right(read, seen)
        except Exception as error:  # contents that the check cannot read should have been refused
            right, content = False, f"{type(error).__name__}: {error}".encode() + content
        if not right:
            found.append(f"{name}: read as {str(read)[:300]} of {content!r}")
    return found, answered
