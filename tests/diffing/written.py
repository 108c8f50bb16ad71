"""Small models written as text, for diffs with exactly one right answer."""

import onnx.parser

import onnxjson
from onnxjson.diffing.difference import Diff, diff
from onnxjson.model.document import Model

HEADER = '<ir_version: 8, opset_import: ["" : {opset}{domains}]>\n'

Said = tuple[str, str, tuple[str, ...], tuple[str, ...]]
"""Kind, pattern, and the addresses of a member in base and target."""


def model(graph: str, functions: str = "", opset: int = 18, domains: str = "") -> Model:
    """The model of a graph in ONNX's text form."""
    text = HEADER.format(opset=opset, domains=domains) + graph + functions
    return onnxjson.from_proto(onnx.parser.parse_model(text))


def said(diff: Diff) -> list[Said]:
    """What the events of a diff say, one entry for each member."""
    return [
        (event.kind, event.pattern, member.base, member.target) for event in diff.events for member in event.members
    ]


def explained(base: Model, target: Model, **options: object) -> Diff:
    """The diff, of which every unit of the patch has one event and every event one unit at least."""
    difference = diff(base, target, **options)  # type: ignore[arg-type]
    assert difference.patch.apply(base) == target
    shares = difference.shares
    assert [unit for unit, number in shares.items() if number is None] == []
    assert set(shares.values()) == set(range(len(difference.events)))
    return difference


def details(found: Diff, number: int = 0) -> list[tuple[str, str | None, str | None]]:
    """The details of the first member of an event."""
    return [(each.what, each.base, each.target) for each in found.events[number].members[0].details]
