"""The site: notebooks executed, pages rendered and checked, the folder published whole and shown on this machine."""

from __future__ import annotations

from factorykit.borders import not_installed

try:
    import yaml  # noqa: F401
except ModuleNotFoundError as error:
    raise not_installed(error) from None

from factorykit.site.build import Build, build
from factorykit.site.checks import check
from factorykit.site.notebooks import execute
from factorykit.site.serve import serve

__all__ = ["Build", "build", "check", "execute", "serve"]
