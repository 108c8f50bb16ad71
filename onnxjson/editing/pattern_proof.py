"""Run both sides of each replacement of a pattern on the same random inputs."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from onnxjson.diffing.changes import Region
from onnxjson.diffing.matching.alignment import GraphPair
from onnxjson.editing.workspace import Workspace
from onnxjson.model.constants import find_constant
from onnxjson.model.dataflow import consumed_names
from onnxjson.model.display import counted
from onnxjson.model.document import Tensor
from onnxjson.model.errors import EditError
from onnxjson.model.index import Index, Scope
from onnxjson.model.payloads import Data
from onnxjson.model.tensors import raw_bytes
from onnxjson.patterns.finding import Match
from onnxjson.patterns.literals import Value
from onnxjson.storage.constant_reading import with_elements
from onnxjson.storage.external import Resolver


class Replaced(NamedTuple):
    """One match that was replaced."""

    match: Match
    ends: list[str]
    """The values that the replacement computes."""
    made: set[str]
    """Outputs of the new nodes."""


def prove(
    workspace: Workspace, before: Index, done: Sequence[Replaced], resolved: Callable[[Value], str], edit: str
) -> Iterator[str]:
    """Run both sides of each replacement; yield what that shows.

    Args:
        before: the index of the model before the replacements.
        resolved: returns the name that a value has after them.

    Raises:
        EditError: the results of a replacement differ.
    """
    from onnxjson.running.proof import prove_regions

    resolver = Resolver(workspace.model_folder or Path())

    def elements(tensor: Tensor) -> Data | None:
        found = raw_bytes(with_elements(tensor, resolver))
        return None if found is None else found[0]

    regions = [_region(each, before, workspace.index, resolved) for each in done]
    verdicts = prove_regions(before, workspace.index, regions, elements)
    for each, (verdict, evidence) in zip(done, verdicts, strict=True):
        if verdict == "different":
            raise EditError(f"{edit}: {each.match.root.address}: {evidence}", each.match.root.address)
    ran = [evidence for verdict, evidence in verdicts if verdict != "not-run"]
    if ran:
        yield f"{counted(len(ran), 'replacement')} proved: {ran[0]}"
    missed = [evidence for verdict, evidence in verdicts if verdict == "not-run"]
    if missed:
        yield f"{counted(len(missed), 'replacement')} not run: {missed[0]}"


def _region(replaced: Replaced, before: Index, after: Index, resolved: Callable[[Value], str]) -> Region:
    """Return a replacement as the nodes before and after, with the values around them."""
    old = replaced.match.root.scope
    scope, target = before.by_address[old.address], after.scope(old.address)
    if target is None:
        raise EditError(f"{old.address} moved, so that the replacement in it cannot be proved")
    base = sorted(ref.position for ref in replaced.match.nodes if ref.scope is old)
    new = sorted({target.producers[name][0] for name in replaced.made if name in target.producers})
    around = {(name, resolved(Value(old, name))): None for name in _taken(scope, base, before.model.ir_version)}
    known = {name for _, name in around}
    around |= {(name, name): None for name in _taken(target, new, after.model.ir_version) if name not in known}
    ends = tuple([(name, resolved(Value(old, name))) for name in replaced.ends])
    pair = GraphPair(scope, target, (), (), {}, {}, {})
    return Region(pair, tuple(base), tuple(new), tuple(around), ends, (), ())


def _taken(scope: Scope, positions: Sequence[int], ir_version: int | None) -> list[str]:
    """Return the values that nodes consume and do not produce, constants that no caller replaces apart."""
    nodes = [scope.graph.node[each] for each in positions]
    made = {name for node in nodes for name in node.output}
    names = dict.fromkeys([name for node in nodes for name in consumed_names(node) if name not in made])
    found = {name: find_constant(scope, name) for name in names}
    return [name for name, each in found.items() if each is None or each.is_replaceable(ir_version)]
