"""The script of the charts: valid modules, and their bundle into one file."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from factorykit.charts import bundle

TESTS = Path(__file__).with_name("runtime")
NAMED = re.compile(r"^(?:export )?(?:async )?(?:function|const|let|class) (\w+)", re.MULTILINE)


@pytest.mark.parametrize("file", sorted(TESTS.glob("*.test.mjs")), ids=lambda file: file.name)
def test_the_modules_pass_their_own_tests(node: str, file: Path):
    ran = subprocess.run(
        [node, "--test", "--test-reporter=tap", str(file)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout
    assert "# pass 0" not in ran.stdout


def test_the_bundled_modules_are_one_script(node: str, tmp_path: Path):
    script = tmp_path / "runtime.cjs"
    script.write_text(bundle.runtime(), encoding="utf-8")
    ran = subprocess.run([node, "--check", str(script)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_bundling_leaves_no_import_and_no_name_twice():
    text = bundle.runtime()
    assert not re.search(r"^\s*(?:import|export)\b", text, re.MULTILINE)
    assert [name for name, count in Counter(NAMED.findall(text)).items() if count > 1] == []


def test_each_module_comes_after_its_imports():
    text = bundle.runtime()
    for user, used in (
        ("class Chart", "function slider"),
        ("const charts", "class Chart"),
        ("function slider", "function make"),
    ):
        assert text.index(used) < text.index(user)
