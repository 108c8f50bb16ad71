"""The tests that docs/security.md names for each promise exist."""

import ast
import re
from pathlib import Path

import pytest

from tests.hostile import covered

ROOT = Path(__file__).parents[2]


TABLES = {"Promises and their tests": 20, "What is started": 10, "Checked, then used": 9}
"""Tables of the page, with the least number of their rows."""


def rows_of(title: str) -> list[str]:
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    table = page.split(f"## {title}\n")[1].split("\n## ")[0]
    return [line for line in table.splitlines() if line.startswith("| ")][1:]


@pytest.mark.parametrize("title", TABLES)
def test_every_row_names_tests_that_exist(title: str) -> None:
    rows = rows_of(title)
    assert len(rows) >= TABLES[title]
    for row in rows:
        named = re.findall(r"`(tests/[\w/.]+)`: ((?:`test_\w+`(?:, )?)+)", row)
        assert named, row
        for file, tests in named:
            found = {each.name for each in ast.parse((ROOT / file).read_text(encoding="utf-8")).body
                     if isinstance(each, ast.FunctionDef)}  # fmt: skip
            assert set(re.findall(r"test_\w+", tests)) <= found, f"{file}: {tests}"


def test_every_module_that_starts_programs_has_a_row() -> None:
    start = re.compile(r"subprocess\.(?:run|Popen)\(|\bPopen\(|ProcessPoolExecutor\(|LocalCluster\(")
    sources = {each.relative_to(ROOT).as_posix(): each.read_text() for each in (ROOT / "onnxjson").rglob("*.py")}
    starters = {name for name, text in sources.items() if start.search(text)}
    assert starters >= {"onnxjson/git/commands.py", "onnxjson/fleet/engine.py"}
    assert starters <= set(re.findall(r"`(onnxjson/[\w/]+\.py)`", "".join(rows_of("What is started"))))


def test_what_is_measured_exists() -> None:
    assert all((ROOT / each).is_file() for each in (*covered.MODULES, *covered.TESTS))
