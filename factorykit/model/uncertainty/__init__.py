"""Many rows at once: grids, draws from distributions, what drives the spread."""
