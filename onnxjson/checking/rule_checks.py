"""Checks of graphs and whole models; the messages in `onnxjson.checking.catalogue` describe them."""

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any, Final

from onnxjson.checking.linting import Place, Subject, TensorSite
from onnxjson.model.constants import RANDOM, constant_nodes, is_constant_node
from onnxjson.model.document import Graph, Node
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.operators import ir_version_for, operator_key, plain_domain
from onnxjson.model.scopes import Scope
from onnxjson.model.tensors import location_of, raw_bytes
from onnxjson.storage.external import Resolver

GraphSite = tuple[Subject, Scope]
Found = list[Place]

_LOCAL_PATH: Final = re.compile(r"(?:/home/|/Users/|/root/|[A-Z]:\\Users\\)[\w.-]+")
_SECRET: Final = re.compile(
    r"AKIA[0-9A-Z]{16}|gh[pousr]_\w{36}|hf_[A-Za-z]{34}|-----BEGIN [A-Z ]*PRIVATE KEY|xox[abp]-[\w-]{10,}|sk-\w{32,}"
)
_KNOWN_DOMAINS: Final = ("", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview.training", "ai.onnx.preview")
RUNTIME_DOMAINS: Final = ("com.microsoft", "com.microsoft.nchwc", "com.microsoft.experimental")


def _title(node: Node) -> str:
    return node.name or next((name for name in node.output if name), "") or node.op_type or ""


def _named(scope: Scope, field: str, positions: Mapping[str, int], names: Iterable[str]) -> Found:
    """Return the elements of a field of a graph that have these names."""
    return [Place(f"{scope.address}/{field}/{positions[name]}", (name,)) for name in names]


def unused_nodes(site: GraphSite) -> Found:
    index, scope = site[0].index, site[1]
    captured = {name for child in index.scopes if child.outer is scope for name in child.consumers}
    wanted = [name for name in (*scope.output_names, *captured) if name and scope.producer_position(name) is not None]
    used = index.ancestors(scope, wanted)
    nodes = enumerate(scope.graph.node)
    return [Place(f"{scope.address}/node/{place}", (_title(node),)) for place, node in nodes if place not in used]


def unused_initializers(site: GraphSite) -> Found:
    subject, scope = site
    names = [] if subject.model.training_info else scope.initializers
    unused = [name for name in names if not subject.index.consumers(scope, name)]
    return _named(scope, "initializer", scope.initializers, unused)


def unused_functions(subject: Subject) -> Found:
    functions = enumerate(subject.model.functions)
    called = {operator_key(ref.node)[:2] for ref in subject.index.nodes()} if subject.model.functions else set()
    return [
        Place(f"/functions/{position}", (each.name or "",))
        for position, each in functions
        if (plain_domain(each.domain), each.name or "") not in called
    ]


def unused_inputs(site: GraphSite) -> Found:
    subject, scope = site
    free = [name for name in scope.inputs if name not in scope.initializers] if scope.kind == "main" else []
    return _named(scope, "input", scope.inputs, [each for each in free if not subject.index.consumers(scope, each)])


def passed_through(site: GraphSite) -> Found:
    _, scope = site
    outputs = {name: slot for slot, name in enumerate(scope.output_names) if name and scope.kind == "main"}
    known = {*scope.inputs, *scope.initializers}
    return _named(scope, "output", outputs, [name for name in outputs if name in known])


def constant_computations(site: GraphSite) -> object:
    _, scope = site
    places = constant_nodes(scope) if isinstance(scope.graph, Graph) else ()
    return len([place for place in places if not is_constant_node(scope.graph.node[place])]) or None


def twins(site: GraphSite) -> object:
    _, scope = site
    # Those that compute with constants only are counted already.
    constant = set(constant_nodes(scope)) if isinstance(scope.graph, Graph) else set()
    first: dict[object, int] = {}
    pairs = []
    for place, node in enumerate(scope.graph.node):
        has_parts = any([each.g or each.t or each.graphs for each in node.attribute])
        is_judged = node.input and node.op_type not in RANDOM and node.op_type != "Dropout" and not has_parts
        if is_judged and place not in constant:
            before = first.setdefault((operator_key(node), node.input, len(node.output), node.attribute), place)
            pairs += [(place, before)] if before != place else []
    if not pairs:
        return None
    titles = [_title(scope.graph.node[each]) for each in pairs[0]]
    return [Place(f"{scope.address}/node/{pairs[0][0]}", (len(pairs), *titles))]


def overridable(site: GraphSite) -> object:
    _, scope = site
    return (scope.kind == "main" and len(scope.defaults)) or None


def missing_types(site: GraphSite) -> object:
    _, scope = site
    return (scope.kind == "main" and len([name for name in scope.producers if name not in scope.types])) or None


def contradicted_initializers(site: GraphSite) -> Found:
    _, scope = site
    places = []
    for name, position in scope.initializers.items():
        stated, tensor = scope.types.get(name), scope.initializer(name)
        if stated is None or stated.tensor_type is None or tensor is None:
            continue
        dims = tensor.dims if stated.shape is None else stated.shape
        sizes = [
            size if isinstance(size, int) else tensor.dims[axis] for axis, size in enumerate(dims[: len(tensor.dims)])
        ]
        if stated.dtype != getattr(tensor, "dtype", None) or len(dims) != len(sizes) or tuple(sizes) != tensor.dims:
            places.append(Place(f"{scope.address}/initializer/{position}", (name, f"{stated}")))
    return places


def stale_types(site: GraphSite) -> Found:
    _, scope = site
    infos = {each.name or "": place for place, each in enumerate(scope.graph.value_info)}
    return _named(scope, "value_info", infos, [name for name in infos if not scope.defines(name)])


def repeated_types(site: GraphSite) -> Found:
    graph = site[1].graph
    if not isinstance(graph, Graph):
        return []
    types: dict[str, list[object]] = {}
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.name and value.type not in types.setdefault(value.name, []):
            types[value.name].append(value.type)
    return [Place(site[1].address, (name,)) for name, stated in types.items() if len(stated) > 1]


def needs_ir(subject: Subject) -> object:
    needed = max([ir_version_for(name, version) for name, version in subject.opsets.items()], default=1)
    return needed if 0 < (subject.model.ir_version or 0) < needed else None


def unused_imports(subject: Subject) -> Found:
    used = {plain_domain(ref.node.domain) for ref in subject.index.nodes()}
    imports = enumerate(subject.model.opset_import)
    return [
        Place(f"/opset_import/{place}", (each.domain or "ai.onnx",))
        for place, each in imports
        if used and plain_domain(each.domain) not in ("", *used)
    ]


def first_nodes(wanted: Callable[[str], bool]) -> Callable[[Subject], Found]:
    """Return a check that finds the first node of each wanted domain, without calls of functions."""

    def check(subject: Subject) -> Found:
        firsts: dict[str, Place] = {}
        for ref in subject.index.nodes():
            domain = plain_domain(ref.node.domain)
            if wanted(domain) and domain not in firsts and operator_key(ref.node)[:2] not in subject.functions:
                firsts[domain] = Place(ref.address, (domain,))
        return list(firsts.values())

    return check


foreign_domains = first_nodes(lambda domain: domain not in (*_KNOWN_DOMAINS, *RUNTIME_DOMAINS))
runtime_domains = first_nodes(lambda domain: domain in RUNTIME_DOMAINS)


def repeated_names(site: GraphSite) -> Found:
    _, scope = site
    first: dict[str, int] = {}
    for place, node in enumerate(scope.graph.node):
        first.setdefault(node.name or "", place)
    again = [
        (place, node.name) for place, node in enumerate(scope.graph.node) if node.name and first[node.name] != place
    ]
    return [Place(f"{scope.address}/node/{place}", (name,)) for place, name in again]


def copies(subject: Subject) -> Found:
    first: dict[object, str] = {}
    duplicates = []
    for held in subject.tensors:
        name, size = held.tensor.name or "", TensorSite(subject, held).bytes
        if held.is_weight and size >= 1024 and (stored := raw_bytes(held.tensor)) is not None:
            before = first.setdefault((held.tensor.data_type, held.tensor.dims, stored[0]), name)
            duplicates += [Place(held.address, (name, before, size))] if before != name else []
    return duplicates


def inline_bytes(subject: Subject) -> object:
    total = sum([TensorSite(subject, each).bytes for each in subject.tensors if location_of(each.tensor) is None])
    return total if total > 2**31 - 1 else None


def texts_of(subject: Subject) -> list[tuple[str, str]]:
    """Return the doc strings and metadata of model, graphs and nodes with their addresses."""
    owners: list[tuple[str, Any]] = [("", subject.model)]
    for scope in subject.index.scopes:
        nodes = enumerate(scope.graph.node)
        owners += [(scope.address, scope.graph), *[(f"{scope.address}/node/{place}", node) for place, node in nodes]]
    texts = [(address, (each.doc_string, *[entry.value for entry in each.metadata_props])) for address, each in owners]
    return [(address, text) for address, found in texts for text in found if text]


def first_match(pattern: re.Pattern[str], shown: int) -> Callable[[Subject], Found]:
    """Return a check that finds the first text of a model that matches, and counts the others."""

    def check(subject: Subject) -> Found:
        found = [(address, match[0]) for address, text in texts_of(subject) if (match := pattern.search(text))]
        return [Place(found[0][0], (found[0][1][:shown], len(found)))] if found else []

    return check


local_paths, secrets = first_match(_LOCAL_PATH, 24), first_match(_SECRET, 6)


def text_bytes(subject: Subject) -> object:
    total = sum([len(text) for _, text in texts_of(subject)])
    return total if total > 1 << 20 else None


def bad_locations(subject: Subject) -> Found:
    outside = re.compile(r"/|\\|[A-Za-z]:|\w+://|(?:.*[/\\])?\.\.(?:[/\\]|\Z)", re.DOTALL)
    found = [(each, location_of(each.tensor) or "") for each in subject.tensors]
    return [
        Place(each.address, (each.tensor.name or "", location)) for each, location in found if outside.match(location)
    ]


def missing_files(subject: Subject) -> Found:
    resolver = None if subject.folder is None else Resolver(subject.folder)
    tried: dict[str, Found] = {}
    for held in subject.tensors if resolver is not None else ():
        location = location_of(held.tensor)
        if location and location not in tried and resolver is not None:
            tried[location] = []
            try:
                resolver.resolve(held.tensor.external_data, None)
            except OnnxJsonError:
                tried[location] = [Place(held.address, (location,))]
    return [place for places in tried.values() for place in places]


def overlaps(subject: Subject) -> Found:
    ranges: dict[str, list[tuple[int, int, str, str]]] = {}
    for held in subject.tensors:
        entries = {entry.key: entry.value or "" for entry in held.tensor.external_data}
        offset, length = entries.get("offset", "0"), entries.get("length", "")
        if location_of(held.tensor) and re.fullmatch("[0-9]{1,18}", offset) and re.fullmatch("[0-9]{1,18}", length):
            span = (int(offset), int(offset) + int(length), held.address, held.tensor.name or "")
            ranges.setdefault(entries.get("location", ""), []).append(span)
    pairs = [pair for members in ranges.values() for pair in pairwise(sorted(members))]
    return [Place(two[2], (two[3], one[3])) for one, two in pairs if two[0] < one[1] and one[:2] != two[:2]]
