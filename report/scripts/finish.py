"""After Quarto rendered: finish pages, add those of entities and charts. `factorykit site build` does so itself."""

import os
from pathlib import Path

from factorykit.site.finish import finish
from factorykit.site.sources import load_project

if not os.environ.get("FACTORYKIT_PAGES"):
    here = Path.cwd()
    finish(load_project(here), Path(os.environ["QUARTO_PROJECT_OUTPUT_DIR"]), cache=here / ".cache")
