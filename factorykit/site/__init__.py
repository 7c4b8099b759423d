"""Static site generator: execution of notebooks, rendering, checks, atomic publication and a local server."""

from __future__ import annotations

import sys

from factorykit.core.extras import not_installed

try:
    import yaml  # noqa: F401

    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # jsonschema's import of it takes 0.8 s
except ModuleNotFoundError as error:
    raise not_installed(error) from None

from factorykit.site.build import Build, build
from factorykit.site.checks import check
from factorykit.site.notebooks import execute
from factorykit.site.serve import serve

__all__ = ["Build", "build", "check", "execute", "serve"]
