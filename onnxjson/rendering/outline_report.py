"""The outline of a model as lines of text and as data."""

from collections.abc import Iterable, Iterator

import msgspec

from onnxjson.codecs.node_blocks import runs
from onnxjson.model.index import NodeRef
from onnxjson.outline.lines import Line, Outline


class OutlineLine(msgspec.Struct, frozen=True):
    """One line of an outline."""

    text: str
    nodes: tuple[str, ...]
    """Addresses of its nodes and of those of the lines inside it."""
    block: str | None
    repeat: int
    name: str | None
    lines: tuple["OutlineLine", ...]


class OutlineReport(msgspec.Struct, frozen=True):
    """The outline of a model."""

    kind: str
    file: str
    lines: tuple[OutlineLine, ...]


def outline_report(outline: Outline, file: str, depth: int | None) -> OutlineReport:
    """Return an outline as data; with `depth`, without lines that are nested deeper."""
    return OutlineReport("outline", file, tuple([_data(line, depth) for line in outline.lines]))


def _data(line: Line, depth: int | None) -> OutlineLine:
    inner = line.lines if depth is None or depth > 0 else ()
    return OutlineLine(
        line.text, tuple([ref.address for ref in line.nodes]), line.block or None, line.repeat, line.name or None,
        tuple([_data(each, None if depth is None else depth - 1) for each in inner]),
    )  # fmt: skip


def outline_lines(outline: Outline, depth: int | None = None, *, nodes: bool = False) -> Iterator[str]:
    """Yield the lines of an outline as text; with `nodes`, the numbers of their nodes in their graph."""
    for level, line in outline.walk(depth):
        text = f"{'  ' * level}{line.text}"
        # A repeat whose lines follow has the nodes of these lines.
        is_shown = nodes and line.nodes and (line.repeat == 1 or level == depth)
        yield f"{text}  # {_numbers(line.nodes)}" if is_shown else text


def _numbers(refs: Iterable[NodeRef]) -> str:
    """Positions as ranges: ``0-3, 7``; those of the graph of the first node."""
    first, *_ = refs = list(refs)
    positions = [ref.position for ref in refs if ref.scope is first.scope]
    return ", ".join([str(start) if start == end else f"{start}-{end}" for start, end in runs(positions)])
