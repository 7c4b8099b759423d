"""Scenarios, presets, model architectures and accelerators, and comparisons of scenarios."""
