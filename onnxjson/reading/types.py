"""Types of values: a line of the type grammar, or the full form (docs/format.md, section 5)."""

from functools import lru_cache

from onnxjson.document import Type
from onnxjson.reading.context import Context, Place
from onnxjson.reading.exact import read_message
from onnxjson.reading.tree import Tree
from onnxjson.types import TypeSyntaxError, parse_type

_remembered_type = lru_cache(maxsize=4096)(parse_type)


def read_type(tree: Tree, place: Place, context: Context) -> Type | None:
    """The type in a tree. `None`, after saying why, if it cannot be read."""
    if isinstance(tree, dict):
        return read_message(Type, tree, place, context)
    if not isinstance(tree, str):
        context.wrong_type(tree, place, 'a type such as "float32[N,3]"')
        return None
    try:
        return _remembered_type(tree)
    except TypeSyntaxError as error:
        report_type(error, place, context)
        return None


def report_type(error: TypeSyntaxError, place: Place, context: Context) -> None:
    """Says what is wrong with a type, at the character where it is."""
    is_data_type = error.found.startswith("the dtype")
    code = "unknown-dtype" if is_data_type else "bad-type"
    hint = error.fits if is_data_type else f"what fits: {error.fits}"
    found = error.found if error.found.startswith("the end") else f"{error.found} in the type"
    context.error(place, code, f"found {found}", hint, character=error.position)
