"""Checks of a site before publication: links, references, stored outputs, and external hosts."""

from __future__ import annotations

import html
import posixpath
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

from selectolax.lexbor import LexborHTMLParser, LexborNode

from factorykit.core.errors import SiteError
from factorykit.site.csp import CODE, digest
from factorykit.site.notebooks import WIDGET_VIEW
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
LOADING = "link[rel]," + ",".join(f"[{name.replace(':', chr(92) + ':')}]" for name in SOURCES)
"""Elements for which a browser may load a resource."""
HANDLER = re.compile(r"\b(on[a-z]+)\s*=", re.IGNORECASE)
UNRESOLVED = re.compile(r"\?@[\w-]+(?:-[\w-]+)*")
SHORTCODE = re.compile(r"\{\{<\s*(\w[\w-]*)")
UNSUPPORTED = (  # by the embedded renderer
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
    """A problem with its page, location and message."""

    page: str
    place: str
    message: str

    def __str__(self) -> str:
        """Return the problem as a line of text."""
        return f"{self.page}{', ' + self.place if self.place else ''}: {self.message}"


@dataclass(frozen=True, slots=True)
class Checked:
    """Result of checking a rendered folder without problems."""

    folder: Path
    pages: int
    links: int

    def __str__(self) -> str:
        """Return the result as a line of text."""
        return f"{self.folder}: {self.pages} pages, {self.links} links; no problems"


def check(folder: Path | str = "_site", *, project: Path | str | None = None) -> Checked:
    """Check a rendered folder, and its sources if ``project`` or the working folder has them.

    Raises
    ------
    SiteError
        If there are problems; the message lists all of them.
    """
    out = Path(folder)
    if not (out / "index.html").is_file():
        raise SiteError(f"no site in {out}; `factorykit site build` makes one")
    root = Path(project) if project else Path()
    described = load_project(root) if project or (root / "_quarto.yml").is_file() else None
    problems = sources(described) if described else []
    pages, more = rendered(out, described)
    require([*problems, *more])
    return Checked(out, len(pages), sum(len(page.links) for page in pages.values()))


def require(problems: list[Problem]) -> None:
    """Raise a SiteError that lists the problems, if there are any."""
    if problems:
        listed = "\n".join(f"  {problem}" for problem in sorted({*problems}))
        raise SiteError(f"the site has {len({*problems})} problems:\n{listed}")


# Sources


def sources(project: Project) -> list[Problem]:
    """Return the problems in the sources of pages: cells never executed, and unsupported syntax."""
    pages = ((str(page.source), (*_notebook(page), *_unsupported(page))) for page in project.pages)
    return [*_menu(project), *(Problem(source, *problem) for source, problems in pages for problem in problems)]


def _menu(project: Project) -> list[Problem]:
    """Return the pages missing from the sidebars, and sidebar entries that Quarto would fold."""
    named: set[str] = set()
    patterns: list[str] = []

    def read(items: Any) -> None:
        if isinstance(items, str):
            named.update(map(str, glob(project.root, items)))
            return
        for item in items or ():
            entry = {"href": item} if isinstance(item, str) else item
            named.add(str(entry.get("href", "")).removeprefix("/"))
            patterns.extend([str(entry["auto"])] if "auto" in entry else [])
            read(entry.get("contents"))

    if not project.sidebars:
        return []
    for sidebar in project.sidebars:
        read(sidebar.get("contents"))
    messages = [f"auto: {pattern} becomes a folded section without a name; list its pages" for pattern in patterns]
    missing = [str(page.source) for page in project.pages if str(page.source) not in {*named, "404.qmd"}]
    messages += [f"does not name {page}, so that no menu leads there" for page in missing]
    return [Problem("_quarto.yml", "sidebar", message) for message in messages]


def _notebook(page: Page) -> Iterator[tuple[str, str]]:
    """Yield the place and the message of each problem in the cells of a notebook."""
    for cell in page.cells:
        place = f"cell {cell.number}"
        if cell.is_code and cell.source.strip() and cell.count is None:
            yield place, "was never executed; `factorykit site build` runs it"
        for output in cell.outputs:
            if output.get("output_type") == "error":
                yield place, f"a stored error, {output.get('ename')}: {output.get('evalue')}"
            elif WIDGET_VIEW in output.get("data", {}):
                yield place, "a stored widget view, which no page can draw"
        for name in sorted({*cell.options} - OPTIONS):
            yield place, f"the cell option {name} is not supported"
        label = str(cell.options.get("label", ""))
        for kind, element in {"fig": "figure", "tbl": "table"}.items():
            if f"{kind}-cap" in cell.options and not label.startswith(f"{kind}-"):
                yield place, f"{label} has the caption of a {element}; call the cell {kind}-…"
        if cell.is_code and not label and cell.identity.startswith(("fig-", "tbl-")):
            yield place, f"{cell.identity} has no caption; call the cell otherwise"


def _unsupported(page: Page) -> Iterator[tuple[str, str]]:
    """Yield the place and the message of each piece of syntax that the embedded renderer does not support."""
    for key in sorted(FRONT & {*page.meta}):
        yield "front matter", f"{key} is not supported"
    texts: list[tuple[Cell | None, str]] = [(None, page.body)]
    if page.is_notebook:
        texts = [(cell, cell.source) for cell in page.cells if cell.kind == "markdown"]
    for cell, text in texts:
        bare = FENCE.sub(lambda fence: re.sub(r"[^\n]", " ", fence[0]), text)
        for number, (pattern, hint) in enumerate(UNSUPPORTED):
            for hit in pattern.finditer(bare if number else text):
                yield _place(cell, text, hit.start()), f"{hit[0].strip()} is not supported: {hint}"
        for hit in SHORTCODE.finditer(bare):
            if hit[1] != "embed":
                yield _place(cell, text, hit.start()), f"the shortcode {hit[1]} is not supported"


def _place(cell: Cell | None, text: str, start: int) -> str:
    line = text.count("\n", 0, start) + 1
    return f"cell {cell.number}, line {line}" if cell else f"line {line}"


# Rendered pages


@dataclass(frozen=True, slots=True)
class PageContent:
    """The parts of a rendered page needed by the checks."""

    ids: Counter[str]
    links: list[str]
    loads: list[str]
    images: set[str]
    outside: list[str]
    unresolved: list[str]
    policy: str
    scripts: list[str]
    widgets: int

    @classmethod
    def read(cls, text: str) -> PageContent:
        """Parse a page of HTML."""
        page = LexborHTMLParser(text)
        scripts = page.css("script")
        kinds = [(script.attributes.get("type") or "").lower() for script in scripts]
        inline = [
            script.text()
            for script, kind in zip(scripts, kinds, strict=True)
            if CODE.fullmatch(kind) and "src" not in script.attributes
        ]
        handlers = {name.lower() for name in HANDLER.findall(text)}
        policies = page.css('meta[http-equiv="content-security-policy" i]')
        images = {address for node in page.css("img[src], img[srcset]") for address in _loads(node)}
        refreshes = [_value(node, "content").partition("=")[2] for node in page.css('meta[http-equiv="refresh" i]')]
        return cls(
            ids=Counter([_value(node, "id") for node in page.css("[id]")])
            + Counter(_value(node, "name") for node in page.css("a[name]")),
            links=[_value(node, "href") for node in page.css("a[href], area[href]")],
            loads=[address for node in page.css(LOADING) for address in _loads(node)] + refreshes,
            images=images,
            outside=[hit for script in scripts for hit in outside_of_script(script.text())]
            + [hit for style in page.css("style") for hit in CSS_OUTSIDE.findall(style.text())]
            + [hit for node in page.css("[style]") for hit in CSS_OUTSIDE.findall(_value(node, "style"))],
            unresolved=_unresolved(page, text),
            policy=_value(policies[0], "content") if policies else "",
            scripts=inline + [_value(node, name) for name in handlers for node in page.css(f"[{name}]")],
            widgets=sum("widget-view" in kind or "widget-state" in kind for kind in kinds),
        )


def _value(node: LexborNode, name: str) -> str:
    return node.attributes.get(name) or ""


def _loads(node: LexborNode) -> list[str]:
    """Return the addresses that a browser loads for an element."""
    if node.tag == "link":
        return [_value(node, "href")] if {*_value(node, "rel").lower().split()} & LOADING_LINKS else []
    names = [name for name, tags in SOURCES.items() if name in node.attributes and (not tags or node.tag in tags)]
    single = [_value(node, name) for name in names if name != "srcset"]
    return single + [part.split()[0] for part in _value(node, "srcset").split(",") if part.strip()]


def _unresolved(page: LexborHTMLParser, text: str) -> list[str]:
    """Return references, citations and formulas that a renderer left unresolved."""
    issues = ["TeX source"] * len(page.css("span.math"))
    for cited in page.css("span.citation"):
        marks = (strong.text() for strong in cited.css("strong"))
        issues += [f"citation @{_value(cited, 'data-cites')}" for mark in marks if re.fullmatch(r"\S+\?|\?\?\?", mark)]
    if UNRESOLVED.search(text):
        page = LexborHTMLParser(text)
        page.strip_tags(["script", "style"])
        issues += UNRESOLVED.findall(page.root.text() if page.root else "")
    return issues


def outside_of_script(text: str) -> list[str]:
    """Return the addresses of external hosts that a script would load.

    >>> outside_of_script('fetch("https://example.org/x.json"); // see https://example.org')
    ['https://example.org/x.json']
    """
    return [*(hit[1] for hit in SCRIPT_OUTSIDE.finditer(text)), *(hit[0] for hit in CDN.finditer(text))]


def rendered(out: Path, project: Project | None = None) -> tuple[dict[str, PageContent], list[Problem]]:
    """Return the content of every page of a rendered folder, and the problems in it."""
    files = sorted(out.rglob("*.html"))
    pages = {file.relative_to(out).as_posix(): PageContent.read(file.read_text(encoding="utf-8")) for file in files}
    problems = [problem for name in pages for problem in _page(out, name, pages)]
    for file in sorted([*out.rglob("*.css"), *out.rglob("*.js")]):
        name = file.relative_to(out).as_posix()
        if file.suffix == ".js" and name.startswith("site_libs/"):
            continue  # scripts of a renderer name hosts that they do not load; the search index holds arbitrary text
        text = file.read_text(encoding="utf-8", errors="replace")
        hits = CSS_OUTSIDE.findall(text) if file.suffix == ".css" else _of_library(text)
        problems += [Problem(name, "", f"loads {hit[:120]} from another host") for hit in hits]
    if project:
        missing = [page for page in project.pages if page.href not in pages]
        problems += [Problem(str(page.source), "", f"was not rendered; {page.href} is missing") for page in missing]
        problems = [_traced(project, problem) for problem in problems]
    return pages, problems


def _of_library(text: str) -> list[str]:
    """Return external addresses loaded by a bundled script; addresses that a library only links to are allowed."""
    return [hit for hit in outside_of_script(text) if not re.search(r"//(?:www\.)?(?:w3\.org|vega\.github\.io)/", hit)]


def _page(out: Path, name: str, pages: dict[str, PageContent]) -> list[Problem]:
    page = pages[name]
    messages = [f"unresolved {mark}" for mark in page.unresolved]
    messages += ["a widget view, which a page cannot draw"] * page.widgets
    messages += [f"loads {address[:120]} from another host" for address in page.outside]
    messages += [] if page.policy else ["has no Content-Security-Policy"]
    messages += [
        f"a script that the policy of the page forbids: {' '.join(code.split())[:80]}"
        for code in page.scripts
        if f"'{digest(code)}'" not in page.policy
    ]
    for address in page.loads:
        if OUTSIDE.match(address):
            messages.append(f"loads {address[:120]} from another host")
        elif not ADDRESS.match(address) and (target := _target(name, address)) and not (out / target[0]).is_file():
            messages.append(f"missing {'image' if address in page.images else 'file'} {address}")
    for address in dict.fromkeys(page.links):
        if ADDRESS.match(address) or OUTSIDE.match(address) or not (target := _target(name, address)):
            continue
        path, anchor = target
        if path not in pages and (out / path).is_dir():
            path = posixpath.join(path, "index.html")
        if path.startswith("..") or not (path in pages or (out / path).is_file()):
            messages.append(f"dead link {address}")
        elif anchor and path in pages and anchor not in pages[path].ids:
            messages.append(f"dead link {address}: {path} has no such anchor")
        elif anchor and path == name and page.ids[anchor] > 1:
            messages.append(f"a link to #{anchor}, which is the id of {page.ids[anchor]} elements")
    return [Problem(name, "", message) for message in messages]


def _target(page: str, address: str) -> tuple[str, str] | None:
    """Return the file and anchor that an address on a page refers to, or None if it needs no check."""
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
    """Return the problem with its location in the source, if the text it quotes is found there."""
    page = next((page for page in project.pages if page.href == problem.page), None)
    needle = re.search(r"(@[\w:.-]+)|link ([^\s:]+)|missing \w+ (\S+)", problem.message)
    if not page or not needle:
        return problem
    wanted = next(filter(None, needle.groups()))
    wanted = wanted if wanted.startswith("@") else PurePosixPath(wanted.partition("#")[0]).stem or wanted
    for cell in page.cells:
        if wanted in cell.source:
            return Problem(str(page.source), f"cell {cell.number}", problem.message)
    if wanted in page.body:
        return Problem(str(page.source), _place(None, page.body, page.body.index(wanted)), problem.message)
    return problem
