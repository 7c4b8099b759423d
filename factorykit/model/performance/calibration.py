"""Calibration of the step-time and memory models on a few measured layouts."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import fields as dataclass_fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from factorykit.core import text_io
from factorykit.core.atomic_io import write_file
from factorykit.core.errors import FactorykitError, ScenarioError
from factorykit.core.extras import need
from factorykit.core.validation import (
    as_list,
    file_path,
    finite_number,
    float_columns,
    frame,
    integer,
    is_frame,
    mapping,
    one_of,
    string,
    strings,
)
from factorykit.core.vocabulary import neutral_values, quantity
from factorykit.data.tables import table
from factorykit.engine.evaluate import evaluate
from factorykit.engine.providers import frameworks
from factorykit.engine.providers.accelerators import chips
from factorykit.engine.providers.constants import EVERYTHING, constants
from factorykit.model.performance import memory_calibration
from factorykit.model.performance.fit_constants import Measured, priors
from factorykit.model.performance.layout_features import LAYOUT_FEATURES, LOCAL_CORRECTION, features
from factorykit.model.performance.measured_steps import GIB, positive, tidied
from factorykit.model.performance.run_cells import family
from factorykit.model.performance.run_software import software_of
from factorykit.model.performance.software import published_runs, shared_residual
from factorykit.model.scenario.scenario import Scenario

if TYPE_CHECKING:
    import numpy as np
UNFITTED_PRIOR_SD: Final = {"scale_up_share": 0.3, "scale_out_share": 0.5, "scale_up_latency_s": 0.7}
"""Prior standard deviation of the logarithm of constants that are published, not fitted, but differ between
frameworks and networks."""
SOFTWARE_SD: Final = 0.3
"""Standard deviation of the logarithm of a constant between one software and all: eager code launches three times as
long as fused code, and rates of matrix products differ by a third."""
FIXED_CONSTANTS: Final = (
    "misaligned_factor",
    "score_bytes",
    "software_gain_per_year",
    "young_attention_share",
    "young_gemm_share",
)
"""Constants of older software, which measurements of current software do not inform."""
MAX_ERROR_FACTOR: Final = 8.0
"""Ratio of measured and predicted time beyond which units or counts of a row are wrong."""
MAX_DISAGREEMENT: Final = 0.2
"""Relative difference by which step time and throughput of one row may disagree."""
FAMILIES_WITH_OWN: Final = 2.0
"""Divisor of the variance of new software once one family of runs, the given rows, has used it."""
MAX_SD_RATIO_REPORTED: Final = 0.85
"""Posterior over prior standard deviation above which a constant counts as not informed."""
MIN_CHANGE_REPORTED: Final = 0.01
"""Change of the logarithm of a constant below which it counts as unchanged."""
MAX_DESIGN_LAYOUTS: Final = 800
"""Candidates of an experimental design; of more, an even subset is taken."""


@dataclass(frozen=True)
class Calibration(Mapping[str, float]):
    """Performance model calibrated on measured layouts.

    A mapping of model constants to numbers, so that any scenario takes it: ``{**scenario, **calibration}``. Layouts
    similar to a measured one also share its residual: :meth:`apply` adds both to a scenario, and ``search``, ``plan``
    and ``validate`` take a calibration as ``calibration=``.

    Attributes
    ----------
    constants
        Constants by quantity: those that the rows moved, and those that set the width of the interval.
    summary
        One sentence for each constant that differs from published runs, best-informed first.
    excluded
        Reason by id or number of each row that was not used.
    rows
        Number of rows used.
    layouts
        Features, weight and noise ratio of each layout used, the state of the Gaussian process.
    software, generation
        Software and generation of chips whose published runs are the prior of the layouts' residual.
    without
        Families of published runs that are not part of that prior: those of the measured rows.
    """

    constants: Mapping[str, float]
    summary: tuple[str, ...] = ()
    excluded: Mapping[str, str] = field(default_factory=dict)
    rows: int = 0
    layouts: tuple[tuple[float, ...], ...] = ()
    software: str = ""
    generation: str = ""
    without: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Validate the fields.

        Raises
        ------
        UnknownQuantity, ScenarioError
            If a constant is unknown or out of bounds, or a layout has the wrong length or a number that is not finite.
        """
        given = mapping("constants", self.constants).items()
        length = len(LAYOUT_FEATURES) + 2
        layouts = tuple(
            tuple(finite_number("a number of a layout", part) for part in as_list("a layout", layout))
            for layout in as_list("layouts", self.layouts)
        )
        if any(len(layout) != length for layout in layouts):
            raise ScenarioError(f"layouts of a calibration must have {length} numbers each; use Calibration.save")
        validated = {
            "constants": {quantity(name).name: finite_number(name, quantity(name).check(v)) for name, v in given},
            "summary": strings("summary", self.summary),
            "excluded": dict(mapping("excluded", self.excluded)),
            "rows": integer("rows", self.rows),
            "layouts": layouts,
            "software": string("software", self.software),
            "generation": string("generation", self.generation),
            "without": strings("without", self.without),
        }
        for name, value in validated.items():
            object.__setattr__(self, name, value)

    def __getitem__(self, name: str) -> float:
        """Return one constant."""
        return self.constants[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the constants."""
        return iter(self.constants)

    def __len__(self) -> int:
        """Return the number of constants."""
        return len(self.constants)

    def save(self, path: str | Path) -> Path:
        """Write the calibration as JSON and return the path."""
        fields = {"constants": dict(self.constants), "summary": list(self.summary), "excluded": dict(self.excluded)}
        fields |= {"rows": self.rows, "layouts": [list(layout) for layout in self.layouts]}
        fields |= {"software": self.software, "generation": self.generation, "without": list(self.without)}
        file = file_path("path", path)
        try:
            write_file(file, json.dumps(fields, indent=1) + "\n")
        except OSError as error:
            raise ScenarioError(f"{file} cannot be written ({error.strerror}); name another file") from None
        return file

    @classmethod
    def load(cls, path: str | Path) -> Calibration:
        """Read a calibration that :meth:`save` wrote.

        Raises
        ------
        ScenarioError
            If the file is not a calibration.
        """
        content, file = text_io.read_bytes(path, error=ScenarioError), file_path("path", path)
        try:
            fields = text_io.parse_json(content)
            return cls(**{part.name: fields[part.name] for part in dataclass_fields(cls)})
        except KeyError as error:
            raise ScenarioError(f"{file} is not a calibration: {error} is missing; use Calibration.save") from None
        except (ValueError, TypeError, FactorykitError) as error:
            raise ScenarioError(f"{file} is not a calibration: {error}; use Calibration.save") from None

    def apply(self, scenario: Any, *, assume: bool = False) -> Any:
        """Return a scenario with the calibrated constants and the correction of measured layouts nearby.

        Parameters
        ----------
        scenario
            A mapping of quantities (a dict or a Scenario) or a polars DataFrame with a layout in each row, as
            :func:`factorykit.evaluate` takes them.
        assume
            Whether missing inputs are filled with sourced defaults, as in :func:`factorykit.evaluate`.

        Returns
        -------
        dict, Scenario or DataFrame
            The same kind, with the constants, ``step_pace`` and ``unexplained_variance``.

        Examples
        --------
        >>> import factorykit as fk
        >>> runs = fk.table("training_runs").filter(group="nanotron-ultrascale-8b").head(5).collect()
        >>> run = {**fk.architecture("llama3_8b"), "accelerator": "h100_sxm", "accelerators": 8, "tensor_parallel": 8}
        >>> run |= {"global_batch_size": 256, "micro_batch_size": 4, "sequence_length": 4096}
        >>> calibrated = fk.calibrate(runs).apply(run)
        >>> fk.evaluate(calibrated, "step_s")["step_s"] > fk.evaluate(run, "step_s")["step_s"]
        True
        """
        if is_frame(scenario):
            rows = frame("scenario", scenario).with_columns(**{name: pl.lit(value) for name, value in self.items()})
            return rows.hstack(self.local_correction(evaluate(rows, LAYOUT_FEATURES, assume=assume)))
        given = mapping("scenario", scenario)
        layout = pl.DataFrame([evaluate({**given, **self}, LAYOUT_FEATURES, assume=assume)])
        values = {**self, **self.local_correction(layout).row(0, named=True)}
        if type(scenario) is not Scenario:
            return {**given, **values}
        sources = {**scenario.sources, **dict.fromkeys(values, f"calibrated on {self.rows} measured rows")}
        return Scenario.sourced(scenario.label, {**given, **values}, sources)

    def local_correction(self, layouts: pl.DataFrame) -> pl.DataFrame:
        """Return the residual that layouts share with published runs of their software and measured layouts nearby.

        Parameters
        ----------
        layouts
            Quantities of a layout in each row: degrees, batch, shape, recomputation and peak rate; and its
            ``software`` and ``generation``, where they differ from those of the calibration.

        Returns
        -------
        polars.DataFrame
            ``step_pace``: factor on the step time that follows from the constants; ``unexplained_variance``: posterior
            over prior variance of its logarithm.
        """
        np = need("numpy")
        from factorykit.model.performance.gaussian_process import posterior

        layouts = float_columns(frame("layouts", layouts, LAYOUT_FEATURES), LAYOUT_FEATURES)
        prior = shared_residual(layouts, self.software, self.generation, self.without)
        if not self.layouts:
            return prior
        state = np.array(self.layouts)
        mean, variance = posterior(features(layouts), state[:, :-2], state[:, -2], state[:, -1])
        return prior.select(pl.col(LOCAL_CORRECTION[0]) * np.exp(mean), pl.col(LOCAL_CORRECTION[1]) * variance)

    @staticmethod
    def design(layouts: pl.DataFrame, k: int = 5) -> pl.DataFrame:
        """Return the layouts to measure for a calibration: a greedy experimental design.

        Parameters
        ----------
        layouts
            Candidates as rows of the ``training_runs`` table; measured columns may be missing.
        k
            Number of layouts.

        Returns
        -------
        polars.DataFrame
            ``k`` rows of ``layouts``, most informative first: each minimises the total posterior variance of all
            candidates, given those before it.
        """
        np = need("numpy")
        from factorykit.model.performance.gaussian_process import design_points, jacobian

        rows, count = tidied(layouts), integer("k", k)
        measured = Measured(rows.with_columns(pl.lit(1.0).alias("step_time_s")), laid_out=False)
        if measured.frame.is_empty():
            raise ScenarioError("none of the layouts can be predicted; fk.validate(layouts) lists the reasons")
        start, (names, prior_sd) = constants(), calibrated_constants()
        at = measured.chosen(dict(start))
        at = at[:: math.ceil(len(at) / MAX_DESIGN_LAYOUTS)]
        residuals, unmoved = log_residuals(measured, start, names, at), np.zeros(len(names))
        slopes = jacobian(residuals, unmoved, residuals(unmoved), prior_sd)
        picked = design_points(slopes, prior_sd, features(measured.frame[at.tolist()]), count)
        return rows[measured.frame["row"].gather(at[picked]).to_list()]


def calibrate(rows: Any, *, left_out: str = EVERYTHING) -> Calibration:
    """Calibrate the performance model on a few measured layouts.

    Parameters
    ----------
    rows
        A polars frame with columns of the ``training_runs`` table, as many of them as are known, with ``step_time_s``
        or ``tokens_per_s_per_gpu``. Five different layouts are more informative than fifty similar ones.
    left_out
        Family of published runs to start without, for validation; by default all are in.

    Returns
    -------
    Calibration
        Calibrated constants, usable as part of any scenario. Outliers count little, copies of a layout count once, and
        rows that cannot be used are listed in ``excluded`` with the reason.

    Raises
    ------
    ScenarioError, UnknownName
        If no row can be used; the message has the reasons. If there is no such family.

    Examples
    --------
    >>> import factorykit as fk
    >>> runs = fk.table("training_runs").filter(group="nanotron-ultrascale-8b").head(5).collect()
    >>> fk.calibrate(runs).rows
    5
    """
    need("numpy")

    frame = tidied(rows)
    measured = Measured(frame, laid_out=False)
    groups = table("training_runs").select(pl.col("group").unique()).collect()["group"].drop_nulls()
    start = constants(one_of("family of runs", left_out, [EVERYTHING, *sorted(set(map(family, groups)))]))
    excluded, without_step = _excluded(frame, measured, start)
    timed = [row for row in range(frame.height) if row not in excluded]
    memory = _memory(frame, measured, [*timed, *without_step], start)
    names = [str(name) for name in (frame["id"] if "id" in frame.columns else range(frame.height))]
    reasons = {names[row]: reason for row, reason in sorted(excluded.items()) if row not in memory.rows}
    if timed:
        return _step_calibration(measured.only(timed), memory, start, reasons)
    if memory.rows:
        summary = _summary(memory.constants, memory.sd_ratio, start)
        return Calibration(memory.constants, summary, reasons, len(memory.rows))
    raise ScenarioError(
        "no row can be used: " + "; ".join(f"{name}: {reason}" for name, reason in list(reasons.items())[:3])
    )


def _step_calibration(
    measured: Measured, memory: memory_calibration.Fit, start: Mapping[str, float], excluded: Mapping[str, str]
) -> Calibration:
    """Return the calibration on rows with a step time."""
    import numpy as np

    from factorykit.model.performance import gaussian_process as gp

    names, prior_sd = calibrated_constants()
    at = measured.chosen(dict(start))
    chosen = measured.frame[at.tolist()]
    where, without = features(chosen), tuple(chosen["family"].unique().sort())
    software, generation = chosen.select(pl.col("software", "generation").mode().sort().first()).row(0)
    prior = shared_residual(chosen, software, generation, without)
    copies = (where[:, None, :] == where[None, :, :]).all(axis=2).sum(axis=1)
    bounds = [quantity(name) for name in names]
    with np.errstate(divide="ignore"):
        lower, upper = np.log([[row.lower / start[row.name], row.upper / start[row.name]] for row in bounds]).T
    noise_ratio = copies * (1.0 + measured.arrays["assumed_inputs"][at])
    residuals = log_residuals(measured, start, names, at, prior["step_pace"])
    fitted = gp.fit(residuals, prior_sd, where, noise_ratio, (lower, upper))
    shifted = {name: start[name] * math.exp(shift) for name, shift in zip(names, fitted.shift, strict=True)}
    values = {**shifted, **memory.constants}
    spreads = {name: value for name, value in start.items() if name.startswith("spread_")}
    spreads["spread_new_software"] /= math.sqrt(FAMILIES_WITH_OWN)
    steps = measured.results({**start, **values, **spreads}, "step_s", "step_spread", at=at)
    spread = steps["step_spread"] * prior["unexplained_variance"].to_numpy() ** 0.5
    scale = gp.calibrated_scale(fitted, where, spread, 1.0 / copies)
    spreads = {name: scale * value for name, value in {**spreads, "spread_alone": fitted.noise_sd}.items()}
    corrected = steps["step_s"] * np.exp(gp.posterior(where, where, fitted.alpha, fitted.noise_ratio)[0])
    ratios = np.quantile(corrected / measured.results(dict(start), "step_s", at=at)["step_s"], (0.5, 0.0, 1.0))
    sd_ratio = dict(zip(names, fitted.sd_ratio, strict=True)) | dict(memory.sd_ratio)
    return Calibration(
        {**values, **spreads},
        (
            "steps take {:.2f} times as long as published runs suggest ({:.2f} to {:.2f})".format(*ratios),
            *_summary(values, sd_ratio, start),
        ),
        excluded,
        len(measured.frame["row"].unique()),
        tuple(map(tuple, np.column_stack([where, fitted.alpha, fitted.noise_ratio]).tolist())),
        software,
        generation,
        without,
    )


def log_residuals(
    measured: Measured, start: Mapping[str, float], names: Sequence[str], at: np.ndarray, pace: Any = 1.0
) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function from shifts of the constants to logarithms of measured over predicted step times."""
    import numpy as np

    logged = np.log(measured.frame["measured_s"].to_numpy()[at] / np.asarray(pace))

    def residuals(shift: np.ndarray) -> np.ndarray:
        values = {name: start[name] * math.exp(move) for name, move in zip(names, shift, strict=True)}
        return logged - np.log(measured.results({**start, **values}, "step_s", at=at)["step_s"])

    return residuals


def calibrated_constants() -> tuple[list[str], np.ndarray]:
    """Return the constants that a calibration may shift, and the prior standard deviation of each shift."""
    import numpy as np

    fitted = {name: spread for name, (_, spread) in priors().items() if name not in FIXED_CONSTANTS}
    prior_sd = {name: math.hypot(spread, SOFTWARE_SD) for name, spread in (fitted | UNFITTED_PRIOR_SD).items()}
    return list(prior_sd), np.array(list(prior_sd.values()))


def framework_named(framework: str) -> str:
    """Return the key of a training framework by its key or a name that the ``frameworks`` table lists."""
    return one_of("framework", frameworks.find(string("framework", framework)) or framework, frameworks.frameworks())


def calibrated_on_software(framework: str, accelerator: str) -> Calibration:
    """Return the calibration of a training framework on a chip.

    Parameters
    ----------
    framework
        Key of the ``frameworks`` table, or a name that it lists.
    accelerator
        Key of the chip.

    Raises
    ------
    UnknownName
        If the framework is unknown.

    Examples
    --------
    >>> calibrated_on_software("Megatron-Bridge", "h100_sxm").rows > 50
    True
    """
    name = framework_named(framework)
    software, generation = software_of(name, accelerator)
    chip, runs = chips()[accelerator], published_runs(software)
    values = frameworks.features(name, constants()["software_year"], chip["vendor"], chip["scale_up_domain"] or 8.0)
    return Calibration(values, rows=runs.height, software=software, generation=generation)


def _excluded(
    rows: pl.DataFrame, measured: Measured, start: Mapping[str, float]
) -> tuple[dict[int, str], dict[int, str]]:
    """Return the reasons of rows whose step time cannot be used, and of those the rows that state none."""
    unpredictable = dict(measured.reasons.select("row", "reason").iter_rows())
    contradictory = _contradictory(rows)
    predicted = set(measured.prepared["row"]) if measured.prepared.height else set()
    timed = set(measured.frame["row"]) if measured.frame.height else set()
    without_step = {row: _no_step(rows, row) for row in predicted - timed - set(contradictory)}
    return {**without_step, **_implausible(measured, start), **unpredictable, **contradictory}, without_step


def _contradictory(rows: pl.DataFrame) -> dict[int, str]:
    """Return the rows whose step time and throughput contradict each other."""
    names = ("step_time_s", "tokens_per_s_per_gpu", "accelerator_count", "global_batch_tokens", "global_batch")
    parts = rows.select(*[positive(rows, name).alias(name) for name in (*names, "seq_len")])
    batch = pl.coalesce("global_batch_tokens", pl.col("global_batch") * pl.col("seq_len"))
    ratio = pl.col("step_time_s") * pl.col("tokens_per_s_per_gpu") * pl.col("accelerator_count") / batch
    wrong = parts.with_row_index("row").with_columns(batch=batch).filter((ratio - 1.0).abs() > MAX_DISAGREEMENT)
    return {
        row: f"step_time_s {step:g} and tokens_per_s_per_gpu {rate:g} contradict each other for {tokens:g} tokens"
        for row, step, rate, tokens in wrong.select("row", *names[:2], "batch").iter_rows()
    }


def _implausible(measured: Measured, start: Mapping[str, float]) -> dict[int, str]:
    """Return the rows whose measured time is too far from the prediction to be a miss of the model."""
    if measured.frame.is_empty():
        return {}
    at = measured.chosen(dict(start))
    ratios = measured.frame["measured_s"].to_numpy()[at] / measured.results(dict(start), "step_s", at=at)["step_s"]
    return {
        row: f"measured is {ratio:.3g} times the prediction; check units and counts"
        for row, ratio in zip(measured.frame["row"].gather(at), ratios, strict=True)
        if not 1.0 / MAX_ERROR_FACTOR < ratio < MAX_ERROR_FACTOR
    }


def _no_step(rows: pl.DataFrame, row: int) -> str:
    """Return the reason of a row without a step time, with utilizations that are probably percentages."""
    shares = rows.select(positive(rows, name).alias(name) for name in ("mfu", "hfu")).row(row, named=True)
    above = {name: value for name, value in shares.items() if (value or 0.0) > 1.0}
    hints = [f"; {name} = {value:g} is above 1, did you mean {value / 100.0:g}?" for name, value in above.items()]
    return "no step time or throughput is given" + "".join(hints)


def _memory(
    rows: pl.DataFrame, measured: Measured, used: Sequence[int], start: Mapping[str, float]
) -> memory_calibration.Fit:
    """Return the constants of memory that measured memories of the rows imply."""
    if measured.prepared.is_empty():
        return memory_calibration.Fit()
    usable = measured.prepared.filter(pl.col("row").is_in(list(used)))
    memory = rows.with_columns(memory_bytes=positive(rows, "mem_gib_per_gpu") * GIB)["memory_bytes"]
    return memory_calibration.fit(usable, memory, start)


def _summary(values: Mapping[str, float], sd_ratio: Mapping[str, float], start: Mapping[str, float]) -> tuple[str, ...]:
    """Return a sentence for each constant that the rows inform and change, best-informed first."""
    usual = {**neutral_values(), **start}
    changed = sorted(
        (ratio, name)
        for name, ratio in sd_ratio.items()
        if ratio < MAX_SD_RATIO_REPORTED and abs(math.log(values[name] / usual[name])) > MIN_CHANGE_REPORTED
    )
    rows = [quantity(name) for _, name in changed]
    return tuple(
        f"{row.label} ({row.name}): {values[row.name]:.3g} {row.unit.removeprefix('1')}".rstrip()
        + f", usually {usual[row.name]:.3g}"
        for row in rows
    )
