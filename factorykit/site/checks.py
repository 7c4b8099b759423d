"""What has to hold before a site is published: nothing unresolved, missing, unexecuted, or fetched from elsewhere."""

from __future__ import annotations

import html
import posixpath
import re
from collections import defaultdict
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

from factorykit.errors import SiteError
from factorykit.site.notebooks import WIDGET_VIEW
from factorykit.site.policy import CODE, digest
from factorykit.site.sources import FENCE, Cell, Page, Project, glob, load_project

OUTSIDE = re.compile(r"\s*(?:https?:|wss?:|ftp:)?//", re.IGNORECASE)
ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")
CSS_OUTSIDE = re.compile(r"""(?:url\(\s*["']?|@import\s+["'])\s*((?:https?:)?//[^"')\s]+)""", re.IGNORECASE)
SCRIPT_OUTSIDE = re.compile(
    r"""(?:\bimport\s*\(?\s*|\bfrom\s+|\bfetch\s*\(\s*|\bimportScripts\s*\(\s*|\.(?:src|href)\s*=\s*|"""
    r"""\bnew\s+(?:WebSocket|EventSource|Worker|Image)\s*\(\s*|\.open\s*\(\s*["']\w+["']\s*,\s*|sendBeacon\s*\(\s*|"""
    r"""\bsetAttribute\s*\(\s*["'](?:src|href)["']\s*,\s*|["']?\b(?:url|src|href)["']?\s*:\s*)["'`]((?:https?:|wss?:)?//[^"'`\s]+)"""
)
CDN = re.compile(
    r"(?:https?:)?//(?:[\w.-]+\.)?(?:jsdelivr\.net|unpkg\.com|cdnjs\.cloudflare\.com|esm\.sh|skypack\.dev|jspm\.(?:io|dev)"
    r"|fonts\.(?:googleapis|gstatic)\.com|ajax\.googleapis\.com|polyfill\.io|code\.jquery\.com|googletagmanager\.com"
    r"|google-analytics\.com)[^\s\"'`)<]*",
    re.IGNORECASE,
)
LOADING_LINKS = {
    "stylesheet", "icon", "shortcut", "preload", "prefetch", "modulepreload", "preconnect", "dns-prefetch", "manifest",
    "apple-touch-icon", "mask-icon",
}  # fmt: skip
SOURCES = {
    "src": None, "srcset": None, "poster": None, "data": {"object"}, "background": None, "action": {"form"},
    "formaction": None, "xlink:href": None, "href": {"image", "use", "base", "feimage", "pattern", "script"},
}  # fmt: skip
UNRESOLVED = re.compile(r"\?@[\w-]+(?:-[\w-]+)*")
SHORTCODE = re.compile(r"\{\{<\s*(\w[\w-]*)")
DIALECT = (
    (
        re.compile(r"^ {0,3}(?:`{3,}|~{3,})\s*\{(?!\.|=|#)\s*(\w+)[^}]*\}", re.MULTILINE),
        "an executable cell; put it in a notebook",
    ),
    (re.compile(r"\blayout(?:-ncol|-nrow|-valign)?\s*="), "a layout; show one figure after the other"),
    (re.compile(r"\{[^}\n]*\.(?:column-[\w-]+|content-(?:visible|hidden)|aside)\b"), "a column, aside or condition"),
    (re.compile(r"@lst-[\w-]+|\{#lst-[\w-]+"), "a numbered listing"),
)
OPTIONS = {
    "echo", "include", "output", "warning", "code-fold", "code-summary", "label", "fig-cap", "fig-alt", "tbl-cap",
    "eval", "error",
}  # fmt: skip
FRONT = {"listing", "categories", "format", "engine", "jupyter", "knitr"}


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing found wanting: on which page, where on it, and what it is."""

    page: str
    place: str
    what: str

    def __str__(self) -> str:
        """Return a line to print."""
        return f"{self.page}{', ' + self.place if self.place else ''}: {self.what}"


@dataclass(frozen=True, slots=True)
class Checked:
    """A rendered folder in which nothing was found wanting."""

    folder: Path
    pages: int
    links: int

    def __str__(self) -> str:
        """Return a line to print."""
        return f"{self.folder}: {self.pages} pages, {self.links} links and references; nothing found wanting"


def check(folder: Path | str = "_site", *, project: Path | str | None = None) -> Checked:
    """Check a rendered folder, and the sources it was made from where ``project`` or the working folder has them.

    Raises
    ------
    SiteError
        If anything is found wanting; the message lists all of it, a line for each page and place.
    """
    out = Path(folder)
    if not (out / "index.html").is_file():
        raise SiteError(f"no site in {out}; `factorykit site build` makes one")
    root = Path(project) if project else Path()
    described = load_project(root) if project or (root / "_quarto.yml").is_file() else None
    found = [*(sources(described) if described else ())]
    pages, more = rendered(out, described)
    require([*found, *more])
    return Checked(out, len(pages), sum(len(page.links) for page in pages.values()))


def require(problems: list[Problem]) -> None:
    """Raise a SiteError that lists the problems, if there are any."""
    if problems:
        listed = "\n".join(f"  {problem}" for problem in sorted({*problems}))
        raise SiteError(f"the site is found wanting in {len({*problems})} places:\n{listed}")


# Sources


def sources(project: Project) -> list[Problem]:
    """Return what is wrong in the pages before they are rendered: cells that never ran, and what only Quarto knows."""
    return [*_menu(project), *(problem for page in project.pages for problem in (*_notebook(page), *_dialect(page)))]


def _menu(project: Project) -> list[Problem]:
    """Return the pages that no entry of the sidebar leads to, and entries that Quarto folds away."""
    named: set[str] = set()
    folded: list[str] = []

    def read(items: Any) -> None:
        if isinstance(items, str):
            named.update(map(str, glob(project.root, items)))
            return
        for item in items or ():
            entry = {"href": item} if isinstance(item, str) else item
            named.add(str(entry.get("href", "")).removeprefix("/"))
            folded.extend([str(entry["auto"])] if "auto" in entry else [])
            read(entry.get("contents"))

    sidebar = project.website.get("sidebar")
    if not sidebar:
        return []
    read(sidebar.get("contents"))
    what = "becomes a folded section that has no name of its own; name its pages"
    found = [Problem("_quarto.yml", "sidebar", f"auto: {pattern} {what}") for pattern in folded]
    missing = [str(page.source) for page in project.pages if str(page.source) not in {*named, "404.qmd"}]
    return found + [Problem("_quarto.yml", "sidebar", f"does not name {page}; no menu leads there") for page in missing]


def _notebook(page: Page) -> list[Problem]:
    found = []
    for cell in page.cells:
        place = f"cell {cell.number}"
        if cell.is_code and cell.source.strip() and cell.count is None:
            found.append(Problem(str(page.source), place, "was never executed; `factorykit site build` runs it"))
        for output in cell.outputs:
            if output.get("output_type") == "error":
                said = f"{output.get('ename')}: {output.get('evalue')}"
                found.append(Problem(str(page.source), place, f"a stored error, {said}"))
            elif WIDGET_VIEW in output.get("data", {}):
                found.append(Problem(str(page.source), place, "a stored widget view, which no page can draw"))
        unknown = {*cell.options} - OPTIONS
        found += [
            Problem(str(page.source), place, f"the cell option {name} is not in the shared dialect")
            for name in sorted(unknown)
        ]
        label = str(cell.options.get("label", ""))
        found += [
            Problem(str(page.source), place, f"{label} has the caption of a {what}; call the cell {kind}-…")
            for kind, what in {"fig": "figure", "tbl": "table"}.items()
            if f"{kind}-cap" in cell.options and not label.startswith(f"{kind}-")
        ]
        if cell.is_code and not label and cell.identity.startswith(("fig-", "tbl-")):
            found.append(Problem(str(page.source), place, f"{cell.identity} has no caption; call the cell otherwise"))
    return found


def _dialect(page: Page) -> list[Problem]:
    found = [
        Problem(str(page.source), "front matter", f"{key} is not in the shared dialect")
        for key in sorted(FRONT & {*page.meta})
    ]
    texts: list[tuple[Cell | None, str]] = [(None, page.body)]
    if page.is_notebook:
        texts = [(cell, cell.source) for cell in page.cells if cell.kind == "markdown"]
    for cell, text in texts:
        bare = FENCE.sub(lambda fence: re.sub(r"[^\n]", " ", fence[0]), text)
        for number, (pattern, what) in enumerate(DIALECT):
            found += [
                Problem(
                    str(page.source),
                    _place(cell, text, hit.start()),
                    f"{hit[0].strip()} is {what}; not in the shared dialect",
                )
                for hit in pattern.finditer(bare if number else text)
            ]
        for hit in SHORTCODE.finditer(bare):
            if hit[1] != "embed":
                what = f"the shortcode {hit[1]} is not in the shared dialect"
                found.append(Problem(str(page.source), _place(cell, text, hit.start()), what))
    return found


def _place(cell: Cell | None, text: str, start: int) -> str:
    line = text.count("\n", 0, start) + 1
    return f"cell {cell.number}, line {line}" if cell else f"line {line}"


# Rendered pages


class PageReader(HTMLParser):
    """Reads what a rendered page points to, loads and leaves unresolved."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: dict[str, int] = defaultdict(int)
        self.links: list[tuple[str, int]] = []
        self.loads: list[tuple[str, int]] = []
        self.images: list[tuple[str, int]] = []
        self.outside: list[tuple[str, int]] = []
        self.unresolved: list[tuple[str, int]] = []
        self.policy = ""
        self.inline: list[tuple[str, int]] = []
        self.widgets: list[int] = []
        self.cites: list[str] = []
        self.texts: list[str] = []
        self._within: list[str] = []
        self._script, self._strong, self._cite = "", False, ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note ids, links and everything a browser would load."""
        line, given = self.getpos()[0], {key: value or "" for key, value in attrs}
        if given.get("id"):
            self.ids[given["id"]] += 1
        if tag == "a" and given.get("name"):
            self.ids[given["name"]] += 1
        if tag in ("a", "area") and "href" in given:
            self.links.append((given["href"], line))
        if tag == "span" and "math" in given.get("class", "").split():
            self.unresolved.append(("TeX, left as it is", line))
        rel = {*given.get("rel", "").lower().split()}
        if tag == "link" and rel & LOADING_LINKS:
            self.loads.append((given.get("href", ""), line))
        if tag == "meta" and given.get("http-equiv", "").lower() == "refresh":
            self.loads.append((given.get("content", "").partition("=")[2], line))
        for name, tags in SOURCES.items():
            if name in given and (tags is None or tag in tags):
                addresses = (
                    [part.split()[0] for part in given[name].split(",") if part.strip()]
                    if name == "srcset"
                    else [given[name]]
                )
                self.loads += [(address, line) for address in addresses]
                if tag == "img":
                    self.images += [(address, line) for address in addresses]
        self.outside += [(hit[1], line) for hit in CSS_OUTSIDE.finditer(given.get("style", ""))]
        if tag == "meta" and given.get("http-equiv", "").lower() == "content-security-policy":
            self.policy = self.policy or given.get("content", "")
        self.inline += [(value, line) for name, value in given.items() if name.startswith("on")]
        if tag in ("script", "style"):
            self._script, self._kind = tag, given.get("type", "").lower()
            if tag == "script" and CODE.fullmatch(self._kind) and "src" not in given:
                self._script = "code"
                self.inline.append(("", line))
            if "widget-view" in self._kind or "widget-state" in self._kind:
                self.widgets.append(line)
        if tag == "span" and "citation" in given.get("class", "").split():
            self._cite = given.get("data-cites", "")
            self.cites += self._cite.split()
        self._strong = tag == "strong"

    def handle_endtag(self, tag: str) -> None:
        """Leave scripts and citations."""
        if tag == self._script or (tag == "script" and self._script == "code"):
            self._script = ""
        self._strong = False
        if tag == "span":
            self._cite = ""

    def handle_data(self, data: str) -> None:
        """Read scripts, styles and text."""
        line = self.getpos()[0]
        if self._script in ("script", "code"):
            self.outside += [(hit, line) for hit in outside_of_script(data)]
            if self._script == "code":
                self.inline[-1] = (self.inline[-1][0] + data, self.inline[-1][1])
        elif self._script == "style":
            self.outside += [(hit[1], line) for hit in CSS_OUTSIDE.finditer(data)]
        else:
            self.unresolved += [(hit[0], line) for hit in UNRESOLVED.finditer(data)]
            if self._strong and self._cite and re.fullmatch(r"\S+\?|\?\?\?", data):
                self.unresolved.append((f"citation @{self._cite}", line))


def outside_of_script(text: str) -> list[str]:
    """Return the addresses of other hosts that a script would ask for.

    >>> outside_of_script('fetch("https://example.org/x.json"); // see https://example.org')
    ['https://example.org/x.json']
    """
    return [*(hit[1] for hit in SCRIPT_OUTSIDE.finditer(text)), *(hit[0] for hit in CDN.finditer(text))]


def rendered(out: Path, project: Project | None = None) -> tuple[dict[str, PageReader], list[Problem]]:
    """Return every page of a rendered folder as read, and what is wrong in it."""
    pages: dict[str, PageReader] = {}
    for file in sorted(out.rglob("*.html")):
        reader = PageReader()
        reader.feed(file.read_text(encoding="utf-8"))
        reader.close()
        pages[file.relative_to(out).as_posix()] = reader
    found = [problem for name in pages for problem in _page(out, name, pages)]
    for file in sorted([*out.rglob("*.css"), *out.rglob("*.js")]):
        name = file.relative_to(out).as_posix()
        if file.suffix == ".js" and name.startswith("site_libs/"):
            continue  # the renderer's own scripts name hosts that they do not ask; the search index holds any text
        text = file.read_text(encoding="utf-8", errors="replace")
        hits = [hit[1] for hit in CSS_OUTSIDE.finditer(text)] if file.suffix == ".css" else _of_library(text)
        found += [Problem(name, "", f"asks another host for {hit[:120]}") for hit in hits]
    if project:
        missing = [page for page in project.pages if page.href not in pages]
        found += [Problem(str(page.source), "", f"was not rendered; {page.href} is missing") for page in missing]
        found = [_traced(project, problem) for problem in found]
    return pages, found


def _of_library(text: str) -> list[str]:
    """Return outside addresses a bundled script loads; a library may name hosts that it only links to."""
    return [hit for hit in outside_of_script(text) if not re.search(r"//(?:www\.)?(?:w3\.org|vega\.github\.io)/", hit)]


def _page(out: Path, name: str, pages: dict[str, PageReader]) -> list[Problem]:
    page = pages[name]
    found = [Problem(name, f"line {line}", f"unresolved {what}") for what, line in page.unresolved]
    found += [
        Problem(name, f"line {line}", "a widget view, which nothing on the page can draw") for line in page.widgets
    ]
    found += [Problem(name, f"line {line}", f"asks another host for {what[:120]}") for what, line in page.outside]
    found += [] if page.policy else [Problem(name, "", "states no Content-Security-Policy")]
    found += [
        Problem(name, f"line {line}", f"a script that the policy of the page refuses: {' '.join(code.split())[:80]}")
        for code, line in page.inline
        if f"'{digest(code)}'" not in page.policy
    ]
    linked = {target[1] for address, _ in page.links if (target := _target(name, address)) and target[0] == name}
    twice = [key for key in sorted(linked) if page.ids.get(key, 0) > 1]
    found += [Problem(name, "", f"a link to #{key}, which stands {page.ids[key]} times") for key in twice]
    for address, line in page.loads:
        if OUTSIDE.match(address):
            found.append(Problem(name, f"line {line}", f"asks another host for {address[:120]}"))
        elif not ADDRESS.match(address) and (target := _target(name, address)) and not (out / target[0]).is_file():
            what = "missing image" if (address, line) in page.images else "missing file"
            found.append(Problem(name, f"line {line}", f"{what} {address}"))
    for address, line in page.links:
        if ADDRESS.match(address) or OUTSIDE.match(address) or not (target := _target(name, address)):
            continue
        path, anchor = target
        if (out / path).is_dir():
            path = posixpath.join(path, "index.html")
        if path.startswith("..") or not (out / path).is_file():
            found.append(Problem(name, f"line {line}", f"dead link {address}"))
        elif anchor and path in pages and anchor not in pages[path].ids:
            found.append(Problem(name, f"line {line}", f"dead link {address}: no such place on {path}"))
    return found


def _target(page: str, address: str) -> tuple[str, str] | None:
    """Return the file and anchor an address leads to from a page, or None where it leads nowhere on purpose."""
    path, _, anchor = html.unescape(address).partition("#")
    path = unquote(path.partition("?")[0])
    if not path and (not anchor or anchor == "/"):
        return None
    if path.startswith("/"):
        return path.lstrip("/"), unquote(anchor)
    return posixpath.normpath(posixpath.join(PurePosixPath(page).parent.as_posix(), path)) if path else page, unquote(
        anchor
    )


def _traced(project: Project, problem: Problem) -> Problem:
    """Return the problem with its place in the source, where what it names can be found there."""
    page = next((page for page in project.pages if page.href == problem.page), None)
    needle = re.search(r"(@[\w:.-]+)|link ([^\s:]+)|missing \w+ (\S+)", problem.what)
    if not page or not needle:
        return problem
    wanted = next(filter(None, needle.groups()))
    wanted = wanted if wanted.startswith("@") else PurePosixPath(wanted.partition("#")[0]).stem or wanted
    for cell in page.cells:
        if wanted in cell.source:
            return Problem(str(page.source), f"cell {cell.number}", problem.what)
    if wanted in page.body:
        return Problem(str(page.source), _place(None, page.body, page.body.index(wanted)), problem.what)
    return problem
