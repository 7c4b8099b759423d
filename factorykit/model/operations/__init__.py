"""Runs and clusters over time: simulated, scheduled, loaded."""
