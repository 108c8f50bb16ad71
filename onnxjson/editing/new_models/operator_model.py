"""Models that are ready to use: of one operator, built from its schema, and components, kept as texts."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import resources
from typing import Any, Final, NamedTuple

from onnxjson.editing.attributes import attribute_of
from onnxjson.editing.new_models import slot_types
from onnxjson.editing.new_models.recipes import Recipe, bodies, fitted, recipe_for, recipes_for
from onnxjson.editing.type_relations import with_shape
from onnxjson.editing.values import write_value
from onnxjson.model import operators
from onnxjson.model.display import counted, suggest, visible
from onnxjson.model.document import Attribute, Graph, Model, Node, OperatorSetId, Tensor, Type, ValueInfo
from onnxjson.model.dtypes import DTYPES
from onnxjson.model.errors import EditError, OnnxJsonError, ParameterError
from onnxjson.model.messages import ATTRIBUTE_TYPE_NAMES, ATTRIBUTE_TYPES
from onnxjson.model.operators import all_operators, operator_signature
from onnxjson.model.renaming import free_name
from onnxjson.model.types import TypeSyntaxError, format_type, parse_type
from onnxjson.storage import api

DEFAULT_OPSET: Final = 21
"""Default version of the default operator set; runtimes of recent years support it."""

_LOWEST_IR: Final = 8
_DEFAULT_SHAPE: Final = slot_types.static_shape((2, 3))

_ENDING: Final = ".onnx.json"


class OperatorSpec(NamedTuple):
    """Specification of a new model."""

    op_type: str
    domain: str | None = None
    """None to find the domain by the operator's name."""
    opset: int | None = None
    inputs: tuple[str, ...] = ()
    """Specifications of inputs, see `slot_types`; none for the usual inputs."""
    outputs: tuple[str, ...] = ()
    """Names of outputs, with types if wanted; none for the usual number of outputs."""
    attributes: Mapping[str, Any] = {}
    """Attributes as JSON values."""
    types: Mapping[str, str] = {}
    """Type variables of the schema -> the wanted type, such as T -> float16."""
    name: str | None = None
    """Name of the node."""


def make_operator(wanted: OperatorSpec) -> Model:
    """Build a model with one node, its inputs, constants and outputs, and check it with onnx.

    Raises:
        ParameterError: there is no such operator, or it does not allow the specification.
        EditError: the checker or the shape inference of onnx refuses the model.
        WorkerError: they crashed or hung.
    """
    if wanted.domain and wanted.domain not in {domain for domain, _, _ in operators.all_operators()}:
        return _made(_signature_of_unknown(wanted), wanted.opset or 1, wanted, Recipe())
    signature = find_signature(wanted.op_type, wanted.domain, wanted.opset)
    opset = wanted.opset if wanted.opset is not None else default_opset(signature)
    if not wanted.inputs and not wanted.attributes:
        return _made(signature, opset, wanted, recipe_for(signature.op_type, signature.since_version))
    failures = []
    for recipe in recipes_for(signature.op_type, signature.since_version, wanted.attributes):
        # The output types of a recipe are only valid for its own inputs.
        recipe = recipe._replace(outputs=("",) * len(recipe.outputs))
        if recipe.inputs and not wanted.inputs and not signature.domain:
            with suppress(TypeError, ValueError, LookupError, ArithmeticError):  # the builder reports wrong attributes
                recipe = fitted(recipe, signature.op_type, {**recipe.values(), **wanted.attributes})
        try:
            return _made(signature, opset, wanted, recipe)
        except EditError as error:
            failures.append(error)
    raise failures[0]


def _signature_of_unknown(wanted: OperatorSpec) -> operators.Signature:
    """Return a signature for an operator that onnx does not know, such as one of com.microsoft: anything fits it."""
    value = operators.Formal(
        "x", "variadic", "T", (operators.type_of("tensor(float)"),), least=0, is_homogeneous=False, doc=""
    )
    kinds = {name: attribute_of(name, given, {}, wanted.op_type, "new", where=name).type
             for name, given in wanted.attributes.items()}  # fmt: skip
    attributes = {name: operators.AttributeFormal(name, kind or 0, False, None, "") for name, kind in kinds.items()}
    most, domain = 1 << 31, wanted.domain or ""
    outputs = (value._replace(name="y"),)
    return operators.Signature(domain, wanted.op_type, 1, False, "", (value,), outputs, attributes, 0, most, 1, most)


def _made(signature: operators.Signature, opset: int, wanted: OperatorSpec, recipe: Recipe) -> Model:
    builder = _Builder(signature, opset, wanted, recipe)
    return slot_types.check_outputs(builder.build(), signature, builder.expected_outputs())


def find_signature(op_type: str, domain: str | None, opset: int | None) -> operators.Signature:
    """Return the signature of an operator, in the domain that has it.

    Raises:
        ParameterError: there is none in that version, or it is deprecated there.
    """
    domains = [domain] if domain is not None else sorted({each for each, _, _ in operators.all_operators()})
    newest = DEFAULT_OPSET if opset is None else opset
    for domain_name in domains:
        version = newest if opset is not None or not domain_name else None
        signature = operators.operator_signature(domain_name, op_type, version)
        if signature is None or (signature.deprecated and opset is None):
            latest = operators.operator_signature(domain_name, op_type, None) if opset is None else None
            signature = latest if latest is not None and not latest.deprecated else signature or latest
        if signature is not None:
            if signature.deprecated:
                since = signature.since_version
                raise ParameterError(f"{op_type} is deprecated since version {since}; choose an older one")
            last = operators.newest_version(domain_name)
            if opset is not None and last is not None and opset > last:
                which = f'the domain "{visible(domain_name)}"' if domain_name else "the default domain"
                raise ParameterError(f"{which} has versions 1 to {last}; {opset} is not one of them")
            return signature
    known = {(each, name): version for each, name, version in reversed(operators.all_operators())}
    there = [(each, version) for (each, name), version in known.items() if name == op_type and each in domains]
    if there:
        raise ParameterError(f"{op_type} exists since version {there[0][1]} of its operators, not in {opset}")
    names = {name for each, name, _ in operators.all_operators() if each in domains}
    advice = (
        "for an operator of your own, such as a plugin of TensorRT, add --domain: --domain my.own --input x:float32[2]"
    )
    hint = suggest(op_type, names) or f"`onnxjson new --list` shows all; {advice}"
    raise ParameterError(f'there is no operator "{visible(op_type)}"; {hint}')


def default_opset(signature: operators.Signature) -> int:
    """Return the default operator set version of a model of an operator."""
    return max(signature.since_version, 1 if signature.domain else DEFAULT_OPSET)


class _Builder:
    def __init__(self, signature: operators.Signature, opset: int, wanted: OperatorSpec, recipe: Recipe) -> None:
        self.signature = signature
        self.opset = opset
        self.wanted = wanted
        self.recipe = recipe
        self.bound: dict[str, Type] = {}
        self.where = f"{signature.op_type} (version {signature.since_version})"

    def build(self) -> Model:
        formals, specs = self._slots()
        self._bind(formals, specs)
        names: list[str] = []
        infos: list[ValueInfo] = []
        constants: list[Tensor] = []
        given: list[Type] = []
        for formal, spec in zip(formals, specs, strict=True):
            name = _fresh(spec.name, names) if not self.wanted.inputs else spec.name
            names.append(name)
            if not spec.name:
                continue
            value = self._type(formal, spec)
            given.append(value)
            if name in names[:-1]:
                continue
            if spec.has_values:
                constants.append(slot_types.constant(name, value, spec.values))
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
        ir_version = self._ir_version(domains, [*infos, *constants])
        return Model(ir_version=ir_version, producer_name="onnxjson", graph=graph, opset_import=imports)

    def _slots(self) -> tuple[list[operators.Formal], list[slot_types.InputSpec]]:
        texts = self.wanted.inputs or self.recipe.inputs
        specs = [slot_types.read_input(text) for text in texts]
        if not self.wanted.inputs and not self.recipe.inputs:
            specs = [slot_types.InputSpec(each.name, shape=_DEFAULT_SHAPE) for each in self._usual()]
        formals = self.signature.inputs
        by_name = {each.name: place for place, each in enumerate(formals) if each.option != "variadic"}
        places: dict[int, slot_types.InputSpec] = {}
        for spec in specs:
            place = by_name.get(spec.name, -1)
            if place < 0 or place in places:
                place = next(number for number in range(len(specs) + len(formals) + 1) if number not in places)
            places[place] = spec
        count = max(places, default=-1) + 1
        most = self.signature.most_inputs
        if count > most:
            raise ParameterError(f"{self.where} accepts at most {counted(most, 'input')}, but {len(specs)} are given")
        slots = [places.get(number, slot_types.InputSpec("")) for number in range(count)]
        formal_of_slot = [formals[min(number, len(formals) - 1)] for number in range(count)]
        missing = [
            formal
            for number, formal in enumerate(formals)
            if (formal.option == "single" and (number >= count or not slots[number].name))
            or (formal.option == "variadic" and count - number < formal.least)
        ]
        if missing:
            needed = ", ".join([f"{each.name} ({_some_types(each)})" for each in missing])
            raise ParameterError(f"{self.where} also needs {needed}; add --input {missing[0].name}:TYPE")
        return formal_of_slot, slots

    def _usual(self) -> list[operators.Formal]:
        counts = {"single": 1, "optional": 0}
        inputs = self.signature.inputs
        return [each for each in inputs for _ in range(counts.get(each.option, max(each.least, 1)))]

    def _bind(self, formals: Sequence[operators.Formal], specs: Sequence[slot_types.InputSpec]) -> None:
        """Choose a type for every type variable."""
        for variable, text in self.wanted.types.items():
            self.bound[variable] = self._wanted_type(variable, text)
        for formal, spec in zip(formals, specs, strict=True):
            if spec.type is None or (formal.option == "variadic" and not formal.is_homogeneous):
                continue
            plain = with_shape(spec.type, None)
            known = self.bound.setdefault(formal.variable, plain)
            if known != plain:
                raise ParameterError(
                    f"{self.where}: inputs of the type variable {formal.variable} have one type, and "
                    f"{visible(spec.name)} is {format_type(plain)}, others are {format_type(known)}"
                )
            if formal.types and plain not in formal.types:
                raise ParameterError(f"{self.where}: {formal.name} is {_some_types(formal)}, not {format_type(plain)}")
        for formal in (*self.signature.inputs, *self.signature.outputs):
            self.bound.setdefault(formal.variable, slot_types.preferred_type(formal.types))

    def _wanted_type(self, variable: str, text: str) -> Type:
        formals = [each for each in (*self.signature.inputs, *self.signature.outputs) if each.variable == variable]
        if not formals:
            names = sorted({each.variable for each in (*self.signature.inputs, *self.signature.outputs)})
            hint = suggest(variable, names) or f"there are {', '.join(names)}"
            raise ParameterError(f'{self.where} has no type variable "{visible(variable)}"; {hint}')
        try:
            wanted = with_shape(parse_type(text), None)
        except TypeSyntaxError as error:
            raise ParameterError(f'"{visible(text)}" is not a type: {error}') from error
        if wanted not in formals[0].types:
            raise ParameterError(f"{self.where}: {variable} is {_some_types(formals[0])}, not {visible(text)}")
        return wanted

    def _type(self, formal: operators.Formal, spec: slot_types.InputSpec) -> Type:
        if spec.type is not None:
            return spec.type
        value = self.bound[formal.variable]
        return value if spec.has_values and spec.shape is None else with_shape(value, spec.shape)

    def expected_outputs(self) -> list[slot_types.InputSpec]:
        """Return names and types of the outputs, as the user or the recipe specifies them."""
        if self.wanted.outputs:
            return [slot_types.read_input(text) for text in self.wanted.outputs]
        return [slot_types.read_input(f"y:{text}" if text else "y") for text in self.recipe.outputs]

    def _outputs(self, inputs: Sequence[str]) -> list[str]:
        if self.wanted.outputs:
            return [each.name for each in self.expected_outputs()]
        count = len(self.expected_outputs()) or max(self.signature.least_outputs, 1)
        formals = self.signature.outputs
        names: list[str] = []
        for number in range(count):
            names.append(_fresh(formals[min(number, len(formals) - 1)].name, [*inputs, *names]))
        return names

    def _attributes(self, given: Sequence[Type], outputs: int) -> tuple[Attribute, ...]:
        known = self.signature.attributes
        table = {name: each.type for name, each in known.items()}
        specs: dict[str, Any] = {}
        # A Constant has only one of its attributes.
        has_value = any(name.startswith(("value", "sparse_value")) for name in self.wanted.attributes)
        if not self.wanted.inputs and not has_value:
            specs = {name: value for name, value in self.recipe.values().items() if name in known}
        specs |= self.wanted.attributes
        attributes: list[Attribute] = []
        for name, value in specs.items():
            if name not in known:
                hint = suggest(name, known) or f"it has {', '.join(known) or 'none'}"
                raise ParameterError(f'{self.where} has no attribute "{visible(name)}"; {hint}')
            if known[name].type == ATTRIBUTE_TYPES["STRING"] and not isinstance(value, str):
                value = write_value(value)
            attributes.append(attribute_of(name, value, table, self.signature.op_type, "new", where=name))
        names = {each.name for each in attributes}
        attributes += [
            each for each in bodies(self.signature.op_type, given, outputs, self.bound) if each.name not in names
        ]
        names = {each.name for each in attributes}
        missing = [name for name, each in known.items() if each.required and name not in names]
        if missing:
            kinds = [f"{name} ({ATTRIBUTE_TYPE_NAMES[known[name].type]})" for name in missing]
            hint = f"add --attr {missing[0]}=..."
            raise ParameterError(f"{self.where} also needs the attribute {', '.join(kinds)}; {hint}")
        return tuple(attributes)

    def _ir_version(self, domains: Mapping[str, int], values: Sequence[ValueInfo | Tensor]) -> int:
        needed = [_LOWEST_IR, *[operators.ir_version_for(domain, version) for domain, version in domains.items()]]
        used = {each.data_type for each in values if isinstance(each, Tensor)}
        for value in [each.type for each in values if isinstance(each, ValueInfo)] + list(self.bound.values()):
            tensor = None if value is None else slot_types.innermost_tensor(value)
            used |= set() if tensor is None else {tensor.elem_type}
        needed += [dtype.ir_version for dtype in DTYPES.values() if dtype.number in used]
        return max(needed)


def _some_types(formal: operators.Formal) -> str:
    texts = [format_type(each) or "?" for each in formal.types]
    return " or ".join(texts) if len(texts) <= 3 else f"{', '.join(texts[:4])} ... ({len(texts)} types)"


def _fresh(name: str, taken: Sequence[str]) -> str:
    return free_name(name, taken.__contains__, 2) if name else name


class Component(NamedTuple):
    """A component that is ready to use."""

    number: str
    """Number, such as Z003."""
    name: str
    """Name, such as nms-single-class."""
    model: Model

    @property
    def summary(self) -> str:
        """What the component computes."""
        return self.model.doc_string or ""


@cache
def components() -> tuple[Component, ...]:
    """Return all components, sorted by number."""
    folder = resources.files("onnxjson.editing.new_models") / "components"
    numbered = []
    for path in folder.iterdir():
        if path.name.endswith(_ENDING):
            number, _, name = path.name.removesuffix(_ENDING).partition("-")
            numbered.append(Component(number, name, api.loads(path.read_bytes())))
    return tuple(sorted(numbered, key=lambda each: each.number))


def component(which: str) -> Component:
    """Return the component of a number or name.

    Raises:
        ParameterError: there is none.
    """
    for each in components():
        if which.lower() in (each.number.lower(), each.name):
            return each
    names = [name for each in components() for name in (each.number, each.name)]
    hint = suggest(which, names) or f"there are {', '.join(each.number for each in components())}"
    raise ParameterError(f'there is no component "{visible(which)}"; {hint}')


class OperatorModel(NamedTuple):
    """One version of one operator."""

    domain: str
    op_type: str
    version: int
    model: Model | None
    """None if there is none, as for deprecated versions."""
    reason: str = ""
    """Reason why there is none."""

    @property
    def path(self) -> str:
        """Path in the catalogue, without an ending: ``ai.onnx/Add/Add-14``."""
        return f"{self.domain or 'ai.onnx'}/{self.op_type}/{self.op_type}-{self.version}"


def parts(opset: int | None = None) -> Iterator[OperatorModel]:
    """Yield a model of every version of every operator, or of those of the default domain in one version."""
    for domain, op_type, version in all_operators():
        if opset is not None:
            found = operator_signature(domain, op_type, opset) if not domain else None
            if found is None or found.since_version != version:
                continue
        signature = operator_signature(domain, op_type, version)
        model, reason = None, "deprecated"
        if signature is not None and not signature.deprecated:
            try:
                model, reason = make_operator(OperatorSpec(op_type, domain, opset or version)), ""
            except OnnxJsonError as error:
                reason = str(error)
        yield OperatorModel(domain, op_type, version, model, reason)
