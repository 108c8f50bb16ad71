"""The line-edit law: one change in one line of the text is that change of the ModelProto, and nothing else.

For each model an attribute value, a dimension and a name are changed twice: in the ModelProto, and by plain string
replacement in exactly one line of the text.
"""

import json
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto

import onnxjson
from tests.corpus.collection import corpus, texts


class Edit(NamedTuple):
    """One change: the model with it made, and the characters that stand for the old and for the new value."""

    changed: ModelProto
    old: str
    new: str


def nodes(graph: GraphProto) -> Iterator[NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from nodes(attribute.g)


def all_nodes(model: ModelProto) -> Iterator[NodeProto]:
    yield from nodes(model.graph)
    for function in model.functions:
        yield from function.node


def attributes(model: ModelProto, kind: int) -> Iterator[AttributeProto]:
    return (one for node in all_nodes(model) for one in node.attribute if one.type == kind and not one.ref_attr_name)


def int_attribute(model: ModelProto) -> Edit | None:
    for attribute in attributes(model, AttributeProto.INT):
        old, attribute.i = attribute.i, 4711
        return Edit(model, f'"{attribute.name}": {old}', f'"{attribute.name}": 4711')
    return None


def ints_attribute(model: ModelProto) -> Edit | None:
    for attribute in attributes(model, AttributeProto.INTS):
        if attribute.ints:
            old = list(attribute.ints)
            attribute.ints[-1] = 4711
            return Edit(model, f'"{attribute.name}": {old}', f'"{attribute.name}": {list(attribute.ints)}')
    return None


def string_attribute(model: ModelProto) -> Edit | None:
    for attribute in attributes(model, AttributeProto.STRING):
        old, attribute.s = attribute.s.decode(), b'caf\xc3\xa9 "x"'
        return Edit(
            model, f'"{attribute.name}": {json.dumps(old, ensure_ascii=False)}', f'"{attribute.name}": "café \\"x\\""'
        )
    return None


def float_attribute(model: ModelProto) -> Edit | None:
    for attribute in attributes(model, AttributeProto.FLOAT):
        if attribute.f in (0.5, 1.0, 2.0, 0.0, -1.0):
            old, attribute.f = attribute.f, 0.1
            return Edit(model, f'"{attribute.name}": {old}', f'"{attribute.name}": 0.1')
    return None


def dimension(model: ModelProto) -> Edit | None:
    for value in (*model.graph.input, *model.graph.output):
        dims = value.type.tensor_type.shape.dim
        if value.type.HasField("tensor_type") and dims and all(dim.HasField("dim_value") for dim in dims):
            old = ",".join(str(dim.dim_value) for dim in dims)
            dims[0].dim_value = 4711
            new = ",".join(str(dim.dim_value) for dim in dims)
            return Edit(model, f"[{old}]", f"[{new}]")
    return None


def symbolic_dimension(model: ModelProto) -> Edit | None:
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        if len(dims) == 1 and dims[0].HasField("dim_value"):
            old = dims[0].dim_value
            dims[0].dim_param = "2*N"
            return Edit(model, f"[{old}]", "['2*N']")
    return None


def output_name(model: ModelProto) -> Edit | None:
    for node in all_nodes(model):
        if node.output and node.output[0]:
            old, node.output[0] = node.output[0], "another name"
            return Edit(model, f'"output": [{json.dumps(old)}', '"output": ["another name"')
    return None


def graph_name(model: ModelProto) -> Edit | None:
    old, model.graph.name = model.graph.name, "another name"
    return Edit(model, f'"name": {json.dumps(old)}', '"name": "another name"')


def operator(model: ModelProto) -> Edit | None:
    """Only operators without attributes: the name decides how bare attribute values are read."""
    for node in all_nodes(model):
        if not node.attribute and node.op_type:
            old, node.op_type = node.op_type, "Frobnicate"
            return Edit(model, f'"op_type": "{old}"', '"op_type": "Frobnicate"')
    return None


EDITS: dict[Callable[[ModelProto], Edit | None], int] = {
    int_attribute: 600, ints_attribute: 370, string_attribute: 100, float_attribute: 50, dimension: 1_500,
    symbolic_dimension: 200, output_name: 1_950, graph_name: 1_950, operator: 600,
}  # fmt: skip
"""Each edit and the number of models of the corpus that must at least have something to edit that way."""


def broken(edit: Edit, original: str) -> str | None:
    """What is wrong with the edit by string replacement; None if it is the same change."""
    lines, wanted = original.split("\n"), onnxjson.dumps(onnxjson.from_proto(edit.changed)).split("\n")
    if len(lines) != len(wanted):
        return f"{len(lines)} lines became {len(wanted)}"
    different = [index for index, (one, other) in enumerate(zip(lines, wanted, strict=True)) if one != other]
    if len(different) != 1:
        return f"{len(different)} lines changed"
    (index,) = different
    if lines[index].replace(edit.old, edit.new, 1) != wanted[index]:
        return (
            f"line {index + 1}: replacing {edit.old} by {edit.new} in {lines[index]!r} does not give {wanted[index]!r}"
        )
    lines[index] = lines[index].replace(edit.old, edit.new, 1)
    if onnxjson.to_proto(onnxjson.loads("\n".join(lines))).SerializeToString() != edit.changed.SerializeToString():
        return "the edited text reads to another message"
    return None


@pytest.mark.parametrize("change", EDITS, ids=lambda change: change.__name__)
def test_one_line_of_text_is_one_change_of_the_model(change: Callable[[ModelProto], Edit | None]) -> None:
    edited, found = 0, []
    for model in corpus():
        edit = change(ModelProto.FromString(model.data))
        if edit is None or edit.changed.SerializeToString() == model.data:
            continue
        edited += 1
        original = texts()[model.name]
        if wrong := broken(edit, original):
            found.append(f"{model.name}: {wrong}")
    assert found == []
    assert edited >= EDITS[change]
