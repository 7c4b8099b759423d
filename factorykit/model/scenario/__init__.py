"""Scenarios: one run or cluster as a row of quantities, published ones by name, and two of them compared."""
