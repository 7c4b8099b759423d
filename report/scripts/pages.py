"""Before Quarto renders: write the pages that come from code and data. `factorykit site build` has done so already."""

import os
import sys
from pathlib import Path

try:
    from factorykit.site.pages import write
except ModuleNotFoundError as error:
    sys.exit(
        f"{error.name} is missing in {sys.executable}: run `make setup` once, then `source .venv/bin/activate`, "
        "or name .venv/bin/python in QUARTO_PYTHON"
    )

if not os.environ.get("FACTORYKIT_PAGES"):
    write(Path.cwd())
