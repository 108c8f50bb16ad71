"""What follows from a model as a whole: types that it does not state, and its outline."""

from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from onnxjson.editing.inference import infer
from onnxjson.model.document import Model, ValueInfo
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.index import Index
from onnxjson.outline.lines import Outline, outline_of
from onnxjson.outline.places import INFERRED


@dataclass(frozen=True)
class Reading:
    """A model with the types that are known, and its outline."""

    index: Index  # of the model with inferred types; its graphs and nodes have the addresses of the session's
    outline: Outline


def read(model: Model, folder: Path | None, known: Reading | None = None, *, infers: bool) -> Reading | None:
    """Return what follows from a model; None if not even its outline can be derived.

    With `infers`, its types are inferred in another process, which takes tenths of a second; otherwise those of the
    values that the `known` reading has, too, are taken from there.
    """
    try:
        typed = infer(model, folder).model if infers else _with_known(model, known)
    except OnnxJsonError:
        typed = model
    try:
        index = Index(typed)
        return Reading(index, outline_of(typed, index))
    except OnnxJsonError:  # a small constant is in a file that is missing
        return None


def inferred(model: Model, folder: Path | None) -> Index | None:
    """Return the index of a model with inferred types; None if it is big, or they cannot be inferred."""
    if model.graph is None or len(model.graph.node) > INFERRED:
        return None
    try:
        return Index(infer(model, folder).model)
    except OnnxJsonError:
        return None


def _with_known(model: Model, known: Reading | None) -> Model:
    graph = model.graph
    if known is None or graph is None or known.index.main is None:
        return model
    types = known.index.main.types
    stated = {each.name for each in (*graph.input, *graph.output, *graph.value_info)}
    infos = [
        ValueInfo(name=name, type=types[name])
        for node in graph.node
        for name in node.output
        if name in types and name not in stated
    ]
    return replace(model, graph=replace(graph, value_info=(*graph.value_info, *infos)))
