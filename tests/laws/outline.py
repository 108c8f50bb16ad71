"""Laws of outlines: each node is in one line, names and order do not matter, exporters and optimizers matter little.

``python -m tests.laws.outline --models DIR`` tries every model of DIR (default: tests/models) and prints a line for
each. It exits with 1 if a law is broken.

partition
    Every node of the model is in exactly one line; the lines of a repeat or graph have the nodes of the line around.
scrambled
    With other names and another order of nodes the lines are the same but for names.
found
    Every attention and RMS norm that `attentions` and `rms_norms` count from operators alone is in such a block. They
    ask for less than a block does, so that an exclamation mark may also be a block that is rightly not named.
exports
    Of the lines of a network's two exports (NAME_ts.onnx, NAME_dynamo.onnx) at least 80 % are the same but for names.
optimized
    After onnxsim and onnxslim at least 80 % of the lines are the same.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Final

import onnxjson
from onnxjson.editing import edits
from onnxjson.editing.applying import apply
from onnxjson.model.constants import is_constant
from onnxjson.model.document import Model
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.index import NodeRef, index_of
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


_LAYOUT: Final = {
    "Add", "Cast", "Div", "Dropout", "Expand", "Identity", "IsNaN", "Mul", "Reshape", "Transpose", "Where",
}  # fmt: skip


def attentions(model: Model) -> list[NodeRef]:
    """Return each Softmax between products of two computed values, with nothing but layout, scales and masks between.

    Counted from the nodes, without patterns and blocks.
    """
    index = index_of(model)

    def is_product(ref: NodeRef) -> bool:
        return ref.node.op_type == "MatMul" and not any([is_constant(ref.scope, name) for name in ref.node.input])

    def leads(ref: NodeRef, step: Callable[[NodeRef], list[NodeRef]]) -> bool:
        pending, seen = step(ref), set[NodeRef]()
        while pending:
            each = pending.pop()
            if is_product(each):
                return True
            if each not in seen and each.node.op_type in _LAYOUT:
                seen.add(each)
                pending += step(each)
        return False

    def before(ref: NodeRef) -> list[NodeRef]:
        return [each for name in ref.node.input if name and (each := index.producer(ref.scope, name)) is not None]

    def after(ref: NodeRef) -> list[NodeRef]:
        uses = index.consumers(ref.scope, ref.node.output[0])
        return [NodeRef(use.scope, use.position) for use in uses if use.position is not None]

    return [
        ref for ref in index.node_refs if ref.node.op_type == "Softmax" and leads(ref, before) and leads(ref, after)
    ]


def rms_norms(model: Model) -> list[NodeRef]:
    """Return each ReduceMean of a square that is no difference, whose sum with a constant has its root taken."""
    index = index_of(model)
    found = []
    for ref in index.node_refs:
        square = index.producer(ref.scope, ref.node.input[0]) if ref.node.op_type == "ReduceMean" else None
        if square is None or square.node.op_type not in ("Pow", "Mul"):
            continue
        root = index.producer(ref.scope, square.node.input[0])
        sums = [use for use in index.consumers(ref.scope, ref.node.output[0]) if use.position is not None]
        kinds = [NodeRef(use.scope, use.position).node.op_type for use in sums if use.position is not None]
        if kinds == ["Add"] and (root is None or root.node.op_type != "Sub"):
            found.append(ref)
    return found


def named(outline: Outline, block: str) -> set[str]:
    """Return the addresses of the nodes of the innermost lines that show a block."""
    return {ref.address for _, line in outline.walk() if not line.lines and block in line.text for ref in line.nodes}


def counted(model: Model, outline: Outline) -> Iterator[str]:
    """Yield how many of the counted attentions and RMS norms are in blocks."""
    for name, refs in (("Attention(", attentions(model)), ("RMSNorm", rms_norms(model))):
        known = named(outline, name)
        found = sum([ref.address in known for ref in refs])
        if refs:
            yield f"{name.rstrip('(')} {found}/{len(refs)}" + ("" if found == len(refs) else "!")


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
    yield from counted(model, outline)
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
