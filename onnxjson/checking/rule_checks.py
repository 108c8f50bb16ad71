"""Checks of lint rules that need more than a line; the messages in `onnxjson.checking.catalogue` describe them."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any, Final

from onnxjson.checking.linting import NodeSite, Place, Subject, TensorSite, ValueSite
from onnxjson.model.constants import RANDOM, constant_nodes, is_constant_node
from onnxjson.model.document import Graph, Node
from onnxjson.model.dtypes import DATA_TYPES
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.operators import ir_version_for, operator_key, operator_table, plain_domain
from onnxjson.model.scopes import Scope
from onnxjson.model.tensors import location_of, raw_bytes
from onnxjson.storage.external import Resolver

GraphSite = tuple[Subject, Scope]
Found = list[Place]

HALF_SMALLEST: Final = 2.0**-24
"""The smallest positive float16; smaller numbers become zero."""

HALF_LARGEST: Final = 65504.0
_BIG: Final = 64 << 10
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


def is_inverse(site: NodeSite) -> bool:
    before = site.before(0, "Transpose")
    one: tuple[int, ...] = before.attributes.get("perm", ()) if before is not None else ()
    return bool(one) and [one[axis] for axis in site.attributes.get("perm", ())] == list(range(len(one)))


def missing_types(site: GraphSite) -> object:
    _, scope = site
    return (scope.kind == "main" and len([name for name in scope.producers if name not in scope.types])) or None


def contradicted_initializers(site: GraphSite) -> Found:
    _, scope = site
    found = []
    for name, position in scope.initializers.items():
        stated, tensor = scope.types.get(name), scope.initializer(name)
        if stated is None or stated.tensor_type is None or tensor is None:
            continue
        dims = tensor.dims if stated.shape is None else stated.shape
        sizes = [
            size if isinstance(size, int) else tensor.dims[axis] for axis, size in enumerate(dims[: len(tensor.dims)])
        ]
        if stated.dtype != getattr(tensor, "dtype", None) or len(dims) != len(sizes) or tuple(sizes) != tensor.dims:
            found.append(Place(f"{scope.address}/initializer/{position}", (name, f"{stated}")))
    return found


def stale_types(site: GraphSite) -> Found:
    _, scope = site
    infos = {each.name or "": place for place, each in enumerate(scope.graph.value_info)}
    return _named(scope, "value_info", infos, [name for name in infos if not scope.defines(name)])


def repeated_types(site: GraphSite) -> Found:
    graph = site[1].graph
    if not isinstance(graph, Graph):
        return []
    names = Counter([each.name for each in (*graph.input, *graph.output, *graph.value_info)])
    names -= Counter({each.name for each in graph.input} & {each.name for each in graph.output})
    return [Place(site[1].address, (name,)) for name, count in names.items() if name and count > 1]


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


def deprecated_since(site: NodeSite) -> object:
    rows = operator_table().rows("", site.node.op_type or "") if not plain_domain(site.node.domain) else ()
    return rows[0].since_version if rows and rows[0].deprecated else None


def first_nodes(wanted: Callable[[str], bool]) -> Callable[[Subject], Found]:
    """Return a check that finds the first node of each wanted domain, without calls of functions."""

    def check(subject: Subject) -> Found:
        found: dict[str, Place] = {}
        for ref in subject.index.nodes():
            domain = plain_domain(ref.node.domain)
            if wanted(domain) and domain not in found and operator_key(ref.node)[:2] not in subject.functions:
                found[domain] = Place(ref.address, (domain,))
        return list(found.values())

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


def epsilon(site: NodeSite) -> float:
    found = site.attributes.get("epsilon", 1e-5)
    return found if isinstance(found, float) else 1e-5


def not_finite(site: NodeSite) -> object:
    for name, value in site.attributes.items():
        values = value if isinstance(value, tuple) else (value,)
        if any([isinstance(each, float) and not math.isfinite(each) for each in values]):
            return name
    return None


def clip_limits(site: NodeSite) -> object:
    low, high = site.attributes.get("min"), site.attributes.get("max")
    if site.opset >= 11:
        low, high = site.number(1), site.number(2)
    return low is not None and high is not None and low > high and (low, high)


def softmax_of_one(site: NodeSite) -> bool:
    shape = site.shape(0) if site.opset >= 13 else None
    return shape is not None and shape[site.attributes.get("axis", -1)] == 1


def lost_by_cast(site: NodeSite) -> object:
    import numpy

    array, to = site.array(0), site.attributes.get("to", 0)
    if array is None or not array.size or array.dtype.kind not in "iuf":
        return None
    if to == DATA_TYPES["float16"]:
        return int((abs(array[numpy.isfinite(array)]) > HALF_LARGEST).sum()) or None
    if to not in _INTEGERS or array.dtype.kind == "f":
        return None
    limits = numpy.iinfo(_INTEGERS[to])
    return int(((array < limits.min) | (array > limits.max)).sum()) or None


_INTEGERS: Final = {DATA_TYPES[name]: name for name in ("int8", "int16", "int32", "uint8", "uint16", "uint32")}


def count_not_finite(site: TensorSite) -> object:
    # A constant of one infinity is the value of a mask.
    return (site.is_weight and site.floats.size > 1 and site.floats.size - len(site.finite)) or None


def count_beyond_half(site: TensorSite) -> object:
    return (site.tensor.dtype == "float32" and int((abs(site.finite) > HALF_LARGEST).sum())) or None


def is_filled(site: TensorSite) -> bool:
    array = site.array if site.bytes >= _BIG else None
    return array is not None and bool((array == array.reshape(-1)[0]).all())


def fits_half(site: TensorSite) -> bool:
    if site.tensor.dtype != "float32" or site.bytes < _BIG or not 0 < len(site.finite) == site.floats.size:
        return False
    return bool(abs(site.finite).max() <= HALF_LARGEST and bool((site.finite.astype("float16") == site.finite).all()))


def fits_int32(site: TensorSite) -> bool:
    array = site.array if site.tensor.dtype == "int64" and site.bytes >= _BIG else None
    return array is not None and bool(abs(array).max() < 2**31)


def copies(subject: Subject) -> Found:
    first: dict[object, str] = {}
    found = []
    for each in subject.tensors:
        name, size = each.tensor.name or "", TensorSite(subject, each).bytes
        if each.is_weight and size >= 1024 and (stored := raw_bytes(each.tensor)) is not None:
            before = first.setdefault((each.tensor.data_type, each.tensor.dims, stored[0]), name)
            found += [Place(each.address, (name, before, size))] if before != name else []
    return found


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
    for each in subject.tensors if resolver is not None else ():
        location = location_of(each.tensor)
        if location and location not in tried and resolver is not None:
            tried[location] = []
            try:
                resolver.resolve(each.tensor.external_data, None)
            except OnnxJsonError:
                tried[location] = [Place(each.address, (location,))]
    return [place for places in tried.values() for place in places]


def overlaps(subject: Subject) -> Found:
    ranges: dict[str, list[tuple[int, int, str, str]]] = {}
    for each in subject.tensors:
        entries = {entry.key: entry.value or "" for entry in each.tensor.external_data}
        offset, length = entries.get("offset", "0"), entries.get("length", "")
        if location_of(each.tensor) and re.fullmatch("[0-9]{1,18}", offset) and re.fullmatch("[0-9]{1,18}", length):
            its = (int(offset), int(offset) + int(length), each.address, each.tensor.name or "")
            ranges.setdefault(entries.get("location", ""), []).append(its)
    pairs = [pair for members in ranges.values() for pair in pairwise(sorted(members))]
    return [Place(two[2], (two[3], one[3])) for one, two in pairs if two[0] < one[1] and one[:2] != two[:2]]


def is_hidden(text: str) -> bool:
    return bool(re.search("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]", text))


def huge_result(site: NodeSite) -> object:
    array = site.array(0 if site.node.op_type == "ConstantOfShape" else 1)
    count = 0 if array is None else math.prod([max(int(size), 0) for size in array.reshape(-1)])
    return count if count > 1 << 31 else None


def bad_scale(site: NodeSite) -> object:
    slots = (1, 4, 6) if (site.node.op_type or "").startswith("QLinear") else (1,)
    found = [(site.name(slot), site.array(slot)) for slot in slots]
    scales = [(name, each) for name, array in found if array is not None for each in array.reshape(-1).tolist()]
    return next((scale for scale in scales if not 0 < scale[1] < math.inf), None)


def zero_point_dtype(site: NodeSite) -> object:
    zero, data = site.dtype(2), site.dtype(0)
    if site.node.op_type == "QuantizeLinear":
        result = site.scope.types.get(site.node.output[0])
        data = None if result is None else result.dtype
    return zero is not None and bool(data) and zero != data and (zero, data)


def _channels(site: NodeSite) -> tuple[int, int, tuple[int | str | None, ...]] | None:
    """Return the number of scales for each channel, their axis, and the dims; None for one scale or blocks."""
    scale, shape = site.tensor(1), site.shape(0)
    if scale is None or len(scale.dims) != 1 or shape is None or site.attributes.get("block_size"):
        return None
    return scale.dims[0], site.attributes.get("axis", 1), shape


def wrong_axis(site: NodeSite) -> object:
    found = _channels(site)
    return found is not None and not -len(found[2]) <= found[1] < len(found[2]) and (found[1], len(found[2]))


def wrong_channels(site: NodeSite) -> object:
    found = _channels(site)
    size = None if found is None or wrong_axis(site) else found[2][found[1]]
    return found is not None and isinstance(size, int) and found[0] not in (1, size) and (found[0], size)


def back_and_forth(site: NodeSite, *, same: bool) -> bool:
    """Whether a node quantizes what was dequantized with the same, or with another, scale and zero point."""
    other = site.before(0, "DequantizeLinear")
    if other is None:
        return False
    if all([site.name(slot) == other.name(slot) for slot in (1, 2)]):
        return same
    pairs = [(site.array(slot), other.array(slot)) for slot in (1, 2) if site.name(slot) or other.name(slot)]
    known = [(one.tolist(), two.tolist()) for one, two in pairs if one is not None and two is not None]
    return len(known) == len(pairs) and all([one == two for one, two in known]) == same


def has_zero_point(site: NodeSite) -> bool:
    zeros = site.array(2)
    return site.is_constant(0) and site.dtype(0) == "int8" and zeros is not None and bool(zeros.any())


def half_quantized(site: NodeSite) -> bool:
    weights = site.before(1, "DequantizeLinear")
    return weights is not None and weights.is_constant(0) and site.before(0, "DequantizeLinear") is None


def invented_name(site: ValueSite) -> object:
    names = [each for each in site.dims if isinstance(each, str) and re.match(r"unk__|.*_dim_\d+$|s\d+$", each)]
    return names[0] if names and site.is_interface else None
