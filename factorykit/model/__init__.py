"""The model: formulas joined into a graph, evaluated on numbers and frames, explained, and filled from presets."""
