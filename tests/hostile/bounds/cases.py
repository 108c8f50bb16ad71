"""Inputs whose processing could grow without bound, each a function that writes the files of a size n to a folder."""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, helper


class Case(NamedTuple):
    """A command on an input of any size."""

    name: str
    write: Callable[[Path, int], None]
    """Writes the files of a size to a folder."""
    command: tuple[str, ...]
    """The words after ``onnxjson``; the command runs in the folder."""
    size: int
    """The size of which the first measurement is taken; the second one has the double."""
    small: int
    """The size in the test suite, where its work is counted; 0 if it is not: native code has limits of time."""
    exit_codes: tuple[int, ...] = (0,)


def _save(path: Path, model: ModelProto) -> None:
    path.write_bytes(model.SerializeToString())


def model(
    nodes: Sequence[NodeProto],
    *,
    inputs: Sequence[str] = ("x",),
    outputs: Sequence[str] = ("y",),
    functions: Sequence[FunctionProto] = (),
) -> ModelProto:
    """A model of these nodes, whose inputs and outputs are vectors of two numbers."""
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in inputs],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in outputs],
    )
    domains = [helper.make_opsetid("", 18), *([helper.make_opsetid("f", 1)] if functions else [])]
    return helper.make_model(graph, functions=list(functions), opset_imports=domains, ir_version=10)


def _relu(*names: str) -> NodeProto:
    return helper.make_node("Relu", [names[0]], [names[1]], name=names[2] if len(names) > 2 else "")


def scopes(folder: Path, n: int) -> None:
    """A node in n scopes."""
    _save(folder / "a.onnx", model([_relu("x", "y", "/".join(["a"] * n))]))


def quotes(folder: Path, n: int) -> None:
    """A text of n quotes."""
    (folder / "a.onnx.json").write_text('{"ir_version": ' + '"' * n)


def quoted(folder: Path, n: int) -> None:
    """A text in which one string holds n escaped quotes."""
    (folder / "a.onnx.json").write_text(
        json.dumps({"format": "onnxjson/1", "ir_version": 10, "producer_name": '"' * n})
    )


def cycle(folder: Path, n: int) -> None:
    """Three versions of a model whose nodes form one cycle."""
    names = [f"v{i}" for i in range(n)]
    for file in ("base", "ours", "theirs"):
        nodes = [helper.make_node("Relu", [names[i - 1]], [names[i]], name=f"n{i}") for i in range(n)]
        if file == "ours":
            nodes[n // 3].op_type = "Abs"
        if file == "theirs":
            nodes[n // 2].op_type = "Abs"
        _save(folder / f"{file}.onnx", model(nodes, outputs=[names[0]]))


def cycle_made_by_both(folder: Path, n: int) -> None:
    """Two chains; each side connects the end of one with the start of the other."""
    for file in ("base", "ours", "theirs"):
        first = [_relu(f"a{i}", f"a{i + 1}", f"na{i}") for i in range(n // 2)]
        second = [_relu(f"b{i}", f"b{i + 1}", f"nb{i}") for i in range(n // 2)]
        if file == "ours":
            second[0].input[0] = f"a{n // 2}"
        if file == "theirs":
            first[0].input[0] = f"b{n // 2}"
        _save(folder / f"{file}.onnx", model(first + second, inputs=("a0", "b0"), outputs=[f"a{n // 2}", f"b{n // 2}"]))


def consumers(folder: Path, n: int) -> None:
    """Three versions of a model in which n nodes read one value; the sides rename it or change its producer."""
    for file in ("base", "ours", "theirs"):
        nodes = [_relu("x", "v", "p"), *(_relu("v", f"v{i}", f"n{i}") for i in range(n)), _relu("v0", "y", "last")]
        if file == "ours":
            nodes[0].op_type = "Abs"
            nodes.insert(1, _relu("v", "w", "inserted"))
            for node in nodes[2:-1]:
                node.input[0] = "w"
        if file == "theirs":
            nodes[n // 2].op_type = "Abs"
            nodes[-1].op_type = "Neg"
        _save(folder / f"{file}.onnx", model(nodes))


def inputs(folder: Path, n: int) -> None:
    """A model of n inputs."""
    names = [f"x{i}" for i in range(n)]
    made = model([helper.make_node("Sum", names, ["y"])], inputs=names)
    _save(folder / "a.onnx", made)
    made.producer_name = "other"
    _save(folder / "b.onnx", made)


def calls(folder: Path, n: int) -> None:
    """Functions each of which calls the next one twice: n levels, 2 to the n nodes."""
    functions = []
    for level in range(n):
        callee, domain = (f"f{level + 1}", "f") if level < n - 1 else ("Relu", "")
        nodes = [
            helper.make_node(callee, ["a"], ["b"], domain=domain),
            helper.make_node(callee, ["b"], ["c"], domain=domain),
        ]
        opsets = [helper.make_opsetid("", 18), helper.make_opsetid("f", 1)]
        functions.append(helper.make_function("f", f"f{level}", ["a"], ["c"], nodes, opsets))
    _save(folder / "a.onnx", model([helper.make_node("f0", ["x"], ["y"], domain="f")], functions=functions))


def identities(folder: Path, n: int) -> None:
    """Two chains of unnamed Identities that differ in length and names."""
    for file, count in (("a", n), ("b", n - 3)):
        values = ["x", *(f"{file}{i}" for i in range(count - 1)), "y"]
        nodes = [helper.make_node("Identity", [values[i]], [values[i + 1]]) for i in range(count)]
        _save(folder / f"{file}.onnx", model(nodes))


def attributes(folder: Path, n: int) -> None:
    """Two nodes of n attributes, which differ in all values."""
    for file, shift in (("a", 0), ("b", 1)):
        node = helper.make_node("Many", ["x"], ["y"], domain="f", name="n")
        node.attribute.extend(helper.make_attribute(f"a{i}", i + shift) for i in range(n))
        made = model([node])
        made.opset_import.add(domain="f", version=1)
        _save(folder / f"{file}.onnx", made)


def ifs(folder: Path, n: int) -> None:
    """Two binary trees of Ifs with about n nodes, which differ in one leaf."""
    depth = max(1, n.bit_length() - 1)
    for file, leaf in (("a", "Relu"), ("b", "Abs")):
        _save(folder / f"{file}.onnx", model(_tree(depth, "0", leaf).node, inputs=("x", "c")))


def _tree(depth: int, place: str, leaf: str) -> GraphProto:
    name = "y" if place == "0" else f"y{place}"
    if depth == 0:
        node = helper.make_node(leaf if "1" not in place else "Relu", ["x"], [name])
    else:
        branches = [_tree(depth - 1, place + side, leaf) for side in "01"]
        node = helper.make_node("If", ["c"], [name], then_branch=branches[0], else_branch=branches[1])
    return helper.make_graph([node], f"g{place}", [], [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)])


def fifo(folder: Path, n: int) -> None:
    """A fifo instead of an array."""
    made = model([helper.make_node("Add", ["x", "w"], ["y"])])
    made.graph.initializer.append(helper.make_tensor("w", TensorProto.FLOAT, [2], [1.0, 2.0]))
    _save(folder / "a.onnx", made)
    (folder / "w.npy").unlink(missing_ok=True)
    os.mkfifo(folder / "w.npy")


def expansion(folder: Path, n: int) -> None:
    """A value that n Expands or Tiles make longer, each twice."""
    nodes = [helper.make_node("Concat", [f"v{i}"] * 2, [f"v{i + 1}"], axis=0) for i in range(n)]
    made = model([_relu("x", "v0"), *nodes, helper.make_node("ReduceSum", [f"v{n}"], ["y"])])
    _save(folder / "a.onnx", made)


def filled(folder: Path, n: int) -> None:
    """A constant shape of n numbers, from nine bytes."""
    made = model(
        [
            helper.make_node("ConstantOfShape", ["s"], ["v"]),
            helper.make_node("ReduceSum", ["v"], ["w"]),
            helper.make_node("Add", ["x", "w"], ["y"]),
        ]
    )
    made.graph.initializer.append(helper.make_tensor("s", TensorProto.INT64, [1], np.array([n])))
    _save(folder / "a.onnx", made)


def chain(folder: Path, n: int) -> None:
    """Two chains of n nodes; all operators differ."""
    for file, operator in (("a", "Relu"), ("b", "Abs")):
        values = ["x", *(f"v{i}" for i in range(n - 1)), "y"]
        nodes = [helper.make_node(operator, [values[i]], [values[i + 1]], name=f"n{i}") for i in range(n)]
        _save(folder / f"{file}.onnx", model(nodes))


_OUT = ("-q", "-o", "out.onnx")
_PASS = ("optimize", *_OUT, "-p")
_MERGE = ("merge", "-q", "base.onnx", "ours.onnx", "theirs.onnx", "-o", "merged.onnx.json")
_REFUSED = (65, 71, 76)

CASES = (
    Case("show: a name of n scopes", scopes, ("show", "a.onnx"), 10_000, 200),
    Case("show: the node of n scopes", scopes, ("show", "a.onnx", "op:Relu"), 10_000, 200),
    Case("fmt: a text of n quotes", quotes, ("fmt", "a.onnx.json"), 500_000, 200, (65,)),
    Case("fmt: a string of n quotes", quoted, ("fmt", "a.onnx.json"), 500_000, 200),
    Case("merge: a cycle of n nodes", cycle, _MERGE, 10_000, 100, (0, 16)),
    Case("merge: a cycle that both sides make", cycle_made_by_both, _MERGE, 10_000, 60, (16,)),
    Case("merge: n consumers", consumers, _MERGE, 50_000, 60, (0, 16)),
    Case("diff: n unnamed Identities", identities, ("diff", "a.onnx", "b.onnx"), 30_000, 100, (1,)),
    Case("diff: n attributes", attributes, ("diff", "a.onnx", "b.onnx"), 50_000, 100, (1,)),
    Case("diff: a tree of n Ifs", ifs, ("diff", "a.onnx", "b.onnx"), 4_096, 8, (1,)),
    Case("run: n inputs", inputs, ("run", "a.onnx"), 25_000, 20),
    Case("verify: n inputs", inputs, ("verify", "a.onnx", "b.onnx"), 25_000, 20),
    Case("bench: n inputs", inputs, ("bench", "a.onnx", "-n", "1"), 25_000, 10),
    Case("run: 2 to the n calls", calls, ("run", "a.onnx"), 20, 0, (76,)),
    Case("verify: 2 to the n calls", calls, ("verify", "a.onnx", "a.onnx"), 20, 0, (76,)),
    Case("bench: 2 to the n calls", calls, ("bench", "a.onnx"), 20, 0, (1, 76)),
    Case("check --deep: 2 to the n calls", calls, ("check", "--deep", "a.onnx"), 20, 0, (1,)),
    Case("infer-shapes: 2 to the n calls", calls, ("rewrite", "infer-shapes", "a.onnx", *_OUT), 20, 0, _REFUSED),
    Case("set-batch-size: 2 to the n calls", calls, ("rewrite", "set-batch-size", "a.onnx", "4", *_OUT), 20, 0, (76,)),
    Case("quantize-dynamic: 2 to the n calls", calls, (*_PASS, "quantize-dynamic", "a.onnx"), 20, 0, _REFUSED),
    Case("run: twice as long n times", expansion, ("run", "a.onnx"), 32, 0, _REFUSED),
    Case("verify: twice as long n times", expansion, ("verify", "a.onnx", "a.onnx"), 32, 0, (1, *_REFUSED)),
    Case("run: a tensor of n numbers", filled, ("run", "a.onnx"), 1 << 31, 0, _REFUSED),
    Case("float16: a tensor of n numbers", filled, (*_PASS, "float16", "a.onnx"), 1 << 31, 0, (0, *_REFUSED)),
    Case("set-tensor: a fifo", fifo, ("rewrite", "set-tensor", "a.onnx", "w", "--file", "w.npy", *_OUT), 1, 0, (66,)),
)  # fmt: skip
