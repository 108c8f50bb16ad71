"""Sandboxed processes without the box, which could hide that code of a model runs."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from onnxjson.running import server_process

_LIFTED = """
import onnxoptimizer, onnxruntime, onnxruntime.quantization, onnxruntime.transformers.optimizer, onnxscript.optimizer
import onnxsim, onnxslim, sympy
from onnxjson.running.box import Box
Box.enter = lambda box: None
from onnxjson.running.worker_server import main
"""


@contextmanager
def box_lifted() -> Iterator[None]:
    """Start sandboxed processes without the box until the end of the ``with`` statement."""
    last = "\nfrom onnxjson.running.worker_server import main\n"
    assert server_process.START.count(last) == 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server_process, "START", server_process.START.replace(last, _LIFTED))
        yield
