"""The measurements: each yields rows of the same fields."""

from __future__ import annotations

import datetime
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

FIELDS = ("accelerator", "driver", "torch", "date", "what", "precision", "shape", "value", "unit", "runs")
SHAPES = [
    (tokens, width, inner)
    for width in (1024, 2048, 4096, 8192)
    for tokens in (512, 2048, 8192)
    for inner in (width, 4 * width)
]
"""Rows, inner size and columns of a matrix product: micro-batches of a layer, square and four times as wide."""
COPY_BYTES = 2**30
LAUNCHES = 2000
LOADS = (0.0, 0.25, 0.5, 0.75, 1.0)
SECONDS_PER_LOAD = 6.0


def why_not() -> str:
    """Return why nothing can be measured here, or an empty string."""
    try:
        import torch
    except ImportError:
        return "PyTorch is not installed"
    return "" if torch.cuda.is_available() else "PyTorch sees no accelerator"


def measured() -> Iterator[dict[str, Any]]:
    """Yield one row a measurement."""
    import torch

    head = {
        "accelerator": torch.cuda.get_device_name(0),
        "driver": _asked("driver_version"),
        "torch": torch.__version__,
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
    }
    for part in (products, memory, launches, power):
        for row in part():
            yield {**head, **row}


def products() -> Iterator[dict[str, Any]]:
    """Rates of matrix products by shape, in bf16 and, where the chip has it, fp8."""
    import torch

    for precision in ("bf16", "fp8"):
        for rows, inner, columns in SHAPES:
            a = torch.randn(rows, inner, device="cuda", dtype=torch.bfloat16)
            b = torch.randn(columns, inner, device="cuda", dtype=torch.bfloat16).t()
            if precision == "bf16":
                call: Callable[[], Any] = lambda a=a, b=b: a @ b  # noqa: E731
            else:
                one = torch.ones((), device="cuda")
                narrow = (a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn))
                call = lambda n=narrow, one=one: torch._scaled_mm(*n, one, one, out_dtype=torch.bfloat16)  # noqa: E731
            try:
                seconds, runs = _timed(call)
            except RuntimeError:
                break
            shape = f"{rows}x{inner}x{columns}"
            yield _row("product", precision, shape, 2.0 * rows * inner * columns / seconds, "FLOP/s", runs)


def memory() -> Iterator[dict[str, Any]]:
    """Rate of memory: a copy reads and writes every byte."""
    import torch

    source = torch.empty(COPY_BYTES, device="cuda", dtype=torch.uint8)
    target = torch.empty_like(source)
    seconds, runs = _timed(lambda: target.copy_(source))
    yield _row("copy", "uint8", str(COPY_BYTES), 2.0 * COPY_BYTES / seconds, "byte/s", runs)


def launches() -> Iterator[dict[str, Any]]:
    """Time that launching one small kernel takes."""
    import torch

    small = torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(LAUNCHES):
        small.add_(1.0)
    torch.cuda.synchronize()
    yield _row("launch", "fp32", "1", (time.perf_counter() - start) / LAUNCHES, "s", LAUNCHES)


def power() -> Iterator[dict[str, Any]]:
    """Board power by the share of time in which large products run."""
    import torch

    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    once, _ = _timed(lambda: a @ a)
    for load in LOADS:
        drawn = []
        until = time.perf_counter() + SECONDS_PER_LOAD
        while time.perf_counter() < until:
            for _ in range(round(load * 0.1 / once)):
                a @ a
            torch.cuda.synchronize()
            time.sleep((1.0 - load) * 0.1)
            watts = _asked("power.draw")
            if not watts.replace(".", "", 1).isdigit():
                return
            drawn.append(float(watts))
        yield _row("power", "bf16", f"{load:.2f}", statistics.median(drawn[len(drawn) // 3 :]), "W", len(drawn))


def _timed(call: Callable[[], Any], least_s: float = 0.2) -> tuple[float, int]:
    """Return the median time of one call in batches that together last at least ``least_s``, and how many ran."""
    import torch

    for _ in range(3):
        call()
    times, runs, total = [], 0, 0.0
    while total < least_s or len(times) < 5:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(5):
            call()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / 5e3)
        total, runs = total + 5 * times[-1], runs + 5
    return statistics.median(times), runs


def _row(what: str, precision: str, shape: str, value: float, unit: str, runs: int) -> dict[str, Any]:
    return {"what": what, "precision": precision, "shape": shape, "value": value, "unit": unit, "runs": runs}


def _asked(field: str) -> str:
    """Return the output of the driver's tool, or an empty string where there is none."""
    try:
        asked = ["nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader,nounits", "--id=0"]
        return subprocess.run(asked, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
