"""Print the unit tests of the modules that differ from main, for ``make quick``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
ALWAYS = ("tests/test_structure.py", "tests/test_language.py")


def git(*arguments: str) -> list[str]:
    """Return the lines that a git command prints."""
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def tests_of(path: Path) -> list[str]:
    """Return the tests of a file: its doctests, and the test module of its name or else the tests of its package."""
    if path.parts[0] == "tests":
        return [str(path)] if path.name.startswith("test_") else []
    if path.suffix not in (".py", ".csv") or path.parts[0] != "factorykit":
        return []
    inside = Path("tests", *path.parts[1:])
    module = inside.with_name(f"test_{inside.stem}.py")
    folders = [folder for folder in inside.parents if (ROOT / folder).is_dir() and folder != Path("tests")]
    found = [module] if (ROOT / module).is_file() else folders[:1]
    return [str(each) for each in [*found, *([path] if path.suffix == ".py" else [])]]


def main() -> None:
    """Print the tests, separated by spaces."""
    (base,) = git("merge-base", "HEAD", "main")
    names = [*git("diff", "--name-only", base), *git("ls-files", "--others", "--exclude-standard")]
    changed = [path for path in map(Path, names) if (ROOT / path).is_file()]
    found = dict.fromkeys((*ALWAYS, *(test for path in changed for test in tests_of(path))))
    sys.stdout.write(" ".join(found) + "\n")


if __name__ == "__main__":
    main()
