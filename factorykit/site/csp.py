"""The Content-Security-Policy of the site, which every page states itself.

A page runs scripts of the site's own files and the few inline ones whose hashes the policy names; nothing turns text
into code, no other host is asked, and workers, too, are files of the site. Styles may stand in a page, as tables bring
theirs.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, cast

from selectolax.lexbor import LexborHTMLParser, LexborNode

RULES: Final = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "connect-src": "'self'",
    "worker-src": "'self'",
    "object-src": "'none'",
    "base-uri": "'self'",
    "form-action": "'none'",
}
EARLY: Final = (Path(__file__).parent / "theme" / "early.js").read_text("utf-8").removesuffix("\n")
"""Sets the theme before anything is drawn."""
NOTHING: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""The policy of files that are not pages: a picture or a text runs and loads nothing."""
STATED: Final = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"\r\n]*)"')
CODE: Final = re.compile(r"|module|(?:text|application)/(?:x-)?(?:java|ecma)script", re.IGNORECASE)
"""Types of scripts that run; others hold data."""
HANDLER: Final = re.compile(r"\s(on[a-z]+)=")
STATIC: Final = "404.html"
"""A page whose text no table and no notebook reaches: inline scripts that stand in it are the renderer's own."""
HANDLERS: Final = {
    "window.quartoToggleColorScheme(); return false;": "scheme",
    "if (window.quartoToggleHeadroom) { window.quartoToggleHeadroom(); }": "headroom",
}
"""Actions of Quarto's buttons, and the names under which ``bridge.js`` provides them."""


def policy(scripts: Iterable[str] = ()) -> str:
    """Return the policy of a page that may run the site's own scripts and these inline ones.

    >>> policy().split("; ")[0]
    "default-src 'none'"
    """
    hashes = (f"'{digest(script)}'" for script in dict.fromkeys((EARLY, *scripts)))
    rules = RULES | {"script-src": " ".join((RULES["script-src"], *hashes))}
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def digest(script: str) -> str:
    """Return the hash under which a policy names an inline script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


def guard(pages: Mapping[str, LexborHTMLParser]) -> None:
    """Let pages of either renderer state the policy, first of all, and hold no code in attributes."""
    own = inline(pages[STATIC]) if STATIC in pages else []
    stated = f'<head><meta http-equiv="Content-Security-Policy" content="{policy(own)}"></head>'
    for page in pages.values():
        for name in {*HANDLER.findall(str(page.html))}:
            for node in page.css(f"[{name}]"):
                if done := HANDLERS.get(str(node.attributes[name])):
                    node.attrs["data-fk-does"] = done
                del node.attrs[name]
        head = cast("LexborNode", page.head)
        meta = cast("LexborNode", cast("LexborNode", LexborHTMLParser(stated).head).child)
        first = head.css_first("meta[charset]")
        if first:
            first.insert_after(meta)
        else:
            head.insert_child(meta)


def inline(page: LexborHTMLParser) -> list[str]:
    """Return the scripts that stand in a page itself."""
    scripts = (node for node in page.css("script:not([src])") if CODE.fullmatch(node.attributes.get("type") or ""))
    return [node.text() for node in scripts]


def stated(page: Path) -> str:
    """Return the policy that the file of a page states, the strictest where it states none."""
    with page.open(encoding="utf-8") as file:
        found = STATED.search(file.read(4096))
    return found[1] if found else NOTHING
