"""Laws of outlines: each node is in one line, names and order do not matter, exporters and optimizers matter little.

``python -m tests.laws.outline --models DIR`` tries every model of DIR (default: tests/models) and prints a line for
each. It exits with 1 if a law is broken.

partition
    Every node of the model is in exactly one line; the lines of a repeat or graph have the nodes of the line around.
scrambled
    With other names and another order of nodes the lines are the same but for names.
exports
    Of the lines of a network's two exports (NAME_ts.onnx, NAME_dynamo.onnx) at least 80 % are the same but for names.
optimized
    After onnxsim and onnxslim at least 80 % of the lines are the same.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Final

import onnxjson
from onnxjson.editing import edits
from onnxjson.editing.applying import apply
from onnxjson.model.document import Model
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.index import index_of
from onnxjson.optimizing.trace_records import optimize
from onnxjson.outline.lines import Line, Outline, outline_of
from tests.diffing.mutations import mutated

MODELS: Final = Path(__file__).parents[1] / "models"

SHARE: Final = 0.8
"""Share of lines that another exporter or an optimizer must leave the same."""


def typed(model: Model) -> Model:
    """Return a model with inferred types, or as it is where they cannot be inferred."""
    try:
        return apply(model, [edits.InferShapes()])
    except OnnxJsonError:
        return model


def forms(outline: Outline) -> list[str]:
    """Return the lines of an outline without names, with their depth."""
    return [f"{level} {line.form}" for level, line in outline.walk() if line.nodes]


def parted(model: Model, outline: Outline) -> str:
    """Return what is wrong with the nodes of an outline; "" if every node is in exactly one line."""
    owned = [ref for line in outline.lines for ref in line.nodes]
    nodes = [ref.address for ref in index_of(model).node_refs]
    if len(owned) != len(set(owned)) or {ref.address for ref in owned} != set(nodes):
        return f"{len(owned)} nodes in lines, {len(set(owned))} different ones, {len(nodes)} in the model"
    for _, line in outline.walk():
        if problem := _unfolded(line):
            return problem
    return ""


def _unfolded(line: Line) -> str:
    inner = [ref for each in line.lines for ref in each.nodes]
    if len(inner) != len(set(inner)) or not set(inner) <= set(line.nodes):
        return f"the lines inside {line.text!r} have other nodes than it has"
    if line.repeat > 1 and (set(inner) != set(line.nodes) or len(line.rounds) % line.repeat):
        return f"the rounds of {line.text!r} do not have its nodes"
    return ""


def share(one: Sequence[str], other: Sequence[str]) -> float:
    """Return the share of lines that two outlines have in common, in order."""
    same = sum([block.size for block in SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()])
    return 2 * same / max(1, len(one) + len(other))


def broken(path: Path, seeds: Sequence[int] = (1, 2), passes: Sequence[str] = ("onnxsim", "onnxslim")) -> Iterator[str]:
    """Yield the figures of a model, those of broken laws with an exclamation mark."""
    model = typed(onnxjson.load(path))
    outline = outline_of(model)
    lines = forms(outline)
    problem = parted(model, outline)
    yield f"{len(outline)} lines" + (f" !{problem}" if problem else "")
    for seed in seeds:
        scrambled = mutated(model, [], seed).target
        other = outline_of(scrambled)
        found = share(lines, forms(other))
        yield f"scrambled {found:.0%}" + ("" if found == 1 else "!")
    if path.stem.endswith("_ts") and (pair := path.with_name(f"{path.stem.removesuffix('_ts')}_dynamo.onnx")).exists():
        found = share(lines, forms(outline_of(typed(onnxjson.load(pair)))))
        yield f"dynamo {found:.0%}" + ("" if found >= SHARE else "!")
    for name in passes:
        try:
            optimized = optimize(onnxjson.load(path), name).last
        except OnnxJsonError as error:
            yield f"{name} refused ({type(error).__name__})"
            continue
        found = share(lines, forms(outline_of(typed(optimized))))
        yield f"{name} {found:.0%}" + ("" if found >= SHARE else "!")


def main() -> int:
    """Print the figures of all models; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, default=MODELS, metavar="DIR")
    parser.add_argument("--passes", default="onnxsim onnxslim")
    arguments = parser.parse_args()
    is_broken = False
    for path in sorted(arguments.models.glob("*.onnx")):
        cells = list(broken(path, passes=arguments.passes.split()))
        is_broken |= any(["!" in cell for cell in cells])
        print(f"{path.name:28} {'  '.join(cells)}", flush=True)
    return int(is_broken)


if __name__ == "__main__":
    sys.exit(main())
