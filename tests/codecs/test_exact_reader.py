"""Any spelling of a document is read, and what is wrong with it named, in the order of the text."""

import base64
import sys

import pytest

from onnxjson.codecs.reading.exact_reader import is_proto_json, read
from onnxjson.codecs.reading.model import looks_like_proto_json
from onnxjson.codecs.text_file import read_bytes
from onnxjson.model import document as d
from onnxjson.model.errors import DecodeError
from tests.codecs.documents import DOCUMENT, codes, model, node


def test_a_key_that_stands_is_a_field_that_is_present() -> None:
    assert model() == d.Model()
    assert model(domain="", graph={}) == d.Model(domain="", graph=d.Graph())
    assert model(graph={"node": [], "name": ""}).graph == d.Graph(name="")


def test_the_order_of_keys_means_nothing_and_white_space_neither() -> None:
    text = b'\r\n{"graph"\t: {"name" :"g"},\n\n"ir_version":8 , "format": "onnxjson/1"}  '
    assert read(text)[0] == d.Model(ir_version=8, graph=d.Graph(name="g"))


@pytest.mark.parametrize("spelled", ["8", "8.0", "8e0", "80e-1", '"8"'])
def test_an_integer_may_be_spelled_in_any_way(spelled: str) -> None:
    assert read(f'{{"format": "onnxjson/1", "ir_version": {spelled}}}'.encode())[0].ir_version == 8


@pytest.mark.parametrize(
    ("spelled", "code"),
    [
        ("8.5", "wrong-type"), ("true", "wrong-type"), ("null", "wrong-type"), ("[8]", "wrong-type"),
        ('"8.0"', "wrong-type"), ('" 8"', "wrong-type"), ("9223372036854775808", "out-of-range"),
        ('"-9223372036854775809"', "out-of-range"), ("1e16", "bad-number"), ("-0", "minus-zero"),
    ],
)  # fmt: skip
def test_what_is_no_integer_is_refused(spelled: str, code: str) -> None:
    with pytest.raises(DecodeError) as caught:
        read(f'{{"format": "onnxjson/1", "ir_version": {spelled}}}'.encode())
    assert [finding.code for finding in caught.value.findings] == [code]


def test_integers_of_64_bits_are_exact() -> None:
    assert model(ir_version=2**63 - 1).ir_version == 2**63 - 1
    assert model(ir_version=str(-(2**63))).ir_version == -(2**63)


def test_comments_and_trailing_commas_are_read() -> None:
    text = b'{ // a comment\n"format": "onnxjson/1",\n"ir_version": 8, // "ir_version": 9,\n}'
    assert read(text)[0] == d.Model(ir_version=8)


def test_strings_outside_utf8_stand_as_base64() -> None:
    bad = base64.b64encode(b"a\xff").decode()
    assert model(producer_name={"base64": bad}).producer_name == "a\udcff"
    assert node(op_type="X", attribute={"s": {"STRING": {"base64": bad}}}).attribute[0].s == b"a\xff"
    assert codes(producer_name={"base64": "a"}) == ["bad-base64"]
    assert codes(producer_name={"base46": "YQ=="}) == ["wrong-type"]


def test_lines_are_a_string_and_a_string_may_hold_lines() -> None:
    assert model(doc_string=["a", "", "b"]).doc_string == "a\n\nb" == model(doc_string="a\n\nb").doc_string
    assert model(metadata_props={"k": ["a", "b"]}).metadata_props == (d.StringStringEntry("k", "a\nb"),)
    assert codes(doc_string=["a", 1]) == ["wrong-type"]
    assert codes(producer_name=["a"]) == ["wrong-type"]


def test_only_a_document_of_this_format_is_read() -> None:
    for text, code in {
        b"{}": "no-format",
        b"[]": "wrong-type",
        b"7": "wrong-type",
        b'{"format": 1}': "wrong-type",
        b'{"format": "onnxjson/2", "graph": 1}': "other-format",
        b'{"format": "onnxjson/1", "weights": "inline"}': "wrong-type",
        b'{"format": "onnxjson/1", "blobs": ""}': "bad-blobs",
    }.items():
        with pytest.raises(DecodeError) as caught:
            read(text)
        assert [finding.code for finding in caught.value.findings] == [code]


def test_proto_json_is_told_apart() -> None:
    assert looks_like_proto_json({"irVersion": "8", "graph": {}})
    assert looks_like_proto_json({"ir_version": 8, "graph": {}})
    assert not looks_like_proto_json({"format": "x", "ir_version": 8, "graph": {}})
    assert looks_like_proto_json({"graph": {}})
    assert looks_like_proto_json({"graph": {"name": "g", "valueInfo": [], "sparse_initializer": []}})
    assert not looks_like_proto_json({"graph": {"nodes": []}})
    assert not looks_like_proto_json({"graph": []})
    assert not looks_like_proto_json({"name": "g"})
    assert not looks_like_proto_json([])
    assert looks_like_proto_json(
        {
            "ir_version": "8",
            "opset_import": [{"domain": "", "version": "17"}],
            "graph": {
                "input": [{"name": "x", "type": {"tensor_type": {"elem_type": 1}}}],
                "initializer": [{"name": "w", "data_type": 1}],
                "node": [{"op_type": "A", "attribute": [{"name": "k", "type": "INT"}]}, "no node"],
            },
        }
    )
    assert is_proto_json(b'{"irVersion": "8", "graph": {}, }')
    assert not is_proto_json(DOCUMENT)
    assert not is_proto_json(b"")


@pytest.mark.parametrize(
    "keys",
    [
        {"opset_import": {"": 17}, "graph": {}},
        {"graph": {"element_metadata": []}},
        {"graph": {"input": [{"name": "x", "type": "float32[N]"}]}},
        {"graph": {"value_info": [{"name": "x", "type": "float32[N]"}]}},
        {"graph": {"initializer": [{"name": "w", "type": "float32[1]", "values": [1.0]}]}},
        {"graph": {"node": [{"op_type": "Gemm", "attribute": {"alpha": 0.5}}]}},
    ],
)
def test_a_document_without_its_line_format_is_no_proto_json(keys: dict[str, object]) -> None:
    assert not looks_like_proto_json({"ir_version": 8, **keys})
    assert not looks_like_proto_json(keys)


def test_a_lost_line_format_is_the_only_finding() -> None:
    with pytest.raises(DecodeError) as caught:
        read_bytes(DOCUMENT.replace(b'"format": "onnxjson/1",\n', b""), file="m.json")
    assert [(finding.code, finding.line, finding.column) for finding in caught.value.findings] == [("no-format", 1, 1)]


def test_findings_come_in_the_order_of_the_text_with_a_summary() -> None:
    text = b'{\n"format": "onnxjson/1",\n"ir_versoin": 8,\n"domain": 7,\n"graph": {"name": NaN}\n}'
    with pytest.raises(DecodeError) as caught:
        read(text, file="m.json")
    assert [(finding.line, finding.column, finding.code) for finding in caught.value.findings] == [
        (3, 1, "unknown-key"),
        (4, 11, "wrong-type"),
        (5, 19, "nan-literal"),
    ]
    assert str(caught.value) == (
        'm.json:3:1: the document has no key "ir_versoin"; did you mean "ir_version"? (and 2 more)'
    )


def test_a_finding_about_a_text_points_into_it() -> None:
    text = '{"format": "onnxjson/1", "graph": {"input": [{"type": "\\u0066loat32[\\u00e9]"}]}}'
    with pytest.raises(DecodeError) as caught:
        read(text.encode())
    assert caught.value.findings[0].column == text.index("\\u00e9") + 1


def test_messages_are_safe_to_print() -> None:
    with pytest.raises(DecodeError) as caught:
        read(b'{"format": "onnxjson/1", "\\u001b[31m\\u202e": 1, "domain": [], "graph": {"\\n": 1}}')
    assert len(caught.value.findings) == 3
    for finding in caught.value.findings:
        assert str(finding).isprintable()


def nested(levels: int) -> bytes:
    """A document whose deepest object is `levels` deep."""
    text, depth = '{"elem_type": "float32"}', 1
    while depth < levels - 5:
        key = "sequence_type" if depth % 2 else "elem_type"
        text, depth = f'{{"{key}": {text}}}', depth + 1
    key = "sequence_type" if depth % 2 else "elem_type"
    assert key == "sequence_type"
    return f'{{"format": "onnxjson/1", "graph": {{"input": [{{"type": {{"{key}": {text}}}}}]}}}}'.encode()


def nested_graphs(count: int) -> bytes:
    """Graphs inside each other; each takes five levels."""
    text = "{}"
    for _ in range(count):
        text = f'{{"node": [{{"op_type": "A", "attribute": {{"g": {{"GRAPH": {text}}}}}}}]}}'
    return f'{{"format": "onnxjson/1", "graph": {text}}}'.encode()


def test_256_levels_are_read_and_one_more_is_refused() -> None:
    found = read(nested(256))[0]
    assert found.graph is not None
    with pytest.raises(DecodeError) as caught:
        read(nested(258))
    assert [finding.code for finding in caught.value.findings] == ["nesting-too-deep"]
    assert read(nested_graphs(50))[0].graph is not None


def test_a_stack_that_is_nearly_full_is_an_error_like_any_other() -> None:
    def call(depth: int) -> None:
        if depth:
            call(depth - 1)
        else:
            read(nested_graphs(40))

    with pytest.raises(DecodeError, match="nest"):
        call(sys.getrecursionlimit() - 200)


def test_messages_are_called_by_their_name_with_the_right_article() -> None:
    with pytest.raises(DecodeError, match="an object \\(an OperatorSetId\\)"):
        model(opset_import=[7])
    with pytest.raises(DecodeError, match="an object \\(a DeviceConfiguration\\)"):
        model(configuration=[7])
