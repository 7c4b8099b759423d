"""Performance model of a training step: layouts, search, calibration, and models read from configuration files."""
