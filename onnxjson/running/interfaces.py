"""Paired inputs and outputs of two models: by name, else by structure, else by type."""

from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from onnxjson.diffing.difference import Diff, diff_models
from onnxjson.diffing.matching.alignment import GraphPair, counterparts
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
        scopes = self.indices[0].scopes[0], self.indices[1].scopes[0]
        given = free_inputs(self.base), free_inputs(self.target)
        results = outputs_of(self.base), outputs_of(self.target)
        inputs = counterparts("input", scopes, given, lambda: self.main)
        outputs = counterparts("output", scopes, results, lambda: self.main)
        added = [(None, name) for name in given[1] if name not in {*inputs.values()}]
        return Interface(
            (*[(name, inputs.get(name)) for name in given[0]], *added),
            tuple(outputs.items()),
            tuple([name for name in results[0] if name not in outputs]),
            tuple([name for name in results[1] if name not in {*outputs.values()}]),
        )
