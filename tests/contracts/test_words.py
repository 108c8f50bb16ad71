"""Variables say what they hold: a word that could stand for anything does not outlive three lines."""

import ast
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]

VAGUE: Final = frozenset({"found", "each", "mine", "its", "there", "here", "own", "whole", "made", "theirs"})

LINES: Final = 3
"""Distance of the first and the last line of a vague variable from which on it is too long-lived."""

Lines = dict[str, list[int]]

_SCOPES: Final = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip


def _collect(node: ast.AST, lines: Lines, lasting: list[tuple[str, int]]) -> set[str]:
    """Collect the lines of vague names below a node; return the names that are bound there.

    A function or a comprehension keeps the names that it binds: of these, those that live too long go to `lasting`.
    """
    bound = set()
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Name | ast.arg):
            name = child.id if isinstance(child, ast.Name) else child.arg
            if name in VAGUE:
                lines.setdefault(name, []).append(child.lineno)
            if isinstance(child, ast.arg) or isinstance(child.ctx, ast.Store):
                bound.add(name)
        if not isinstance(child, _SCOPES):
            bound |= _collect(child, lines, lasting)
            continue
        inner: Lines = {}
        kept = _collect(child, inner, lasting)
        for name, places in inner.items():
            if name not in kept:
                lines.setdefault(name, []).extend(places)
            # "theirs" next to "ours" is the name that git gives to a side of a merge.
            elif max(places) - min(places) >= LINES and not (name == "theirs" and "ours" in kept):
                lasting.append((name, min(places)))
    return bound


def lasting_words(source: str) -> list[tuple[str, int]]:
    """The vague variables of a module that outlive three lines, with their first lines."""
    lasting: list[tuple[str, int]] = []
    _collect(ast.parse(source), {}, lasting)
    return lasting


def test_variables_say_what_they_hold() -> None:
    vague = [
        f"{path.relative_to(ROOT)}:{line} {name}"
        for folder in ("onnxjson", "tui")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for name, line in lasting_words(path.read_text(encoding="utf-8"))
    ]
    assert not vague, "name these variables by what they hold"


def test_only_variables_that_outlive_three_lines_count() -> None:
    long = "def f(values):\n    found = []\n\n    pass\n    return found\n"
    assert lasting_words(long) == [("found", 2)]
    assert lasting_words(long.replace("\n\n", "\n")) == []
    assert lasting_words("def f(own):\n" + "    pass\n" * 3 + "    return own\n") == [("own", 1)]
    apart = "    a = [each for each in b]\n" + "    pass\n" * 5 + "    c = [each for each in b]\n"
    assert lasting_words(f"def f(b):\n{apart}") == []
    assert lasting_words("def f():\n    mine = 1\n    def g():\n        pass\n        return mine\n") == [("mine", 2)]
    sides = "def f(ours, theirs):\n" + "    pass\n" * 3 + "    return theirs\n"
    assert lasting_words(sides) == []
    assert lasting_words(sides.replace("ours, ", "")) == [("theirs", 1)]
