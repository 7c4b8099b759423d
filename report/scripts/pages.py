"""Before Quarto renders: write the pages that come from code and data. `factorykit site build` has done so already."""

import os
from pathlib import Path

from factorykit.site.pages import write

if not os.environ.get("FACTORYKIT_PAGES"):
    write(Path.cwd())
