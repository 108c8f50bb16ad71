"""Random valid models with subgraphs, functions, constants and annotations, and random edits of any model."""

import random
from collections.abc import Sequence

import onnxjson
from onnxjson import edits
from onnxjson.editing.declaration import Edit
from onnxjson.model.document import Model, StringStringEntry, TensorAnnotation
from onnxjson.model.index import Index
from tests.editing.graphs import model_of

UNARY = ("Relu", "Neg", "Abs", "Identity", "Sigmoid", "LeakyRelu", "local.twice")
BINARY = ("Add", "Mul", "Sub", "Max")


def random_model(rng: random.Random) -> Model:
    """A model of some nodes that checker and onnxruntime take, all values float[N,4]."""
    body = _body(rng, ["x", "z", "w0", "w1"], "v", depth=0)
    outputs = rng.sample(body.made, min(len(body.made), rng.randint(1, 2)))
    text = f"""<ir_version: 10, opset_import: ["" : 20, "local" : 1], producer_name: "random">
    g (float[N,4] x, float[N,4] z, bool c) => ({", ".join(f"float[N,4] {name}" for name in outputs)})
    <float[4] w0 = {{1, 2, 3, 4}}, float[4] w1 = {{1, 2, 3, 4}}> {{
    {body.text}
    }}
    <domain: "local", opset_import: ["" : 20]> twice (a) => (d) {{ b = Relu(a) d = Add(b, b) }}"""
    model = model_of(text)
    assert model.graph is not None
    from msgspec.structs import replace

    noted = TensorAnnotation(rng.choice(body.made), (StringStringEntry("SCALE_TENSOR", "w0"),))
    graph = replace(model.graph, quantization_annotation=(noted,), doc_string="random")
    return replace(model, graph=graph, metadata_props=(StringStringEntry("k", "v"),))


class _Body:
    """Nodes as text, and the values that they make."""

    def __init__(self, text: str, made: list[str]) -> None:
        self.text = text
        self.made = made


def _body(rng: random.Random, known: Sequence[str], prefix: str, depth: int) -> _Body:
    lines: list[str] = []
    made: list[str] = []
    for number in range(rng.randint(2, 6)):
        seen = [*known, *made]
        name = f"{prefix}{number}"
        kind = rng.random()
        if kind < 0.15 and depth < 2:
            branches = []
            for branch in ("then", "else"):
                inner = _body(rng, [each for each in seen if not each.startswith("w")], f"{name}_{branch}_", depth + 1)
                result = f"{branch}_{name} () => (float[N,4] {inner.made[-1]})"
                branches.append(f"{branch}_branch = {result} {{ {inner.text} }}")
            lines.append(f"{name} = If(c) <{', '.join(branches)}>")
        elif kind < 0.25:
            lines.append(f"{name}_k = Constant<value = float[4] {{4, 3, 2, 1}}>()")
            lines.append(f"{name} = Add({rng.choice(_full(seen))}, {name}_k)")
        elif kind < 0.6:
            lines.append(f"{name} = {rng.choice(UNARY)}({rng.choice(_full(seen))})")
        else:
            lines.append(f"{name} = {rng.choice(BINARY)}({rng.choice(_full(seen))}, {rng.choice(seen)})")
        made.append(name)
    return _Body("\n".join(lines), made)


def _full(names: Sequence[str]) -> list[str]:
    return [name for name in names if not name.startswith("w")]


def random_edit(model: Model, rng: random.Random, *, texts: bool = False) -> Edit:
    """An edit that may fit a model, or be refused.

    Args:
        model: the model.
        rng: what is chosen by.
        texts: whether edits of names and doc strings are among them; without, seeds give what they gave before these.
    """
    index = Index(model)
    refs = index.node_refs
    node = f"@{rng.choice(refs).address}" if refs else "x"
    values = sorted({name for scope in index.scopes for name in (*scope.producers, *scope.inputs, *scope.initializers)})
    value, other = rng.choice(values or ["x"]), rng.choice(values or ["x"])
    new = f"new{rng.randrange(1000)}"
    operator = rng.choice(["Relu", "Add", "Identity", "LeakyRelu", "Cast", "Nope"])
    ops = sorted({ref.node.op_type or "" for ref in refs})
    choices: list[Edit] = [
        edits.DeleteNode(node=node),
        edits.DeleteNode(node=node, bypass=rng.randrange(3)),
        edits.DeleteNode(node=f"op:{rng.choice(ops or [operator])}"),
        edits.AddNode(op_type=operator, input=(value,), output=(new,), insert=rng.random() < 0.5),
        edits.AddNode(op_type="Add", input=(value, other), output=(new,), graph=rng.choice(index.scopes).address),
        edits.ReplaceNode(node=node, op_type=operator),
        edits.Rewire(node=node, input=rng.randrange(2), tensor=value),
        edits.Rewire(node=f"input:{value}", input=value, tensor=other),
        edits.SwapInputs(node=node),
        edits.SetAttribute(node=node, attribute=rng.choice(["alpha", "axis", "to"]), value=rng.randrange(9)),
        edits.RemoveAttribute(node=node, attribute=rng.choice(["alpha", "value", "then_branch"])),
        edits.SetTensor(tensor=value, value=[1.5, 2.5, 3.5, 4.5]),
        edits.CastTensor(tensor=value, dtype=rng.choice(["float16", "int64"]), lossy=True),
        edits.Rename(kind="tensor", from_=value, to=rng.choice([new, other])),
        edits.NameNodes(),
        edits.Prefix(prefix="p_"),
        edits.Prune(),
        edits.Strip(),
        edits.DeduplicateInitializers(),
        edits.ConstantsToInitializers(),
        edits.InitializersToConstants(),
        edits.AddOutput(tensor=value),
        edits.RemoveOutput(tensor=value),
        edits.RemoveInput(tensor=value),
        edits.SetMetadata(key="k", value=new),
    ]
    if texts:
        choices += [
            edits.SetName(node=node, name=rng.choice([new, ""])),
            edits.SetDoc(text=rng.choice([new, ""]), address=rng.choice(["/graph", node, "/graph/input/0"])),
        ]
    return rng.choice(choices)


def bytes_of(model: Model) -> bytes:
    """A model as SerializeToString writes it."""
    data: bytes = onnxjson.to_proto(model).SerializeToString(deterministic=True)
    return data
