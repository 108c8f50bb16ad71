"""The outline of a model on its page: each line opens its nodes, without a script."""

from collections.abc import Iterator
from typing import Final

from onnxjson.model.display import counted
from onnxjson.model.index import Index, NodeRef
from onnxjson.model.operators import operator_name
from onnxjson.model.types import shown_type
from onnxjson.outline.lines import Line, Outline
from onnxjson.rendering.diff_html import page_code, page_text

_MOST: Final = 100
"""Maximum number of inputs and outputs, and of nodes of a line, that are listed."""


def outline_section(index: Index, outline: Outline | None) -> Iterator[str]:
    """Yield inputs, outputs and the lines; without them for a model whose outline is not computed."""
    main = index.main
    if main is None:
        return
    yield "<section id=outline>\n"
    constants = main.initializers
    inputs = [name for name in main.inputs if name not in constants]
    for title, names in (
        ("inputs", inputs),
        ("outputs", [each if isinstance(each, str) else each.name or "" for each in main.graph.output]),
    ):
        stated = {name: index.type_of(main, name) for name in names[:_MOST]}
        texts = [f"{name}: {shown_type(kind)}" if kind is not None else name for name, kind in stated.items()]
        more = f" and {len(names) - _MOST:,} more" if len(names) > _MOST else ""
        yield f"<p><b>{title}</b> {' '.join([page_code(text) for text in texts])}{more}</p>\n"
    for place, line in enumerate(outline.lines if outline is not None else ()):
        if place or line.nodes:  # the first line has the inputs
            yield from _line(line)
    yield "</section>\n"


def _line(line: Line) -> Iterator[str]:
    text = page_code(line.text, None)
    if not line.nodes:
        yield f"<p>{text}</p>\n"
    elif line.lines:
        yield f"<details open><summary>{text} <small>{counted(len(line.nodes), 'node')}</small></summary>\n"
        for inner in line.lines:
            yield from _line(inner)
        yield "</details>\n"
    else:
        yield f"<details><summary>{text}</summary><ul>\n"
        yield from map(_node, line.nodes[:_MOST])
        if len(line.nodes) > _MOST:
            yield f"<li>and {len(line.nodes) - _MOST:,} more</li>\n"
        yield "</ul></details>\n"


def _node(ref: NodeRef) -> str:
    name = ref.node.name or next(filter(None, ref.node.output), "")
    operator = page_code(operator_name(ref.node.domain, ref.node.op_type))
    return f"<li>{operator} {page_code(name)} <small>{page_text(f'@{ref.address}')}</small></li>\n"
