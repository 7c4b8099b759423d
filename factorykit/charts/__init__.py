"""Charts: frames and scenarios in, pictures out. One module a topic; labels and units come from the vocabulary.

Loading this module makes Altair show charts through factorykit's own renderer, unless another one was chosen: charts
then draw in JupyterLab and on the site without a network.
"""

from __future__ import annotations

import sys

from factorykit.core.extras import lazy_names, not_installed

try:
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # jsonschema's import of it takes 0.8 s
    import altair as alt
except ModuleNotFoundError as error:
    raise not_installed(error) from None
finally:
    if sys.modules["rfc3987_syntax"] is None:
        del sys.modules["rfc3987_syntax"]

from factorykit.charts.embed import mimebundle
from factorykit.charts.finish import finish as finish
from factorykit.charts.table import table as table

__getattr__, __all__ = lazy_names(__name__, __file__)


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__


alt.renderers.register("factorykit", mimebundle)
if alt.renderers.active == "default":
    alt.renderers.enable("factorykit")
