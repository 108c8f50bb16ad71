"""``python -m tests.patterns.laws 2000 [MODEL...]``: patterns cut from models, as they are and with one change.

Law 1: a pattern finds the place that it was cut from. Law 2: with one planted change it does not find that place any
more, and the nearest misses, as many as `onnxjson find --why` shows, name exactly this change (or the model has no such
operator). Prints the numbers; exits with 1 if law 1 fails once, or law 2
names fewer than 95 % of the changes.
"""

import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import onnxjson
from onnxjson.model.constants import is_constant_node
from onnxjson.model.document import Model
from onnxjson.model.index import Index, NodeRef, index_of
from onnxjson.patterns.expression import (
    Bound,
    Call,
    Elements,
    Number,
    Operator,
    Pattern,
    ValuePattern,
)
from onnxjson.patterns.generalising import Cut
from onnxjson.patterns.grammar import parse
from onnxjson.patterns.searching import absent_operators, find, nearest_misses

MODELS: Final = Path(__file__).parents[1] / "models"

SHOWN: Final = 5

_MOST_CALLS: Final = 8


class Planted(NamedTuple):
    """A pattern with one change, and the text by which a reason names it."""

    pattern: Pattern
    named: str


class Cutter:
    """Cuts patterns from one model."""

    def __init__(self, model: Model, seed: random.Random) -> None:
        self.model = model
        self.index: Index = index_of(model)
        self.nodes = [ref for ref in self.index.node_refs if not is_constant_node(ref.node) and not _has_graph(ref)]
        self._allowed = set(self.nodes)
        self._seed = seed
        self._calls = 0

    def cut(self) -> tuple[NodeRef, Pattern]:
        """Return a random node, and a pattern of what it is computed from."""
        ref = self._seed.choice(self.nodes)
        self._calls = 1
        output = next(slot for slot, name in enumerate(ref.node.output) if name)
        return ref, Pattern(Cut(self.index, self._is_inside).call(ref, output))

    def _is_inside(self, ref: NodeRef) -> bool:
        is_inside = ref in self._allowed and self._calls < _MOST_CALLS and self._seed.random() < 0.8
        self._calls += is_inside
        return is_inside


def _has_graph(ref: NodeRef) -> bool:
    return any(each.g is not None or each.graphs for each in ref.node.attribute)


def _other(value: float) -> float:
    return value + 1 if isinstance(value, int) else value * 1.5 + 1


def plant(pattern: Pattern, seed: random.Random) -> Planted | None:
    """Return the pattern with one random change; None where a change of the chosen kind is not possible."""
    root = pattern.root
    assert isinstance(root, Call)
    places: list[tuple[tuple[int, ...], ValuePattern]] = []

    def collect(value: ValuePattern, path: tuple[int, ...]) -> None:
        places.append((path, value))
        if isinstance(value, Call):
            for number, each in enumerate(value.inputs or ()):
                collect(each, (*path, number))

    collect(root, ())
    path, value = seed.choice(places)
    new: ValuePattern
    if isinstance(value, Number):
        new = Number(_other(value.value))
        named = f"the pattern needs {new}"
    elif isinstance(value, Elements) and value.items:
        new = Elements((_other(value.items[0]), *value.items[1:]))  # type: ignore[arg-type]
        named = f"the pattern needs {new}"
    elif isinstance(value, Bound):
        others = [each for _, each in places if isinstance(each, Bound) and each.name != value.name]
        if not others:
            return None
        new = Bound(seed.choice(others).name, value.is_constant)
        named = f"{new.name} is "
    elif isinstance(value, Call):
        numbers = [(name, each) for name, each in value.attributes if isinstance(each, Number | Elements)]
        if numbers and seed.random() < 0.5:
            name, old = seed.choice(numbers)
            if isinstance(old, Elements) and not (old.items and isinstance(old.items[0], int | float)):
                return None
            items = old.items if isinstance(old, Elements) else ()
            changed = Elements((_other(items[0]), *items[1:])) if items else Number(_other(old.value))  # type: ignore[arg-type, union-attr]
            new = value._replace(attributes=tuple([(n, changed if n == name else v) for n, v in value.attributes]))
            named = f"{name} of "
        else:
            operator = seed.choice([each for each in ("Tanh", "Sub", "Gather") if each != value.operators[0].name])
            new = value._replace(operators=(Operator(operator),))
            named = f"the pattern needs {operator}"
    else:
        return None
    return Planted(Pattern(_with(root, path, new)), named)  # type: ignore[arg-type]


def _with(value: ValuePattern, path: Sequence[int], new: ValuePattern) -> ValuePattern:
    if not path:
        return new
    assert isinstance(value, Call)
    inputs = list(value.inputs or ())
    inputs[path[0]] = _with(inputs[path[0]], path[1:], new)
    return value._replace(inputs=tuple(inputs))


class Counts(NamedTuple):
    """How the laws held."""

    cut: int
    lost: list[str]
    planted: int
    unnamed: list[str]


def check(paths: Sequence[Path], rounds: int, start: int = 1) -> Counts:
    """Cut and plant so many patterns, from each model in turn."""
    seed = random.Random(start)
    cutters = [Cutter(onnxjson.load(path), seed) for path in paths]
    lost, unnamed, planted = [], [], 0
    for number in range(rounds):
        cutter = cutters[number % len(cutters)]
        ref, pattern = cutter.cut()
        assert parse(str(pattern)) == pattern, pattern
        found = {match.root for match in find(cutter.model, pattern, overlapping=True, index=cutter.index)}
        if ref not in found:
            lost.append(f"{paths[number % len(paths)].name} {ref.address}: {pattern}")
            continue
        changed = plant(pattern, seed)
        if changed is None:
            continue
        if ref in {match.root for match in find(cutter.model, changed.pattern, overlapping=True, index=cutter.index)}:
            continue  # the change means the same, as in a sum with both inputs renamed
        planted += 1
        misses = nearest_misses(cutter.model, changed.pattern, most=SHOWN)
        absent = [f"the pattern needs {each}" for each in absent_operators(cutter.index, changed.pattern)]
        if changed.named not in absent and not any(
            len(miss.reasons) == 1 and changed.named in miss.reasons[0] for miss in misses
        ):
            place = f"{paths[number % len(paths)].name} {ref.address}"
            unnamed.append(f"{place}: {changed.pattern}: {changed.named}: {misses[0].reasons if misses else 'no miss'}")
    return Counts(rounds, lost, planted, unnamed)


def main(arguments: Sequence[str]) -> int:
    """Print the counts; see the module."""
    rounds = int(arguments[0]) if arguments else 2000
    paths = [Path(each) for each in arguments[1:]] or sorted(MODELS.glob("*.onnx"))
    counts = check(paths, rounds)
    for each in (*counts.lost, *counts.unnamed):
        print(each)
    share = 1 - len(counts.unnamed) / max(counts.planted, 1)
    print(f"cut: {counts.cut}, not found: {len(counts.lost)}")
    print(f"planted: {counts.planted}, named: {share:.1%}")
    return int(bool(counts.lost) or share < 0.95)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
