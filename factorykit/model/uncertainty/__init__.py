"""Many rows at once: grids, samples of distributions, and sensitivity."""
