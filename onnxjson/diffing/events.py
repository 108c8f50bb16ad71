"""What happened between two models, as data: events, their members on both sides, and the evidence."""

from typing import Final, Literal, get_args

import msgspec

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
"""The kinds of events; design and meaning of each in docs/diff.md."""

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

Verdict = Literal["equal", "within-tolerance", "different", "not-run"]
"""What evaluating both sides of a rewrite on the same inputs said."""


class Detail(msgspec.Struct, frozen=True):
    """One thing that changed: what, from, to. Texts of models, not yet made visible."""

    what: str
    """For a person: ``attribute pads``, ``input 1 (W)``, ``max absolute difference``."""
    base: str | None = None
    """None where there was nothing."""
    target: str | None = None
    """None where there is nothing any more."""


class Member(msgspec.Struct, frozen=True):
    """One place where an event happened."""

    base: tuple[str, ...]
    """Addresses in the base: of nodes where the event is about nodes, else of what changed."""
    target: tuple[str, ...]
    """Addresses in the target."""
    place: str = ""
    """Where that is, for a person: a name scope, a node's or tensor's name."""
    details: tuple[Detail, ...] = ()
    count: int = 1
    """How many places it stands for. Where very many are alike, such as the names of all nodes of a graph, the graph is
    one member, and its details tell the first of them."""


class Event(msgspec.Struct, frozen=True):
    """One kind of change by one pattern, at one or many places."""

    kind: Kind
    pattern: str
    """What happened, as a short text that groups members: ``MatMul+Add -> Gemm``, ``Conv.pads``."""
    members: tuple[Member, ...]
    verdict: Verdict | None = None
    """None for what is no rewrite of nodes; "not-run" until somebody runs it (`onnxjson.running.proof`)."""
    evidence: str = ""
    """For a person: what the verdict was found by (greatest difference, inputs tried)."""

    @property
    def count(self) -> int:
        """How many places."""
        return sum([member.count for member in self.members])
