"""What hostile arguments are made of, and how a good argument is damaged."""

from __future__ import annotations

import array
import collections
import contextlib
import datetime
import decimal
import enum
import fractions
import functools
import io
import itertools
import math
import operator
import random
import re
import threading
import types
import uuid
import weakref
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl

import factorykit as fk
from factorykit.quantities import vocabulary


class Odd:
    """Answers every question with itself or an error."""

    def __repr__(self) -> str:
        return "\x1b[31modd\x00"


class Lost(Mapping[str, float]):
    """Names a key and does not have it."""

    def __getitem__(self, name: str) -> float:
        raise RuntimeError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(("mfu",))

    def __len__(self) -> int:
        return 1


class Sized(list[float]):
    """Says that it holds more than it does."""

    def __len__(self) -> int:
        return 2**40


def _raising(value: Any) -> Any:
    raise RuntimeError(type(value))


class Colour(enum.Enum):
    RED = "red"


def _cyclic() -> list[Any]:
    made: list[Any] = []
    made.append(made)
    return made


def _deep() -> Any:
    made: Any = 1.0
    for _ in range(2000):
        made = [made]
    return made


class Grumpy:
    """Raises whatever it is asked."""

    def _no(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no\n" * 200)

    __eq__ = __hash__ = __str__ = __repr__ = __len__ = __bool__ = __iter__ = __getattr__ = __call__ = _no
    __float__ = __int__ = __index__ = __complex__ = __lt__ = __gt__ = __le__ = __ge__ = __contains__ = _no
    __getitem__ = __fspath__ = __format__ = __array__ = __enter__ = __dir__ = __add__ = __mul__ = __rmul__ = _no


class Agreeable:
    """Says yes to everything, and has everything."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *_: Any, **__: Any) -> Any:
        return self

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __len__(self) -> int:
        return 3

    def __float__(self) -> float:
        return 0.5

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, int) and at > 3:
            raise IndexError(at)
        return self

    def __lt__(self, other: object) -> bool:
        return True

    __gt__ = __le__ = __ge__ = __contains__ = __lt__


class Text(str):
    """A text whose methods lie."""

    __slots__ = ()

    def __len__(self) -> int:
        return 10**9

    def __str__(self) -> str:
        raise RuntimeError("no text")

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 7


class Real(float):
    """A number whose comparisons raise."""

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        raise RuntimeError("no order")

    __gt__ = __le__ = __ge__ = __lt__

    def __repr__(self) -> str:
        raise RuntimeError("no words")


class Count(int):
    """A whole number that is another one when it is asked twice."""

    def __index__(self) -> int:
        raise RuntimeError("no index")

    def __float__(self) -> float:
        raise RuntimeError("no float")


class Endless(Mapping[str, float]):
    """Has every name, without end."""

    def __getitem__(self, name: str) -> float:
        return 0.5

    def __iter__(self) -> Iterator[str]:
        return (f"name{n}" for n in itertools.count())

    def __len__(self) -> int:
        return 1


class Place:
    """A path that cannot be told."""

    def __fspath__(self) -> str:
        raise OSError("no place")


class Shifty(dict[str, Any]):
    """Says something else each time it is asked."""

    def __init__(self) -> None:
        super().__init__(mfu=0.4)
        self.asked = 0

    def __iter__(self) -> Iterator[str]:
        self.asked += 1
        return iter(("mfu", "tokens", "goodput")[: self.asked % 4])

    def keys(self) -> Any:
        return list(self)

    def items(self) -> Any:
        return [(name, None) for name in self]

    def __getitem__(self, name: str) -> Any:
        self.asked += 1
        return self.asked if self.asked % 2 else "0.4 s"

    def __len__(self) -> int:
        return -1


class Yes(int):
    """A number that is a truth value, a text and a list by its own account."""

    @property
    def __class__(self) -> Any:
        return dict

    @__class__.setter
    def __class__(self, _: Any) -> None:
        raise RuntimeError("no class")


class Alike(enum.StrEnum):
    MFU = "mfu"


class Grown(pl.DataFrame):
    """A frame of somebody's own, which has fewer columns than it tells."""

    columns = ("mfu", "tokens")  # type: ignore[assignment]

    def collect_schema(self) -> Any:
        raise RuntimeError("no schema")


class Spread(np.ndarray):
    """An array whose every operation raises."""

    def __array_ufunc__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no arithmetic")

    def __array_function__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no functions")


class Arrayed:
    """An array by its own account, of too much."""

    __array_interface__ = {"shape": (2**40,), "typestr": "<f8", "version": 3, "data": (0, True)}  # noqa: RUF012

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no array")

    def __dataframe__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no frame")

    def __arrow_c_stream__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no stream")


class Columned(list[float]):
    """A list that has columns like a frame."""

    columns = ("mfu",)
    schema = None


def _cyclic_mapping() -> dict[str, Any]:
    made: dict[str, Any] = {}
    made["mfu"] = made
    return made


def _deep_mapping() -> Any:
    made: Any = 1.0
    for _ in range(2000):
        made = {"mfu": made}
    return made


def _failing() -> pl.LazyFrame:
    return pl.LazyFrame({"mfu": [0.4], "accelerators": [8.0]}).map_batches(_raising)


def _column(name: str, values: Any, kind: Any) -> Callable[[], pl.DataFrame]:
    return lambda: pl.DataFrame({name: pl.Series(values, dtype=kind, strict=False)})


MAKERS: tuple[Callable[[], Any], ...] = (
    lambda: None,
    lambda: True,
    lambda: 0,
    lambda: -1,
    lambda: 5,
    lambda: 1.5,
    lambda: -0.0,
    lambda: 10**400,
    lambda: -(10**400),
    lambda: 2**63,
    lambda: 1e308,
    lambda: 5e-324,
    lambda: math.nan,
    lambda: math.inf,
    lambda: -math.inf,
    lambda: 1j,
    lambda: "",
    lambda: " ",
    lambda: "nope",
    lambda: "mfu",
    lambda: "h100_sxm",
    lambda: "1e999",
    lambda: "3 parsecs",
    lambda: "12 GB/s",
    lambda: "9" * 5000,
    lambda: "x" * 100_000,
    lambda: "\x00\x1b[2J",
    lambda: "\ud800",
    lambda: "＄{a}",
    lambda: "../../etc/passwd",
    lambda: b"bytes",
    list,
    dict,
    lambda: (),
    lambda: set(),
    lambda: [None],
    lambda: ["mfu", 3],
    lambda: [[1.0], [2.0]],
    lambda: {"mfu": None},
    lambda: {3: 4},
    lambda: {"nope": 1.0},
    lambda: {"mfu": "checkpoint_goodput"},
    lambda: {"number of row": 1.0},
    _cyclic,
    _deep,
    Odd,
    lambda: Odd,
    lambda: Colour.RED,
    lambda: object(),
    lambda: len,
    lambda: (x for x in (1, 2)),
    lambda: range(3),
    lambda: decimal.Decimal("0.4"),
    lambda: decimal.Decimal("NaN"),
    lambda: fractions.Fraction(2, 5),
    lambda: datetime.date(2025, 1, 1),
    lambda: datetime.timedelta(days=1),
    lambda: np.float32(0.4),
    lambda: np.int64(8),
    lambda: np.array([1.0, 2.0]),
    lambda: np.array([[1.0]]),
    lambda: np.array(["a"], dtype=object),
    lambda: np.datetime64("2025-01-01"),
    lambda: pl.Series([1.0, 2.0]),
    lambda: pl.Series(["a"]),
    lambda: pl.col("mfu"),
    lambda: pl.DataFrame(),
    lambda: pl.DataFrame({"mfu": [0.4]}),
    lambda: pl.DataFrame({"mfu": [None]}),
    lambda: pl.DataFrame({"mfu": ["0.4"]}),
    lambda: pl.DataFrame({"accelerator": ["h100_sxm"]}, schema={"accelerator": pl.Categorical}),
    lambda: pl.DataFrame({"number of row": [1], "mfu": [2.0]}),
    lambda: pl.DataFrame({"mfu": [[1.0]]}),
    lambda: pl.LazyFrame({"mfu": [0.4]}),
    lambda: pl.LazyFrame({"mfu": [0.4]}).select("gone"),
    lambda: pl.DataFrame({"mfu": ["0.4"]}, schema={"mfu": pl.Enum(["0.4"])}),
    lambda: pl.DataFrame({"accelerators": [8]}, schema={"accelerators": pl.Int128}),
    lambda: pl.DataFrame({"mfu": [object()]}, schema={"mfu": pl.Object}),
    lambda: pl.DataFrame({"mfu": [{"mfu": 0.4}]}),
    lambda: pl.DataFrame({"x" * 100_000: [1.0]}),
    lambda: itertools.count(),
    lambda: range(10**12),
    lambda: (_raising(x) for x in (1, 2)),
    lambda: np.array(0.4),
    lambda: np.array([math.nan]),
    lambda: np.bool_(True),
    lambda: np.float16(0.4),
    lambda: np.str_("mfu"),
    Lost,
    Sized,
    lambda: bytearray(b"mfu"),
    lambda: memoryview(b"mfu"),
    lambda: {"mfu": {"mfu": {}}},
    lambda: {None: None},
    lambda: "mfu\n" * 500,
    lambda: "１２",
    lambda: "1_000",
    lambda: "0x10",
    lambda: 10**18,
    lambda: 1000,
    lambda: 4096,
    lambda: 2**20,
    lambda: 2**30,
    lambda: 10**9,
    lambda: 10**12,
    lambda: 1e6,
    lambda: 1e12,
    lambda: 2**53 - 1,
    lambda: 1e18,
    lambda: 123456789.123,
    lambda: Path("/dev/zero"),
    lambda: Path("/proc/self/mem"),
    lambda: Path("/dev/null"),
    lambda: Path("/nowhere\x00"),
    lambda: fk.Uniform(0.0, 1.0),
    lambda: fk.preset("llama_3_1_405b"),
    Grumpy,
    Agreeable,
    lambda: Grumpy,
    lambda: Text("mfu"),
    lambda: Real(0.4),
    lambda: Count(8),
    Endless,
    Place,
    lambda: Columned([1.0]),
    _cyclic_mapping,
    _deep_mapping,
    _failing,
    lambda: pl.scan_parquet("/nowhere.parquet"),
    lambda: pl.scan_csv("/dev/null"),
    lambda: [Grumpy()],
    lambda: {"mfu": Grumpy()},
    lambda: {"mfu": Text("0.4")},
    lambda: {Text("mfu"): 0.4},
    lambda: collections.OrderedDict(mfu=0.4),
    lambda: collections.Counter("mfu"),
    lambda: collections.deque([1.0, 2.0]),
    lambda: collections.ChainMap({"mfu": 0.4}, {}),
    lambda: collections.UserDict({"mfu": math.nan}),
    lambda: collections.UserString("mfu"),
    lambda: collections.defaultdict(list),
    lambda: types.MappingProxyType({"mfu": 0.4}),
    lambda: types.SimpleNamespace(mfu=0.4),
    lambda: frozenset(("mfu", "tokens")),
    lambda: {"mfu": 1}.keys(),
    lambda: {"mfu": 1}.items(),
    lambda: map(operator.neg, (1, 2)),
    lambda: iter((1.0, "a")),
    lambda: array.array("d", [1.0, 2.0]),
    lambda: io.StringIO("mfu"),
    lambda: io.BytesIO(b"mfu"),
    lambda: functools.partial(max, 1),
    lambda: lambda **given: given,
    lambda: lambda: None,
    lambda: threading.Lock(),
    lambda: re.compile("(a+)+$"),
    lambda: uuid.UUID(int=1),
    lambda: Ellipsis,
    lambda: NotImplemented,
    lambda: slice(None),
    lambda: types,
    lambda: fk,
    lambda: fk.FactorykitError("\x1b"),
    lambda: ValueError("x" * 1000),
    lambda: datetime.datetime(2025, 1, 1, tzinfo=datetime.UTC),
    lambda: datetime.datetime.max,
    lambda: datetime.time(1),
    lambda: decimal.Decimal("sNaN"),
    lambda: decimal.Decimal("1e999999"),
    lambda: fractions.Fraction(10**400, 3),
    lambda: complex(math.nan, 1),
    lambda: -(2**63) - 1,
    lambda: 2**53 + 1,
    lambda: 2**1024,
    lambda: 1e-320,
    lambda: 1e22,
    lambda: -1e-9,
    lambda: np.float64(math.nan),
    lambda: np.longdouble("1e4000"),
    lambda: np.complex128(1j),
    lambda: np.uint8(200),
    lambda: np.int8(-1),
    lambda: np.timedelta64(3, "s"),
    lambda: np.datetime64("NaT"),
    lambda: np.void(b"ab"),
    lambda: np.bytes_(b"mfu"),
    lambda: np.array([]),
    lambda: np.array(["mfu"]),
    lambda: np.array([b"mfu"]),
    lambda: np.array([True, False]),
    lambda: np.array([1, 2], dtype=np.uint8),
    lambda: np.array([1j]),
    lambda: np.array([None, 1.0], dtype=object),
    lambda: np.array(["2025-01-01"], dtype="M8[D]"),
    lambda: np.zeros((2, 2, 2)),
    lambda: np.zeros(2, dtype=[("mfu", "f8"), ("pue", "f8")]),
    lambda: np.ma.masked_array([1.0, 2.0], mask=[True, False]),
    lambda: np.broadcast_to(1.0, (10**9,)),
    lambda: np.random.default_rng(1),
    lambda: np.finfo(float),
    lambda: np.add,
    lambda: pl.Series([], dtype=pl.Float64),
    lambda: pl.Series([None, None]),
    lambda: pl.Series([math.nan, math.inf]),
    lambda: pl.Series(["a", "b"], dtype=pl.Categorical),
    lambda: pl.Series(["a"], dtype=pl.Enum(["a"])),
    lambda: pl.Series([1], dtype=pl.Int128),
    lambda: pl.Series([decimal.Decimal("0.4")]),
    lambda: pl.Series([datetime.date(2025, 1, 1)]),
    lambda: pl.Series([datetime.timedelta(1)]),
    lambda: pl.Series([b"a"]),
    lambda: pl.Series([[1.0], [2.0]]),
    lambda: pl.Series([[1.0], [2.0]], dtype=pl.Array(pl.Float64, 1)),
    lambda: pl.Series([{"mfu": 1.0}]),
    lambda: pl.Series([object()], dtype=pl.Object),
    lambda: pl.Float64,
    lambda: pl.all(),
    lambda: pl.len(),
    lambda: pl.DataFrame({"mfu": []}, schema={"mfu": pl.Float64}),
    lambda: pl.DataFrame({"mfu": [], "accelerators": []}),
    lambda: pl.DataFrame({name: [0.5] for name in ("mfu", " mfu", "MFU", "mfu ")}),
    lambda: pl.DataFrame({"": [1.0], "__proto__": [2.0], "constructor": ["x"]}),
    lambda: pl.DataFrame({"a.b[0]\\'\"": [1.0], "mfu": [0.4]}),
    lambda: pl.DataFrame({"\u202emfu": [1.0], "^m.*$": [1.0], "*": [1.0]}),
    lambda: pl.DataFrame({"mfu": [math.nan, math.inf, -math.inf, None]}),
    lambda: pl.DataFrame({f"c{n}": [0.0] for n in range(500)}),
    lambda: pl.DataFrame({"mfu": [0.4], "label": ["\x1b[31m<script>"]}),
    lambda: pl.DataFrame({"year": [2020, 2021], "mfu": [None, None], "id": ["a", "a"]}),
    _column("mfu", [decimal.Decimal("0.4")], pl.Decimal(20, 4)),
    _column("mfu", [None], pl.Null),
    _column("mfu", [1], pl.UInt64),
    _column("mfu", [b"x"], pl.Binary),
    _column("mfu", [datetime.timedelta(1)], pl.Duration),
    _column("accelerator", ["h100_sxm"], pl.Enum(["h100_sxm"])),
    _column("accelerator", [1.0], pl.Float64),
    _column("precision", ["bf16"], pl.Categorical),
    lambda: pl.DataFrame({"mfu": [0.4]}).group_by("mfu"),
    lambda: "a" * 255,
    lambda: "a/" * 2000,
    lambda: "~",
    lambda: ".",
    lambda: "/",
    lambda: "*",
    lambda: "[",
    lambda: "\\",
    lambda: "con\r\n",
    lambda: "%s %n {0} {mfu.__class__}",
    lambda: "<script>alert(1)</script>",
    lambda: "file:///etc/passwd",
    lambda: "http://127.0.0.1:1/",
    lambda: "ray://127.0.0.1:1",
    lambda: "mfu; drop table clusters",
    lambda: "'",
    lambda: "\u202e\u200b\ufeff",
    lambda: "e\u0301" * 500,
    lambda: "\U0010ffff",
    lambda: "1e",
    lambda: "-0",
    lambda: "1/0",
    lambda: "0 s",
    lambda: "1e308 h",
    lambda: "5 W",
    lambda: "infinity",
    lambda: "nan s",
    lambda: "3 d 4 h",
    lambda: "999999999999-12-31",
    lambda: "2025-13-45",
    lambda: Path(),
    lambda: Path("/"),
    lambda: Path("x" * 300),
    lambda: fk.LogNormal(1.0, 2.0),
    lambda: fk.Scenario(),
    lambda: fk.Plant(),
    lambda: fk.Policy(),
    lambda: fk.Cause("gpu"),
    lambda: fk.Tier("disk", 1.0),
    lambda: fk.lifetimes.Weibull(5.0, 0.8),
    lambda: fk.quantity("mfu"),
    lambda: fk.widgets.slider("mfu", 0.4),
    Shifty,
    lambda: Yes(3),
    lambda: Alike.MFU,
    lambda: Grown({"mfu": [0.4]}),
    lambda: np.array([0.3, 0.4]).view(Spread),
    Arrayed,
    mock.MagicMock,
    lambda: mock.MagicMock(spec=pl.DataFrame),
    lambda: mock.MagicMock(spec=pl.LazyFrame),
    lambda: mock.MagicMock(spec=dict),
    lambda: mock.MagicMock(spec=float),
    lambda: mock.MagicMock(spec=Path),
    lambda: mock.Mock(spec=fk.Scenario),
    lambda: mock.Mock(spec=fk.Uniform),
    lambda: pd.DataFrame({"mfu": [0.4], "accelerators": [8]}),
    lambda: pd.Series([0.3, 0.4]),
    lambda: pd.NA,
    lambda: pd.NaT,
    lambda: pd.Timestamp("2025-01-01"),
    lambda: weakref.proxy(fk.Plant),
    lambda: weakref.ref(fk.Plant),
    lambda: {math.nan: 0.4, "mfu": 0.4},
    lambda: {("mfu", "tokens"): 0.4},
    lambda: dict.fromkeys((f"name{n}" for n in range(2000)), 1.0),
    lambda: {"mfu": list(range(10_000))},
    lambda: "mfu" * 3_000_000,
    lambda: "9" * 10_000 + " s",
    lambda: "(" * 10_000,
    lambda: "1e" * 5000,
    lambda: "-" * 20_000 + "1",
    lambda: "1 " * 20_000,
    lambda: "select " + "(" * 3000 + "1" + ")" * 3000,
    lambda: "a=" * 1000,
    lambda: "mfu\u2028\x85\x7f",
    lambda: "\ufffe\uffff",
    lambda: "\U000e0001",
    lambda: "mfu\r",
    lambda: "＋１",
    lambda: "0.4 GPU",
    lambda: "40 %",
    lambda: "$3/h",
    lambda: "1e309 s",
    lambda: "1/3 s",
    lambda: "-1 d",
    lambda: "1 TB/s/GPU",
    lambda: "0.4 s^-1",
    lambda: np.array([1.0, 2.0], dtype=">f8"),
    lambda: np.array([1.0, 2.0], dtype=np.longdouble),
    lambda: np.array([1.0, 2.0], dtype=np.float16),
    lambda: np.array([2**64 - 1], dtype=np.uint64),
    lambda: np.matrix([[1.0, 2.0]]),
    lambda: np.rec.array([(1.0, 2.0)], dtype=[("mfu", "f8"), ("pue", "f8")]),
    lambda: np.array([1.0, 2.0, 3.0])[::-1],
    lambda: np.array(["a", "b"], dtype="U2"),
    lambda: np.array([["mfu"]], dtype=object),
    lambda: np.timedelta64("NaT"),
    lambda: np.float64(0.4),
    lambda: np.int64(-(2**63)),
    lambda: pl.Series("mfu", [0.4], dtype=pl.Float32),
    lambda: pl.Series([1], dtype=pl.UInt128),
    lambda: pl.Series([0.5], dtype=pl.Float16),
    lambda: pl.DataFrame({"mfu": [[0.4]]}, schema={"mfu": pl.Array(pl.Float64, 1)}),
    lambda: pl.DataFrame({"mfu": [{"a": [None]}], "accelerators": [[{"b": 1}]]}),
    lambda: pl.DataFrame({"mfu": [decimal.Decimal("0.4")], "accelerators": [8]}).lazy(),
    lambda: pl.DataFrame(schema={"mfu": pl.Object}),
    lambda: pl.DataFrame({"accelerator": [datetime.datetime(2025, 1, 1, tzinfo=datetime.UTC)]}),
    lambda: pl.LazyFrame({"mfu": [0.4]}).with_columns(pl.col("mfu").cast(pl.Int8).replace_strict({})),
    lambda: pl.LazyFrame({"mfu": ["x"]}).with_columns(pl.col("mfu").str.to_integer()),
    lambda: pl.LazyFrame({"mfu": [0.4]}).join(pl.LazyFrame({"pue": [1]}), on="gone"),
    lambda: pl.scan_ndjson("/nowhere.json"),
    lambda: pl.Schema({"mfu": pl.Float64}),
    lambda: pl.SQLContext(),
    lambda: pl.when(pl.col("mfu") > 0).then(1),
    lambda: datetime.datetime.min,
    lambda: datetime.datetime(2025, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=23, minutes=59))),
    lambda: datetime.timedelta.max,
    lambda: (n for n in itertools.repeat("mfu")),
    lambda: itertools.repeat(0.5),
    lambda: itertools.cycle(("mfu", 3)),
    lambda: zip((1, 2), ("a",), strict=False),
    lambda: reversed([1.0, 2.0]),
    lambda: [0.5] * 5000,
    lambda: ["mfu"] * 5000,
    lambda: list(range(2000)),
    lambda: [math.nan] * 6,
    lambda: [0.0] * 6,
    lambda: [1e308] * 6,
    lambda: [5e-324, 1e308],
    lambda: [True, None, "a", b"b", 1j, [], {}, ()],
    lambda: [Agreeable(), 0.5],
    lambda: [Real(0.4), Count(3)],
    lambda: [decimal.Decimal("1"), fractions.Fraction(1, 3)],
    lambda: [np.array([1.0]), np.float32(1)],
    lambda: [10**400, -(10**400)],
    lambda: [[]],
    lambda: ([],),
    lambda: [{}],
    lambda: [fk.Cause("gpu"), fk.Tier("disk", 1.0)],
    lambda: type("", (), {})(),
    lambda: type("Named\x1b", (), {})(),
    lambda: type,
    lambda: int,
    lambda: float("0.1") + 1j,
    lambda: open,
    lambda: (lambda: (yield))(),
    lambda: contextlib.suppress(Exception),
    lambda: memoryview(array.array("d", [1.0])),
    lambda: range(-5, 5),
    lambda: range(1, 10**30, 10**29),
    lambda: fk.Normal(0.0, 1e300),
    lambda: fk.Uniform("1 h", "2 h"),
    lambda: fk.LogNormal(1e-300, 1e300),
    lambda: fk.Quantiles((0.0, 1.0), (-1e308, 1e308)),
    lambda: fk.empirical([0.0, 0.0, 1.0]),
    lambda: fk.charts.Case("\x1b", {"mfu": "goodput"}, {"mfu": 0.4}),
    lambda: fk.Maintenance(1.0, 0.5),
    lambda: fk.checkpoint_patterns.Level(0.5, 2.0, 3.0),
    lambda: fk.lifetimes.Lognormal(1e-9, 50.0),
    lambda: fk.reliability.Interval(2.0, 1.0),
    lambda: Path("a" * 200 + "/" + "b" * 200),
    lambda: Path("/proc/self/environ"),
    lambda: Path("/dev/full"),
    lambda: Path("/etc"),
    lambda: "-",
    lambda: "file\x00name",
    lambda: "http://[::1",
    lambda: "s3://bucket/key",
    lambda: "hf://datasets/a/b",
    lambda: "glob*/**",
    lambda: "Europe/Nowhere",
    lambda: "UTC+25",
    lambda: "../" * 50,
)

DTYPES = (
    *(pl.Float32, pl.Int64, pl.Int128, pl.UInt8, pl.String, pl.Boolean, pl.Categorical, pl.Null, pl.Decimal(20, 4)),
    *(pl.Date, pl.Datetime, pl.Time, pl.Duration, pl.Binary, pl.Enum(["a"]), pl.List(pl.Float64)),
    *(pl.Array(pl.Float64, 2), pl.Struct({"mfu": pl.Float64})),
)
STRANGE = ("number of row", "x" * 10_000, "\x00", "", "whether all that is given is within bounds", "^.*$", "__proto__")
"""Names of columns, two of which the engine uses itself."""
DEEPEST = 3
"""Levels of a mapping, a list or a frame in each other at which a part of an argument is damaged."""


def damaged(good: Any, chance: random.Random, level: int = 0) -> Any:
    """Return an argument with one part that is hostile, at any depth, or a hostile one in its place."""
    hostile = chance.choice(MAKERS)
    if chance.random() < 0.5:
        return hostile()
    if isinstance(good, Mapping) and good:
        return _damaged_mapping(good, chance, level)
    if isinstance(good, pl.DataFrame | pl.LazyFrame):
        with contextlib.suppress(pl.exceptions.PolarsError):  # the damage itself is not possible
            return _damaged_frame(good, chance)
        return hostile()
    if isinstance(good, list | tuple) and good:
        many = list(good)
        at = chance.randrange(len(many))
        many[at] = damaged(many[at], chance, level + 1) if level < DEEPEST else hostile()
        return many
    if isinstance(good, str) and chance.random() < 0.3:
        return _damaged_text(good, chance)
    return hostile()


def _damaged_mapping(good: Mapping[Any, Any], chance: random.Random, level: int) -> Any:
    hostile, names = chance.choice(MAKERS), list(good)
    match chance.randrange(5):
        case 0:
            return {**good, chance.choice(names): hostile()}
        case 1:
            name = hostile()
            return {**good, name: 1.0} if _hashable(name) else {**good, "mfu": name}
        case 2:
            gone = chance.choice(names)
            return {name: value for name, value in good.items() if name is not gone}
        case 3 if level < DEEPEST:
            name = chance.choice(names)
            return {**good, name: damaged(good[name], chance, level + 1)}
        case _:
            return {**good, chance.choice(list(vocabulary())): hostile()}


def _damaged_text(good: str, chance: random.Random) -> str:
    """Return a text with a letter gone, doubled or odd."""
    at = chance.randrange(len(good) + 1)
    return good[:at] + chance.choice(("", good[at : at + 1] * 2, *"\x00\n\ud800 '\"(")) + good[at + 1 :]


def _hashable(thing: Any) -> bool:
    try:
        hash(thing)
    except Exception:
        return False
    return not isinstance(thing, Agreeable)  # which would take the place of any other key


def _damaged_frame(good: Any, chance: random.Random) -> Any:
    name = chance.choice(good.collect_schema().names())
    match chance.randrange(8):
        case 0:
            return good.with_columns(pl.lit(None).cast(chance.choice(DTYPES)).alias(name))
        case 1:
            return good.drop(name)
        case 2:
            return good.clear() if isinstance(good, pl.DataFrame) else good.limit(0)
        case 3:
            return good.with_columns(pl.lit(chance.choice((None, math.nan, -1.0, "x", math.inf, 1e308))).alias(name))
        case 4:
            return good.with_columns(pl.lit(1.0).alias(chance.choice(STRANGE)))
        case 5:
            return good.select(pl.all().map_batches(_raising)) if isinstance(good, pl.LazyFrame) else good.lazy()
        case 6:
            return good.with_columns(pl.col(name).cast(chance.choice((pl.Float32, pl.String)), strict=False))
        case _:
            return good.rename({name: chance.choice((name + " ", name.upper(), chance.choice(STRANGE)))})
