"""Sources of values that are not given: specifications of accelerators, calibrated constants, defaults."""
