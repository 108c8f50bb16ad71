"""Compare two models: `diff` returns a `Diff` with the events, the pairs of nodes and the patch."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from onnxjson.codecs.wire_reading import sharing_graphs
from onnxjson.diffing.changes import Change, Grouped, Place, Region, group
from onnxjson.diffing.classifying import Classification, find_layout_transposes
from onnxjson.diffing.comparing import DiffContext, GraphComparison
from onnxjson.diffing.constant_changes import compare_constants, compare_unpaired_constants, name_changed_constants
from onnxjson.diffing.constant_elements import TensorSource
from onnxjson.diffing.events import IGNORABLE, WEIGHTS_COMPARISONS, Event, Ignored, Kind, Verdict, WeightsComparison
from onnxjson.diffing.list_changes import Bulk, add_reordering, compare_names, count_order_breaks
from onnxjson.diffing.matching.alignment import Alignment, align_by_names, same_alignment
from onnxjson.diffing.model_changes import INFO, compare_annotations, compare_models, graph_fields
from onnxjson.diffing.node_changes import NodeComparison, compare_metadata, join_attributes
from onnxjson.diffing.region_changes import RegionDraft, RegionFinder, claim_region, report_rewiring
from onnxjson.diffing.region_constants import Absorption, claim_constants
from onnxjson.diffing.value_changes import compare_interface, compare_outputs, compare_value_infos
from onnxjson.diffing.weight_changes import ConstantComparer
from onnxjson.model.display import counted
from onnxjson.model.document import Model, Tensor
from onnxjson.model.methods import ReportedPage
from onnxjson.model.tensors import is_external
from onnxjson.model.walking import tensors_of

if TYPE_CHECKING:
    from onnxjson.diffing.matching.columns import Integers
    from onnxjson.model.payloads import Data
    from onnxjson.patching.changes import Unit
    from onnxjson.patching.patch import Patch


class DiffSummary(msgspec.Struct, frozen=True):
    """A diff in numbers, including the nodes of subgraphs and functions."""

    base_nodes: int
    target_nodes: int
    matched_nodes: int
    events: dict[Kind, int]
    """Number of places by kind of event."""
    operators: dict[str, tuple[int, int]]
    """Number of nodes before and after by operator, with the domain if it is not ONNX's; alphabetical."""


class Diff(ReportedPage):
    """The difference of two models.

    Attributes:
        base: the model before.
        target: the model after.
        events: the changes; every difference is in exactly one event.
        incomplete: readable reasons why something could not be compared.
        regions: for members of events that rewrite nodes: (number of the event, number of the member) -> the nodes of
            both models and the values around them.
        names: names of both models in reports.

    A change at very many places, such as the names of all nodes of a graph, is one member for each graph: ``details``
    has the first hundred places, ``count`` the number of all places.
    """

    verdict_name = ".equal, or len() for the number of changes"

    def __init__(
        self,
        base: Model,
        target: Model,
        grouped: Grouped,
        context: DiffContext | None,
        incomplete: Sequence[str] = (),
        names: tuple[str, str] = ("base", "target"),
    ) -> None:
        self.names = names
        self.base = base
        self.target = target
        self.events = grouped.events
        self.regions: Mapping[Place, Region] = grouped.regions
        self.incomplete = tuple(incomplete)
        self._grouped = grouped
        self._context = context

    def __repr__(self) -> str:
        return f"<Diff: {counted(len(self.events), 'event')}>" if self.events else "<Diff: nothing differs>"

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def __len__(self) -> int:
        return len(self.events)

    @property
    def changes(self) -> tuple[Event, ...]:
        """`events`."""
        return self.events

    @property
    def equal(self) -> bool:
        """Whether nothing differs and everything was compared."""
        return not self.events and not self.incomplete

    @cached_property
    def alignment(self) -> Alignment:
        """Counterparts of graphs, nodes and values."""
        if self._context is not None and self._context.alignment.base.model is self.base:
            return self._context.alignment
        return same_alignment(self.base, self.target)

    @cached_property
    def matches(self) -> list[tuple[str, str]]:
        """The addresses in base and target of all nodes with a counterpart."""
        return list(self.alignment.node_pairs())

    @cached_property
    def patch(self) -> "Patch":
        """The exact change: ``patch.apply(base) == target``. It includes ignored differences."""
        from onnxjson.patching.patch import Patch

        pairs: dict[str, Sequence[tuple[int, int]]] = {}
        if self._context is not None:
            pairs.update(self._context.pairs)
            for pair in self.alignment.graphs:
                pairs[f"{pair.base.address}/node"] = [
                    (position, place) for position, place in enumerate(pair.target_of) if place >= 0
                ]
        return Patch.between(self.base, self.target, pairs)

    @cached_property
    def shares(self) -> dict["Unit", int | None]:
        """Number of the event that explains each unit of the patch; None for an ignored unit."""
        places = {unit: self.place_of(unit) for unit in self.patch.units()} if self._context is not None else {}
        return {unit: None if place is None else place[0] for unit, place in places.items()}

    def place_of(self, unit: "Unit") -> Place | None:
        """Return the numbers of the event and of the member that explain a difference; None for an ignored one."""
        change = None if self._context is None else self._context.ledger.explains(unit)
        return None if change is None else self._grouped.places.get(id(change))

    @cached_property
    def summary(self) -> DiffSummary:
        """The diff in numbers."""
        places: Counter[Kind] = Counter()
        for event in self.events:
            places[event.kind] += event.count
        before, after = self.alignment.base.operator_counts(), self.alignment.target.operator_counts()
        return DiffSummary(
            base_nodes=before.total(),
            target_nodes=after.total(),
            matched_nodes=self.alignment.matched,
            events=dict(places),
            operators={name: (before[name], after[name]) for name in sorted({*before, *after})},
        )

    def elements(self, side: int, tensor: Tensor) -> "Data | None":
        """Return the elements of a constant of the base (0) or the target (1) as the bytes of ``raw_data``.

        None if they are not available: they are in an external file that is unknown, missing or not trusted.
        """
        return None if self._context is None else self._context.weights.data(side, tensor)

    def with_verdicts(self, verdicts: Mapping[int, tuple[Verdict, str]]) -> "Diff":
        """Return the same diff with verdicts: number of an event -> verdict and evidence."""
        events = list(self.events)
        for number, (verdict, evidence) in verdicts.items():
            events[number] = msgspec.structs.replace(events[number], verdict=verdict, evidence=evidence)
        judged = copy(self)  # with the properties that are known already
        judged.events = tuple(events)
        judged._grouped = self._grouped._replace(events=judged.events)
        return judged


def diff(
    base: Model | str | Path,
    target: Model | str | Path,
    *,
    ignore: Collection[Ignored] = (),
    weights: WeightsComparison = "exact",
    rtol: float = 1e-5,
    atol: float = 1e-8,
    trust_links: bool = False,
) -> Diff:
    """Compare two models: match their nodes by structure, and classify all other differences.

    Args:
        base: the model before, or its file. External weights are compared if both are files, or were loaded from files.
        target: the model after, or its file.
        ignore: differences to ignore: "metadata", "docs", "names", "order", "weights".
        weights: how elements of constants are compared: "exact" bit by bit, "tolerance" as
            ``|base - target| <= atol + rtol * |base|``, "skip" not at all.
        rtol: for "tolerance".
        atol: for "tolerance".
        trust_links: see `onnxjson.storage.external.Resolver`.

    Raises:
        MissingInputError, AccessDeniedError, FileError, DecodeError, LimitError: a file cannot be read as a model.
        ChangedUnderneathError: a file was changed while it was read.
        ValueError: a word in `ignore` or `weights` is unknown.
    """
    _require(ignore, IGNORABLE, "ignore")
    _require((weights,), WEIGHTS_COMPARISONS, "weights")
    with sharing_graphs():
        (base, path), (target, target_path) = _load(base), _load(target)
    paths = path, target_path
    return diff_models(
        base, target, paths=paths, ignore=ignore, weights=weights, rtol=rtol, atol=atol, trust_links=trust_links
    )


def diff_models(
    base: Model,
    target: Model,
    *,
    paths: tuple[Path | None, Path | None] = (None, None),
    names: tuple[str, str] | None = None,
    ignore: Collection[str] = (),
    weights: WeightsComparison = "exact",
    rtol: float = 1e-5,
    atol: float = 1e-8,
    trust_links: bool = False,
    is_edited: bool = False,
    progress: "list[Integers] | None" = None,
) -> Diff:
    """Compare two models that are already loaded.

    Args:
        base: the model before.
        target: the model after.
        paths: their files, to find external weights.
        names: names of the models in messages; None for their paths.
        ignore, weights, rtol, atol, trust_links: see `diff`.
        is_edited: whether `target` is an edited `base`; then unambiguous names are sufficient, which is faster.
        progress: see `onnxjson.diffing.matching.models.align`.
    """
    if "weights" in ignore:
        weights = "skip"
    is_equal = base is target or (weights != "skip" and base == target)
    is_alike = (is_equal or _have_same_graphs(base, target)) and not any(map(is_external, tensors_of(base)))
    if base is target or (is_equal and is_alike):
        return Diff(base, target, group((), ()), None)
    names = names or (str(paths[0] or "base"), str(paths[1] or "target"))
    sources = [TensorSource(path, name, trust_links=trust_links) for path, name in zip(paths, names, strict=True)]
    comparer = ConstantComparer(sources[0], sources[1], weights, rtol, atol)
    if is_alike:
        bare = [msgspec.structs.replace(model, graph=None, functions=(), training_info=()) for model in (base, target)]
        alignment: Alignment | None = same_alignment(bare[0], bare[1])
    else:
        alignment = align_by_names(base, target, is_edited=True) if is_edited else None
    if alignment is None:
        from onnxjson.diffing.matching.contents import layout
        from onnxjson.diffing.matching.models import align

        sources[0].share(base, sources[1], target)
        contents = (layout, layout) if weights == "skip" else (sources[0].content, sources[1].content)
        keep = "names" not in ignore
        alignment = align(base, target, *contents, names=keep, progress=progress)
    context = _describe(alignment, comparer)
    problems = () if weights == "skip" else context.weights.problems()
    return Diff(base, target, group(context.ledger.changes, ignore), context, problems, names)


def _have_same_graphs(base: Model, target: Model) -> bool:
    """Whether two models share their graph, and differ at most in the description of the model."""
    descriptions = {name: getattr(target, name) for name in (*INFO, "doc_string", "metadata_props")}
    return base.graph is target.graph and msgspec.structs.replace(base, **descriptions) == target


def _load(model: Model | str | Path) -> tuple[Model, Path | None]:
    from onnxjson.storage import files
    from onnxjson.storage.external import file_of

    if isinstance(model, Model):
        return model, file_of(model)

    path = Path(model)
    # Blobs may be missing: their names are the sha256 that is compared.
    return files.load(path, bind=False).model, path


def _require(words: Collection[str], known: Sequence[str], what: str) -> None:
    if isinstance(words, str):
        raise TypeError(f"{what} is the string {words!r}; pass a list of words, such as [{known[0]!r}]")
    for word in words:
        if word not in known:
            raise ValueError(f"{what} has the unknown word {word!r}; known: {', '.join(map(repr, known))}")


def _describe(alignment: Alignment, weights: ConstantComparer) -> DiffContext:
    """Find all changes, in this order; they are in the ledger of the returned comparison."""
    context = DiffContext(alignment, weights)
    bulk = Bulk(context)
    outputs = {}
    for graph in context.graphs:
        graph.scan()
        compare_constants(graph, bulk)
    for graph in context.graphs:
        compare_metadata(graph, bulk)
        for position in graph.suspects:
            NodeComparison(graph, position).run()
        outputs[graph] = compare_outputs(graph)
    finder = RegionFinder(context)
    regions = finder.find()
    drafts, plain = Absorption(context, finder.plain).run(regions)
    claim_constants(context, drafts)
    plain = join_attributes(context, plain)
    for draft in drafts:
        for slot in draft.slots:
            if slot.base is not None:
                context.slot_changes.setdefault((slot.graph, slot.base), draft.change)
        Classification(draft).run()
        claim_region(draft)
    find_layout_transposes(drafts)
    report_rewiring(plain)
    counterparts = _counterparts(drafts)
    for graph in context.graphs:
        name_changed_constants(context, graph)
        compare_unpaired_constants(graph)
        compare_interface(graph, bulk, outputs[graph])
        compare_annotations(graph, counterparts)
        graph_fields(graph)
    for graph in context.graphs:
        compare_value_infos(graph, bulk, counterparts.get(graph, {}))
        compare_names(graph, bulk, outputs[graph])
        _node_order(context, graph)
    compare_models(context, alignment.base.model, alignment.target.model)
    bulk.finish()
    return context


def _node_order(context: DiffContext, graph: GraphComparison) -> None:
    places = [place for place in graph.pair.target_of if place >= 0]
    if count := count_order_breaks(places):
        add_reordering(context, f"{graph.address}/node", f"{graph.target_address}/node", "nodes", count, graph.number)


def _counterparts(drafts: list[RegionDraft]) -> dict[GraphComparison, dict[str, tuple[str, Change]]]:
    counterparts: dict[GraphComparison, dict[str, tuple[str, Change]]] = {}
    for draft in drafts:
        for old, new in draft.region.outputs:
            counterparts.setdefault(draft.graph, {}).setdefault(old, (new, draft.change))
    return counterparts
