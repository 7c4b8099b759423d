"""Description of the data package in Croissant, the metadata format of machine-learning data sets.

``croissant_context.json`` is the JSON-LD context of version 1.0 of the format.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

CONTEXT: Final = Path(__file__).with_name("croissant_context.json")
TYPES: Final = {"number": "sc:Float", "string": "sc:Text"}


def croissant(package: Mapping[str, Any], released: str) -> dict[str, Any]:
    """Return the Croissant description of a data package: its files, and for each table a record set of typed fields.

    Units are part of the descriptions, since Croissant has no field for them.
    """
    resources = package["resources"]
    licence = package["licenses"][0]
    return {
        "@context": json.loads(CONTEXT.read_text(encoding="utf-8")),
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": package["name"],
        "description": f"{package['title']}. {package['description']}",
        "version": package["version"],
        "license": licence["path"],
        "datePublished": released,
        "creator": {"@type": "sc:Organization", "name": "factorykit maintainers"},
        "citeAs": f"factorykit maintainers ({released[:4]}). {package['title']}. Version {package['version']}.",
        "distribution": [_file(resource) for resource in resources],
        "recordSet": [_records(resource) for resource in resources],
    }


def _file(resource: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": resource["path"],
        "name": resource["path"],
        "description": resource["title"],
        "contentUrl": resource["path"],
        "contentSize": f"{resource['size_bytes']} B",
        "encodingFormat": "application/x-parquet",
        "sha256": resource["hash"].removeprefix("sha256:"),
    }


def _records(resource: Mapping[str, Any]) -> dict[str, Any]:
    name, schema = resource["name"], resource["schema"]
    foreign = {key["fields"][0]: key["reference"] for key in schema.get("foreignKeys", ())}
    fields = []
    for described in schema["fields"]:
        unit = described.get("unit")
        field: dict[str, Any] = {
            "@type": "cr:Field",
            "@id": f"{name}/{described['name']}",
            "name": f"{name}/{described['name']}",
            "description": f"{described['description']} [{unit}]" if unit and unit != "1" else described["description"],
            "dataType": TYPES[described["type"]],
            "source": {"fileObject": {"@id": resource["path"]}, "extract": {"column": described["name"]}},
        }
        if other := foreign.get(described["name"]):
            field["references"] = {"field": {"@id": f"{other['resource'] or name}/{other['fields'][0]}"}}
        fields.append(field)
    keys = [{"@id": f"{name}/{key}"} for key in schema["primaryKey"]]
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": f"{resource['title']}. {resource['description']}",
        **({"key": keys[0] if len(keys) == 1 else keys} if keys else {}),
        "field": fields,
    }
