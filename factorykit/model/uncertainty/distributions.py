"""Distributions of uncertain inputs, given by their quantile functions.

Every distribution has ``ppf(u)``, the value below which a share ``u`` of the probability lies, so a frozen
distribution of ``scipy.stats`` serves as well. Rows come from points in the unit cube through ``ppf``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from factorykit.core.errors import ScenarioError, short_repr
from factorykit.core.extras import need
from factorykit.core.units import parse
from factorykit.core.validation import as_list, finite_number, mapping, number_or_array
from factorykit.core.vocabulary import Quantity, as_float, is_number, quantity
from factorykit.formulas.functions import exp, sqrt, where

if TYPE_CHECKING:
    from typing_extensions import TypeIs

NORMAL = NormalDist()
CENTRAL_MASS = 0.9
"""Default share of the probability between the two quantiles of a lognormal distribution: 5 to 95 %."""


@runtime_checkable
class Distribution(Protocol):
    """Anything with a quantile function."""

    def ppf(self, q: Any) -> Any:
        """Return the values below which the shares ``q`` of the probability lie."""
        ...


def is_distribution(value: object) -> TypeIs[Distribution]:
    """Return whether a value has a quantile function.

    >>> is_distribution(Uniform(0.0, 1.0)), is_distribution(0.5)
    (True, False)
    """
    return isinstance(value, Distribution)


class _InUnits:
    """A distribution whose parameters may be text with units ("30 min"), parsed once its quantity is known."""

    __slots__ = ()

    def __post_init__(self) -> None:
        if not any(isinstance(number, str) for number in _numbers(self)):
            self._check()
            for field in fields(self):  # type: ignore[arg-type]
                value = getattr(self, field.name)
                object.__setattr__(
                    self, field.name, tuple(map(as_float, value)) if isinstance(value, tuple) else as_float(value)
                )

    def _check(self) -> None:
        """Refuse parameters that are not finite, and a range that is none."""
        kind = type(self).__name__
        _finite(kind, **{field.name: getattr(self, field.name) for field in fields(self)})  # type: ignore[arg-type]
        _ordered(kind, *(getattr(self, name) for name in ("low", "high")))

    def ppf(self, q: Any) -> Any:
        """Return quantiles."""
        if any(isinstance(number, str) for number in _numbers(self)):
            raise ScenarioError(f"{short_repr(self)} has units and no quantity; give plain numbers")
        return self._quantiles(number_or_array("q", q, 0.0, 1.0))

    def _quantiles(self, q: Any) -> Any:
        raise NotImplementedError


def _numbers(distribution: Any) -> list[Any]:
    values = [getattr(distribution, field.name) for field in fields(distribution)]
    return [number for value in values for number in (value if isinstance(value, tuple) else (value,))]


def in_units_of(row: Quantity, distribution: Distribution) -> Distribution:
    """Return the distribution with its strings parsed as values of a quantity.

    >>> in_units_of(quantity("restart_s"), Uniform("5 min", "1 h"))
    Uniform(low=300.0, high=3600.0)
    """
    if not isinstance(distribution, _InUnits) or not any(isinstance(value, str) for value in _numbers(distribution)):
        return distribution

    def number(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(number, value))
        return parse(row, value) if isinstance(value, str) else value

    parameters = {field.name: number(getattr(distribution, field.name)) for field in fields(distribution)}  # type: ignore[arg-type]
    return replace(distribution, **parameters)  # type: ignore[type-var]


def _finite(kind: str, **numbers: float) -> None:
    for name, value in numbers.items():
        finite_number(f"{kind}: {name}", value)


def _ordered(kind: str, low: float, high: float) -> None:
    if not (is_number(low) and is_number(high)):
        raise ScenarioError(f"{kind}: low = {short_repr(low)} and high = {short_repr(high)} must be numbers")
    if not as_float(low) < as_float(high):
        raise ScenarioError(
            f"{kind}: low = {low!r} is not below high = {high!r}; give the two ends of a range, not a mean and a "
            "deviation; a fixed value belongs in the base"
        )


def normal_quantile(share: Any) -> Any:
    """Return quantiles of the standard normal distribution; those of an array need SciPy.

    >>> round(normal_quantile(0.975), 2), normal_quantile(1.0)
    (1.96, inf)
    """
    if not isinstance(share, float):
        return need("scipy.special").ndtri(share)
    return NORMAL.inv_cdf(share) if 0.0 < share < 1.0 else math.copysign(math.inf, share - 0.5)


@dataclass(frozen=True, slots=True)
class Uniform(_InUnits):
    """Uniform distribution between ``low`` and ``high``.

    >>> float(Uniform(0.3, 0.5).ppf(0.5))
    0.4
    """

    low: float
    high: float

    def _quantiles(self, q: Any) -> Any:
        return self.low + (self.high - self.low) * q


@dataclass(frozen=True, slots=True)
class LogUniform(_InUnits):
    """Log-uniform distribution between ``low`` and ``high``, both above zero.

    >>> round(float(LogUniform(1.0, 100.0).ppf(0.5)), 9)
    10.0
    """

    low: float
    high: float

    def _check(self) -> None:
        _InUnits._check(self)
        if self.low <= 0.0:
            raise ScenarioError(f"LogUniform: low = {self.low!r} is not above zero; use Uniform")

    def _quantiles(self, q: Any) -> Any:
        return self.low * (self.high / self.low) ** q


@dataclass(frozen=True, slots=True)
class Normal(_InUnits):
    """Normal distribution, truncated to ``low`` and ``high``.

    >>> float(Normal(0.4, 0.03, low=0.0, high=1.0).ppf(0.5))
    0.4
    """

    mean: float
    sd: float
    low: float = -math.inf
    high: float = math.inf

    def _check(self) -> None:
        _finite("Normal", mean=self.mean, sd=self.sd)
        _ordered("Normal", self.low, self.high)
        if self.sd <= 0.0:
            raise ScenarioError(f"Normal: sd = {self.sd!r} is not above zero; a fixed value belongs in the base")

    def _quantiles(self, q: Any) -> Any:
        below, above = (NORMAL.cdf((end - self.mean) / self.sd) for end in (self.low, self.high))
        return self.mean + self.sd * normal_quantile(below + (above - below) * q)


@dataclass(frozen=True, slots=True)
class LogNormal(_InUnits):
    """Lognormal with a share ``mass`` of its probability between ``low`` and ``high``, equal shares on either side.

    The median is ``sqrt(low * high)``. Sources print two quantiles more often than a mean and a sigma.

    >>> round(float(LogNormal(1.0, 4.0).ppf(0.5)), 9), round(float(LogNormal(1.0, 4.0).ppf(0.95)), 9)
    (2.0, 4.0)
    """

    low: float
    high: float
    mass: float = CENTRAL_MASS

    def _check(self) -> None:
        _InUnits._check(self)
        if self.low <= 0.0:
            raise ScenarioError(f"LogNormal: low = {self.low!r} is not above zero; use Normal")
        if not 0.0 < self.mass < 1.0:
            raise ScenarioError(
                f"LogNormal: mass = {self.mass!r} is outside (0, 1); give the share between low and high"
            )

    @property
    def sigma(self) -> float:
        """Standard deviation of the logarithm."""
        return math.log(self.high / self.low) / (2.0 * NORMAL.inv_cdf(0.5 + 0.5 * self.mass))

    def _quantiles(self, q: Any) -> Any:
        return math.sqrt(self.low) * math.sqrt(self.high) * exp(self.sigma * normal_quantile(q))


@dataclass(frozen=True, slots=True)
class Triangular(_InUnits):
    """Triangular distribution with its mode between ``low`` and ``high``.

    >>> float(Triangular(0.0, 0.5, 1.0).ppf(0.5))
    0.5
    """

    low: float
    mode: float
    high: float

    def _check(self) -> None:
        _InUnits._check(self)
        if not self.low <= self.mode <= self.high:
            raise ScenarioError(f"Triangular: mode = {self.mode!r} is outside [{self.low!r}, {self.high!r}]")

    def _quantiles(self, q: Any) -> Any:
        width, rise = self.high - self.low, self.mode - self.low
        left = self.low + sqrt(q * width * rise)
        right = self.high - sqrt((1.0 - q) * width * (width - rise))
        return where(q * width < rise, left, right)


@dataclass(frozen=True, slots=True)
class Quantiles(_InUnits):
    """Distribution with linear interpolation between quantiles; the shares run from 0 to 1.

    >>> float(Quantiles((0.0, 0.5, 1.0), (1.99, 3.25, 12.29)).ppf(0.5))
    3.25
    """

    shares: tuple[float, ...]
    values: tuple[float, ...]

    def _check(self) -> None:
        for name in ("shares", "values"):
            object.__setattr__(self, name, as_list(f"Quantiles: {name}", getattr(self, name)))
        if len(self.shares) != len(self.values) or len(self.shares) < 2:
            raise ScenarioError(
                f"Quantiles: {len(self.shares)} shares and {len(self.values)} values; give two or more pairs"
            )
        _finite("Quantiles", **{f"shares[{i}]": value for i, value in enumerate(self.shares)})
        _finite("Quantiles", **{f"values[{i}]": value for i, value in enumerate(self.values)})
        rising = all(a < b for a, b in zip(self.shares, self.shares[1:], strict=False))
        if self.shares[0] != 0.0 or self.shares[-1] != 1.0 or not rising:
            raise ScenarioError(f"Quantiles: shares {self.shares} do not rise from 0 to 1; add the lowest and highest")
        if any(a > b for a, b in zip(self.values, self.values[1:], strict=False)):
            raise ScenarioError(f"Quantiles: values {self.values} fall somewhere; sort them with their shares")

    def _quantiles(self, q: Any) -> Any:
        return need("numpy").interp(q, self.shares, self.values)


def from_samples(values: Sequence[float]) -> Quantiles:
    """Return the empirical distribution: linear interpolation between the sorted ``values``.

    Between the observations the quantile is that of NumPy's and polars' ``linear`` rule.

    >>> float(from_samples([3.0, 1.0, 2.0]).ppf(0.5))
    2.0
    """
    values = as_list("from_samples: values", values)
    _finite("from_samples", **{f"values[{i}]": value for i, value in enumerate(values)})
    seen = sorted(float(value) for value in values)
    if len(seen) < 2:
        raise ScenarioError(f"from_samples: {len(seen)} values; give two or more, or put a fixed value in the base")
    return Quantiles(tuple(i / (len(seen) - 1) for i in range(len(seen))), tuple(seen))


FURTHEST = 2.0**-31
"""Distance of the outermost points from 0 and 1: half the last bit of a Sobol point."""


def check(distributions: Mapping[str, Any]) -> dict[str, Distribution]:
    """Return ``distributions`` if every name is a numeric quantity and every value has a quantile function.

    Raises
    ------
    UnknownQuantity, ScenarioError
    """
    if not isinstance(distributions, Mapping):
        raise ScenarioError(f"distributions are {type(distributions).__name__}; give a mapping by quantity")
    checked: dict[str, Distribution] = {}
    for name, distribution in mapping("distributions", distributions).items():
        row = quantity(name)
        if row.is_text:
            raise ScenarioError(f"{name} is a word, not a number; compare its alternatives instead")
        if not is_distribution(distribution):
            raise ScenarioError(
                f"{name} = {short_repr(distribution)} is no distribution; give one such as Uniform(0.35, 0.45), "
                f"or put a fixed value in the base"
            )
        checked[name] = parsed = in_units_of(row, distribution)
        for share in (FURTHEST, 1.0 - FURTHEST):
            end = float(parsed.ppf(share))
            if not row.holds(end):
                raise ScenarioError(
                    f"{name}: the distribution reaches {end:g}, outside {row.bounds}; "
                    f"use a narrower one, or cut a Normal off with low and high"
                )
    if not checked:
        raise ScenarioError("distributions are empty; give at least one, e.g. {'mfu': Uniform(0.35, 0.45)}")
    return checked
