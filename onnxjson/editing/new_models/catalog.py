"""Models that are ready to use: components, kept as texts in this package, and one model for each operator version."""

from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Final, NamedTuple

from onnxjson.editing.new_models.operator_model import OperatorSpec, make_operator
from onnxjson.model.display import suggest, visible
from onnxjson.model.document import Model
from onnxjson.model.errors import OnnxJsonError, ParameterError
from onnxjson.model.operators import all_operators, operator_signature
from onnxjson.storage import api

_ENDING: Final = ".onnx.json"


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
    found = []
    for each in folder.iterdir():
        if each.name.endswith(_ENDING):
            number, _, name = each.name.removesuffix(_ENDING).partition("-")
            found.append(Component(number, name, api.loads(each.read_bytes())))
    return tuple(sorted(found, key=lambda each: each.number))


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
        if signature is None or signature.deprecated:
            yield OperatorModel(domain, op_type, version, None, "deprecated")
            continue
        try:
            model = make_operator(OperatorSpec(op_type, domain, version if opset is None else opset))
        except OnnxJsonError as error:
            yield OperatorModel(domain, op_type, version, None, str(error))
            continue
        yield OperatorModel(domain, op_type, version, model)
