"""A model of one operator, made from what its schema says."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from onnxjson.checking import Finding
from onnxjson.display import visible
from onnxjson.document import Attribute, Graph, Model, Node, OperatorSetId, Tensor, Type, ValueInfo
from onnxjson.edits.attributes import attribute_of
from onnxjson.edits.constant_types import type_of_constant
from onnxjson.edits.guarded import worker
from onnxjson.edits.inference import refined
from onnxjson.edits.operator_checks import check_node
from onnxjson.edits.workspace import Workspace
from onnxjson.errors import EditError, ParameterError, WorkerError
from onnxjson.index import Index
from onnxjson.making.asked import Asked, constant, innermost, read_input, static_shape, with_shape
from onnxjson.making.bodies import bodies, result_of_loop
from onnxjson.making.recipes import Recipe, recipe_for
from onnxjson.names import ATTRIBUTE_TYPE_NAMES, DATA_TYPES
from onnxjson.operator_signatures import Formal, Signature, all_operators, ir_version_for, typed_signature
from onnxjson.operators import newest_version
from onnxjson.suggestions import suggest
from onnxjson.types import TypeSyntaxError, format_type, parse_type
from onnxjson.wire.writing import message_bytes

DEFAULT_OPSET: Final = 21
"""The version of the default operator set where nobody asks for one: runtimes of the last years load it."""

_LOWEST_IR: Final = 8
_IR_OF_DTYPES: Final = {
    **dict.fromkeys(("uint4", "int4"), 10),
    "float4_e2m1fn": 11,
    "float8_e8m0fnu": 12,
    **dict.fromkeys(("uint2", "int2"), 13),
    **dict.fromkeys(("float6_e2m3fn", "float6_e3m2fn"), 14),
}
"""Since which IR version a dtype is there."""

_PREFERRED: Final = ("float32", "int64", "bool", "string", "float16", "float64", "int32", "uint8")

_STRING: Final = next(number for number, name in ATTRIBUTE_TYPE_NAMES.items() if name == "STRING")


class Wanted(NamedTuple):
    """What a new model is to be."""

    op_type: str
    domain: str | None = None
    """None where the operator's name says it."""
    opset: int | None = None
    inputs: tuple[str, ...] = ()
    """As `onnxjson.making.asked` reads them; none for the usual ones."""
    outputs: tuple[str, ...] = ()
    """Their names, with types if they are to be said; none for as many as are usual."""
    attributes: Mapping[str, Any] = {}
    """As JSON values."""
    types: Mapping[str, str] = {}
    """Sets of types of the schema -> the type that is wanted, such as T -> float16."""
    name: str | None = None
    """Of the node."""


def make_operator(wanted: Wanted) -> Model:
    """A model with one node, its inputs, constants and outputs, checked by onnx.

    Raises:
        ParameterError: there is no such operator, or it does not take what is asked for.
        EditError: the checker or the shape inference of onnx refuses the model.
        WorkerError: they crashed or hung.
    """
    signature = find_signature(wanted.op_type, wanted.domain, wanted.opset)
    opset = wanted.opset if wanted.opset is not None else default_opset(signature)
    recipe = recipe_for(signature.op_type, signature.since_version, signature.domain)
    if wanted.inputs or wanted.attributes:
        # What is usual says nothing about a call that somebody chose.
        recipe = recipe._replace(outputs=("",) * len(recipe.outputs))
    maker = _Maker(signature, opset, wanted, recipe)
    return _checked(maker.made(), signature, maker.promised())


def find_signature(op_type: str, domain: str | None, opset: int | None) -> Signature:
    """The operator of a name, in the domain that has it.

    Raises:
        ParameterError: there is none in that version, or it is deprecated there.
    """
    domains = [domain] if domain is not None else sorted({each for each, _, _ in all_operators()})
    newest = DEFAULT_OPSET if opset is None else opset
    for each in domains:
        found = typed_signature(each, op_type, newest if opset is not None or not each else None)
        if found is None or (found.deprecated and opset is None):
            latest = typed_signature(each, op_type, None) if opset is None else None
            found = latest if latest is not None and not latest.deprecated else found or latest
        if found is not None:
            if found.deprecated:
                since = found.since_version
                raise ParameterError(f"{op_type} is deprecated since version {since}; ask for an older one")
            _check_version(each, opset)
            return found
    known = {(each, name): version for each, name, version in reversed(all_operators())}
    there = [(each, version) for (each, name), version in known.items() if name == op_type and each in domains]
    if there:
        raise ParameterError(f"{op_type} is there since version {there[0][1]} of its operators; {opset} has none")
    names = {name for each, name, _ in all_operators() if each in domains}
    hint = suggest(op_type, names) or "`onnxjson new --list` shows all"
    raise ParameterError(f'there is no operator "{visible(op_type)}"; {hint}')


def _check_version(domain: str, opset: int | None) -> None:
    last = newest_version(domain)
    if opset is not None and last is not None and opset > last:
        which = f'the domain "{visible(domain)}"' if domain else "the default domain"
        raise ParameterError(f"{which} has versions 1 to {last}; {opset} is none of them")


def default_opset(signature: Signature) -> int:
    """The version that a model of an operator has where nobody asks for one."""
    if signature.domain == "":
        return max(DEFAULT_OPSET, signature.since_version)
    return max(signature.since_version, 1)


class _Maker:
    """Makes one model."""

    def __init__(self, signature: Signature, opset: int, wanted: Wanted, recipe: Recipe) -> None:
        self.signature = signature
        self.opset = opset
        self.wanted = wanted
        self.recipe = recipe
        self.bound: dict[str, Type] = {}
        self.where = f"{signature.op_type} (version {signature.since_version})"

    def made(self) -> Model:
        formals, asked = self._slots()
        self._bind(formals, asked)
        names: list[str] = []
        infos: list[ValueInfo] = []
        constants: list[Tensor] = []
        given: list[Type] = []
        for formal, each in zip(formals, asked, strict=True):
            name = self._fresh(each.name, names) if not self.wanted.inputs else each.name
            names.append(name)
            if not each.name:
                continue
            value = self._type(formal, each)
            given.append(value)
            if name in names[:-1]:
                continue
            if each.has_values:
                constants.append(constant(name, value, each.values))
            else:
                infos.append(ValueInfo(name=name, type=value))
        while names and not names[-1]:
            names.pop()
        outputs = self._outputs(names)
        attributes = self._attributes(given, len(outputs))
        node = Node(
            input=tuple(names),
            output=tuple(outputs),
            name=self.wanted.name,
            op_type=self.signature.op_type,
            attribute=attributes,
            domain=self.signature.domain or None,
        )
        graph = Graph(
            node=(node,),
            name=self.signature.op_type,
            initializer=tuple(constants),
            input=tuple(infos),
            output=tuple([ValueInfo(name=name) for name in outputs if name]),
        )
        domains = {self.signature.domain: self.opset}
        if self.signature.domain and any(each.g is not None for each in attributes):
            domains[""] = DEFAULT_OPSET
        imports = tuple([OperatorSetId(domain=name, version=version) for name, version in domains.items()])
        return Model(
            ir_version=self._ir_version(domains, [*infos, *constants]),
            producer_name="onnxjson",
            graph=graph,
            opset_import=imports,
        )

    def _slots(self) -> tuple[list[Formal], list[Asked]]:
        """Which formal input each asked one is for."""
        texts = self.wanted.inputs or self.recipe.inputs
        asked = [read_input(text) for text in texts]
        if not self.wanted.inputs and not self.recipe.inputs:
            asked = [Asked(each.name, shape=_default_shape()) for each in self._usual()]
        formals = self.signature.inputs
        by_name = {each.name: place for place, each in enumerate(formals) if each.option != "variadic"}
        places: dict[int, Asked] = {}
        for each in asked:
            place = by_name.get(each.name, -1)
            if place < 0 or place in places:
                place = next(number for number in range(len(asked) + len(formals) + 1) if number not in places)
            places[place] = each
        count = max(places, default=-1) + 1
        most = self.signature.most_inputs
        if count > most:
            raise ParameterError(f"{self.where} takes {most} inputs at most, and {len(asked)} are given")
        slots = [places.get(number, Asked("")) for number in range(count)]
        found = [formals[min(number, len(formals) - 1)] for number in range(count)]
        missing = [
            each
            for number, each in enumerate(formals)
            if (each.option == "single" and (number >= count or not slots[number].name))
            or (each.option == "variadic" and count - number < each.least)
        ]
        if missing:
            needed = ", ".join([f"{each.name} ({_some_types(each)})" for each in missing])
            raise ParameterError(f"{self.where} also needs {needed}; add --input {missing[0].name}:TYPE")
        return found, slots

    def _usual(self) -> list[Formal]:
        found: list[Formal] = []
        for each in self.signature.inputs:
            if each.option == "single":
                found.append(each)
            elif each.option == "variadic":
                found += [each] * max(each.least, 1)
        return found

    def _bind(self, formals: Sequence[Formal], asked: Sequence[Asked]) -> None:
        """Choose a type for every set of types."""
        for variable, text in self.wanted.types.items():
            self.bound[variable] = self._wanted_type(variable, text)
        for formal, each in zip(formals, asked, strict=True):
            if each.type is None or (formal.option == "variadic" and not formal.is_homogeneous):
                continue
            plain = with_shape(each.type, None)
            known = self.bound.setdefault(formal.variable, plain)
            if known != plain and not _is_free(formal):
                raise ParameterError(
                    f"{self.where}: inputs of one set of types {formal.variable} have one type, and "
                    f"{visible(each.name)} is {format_type(plain)} beside {format_type(known)}"
                )
            if formal.types and plain not in formal.types and not _is_free(formal):
                raise ParameterError(f"{self.where}: {formal.name} is {_some_types(formal)}, not {format_type(plain)}")
        for formal in (*self.signature.inputs, *self.signature.outputs):
            self.bound.setdefault(formal.variable, _preferred(formal.types))

    def _wanted_type(self, variable: str, text: str) -> Type:
        formals = [each for each in (*self.signature.inputs, *self.signature.outputs) if each.variable == variable]
        if not formals:
            names = sorted({each.variable for each in (*self.signature.inputs, *self.signature.outputs)})
            hint = suggest(variable, names) or f"there are {', '.join(names)}"
            raise ParameterError(f'{self.where} has no set of types "{visible(variable)}"; {hint}')
        try:
            found = with_shape(parse_type(text), None)
        except TypeSyntaxError as error:
            raise ParameterError(f'"{visible(text)}" is no type: {error}') from error
        if found not in formals[0].types:
            raise ParameterError(f"{self.where}: {variable} is {_some_types(formals[0])}, not {visible(text)}")
        return found

    def _type(self, formal: Formal, each: Asked) -> Type:
        if each.type is not None:
            return each.type
        value = self.bound[formal.variable]
        if each.has_values and each.shape is None:
            return value
        return with_shape(value, each.shape)

    def promised(self) -> list[Asked]:
        """What is said of the outputs: names and types by the person, or types by the recipe."""
        if self.wanted.outputs:
            return [read_input(text) for text in self.wanted.outputs]
        return [read_input(f"y:{text}" if text else "y") for text in self.recipe.outputs]

    def _outputs(self, inputs: Sequence[str]) -> list[str]:
        if self.wanted.outputs:
            return [each.name for each in self.promised()]
        count = len(self.promised()) or max(self.signature.least_outputs, 1)
        formals = self.signature.outputs
        names: list[str] = []
        for number in range(count):
            formal = formals[min(number, len(formals) - 1)]
            names.append(self._fresh(formal.name, [*inputs, *names]))
        return names

    @staticmethod
    def _fresh(name: str, taken: Sequence[str]) -> str:
        if not name:
            return name
        found, number = name, 1
        while found in taken:
            number += 1
            found = f"{name}_{number}"
        return found

    def _attributes(self, given: Sequence[Type], outputs: int) -> tuple[Attribute, ...]:
        known = self.signature.attributes
        table = {name: each.type for name, each in known.items()}
        asked: dict[str, Any] = dict(_recipe_attributes(self.recipe)) if not self.wanted.inputs else {}
        asked = {name: value for name, value in asked.items() if name in known}
        if any(name.startswith(("value", "sparse_value")) for name in self.wanted.attributes):
            asked = {}  # of a Constant, which has only one of them
        asked |= self.wanted.attributes
        found: list[Attribute] = []
        for name, value in asked.items():
            if name not in known:
                hint = suggest(name, known) or f"it has {', '.join(known) or 'none'}"
                raise ParameterError(f'{self.where} has no attribute "{visible(name)}"; {hint}')
            text = value if known[name].type != _STRING or isinstance(value, str) else _as_text(value)
            found.append(attribute_of(name, text, table, self.signature.op_type, "new", where=name))
        names = {each.name for each in found}
        found += [each for each in bodies(self.signature.op_type, given, outputs, self.bound) if each.name not in names]
        names = {each.name for each in found}
        missing = [name for name, each in known.items() if each.required and name not in names]
        if missing:
            kinds = [f"{name} ({ATTRIBUTE_TYPE_NAMES[known[name].type]})" for name in missing]
            hint = f"add --attr {missing[0]}=..."
            raise ParameterError(f"{self.where} also needs the attribute {', '.join(kinds)}; {hint}")
        return tuple(found)

    def _ir_version(self, domains: Mapping[str, int], values: Sequence[ValueInfo | Tensor]) -> int:
        needed = [_LOWEST_IR, *[ir_version_for(domain, version) for domain, version in domains.items()]]
        used = {each.data_type for each in values if isinstance(each, Tensor)}
        for value in [each.type for each in values if isinstance(each, ValueInfo)] + list(self.bound.values()):
            tensor = None if value is None else innermost(value)
            used |= set() if tensor is None else {tensor.elem_type}
        needed += [ir for name, ir in _IR_OF_DTYPES.items() if DATA_TYPES[name] in used]
        return max(needed)


def _default_shape() -> Any:
    return static_shape((2, 3))


def _recipe_attributes(recipe: Recipe) -> Mapping[str, Any]:
    from onnxjson.edits.spelling import json_or_text

    pairs = [text.partition("=") for text in recipe.attributes]
    return {name: json_or_text(value) for name, _, value in pairs}


def _as_text(value: object) -> str:
    from onnxjson.edits.values import write_value

    return write_value(value)


def _is_free(formal: Formal) -> bool:
    return formal.option == "variadic" and not formal.is_homogeneous


def _preferred(types: Sequence[Type]) -> Type:
    for name in _PREFERRED:
        for each in types:
            inner = innermost(each)
            if inner is not None and inner.elem_type == DATA_TYPES[name]:
                return each
    return types[0]


def _some_types(formal: Formal) -> str:
    """What an input may be, in words."""
    texts = [format_type(each) or "?" for each in formal.types]
    return " or ".join(texts) if len(texts) <= 3 else f"{', '.join(texts[:4])} ... ({len(texts)} types)"


def _checked(model: Model, signature: Signature, promised: Sequence[Asked]) -> Model:
    """The model with the types of its outputs.

    Raises:
        ParameterError, EditError: it is not valid.
    """
    assert model.graph is not None
    workspace = Workspace(model)
    check_node(workspace, workspace.main, model.graph.node[0], f"new {signature.op_type}")
    typed = _typed(model, signature, promised)
    errors = [each for each in worker().check(message_bytes(typed), full=True) if each.severity == "error"]
    if errors and not _is_mistake_of_onnx(errors, signature):
        # That an output has no shape follows from what is wrong with the inputs, if anything is.
        reasons = [each for each in errors if each.code == "check-shapes"] or errors
        if "Field 'shape'" in reasons[0].message:
            names = [name for name in model.graph.node[0].output if name]
            raise EditError(f"onnx cannot say the shape of an output; say it with --output-name {names[0]}:TYPE")
        raise EditError(f"the model would not be valid: {reasons[0].message}")
    return typed


def _is_mistake_of_onnx(errors: Sequence[Finding], signature: Signature) -> bool:
    """Whether strict inference stumbles over a constant in the body that onnx itself gives an operator.

    onnx 1.23 does on MeanVarianceNormalization, whose body has a Constant of a default attribute.
    """
    inside = [each for each in errors if "(op_type:Constant)" in each.message]
    return bool(inside) and signature.op_type != "Constant" and all(each.code == "check-shapes" for each in errors)


def _typed(model: Model, signature: Signature, promised: Sequence[Asked]) -> Model:
    """The model with types of its outputs: inferred, else as they are promised, else of their sets of types."""
    from onnxjson import serde

    assert model.graph is not None
    node = model.graph.node[0]
    try:
        after = serde.parse(worker().infer_shapes(message_bytes(model))).model
    except WorkerError as error:
        raise EditError(f"the model would not be valid: {error}") from error
    types = dict(Index(after).scopes[0].types)
    if not all(_has_rank(types.get(name)) for name in node.output if name):
        types |= _types_of_later_versions(model, signature)
    bound = _Bound(signature, model)
    infos = []
    for number, name in enumerate(node.output):
        if not name:
            continue
        said = _known(types.get(name))
        asked = promised[number] if number < len(promised) else Asked(name)
        wanted = asked.type or (None if asked.shape is None else with_shape(bound.output(number), asked.shape))
        if wanted is None and signature.op_type == "Loop":
            wanted = result_of_loop(node, number)
        if said is None:
            said = wanted or bound.output(number)
        elif wanted is not None:
            joined = refined(said, wanted)
            if joined is None:
                raise ParameterError(
                    f"the output {visible(name)} is {format_type(said)}, not {format_type(wanted)} as it is asked for"
                )
            said = joined
        infos.append(ValueInfo(name=name, type=said))
    graph = msgspec.structs.replace(model.graph, output=tuple(infos))
    return msgspec.structs.replace(model, graph=graph)


def _types_of_later_versions(model: Model, signature: Signature) -> dict[str, Type]:
    """What inference says of the same call of a later version of the operator: the oldest have no inference."""
    from onnxjson import serde

    assert model.graph is not None
    outputs = [name for name in model.graph.node[0].output if name]
    for domain, op_type, version in all_operators():
        if (domain, op_type) != (signature.domain, signature.op_type) or version <= signature.since_version:
            continue
        later = msgspec.structs.replace(model, opset_import=(OperatorSetId(domain=domain, version=version),))
        try:
            after = serde.parse(worker().infer_shapes(message_bytes(later))).model
        except WorkerError:
            continue
        types = Index(after).scopes[0].types
        if all(_has_rank(types.get(name)) for name in outputs):
            return {name: types[name] for name in outputs}
    return {}


def _has_rank(value: Type | None) -> bool:
    known = _known(value)
    if known is None:
        return False
    inner = innermost(known)
    return inner is None or inner.shape is not None


def _known(inferred: Type | None) -> Type | None:
    """A type that says something."""
    if inferred is None or inferred == Type():
        return None
    inner = innermost(inferred)
    return None if inner is not None and not inner.elem_type else inferred


class _Bound:
    """The types of sets of types, from the inputs of a model that was made."""

    def __init__(self, signature: Signature, model: Model) -> None:
        assert model.graph is not None
        self._signature = signature
        scope = Index(model).scopes[0]
        self._types: dict[str, Type] = {}
        for number, name in enumerate(model.graph.node[0].input):
            formal = signature.inputs[min(number, len(signature.inputs) - 1)]
            constant_ = scope.initializer(name)
            value = scope.types.get(name) if constant_ is None else type_of_constant(constant_)
            if value is not None:
                self._types.setdefault(formal.variable, with_shape(value, None))

    def output(self, number: int) -> Type:
        """The type of an output that inference does not know: that of its set of types."""
        formals = self._signature.outputs
        formal = formals[min(number, len(formals) - 1)]
        return self._types.get(formal.variable) or _preferred(formal.types)


__all__ = ["DEFAULT_OPSET", "Wanted", "default_opset", "find_signature", "make_operator"]
