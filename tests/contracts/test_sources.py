"""Habits of the source text that no linter knows."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
MODULES = sorted([*(ROOT / "onnxjson").rglob("*.py"), *(ROOT / "tui").rglob("*.py")])
SOURCES = [*MODULES, *sorted((ROOT / "tests").rglob("*.py"))]

TABLES = {"onnxjson/attribute_table.py", "onnxjson/characters.py"}
"""Modules that are data."""

IMPORTERS = {
    "click": {"onnxjson/cli/"},
    "rich": {"onnxjson/cli/", "tui/onnxjson_tui/"},
    "textual": {"tui/onnxjson_tui/"},
    "onnx": {
        "onnxjson/example.py",
        "onnxjson/operator_signatures.py",
        "onnxjson/operators.py",
        "onnxjson/passes/",
        "onnxjson/protojson/",
        "onnxjson/running/engines.py",
        "onnxjson/serde.py",
        "onnxjson/worker_evaluation.py",
        "onnxjson/worker_jobs.py",
    },
    "google": {"onnxjson/serde.py", "onnxjson/protojson/"},
    "onnxruntime": {"onnxjson/passes/", "onnxjson/running/engines.py", "onnxjson/worker_evaluation.py"},
}
"""Packages that few may import, and who: modules, or whole folders."""

STARTERS = {
    "onnxjson/worker.py",
    "onnxjson/worker_server.py",
    "onnxjson/cli/processes.py",
    "onnxjson/git/commands.py",
}
"""Modules that may start processes."""

SETTING_ASIDE = {"tui/onnxjson_tui/start.py", "tui/onnxjson_tui/workbench.py", "tests/benchmarks/tui_stalls.py"}
"""Modules that tell the collector of garbage what stays."""


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_module_has_at_most_600_lines(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").count("\n")
    assert lines <= 600 or _name(path) in TABLES, lines


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_module_says_what_it_is_for(path: Path) -> None:
    assert re.match('r?"""', path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_module_has_a_name_from_the_field(path: Path) -> None:
    assert not {"utils", "util", "helpers", "manager", "core", "misc", "common"} & set(path.with_suffix("").parts)


@pytest.mark.parametrize("path", SOURCES, ids=_name)
def test_nothing_is_left_for_later(path: Path) -> None:
    left = re.findall(r"\b(?:TO[D]O|FIX[M]E|XX[X]|HAC[K])\b", path.read_text(encoding="utf-8"))
    assert not left


def _imported(path: Path) -> set[str]:
    """The top-level packages that a module imports anywhere, but for type checkers."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = []
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_few_modules_import_heavy_packages(path: Path) -> None:
    for package in _imported(path) & IMPORTERS.keys():
        assert _name(path).startswith(tuple(IMPORTERS[package])), package


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_only_the_listed_modules_start_processes(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    starts = re.search(
        r"^\s*(?:import|from) (?:subprocess|multiprocessing)\b|\bos\.(?:fork|system|popen|exec)", text, re.M
    )
    assert not starts or _name(path) in STARTERS


@pytest.mark.parametrize("path", SOURCES, ids=_name)
def test_garbage_collector_is_left_alone(path: Path) -> None:
    # The workbench sets a model aside that stays as long as it does; the collector goes on.
    allowed = "freeze" if _name(path) in SETTING_ASIDE else ""
    found = re.findall(r"\bgc\.(disabl[e]|freez[e])\b", path.read_text(encoding="utf-8"))
    assert not set(found) - {allowed}
