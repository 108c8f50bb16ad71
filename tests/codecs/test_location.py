"""Addresses of records lead to the places of the text that say them."""

import json

import pytest

from onnxjson.codecs.reading import exact_reader
from onnxjson.codecs.reading.exact_reader import locate
from tests.codecs.documents import DOCUMENT


@pytest.fixture(autouse=True, params=[0, exact_reader._LONG], ids=["long", "short"])
def long_from(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every text is once as short as it is, and once so long that it is decoded only where an address leads."""
    monkeypatch.setattr(exact_reader, "_LONG", request.param)


def line_of(address: str, text: bytes = DOCUMENT) -> str:
    """What stands at the place of an address, to the end of its line."""
    line, column = locate(text, [address])[address]
    return text.decode().split("\n")[line - 1][column - 1 :]


@pytest.mark.parametrize(
    ("address", "starts"),
    [
        ("", "{"), ("/ir_version", "10,"), ("/graph/name", '"main_graph"'), ("/graph/node/0", '{"op_type": "Gemm"'),
        ("/graph/node/0/input/1", '"weight"'), ("/graph/node/0/attribute/alpha", "0.5"),
        ("/graph/node/0/attribute/alpha/f", "0.5"), ("/graph/node/0/attribute/#1", "1"),
        ("/graph/node/1/attribute/limit/f", "6.0}"),
        ("/graph/node/2/attribute/else_branch/g/node/0/input/0", '"gelu"'),
        ("/graph/node/2/attribute/else_branch/g/output/0", '{"name": "else_y"}'),
        ("/graph/initializer/0/dims/1", '"float32[4,4]"'), ("/graph/initializer/0/raw_data", "["),
        ("/graph/initializer/2/raw_data", '"AQIDBA=="'),
        ("/graph/input/0/type/tensor_type/shape/dim/1", '"float32[N,4]"'),
        ("/graph/node/0/metadata_props/0", '["node", "hidden"'),
        ("/graph/value_info/0/metadata_props/0/value", '["value_info", "hidden"'),
        ("/metadata_props/0", '"a person"'), ("/metadata_props/0/value", '"a person"'),
        ("/opset_import/1/version", "1}"), ("/graph/node/99", "["), ("/functions/0", "{"),
    ],
)  # fmt: skip
def test_the_address_leads_to_its_text(address: str, starts: str) -> None:
    assert line_of(address).startswith(starts)


def test_lists_tags_and_full_forms_are_seen_through() -> None:
    document = {
        "format": "onnxjson/1",
        "metadata_props": [["k", "v"]],
        "graph": {
            "node": [
                {"attribute": [{"name": "a/b", "type": "GRAPH", "g": {"name": "first"}}, {"name": "2", "i": 3}]},
                {"attribute": {"x": {"AttributeProto": {"t": {"dims": [7]}}}, "y": {"GRAPHS": [{"name": "second"}]}}},
            ]
        },
    }
    text = json.dumps(document).encode()
    assert line_of("/graph/node/0/attribute/a~1b/g/name", text).startswith('"first"')
    assert line_of("/graph/node/0/attribute/#1/i", text).startswith("3")
    assert line_of("/graph/node/1/attribute/x/t/dims/0", text).startswith("7")
    assert line_of("/graph/node/1/attribute/y/graphs/0/name", text).startswith('"second"')
    assert line_of("/metadata_props/0/key", text).startswith('"k"')
    assert line_of("/metadata_props/0/value", text).startswith('"v"')


def test_a_broken_text_still_has_places() -> None:
    assert locate(b'{"graph": {"node": [{"op_type": 1', ["/graph/node/0/op_type", "/x"])["/graph/node/0/op_type"] == (
        1,
        33,
    )
    assert locate(b"", ["/graph"]) == {"/graph": (1, 1)}


@pytest.mark.parametrize("beginning", [b"", b" \n", b"// a comment\n"])
def test_strict_and_tolerated_texts_have_the_same_places(beginning: bytes) -> None:
    text = json.dumps(
        {"graph": {"name": "ä", "": 1, "node": [{"op_type": "Añ", "name": 'a"]{'}, {"name": "b"}]}}
    ).encode()
    strict = locate(text, ["/graph/node/1/name", "/graph/node/b", "/graph/name", ""])
    assert strict["/graph/node/1/name"] == (1, text.decode().index('"b"') + 1)
    lines, column = beginning.count(b"\n"), len(beginning) - beginning.rfind(b"\n") - 1
    found = locate(beginning + text, strict)
    assert found == {address: (1 + lines, place + column) for address, (_, place) in strict.items()}


def test_an_address_has_the_same_place_after_others() -> None:
    metadata = [["node", "y", {"a": "1"}], ["node", "z", {"b": "2"}]]
    nodes = [{"attribute": [{"name": "k", "s": "text", "t": 1}]}, {"output": ["z"]}]
    text = json.dumps({"graph": {"node": nodes, "element_metadata": metadata}}).encode()
    addresses = [
        "/graph/node/0/attribute/k/t",
        "/graph/node/0/attribute/k/s",
        "/graph/element_metadata/0",
        "/graph/node/1/metadata_props/0",
    ]
    assert locate(text, addresses) == {each: locate(text, [each])[each] for each in addresses}
