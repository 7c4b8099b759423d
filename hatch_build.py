"""Build hook: writes the script that draws charts and puts the tables into the wheel."""

import importlib.util
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ScriptHook(BuildHookInterface):
    """Builds ``factorykit/widgets/static/factorykit.js`` from Vega's bundle and ``factorykit/charts/runtime/``.

    The same file is the script of the site, of the widget and of JupyterLab's outputs. An editable install reads the
    tables where they are built.
    """

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the script, add it where JupyterLab looks for it, and take the tables along."""
        if self.target_name != "wheel":
            return
        spec = importlib.util.spec_from_file_location("bundle", Path(self.root, "factorykit/charts/bundle.py"))
        if spec is None or spec.loader is None:
            raise RuntimeError("factorykit/charts/bundle.py is missing")
        bundle = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(bundle)
        bundle.page_script()
        widgets = Path(self.root, "factorykit/widgets")
        extension = "share/jupyter/labextensions/factorykit"
        build_data["shared_data"] |= {
            str(bundle.BUILT): f"{extension}/static/factorykit.js",
            str(widgets / "remote_entry.js"): f"{extension}/static/remote_entry.js",
            str(widgets / "labextension.json"): f"{extension}/package.json",
        }
        build_data["artifacts"].append("factorykit/widgets/static/factorykit.js")
        if version != "editable":
            data = Path(self.root, "data")
            tables = [*sorted(data.glob("*.parquet")), *sorted(data.glob("*.json"))]
            build_data["force_include"] |= {str(table): f"factorykit/data/{table.name}" for table in tables}
