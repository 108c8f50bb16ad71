"""No real model is accused of a wrong use of operators, and what onnx refuses is found."""

import onnx
import pytest

from onnxjson.codecs.serde import parse
from onnxjson.model.operator_checks import check_operators
from tests.corpus.collection import CorpusModel, file_models, node_models

EIGHTHS = 8


def _messages(data: bytes) -> list[str]:
    return [f"{each.address}: {each.message}" for each in check_operators(parse(data).model)]


def _accuse(models: list[CorpusModel]) -> dict[str, list[str]]:
    return {each.name: wrong for each in models if (wrong := _messages(each.data))}


def test_some_models_of_onnx_have_no_mistakes() -> None:
    assert _accuse([*node_models()[:: 5 * EIGHTHS], *file_models()[::EIGHTHS]]) == {}


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(EIGHTHS))
def test_no_model_of_onnx_has_mistakes(part: int) -> None:
    assert _accuse([*node_models(), *file_models()][part::EIGHTHS]) == {}


def test_what_onnx_refuses_is_found() -> None:
    """Every way to spoil a node that onnx's checker refuses is a finding here too."""
    missed = []
    for case in node_models()[3::150]:
        proto = onnx.ModelProto.FromString(case.data)
        node = proto.graph.node[0]
        if node.domain or proto.functions:
            continue
        for spoil in ("name", "inputs", "outputs", "attribute"):
            other = onnx.ModelProto()
            other.CopyFrom(proto)
            changed = other.graph.node[0]
            match spoil:
                case "name":
                    changed.op_type += "x"
                case "inputs":
                    changed.input.extend([changed.input[0] if changed.input else "none"] * 20)
                case "outputs":
                    changed.output.extend([f"more{number}" for number in range(20)])
                case _:
                    changed.attribute.append(onnx.helper.make_attribute("no_such", 1))
            try:
                onnx.checker.check_model(other)
            except onnx.checker.ValidationError:
                if not _messages(other.SerializeToString()):
                    missed.append((case.name, spoil))
    assert missed == []
