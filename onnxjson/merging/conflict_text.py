"""Conflicts of a merge in words: equal conflicts as one line, with the values of the sides and the names of the nodes.

Used by the commands of a merge, and by git for a file with conflicts. Every text is visible.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from onnxjson.diffing.details import attribute_value_text, node_label, type_text
from onnxjson.merging.conflicted_files import value_text
from onnxjson.model.addresses import SIDES
from onnxjson.model.conflicts import Conflict
from onnxjson.model.display import counted, listed, visible
from onnxjson.model.document import Attribute, Model, Node, StringStringEntry, Tensor
from onnxjson.model.index import Index, NodeRef
from onnxjson.model.operators import operator_name

_MOST_PLACES: Final = 3
_MOST_IDS: Final = 6
_LONGEST: Final = 160
_IN_NODE: Final = re.compile(r"(.*/node/(?:0|[1-9][0-9]*))(?:/(.*))?", re.DOTALL)


def conflict_lines(model: Model, conflicts: Sequence[Conflict]) -> Iterator[str]:
    """Yield ``13x LayerNormalization.epsilon 1e-12: ours 0.0001, theirs 1e-05`` and places for all conflicts."""
    groups: dict[tuple[str, ...], list[tuple[Conflict, str]]] = {}
    for conflict, (what, place) in zip(conflicts, subjects(model, conflicts), strict=True):
        values = [_value(conflict, side) for side in ("base", "ours", "theirs")]
        groups.setdefault((what, *values), []).append((conflict, place))
    for (what, base, ours, theirs), members in groups.items():
        ids = list(dict.fromkeys([visible(conflict.id) for conflict, _ in members]))
        times = f"{len(members):,}x " if len(members) > 1 else ""
        before = "" if base == "nothing" else f" {base}"
        yield f"  {listed(ids, _MOST_IDS)}  {times}{what}{before}: ours {ours}, theirs {theirs}"
        if places := [place for _, place in members if place]:
            yield f"       {listed(places, _MOST_PLACES)}"


def headline(conflicts: Sequence[Conflict]) -> str:
    """Return ``15 conflicts``; one may have several places."""
    return counted(len({conflict.id for conflict in conflicts}), "conflict")


def side_values(conflict: Conflict) -> dict[str, str]:
    """Return the value of each side as one line of canonical text."""
    texts = {side: value_text(conflict, side) for side in SIDES}
    return {side: "nothing" if text is None else visible(text, _LONGEST) for side, text in texts.items()}


def subjects(model: Model, conflicts: Sequence[Conflict]) -> list[tuple[str, str]]:
    """Return the subject of each conflict, such as ``Conv.pads``, and its place ("" if both are one); all visible."""
    nodes = {ref.address: ref for ref in Index(model).nodes()}
    return [_subject(conflict, nodes) for conflict in conflicts]


def _subject(conflict: Conflict, nodes: dict[str, NodeRef]) -> tuple[str, str]:
    at = visible(conflict.at, None)
    match = _IN_NODE.fullmatch(conflict.at)
    ref = nodes.get(match[1]) if match is not None else None
    if match is None or (ref is None and match[2]):
        return f"@{at}" if at else "the whole model", ""
    if ref is not None and match[2]:
        what = f"{operator_name(ref.node.domain, ref.node.op_type)}.{match[2].removeprefix('attribute/')}"
        return visible(what, None), f"{visible(node_label(ref.node), None)} @{at}"
    node = next(each for each in (conflict.base, conflict.ours, conflict.theirs, Node()) if isinstance(each, Node))
    return "node", f"{visible(node_label(node), None)} @{at}"


def _value(conflict: Conflict, side: str) -> str:
    value: Any = getattr(conflict, side)
    match value:
        case None:
            return "nothing" if side == "base" or conflict.base is None else "removed"
        case Attribute():
            return visible(attribute_value_text(value), _LONGEST)
        case Tensor():
            return f"{visible(type_text(value), _LONGEST)} {side_values(conflict)[side]}"
        case StringStringEntry():
            return visible(f"{value.key} = {value.value}", _LONGEST)
        case Node() if isinstance(conflict.base, Node) and side == "base":
            return visible(operator_name(value.domain, value.op_type))
        case Node() if isinstance(conflict.base, Node):
            return _changes(conflict.base, value)
        case _:
            return side_values(conflict)[side]


def _changes(base: Node, node: Node) -> str:
    """Return ``changed axis to 1, input``."""
    old = {each.name: each for each in base.attribute}
    texts = [
        f"{each.name} to {attribute_value_text(each)}" for each in node.attribute if old.pop(each.name, None) != each
    ]
    texts += [f"{name} (removed)" for name in old]
    names = [name for name in Node.__struct_fields__ if name != "attribute"]
    texts += [name for name in names if getattr(base, name) != getattr(node, name)]
    return visible(f"changed {', '.join(texts)}", _LONGEST)
