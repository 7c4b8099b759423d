"""Inference of one model replica: memory, prefill, decode, latency, throughput and cost."""

from factorykit.formulas.serving import communication, cost, decode, latency, memory, prefill, throughput

__all__ = ["communication", "cost", "decode", "latency", "memory", "prefill", "throughput"]
