"""Laws of real models: what is written loads, what is reported holds.

``python -m tests.laws.real --models DIR`` tries every model of DIR (default: tests/models), two at a time, and prints
a line for each. It exits with 1 after the first broken law; with --keep-going, after all models.

loads
    onnxruntime loads the result of every pass, if it loads the model.
verdicts
    `verify` accepts the result of every pass that promises to preserve the outputs, unless the model itself states
    another rank of its outputs than they have: optimizers rely on it.
flips
    `verify` finds one changed sign in a weight; of a quantized weight, the changed signs of all elements.
batches
    A sample in a batch that set-batch-size allows gives what it gives alone; a refusal names the node.
diffs
    The diff of a model and the result of every pass makes all reports, and is exact as a patch in both directions.
figures
    Weights are those of the model and the same in every report; by operator and by scope they add up to the total.
    Costs that are formulas give for a batch of 8, and other sizes, what the model gives at these sizes.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from typing import Final, NamedTuple

import numpy
from msgspec.structs import replace

import onnxjson
from onnxjson.codecs.wire_writing import message_bytes
from onnxjson.model.document import Model, Node, Tensor
from onnxjson.model.dtypes import DATA_TYPES
from onnxjson.model.elements import element_count
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.index import index_of
from onnxjson.model.tensors import from_numpy
from onnxjson.model.walking import replace_records, walk
from onnxjson.model.weights import held_constants
from onnxjson.optimizing.passes import parse_step
from onnxjson.running.comparisons import error_share
from tests.laws.real_batches import batch_law
from tests.laws.real_diffs import MEASURED, Pair, diff_law, pairs
from tests.laws.real_figures import figures_law

MODELS: Final = Path(__file__).parents[1] / "models"

PASSES: Final = (
    "onnxsim", "onnxslim", "onnxoptimizer", "onnxscript", "onnxruntime", "transformers", "symbolic-shapes",
    "float16", "quantize-weights", "quantize-dynamic", *MEASURED,
)  # fmt: skip
"""Passes whose results are tried; the laws of tests.laws.real_diffs can be tried with all."""

FLOAT: Final = 1

_FLIPPED: Final = frozenset(DATA_TYPES[name] for name in ("float32", "float16", "int8", "uint8"))

_WEIGHTED: Final = (
    "Conv", "ConvTranspose", "Gemm", "MatMul", "ConvInteger", "MatMulInteger", "QLinearConv", "DequantizeLinear",
    "LSTM", "GRU",
)  # fmt: skip
"""Operators whose constants are weights."""

_FIRST, _FACTOR = 50.0, 40.0
"""The first of several numbers that are inputs, and the factor between them."""

_TRIED: Final = 8
"""Number of weights that are flipped, one after the other, until one has an effect."""

_MATTERS: Final = 1e-3
"""Share of the greatest element by which an output must differ; `verify` allows at most a tenth of it for float32."""

PASS_SECONDS: Final = 60.0


class Row(NamedTuple):
    """What came of one model."""

    name: str
    cells: dict[str, str]
    """A few words for each law."""
    broken: tuple[str, ...]
    seconds: float


class Results:
    """A model and the results of passes, made when the first law asks for them."""

    def __init__(self, path: Path, passes: Sequence[str]) -> None:
        self.path = path
        self._passes = passes
        self._made: list[Pair] | None = None
        self.failures: list[str] = []

    def pairs(self) -> list[Pair]:
        """Return the model with each result."""
        if self._made is None:
            self._made = []
            for made in pairs(self.path, self._passes, PASS_SECONDS):
                if isinstance(made, str):
                    self.failures.append(made)
                else:
                    self._made.append(made)
        return self._made


class Outcome(NamedTuple):
    """What came of one law and one model."""

    cell: str
    broken: tuple[str, ...] = ()


def loads(results: Results) -> Outcome:
    """Load a model and the results of passes in onnxruntime, in this process, as other programs do."""
    if reason := _refusal(onnxjson.load(results.path)):
        return Outcome(f"not loaded before: {reason[:60]}")
    made = [(pair, _refusal(pair.after)) for pair in results.pairs()]
    broken = tuple([f"{pair.name}: {reason}" for pair, reason in made if reason])
    return Outcome(f"{len(made)} of {len(made)}, {len(results.failures)} passes refused", broken)


def _refusal(model: Model) -> str:
    """Return why onnxruntime does not load a model; "" if it does."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    try:
        onnxruntime.InferenceSession(message_bytes(model), providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has no common class of its errors
        return f"{type(error).__name__}: {error}"
    return ""


def verdicts(results: Results) -> Outcome:
    """Verify the results of passes that promise to preserve the outputs."""
    broken = []
    compared = 0
    for pair in results.pairs():
        if not parse_step(pair.name.rpartition(" ")[2]).subject.is_exact:
            continue
        try:
            verification = onnxjson.verify(pair.before, pair.after)
        except OnnxJsonError as error:
            if "the base fails on all values" in str(error):
                return Outcome("fails on random inputs")
            if "(--memory)" in str(error):  # at the smallest sizes as well
                return Outcome("not run: needs more memory than a run may have")
            broken.append(f"{pair.name}: {error}")
            continue
        compared += 1
        if not verification.equal and _states_wrong_rank(pair.before):
            return Outcome("states a wrong rank")
        if not verification.equal:
            if verification.doubt:
                return Outcome("not compared")
            worst = [f"{each.name}: {each.worst}" for each in verification.outputs if each.failed]
            broken.append(f"{pair.name}: {verification.failed} of {len(verification.runs)} runs differ: {worst}")
    return Outcome(f"{compared} equal", tuple(broken))


def _states_wrong_rank(model: Model) -> bool:
    """Whether outputs of a model have other ranks than it states."""
    assert model.graph is not None
    outputs = onnxjson.run(model).outputs
    ranks = {
        each.name: len(each.type.tensor_type.shape.dim)
        for each in model.graph.output
        if each.type is not None and each.type.tensor_type is not None and each.type.tensor_type.shape is not None
    }
    return any(
        isinstance(value, Tensor) and ranks.get(name, len(value.dims)) != len(value.dims)
        for name, value in outputs.items()
    )


def flips(results: Results) -> Outcome:
    """Change the sign of the greatest element of a weight that matters, or of a quantized weight; `verify` finds it."""
    model = onnxjson.load(results.path)
    weights = _weights(model)
    step = max(1, len(weights) // _TRIED)
    ordered = _with_numbers(model)
    for base in (model, ordered) if ordered is not model else (model,):
        for tensor in weights[::step]:
            try:
                result = onnxjson.verify(base, _flipped(base, tensor))
            except OnnxJsonError as error:
                return Outcome("", (f"not run: {error}"[:300],))
            if result.failed:
                return Outcome("found")
            # Some weights have no effect on these inputs, or one below the rounding of float32, or of its range.
            worst = [
                each.worst
                for each in result.outputs
                if each.worst is not None and (each.worst.largest_absolute or 0.0) > each.tolerance.absolute
            ]
            shares = [*map(error_share, worst)]
            if max(shares, default=0.0) > _MATTERS and tensor.data_type == FLOAT:
                return Outcome("", (f"a flipped element of {tensor.name} changes outputs by {max(shares):.1e}",))
    return (
        Outcome("", (f"no flipped element of {len(weights)} weights was found",)) if weights else Outcome("no weights")
    )


def _flipped(model: Model, tensor: Tensor) -> Model:
    array = onnxjson.array_of(tensor).copy()
    if array.dtype.kind in "iu":  # one element changes less than the rounding of quantized values
        array = ~array
    else:
        array.reshape(-1)[abs(array).argmax()] *= -1
    changed = replace(from_numpy(array), name=tensor.name)
    return replace_records(model, Tensor, lambda each: changed if each is tensor else each)


def _weights(model: Model) -> list[Tensor]:
    """Return the weights with two dimensions or more that an operator with weights consumes, the smallest first."""
    index = index_of(model)
    used = {name for node in walk(model, Node) if node.op_type in _WEIGHTED for name in node.input}
    held = [each for each in held_constants(index) if each.is_weight and each.name in used]
    return [
        each.tensor
        for each in sorted(held, key=lambda each: (element_count(each.tensor.dims), each.name))
        if each.tensor.data_type in _FLIPPED and len(each.tensor.dims) > 1 and not each.tensor.external_data
    ]


def _with_numbers(model: Model) -> Model:
    """Make inputs that are one number constants in ascending order, as those must be that limit a range."""
    graph = model.graph
    assert graph is not None
    types = [(each.name, each.type and each.type.tensor_type, each.shape) for each in graph.input]
    names = [name for name, tensor, shape in types if tensor and tensor.elem_type == FLOAT and shape == ()]
    if not names:
        return model
    numbers = [numpy.array(_FIRST * _FACTOR**place, "float32") for place in range(len(names))]
    constants = [replace(from_numpy(each), name=name) for name, each in zip(names, numbers, strict=True)]
    inputs = tuple([each for each in graph.input if each.name not in names])
    return replace(model, graph=replace(graph, input=inputs, initializer=(*graph.initializer, *constants)))


def batches(results: Results) -> Outcome:
    """Set the batch; see `tests.laws.real_batches`."""
    verdict, why = batch_law(results.path)
    return Outcome(verdict, (why,) if verdict == "broken" else ())


def diffs(results: Results) -> Outcome:
    """Compare a model with the results of passes; see `tests.laws.real_diffs`."""
    made = [(pair, diff_law(pair.before, pair.after)) for pair in results.pairs()]
    broken = tuple([f"{pair.name}: {each}" for pair, result in made for each in result.broken])
    return Outcome(f"{len(made)} exact", broken)


def figures(results: Results) -> Outcome:
    """Compute the cost; see `tests.laws.real_figures`."""
    return Outcome(*figures_law(results.path))


LAWS: Final[dict[str, Callable[[Results], Outcome]]] = {
    "loads": loads, "verdicts": verdicts, "flips": flips, "batches": batches, "diffs": diffs, "figures": figures,
}  # fmt: skip


def row_of(path: Path, laws: Sequence[str], passes: Sequence[str]) -> Row:
    """Try laws on a model; a failure of any kind is a broken law."""
    started = time.monotonic()
    results = Results(path, passes)
    cells, broken = dict[str, str](), list[str]()
    for law in laws:
        try:
            outcome = LAWS[law](results)
        except Exception as error:
            outcome = Outcome("failed", (f"{type(error).__name__}: {error}",))
        cells[law] = f"{len(outcome.broken)} BROKEN" if outcome.broken else outcome.cell
        broken += [f"{law}: {each}" for each in outcome.broken]
    return Row(path.stem, cells, tuple(broken), time.monotonic() - started)


def rows(paths: Sequence[Path], laws: Sequence[str], passes: Sequence[str]) -> Iterator[Row]:
    """Yield what came of each model, in the order in which they are done; the processes start anew."""
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        jobs = [pool.submit(row_of, path, laws, passes) for path in paths]
        try:
            for job in as_completed(jobs):
                yield job.result()
        finally:
            for job in jobs:
                job.cancel()


def main(words: Sequence[str]) -> int:
    """Print a line for each model, and each broken law."""
    parser = argparse.ArgumentParser(prog="python -m tests.laws.real", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--models", type=Path, action="append", help="folder of models; can be repeated")
    parser.add_argument("--laws", nargs="+", choices=LAWS, default=list(LAWS))
    parser.add_argument("--passes", nargs="+", default=list(PASSES), metavar="PASS")
    parser.add_argument("--keep-going", action="store_true", help="go on after a broken law")
    given = parser.parse_args(words)
    paths = list(chain.from_iterable(sorted(folder.glob("*.onnx")) for folder in given.models or [MODELS]))
    paths.sort(key=lambda path: -path.stat().st_size)  # the longest first, so that all processes end together
    started, wrong = time.monotonic(), 0
    print(f"{'model':24}", *[f"{law:28}" for law in given.laws], "seconds", flush=True)
    for number, row in enumerate(rows(paths, given.laws, given.passes), 1):
        cells = [f"{row.cells[law]:28}" for law in given.laws]
        print(f"{row.name:24}", *cells, f"{row.seconds:7.1f}", f"({number} of {len(paths)})", flush=True)
        for each in row.broken:
            print(f"  {each}", flush=True)
        wrong += bool(row.broken)
        if wrong and not given.keep_going:
            break
    print(f"{len(paths)} models, {wrong} with a broken law, {time.monotonic() - started:.0f} s")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
