"""Every lint rule: a model that breaks it, one that does not, and the message."""

import re
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from onnxjson.checking.catalogue import RULES, family_of
from onnxjson.checking.linting import FAMILIES, Rule, Subject, chosen, lint
from onnxjson.model.document import (
    Attribute,
    Function,
    Graph,
    Model,
    Node,
    OperatorSetId,
    SparseTensor,
    StringStringEntry,
    Tensor,
    TrainingInfo,
    ValueInfo,
)  # fmt: skip
from tests.checking.texts import parsed

Case = str | Callable[[], Model]

CASES = [line.split(" | ") for line in Path(__file__).with_name("rules.txt").read_text().splitlines() if line]
"""Code, words of the message, a graph that breaks the rule, one that does not ("" for a clean model)."""

CLEAN = 'g (float[N,4] x) => (float[N,4] y) {["one"] y = Relu(x)}'


def _clean(**changes: object) -> Model:
    return replace(parsed(CLEAN), producer_name="test", **changes)


def _with_graph(**changes: object) -> Model:
    model = _clean()
    return replace(model, graph=replace(model.graph, **changes))  # type: ignore[type-var]


def _with_tensor(**fields: object) -> Model:
    return _with_graph(initializer=(Tensor(name="w", data_type=1, **fields),))  # type: ignore[arg-type]


def _floats(*values: float) -> dict[str, object]:
    return {"dims": (len(values),), "raw_data": struct.pack(f"<{len(values)}f", *values)}


def _with_weights(*starts: int) -> Model:
    fields = [_floats(*range(start, start + 400)) for start in starts]
    tensors = [Tensor(name=name, data_type=1, **each) for name, each in zip("wv", fields, strict=True)]  # type: ignore[arg-type]
    return _with_graph(initializer=tuple(tensors))


def _external(name: str, location: str, **more: str) -> Tensor:
    entries = {"location": location, **more}
    pairs = tuple([StringStringEntry(key=key, value=value) for key, value in entries.items()])
    return Tensor(name=name, data_type=1, dims=(4,), data_location=1, external_data=pairs)


def _node(**changes: object) -> Model:
    node = _clean().graph.node[0]  # type: ignore[union-attr]
    return _with_graph(node=(replace(node, **changes),))


def _called(*, opset: int = 21, called: bool = True) -> Model:
    function = Function(
        name="F", domain="own", input=("a",), output=("b",), node=(Node(input=("a",), output=("b",), op_type="Relu"),),
        opset_import=(OperatorSetId(domain="", version=opset),),
    )  # fmt: skip
    model = _node(domain="own", op_type="F") if called else _clean()
    return replace(model, functions=(function,), opset_import=(*model.opset_import, OperatorSetId("own", 1)))


BUILT: dict[str, tuple[str, Callable[[], Model], Callable[[], Model]]] = {
    "ONJ103": ('the function "F"', lambda: _called(called=False), _called),
    "ONJ112": ("no nodes", lambda: _with_graph(node=()), _clean),
    "ONJ116": ("no outputs", lambda: _with_graph(output=()), _clean),
    "ONJ201": ("no type", lambda: _with_graph(output=(ValueInfo(name="y"),)), _clean),
    "ONJ302": ('"own"', lambda: _clean(opset_import=(OperatorSetId("", 21), OperatorSetId("own", 1))), _called),
    "ONJ304": ("IR version 10", lambda: _clean(ir_version=8), _clean),
    "ONJ404": ("no name", lambda: _with_graph(name=""), _clean),
    "ONJ407": ("300 characters", lambda: _node(name="n" * 300), _clean),
    "ONJ408": ("producer", lambda: replace(_clean(), producer_name=None), _clean),
    "ONJ503": ("2 elements", lambda: _with_tensor(**_floats(float("nan"), float("inf"), 1)),
               lambda: _with_tensor(**_floats(float("-inf")))),
    "ONJ504": ("1 elements", lambda: _with_tensor(**_floats(70000, 1)), lambda: _with_tensor(**_floats(65504, 1))),
    "ONJ701": ("IR version 99", lambda: _clean(ir_version=99), _clean),
    "ONJ702": ("version 29", lambda: _clean(opset_import=(OperatorSetId("", 29),)), _clean),
    "ONJ712": ("training_info", lambda: _clean(training_info=(TrainingInfo(),)), _clean),
    "ONJ713": ("sparse", lambda: _with_graph(sparse_initializer=(SparseTensor(values=Tensor(name="s")),)), _clean),
    "ONJ801": ('"v" has the same bytes as "w"', lambda: _with_weights(0, 0), lambda: _with_weights(0, 1)),
    "ONJ802": ("20000 bytes", lambda: _node(op_type="Constant", input=(), attribute=(
        Attribute(name="value", type=4, t=Tensor(data_type=1, dims=(5000,), raw_data=bytes(20_000))),)), _clean),
    "ONJ803": ("3000000000 bytes", lambda: _with_tensor(dims=(750_000_000,)), _clean),
    "ONJ804": ("characters", lambda: _clean(doc_string="x" * 2_000_000), lambda: _clean(doc_string="x")),
    "ONJ805": ("the same", lambda: _with_tensor(**_floats(*[0.1] * 20_000)),
               lambda: _with_tensor(**_floats(*[0.1] * 9))),
    "ONJ806": ("int32", lambda: _with_tensor_of(7, "q", range(10_000)),
               lambda: _with_tensor_of(7, "q", [2**40, *range(10_000)])),
    "ONJ807": ("float16", lambda: _with_tensor(**_floats(*[n % 8 for n in range(20_000)])),
               lambda: _with_tensor(**_floats(*[n / 7 for n in range(20_000)]))),
    "ONJ808": ("typed field", lambda: _with_graph(initializer=(
        Tensor(name="w", data_type=7, dims=(600,), int64_data=bytes(600)),)), _clean),
    "ONJ809": ("16 bytes", lambda: _with_graph(initializer=(_external("w", "w.bin"),)), _clean),
    "ONJ901": ("outside", lambda: _with_graph(initializer=(_external("w", "../w.bin"),)),
               lambda: _with_graph(initializer=(_external("w", "data/w.bin"),))),
    "ONJ902": ("w.bin", lambda: _with_graph(initializer=(_external("w", "w.bin"),)), _clean),
    "ONJ903": ("invisible", lambda: _node(name="a\u202eb"), _clean),
    "ONJ904": ("/home/jane", lambda: _clean(doc_string="File /home/jane/train.py"),
               lambda: _clean(doc_string="train.py")),
    "ONJ905": ("AKIAAB", lambda: _clean(doc_string="AKIAABCDEFGHIJKLMNOP"), lambda: _clean(doc_string="AKIA")),
    "ONJ906": ("Python", lambda: _node(op_type="PyOp"), _clean),
    "ONJ907": ('"v" overlap', lambda: _with_graph(initializer=(
        _external("w", "w.bin", offset="0", length="16"), _external("v", "w.bin", offset="8", length="16"))),
        lambda: _with_graph(initializer=(
            _external("w", "w.bin", offset="0", length="16"), _external("v", "w.bin", offset="0", length="16")))),
}  # fmt: skip


def _with_tensor_of(data_type: int, code: str, values: object) -> Model:
    numbers = list(values)  # type: ignore[call-overload]
    raw = struct.pack(f"<{len(numbers)}{code}", *numbers)
    return _with_graph(initializer=(Tensor(name="w", data_type=data_type, dims=(len(numbers),), raw_data=raw),))


def _of(text: str) -> Model:
    """Return the model of a text, which may begin with the version of its operator set: ``@11 (...) => ...``."""
    match = re.match(r"@([0-9]+) ", text)
    body = text[match.end() :] if match else text
    return replace(
        parsed(f"g {body}", opset=int(match[1]) if match else 21, imports="com.microsoft"), producer_name="test"
    )


def _messages(rule: Rule, model: Model, folder: Path) -> list[str]:
    return [f"{finding.message}" for finding in lint(Subject(model, folder), [rule], strict=True)]


BROKEN: dict[str, tuple[str, Callable[[], Model], Callable[[], Model]]] = BUILT | {
    code: (words, lambda bad=bad: _of(bad), lambda good=good: _of(good) if good else _clean())
    for code, words, bad, good in CASES
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_rule_is_broken_by_one_model_and_not_by_the_other(rule: Rule, tmp_path: Path) -> None:
    words, bad, good = BROKEN[rule.code]
    found = _messages(rule, bad(), tmp_path)
    assert [each for each in found if words in each], found
    assert _messages(rule, good(), tmp_path) == []


def test_initializers_of_old_models_must_be_inputs() -> None:
    graph = "g (float[1] w = {1}, float[1] x) => (float[1] y) {y = Add(x, w)}"
    rules = [rule for rule in RULES if rule.code == "ONJ111"]
    found = [list(lint(Subject(parsed(graph, opset=8, ir=ir)), rules)) for ir in (3, 4)]
    assert [len(each) for each in found] == [0, 1]


def test_clean_model_breaks_no_rule(tmp_path: Path) -> None:
    on = chosen(RULES, ["all"])
    assert list(lint(Subject(_clean(), tmp_path), on, strict=True)) == []


def test_codes_are_stable_sorted_and_in_their_families() -> None:
    codes = [rule.code for rule in RULES]
    assert codes == sorted(set(codes))
    assert len(codes) >= 60
    assert {rule.family for rule in RULES} == set(FAMILIES)
    assert [family_of(code) for code in ("ONJ501", "unknown-operator", "input-dtype", "cut-off")] == [
        "numerics", "opset", "types", "structure",
    ]  # fmt: skip


def test_rules_are_chosen_by_family_code_and_start_of_code() -> None:
    assert {each.code for each in chosen(RULES, ["ONJ50"])} == {f"ONJ50{n}" for n in range(1, 10)}
    assert {each.family for each in chosen(RULES, ["size"])} == {"size"}
    assert "ONJ504" not in {each.code for each in chosen(RULES, ["all"])}


def test_models_of_exporters_break_no_rule_by_an_exception(exports: list[Path]) -> None:
    from onnxjson.storage.api import load

    for path in exports:
        codes = {each.code for each in lint(Subject(load(path), path.parent), RULES, strict=True)}
        assert not codes & {rule.code for rule in RULES if rule.level == "error"}


def test_invalid_node_breaks_off_no_check(tmp_path: Path) -> None:
    model = _of("(float[2,3] x) => (float[3,2] y) {h = Transpose<perm = 7>(x) y = Transpose<perm = [9]>(h)}")
    assert list(lint(Subject(model, tmp_path), RULES)) is not None


def test_graph_is_not_needed() -> None:
    assert {finding.code for finding in lint(Subject(Model(graph=Graph())), RULES, strict=True)} >= {"ONJ112", "ONJ116"}


def test_what_constants_compute_is_counted_once() -> None:
    text = (
        "(float[4] x) => (float[4] y) <float[4] w = {1, 2, 3, 4}> {a = Neg(w) b = Neg(w) c = Add(x, a) y = Add(c, b)}"
    )
    rules = [each for each in RULES if each.code in ("ONJ107", "ONJ110")]
    assert [each.code for each in lint(Subject(parsed(f"g {text}")), rules)] == ["ONJ107"]


def test_names_that_exporters_invent_are_off() -> None:
    assert {each.code for each in RULES if each.level == "off"} >= {"ONJ401", "ONJ403"}
