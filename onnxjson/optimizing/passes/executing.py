"""Run passes inside the sandboxed process: from a declaration as JSON to the resulting bytes.

The process may crash, hang or be killed at any moment; see `onnxjson.running.worker_server`. Shape inference in Python
computes with names of dimensions, and sympy evaluates a string as code where it expects a number. So all passes except
the user's own code get plain names instead of the model's (`dimension_names`), and sympy evaluates no text
(`sympy_guard`).
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from onnxjson.editing.declaration import name_of
from onnxjson.optimizing.passes.catalogue import KINDS
from onnxjson.optimizing.passes.declaration import PartStage, Pass, drain_remarks
from onnxjson.optimizing.passes.dimension_names import HiddenNames
from onnxjson.optimizing.passes.sympy_guard import forbid_evaluation

_DATA_FOLDER: Final = "@data"
"""Key of the folder of external data in the declaration of a pass."""


def declared(subject: Pass, data_folder: str | None = None) -> str:
    """Return a pass as JSON, for `executed` in the sandboxed process; see `Substituted.data_folder`."""
    fields = msgspec.to_builtins(subject.within(Path.cwd()))
    return msgspec.json.encode({**fields, _DATA_FOLDER: data_folder}).decode()


def executed(declaration: str, model: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Run a pass on a serialized model; return the result and the remarks. The current folder belongs to the pass.

    Raises:
        TypeError: it does not return a serialized model.
    """
    folder = Path.cwd()
    subject, is_light = subject_of(declaration)
    if subject.is_own_code:
        return _model_bytes(subject.run(model, folder)), drain_remarks()
    with _hidden_names(subject, model) as (renamed, hidden):
        output = hidden.restored(_model_bytes(renamed.run(hidden.model, folder)))
        if not is_light:
            subject.measure(model, output)
    return output, tuple([hidden.restored_text(each) for each in drain_remarks()])


def staged(declaration: str, model: bytes) -> bytes:
    """Run a pass part by part; return the models after each part as MessagePack."""
    folder = Path.cwd()
    subject, _ = subject_of(declaration)
    if subject.is_own_code:
        return msgspec.msgpack.encode(list(subject.stages(model, folder)))
    with _hidden_names(subject, model) as (renamed, hidden):
        stages = list(renamed.stages(hidden.model, folder))
        return msgspec.msgpack.encode([PartStage(stage.name, hidden.restored(stage.model)) for stage in stages])


@contextmanager
def _hidden_names(subject: Pass, model: bytes) -> Iterator[tuple[Pass, HiddenNames]]:
    """Yield a pass and a model without its names of dimensions, which errors name again."""
    forbid_evaluation()
    hidden = HiddenNames(model)
    try:
        yield subject.with_dimensions(hidden.replaced), hidden
    except Exception as error:
        error.args = tuple([hidden.restored_text(each) if isinstance(each, str) else each for each in error.args])
        raise


def _model_bytes(output: object) -> bytes:
    if not isinstance(output, bytes):
        raise TypeError(f"the pass returned a {type(output).__name__} instead of a model")
    return output


def subject_of(declaration: str) -> tuple[Pass, bool]:
    """Return the pass that `declared` wrote as JSON, and whether it gets a model without its big constants.

    The folder of external data becomes the current folder.
    """
    fields: dict[str, Any] = msgspec.json.decode(declaration)
    data_folder = fields.pop(_DATA_FOLDER, None)
    if data_folder:  # libraries look for external data there
        os.chdir(data_folder)
    name = fields.pop("pass")
    return next(kind for kind in KINDS if name_of(kind) == name)(**fields), data_folder is not None
