"""Find how many softwares are of which kind: the shares in :mod:`factorykit.model.performance.nearness`.

Twelve rows of each family, drawn eight times, with constants that never saw it, say how likely each kind is; shares
follow by expectation maximization, of all families and of either half. Needs NumPy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from factorykit import datasets
from factorykit.model.performance.calibrate import Measured
from factorykit.model.performance.calibration import loose, missed_by
from factorykit.model.performance.nearness import KINDS, MOVED, NEAR, NOISE, alike, beliefs_of, places, slope
from factorykit.model.supply.fitted import constants

LEAST_ROWS, ROWS, DRAWS, ROUNDS = 20, 12, 8, 80
ALIKE = dict.fromkeys(KINDS, 1.0 / len(KINDS))
Evidence = Sequence[np.ndarray]


def main() -> None:
    measured = Measured(datasets.table("training_runs").collect(), laid_out=False)
    families = sorted(set(measured.frame["family"]))
    said = {name: found for name in families if (found := evidence(measured, name))}
    for who, names in (("all", list(said)), ("one half", list(said)[::2]), ("other half", list(said)[1::2])):
        print(who, shares([said[name] for name in names]))


def evidence(measured: Measured, family: str) -> Evidence:
    """Return the logarithm of how likely draws of a family's rows are under each kind of software."""
    rows = measured.frame.filter(family=family)["row"].unique(maintain_order=True).to_list()
    if len(rows) < LEAST_ROWS:
        return []
    mine, start, (names, spread) = measured.only(rows), constants(family), loose()
    at = mine.chosen(dict(start))
    missed = missed_by(mine, start, names, at)
    now = missed(np.zeros(len(names)))
    slopes = slope(missed, np.zeros(len(names)), now, spread) * spread
    where, doubt = places(mine.frame[at.tolist()]), 1.0 + mine.arrays["assumed_inputs"][at]
    draw, found = np.random.default_rng(0), []
    for _ in range(DRAWS):
        some = draw.permutation(len(at))[:ROWS]
        near = alike(where[some], where[some])
        copies = (where[some][:, None] == where[some]).all(axis=2).sum(axis=1)
        beliefs = beliefs_of(ALIKE, slopes[some] @ slopes[some].T, near, copies * doubt[some], now[some])
        found.append(np.array([one.evidence for one in beliefs]))
    return found


def shares(families: Sequence[Evidence]) -> Mapping[str, Mapping[float, float]]:
    """Return the share of each kind, by each of the three things that it differs in."""
    often = np.array(list(ALIKE.values()))
    for _ in range(ROUNDS):
        told = np.full(len(often), 0.5 / len(often))
        for draws in families:
            likely = np.array([often * np.exp(one - one.max()) for one in draws])
            told += (likely / likely.sum(axis=1, keepdims=True)).mean(axis=0)
        often = told / told.sum()
    return {
        name: {
            value: round(float(sum(share for share, kind in zip(often, KINDS, strict=True) if kind[at] == value)), 2)
            for value in values
        }
        for at, (name, values) in enumerate({"moved": MOVED, "near": NEAR, "noise": NOISE}.items())
    }


if __name__ == "__main__":
    main()
