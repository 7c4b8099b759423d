"""Recipe pages with short questions, code and answers, executed when the site is built."""

from __future__ import annotations

import ast
import contextlib
import html
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from factorykit.core.atomic_io import temporary_folder
from factorykit.core.errors import FactorykitError, SiteError
from factorykit.site.pages.api import reference
from factorykit.site.pages.markdown import Marked, code_block, escaped, front

TEMPORARY: Final = "factorykit-recipes-"
"""Prefix of the temporary folders in which the blocks of a page run."""
PLACE: Final = re.compile(r"\S*/(?=[\w.]+: )")
"""Pattern of local file paths."""
REFUSED: Final = "is refused"
"""Words that mark a question whose answer is an error."""
QUERIES: Final = (
    (
        "Which clusters have the most chips, and how much power?",
        """
fk.sql('''
    select name, accelerators, facility_power_w, power_basis
    from clusters where status = 'existing'
    order by accelerators desc limit 8
''')""",
    ),
    (
        "Which sources state the number of chips of a cluster?",
        """
fk.sql('''
    select value as accelerators, as_of, title as stated_by, locator
    from statements join sources using (source)
    where statements.kind = 'clusters' and thing = 'xai_colossus' and field = 'accelerators' and value is not null
    order by as_of
''').head(8)""",
    ),
    (
        "Which clusters were known in the middle of 2024?",
        """
then = fk.table("clusters", as_of="2024-06").filter(pl.col("accelerators") > 20_000)
then.select("name", "accelerators", "as_of").sort("accelerators", descending=True).head(6).collect()""",
    ),
    (
        "What is the peak of each cluster? A join with its chip.",
        """
fk.sql('''
    select c.name, a.name as chip, c.accelerators,
           c.accelerators * a.peak_16bit_flop_per_s as cluster_peak_flop_per_s
    from clusters c join accelerators a using (accelerator)
    order by cluster_peak_flop_per_s desc limit 6
''')""",
    ),
    (
        "Where does an H100 cost least, on demand?",
        """
fk.sql('''
    select provider, rental_usd_per_accelerator_h, as_of
    from rental_offers where accelerator = 'h100_sxm' and kind = 'on demand'
    order by rental_usd_per_accelerator_h limit 8
''')""",
    ),
    (
        "Where is power clean, and what does it cost?",
        """
fk.sql('''
    select g.name, g.carbon_kg_per_kwh, avg(e.electricity_usd_per_kwh) as electricity_usd_per_kwh
    from country_grids g join electricity e using (country)
    where e.electricity_usd_per_kwh is not null
    group by all order by g.carbon_kg_per_kwh limit 8
''')""",
    ),
    (
        "How much work was each model? A table through a formula.",
        """
models = fk.sql('''
    select name, active_parameters, tokens
    from models where tokens > 1e13 and active_parameters is not null
''')
fk.evaluate(models, "training_flop").sort("training_flop", descending=True).head(8)""",
    ),
)
CHIPS: Final = (
    (
        "A chip of the tables",
        """
h100 = fk.accelerator("h100_sxm")
fk.evaluate({**h100, "accelerators": 16_384}, "cluster_peak_flop_per_s")""",
    ),
    (
        "A chip of your own, like one that is known",
        """
mine = fk.accelerator("mine", like="h100_sxm", peak_flop_per_s="2 PFLOP/s", accelerator_memory_bytes="192 GB",
                      memory_bytes_per_s="6 TB/s", accelerator_power_w="1 kW")
mine.label""",
    ),
    (
        "Its best layouts for a known model",
        """
found = fk.search("llama3_8b", {**mine, "accelerators": 64}, global_batch_size=256)
shown = ["tensor_parallel", "pipeline_parallel", "data_parallel", "micro_batch_size", "step_s", "predicted_mfu"]
found.select(shown).head(5).collect()""",
    ),
    (
        "The same run on it and on an H100",
        """
run = fk.preset("llama_3_1_405b")
changed = {name: mine[name] for name in ("peak_flop_per_s", "accelerator_power_w")}
fk.compare({"H100": run, "mine": run.replace(**changed)}, ["training_days", "facility_power_w", "rental_cost_usd"])""",
    ),
)
MODELS: Final = (
    (
        "A model that is known",
        """
fk.evaluate(fk.architecture("llama3_70b"), ["parameters", "active_parameters"])""",
    ),
    (
        "A model from its `config.json`",
        """
import json
from pathlib import Path

config = {"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
          "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "tie_word_embeddings": False}
folder = Path("my-model")
folder.mkdir()
_ = (folder / "config.json").write_text(json.dumps(config))
model = fk.read_hf_config(folder)
fk.evaluate(model, ["parameters", "active_parameters"])""",
    ),
    (
        "Fields missing from the file, with the source of their defaults",
        """
defaults = fk.assumed(model, "parameters").select("quantity", "value", "source")
defaults.filter(pl.col("source").str.contains("default of model type"))""",
    ),
    (
        "A field that is not understood is refused by name",
        """
_ = (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": "many"}))
fk.read_hf_config(folder)""",
    ),
    (
        "Its days and dollars",
        """
run = {**model, "tokens": "15T", "accelerators": 1024, "accelerator": "h100_sxm"}
fk.evaluate(run, ["wall_days", "rental_cost_usd"], assume=True)""",
    ),
)
STUDIES: Final = (
    (
        "A grid of any size goes to a folder",
        """
folder = "study"
run = {**fk.preset("llama_3_1_405b"), "accelerator": "h100_sxm"}
grid = {"rental_usd_per_accelerator_h": [2 + 0.05 * step for step in range(50)],
        "mfu": [0.3 + 0.004 * step for step in range(50)],
        "pue": [1.1, 1.2, 1.3], "electricity_usd_per_kwh": [0.04, 0.06, 0.08]}
outputs = ["wall_days", "rental_cost_usd", "electricity_cost_usd"]
rows = fk.sweep(run, grid, outputs, out=folder, assume=True)
rows.select(pl.len()).collect()""",
    ),
    (
        "It is a LazyFrame, and a view that SQL can ask",
        """
fk.study(folder).sql('''
    select round(rental_usd_per_accelerator_h) as rental_usd_per_accelerator_h,
           median(rental_cost_usd) as rental_cost_usd
    from study group by 1 order by 1
''')""",
    ),
    (
        "Draws, layouts and whole calls are studies, too",
        """
known = {"tokens": "15.6T", "active_parameters": "405B", "peak_flop_per_s": 989e12, "accelerators": 16384}
drawn = fk.sample(known, {"mfu": fk.Uniform(0.35, 0.45)}, "training_days", n=100_000, out="drawn")
drawn.select(pl.col("training_days").median()).collect()""",
    ),
    (
        "Logs larger than memory are a study, too; new files and lines are added by the same call",
        """
from pathlib import Path

logs = Path("logs")
logs.mkdir()
for node in ("n1", "n2"):
    _ = (logs / f"{node}.csv").write_text(f"at,kind,node\\n2026-03-01,failure,{node}\\n")
log = fk.read_log(logs, out="log_study")
log.scan("events").group_by("node", "kind").len().sort("node").collect()""",
    ),
    (
        "Estimated time and disk of a larger grid",
        """
def paper(rows, cores, bytes_a_row=8, rows_a_core_s=4e6, disk_bytes_s=2e9):
    compute_s, write_s = rows / (cores * rows_a_core_s), rows * bytes_a_row / disk_bytes_s
    return {"rows": f"{rows:.0e}", "cores": cores, "terabytes": rows * bytes_a_row / 1e12,
            "hours to compute": compute_s / 3600, "hours to write": write_s / 3600}

pl.DataFrame([paper(1e8, 2), paper(1e9, 2), paper(1e10, 16), paper(1e11, 256), paper(1e12, 2048)])""",
    ),
)
ELSEWHERE: Final = """\
## On a cluster

Every part is made from its number alone, so workers need nothing of one another: the question is sent once, in some
kilobytes, and rows are never sent. Workers share only the folder. The same script serves a laptop and a cluster:

```python
# study.py
fk.sweep(run, grid, ["wall_days"], out="/shared/study", engine="ray")
```

On Slurm, in an allocation whose nodes see `/shared`:

```bash
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
srun ray symmetric-run --address "$head:6379" --min-nodes "$SLURM_NNODES" -- python study.py
```

On Kubernetes with KubeRay, the workers mount one volume that all may write (`ReadWriteMany`) at `/shared`, and

```bash
ray job submit --address http://raycluster-head-svc:8265 --working-dir . -- python study.py
```

starts the study or resumes it: complete parts are kept. If a worker dies, its present part is lost; if the driver dies,
nothing is lost.

## Where it ends

- **Storage first.** Two results a row take about eight bytes, compressed. Above some hundred billion rows a folder that
  takes 2 GB/s is slower than the workers: ask for fewer outputs.
- **Files next.** A part holds at most 16.8 million numbers: a million million rows of six columns are 360,000 files.
- **Ray last.** A part takes about a second, so that one driver keeps some thousand workers busy; beyond, cut the grid
  by one of its axes into several studies.
"""
PAGES: Final = {
    "python/studies": (
        "Studies: more rows than memory holds",
        "fk.sweep, fk.sample, fk.search, fk.run_cases and fk.read_log into a folder; stopped, resumed and asked.",
        "A study is a folder of Parquet parts. It can be stopped at any moment, and the same call resumes it; "
        "its manifest records the question, the version and the tables. Memory does not grow with rows. "
        "[`fk.study`](api.qmd#fk-study) opens one.",
        STUDIES,
        ELSEWHERE,
    ),
    "python/recipes": (
        "Recipes in SQL",
        "Questions about the tables, each with its query and its answer.",
        "`fk.sql` asks DuckDB over the [tables](/report/data.qmd) and returns a polars DataFrame. It reads only: no "
        "file, network or setting can be reached from a query. The answers were computed when this page was built.",
        QUERIES,
        "",
    ),
    "python/own-chips": (
        "A chip of your own",
        "fk.accelerator: a chip of the tables, or a hypothetical one, as a part of a scenario.",
        "Missing values are those of the chip named by `like`, or of the [table of chips](/tables/accelerators.html). "
        "[`fk.accelerator`](api.qmd#fk-accelerator) has the arguments.",
        CHIPS,
        "",
    ),
    "python/own-models": (
        "A model of your own",
        "fk.read_hf_config and fk.architecture: a model from its config.json, or a known model.",
        "A Hugging Face `config.json` determines parameters and FLOP. Missing fields take the default of "
        "the model type, which is listed; unknown fields are refused by name. "
        "[`fk.read_hf_config`](api.qmd#fk-read-hf-config) has the arguments.",
        MODELS,
        "",
    ),
}


def recipe_pages() -> dict[str, str]:
    """Return the recipe pages by name."""
    return {
        name: "\n\n".join([front(title, about), before, *_answered(blocks), after]).rstrip() + "\n"
        for name, (title, about, before, blocks, after) in PAGES.items()
    }


def _answered(blocks: Sequence[tuple[str, str]]) -> list[Marked]:
    """Return questions with code and answers; a block has access to the names and files of earlier blocks."""
    import polars as pl

    import factorykit as fk

    known: dict[str, Any] = {"fk": fk, "pl": pl}
    parts = []
    with temporary_folder(Path(tempfile.gettempdir()), TEMPORARY) as here, contextlib.chdir(here):
        for question, source in blocks:
            try:
                answer = _run(source, known)
            except FactorykitError as error:
                if REFUSED not in question:
                    raise SiteError(f"recipes: {question} {error}") from error
                answer = error
            answered = [code_block(source.strip(), "python"), _shown(answer), _called(source)]
            parts += [Marked(f"## {escaped(question)}"), Marked("::: {.cell}"), *answered, Marked(":::")]
    return parts


def _called(source: str) -> Marked:
    """Return links to the API reference for the calls of a block."""
    names = dict.fromkeys(re.findall(r"\bfk\.(\w+)", source))
    links = ", ".join(map(reference, names))
    return Marked(f"::: {{.fk-meta}}\nIn the reference: {links}.\n:::")


def _run(source: str, known: dict[str, Any]) -> Any:
    """Run a block; return the value of its last expression."""
    *before, last = ast.parse(source).body
    exec(compile(ast.Module(before, []), "<recipe>", "exec"), known)
    return eval(compile(ast.Expression(last.value), "<recipe>", "eval"), known)  # type: ignore[attr-defined]


def _shown(value: Any) -> Marked:
    import polars as pl

    from factorykit.charts.table import table

    if isinstance(value, FactorykitError):
        return code_block(f"{type(value).__name__}: {PLACE.sub('', str(value))}")
    made = table(value) if isinstance(value, pl.DataFrame) else value
    if hasattr(made, "_repr_html_"):
        return Marked(f"```{{=html}}\n{made._repr_html_()}\n```")
    return Marked(f"```{{=html}}\n<pre><code>{html.escape(str(value))}</code></pre>\n```")
