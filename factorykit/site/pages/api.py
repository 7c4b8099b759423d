"""The reference of ``import factorykit as fk``: every public name with its arguments, from its docstring."""

from __future__ import annotations

import html
import inspect
import re
import subprocess
import textwrap
import types
from collections.abc import Iterator
from typing import Any, Final

import factorykit as fk
from factorykit.core.extras import grouped_names
from factorykit.site.pages.markdown import Marked, front, heading

SIGNATURE: Final = 96
"""Letters from which a call is written an argument a line."""
SPLIT: Final = "fkfkfk"
LISTED: Final = ("charts", "formulas", "widgets")
"""Modules whose own names stand elsewhere: charts in the notebooks, formulas on the methods pages."""


def api_page() -> str:
    """Return the page: headings, below each every public name with its call and its docstring."""
    names = {name: getattr(fk, name) for name in fk.__all__}
    entries = [(name, entry) for name, thing in names.items() for entry in _entries(f"fk.{name}", thing)]
    texts = dict(
        zip((call for _, (call, _) in entries), _rendered([_rst(doc) for _, (_, doc) in entries]), strict=True)
    )
    parts = [
        front(
            "Python reference",
            f"Every public name of `import factorykit as fk`, {len(names)} of them.",
            **{"body-classes": "fk-api"},
        ),
        'Wherever a number is taken, a text with its unit is too: `"15T"`, `"500 GB/s"`, `"30 min"`. '
        "[Recipes](recipes.qmd) show the calls at work.",
    ]
    for title, inside in grouped_names(str(fk.__file__)).items():
        parts.append(heading(title.capitalize(), f"sec-{title}"))
        for name in sorted(inside, key=str.lower):
            own = [(call, texts[call]) for of, (call, _) in entries if of == name]
            parts.append(_shown(name, names[name], own))
    return "\n\n".join(parts) + "\n"


def _entries(name: str, thing: Any) -> Iterator[tuple[str, str]]:
    """Yield a call and its docstring for a public name, and for its members."""
    yield _call(name, thing), inspect.getdoc(thing) or ""
    if isinstance(thing, types.ModuleType) and thing.__name__.rpartition(".")[2] not in LISTED:
        public = getattr(thing, "__all__", vars(thing))  # names loaded on demand are listed before they are used
        for inner in sorted(public):
            value = getattr(thing, inner)
            if not inner.startswith("_") and getattr(value, "__module__", "").startswith(thing.__name__):
                yield _call(f"{name}.{inner}", value), inspect.getdoc(value) or ""
    if isinstance(thing, type):
        for inner, value in vars(thing).items():
            if not inner.startswith("_") and inspect.getdoc(value) and (callable(value) or isinstance(value, property)):
                yield _call(f"{name.rpartition('.')[2]}.{inner}", value), inspect.getdoc(value) or ""


def _call(name: str, thing: Any) -> str:
    """Return a name as it is called, an argument a line where it is long."""
    if isinstance(thing, (types.ModuleType, property)) or (isinstance(thing, type) and issubclass(thing, Warning)):
        return name
    try:
        signature = inspect.signature(thing)
    except (ValueError, TypeError):
        return name
    written = [
        re.sub(r"'([^']*)'", r"\1", str(each)) if ":" in str(each) else str(each) for each in _arguments(signature)
    ]
    line = f"{name}({', '.join(written)})"
    return line if len(line) <= SIGNATURE else f"{name}(\n    " + ",\n    ".join(written) + ",\n)"


def _arguments(signature: inspect.Signature) -> list[Any]:
    """Return the arguments of a call, with the marks between those by place and those by name."""
    given: list[Any] = [each for each in signature.parameters.values() if each.name not in ("self", "cls")]
    first = next((place for place, each in enumerate(given) if each.kind is each.KEYWORD_ONLY), None)
    starred = any(each.kind is each.VAR_POSITIONAL for each in given)
    return given if first is None or starred else [*given[:first], "*", *given[first:]]


def _shown(name: str, thing: Any, own: list[tuple[str, str]]) -> Marked:
    """Return one public name: its call, its text, and its members in a fold."""
    (call, text), *inner = own
    parts = [f"### fk.{name} {{#fk-{name.replace('_', '-')}}}", f"```python\n{call}\n```", _raw(text)]
    if inner:
        what = "functions and classes" if isinstance(thing, types.ModuleType) else "methods and properties"
        held = "".join(f"<pre><code>{html.escape(each)}</code></pre>{text}" for each, text in inner)
        parts.append(_raw(f"<details><summary>{len(inner)} {what}</summary>{held}</details>"))
    return Marked("\n\n".join(parts))


def _raw(text: str) -> str:
    return f"```{{=html}}\n{text}\n```"


def _rst(doc: str) -> str:
    """Return a docstring as plain reStructuredText: headings become words, examples blocks of code."""
    doc = re.sub(r"^(\w[\w ]*)\n-{3,}$", r"**\1**\n", doc, flags=re.MULTILINE)
    doc = re.sub(r":(?:func|class|meth|mod|data|attr|doc):`~?([^`]+)`", r"``\1``", doc)
    doc = re.sub(r"\[(\w+)\]_", r"[\1]", doc)
    parts = re.split(r"\n{2,}", doc)
    return "\n\n".join(
        f"::\n\n{textwrap.indent(part, '    ')}" if part.lstrip().startswith(">>>") else part for part in parts
    )


def _rendered(texts: list[str]) -> list[str]:
    """Return reStructuredText as HTML, all by one call of pandoc."""
    from factorykit.site.renderer import pandoc

    command = [pandoc(), "--from=rst", "--to=html5", "--wrap=none", "--mathml"]
    whole = f"\n\n{SPLIT}\n\n".join(texts)
    ran = subprocess.run(command, input=whole, capture_output=True, encoding="utf-8", check=True)
    return [part.strip() for part in ran.stdout.split(f"<p>{SPLIT}</p>")]
