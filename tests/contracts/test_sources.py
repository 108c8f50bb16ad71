"""Habits of the source text that no linter knows."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
MODULES = sorted([*(ROOT / "onnxjson").rglob("*.py"), *(ROOT / "tui").rglob("*.py")])
SOURCES = [*MODULES, *sorted((ROOT / "tests").rglob("*.py"))]

IMPORTERS = {
    "click": {"onnxjson/cli/", "onnxjson/editing/spelling.py"},
    "rich": {"onnxjson/cli/", "tui/onnxjson_tui/"},
    "textual": {"tui/onnxjson_tui/"},
    "onnx": {
        "onnxjson/example.py",
        "onnxjson/model/operators.py",
        "onnxjson/optimizing/passes/",
        "onnxjson/codecs/protojson.py",
        "onnxjson/codecs/serde.py",
        "onnxjson/running/engines.py",
        "onnxjson/running/expansion.py",
        "onnxjson/running/opset_conversion.py",
        "onnxjson/running/opset_definitions.py",
        "onnxjson/running/shape_inference.py",
        "onnxjson/running/worker_jobs.py",
    },
    "google": {"onnxjson/codecs/protojson.py", "onnxjson/codecs/serde.py"},
    "onnxruntime": {"onnxjson/optimizing/passes/", "onnxjson/running/engines.py"},
}
"""Packages that few may import, and who: modules, or whole folders."""

STARTERS = {
    "onnxjson/running/box_trial.py", "onnxjson/running/server_process.py", "onnxjson/fleet/engine.py",
    "onnxjson/running/worker_server.py", "onnxjson/cli/processes.py", "onnxjson/cli/serving.py",
    "onnxjson/git/commands.py",
}  # fmt: skip
"""Modules that may start processes."""

SETTING_ASIDE = {
    "tui/onnxjson_tui/workbench/start.py",
    "tui/onnxjson_tui/shell/graph_screen.py",
    "onnxjson/serving/open_texts.py",
}
"""Modules that tell the collector of garbage what stays."""


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(_text(path))


def test_modules_have_at_most_600_lines() -> None:
    lengths = {_name(path): _text(path).count("\n") for path in MODULES}
    assert not {name: lines for name, lines in lengths.items() if lines > 600}


def test_modules_say_what_they_are_for() -> None:
    assert not [_name(path) for path in MODULES if not re.match('r?"""', _text(path))]


def test_modules_have_names_from_the_field() -> None:
    vague = {"utils", "util", "helpers", "manager", "core", "misc", "common"}
    assert not [_name(path) for path in MODULES if vague & set(path.relative_to(ROOT).with_suffix("").parts)]


def test_public_methods_have_docstrings_of_their_own_or_of_the_method_that_they_override() -> None:
    places: dict[str, list[Path]] = {}
    for path in MODULES:
        for name in re.findall(r"^class (\w+)", _text(path), re.MULTILINE):
            places.setdefault(name, []).append(path)

    def classes(name: str) -> list[ast.ClassDef]:
        found = [each for path in places.get(name, ()) for each in _tree(path).body if isinstance(each, ast.ClassDef)]
        return [each for each in found if each.name == name]

    def is_described(owner: ast.ClassDef, name: str) -> bool:
        own = [each for each in owner.body if isinstance(each, ast.FunctionDef) and each.name == name]
        bases = [ast.unparse(base).partition("[")[0] for base in owner.bases]
        foreign = [base for base in bases if base not in places and base not in ("NamedTuple", "Protocol", "Exception")]
        ours = [each for base in bases for each in classes(base)]
        return any(map(ast.get_docstring, own)) or bool(foreign) or any([is_described(each, name) for each in ours])

    bare = re.compile(r"^    def ([a-z]\w*)\(self(?:[^()]|\([^()]*\))*\)[^\n]*:\n(?! *r?\"\"\")", re.MULTILINE)
    missing = [
        f"{owner.name}.{method}"
        for path in MODULES
        if (names := set(bare.findall(_text(path))))
        for owner in _tree(path).body
        if isinstance(owner, ast.ClassDef) and not owner.name.startswith("_")
        for method in names & {each.name for each in owner.body if isinstance(each, ast.FunctionDef)}
        if not is_described(owner, method)
    ]
    assert missing == []


def test_nothing_is_left_for_later() -> None:
    left = {_name(path): re.findall(r"\b(?:TO[D]O|FIX[M]E|XX[X]|HAC[K])\b", _text(path)) for path in SOURCES}
    assert not {name: words for name, words in left.items() if words}


def _imported(path: Path) -> set[str]:
    """The top-level packages that a module imports anywhere, but for type checkers."""
    tree = _tree(path)
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


def test_few_modules_import_heavy_packages() -> None:
    imports = [(_name(path), package) for path in MODULES for package in _imported(path) & IMPORTERS.keys()]
    assert len(imports) > len(IMPORTERS)
    assert not [(name, package) for name, package in imports if not name.startswith(tuple(IMPORTERS[package]))]


def test_only_the_listed_modules_start_processes() -> None:
    start = re.compile(r"^\s*(?:import|from) (?:subprocess|multiprocessing)\b|\bos\.(?:fork|system|popen|exec)", re.M)
    assert {_name(path) for path in MODULES if start.search(_text(path))} <= STARTERS


def test_garbage_collector_is_left_alone() -> None:
    # The workbench sets a model aside that stays as long as it does; the collector goes on.
    calls = [
        (_name(path), call) for path in SOURCES for call in re.findall(r"\bgc\.(disabl[e]|freez[e])\b", _text(path))
    ]
    assert not [(name, call) for name, call in calls if call != "freeze" or name not in SETTING_ASIDE]
