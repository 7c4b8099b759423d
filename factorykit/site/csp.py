"""Content-Security-Policy of the site, stated in a meta element of every page.

A page may run scripts from files of the site and inline scripts with an allowed hash. Evaluation of strings as code
and requests to other hosts are forbidden; workers must be files of the site. Inline styles are allowed because tables
use them.
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
"""Script that sets the theme before the first paint."""
NOTHING: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""Policy of files other than pages, such as pictures and texts: no scripts and no requests."""
STATED: Final = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"\r\n]*)"')
CODE: Final = re.compile(r"|module|(?:text|application)/(?:x-)?(?:java|ecma)script", re.IGNORECASE)
"""Script types that are executed; scripts of other types hold data."""
HANDLER: Final = re.compile(r"\s(on[a-z]+)=")
STATIC: Final = "404.html"
"""Page without text from tables or notebooks: all its inline scripts come from the renderer."""
HANDLERS: Final = {
    "window.quartoToggleColorScheme(); return false;": "scheme",
    "if (window.quartoToggleHeadroom) { window.quartoToggleHeadroom(); }": "headroom",
}
"""Inline actions of Quarto's buttons, and the names of their replacements in ``bridge.js``."""


def policy(scripts: Iterable[str] = ()) -> str:
    """Return the policy of a page that may run scripts of the site and the given inline scripts.

    >>> policy().split("; ")[0]
    "default-src 'none'"
    """
    hashes = (f"'{digest(script)}'" for script in dict.fromkeys((EARLY, *scripts)))
    rules = RULES | {"script-src": " ".join((RULES["script-src"], *hashes))}
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def digest(script: str) -> str:
    """Return the hash of an inline script in the format of the policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


def guard(pages: Mapping[str, LexborHTMLParser]) -> None:
    """Add the policy as the first element of each page, and remove code from attributes."""
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
    """Return the inline scripts of a page."""
    scripts = (node for node in page.css("script:not([src])") if CODE.fullmatch(node.attributes.get("type") or ""))
    return [node.text() for node in scripts]


def stated(page: Path) -> str:
    """Return the policy stated in the file of a page; the strictest policy is the default."""
    with page.open(encoding="utf-8") as file:
        match = STATED.search(file.read(4096))
    return match[1] if match else NOTHING
