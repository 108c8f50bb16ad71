"""Edits of names, interface and constants on models that nobody meant: refused with a reason, or undoable."""

from collections.abc import Callable
from random import Random

import pytest

from onnxjson.document import Model
from onnxjson.edits.applying import run
from onnxjson.edits.dead_code import Prune
from onnxjson.edits.declaration import Edit
from onnxjson.edits.deduplication import DeduplicateInitializers
from onnxjson.edits.initializers import ConstantsToInitializers, InitializersToConstants, InitializersToInputs
from onnxjson.edits.interface import AddInput, AddOutput, RemoveInput, RemoveOutput
from onnxjson.edits.layout import TransposeInput
from onnxjson.edits.names import NameNodes, Prefix, Rename
from onnxjson.edits.stripping import Strip
from onnxjson.errors import OnnxJsonError
from onnxjson.index import Index
from onnxjson.patching import Patch
from onnxjson.serde import parse
from tests.generation.messages import generate, size_of


def _edits(numbers: Random, model: Model) -> list[Callable[[], Edit]]:
    names = ["x"]
    for scope in Index(model).scopes:
        names += [*scope.inputs, *scope.initializers, *scope.makers, *[name for name in scope.output_names if name]]
    outputs = ["y", *[value.name or "" for value in model.graph.output]] if model.graph else ["y"]
    inputs = ["x", *[value.name or "" for value in model.graph.input]] if model.graph else ["x"]
    name, other = numbers.choice(names), numbers.choice(names)
    return [
        lambda: Rename(kind="tensor", from_=name, to="another one"),
        lambda: Rename(kind="tensor", from_=name, to=other),
        lambda: Rename(kind="tensor", from_="re:(.*)", to=r"new/\1"),
        lambda: Rename(kind="node", from_="re:(.*)", to=r"new/\1"),
        lambda: Rename(kind="dim", from_="re:(.*)", to=r"new\1"),
        lambda: Rename(kind="metadata", from_="re:(.*)", to=r"new/\1"),
        lambda: NameNodes(),
        lambda: Prefix(prefix="new/", kinds=("tensor", "node", "input", "output", "dim")),
        lambda: Prune(what=("nodes", "initializers", "functions")),
        lambda: Strip(what=("doc_strings", "metadata", "value_info", "names")),
        lambda: DeduplicateInitializers(),
        lambda: ConstantsToInitializers(),
        lambda: InitializersToConstants(),
        lambda: InitializersToInputs(tensor=name),
        lambda: AddInput(tensor="another one", type="float32[1]"),
        lambda: AddOutput(tensor=name, type="float32[2]"),
        lambda: RemoveOutput(tensor=numbers.choice(outputs), prune=True),
        lambda: RemoveInput(tensor=numbers.choice(inputs)),
        lambda: TransposeInput(tensor=numbers.choice([*inputs, *outputs]), reverse=0),
        lambda: TransposeInput(tensor=numbers.choice([*inputs, *outputs]), perm=(1, 0)),
    ]


@pytest.mark.parametrize("start", range(0, 200, 50))
def test_every_edit_is_refused_with_a_reason_or_can_be_undone(start: int) -> None:
    made = 0
    for seed in range(start, start + 50):
        model = parse(generate(seed, size_of(seed))).model
        for edit in _edits(Random(seed), model):
            try:
                after = run(model, edit()).model
            except OnnxJsonError:
                continue
            made += 1
            patch = Patch.between(model, after)
            assert patch.apply(model) == after
            assert patch.invert().apply(after) == model
    assert made > 50
