"""Paired inputs and outputs of two models: by name, else by structure, else by type."""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from onnxjson.diffing.difference import Diff, diff_models
from onnxjson.diffing.matching.alignment import GraphPair, pair_inputs, pair_outputs
from onnxjson.model.document import Model
from onnxjson.model.index import Index
from onnxjson.running.inputs import InputOptions, Inputs, free_inputs, outputs_of
from onnxjson.running.worker import Worker

Names = tuple[str | None, str | None]


class Interface(NamedTuple):
    """Paired inputs and outputs of two models."""

    inputs: tuple[Names, ...]
    """Names in both models; None if one of them does not have the input."""
    outputs: tuple[tuple[str, str], ...]
    missing: tuple[str, ...]
    added: tuple[str, ...]


class TwoModels:
    """Two models to compare, with their indices, their diff and their interface, each computed on first use."""

    def __init__(self, base: Model, target: Model, paths: tuple[Path | None, Path | None] = (None, None)) -> None:
        self.base = base
        self.target = target
        self.paths = paths

    @cached_property
    def indices(self) -> tuple[Index, Index]:
        """Indices of both models."""
        return Index(self.base), Index(self.target)

    @cached_property
    def diff(self) -> Diff:
        """Diff of the models."""
        return diff_models(self.base, self.target, paths=self.paths)

    def inputs(self, options: InputOptions, worker: Worker) -> Inputs:
        """Return the inputs of both models, which get the same values."""
        return Inputs(self.indices, self.interface.inputs, options, worker)

    @property
    def main(self) -> GraphPair | None:
        """Pair of their main graphs."""
        return next((pair for pair in self.diff.alignment.graphs if pair.base.kind == "main"), None)

    @cached_property
    def interface(self) -> Interface:
        """Their paired inputs and outputs."""
        base, target = self.indices[0].scopes[0], self.indices[1].scopes[0]
        names = list(free_inputs(self.base)), list(free_inputs(self.target))
        by_place = {base.graph.input[one].name: target.graph.input[other].name  # type: ignore[union-attr]
                    for one, other in pair_inputs(base, target).items()}  # fmt: skip
        inputs = self._paired(names[0], names[1], by_place)
        pairs: list[Names] = [(name, inputs.get(name)) for name in names[0]]
        taken = set(inputs.values())
        pairs += [(None, name) for name in names[1] if name not in taken]
        results = list(outputs_of(self.base)), list(outputs_of(self.target))
        places = pair_outputs(base, target)
        by_place = {str(base.output_names[one]): target.output_names[other] for one, other in places.items()}
        outputs = self._paired(results[0], results[1], by_place)
        taken = set(outputs.values())
        return Interface(
            tuple(pairs),
            tuple(outputs.items()),
            tuple([name for name in results[0] if name not in outputs]),
            tuple([name for name in results[1] if name not in taken]),
        )

    def _paired(
        self, base: Sequence[str], target: Sequence[str], by_place: Mapping[str | None, str | None]
    ) -> dict[str, str]:
        known = dict.fromkeys(target)
        target_of = {name: name for name in base if name in known}
        if len(target_of) < max(len(base), len(target)):
            self._pair_by_structure(target_of, base, known)
        taken = set(target_of.values())
        for name in base:
            counterpart = by_place.get(name)
            if name not in target_of and counterpart is not None and counterpart in known and counterpart not in taken:
                target_of[name] = counterpart
                taken.add(counterpart)
        return {name: target_of[name] for name in base if name in target_of}

    def _pair_by_structure(self, target_of: dict[str, str], base: Sequence[str], target: Collection[str]) -> None:
        main = self.main
        if main is None:
            return
        taken = set(target_of.values())
        sources = {main.target_aliases.get(name, name): name for name in reversed(list(target))}
        for name in base:
            if name in target_of:
                continue
            paired = main.values.get(name) or main.values.get(main.base_aliases.get(name, name), "")
            other = paired if paired in target else sources.get(main.target_aliases.get(paired, paired))
            if other is not None and other not in taken:
                target_of[name] = other
                taken.add(other)
