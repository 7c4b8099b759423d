"""While Quarto reads a notebook: its captions, references and citations as Quarto's own marks."""

import json
import sys

from factorykit.site.notebook_markdown import quarto

json.dump(quarto(json.load(sys.stdin)), sys.stdout)
