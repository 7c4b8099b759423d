"""Pages that are printed from code and data: methods, vocabulary, data. Written beside the pages kept by hand.

All three are markdown in the dialect that both renderers know, and are ignored by git.
"""

from __future__ import annotations

import inspect
import json
import re
import shutil
import textwrap
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

from factorykit.errors import SiteError
from factorykit.formulas import TOPICS, arguments, catalogue
from factorykit.formulas.terms import as_latex, steps, symbol_latex, trace
from factorykit.quantities import Quantity, quantity, vocabulary

HERE = Path(__file__).parent
MATH_ROLE = re.compile(r":math:`([^`]+)`")
ROLE = re.compile(r":\w+:`~?([^`]+)`")


def write(root: Path) -> None:
    """Write methods, vocabulary and data page, the tables to download and the pages' script below ``root/report``.

    Raises
    ------
    SiteError
        If a table named in ``data/datapackage.json`` is missing or cannot be read.
    """
    report = root / "report"
    keys = bibliography((report / "references.bib").read_text(encoding="utf-8"))
    _write(report / "methods.qmd", methods(keys))
    _write(report / "vocabulary.qmd", vocabulary_page())
    _write(report / "data.qmd", data_page(root / "data", report / "downloads"))
    _write(report / "assets" / "factorykit.js", script())


def script() -> str:
    """Return the one script of the pages: what draws the charts, and what tells them that a page turned dark."""
    bridge = (HERE / "theme" / "bridge.js").read_text(encoding="utf-8")
    try:
        from factorykit.charts import page_script
    except ImportError:
        return bridge
    return f"{page_script()}\n{bridge}"


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.is_file() or file.read_text(encoding="utf-8") != text:
        file.write_text(text, encoding="utf-8")


def _front(title: str, description: str, **more: Any) -> str:
    return f"---\n{json.dumps({'title': title, 'description': description, **more}, ensure_ascii=False)}\n---\n"


def _dashed(name: str) -> str:
    return name.replace("_", "-")


# Methods


def bibliography(text: str) -> dict[str, str]:
    """Return the citation keys of a BibTeX file by title, letters and digits alone.

    >>> bibliography("@book{si, title = {The {SI}, 9th ed.}}")
    {'thesi9thed': 'si'}
    """
    entries = re.findall(r"@\w+\{([^,\s]+),(.*?)(?=\n@|\Z)", text, re.DOTALL)
    titles = ((key, re.search(r"\btitle\s*=\s*\{((?:[^{}]|\{[^{}]*\})*)\}", rest)) for key, rest in entries)
    return {_letters(title[1]): key for key, title in titles if title}


def _letters(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def references(formula: Callable[..., Any]) -> list[str]:
    """Return what a formula's docstring cites, one reference a string."""
    text = _sections(formula).get("References", "")
    return [" ".join(part.split()) for part in re.split(r"^\.\. \[\d+\]", text, flags=re.MULTILINE) if part.strip()]


def cited(reference: str, keys: dict[str, str]) -> str | None:
    """Return the key of the work that ``reference`` names by its title or, in quotation marks, its title's beginning.

    >>> cited('J. Doe, "The thing," 2020, table 1.', {"thethingitself": "doe2020"})
    'doe2020'
    """
    quoted = re.search(r'"(.+?),?"', reference)
    if not quoted:
        return next((key for title, key in keys.items() if title in _letters(reference)), None)
    wanted = _letters(quoted[1])
    found = [key for title, key in keys.items() if title.startswith(wanted)]
    return keys.get(wanted) or (found[0] if len(found) == 1 else None)


def _citation(reference: str, keys: dict[str, str]) -> str:
    """Return the reference as a citation and the place in the work, or as it is if the bibliography lacks the work."""
    key = cited(reference, keys)
    if not key:
        return reference
    rest = re.split(r',?"', reference, maxsplit=2)[-1]
    after_year = re.split(r"(?<!arXiv:)\b(?:19|20)\d\d\b", rest, maxsplit=1)[-1]
    place = re.sub(r"\barXiv:[\d.]+,?", "", after_year).strip(" .,:")
    return f"@{key}: {place}." if place else f"@{key}."


def _sections(formula: Callable[..., Any]) -> dict[str, str]:
    """Return the sections of a formula's docstring by heading; what comes before the first is the summary."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", inspect.getdoc(formula) or "", flags=re.MULTILINE)
    return {"": parts[0], **dict(zip(parts[1::2], (part.strip() for part in parts[2::2]), strict=True))}


def _markdown(text: str) -> str:
    text = re.sub(r"\s*\[(\d+)\]_", "", text)
    text = ROLE.sub(r"`\1`", MATH_ROLE.sub(r"$\1$", text))
    return text.replace("``", "`")


def _summary(formula: Callable[..., Any]) -> tuple[str, str]:
    """Return the docstring's first sentences and its equation."""
    summary, _, equation = _sections(formula)[""].partition(".. math::")
    return _markdown(" ".join(summary.split())), textwrap.dedent(equation).strip()


def equations(formula: Callable[..., Any]) -> list[str]:
    r"""Return the body of a formula as LaTeX, one equation for each step, printed from the code.

    >>> equations(catalogue()["training_flop"])
    ['C = 6 \\, N_{a} \\, D']
    """
    name = formula.__name__
    return [
        f"{symbol_latex(step) if step == name else step.replace('u_', 'u_{') + '}'} = {_latex(value)}"
        for step, value in [(name if step == "u" else step, value) for step, value in steps(trace(formula), "u")]
    ]


def _latex(term: Any) -> str:
    text = re.sub(r"(?:\\mathrm\{)?\bu\}?_\{?(\d+)\}?", r"u_{\1}", as_latex(term))
    return re.sub(r"\d+\.\d{9,}", lambda found: _fraction(float(found[0])), text)


def _fraction(value: float) -> str:
    near = Fraction(value).limit_denominator(5000)
    return rf"\tfrac{{{near.numerator}}}{{{near.denominator}}}" if float(near) == value else f"{value:.9g}"


def methods(keys: dict[str, str]) -> str:
    """Return the methods page: every formula with its equation, validity, sources, inputs and users."""
    users = _users()
    parts = [
        _front("Methods", "Every formula of factorykit, printed from the code that computes it."),
        "A formula's name is the quantity it returns, and its arguments are the quantities it needs. The equations "
        "below are the bodies of the functions, read by a program and set as mathematics. Symbols, units and bounds "
        "are those of the [vocabulary](vocabulary.qmd). All quantities are in base units: seconds, watts, bytes, FLOP, "
        "USD; energy alone is in kWh.",
    ]
    for topic in TOPICS:
        word = topic.__name__.rpartition(".")[2]
        parts.append(f"## {word.capitalize()} {{#sec-{word}}}\n\n{(inspect.getdoc(topic) or '').strip()}")
        parts += [
            _method(formula, keys, users) for formula in catalogue().values() if formula.__module__ == topic.__name__
        ]
    return "\n\n".join(parts) + "\n"


def _method(formula: Callable[..., Any], keys: dict[str, str], users: dict[str, list[str]]) -> str:
    name, sections = formula.__name__, _sections(formula)
    row = quantity(name)
    summary, stated = _summary(formula)
    lines = equations(formula)
    label = f"{{#eq-{_dashed(name)}}}"
    parts = [f"### {row.label} {{#{_dashed(name)}}}", f"`{name}` [{row.unit}]. {summary}"]
    if len(lines) == 1:
        parts.append(f"$$ {lines[0]} $$ {label}")
    else:
        computed = " \\\\\n".join(line.replace(" = ", " &= ", 1) for line in lines)
        parts += [
            f"$$ {' '.join(stated.split())} $$ {label}",
            '::: {.callout-note collapse="true" title="As it is computed, step by step"}',
            f"$$ \\begin{{aligned}}\n{computed}\n\\end{{aligned}} $$",
            ":::",
        ]
    parts.append(f"with {'; '.join(_where(quantity(argument)) for argument in arguments(formula))}.")
    parts.append(_markdown(sections.get("Notes", "")))
    if sections.get("Examples"):
        parts.append(f"```python\n{_example(sections['Examples'])}\n```")
    cites = " ".join(_citation(reference, keys) for reference in references(formula))
    used = ", ".join(f"[{quantity(user).label}](#{_dashed(user)})" for user in users.get(name, ()))
    parts.append(f"::: {{.fk-meta}}\nSource: {cites}{f' Used by: {used}.' if used else ''}\n:::")
    return "\n\n".join(part for part in parts if part)


def _where(row: Quantity) -> str:
    unit = "" if row.unit in ("1", "text") else f" [{row.unit}]"
    first = row.label.split()[0]
    label = row.label[0].lower() + row.label[1:] if first[1:].islower() else row.label
    return f"[${symbol_latex(row.name)}$ {label}](vocabulary.qmd#{_dashed(row.name)}){unit}"


def _example(text: str) -> str:
    return "\n".join(
        line for line in text.splitlines() if line.startswith((">>>", "...")) or not line.endswith(":")
    ).strip()


def _users() -> dict[str, list[str]]:
    users: dict[str, list[str]] = {}
    for name, formula in catalogue().items():
        for argument in arguments(formula):
            users.setdefault(argument, []).append(name)
    return users


# Vocabulary


def vocabulary_page() -> str:
    """Return the vocabulary page: one row per quantity, by the topic whose formulas compute or first use it."""
    users, formulas = _users(), catalogue()
    groups: dict[str, list[Quantity]] = {topic.__name__.rpartition(".")[2]: [] for topic in TOPICS}
    groups["other"] = []
    for name, row in vocabulary().items():
        near = name if name in formulas else next(iter(users.get(name, [])), None)
        groups[formulas[near].__module__.rpartition(".")[2] if near else "other"].append(row)
    parts = [
        _front(
            "Vocabulary",
            f"The {len(vocabulary())} quantities. A name is at once a column, an argument, a slider and an axis.",
        ),
        "A bound is included where its bracket is square. *Computed* links to the formula, *used by* to the formulas "
        "that need the quantity; *given* means that no formula returns it.",
    ]
    for word, rows in groups.items():
        if rows:
            title = "Model, parallelism and hardware" if word == "other" else word.capitalize()
            parts.append(f"## {title} {{#{word}}}\n\n{_vocabulary_table(rows, users)}")
    return "\n\n".join(parts) + "\n"


def _vocabulary_table(rows: Iterable[Quantity], users: dict[str, list[str]]) -> str:
    lines = [
        "| Quantity | Symbol | Unit | Bounds | Meaning |",
        f"|{'-' * 25}|{'-' * 8}|{'-' * 8}|{'-' * 10}|{'-' * 49}|",
    ]
    for row in rows:
        anchor = f"[[{row.label}]{{.fk-name}} `{row.name}`]{{#{_dashed(row.name)}}}"
        symbol = f"${symbol_latex(row.name)}$" if row.symbol else ""
        links = [f"[computed](methods.qmd#{_dashed(row.name)})"] if row.name in catalogue() else ["given"]
        using = ", ".join(f"[{quantity(user).label}](methods.qmd#{_dashed(user)})" for user in users.get(row.name, ()))
        links += [f"used by {using}"] if using else []
        meaning = f"{_escaped(row.meaning)} [{'; '.join(links)}]{{.fk-uses}}"
        lines.append(f"| {anchor} | {symbol} | {_unit(row)} | {_bounds(row)} | {meaning} |")
    return "::: {.fk-quantities}\n" + "\n".join(lines) + "\n:::"


def _unit(row: Quantity) -> str:
    return {"1": "–", "text": "text"}.get(row.unit, row.unit)


def _bounds(row: Quantity) -> str:
    if row.is_text:
        return ", ".join(row.alternatives)
    return _escaped(row.bounds).replace("inf", "∞")


def _escaped(text: str) -> str:
    return re.sub(r"([\\*{}\[\]<>#|$^~@]|(?<!\w)_|_(?!\w))", r"\\\1", text)


# Data


def data_page(data: Path, downloads: Path) -> str:
    """Return the data page from ``datapackage.json``; every table goes to ``downloads`` as Parquet, CSV and JSON."""
    front = _front("Data", "The tables behind the notebooks: one fact a row, every value with its source.")
    descriptor = data / "datapackage.json"
    if not descriptor.is_file():
        return f"{front}\nNo table is built yet; `factorykit data build` builds them.\n"
    try:
        package = json.loads(descriptor.read_text(encoding="utf-8"))
    except ValueError as error:
        raise SiteError(f"{descriptor}: no JSON ({error}); run `factorykit data build`") from error
    downloads.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(descriptor, downloads / descriptor.name)
    parts = [
        front,
        _escaped(package.get("description", "")),
        "Every table comes as Parquet, CSV and JSON. [datapackage.json](downloads/datapackage.json) describes them: "
        f"columns, units, keys, sources, licences and hashes. Version {package.get('version', '')}.",
    ]
    parts += [_table(resource, data, downloads) for resource in package.get("resources", ())]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(resource: dict[str, Any], data: Path, downloads: Path) -> str:
    import polars as pl

    name, file = resource["name"], data / str(resource["path"])
    try:
        frame = pl.read_parquet(file)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise SiteError(
            f"{file}: cannot be read ({str(error).splitlines()[0]}); run `factorykit data build`"
        ) from error
    shutil.copyfile(file, downloads / f"{name}.parquet")
    frame.write_csv(downloads / f"{name}.csv")
    (downloads / f"{name}.json").write_text(frame.write_json() + "\n", encoding="utf-8")
    title = resource.get("title") or name.replace("_", " ").capitalize()
    links = " ".join(
        f"[{kind} ({_size(downloads / f'{name}.{end}')})](downloads/{name}.{end})"
        for kind, end in (("Parquet", "parquet"), ("CSV", "csv"), ("JSON", "json"))
    )
    fields = resource.get("schema", {}).get("fields", ())
    rows = [
        f"| `{field['name']}` | {field.get('unit') or ''} | {field.get('type', '')} "
        f"| {_escaped(' '.join(str(field.get('description', '')).split()))} |"
        for field in fields
    ]
    head = ["| Column | Unit | Type | Meaning |", f"|{'-' * 28}|{'-' * 9}|{'-' * 9}|{'-' * 54}|"]
    return "\n\n".join(
        part
        for part in [
            f"## {title} {{#table-{_dashed(name)}}}",
            f"`{name}`: {frame.height} rows, {frame.width} columns. {_escaped(resource.get('description', ''))}",
            f"::: {{.fk-downloads}}\n{links}\n:::",
            _licences(resource),
            "\n".join([*head, *rows]),
            _sources(resource),
        ]
        if part
    )


def _licences(resource: dict[str, Any]) -> str:
    names = [
        _linked(licence.get("title") or licence.get("name", ""), licence.get("path"))
        for licence in resource.get("licenses", ())
    ]
    return f"Licence: {', '.join(names)}." if names else ""


def _sources(resource: dict[str, Any]) -> str:
    rows = [f"- {_linked(source.get('title', ''), source.get('path'))}" for source in resource.get("sources", ())]
    if not rows:
        return ""
    return "\n".join([f'::: {{.callout-note collapse="true" title="{len(rows)} sources"}}', *rows, ":::"])


def _linked(text: str, address: str | None) -> str:
    return f"[{_escaped(text)}]({address})" if address and re.match(r"https?://", address) else _escaped(text)


def _size(file: Path) -> str:
    size = file.stat().st_size
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{max(1, round(size / 1e3))} kB"
