"""Columns of text."""

from random import Random

import pytest

from onnxjson.model.display import counted
from onnxjson.rendering.tables import (
    cells,
    columns,
    distinct_texts,
    number,
    shortened,
    shortened_name,
    size,
    table,
    wrapped,
)


@pytest.mark.parametrize("seed", range(50))
def test_no_line_is_wider_than_asked_for(seed: int) -> None:
    numbers = Random(seed)
    rows = [
        ("".join(numbers.choices("abc/界é\x1b", k=numbers.randrange(90))), "x" * numbers.randrange(40), str(place))
        for place in range(9)
    ]
    for line in table(rows, 80, right=(2,)):
        assert cells(line) <= 80
        assert "\x1b" not in line
    for line in columns([(row[0], row[2]) for row in rows], 80):
        assert cells(line) <= 80
    for line in wrapped(" ".join(row[0] for row in rows), 80):
        assert len(line) <= 80


def test_numbers_are_aligned_to_the_right_and_never_cut() -> None:
    lines = table([("a" * 100, "1"), ("b", "1,000,000")], 40, right=(1,))
    assert [line[-9:] for line in lines] == ["        1", "1,000,000"]
    assert {len(line) for line in lines} == {40}


def test_names_are_cut_in_the_middle() -> None:
    assert shortened("/model/layers.0/attention/MatMul", 20) == "/model…ention/MatMul"
    assert shortened("short", 20) == "short"
    assert cells(shortened("界" * 40, 20)) <= 20


def test_columns_are_read_downwards() -> None:
    assert columns([("a", "1"), ("b", "2"), ("c", "3")], 20) == ["  a  1    c  3", "  b  2"]
    assert columns([], 20) == []
    assert table([], 20) == []


def test_text_of_lines_keeps_its_lines() -> None:
    assert wrapped("a\n\n\n  b\x1b\n", 40) == ["  a", "", "    b\\u{1b}"]
    assert wrapped("", 40) == []


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"), (1, "1 byte"), (999, "999 bytes"), (1000, "1.0 kB"), (999_949, "999.9 kB"),
        (999_950, "1.0 MB"), (2_306_867_200, "2.3 GB"), (1 << 63, "9.2 EB"), (1 << 90, "1237940039 EB"),
    ],
)  # fmt: skip
def test_size_for_a_person(count: int, text: str) -> None:
    assert size(count) == text


def test_numbers_for_a_person() -> None:
    assert counted(1, "node") == "1 node"
    assert counted(1234, "node") == "1,234 nodes"
    assert number(1234567) == "1,234,567"
    assert number(0.1234567) == "0.123457"


@pytest.mark.parametrize(
    ("name", "limit", "text"),
    [
        ("/layers.0/attention/Softmax", 27, "/layers.0/attention/Softmax"),
        ("/layers.0/attention/Softmax", 26, "/layers.0…Softmax"),
        ("/layers.0/attention/Softmax", 17, "/layers.0…Softmax"),
        ("/layers.0/attention/Softmax", 16, "/layers.0…oftmax"),
        ("/layers.0/attention/Softmax", 15, "/laye…n/Softmax"),
        ("/m/encoder/layer.4/self/query/MatMul", 35, "…layer.4/self/query/MatMul"),
        ("/m/encoder/layer.4/self/query/MatMul", 25, "…layer.4…query/MatMul"),
        ("/m/encoder/layer.4/self/query/MatMul", 15, "…layer.4…MatMul"),
        ("/m/encoder/layer.4/self/query/MatMul", 9, "/m/…atMul"),
        ("/m/e/layer.4/self/attention/query/MatMul", 27, "/m/e/layer.4…query/MatMul"),
        ("encoder.layers.3.norm.weight", 20, "…layers.3…weight"),
        ("/encoder/norm/LayerNormalization", 25, "…/norm/LayerNormalization"),
        ("/encoder/norm/LayerNormalization", 23, "…/LayerNormalization"),
        ("model.embeddings.norm.bias", 12, "…norm.bias"),
        ("node_layer_norm_21", 12, "node…norm_21"),
        ("/a_name_of_one_part_1", 12, "/a_n…_part_1"),
        ("/层.0/注意力/Softmax", 16, "/层.0…Softmax"),
        ("/层.0/attention/注意力注意力", 15, "/层.0…力注意力"),
    ],
)
def test_a_name_that_is_a_path_is_cut_between_its_parts(name: str, limit: int, text: str) -> None:
    assert shortened_name(name, limit) == text


@pytest.mark.parametrize("seed", range(20))
def test_no_name_is_wider_than_asked_for(seed: int) -> None:
    numbers = Random(seed)
    for _ in range(200):
        name = "".join(numbers.choices("ab01/./.界", k=numbers.randrange(60)))
        limit = numbers.randrange(3, 40)
        found = shortened_name(name, limit)
        assert cells(found) <= limit, (name, limit, found)
        assert found == name or "…" in found


@pytest.mark.parametrize("seed", range(10))
def test_no_two_names_are_cut_to_the_same_text(seed: int) -> None:
    numbers = Random(seed)
    parts = ["m", "encoder", "layer.0", "layer.1", "attention", "self", "output", "norm", "Add", "Add_1", "界面"]
    for _ in range(40):
        names = {"/" + "/".join(numbers.choices(parts, k=numbers.randrange(1, 9))) for _ in range(30)}
        limit = numbers.randrange(10, 40)
        shorten = numbers.choice([shortened, shortened_name])
        with distinct_texts():
            found = [shorten(name, limit) for name in sorted(names)]
            again = [shorten(name, limit) for name in sorted(names)]
        assert len(set(found)) == len(names)
        assert found == again
        assert all(cells(short) <= limit for short in found)


def test_the_part_that_tells_two_names_apart_is_kept() -> None:
    names = [f"/m/encoder/layer.0/{part}/LayerNorm/LayerNormalization" for part in ("attention/output", "output")]
    with distinct_texts():
        assert [shortened_name(name, 33) for name in names] == [
            "…layer.0…LayerNormalization",
            "…layer.0/output…ayerNormalization",
        ]
