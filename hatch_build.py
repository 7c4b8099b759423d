"""Build hooks: the addresses of the project, the script that draws charts, and the tables in the wheel."""

import hashlib
import importlib.util
import json
import os
import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface


class AddressHook(MetadataHookInterface):
    """Writes the addresses of the project; the release workflow says where its repository is."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Derive all addresses from ``FACTORYKIT_REPOSITORY``; a package built without it has none."""
        if repository := os.environ.get("FACTORYKIT_REPOSITORY", "").rstrip("/"):
            owner, name = repository.split("/")[-2:]
            metadata["urls"] = {
                "Documentation": f"https://{owner}.github.io/{name}/latest/",
                "Source": repository,
                "Issues": f"{repository}/issues",
                "Changelog": f"{repository}/blob/main/CHANGELOG.md",
            }


class ScriptHook(BuildHookInterface):
    """Builds ``factorykit/widgets/static/factorykit.js`` from Vega's bundle and ``factorykit/charts/runtime/``.

    The same file is the script of the site, of the widget and of JupyterLab's outputs. An editable install reads the
    tables from the repository.
    """

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the script, install it for JupyterLab, and include the tables."""
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
        build_data["sbom_files"].append(self._sbom(f"{bundle.VEGA_LITE}.{bundle.PATCH}"))
        if version != "editable":
            data = Path(self.root, "data")
            tables = [*sorted(data.glob("*.parquet")), *sorted(data.glob("*.json"))]
            build_data["force_include"] |= {str(table): f"factorykit/data/tables/{table.name}" for table in tables}
            hashes = Path(self.root, ".cache", "notebooks.sha256")
            notebooks = sorted(Path(self.root, "notebooks").glob("*.ipynb"))
            hashes.write_text("\n".join(hashlib.sha256(file.read_bytes()).hexdigest() for file in notebooks), "utf-8")
            build_data["force_include"][str(hashes)] = "factorykit/widgets/static/notebooks.sha256"
            for file in notebooks:
                build_data["force_include"][str(self._without_outputs(file))] = f"factorykit/notebooks/{file.name}"

    def _without_outputs(self, file: Path) -> Path:
        """Write a notebook without its outputs, which are nine tenths of it, and return the path."""
        notebook = json.loads(file.read_text("utf-8"))
        for cell in notebook["cells"]:
            cell |= {"outputs": [], "execution_count": None} if cell["cell_type"] == "code" else {}
        place = Path(self.root, ".cache", "notebooks", file.name)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n", "utf-8")
        return place

    def _sbom(self, vega_lite: str) -> str:
        """Write the bundled packages and those it was tested with as CycloneDX (PEP 770), and return the path."""
        import vl_convert

        metadata = self.metadata.core
        bundled = [("npm", "vega", vl_convert.get_vega_version()), ("npm", "vega-lite", vega_lite)]
        lock = Path(self.root, "requirements.lock").read_text("utf-8")
        tested = [("pypi", *found) for found in re.findall(r"^([\w.-]+)==([\w.]+)", lock, re.MULTILINE)]
        document = {
            "bomFormat": "CycloneDX",
            "specVersion": "1.6",
            "version": 1,
            "metadata": {"component": _component("pypi", metadata.name, self.metadata.version, "application")},
            "components": [
                *(_component(*each) | {"scope": "required"} for each in bundled),
                *(_component(*each) | {"scope": "optional"} for each in tested),
            ],
        }
        place = Path(self.root, ".cache", "factorykit.cdx.json")
        place.parent.mkdir(exist_ok=True)
        place.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
        return str(place)


def _component(kind: str, name: str, version: str, component_type: str = "library") -> dict[str, str]:
    """Return a package as a CycloneDX component."""
    address = f"pkg:{kind}/{name}@{version}"
    return {"type": component_type, "bom-ref": address, "name": name, "version": version, "purl": address}
