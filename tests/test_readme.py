"""The commands of the README run as printed; those that need a network are reduced to their local part."""

from __future__ import annotations

import asyncio
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BLOCKS = re.findall(r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
LINES = [shlex.split(line, comments=True) for block in BLOCKS for line in block.splitlines()]


@pytest.mark.parametrize(
    "line", [line for line in LINES if line[0] == "factorykit"], ids=lambda line: " ".join(line[:2])
)
def test_a_command_of_the_readme_succeeds(line: list[str], tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "events.csv").write_text("at,kind,node\n2026-03-01,failure,n1\n2026-03-04,failure,n2\n")
    command = [sys.executable, "-m", "factorykit.cli", *line[1:]]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip()


@pytest.mark.parametrize("line", [line for line in LINES if line[0] == "make"], ids=lambda line: line[1])
def test_a_target_of_the_readme_exists(line: list[str]) -> None:
    subprocess.run(["make", "--dry-run", line[1]], cwd=ROOT, capture_output=True, check=True)


def test_the_server_for_agents_answers_on_its_standard_input() -> None:
    from mcp import Client, StdioServerParameters, stdio_client

    ((*_, program, verb),) = (line for line in LINES if line[0] == "uvx")
    assert (program, verb) == ("factorykit", "mcp")
    started = StdioServerParameters(command=sys.executable, args=["-m", "factorykit.cli", verb])

    async def asked() -> dict[str, float]:
        async with Client(stdio_client(started)) as client:
            inputs = {"active_parameters": "405B", "tokens": "15.6T"}
            answer = await client.call_tool("evaluate", {"outputs": ["training_flop"], "inputs": inputs})
            return answer.structured_content["answer"]["training_flop"]

    with ThreadPoolExecutor(1) as thread:  # an event loop may run in this one
        value = thread.submit(asyncio.run, asked()).result()["value"]
    assert value == pytest.approx(6 * 405e9 * 15.6e12)
