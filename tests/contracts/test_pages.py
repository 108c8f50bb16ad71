"""The pages of the repository: short enough, and true about the files they name."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
ONE_LINE_A_RULE = {"format.md", "findings.md"}
"""Pages in which a change of a rule is a change of a line."""

PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").glob("*.md"))]


def _readme() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


def test_readme_and_security_have_one_table_of_systems() -> None:
    table = re.search(r"^\| \| Linux \|.*?\n\n", _readme(), re.DOTALL | re.MULTILINE)
    assert table is not None
    assert table[0] in (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def _contributing() -> str:
    return (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")


def test_readme_has_at_most_110_lines() -> None:
    assert _readme().count("\n") <= 110


def test_index_links_every_page() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert pages - set(re.findall(r"\]\(([a-z-]+\.md)\)", index)) == set()


def test_code_map_names_files_that_exist() -> None:
    rows = re.findall(r"`((?:onnxjson|tui|tests)[/a-z_]*(?:\.py)?)`", _contributing().partition("## The rooms")[2])
    assert rows
    assert [row for row in rows if not (ROOT / row).exists()] == []


def _rooms(package: str) -> set[str]:
    """Folders and modules right below a package, as the code map spells them."""
    top = {path for path in (ROOT / package).iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    return {f"{package}/{path.name}" + ("/" if path.is_dir() else "") for path in top if "__" not in path.name}


@pytest.mark.parametrize("package", ["onnxjson", "tui/onnxjson_tui"])
def test_code_map_names_every_room(package: str) -> None:
    rows = set(re.findall(r"`((?:onnxjson|tui)/[^`]+)`", _contributing()))
    assert _rooms(package) - rows == set()


@pytest.mark.parametrize("package", ["onnxjson", "tui/onnxjson_tui"])
def test_room_says_what_belongs_in_it_and_what_to_read_first(package: str) -> None:
    rooms = [room for room in _rooms(package) if room.endswith("/")]
    assert rooms
    for room in rooms:
        text = ast.get_docstring(ast.parse((ROOT / room / "__init__.py").read_text(encoding="utf-8"))) or ""
        text = " ".join(text.split())
        assert "Not here: " in text, room
        first = text.partition("Read first: ")[2]
        named = re.findall(r"`([a-z_.]+)`(?: \(|,|\.|$)", first)
        paths = [ROOT / room / (name.replace(".", "/") + ".py") for name in named]
        assert len([path for path in paths if path.exists()]) == 3, room


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


def test_install_lines_name_the_package_of_the_index() -> None:
    """Users install what was published; only contributors install a clone, as `-e .`."""
    files = [*PAGES, *(path for folder in ("onnxjson", "tui") for path in (ROOT / folder).rglob("*.py"))]
    wrong = re.compile(r"pip install (?!-q -e |-e )(?:-\S+ )*'?\.(?:\[(?!site)|\s)|ADDRESS-OF")
    assert [path.name for path in files if wrong.search(path.read_text(encoding="utf-8"))] == []
