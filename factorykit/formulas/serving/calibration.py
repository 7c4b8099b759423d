"""Constants fitted to the measured serving points (`benchmarks/fit_serving.py`)."""

from __future__ import annotations

EXPERT_LOAD = 0.14
"""Parameters that products of few tokens an expert cost in addition, for each routed parameter."""
ATTENTION_RATE_SHARE = 0.6
"""Share of the 16-bit peak that attention sustains, which engines compute in 16 bits."""
EXPERT_LAYER_S = 4.3e-5
"""Time of a layer with experts that no other has: routing, sorting, two more kernels."""
STEP_TOKEN_S = 2.2e-5
"""Time of a decode step for each token of a rank that neither bytes nor products explain: sampling, scheduling."""
DRAFT_S = 2.4e-3
"""Time of a drafted token outside of its layer."""
ADMITTED_SHARE = 1.25
"""Requests that run at once where the cache is full, over those of stated length that fit; lengths vary below it."""
SCALE_OUT_MESSAGE_S = 5.5e-5
"""Time of one small collective that leaves the scale-up domain, for each domain."""
