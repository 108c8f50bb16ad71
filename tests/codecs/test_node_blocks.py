"""``onnxjson.codecs.node_blocks``."""

from pathlib import Path

import msgspec
import pytest

from onnxjson.codecs import node_blocks
from onnxjson.diffing.unified import digest_text
from onnxjson.model import addresses
from onnxjson.model.document import Model, Node, StringStringEntry
from onnxjson.model.errors import AddressError, DecodeError
from onnxjson.storage import api

MODELS = Path(__file__).parent.parent / "models"
INNER = "/graph/node/4/attribute/body/g/node/0"


def nodes_of(model: Model) -> list[str]:
    """The addresses of all nodes, those of subgraphs and functions included."""
    return [address for address, record in addresses.walk(model) if isinstance(record, Node)]


@pytest.fixture(scope="module")
def branches() -> Model:
    """A model with nodes inside of nodes."""
    return api.load(MODELS / "branches_ts.onnx")


@pytest.mark.parametrize("name", ["branches_ts.onnx", "encoder_dynamo.onnx", "mobile_ts.onnx"])
def test_blocks_that_nobody_changed_give_the_same_model(name: str) -> None:
    model = api.load(MODELS / name)
    every = nodes_of(model)
    for chosen in (every, every[::3], every[-1:]):
        chosen_addresses = node_blocks.outermost(chosen)
        text = node_blocks.write_blocks(model, chosen_addresses, "some nodes")
        back = node_blocks.put_back(model, node_blocks.read_blocks(text, chosen_addresses))
        assert digest_text(back.model) == digest_text(model)


def test_every_node_can_be_chosen_by_itself_however_deep(branches: Model) -> None:
    inner = [address for address in nodes_of(branches) if address.count("/node/") > 1]
    assert inner
    for address in inner:
        text = node_blocks.write_blocks(branches, (address,), "")
        text = text.replace(b'"name": "', b'"name": "new ')
        ((block,),) = node_blocks.read_blocks(text, (address,)).values()
        back = node_blocks.put_back(branches, {address: [block]})
        expected = addresses.resolve(branches, address)
        element = addresses.resolve(back.model, address)
        assert isinstance(expected, Node)
        assert isinstance(element, Node)
        assert element.name == f"new {expected.name}"
        assert len(nodes_of(back.model)) == len(nodes_of(branches))
        assert back.places == {address: (address,)}


def test_node_inside_a_chosen_node_has_no_block_of_its_own() -> None:
    assert node_blocks.outermost(["/graph/node/4", INNER, "/graph/node/40", INNER]) == (
        "/graph/node/4",
        "/graph/node/40",
    )
    assert node_blocks.outermost([INNER, "/graph/node/40"]) == (INNER, "/graph/node/40")


def test_nodes_that_follow_each_other_share_a_block() -> None:
    start = "/graph/node/4/attribute/body/g/node"
    assert node_blocks.block_addresses([f"/graph/node/{each}" for each in (10, 2, 3, 1, 7, 9)]) == (
        "/graph/node/1-3",
        "/graph/node/7",
        "/graph/node/9-10",
    )
    mixed = (f"{start}/1", "/graph/node/5", f"{start}/0", "/graph/node/6")
    blocks = node_blocks.block_addresses(mixed)
    assert blocks == (f"{start}/0-1", "/graph/node/5-6")
    assert node_blocks.block_addresses(blocks) == blocks
    assert node_blocks.block_addresses([*mixed, "/graph/node/4"]) == ("/graph/node/4-6",)


@pytest.mark.parametrize("name", ["branches_ts.onnx", "encoder_dynamo.onnx", "mobile_ts.onnx"])
def test_ranges_that_nobody_changed_give_the_same_model(name: str) -> None:
    model = api.load(MODELS / name)
    every = nodes_of(model)
    inner = [each for each in every if each.count("/node/") > 1]
    for chosen in (every, every[::3], [*every[2:5], *every[6:9]], inner):
        blocks = node_blocks.block_addresses(chosen)
        assert all(map(node_blocks.is_range, blocks)) or chosen is not every
        text = node_blocks.write_blocks(model, blocks, "some nodes")
        back = node_blocks.put_back(model, node_blocks.read_blocks(text, blocks))
        assert digest_text(back.model) == digest_text(model)


def test_a_range_is_replaced_as_a_whole_and_knows_its_places() -> None:
    model = api.load(MODELS / "mobile_ts.onnx")
    (block,) = blocks = node_blocks.block_addresses([f"/graph/node/{each}" for each in (1, 2, 3)])
    text = node_blocks.write_blocks(model, blocks, "")
    (read,) = node_blocks.read_blocks(text, blocks).values()
    before = model.graph.node if model.graph else ()
    assert [each.node for each in read] == list(before[1:4])
    for put_in in ((), read[:1], read[::-1], (*read, *read)):
        back = node_blocks.put_back(model, {block: put_in})
        assert back.model.graph is not None
        assert list(back.model.graph.node) == [before[0], *[each.node for each in put_in], *before[4:]]
        assert back.places == {f"/graph/node/{1 + at}": each.path for at, each in enumerate(put_in)}
    place = node_blocks.put_back(model, {block: read}).locate(text, ["/graph/node/2/op_type"])
    line, column = place["/graph/node/2/op_type"]
    assert text.decode().splitlines()[line - 1][column - 1 :].startswith(f'"{before[2].op_type}"')


def test_a_range_that_ends_behind_the_last_node_is_refused(branches: Model) -> None:
    assert branches.graph is not None
    with pytest.raises(AddressError):
        node_blocks.put_back(branches, {f"/graph/node/0-{len(branches.graph.node)}": ()})


def test_places_are_addresses_of_the_new_model(branches: Model) -> None:
    chosen = ("/graph/node/0", "/graph/node/1")
    text = node_blocks.write_blocks(branches, chosen, "")
    blocks = node_blocks.read_blocks(text, chosen)
    ((first,), (second,)) = blocks.values()
    two = {"/graph/node/0": [first, first._replace(path=("twice",))], "/graph/node/1": [second]}
    back = node_blocks.put_back(branches, two)
    assert back.places == {
        "/graph/node/0": ("/graph/node/0",),
        "/graph/node/1": ("twice",),
        "/graph/node/2": ("/graph/node/1",),
    }
    back = node_blocks.put_back(branches, {"/graph/node/0": [], "/graph/node/1": [second]})
    assert back.places == {"/graph/node/0": ("/graph/node/1",)}


def test_address_is_located_in_its_block(branches: Model) -> None:
    chosen = ("/graph/node/0", "/graph/node/1")
    text = node_blocks.write_blocks(branches, chosen, "")
    back = node_blocks.put_back(branches, node_blocks.read_blocks(text, chosen))
    found = back.locate(text, ["/graph/node/1/output/0", "/graph/node/7"])
    (line, column) = found.pop("/graph/node/1/output/0")
    assert not found
    lines = text.decode().splitlines()
    assert lines[line - 2] == '"/graph/node/1":'
    assert lines[line - 1][column - 2] == "["


def test_metadata_of_a_node_stands_in_its_block() -> None:
    model = api.load(MODELS / "encoder_dynamo.onnx")
    address = next(a for a, r in addresses.walk(model) if isinstance(r, Node) and r.metadata_props)
    text = node_blocks.write_blocks(model, (address,), "")
    assert b'"metadata_props": {' in text
    ((block,),) = node_blocks.read_blocks(text, (address,)).values()
    assert block.node == addresses.resolve(model, address)
    changed = msgspec.structs.replace(block.node, metadata_props=(StringStringEntry("k", "v"),))
    back = node_blocks.put_back(model, {address: [block._replace(node=changed)]})
    found = addresses.resolve(back.model, address)
    assert isinstance(found, Node)
    assert found.metadata_props == (StringStringEntry("k", "v"),)
    assert b'"k", "v"' in digest_text(back.model)


def test_remark_cannot_leave_its_line(branches: Model) -> None:
    text = node_blocks.write_blocks(branches, ("/graph/node/0",), 'm\n{"evil": 1}\x1b[2J')
    assert text.splitlines()[0] == b'// m\\u{a}{"evil": 1}\\u{1b}[2J'
    node_blocks.read_blocks(text, ("/graph/node/0",))


HEAD = '{"format": "onnxjson-nodes/1", '


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[]", [(1, 1, "wrong-type")]),
        ("{}", [(1, 1, "no-format")]),
        ('{"format": "onnxjson/1"}', [(1, 12, "other-format")]),
        ("", [(1, 1, "empty-text")]),
        (HEAD + '"/graph/node/1": {}}', [(1, 32, "unknown-key")]),
        (HEAD + '"/graph/node/0": 1}', [(1, 49, "wrong-type")]),
        (HEAD + '"/graph/node/0": [{"op": 1}, 2]}', [(1, 51, "unknown-key"), (1, 61, "wrong-type")]),
        (HEAD + '"/graph/node/0": {"name": "a" "b": 1}}', None),
    ],
)
def test_mistakes_have_their_places(text: str, says: list[tuple[int, int, str]] | None) -> None:
    with pytest.raises(DecodeError) as caught:
        node_blocks.read_blocks(text.encode(), ("/graph/node/0",), file="x")
    found = [(finding.line, finding.column, finding.code) for finding in caught.value.findings]
    assert found
    assert says is None or found == says


def test_deep_nesting_is_a_finding_and_no_crash() -> None:
    text = HEAD + '"/graph/node/0": ' + '{"attribute": {"a": {"GRAPH": {"node": [' * 60 + "]}}}}" * 60 + "}"
    with pytest.raises(DecodeError):
        node_blocks.read_blocks(text.encode(), ("/graph/node/0",))
