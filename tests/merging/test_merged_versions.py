"""Nodes that were made for one version of an operator set are not read as those of another one without a word."""

import subprocess
import sys

import pytest

from onnxjson.merging.merge import merge
from onnxjson.merging.resolving import resolve
from onnxjson.model.document import Model
from tests.editing.graphs import model_of


def chain(version: int, body: str, function: str = "") -> Model:
    """A model of one input and one output; with a function of the same version."""
    body += " z = local.f(x)" if function else ""
    text = f"<domain: 'local', opset_import: ['' : {version}]> f (i) => (o) {{ {function} }}" if function else ""
    return model_of(
        f"""<ir_version: 8, opset_import: ["" : {version}, "local" : 1]>
        g (float[2,3] x) => (float[2,3] y) {{ {body} }} {text.replace("'", '"')}"""
    )


def softmax_changed(version: int, axis: int) -> Model:
    """A model with a Softmax, which another version reads in another way."""
    return chain(version, f"h = Softmax<axis = {axis}>(x) y = Abs(h)")


CASES = {
    "a node that is added": (
        chain(12, "h = Relu(x) y = Abs(h)"),
        chain(13, "h = Relu(x) y = Abs(h)"),
        chain(12, "h = Relu(x) s = Softmax(h) y = Abs(s)"),
    ),
    "an attribute": (softmax_changed(12, 0), softmax_changed(13, 0), softmax_changed(12, 1)),
    "a node of a function": (
        chain(12, "y = Abs(x)", "a = Relu(i) o = Abs(a)"),
        chain(13, "y = Abs(x)", "a = Relu(i) o = Abs(a)"),
        chain(12, "y = Abs(x)", "a = Relu(i) s = Softmax(a) o = Abs(s)"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_node_for_the_version_before_is_a_conflict_with_the_new_version(name: str) -> None:
    base, ours, theirs = CASES[name]
    merged = merge(base, ours, theirs)
    assert any(each.at.endswith("/opset_import/0") for each in merged.conflicts)
    assert resolve(merged.model, merged.conflicts, "theirs") == (merge(base, theirs, ours).model, ())


def test_operators_that_both_versions_read_alike_are_no_conflict() -> None:
    base = chain(12, "h = Relu(x) y = Abs(h)")
    theirs = chain(12, "h = Relu(x) s = Selu(h) y = Abs(s)")
    merged = merge(base, chain(15, "h = Relu(x) y = Abs(h)"), theirs)
    assert merged.is_clean
    assert merged.model.opset_import[0].version == 15


def test_nodes_that_the_new_version_itself_brings_are_no_conflict() -> None:
    ours = chain(13, "h = Softmax<axis = 1>(x) y = Abs(h)")
    theirs = chain(12, "h = Softmax(x) n = Selu(h) y = Abs(n)")
    merged = merge(chain(12, "h = Softmax(x) y = Abs(h)"), ours, theirs)
    assert merged.is_clean
    assert merged.model.graph is not None
    assert [len(each.attribute) for each in merged.model.graph.node] == [1, 0, 0]


def two_functions(first: int | None, second: int, body: str) -> Model:
    """A model with functions f and g of two versions; without the first where that is None."""
    f = "" if first is None else f'<domain: "local", opset_import: ["" : {first}]> f (i) => (o) {{ o = Relu(i) }}'
    g = f'<domain: "local", opset_import: ["" : {second}]> g (i) => (o) {{ {body} }}'
    call = "h = local.f(x) y = local.g(h)" if f else "y = local.g(x)"
    return model_of(
        f"""<ir_version: 8, opset_import: ["" : 13, "local" : 1]>
        m (float[2,3] x) => (float[2,3] y) {{ {call} }} {f} {g}"""
    )


SHORT, LONG = "a = Abs(i) o = Exp(a)", "a = Abs(i) s = Softmax(a) o = Exp(s)"


def test_a_function_before_it_that_goes_gives_a_function_no_other_version() -> None:
    base = two_functions(12, 13, SHORT)
    ours, theirs = two_functions(None, 13, SHORT), two_functions(12, 13, LONG)
    assert merge(base, ours, theirs).model == two_functions(None, 13, LONG)
    assert merge(base, ours, theirs).is_clean
    assert merge(base, theirs, ours).is_clean


def test_a_function_before_it_that_goes_hides_no_new_version_of_a_function() -> None:
    base = two_functions(13, 12, SHORT)
    ours, theirs = two_functions(None, 13, SHORT), two_functions(13, 12, LONG)
    assert "/functions/0/opset_import/0" in [each.at for each in merge(base, ours, theirs).conflicts]
    assert not merge(base, theirs, ours).is_clean


def test_a_node_in_a_branch_says_nothing_of_the_node_around_it() -> None:
    def branching(version: int, body: str) -> Model:
        return model_of(
            f"""<ir_version: 8, opset_import: ["" : {version}]> g (float[2,3] x, bool c) => (float[2,3] y) {{
            y = If(c) <then_branch = t () => (float[2,3] p) {{ {body} }},
                       else_branch = e () => (float[2,3] q) {{ q = Selu(x) }}> }}"""
        )

    base = branching(12, "p = Selu(x)")
    assert merge(base, branching(13, "p = Selu(x)"), branching(12, "a = Selu(x) p = Elu(a)")).is_clean
    assert not merge(base, branching(13, "p = Selu(x)"), branching(12, "a = Selu(x) p = Softmax(a)")).is_clean


def test_onnx_is_not_loaded_where_no_version_changes() -> None:
    code = (
        "import sys; from onnxjson.model.document import Graph, Model, Node, OperatorSetId, ValueInfo;"
        "from onnxjson.merging.merge import merge;"
        "make = lambda **more: Model(ir_version=8, opset_import=(OperatorSetId('', 17),), graph=Graph("
        "node=(Node(('x',), ('y',), op_type='Softmax', **more),), input=(ValueInfo('x'),), output=(ValueInfo('y'),)));"
        "assert merge(make(), make(name='n'), make(doc_string='d')).is_clean; assert 'onnx' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
