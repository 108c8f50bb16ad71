"""What is known of the operator of a node: what ONNX says, or what the function of the model says of itself."""

from textual import events
from textual.widget import Widget

from onnxjson.display import counted, visible
from onnxjson.document import Function, Model
from onnxjson.index import NodeRef
from onnxjson.operators import documentation, function_key, operator_key, operator_name
from onnxjson.rendering.node import documentation_lines, opset_of
from onnxjson.rendering.tables import wrapped
from onnxjson_tui.screens.choosing import TextScreen
from onnxjson_tui.widgets.lines import LineList, TextRows

_AROUND = 6
"""Columns of the frame of the dialog."""

_WIDEST = 104


class DocumentationScreen(TextScreen):
    """The documentation of the operator of one node, wrapped for the width that there is."""

    def __init__(self, model: Model, ref: NodeRef) -> None:
        node = ref.node
        super().__init__(operator_name(node.domain, node.op_type, node.overload), ())
        self._model = model
        self._ref = ref

    def on_resize(self, event: events.Resize) -> None:
        """Wrap it anew."""
        width = max(min(_WIDEST, event.size.width * 96 // 100 - _AROUND), 30)
        self._rows = TextRows(operator_lines(self._model, self._ref, width))
        found: list[Widget] = list(self.query(LineList))
        for lines in found:
            assert isinstance(lines, LineList)
            lines.show(self._rows, 0)


def operator_lines(model: Model, ref: NodeRef, width: int) -> list[str]:
    """What is known of the operator of a node, every line visible and at most `width` columns."""
    key = operator_key(ref.node)
    function = next((each for each in model.functions if function_key(each) == key), None)
    if function is not None:
        return _of_function(function, width)
    opset = opset_of(model, ref)
    found = documentation(ref.node.domain, ref.node.op_type, opset)
    if found is not None:
        lines = documentation_lines(found, width)
        return [piece for line in lines for piece in _cut(line, width)]
    name = visible(operator_name(*key))
    imported = f"opset {opset} of its domain is imported" if opset is not None else "its domain is not imported"
    return wrapped(
        f"{name} is no operator that the installed onnx knows, and no function of the model; {imported}.",
        width,
        indent=0,
    )


def _of_function(function: Function, width: int) -> list[str]:
    name = visible(operator_name(function.domain, function.name, function.overload), 200)
    inputs = ", ".join([visible(each, 100) for each in function.input])
    outputs = ", ".join([visible(each, 100) for each in function.output])
    attributes = [visible(each, 100) for each in function.attribute]
    attributes += [f"{visible(each.name or '?', 100)} (has a default)" for each in function.attribute_proto]
    lines = wrapped(f"{name}, a function of the model", width, indent=0)
    lines += wrapped(f"{outputs or '()'} = {name}({inputs})", width, indent=2)
    if attributes:
        lines += ["", "  attributes", *[piece for each in attributes for piece in wrapped(each, width, indent=4)]]
    opsets = ", ".join([f"{visible(each.domain or 'ai.onnx', 60)} {each.version}" for each in function.opset_import])
    lines += [
        "",
        *wrapped(f"{counted(len(function.node), 'node')}; opsets {opsets or 'of the model'}; gs goes into it", width),
    ]
    if function.doc_string:
        lines += ["", *wrapped(function.doc_string, width, indent=0)]
    return lines


def _cut(line: str, width: int) -> list[str]:
    """A line that is too long in several; tables of the documentation have no places to wrap."""
    if len(line) <= width:
        return [line]
    return [line[start : start + width] for start in range(0, len(line), width)]
