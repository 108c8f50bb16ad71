"""Weights apart from the text: every model of the corpus comes back from blobs and from digests."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

from onnx import ModelProto

import onnxjson
from onnxjson.codecs.reading import exact_reader, fast
from tests.corpus.collection import CorpusModel, corpus


@cache
def record(model: CorpusModel) -> onnxjson.Model:
    return onnxjson.from_proto(ModelProto.FromString(model.data))


def wrong(holds: Callable[[CorpusModel], bool]) -> list[str]:
    return [model.name for model in corpus() if not holds(model)]


def test_every_model_comes_back_from_digests_with_itself_as_the_source() -> None:
    def holds(model: CorpusModel) -> bool:
        text = onnxjson.dumps(record(model), weights="digest")
        again = onnxjson.loads(text, weights_from=record(model))
        return onnxjson.to_proto(again).SerializeToString() == model.data

    assert wrong(holds) == []


def test_every_model_comes_back_from_blobs(tmp_path: Path) -> None:
    def holds(model: CorpusModel) -> bool:
        onnxjson.save(record(model), tmp_path / "m.onnx.json", weights="blobs")
        again = onnxjson.load(tmp_path / "m.onnx.json")
        return onnxjson.to_proto(again).SerializeToString() == model.data

    assert wrong(holds) == []


def test_both_readers_keep_digests_and_blobs_as_they_stand() -> None:
    def holds(model: CorpusModel) -> bool:
        for text in (
            onnxjson.dumps(record(model), weights="digest"),
            onnxjson.dumps(record(model), weights="blobs", blobs="m.blobs"),
        ):
            exact, _ = exact_reader.read(text.encode())
            quick = fast.read(text.encode(), {})
            if quick is not None and quick != exact:
                return False
            if onnxjson.dumps(exact, weights="keep") != text:
                return False
        return True

    assert wrong(holds) == []
