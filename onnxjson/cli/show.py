"""``onnxjson show``: what a model, a node or a tensor consists of."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import msgspec

from onnxjson.cli import failures, output, paging
from onnxjson.cli.paths import FilePath
from onnxjson.errors import MissingInputError, OnnxJsonError, SelectorError

if TYPE_CHECKING:
    from onnxjson.document import Model, SparseTensor, Tensor
    from onnxjson.external import Resolver
    from onnxjson.files import Format
    from onnxjson.index import Index, NodeRef
    from onnxjson.operators import Documentation
    from onnxjson.rendering.tensor import TensorView
    from onnxjson.selectors import TensorRef

_ENDINGS: Final = (".onnx", ".json", ".onnxjson", ".pb")
"""What is named like this is a file, there or not."""


@dataclass(frozen=True)
class _Opened:
    """A model and where it came from."""

    path: Path
    format: "Format"
    size: int
    model: "Model"
    index: "Index"
    resolver: "Resolver"


@click.command("show")
@click.argument("words", metavar="MODEL... [SELECTOR]", nargs=-1, required=True)
@click.option("--doc", "with_doc", is_flag=True, help="Of a node: also what ONNX says about its operator.")
@click.option(
    "--values",
    metavar="N",
    type=click.IntRange(0, 1_000_000),
    default=16,
    show_default=True,
    help="Elements of a tensor to show.",
)
@click.option(
    "--weights-from",
    metavar="MODEL",
    type=FilePath(),
    help="The model that has the bytes of tensors of which MODEL has only the sha256.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one object, or an array for several models.")
@click.option("--no-pager", is_flag=True, help="Print all at once, also on a terminal.")
def command(
    words: tuple[str, ...],
    *,
    with_doc: bool,
    values: int,
    weights_from: Path | None,
    as_json: bool,
    no_pager: bool,
) -> None:
    """Say what a model, a node or a tensor consists of.

    Without a selector: operators, weights, inputs and outputs; several models stand side by side. The last word is a
    selector if no file has that name: a node, a tensor, op:Conv, '/layer1/*', @/graph/node/3. No runtime is asked, so
    models that none would load are shown, too.

    \b
    onnxjson show m.onnx
    onnxjson show before.onnx after.onnx
    onnxjson show m.onnx conv1.weight
    onnxjson show m.onnx op:Conv --json
    """
    paths, selector = _sorted_out(words)
    opened = []
    for path in paths:
        with output.working(f"reading {path}"):
            opened.append(_open(path, weights_from))
    width = paging.width()
    with output.working(f"looking at {paths[-1]}"):
        if selector is None:
            views, lines = _summaries(opened, width)
        else:
            views, lines = _selected(opened, selector, width, with_doc=with_doc, values=values)
    if as_json:
        _print_json(views)
    else:
        paging.show(map(output.line, lines), pager=not no_pager)


def _sorted_out(words: Sequence[str]) -> tuple[list[Path], str | None]:
    """The files, and the selector if there is one.

    Raises:
        click.UsageError: the name of a file is empty.
        MissingInputError: what is named like a file is none.
    """
    if "" in words:
        raise click.UsageError("a name of a file or a selector is empty")
    *first, last = words
    if not first or os.path.isfile(last):
        return [Path(word) for word in words], None
    if last.lower().endswith(_ENDINGS) and not last.startswith("@"):
        raise MissingInputError(f"{output.quoted(last)} does not exist (a node of that name is {_spelled(last)})")
    return [Path(word) for word in first], last


def _spelled(name: str) -> str:
    from onnxjson.selector_syntax import spelled

    return output.quoted(spelled("name", name))


def _open(path: Path, weights_from: Path | None) -> _Opened:
    from onnxjson import files
    from onnxjson.external import Resolver
    from onnxjson.index import Index

    # Blobs that are not there matter only to those who want their bytes: `_view_tensor` looks for those of one tensor.
    loaded = files.load(path, weights_from=weights_from, bind=weights_from is not None, conflicted=True)
    if loaded.conflicts:
        count = output.counted(len({conflict.id for conflict in loaded.conflicts}), "conflict")
        output.warn(f"{path} holds {count} of a merge; shown is what ours has: onnxjson conflicts {path}")
    output.findings(loaded.warnings, limit=failures.SHOWN)
    resolver = Resolver(path.parent, model_file=path)
    return _Opened(path, loaded.format, loaded.identity.size, loaded.model, Index(loaded.model), resolver)


def _summaries(opened: Sequence[_Opened], width: int) -> tuple[list[object], list[str]]:
    from onnxjson.rendering.comparison import comparison_lines
    from onnxjson.rendering.summary import Place, summarise
    from onnxjson.rendering.summary_text import summary_lines

    summaries = [
        summarise(each.model, each.index, Place(str(each.path), each.format, each.size), each.resolver)
        for each in opened
    ]
    lines = summary_lines(summaries[0], width) if len(summaries) == 1 else comparison_lines(summaries, width)
    return list(summaries), lines


def _selected(
    opened: Sequence[_Opened], selector: str, width: int, *, with_doc: bool, values: int
) -> tuple[list[object], list[str]]:
    """What a selector finds in each model, one after another."""
    from onnxjson.rendering.node import node_lines, nodes_lines, view_node, view_nodes
    from onnxjson.rendering.tensor import tensor_lines
    from onnxjson.selectors import TensorRef, select

    views: list[object] = []
    lines: list[str] = []
    for each in opened:
        file = str(each.path)
        try:
            found = select(each.model, each.index, selector)
        except SelectorError as error:
            raise type(error)(f"{output.line(file)}: {error}") from error
        if len(opened) > 1:
            lines += ([""] if lines else []) + [f"file      {file}"]
        if isinstance(found, TensorRef):
            tensor = _view_tensor(each, found, values)
            views.append(tensor)
            lines += tensor_lines(tensor, width)
        elif len(found) == 1:
            documentation = _documentation(each.model, found[0]) if with_doc else None
            node = view_node(each.model, each.index, found[0], file, documentation)
            views.append(node)
            lines += node_lines(node, width)
        else:
            views.append(view_nodes(found, file))
            lines += nodes_lines(found, width)
    return views, lines


def _view_tensor(opened: _Opened, ref: "TensorRef", values: int) -> "TensorView":
    """One tensor, with the bytes of its blob if they are to be had."""
    from onnxjson.rendering.tensor import view_tensor

    problem = None
    if ref.tensor is not None:
        try:
            ref = replace(ref, tensor=_with_blob(ref.tensor, Path(os.path.realpath(opened.path)).parent))
        except OnnxJsonError as error:
            problem = str(error)
    view = view_tensor(opened.index, ref, str(opened.path), opened.resolver, most=values)
    return view if problem is None else msgspec.structs.replace(view, problem=problem)


def _with_blob(tensor: "Tensor | SparseTensor", folder: Path) -> "Tensor | SparseTensor":
    """One constant with the bytes of its blob, if it has one.

    Raises:
        MissingInputError, UntrustedError: the blob is not there, or is no file that a text may name.
    """
    from onnxjson import files
    from onnxjson.document import Graph, Model, Tensor

    alone = Graph(initializer=(tensor,)) if isinstance(tensor, Tensor) else Graph(sparse_initializer=(tensor,))
    graph = files.bound(Model(graph=alone), folder=folder, weights_from=None).graph or alone
    return graph.initializer[0] if graph.initializer else graph.sparse_initializer[0]


def _documentation(model: "Model", ref: "NodeRef") -> "Documentation | None":
    from onnxjson.operators import documentation
    from onnxjson.rendering.node import opset_of

    found = documentation(ref.node.domain, ref.node.op_type, opset_of(model, ref))
    if found is None:
        output.warn(f"onnx has no documentation of {output.quoted(ref.node.op_type or '')} in this domain and opset")
    return found


def _print_json(views: Sequence[object]) -> None:
    from onnxjson.rendering.exact import as_json

    text = as_json(views[0] if len(views) == 1 else list(views))
    output.Stdout().write(f"{text}\n".encode("ascii"))
