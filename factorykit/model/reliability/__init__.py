"""Failures counted, lived through and planned for, beyond what one formula says."""
