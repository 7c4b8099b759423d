"""Pages that are printed from code and data: methods, vocabulary, data, audit. Written beside those kept by hand.

All of them are markdown in the dialect that both renderers know, and are ignored by git.
"""

from __future__ import annotations

import inspect
import json
import re
import shutil
import textwrap
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from factorykit.errors import SiteError
from factorykit.formulas import TOPICS, arguments, catalogue
from factorykit.formulas.terms import as_latex, steps, symbol_latex, trace
from factorykit.quantities import Quantity, quantity, vocabulary

HERE = Path(__file__).parent
MATH_ROLE = re.compile(r":math:`([^`]+)`")
WIDE = 40
"""Characters of LaTeX from which a formula within a sentence may be wider than a phone."""
ROLE = re.compile(r":\w+:`~?([^`]+)`")


def write(root: Path) -> None:
    """Write methods, vocabulary, data and audit pages, downloads and the pages' script below ``root/report``.

    Raises
    ------
    SiteError
        If a table named in ``data/datapackage.json`` is missing or cannot be read.
    """
    report = root / "report"
    keys = bibliography((report / "references.bib").read_text(encoding="utf-8"))
    written = methods(keys) | data_pages(root / "data", report / "downloads")
    for kind in ("methods", "data"):
        for old in report.glob(f"{kind}-*.qmd"):
            if old.stem not in written:
                old.unlink()
    for name, text in written.items():
        _write(report / f"{name}.qmd", text)
    _write(report / "vocabulary.qmd", vocabulary_page())
    for name, text in audit_pages(root / "data").items():
        _write(report / f"{name}.qmd", text)
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
    text = ROLE.sub(r"`\1`", MATH_ROLE.sub(_inline, text))
    return text.replace("``", "`")


def _inline(found: re.Match[str]) -> str:
    """Return mathematics within a sentence; what may be wider than a phone gets a box that scrolls."""
    return f"[${found[1]}$]{{.fk-wide}}" if len(found[1]) > WIDE else f"${found[1]}$"


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


def methods(keys: dict[str, str]) -> dict[str, str]:
    """Return the pages of the methods by name: an overview, and one page a topic.

    A formula stands there with its equation, validity, sources, inputs and users.
    """
    users = _users()
    overview = [
        _front("Methods", "Every formula of factorykit, printed from the code that computes it."),
        "A formula's name is the quantity it returns, and its arguments are the quantities it needs. The equations "
        "on these pages are the bodies of the functions, read by a program and set as mathematics. Symbols, units and "
        "bounds are those of the [vocabulary](vocabulary.qmd). All quantities are in base units: seconds, watts, "
        f"bytes, FLOP, USD; energy alone is in kWh. There are {len(catalogue())} formulas in {len(TOPICS)} topics.",
    ]
    pages = {"methods": ""}
    for topic in TOPICS:
        first, _, more = (inspect.getdoc(topic) or "").strip().partition("\n\n")
        formulas = [formula for formula in catalogue().values() if formula.__module__ == topic.__name__]
        title, page = _topic(topic.__name__).replace("_", " ").capitalize(), _topic_page(topic.__name__)
        listed = ", ".join(
            f"[{_formula_link(formula.__name__)}]{{#{_dashed(formula.__name__)}}}" for formula in formulas
        )
        overview.append(f"## [{title}]({page}.qmd) {{#sec-{_dashed(_topic(topic.__name__))}}}")
        overview.append(f"{first}\n\n::: {{.fk-meta}}\n{listed}.\n:::")
        parts = [_front(title, " ".join(first.split())), more, *(_method(each, keys, users) for each in formulas)]
        parts.append("[All topics](methods.qmd).")
        pages[page] = "\n\n".join(part for part in parts if part) + "\n"
    return {**pages, "methods": "\n\n".join(overview) + "\n"}


def _topic(module: str) -> str:
    return module.rpartition(".")[2]


def _topic_page(module: str) -> str:
    return f"methods-{_dashed(_topic(module))}"


def _formula_link(name: str, text: str = "") -> str:
    """Return a link to where a formula stands, under its label or ``text``."""
    page = _topic_page(catalogue()[name].__module__)
    return f"[{text or _escaped(quantity(name).label)}]({page}.qmd#{_dashed(name)})"


def _method(formula: Callable[..., Any], keys: dict[str, str], users: dict[str, list[str]]) -> str:
    name, sections = formula.__name__, _sections(formula)
    row = quantity(name)
    summary, stated = _summary(formula)
    lines = equations(formula)
    label = f"{{#eq-{_dashed(name)}}}"
    parts = [f"## {row.label} {{#{_dashed(name)}}}", f"`{name}` [{row.unit}]. {summary}"]
    if len(lines) == 1:
        parts.append(f"$$ {lines[0]} $$ {label}")
    else:
        computed = " \\\\\n".join(line.replace(" = ", " &= ", 1) for line in lines)
        parts += [
            f"$$ {_lines(stated)} $$ {label}",
            '::: {.callout-note collapse="true" title="As it is computed, step by step"}',
            f"$$ \\begin{{aligned}}\n{computed}\n\\end{{aligned}} $$",
            ":::",
        ]
    parts.append(f"with {'; '.join(_where(quantity(argument)) for argument in arguments(formula))}.")
    parts.append(_markdown(sections.get("Notes", "")))
    if sections.get("Examples"):
        parts.append(f"```python\n{_example(sections['Examples'])}\n```")
    cites = " ".join(_citation(reference, keys) for reference in references(formula))
    used = ", ".join(_formula_link(user) for user in users.get(name, ()))
    parts.append(f"::: {{.fk-meta}}\nSource: {cites}{f' Used by: {used}.' if used else ''}\n:::")
    return "\n\n".join(part for part in parts if part)


def _lines(equation: str) -> str:
    """Return an equation on one line of text; several lines of mathematics become an aligned block."""
    joined = " ".join(equation.split())
    return rf"\begin{{aligned}} {joined} \end{{aligned}}" if r"\\" in joined else joined


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
        f"|{'-' * 24}|{'-' * 10}|{'-' * 9}|{'-' * 11}|{'-' * 46}|",
    ]
    for row in rows:
        anchor = f"[[{row.label}]{{.fk-name}} `{row.name}`]{{#{_dashed(row.name)}}}"
        symbol = f"${symbol_latex(row.name)}$" if row.symbol else ""
        links = [_formula_link(row.name, "computed")] if row.name in catalogue() else ["given"]
        using = ", ".join(_formula_link(user) for user in users.get(row.name, ()))
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


def data_pages(data: Path, downloads: Path) -> dict[str, str]:
    """Return the pages of the data by name from ``datapackage.json``: an overview, and one page a subject.

    Every table goes to ``downloads`` as Parquet, CSV and JSON.
    """
    front = _front("Data", "The tables behind the notebooks: one fact a row, every value with its source.")
    descriptor = data / "datapackage.json"
    if not descriptor.is_file():
        return {"data": f"{front}\nNo table is built yet; `factorykit data build` builds them.\n"}
    try:
        package = json.loads(descriptor.read_text(encoding="utf-8"))
    except ValueError as error:
        raise SiteError(f"{descriptor}: no JSON ({error}); run `factorykit data build`") from error
    downloads.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(descriptor, downloads / descriptor.name)
    croissant = data / "croissant.json"
    if croissant.is_file():
        shutil.copyfile(croissant, downloads / croissant.name)
    also = " [croissant.json](downloads/croissant.json) says the same in the words of Croissant."
    overview = [
        front,
        _escaped(package.get("description", "")),
        "Every table comes as Parquet, CSV and JSON. [datapackage.json](downloads/datapackage.json) describes them: "
        f"columns, units, keys, sources, licences and hashes.{also if croissant.is_file() else ''} "
        f"Version {package.get('version', '')}.",
    ]
    pages = {"data": ""}
    for subject in package["subjects"]:
        name, said = subject["name"], _escaped(subject["description"])
        tables = [each for each in package["resources"] if each["subject"] == name]
        overview += [f"## [{name.capitalize()}](data-{name}.qmd) {{#sec-{name}}}", said, _contents(tables)]
        parts = [_front(f"Tables: {name}", subject["description"])]
        parts += [_table(resource, data, downloads) for resource in tables]
        pages[f"data-{name}"] = "\n\n".join([*parts, "[All tables](data.qmd)."]) + "\n"
    return {**pages, "data": "\n\n".join(part for part in overview if part) + "\n"}


def _contents(resources: Sequence[dict[str, Any]]) -> str:
    """Return the list of tables, each with what a row is and a link to its columns."""
    head = ["| Table | Rows | A row is |", f"|{'-' * 26}|{'-' * 6}:|{'-' * 60}|"]
    rows = []
    for each in resources:
        name, said = each["name"], " ".join(str(each.get("description", "")).split())
        first = re.split(r"(?<=\.) ", said, maxsplit=1)[0].removeprefix("A row is ")
        link = f"[{_escaped(each.get('title') or name)}](data-{each['subject']}.qmd#table-{_dashed(name)})"
        rows.append(f"| {link} | {each.get('rows', '')} | {_escaped(first)} |")
    return "\n".join([*head, *rows]) if rows else ""


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
            f'::: {{.callout-note collapse="true" title="{len(rows)} columns"}}\n\n'
            + "\n".join([*head, *rows])
            + "\n\n:::",
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


# Audit


TONES = {
    "agrees": "tip",
    "rounding": "tip",
    "superseded": "warning",
    "disagrees": "important",
    "unit error": "important",
    "not checkable": "note",
}
WORST = 25
"""Claims that the audit page lists as farthest off."""


def audit_pages(data: Path) -> dict[str, str]:
    """Return the pages of the audit by name: an overview, and one page a document with every claim unfolded.

    Nothing without a table of claims.
    """
    if not (data / "claims.parquet").is_file():
        return {}
    import polars as pl

    from factorykit.datasets import table
    from factorykit.model.audit import VERDICTS, audit

    rows = audit()
    sources = {row["source"]: row for row in table("sources").collect().to_dicts()}
    documents = rows["document"].unique(maintain_order=True).to_list()
    counts = rows.group_by("document", "verdict").len()
    table_rows = [
        f"| [{_escaped(_short(sources[name]))}]({_page(name)}.qmd) "
        + "".join(f"| {_count(counts, name, verdict)} " for verdict in VERDICTS)
        + f"| {rows.filter(pl.col('document') == name).height} |"
        for name in documents
    ]
    every = "".join(f"| {rows.filter(pl.col('verdict') == verdict).height} " for verdict in VERDICTS)
    worst = (
        rows.filter(pl.col("ratio") > 0, ~pl.col("verdict").is_in(["agrees", "rounding"]))
        .sort(pl.col("ratio").log().abs(), descending=True, maintain_order=True)
        .head(WORST)
    )
    overview = [
        _front("Audit", "Every quantitative claim of five documents, recomputed with the formulas and tables here."),
        f"{rows.height} claims, each with where it stands, what it states, a recipe that recomputes it from "
        "quantities, formulas and table cells, and a verdict that the code reaches: *agrees* within 1 % or inside the "
        "stated range; *rounding* up to 5 %, or ranges that share a quarter; *unit error*, off by a power of 1000, "
        "computed from such a number, or right in another unit; *superseded*, a source nearer to the fact says "
        "otherwise; *disagrees*; *not checkable*. Counted events and years have to come out to the last printed digit. "
        "[The notebook](../notebooks/20-audit.ipynb) reads the result; the tables "
        "[claims](data-audit.qmd#table-claims), [facts](data-audit.qmd#table-facts) and "
        "[conflicts](data-audit.qmd#table-conflicts) hold "
        "what goes in.",
        "## Verdicts by document {#sec-verdicts}",
        "\n".join(
            [
                f"| Document | {' | '.join(verdict.capitalize() for verdict in VERDICTS)} | All |",
                f"|{'-' * 40}|{'-------:|' * (len(VERDICTS) + 1)}",
                *table_rows,
                f"| All {every}| {rows.height} |",
            ]
        ),
        f"## The {WORST} claims that are farthest off {{#sec-worst}}",
        "\n".join(
            [
                "| Claim | Printed | Recomputed | Ratio | Verdict |",
                f"|{'-' * 40}|{'-' * 20}|{'-' * 16}|{'-' * 8}:|{'-' * 12}|",
                *[_worst_row(row) for row in worst.to_dicts()],
            ]
        ),
    ]
    pages = {"audit": "\n\n".join(overview) + "\n"}
    cells = {row["claim"]: row for row in table("claims").collect().to_dicts()}
    for name in documents:
        pages[_page(name)] = _document_page(
            sources[name], rows.filter(pl.col("document") == name).to_dicts(), cells, sources
        )
    return pages


def _document_page(
    document: dict[str, Any],
    rows: list[dict[str, Any]],
    cells: dict[str, dict[str, Any]],
    sources: dict[str, dict[str, Any]],
) -> str:
    from factorykit.model.recipes import Tables, cook

    tables = Tables()
    parts = [
        _front(f"Audit: {_short(document).lower()}", "Every claim of one document, its recipe unfolded."),
        f"{_escaped(document['title'])}. {len(rows)} claims in the order of the text; the locator is a line of "
        f"`{document['file']}`. [All documents](audit.qmd).",
    ]
    for row in rows:
        recipe = cells[row["claim"]]["recipe"]
        used = cook(recipe, tables).parts if recipe and not row["error"] else ()
        parts.append(_claim(row, used, sources))
    return "\n\n".join(parts) + "\n"


def _claim(row: dict[str, Any], used: Iterable[Any], sources: dict[str, dict[str, Any]]) -> str:
    verdict = row["verdict"] or "recipe fails"
    ratio = f" {_ratio(row['ratio'])}" if row["ratio"] and verdict not in ("agrees", "not checkable") else ""
    title = f"{row['subject']}, {row['claimed']}: {row['printed']} – {verdict}{ratio}".replace('"', "'")
    lines = [
        f":::: {{#{_dashed(row['claim'])}}}",
        f'::: {{.callout-{TONES.get(verdict, "important")} collapse="true" title="{title}"}}',
        _escaped(row["why"]),
        f"Stated in {_escaped(row['locator'])}: {_stated(row)}. {_recomputed(row)}",
    ]
    if row["recipe"]:
        lines.append(f"```\n{textwrap.fill(row['recipe'], 96, break_long_words=False, break_on_hyphens=False)}\n```")
    listed = [f"- {_used(part, sources)}" for part in used if part.kind != "constant"]
    if listed:
        lines.append("\n".join(listed))
    if row["superseded_by"]:
        lines.append(f"Superseded by {_source(sources[row['superseded_by']])}.")
    return "\n\n".join([*lines, ":::", "::::"])


def _used(part: Any, sources: dict[str, dict[str, Any]]) -> str:
    value = _escaped(part.value) if isinstance(part.value, str) else _amount(part.value, part.unit)
    if part.kind == "formula":
        return f"{_formula_link(part.key)}: {value}"
    if part.kind == "claim":
        document, _, _ = part.key.partition("_")
        return f"claim [{part.key}](audit-seed-{document[1:]}.qmd#{_dashed(part.key)}): {value}"
    said = f", {_source(sources[part.source])}" if part.source else ""
    return f"`{part.text}` = {value}{said}"


def _worst_row(row: dict[str, Any]) -> str:
    name = _escaped(f"{row['subject']}, {row['claimed']}")
    link = f"[{name}]({_page(row['document'])}.qmd#{_dashed(row['claim'])})"
    found = _amount(row["recomputed"], row["unit"])
    return f"| {link} | {_escaped(row['printed'])} | {found} | {_ratio(row['ratio'])} | {row['verdict']} |"


def _stated(row: dict[str, Any]) -> str:
    low, high = row["stated_low"], row["stated_high"]
    if low is not None and high is not None:
        return f"{_amount(low, row['unit'])} to {_amount(high, row['unit'])}"
    if low is not None:
        return f"at least {_amount(low, row['unit'])}"
    if high is not None:
        return f"at most {_amount(high, row['unit'])}"
    return _amount(row["stated"], row["unit"])


def _recomputed(row: dict[str, Any]) -> str:
    if row["recomputed"] is None:
        return ""
    if row["recomputed_low"] is None:
        return f"Recomputed: {_amount(row['recomputed'], row['unit'])}."
    return (
        f"Recomputed: {_amount(row['recomputed_low'], row['unit'])} to {_amount(row['recomputed_high'], row['unit'])}."
    )


def _amount(value: float, unit: str) -> str:
    unit, rest = ("byte", "/d") if unit == "byte/d" else (unit or "1", "")
    row = Quantity("", unit, "", "", "", "", "", None, None, None, "", "", 1.0)
    return _escaped(row.text(value, digits=4)) + rest


def _ratio(value: float) -> str:
    return f"×{value:,.0f}" if value >= 100 else f"×{value:.3g}"


def _count(counts: Any, document: str, verdict: str) -> int:
    return counts.filter((counts["document"] == document) & (counts["verdict"] == verdict))["len"].sum()


def _short(document: dict[str, Any]) -> str:
    """Return what sort of text a document is, from the words in brackets at the end of its title."""
    found = re.search(r"\(([^()]*)\)$", document["title"])
    word = found[1] if found else document["title"]
    return word[0].upper() + word[1:]


def _page(document: str) -> str:
    return f"audit-{_dashed(document)}"


def _source(row: dict[str, Any]) -> str:
    return _linked(row["title"], row["url"])
