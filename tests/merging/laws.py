"""What holds of every merge; `python -m tests.merging.laws COUNT [FIRST]` holds it of many random ones."""

import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

from onnxjson.codecs.text_file import read_bytes
from onnxjson.merging.merge import Merged, merge
from onnxjson.merging.resolving import resolve
from onnxjson.model.conflicts import Conflict, ConflictError
from onnxjson.model.document import Attribute, Graph, Model, Node, Tensor, ValueInfo
from onnxjson.model.index import Index
from onnxjson.model.structure import check_structure
from onnxjson.model.walking import walk
from tests.merging.models import conflicted_bytes
from tests.merging.triples import Triple, triple


def require_laws(given: Triple) -> Merged:
    """Fails where a merge of this triple breaks a law; gives the merge."""
    base, ours, theirs = given
    for side in (ours, theirs):
        assert merge(base, base, side) == Merged(side)
        assert merge(base, side, base) == Merged(side)
        assert merge(base, side, side) == Merged(side)
    merged = merge(base, ours, theirs)
    assert merge(base, ours, theirs) == merged
    _require_mirrored(merged, merge(base, theirs, ours))
    if merged.is_clean:
        _require_sound(merged.model, given)
        _require_nothing_lost_or_invented(merged.model, given)
    else:
        _require_recoverable(merged, given)
    return merged


def _require_mirrored(merged: Merged, swapped: Merged) -> None:
    assert merged.is_clean == swapped.is_clean
    if merged.is_clean:
        assert merged.model == swapped.model
        return
    assert _values(merged.conflicts, "ours", "theirs") == _values(swapped.conflicts, "theirs", "ours")


def _values(conflicts: tuple[Conflict, ...], mine: str, its: str) -> Counter[str]:
    return Counter(
        repr([_nameless(each) for each in (one.base, getattr(one, mine), getattr(one, its))]) for one in conflicts
    )


def _nameless(value: Any) -> Any:
    """A value of a conflict without names, which follow those of the side that comes first."""
    match value:
        case str():
            return "text"
        case Node():
            inner = [[_nameless(node) for node in graph.node] for graph in walk(value, Graph)]
            return (value.op_type, len(value.input), len(value.output), inner)
        case Tensor():
            return (value.dims, value.data_type, value.raw_data)
        case ValueInfo():
            return value.type
        case tuple():
            return len(value)
    return type(value).__name__


def _require_sound(model: Model, given: Triple) -> None:
    known = {finding.code for side in given for finding in check_structure(side)}
    assert {finding.code for finding in check_structure(model) if finding.severity == "error"} <= known


def _require_nothing_lost_or_invented(model: Model, given: Triple) -> None:
    """What a side adds is there, and what is there was there or was added; counted by what and not by name."""
    placed = [Counter(_elements(each)) for each in given]
    before, after = _counted(placed[0]), _counted(Counter(_elements(model)))
    came = [_counted(each - placed[0]) for each in placed[1:]]
    went = [_counted(placed[0] - each) for each in placed[1:]]
    for element in before.keys() | after.keys() | came[0].keys() | came[1].keys():
        most = before[element] + came[0][element] + came[1][element]
        least = before[element] - went[0][element] - went[1][element] + max(came[0][element], came[1][element])
        assert least <= after[element] <= most, (element, least, after[element], most)


def _counted(placed: Counter[tuple[Any, Any]]) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for (element, _), count in placed.items():
        found[element] += count
    return found


def _elements(model: Model) -> Iterator[tuple[Any, Any]]:
    """What a model consists of, without names of values, each with its place."""
    for scope in Index(model).scopes:
        for node in scope.graph.node:
            place = (scope.address, node.output[:1])
            yield ("node", node.domain, node.op_type), place
            for attribute in node.attribute:
                if attribute.g is None and not attribute.graphs:
                    yield from _parts(attribute, place)
        for tensor in getattr(scope.graph, "initializer", ()):
            yield _tensor(tensor), (scope.address, (tensor.name,))
    for entry in model.metadata_props:
        yield ("metadata", entry), entry.key


def _parts(attribute: Attribute, place: Any) -> Iterator[tuple[Any, Any]]:
    if attribute.t is not None:
        yield _tensor(attribute.t), place
    else:
        yield ("attribute", attribute), place


def _tensor(tensor: Tensor) -> Any:
    return ("tensor", tensor.dims, tensor.data_type, tensor.float_data, tensor.raw_data)


def _require_recoverable(merged: Merged, given: Triple) -> None:
    """Both sides of all conflicts can be read from the text, and had by a choice, whole as sound as the side was."""
    read = read_bytes(conflicted_bytes(merged.model, merged.conflicts), conflicted=True)
    assert (read.model, read.conflicts) == (merged.model, merged.conflicts)
    whole = len(merged.conflicts) == 1 and not merged.conflicts[0].at
    for choice, side in (("base", given.base), ("ours", given.ours), ("theirs", given.theirs)):
        ids = list(dict.fromkeys(each.id for each in merged.conflicts))
        model = _settled(merged, choice, [ids])
        if choice != "base":
            assert model is not None
            assert _mistakes(side) or not _mistakes(model), (choice, _mistakes(model))
        if whole or choice == "ours":
            assert model == (side if whole else merged.model)
        for order in (ids, ids[::-1], ids[1::2] + ids[::2]):
            assert _settled(merged, choice, [[each] for each in order]) in (model, None)


def _mistakes(model: Model) -> list[str]:
    return [each.code for each in check_structure(model) if each.severity == "error" or each.code == "missing-opset"]


def _settled(merged: Merged, choice: Any, steps: list[list[str]]) -> Model | None:
    """The model when all conflicts are resolved, some at a time; None where a name is taken.

    Swapped names can only be chosen together. The base is refused, too, if producers of its inputs were removed.
    """
    model, left = merged.model, merged.conflicts
    for ids in steps:
        try:
            model, left = resolve(model, left, choice, ids)
        except ConflictError as error:
            is_gone = choice == "base" and "which nothing produces" in str(error)
            if not is_gone and "names are taken" not in str(error):
                raise
            return None
    assert not left
    return model


def main(count: int, first: int = 0) -> None:
    """Hold the laws of random triples, and say how they merged."""
    found: Counter[str] = Counter()
    for seed in range(first, first + count):
        try:
            merged = require_laws(triple(seed))
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise
        whole = len(merged.conflicts) == 1 and not merged.conflicts[0].at
        found["clean" if merged.is_clean else "the whole model" if whole else "slots"] += 1
    print(dict(found))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
