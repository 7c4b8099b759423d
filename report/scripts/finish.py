"""After Quarto rendered: take out scripts of other hosts and set frames as tables."""

import os
from pathlib import Path

from factorykit.site.finish import finish
from factorykit.site.sources import load_project

finish(load_project(Path.cwd()), Path(os.environ["QUARTO_PROJECT_OUTPUT_DIR"]))
