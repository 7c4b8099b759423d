"""The model against the world: measured runs, measured energies, published claims and their recipes."""
