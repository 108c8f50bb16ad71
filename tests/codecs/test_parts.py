"""Texts that are read in parts: models and findings are those of the exact reader."""

import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from onnxjson.codecs.canonical_writer import write_text
from onnxjson.codecs.reading import exact_reader, parts
from onnxjson.model.document import Graph, Model, Node, Tensor, ValueInfo
from onnxjson.model.errors import DecodeError, Finding
from onnxjson.model.payloads import Payload
from onnxjson.storage import files
from tests.codecs.test_broken_documents import mutated

MODELS = Path(__file__).parents[1] / "models"
NO_CUTS: Mapping[str, Payload] = {}


@pytest.fixture(autouse=True)
def small_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "_FROM", 0)
    monkeypatch.setattr(parts, "_RUN", 7)


def text_of(model: Model) -> bytes:
    pieces: list[bytes] = []
    write_text(model, pieces.append)
    return b"".join(pieces)


def in_parts(text: bytes) -> tuple[Model | None, tuple[Finding, ...]]:
    try:
        return parts.read(text, file="m", drop_orphans=False, cuts=NO_CUTS, conflicts=[])
    except DecodeError as error:
        return None, error.findings


def exactly(text: bytes) -> tuple[Model | None, tuple[Finding, ...]]:
    try:
        return exact_reader.read(text, file="m")
    except DecodeError as error:
        return None, error.findings


@pytest.mark.parametrize("name", ["branches_ts", "mobile_dynamo"])
def test_models_and_findings_are_those_of_the_exact_reader(name: str) -> None:
    text = text_of(files.load(MODELS / f"{name}.onnx").model)
    rng = random.Random(name)
    for _ in range(12):
        broken = mutated(text, rng)
        assert in_parts(broken) == exactly(broken)


def test_a_run_stays_in_its_place() -> None:
    nodes = tuple(Node(("x",), (f"y{at}",), f"n{at}", "Relu") for at in range(30))
    weights = tuple(Tensor((2,), 1, name=f"w{at}", raw_data=bytes(8)) for at in range(20))
    model = Model(graph=Graph(nodes, "g", weights, input=(ValueInfo("x"), ValueInfo("z"))), ir_version=8)
    text = text_of(model).replace(b'"op_type": "Relu", "output": ["y9"]', b'"op_type":"Relu", "output": ["y9"]')
    text = text.replace(b'"name": "w5"', b'"name":  "w5"').replace(b'"name": "z"', b'"name":"z"')
    assert b'"op_type":"Relu"' in text
    assert parts._Parts(text, NO_CUTS).text.count(b'"x"') < 5
    assert in_parts(text) == (model, ())


def test_a_word_of_the_text_is_no_stand_in() -> None:
    nodes = tuple(Node(("x",), (f"@run:{at}",), f"@run:{at}", "@run:0") for at in range(30))
    text = text_of(Model(graph=Graph(nodes, "g"), ir_version=8)) + b"\n"
    assert in_parts(text) == exactly(text)
