"""What is done to rendered pages, whoever rendered them: nothing from elsewhere, tables and numbers set alike."""

from __future__ import annotations

import html
import re
import shutil
from pathlib import Path

from factorykit.site.sources import Project

OUTSIDE_SCRIPT = re.compile(r"<script\b[^>]*\bsrc=[\"'](?:https?:)?//[^>]*>\s*</script>\s*", re.IGNORECASE)
REQUIRE_SHIM = re.compile(r"<script\b[^>]*>\s*(?:window\.)?define\(['\"]jquery['\"].*?</script>\s*", re.DOTALL)
FRAME = re.compile(
    r"<div>\s*<style>.*?</style>\s*(?:<small>(?P<shape>[^<]*)</small>)?"
    r"<table\b[^>]*\bclass=\"[^\"]*\bdataframe\b[^>]*>(?P<table>.*?)</table>\s*</div>",
    re.DOTALL,
)
PLAIN_TABLE = re.compile(r"<table class=\"[^\"]*\bfk-frame\b[^\"]*\">.*?</table>", re.DOTALL)
BARE_FRAME = re.compile(r"(?P<shape>)<table\b[^>]*\bclass=\"[^\"]*\bdataframe\b[^>]*>(?P<table>.*?)</table>", re.DOTALL)
WIDE_TABLE = re.compile(
    r"(?<!<div class=\"fk-scroll\">)<table class=\"caption-top(?![^\"]*\bfk-frame\b)[^\"]*\">.*?</table>", re.DOTALL
)
NAVIGATION = re.compile(r'<a class="nav-link(?: active)?" href="([^"]*)"(?: aria-current="page")?>')
CAPTION = re.compile(r"(<figcaption[^>]*>\s*)((?:Figure|Table)(?:&nbsp;|\xa0)\d+:)")
EQUATION = re.compile(
    r"<span id=\"(eq-[^\"]+)\">(<math\b(?:(?!</math>).)*?)<mspace width=\"2(?:\.0)?em\"\s*(?:/>|></mspace>)"
    r"<mo[^>]*>\(</mo><mn>(\d+)</mn><mo[^>]*>\)</mo>((?:(?!</math>).)*</math>)</span>",
    re.DOTALL,
)
BIBLIOGRAPHY = '<section class="quarto-appendix-contents" role="doc-bibliography" id="quarto-bibliography">'
NUMBER = re.compile(r"[-+]?[\d_,]*\.?\d+(?:e[-+]?\d+)?|nan|inf|-inf|null", re.IGNORECASE)


def finish(project: Project, out: Path) -> None:
    """Go over every page of the rendered folder, and put the notebooks beside their pages."""
    notebooks = {page.href: page for page in project.pages if page.is_notebook}
    for file in sorted(out.rglob("*.html")):
        text = before = file.read_text(encoding="utf-8")
        text = REQUIRE_SHIM.sub("", OUTSIDE_SCRIPT.sub("", text))
        if 'class="fk-frame"' not in text:
            text = PLAIN_TABLE.sub(r'<div class="fk-frame"><div class="fk-scroll">\g<0></div></div>', text)
        text = NAVIGATION.sub(lambda found, here=file: _here(found, here), text)
        text = _numbered(WIDE_TABLE.sub(r'<div class="fk-scroll">\g<0></div>', text))
        text = BARE_FRAME.sub(_frame, FRAME.sub(_frame, text))
        page = notebooks.get(file.relative_to(out).as_posix())
        if page and 'class="fk-origin"' not in text:
            shutil.copyfile(project.root / page.source, out / page.source)
            text = _with_source(text, page.source.name)
        if text != before:
            file.write_text(text, encoding="utf-8")


def _numbered(text: str) -> str:
    """Return a page of Quarto with the numbers of figures and equations, and the contents, as the project has them."""
    text = CAPTION.sub(r'\1<span class="fk-number">\2</span>', text)
    text = EQUATION.sub(_equation, text)
    contents = text.find('<nav id="TOC"')
    if contents >= 0 and BIBLIOGRAPHY in text and 'href="#quarto-bibliography"' not in text:
        end = text.rindex("</ul>", 0, text.index("</nav>", contents))
        place = "#quarto-bibliography"
        entry = f'<li><a href="{place}" class="nav-link" data-scroll-target="{place}">References</a></li>'
        text = f"{text[:end]}{entry}\n{text[end:]}"
    return text


def _here(found: re.Match[str], file: Path) -> str:
    """Return a link of the navigation at the top, marked where it leads to its own page; Quarto marks the first one."""
    leads = (file.parent / found[1]).resolve() == file.resolve()
    marks = (" active", ' aria-current="page"') if leads else ("", "")
    return f'<a class="nav-link{marks[0]}" href="{found[1]}"{marks[1]}>'


def _equation(found: re.Match[str]) -> str:
    """Return an equation whose number stands at the right, where Quarto sets it as a part of the formula."""
    rest = re.sub(r"\s*\\qquad\(\d+\)(?=</annotation>)", "", found[4])
    return f'<span id="{found[1]}" class="fk-equation">{found[2]}{rest}<span class="fk-eqno">({found[3]})</span></span>'


def _with_source(text: str, name: str) -> str:
    link = f'<a href="{name}" download>{name}</a>'
    note = f'<p class="fk-origin">This page is a notebook, shown as it was stored: {link}.</p>'
    place = text.find('<nav class="arrows"')
    place = place if place >= 0 else text.rfind("</main>")
    return text[:place] + note + "\n" + text[place:] if place >= 0 else text


def _frame(found: re.Match[str]) -> str:
    """Return a polars frame as a table in the page's own style: numbers to the right, words without quotation marks."""
    head, _, body = found["table"].partition("</thead>")
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", head, re.DOTALL)
    names = re.findall(r"<th[^>]*>(.*?)</th>", rows[0], re.DOTALL) if rows else []
    types = re.findall(r"<td[^>]*>(.*?)</td>", rows[1], re.DOTALL) if len(rows) > 1 else []
    cells = [
        re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)
        for row in re.findall(r"<tr[^>]*>(.*?)</tr>", body, re.DOTALL)
    ]
    right = [
        re.match(r"[iuf]\d|decimal", types[place])
        if place < len(types)
        else all(NUMBER.fullmatch(row[place]) for row in cells if place < len(row))
        for place in range(len(names))
    ]

    def cell(tag: str, place: int, text: str) -> str:
        classes = ["fk-right"] if place < len(right) and right[place] else []
        if tag == "td" and text == "null":
            text, classes = "–", [*classes, "fk-null"]
        plain = re.fullmatch(r"&quot;(.*)&quot;", text, re.DOTALL)
        scope = ' scope="col"' if tag == "th" else ""
        named = f' class="{" ".join(classes)}"' if classes else ""
        return f"<{tag}{named}{scope}>{plain[1] if plain and tag == 'td' else text}</{tag}>"

    header = "".join(cell("th", place, name) for place, name in enumerate(names))
    lines = "\n".join(f"<tr>{''.join(cell('td', place, text) for place, text in enumerate(row))}</tr>" for row in cells)
    shape = re.search(r"\((\d+), (\d+)\)", html.unescape(found["shape"] or ""))
    shortened = shape and int(shape[1]) > len(cells)
    note = f"<small>{int(shape[1]):,} rows, {len(cells) - 1} shown</small>" if shape and shortened else ""
    return (
        f'<div class="fk-frame"><div class="fk-scroll"><table class="fk-table"><thead><tr>{header}</tr></thead>\n'
        f"<tbody>\n{lines}\n</tbody></table></div>{note}</div>"
    )
