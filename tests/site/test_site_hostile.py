"""Tables whose cells contain markup, scripts and Markdown: pages show them as text, and no script runs."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

from made_site import Made

from factorykit.charts.embed import html
from factorykit.site.pages.markdown import escaped

ROOT = Path(__file__).parent.parent.parent
HOSTILE = (
    "<svg onload=hit()>",
    "</title></summary></td><script>hit()</script>",
    '"><img src=x onerror="hit()">',
    "`<svg onload=hit()>`{=html}",
    "``` \n\n```{=html}\n<script>hit()</script>\n```",
    "[x](javascript:hit())",
    ']{onclick="hit()"} x} )<svg onload=hit()>',
    "$<svg onload=hit()>$ \\",
    "a\n\n<script>hit()</script>\n\n:::",
    "\\<svg onload=hit()\\>",
    "&lt;script&gt;hit()&lt;/script&gt; &#60;svg onload=hit()>",
    "| x |\n|---|\n| <svg onload=hit()> |",
    "<!--factorykit--><!--output-0--><svg onload=hit()>",
    "---\ntitle: <svg onload=hit()>\n---",
    "{{< embed ../notebooks/01-made.ipynb >}}",
    "[@doe2020]{=html} <https://x/onload=hit()>",
)


class Markup(HTMLParser):
    """Parser for the executable parts and the text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[str] = []
        self.text = ""
        self.inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside = tag if dict(attrs).get("type") != "application/json" else "data"
        self.runs += [f"<{tag} {name}={value}>" for name, value in attrs if name.startswith("on")]
        self.runs += [f"<{tag} {name}={value}>" for name, value in attrs if str(value).startswith("javascript:")]
        self.runs += [f"<{tag}>"] if tag in ("img", "iframe", "object", "embed") else []

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.inside == "script" and "hit" in data:
            self.runs.append(data)


def test_a_label_of_a_chart_does_not_end_its_script():
    label = "<!--<script></script><svg onload=hit()>"
    payload = {"specs": [], "title": label, "columns": []}
    read = Markup()
    read.feed(html(payload))
    assert not read.runs
    data = html(payload).split('<script type="application/json">')[1].split("</script>")[0]
    assert json.loads(data)["title"] == label
    assert "<" not in data


TEXTS = ("100 % of x_y", "3.5 *of* 4 | 5", "- a", "1. a", "$5 and $6", "@x", "~a~ ^b^", "# a", ": a", "a\\")
TEXTS += ("[a](b)", "&lt;")


def test_escaped_text_reads_as_it_was_written(made: Made):
    page = made.page("\n\n".join(f"{escaped(text)}\n\n| x |\n|---|\n| {escaped(text)} |\n\nend" for text in TEXTS))
    read = Markup()
    read.feed(page.split("</header>")[-1].split('<nav class="arrows"')[0])
    words = [word for text in TEXTS for word in (*text.split(), "x", *text.split(), "end")]
    assert read.text.split() == words
