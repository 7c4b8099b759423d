"""Literal types of the names in the vocabulary and the tables, for completion in editors."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from factorykit.core.atomic_io import write_file
from factorykit.core.vocabulary import vocabulary
from factorykit.data.tables import data_folder, resources, table

HEAD: Final = '''"""Names that editors complete; ``factorykit data build`` writes them."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypedDict
'''

KEYWORDS: Final = '''
class Quantities(TypedDict, total=False):
    """Quantities as keyword arguments."""

'''


def module() -> str:
    """Return the text of ``factorykit/core/_names.pyi`` for the vocabulary and the tables as they are."""
    keys = {name: table(f"{name}s").collect()[name] for name in ("accelerator", "architecture", "preset")}
    literals = [
        _literal("QuantityName", vocabulary()),
        _literal("TableName", resources()),
        _literal("AcceleratorName", keys["accelerator"]),
        _literal("ArchitectureName", keys["architecture"]),
        _literal("PresetName", keys["preset"].unique(maintain_order=True)),
    ]
    fields = "".join(f"    {name}: Any\n" for name in vocabulary())
    return f"{HEAD}\n{''.join(literals)}{KEYWORDS}{fields}"


def write() -> bool:
    """Write ``factorykit/core/_names.pyi`` of a checkout where it would change; return whether it did."""
    package = Path(__file__).parents[1]
    path, text = package / "core" / "_names.pyi", module()
    if data_folder() != package.parent / "data" or path.read_text(encoding="utf-8") == text:
        return False
    write_file(path, text)
    return True


def _literal(name: str, words: Iterable[str]) -> str:
    return f"{name}: TypeAlias = Literal[\n" + "".join(f'    "{word}",\n' for word in words) + "]\n"
