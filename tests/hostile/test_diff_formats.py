"""Hostile names from the file to every format of a diff: models that are really compared, printed by the command."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from msgspec.structs import replace

from onnxjson import example
from onnxjson.diffing.unified import digest_text
from onnxjson.model.document import Attribute, Model, Node, StringStringEntry, Tensor
from onnxjson.storage import api
from tests.cli.running import run
from tests.rendering.differences import HOSTILE
from tests.schemas.reports import diff_schema

NAMES = [name for name in HOSTILE if len(name) < 1000]


def _spoiled(change: Callable[[Node, str], Node]) -> Model:
    """The example with every node changed by one of the names, and metadata of them all."""
    model = api.from_proto(example.make_example())
    assert model.graph is not None
    nodes = [change(node, NAMES[place % len(NAMES)]) for place, node in enumerate(model.graph.node)]
    inserted = [
        Node(op_type="Relu", input=(f"{name}{place}",), output=(f"{name}{place + 1}",), name=name, domain=name)
        for place, name in enumerate(NAMES)
    ]
    entries = tuple(StringStringEntry(name, name) for name in NAMES)
    graph = replace(model.graph, node=(*nodes, *inserted), name=NAMES[3], doc_string=NAMES[0])
    return replace(model, graph=graph, metadata_props=entries, producer_name=NAMES[4])


def _named(node: Node, name: str) -> Node:
    return replace(node, name=name, doc_string=name)


def _attributed(node: Node, name: str) -> Node:
    odd = (Attribute(name=name, type=3, s=name.encode("utf-8", "surrogateescape")),)
    return replace(node, attribute=(*node.attribute, *odd), metadata_props=(StringStringEntry(name, name),))


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("a\u202e<b>`|x")
    paths = [folder / f"{name}.onnx" for name in ("plain", "named", "attributed")]
    for path, model in zip(
        paths, (api.from_proto(example.make_example()), _spoiled(_named), _spoiled(_attributed)), strict=True
    ):
        api.save(model, path)
        assert digest_text(model)
    return paths


@pytest.mark.parametrize("pair", [(0, 1), (1, 0), (1, 2), (2, 0)])
@pytest.mark.parametrize("form", ["text", "details", "json", "markdown", "html", "unified"])
def test_nothing_of_a_model_gets_out_of_its_place(form: str, pair: tuple[int, int], models: list[Path]) -> None:
    options = ["-v"] if form == "details" else ["--format", form]
    result = run("diff", models[pair[0]], models[pair[1]], *options)
    assert result.exit_code == 1
    assert "Traceback" not in result.stderr
    for line in result.stdout.splitlines():
        assert line.replace("\t", "").isprintable(), ascii(line)
    if form == "json":
        Draft202012Validator(diff_schema()).validate(json.loads(result.stdout))
        assert result.stdout.isascii()
    if form == "html":
        assert result.stdout.count("<script") == result.stdout.count("</script") == 1
        assert "<img" not in result.stdout
        assert "<b>x" not in result.stdout


@pytest.mark.parametrize("form", ["text", "json", "patch"])
def test_ranges_of_external_data_that_are_no_numbers_are_no_internal_error(form: str, tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(64))
    odd = [("", "16"), ("9" * 5000, "16"), ("0", "-1"), ("0", "\u00b2"), (" 4", "8"), ("4", ""), ("0", "9" * 30)]
    paths = []
    for at, second in enumerate((16, 17)):
        tensors = [("w.bin", "4", "16"), ("w.bin", "8", str(second)), *(("w.bin", *each) for each in odd)]
        tensors += [("w\0.bin", "0", "16"), ("", "0", "16")]
        constants = []
        for number, (location, offset, length) in enumerate(tensors):
            keys = {"location": location, "offset": offset, "length": length}
            entries = tuple(StringStringEntry(key, value) for key, value in keys.items())
            constants.append(Tensor(name=f"w{number}", dims=(4,), data_type=1, data_location=1, external_data=entries))
        model = api.from_proto(example.make_example())
        assert model.graph is not None
        graph = replace(model.graph, initializer=(*model.graph.initializer, *constants))
        paths.append(tmp_path / f"m{at}.onnx")
        api.save(replace(model, graph=graph), paths[-1])
    for old, new in (paths, paths[::-1], [paths[0]] * 2):
        result = run("diff", "--format", form, old, new)
        assert result.exit_code not in {2, 70}, result.stderr
