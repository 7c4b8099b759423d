"""Costs of renting and owning compute, and their trend."""
