"""``python -m tests.benchmarks.pattern_speed``: seconds to find a pattern of eight operators in 100,000 nodes.

The time is that of the search alone, the first one after the model was loaded; the goal is 0.5 s.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from typing import Final

from onnxjson.codecs import serde
from onnxjson.codecs.wire_writing import message_bytes
from onnxjson.model.document import Attribute, Graph, Model, Node, OperatorSetId, ValueInfo
from onnxjson.model.index import Index
from onnxjson.patterns.searching import find
from tests.editing.graphs import model_of

_CONSTANTS: Final = """<ir_version: 10, opset_import: ["" : 20]> g (float[4,4] x) => (float[4,4] y)
<float three = {3}, float c = {0.044715}, float d = {0.7978845}, float one = {1}, float half = {0.5}, float eight = {8}>
{ y = Identity(x) }"""

_BLOCKS: Final = {
    "attention": (
        ("Transpose", "x", "k"), ("MatMul", "x k", "s"), ("Div", "s eight", "d"), ("Add", "d one", "m"),
        ("Softmax", "m", "p"), ("MatMul", "p x", "v"), ("Relu", "v", "r"), ("Add", "r x", "o"),
    ),
    "chain": (
        ("Relu", "x", "a"), ("Sigmoid", "a", "b"), ("Tanh", "b", "e"), ("Exp", "e", "f"),
        ("Log", "f", "h"), ("Neg", "h", "i"), ("Abs", "i", "j"), ("Sqrt", "j", "o"),
    ),
    "Gelu": (
        ("Pow", "x three", "p"), ("Mul", "p c", "m"), ("Add", "x m", "a"), ("Mul", "a d", "n"),
        ("Tanh", "n", "t"), ("Add", "t one", "b"), ("Mul", "x half", "h"), ("Mul", "h b", "o"),
    ),
}  # fmt: skip
"""Operators with inputs and output; x is the output of the block before, or one of the constants."""

_ATTENTION: Final = (
    "Add(Relu(MatMul(Softmax<axis=-1>(Add(Div(MatMul($x, Transpose<perm=[{perm}]>($x)), ?s), ?m)), $x)), $x)"
)
_GELU: Final = "Mul(Mul($x, 0.5), Add(Tanh(Mul(Add($x, Mul(Pow($x, {power}), 0.044715)), 0.79788)), 1))"

CASES: Final = (
    ("attention", "every node in a match", _ATTENTION.format(perm="0,2,1")),
    ("attention", "none, by its deepest attribute", _ATTENTION.format(perm="0,1,2")),
    ("chain", "every node in a match", "Sqrt(Abs(Neg(Log(Exp(Tanh(Sigmoid(Relu($x))))))))"),
    ("Gelu", "every node in a match", _GELU.format(power=3)),
    ("Gelu", "none, by its deepest constant", _GELU.format(power=2)),
)


def _nodes(block: str, count: int) -> Iterator[Node]:
    own = {output for _, _, output in _BLOCKS[block]}
    before = "x"
    for number in range(count // len(_BLOCKS[block])):
        for operator, inputs, output in _BLOCKS[block]:
            names = [before if each == "x" else f"{number}/{each}" if each in own else each for each in inputs.split()]
            attributes = {"Transpose": (Attribute(name="perm", type=7, ints=(0, 2, 1)),)}.get(operator, ())
            name = f"{number}/{output}"
            yield Node(op_type=operator, input=tuple(names), output=(name,), name=name, attribute=attributes)
        before = f"{number}/o"


def model_of_blocks(block: str, count: int) -> Model:
    """A chain of equal blocks with `count` nodes."""
    graph = model_of(_CONSTANTS).graph
    assert graph is not None
    nodes = tuple(_nodes(block, count))
    output = ValueInfo(name=nodes[-1].output[0], type=graph.output[0].type)
    made = Graph(name="g", node=nodes, initializer=graph.initializer, input=graph.input, output=(output,))
    return Model(ir_version=10, graph=made, opset_import=(OperatorSetId(domain="", version=20),))


def main(arguments: list[str] | None = None) -> int:
    """Prints a row for each case."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.pattern_speed", description=__doc__)
    parser.add_argument("--nodes", type=int, default=100_000)
    given = parser.parse_args(arguments)
    print(f"{given.nodes:,} nodes, pattern of 8 operators\n\n| blocks | matches | s | cpu s |\n|---|---|---|---|")
    for block, what, pattern in CASES:
        model = serde.parse(message_bytes(model_of_blocks(block, given.nodes))).model
        index = Index(model)
        wall, processor = time.perf_counter(), time.process_time()
        found = len(find(model, pattern, index=index))
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        assert found == (given.nodes // 8 if what.startswith("every") else 0), (block, what, found)
        print(f"| {block} | {found:,}: {what} | {wall:.2f} | {processor:.2f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
