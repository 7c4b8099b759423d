"""The engine: questions are read, resolved into one chain of steps, and run; every verb reads that chain."""
