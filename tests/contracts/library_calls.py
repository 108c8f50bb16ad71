"""Calls in the libraries of the sandboxed process that could run text, code or programs; nothing of them is imported.

``python -m tests.contracts.library_calls`` prints what ``library_calls.json`` records: for each library a hash of its
sources, and the calls found in them. Read every call that is new before you record it; it needs a row in
docs/security.md if a model can reach it. Sources with the recorded hash are not parsed again, which would take 10 s.
"""

import ast
import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

RECORD: Final = Path(__file__).with_name("library_calls.json")

LIBRARIES: Final = (
    "google.protobuf", "ml_dtypes", "mpmath", "numpy", "onnx", "onnx_ir", "onnxoptimizer", "onnxruntime",
    "onnxscript", "onnxsim", "onnxslim", "sympy",
)  # fmt: skip
"""Packages that a pass or an analysis imports into the sandboxed process."""

OUTSIDE: Final = (
    "numpy/distutils", "numpy/f2py", "numpy/testing", "onnx/backend", "onnxruntime/backend", "onnxruntime/datasets",
    "onnxruntime/tools/mobile_helpers", "onnxruntime/tools/ort_format_model", "onnxruntime/tools/qnn",
    "onnxruntime/transformers/models", "onnxscript/function_libs", "onnxscript/rewriter/models", "onnxsim/rpc",
    "sympy/parsing/autolev", "sympy/parsing/c", "sympy/parsing/fortran", "sympy/parsing/latex", "sympy/physics",
    "sympy/plotting", "sympy/stats", "sympy/testing", "sympy/utilities/_compilation",
)  # fmt: skip
"""Folders that are not searched, since no pass calls what they hold."""

_BUILT_IN: Final = "eval|exec|compile|__import__"
_ANYWHERE: Final = (
    "import_module|lambdify|parse_expr|exec_module|spec_from_file_location|CDLL|LoadLibrary|load_library|"
    "register_custom_ops_library|popen|Popen|check_output|check_call|startfile|Unpickler|literal_eval"
)
_OF_MODULES: Final = (
    r"(?:pickle|marshal|dill|joblib|yaml|runpy|shelve|subprocess|jinja2)\.\w+|os\.(?:system|exec\w+|spawn\w+)|"
    r"(?:np|numpy)\.load"
)
_EVALUATING: Final = r"(?:.*\.)?sympify|sympy\.(?:S|simplify|floor|ceiling|Max|Min|Mod|nsimplify|solve|Poly)"
"""Functions of sympy that evaluate a text that they are given; within sympy they are given expressions."""

_IN_SYMPY: Final = re.compile(rf"(?:{_BUILT_IN})|(?:.*\.)?(?:{_ANYWHERE})|{_OF_MODULES}")
_ELSEWHERE: Final = re.compile(rf"{_IN_SYMPY.pattern}|{_EVALUATING}")


def sources(library: str) -> dict[str, bytes]:
    """The Python files of an installed package that are searched, by their paths below site-packages."""
    spec = find_spec(library)
    assert spec is not None, library
    found = {}
    for folder in map(Path, spec.submodule_search_locations or ()):
        base = folder.parents[library.count(".")]
        for path in folder.rglob("*.py"):
            name = path.relative_to(base).as_posix()
            if not re.search("/tests?/", name) and not name.startswith(tuple(f"{each}/" for each in OUTSIDE)):
                found[name] = path.read_bytes()
    return dict(sorted(found.items()))


def digest(files: Iterable[tuple[str, bytes]]) -> str:
    """A SHA-256 of names and contents."""
    total = hashlib.sha256()
    for name, text in files:
        total.update(f"{name}\0{len(text)}\0".encode() + text)
    return total.hexdigest()


def calls(name: str, text: bytes) -> dict[str, int]:
    """The functions of interest that a file calls, and how often."""
    kind = _IN_SYMPY if name.startswith("sympy/") else _ELSEWHERE
    called = [node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    named = [ast.unparse(each) for each in called if isinstance(each, ast.Name | ast.Attribute)]
    return dict(sorted(Counter(filter(kind.fullmatch, named)).items()))


def scan(library: str) -> dict[str, Any]:
    """What is recorded of a library."""
    files = sources(library)
    found = {name: counted for name, text in files.items() if (counted := calls(name, text))}
    return {"sha256": digest(files.items()), "calls": found}


def _record() -> str:
    """One line for each file, so that a change of one is a change of a line."""
    parts = []
    for library in LIBRARIES:
        found = scan(library)
        rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(counts)}" for name, counts in found["calls"].items())
        parts.append(f'{json.dumps(library)}: {{"sha256": "{found["sha256"]}", "calls": {{\n{rows}\n}}}}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    sys.stdout.write(_record())
