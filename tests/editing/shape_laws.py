"""The law of types: a model that passes onnx's full check passes it after any edit, or the edit is refused.

`python -m tests.editing.shape_laws 5000 [MODEL_OR_FOLDER ...]` tries it with random edits of the models of onnx's node
tests, of the exported models of the tests and of the given ones, and prints what it found.
"""

import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import onnx

import onnxjson
from onnxjson import edits
from onnxjson.editing.declaration import Edit
from onnxjson.model.document import Attribute, Model
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.index import Index, NodeRef
from onnxjson.model.tensors import to_numpy
from tests.editing.graphs import MODELS

OPERATORS = ("Relu", "Transpose", "Identity", "Cast", "Softmax", "Flatten", "Neg", "Shape", "ReduceSum", "Not")


def passes(model: Model) -> bool:
    """Whether onnx's checker with its strict inference finds nothing."""
    try:
        onnx.checker.check_model(onnxjson.to_proto(model), full_check=True)
    except Exception:
        return False
    return True


def random_edit(model: Model, rng: random.Random) -> Edit | None:
    """An edit that may change shapes; None where the chosen kind does not fit the model."""
    index = Index(model)
    ref = rng.choice(index.node_refs)
    node, name = ref.node, f"@{ref.address}"
    scope = ref.scope
    values = [*scope.inputs, *scope.producers]
    value, other = rng.choice(values), rng.choice(values)
    inputs = [each for each in scope.inputs if scope.kind == "main"]
    kind = rng.randrange(12)
    sizes: list[int | str] = [1, 2, 7, "N", "?"]
    if kind <= 2:
        return _attribute_edit(ref, rng)
    if kind == 3:
        return edits.DeleteNode(node=name, bypass=rng.choice([None, 0, 1]))
    if kind == 4:
        return edits.ReplaceNode(node=name, op_type=rng.choice(OPERATORS))
    if kind == 5:
        attribute = {"to": rng.choice([6, 7, 10, 11])} if (operator := rng.choice(OPERATORS)) == "Cast" else {}
        return edits.AddNode(
            op_type=operator, input=(value,), output=(f"new{rng.randrange(99)}",), attribute=attribute, insert=True
        )
    if kind == 6:
        return (
            edits.RemoveAttribute(node=name, attribute=rng.choice(node.attribute).name or "")
            if node.attribute
            else None
        )
    if kind == 7:
        return _tensor_edit(index, rng)
    if kind == 8:
        return edits.Rewire(node=name, input=rng.randrange(len(node.input)), tensor=other) if node.input else None
    if kind == 9:
        return edits.SwapInputs(node=name)
    if kind == 10 and inputs:
        chosen = rng.choice(inputs)
        stated = scope.types.get(chosen)
        shape = stated.tensor_type.shape if stated is not None and stated.tensor_type is not None else None
        if shape is None:
            return None
        dims = [each.dim_value if each.dim_value is not None else each.dim_param or "?" for each in shape.dim]
        if dims and rng.random() < 0.5:
            return edits.SetDim(tensor=chosen, axis=rng.randrange(len(dims)), size=rng.choice(sizes))
        return edits.SetShape(tensor=chosen, shape=tuple([rng.choice([each, each, 1, 4, "M"]) for each in dims]))
    return edits.SetBatchSize(size=rng.choice(sizes[:-1]))


def _attribute_edit(ref: NodeRef, rng: random.Random) -> Edit | None:
    attributes = [each for each in ref.node.attribute if each.i is not None or each.ints]
    if not attributes:
        return None
    attribute = rng.choice(attributes)
    return edits.SetAttribute(node=f"@{ref.address}", attribute=attribute.name or "", value=_other(attribute, rng))


def _other(attribute: Attribute, rng: random.Random) -> object:
    if not attribute.ints:
        return (attribute.i or 0) + rng.choice([-2, -1, 1, 2, 9])
    numbers = list(attribute.ints)
    if rng.random() < 0.6:
        rng.shuffle(numbers)
    else:
        numbers[rng.randrange(len(numbers))] += rng.choice([-1, 1, 2])
    return numbers


def _tensor_edit(index: Index, rng: random.Random) -> Edit | None:
    """Another value of a small constant of integers, such as a shape."""
    assert index.main is not None
    graph = index.model.graph
    assert graph is not None
    small = [
        each for each in graph.initializer if each.data_type in (6, 7) and 0 < sum(each.dims) < 9 and len(each.dims) < 2
    ]
    if not small:
        return None
    tensor = rng.choice(small)
    numbers = to_numpy(tensor).tolist()
    numbers[rng.randrange(len(numbers))] += rng.choice([-1, 1, 2])
    if rng.random() < 0.5:
        rng.shuffle(numbers)
    return edits.SetTensor(tensor=tensor.name or "", value=numbers)


def law(model: Model, rng: random.Random) -> tuple[str, Edit | None]:
    """Make one random edit of a model that passes; return what came of it, and the edit."""
    edit = random_edit(model, rng)
    if edit is None:
        return "none", None
    try:
        after = onnxjson.apply(model, edit)
    except OnnxJsonError:
        return "refused", edit
    return ("made" if passes(after) else "BROKEN"), edit


def main(words: Sequence[str]) -> None:
    """Print the counts, and every edit that breaks the law."""
    from tests.corpus.collection import node_models, proto

    count = int(words[0]) if words else 5000
    paths = [
        path
        for word in words[1:]
        for path in ([Path(word)] if Path(word).is_file() else sorted(Path(word).glob("*.onnx")))
    ]
    exported = [(path.name, onnxjson.load(path)) for path in (*sorted(MODELS.glob("*.onnx")), *paths)]
    started = time.monotonic()
    exported = [(name, model) for name, model in exported if passes(model)]
    nodes = [(each.name, onnxjson.from_proto(proto(each))) for each in node_models()]
    counts: Counter[tuple[str, str]] = Counter()
    slowest = 0.0
    seed = done = 0
    known: dict[str, bool] = {}
    while done < count:
        rng = random.Random(seed)
        seed += 1
        name, model = rng.choice(exported) if seed % 4 == 0 else rng.choice(nodes)
        if not known.setdefault(name, model.graph is not None and bool(model.graph.node) and passes(model)):
            continue
        begun = time.monotonic()
        result, edit = law(model, rng)
        if edit is None:
            continue
        slowest = max(slowest, time.monotonic() - begun)
        done += 1
        counts[type(edit).__name__, result] += 1
        if result == "BROKEN":
            print(f"seed {seed - 1}: {name}: {edit}", flush=True)
    for kind in sorted({kind for kind, _ in counts}):
        print(kind, {result: counts[kind, result] for result in ("made", "refused", "BROKEN")})
    totals = {
        result: sum(n for (_, each), n in counts.items() if each == result) for result in ("made", "refused", "BROKEN")
    }
    print(
        f"{done:,} edits of {len(known):,} models in {time.monotonic() - started:.0f} s: {totals}; "
        f"slowest {slowest:.2f} s"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
