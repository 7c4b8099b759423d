"""The step of a training run: what a layout obeys, every layout searched, constants fitted, models read from files."""
