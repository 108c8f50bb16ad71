"""Forty ordinary jobs in Python, each written as one would guess it. Read it as examples; it runs as a test."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import onnxjson
from onnxjson.example import write_example


@pytest.fixture(autouse=True)
def _two_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write digits.onnx, and exported.onnx, the same network as an exporter wrote it; work beside them."""
    monkeypatch.chdir(tmp_path)
    write_example(Path("digits.onnx"))
    write_example(Path("exported.onnx"), unfused=True)


@pytest.fixture
def model() -> onnxjson.Model:
    return onnxjson.load("digits.onnx")


class TestLook:
    """Nothing changes the model."""

    def test_list_the_operators(self, model: onnxjson.Model) -> None:
        assert [node.op_type for node in model.nodes] == ["Conv", "LeakyRelu", "MaxPool", "Flatten", "Gemm", "Softmax"]

    def test_list_inputs_and_outputs(self, model: onnxjson.Model) -> None:
        assert [(value.name, value.dtype, value.shape) for value in model.inputs] == [
            ("image", "float32", ("N", 1, 8, 8))
        ]
        assert [value.name for value in model.outputs] == ["probabilities"]
        assert model.inputs["image"].dtype == "float32"

    def test_list_weights_with_their_shapes(self, model: onnxjson.Model) -> None:
        assert {name: tensor.shape for name, tensor in model.initializers.items()} == {
            "conv.weight": (4, 1, 3, 3),
            "conv.bias": (4,),
            "fc.weight": (10, 64),
            "fc.bias": (10,),
        }

    def test_read_a_weight_as_an_array(self, model: onnxjson.Model) -> None:
        assert model.initializers["fc.weight"].numpy().shape == (10, 64)

    def test_which_opset_is_it(self, model: onnxjson.Model) -> None:
        assert model.opsets[""] == 17

    def test_who_produces_a_value(self, model: onnxjson.Model) -> None:
        producer = model.producer("scores")
        assert producer is not None
        assert producer.name == "/fc"
        assert model.producer("image") is None

    def test_who_consumes_a_value(self, model: onnxjson.Model) -> None:
        assert [node.op_type for node in model.consumers("features")] == ["LeakyRelu"]

    def test_read_an_attribute(self, model: onnxjson.Model) -> None:
        assert model.node("/activation").attributes["alpha"] == pytest.approx(0.01)

    def test_find_nodes_of_an_operator(self, model: onnxjson.Model) -> None:
        (conv,) = model.select("op:Conv")
        assert (conv.name, conv.inputs, conv.outputs) == (
            "/conv",
            ("image", "conv.weight", "conv.bias"),
            ("features",),
        )

    def test_find_nodes_without_selectors(self, model: onnxjson.Model) -> None:
        assert [node.name for node in model.nodes if node.op_type == "Softmax"] == ["/softmax"]
        assert model.nodes["/softmax"].op_type == "Softmax"

    def test_find_a_pattern(self) -> None:
        (match,) = onnxjson.load("exported.onnx").find("Add(MatMul($x, $w), $b)")
        assert match.names["w"] == "fc.weight"
        assert [node.op_type for node in match.nodes] == ["Add", "MatMul"]
        assert (match.op_type, match.name) == ("Add", match.nodes[0].name)

    def test_walk_to_the_neighbours(self, model: onnxjson.Model) -> None:
        fc = model.node("/fc")
        assert [node.op_type for node in fc.consumers] == ["Softmax"]
        assert [node.op_type if node else None for node in fc.producers] == ["Flatten", None, None]

    def test_read_the_network_on_one_page(self, model: onnxjson.Model) -> None:
        print(model.outline())
        assert sum(len(line.nodes) for line in model.outline().lines) == len(model.nodes)

    def test_count_parameters(self, model: onnxjson.Model) -> None:
        assert sum(tensor.numpy().size for tensor in model.initializers.values()) == 690

    def test_look_at_it_in_a_notebook(self, model: onnxjson.Model) -> None:
        results: list[Any] = [
            model,
            model.select("op:Conv"),
            model.outline(),
            onnxjson.check(model),
            onnxjson.run(model),
        ]
        for result in results:
            assert len(repr(result)) <= 120
            assert "<" in result._repr_html_()


class TestChange:
    """Every change returns the changed model."""

    def test_set_an_attribute(self, model: onnxjson.Model) -> None:
        changed = model.node("/activation").set_attribute("alpha", 0.2)
        assert changed.node("/activation").attributes["alpha"] == pytest.approx(0.2)

    def test_set_it_in_all_nodes_of_an_operator(self, model: onnxjson.Model) -> None:
        changed = model.select("op:MaxPool").set_attribute("ceil_mode", 1)
        assert changed.node("/pool").attributes["ceil_mode"] == 1

    def test_rename_an_input(self, model: onnxjson.Model) -> None:
        assert [value.name for value in model.rename("image", "picture").inputs] == ["picture"]

    def test_rename_a_node(self, model: onnxjson.Model) -> None:
        assert model.rename("/conv", "first").node("first").op_type == "Conv"

    def test_rename_a_dimension(self, model: onnxjson.Model) -> None:
        assert model.rename("N", "batch").inputs[0].shape == ("batch", 1, 8, 8)

    def test_delete_a_node(self, model: onnxjson.Model) -> None:
        assert "LeakyRelu" not in [node.op_type for node in model.node("/activation").delete().nodes]

    def test_change_a_weight(self, model: onnxjson.Model) -> None:
        weight = model.tensor("fc.bias")
        changed = weight.set_values(weight.numpy() * 2)
        assert np.array_equal(changed.initializers["fc.bias"].numpy(), 2 * weight.numpy())

    def test_insert_a_node(self, model: onnxjson.Model) -> None:
        changed = model.tensor("features").insert("Relu")
        assert [node.op_type for node in changed.consumers("features")] == ["Relu"]

    def test_replace_an_operator(self, model: onnxjson.Model) -> None:
        changed = model.node("/activation").update(op_type="Relu", attribute=())
        assert changed.node("/activation").op_type == "Relu"

    def test_fix_the_batch_size(self, model: onnxjson.Model) -> None:
        assert model.rewrite(onnxjson.edits.SetBatchSize(size=4)).inputs[0].shape == (4, 1, 8, 8)
        assert model.rewrite(onnxjson.edits.SetBatchSize(4)).inputs[0].shape == (4, 1, 8, 8)  # type: ignore[call-arg]

    def test_fuse_a_pattern(self) -> None:
        fuse = onnxjson.edits.ReplacePattern(pattern="Add(MatMul($x, $w), $b)", replacement="Gemm($x, $w, $b)")
        assert "Gemm" in [node.op_type for node in onnxjson.load("exported.onnx").rewrite(fuse).nodes]

    def test_cut_out_a_part(self, model: onnxjson.Model) -> None:
        part = model.rewrite(onnxjson.edits.Extract(inputs=("image",), outputs=("features",)))
        assert [node.op_type for node in part.nodes] == ["Conv"]

    def test_change_many_things_at_once(self, model: onnxjson.Model) -> None:
        with model.edit() as editor:
            for node in editor.select("op:Conv"):
                node.set_attribute("auto_pad", "NOTSET")
            editor.tensor("image").rename("picture")
        assert editor.model.inputs[0].name == "picture"

    def test_save_it(self, model: onnxjson.Model) -> None:
        model.save("copy.onnx")
        model.save("copy.onnx.json")
        assert Path("copy.onnx").read_bytes() == Path("digits.onnx").read_bytes()
        assert onnxjson.load("copy.onnx.json") == model


class TestCompare:
    """What changed, and whether it matters."""

    def test_what_changed(self, model: onnxjson.Model) -> None:
        changes = onnxjson.diff(model, model.node("/activation").set_attribute("alpha", 0.2))
        assert [change.pattern for change in changes] == ["LeakyRelu.alpha"]
        assert len(changes) == len(changes.changes) == 1

    def test_is_it_the_same(self, model: onnxjson.Model) -> None:
        assert onnxjson.diff(model, "digits.onnx").equal

    def test_asked_wrongly_it_names_the_property(self, model: onnxjson.Model) -> None:
        with pytest.raises(TypeError, match=r"neither true nor false; use \.equal"):
            bool(onnxjson.diff(model, model))
        with pytest.raises(TypeError, match=r"use \.equal"):
            bool(onnxjson.verify(model, model))

    def test_do_the_outputs_agree(self) -> None:
        assert onnxjson.verify("exported.onnx", "digits.onnx").equal

    def test_merge_two_changes(self, model: onnxjson.Model) -> None:
        merged = onnxjson.merge(model, model.rename("image", "picture"), model.rename("/conv", "first"))
        assert merged.is_clean
        assert merged.model.node("first").inputs[0] == "picture"

    def test_carry_a_change_to_another_model(self, model: onnxjson.Model) -> None:
        patch = onnxjson.diff(model, model.node("/activation").set_attribute("alpha", 0.2)).patch
        assert model.rewrite(patch).node("/activation").attributes["alpha"] == pytest.approx(0.2)


class TestRun:
    """Optimize, run, check, exchange."""

    def test_optimize(self) -> None:
        names = ["onnxruntime", "prune"]
        assert onnxjson.optimize("exported.onnx", names).last == onnxjson.optimize("exported.onnx", *names).last
        assert onnxjson.optimize("exported.onnx", "prune").last.nodes

    def test_run_it_on_an_array(self, model: onnxjson.Model) -> None:
        result = onnxjson.run(model, {"image": np.zeros((2, 1, 8, 8), np.float32)})
        assert result.arrays["probabilities"].shape == (2, 10)
        assert (list(result), "probabilities" in result, 0 in result) == (["probabilities"], True, False)

    def test_run_it_on_arrays_without_names(self, model: onnxjson.Model) -> None:
        image = np.zeros((2, 1, 8, 8), np.float32)
        for inputs in (image, [image]):
            assert onnxjson.run(model, inputs)["probabilities"].shape == (2, 10)
        with pytest.raises(onnxjson.FeedError, match="2 arrays given, but the model has 1 input"):
            onnxjson.run(model, [image, image])

    def test_is_it_valid(self, model: onnxjson.Model) -> None:
        assert not onnxjson.check(model).errors

    def test_from_and_to_onnx(self, model: onnxjson.Model) -> None:
        proto = onnxjson.to_proto(model)
        assert isinstance(proto, onnx.ModelProto)
        assert onnxjson.from_proto(proto) == model

    def test_a_file_that_is_missing(self) -> None:
        with pytest.raises(FileNotFoundError, match=r"missing\.onnx"):
            onnxjson.load("missing.onnx")


class TestWrongGuesses:
    """A name that a model does not have is answered with what is meant."""

    @pytest.mark.parametrize(
        ("name", "meant"),
        [
            ("run", "onnxjson.run(model, ...)"),
            ("set_batch_size", "model.rewrite(onnxjson.edits.SetBatchSize(size=...))"),
            ("rename_node", "model.rewrite(onnxjson.edits.Rename(kind=..., from_=..., to=...))"),
            ("opset", 'model.opsets[""]'),
            ("summary", "print(model.outline())"),
            ("simplify", 'onnxjson.optimize(model, "onnxsim").model'),
            ("weights", "model.initializers"),
            ("to_onnx", "onnxjson.to_proto(model)"),
        ],
    )
    def test_another_name(self, model: onnxjson.Model, name: str, meant: str) -> None:
        with pytest.raises(AttributeError, match=re.escape(meant)):
            getattr(model, name)
        assert not hasattr(model, name)

    @pytest.mark.parametrize(
        ("name", "meant"),
        [("html", ".to_html()"), ("text", "print(result.to_markdown())"), ("event", '"events"')],
    )
    def test_another_name_of_a_result(self, model: onnxjson.Model, name: str, meant: str) -> None:
        difference = onnxjson.diff(model, model)
        with pytest.raises(AttributeError, match=re.escape(meant)):
            getattr(difference, name)

    @pytest.mark.parametrize(
        ("name", "meant"),
        [
            ("load_model", "onnxjson.load(path)"),
            ("compare", "onnxjson.diff(a, b)"),
            ("patch", "onnxjson.diff(a, b).patch"),
            ("checker", "onnxjson.check(model)"),
            ("InferenceSession", "onnxjson.run(model, {name: array})"),
            ("helper", "onnxjson.node(...)"),
            ("numpy_helper", "tensor.numpy()"),
            ("infer_shapes", "model.rewrite(onnxjson.edits.InferShapes())"),
            ("extract_model", "onnxjson.edits.Extract(inputs=[...], outputs=[...])"),
        ],
    )
    def test_another_name_of_a_function(self, name: str, meant: str) -> None:
        with pytest.raises(AttributeError, match=re.escape(meant)):
            getattr(onnxjson, name)

    def test_another_name_of_the_verdict_or_the_result(self, model: onnxjson.Model) -> None:
        with pytest.raises(AttributeError, match=r"write \.equal"):
            print(onnxjson.verify(model, model).ok)  # type: ignore[attr-defined]
        with pytest.raises(AttributeError, match=r"write \.model\.save\(path\)"):
            onnxjson.optimize(model, "prune").save("small.onnx")  # type: ignore[attr-defined]
        with pytest.raises(AttributeError, match=r"write \.attributes"):
            print(model.node("/conv").attrs)  # type: ignore[attr-defined]

    def test_another_name_leads_to_what_does_it(self, model: onnxjson.Model) -> None:
        changed = model.node("/activation").set_attribute("alpha", 0.2)
        patch = onnxjson.diff(model, changed).patch
        for action, meant in {
            "diff.save('change.json')": "diff.patch.save(path)",
            "onnxjson.save(patch, 'change.json')": "patch.save(path)",
            "onnxjson.apply(model, 'change.json')": "onnxjson.Patch.load(path)",
            "onnxjson.optimize(model, 'prune').nodes": ".model.nodes",
            "model.set_attribute('/activation', 'alpha', 0.2)": "model.node(NAME).set_attribute(attribute, value)",
            "model.set_tensor('fc.bias', array)": "model.tensor(NAME).set_values(array)",
            "model.node('/conv').successors": ".consumers",
            "model.initializers['fc.bias'].mean()": ".numpy()",
        }.items():
            with pytest.raises((AttributeError, TypeError), match=re.escape(meant)):
                eval(
                    action,
                    {"onnxjson": onnxjson, "model": model, "patch": patch, "diff": onnxjson.diff(model, changed)},
                )
        patch.save("change.json")
        assert onnxjson.apply(model, onnxjson.Patch.load("change.json")) == changed
        doubled = model.tensor("fc.bias").set_values(model.tensor("fc.bias").numpy() * 2)
        assert np.array_equal(doubled.initializers["fc.bias"].numpy(), model.initializers["fc.bias"].numpy() * 2)

    def test_several_names_at_once(self, model: onnxjson.Model) -> None:
        renamed = model.rename({"image": "picture", "probabilities": "p"})
        assert (renamed.inputs[0].name, renamed.outputs[0].name) == ("picture", "p")

    def test_another_name_of_a_record_or_a_list(self, model: onnxjson.Model) -> None:
        assert model.graph is not None
        with pytest.raises(AttributeError, match=r"write \.node"):
            print(model.graph.nodes)  # type: ignore[attr-defined]
        with pytest.raises(AttributeError, match=r"write \.dtype"):
            print(model.inputs[0].elem_type)  # type: ignore[attr-defined]
        with pytest.raises(AttributeError, match=r"for node in places"):
            print(model.select("op:Conv").nodes)  # type: ignore[attr-defined]
        with pytest.raises(AttributeError, match=r"write \[node\.op_type for node in places\]"):
            print(model.select("op:Conv").op_type)  # type: ignore[attr-defined]
        with pytest.raises(AttributeError, match=r"write \.attributes\[NAME\]"):
            model.node("/conv").get_attr("pads")  # type: ignore[attr-defined]
        with pytest.raises(AttributeError, match=r"write \.root"):
            print(model.find("Softmax($x)")[0].node)  # type: ignore[attr-defined]
        with pytest.raises(KeyError, match="did you mean"):
            print(model.inputs["imge"])
        with pytest.raises(KeyError, match="write a name, such as 'probabilities'"):
            print(onnxjson.run(model).outputs[0])  # type: ignore[index]

    def test_what_is_no_function_says_so(self, model: onnxjson.Model) -> None:
        with pytest.raises(TypeError, match=r"write model\.select\('op:Conv'\)"):
            model.nodes("Conv")  # type: ignore[operator]
        with pytest.raises(TypeError, match=r"write diff\.patch without \(\)"):
            onnxjson.diff(model, model).patch()  # type: ignore[operator]
        with pytest.raises(TypeError, match=r"write onnxjson\.run\(model"):
            model(1)  # type: ignore[operator]

    def test_too_many_values_and_a_wrong_order_are_answered_with_the_right_ones(self, model: onnxjson.Model) -> None:
        with pytest.raises(TypeError, match=r"write SetBatchSize\(size=\.\.\., "):
            onnxjson.edits.SetBatchSize(1, 2, 3, 4, 5)  # type: ignore[arg-type, call-arg]
        with pytest.raises(TypeError, match=r"write apply\(model, change\)"):
            onnxjson.apply(onnxjson.diff(model, model).patch, model)  # type: ignore[arg-type]
        with pytest.raises(onnxjson.SelectorError, match='did you mean "image"'):
            model.rename("imag", "picture")

    def test_an_assignment_is_refused_with_the_way_to_change_a_model(self, model: onnxjson.Model) -> None:
        with pytest.raises(TypeError, match=r'model\.tensor\("NAME"\)\.set_values'):
            model.initializers["fc.bias"] = model.initializers["conv.bias"]
        with pytest.raises(TypeError, match=r"set_attribute"):
            model.node("/conv").attributes["pads"] = [0, 0, 0, 0]  # type: ignore[index]
        with pytest.raises(AttributeError, match=r"set_attribute\('pads', \.\.\.\)"):
            model.node("/conv").pads = [0, 0, 0, 0]  # type: ignore[attr-defined]
        with pytest.raises(AttributeError, match=r"update\(op_type=\.\.\.\)"):
            model.nodes[0].node.op_type = "Relu"  # type: ignore[misc]
        with pytest.raises(AttributeError, match=r"replace\(model, ir_version=\.\.\.\)"):
            model.ir_version = 8  # type: ignore[misc]
        with pytest.raises(KeyError, match="did you mean"):
            model.initializers["fc.wieght"]

    def test_a_weight_of_another_shape_is_refused(self, model: onnxjson.Model) -> None:
        weight = model.tensor("fc.weight")
        for values in (weight.numpy()[:5], weight.numpy().T):
            with pytest.raises(onnxjson.EditError, match="to change its shape write dtype="):
                weight.set_values(values)
        with pytest.raises(onnxjson.EditError, match='shape inference fails at Gemm "/fc"'):
            weight.set_values(weight.numpy().T, "float32[64,10]")

    def test_what_is_given_wrongly_is_answered_with_how_to_give_it(self, model: onnxjson.Model) -> None:
        with pytest.raises(TypeError, match=r"onnxjson\.load\('digits\.onnx'\)"):
            onnxjson.Model("digits.onnx")  # type: ignore[arg-type]
        with pytest.raises(onnxjson.OutputError, match=r"none of the endings .*; add format="):
            model.save("digits.txt")
        with pytest.raises(onnxjson.ParameterError, match="no pass is named"):
            onnxjson.optimize(model)
        with pytest.raises(TypeError, match=r"write \.patch"):
            onnxjson.apply(model, onnxjson.diff(model, model))  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"write its \.model"):
            onnxjson.save(onnxjson.optimize(model, "prune"), "small.onnx")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="from_proto"):
            onnxjson.diff(onnxjson.to_proto(model), model)  # type: ignore[arg-type]

    def test_print_changes_and_matches(self, model: onnxjson.Model) -> None:
        (event,) = onnxjson.diff(model, model.node("/activation").set_attribute("alpha", 0.2))
        assert repr(event) == "<attribute-changed LeakyRelu.alpha: attribute alpha: 0.01 -> 0.2>"
        assert repr(model.find("Softmax($x)")[0]) == "<Match /graph/node/5: Softmax, x=scores>"

    def test_another_name_of_an_edit(self, model: onnxjson.Model) -> None:
        with pytest.raises(AttributeError, match="write DeleteNode"):
            print(onnxjson.edits.RemoveNode)  # type: ignore[attr-defined]
        with pytest.raises(AttributeError, match='did you mean "SetAttribute"'):
            print(onnxjson.edits.SetAtribute)  # type: ignore[attr-defined]
        with pytest.raises(AttributeError, match=r"write model\.rewrite\(onnxjson\.edits\.DeleteNode\(node=\.\.\.\)\)"):
            model.remove_node("/activation")  # type: ignore[attr-defined]
        with pytest.raises(AttributeError, match=r"edits\.SetShape\(tensor=\.\.\., shape=\.\.\.\)"):
            model.set_input_shape("image", (1, 1, 8, 8))  # type: ignore[attr-defined]
        with pytest.raises(TypeError, match=r"write onnxjson\.edits\.SetBatchSize\(\.\.\.\)"):
            model.rewrite("set-batch-size", 8)  # type: ignore[arg-type]

    def test_an_assignment_to_an_input_is_a_rename_or_an_edit(self, model: onnxjson.Model) -> None:
        with pytest.raises(AttributeError, match=r"write model\.rename\('image', \.\.\.\)"):
            model.inputs[0].name = "picture"  # type: ignore[misc]
        with pytest.raises(AttributeError, match=r"SetShape\('image', \.\.\.\)"):
            model.inputs[0].shape = (1, 1, 8, 8)  # type: ignore[misc]

    def test_arguments_in_another_order(self, model: onnxjson.Model) -> None:
        with pytest.raises(TypeError, match=r"the model comes first: save\(model, path\)"):
            onnxjson.save("copy.onnx", model)  # type: ignore[arg-type]
