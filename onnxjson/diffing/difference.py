"""What changed between two models: `diff` gives a `Diff`, which has the events, the pairs and the patch."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from onnxjson.diffing.events import Kind, Verdict
from onnxjson.diffing.grouping import Grouped, group
from onnxjson.diffing.options import IGNORABLE, WEIGHTS_COMPARISONS, Ignored, WeightsComparison
from onnxjson.diffing.regions import Region
from onnxjson.diffing.tensor_sources import TensorSource
from onnxjson.diffing.weight_changes import Weights
from onnxjson.display import counted
from onnxjson.document import Model, Tensor
from onnxjson.matching.alignment import Alignment
from onnxjson.tensors import is_external
from onnxjson.walking import walk

if TYPE_CHECKING:
    from onnxjson.diffing.comparing import Context
    from onnxjson.patching import Patch, Unit
    from onnxjson.payloads import Data


class Summary(msgspec.Struct, frozen=True):
    """A diff in numbers. Nodes of subgraphs and functions count."""

    base_nodes: int
    target_nodes: int
    matched_nodes: int
    events: dict[Kind, int]
    """Places by kind of event."""
    operators: dict[str, tuple[int, int]]
    """Nodes before and after by operator, with its domain where that is not ONNX's; alphabetical."""


class Diff:
    """What changed between two models.

    Attributes:
        base: the model before.
        target: the model after.
        events: what happened, every difference in exactly one of them.
        incomplete: what could not be compared, for a person.
        regions: for members of events that rewrite nodes: (number of the event, number of the member) -> the nodes on
            both sides and the values around them.

    A change at very many places, such as the names of all nodes of a graph, is one member for each graph: its details
    tell the first hundred places, its ``count`` how many there are.
    """

    def __init__(
        self,
        base: Model,
        target: Model,
        grouped: Grouped,
        context: "Context | None",
        incomplete: Sequence[str] = (),
    ) -> None:
        self.base = base
        self.target = target
        self.events = grouped.events
        self.regions: Mapping[tuple[int, int], Region] = grouped.regions
        self.incomplete = tuple(incomplete)
        self._grouped = grouped
        self._context = context

    def __repr__(self) -> str:
        return f"<Diff: {counted(len(self.events), 'event')}>" if self.events else "<Diff: nothing differs>"

    @property
    def equal(self) -> bool:
        """Whether nothing differs, and everything was compared."""
        return not self.events and not self.incomplete

    @cached_property
    def alignment(self) -> Alignment:
        """Which graph, node and value is which."""
        if self._context is not None:
            return self._context.alignment
        from onnxjson.diffing.same_models import same_alignment

        return same_alignment(self.base, self.target)

    @cached_property
    def matches(self) -> list[tuple[str, str]]:
        """The addresses, in base and target, of all nodes that are counterparts."""
        return list(self.alignment.node_pairs())

    @cached_property
    def patch(self) -> "Patch":
        """The exact change: ``patch.apply(base) == target``. What is ignored is in it, too."""
        from onnxjson.patching import Patch

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
        """Which event explains each unit of the patch, by its number; None for what was ignored."""
        if self._context is None:
            return {}
        explains, numbers = self._context.ledger.explains, self._grouped.numbers
        found: dict[Unit, int | None] = {}
        for unit in self.patch.units():
            change = explains(unit)
            found[unit] = None if change is None else numbers.get(id(change))
        return found

    @cached_property
    def summary(self) -> Summary:
        """The diff in numbers."""
        places: Counter[Kind] = Counter()
        for event in self.events:
            places[event.kind] += event.count
        before, after = self.alignment.base.operator_counts(), self.alignment.target.operator_counts()
        return Summary(
            base_nodes=before.total(),
            target_nodes=after.total(),
            matched_nodes=self.alignment.matched,
            events=dict(places),
            operators={name: (before[name], after[name]) for name in sorted({*before, *after})},
        )

    def elements(self, side: int, tensor: Tensor) -> "Data | None":
        """The elements of a constant of the base (0) or the target (1) as ``raw_data`` would hold them.

        None where they cannot be had: they are in another file, and that is not known, not there, or not to be trusted.
        """
        return None if self._context is None else self._context.weights.data(side, tensor)

    def with_verdicts(self, verdicts: Mapping[int, tuple[Verdict, str]]) -> "Diff":
        """The same diff with verdicts of its events, by their numbers: the verdict, and what it was found by."""
        events = tuple(
            [
                msgspec.structs.replace(event, verdict=verdicts[number][0], evidence=verdicts[number][1])
                if number in verdicts
                else event
                for number, event in enumerate(self.events)
            ]
        )
        made = Diff(self.base, self.target, self._grouped._replace(events=events), self._context, self.incomplete)
        for name in ("alignment", "matches", "patch", "shares"):
            if name in self.__dict__:
                made.__dict__[name] = self.__dict__[name]
        return made


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
    """What changed from one model to another: which node is which by structure, and what happened to the rest.

    Args:
        base: the model before, or its file. Weights in other files are compared where both are files.
        target: the model after, or its file.
        ignore: what is no difference: "metadata", "docs", "names", "order", "weights".
        weights: how elements of constants are compared: "exact" by bits, "tolerance" as
            ``|base - target| <= atol + rtol * |base|``, "skip" not at all.
        rtol: for "tolerance".
        atol: for "tolerance".
        trust_links: see `onnxjson.external.Resolver`.

    Raises:
        MissingInputError, AccessDeniedError, FileError, DecodeError, LimitError: a file cannot be read as a model.
        ChangedUnderneathError: a file was changed while it was read.
        ValueError: a word of `ignore` or `weights` is another one.
    """
    _require(ignore, IGNORABLE, "ignore")
    _require((weights,), WEIGHTS_COMPARISONS, "weights")
    models, paths = [], []
    for each in (base, target):
        model, path = _loaded(each)
        models.append(model)
        paths.append(path)
    return diff_models(
        models[0],
        models[1],
        paths=(paths[0], paths[1]),
        ignore=ignore,
        weights=weights,
        rtol=rtol,
        atol=atol,
        trust_links=trust_links,
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
) -> Diff:
    """The same for models that are read already.

    Args:
        base: the model before.
        target: the model after.
        paths: their files, for weights beside them.
        names: what a person calls them; their paths, if it is None.
        ignore: see `diff`, as for all that follows.
        weights: how elements of constants are compared.
        rtol: for "tolerance".
        atol: for "tolerance".
        trust_links: see `onnxjson.external.Resolver`.
    """
    if "weights" in ignore:
        weights = "skip"
    if base is target or (weights != "skip" and base == target and not _has_external(base)):
        return Diff(base, target, group((), ()), None)
    from onnxjson.diffing.describing import describe
    from onnxjson.matching.aligning import align
    from onnxjson.matching.contents import layout

    names = names or (str(paths[0] or "the base"), str(paths[1] or "the target"))
    sources = [TensorSource(path, name, trust_links=trust_links) for path, name in zip(paths, names, strict=True)]
    contents = (layout, layout) if weights == "skip" else (sources[0].content, sources[1].content)
    alignment = align(base, target, base_content=contents[0], target_content=contents[1])
    context = describe(alignment, Weights(sources[0], sources[1], weights, rtol, atol))
    problems = () if weights == "skip" else context.weights.problems()
    return Diff(base, target, group(context.ledger.changes, ignore), context, problems)


def _has_external(model: Model) -> bool:
    return any(is_external(tensor) for tensor in walk(model, Tensor))


def _loaded(model: Model | str | Path) -> tuple[Model, Path | None]:
    if isinstance(model, Model):
        return model, None
    from onnxjson import files

    path = Path(model)
    # Blobs need not be there: their names are the sha256 that is compared.
    return files.load(path, bind=False).model, path


def _require(words: Collection[str], known: Sequence[str], what: str) -> None:
    if isinstance(words, str):
        raise TypeError(f"{what} is the text {words!r}; give a list of words, such as [{known[0]!r}]")
    for word in words:
        if word not in known:
            raise ValueError(f"{what} has {word!r}; what fits: {', '.join(map(repr, known))}")
