"""Vocabulary, units, validation, errors and file access."""

__version__ = "0.2.0"
