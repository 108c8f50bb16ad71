"""Models with payloads in every string position.

`complete_model` follows the descriptors of onnx.proto, so that no field is forgotten; its models can be parsed, but are
invalid. The checker of onnx and onnxruntime accept `valid_model`, so that passes and runs really work on it.
"""

from collections.abc import Iterator
from itertools import count
from typing import Any, Final, Literal

from google.protobuf.descriptor import FieldDescriptor, OneofDescriptor
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from tests.hostile.canary.planting import Planter

_TEXT: Final = FieldDescriptor.TYPE_STRING
_BYTES: Final = FieldDescriptor.TYPE_BYTES

_LEFT_OUT: Final = {"external_data", "data_location"}
"""Fields of a tensor that `external_model` plants, since most commands refuse a model for them."""

OPSET: Final = 20


def string_fields() -> set[str]:
    """Return all fields of text or bytes in a model, at any depth, as MESSAGE.FIELD."""
    seen: set[str] = set()
    found: set[str] = set()
    waiting: list[Any] = [ModelProto.DESCRIPTOR]
    while waiting:
        message = waiting.pop()
        if message.full_name not in seen:
            seen.add(message.full_name)
            found |= {f"{message.name}.{field.name}" for field in message.fields if field.type in (_TEXT, _BYTES)}
            waiting += [field.message_type for field in message.fields if field.message_type]
    return found


def complete_model(planter: Planter) -> tuple[ModelProto, set[str]]:
    """Return a model with payloads in all fields of text or bytes, and these fields as MESSAGE.FIELD."""
    model = ModelProto()
    planted: set[str] = set()
    turns = count()
    _fill(model, "", (), planter, planted, turns)
    model.ir_version = 11
    for attribute in _attributes(model):
        attribute.type = AttributeProto.STRING
    return model, planted


def _fill(
    message: Any, path: str, within: tuple[str, ...], planter: Planter, planted: set[str], turns: Iterator[int]
) -> None:
    kind = message.DESCRIPTOR
    skipped = {name for oneof in kind.oneofs for name in _skipped(oneof, turns)}
    for field in kind.fields:
        place = f"{path}.{field.name}".lstrip(".")
        if field.name in skipped or field.name in _LEFT_OUT:
            continue
        if field.type in (_TEXT, _BYTES):
            planted.add(f"{kind.name}.{field.name}")
            value = planter.text(place) if field.type == _TEXT else planter.data(place)
            if field.is_repeated:
                getattr(message, field.name).append(value)
            else:
                setattr(message, field.name, value)
        elif field.message_type and within.count(field.message_type.name) < 2:
            held = getattr(message, field.name)
            _fill(held.add() if field.is_repeated else held, place, (*within, field.message_type.name), planter,
                  planted, turns)  # fmt: skip


def _skipped(oneof: OneofDescriptor, turns: Iterator[int]) -> set[str]:
    """Return the fields of a oneof to omit: all but its text field, or all but each field in turn if it has no text."""
    texts = [field.name for field in oneof.fields if field.type == _TEXT]
    names = [field.name for field in oneof.fields]
    return set(names) - {texts[0] if texts else names[next(turns) % len(names)]}


def _attributes(message: Any) -> Iterator[Any]:
    if isinstance(message, AttributeProto):
        yield message
    for field, value in message.ListFields():
        if field.message_type:
            for each in value if field.is_repeated else (value,):
                yield from _attributes(each)


Part = Literal["branches", "call", "words"]

PARTS: Final[tuple[Part, ...]] = ("branches", "call", "words")


def valid_model(planter: Planter, blocks: int = 1, parts: tuple[Part, ...] = PARTS) -> ModelProto:
    """A model that can be checked, run and optimized: with a number of blocks, each with its own payloads.

    Its inputs are float[DIM,4] and its outputs float[DIM,4] and strings, all with planted names. Some passes refuse
    strings, or calls of functions, so these parts can be left out.
    """
    text = planter.text
    model = ModelProto(
        ir_version=10, producer_name=text("producer_name"), producer_version=text("producer_version"),
        domain=text("model domain"), doc_string=text("model doc_string"),
    )  # fmt: skip
    model.graph.name = text("graph name")
    model.graph.doc_string = text("graph doc_string")
    _entries(model, "model", planter)
    _entries(model.graph, "graph", planter)
    model.opset_import.append(helper.make_opsetid("", OPSET))
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    add_blocks(model, planter, blocks, parts)
    return model


def add_blocks(model: ModelProto, planter: Planter, blocks: int, parts: tuple[Part, ...] = PARTS) -> None:
    """Add blocks of planted nodes, inputs and outputs to a model; "words" needs opset 20 and ai.onnx.ml."""
    for _ in range(blocks):
        _Block(model, planter).add(parts)


def _entries(message: Any, who: str, planter: Planter) -> None:
    message.metadata_props.add(key=planter.name(f"{who} metadata key"), value=planter.text(f"{who} metadata value"))


class _Block:
    """A few nodes that use every kind of value, operator and attribute with planted names."""

    def __init__(self, model: ModelProto, planter: Planter) -> None:
        self.model = model
        self.graph = model.graph
        self.planter = planter
        self.dim = planter.text("dimension")

    def add(self, parts: tuple[Part, ...]) -> None:
        start = self._value(self.graph.input, "input")
        relu = self._node("Relu", [start])
        self._value(self.graph.value_info, "value_info", relu)
        weight = self._initializer()
        total = self._node("Add", [relu, weight])
        chosen = self._branches(total) if "branches" in parts else total
        called = self._call(chosen) if "call" in parts else chosen
        self._value(self.graph.output, "output", self._node("Identity", [called]))
        if "words" in parts:
            self._value(self.graph.output, "string output", self._words(), TensorProto.STRING)
        annotation = self.graph.quantization_annotation.add(tensor_name=relu)
        annotation.quant_parameter_tensor_names.add(key=self.planter.text("annotation key"), value=weight)

    def _value(self, held: Any, who: str, name: str = "", kind: int = TensorProto.FLOAT) -> str:
        name = name or self.planter.name(f"{who} name")
        value: ValueInfoProto = held.add(name=name, doc_string=self.planter.text(f"{who} doc_string"))
        value.type.denotation = self.planter.text(f"{who} type denotation")
        value.type.tensor_type.elem_type = kind
        if kind == TensorProto.FLOAT:
            dims = value.type.tensor_type.shape.dim
            dims.add(dim_param=self.dim, denotation=self.planter.text(f"{who} dimension denotation"))
            dims.add(dim_value=4)
        else:
            value.type.tensor_type.shape.dim.add(dim_param=self.planter.text("dimension of strings"))
        _entries(value, who, self.planter)
        return name

    def _node(self, operator: str, inputs: list[str], domain: Any = "", held: Any = None, **attributes: Any) -> str:
        """The output of a node that gets a name, docs and metadata."""
        output = self.planter.name("value name")
        node: NodeProto = helper.make_node(operator, inputs, [output], domain=domain, **attributes)
        node.name = self.planter.name("node name")
        node.doc_string = self.planter.text("node doc_string")
        for attribute in node.attribute:
            attribute.doc_string = self.planter.text("attribute doc_string")
        _entries(node, "node", self.planter)
        (self.graph.node if held is None else held).append(node)
        return output

    def _initializer(self) -> str:
        name = self.planter.name("initializer name")
        tensor = self.graph.initializer.add(name=name, dims=[4], data_type=TensorProto.FLOAT, float_data=[1, 2, 3, 4])
        tensor.doc_string = self.planter.text("initializer doc_string")
        _entries(tensor, "initializer", self.planter)
        return name

    def _branches(self, value: str) -> str:
        """An If whose graphs have planted names; its condition is a constant, which optimizers fold."""
        condition = self._node("Constant", [], value=helper.make_tensor(
            self.planter.text("constant name"), TensorProto.BOOL, [], [True]
        ))  # fmt: skip
        graphs: dict[str, Any] = {}
        for branch, operator in (("then_branch", "Neg"), ("else_branch", "Abs")):
            graph = helper.make_graph([], self.planter.text("subgraph name"), [], [])
            graph.doc_string = self.planter.text("subgraph doc_string")
            self._value(graph.output, "subgraph output", self._node(operator, [value], held=graph.node))
            graphs[branch] = graph
        return self._node("If", [condition], **graphs)

    def _call(self, value: str) -> str:
        """A call of a function whose domain, name, values and attributes are planted."""
        planter = self.planter
        domain, name = planter.name("function domain"), planter.name("function name")
        first, last, words = (planter.name(f"function {which}") for which in ("input", "output", "value"))
        attribute = planter.name("function attribute")
        constant = helper.make_node("Constant", [], [words], name=planter.text("function node name"))
        constant.attribute.add(name="value_string", type=AttributeProto.STRING, ref_attr_name=attribute)
        function = helper.make_function(
            domain, name, [first], [last], [constant, helper.make_node("Relu", [first], [last])],
            [self.model.opset_import[0]], [attribute],
        )  # fmt: skip
        function.doc_string = planter.text("function doc_string")
        _entries(function, "function", planter)
        self.model.functions.append(function)
        self.model.opset_import.append(helper.make_opsetid(domain, 1))
        return self._node(name, [value], domain, **{attribute: planter.data("attribute string")})

    def _words(self) -> str:
        """Strings of initializers, constants and attributes that flow together."""
        planter = self.planter
        name = planter.name("string initializer name")
        strings: list[Any] = [planter.data("string initializer") for _ in range(4)]
        self.graph.initializer.append(helper.make_tensor(name, TensorProto.STRING, [4], strings))
        more: list[Any] = [planter.data("constant of strings")]
        constant = self._node("Constant", [], value=helper.make_tensor("", TensorProto.STRING, [1], more))
        single = self._node("Constant", [], value_string=planter.data("value_string"))
        several = self._node("Constant", [], value_strings=[planter.data("value_strings")])
        names = self._node("Concat", [name, constant, several], axis=0)
        joined = self._node("StringConcat", [names, single])
        encoded = self._node(
            "LabelEncoder", [joined], "ai.onnx.ml", keys_strings=[planter.text("keys_strings")],
            values_strings=[planter.text("values_strings")], default_string=planter.text("default_string"),
        )  # fmt: skip
        return self._node("Identity", [encoded])


def external_model(planter: Planter) -> ModelProto:
    """A model whose weight is in another file, with a planted location, and with an unknown entry, planted as well."""
    model = ModelProto(ir_version=10)
    model.opset_import.append(helper.make_opsetid("", OPSET))
    model.graph.name = "external"
    node = helper.make_node("Add", ["x", "w"], ["y"])
    model.graph.node.append(node)
    tensor = model.graph.initializer.add(name="w", dims=[4], data_type=TensorProto.FLOAT)
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=planter.text("external location"))
    tensor.external_data.add(key=planter.text("external key"), value=planter.text("external value"))
    for held, name in ((model.graph.input, "x"), (model.graph.output, "y")):
        held.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]))
    return model
