"""Python API reference: an index, and a page for each public name from its docstring."""

from __future__ import annotations

import inspect
import re
import subprocess
import textwrap
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import factorykit as fk
from factorykit.core.extras import grouped_names
from factorykit.site.page_layout import PageContext, template
from factorykit.site.pages.markdown import Marked, code, dashed, front, heading, table

SIGNATURE: Final = 96
"""Length from which a signature is formatted with one argument per line."""
PLACE: Final = "report/python/api"
SPLIT: Final = "fkfkfk"
LISTED: Final = ("charts", "formulas", "widgets")
"""Modules documented elsewhere: charts in the notebooks, formulas on the methods pages."""


def api_page() -> str:
    """Return the index of public names by task, each with its first sentence and a link to its page."""
    parts = [
        front(
            "Python reference",
            f"Every public name of `import factorykit as fk`, {len(fk.__all__)} of them.",
            keywords="API | library | functions",
        ),
        'Wherever a number is taken, a text with its unit is too: `"15T"`, `"500 GB/s"`, `"30 min"`. '
        "[How-to guides](/report/guides/how-to.qmd) and [recipes](recipes.qmd) show the calls at work; the "
        "[command line](command-line.qmd) has the same verbs.",
    ]
    for title, inside in grouped_names(str(fk.__doc__)).items():
        names = sorted(inside, key=str.lower)
        rows = [(reference(name, f"{{#fk-{dashed(name)}}}"), _summary(getattr(fk, name))) for name in names]
        columns = [("Name", "-" * 30), ("Purpose", "-" * 70)]
        parts += [heading(title.capitalize(), f"sec-{title}"), table(columns, rows)]
    return "\n\n".join(parts) + "\n"


def reference(name: str, attributes: str = "") -> Marked:
    """Return a link to the page of a public name."""
    return Marked(f"[{code(f'fk.{name}')}](/{PLACE}/{_file(name)}){attributes}")


def write(out: Path, context: PageContext) -> list[list[str]]:
    """Write a page for each public name below ``out``, and return their entries for the search."""
    groups = {name: title for title, names in grouped_names(str(fk.__doc__)).items() for name in names}
    entries = [(name, *entry) for name in fk.__all__ for entry in _entries(f"fk.{name}", getattr(fk, name))]
    texts = _rendered([_rst(doc) for *_, doc in entries])
    made, words = template("reference.html"), context.values("../../../")
    (out / PLACE).mkdir(parents=True, exist_ok=True)
    search_entries = []
    for name in fk.__all__:
        whole, *members = [(call, text) for (of, call, _), text in zip(entries, texts, strict=True) if of == name]
        item = getattr(fk, name)
        page = {"name": name, "group": groups.get(name, ""), "call": whole[0], "text": whole[1], "members": members}
        page |= {"summary": _summary(item), "source": _source(item)}
        (out / PLACE / _file(name)).write_text(made.render(words | page), "utf-8")
        called = " ".join(call.partition("(")[0] for call, _ in (whole, *members))
        search_entries.append([f"{PLACE}/{_file(name)}", f"fk.{name}", "", f"{page['summary']} {called}"])
    return search_entries


def _file(name: str) -> str:
    """Return the file of a name; types have a suffix, since some file systems do not distinguish Plan and plan."""
    return f"{name}.html" if name == name.lower() else f"{name}-type.html"


def _summary(item: Any) -> str:
    first = (inspect.getdoc(item) or "").partition("\n\n")[0]
    return " ".join(re.sub(r":\w+:`~?|``", "`", first).split())


def _source(item: Any) -> str:
    """Return the file and line of a definition."""
    file = Path(str(inspect.getsourcefile(item))).relative_to(Path(fk.__file__).parents[1]).as_posix()
    return file if isinstance(item, types.ModuleType) else f"{file}#L{inspect.getsourcelines(item)[1]}"


def api_entries() -> Iterator[tuple[str, str]]:
    """Yield every public callable and its docstring."""
    for name in fk.__all__:
        yield from _entries(f"fk.{name}", getattr(fk, name))


def _entries(name: str, item: Any) -> Iterator[tuple[str, str]]:
    """Yield the signature and docstring of a public name and of its members."""
    yield _call(name, item), inspect.getdoc(item) or ""
    if isinstance(item, types.ModuleType) and item.__name__.rpartition(".")[2] not in LISTED:
        public = getattr(item, "__all__", vars(item))  # names loaded lazily are listed before their first use
        for inner in sorted(public):
            value = getattr(item, inner)
            if not inner.startswith("_") and getattr(value, "__module__", "").startswith(item.__name__):
                yield _call(f"{name}.{inner}", value), inspect.getdoc(value) or ""
    if isinstance(item, type):
        for inner, value in members(item).items():
            if not inner.startswith("_") and inspect.getdoc(value) and (callable(value) or isinstance(value, property)):
                yield _call(f"{name.rpartition('.')[2]}.{inner}", value), inspect.getdoc(value) or ""


def members(item: type) -> dict[str, Any]:
    """Return the members that a class defines or inherits from another class of this package."""
    own = (base for base in reversed(item.__mro__) if base.__module__.startswith("factorykit."))
    return {name: value for base in own for name, value in vars(base).items()}


def _call(name: str, item: Any) -> str:
    """Return the signature of a callable, with one argument per line if it is long."""
    if isinstance(item, (types.ModuleType, property)) or (isinstance(item, type) and issubclass(item, Warning)):
        return name
    try:
        signature = inspect.signature(item)
    except (ValueError, TypeError):
        return name
    written = [
        re.sub(r"'([^']*)'", r"\1", str(param)) if ":" in str(param) else str(param) for param in _arguments(signature)
    ]
    line = f"{name}({', '.join(written)})"
    return line if len(line) <= SIGNATURE else f"{name}(\n    " + ",\n    ".join(written) + ",\n)"


def _arguments(signature: inspect.Signature) -> list[Any]:
    """Return the parameters of a callable, with the markers of positional-only and keyword-only ones."""
    given: list[Any] = [param for param in signature.parameters.values() if param.name not in ("self", "cls")]
    first = next((place for place, param in enumerate(given) if param.kind is param.KEYWORD_ONLY), None)
    starred = any(param.kind is param.VAR_POSITIONAL for param in given)
    return given if first is None or starred else [*given[:first], "*", *given[first:]]


def _rst(doc: str) -> str:
    """Return a docstring as plain reStructuredText, with section headings as text and examples as code blocks."""
    doc = re.sub(r"^(\w[\w ]*)\n-{3,}$", r"**\1**\n", doc, flags=re.MULTILINE)
    doc = re.sub(r":(?:func|class|meth|mod|data|attr|doc):`~?([^`]+)`", r"``\1``", doc)
    doc = re.sub(r"\[(\w+)\]_", r"[\1]", doc)
    parts = re.split(r"\n{2,}", doc)
    return "\n\n".join(
        f"::\n\n{textwrap.indent(part, '    ')}" if part.lstrip().startswith(">>>") else part for part in parts
    )


def _rendered(texts: list[str]) -> list[str]:
    """Convert reStructuredText to HTML in a single call of pandoc."""
    from factorykit.site.renderer import pandoc

    command = [pandoc(), "--from=rst", "--to=html5", "--wrap=none", "--mathml"]
    whole = f"\n\n{SPLIT}\n\n".join(texts)
    ran = subprocess.run(command, input=whole, capture_output=True, encoding="utf-8", check=True)
    return [part.strip() for part in ran.stdout.split(f"<p>{SPLIT}</p>")]
