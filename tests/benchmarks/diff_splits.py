"""``python -m tests.benchmarks.diff_splits``: which rewrites of a diff could be told as several smaller ones.

Both models run on the same random inputs. Values of both that are always equal are places where a rewrite may end. If
they divide a rewrite into parts, each part is run alone on random inputs, as `--test-rewrites` does; a rewrite can be
split if all parts hold.
"""

import argparse
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import onnx
import onnxruntime

import onnxjson
from onnxjson.diffing.changes import Region
from onnxjson.diffing.comparing import BASE, TARGET, GraphComparison
from onnxjson.diffing.difference import Diff
from onnxjson.diffing.matching.alignment import Components
from onnxjson.running.proof import prove_regions
from tests.benchmarks.diff_cases import Sides, optimized
from tests.benchmarks.diff_environment import Environment
from tests.benchmarks.diff_kept import OPTIMIZERS, REWRITES
from tests.benchmarks.report import table
from tests.benchmarks.tools import HERE

RUNS: Final = 3
PLACES: Final = 2
"""Maximum number of evaluated places of one event."""

Values = dict[str, list[Any]]
Pair = tuple[str, str]


def values_of(path: Path, runs: Sequence[list[Any]]) -> Values:
    """Return the values of all results of the main graph, one for each run; {} if the model does not run."""
    model = onnx.load(path)
    known = {each.name for each in model.graph.output}
    names = [name for node in model.graph.node for name in node.output if name]
    model.graph.output.extend([onnx.ValueInfoProto(name=name) for name in names if name not in known])
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    wanted = [each.name for each in session.get_outputs()]
    names = [each.name for each in session.get_inputs()]
    found: Values = {name: [] for name in wanted}
    for run in runs:
        for name, value in zip(wanted, session.run(wanted, dict(zip(names, run, strict=True))), strict=True):
            found[name].append(value)
    for place, name in enumerate(names):
        found[name] = [run[place] for run in runs]
    for tensor in model.graph.initializer:
        found[tensor.name] = [onnx.numpy_helper.to_array(tensor)] * len(runs)
    return found


def random_inputs(path: Path) -> list[list[Any]]:
    """Return random values for the inputs of a model, whose shapes are fixed: masks, token numbers, or numbers."""
    graph, random, runs = onnx.load(path, load_external_data=False).graph, np.random.default_rng(1), []
    for _ in range(RUNS):
        run: list[Any] = []
        for each in graph.input:
            shape = [size.dim_value or 2 for size in each.type.tensor_type.shape.dim]
            if each.type.tensor_type.elem_type == onnx.TensorProto.INT64:
                high = 2 if "mask" in each.name else 90
                run.append(random.integers(0, high, shape))
                run[-1][..., 0] = 1
            else:
                run.append(random.normal(size=shape).astype(np.float32))
        runs.append(run)
    return runs


def _equal(one: list[Any] | None, other: list[Any] | None) -> bool:
    if not one or not other:
        return False
    for mine, its in zip(one, other, strict=True):
        if not isinstance(mine, np.ndarray) or not isinstance(its, np.ndarray):
            return False
        if mine.shape != its.shape or mine.dtype != its.dtype:
            return False
        if mine.dtype.kind != "f":
            if not np.array_equal(mine, its):
                return False
        else:
            scale = float(np.abs(mine[np.isfinite(mine)]).max(initial=0))
            if not np.allclose(mine, its, rtol=1e-3, atol=1e-5 * scale):
                return False
    return True


class Part(NamedTuple):
    """A part of a rewrite: positions of nodes."""

    base: list[int]
    target: list[int]


def parts_of(graph: GraphComparison, region: Region, values: tuple[Values, Values]) -> tuple[list[Part], list[Pair]]:
    """Return the parts into which values that are equal in both models divide a rewrite, and these values."""
    made = [
        {name: place for place in region.nodes(side) for name in graph.nodes(side)[place].output if name}
        for side in (BASE, TARGET)
    ]
    borders = [
        [*[pair[side] for pair in region.inputs if pair[side]], *region.constants(side)] for side in (BASE, TARGET)
    ]
    pairs: list[Pair] = list(region.outputs)
    ends = [{pair[side] for pair in pairs} for side in (BASE, TARGET)]
    for name in made[BASE]:
        if name not in ends[BASE]:
            same = [
                each
                for each in (*made[TARGET], *borders[TARGET])
                if _equal(values[0].get(name), values[1].get(each or ""))
            ]
            same = [each for each in same if each not in ends[TARGET]] or same
            if same:
                pairs.append((name, same[0] or ""))
    taken = {new for _, new in pairs}
    for name in made[TARGET]:
        if name not in taken:
            same = [each for each in borders[BASE] if _equal(values[0].get(each or ""), values[1].get(name))]
            if same:
                pairs.append((same[0] or "", name))
    components = Components()
    for side in (BASE, TARGET):
        cut = {pair[side] for pair in pairs}
        for place in region.nodes(side):
            components.add((side, place))
        for place in region.nodes(side):
            for name in graph.consumed(side, place):
                if name in made[side] and name not in cut:
                    components.join((side, place), (side, made[side][name]))
    for old, new in pairs:
        if old in made[BASE] and new in made[TARGET]:
            components.join((BASE, made[BASE][old]), (TARGET, made[TARGET][new]))
    return [Part(*each) for each in components.sets()], pairs


def region_of(graph: GraphComparison, whole: Region, part: Part, pairs: Sequence[Pair]) -> Region:
    """Return a part as a region of its own."""
    made = [{name for place in places for name in graph.nodes(side)[place].output} for side, places in enumerate(part)]
    inputs: dict[tuple[str | None, str | None], None] = {}
    constants: list[dict[str, None]] = [{}, {}]
    outputs = [
        pair
        for pair in pairs
        if all(not part[side] or pair[side] in made[side] for side in (BASE, TARGET))
        and any(_is_used(graph, side, pair[side], part[side]) or pair in whole.outputs for side in (BASE, TARGET))
    ]
    for side in (BASE, TARGET):
        taken = [name for place in part[side] for name in graph.consumed(side, place)]
        for name in dict.fromkeys([*taken, *[pair[side] for pair in outputs]]):
            if not name or name in made[side]:
                continue
            if graph.constant(side, graph.source(side, name)) is not None:
                constants[side][graph.source(side, name)] = None
                continue
            other = next((pair[1 - side] for pair in pairs if pair[side] == name), None)
            if other is None:
                other = graph.translate_back(name) if side else graph.translate(name)
            inputs[(other, name) if side else (name, other)] = None
    return Region(
        whole.pair, tuple(part.base), tuple(part.target), tuple(inputs), tuple(outputs), *map(tuple, constants)
    )


def _is_used(graph: GraphComparison, side: int, name: str, inside: Sequence[int]) -> bool:
    return any(consumer not in inside for consumer, _ in graph.scopes[side].consumers.get(name, ()))


def pattern(graph: GraphComparison, part: Part) -> str:
    """Return the operators of a part."""
    names = [Counter([graph.nodes(side)[place].op_type for place in part[side]]) for side in (BASE, TARGET)]
    texts = [[f"{count} {name}" if count > 1 else str(name) for name, count in sorted(each.items())] for each in names]
    return " -> ".join(map("+".join, texts))


class Found(NamedTuple):
    """A rewrite of a diff."""

    size: int
    places: int
    """Number of places for which it stands."""
    parts: list[int]
    """Nodes of the parts with nodes of both models."""
    pattern: str
    """The patterns of the parts, if it can be split."""
    verdicts: str


def rewrites_of(found: Diff, values: tuple[Values, Values]) -> Iterator[Found]:
    """Yield rewrites with their parts."""
    assert found._context is not None
    for number, event in enumerate(found.events):
        if event.kind not in REWRITES:
            continue
        members = [place for place, each in enumerate(event.members) if each.base and each.target]
        chosen = members[:: max(1, len(members) // PLACES)][:PLACES]
        for place in chosen:
            member, region = event.members[place], found.regions.get((number, place))
            size, count = len(member.base) + len(member.target), len(members) // len(chosen)
            graph = None if region is None else found._context.by_base.get(region.pair.base.address)
            if region is None or graph is None or size < 3:
                yield Found(size, count, [size], "", "")
                continue
            parts, pairs = parts_of(graph, region, values)
            sizes = [len(each.base) + len(each.target) for each in parts if each.base and each.target]
            if len(parts) < 2:
                yield Found(size, count, [size], "", "")
                continue
            regions = [region_of(graph, region, each, pairs) for each in parts]
            proofs = prove_regions(found.alignment.base, found.alignment.target, regions, lambda tensor: None)
            patterns = [pattern(graph, each) for each in parts]
            if all(verdict in {"equal", "within-tolerance"} for verdict, _ in proofs):
                yield Found(size, count, sizes, f"{event.pattern}  =  {'; '.join(sorted(patterns))}", "")
            else:
                told = [f"{each}: {verdict}" for each, (verdict, _) in zip(patterns, proofs, strict=True)]
                yield Found(size, count, [size], "", "; ".join(told))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.diff_splits", description=__doc__)
    parser.add_argument("--models", type=Path, default=HERE.parent / "models", help="folder of exported models")
    parser.add_argument("--python", type=Path, help="interpreter of an environment that has the optimizers")
    parser.add_argument("--cache", type=Path, help="folder that keeps what the optimizers wrote")
    parser.add_argument("--only", action="append", choices=OPTIMIZERS, help=", ".join(OPTIMIZERS))
    parser.add_argument("--list", type=Path, metavar="FILE", help="write the rewrites that can be split")
    parser.add_argument("--scrambled", action="store_true", help="with scrambled names")
    options = parser.parse_args(arguments)
    rows, refused, lines = [], list[str](), list[str]()
    with tempfile.TemporaryDirectory(prefix="onnxjson-splits-") as folder:
        environment = Environment(options.python, options.cache or Path(folder))
        for optimizer in options.only or OPTIMIZERS:
            seen: list[Found] = []
            for case in optimized(optimizer, sorted(options.models.glob("*.onnx")), environment, refused):
                sides: Sides | None = case.hidden if options.scrambled else case.plain
                assert sides is not None
                paths = Path(folder, "base.onnx"), Path(folder, "target.onnx")
                for model, path in zip((sides.base, sides.target), paths, strict=True):
                    onnxjson.save(model, path)
                runs = random_inputs(paths[0])
                values = values_of(paths[0], runs), values_of(paths[1], runs)
                seen += rewrites_of(onnxjson.diff(sides.base, sides.target), values)
                print(".", end="", file=sys.stderr, flush=True)
            before = [each.size for each in seen for _ in range(each.places)]
            after = [size for each in seen for _ in range(each.places) for size in each.parts]
            split = sum(each.places for each in seen if each.pattern)
            share = f"{split / max(1, len(before)):.1%}"
            rows.append([optimizer, str(len(before)), str(split), share, *map(_figures, (before, after))])
            for name in ("pattern", "verdicts"):
                counts: Counter[str] = Counter()
                for each in seen:
                    counts[getattr(each, name)] += each.places
                lines += [f"{optimizer} {name} {count}x {text}" for text, count in counts.most_common() if text]
    head = ["optimizer", "rewrites", "can be split", "", "nodes, median, mean", "if split"]
    print(table("Rewrites that can be split", head, rows))
    if options.list:
        options.list.write_text("".join(f"{line}\n" for line in lines))
    return 0


def _figures(sizes: Sequence[int]) -> str:
    return f"{statistics.median(sizes):g}, {statistics.mean(sizes):.2f}" if sizes else ""


if __name__ == "__main__":
    sys.exit(main())
