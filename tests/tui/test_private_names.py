"""The terminal program uses of Textual what is public: neither its private attributes nor their names."""

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import onnxjson_tui

FOLDER = Path(onnxjson_tui.__file__).parent

ALLOWED = {
    "_color_system": "of the console, by which `_display` encodes styles",
    "_compositor": "what is on the screen; there is no public way to read it",
    "_exception": "the error that ended the program, which Textual tells nobody",
    "_display": "where Textual sends a frame; only what differs from the last one is sent",
    "_fatal_error": "Textual would print a traceback with all variables, and those of a big model take gigabytes",
}
"""Private names of Textual without a public counterpart, and why they are needed."""
OTHERS = {"_replace", "_asdict", "_fields", "_make", "_exit"}
"""Names that only look private: of named tuples, and of `os`."""


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _trees() -> dict[str, ast.Module]:
    return {
        path.relative_to(FOLDER).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(FOLDER.rglob("*.py"))
    }


def _defined(tree: ast.AST) -> set[str]:
    """The private names that a tree defines: functions, variables, attributes that it sets."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                found.add(name)
    return set(filter(_is_private, found))


def test_private_attributes_are_those_of_the_program_itself() -> None:
    trees = _trees()
    defined = set().union(*map(_defined, trees.values())) | OTHERS
    used = {
        name
        for tree in trees.values()
        for node in ast.walk(tree)
        for name in _attributes(node)
        if _is_private(name) and name not in defined
    }
    assert used | {"_display", "_fatal_error"} == set(ALLOWED)


def _attributes(node: ast.AST) -> Iterator[str]:
    """Yield the names of attributes that a node reads, also by `getattr`."""
    match node:
        case ast.Attribute(attr=name):
            yield name
        case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str(name)), *_]):
            yield name


def _modules() -> list[ModuleType]:
    found = pkgutil.walk_packages([str(FOLDER)], "onnxjson_tui.")
    return [importlib.import_module(each.name) for each in found]


@cache
def _names_in(module: str) -> frozenset[str]:
    """The private names of the objects of a module of Textual."""
    source = inspect.getsource(importlib.import_module(module))
    return frozenset(re.findall(r"(?:\bself\.|\bdef )(_[a-z]\w*)", source))


def test_no_private_name_of_textual_is_taken_by_a_class_of_the_program() -> None:
    taken: set[str] = set()
    for module in _modules():
        for name, kind in vars(module).items():
            if not inspect.isclass(kind) or kind.__module__ != module.__name__:
                continue
            bases = {each.__module__ for each in kind.__mro__ if each.__module__.startswith("textual.")}
            if bases:
                own = _defined(ast.parse(inspect.getsource(kind).lstrip()))
                taken |= {f"{name}.{each}" for each in own if any(each in _names_in(base) for base in bases)}
    assert taken == {"WorkbenchApp._display", "WorkbenchApp._fatal_error"}
