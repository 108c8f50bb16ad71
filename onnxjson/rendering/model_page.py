"""A whole model as one HTML file: its lines, which unfold to their nodes, and a graph of what is unfolded.

The page needs no network: dagre, which places the boxes of the graph, is within. Its data is JSON in an element that
browsers do not run; the script puts every text into the page as text. All texts of the model are made visible first.
"""

import json
from collections.abc import Iterator, Mapping
from math import isfinite
from numbers import Real
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from onnxjson.checking.cost import Cost
from onnxjson.codecs.node_blocks import runs
from onnxjson.model.constants import find_constant, is_constant
from onnxjson.model.display import counted, visible
from onnxjson.model.document import Attribute, Node, SparseTensor, Tensor
from onnxjson.model.elements import element_count
from onnxjson.model.errors import DecodeError, OnnxJsonError
from onnxjson.model.index import Index, Scope
from onnxjson.model.operators import operator_name
from onnxjson.model.tensor_statistics import statistics
from onnxjson.model.tensors import raw_bytes
from onnxjson.model.types import shown_type
from onnxjson.outline.lines import Line, Outline
from onnxjson.patterns.selector_terms import attribute_text
from onnxjson.rendering.cost_text import total_rows
from onnxjson.rendering.diff_html import html_page, page_code, page_text

STYLE: Final = "\n" + Path(__file__).with_name("model_page.css").read_text(encoding="utf-8")
SCRIPT: Final = "\n" + "".join(
    [Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("dagre.min.js", "model_page.js")]
)

_LONGEST: Final = 200
_MOST_ENDS: Final = 100  # inputs and outputs that the head of the page lists
_STATISTICS: Final = 1 << 24  # elements of all constants whose statistics are computed

Overlays = Mapping[str, Mapping[str, float | str]]  # numbers or words about nodes: title -> address -> what is shown


def model_html(
    name: str, index: Index, cost: Cost | None, overlays: Overlays, outline: Outline | None = None
) -> Iterator[str]:
    """Yield the page in pieces: inputs and outputs, then the lines of the outline, or all nodes without one."""
    data = json.dumps(_Page(index, cost, overlays, outline).data(), ensure_ascii=True, separators=(",", ":"))
    data = data.replace("<", "\\u003c")  # so that no text of the model ends the element
    lines = "" if outline is None else "\n".join([page_text(text, None) for text in outline.texts()])
    content = (
        f"<div id=app><noscript><pre>{lines}</pre><p>The nodes and the graph need scripts.</p></noscript></div>\n"
        f'<script type="application/json" id=data>{data}</script>\n'
    )
    start = f"<h1>{page_text(name)}</h1>\n"
    return html_page(name, (start, *_interface(index), content), "onnxjson show", STYLE, SCRIPT)


def _interface(index: Index) -> Iterator[str]:
    for title, names in zip(("inputs", "outputs"), _ends(index), strict=True):
        assert index.main is not None
        types = [_type(index, index.main, name) for name in names[:_MOST_ENDS]]
        texts = [f"{name}: {kind}" if kind else name for name, kind in zip(names, types, strict=False)]
        more = f" and {len(names) - _MOST_ENDS:,} more" if len(names) > _MOST_ENDS else ""
        yield f"<p><b>{title}</b> {' '.join([page_code(text) for text in texts])}{more}</p>\n"


def _ends(index: Index) -> tuple[list[str], list[str]]:
    """Return the names of the inputs without a value, and of the outputs, of the main graph."""
    main = index.main
    if main is None:
        return [], []
    outputs = [each if isinstance(each, str) else each.name or "" for each in main.graph.output]
    return [name for name in main.inputs if name not in main.initializers], outputs


class _Page:
    def __init__(self, index: Index, cost: Cost | None, overlays: Overlays, outline: Outline | None) -> None:
        self._index = index
        self._lines = () if outline is None else outline.lines
        self._cost = [] if cost is None else [f"{name} {value}" for name, value in total_rows(cost)]
        self._macs = ""
        self._overlays: dict[str, Mapping[str, float | str]] = {}
        if cost is not None:
            macs = {each.address: each.macs for each in cost.nodes if isinstance(each.macs, int) and each.macs}
            sizes = ", ".join([f"{visible(name, 40)}={size}" for name, size in cost.dims.items()])
            self._macs = f"MACs, {sizes}" if sizes else "MACs"
            self._overlays[self._macs] = macs
        self._given = list(overlays)
        self._overlays |= overlays
        self._texts: dict[str, int] = {}
        self._values: dict[tuple[Scope | None, str], int] = {}
        self._rows: list[list[int]] = []  # the name and the type of each value
        self._left = _STATISTICS

    def data(self) -> dict[str, Any]:
        """Return what the script shows; most texts are numbers into ``texts``, values numbers into ``values``."""
        graphs: list[Any] = []
        nodes: list[Any] = []
        numbers: dict[str, int] = {}
        for scope in self._index.scopes:
            graphs.append([self._text(scope.address), len(nodes)])
            for position, node in enumerate(scope.graph.node):
                numbers[f"{scope.address}/node/{position}"] = len(nodes)
                nodes.append(self._node(scope, node))
        shown = {
            title: {numbers[address]: value for address, value in found.items() if address in numbers}
            for title, found in self._overlays.items()
        }
        lines = [self._line(line, numbers) for line in self._lines]
        main = self._index.main
        inputs, outputs = [[self._value(main, name) for name in names] for names in _ends(self._index) if main]
        opsets = ", ".join([f"{each.domain or 'ai.onnx'} {each.version}" for each in self._index.model.opset_import])
        return {
            "about": visible(f"{counted(len(nodes), 'node')}; {opsets}", _LONGEST), "texts": list(self._texts),
            "lines": lines, "graphs": graphs, "nodes": nodes, "values": self._rows,
            "inputs": inputs, "outputs": outputs, "cost": self._cost,
            "macs": self._macs if shown.get(self._macs) else "",
            "overlays": {title: found for title, found in shown.items() if found},
            "overlay": next((title for title in self._given if shown[title]), ""),
        }  # fmt: skip

    def _line(self, line: Line, numbers: Mapping[str, int]) -> list[Any]:
        """A line, its nodes (of a repeat, those of each round), the lines inside it, whether it is a repeat."""
        rounds = [[*runs([numbers[ref.address] for ref in nodes])] for nodes in line.rounds or (line.nodes,)]
        text = self._texts.setdefault(visible(line.text, None), len(self._texts))
        inner = [self._line(inside, numbers) for inside in line.lines]
        return [text, rounds if line.rounds else rounds[0], inner, int(bool(line.rounds))]

    def _node(self, scope: Scope, node: Node) -> list[Any]:
        attributes = [[self._text(each.name or ""), self._text(_attribute(each))] for each in node.attribute]
        inputs = [self._value(scope, each) if each else -1 for each in node.input]
        outputs = [self._value(scope, each) if each else -1 for each in node.output]
        name = node.name or next(filter(None, node.output), "")
        return [*map(self._text, (operator_name(node.domain, node.op_type), name)), inputs, outputs, attributes]

    def _value(self, scope: Scope, name: str) -> int:
        key = Index.defining_scope(scope, name), name
        row = self._values.get(key)
        if row is None:
            row = self._values[key] = len(self._rows)
            self._rows.append([self._text(name), self._text(self._about(scope, name))])
        return row

    def _about(self, scope: Scope, name: str) -> str:
        constant = find_constant(scope, name)
        if constant is None:
            kind = _type(self._index, scope, name)
            return f"constant {kind}".rstrip() if is_constant(scope, name) else kind
        tensor = constant.value
        if not isinstance(tensor, Tensor):
            return "constant, sparse" if isinstance(tensor, SparseTensor) else "constant"
        text = f"constant {tensor.dtype}[{','.join(map(str, tensor.dims))}]"
        count = element_count(tensor.dims)
        stored = raw_bytes(tensor) if count <= self._left else None
        if stored is None:
            return text
        self._left -= count
        try:
            stats = statistics(replace(tensor, raw_data=stored[0]), bins=0)
        except (OnnxJsonError, ValueError, TypeError):
            return text
        figures: list[tuple[str, object]] = [("min", stats.minimum), ("mean", stats.mean), ("max", stats.maximum)]
        shown = [f"{name} {value:.4g}" for name, value in figures if isinstance(value, Real)]
        return f"{text} {', '.join(shown)}"

    def _text(self, text: str) -> int:
        return self._texts.setdefault(visible(text, _LONGEST), len(self._texts))


def _attribute(attribute: Attribute) -> str:
    text = attribute_text(attribute)
    return text if text is not None else "a tensor" if attribute.t is not None else "a graph or other value"


def overlays_of(path: Path, index: Index, model: str) -> Overlays:
    """Return what a report in JSON states about nodes.

    Times and execution providers are from ``run``, errors from ``verify --locate``, differences from ``diff``. `model`
    is the name of the file of the model.

    Raises:
        DecodeError: the file is no such report.
    """
    overlays: dict[str, dict[str, float | str]] = {}
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        if report["format"] == "onnxjson-verification/1":
            side = "target" if Path(str(report["target"])).name == model else "base"
            located = (report.get("location") or {}).get("places", ())  # none where outputs are equal
            places = [(address, each) for each in located for address in each[side]]
            overlays["largest error"] = {
                address: _number(each["max_abs"]) or _words(each["problem"] or "differs") for address, each in places
            }
        elif report["format"] == "onnxjson-diff/1":
            side = "target" if report["summary"]["target_nodes"] == len(index.node_refs) else "base"
            members = [(each["kind"], member[side]) for each in report["events"] for member in each["members"]]
            overlays["difference"] = {address: _words(kind) for kind, addresses in members for address in addresses}
        else:
            placed = (report.get("placement") or {}).get("nodes", ())
            overlays["provider"] = {at: _words(each["provider"]) for each in placed for at in each["origins"]}
            times = [(each["name"], each["seconds"] * 1e3) for each in report["profile"]]
            known = {name: refs[0].address for name, _ in times if (refs := index.nodes_with("name", name))}
            overlays["time in ms"] = {known.get(name, ""): _number(value) for name, value in times}
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        commands = "`run`, `verify --locate` or `diff` with --json"
        raise DecodeError(f"{visible(str(path), None)}: not a report of {commands}: {error}") from error
    return overlays


def _number(value: float | None) -> float | str:
    """Return a number for the page; "" for none, and words for one that JSON does not have."""
    return "" if value is None else value if isfinite(value) else str(value)


def _words(text: object) -> str:
    return visible(str(text), _LONGEST)


def _type(index: Index, scope: Scope, name: str) -> str:
    stated = index.type_of(scope, name)
    return "" if stated is None else shown_type(stated)
