"""A model taken apart and made one again is the same model."""

from pathlib import Path
from typing import Any

import msgspec
import onnx
import pytest

import onnxjson
from onnxjson.editing.composing import Pieces, split_at, split_by_size
from onnxjson.editing.edits import apply
from onnxjson.editing.workspace import main_scope
from onnxjson.model.constants import constant_nodes
from onnxjson.model.document import Graph, Model, Node
from onnxjson.model.errors import EditError, SelectorError
from onnxjson.model.index import Index
from tests.editing.graphs import exported, model_of
from tests.editing.test_composing import CHAIN, _random_inputs, branching, evaluate

EXPORTS = ["encoder_ts.onnx", "encoder_dynamo.onnx", "mobile_ts.onnx", "mobile_dynamo.onnx", "branches_ts.onnx"]


def graph_of(model: Model) -> Graph:
    assert model.graph is not None
    return model.graph


def joined(pieces: Pieces, folder: Path) -> Model:
    names = [f"piece{number}.onnx" for number in range(len(pieces.pieces))]
    for piece, name in zip(pieces.pieces, names, strict=True):
        onnxjson.save(piece.model, folder / name)
    return apply(onnxjson.load(folder / names[0]), pieces.script(names), folder=folder)


def require_same(whole: Model, again: Model) -> None:
    """Both are one model, but for the order of constants and for types that were not said before.

    Constants are initializers, and nodes that compute with constants only.
    """
    one, other = graph_of(whole), graph_of(again)
    assert msgspec.structs.replace(again, graph=one) == whole
    assert computing(again) == computing(whole)
    assert sorted(other.node, key=str) == sorted(one.node, key=str)
    assert (other.input, other.output) == (one.input, one.output)
    by_name = {tensor.name: tensor for tensor in other.initializer}
    assert [by_name[tensor.name] for tensor in one.initializer] == list(one.initializer)
    assert len(by_name) == len(other.initializer)
    said = {value.name: value for value in other.value_info}
    assert [said[value.name] for value in one.value_info] == list(one.value_info)
    rest = dict.fromkeys(("node", "input", "output", "initializer", "value_info"), ())
    assert msgspec.structs.replace(one, **rest) == msgspec.structs.replace(other, **rest)


def computing(model: Model) -> list[Node]:
    """The nodes that depend on more than constants."""
    main = main_scope(Index(model))
    constant = constant_nodes(main)
    return [node for position, node in enumerate(main.graph.node) if position not in constant]


def run_pieces(pieces: Pieces, inputs: dict[str, Any]) -> dict[str, Any]:
    values = dict(inputs)
    for piece in pieces.pieces:
        values |= evaluate(piece.model, values)
    return {name: values[name] for name in pieces.outputs}


@pytest.mark.parametrize("name", EXPORTS)
def test_pieces_by_size_make_the_same_model_again_and_compute_the_same_bits(name: str, tmp_path: Path) -> None:
    whole = exported(name)
    total = sum(len(tensor.raw_data or b"") for tensor in graph_of(whole).initializer)
    pieces = split_by_size(whole, total // 3)
    assert len(pieces.pieces) >= (3 if total else 1)
    for piece in pieces.pieces:
        onnx.checker.check_model(onnxjson.to_proto(piece.model))
    require_same(whole, joined(pieces, tmp_path))
    inputs = _random_inputs(whole)
    expected, found = evaluate(whole, inputs), run_pieces(pieces, inputs)
    assert {key: value.tobytes() for key, value in found.items()} == {
        key: value.tobytes() for key, value in expected.items()
    }


@pytest.mark.parametrize("name", EXPORTS)
def test_no_constant_is_an_input_of_a_piece(name: str) -> None:
    whole = exported(name)
    main = main_scope(Index(whole))
    values = {name for position in constant_nodes(main) for name in main.graph.node[position].output}
    total = sum(len(tensor.raw_data or b"") for tensor in graph_of(whole).initializer)
    for piece in split_by_size(whole, total // 3).pieces:
        assert values.isdisjoint(piece.inputs)


def test_constant_nodes_are_in_every_piece_that_needs_them_and_join_to_one(tmp_path: Path) -> None:
    whole = model_of(
        """g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
        v = Identity(w) k = Constant<value = float[1] {3}>() m = Mul(v, k)
        r = RandomNormal<shape = [2]>()
        a = Add(x, m) b = Add(a, r) c = Mul(b, m) y = Add(c, r)
    }"""
    )
    pieces = split_at(whole, ["b"])
    assert [[node.op_type for node in graph_of(piece.model).node] for piece in pieces.pieces] == [
        ["Identity", "Constant", "Mul", "RandomNormal", "Add", "Add"],
        ["Identity", "Constant", "Mul", "Mul", "Add"],
    ]
    assert [piece.inputs for piece in pieces.pieces] == [("x",), ("b", "r")]
    require_same(whole, joined(pieces, tmp_path))
    assert graph_of(joined(pieces, tmp_path)).node == graph_of(whole).node
    with pytest.raises(EditError, match='"v" would have only constant nodes'):
        split_at(whole, ["v"])


def test_pieces_have_at_most_the_size_unless_one_node_has_more() -> None:
    whole = exported("encoder_dynamo.onnx")
    pieces = split_by_size(whole, 20_000)
    biggest = max(len(tensor.raw_data or b"") for tensor in graph_of(whole).initializer)
    assert all(piece.size <= max(20_000, 2 * biggest) for piece in pieces.pieces)
    assert split_by_size(whole, 10**12).pieces[0].model == whole


def test_a_model_is_cut_at_values_in_any_order(tmp_path: Path) -> None:
    whole = onnxjson.from_proto(onnx.parser.parse_model(CHAIN))
    one, other = split_at(whole, ["a", "c"]), split_at(whole, ["c", "a"])
    assert one == other
    assert [[node.op_type for node in graph_of(piece.model).node] for piece in one.pieces] == [
        ["Relu"],
        ["Add", "Mul"],
        ["Neg", "Abs"],
    ]
    assert [piece.inputs for piece in one.pieces] == [("x",), ("z", "a"), ("c", "s")]
    assert [piece.outputs for piece in one.pieces] == [("a",), ("s", "c"), ("y", "w")]
    require_same(whole, joined(one, tmp_path))


def test_constants_and_inputs_that_nothing_uses_are_kept(tmp_path: Path) -> None:
    whole = model_of(
        """g (float[2] x, float[2] spare) => (float[2] y, float[2] x, float[2] k)
        <float[2] k = {1, 2}, float[2] unused = {3, 4}> { t = Neg (x) dead = Abs (t) y = Relu (t) }"""
    )
    pieces = split_at(whole, ["t"])
    require_same(whole, joined(pieces, tmp_path))


def test_nodes_without_constants_and_subgraphs_are_pieces_too(tmp_path: Path) -> None:
    whole = branching()
    pieces = split_at(whole, ["s"])
    assert [piece.inputs for piece in pieces.pieces] == [("x",), ("c", "s")]
    require_same(whole, joined(pieces, tmp_path))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["nope"], 'nothing is called "nope"'),
        (["x"], '"x" is not the output of a node of the main graph'),
        (["b"], '"b" is not the output of a node of the main graph'),
        (["a", "a"], 'the piece that ends at "a" would have only constant nodes'),
    ],
)
def test_cuts_that_mean_nothing_are_refused(values: list[str], message: str) -> None:
    whole = onnxjson.from_proto(onnx.parser.parse_model(CHAIN))
    with pytest.raises((EditError, SelectorError), match=message):
        split_at(whole, values)


def test_a_cut_after_which_nothing_comes_is_refused() -> None:
    whole = model_of("g (float[2] x) => (float[2] y) { t = Neg (x) y = Relu (t) }")
    with pytest.raises(EditError, match='no node is left after "y"'):
        split_at(whole, ["y"])
