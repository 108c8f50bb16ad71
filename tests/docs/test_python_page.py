"""The reference in docs/python.md is made from signatures and docstrings, and every public name is in it.

Run as a program, it writes the reference of today: ``python -m tests.docs.test_python_page``.
"""

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any, Final

import onnxjson
from onnxjson.model import errors
from onnxjson.model.document import Record
from tests.docs.sessions import ROOT

PAGE: Final = ROOT / "docs" / "python.md"
_SETTINGS: Final = re.compile(r"Settings\([^()]*(?:\([^()]*\)[^()]*)*\)")
_PART: Final = re.compile(r"(<!-- reference:[^\n]*-->\n).*?(<!-- end of reference -->)", re.DOTALL)

SECTIONS: Final = {
    "Files, texts and protobuf": "load save loads dumps convert from_proto to_proto from_ir to_ir",
    "Differences, patches and merges": "diff Diff Event Patch merge Merged resolve",
    "Nodes and tensors of a model": "Place Places TensorPlace Editor Index",
    "Records made of Python values": "node tensor value",
    "Patterns": "find nearest_misses Match Miss",
    "Outlines": "Outline Line",
    "Edits": "apply edits edits.plan edits.run edits.Result edits.Script",
    "Runs": "run RunResult verify Verification Tolerance",
    "Optimizers": "optimize Trace load_trace write_trace",
    "Findings": "check Findings Finding",
}
MODULES: Final = {"onnxjson.running.tasks": "Settings"}
"""Modules and their names that the page describes although they are not in `onnxjson` itself."""


def reference() -> str:
    """Return the generated part of the page."""
    parts = []
    for title, names in SECTIONS.items():
        parts.append(f"\n## {title}\n")
        parts += [_entry(f"onnxjson.{name}", _at(onnxjson, name)) for name in names.split()]
    parts.append(
        "\n## Records\n\nFields have the names and the order of onnx.proto.\n\n"
        "| record | is | fields |\n|---|---|---|\n"
    )
    records = [name for name in onnxjson.__all__ if _is_record(name)]
    parts += [_record(name) for name in records]
    parts += [_methods(name) for name in records]
    tree = (errors.__doc__ or "").partition("::\n\n")[2].partition("\n\n")[0]
    parts.append("\n## Errors\n\nThe number is the exit code of the command line.\n\n")
    parts.append(f"```text\n{textwrap.dedent(tree)}\n```\n")
    parts.append(
        "\n## In other modules\n\n"
        "These names are not part of `onnxjson` itself; their modules may change between versions.\n"
    )
    for module, names in MODULES.items():
        parts += [_entry(f"{module}.{name}", getattr(importlib.import_module(module), name)) for name in names.split()]
    return "".join(parts) + "\n"


def _at(owner: object, path: str) -> object:
    for name in path.split("."):
        owner = getattr(owner, name)
    return owner


def _entry(name: str, value: Any) -> str:
    text = inspect.getdoc(value) or ""
    if inspect.ismodule(value):
        return f"\n### {name}\n\nA module: [all edits](edits.md#all-edits) as classes, and the names below.\n"
    if inspect.isclass(value):
        members = "\n".join(dict.fromkeys(_members(value)))
        body = f"{text}\n\n{members}" if members else text
    else:
        body = f"{_signature(name.rpartition('.')[2], value)}\n\n{text}"
    return f"\n### {name}\n\n```text\n{body.rstrip()}\n```\n"


def _signature(name: str, function: Any) -> str:
    """Return a signature as it would be called: without annotations."""
    found = inspect.signature(function)
    empty = inspect.Parameter.empty
    plain = [each.replace(annotation=empty) for each in found.parameters.values() if each.name not in ("self", "cls")]
    return name + _SETTINGS.sub("Settings()", str(inspect.Signature(plain)))


def _members(owner: type) -> Iterator[str]:
    """Yield a line for each field, property and method of a class, in the order of its source."""
    for base in owner.__mro__[1:]:
        if base.__module__.startswith("onnxjson.") and base is not Record:
            yield from _members(base)
    tree = ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0]
    assert isinstance(tree, ast.ClassDef)
    for statement, following in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield from _line(statement.target.id, _text(following))
        elif isinstance(statement, ast.FunctionDef):
            value = inspect.getattr_static(owner, statement.name)
            said = ast.get_docstring(statement) or ""
            if isinstance(value, property) or "cached" in type(value).__name__:
                yield from _line(statement.name, said)
            elif not statement.name.startswith("_"):
                yield from _line(_signature(statement.name, getattr(owner, statement.name)), said)


def _text(statement: ast.stmt | None) -> str:
    """Return the text of a statement that is only a text, such as the description of the field before; else ""."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


def _line(name: str, said: str) -> Iterator[str]:
    if not name.startswith("_"):
        first = " ".join(said.partition("\n\n")[0].split())
        yield textwrap.fill(f"{name}: {first}" if first else name, 100, subsequent_indent="    ")


def _is_record(name: str) -> bool:
    value = getattr(onnxjson, name)
    return inspect.isclass(value) and issubclass(value, Record)


def _record(name: str) -> str:
    value = getattr(onnxjson, name)
    fields = ", ".join(f"`{field}`" for field in value.__struct_fields__ if field != "unknown_fields")
    first = (inspect.getdoc(value) or "").partition("\n")[0].replace("|", "\\|")
    return f"| `{name}` | {first} | {fields} |\n"


def _methods(name: str) -> str:
    """Return the entry of the methods and properties of a record; "" if it has none."""
    record = getattr(onnxjson, name)
    lines = [line for line in _members(record) if re.split(r"[:(]", line)[0] not in record.__struct_fields__]
    return f"\n### Methods of onnxjson.{name}\n\n```text\n" + "\n".join(lines) + "\n```\n" if lines else ""


def written(page: str) -> str:
    """Return the page with the reference of today."""
    return _PART.sub(lambda match: f"{match[1]}{reference()}{match[2]}", page)


def test_reference_is_that_of_the_docstrings() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert _PART.search(page)
    assert page == written(page), "python -m tests.docs.test_python_page writes it"


def test_every_public_name_is_in_the_reference() -> None:
    text = reference()
    missing = [name for name in onnxjson.__all__ if name != "__version__" and not re.search(rf"\b{name}\b", text)]
    assert missing == []


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
