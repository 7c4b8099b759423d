"""factorykit: what an AI factory really takes. Compute, power, failures, checkpoints and money, each number with its source.

``import factorykit as fk`` loads the vocabulary and nothing else; polars, DuckDB, charts and widgets load on use.
"""

from __future__ import annotations
