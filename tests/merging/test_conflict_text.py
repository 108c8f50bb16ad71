"""``merging.conflict_text``."""

import struct
from pathlib import Path

from msgspec.structs import replace

from onnxjson.git import textconv
from onnxjson.merging.conflict_text import conflict_lines
from onnxjson.merging.conflicted_files import save
from onnxjson.merging.merge import merge
from onnxjson.model.document import Attribute, Graph, Model, Node, Tensor
from tests.merging.models import BASE, both, metadata


def epsilon(value: float) -> Model:
    """Five normalizations with a weight of 400 bytes; all have that epsilon."""
    attribute = Attribute("epsilon", f=struct.pack("<f", value), type=1)
    nodes = [
        Node(("w" if not n else f"v{n}", "w"), (f"v{n + 1}",), f"/layer.{n}/norm", "LayerNormalization", (attribute,))
        for n in range(5)
    ]
    weight = Tensor(dims=(100,), data_type=1, name="w", raw_data=bytes(400))
    return Model(ir_version=8, graph=Graph(name="g", node=tuple(nodes), initializer=(weight,)))


def lines_of(base: Model, ours: Model, theirs: Model) -> list[str]:
    merged = merge(base, ours, theirs)
    return list(conflict_lines(merged.model, merged.conflicts))


def test_equal_conflicts_are_one_line_with_the_first_nodes() -> None:
    places = [f"/layer.{number}/norm @/graph/node/{number}/attribute/epsilon" for number in range(3)]
    assert lines_of(epsilon(1e-12), epsilon(1e-4), epsilon(1e-5)) == [
        "  1, 2, 3, 4, 5  5x LayerNormalization.epsilon 1e-12: ours 0.0001, theirs 1e-05",
        f"       {', '.join(places)} and 2 more",
    ]


def test_a_node_that_one_side_removed_says_what_the_other_changed() -> None:
    base, theirs = epsilon(1e-12), epsilon(1e-5)
    assert base.graph is not None
    assert theirs.graph is not None
    ours = replace(base, graph=replace(base.graph, node=base.graph.node[:4]))
    theirs = replace(base, graph=replace(base.graph, node=(*base.graph.node[:4], theirs.graph.node[4])))
    assert lines_of(base, ours, theirs) == [
        "  1  node LayerNormalization: ours removed, theirs changed epsilon to 1e-05",
        "       /layer.4/norm @/graph/node/4",
    ]


def test_a_conflict_outside_of_nodes_is_its_address() -> None:
    (line,) = lines_of(BASE, both(metadata("k", "1"))(BASE), both(metadata("k", "2"))(BASE))
    assert line.startswith("  1  @/metadata_props/0")
    assert line.endswith("ours k = 1, theirs k = 2")


def test_names_are_visible() -> None:
    def named(name: str) -> Model:
        conflict = epsilon(1e-12)
        assert conflict.graph is not None
        nodes = (replace(conflict.graph.node[0], name=name), *conflict.graph.node[1:])
        return replace(conflict, graph=replace(conflict.graph, node=nodes))

    text = "\n".join(lines_of(named("a"), named("b\x1b[2J"), named("c")))
    assert "\x1b" not in text
    assert "\\u{1b}" in text
    assert "\\u{5c}" not in text


def test_git_shows_conflicts_in_words_and_weights_as_in_any_model(tmp_path: Path) -> None:
    merged = merge(epsilon(1e-12), epsilon(1e-4), epsilon(1e-5))
    path = tmp_path / "m.onnx"
    save(merged.model, merged.conflicts, path, "onnx")
    shown = b"".join(map(bytes, textconv.convert(path))).decode().splitlines()
    assert shown[:2] == ["5 conflicts of a merge", lines_of(epsilon(1e-12), epsilon(1e-4), epsilon(1e-5))[0]]
    assert '"conflicts": [' not in shown
    clean = tmp_path / "ours.onnx"
    save(epsilon(1e-4), (), clean, "onnx")
    ours = b"".join(map(bytes, textconv.convert(clean))).decode().splitlines()
    assert [line for line in shown if line not in ours] == [*shown[:3], shown[-1]]
    assert shown[-1].startswith("sha256 of the file with the conflicts: ")
