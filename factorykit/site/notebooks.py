"""Incremental execution of notebooks in fresh kernels, with reproducible stored files."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.metadata
import json
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from factorykit.core import atomic_io
from factorykit.core.errors import SiteError
from factorykit.site import build_cache, notebook_markdown
from factorykit.site.notebook_markdown import joined
from factorykit.site.sources import read_cells, text_of

PACKAGE = Path(__file__).parent.parent
WATCHED = ("python", "factorykit", "altair", "duckdb", "ipykernel", "polars", "vl-convert-python")
MAX_KERNELS = 3
"""Number of notebooks executed concurrently: with two processors, one of three waits for its kernel to start."""
MAX_CELL_S = 300
"""Maximum execution time of a cell. [s]"""
KERNELS = "factorykit-kernel-"
"""Prefix of the temporary folders of kernel profiles."""
UNWATCHED = ("site", "cli.py", "__pycache__")
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
GENERATED_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){0,3}(-?[0-9a-f]{12})?")
NOISE = re.compile(r"running over TCP without encryption|^\s*$|IPKernelApp|frozen modules|-Xfrozen_modules|PYDEVD")
VOLATILE = ("collapsed", "ExecuteTime", "execution", "jupyter", "widgets")
"""Metadata of notebooks and cells that varies between runs or is set by this module."""
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def execute(paths: Iterable[Path | str], *, cache: Path | None = None, force: bool = False) -> list[Path]:
    """Execute the notebooks whose text, code or tables changed, store the outputs, and return the executed notebooks.

    A notebook with up-to-date outputs is not modified. Several run concurrently, each with a separate profile.

    Parameters
    ----------
    paths
        The notebooks.
    cache
        File with the inputs of the stored outputs; defaults to ``.cache/notebooks.json`` next to the notebook folder.
    force
        Execute all notebooks, including those with up-to-date outputs.

    Raises
    ------
    SiteError
        If a notebook cannot be read, a cell fails, or a notebook was saved during its execution; the message names it.
        The notebook is left unchanged.
    """
    files = sorted({Path(path).resolve() for path in paths})
    if not files:
        return []
    cache = cache or files[0].parent.parent / ".cache" / "notebooks.json"
    with atomic_io.locked(files[0].parent):
        known = build_cache.read(cache)
        code = _digest_of_code(files[0].parent.parent)
        stale = [file for file in files if force or known.get(file.name) != _inputs(file, code)]
        if stale:
            failures = _wait_for(lambda: _run_all(stale))
            known.update({file.name: _inputs(file, code) for file in stale if file not in failures})
            build_cache.write_changed(cache, json.dumps(known, indent=1, sort_keys=True) + "\n")
            if failures:
                raise SiteError("\n".join(failures[file] for file in stale if file in failures))
        return stale


def normalise(notebook: dict[str, Any]) -> dict[str, Any]:
    """Return the notebook without content that varies between runs: widget views, timings and generated ids.

    Figures, tables and equations are renumbered, and cells that contain only checks are folded.
    """
    used: set[str] = set()
    cells = []
    for number, cell in enumerate(notebook["cells"], 1):
        metadata = _without_volatile(cell.get("metadata", {}))
        folded = {"jupyter": {"source_hidden": True}} if notebook_markdown.CHECKS in metadata.get("tags", ()) else {}
        kept = {
            "cell_type": cell["cell_type"],
            "id": _identity(cell, number, used),
            "metadata": folded | metadata,
            "source": joined(cell["source"]).splitlines(keepends=True),
        }
        if cell["cell_type"] == "code":
            kept["execution_count"] = cell.get("execution_count")
            kept["outputs"] = _outputs(cell.get("outputs", ()))
        if cell.get("attachments"):
            kept["attachments"] = cell["attachments"]
        cells.append(dict(sorted(kept.items())))
    metadata = dict(sorted((_without_volatile(notebook.get("metadata", {})) | METADATA).items()))
    return {"cells": notebook_markdown.numbered(cells), "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def _without_volatile(metadata: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in sorted(metadata.items()) if name not in VOLATILE and value != []}


def _identity(cell: dict[str, Any], number: int, used: set[str]) -> str:
    given = str(cell.get("id", ""))
    if not given or GENERATED_ID.fullmatch(given) or given in used:
        label = re.search(r"^#\|\s*label:\s*([\w-]+)", joined(cell["source"]), re.MULTILINE)
        given = label[1] if label and label[1] not in used else f"cell-{number:02}"
    used.add(given)
    return given


def _outputs(outputs: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    kept: list[dict[str, Any]] = []
    for output in outputs:
        output = {key: value for key, value in output.items() if key != "transient"}
        if output["output_type"] == "stream":
            text = joined(output["text"])
            if kept and kept[-1]["output_type"] == "stream" and kept[-1]["name"] == output["name"]:
                text = joined(kept.pop()["text"]) + text
            output["text"] = text.splitlines(keepends=True)
        elif "data" in output:
            data = {kind: value for kind, value in output["data"].items() if kind != WIDGET_VIEW}
            output["data"] = {
                kind: value.splitlines(keepends=True) if isinstance(value, str) and kind.startswith("text/") else value
                for kind, value in sorted(data.items())
            }
        kept.append(dict(sorted(output.items())))
    return kept


def _wait_for(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run a coroutine to completion, including inside a running event loop such as that of a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(lambda: asyncio.run(work())).result()


async def _run_all(files: list[Path]) -> dict[Path, str]:
    gate = asyncio.Semaphore(MAX_KERNELS)

    async def guarded(file: Path) -> str | None:
        async with gate:
            return await _run(file)

    messages = await asyncio.gather(*[guarded(file) for file in files])
    return {file: message for file, message in zip(files, messages, strict=True) if message}


async def _run(file: Path) -> str | None:
    """Execute one notebook and store it; return the error, if any."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import nbformat
        from nbclient import NotebookClient
        from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
        from traitlets.config import Config

        text = text_of(file)
        read_cells(text, file.name)
        notebook = nbformat.reads(text, as_version=4)
        temporary = Path(tempfile.gettempdir())
        with atomic_io.temporary_folder(temporary, KERNELS) as home, (home / "stderr").open("w+") as stderr:
            client = NotebookClient(
                notebook,
                timeout=MAX_CELL_S,
                record_timing=False,
                kernel_name="python3",
                resources={"metadata": {"path": str(file.parent)}},
                config=Config(KernelManager={"connection_file": str(home / "kernel.json")}),
            )
            environment = {**os.environ, **kernel_environment(home)}
            try:
                await client.async_execute(cleanup_kc=True, env=environment, stderr=stderr)
            except CellTimeoutError:
                return f"{file.name}, {_place(notebook)}: took more than {MAX_CELL_S} s"
            except (CellExecutionError, DeadKernelError) as error:
                stderr.seek(0)
                lines = [line.strip() for line in stderr if not NOISE.search(line)]
                reason = (
                    f"{error.ename}: {error.evalue}" if isinstance(error, CellExecutionError) else "the kernel died"
                )
                return f"{file.name}, {_place(notebook)}: {reason}{' | '.join(['', *lines[-3:]])}"
    if text_of(file) != text:
        return f"{file.name}: was saved while it ran, so its outputs were not stored; run it again"
    build_cache.write_changed(file, dumps(normalise(notebook)))
    return None


def kernel_environment(home: Path) -> dict[str, str]:
    """Return the environment of a kernel: profile and temporary files in a new folder."""
    return {"IPYTHONDIR": str(home), "TMPDIR": str(home), "PYTHONHASHSEED": "0", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}


def dumps(notebook: dict[str, Any]) -> str:
    """Serialize the notebook."""
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _place(notebook: Any) -> str:
    """Return the number and first line of the cell that failed, or of the last executed cell."""
    failed = [
        number
        for number, cell in enumerate(notebook.cells, 1)
        if cell.cell_type == "code" and any(output.output_type == "error" for output in cell.outputs)
    ]
    started = [number for number, cell in enumerate(notebook.cells, 1) if cell.get("execution_count")]
    number = (failed or started or [1])[-1]
    first = next((line for line in notebook.cells[number - 1].source.splitlines() if not line.startswith("#|")), "")
    return f"cell {number} ({first.strip()[:60]})"


def _digest_of_code(root: Path) -> str:
    """Return a hash of the inputs of outputs other than the notebook: package, tables, versions."""
    digest = hashlib.sha256()
    for name in WATCHED:
        try:
            version = sys.version if name == "python" else importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            version = "absent"
        digest.update(f"{name} {version}\n".encode())
    code = [
        file
        for file in sorted(PACKAGE.rglob("*"))
        if file.suffix in (".py", ".csv", ".js", ".css", ".json", ".parquet")
        and file.relative_to(PACKAGE).parts[0] not in UNWATCHED
        and "__pycache__" not in file.parts
    ]
    for file in [*code, *sorted((root / "data").glob("*.parquet"))]:
        digest.update(f"{file.name} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def _inputs(file: Path, code: str) -> dict[str, str]:
    """Return hashes of a notebook and of the code that produced its outputs."""
    return {"code": code, "notebook": hashlib.sha256(file.read_bytes()).hexdigest()}
