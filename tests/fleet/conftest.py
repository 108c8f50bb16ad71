"""A cluster of three workers on this machine, and an S3 service."""

import importlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def cluster(_own_surroundings: None) -> Iterator[Any]:
    """The cluster; tests reach it by its address, as users do."""
    import dask

    make: Any = importlib.import_module("distributed").LocalCluster

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        make(
            n_workers=3,
            threads_per_worker=1,
            memory_limit=0,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        ) as found,
    ):
        yield found


@pytest.fixture(scope="session")
def s3(_own_surroundings: None) -> Iterator[Any]:
    """A file system of fsspec on an S3 service of moto, with a bucket ``zoo``; found by environment variables."""
    import fsspec
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    host, port = server.get_host_and_port()
    variables = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    os.environ.update(variables)
    system = fsspec.filesystem("s3")
    system.mkdir("zoo")
    yield system
    for name in variables:
        del os.environ[name]
    server.stop()


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """A folder with twelve models in three folders, two of them equal."""
    return make_models(tmp_path / "zoo", 12)


def make_models(folder: Path, count: int) -> Path:
    """Write small models, some of them equal."""
    import onnx
    from onnx import TensorProto, helper

    for number in range(count):
        shape = [1, number // 2 + 1]
        x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", "y"))
        operator = "Relu" if number % 3 else "Abs"
        names = ("a", "b") if number % 2 else ("c", "d")
        node = helper.make_node(operator, ["x"], ["y"], name=names[0])
        graph = helper.make_graph([node], names[1], [x], [y])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17 + number % 2)])
        place = folder / f"part{number % 3}"
        place.mkdir(parents=True, exist_ok=True)
        onnx.save(model, place / f"m{number:03}.onnx")
    return folder
