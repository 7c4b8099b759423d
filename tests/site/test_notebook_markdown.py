"""A notebook's plain Markdown becomes the marks that number, refer and cite, for either renderer."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from made_site import code, markdown

from factorykit.site import notebook_markdown

ROOT = Path(__file__).parents[2]
CELLS = [
    markdown("# Why?\n\nSee [Figure 2](#cell-id=fig-rate) and [Equation 7](#cell-id=eq-rate)."),
    {**code("draw()"), "id": "fig-rate"},
    markdown('**Figure 9.** The "rate", as measured.'),
    {
        **markdown("$$\nx = 1 \\tag{4}\n$$\n\nas told " + notebook_markdown.cite("daly2006", "young1974") + "."),
        "id": "eq-rate",
    },
    {**code("assert True"), "metadata": {"tags": ["checks"]}},
]


def test_captions_references_equations_and_works_get_their_marks() -> None:
    made = ["".join(cell["source"]) for cell in notebook_markdown.quarto({"cells": CELLS})["cells"]]
    assert made[0] == "# Why?\n\nSee @fig-rate and @eq-rate."
    assert made[1] == '#| label: fig-rate\n#| fig-cap: "The \\"rate\\", as measured."\ndraw()'
    assert made[2] == ""
    assert made[3] == "$$\nx = 1\n$$ {#eq-rate}\n\nas told [@daly2006; @young1974]."
    assert made[4] == "#| code-summary: Checks\nassert True"


def test_figures_and_equations_are_numbered_in_order() -> None:
    made = ["".join(cell["source"]) for cell in notebook_markdown.numbered(CELLS)]
    assert "[Figure 1](#cell-id=fig-rate) and [Equation 1](#cell-id=eq-rate)" in made[0]
    assert made[2].startswith("**Figure 1.** ")
    assert "\\tag{1}" in made[3]


def test_the_filter_of_quarto_gives_the_same_result() -> None:
    notebook = json.dumps({"cells": CELLS, "metadata": {}})
    command = [sys.executable, str(ROOT / "report" / "scripts" / "notebook.py")]
    ran = subprocess.run(command, input=notebook, capture_output=True, text=True, check=True, cwd=ROOT)
    assert json.loads(ran.stdout) == notebook_markdown.quarto(json.loads(notebook))
