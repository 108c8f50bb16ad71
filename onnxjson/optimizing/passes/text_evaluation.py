"""Texts of a model that code could evaluate: harmless texts, nodes that compute with texts, and a guard for sympy.

Where sympy expects a number and gets a string, it calls ``eval``. `onnxjson.optimizing.passes.executing` hides
such strings of a model from it; the guard is a second barrier, for strings that were overlooked.
"""

import ast
import builtins
import keyword
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

from onnxjson.model.document import Attribute, Function, Graph, Model, Node, SparseTensor, Tensor
from onnxjson.model.walking import walk

LONGEST: Final = 256
"""Maximum length of a harmless text, in characters; longer ones get a placeholder."""

FUNCTIONS: Final = frozenset({"floor", "ceiling", "Max", "Min", "Mod", "Abs"})
"""Functions that the name of a dimension may call, since shape inference itself writes such names."""

_WORD: Final = r"(?!__)[A-Za-z_][A-Za-z0-9_]*"
IDENTIFIER: Final = re.compile(_WORD)
"""ASCII names that do not start with two underscores."""

_HARMLESS: Final = re.compile(rf"(?:{_WORD}|[-+]?[0-9]{{1,9}}(?:\.[0-9]{{1,9}})?|(?:[A-Za-z,]|\.\.\.|->| )*)".encode())
"""A word, a number, or the equation of an Einsum: no call, subscript, attribute access or multiplication."""
_RUN: Final = re.compile(rb"[A-Za-z_]+")
_ARITHMETIC: Final = re.compile(r"[A-Za-z0-9_ ()+\-*/%,]+")
_OPERATORS: Final = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod)
_LARGEST: Final = 2**63
_LARGEST_POWER: Final = 9


def is_symbol(name: str) -> bool:
    """Whether sympy parses a name as a plain symbol."""
    return bool(IDENTIFIER.fullmatch(name)) and len(name) <= LONGEST and name not in _reserved()


def is_harmless(text: bytes) -> bool:
    """Whether evaluating a text as Python or as an expression of sympy has no effect."""
    if len(text) > LONGEST or not _HARMLESS.fullmatch(text):
        return False
    return not any([keyword.iskeyword(word.decode()) for word in _RUN.findall(text)])


def is_arithmetic(text: str) -> bool:
    """Whether a text is short arithmetic of names and integers, with small powers and calls of `FUNCTIONS` only."""
    if len(text) > LONGEST or not _ARITHMETIC.fullmatch(text):
        return False
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return all([_is_plain(node, id(node) in called) for node in ast.walk(tree)])


def _is_plain(node: ast.AST, is_called: bool) -> bool:
    match node:
        case ast.Call(func=ast.Name(), keywords=[]):
            return True
        case ast.Name(id=name):
            return name in FUNCTIONS if is_called else bool(IDENTIFIER.fullmatch(name))
        case ast.Constant(value=value):
            return type(value) is int and value < _LARGEST
        case ast.BinOp(left=ast.Name(), op=ast.Pow(), right=ast.Constant(value=int(power))):
            return power <= _LARGEST_POWER
        case ast.BinOp(op=operator):
            return isinstance(operator, _OPERATORS)
    plain = (ast.Expression, ast.UnaryOp, ast.UAdd, ast.USub, ast.Load, ast.Pow, *_OPERATORS)
    return isinstance(node, plain)


@cache
def _reserved() -> frozenset[str]:
    """Return names with a meaning in Python or in sympy.

    sympy is not imported, which is slow: names in the list ``__all__`` of its source are strings.
    """
    found = {*keyword.kwlist, *keyword.softkwlist, *dir(builtins)}
    sympy = find_spec("sympy")
    if sympy is not None and sympy.origin is not None:
        found.update(re.findall(r"['\"](\w+)['\"]", Path(sympy.origin).read_text(encoding="utf-8")))
    return frozenset(found)


_PARSER: Final = "sympy.parsing.sympy_parser"
_STRINGIFY: Final = "stringify_expr"
"""Function of sympy that receives every string before it is evaluated."""


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
        if not is_arithmetic(text) and not is_harmless(text.encode("utf-8", "surrogateescape")):
            # sympy converts it to its own error, SympifyError.
            raise SyntaxError(f"a string of the model is not evaluated: {text[:LONGEST]!r}")
        return original(text, *arguments, **options)

    stringify.is_guarded = True  # type: ignore[attr-defined]
    setattr(parser, _STRINGIFY, stringify)


_FOLDABLE_DOMAINS: Final = frozenset({"", "ai.onnx", "ai.onnx.ml", "com.microsoft"})
"""Domains of operators that constant folding can evaluate."""

_MOVING: Final = frozenset({
    "Compress", "Concat", "ConcatFromSequence", "Constant", "ConstantOfShape", "Expand", "Flatten", "Gather",
    "GatherElements", "GatherND", "Identity", "If", "Loop", "Optional", "OptionalGetElement", "OptionalHasElement",
    "Pad", "Reshape", "ReverseSequence", "Scan", "Scatter", "ScatterElements", "ScatterND", "SequenceAt",
    "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength", "SequenceMap",
    "Slice", "Split", "SplitToSequence", "Squeeze", "Tile", "Transpose", "Unsqueeze", "Where",
})  # fmt: skip
"""Operators that pass texts on unchanged."""

_COMPARING: Final = frozenset({
    "CategoryMapper", "DictVectorizer", "Equal", "LabelEncoder", "LinearClassifier", "OneHotEncoder",
    "SVMClassifier", "Shape", "Size", "TfIdfVectorizer", "TreeEnsembleClassifier", "ZipMap",
})  # fmt: skip
"""Operators that only compare texts for equality: different texts have different placeholders."""

_LABELLING: Final = frozenset(
    {"LinearClassifier", "SVMClassifier", "Shape", "Size", "TreeEnsembleClassifier", "ZipMap"}
)
"""Operators that do not even compare texts: they output them as labels, or ignore them."""

_COUNTING: Final = frozenset(
    {"Equal", "OneHotEncoder", "OptionalHasElement", "SequenceLength", "Shape", "Size", "TfIdfVectorizer"}
)
"""Operators of the two sets above whose outputs are numbers, so that no placeholder is in them."""

_MOST_CALLS: Final = 10_000
"""Maximum number of distinct function calls to analyse; in further ones, every input may hold a placeholder."""


class _KnownValue(NamedTuple):
    is_constant: bool = True
    """Whether it may be computed by constant folding."""
    is_hidden: bool = False


_ANYTHING: Final = _KnownValue(is_constant=True, is_hidden=True)
_GIVEN: Final = _KnownValue(is_constant=False)

_KnownValues = dict[str, _KnownValue]


class _Call(NamedTuple):
    """A function call with the known facts about its inputs."""

    function: tuple[str, str, str]
    inputs: tuple[_KnownValue, ...]
    is_attribute_hidden: bool


def computing_node(model: Model, is_placeholder: Callable[[bytes], bool], *, is_run: bool = False) -> Node | None:
    """Return the first node that would be computed from the characters of a hidden text.

    Constant folding does not evaluate every node; with `is_run`, every node is computed. Function calls are analysed as
    inlined bodies.
    """
    return _Search(model, is_placeholder, is_run).found(model)


class _Search:
    def __init__(self, model: Model, is_placeholder: Callable[[bytes], bool], is_run: bool) -> None:
        self._is_placeholder = is_placeholder
        self._is_run = is_run
        self._functions = {(each.domain or "", each.name or "", each.overload or ""): each for each in model.functions}
        self._hides_in_functions = any([self._hides(function) for function in model.functions])
        self._calls: list[_Call] = []
        self._called: set[_Call] = set()
        self._is_attribute_hidden = False
        """Whether an attribute of the current function may contain a placeholder."""

    def found(self, model: Model) -> Node | None:
        given = _KnownValue() if self._is_run else _GIVEN
        if model.graph is not None and (node := self._in_graph(model.graph, (), given)):
            return node
        for training in model.training_info:
            for graph in (training.initialization, training.algorithm):
                if graph is not None and (node := self._in_graph(graph, (), _ANYTHING)):
                    return node
        for call in self._calls:  # grows during the loop
            body = self._functions[call.function]
            self._is_attribute_hidden = call.is_attribute_hidden
            absent = (_KnownValue(),) * (len(body.input) - len(call.inputs))
            scope: _KnownValues = dict(zip(body.input, (*call.inputs, *absent), strict=False))
            if node := self._in_nodes(body.node, (scope,)):
                return node
        return None

    def _call(self, function: tuple[str, str, str], inputs: list[_KnownValue], is_attribute_hidden: bool) -> None:
        """Queue the body of a function, once for all calls with the same known facts."""
        if len(self._called) >= _MOST_CALLS:
            inputs, is_attribute_hidden = [_ANYTHING] * len(inputs), True
        call = _Call(function, tuple(inputs), is_attribute_hidden)
        if call not in self._called:
            self._called.add(call)
            self._calls.append(call)

    def _in_graph(self, graph: Graph, outer: tuple[_KnownValues, ...], given: _KnownValue) -> Node | None:
        scope: _KnownValues = {value.name or "": given for value in graph.input}
        scope.update({tensor.name or "": self._constant([tensor]) for tensor in graph.initializer})
        for sparse in graph.sparse_initializer:
            scope[(sparse.values.name if sparse.values else None) or ""] = self._constant([sparse])
        return self._in_nodes(graph.node, (*outer, scope))

    def _in_nodes(self, nodes: Iterable[Node], scopes: tuple[_KnownValues, ...]) -> Node | None:
        for node in nodes:
            inputs = [_known_value(name, scopes) if name else _KnownValue() for name in node.input]
            is_constant = all([value.is_constant for value in inputs])
            is_attribute_hidden = self._is_hidden(node.attribute)
            is_hidden = is_attribute_hidden or any([value.is_hidden for value in inputs])
            operator = (node.domain or "", node.op_type or "")
            function = (*operator, node.overload or "")
            if function in self._functions:
                self._call(function, inputs, is_attribute_hidden)
                is_hidden |= self._hides_in_functions
            elif is_constant and is_hidden and not self._ignores_characters(*operator):
                return node
            for attribute in node.attribute:
                for graph in filter(None, (attribute.g, *attribute.graphs)):
                    is_hidden |= self._hides(graph)
                    given = _KnownValue(any([value.is_constant for value in inputs]), is_hidden)
                    if found := self._in_graph(graph, scopes, given):
                        return found
            made = _KnownValue(is_constant, is_hidden and operator[1] not in _COUNTING)
            scopes[-1].update(dict.fromkeys(filter(None, node.output), made))
        return None

    def _ignores_characters(self, domain: str, operator: str) -> bool:
        """Whether an operator is never computed, or only copies and compares whole texts."""
        if self._is_run:  # A text from an input is not equal to the placeholder of an equal text.
            return operator in _MOVING or operator in _LABELLING
        return domain not in _FOLDABLE_DOMAINS or operator in _MOVING or operator in _COMPARING

    def _is_hidden(self, attributes: Iterable[Attribute]) -> bool:
        if self._is_attribute_hidden and any([attribute.ref_attr_name for attribute in attributes]):
            return True
        return self._constant(attributes).is_hidden

    def _hides(self, record: Graph | Function) -> bool:
        return any(
            [self._has_placeholder(each) for each in walk(record, Tensor)]
            + [self._has_placeholder(each) for each in walk(record, Attribute)]
        )

    def _constant(self, records: Iterable[Attribute | Tensor | SparseTensor]) -> _KnownValue:
        """Return the known facts about a constant that consists of records."""
        for record in records:
            if isinstance(record, Attribute) and self._has_placeholder(record):
                return _ANYTHING
            if any([self._has_placeholder(tensor) for tensor in walk(record, Tensor)]):
                return _ANYTHING
        return _KnownValue()

    def _has_placeholder(self, record: Attribute | Tensor) -> bool:
        texts = record.string_data if isinstance(record, Tensor) else (record.s or b"", *record.strings)
        return any([self._is_placeholder(text) for text in texts])


def _known_value(name: str, scopes: tuple[_KnownValues, ...]) -> _KnownValue:
    """Return the known facts about a value; one that is produced later in the file may be anything."""
    return next((scope[name] for scope in reversed(scopes) if name in scope), _ANYTHING)
