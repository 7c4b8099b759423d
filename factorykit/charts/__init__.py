"""Charts: frames and scenarios in, pictures out. One module a topic; labels and units come from the vocabulary.

Loading this module makes Altair show charts through factorykit's own renderer, unless another one was chosen: charts
then draw in JupyterLab and on the site without a network.
"""

from __future__ import annotations

import sys

from factorykit.core.extras import not_installed, public_names

try:
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # jsonschema's import of it takes 0.8 s
    import altair as alt
except ModuleNotFoundError as error:
    raise not_installed(error) from None
finally:
    if sys.modules["rfc3987_syntax"] is None:
        del sys.modules["rfc3987_syntax"]

from factorykit.charts import (
    audit,
    checkpoint,
    compute,
    cost,
    diagnosis,
    energy,
    fleet,
    history,
    loader,
    network,
    operations,
    performance,
    plan,
    post_training,
    reliability,
    serving,
    sites,
    uncertainty,
)
from factorykit.charts.bundle import page_script
from factorykit.charts.embed import mimebundle, renderer, svg
from factorykit.charts.finish import finish
from factorykit.charts.live import Case, Live
from factorykit.charts.table import table

__all__ = [
    "Case",
    "Live",
    "audit",
    "checkpoint",
    "compute",
    "cost",
    "diagnosis",
    "energy",
    "finish",
    "fleet",
    "history",
    "loader",
    "mimebundle",
    "network",
    "operations",
    "page_script",
    "performance",
    "plan",
    "post_training",
    "reliability",
    "serving",
    "sites",
    "svg",
    "table",
    "uncertainty",
]

__dir__ = public_names(__name__)

alt.renderers.register("factorykit", renderer)
if alt.renderers.active == "default":
    alt.renderers.enable("factorykit")
