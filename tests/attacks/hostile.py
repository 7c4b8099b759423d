"""A project whose tables, words and charts are hostile, rendered; the tests beside run it in a process of its own."""

from __future__ import annotations

import csv
import hashlib
import importlib
import itertools
import json
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import polars as pl
import yaml

ROOT: Final = Path(__file__).parents[2]
PAYLOADS: Final = (
    '<svg onload=hit()>', '<svg/onload=hit()//', '</title></summary></td></textarea></style><script>hit()</script>',
    '</script><script>hit()</script>', '"><img src=x onerror="hit()">', "'><img src=x onerror='hit()'>",
    '" autofocus onfocus=hit() tabindex=1 x="', "<iframe srcdoc='<script>parent.hit()</script>'></iframe>",
    '<iframe src=javascript:parent.hit()></iframe>',
    '<object data=javascript:hit()></object><embed src=javascript:hit()>',
    '<math><mtext><table><mglyph><style><img src=x onerror=hit()>',
    '<noscript><p title="</noscript><img src=x onerror=hit()>">',
    "<base href=//evil.example/><meta http-equiv=refresh content='0;url=javascript:hit()'>",
    '<form action=javascript:hit()><button autofocus>x</button></form>', '<details open ontoggle=hit()>x</details>',
    "<style>@import 'javascript:hit()';body{background:url(javascript:hit())}</style>",
    '<link rel=stylesheet href=javascript:hit()>', '<!--<script>', '--><svg onload=hit()>',
    '<!--factorykit--><!--output-0--><svg onload=hit()>', ']]><svg onload=hit()>',
    '&lt;script&gt;hit()&lt;/script&gt; &#60;svg onload=hit()>', '%3Csvg onload=hit()%3E \\u003csvg onload=hit()>',
    '`<svg onload=hit()>`{=html}', '``` \n\n```{=html}\n<script>hit()</script>\n```',
    'a\n\n<script>hit()</script>\n\n:::', '| x |\n|---|\n| <svg onload=hit()> |',
    '[x](javascript:hit()) ![x](javascript:hit())', '<javascript:hit()>', ']{onclick="hit()"} x} )<svg onload=hit()>',
    '$<svg onload=hit()>$ \\href{javascript:hit()}{x}', '---\ntitle: <svg onload=hit()>\n---',
    '{{< embed ../notebooks/01-made.ipynb >}}', '[@doe2020]{=html}',
    '{{ hit() }} {% print(hit()) %} ${hit()} #{hit()} <%= hit() %>', 'javascript:hit()',
    'data:text/html,<script>hit()</script>', "');hit();//", '";hit();//', '`+hit()+`', '\u2028hit()',
    '=HYPERLINK("javascript:hit()")', 'constructor', '__proto__',
)  # fmt: skip
ADDRESSES: Final = (
    'javascript:hit()', 'JaVaScRiPt:hit()', ' javascript:hit()', 'data:text/html,<script>hit()</script>',
    'vbscript:hit()', 'https://x.example/ onclick=hit()', 'https://x.example/"onclick="hit()',
    'https://x.example/) <script>hit()</script>',
)  # fmt: skip
MEANT: Final = {
    "quantity", "recipe", "recipe_as_written", "recipe_corrected", "inputs", "outputs", "computed_by", "kind", "unit",
    "printed_unit", "other_unit", "framework", "precision", "recompute", "sharding", "hardware", "study", "metric",
    "record", "month", "released", "release_month", "preferred", "like", "grows_with", "asked", "table", "column",
    "row", "value", "condition", "decision", "branch", "case", "year", "category", "cause", "system", "level",
    "component", "config", "first", "second", "rental_id", "flags", "confidence", "group", "cuda_graphs",
    "framework_version", "flops_basis", "energy_basis", "cost_basis", "subject", "entity", "qualifier", "of",
    "technology", "tables", "also_called", "maker", "left_out", "how", "backend", "model_path", "mode",
    "gemm_quant_mode", "moe_quant_mode", "number_format", "engine", "named", "target",
}  # fmt: skip
"""Columns whose words the model reads; unknown words are refused."""
MADE: Final = "notebooks/07-checkpoints.ipynb"
"""The notebook that the front page takes a chart from."""
ENTITIES: Final = 4
"""Pages of each kind of entity, where only some are tested."""


def soiled(folder: Path) -> int:
    """Copy the tables, soil every text that is no key and no word of the model, and return how many cells were."""
    from factorykit.data.tables import PLAIN, with_checksum

    texts, addresses = itertools.cycle(PAYLOADS), itertools.cycle(ADDRESSES)
    package = json.loads((ROOT / "data/datapackage.json").read_text("utf-8"))
    folder.mkdir(parents=True)
    cells = 0
    for resource in package["resources"]:
        frame, schema = pl.read_parquet(ROOT / "data" / resource["path"]), resource["schema"]
        held = {*schema.get("primaryKey", ()), *MEANT, *({"name"} if resource["name"] == "serving_constants" else ())}
        for each in schema.get("foreignKeys", ()):
            held |= {each["fields"]} if isinstance(each["fields"], str) else {*each["fields"]}
        for field in schema["fields"]:
            name, pattern = field["name"], field.get("constraints", {}).get("pattern", "")
            if frame.schema[name] != pl.String or name in held or (pattern and "http" not in pattern):
                continue
            if "http" in pattern:
                frame = frame.with_columns(
                    pl.Series(name, [cell and next(addresses) for cell in frame[name]], pl.String)
                )
            else:
                dirty = [None if cell is None else f"{cell} {next(texts)}" for cell in frame[name]]
                frame = frame.with_columns(pl.Series(name, dirty, pl.String))
            cells += frame[name].count()
        for entry in (resource, *schema["fields"], *resource.get("sources", ()), *resource.get("licenses", ())):
            entry |= {name: f"{entry[name]} {next(texts)}" for name in ("title", "description") if entry.get(name)}
            entry |= {"path": next(addresses)} if entry.get("path") and entry is not resource else {}
        frame.write_parquet(folder / resource["path"])
        content = (folder / resource["path"]).read_bytes()
        resource |= {"hash": f"sha256:{hashlib.sha256(content).hexdigest()}", "rows": frame.height}
        resource["size_bytes"] = len(content)
        if resource["name"] in PLAIN:
            plain = with_checksum({"parquet": resource["hash"], "rows": frame.to_dicts()})
            (folder / f"{resource['name']}.json").write_bytes(plain)
    for entry in package["subjects"]:
        entry["description"] = f"{entry['description']} {next(texts)}"
    (folder / "datapackage.json").write_bytes(with_checksum({key: package[key] for key in package if key != "hash"}))
    return cells


def soiled_words(file: Path) -> int:
    """Write a vocabulary whose labels, meanings and symbols are hostile."""
    texts = itertools.cycle(PAYLOADS)
    with (ROOT / "factorykit/core/quantities.csv").open(encoding="utf-8") as source:
        rows = list(csv.DictReader(source))
    for row in rows:
        row |= {
            name: f"{row[name]} {next(texts)}".replace("\n", " ").replace("\u2028", " ")
            for name in ("label", "meaning")
        }
        row["symbol"] = row["symbol"] and f"{row['symbol']}$<svg onload=hit()>"
    with file.open("w", encoding="utf-8", newline="") as target:
        writer = csv.DictWriter(target, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    quantities = importlib.import_module("factorykit.core.vocabulary")
    lines = quantities._lines
    quantities._lines = lambda name: file.read_text("utf-8").splitlines() if name == file.name else lines(name)
    quantities.vocabulary.cache_clear()
    return 3 * len(rows)


def outputs() -> Iterator[dict[str, str]]:
    """Yield outputs of a notebook with hostile words: charts with and without sliders, tables, a scenario, a chain."""
    import altair as alt

    import factorykit as fk
    from factorykit.charts import checkpoint, finish, table
    from factorykit.charts.embed import mimebundle

    run = fk.preset("llama_3_1_405b")
    yield checkpoint.goodput_by_interval(
        {f"{text} {n}": run for n, text in enumerate(PAYLOADS[:6])}
    )._repr_mimebundle_()
    frame = pl.DataFrame({"word <svg onload=hit()>": [*PAYLOADS], "n": [float(n) for n in range(len(PAYLOADS))]})
    named = frame.rename({frame.columns[0]: "word"})
    marks = alt.Chart(named).mark_bar().encode(x="n:Q", y=alt.Y("word:N", title=PAYLOADS[4]), tooltip=["word:N", "n:Q"])
    chart = finish(
        marks.properties(height=600), PAYLOADS[3], source=PAYLOADS[0], description=PAYLOADS[4], subtitle=PAYLOADS[2]
    )
    yield mimebundle(chart.to_dict())
    for output in (table(frame), run, fk.explain(run, "wall_days")):
        yield {"text/html": output._repr_html_(), "text/plain": "shown"}


def notebook() -> str:
    """Return a notebook that holds these outputs, the charts as figures."""
    cells = [{"cell_type": "markdown", "id": "c0", "metadata": {}, "source": "# Made up"}]
    for n, data in enumerate(outputs(), 1):
        label = (
            [f"#| label: fig-{'goodput' if n == 1 else n}\n", f"#| fig-cap: Chart {n}\n"]
            if "image/svg+xml" in data
            else []
        )
        output = {"output_type": "display_data", "metadata": {}, "data": data}
        cells.append({"cell_type": "code", "id": f"c{n}", "metadata": {}, "source": [*label, f"show({n})"]}
                     | {"execution_count": n, "outputs": [output]})  # fmt: skip
    about = {"factorykit": {"finding": PAYLOADS[0], "group": "run"}}
    return json.dumps({"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5})


def render(folder: Path, requested: str = "") -> dict[str, int]:
    """Render the hostile project into ``folder/site`` by the steps of a build; return the counts of pages and cells.

    ``requested`` is ``whole``, ``few`` for some pages of each template, or empty for some pages of each kind.
    """
    whole, few = requested == "whole", requested == "few"
    os.environ["FACTORYKIT_DATA"] = str(folder / "stage/data")
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # as a build does: two seconds
    stage, out = folder / "stage", folder / "site"
    tried = {"cells": soiled(stage / "data")}
    for name in ("_quarto.yml", "index.qmd", "plan.qmd", "serve.qmd", "404.qmd", "factorykit/formulas/references.bib"):
        (stage / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, stage / name)
    shutil.copytree(ROOT / "report", stage / "report", ignore=shutil.ignore_patterns(".*", "downloads", "*.js"))
    tried["words"] = soiled_words(folder / "quantities.csv")

    from factorykit.site import checks, entity_pages, finish, pages, renderer
    from factorykit.site.sources import load_project

    if not whole:
        all_entities = entity_pages._entities
        entity_pages._entities = lambda package, kind: itertools.islice(
            all_entities(package, kind), 1 if few else ENTITIES
        )
        entity_pages._measured = entity_pages._served = lambda _: {}  # need every measured row predicted
        pages.serving.script = str  # no page of it is rendered

    if few:
        pages.recipe_pages, pages.commands_page = dict, str
        finish.open_data.add = lambda *_: None  # JSON, which no page shows
        browsers = entity_pages.browsers
        entity_pages.browsers = lambda package, out, words: browsers(
            replace(package, tables=dict([*package.tables.items()][:2])), out, words
        )
    (stage / "notebooks").mkdir()
    (stage / MADE).write_text(notebook(), "utf-8")
    pages.write(stage)
    config = yaml.safe_load((stage / "_quarto.yml").read_text("utf-8"))
    if not whole:
        printed = FEW if few else SOME
        kept = (
            "index",
            "plan",
            *(() if few else ("404",)),
            MADE.removesuffix(".ipynb"),
            *(f"report/{name}" for name in printed),
        )
        config["project"]["render"] = [f"{name}.{'ipynb' if name in MADE else 'qmd'}" for name in kept]
    (stage / "_quarto.yml").write_text(yaml.safe_dump(config, sort_keys=False), "utf-8")
    project = load_project(stage)
    renderer.render(stage, out)
    finish.finish(project, out, stage)
    if whole:
        refused = [str(found) for found in checks.rendered(out)[1] if "olicy" in found.what]
        assert not refused, refused
    return tried | {"pages": len([*out.rglob("*.html")])}


SOME: Final = (
    "methods", "methods/checkpoint", "vocabulary", "data", "data/equipment", "audit/seed-001", "python/recipes",
)  # fmt: skip
FEW: Final = ("methods-checkpoint", "audit-seed-001")
"""Printed pages of each kind, and those that most is printed in."""

if __name__ == "__main__":
    sys.stdout.write(json.dumps(render(*map(Path, sys.argv[1:2]), *sys.argv[2:])))
