"""``python -m tests.patterns.recall DIR``: what the rules of the package find in the models of a folder, by family.

Beside it stand counts by code that knows operators and edges of the graph alone, and nothing of patterns or blocks.
Fused operators such as LayerNormalization count on neither side. ``tests/models/make_networks.py`` makes the models of
docs/patterns.md.
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import onnx

import onnxjson
from onnxjson.model.index import NodeRef
from onnxjson.patterns.rule_files import SHIPPED, read_rules
from onnxjson.patterns.searching import find

RULES: Final = {rule.id: rule for rule in read_rules(SHIPPED)}

_BETWEEN: Final = frozenset({
    "Add", "Cast", "Div", "Dropout", "Expand", "Identity", "IsNaN", "Mul", "Reshape", "Squeeze", "Sub", "Transpose",
    "Unsqueeze", "Where",
})  # fmt: skip
"""Operators that move, scale and mask scores."""


class Wires:
    """Producers, users and constants of the main graph of a model."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.nodes = list(model.graph.node)
        self.maker = {name: node for node in self.nodes for name in node.output if name}
        self.users: dict[str, list[onnx.NodeProto]] = {}
        for node in self.nodes:
            for name in node.input:
                self.users.setdefault(name, []).append(node)
        self._stored = {each.name: each for each in model.graph.initializer}

    def of(self, *kinds: str) -> list[onnx.NodeProto]:
        """The nodes of some operators."""
        return [node for node in self.nodes if node.op_type in kinds]

    def made_by(self, name: str, *kinds: str) -> onnx.NodeProto | None:
        """The node that computes a value, if it has one of these operators."""
        node = self.maker.get(name)
        return node if node is not None and node.op_type in kinds else None

    def before(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        """The nodes that compute its inputs."""
        return [self.maker[name] for name in node.input if name in self.maker]

    def after(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        """The nodes that use its outputs."""
        return [user for name in node.output for user in self.users.get(name, ())]

    def is_weight(self, name: str) -> bool:
        """Whether a value is a constant, perhaps transposed."""
        node = self.maker.get(name)
        if node is None:
            return name in self._stored
        return node.op_type == "Constant" or (
            node.op_type in ("Identity", "Transpose", "DequantizeLinear") and self.is_weight(node.input[0])
        )

    def number(self, name: str) -> float | None:
        """The value of a constant of one element."""
        tensor = self._stored.get(name)
        node = self.made_by(name, "Constant", "Identity")
        if node is not None and node.op_type == "Identity":
            return self.number(node.input[0])
        if node is not None:
            tensor = next((each.t for each in node.attribute if each.name == "value"), None)
        if tensor is None:
            return None
        values = onnx.numpy_helper.to_array(tensor).reshape(-1)
        return float(values[0]) if values.size == 1 else None


def attentions(wires: Wires) -> int:
    """Softmax between products of two computed values, with nothing but layout, scales and masks between."""

    def leads(node: onnx.NodeProto, step: Callable[[onnx.NodeProto], list[onnx.NodeProto]]) -> bool:
        pending, seen = step(node), set[str]()
        while pending:
            each = pending.pop()
            if each.op_type in ("MatMul", "Einsum") and not any([wires.is_weight(name) for name in each.input]):
                return True
            if each.output[0] not in seen and each.op_type in _BETWEEN:
                seen.add(each.output[0])
                pending += step(each)
        return False

    return sum([leads(node, wires.before) and leads(node, wires.after) for node in wires.of("Softmax")])


def _means_of_squares(wires: Wires) -> Iterator[bool]:
    """Means of squares whose sum with a constant has its root taken: whether of a difference."""
    for mean in wires.of("ReduceMean"):
        square = wires.made_by(mean.input[0], "Pow", "Mul")
        sums = [each for each in wires.after(mean) if each.op_type == "Add"]
        if square is not None and any([root.op_type == "Sqrt" for each in sums for root in wires.after(each)]):
            yield wires.made_by(square.input[0], "Sub") is not None


def layer_norms(wires: Wires) -> int:
    """Roots of the mean square of a difference."""
    return sum(_means_of_squares(wires))


def rms_norms(wires: Wires) -> int:
    """Roots of the mean square of a value."""
    return sum([not is_difference for is_difference in _means_of_squares(wires)])


def group_norms(wires: Wires) -> int:
    """InstanceNormalization of a Reshape, with another Reshape after it."""
    return sum([
        wires.made_by(node.input[0], "Reshape") is not None
        and any([each.op_type == "Reshape" for each in wires.after(node)])
        for node in wires.of("InstanceNormalization")
    ])  # fmt: skip


def rotary_embeddings(wires: Wires) -> int:
    """Halves of a value, one of them negated, that are joined and multiplied."""
    return sum([
        len(node.input) == 2
        and wires.made_by(node.input[0], "Neg") is not None
        and any([each.op_type == "Mul" for each in wires.after(node)])
        for node in wires.of("Concat")
    ])  # fmt: skip


def gelus(wires: Wires) -> int:
    """Erf, and Tanh of a polynomial with 0.044715."""
    cubic = 0
    for node in wires.of("Tanh"):
        pending = wires.before(node)
        for _ in range(3):
            numbers = [wires.number(name) for each in pending for name in each.input]
            if any([number is not None and abs(number - 0.044715) < 1e-4 for number in numbers]):
                cubic += 1
                break
            pending = [source for each in pending for source in wires.before(each)]
    return len(wires.of("Erf")) + cubic


def gates(wires: Wires) -> int:
    """Sigmoid, HardSigmoid, a clipped sum or Tanh of Softplus of a value, times that value: SiLU, HardSwish, Mish."""
    count = 0
    for node in wires.of("Sigmoid", "HardSigmoid"):
        count += any([each.op_type == "Mul" and node.input[0] in each.input for each in wires.after(node)])
    for node in wires.of("Clip"):
        total = wires.made_by(node.input[0], "Add")
        if total is not None and 3.0 in [wires.number(name) for name in total.input]:
            users = [*wires.after(node), *[more for each in wires.after(node) for more in wires.after(each)]]
            count += any([each.op_type == "Mul" and {*total.input} & {*each.input} for each in users])
    for node in wires.of("Tanh"):
        plus = wires.made_by(node.input[0], "Softplus")
        count += plus is not None and any([plus.input[0] in each.input for each in wires.after(node)])
    return count


FAMILIES: Final[dict[str, tuple[str, Callable[[Wires], int]]]] = {
    "attention": ("attention attention-mask", attentions),
    "layer norm": ("layer-norm-plain", layer_norms),
    "RMS norm": ("rms-norm", rms_norms),
    "group norm": ("group-norm group-norm-scale", group_norms),
    "rotary embedding": ("rotary-embedding", rotary_embeddings),
    "Gelu": ("gelu-erf gelu-tanh erf-gate", gelus),
    "SiLU, HardSwish, Mish": ("silu hard-swish mish", gates),
}
"""Our rules and the independent count of each family."""


def counts(path: Path) -> dict[str, tuple[int, int]]:
    """Return by family what the rules find in the main graph of a model, and what is there."""
    model, wires = onnxjson.load(path), Wires(onnx.load(path))
    return {
        family: (len({_place(match.nodes) for each in names.split() for match in find(model, RULES[each].pattern_text)
                      if match.root.scope.kind == "main"}), count(wires))
        for family, (names, count) in FAMILIES.items()
    }  # fmt: skip


def _place(nodes: tuple[NodeRef, ...]) -> int:
    """What two rules that find the same have in common: the first node."""
    return min([ref.position for ref in nodes])


def main(folder: Path) -> None:
    """Print a line for each model in which a family differs, and the sums."""
    sums = dict.fromkeys(FAMILIES, (0, 0))
    for path in sorted(folder.rglob("*.onnx")):
        for family, (ours, all_) in counts(path).items():
            sums[family] = sums[family][0] + ours, sums[family][1] + all_
            if ours != all_:
                print(f"{path.name}: {family}: {ours} of {all_}")
    for family, (ours, all_) in sums.items():
        print(f"{family:24}{ours:5} of {all_}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
