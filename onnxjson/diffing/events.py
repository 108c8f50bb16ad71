"""The vocabulary of a diff: kinds of events with their properties, events and their members, options."""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, get_args

import msgspec

from onnxjson.model.display import counted, visible

Kind = Literal[
    "renamed",
    "reordered",
    "attribute-changed",
    "retyped",
    "reshaped",
    "rewired",
    "inserted",
    "eliminated",
    "folded",
    "fused",
    "decomposed",
    "replaced",
    "merged",
    "dead-code-removed",
    "quantized",
    "cast-inserted",
    "layout-changed",
    "weights-changed",
    "weights-re-laid",
    "io-changed",
    "opset-changed",
    "function-inlined",
    "function-outlined",
    "metadata-changed",
    "value-info-changed",
    "storage-changed",
    "info-changed",
    "field-changed",
]
"""The kinds of events; docs/diff.md has the meaning of each."""

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

Ignored = Literal["metadata", "docs", "names", "order", "weights"]
"""Differences that a comparison can leave out."""

IGNORABLE: Final[tuple[Ignored, ...]] = get_args(Ignored)

WeightsComparison = Literal["exact", "tolerance", "rank", "skip"]
"""Comparison of elements of constants: by bits, within a tolerance, by bits with ranks of changes, or not at all."""

WEIGHTS_COMPARISONS: Final[tuple[WeightsComparison, ...]] = get_args(WeightsComparison)

Effect = Literal["added", "removed", "rewritten", "changed", "quiet"]
"""Effect of an event on a model, for readers; reports give each one a colour. "quiet" leaves all results unchanged."""

Verdict = Literal["equal", "within-tolerance", "different", "not-run"]
"""Result of running both sides of a rewrite on the same inputs."""

THROUGH_SCALES: Final = "through the scales"

CHANGED: Final = "elements changed"

SPARSITY: Final = "sparsity"
"""Details about weights: how many elements changed, and the share of those that are 0."""

RELATIVE: Final = "max relative difference"

NOT_FINITE: Final = "elements that became or were NaN or infinite"

RANK: Final = "rank of the change"
"""Details specific to weights; they come first, and reports omit them last."""


class KindProperties(NamedTuple):
    """Properties of all events of one kind: everything that reports need to know about a kind."""

    effect: Effect
    order: int = 2
    """Position of the kind in a report; events with order 2 are listed in the order of the graph."""
    about_nodes: bool = False
    """Whether it changes nodes or what they compute; names and order are not included."""
    is_drawn: bool = False
    """Whether a report with pictures draws the nodes before and after."""
    touches_nodes: bool = True
    """Whether it changes a node that stays, in the history of that node."""
    lists_parts: bool = False
    """Whether its details are parts that are added and removed; other details are results of the comparison."""
    ignored_with: Ignored | None = None
    """The word of `ignore` that leaves it out."""


def _rewrite(effect: Effect) -> KindProperties:
    return KindProperties(effect, about_nodes=True, is_drawn=True)


def _weights(ignored_with: Ignored | None = None, *, about_nodes: bool = False) -> KindProperties:
    return KindProperties("changed", order=3, about_nodes=about_nodes, ignored_with=ignored_with)


KIND_PROPERTIES: Final[Mapping[Kind, KindProperties]] = {
    "renamed": KindProperties("quiet", order=6, ignored_with="names"),
    "reordered": KindProperties("quiet", order=7, touches_nodes=False, ignored_with="order"),
    "attribute-changed": KindProperties("changed", about_nodes=True, lists_parts=True),
    "retyped": _weights(about_nodes=True),
    "reshaped": _weights(about_nodes=True),
    "rewired": KindProperties("changed", about_nodes=True, is_drawn=True),
    "inserted": _rewrite("added"),
    "eliminated": _rewrite("removed"),
    "folded": _rewrite("rewritten"),
    "fused": _rewrite("rewritten"),
    "decomposed": _rewrite("rewritten"),
    "replaced": _rewrite("rewritten"),
    "merged": _rewrite("rewritten"),
    "dead-code-removed": _rewrite("removed"),
    "quantized": _rewrite("rewritten"),
    "cast-inserted": _rewrite("rewritten"),
    "layout-changed": _rewrite("rewritten"),
    "weights-changed": _weights("weights"),
    "weights-re-laid": _weights("weights"),
    "io-changed": KindProperties("changed", order=1, lists_parts=True),
    "opset-changed": KindProperties("changed", order=0, touches_nodes=False, lists_parts=True),
    "function-inlined": _rewrite("rewritten"),
    "function-outlined": _rewrite("rewritten"),
    "metadata-changed": KindProperties("quiet", order=8, lists_parts=True, ignored_with="metadata"),
    "value-info-changed": KindProperties("quiet", order=4, touches_nodes=False, lists_parts=True),
    "storage-changed": KindProperties("quiet", order=5, touches_nodes=False, lists_parts=True),
    "info-changed": KindProperties("quiet", order=8, lists_parts=True),
    "field-changed": KindProperties("changed", order=9, lists_parts=True),
}
"""The properties of each kind, in the order of `KINDS`: a new kind is added here and to `Kind`."""


class Detail(msgspec.Struct, frozen=True):
    """One thing that changed: what, old and new value. Texts of models, not yet escaped for display."""

    what: str
    """Readable name: ``attribute pads``, ``input 1 (W)``, ``max absolute difference``."""
    base: str | None = None
    """Old value, or None."""
    target: str | None = None
    """New value, or None."""


class Member(msgspec.Struct, frozen=True):
    """One place where an event happened."""

    base: tuple[str, ...]
    """Addresses in the base: of the nodes of an event about nodes, else of the changed elements."""
    target: tuple[str, ...]
    """Addresses in the target."""
    place: str = ""
    """Readable place: a name scope, or the name of a node or tensor."""
    details: tuple[Detail, ...] = ()
    count: int = 1
    """Number of places in this member. A change at very many places of a graph, such as the names of all its nodes, is
    one member with details of the first places."""


class Event(msgspec.Struct, frozen=True):
    """A change of one kind and pattern, at one or more places."""

    kind: Kind
    pattern: str
    """Short description that all members share: ``MatMul+Add -> Gemm``, ``Conv.pads``."""
    members: tuple[Member, ...]
    verdict: Verdict | None = None
    """None unless the event rewrites nodes; "not-run" until both sides have run (`onnxjson.running.proof`)."""
    evidence: str = ""
    """Readable basis of the verdict: largest difference, number of inputs."""
    where: str = ""
    """In reports: its places in the outline, such as ``in all 4 layers: Attention.scale 0.125 -> 0.25``, visible."""

    def __repr__(self) -> str:
        """Return one line: kind, pattern, the first detail, and the number of places."""
        details = [detail for member in self.members for detail in member.details]
        first = f": {details[0].what}: {details[0].base} -> {details[0].target}" if details else ""
        places = f" ({counted(self.count, 'place')})" if self.count > 1 else ""
        return f"<{visible(f'{self.kind} {self.pattern}{first}', 100)}{places}>"

    @property
    def count(self) -> int:
        """Number of places."""
        return sum([member.count for member in self.members])
