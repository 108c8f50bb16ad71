"""``onnxjson show``: a model, a node or a tensor in detail."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from onnxjson.cli import options, output, reports
from onnxjson.cli.paths import Words, path_of
from onnxjson.model.document import Graph, Model, SparseTensor, Tensor
from onnxjson.model.errors import MissingInputError, OnnxJsonError, SelectorError
from onnxjson.model.index import Index, NodeRef
from onnxjson.model.operators import operator_signature
from onnxjson.outline.lines import Outline, outline_of
from onnxjson.outline.places import INFERRED, LARGEST
from onnxjson.patterns.names import TensorRef
from onnxjson.patterns.selector_terms import spelled
from onnxjson.patterns.selectors import select
from onnxjson.rendering.node import (
    documentation_fields,
    node_lines,
    nodes_lines,
    opset_of,
    shapes_lines,
    shapes_of,
    view_node,
)
from onnxjson.rendering.outline_report import outline_lines, outline_report
from onnxjson.rendering.summary import Place, summarise
from onnxjson.rendering.summary_text import comparison_lines, summary_lines
from onnxjson.rendering.tensor import TensorView, tensor_lines, view_tensor
from onnxjson.rendering.values import node_name
from onnxjson.storage import files, safetensors
from onnxjson.storage.external import Resolver

_ENDINGS: Final = (".onnx", ".json", ".onnxjson", ".pb")
_OUTLINE: Final = 30
"""Lines of an outline with which a summary begins."""

_SELECTOR_AFTER: Final = "onnxjson.cli.show.selector_after"
"""Key under which a context keeps whether the last word follows ``--``."""


@dataclass(frozen=True)
class _Opened:
    path: Path
    format: str
    size: int
    model: Model
    index: Index
    resolver: Resolver


class _ShowCommand(options.Command):
    """A command whose word after ``--`` is a selector, even if a file has that name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_SELECTOR_AFTER] = args[-2:-1] == ["--"]
        return super().parse_args(ctx, args)


@click.command("show", cls=_ShowCommand)
@click.argument("words", metavar="MODEL... [SELECTOR]", nargs=-1, required=True, type=Words())
@options.option("--doc", "With a node: also show ONNX's documentation of its operator.", "with_doc")
@options.option("--values N", "Number of tensor elements to show.", type=click.IntRange(0, 1_000_000), default=16)
@options.option(
    "--outline", "Show the structure of the network: blocks, expressions and repeats, one per line.", "with_outline"
)
@options.option("--depth N", "With --outline: omit lines nested deeper than N.", type=click.IntRange(0))
@options.option("--nodes", "With --outline: also show the node numbers of each line.", "with_nodes")
@options.option("--cost", "Show MACs, FLOPs, and bytes of weights and activations, by operator and scope.", "with_cost")
@options.option("--shapes", "Infer types and shapes, and list those of all node outputs.", "with_shapes")
@options.dims
@options.option(
    "--overlay FILE",
    "On an HTML page: also show results from FILE, the JSON of `run`, `verify --locate` or `diff`; can be repeated.",
    "overlays",
    type=click.Path(path_type=Path),
    multiple=True,
)
@options.weights_from
@reports.view_options("text", "json", "html")
@click.pass_context
def show_command(
    ctx: click.Context,
    words: tuple[str, ...],
    *,
    with_doc: bool,
    values: int,
    with_outline: bool,
    depth: int | None,
    with_nodes: bool,
    with_cost: bool,
    with_shapes: bool,
    dims: dict[str, int],
    overlays: tuple[Path, ...],
    weights_from: Path | None,
    view: reports.View,
) -> None:
    """Show a summary of a model, or one of its nodes or tensors.

    Without a selector, shows operators, weights, inputs and outputs; several models are shown side by side. The last
    argument is a selector if it follows -- or if no file has that name: the name of a node or tensor, op:Conv,
    '/layer1/*', @/graph/node/3. With -o m.html, writes the whole model as an HTML page. Also works for models that no
    runtime can load.

    \b
    onnxjson show m.onnx
    onnxjson show before.onnx after.onnx
    onnxjson show m.onnx fc.weight
    onnxjson show m.onnx op:Conv --json
    onnxjson show m.onnx --outline
    onnxjson show m.onnx --cost --dim N=8
    onnxjson show m.onnx op:Conv --shapes
    onnxjson show m.onnx -o m.html
    """
    paths, selector = _sort_out(words, is_selector=ctx.meta[_SELECTOR_AFTER])
    if selector is not None and with_cost:
        raise click.UsageError("--cost applies to whole models; leave out the selector")
    if with_outline and (selector is not None or len(paths) > 1 or with_cost or with_shapes or view.form == "html"):
        raise click.UsageError("--outline is for one whole model, without --cost and --shapes")
    if not with_outline and (depth is not None or with_nodes):
        raise click.UsageError("--depth and --nodes are for --outline; `onnxjson show MODEL 'op:*'` lists all nodes")
    is_page = view.form == "html"
    if is_page and (len(paths) > 1 or selector is not None):
        raise click.UsageError("--format html applies to one whole model")
    if overlays and not is_page:
        raise click.UsageError("--overlay is for an HTML page: -o m.html")
    if dims and not (with_cost or with_shapes or with_outline or is_page):
        raise click.UsageError("--dim is for --cost, --shapes, --outline and pages")
    opened = []
    for path in output.numbered(paths):
        with output.reading(path):
            opened.append(_open(path, weights_from))
    if is_page:
        with output.working(f"drawing {paths[0]}"):
            view.write(_page(_typed(opened[0], dims) if with_shapes else opened[0], dims, overlays))
        return
    if with_outline:
        with output.working(f"looking at {paths[0]}"):
            found_outline = _outline(opened[0], dims)
        view.present(
            text=lambda: map(output.line, outline_lines(found_outline, depth, nodes=with_nodes)),
            json=lambda: outline_report(found_outline, str(paths[0]), depth),
        )
        return
    width = reports.width()
    with output.working(f"looking at {paths[-1]}"):
        if with_shapes:
            opened = [_typed(each, dims) for each in opened]
        if with_cost:
            objects, lines = _costs(opened, width, dims)
        elif selector is None and not with_shapes:
            objects, lines = _summaries(opened, width)
            if view.form == "text" and len(opened) == 1:
                lines = [*_beginning(opened[0]), *lines]
        else:
            objects, lines = _select(
                opened, selector or "op:*", width, with_doc=with_doc, values=values, shapes=with_shapes
            )
    view.present(text=lambda: map(output.line, lines), json=lambda: objects[0] if len(objects) == 1 else objects)


def _sort_out(words: Sequence[str], *, is_selector: bool) -> tuple[list[Path], str | None]:
    if "" in words:
        raise click.UsageError("the name of a file or a selector is empty")
    *first, last = words
    if first and is_selector:
        return [path_of(word) for word in first], last
    if not first or os.path.isfile(last):
        return [path_of(word) for word in words], None
    if last.lower().endswith(_ENDINGS) and not last.startswith("@"):
        selector = output.quoted(spelled("name", last))
        raise MissingInputError(f"{output.quoted(last)} does not exist (to select a node of that name: {selector})")
    return [path_of(word) for word in first], last


def _open(path: Path, weights_from: Path | None) -> _Opened:
    # A missing blob matters only if its bytes are needed: `_view_tensor` reads that of one tensor.
    loaded = files.load(path, weights_from=weights_from, bind=weights_from is not None, conflicted=True)
    if loaded.conflicts:
        count = output.counted(len({conflict.id for conflict in loaded.conflicts}), "conflict")
        output.warn(f"{path} has {count} of a merge; the values of ours are shown: onnxjson conflicts {path}")
    output.findings(loaded.warnings, limit=output.SHOWN)
    resolver = Resolver(path.parent, model_file=path)
    form = "safetensors" if path.name.endswith((safetensors.ENDING, safetensors.INDEX_ENDING)) else loaded.format
    return _Opened(path, form, loaded.identity.size, loaded.model, Index(loaded.model), resolver)


def _typed(opened: _Opened, dims: dict[str, int]) -> _Opened:
    """The model with inferred types."""
    from onnxjson.editing import edits
    from onnxjson.editing.applying import apply

    changes = [*[edits.SetDim(dim=name, size=size) for name, size in dims.items()], edits.InferShapes()]
    model = apply(opened.model, changes, model_folder=opened.path.parent)
    return replace(opened, model=model, index=Index(model))


def _inferred(opened: _Opened, dims: dict[str, int], *, is_asked: bool = True) -> _Opened:
    """A model with inferred types; with those that it states, where they cannot be inferred or all are stated.

    And where the outline is not asked for, and inference would take longer than the rest.
    """
    is_long = not is_asked and len(opened.index.node_refs) > INFERRED
    if is_long or (not dims and opened.index.states_types()):
        return opened
    try:
        return _typed(opened, dims)
    except OnnxJsonError as error:
        if dims:
            raise
        if is_asked:
            output.warn(f"types are not inferred: {error}")
        return opened


def _outline(opened: _Opened, dims: dict[str, int], *, is_asked: bool = True) -> Outline:
    typed = _inferred(opened, dims, is_asked=is_asked)
    return outline_of(typed.model, typed.index)


def _summaries(opened: Sequence[_Opened], width: int) -> tuple[list[object], list[str]]:
    summaries = [
        summarise(each.model, each.index, Place(str(each.path), each.format, each.size), each.resolver)
        for each in opened
    ]
    if len(summaries) > 1:
        return list(summaries), comparison_lines(summaries, width)
    return list(summaries), summary_lines(summaries[0], width)


def _beginning(opened: _Opened) -> list[str]:
    """The outline with which a summary begins, if it is short; that of a big model would take longer than the rest."""
    if len(opened.index.node_refs) > LARGEST:
        return []
    try:
        lines = [*outline_lines(_outline(opened, {}, is_asked=False))]
    except OnnxJsonError:  # a small constant that is stored elsewhere, and is not there; a summary needs none
        return []
    return [*lines, ""] if 1 < len(lines) <= _OUTLINE else []


def _costs(opened: Sequence[_Opened], width: int, dims: dict[str, int]) -> tuple[list[object], list[str]]:
    from onnxjson.checking.cost import costs_of
    from onnxjson.rendering.cost_text import comparison_of_cost, cost_lines

    costs = costs_of([each.model for each in opened], [each.path.parent for each in opened], dims)
    found, _ = _summaries(opened, width)
    joined: list[object] = []
    for summary, cost in zip(found, costs, strict=True):
        assert isinstance(summary, msgspec.Struct)
        joined.append({**{name: getattr(summary, name) for name in summary.__struct_fields__}, "cost": cost})
    if len(costs) == 2:
        return joined, comparison_of_cost(costs[0], costs[1], width)
    lines: list[str] = []
    for each, cost in zip(opened, costs, strict=True):
        lines += [*([""] if lines else []), f"file      {each.path}", *cost_lines(cost, width)]
    return joined, lines


def _page(opened: _Opened, dims: dict[str, int], files_of_overlays: Sequence[Path]) -> Iterable[str]:
    """Return the whole model as a page."""
    from onnxjson.checking.cost import assumed_dims, cost_of
    from onnxjson.rendering import model_page

    overlays: dict[str, Mapping[str, float | str]] = {}
    for each in files_of_overlays:
        overlays |= model_page.overlays_of(each, opened.index, opened.path.name)
    try:
        cost = cost_of(opened.model, opened.path.parent, assumed_dims(dims, opened.model))
    except OnnxJsonError as error:
        output.warn(f"costs are not shown: {error}")
        cost = None
    typed = _inferred(opened, {}) if len(opened.index.node_refs) <= INFERRED else opened
    outline = outline_of(typed.model, typed.index)
    return model_page.model_html(opened.path.name, typed.index, cost, overlays, outline)


def _select(
    opened: Sequence[_Opened], selector: str, width: int, *, with_doc: bool, values: int, shapes: bool
) -> tuple[list[object], list[str]]:
    """Show what a selector matches in each model, one after another."""
    views: list[object] = []
    lines: list[str] = []
    for model in opened:
        file = str(model.path)
        try:
            matched = select(model.model, model.index, selector)
        except SelectorError as error:
            error.add_place(output.line(file))
            raise
        if len(opened) > 1:
            lines += ([""] if lines else []) + [f"file      {file}"]
        if isinstance(matched, TensorRef):
            views.append(tensor := _view_tensor(model, matched, values))
            lines += tensor_lines(tensor, width)
        elif len(matched) == 1:
            documentation = _documentation(model.model, matched[0]) if with_doc else None
            views.append(node := view_node(model.model, model.index, matched[0], file, documentation, most=None))
            lines += node_lines(node, width)
        elif shapes:
            views.append({"kind": "shapes", "file": file, "nodes": (nodes := shapes_of(matched))})
            lines += shapes_lines(nodes, width)
        else:
            views.append({"kind": "nodes", "file": file, "nodes": [node_name(ref) for ref in matched]})
            lines += nodes_lines(matched, width)
    return views, lines


def _view_tensor(opened: _Opened, ref: TensorRef, values: int) -> TensorView:
    """One tensor, with the bytes of its blob if they can be read."""
    problem = None
    if ref.tensor is not None:
        try:
            ref = replace(ref, tensor=_with_blob(ref.tensor, files.real_folder(opened.path)))
        except OnnxJsonError as error:
            problem = str(error)
    view = view_tensor(opened.index, ref, str(opened.path), opened.resolver, most=values)
    return view if problem is None else msgspec.structs.replace(view, problem=problem)


def _with_blob(tensor: Tensor | SparseTensor, folder: Path) -> Tensor | SparseTensor:
    """One constant with the bytes of its blob, if it has one."""
    alone = Graph(initializer=(tensor,)) if isinstance(tensor, Tensor) else Graph(sparse_initializer=(tensor,))
    graph = files.bind_digests(Model(graph=alone), folder=folder, weights_from=None).graph or alone
    return graph.initializer[0] if graph.initializer else graph.sparse_initializer[0]


def _documentation(model: Model, ref: NodeRef) -> dict[str, Any] | None:
    signature = operator_signature(ref.node.domain, ref.node.op_type, opset_of(model, ref))
    if signature is None:
        output.warn(f"onnx has no documentation of {output.quoted(ref.node.op_type or '')} in this domain and opset")
    return None if signature is None else documentation_fields(signature)
