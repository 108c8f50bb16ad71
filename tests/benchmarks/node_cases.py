"""How many of onnx's node test cases come out as recorded: ``python -m tests.benchmarks.node_cases [-v] [PATTERN]``.

Each case is a model of one node (some have a body or functions) with inputs and expected outputs; together they have
every dtype. A case passes where every output is within the tolerance that the case itself names.
"""

import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

import onnx
from onnx.backend.test.case.test_case import TestCase

import onnxjson
from onnxjson.model.dtypes import DATA_TYPE_NAMES
from onnxjson.running.comparisons import TOLERANCES, Tolerance, compare_values
from onnxjson.running.input_files import DataSet, value_of_message
from onnxjson.running.sandbox import Outcome, execute_all, pack_model
from onnxjson.running.tasks import Failed, Opened, Output, Refused, RunTask, Settings
from onnxjson.running.values import Value, as_value, leaves, packed_values, unpacked_values
from onnxjson.running.worker import Worker

BATCH: Final = 100
"""Cases that are prepared together."""

SETTINGS: Final = Settings(engines=("onnxruntime",), level="all")

MOST_IR: Final = 13
MOST_OPSET: Final = 26
"""What onnxruntime 1.31 reads."""


class Verdict(NamedTuple):
    """What became of a case."""

    name: str
    dtypes: frozenset[str]
    """Of its inputs and outputs."""
    outcome: str
    """"pass", "fail" or "cannot load"."""
    reason: str = ""


def cases(pattern: str = "*") -> list[TestCase]:
    """The node cases of the installed onnx."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the cases overflow on purpose
        from onnx.backend.test.loader import load_model_tests

        found = load_model_tests(kind="node")
    return [case for case in found if fnmatchcase(case.name, pattern) and case.model is not None]


def judged(found: Sequence[TestCase], worker: Worker) -> Iterator[Verdict]:
    """What becomes of cases, in their order."""
    for start in range(0, len(found), BATCH):
        batch = found[start : start + BATCH]
        sets = [_data_set(case) for case in batch]
        tasks = []
        for case, each in zip(batch, sets, strict=True):
            subject = pack_model(onnxjson.from_proto(_readable(case)), None).subject
            tasks.append(RunTask(subject=subject, settings=SETTINGS, feeds=(packed_values(each.inputs),)))
        outcomes = execute_all(worker, tasks)
        for case, each, outcome in zip(batch, sets, outcomes, strict=True):
            values = [*each.inputs.values(), *each.outputs.values()]
            yield Verdict(case.name, frozenset(_dtypes(values)), *_outcome(case, each, outcome))


def _outcome(case: TestCase, data_set: DataSet, outcome: Outcome) -> tuple[str, str]:
    refused, failed, output = outcome.first(Refused), outcome.first(Failed), outcome.first(Output)
    if refused is not None or outcome.problem or outcome.first(Opened) is None:
        return "cannot load", outcome.problem if refused is None else refused.problem
    if output is None:
        problem = "the run returned nothing" if failed is None else failed.problem
        return "cannot load" if "NOT_IMPLEMENTED" in problem else "fail", problem
    outputs = unpacked_values(output.values)
    for name, expected in data_set.outputs.items():
        comparison = compare_values(expected, outputs.get(name), _tolerances(case))
        if not comparison.close:
            return "fail", f"{name} {comparison.problem or f'differs by up to {comparison.largest_absolute}'}"
    return "pass", ""


def _readable(case: TestCase) -> onnx.ModelProto:
    """The model with the version of the format that onnxruntime reads; nothing in a node case needs a later one."""
    copy = onnx.ModelProto()
    assert case.model is not None
    copy.CopyFrom(case.model)
    copy.ir_version = min(copy.ir_version, MOST_IR)
    return copy


def _data_set(case: TestCase) -> DataSet:
    assert case.model is not None
    assert case.data_sets is not None
    inputs, outputs = case.data_sets[0]
    graph = case.model.graph
    return DataSet(
        case.name,
        {info.name: _value(given, info) for info, given in zip(graph.input, inputs, strict=False)},
        {info.name: _value(given, info) for info, given in zip(graph.output, outputs, strict=False)},
    )


def _value(given: Any, info: onnx.ValueInfoProto) -> Value:
    model = onnx.ModelProto(graph=onnx.GraphProto(input=[info]))
    said = onnxjson.from_proto(model).graph.input[0].type  # type: ignore[union-attr]
    if isinstance(given, onnx.TensorProto | onnx.SequenceProto | onnx.OptionalProto | onnx.MapProto):
        plain = None if isinstance(given, onnx.TensorProto) else said
        return value_of_message(given.SerializeToString(), plain)
    return as_value(given)


def _tolerances(case: TestCase) -> dict[str, Tolerance]:
    """As onnx's own runner compares; exact for what has no fractions."""
    allowed = Tolerance(absolute=case.atol, relative=case.rtol)
    found = dict.fromkeys(TOLERANCES, allowed)
    for name, wider in TOLERANCES.items():
        if name not in ("float32", "float64", "complex64", "complex128"):
            found[name] = Tolerance(absolute=case.atol, relative=max(case.rtol, wider.relative))
    return found


def _dtypes(values: Sequence[Value]) -> Iterator[str]:
    for value in values:
        for _, tensor in leaves(value):
            yield DATA_TYPE_NAMES[tensor.data_type or 0]


def table(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Lines that say how many cases of each dtype pass, fail and cannot be loaded."""
    outcomes = ("pass", "fail", "cannot load")
    counts: dict[str, Counter[str]] = {}
    for verdict in verdicts:
        for dtype in verdict.dtypes:
            counts.setdefault(dtype, Counter())[verdict.outcome] += 1
    total = Counter(verdict.outcome for verdict in verdicts)
    yield f"{'dtype':16}{'cases':>8}" + "".join(f"{each:>13}" for each in outcomes)
    for dtype, found in [*sorted(counts.items()), ("all", total)]:
        yield f"{dtype:16}{found.total():8,}" + "".join(f"{found[each]:13,}" for each in outcomes)


def main(arguments: Sequence[str]) -> None:
    """Print the table, and with -v every case that does not pass."""
    patterns = [each for each in arguments if not each.startswith("-")]
    with Worker() as worker:
        verdicts = list(judged(cases(*patterns), worker))
    for verdict in verdicts:
        if "-v" in arguments and verdict.outcome != "pass":
            print(f"{verdict.outcome}: {verdict.name}: {verdict.reason[:200]}")
    for line in table(verdicts):
        print(line)


if __name__ == "__main__":
    main(sys.argv[1:])
