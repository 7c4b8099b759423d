"""A handful of measured layouts makes the model yours: constants moved from where all published runs left them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from factorykit import files
from factorykit.borders import file_path, frame, is_frame, mapping, number, numbers, several, text, texts, whole
from factorykit.errors import FactorykitError, ScenarioError
from factorykit.model.engine.evaluate import evaluate
from factorykit.model.performance import memories
from factorykit.model.performance.nearness import (
    PACED,
    PLACED,
    PLACES,
    drawn,
    most_telling,
    places,
    slope,
    update,
    widened,
)
from factorykit.model.scenario.scenario import Scenario
from factorykit.model.supply.fitted import EVERYTHING, constants
from factorykit.places import write_whole
from factorykit.quantities import neutral, quantity

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    from factorykit.model.performance.calibrate import Measured

SHARES: Final = {"scale_up_share": 0.3, "scale_out_share": 0.5, "scale_up_latency_s": 0.7}
"""Constants that published runs leave alone and a framework or network of its own moves, with how far it may."""
FURTHER: Final = 0.3
"""Standard deviation of the logarithm by which a constant of one software differs from that of all: eager code launches
three times as much as fused code, and rates of matrix products lie a third apart."""
FIRM: Final = (
    "misaligned_factor",
    "score_bytes",
    "software_gain_per_year",
    "young_attention_share",
    "young_gemm_share",
)
"""Constants about software of other times, which measurements of today cannot move."""
IMPOSSIBLE: Final = 8.0
"""Measured over predicted, or the other way round, beyond which units or counts are wrong and not the model."""
UNSAID: Final = "no step time or throughput is stated"
"""Why a row without a measured step is refused."""
DISAGREE: Final = 0.2
"""Share by which a step time and a throughput of one row may differ."""
ONE_MORE: Final = 2.0
"""Families with a software that nobody else ran, one's own rows among them, over none: its variance falls so."""
INFORMED: Final = 0.85
"""Share of its spread that a constant may keep and still count as learned."""
AS_USUAL: Final = 0.01
"""Share by which a constant may differ and still be as usual."""
MOST: Final = 800
"""Layouts among which the most telling ones are looked for; of more, evenly many are taken."""


@dataclass(frozen=True)
class Calibration(Mapping[str, float]):
    """Constants of the performance model as a handful of measured layouts says they are.

    It is a mapping of quantities to numbers, so that any scenario takes it: ``{**scenario, **calibration}``. What the
    constants cannot say, layouts near a measured one take from it: :meth:`of` gives a scenario both, and ``search``,
    ``plan`` and ``validate`` take them as ``calibration=``.

    Attributes
    ----------
    constants
        Constants by quantity, those that the rows moved and those that widen or narrow the interval.
    learned
        Sentences: what the rows say differs from published runs, most surely known first.
    refused
        Rows that were not used, by number or id, and why.
    rows
        Number of rows used.
    layouts
        Where each row used lies among layouts, how strongly it draws those near it, and the variance of what it misses
        alone over that of what it misses with them.
    """

    constants: Mapping[str, float]
    learned: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    rows: int = 0
    layouts: tuple[tuple[float, ...], ...] = ()

    def __post_init__(self) -> None:
        """Check what a file or a caller says.

        Raises
        ------
        UnknownQuantity, ScenarioError
            If a constant is none or out of bounds, or a layout is not as long as others or not finite.
        """
        said = mapping("constants", self.constants).items()
        constants = {quantity(name).name: number(name, quantity(name).check(value)) for name, value in said}
        layouts = tuple(
            tuple(number("a number of a layout", part) for part in several("a layout", one))
            for one in several("layouts", self.layouts)
        )
        if any(len(one) != PLACES + 2 for one in layouts):
            raise ScenarioError(f"layouts of a calibration have {PLACES + 2} numbers each; write them with save")
        checked = {"constants": constants, "learned": texts("learned", self.learned), "layouts": layouts}
        checked |= {"refused": dict(mapping("refused", self.refused)), "rows": whole("rows", self.rows)}
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def __getitem__(self, name: str) -> float:
        """Return one constant."""
        if not isinstance(name, str):
            raise KeyError(name)
        return self.constants[name]

    def __iter__(self) -> Iterator[str]:
        """Go over the names of the constants."""
        return iter(self.constants)

    def __len__(self) -> int:
        """Return the number of constants."""
        return len(self.constants)

    def save(self, path: str | Path) -> Path:
        """Write the calibration as JSON and return where it is."""
        told = {"constants": dict(self.constants), "learned": list(self.learned), "refused": dict(self.refused)}
        told |= {"rows": self.rows, "layouts": [list(layout) for layout in self.layouts]}
        file = file_path("path", path)
        try:
            write_whole(file, json.dumps(told, indent=1) + "\n")
        except OSError as error:
            raise ScenarioError(f"{file} cannot be written ({error.strerror}); name another file") from None
        return file

    @classmethod
    def load(cls, path: str | Path) -> Calibration:
        """Return a calibration that :meth:`save` wrote.

        Raises
        ------
        ScenarioError
            If the file holds none.
        """
        content, file = files.content(path, error=ScenarioError), file_path("path", path)
        try:
            told = files.fields(content)
            return cls(**{name: told[name] for name in ("constants", "learned", "refused", "rows", "layouts")})
        except KeyError as error:
            raise ScenarioError(f"{file} holds no calibration: no {error}; write one with Calibration.save") from None
        except (ValueError, TypeError, FactorykitError) as error:
            raise ScenarioError(f"{file} holds no calibration: {error}; write one with Calibration.save") from None

    def of(self, scenario: Any, *, assume: bool = False) -> Any:
        """Return a scenario as the measured layouts say it is: with the constants, and their pace where they are near.

        Parameters
        ----------
        scenario
            A mapping of quantities (a dict or a Scenario) or a polars DataFrame with a layout in each row, as
            :func:`factorykit.evaluate` takes them.
        assume
            Whether sourced defaults fill what nobody gave, as in :func:`factorykit.evaluate`.

        Returns
        -------
        dict, Scenario or DataFrame
            The same kind, with the constants, ``step_pace`` and ``spread_unsaid``.

        Examples
        --------
        >>> import factorykit as fk
        >>> runs = fk.table("training_runs").filter(group="nanotron-ultrascale-8b").head(5).collect()
        >>> run = {**fk.architecture("llama3_8b"), "accelerator": "h100_sxm", "accelerators": 8, "tensor_parallel": 8}
        >>> run |= {"global_batch_size": 256, "micro_batch_size": 4, "sequence_length": 4096}
        >>> mine = fk.calibrate(runs).of(run)
        >>> fk.evaluate(mine, "step_s")["step_s"] > fk.evaluate(run, "step_s")["step_s"]
        True
        """
        import polars as pl

        if is_frame(scenario):
            told = frame("scenario", scenario).with_columns(**{name: pl.lit(value) for name, value in self.items()})
            return told.hstack(self.near(evaluate(told, PLACED, assume=assume)))
        given = mapping("scenario", scenario)
        placed = pl.DataFrame([evaluate({**given, **self}, PLACED, assume=assume)])
        found = {**self, **self.near(placed).row(0, named=True)}
        if type(scenario) is not Scenario:
            return {**given, **found}
        said = {**scenario.sources, **dict.fromkeys(found, f"calibrated on {self.rows} measured rows")}
        return Scenario.sourced(scenario.label, {**given, **found}, said)

    def near(self, layouts: pl.DataFrame) -> pl.DataFrame:
        """Return how far measured layouts draw others, and what they leave unsaid of them.

        Parameters
        ----------
        layouts
            Quantities of a layout in each row: degrees, batch, shape, recomputation and peak rate.

        Returns
        -------
        polars.DataFrame
            ``step_pace``: factor on the step time that the constants give; ``spread_unsaid``: share of the variance of
            its logarithm that is left.
        """
        import numpy as np
        import polars as pl

        layouts = numbers(frame("layouts", layouts, PLACED), PLACED)
        drawn_by, unsaid = np.zeros(layouts.height), np.ones(layouts.height)
        if self.layouts:
            told = np.array(self.layouts)
            drawn_by, unsaid = drawn(places(layouts), told[:, :-2], told[:, -2], told[:, -1])
        return pl.DataFrame(dict(zip(PACED, (np.exp(drawn_by), unsaid), strict=True)))

    @staticmethod
    def design(found: pl.DataFrame, k: int = 5) -> pl.DataFrame:
        """Return the layouts whose measurement would teach most of all that were found, the first one first.

        Parameters
        ----------
        found
            Layouts as rows of the ``training_runs`` table; what was measured may be missing.
        k
            Number of layouts.

        Returns
        -------
        polars.DataFrame
            ``k`` rows of ``found``: with each, what stays uncertain of all the others becomes least.
        """
        import numpy as np
        import polars as pl

        from factorykit.model.evidence.validate import tidied
        from factorykit.model.performance.calibrate import Measured

        layouts, count = tidied(found), whole("k", k)
        measured = Measured(layouts.with_columns(pl.lit(1.0).alias("step_time_s")), laid_out=False)
        if measured.frame.is_empty():
            raise ScenarioError("none of the layouts can be predicted; validate(found) says why")
        start = constants()
        names, spread = loose()
        at = measured.chosen(dict(start))
        at = at[:: math.ceil(len(at) / MOST)]
        missed = missed_by(measured, start, names, at)
        nowhere = np.zeros(len(names))
        slopes = slope(missed, nowhere, missed(nowhere), spread)
        picked = most_telling(slopes, spread, places(measured.frame[at.tolist()]), count)
        return layouts[measured.frame["row"].gather(at[picked]).to_list()]


def calibrate(rows: Any, *, left_out: str = EVERYTHING) -> Calibration:
    """Move the constants of the performance model to where a handful of measured layouts says they are.

    Parameters
    ----------
    rows
        A polars frame with the columns of the ``training_runs`` table, as many of them as there are, with
        ``step_time_s`` or ``tokens_per_s_per_gpu``. Five layouts that differ teach more than fifty alike.
    left_out
        A family of published runs that the constants to start from have not seen; none by default.

    Returns
    -------
    Calibration
        A mapping of constants that any scenario takes, and what it learned. Misses count robustly, copies of a layout
        as one; a row that nothing can explain is refused by name.

    Raises
    ------
    ScenarioError
        If no row can be used; the message says why.

    Examples
    --------
    >>> import factorykit as fk
    >>> runs = fk.table("training_runs").filter(group="nanotron-ultrascale-8b").head(5).collect()
    >>> found = fk.calibrate(runs)
    >>> found.rows
    5
    """
    import numpy as np
    import polars as pl

    from factorykit.model.evidence.training_runs import GIB, positive
    from factorykit.model.evidence.validate import tidied
    from factorykit.model.performance.calibrate import Measured

    frame = tidied(rows)
    measured = Measured(frame, laid_out=False)
    names = [str(name) for name in (frame["id"] if "id" in frame.columns else range(frame.height))]
    refused = {names[row]: reason for row, reason in measured.reasons.select("row", "reason").iter_rows()}
    start = constants(text("left_out", left_out))
    numbers, spread = loose()
    used = _usable(frame, measured, start, names, refused)
    silent = [row for row, name in enumerate(names) if refused.get(name, "").startswith(UNSAID)]
    sound = (
        measured.prepared.filter(pl.col("row").is_in([*used, *silent]))
        if measured.prepared.height
        else measured.prepared
    )
    held = memories.learned(
        sound, frame.with_columns(printed=positive(frame, "mem_gib_per_gpu") * GIB)["printed"], start
    )
    refused = {name: why for name, why in refused.items() if name not in {names[row] for row in held.rows}}
    usual = {**neutral(), **start}
    if not used and held.rows:
        known = _sentences(held.constants, held.sure, usual)
        return Calibration(held.constants, known, refused, len(held.rows))
    if not used:
        why = "; ".join(f"{name}: {reason}" for name, reason in list(refused.items())[:3])
        raise ScenarioError(f"no row can be used: {why}")
    measured = measured.only(used)
    at = measured.chosen(dict(start))
    where = places(measured.frame[at.tolist()])
    copies = (where[:, None, :] == where[None, :, :]).all(axis=2).sum(axis=1)
    rows_of = [quantity(name) for name in numbers]
    with np.errstate(divide="ignore"):
        lower, upper = np.log([[row.lower / start[row.name], row.upper / start[row.name]] for row in rows_of]).T
    missed = missed_by(measured, start, numbers, at)
    found = update(missed, spread, where, copies * (1.0 + measured.arrays["assumed_inputs"][at]), (lower, upper))
    values = {name: start[name] * math.exp(moved) for name, moved in zip(numbers, found.moved, strict=True)}
    narrowed = {"spread_new_software": start["spread_new_software"] / math.sqrt(ONE_MORE)}
    values |= held.constants
    sentences = _sentences(values, dict(zip(numbers, found.sure, strict=True)) | dict(held.sure), usual)
    layouts = tuple(map(tuple, np.column_stack([where, found.pull, found.doubt]).tolist()))
    now = measured.results({**start, **values, **narrowed}, "step_s", "step_spread", at=at)
    wider = widened(found, where, now["step_spread"], 1.0 / copies)
    narrowed |= {name: wider * narrowed.get(name, start[name]) for name in start if name.startswith("spread_")}
    narrowed |= {"spread_alone": wider * found.alone}
    slower = now["step_s"] * np.exp(drawn(where, where, found.pull, found.doubt)[0])
    slower /= measured.results(dict(start), "step_s", at=at)["step_s"]
    least, middle, most = np.quantile(slower, (0.0, 0.5, 1.0))
    pace = (
        f"steps take {middle:.2f} times what published runs lead one to expect, {least:.2f} to {most:.2f} of the rows"
    )
    return Calibration({**values, **narrowed}, (pace, *sentences), refused, len(used), layouts)


def missed_by(
    measured: Measured, start: Mapping[str, float], names: list[str], at: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function from moves of the constants to logarithms of measured over predicted times."""
    import numpy as np

    logged = np.log(measured.frame["measured_s"].to_numpy()[at])

    def missed(moved: np.ndarray) -> np.ndarray:
        values = {name: start[name] * math.exp(move) for name, move in zip(names, moved, strict=True)}
        return logged - np.log(measured.results({**start, **values}, "step_s", at=at)["step_s"])

    return missed


def loose() -> tuple[list[str], np.ndarray]:
    """Return the constants that one's own measurements may move, and how far."""
    import numpy as np

    from factorykit.model.performance.calibrate import priors

    widths = {name: math.hypot(spread, FURTHER) for name, (_, spread) in priors().items() if name not in FIRM}
    widths |= {name: math.hypot(spread, FURTHER) for name, spread in SHARES.items()}
    return list(widths), np.array(list(widths.values()))


def _usable(
    frame: pl.DataFrame, measured: Any, start: Mapping[str, float], names: list[str], refused: dict[str, str]
) -> list[int]:
    """Return the rows that can inform a constant; say of the others why not."""
    from factorykit.model.evidence.training_runs import positive

    for row, (step, rate, count, tokens, batch, length) in enumerate(
        frame.select(
            *[
                positive(frame, name).alias(name)
                for name in ("step_time_s", "tokens_per_s_per_gpu", "accelerator_count", "global_batch_tokens")
            ],
            positive(frame, "global_batch").alias("global_batch"),
            positive(frame, "seq_len").alias("seq_len"),
        ).iter_rows()
    ):
        whole = tokens or (batch * length if batch and length else None)
        if step and rate and count and whole and abs(step * rate * count / whole - 1.0) > DISAGREE:
            refused[names[row]] = (
                f"step_time_s {step:g} and tokens_per_s_per_gpu {rate:g} contradict each other for {whole:g} tokens"
            )
    if measured.frame.is_empty():
        refused |= {name: _silent(frame, row) for row, name in enumerate(names) if name not in refused}
        return []
    at = measured.chosen(dict(start))
    rows = measured.frame["row"].gather(at).to_list()
    predicted = measured.results(dict(start), "step_s", at=at)["step_s"]
    used = []
    for row, ratio in zip(rows, measured.frame["measured_s"].to_numpy()[at] / predicted, strict=True):
        if names[row] in refused:
            continue
        if not 1.0 / IMPOSSIBLE < ratio < IMPOSSIBLE:
            refused[names[row]] = f"measured is {ratio:.3g} times the prediction; check units and counts"
            continue
        used.append(row)
    for row, name in enumerate(names):
        if row not in rows and name not in refused:
            refused[name] = _silent(frame, row)
    return used


def _silent(frame: pl.DataFrame, row: int) -> str:
    """Return that a row states no time, and which share it may have stated in percent."""
    from factorykit.model.evidence.training_runs import positive

    shares = {name: frame.select(positive(frame, name)).item(row, 0) for name in ("mfu", "hfu")}
    percent = [
        f"; {name} = {value:g} is above 1, {value / 100.0:g} perhaps"
        for name, value in shares.items()
        if (value or 0.0) > 1.0
    ]
    return UNSAID + "".join(percent)


def _sentences(values: Mapping[str, float], sure: Mapping[str, float], usual: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what was learned of constants that are known better now and differ, the most surely known first."""
    told = sorted(
        (share, name)
        for name, share in sure.items()
        if share < INFORMED and abs(math.log(values[name] / usual[name])) > AS_USUAL
    )
    return tuple(_sentence(name, values[name], usual[name]) for _, name in told)


def _sentence(name: str, value: float, usual: float) -> str:
    row = quantity(name)
    return (
        f"{row.label} ({name}): {value:.3g} {row.unit if row.unit != '1' else ''}".rstrip() + f", usually {usual:.3g}"
    )
