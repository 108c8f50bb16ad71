"""A structural diff for programs: onnxjson-diff/1, an object in ASCII; `diff_schema` has its schema."""

from collections.abc import Iterator
from typing import Any, Final

from onnxjson.diffing.events import Detail, Event, Member
from onnxjson.rendering.diff_report import Report
from onnxjson.rendering.exact import as_json

FORMAT: Final = "onnxjson-diff/1"


def diff_json(report: Report, *, with_matches: bool = False) -> Iterator[str]:
    """The text in pieces, a line for each pair and each member; strings stand exactly, see `as_json`.

    Args:
        report: the diff.
        with_matches: also every pair of nodes.
    """
    head: dict[str, Any] = {"format": FORMAT, "equal": report.equal}
    if report.incomplete:
        head["incomplete"] = list(report.incomplete)
    head["summary"] = {
        "base_nodes": report.nodes.before,
        "target_nodes": report.nodes.after,
        "matched_nodes": report.matched,
        "events": dict(report.places),
    }
    yield "{" + ",\n".join(f"{_line(key)}: {_line(value)}" for key, value in head.items())
    if with_matches:
        yield from _list(',\n"matches": ', (_line(pair) for pair in report.alignment.node_pairs()))
    yield from _list(',\n"events": ', map(_event, report.events))
    yield "}\n"


def _list(before: str, members: Iterator[str]) -> Iterator[str]:
    yield before + "["
    separator = "\n"
    for text in members:
        yield separator + text
        separator = ",\n"
    yield "\n]" if separator != "\n" else "]"


def _line(value: object) -> str:
    return as_json(value, indent=None)


def _event(event: Event) -> str:
    head = _line({
        "kind": event.kind,
        "count": event.count,
        "pattern": event.pattern,
        "verdict": event.verdict,
        "evidence": event.evidence,
    })  # fmt: skip
    members = "".join(_list("", (_line(_member(member)) for member in event.members)))
    return f'{head[:-1]}, "members": {members}}}'


def _member(member: Member) -> dict[str, Any]:
    found = {
        "base": member.base,
        "target": member.target,
        "place": member.place,
        "details": [_detail(detail) for detail in member.details],
    }
    return found if member.count == 1 else found | {"count": member.count}


def _detail(detail: Detail) -> dict[str, Any]:
    return {"what": detail.what, "base": detail.base, "target": detail.target}
