"""Nodes that one side made for one version of an operator set, in a model that has another one from the other side.

What a node means is said by the version that its model imports (ONNX IR, "Operator sets"). Who changes it sees to
the nodes that are there; nobody sees to those that the other side adds or changes meanwhile.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from onnxjson import document as d
from onnxjson.index import Index, NodeRef, Scope
from onnxjson.merging.sides import Side
from onnxjson.operators import plain_domain, since_version
from onnxjson.patching.changes import Change, Fields, Members

if TYPE_CHECKING:
    from onnxjson.merging.soundness import Soundness

_OPERATOR: Final = ("op_type", "domain", "overload")


def version_problems(sides: tuple[Side, Side], merged: Index, sound: "Soundness") -> Iterator[list[str]]:
    """The units that do not go together: the import of an operator set, and nodes made for another version of it.

    Args:
        sides: ours and theirs, with names of the base.
        merged: the merged model.
        sound: knows where its functions and nodes come from.
    """
    base = sides[0].alignment.base.model
    before = _imports(base, {place: f"/functions/{place}" for place in range(len(base.functions))})
    ours, theirs = [
        _imports(side.model, {there: f"/functions/{here}" for here, there in side.alignment.functions})
        for side in sides
    ]
    if before == ours == theirs:
        return
    lists = _lists_of_scopes(merged, sound)
    here = {int(scope.address.rpartition("/")[2]): at for scope, at in lists.items() if at and scope.kind == "function"}
    now = _imports(merged.model, {place: address.rpartition("/")[0] for place, address in here.items()})
    for address in before:
        versions = [each.get(address, {}) for each in (before, ours, theirs, now)]
        differing = {
            domain
            for domain, version in versions[3].items()
            if any(each.get(domain, version) != version for each in versions[1:3])
        }
        if differing:
            nodes_here = [ref for ref in merged.node_refs if lists[ref.scope] == address]
            for domain, nodes in _misread(address, differing, versions, sides, nodes_here, sound).items():
                yield [*_place(base, address, domain), *nodes]


def _imports(model: d.Model, functions: Mapping[int, str]) -> dict[str, Mapping[str, int | None]]:
    """Domains and their versions by the address, in the base, of the list that says them.

    Args:
        model: any of the four.
        functions: the functions of the base that it has: their places in the model -> their addresses in the base.
    """
    found = {"/opset_import": _versions(model.opset_import)}
    for place, address in functions.items():
        found[f"{address}/opset_import"] = _versions(model.functions[place].opset_import)
    return found


def _versions(records: tuple[d.OperatorSetId, ...]) -> Mapping[str, int | None]:
    return {plain_domain(each.domain): each.version for each in records}


def _lists_of_scopes(merged: Index, sound: "Soundness") -> dict[Scope, str | None]:
    """The address, in the base, of the list that says the versions for a graph; None in functions that are new."""
    found: dict[Scope, str | None] = {}
    for scope in merged.scopes:
        if scope.outer is not None:
            found[scope] = found[scope.outer]
        elif scope.kind == "function":
            address = sound.home(scope)[0]
            found[scope] = None if address is None else f"{address}/opset_import"
        else:
            found[scope] = "/opset_import"
    return found


def _place(base: d.Model, address: str, domain: str) -> list[str]:
    function = address.split("/")[2] if address.startswith("/functions/") else ""
    records = base.functions[int(function)].opset_import if function else base.opset_import
    return [f"{address}/{place}" for place, each in enumerate(records) if plain_domain(each.domain) == domain]


def _misread(
    address: str,
    domains: set[str],
    versions: list[Mapping[str, int | None]],
    sides: tuple[Side, Side],
    refs: list[NodeRef],
    sound: "Soundness",
) -> dict[str, list[str]]:
    """By domain: the units of nodes that one side made, and that the version of the other one reads in another way."""
    found: dict[str, list[str]] = {}
    for ref in refs:
        domain = plain_domain(ref.node.domain)
        if domain not in domains:
            continue
        at, key = sound.node_home(ref)
        for number, side in enumerate(sides):
            then, now = versions[1 + number].get(domain), versions[3][domain]
            is_its = _added_by(key) == number if at is None else _changes_meaning(side.changes, at)
            if is_its and then is not None and then != now and _is_another(ref.node, then, now):
                found.setdefault(domain, []).append(at or key or address)
    return found


def _added_by(key: str | None) -> int | None:
    return None if key is None else int(key.rpartition("+")[2].partition(".")[0])


def _changes_meaning(change: Fields | None, address: str) -> bool:
    """Whether a side changes how a node of the base has to be read."""
    below: Change | None = change
    for part in address.split("/")[1:]:
        if type(below) is Fields:
            below = below.changes.get(part)
        elif type(below) is Members:
            name = part.replace("~1", "/").replace("~0", "~")
            below = below.changes.get(name, below.changes.get(int(part)) if part.isdigit() else None)
        else:
            break
    if type(below) is not Fields:
        return below is not None  # another graph in the place of the one that the node is in
    changes = below.changes
    return (
        any(field in changes for field in _OPERATOR)
        or _has_other_values(changes.get("attribute"))
        or _has_other_count(changes.get("input"))
    )


def _has_other_values(change: Change | None) -> bool:
    """Whether attributes came, went or changed; what changes inside of their graphs is said of the nodes there."""
    if type(change) is not Members:
        return change is not None
    if change.removed or any(isinstance(each, d.Attribute) for each in change.sequence or ()):
        return True
    return any(
        type(each) not in (Fields, Members) for fields in change.changes.values() for each in fields.changes.values()
    )


def _has_other_count(change: Change | None) -> bool:
    new, old = getattr(change, "new", None), getattr(change, "old", None)
    return new is not None and old is not None and len(new) != len(old)


def _is_another(node: d.Node, then: int, now: int | None) -> bool:
    """Whether an operator became another one between two versions; no operator that onnx does not know did."""
    return since_version(node.domain, node.op_type, then) != since_version(node.domain, node.op_type, now)
