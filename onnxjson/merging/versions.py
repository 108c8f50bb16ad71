"""Nodes that one side made for one version of an operator set, in a model that has another one from the other side.

What a node means is said by the version that its model imports (ONNX IR, "Operator sets"). Who changes it sees to
the nodes that are there; nobody sees to those that the other side adds or changes meanwhile.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from onnxjson import document as d
from onnxjson.index import Index, NodeRef
from onnxjson.operators import plain_domain
from onnxjson.patching.changes import Change, Fields, Members

_OPERATOR: Final = ("op_type", "domain", "overload")

Home = Callable[[NodeRef], tuple[str | None, str | None]]
"""A merged node -> its address in the base, or the key of what added it (`Soundness.node_home`)."""


def version_problems(
    models: tuple[d.Model, d.Model, d.Model], changes: tuple[Fields | None, Fields | None], merged: Index, home: Home
) -> Iterator[list[str]]:
    """The units that do not go together: the import of an operator set, and nodes made for another version of it.

    Args:
        models: the base, ours and theirs, with names of the base.
        changes: what ours and theirs do to the base.
        merged: the merged model.
        home: where its nodes come from.
    """
    lists = [_imports(model) for model in models]
    if lists[0] == lists[1] == lists[2]:
        return
    now = _imports(merged.model)
    for address in lists[0]:
        versions = [each.get(address, {}) for each in (*lists, now)]
        differing = {
            domain
            for domain, version in versions[3].items()
            if any(each.get(domain, version) != version for each in versions[1:3])
        }
        if differing:
            keys = _misread(address, differing, versions, changes, merged, home)
            for domain, nodes in keys.items():
                yield [*_place(models[0], address, domain), *nodes]


def _imports(model: d.Model) -> dict[str, Mapping[str, int | None]]:
    """Domains and their versions by the address of the list that says them."""
    return {
        address: {plain_domain(each.domain): each.version for each in records}
        for address, records in _records(model).items()
    }


def _records(model: d.Model) -> dict[str, tuple[d.OperatorSetId, ...]]:
    functions = {f"/functions/{place}/opset_import": each.opset_import for place, each in enumerate(model.functions)}
    return {"/opset_import": model.opset_import, **functions}


def _place(base: d.Model, address: str, domain: str) -> list[str]:
    return [
        f"{address}/{place}"
        for place, each in enumerate(_records(base)[address])
        if plain_domain(each.domain) == domain
    ]


def _misread(
    address: str,
    domains: set[str],
    versions: list[Mapping[str, int | None]],
    changes: tuple[Fields | None, Fields | None],
    merged: Index,
    home: Home,
) -> dict[str, list[str]]:
    """By domain: the units of nodes that one side made, and that the version of the other one reads in another way."""
    found: dict[str, list[str]] = {}
    function = address.rpartition("/")[0]
    for ref in merged.node_refs:
        domain = plain_domain(ref.node.domain)
        is_here = ref.address.startswith(f"{function}/") if function else not ref.address.startswith("/functions/")
        if domain not in domains or not is_here:
            continue
        at, key = home(ref)
        for side, change in enumerate(changes):
            then, now = versions[1 + side].get(domain), versions[3][domain]
            is_its = _added_by(key) == side if at is None else _changes_meaning(change, at)
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
    # The libraries of onnx take longer to be loaded than most merges take.
    from onnxjson.operators import since_version

    return since_version(node.domain, node.op_type, then) != since_version(node.domain, node.op_type, now)
