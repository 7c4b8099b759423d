"""Comparisons of the model with measured runs, measured energies and published claims."""
