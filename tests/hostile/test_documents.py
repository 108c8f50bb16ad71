"""Broken documents: one clear error each, with a place, the right exit code, and nothing else."""

import json
from pathlib import Path

import pytest
from onnx import ModelProto

import onnxjson
from onnxjson.model.errors import DecodeError, Finding, LimitError, OnnxJsonError
from tests.hostile.documents import BASE, CATEGORIES, BrokenDocument, documents


def wrong_outcome(document: BrokenDocument) -> str | None:
    """What is wrong with how `loads` takes a broken document; None if it is refused as it should be."""
    try:
        onnxjson.loads(document.text)
    except OnnxJsonError as error:
        if error.exit_code != 65 or not isinstance(error, DecodeError):
            return f"{type(error).__name__}, exit code {error.exit_code}: {error}"
        if not placed(error.findings, document.text):
            return f"no finding with a place inside of the document: {error} {error.findings}"
        if not str(error).strip() or any(unprintable in str(error) for unprintable in "\x00\x1b\u202e"):
            return f"unclear: {error!r}"
        if len(str(error)) > 20_000:
            return f"a message of {len(str(error)):,} characters"
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:300]
    else:
        return "it loads"
    return None


def placed(findings: tuple[Finding, ...], text: bytes) -> bool:
    """Whether there are findings, all of them errors with a message and a place that the document has."""
    lines = text.count(b"\n") + 1
    return bool(findings) and all(
        one.severity == "error" and one.code and one.message and 1 <= one.line <= lines and one.column >= 1
        for one in findings
    )


def test_the_document_that_is_broken_below_is_valid() -> None:
    model = onnxjson.loads(BASE)
    assert isinstance(onnxjson.to_proto(model), ModelProto)
    assert onnxjson.loads(json.dumps(json.loads(BASE))) == model


def test_there_are_at_least_300_broken_documents() -> None:
    every = [document for category in CATEGORIES for document in documents(category)]
    assert len(every) >= 300
    assert len({document.name for category in CATEGORIES for document in documents(category)}) >= 300
    assert all(documents(category) for category in CATEGORIES)


@pytest.mark.parametrize("category", CATEGORIES)
def test_broken_documents_are_refused_by_name_and_place(category: str) -> None:
    wrong = [(document.name, outcome) for document in documents(category) if (outcome := wrong_outcome(document))]
    assert wrong == []


def test_the_deepest_document_that_is_allowed_loads_and_one_level_more_does_not() -> None:
    def nested(levels: int) -> str:
        return '{"format": "onnxjson/1", "graph": {"input": ' + "[" * levels + "]" * levels + "}}"

    with pytest.raises(DecodeError, match=r"^(?!.*nest deeper)"):
        onnxjson.loads(nested(254))  # 256 levels in all: the depth is fine, lists of lists are not
    with pytest.raises(DecodeError, match="nest deeper than 256 levels"):
        onnxjson.loads(nested(255))


def test_graphs_nest_as_deep_as_protobuf_reads_and_no_deeper() -> None:
    def nested(levels: int) -> str:
        graph = '{"name": "g"}'
        for _ in range(levels):
            graph = f'{{"node": [{{"attribute": {{"body": {{"GRAPH": {graph}}}}}}}]}}'
        return f'{{"format": "onnxjson/1", "graph": {graph}}}'

    deepest = 33  # three messages a graph, 100 in all
    assert ModelProto.FromString(onnxjson.to_proto(onnxjson.loads(nested(deepest))).SerializeToString()).graph.node
    with pytest.raises(LimitError):
        onnxjson.to_proto(onnxjson.loads(nested(deepest + 1)))


def test_types_nest_as_deep_as_protobuf_reads_and_no_deeper() -> None:
    deepest = 0
    for levels in range(20, 80):
        text = "seq(" * levels + "float32" + ")" * levels
        try:
            model = onnxjson.loads(f'{{"format": "onnxjson/1", "graph": {{"input": [{{"type": "{text}"}}]}}}}')
            serialised = onnxjson.to_proto(model).SerializeToString()
        except OnnxJsonError:
            break
        deepest = levels
        ModelProto.FromString(serialised)
    assert deepest == 48  # two messages a sequence, 100 in all


def test_all_mistakes_of_a_document_are_found_in_one_run() -> None:
    text = (
        BASE.replace('"ir_version": 10', '"ir_version": "x"')
        .replace('"transB": 1', '"transB": 1.5')
        .replace('"num_devices": 2', '"num": 2')
    )
    with pytest.raises(DecodeError) as caught:
        onnxjson.loads(text)
    found = {finding.line: finding for finding in caught.value.findings}
    lines = text.split("\n")
    for part in ('"ir_version": "x"', '"transB": 1.5', '"num": 2'):
        (number,) = [index + 1 for index, line in enumerate(lines) if part in line]
        assert number in found
    assert '"num_devices"' in str(caught.value) or any("num_devices" in str(one) for one in caught.value.findings)


@pytest.mark.parametrize(
    ("before", "line"),
    [(b"model:\n", 1), (b"```json\n", 1), (b"\n  model = ", 2), (b"x", 1), (b'"digits"\n', 1), (b"\xef\xbb\xbfx", 1)],
)
def test_what_stands_before_a_document_is_found_there_in_its_file(before: bytes, line: int, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx.json"
    path.write_bytes(before + BASE.encode())
    with pytest.raises(DecodeError) as caught:
        onnxjson.load(path)
    codes = {finding.code: finding for finding in caught.value.findings}
    assert codes.keys() - {"byte-order-mark"} == {"text-before-start"}
    assert codes["text-before-start"].line == line


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "utf-16", "utf-32"])
def test_a_document_in_a_wide_encoding_has_one_finding_that_names_it(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx.json"
    path.write_bytes(BASE.encode(encoding))
    with pytest.raises(DecodeError) as caught:
        onnxjson.load(path)
    assert [finding.code for finding in caught.value.findings] == ["not-utf-8"]
    assert caught.value.findings[0].message == f"the text is {encoding[:6].upper()}"
