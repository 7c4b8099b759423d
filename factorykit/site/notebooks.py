"""Notebooks are executed here alone: from a fresh kernel, only where something changed, with stable bytes."""

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

from factorykit import places
from factorykit.errors import SiteError
from factorykit.site import children, dialect
from factorykit.site.sources import joined, read_cells, text_of

PACKAGE = Path(__file__).parent.parent
WATCHED = ("python", "factorykit", "altair", "duckdb", "great-tables", "ipykernel", "polars", "vl-convert-python")
AT_ONCE = 3
"""Notebooks that run side by side: on two processors one of three waits for its kernel."""
KERNELS = "factorykit-kernel-"
"""Beginning of the names of temporary folders in which a kernel keeps its profile."""
WITHOUT = "import sys; sys.modules.setdefault('rfc3987_syntax', None)"
"""What a kernel runs first: jsonschema takes 0.8 s to read a grammar that no chart asks for."""
UNWATCHED = ("site", "cli.py", "__pycache__")
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
GENERATED_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){0,3}(-?[0-9a-f]{12})?")
NOISE = re.compile(r"running over TCP without encryption|^\s*$|IPKernelApp|frozen modules|-Xfrozen_modules|PYDEVD")
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def execute(
    paths: Iterable[Path | str], *, cache: Path | None = None, force: bool = False, timeout: int = 300
) -> list[Path]:
    """Run the notebooks that changed, or whose code or tables changed, and store their outputs; return those that ran.

    A notebook keeps its bytes where its stored outputs still fit. A few run at a time, each in its own folder.

    Parameters
    ----------
    paths
        The notebooks.
    cache
        File that remembers what the stored outputs were made from; ``.cache/notebooks.json`` beside the notebooks'
        folder by default.
    force
        Run all of them.
    timeout
        Seconds a cell may take.

    Raises
    ------
    SiteError
        If a notebook cannot be read or a cell fails; the message names both. That notebook stays as it was.
    """
    files = sorted({Path(path).resolve() for path in paths})
    if not files:
        return []
    cache = cache or files[0].parent.parent / ".cache" / "notebooks.json"
    with places.held(files[0].parent):
        known = _read_cache(cache)
        code = _digest_of_code(files[0].parent.parent)
        stale = [file for file in files if force or known.get(file.name) != _fit(file, code)]
        if stale:
            failures = _wait_for(lambda: _run_all(stale, timeout))
            known.update({file.name: _fit(file, code) for file in stale if file not in failures})
            _write_whole(cache, json.dumps(known, indent=1, sort_keys=True) + "\n")
            if failures:
                raise SiteError("\n".join(failures[file] for file in stale if file in failures))
        return stale


def normalise(notebook: dict[str, Any]) -> dict[str, Any]:
    """Return the notebook without what differs from run to run: widget views, timings, generated ids, metadata.

    Its figures, tables and equations are counted anew, and the cells that only check are folded.
    """
    used: set[str] = set()
    cells = []
    for number, cell in enumerate(notebook["cells"], 1):
        tags = cell.get("metadata", {}).get("tags")
        folded = {"jupyter": {"source_hidden": True}} if dialect.CHECKS in (tags or ()) else {}
        kept = {
            "cell_type": cell["cell_type"],
            "id": _identity(cell, number, used),
            "metadata": {**folded, "tags": tags} if tags else {},
            "source": joined(cell["source"]).splitlines(keepends=True),
        }
        if cell["cell_type"] == "code":
            kept["execution_count"] = cell.get("execution_count")
            kept["outputs"] = _outputs(cell.get("outputs", ()))
        if cell.get("attachments"):
            kept["attachments"] = cell["attachments"]
        cells.append(dict(sorted(kept.items())))
    return {"cells": dialect.numbered(cells), "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}


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
    """Run a coroutine to its end, also where the caller lives inside an event loop, as a notebook does."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(lambda: asyncio.run(work())).result()


async def _run_all(files: list[Path], timeout: int) -> dict[Path, str]:
    gate = asyncio.Semaphore(AT_ONCE)

    async def guarded(file: Path) -> str | None:
        async with gate:
            return await _run(file, timeout)

    said = await asyncio.gather(*[guarded(file) for file in files])
    return {file: message for file, message in zip(files, said, strict=True) if message}


async def _run(file: Path, timeout: int) -> str | None:
    """Execute one notebook and write it back whole; return what went wrong, if anything."""
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
        with places.workplace(temporary, KERNELS) as home, (home / "stderr").open("w+") as stderr:
            client = NotebookClient(
                notebook,
                timeout=timeout,
                record_timing=False,
                kernel_name="python3",
                resources={"metadata": {"path": str(file.parent)}},
                config=Config(KernelManager={"connection_file": str(home / "kernel.json")}),
            )
            environment = {**os.environ, **kernel_environment(home)}
            try:
                await client.async_execute(
                    cleanup_kc=True, env=environment, stderr=stderr, preexec_fn=children.ends_with_me()
                )
            except CellTimeoutError:
                return f"{file.name}, {_place(notebook)}: took more than {timeout} s"
            except (CellExecutionError, DeadKernelError) as error:
                stderr.seek(0)
                lines = [line.strip() for line in stderr if not NOISE.search(line)]
                reason = (
                    f"{error.ename}: {error.evalue}" if isinstance(error, CellExecutionError) else "the kernel died"
                )
                return f"{file.name}, {_place(notebook)}: {reason}{' | '.join(['', *lines[-3:]])}"
    _write_whole(file, dumps(normalise(notebook)))
    return None


def kernel_environment(home: Path) -> dict[str, str]:
    """Return what a kernel is told: its profile and its temporary files are in an empty folder that goes when it goes.

    Nobody's start-up files take part.
    """
    startup = home / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "00-without.py").write_text(WITHOUT, "utf-8")
    return {"IPYTHONDIR": str(home), "TMPDIR": str(home), "PYTHONHASHSEED": "0", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}


def dumps(notebook: dict[str, Any]) -> str:
    """Return the notebook as the text that is stored."""
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _place(notebook: Any) -> str:
    """Return the cell that ran last, which is the one that failed."""
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
    """Return a digest of everything outside a notebook that its outputs depend on: package, tables, versions."""
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


def _fit(file: Path, code: str) -> dict[str, str]:
    """Return what ties a notebook's stored bytes to the code that made them."""
    return {"code": code, "notebook": hashlib.sha256(file.read_bytes()).hexdigest()}


def _read_cache(cache: Path) -> dict[str, dict[str, str]]:
    try:
        known = json.loads(cache.read_text(encoding="utf-8"))
        return known if isinstance(known, dict) else {}
    except (OSError, ValueError):
        return {}


def _write_whole(file: Path, text: str) -> None:
    """Write the file whole or not at all; leave it alone if it already says so."""
    if not file.is_file() or file.read_text(encoding="utf-8") != text:
        file.parent.mkdir(parents=True, exist_ok=True)
        places.write_whole(file, text)
