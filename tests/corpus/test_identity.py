"""Real models come back byte for byte, through the text."""

from collections.abc import Callable

import pytest
from onnx import ModelProto

import onnxjson
from tests.corpus.collection import CorpusModel, corpus, file_models, node_models, texts


def failing(holds: Callable[[CorpusModel], bool], models: tuple[CorpusModel, ...]) -> list[str]:
    """The names of the models for which `holds` does not hold, or raises."""
    found = []
    for model in models:
        try:
            good = holds(model)
        except Exception as error:  # the report names every model, with its error
            found.append(f"{model.name}: {type(error).__name__}: {error}"[:300])
        else:
            if not good:
                found.append(model.name)
    return found


def test_the_corpus_is_whole() -> None:
    assert len(node_models()) >= 1_884
    assert len(file_models()) >= 149
    assert len({model.name for model in corpus()}) == len(corpus())


def test_every_model_is_byte_identical_through_the_text() -> None:
    def holds(model: CorpusModel) -> bool:
        return onnxjson.to_proto(onnxjson.loads(texts()[model.name])).SerializeToString() == model.data

    assert failing(holds, corpus()) == []


def test_every_file_is_byte_identical_through_a_text_file(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("files")

    def holds(model: CorpusModel) -> bool:
        (folder / "in.onnx").write_bytes(model.data)
        onnxjson.save(onnxjson.load(folder / "in.onnx"), folder / "text.onnx.json")
        onnxjson.save(onnxjson.load(folder / "text.onnx.json"), folder / "out.onnx")
        return (folder / "out.onnx").read_bytes() == model.data

    assert failing(holds, file_models()) == []


def test_canonical_text_is_a_fixed_point() -> None:
    def holds(model: CorpusModel) -> bool:
        return onnxjson.dumps(onnxjson.loads(texts()[model.name])) == texts()[model.name]

    assert failing(holds, corpus()) == []


def test_the_text_is_smaller_than_a_third_of_the_lines_of_proto_json() -> None:
    from google.protobuf import json_format

    ours = theirs = 0
    for model in file_models():
        ours += texts()[model.name].count("\n")
        theirs += json_format.MessageToJson(ModelProto.FromString(model.data), indent=2).count("\n") + 1
    assert ours * 3 <= theirs


def test_the_text_of_a_node_depends_on_that_node_alone() -> None:
    """Each node of each model has the text that it has in a graph of its own."""

    def holds(model: CorpusModel) -> bool:
        alone = ModelProto()
        for node in ModelProto.FromString(model.data).graph.node:
            del alone.graph.node[:]
            alone.graph.node.append(node)
            block = (
                onnxjson.dumps(onnxjson.from_proto(alone)).split('  "node": [\n', 1)[1].rpartition("\n  ]\n}\n}\n")[0]
            )
            if f"\n{block}" not in texts()[model.name]:
                return False
        return True

    assert failing(holds, corpus()) == []
