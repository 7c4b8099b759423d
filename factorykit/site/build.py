"""Build of the site from notebooks, pages and tables into one published folder."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from factorykit.core import atomic_io
from factorykit.core.errors import SiteError
from factorykit.site import build_cache, checks, finish, notebooks, pages, quarto, renderer
from factorykit.site.sources import load_project

TEMPORARY = "factorykit-site-"
"""Prefix of the temporary folders in which sites are built."""
MARKER = ".factorykit-site"
"""File in a published folder that lists the generated files; a folder with any other file is never replaced."""
RENDERERS = ("auto", "quarto", "embedded")
COPIED = (
    "_quarto.yml", "_quarto-published.yml", "index.qmd", "plan.qmd", "serve.qmd", "404.qmd", "report",
    "notebooks", "data", "factorykit/formulas/references.bib",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Build:
    """Result of a build: the folder, the renderer and the reason for its choice, and the executed notebooks."""

    path: Path
    renderer: str
    reason: str
    pages: int
    executed: tuple[str, ...]
    seconds: float
    rendered: bool = True

    def __str__(self) -> str:
        """Return the summary printed after a build."""
        ran = f"ran {', '.join(self.executed)}" if self.executed else "no notebook had to run"
        did = "rendered" if self.rendered else "nothing has changed; kept"
        return (
            f"{did} {self.pages} pages with {self.reason}; {ran}; {self.seconds:.1f} s\n"
            f"the site is in {self.path}/; `factorykit site serve` shows it, or open {self.path / 'index.html'}"
        )


def build(out: Path | str = "_site", renderer: str = "auto", *, project: Path | str = ".", run: bool = True) -> Build:
    """Run changed notebooks, write the pages made from code and data, render, check and publish the site.

    Parameters
    ----------
    out
        The published folder. The result of an earlier build is replaced after all other steps have succeeded; any
        other folder that is not empty is rejected.
    renderer
        ``"quarto"``, ``"embedded"``, or ``"auto"``: Quarto if it is installed, else embedded.
    project
        Folder of ``_quarto.yml``.
    run
        Whether to execute notebooks whose stored outputs are out of date.

    Raises
    ------
    SiteError
        If a notebook fails, a page cannot be rendered, a check fails, or ``out`` holds other files.
    """
    if renderer not in RENDERERS:
        raise SiteError(f"unknown renderer {renderer!r}; expected {', '.join(RENDERERS)}")
    started = time.perf_counter()
    root, target = Path(project).resolve(), Path(out)
    cache = root / ".cache"
    cache.mkdir(exist_ok=True)
    with atomic_io.locked(cache):
        return _locked_build(root, target, renderer, run, started)


def _locked_build(root: Path, target: Path, renderer: str, run: bool, started: float) -> Build:
    """Build a site under a lock against concurrent builds."""
    restore(target.absolute())
    require_replaceable(target.absolute())
    atomic_io.remove_stale(target.absolute().parent, f"{target.name}.new-")
    atomic_io.remove_stale(Path(tempfile.gettempdir()), TEMPORARY)
    atomic_io.remove_stale(Path(tempfile.gettempdir()), notebooks.KERNELS)
    atomic_io.remove_all_stale(root / ".cache")
    files = [root / page.source for page in load_project(root).pages if page.is_notebook]
    executed = notebooks.execute(files, cache=root / ".cache" / "notebooks.json") if run else []
    program, reason = choose_renderer(renderer)
    stamp, chosen = root / ".cache" / "site.json", "quarto" if program else "embedded"
    with atomic_io.locked(root / "data") if (root / "data").is_dir() else contextlib.nullcontext():
        atomic_io.move_incoming(root / "data")
        inputs = build_cache.inputs(root, COPIED, reason if program else chosen)
        kept = build_cache.kept(stamp, inputs, target.absolute())
        count = _render(root, target, program) if kept is None else kept
        if kept is None:
            build_cache.keep(stamp, inputs, target.absolute(), count)
    ran, seconds = tuple(file.name for file in executed), time.perf_counter() - started
    return Build(target, chosen, reason, count, ran, seconds, rendered=kept is None)


def _render(root: Path, target: Path, program: Path | None) -> int:
    """Render and publish a site while its tables are locked; return the number of its pages."""
    # Not below a folder with a leading dot: Quarto treats its pages as hidden.
    with atomic_io.temporary_folder(Path(tempfile.gettempdir()), TEMPORARY) as folder:
        stage = folder / "project"
        _stage(root, stage)
        pages.write(stage)
        staged = load_project(stage)
        problems = checks.sources(staged)
        if program:
            complaints = quarto.render(program, stage, folder / "quarto.log")
            rendered = stage / str((staged.config.get("project") or {}).get("output-dir", "_site"))
        else:
            rendered = folder / "rendered"
            complaints = _embedded(stage, rendered, root / ".cache" / "pages")
        finish.finish(staged, rendered, root, cache=root / ".cache")
        problems += [checks.Problem(page, "", text) for page, _, text in (line.partition(": ") for line in complaints)]
        checked_pages, more = checks.rendered(rendered, staged)
        checks.require([*problems, *more])
        publish(rendered, target.absolute())
    return len(checked_pages)


def _embedded(stage: Path, rendered: Path, cache: Path) -> list[str]:
    """Render without Quarto; return the messages, except those that the checks report with their location."""
    return [line for line in renderer.render(stage, rendered, cache=cache) if "Citeproc: citation" not in line]


def choose_renderer(renderer: str) -> tuple[Path | None, str]:
    """Return the ``quarto`` to use, or None for the embedded renderer, and the reason."""
    if renderer == "embedded":
        return None, "the embedded renderer, as asked"
    program, reason = quarto.find()
    if not program and renderer == "quarto":
        raise SiteError(f"no Quarto found: {reason}; run `make quarto`, set QUARTO_PATH, or use the embedded renderer")
    return program, reason if program else f"the embedded renderer ({reason})"


def _stage(root: Path, stage: Path) -> None:
    """Copy the sources of the pages, so that no renderer modifies the originals."""
    stage.mkdir()
    ignored = shutil.ignore_patterns(".*", "__pycache__", "sources", "*_files")
    for name in COPIED:
        if (root / name).is_dir():
            shutil.copytree(root / name, stage / name, ignore=ignored)
        elif (root / name).is_file():
            (stage / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, stage / name)


def require_replaceable(target: Path) -> None:
    """Raise a SiteError if ``target`` holds files that were not generated by a build."""
    if not target.exists():
        return
    if not target.is_dir():
        raise SiteError(f"{target} is a file; give a folder")
    marker = target / MARKER
    ours = {MARKER, *marker.read_text("utf-8").splitlines()} if marker.is_file() else set()
    foreign = sorted(path.name for path in target.iterdir() if path.name not in ours)
    if foreign:
        names = f"{', '.join(foreign[:3])}{' …' if len(foreign) > 3 else ''}"
        raise SiteError(f"{target} holds files that no build put there ({names}); give an empty or new folder")


def publish(rendered: Path, target: Path) -> None:
    """Replace ``target`` atomically with the rendered folder."""
    target.parent.mkdir(parents=True, exist_ok=True)
    require_replaceable(target)
    with atomic_io.temporary_folder(target.parent, f"{target.name}.new-") as fresh:
        shutil.copytree(rendered, fresh, dirs_exist_ok=True)
        (fresh / MARKER).write_text("".join(f"{path.name}\n" for path in sorted(rendered.iterdir())), "utf-8")
        fresh.chmod(0o755)
        if target.exists() and _exchange(fresh, target):
            return
        old = target.with_name(f"{target.name}.old")
        if target.exists():
            target.rename(old)
        try:
            fresh.rename(target)
        except BaseException:
            restore(target)
            raise
        shutil.rmtree(old, ignore_errors=True)


def restore(target: Path) -> None:
    """Restore the previous folder if a build was interrupted between its two renames."""
    old = target.with_name(f"{target.name}.old")
    if (old / MARKER).is_file() and not target.exists():
        old.rename(target)


def _exchange(folder: Path, other: Path) -> bool:
    """Exchange two folders atomically where the system supports it; return whether it succeeded."""
    with contextlib.suppress(OSError, AttributeError):
        here, exchange = -100, 2
        call = ctypes.CDLL(None, use_errno=True).renameat2
        return call(here, os.fsencode(folder), here, os.fsencode(other), exchange) == 0
    return False
