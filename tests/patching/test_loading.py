"""Texts that are no patch: every reason, each with its line and column."""

import json
from pathlib import Path
from random import Random

import pytest

from onnxjson.model import document as d
from onnxjson.model.errors import DecodeError, OnnxJsonError, PatchError
from onnxjson.patching.patch import Patch
from tests.generation.messages import generate
from tests.laws.test_patches import model_of
from tests.patching.mutating import mutated
from tests.patching.test_deriving import attributes_of, number

FORMAT = '{"format": "onnxjson-patch/1", '


def mistakes(text: str | bytes) -> list[str]:
    """What is wrong with a text: ``line:column code: sentence``."""
    with pytest.raises(DecodeError) as caught:
        Patch.loads(text)
    return [
        f"{each.line}:{each.column} {each.code}: {each.message}" + (f"; {each.hint}" if each.hint else "")
        for each in caught.value.findings
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "1:1 empty-text: "),
        ("[]", '1:1 wrong-type: found an empty list, expected a patch, {"format": "onnxjson-patch/1", ...}'),
        ("{}", '1:1 no-format: the key "format" is missing; add the line "format": "onnxjson-patch/1",'),
        (
            '{"format": "onnxjson-patch/2"}',
            '1:12 other-format: the format is "onnxjson-patch/2"; this version of onnxjson reads "onnxjson-patch/1"; a',
        ),
        ('{"format": "onnxjson/1"}', '1:12 other-format: the format is "onnxjson/1", expected "onnxjson-patch/1"'),
        ('{"format": 1}', '1:12 wrong-type: found the number 1, expected "onnxjson-patch/1"'),
        (FORMAT + '"operation": []}', '1:32 unknown-key: a patch has no key "operation"; did you mean "operations"?'),
        (FORMAT + '"base": "ABC"}', '1:40 wrong-type: found the string "ABC", expected a sha256, 64 digits'),
        (FORMAT + '"operations": {}}', "1:46 wrong-type: found an object, expected a list of operations"),
        (FORMAT + '"format": 1}', '1:32 duplicate-key: the key "format" appears twice in this object'),
        (FORMAT + '"operations": [}', "1:46 unclosed-bracket: this `[` is not closed before `}`"),
        (FORMAT[:-2] + "}", '1:1 missing-key: the patch has no operations; add "operations": [...]'),
        (FORMAT + '"payloads": {"ab": {"base64": ""}}}', '1:45 bad-payload: "ab" is not a sha256'),
        (FORMAT + '"payloads": {"%s": "YQ=="}}' % ("0" * 64), "1:113 wrong-type: found the string "),
        (
            FORMAT + '"payloads": {"%s": {"base64": "YQ=="}}}' % ("0" * 64),
            "1:113 bad-payload: the sha256 of the payload is ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b98077",
        ),
        (FORMAT + '"payloads": {"%s": {"base64": "YR=="}}}' % ("0" * 64), "1:126 bad-base64: "),
        (
            FORMAT + '"external": [{"location": "a", "size": 3}]}',
            '1:63 unknown-key: an external file has no key "size"',
        ),
        (
            FORMAT + '"external": [{"location": "a", "side": "x"}]}',
            '1:71 wrong-type: found the string "x", expected "base"',
        ),
        (FORMAT + '"external": [{}]}', "1:45 wrong-type: found an object, expected a file such as"),
    ],
)
def test_texts_that_are_no_patch(text: str, says: str) -> None:
    assert any(each.startswith(says) for each in mistakes(text)), mistakes(text)


def of_operations(*operations: str) -> list[str]:
    """What is wrong with a patch of these operations, one a line from the second; without columns."""
    found = mistakes(FORMAT + '"operations": [\n' + ",\n".join(operations) + "\n]}")
    return [f"{each.split(':', 1)[0]}{each[each.index(' ') :]}" for each in found]


SET = '{"set": "/domain", "old": "a", "new": "b"}'
NODES = '{"list": "/graph/node", "sequence": [[0, 3]], "removed": {"4": {}}}'


@pytest.mark.parametrize(
    ("operations", "says"),
    [
        (["3"], '2 wrong-type: found the number 3, expected an operation, {"set": ...} or {"list": ...}'),
        (["{}"], '2 wrong-type: found an object, expected an operation, {"set": ...} or {"list": ...}'),
        (
            ['{"set": "/domain", "list": "/graph/node"}'],
            '2 conflicting-keys: the operation has both "set" and "list"; keep',
        ),
        (['{"set": "/domain", "nwe": "b"}'], '2 unknown-key: an operation "set" has no key "nwe"; did you mean "new"?'),
        (
            ['{"set": "domain", "new": "b"}'],
            '2 bad-address: "domain" is not an address; an address begins with a slash, such as',
        ),
        (
            ['{"set": "", "new": "b"}'],
            "2 bad-address: this is the address of the whole model; the address of a change ends with a field",
        ),
        (
            ['{"set": "/graph/node/0", "new": {}}'],
            "2 bad-address: this is the address of a member of a list; the address of a",
        ),
        (['{"set": "/graph/nodes/0", "new": {}}'], '2 bad-address: Graph has no field "nodes"; did you mean "node"?'),
        (['{"set": "/graph/node/01/name", "new": ""}'], '2 bad-address: "01" is not a position in a list'),
        (['{"set": "/graph/node/-1/name", "new": ""}'], '2 bad-address: "-1" is not a position in a list'),
        (
            ['{"set": "/graph/node/0/input/1", "new": ""}'],
            "2 bad-address: input is a value, so an address cannot go below it",
        ),
        (['{"set": "/domain~", "new": "b"}'], '2 bad-address: "/domain~" has a "~" at character 7'),
        (['{"set": "/domain", "old": "a", "new": "a"}'], "2 bad-change: old and new are equal; leave out a key for"),
        (['{"set": "/domain"}'], "2 bad-change: old and new are equal"),
        (['{"set": "/graph/node", "new": []}'], "2 bad-change: node is a list of records; use the operation"),
        (['{"list": "/domain", "sequence": []}'], "2 bad-change: domain is not a list of records; use the operation"),
        (
            ['{"set": "/graph/node/0/attribute/a/name", "old": "a", "new": "b"}'],
            "2 bad-change: an attribute of a node is addressed by its name, so its name cannot change; remove the",
        ),
        (['{"set": "/domain", "old": 3, "new": null}'], "2 wrong-type: found the number 3, expected a string"),
        (
            ['{"set": "/domain", "old": 3, "new": null}'],
            "2 wrong-type: found null, expected a string; leave out the key of an absent field",
        ),
        (['{"set": "/ir_version", "new": 1.5}'], "2 wrong-type: found the number 1.5, expected an integer"),
        ([SET, SET], "3 bad-change: another operation also changes this field"),
        (
            ['{"set": "/graph", "new": {}}', '{"set": "/graph/name", "new": "g"}'],
            "3 bad-change: another operation changes all of graph",
        ),
        (
            ['{"set": "/graph/name", "new": "g"}', '{"set": "/graph", "new": {}}'],
            "3 bad-change: another operation also changes this field",
        ),
        ([NODES, NODES], "3 bad-change: another operation already sets the sequence of this list"),
        (['{"list": "/graph/node"}'], '2 missing-key: the list has no sequence; add "sequence": [...]'),
        (
            ['{"list": "/graph/node", "sequence": {}}'],
            "2 wrong-type: found an object, expected a list of runs and members such as",
        ),
        (['{"list": "/graph/node", "sequence": [3]}'], "2 wrong-type: found the number 3, expected a run"),
        (['{"list": "/graph/node", "sequence": [[3, 2]]}'], "2 wrong-type: found a list of 2, expected a run"),
        (['{"list": "/graph/node", "sequence": [[0, true]]}'], "2 wrong-type: found a list of 2, expected a run"),
        (
            ['{"list": "/graph/node", "sequence": [[0, 99999999999999999999]]}'],
            "2 wrong-type: found a list of 2, expected a run",
        ),
        (['{"list": "/graph/node", "sequence": [{"add": 3}]}'], "2 wrong-type: found the number 3, expected an object"),
        (
            ['{"list": "/graph/node", "sequence": [[1, 3]]}'],
            "2 bad-change: position 0 is missing; list every position of the",
        ),
        (
            ['{"list": "/graph/node", "sequence": [[0, 3], [3, 4]]}'],
            "2 bad-change: position 3 is listed twice; keep one",
        ),
        (['{"list": "/graph/node", "sequence": [[0, 1]], "removed": {"1": {}}}'], "2 bad-change: position 1 is listed"),
        (
            ['{"list": "/graph/node", "sequence": [[0, 1]], "removed": {"x": {}}}'],
            '2 bad-address: "x" is not a position',
        ),
        (
            ['{"list": "/graph/node", "sequence": [[0, 1]], "removed": []}'],
            "2 wrong-type: found an empty list, expected an object",
        ),
        ([NODES, '{"set": "/graph/node/4/name", "new": "a"}'], "3 bad-change: this member is removed by another"),
        ([NODES, '{"set": "/graph/node/5/name", "new": "a"}'], "3 bad-change: this member is removed by another"),
        (
            [
                '{"list": "/graph/node/0/attribute", "sequence": [], "removed": {"0": {"name": "a"}}}',
                '{"set": "/graph/node/0/attribute/a/i", "new": 1}',
            ],
            "3 bad-change: this member is removed by another",
        ),
        (
            ['{"set": "/graph/initializer/0/raw_data", "new": {"sha256": "ab", "bytes": 3}}'],
            "2 wrong-type: found the string ",
        ),
        (
            ['{"set": "/graph/initializer/0/raw_data", "new": {"sha256": "%s"}}' % ("a" * 64)],
            '2 missing-key: the number of bytes is missing; add "bytes", an integer',
        ),
        (
            ['{"set": "/graph/initializer/0/float_data", "new": {"sha256": "%s", "bytes": 5}}' % ("a" * 64)],
            "2 wrong-length: 5 bytes are not a whole number of elements of 4 bytes",
        ),
        (
            ['{"set": "/graph/initializer/0/int64_data", "new": {"sha256": "%s", "bytes": 5}}' % ("a" * 64)],
            "2 bad-payload: the bytes are not packed numbers",
        ),
        (['{"set": "/graph/unknown_fields", "new": "CgA="}'], "2 bad-unknown-fields: unknown_fields has a field that"),
    ],
)
def test_operations_that_make_no_sense(operations: list[str], says: str) -> None:
    assert any(each.startswith(says) for each in of_operations(*operations)), of_operations(*operations)


def test_all_mistakes_are_found_with_their_places() -> None:
    text = FORMAT + '"operations": [\n  {"set": "/domian", "new": "b"},\n  {"set": "/ir_version", "new": "x"}\n]}'
    assert [each.split(": ")[0] for each in mistakes(text)] == ["2:11 bad-address", "3:33 wrong-type"]


def test_an_address_deeper_than_any_model_is_refused() -> None:
    address = "/graph/node/0/attribute/g" + "/g/node/0/attribute/g" * 100_000 + "/name"
    assert of_operations(json.dumps({"set": address, "new": ""})) == [
        "2 bad-address: the address is deeper than any model can be"
    ]


def test_a_text_that_nests_deeper_than_the_reader_goes_is_refused() -> None:
    assert "nesting-too-deep" in mistakes(FORMAT + '"operations": ' + "[" * 300 + "]" * 300 + "}")[0]


def test_a_long_run_costs_nothing() -> None:
    operation = '{"list": "/graph/node", "sequence": [[5, 4000000000000000000], [0, 4]]}'
    patch = Patch.loads(FORMAT + f'"operations": [{operation}]}}')
    assert patch.where("/graph/node/0") == "/graph/node/3999999999999999996"
    assert not patch.then(patch.invert())
    with pytest.raises(OnnxJsonError, match=r"expected 4,000,000,000,000,000,001 members, found 0"):
        patch.apply(d.Model(graph=d.Graph()))


def test_comments_and_trailing_commas_are_taken() -> None:
    patch = Patch.loads(FORMAT + f'"operations": [ // one\n{SET},\n],}}')
    assert patch == Patch.between(d.Model(domain="a"), d.Model(domain="b"))


def test_a_record_set_to_another_becomes_what_differs() -> None:
    operation = '{"set": "/graph", "old": {"name": "a"}, "new": {"name": "b"}}'
    patch = Patch.loads(FORMAT + f'"operations": [{operation}]}}')
    assert [each.address for each in patch.operations] == ["/graph/name"]


def test_a_sequence_that_changes_nothing_is_nothing() -> None:
    operation = '{"list": "/graph/node", "sequence": [[0, 1], [2, 3]]}'
    assert not Patch.loads(FORMAT + f'"operations": [{operation}]}}')


def test_the_file_is_named_in_what_is_wrong_with_it(tmp_path: Path) -> None:
    path = tmp_path / "change.json"
    path.write_text("{}")
    with pytest.raises(DecodeError, match=r'change\.json:1:1: the key "format" is missing'):
        Patch.load(path)


def spoiled(text: bytes, rng: Random) -> bytes:
    """A text with a few bytes cut out, doubled, exchanged or made random."""
    data = bytearray(text)
    for _ in range(rng.choice((1, 1, 2, 5))):
        start = rng.randrange(len(data))
        stop = min(len(data), start + rng.choice((1, 1, 2, 8, 40)))
        match rng.randrange(5):
            case 0:
                del data[start:stop]
            case 1:
                data[start:start] = data[start:stop]
            case 2:
                data[start] = rng.randrange(256)
            case 3:
                data[start:stop] = rng.choice((b"0", b"1", b"null", b"[]", b"{}", b'"x"', b"-1", b"99", b"/", b'"add"'))
            case _:
                other = rng.randrange(len(data))
                data[start:stop] = data[other : other + stop - start]
        if not data:
            return b""
    return bytes(data)


def read_or_refused(text: bytes) -> Patch | None:
    """The patch of a text; None where it is refused with findings, all with their places."""
    try:
        return Patch.loads(text)
    except DecodeError as error:
        if not error.findings or any(not each.line or not each.column for each in error.findings):
            raise AssertionError(f"a finding without a place: {error}") from error
        return None


@pytest.mark.parametrize("first", range(0, 600, 200))
def test_spoiled_patches_are_refused_or_work(first: int) -> None:
    """Whatever a text says: it is refused with findings, or it is a patch that can do all that patches do."""
    taken = 0
    for seed in range(first, first + 200):
        rng = Random(seed)
        base = model_of(generate(seed, 60))
        text = Patch.between(base, mutated(base, rng, 4)).dumps().encode()
        for _ in range(12):
            patch = read_or_refused(spoiled(text, rng))
            if patch is None:
                continue
            taken += 1
            assert patch.invert().invert() == patch, seed
            assert Patch.loads(patch.dumps()) == patch, seed
            assert not patch.then(patch.invert()), seed
            try:
                changed = patch.apply(base)
            except OnnxJsonError:
                continue
            assert patch.invert().apply(changed) == base, seed
    assert taken > 20


def result_of(patches: tuple[Patch, ...], model: d.Model) -> d.Model | None:
    """The model after patches, one after the other; None where one does not fit."""
    try:
        for patch in patches:
            model = patch.apply(model)
    except PatchError:
        return None
    return model


def composed(first: Patch, second: Patch) -> Patch | None:
    """Both as one; None where they do not follow each other."""
    try:
        return first.then(second)
    except PatchError:
        return None


@pytest.mark.parametrize("first", range(0, 600, 200))
def test_two_patches_are_one_wherever_one_follows_the_other(first: int) -> None:
    """Spoiled ones too. One patch asks less than two only of what the second takes back."""
    refused = fitting = lenient = 0
    for seed in range(first, first + 200):
        rng = Random(seed)
        base = model_of(generate(seed, 60))
        middle = mutated(base, rng, 4)
        texts = [Patch.between(base, middle).dumps(), Patch.between(middle, mutated(middle, rng, 4)).dumps()]
        for _ in range(12):
            which = rng.randrange(2)
            patches = [
                read_or_refused(spoiled(text.encode(), rng) if i == which else text.encode())
                for i, text in enumerate(texts)
            ]
            one, two = patches
            if one is None or two is None:
                continue
            expected = result_of((one, two), base)
            both = composed(one, two)
            result = None if both is None else result_of((both,), base)
            assert expected in (None, result), seed
            lenient += result != expected
            if both is not None:
                assert both.invert().invert() == both, seed
                assert Patch.loads(both.dumps()) == both, seed
            fitting += expected is not None
            refused += expected is None
    assert fitting > 20
    assert refused > 20
    assert lenient <= refused // 50


def test_attribute_positions_are_read_as_such() -> None:
    base = attributes_of(number(None, 1), number("b", 2))
    patch = Patch.between(base, attributes_of(number(None, 3), number("b", 2)))
    assert patch.operations[0].address == "/graph/node/0/attribute/#0/i"
    assert Patch.loads(patch.dumps()) == patch
