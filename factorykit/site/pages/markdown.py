"""What all printed pages are written with: heads, anchors, escaped text and links."""

from __future__ import annotations

import json
import re
from typing import Any


def front(title: str, description: str, **more: Any) -> str:
    """Return the head of a page: title, description and what else Quarto reads."""
    return f"---\n{json.dumps({'title': title, 'description': description, **more}, ensure_ascii=False)}\n---\n"


def dashed(name: str) -> str:
    """Return a name as an anchor."""
    return name.replace("_", "-").replace(".", "-")


def escaped(text: str) -> str:
    """Return text whose marks are no markdown."""
    return re.sub(r"([\\*{}\[\]<>#|$^~@]|(?<!\w)_|_(?!\w))", r"\\\1", text)


def linked(text: str, address: str | None) -> str:
    """Return text that leads to an address, where there is one."""
    return f"[{escaped(text)}]({address})" if address and re.match(r"https?://", address) else escaped(text)
