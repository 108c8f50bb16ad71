"""Pairs of models whose differences are known, for the figures of the structural diff."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import onnxjson
from onnxjson.model.document import Model
from tests.benchmarks.diff_environment import PACKAGES, Environment, MissingError
from tests.diffing.edits import EDITS, STRUCTURAL, random_edits
from tests.diffing.judging import Judge
from tests.diffing.mutations import Mutation, Planted, mutated
from tests.diffing.stacks import STYLES, WEIGHTS, stack, with_weights

SHARES: Final = (0.01, 0.05)
"""Edits by node."""

FEW: Final = 100
"""Nodes of a model from which it makes a case of edits; below, it has nothing that repeats."""


class Sides(NamedTuple):
    """Two models, and who knows which nodes are the same."""

    base: Model
    target: Model
    judge: Judge


class Case(NamedTuple):
    """One comparison."""

    label: str
    """What the worst of its row is called by."""
    hidden: Sides
    """The names of the target are scrambled and its order is another one."""
    plain: Sides | None
    """Names and order are what the optimizer left; None for edits."""
    planted: tuple[Planted, ...] = ()
    """The events there are, where they are known."""


def _of_mutation(label: str, mutation: Mutation) -> Case:
    return Case(label, Sides(mutation.base, mutation.target, Judge.of_mutation(mutation)), None, mutation.planted)


def synthetic(style: str, weights: str, counts: Sequence[int], seeds: int) -> Iterator[Case]:
    """Stacks of a style with edits of every 100th and every 20th node."""
    (kind,) = [each for each in STYLES if each == style]
    (kept,) = [each for each in WEIGHTS if each == weights]
    for count in counts:
        model = stack(kind, count, kept)
        for share in SHARES if count <= 20_000 else SHARES[:1]:
            for seed in range(seeds if count <= 2_000 else 1):
                edits = random_edits(
                    max(1, round(count * share)), seed, STRUCTURAL if kept == "stripped" else (*EDITS,)
                )
                yield _of_mutation(f"{count:,} nodes, {share:.0%}", mutated(model, edits, seed))


def exports(paths: Sequence[Path], weights: str, seeds: int) -> Iterator[Case]:
    """Exported models with edits of 1 to 5 % of their nodes."""
    (kept,) = [each for each in WEIGHTS if each == weights]
    for path in paths:
        model = with_weights(onnxjson.load(path), kept)
        count = _count(model)
        for seed in range(seeds if count >= FEW else 1):
            for share in SHARES:
                edits = random_edits(
                    max(1, round(count * share)), seed, STRUCTURAL if kept == "stripped" else (*EDITS,)
                )
                yield _of_mutation(path.stem, mutated(model, edits, seed))


def planted(name: str, models: Sequence[tuple[str, Model]], seeds: int) -> Iterator[Case]:
    """One edit by name in each model, and the way back."""
    for label, model in models:
        for seed in range(seeds):
            there = mutated(model, [name], seed)
            if there.planted:
                for mutation in (there, there.reversed()):
                    yield _of_mutation(label, mutation)


def planted_models(paths: Sequence[Path], count: int) -> list[tuple[str, Model]]:
    """What single edits are made in: stacks of every style and kind of weights, and the exports."""
    stacks = [(f"{style}, {weights}", stack(style, count, weights)) for style in STYLES for weights in WEIGHTS]
    return [*stacks, *[(path.stem, onnxjson.load(path)) for path in paths]]


def optimized(optimizer: str, paths: Sequence[Path], environment: Environment, refused: list[str]) -> Iterator[Case]:
    """Models and what an optimizer made of them; `refused` gets what it could not do."""
    assert optimizer in PACKAGES
    for path in paths:
        try:
            output = onnxjson.load(environment.optimized(optimizer, path))
        except MissingError as missing:
            refused.append(f"{optimizer}, {path.stem}: {missing}")
            continue
        base = onnxjson.load(path)
        kept, moved = mutated(output, rename=False, shuffle=False), mutated(output, seed=1)
        hidden = Sides(base, moved.target, Judge.of_names(base, moved))
        yield Case(path.stem, hidden, Sides(base, kept.target, Judge.of_names(base, kept)))


def _count(model: Model) -> int:
    return 0 if model.graph is None else len(model.graph.node)
