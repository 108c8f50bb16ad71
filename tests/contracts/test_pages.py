"""The pages of the repository: short enough, and true about the files they name."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
ONE_LINE_A_RULE = {"format.md", "findings.md"}
"""Pages in which a change of a rule is a change of a line."""

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def _readme() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


def test_readme_has_at_most_150_lines() -> None:
    assert _readme().count("\n") <= 150


def test_code_map_names_files_that_exist() -> None:
    rows = re.findall(r"`((?:onnxjson|tui|tests)[/a-z_]*(?:\.py)?)`", _readme().partition("## Code map")[2])
    assert rows
    assert [row for row in rows if not (ROOT / row).exists()] == []


def test_code_map_names_every_module_of_the_package() -> None:
    rows = set(re.findall(r"`(onnxjson/[^`]+)`", _readme()))
    top = {path for path in (ROOT / "onnxjson").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    names = {f"onnxjson/{path.name}" + ("/" if path.is_dir() else "") for path in top}
    unnamed = {name for name in names if name not in rows and "__" not in name}
    assert unnamed == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_text_of_a_page_is_wrapped_for_an_editor(page: Path) -> None:
    if page.name in ONE_LINE_A_RULE:
        return
    prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    long = [line for line in prose.splitlines() if len(line) > 120 and not line.startswith("|")]
    assert long == []


def test_ci_calls_the_test_command_of_the_readme() -> None:
    command = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "tests/run" in command
    assert "tests/run" in _readme()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
