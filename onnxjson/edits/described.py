"""Where a model says something of a tensor beside its elements: in the constant, or in the type of the value."""

from typing import Annotated

from msgspec import Meta

from onnxjson.display import visible
from onnxjson.document import Function, SparseTensor, Tensor, ValueInfo
from onnxjson.edits.parameters import Role
from onnxjson.errors import EditError
from onnxjson.selectors import TensorRef

DescribedTensor = Annotated[
    str | None,
    Role("tensor"),
    Meta(description="The constant, or the value that inputs, outputs or value_info say something of."),
]
"""The parameter of an edit that says something of a tensor."""

DescribedGraph = Annotated[
    str | None,
    Role("graph"),
    Meta(description="The address of the graph or function, such as /graph or /functions/0."),
]
"""The parameter of an edit that says something of a graph."""


def described(ref: TensorRef, what: str) -> tuple[str, Tensor | ValueInfo]:
    """The record that holds metadata and the doc string of a tensor, and its address.

    Of a sparse constant that is the tensor of its values; of a value the first of the inputs, the outputs and
    value_info of its graph that has its name.

    Args:
        ref: what a selector found.
        what: what there would be no place for, such as "metadata".

    Raises:
        EditError: nothing is said of the value.
    """
    if isinstance(ref.tensor, Tensor):
        return ref.address, ref.tensor
    if isinstance(ref.tensor, SparseTensor):
        return f"{ref.address}/values", ref.tensor.values or Tensor()
    assert ref.scope is not None
    graph = ref.scope.graph
    fields = ("value_info",) if isinstance(graph, Function) else ("input", "output", "value_info")
    for field in fields:
        for position, value in enumerate(getattr(graph, field)):
            if isinstance(value, ValueInfo) and value.name == ref.name:
                return f"{ref.scope.address}/{field}/{position}", value
    raise EditError(
        f'nothing is said of "{visible(ref.name)}", so there is no place for {what}; infer-shapes makes one',
        ref.address,
    )
