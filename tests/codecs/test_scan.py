"""The scanner finds every mistake with its place, and what is around it stays readable."""

import pytest

from onnxjson.codecs.reading.scan import scan
from onnxjson.codecs.reading.tree import Lines, find, inside_string


def found(text: str | bytes) -> list[tuple[int, str]]:
    data = text.encode() if isinstance(text, str) else text
    return [(mistake.offset, mistake.code) for mistake in scan(data).mistakes]


def test_mistakes_on_different_lines_are_all_found() -> None:
    text = '{\n"a": NaN,\n"b": [1 2],\n"a": \'x\',\n"c" 3,\n"d": 01\n}'
    assert [code for _, code in found(text)] == [
        "nan-literal",
        "missing-comma",
        "duplicate-key",
        "wrong-quotes",
        "missing-colon",
        "bad-number",
    ]
    assert scan(text.encode()).is_whole


def test_one_mistake_is_not_followed_by_others_of_its_line() -> None:
    assert found('{"a": "b"c"d"e, "f": 1}') == [(9, "missing-comma")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [(0, "empty-text")]), ("  // only a comment\n", [(20, "empty-text")]), ("[1]]", [(3, "text-after-end")]),
        ("]", [(0, "wrong-bracket")]), ("[}", [(1, "wrong-bracket")]), ('{"a": [1}', [(6, "unclosed-bracket")]),
        ('{"a": [1, "b": 2}', [(6, "unclosed-bracket")]), ('{"a": [1, 2 "b": 2}', [(6, "unclosed-bracket")]),
        ('{"a": [1, "b": [2], "c": [3, "d": 4}', [(6, "unclosed-bracket"), (25, "unclosed-bracket")]),
        ('{"a": ["b": 2]}', [(10, "extra-colon")]), ('[[1, "b": 2]]', [(8, "extra-colon")]),
        ('{"a": [\n  [1,\n  [2]\n]}', [(10, "unclosed-bracket")]), ('{"a": [1}}', [(8, "wrong-bracket")]),
        ('{"a": ["[", "]]"}', [(6, "unclosed-bracket")]), ("[1, 2", [(5, "cut-off")]), ('{"a"', [(4, "cut-off")]),
        ('{"a"}', [(4, "missing-value")]), ('{"a":}', [(5, "missing-value")]), ("{1: 2}", [(1, "missing-key")]),
        ("{[1]}", [(1, "missing-key")]), ("[:]", [(1, "extra-colon")]), ("[1,,2]", [(3, "extra-comma")]),
        ("[$]", [(1, "bad-character")]), ('["abc]', [(1, "unterminated-string")]),
        ('["abc\n"]', [(1, "unterminated-string"), (6, "unterminated-string")]),
        ('["a\x00b"]', [(3, "control-character")]), (r'["\x41"]', [(2, "bad-escape")]),
        (r'["\u12"]', [(2, "bad-escape")]), (r'["\udc00"]', [(1, "half-surrogate")]),
        ("[nan, -Infinity]", [(1, "nan-literal"), (6, "nan-literal")]), ("[True, None]", [(1, "bare-word")]),
        ("[+1]", [(1, "bad-number")]), ("[-0]", [(1, "minus-zero")]), ("[1e400]", [(1, "out-of-range")]),
        ("[/* old */ 1]", [(1, "wrong-comment")]),
        ("<<<<<<< a\n[1]\n=======\n[2]\n>>>>>>> b\n", [(0, "git-conflict")]), (b"[1, \xff]", [(4, "not-utf-8")]),
        (b"\xef\xbb\xbf[1]", [(0, "byte-order-mark")]), ("[1]".encode("utf-16"), [(0, "not-utf-8")]),
    ],
)  # fmt: skip
def test_the_mistake_is_found_at_its_character(text: str | bytes, expected: list[tuple[int, str]]) -> None:
    assert found(text) == expected


def test_the_last_line_of_a_conflict_need_not_end() -> None:
    assert [code for _, code in found("[1,\n<<<<<<< a\n2\n=======\n3\n>>>>>>> b")] == ["git-conflict"]


def test_a_conflict_marker_inside_a_text_is_text() -> None:
    assert found('["<<<<<<< HEAD"]') == []


def test_members_keep_their_places() -> None:
    text = '{"a": [10, {"b": true}],\n "é": "x\\ty\\u00e9z"}'
    scanned = scan(text.encode())
    assert find(scanned.root, ("a", 0)) == text.index("10")
    assert find(scanned.root, ("a", 1, "b")) == text.index("true")
    assert find(scanned.root, ("a", 1, "b"), on_key=True) == text.index('"b"')
    assert find(scanned.root, ("a", 1, "c")) == text.index('{"b"')
    assert find(scanned.root, ()) == 0
    start = find(scanned.root, ("é",))
    assert text[inside_string(text, start, 2)] == "y"
    assert text[inside_string(text, start, 4)] == "z"
    assert text[inside_string(text, start, 99)] == '"'
    assert Lines(text).place(start) == (2, 7)


def test_columns_count_characters() -> None:
    text = '["éé", NaN]'
    assert Lines(text).place(scan(text.encode()).mistakes[0].offset) == (1, 8)


def test_the_first_of_two_keys_is_kept_and_named() -> None:
    scanned = scan(b'{"a": 1, "a": 2}')
    assert scanned.tree == {"a": 1}
    assert scanned.mistakes[0].first == 1


def test_a_bracket_too_many_is_to_be_deleted() -> None:
    (mistake,) = scan(b'{"a": [{"b": 1}}]}').mistakes
    assert (mistake.code, mistake.hint) == ("wrong-bracket", "delete one, here or above")
