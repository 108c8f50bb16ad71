"""A guard that keeps sympy from evaluating a text of a model as code.

Where sympy expects a number and gets a string, it calls ``eval``. In the sandbox, its parser accepts arithmetic
of words and numbers only, such as shape inference itself writes: ``floor(d0/2 + 1)``.
"""

import re
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any, Final

LONGEST: Final = 1000
"""Maximum length of a text that sympy evaluates, in characters."""

_ARITHMETIC: Final = re.compile(
    r"""(?: (?:floor|ceiling|Max|Min|Mod|Abs) \(      # the only calls
    | (?!__) [A-Za-z_][A-Za-z0-9_]*+ (?:\*\* [0-9] (?![0-9]|\ *\*\*) )?+ (?!\ *\()  # a word, not called; a small power
    | [0-9]{1,18}+ (?:\.[0-9]{1,9}+)? (?![\w.])       # a number
    | \) (?!\ *\()                                    # no call of a result
    | \* (?!\*) | [-+/%(,\ ]
    )*+""",
    re.VERBOSE | re.ASCII,
)

_PARSER: Final = "sympy.parsing.sympy_parser"
_STRINGIFY: Final = "stringify_expr"
"""Function of sympy that receives every string before it is evaluated."""


def is_arithmetic(text: str) -> bool:
    """Whether a text is arithmetic of words and numbers, with small powers and calls of six functions only."""
    return len(text) <= LONGEST and _ARITHMETIC.fullmatch(text) is not None


def forbid_evaluation() -> None:
    """Make sympy reject strings that are more than arithmetic, in this process, without importing it."""
    if _PARSER in sys.modules:
        _guard(sys.modules[_PARSER])
    elif not any([isinstance(finder, _Finder) for finder in sys.meta_path]):
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    """Finder that guards the parser of sympy when it is loaded."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _PARSER:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None:
            return spec
        spec.loader = _Loader(fullname, spec.origin)
        return spec


class _Loader(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        _guard(module)


def _guard(parser: ModuleType) -> None:
    original = getattr(parser, _STRINGIFY)
    if getattr(original, "is_guarded", False):
        return

    def stringify(text: str, *arguments: Any, **options: Any) -> Any:
        if not is_arithmetic(text):
            # sympy converts it to its own error, SympifyError.
            raise SyntaxError(f"text from the model is not evaluated: {text[:200]!r}")
        return original(text, *arguments, **options)

    stringify.is_guarded = True  # type: ignore[attr-defined]
    setattr(parser, _STRINGIFY, stringify)
