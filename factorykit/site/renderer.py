"""Embedded renderer of the website described by ``_quarto.yml``, with pandoc and without Quarto.

It reads the same pages as Quarto and supports a common subset of its syntax. A page is rendered by one call of pandoc,
the parser of Quarto, with :file:`filter.lua` for Quarto's extensions; jinja2 adds the navigation.
"""

from __future__ import annotations

import base64
import html
import json
import posixpath
import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache as once
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from factorykit.core.errors import SiteError
from factorykit.site import build_cache
from factorykit.site.notebook_markdown import joined
from factorykit.site.page_layout import template
from factorykit.site.sources import Cell, Page, Project, glob, load_project, read_cells

HERE = Path(__file__).parent
SPLIT = "<!--factorykit-->"
IMAGES = {"image/svg+xml": "svg", "image/png": "png", "image/jpeg": "jpg"}
MIME_ORDER = ("text/html", *IMAGES, "text/markdown", "text/latex", "text/plain")
SHORTCODE = re.compile(r"\{\{<\s*(\w+)\s+(.*?)\s*>\}\}")
ANSI = re.compile(r"\x1b\[[0-9;]*m")
TAKEN_IN = re.compile(r'\{from="([^"]+)"\}')
REMARKS = re.compile(r"^ */\*.*?\*/\n|^ +", re.DOTALL | re.MULTILINE)
"""Comments and indentation of styles and scripts, which are removed."""
LOCAL = re.compile(r"(?:src|href)=\"([^\"#?:]+)(?:[#?][^\"]*)?\"")


@dataclass(slots=True)
class Draft:
    """A page during rendering: Markdown for pandoc, raw outputs to insert afterwards, image files to write."""

    page: Page
    markdown: str = ""
    raw: list[str] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)

    def keep(self, text: str) -> str:
        """Store raw HTML and return its Markdown placeholder."""
        self.raw.append(text)
        return f"```{{=html}}\n<!--output-{len(self.raw) - 1}-->\n```"

    def image(self, data: bytes, kind: str, alt: str) -> str:
        """Store an image and return the HTML element for it."""
        name = f"{self.page.source.stem}_files/figure-{len(self.files) + 1}.{kind}"
        self.files[name] = data
        return self.keep(f'<p><img src="{name}" alt="{html.escape(alt)}"></p>')


@once
def pandoc() -> Path:
    """Return the pandoc to use: the one of ``pypandoc_binary``, else 3.0 or later from PATH.

    Raises
    ------
    SiteError
        If there is none.
    """
    try:
        import pypandoc

        return Path(pypandoc.get_pandoc_path())
    except (ImportError, OSError):
        path = shutil.which("pandoc")
    printed = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout if path else ""
    version = re.search(r"(\d+)\.", printed)
    if not path or not version or int(version[1]) < 3:
        raise SiteError(f"pandoc 3.0 or later is needed, found {printed.splitlines()[:1]}; install pypandoc_binary")
    return Path(path)


def render(root: Path, out: Path, *, cache: Path | None = None) -> list[str]:
    """Render the website described by ``root/_quarto.yml`` into the empty folder ``out``.

    Pages are cached in the folder ``cache``, if given, and reused while their inputs are unchanged.

    Returns
    -------
    list of str
        Warnings of pandoc with their page.

    Raises
    ------
    SiteError
        If the description or a page cannot be read, or pandoc fails.
    """
    project = load_project(root)
    with ThreadPoolExecutor(max_workers=2) as pool:
        longest = sorted(project.pages, key=lambda page: -(root / page.source).stat().st_size)
        begun = {page.source: pool.submit(_convert, project, page, cache) for page in longest}
        done = [begun[page.source].result() for page in project.pages]
    out.mkdir(parents=True, exist_ok=True)
    titles = {str(page.source): _plain(title) for page, (title, *_) in zip(project.pages, done, strict=True)}
    base = f"{urlsplit(project.website.get('site-url', '')).path.rstrip('/')}/index.html"
    for page, (title, description, footer, toc, body, draft, _) in zip(project.pages, done, strict=True):
        text = template("page.html").render(
            page=page, site=project.website, body=body, toc=toc, title=title, description=description, footer=footer,
            header=_header(project, page), root=_root(page),
            styles=[_relative(page, str(style)) for style in _listed(project.html.get("css"))],
            toc_title=project.html.get("toc-title", "On this page"), language=project.config.get("lang", "en"),
            first_chart=_first_chart(body), base=base, **_navigation(project, page, titles),
        )  # fmt: skip
        target = out / page.href
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        for name, data in draft.files.items():
            (target.parent / name).parent.mkdir(exist_ok=True)
            (target.parent / name).write_bytes(data)
        _copy_referenced(root, out, page, text)
    _copy_assets(project, out)
    return [message for *_, messages in done for message in messages]


def _convert(project: Project, page: Page, cache: Path | None) -> tuple[str, str, str, str, str, Draft, list[str]]:
    draft = Draft(page)
    defaults = {
        **(project.config.get("execute") or {}),
        **project.html,
        **page.meta,
        **(page.meta.get("execute") or {}),
    }
    source = "\n\n".join(_cell(draft, cell, defaults) for cell in page.cells) if page.is_notebook else page.body
    draft.markdown = SHORTCODE.sub(lambda code: _shortcode(project, draft, code, defaults), source)
    folder = (project.root / page.source).parent
    meta = {
        "title": page.title, "description": page.meta.get("description", ""), "footer": _footer(project),
        "fk-root": _root(page), "link-citations": True, "lang": project.config.get("lang", "en"),
    }  # fmt: skip
    works, style, filters = (
        [str((project.root / file).resolve()) for file in _listed(project.config.get(name))]
        for name in ("bibliography", "csl", "filters")
    )
    meta |= ({"bibliography": works} if works else {}) | ({"csl": style[0]} if style else {})
    command = [
        str(pandoc()), "--from=markdown", "--to=html5", "--wrap=none", "--mathml", "--section-divs", "--toc",
        f"--toc-depth={project.html.get('toc-depth', 3)}", f"--template={HERE / 'theme' / 'pandoc.html'}",
        *(f"--lua-filter={file}" for file in (*filters, HERE / "filter.lua")), *(["--citeproc"] if works else []),
    ]  # fmt: skip
    text = f"---\n{json.dumps(meta)}\n---\n\n{draft.markdown}"
    parts = [part.replace(str(project.root.resolve()), "") for part in (text, *command[1:], _pandoc_version())]
    read = (
        HERE / "filter.lua",
        *filters,
        *works,
        *style,
        *(folder / name for name in TAKEN_IN.findall(draft.markdown)),
    )
    parts += [Path(file).read_text(encoding="utf-8") for file in read if Path(file).is_file()]
    kept = cache / f"{str(page.source).replace('/', '-')}.json" if cache else None
    convert = partial(_pandoc, page, command, text, folder)
    rendered, messages = build_cache.cached(kept, parts, lambda _: convert()) if kept else convert()
    title, description, footer, toc, body = (part.strip() for part in rendered.split(SPLIT))
    body = re.sub(r"<!--output-(\d+)-->", lambda match: draft.raw[int(match[1])], body)
    return title, description, footer, toc, body, draft, messages


def _pandoc(page: Page, command: list[str], text: str, folder: Path) -> tuple[str, list[str]]:
    ran = subprocess.run(command, input=text, capture_output=True, encoding="utf-8", check=False, cwd=folder)
    if ran.returncode:
        raise SiteError(f"{page.source}: pandoc failed: {ran.stderr.strip()}")
    warnings = [f"{page.source}: {line.split(']', 1)[-1].strip()}" for line in ran.stderr.splitlines() if line.strip()]
    return ran.stdout, warnings


@once
def _pandoc_version() -> str:
    return subprocess.run([pandoc(), "--version"], capture_output=True, text=True, check=False).stdout.split("\n")[0]


# Notebook cells and shortcodes to markdown


def _cell(draft: Draft, cell: Cell, defaults: dict[str, Any], *, echo: bool | None = None) -> str:
    if cell.kind != "code":
        return cell.source if cell.kind == "markdown" else ""
    options = {**defaults, **cell.options}
    hidden = {"remove-cell", "hide-cell"} & {*cell.tags}
    if options.get("include") is False or hidden:
        return ""
    shows_code = options.get("echo", True) if echo is None else echo
    parts = []
    if shows_code and "hide-code" not in cell.tags and cell.source.strip():
        parts.append(_code(cell.source, options))
    if options.get("output", True) is not False and "hide-output" not in cell.tags:
        parts.append(_outputs(draft, cell, options))
    return "\n\n".join(["::: {.cell}", *parts, ":::"])


def _code(source: str, options: dict[str, Any]) -> str:
    fence = _fence(source)
    code = f"{fence} {{.python .cell-code}}\n{source}\n{fence}"
    fold = options.get("code-fold")
    if fold in (None, False, "none"):
        return code
    opening = f'<details class="code-fold"{" open" if fold == "show" else ""}>'
    summary = html.escape(str(options.get("code-summary", "Code")))
    return f"```{{=html}}\n{opening}<summary>{summary}</summary>\n```\n\n{code}\n\n```{{=html}}\n</details>\n```"


def _outputs(draft: Draft, cell: Cell, options: dict[str, Any]) -> str:
    label = str(options.get("label", ""))
    caption = options.get("tbl-cap") if label.startswith("tbl-") else options.get("fig-cap")
    caption = caption or options.get("fig-cap") or options.get("tbl-cap") or ""
    alt = str(options.get("fig-alt") or caption or draft.page.title)
    shown = [block for output in cell.outputs if (block := _output(draft, output, options, alt))]
    if not shown:
        return ""
    if label.startswith(("fig-", "tbl-")):
        return "\n\n".join([f":::: {{#{label}}}", *shown, str(caption), "::::"])
    return "\n\n".join([*shown, str(caption)]) if caption else "\n\n".join(shown)


def _output(draft: Draft, output: dict[str, Any], options: dict[str, Any], alt: str) -> str:
    if output["output_type"] == "error":
        traceback = html.escape(ANSI.sub("", "\n".join(output.get("traceback", ()))))
        return draft.keep(f'<pre class="cell-output cell-output-error"><code>{traceback}</code></pre>')
    if output["output_type"] == "stream":
        text = joined(output["text"])
        if output["name"] == "stderr" and options.get("warning") is False:
            return ""
        if options.get("output") == "asis":
            return text
        return draft.keep(
            f'<pre class="cell-output cell-output-{output["name"]}"><code>{html.escape(text)}</code></pre>'
        )
    data = output.get("data", {})
    kind = next((kind for kind in MIME_ORDER if kind in data), None)
    if kind is None:
        return ""
    text = joined(data[kind])
    if kind == "text/html":
        return draft.keep(f'<div class="cell-output cell-output-display">{text}</div>')
    if kind in IMAGES:
        image = text.encode() if kind == "image/svg+xml" else base64.b64decode(text)
        return draft.image(image, IMAGES[kind], alt)
    if kind in ("text/markdown", "text/latex"):
        return text
    return draft.keep(f'<pre class="cell-output"><code>{html.escape(text)}</code></pre>')


def _fence(text: str) -> str:
    return "`" * max(3, *(len(run) + 1 for run in re.findall(r"`+", text) or [""]))


def _shortcode(project: Project, draft: Draft, code: re.Match[str], defaults: dict[str, Any]) -> str:
    name, words = code[1], code[2].split()
    if name != "embed":
        raise SiteError(f"{draft.page.source}: the shortcode {code[0]} is not supported; use embed")
    cell = _embedded(project, draft.page, words[0])
    return _cell(draft, cell, {**defaults, "code-fold": False}, echo="echo=true" in words)


def _embedded(project: Project, page: Page, address: str) -> Cell:
    path, _, wanted = address.partition("#")
    file = PurePosixPath(posixpath.normpath(page.source.parent / path))
    if path.startswith("/"):
        file = PurePosixPath(path[1:])
    if not (project.root / file).is_file():
        raise SiteError(f"{page.source}: embed {address}: no notebook {file}")
    cells = read_cells((project.root / file).read_text(encoding="utf-8"), str(file))
    for cell in cells:
        if wanted and wanted in (cell.options.get("label"), cell.identity, *cell.tags):
            return cell
    labels = ", ".join(str(cell.options["label"]) for cell in cells if "label" in cell.options)
    raise SiteError(
        f"{page.source}: embed {address}: no cell with label, id or tag {wanted!r}; labels are {labels or 'none'}"
    )


# Navigation and page layout


def _first_chart(body: str) -> str:
    """Return the address of the planner controls, else of the first interactive chart, else of the first chart."""
    if 'id="sliders"' in body:
        return "sliders"
    before, *charts = body.split('class="factorykit-chart"')
    places: list[tuple[bool, str]] = []
    for chart in charts:
        labels = re.findall(r'id="(fig-[\w-]+)"', before)
        places += [('"controls":[{' not in chart, labels[-1])] if labels else []
        before = chart
    return min(places, key=lambda place: place[0], default=(True, ""))[1]


def _plain(markup: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", markup))


def _root(page: Page) -> str:
    return "../" * (len(page.source.parts) - 1)


def _relative(page: Page, href: str) -> str:
    """Return the link from ``page`` to a file or page given by its path in the site, or to an address."""
    if re.match(r"[a-z][a-z0-9+.-]*:|#", href):
        return href
    path, mark, rest = href.removeprefix("/").partition("#")
    path = re.sub(r"\.(qmd|ipynb|md)$", ".html", path)
    return posixpath.relpath(path, str(page.source.parent)) + mark + rest


def _entries(project: Project, titles: dict[str, str], items: Any) -> Iterator[dict[str, Any]]:
    """Yield the entries of a navbar or sidebar: text and href, or text and the entries below it."""
    if isinstance(items, str):
        items = [str(path) for path in glob(project.root, items) if str(path) in titles]
    for item in items or []:
        if isinstance(item, str):
            item = {"href": item}
        if "section" in item or "menu" in item:
            yield {
                "text": item.get("section") or item.get("text"),
                "below": [*_entries(project, titles, item.get("contents") or item.get("menu"))],
            }
        elif "contents" in item:
            yield from _entries(project, titles, item["contents"])
        else:
            href = str(item.get("href") or item.get("file") or "")
            yield {"text": item.get("text") or titles.get(href.removeprefix("/"), href), "href": href}


def _navigation(project: Project, page: Page, titles: dict[str, str]) -> dict[str, Any]:
    navbar = project.website.get("navbar") or {}

    def placed(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [
            {"text": entry["text"], "below": placed(entry["below"])}
            if "below" in entry
            else {
                "text": entry["text"],
                "href": _relative(page, entry["href"]),
                "here": entry["href"].removeprefix("/") == str(page.source),
            }
            for entry in entries
        ]

    def flat(entries: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for entry in entries:
            yield from flat(entry["below"]) if "below" in entry else [entry]

    sidebars = [placed([*_entries(project, titles, menu.get("contents"))]) for menu in project.sidebars]
    side = next((menu for menu in sidebars if any(entry["here"] for entry in flat(menu))), next(iter(sidebars), []))
    order = [*flat(side)]
    here = next((place for place, entry in enumerate(order) if entry["here"]), None)
    arrows = project.website.get("page-navigation") and here is not None
    return {
        "navbar": placed(
            [*_entries(project, titles, navbar.get("left")), *_entries(project, titles, navbar.get("right"))]
        ),
        "logo": _relative(page, navbar["logo"]) if navbar.get("logo") else "",
        "icon": _relative(page, project.website["favicon"]) if project.website.get("favicon") else "",
        "sidebar": side if page.meta.get("sidebar") is not False else [],
        "home": _relative(page, "index.html"),
        "previous": order[here - 1] if arrows and here else None,
        "following": order[here + 1] if arrows and here is not None and here + 1 < len(order) else None,
    }


def _footer(project: Project) -> str:
    footer = project.website.get("page-footer") or ""
    if isinstance(footer, str):
        return footer
    return " · ".join(str(footer[side]) for side in ("left", "center", "right") if footer.get(side))


def _header(project: Project, page: Page) -> str:
    parts = []
    for item in _listed(project.html.get("include-in-header")):
        text = item["text"] if isinstance(item, dict) and "text" in item else ""
        file = item if isinstance(item, str) else item.get("file")
        parts.append(text or (project.root / str(file)).read_text(encoding="utf-8"))
    return re.sub(r'((?:src|href)=")/(?!/)', rf"\g<1>{_root(page)}", "\n".join(parts))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _copy_referenced(root: Path, out: Path, page: Page, text: str) -> None:
    """Copy the images and files referenced by a page, as Quarto does."""
    for href in {*LOCAL.findall(text)}:
        path = PurePosixPath(posixpath.normpath(page.source.parent / html.unescape(href)))
        if path.suffix not in ("", ".html") and ".." not in path.parts and (root / path).is_file():
            _copy(root / path, out / path)


def _copy_assets(project: Project, out: Path) -> None:
    named = _listed((project.config.get("project") or {}).get("resources"))
    for pattern in [*named, *_listed(project.html.get("css")), *_listed(project.website.get("favicon"))]:
        for path in glob(project.root, str(pattern)):
            _copy(project.root / path, out / path)
    for name in ("site.css", "site.js", "bridge.js"):
        (out / "site_libs").mkdir(parents=True, exist_ok=True)
        (out / "site_libs" / name).write_text(REMARKS.sub("", (HERE / "theme" / name).read_text("utf-8")), "utf-8")


def _copy(source: Path, target: Path) -> None:
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
