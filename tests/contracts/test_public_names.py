"""The names that ``import onnxjson`` gives."""

import ast
import inspect
from pathlib import Path

import pytest

import onnxjson
from onnxjson.model import document, errors

PACKAGE = Path(onnxjson.__file__)

EXPORTED = [name for name in onnxjson.__all__ if name != "__version__"]


def _names_for_type_checkers() -> dict[str, str]:
    """What the ``if TYPE_CHECKING`` block imports, with its modules."""
    found = {}
    for statement in ast.walk(ast.parse(PACKAGE.read_text(encoding="utf-8"))):
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("onnxjson."):
            found.update(
                dict.fromkeys((alias.asname or alias.name for alias in statement.names), statement.module or "")
            )
    return found


def test_type_checkers_see_the_names_that_exist() -> None:
    assert _names_for_type_checkers() == {**onnxjson._MODULES, "edits": "onnxjson.editing"}


@pytest.mark.parametrize("name", EXPORTED)
def test_public_name_is_found_and_documented(name: str) -> None:
    value = getattr(onnxjson, name)
    assert inspect.getdoc(value)


def test_every_record_is_public() -> None:
    records = {
        name
        for name, value in vars(document).items()
        if isinstance(value, type) and issubclass(value, document.Record) and value is not document.Record
    }
    assert records <= set(EXPORTED)


def test_every_error_is_public() -> None:
    raised = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.OnnxJsonError)
    }
    assert raised <= set(EXPORTED)
    assert onnxjson.Finding is errors.Finding


def test_version_is_that_of_the_distribution() -> None:
    from importlib.metadata import version

    assert onnxjson.__version__ == version("onnxjson")


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'onnxjson' has no attribute 'nope'"):
        _ = onnxjson.nope  # type: ignore[attr-defined]


def test_dir_lists_names_before_they_are_loaded() -> None:
    assert set(onnxjson.__all__) <= set(dir(onnxjson))


@pytest.mark.parametrize("name", ["load", "save", "loads", "dumps", "from_proto", "to_proto"])
def test_public_function_is_typed(name: str) -> None:
    function = getattr(onnxjson, name)
    parameters = inspect.signature(function).parameters.values()
    assert function.__annotations__.keys() == {parameter.name for parameter in parameters} | {"return"}


def test_only_methods_and_the_example_import_the_root() -> None:
    importers = [
        path.relative_to(PACKAGE.parent).as_posix()
        for path in PACKAGE.parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Import) and any(alias.name == "onnxjson" for alias in node.names))
        or (isinstance(node, ast.ImportFrom) and node.module == "onnxjson")
    ]
    assert set(importers) == {"example.py", "model/methods.py"}
