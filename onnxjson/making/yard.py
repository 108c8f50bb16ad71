"""The parts yard: a model of every version of every operator."""

from collections.abc import Iterator
from typing import NamedTuple

from onnxjson.document import Model
from onnxjson.errors import OnnxJsonError
from onnxjson.making.operator_model import Wanted, make_operator
from onnxjson.operator_signatures import all_operators, typed_signature


class Part(NamedTuple):
    """One version of one operator."""

    domain: str
    op_type: str
    version: int
    model: Model | None
    """None where there is none, since no version that is deprecated has one."""
    reason: str = ""
    """Why there is none."""

    @property
    def path(self) -> str:
        """Where it stands in the yard, without an ending: ``ai.onnx/Add/Add-14``."""
        return f"{self.domain or 'ai.onnx'}/{self.op_type}/{self.op_type}-{self.version}"


def parts(opset: int | None = None) -> Iterator[Part]:
    """A model of every version of every operator, each for the oldest operator set that has it.

    Args:
        opset: only what the default domain has in this version.
    """
    for domain, op_type, version in all_operators():
        if opset is not None:
            found = typed_signature(domain, op_type, opset) if not domain else None
            if found is None or found.since_version != version:
                continue
        signature = typed_signature(domain, op_type, version)
        if signature is None or signature.deprecated:
            yield Part(domain, op_type, version, None, "deprecated")
            continue
        try:
            model = make_operator(Wanted(op_type, domain, version if opset is None else opset))
        except OnnxJsonError as error:
            yield Part(domain, op_type, version, None, str(error))
            continue
        yield Part(domain, op_type, version, model)
