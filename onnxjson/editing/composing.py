"""Edits that take models apart and join them: extract and combine."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

import msgspec
from msgspec.structs import replace

from onnxjson.editing.combining import combine
from onnxjson.editing.declaration import Edit, Outcome
from onnxjson.editing.extraction import Extraction
from onnxjson.editing.parameters import Role, about
from onnxjson.editing.workspace import Workspace, main_scope
from onnxjson.model.display import listed, suggest, visible
from onnxjson.model.document import Graph, Model, ValueInfo
from onnxjson.model.errors import EditError, SelectorError
from onnxjson.model.index import Index

__all__ = ["Combine", "Extract"]


class Extract(Edit, frozen=True, kw_only=True, eq=False, tag="extract"):
    """Keep only the part of the model between given values.

    The model then has exactly the named inputs and outputs, in this order. An input may be any value: the nodes that
    produce it are left out. Outputs in a subgraph are extracted from there; the values of enclosing graphs that it
    uses become inputs. Constants are included. Missing types are inferred.
    """

    group: ClassVar = "model"
    words = ()
    examples = (
        '{"edit": "extract", "outputs": ["features"]}',
        '{"edit": "extract", "inputs": ["features"], "outputs": ["scores", "boxes"]}',
    )

    inputs: Annotated[
        tuple[str, ...] | None,
        Role("tensor"),
        about("The values that become inputs; by default the inputs of the model that the outputs need."),
    ] = None
    outputs: Annotated[
        tuple[str, ...], Role("tensor"), about("The values that become outputs; by default the outputs of the model.")
    ] = ()

    def change(self, workspace: Workspace) -> Outcome:
        if not self.outputs and self.inputs is None:
            raise EditError("extract needs `inputs` or `outputs`: the values between which the part is")
        main = workspace.main
        outputs = [workspace.value(each) for each in self.outputs]
        outputs = outputs or [(main, each) for each in main.output_names if each]
        inputs = None if self.inputs is None else [workspace.value(each) for each in self.inputs]
        extraction = Extraction(workspace.model, workspace.index, workspace.model_folder)
        part = extraction.between(inputs, outputs)
        before, after = len(outputs[0][0].graph.node), len(part.model.graph.node if part.model.graph else ())
        workspace.replace_model(part.model)
        return Outcome(len(outputs), (f"{after:,} of {before:,} nodes are kept", *part.notes))


class Combine(Edit, frozen=True, kw_only=True, eq=False, tag="combine"):
    """Append another model to this one.

    Each join OUT=IN connects the value OUT of this model (an output, an input, or any value in between) to the input IN
    of the other. By default, inputs are connected to outputs of the same names. A connected output is no longer an
    output, unless `outputs` names it. If the models import an operator set in two versions, the older model is
    converted. Names of the other model that already exist get a prefix; equal constants, functions and metadata are
    merged. All differences are reported.
    """

    group: ClassVar = "model"
    words = ("with",)
    examples = (
        '{"edit": "combine", "with": "head.onnx", "join": ["features=x"]}',
        '{"edit": "combine", "with": "postprocess.onnx.json", "join": ["scores=s", "boxes=b"], "prefix": "post/"}',
    )

    with_: Annotated[str, Role("file"), about("The other model; in a script, a file next to it.", min_length=1)] = (
        msgspec.field(name="with")
    )
    join: Annotated[
        tuple[str, ...] | None,
        Role("join"),
        about("Values of this model and inputs of the other, as OUT=IN; an empty list joins nothing."),
    ] = None
    prefix: Annotated[
        str | None, about("The prefix of names that already exist; by default the name of the other file and a slash.")
    ] = None
    outputs: Annotated[
        tuple[str, ...],
        Role("tensor"),
        about("The outputs of the result, in order; by default those of both models that are not joined."),
    ] = ()
    inputs: Annotated[
        tuple[str, ...],
        Role("tensor"),
        about("The order of the inputs; by default those of this model, then those of the other."),
    ] = ()

    def change(self, workspace: Workspace) -> Outcome:
        from onnxjson.storage import files
        from onnxjson.storage.external_files import internalize

        path = workspace.file(self.with_)
        other = files.load(path).model
        # External data is found next to the other model; the result may be saved elsewhere.
        other = internalize(other, path.parent, model_file=path)
        joins = self._joins(workspace.model, other)
        prefix = self.prefix if self.prefix is not None else f"{files.stem_and_ending(path)[0]}/"
        combined = combine(workspace.model, other, joins, prefix=prefix, folders=(workspace.model_folder, path.parent))
        model = _arranged(combined.model, workspace.graph, self.inputs, self.outputs)
        workspace.replace_model(model)
        return Outcome(len(joins), combined.notes)

    def _joins(self, first: Model, second: Model) -> dict[str, str]:
        if first.graph is None or second.graph is None:
            raise EditError("one of the models has no graph")
        main = main_scope(Index(first))
        values = list(main.defined_names)
        inputs = [each.name or "" for each in second.graph.input]
        joins: dict[str, str] = {}
        for text in self.join or ():
            source, name = _pair(text, values, inputs)
            if name in joins:
                raise EditError(f'the input "{visible(name)}" of the other model is joined twice')
            joins[name] = source
        if self.join is None:
            outputs = {each.name for each in first.graph.output}
            joins = {name: name for name in inputs if name in outputs}
            if not joins:
                shown = [
                    listed([f'"{visible(each)}"' for each in names], 5) for names in (sorted(map(str, outputs)), inputs)
                ]
                raise EditError(
                    f"no input of the other model has the name of an output of this one; give `join` OUT=IN: "
                    f"this one has the outputs {shown[0]}, the other the inputs {shown[1]}"
                )
        return joins


def _pair(text: str, values: Sequence[str], inputs: Sequence[str]) -> tuple[str, str]:
    """Split a join into a value of the first model and an input of the second; names may contain equals signs."""
    places = [place for place, character in enumerate(text) if character == "="]
    if not places:
        raise EditError(
            f'"{visible(text)}" is not a join; a join is OUT=IN, a value of this model and an input of the other'
        )
    known_values, known_inputs = set(values), set(inputs)
    pairs = [(text[:place], text[place + 1 :]) for place in places]
    fitting = [pair for pair in pairs if pair[0] in known_values and pair[1] in known_inputs]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise EditError(f'"{visible(text)}" can be read in {len(fitting)} ways; rename one of the values first')
    source, name = next((pair for pair in pairs if pair[0] in known_values), pairs[0])
    if source not in known_values:
        hint = suggest(source, values) or f"its outputs and inputs are among {len(values):,} values"
        raise SelectorError(f'this model has no value "{visible(source)}"; {hint}')
    hint = suggest(name, inputs) or f"there are {listed([visible(each) for each in inputs], 8) or 'nothing'}"
    raise SelectorError(f'the other model has no input "{visible(name)}"; {hint}')


def _arranged(model: Model, before: Graph, inputs: Sequence[str], outputs: Sequence[str]) -> Model:
    graph = model.graph
    assert graph is not None
    fields: dict[str, tuple[ValueInfo, ...]] = {}
    if outputs:
        known = {each.name: each for each in (*before.output, *graph.output)}
        fields["output"] = _ordered(outputs, known, "output")
        names = {each.name for each in fields["output"]}
        left = [each for each in graph.output if each.name not in names]
        fields["value_info"] = (*[each for each in graph.value_info if each.name not in names], *left)
    if inputs:
        given = {each.name: each for each in graph.input}
        fields["input"] = _ordered(inputs, given, "input")
        if missing := [name or "" for name in given if name not in set(inputs)]:
            raise EditError(f'inputs does not name "{visible(missing[0])}", an input of the result')
    return replace(model, graph=replace(graph, **fields)) if fields else model


def _ordered(names: Sequence[str], known: dict[str | None, ValueInfo], kind: str) -> tuple[ValueInfo, ...]:
    for name in names:
        if name not in known:
            texts = [each for each in known if each]
            hint = suggest(name, texts) or f"there are {listed([visible(each) for each in texts], 8)}"
            raise SelectorError(f'the result has no {kind} "{visible(name)}"; {hint}')
    return tuple([known[name] for name in names])
