"""Inference: measured points, prediction of latency and throughput, and plans for a load."""
