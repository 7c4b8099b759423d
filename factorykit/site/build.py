"""One command from pages, notebooks and tables to the published folder."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from factorykit import places
from factorykit.errors import SiteError
from factorykit.site import checks, finish, notebooks, pages, quarto, renderer, stamp
from factorykit.site.sources import load_project

TEMPORARY = "factorykit-site-"
"""Beginning of the names of temporary folders in which sites are made."""
RENDERERS = ("auto", "quarto", "embedded")
COPIED = (
    "_quarto.yml", "_quarto-published.yml", "index.qmd", "plan.qmd", "404.qmd", "report",
    "notebooks", "data", "factorykit/formulas/references.bib",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Build:
    """What a build did: where the site is, who rendered it and why, and which notebooks ran."""

    path: Path
    renderer: str
    reason: str
    pages: int
    executed: tuple[str, ...]
    seconds: float
    rendered: bool = True

    def __str__(self) -> str:
        """Return the lines to print."""
        ran = f"ran {', '.join(self.executed)}" if self.executed else "no notebook had to run"
        did = "rendered" if self.rendered else "nothing has changed; kept"
        return (
            f"{did} {self.pages} pages with {self.reason}; {ran}; {self.seconds:.1f} s\n"
            f"the site is in {self.path}/; `factorykit site serve` shows it, or open {self.path / 'index.html'}"
        )


def build(out: Path | str = "_site", renderer: str = "auto", *, project: Path | str = ".", run: bool = True) -> Build:
    """Run changed notebooks, print the pages that come from code and data, render, check, and publish the folder whole.

    Parameters
    ----------
    out
        The published folder. It is replaced when everything else has succeeded; until then, and if anything fails or
        is interrupted, the previous one stays.
    renderer
        ``"quarto"``, ``"embedded"``, or ``"auto"``: Quarto where it is found or can be installed, else embedded.
    project
        Folder of ``_quarto.yml``.
    run
        Whether notebooks run whose stored outputs no longer fit.

    Raises
    ------
    SiteError
        If a notebook fails, a page cannot be rendered, or the checks find anything wanting.
    """
    if renderer not in RENDERERS:
        raise SiteError(f"no renderer {renderer!r}; there are {', '.join(RENDERERS)}")
    started = time.perf_counter()
    root, target = Path(project).resolve(), Path(out)
    kept = root / ".cache"
    kept.mkdir(exist_ok=True)
    with places.held(kept):
        return _made(root, target, renderer, run, started)


def _made(root: Path, target: Path, renderer: str, run: bool, started: float) -> Build:
    """Build a site while no other process does."""
    restore(target.absolute())
    places.sweep(target.absolute().parent, f"{target.name}.new-")
    places.sweep(Path(tempfile.gettempdir()), TEMPORARY)
    places.sweep(Path(tempfile.gettempdir()), notebooks.KERNELS)
    places.tidy(root / ".cache")
    described = load_project(root)
    files = [root / page.source for page in described.pages if page.is_notebook]
    executed = notebooks.execute(files, cache=root / ".cache" / "notebooks.json") if run else []
    program, reason = choose(renderer, root)
    with places.held(root / "data") if (root / "data").is_dir() else contextlib.nullcontext():
        places.finish(root / "data")
        return _rendered(root, target, program, reason, executed, started)


def _rendered(
    root: Path, target: Path, program: Path | None, reason: str, executed: list[Path], started: float
) -> Build:
    """Render and publish a site while nobody builds its tables."""
    stamped = root / ".cache" / "site.json"
    made_of = stamp.inputs(root, COPIED, reason if program else "embedded")
    same = stamp.kept(stamped, made_of, target.absolute())
    if same is not None:
        return _built(target, program, reason, same, executed, started, rendered=False)

    # Not in a folder whose path has a part with a leading dot: Quarto takes all pages in one for hidden.
    with places.workplace(Path(tempfile.gettempdir()), TEMPORARY) as folder:
        stage = folder / "project"
        _stage(root, stage)
        pages.write(stage)
        staged = load_project(stage)
        problems = checks.sources(staged)
        if program:
            said = quarto.render(program, stage, folder / "quarto.log")
            rendered = stage / str((staged.config.get("project") or {}).get("output-dir", "_site"))
        else:
            rendered = folder / "rendered"
            said = _embedded(stage, rendered, root / ".cache" / "pages")
        finish.finish(staged, rendered, root, cache=root / ".cache")
        problems += [checks.Problem(*_page_and_text(line)) for line in said]
        read, found = checks.rendered(rendered, staged)
        checks.require([*problems, *found])
        publish(rendered, target.absolute())
    stamp.keep(stamped, made_of, target.absolute(), len(read))
    return _built(target, program, reason, len(read), executed, started)


def _built(
    target: Path,
    program: Path | None,
    reason: str,
    count: int,
    ran: list[Path],
    started: float,
    *,
    rendered: bool = True,
) -> Build:
    return Build(
        path=target,
        renderer="quarto" if program else "embedded",
        reason=reason,
        pages=count,
        executed=tuple(file.name for file in ran),
        seconds=time.perf_counter() - started,
        rendered=rendered,
    )


def _embedded(stage: Path, rendered: Path, cache: Path) -> list[str]:
    """Render without Quarto; return the complaints, less those that the checks state with page and place."""
    return [line for line in renderer.render(stage, rendered, cache=cache) if "Citeproc: citation" not in line]


def choose(wanted: str, root: Path) -> tuple[Path | None, str]:
    """Return the ``quarto`` to use, or None for the embedded renderer, and the reason in words."""
    if wanted == "embedded":
        return None, "the embedded renderer, as asked"
    program, reason = quarto.find()
    if not program and wanted == "auto":
        tried = quarto.install(root / ".cache" / "quarto-install.json")
        program, found = quarto.find()
        reason = found if program else f"{reason}; {tried}"
    if not program and wanted == "quarto":
        raise SiteError(f"Quarto was asked for: {reason}; set QUARTO_PATH, or use the embedded renderer")
    return program, reason if program else f"the embedded renderer ({reason})"


def _stage(root: Path, stage: Path) -> None:
    """Copy what pages are made of, so that neither renderer touches the sources."""
    stage.mkdir()
    ignored = shutil.ignore_patterns(".*", "__pycache__", "sources", "*_files")
    for name in COPIED:
        if (root / name).is_dir():
            shutil.copytree(root / name, stage / name, ignore=ignored)
        elif (root / name).is_file():
            (stage / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, stage / name)


def _page_and_text(line: str) -> tuple[str, str, str]:
    page, _, text = line.partition(": ")
    return page, "", text


def publish(rendered: Path, target: Path) -> None:
    """Put the rendered folder in the place of ``target``, whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists() and not (target.is_dir() and ((target / "index.html").is_file() or not any(target.iterdir()))):
        raise SiteError(f"{target} holds no site; give an empty or new folder")
    with places.workplace(target.parent, f"{target.name}.new-") as fresh:
        shutil.copytree(rendered, fresh, dirs_exist_ok=True)
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
    """Bring back the previous folder if a build was stopped between its two renames."""
    old = target.with_name(f"{target.name}.old")
    if old.is_dir() and not target.exists():
        old.rename(target)


def _exchange(one: Path, other: Path) -> bool:
    """Let two folders change names in one step, where the system can; return whether it could."""
    with contextlib.suppress(OSError, AttributeError):
        here, exchange = -100, 2
        call = ctypes.CDLL(None, use_errno=True).renameat2
        return call(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0
    return False
