"""Edits of names, interface and constants on models that nobody meant: refused with a reason, or undoable."""

import struct
from collections.abc import Callable
from random import Random

import pytest

from onnxjson.codecs.serde import parse
from onnxjson.editing.applying import run
from onnxjson.editing.cleaning import Prune, Strip
from onnxjson.editing.declaration import Edit
from onnxjson.editing.deduplication import DeduplicateInitializers
from onnxjson.editing.deletion import DeleteNode
from onnxjson.editing.initializers import ConstantsToInitializers, InitializersToConstants, InitializersToInputs
from onnxjson.editing.interface import AddInput, AddOutput, RemoveInput, RemoveOutput
from onnxjson.editing.names import NameNodes, Prefix, Rename
from onnxjson.editing.shapes import TransposeInput
from onnxjson.editing.tensor_values import CastTensor
from onnxjson.model.document import Attribute, Graph, Model, Node, OperatorSetId, Tensor
from onnxjson.model.errors import EditError, OnnxJsonError
from onnxjson.model.index import Index
from onnxjson.patching.patch import Patch
from tests.generation.messages import generate, size_of
from tests.seeds import portions


def _edits(numbers: Random, model: Model) -> list[Callable[[], Edit]]:
    names = ["x"]
    for scope in Index(model).scopes:
        names += [*scope.inputs, *scope.initializers, *scope.producers, *[name for name in scope.output_names if name]]
    outputs = ["y", *[value.name or "" for value in model.graph.output]] if model.graph else ["y"]
    inputs = ["x", *[value.name or "" for value in model.graph.input]] if model.graph else ["x"]
    name, other = numbers.choice(names), numbers.choice(names)
    return [
        lambda: Rename(kind="tensor", from_=name, to="another one"),
        lambda: Rename(kind="tensor", from_=name, to=other),
        lambda: Rename(kind="tensor", from_="re:(.*)", to=r"new/\1"),
        lambda: Rename(kind="node", from_="re:(.*)", to=r"new/\1"),
        lambda: Rename(kind="dim", from_="re:(.*)", to=r"new\1"),
        lambda: Rename(kind="metadata", from_="re:(.*)", to=r"new/\1"),
        lambda: NameNodes(),
        lambda: Prefix(prefix="new/", kinds=("tensor", "node", "input", "output", "dim")),
        lambda: Prune(what=("nodes", "initializers", "functions")),
        lambda: Strip(what=("doc_strings", "metadata", "value_info", "names")),
        lambda: DeduplicateInitializers(),
        lambda: ConstantsToInitializers(),
        lambda: InitializersToConstants(),
        lambda: InitializersToInputs(tensor=name),
        lambda: AddInput(tensor="another one", type="float32[1]"),
        lambda: AddOutput(tensor=name, type="float32[2]"),
        lambda: RemoveOutput(tensor=numbers.choice(outputs), prune=True),
        lambda: RemoveInput(tensor=numbers.choice(inputs)),
        lambda: TransposeInput(tensor=numbers.choice([*inputs, *outputs]), reverse=0),
        lambda: TransposeInput(tensor=numbers.choice([*inputs, *outputs]), perm=(1, 0)),
    ]


@pytest.mark.parametrize("portion", portions(200, always=100, size=50))
def test_every_edit_is_refused_with_a_reason_or_can_be_undone(portion: range) -> None:
    count = 0
    for seed in portion:
        model = parse(generate(seed, size_of(seed))).model
        for edit in _edits(Random(seed), model):
            try:
                after = run(model, edit()).model
            except OnnxJsonError:
                continue
            count += 1
            patch = Patch.between(model, after)
            assert patch.apply(model) == after
            assert patch.invert().apply(after) == model
    assert count > 50


def _relu_of_w(*nodes: Node) -> Model:
    """A model in which v is Relu(w), with some nodes more."""
    weight = Tensor(name="w", data_type=1, dims=(1,), float_data=struct.pack("<f", 1.0))
    relu = Node(op_type="Relu", input=("w",), output=("v",))
    graph = Graph(name="g", node=(relu, *nodes), initializer=(weight,))
    return Model(ir_version=10, graph=graph, opset_import=(OperatorSetId(domain="", version=20),))


def test_dtypes_that_go_round_in_a_circle_are_not_followed_for_ever() -> None:
    casts = [
        Node(op_type="Cast", input=("v",), output=("v",), attribute=(Attribute(name="to", type=2, i=dtype),))
        for dtype in (10, 1)
    ]
    after = run(_relu_of_w(*casts), CastTensor(tensor="w", dtype="float16", lossy=True)).model
    assert after.graph is not None
    assert after.graph.initializer[0].data_type == 10


def test_a_node_with_inputs_that_its_operator_does_not_have_does_not_stop_a_cast() -> None:
    nodes = [
        Node(op_type=op_type, input=("w",), output=(f"r{number}",))
        for number, op_type in enumerate(("RandomUniform", "RandomNormal", "Constant"))
    ]
    after = run(_relu_of_w(*nodes), CastTensor(tensor="w", dtype="float16", lossy=True)).model
    assert after.graph is not None
    assert after.graph.initializer[0].data_type == 10


def test_the_deletion_of_a_circle_of_nodes_that_something_takes_is_refused() -> None:
    circle = [Node(op_type="Neg", input=(taken,), output=(made,)) for taken, made in (("a", "b"), ("b", "a"))]
    taker = Node(op_type="Abs", input=("b",), output=("c",))
    with pytest.raises(EditError, match="in a cycle of deleted nodes"):
        run(_relu_of_w(*circle, taker), DeleteNode(node="op:Neg"))
