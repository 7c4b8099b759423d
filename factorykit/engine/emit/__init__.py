"""Formulas as Vega and JavaScript."""
