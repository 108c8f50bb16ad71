"""A side that is chosen for all conflicts: what was sound stays sound, and what is shown is what the sides have."""

import pytest

from onnxjson.merging.merge import merge
from onnxjson.merging.resolving import resolve
from onnxjson.model.conflicts import ConflictError
from onnxjson.model.document import Model
from onnxjson.model.structure import check_structure
from tests.editing.graphs import model_of


def graph_of(body: str, *, output: str = "y") -> Model:
    """A model of one graph that takes x and a condition c."""
    return model_of(
        f"""<ir_version: 10, opset_import: ["" : 20]>
        g (float[2] x, bool c) => (float[2] {output}) {{ {body} }}"""
    )


def errors(model: Model) -> list[str]:
    """What is wrong with the structure of a model."""
    return [each.message for each in check_structure(model) if each.severity == "error"]


def require_ways_out(base: Model, ours: Model, theirs: Model) -> None:
    """Each side, chosen for all conflicts, gives a sound model."""
    merged = merge(base, ours, theirs)
    assert not merged.is_clean
    for choice in ("ours", "theirs"):
        model, left = resolve(merged.model, merged.conflicts, choice)
        assert not left
        assert errors(model) == [], choice


def branching(before: str, name: str) -> Model:
    """A value of a name, and a condition whose branches take it."""
    return graph_of(
        f"""{before} y = If(c) <then_branch = t () => (float[2] e1) {{ e1 = Neg({name}) }},
        else_branch = f () => (float[2] e2) {{ e2 = Tanh({name}) }}>"""
    )


def test_branches_take_a_value_that_one_side_renames_and_the_other_puts_something_behind() -> None:
    base = branching("v = Abs(x)", "v")
    ours = branching("pre = Abs(x) v = Relu(pre)", "v")
    theirs = branching("z1 = Abs(x)", "z1")
    require_ways_out(base, ours, theirs)


def test_a_name_by_which_a_value_is_known_outside_is_never_numbered_by_a_choice() -> None:
    base = graph_of("u = Neg(x) v = Tanh(u) y = Abs(v)", output="y")
    ours = graph_of("v = Neg(x) y = Abs(v)", output="y")
    theirs = graph_of("u = Neg(x) v = Tanh(u) y = Abs(v)", output="y, float[2] v")
    require_ways_out(base, ours, theirs)
    merged = merge(base, ours, theirs)
    model, _ = resolve(merged.model, merged.conflicts, "theirs")
    assert model.graph is not None
    assert [each.name for each in model.graph.output] == ["y", "v"]
    for conflict in merged.conflicts:
        assert "Node(input=('v',), output=('v',)" not in repr(conflict)


def test_a_merge_without_a_way_out_is_one_conflict_of_the_whole_model(monkeypatch: pytest.MonkeyPatch) -> None:
    base, ours, theirs = (graph_of(f"y = LeakyRelu<alpha = {alpha}>(x)") for alpha in (0.1, 0.2, 0.3))
    assert [each.at for each in merge(base, ours, theirs).conflicts] == ["/graph/node/0/attribute/alpha"]
    monkeypatch.setattr("onnxjson.merging.merge.is_resolvable", lambda *_: False)
    assert [each.at for each in merge(base, ours, theirs).conflicts] == [""]


def test_an_input_that_is_settled_stands_behind_what_makes_it() -> None:
    base = graph_of("a = Abs(x) y = Relu(a) b = Neg(x) z = Tanh(b)", output="y, float[2] z")
    ours = graph_of("a = Abs(x) e = Elu(a) y = Relu(e) b = Neg(x) z = Tanh(b)", output="y, float[2] z")
    theirs = graph_of("a = Abs(x) b = Neg(x) y = Relu(b) z = Tanh(b)", output="y, float[2] z")
    require_ways_out(base, ours, theirs)
    merged = merge(base, ours, theirs)
    assert merged.model.graph is not None
    conflicts = [each for each in merged.conflicts if each.at.endswith("/input/0")]
    assert [(each.ours, each.theirs) for each in conflicts] == [("e", "b")]
    model, _ = resolve(merged.model, merged.conflicts, "theirs")
    assert model.graph is not None
    operators = [each.op_type for each in model.graph.node]
    assert operators.index("Neg") < operators.index("Relu")


def test_the_base_is_refused_where_a_side_took_away_what_it_takes() -> None:
    base = graph_of("a = Abs(x) y = Relu(a)")
    ours = graph_of("a = Abs(x) e = Sigmoid(x) y = Relu(e)")
    theirs = graph_of("y = Relu(x)")
    merged = merge(base, ours, theirs)
    with pytest.raises(ConflictError, match=r'"a", which nothing produces.*--ours or --theirs'):
        resolve(merged.model, merged.conflicts, "base")
    require_ways_out(base, ours, theirs)


def test_there_is_no_base_of_a_model_that_each_side_added() -> None:
    merged = merge(None, graph_of("y = Abs(x)"), graph_of("y = Neg(x)"))
    with pytest.raises(ConflictError, match=r"there is no base.*--ours or --theirs"):
        resolve(merged.model, merged.conflicts, "base")


def test_names_that_a_side_handed_on_are_chosen_together() -> None:
    base = graph_of("a = Elu(x) b = Neg(a) y = Add(a, b)")
    ours = graph_of("q = Elu(x) k = Neg(q) y = Add(q, k)")
    theirs = graph_of("a = Elu(x) q = Neg(a) y = Add(a, q)")
    require_ways_out(base, ours, theirs)
    merged = merge(base, ours, theirs)
    assert [(each.id, each.base, each.ours, each.theirs) for each in merged.conflicts] == [
        ("1", "a", "q", "a"),
        ("1", "b", "k", "q"),
    ]
