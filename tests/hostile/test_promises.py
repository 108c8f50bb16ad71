"""The tests that docs/security.md names for each promise exist."""

import ast
import re
from pathlib import Path

from tests.hostile import covered

ROOT = Path(__file__).parents[2]


def test_every_promise_names_tests_that_exist() -> None:
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    table = page.split("## Promises and their tests")[1].split("\n\n")[2]
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 20
    for row in rows:
        named = re.findall(r"`(tests/[\w/.]+)`: ((?:`test_\w+`(?:, )?)+)", row)
        assert named, row
        for file, tests in named:
            found = {each.name for each in ast.parse((ROOT / file).read_text(encoding="utf-8")).body
                     if isinstance(each, ast.FunctionDef)}  # fmt: skip
            assert set(re.findall(r"test_\w+", tests)) <= found, f"{file}: {tests}"


def test_what_is_measured_exists() -> None:
    assert all((ROOT / each).is_file() for each in (*covered.MODULES, *covered.TESTS))
