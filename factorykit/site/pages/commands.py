"""Page of the command line: each command with its arguments, an example, and the output of the example."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from factorykit.core.errors import SiteError
from factorykit.core.text_io import package_rows
from factorykit.site.pages.markdown import code, code_block, dashed, escaped, front, heading, table

SITE: Final = Path(__file__).parents[1]
MAX_LINES: Final = 12
PROGRAM: Final = """
import contextlib, io, json, shlex, sys
from factorykit.cli import main
printed, status = {}, 0
for line in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
        status = main(shlex.split(line)[1:])
    if status:
        sys.exit(line)
    printed[line] = out.getvalue()
json.dump(printed, sys.stdout)
"""
"""Runs the lines of a JSON list in one process, and prints a JSON object with what each prints."""


def commands_page() -> str:
    """Return the page, with outputs computed now."""
    examples = {row["command"]: row for row in package_rows(SITE / "recipes" / "commands.csv")}
    asked = [f"factorykit {name} --help" for name in examples]
    asked += [row["example"] for row in examples.values() if row["runs"]]
    command = [sys.executable, "-P", "-W", "ignore", "-c", PROGRAM]
    ran = subprocess.run(command, input=json.dumps(asked), capture_output=True, encoding="utf-8", check=False)
    if ran.returncode:
        raise SiteError(f"an example of the command line fails: {ran.stderr.strip()}")
    printed, arguments = json.loads(ran.stdout), package_rows(SITE.parent / "commands.csv")
    parts = [
        front("Command line", "Commands, arguments and examples of `factorykit`.", keywords="CLI | terminal | shell"),
        "The command line has a command for each of the main [Python functions](api.qmd). `--json` prints every result "
        "as JSON. Numbers take units: `15T`, `500GB/s`, `30min`; without one they are in seconds, watts, bytes, FLOP, "
        "USD or fractions. The exit status is 0 for success, 1 for a failed check and 2 for invalid use.",
    ]
    for name, example in examples.items():
        rows = (row for row in arguments if name in row["commands"].split(", "))
        ordered = sorted(rows, key=lambda row: row["argument"][0] == "-")
        cells = [(code(_argument(row)), _text(row["help"])) for row in ordered]
        parts += [heading(f"factorykit {name}", dashed(name.replace(" ", "-")))]
        parts += [escaped(_text(printed[f"factorykit {name} --help"].split("\n\n")[1]))]
        parts += [table([("Argument", "-" * 30), ("Meaning", "-" * 70)], cells)] if cells else []
        parts += [code_block(example["example"], "sh")]
        if output := printed.get(example["example"], "").splitlines():
            parts += [code_block("\n".join([*output[:MAX_LINES], *["…"] * (len(output) > MAX_LINES)]), "text")]
    return "\n\n".join(parts) + "\n"


def _text(words: str) -> str:
    return re.sub(r"'[^']+'|--[a-z][\w-]*", r"`\g<0>`", words)


def _argument(row: dict[str, str]) -> str:
    """Return an argument as it is written: an option with its value, or a value, in brackets if it is optional."""
    name = row["argument"].rstrip("?*+").replace(" ", ", ")
    if name.startswith("-"):
        return f"{name} {row['value'] or row['kind'] * ('|' in row['kind'])}".strip()
    return f"[{row['value'] or name}]" if row["argument"][-1] in "?*" else row["value"] or name
