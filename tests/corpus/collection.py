"""The real models that the corpus tests run on: onnx's node test cases and the files of its backend tests."""

import warnings
from functools import cache
from pathlib import Path
from typing import NamedTuple

import onnx
from onnx import ModelProto

import onnxjson


class CorpusModel(NamedTuple):
    """One model as the exporter or onnx wrote it."""

    name: str
    data: bytes


@cache
def node_models() -> tuple[CorpusModel, ...]:
    """The models of onnx's node test cases, serialised; collecting them takes a few seconds, once a process."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the cases compute their expected outputs with overflows and divisions by zero
        cases = collect_testcases(None)
    return tuple(CorpusModel(case.name, case.model.SerializeToString()) for case in cases if case.model is not None)


@cache
def file_models() -> tuple[CorpusModel, ...]:
    """The .onnx files that onnx ships for its backend tests."""
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data"
    return tuple(
        CorpusModel(str(path.relative_to(folder)), path.read_bytes()) for path in sorted(folder.rglob("*.onnx"))
    )


@cache
def texts() -> dict[str, str]:
    """The canonical text of every model, by its name."""
    return {model.name: onnxjson.dumps(onnxjson.from_proto(proto(model))) for model in corpus()}


def corpus() -> tuple[CorpusModel, ...]:
    """All of them."""
    return node_models() + file_models()


def proto(model: CorpusModel) -> ModelProto:
    """The model as protobuf reads it."""
    return ModelProto.FromString(model.data)
