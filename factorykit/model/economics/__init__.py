"""Renting, owning and what compute costs over the years."""
