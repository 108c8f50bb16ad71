"""Check nodes of a workspace with the rules of `onnxjson.model.operator_checks`; find the dtypes of values."""

from collections.abc import Iterator, Mapping
from typing import Final

from onnxjson.editing.workspace import Workspace
from onnxjson.model import operator_checks as rules
from onnxjson.model import operators
from onnxjson.model.constants import type_of_constant
from onnxjson.model.display import visible
from onnxjson.model.document import Node
from onnxjson.model.errors import EditError
from onnxjson.model.index import Index, Scope

Dtypes = Mapping[str, int]
"""Future data types of values, by name."""

Known = dict[tuple[Scope, str], int | None]
"""Data types that are already determined, None if unknown: the graph that defines a value, and its name."""


def check_node(workspace: Workspace, scope: Scope, node: Node, place: str) -> None:
    """Raise unless a node is valid for its operator; `place` is its name in messages.

    Raises:
        EditError: it is not; the message states what is allowed.
    """
    domain, op_type = operators.plain_domain(node.domain), node.op_type or ""
    shown = visible(op_type)
    key = operators.operator_key(node)
    function = next((each for each in workspace.model.functions if operators.function_key(each) == key), None)
    if function is not None:
        _raise_first(place, rules.count_mistakes(shown, "input", len(node.input), 0, len(function.input)))
        _raise_first(place, rules.count_mistakes(shown, "output", len(node.output), 0, len(function.output)))
        return
    opset = workspace.opset(scope, domain)
    if opset is None:
        which = f'the domain "{visible(domain)}"' if domain else "the default domain"
        newest = operators.newest_version(domain)
        option = f" --domain {visible(domain)}" if domain else ""
        hint = f"`stamp-opset {newest or 1}{option}` adds it"
        raise EditError(f"{place}: the model has no opset_import for {which}; {hint}")
    if not operators.known_operators(domain):
        return
    found = operators.operator_signature(domain, op_type, opset)
    mistakes = iter([rules.unknown_operator(node, opset)]) if found is None else rules.node_mistakes(node, found, opset)
    _raise_first(place, mistakes)


def _raise_first(place: str, mistakes: Iterator[rules.Mistake]) -> None:
    for mistake in mistakes:
        raise EditError(f"{place}: {mistake}")


def dtype_of(workspace: Workspace, scope: Scope, name: str, known: Known | None = None) -> int | None:
    """Return the data type of a value, as the model states it or operators propagate it; None if unknown.

    `known` has results for the same model; new ones are added.
    """
    known = {} if known is None else known
    path: list[tuple[Scope, str]] = []
    found: int | None = None
    for _ in range(_FARTHEST):
        defining_scope = Index.defining_scope(scope, name)
        if defining_scope is None:
            break
        if (defining_scope, name) in known:
            found = known[defining_scope, name]
            break
        path.append((defining_scope, name))
        found = _stated_dtype(defining_scope, name)
        producer = workspace.index.producer(defining_scope, name)
        if found is not None or producer is None:
            break
        scope, node = producer.scope, producer.node
        propagated = output_dtype(workspace, scope, node, node.output.index(name))
        if not isinstance(propagated, str):
            found = propagated
            break
        name = propagated
    else:
        # Values closer to the producer may still be determined.
        del path[1:]
    known.update(dict.fromkeys(path, found))
    return found


def output_dtype(workspace: Workspace, scope: Scope, node: Node, slot: int) -> int | str | None:
    """Return the dtype of a node's output, or the name of an input with the same dtype; None if neither is known."""
    return rules.produced_dtype(node, _signature(workspace, scope, node), slot)


_FARTHEST: Final = 256
"""Maximum number of nodes through which a dtype is followed."""


def _stated_dtype(defining_scope: Scope, name: str) -> int | None:
    constant = defining_scope.initializer(name)
    return rules.dtype_of_type(Index.type_of(defining_scope, name) if constant is None else type_of_constant(constant))


def _signature(workspace: Workspace, scope: Scope, node: Node) -> operators.Signature | None:
    return operators.operator_signature(
        operators.plain_domain(node.domain), node.op_type, workspace.opset(scope, node.domain)
    )


def dtype_conflict(
    workspace: Workspace, scope: Scope, node: Node, dtypes: Dtypes | None = None, known: Known | None = None
) -> str | None:
    """Describe a conflict between the dtypes of a node's inputs; None if none is known.

    `dtypes` are future dtypes of some values; for `known` see `dtype_of`.
    """
    found = _signature(workspace, scope, node)
    if found is None:
        return None
    mistake = rules.dtype_mistake(
        node, found, lambda name: (dtypes or {}).get(name) or dtype_of(workspace, scope, name, known)
    )
    return None if mistake is None else mistake.message
