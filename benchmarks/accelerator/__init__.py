"""What one accelerator reaches: matrix products by shape and precision, memory, launches, power by load.

``python -m benchmarks.accelerator [out.csv]`` needs PyTorch alone. Without it, or without an accelerator, it reports so
and writes nothing. Each row of the output is one measurement with chip, driver and date; rates of large matrix products
belong into ``data/sources/ceilings.csv``.
"""
