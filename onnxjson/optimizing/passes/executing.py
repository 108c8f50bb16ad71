"""Run passes inside the guarded process: from a declaration as JSON to the resulting bytes.

The process may crash, hang or be killed at any moment; see `onnxjson.running.worker_server`. All passes except the
user's own code get a model without texts that they could evaluate; see `onnxjson.optimizing.passes.text_placeholders`.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from onnxjson.codecs import serde
from onnxjson.codecs.wire_writing import message_bytes
from onnxjson.editing.declaration import name_of
from onnxjson.model.display import visible
from onnxjson.model.document import Model
from onnxjson.optimizing.passes.catalogue import KINDS
from onnxjson.optimizing.passes.declaration import PartStage, Pass, drain_remarks, restore_texts_with
from onnxjson.optimizing.passes.text_evaluation import computing_node, forbid_evaluation
from onnxjson.optimizing.passes.text_placeholders import Placeholders, TextNeededError

_LONGEST: Final = 100
_DATA_FOLDER: Final = "@data"
"""Key of the folder of external data in the declaration of a pass."""


def declared(subject: Pass, data_folder: str | None = None) -> str:
    """Return a pass as JSON, for `executed` in the guarded process; see `Substituted.data_folder`."""
    fields = msgspec.to_builtins(subject.within(Path.cwd()))
    return msgspec.json.encode({**fields, _DATA_FOLDER: data_folder}).decode()


def executed(declaration: str, model: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Run a pass on a serialized model; return the result and the remarks. The current folder belongs to the pass.

    Raises:
        TextNeededError: it would compute with a text that is hidden from it.
        TypeError: it does not return a serialized model.
    """
    folder = Path.cwd()
    subject, is_light = subject_of(declaration)
    if subject.is_own_code:
        return _model_bytes(subject.run(model, folder)), drain_remarks()
    disarmed = _Disarmed(subject, model)
    with disarmed.errors():
        made = disarmed.restored(_model_bytes(disarmed.subject.run(disarmed.model, folder)))
        if not is_light:
            subject.measure(model, made)
    return made, tuple([disarmed.placeholders.restore_text(each) for each in drain_remarks()])


def staged(declaration: str, model: bytes) -> bytes:
    """Run a pass part by part; return the models after each part as MessagePack."""
    folder = Path.cwd()
    subject, _ = subject_of(declaration)
    if subject.is_own_code:
        return msgspec.msgpack.encode(list(subject.stages(model, folder)))
    disarmed = _Disarmed(subject, model)
    with disarmed.errors():
        stages = list(disarmed.subject.stages(disarmed.model, folder))
        return msgspec.msgpack.encode([PartStage(stage.name, disarmed.restored(stage.model)) for stage in stages])


class _Disarmed:
    """A pass and a model without texts that it could evaluate.

    Raises:
        TextNeededError: the pass computes values, and one of them would depend on a hidden text.
    """

    def __init__(self, subject: Pass, model: bytes) -> None:
        forbid_evaluation()
        parsed = serde.parse(model).model
        self.placeholders = Placeholders(parsed, model)
        self.subject = subject.with_dimensions(self.placeholders.dims)
        replaced = self.placeholders.replace(parsed)
        self.model = message_bytes(replaced) if self.placeholders.is_needed else model
        self._original = model
        restore_texts_with(self.restored)
        # Computed numbers have no trace of a placeholder that they depend on, so this is refused in advance.
        if subject.texts != "moved" and self.placeholders.has_texts:
            self._refuse_computing(replaced)

    def _refuse_computing(self, model: Model) -> None:
        is_run = self.subject.texts == "run"
        node = computing_node(model, self.placeholders.is_text, is_run=is_run)
        if node is None:
            return
        label = visible(node.name or (node.output[0] if node.output else ""), _LONGEST)
        advice = "remove" if is_run else "fold"
        raise TextNeededError(
            f'{visible(node.op_type or "", _LONGEST)} "{label}" computes {"" if is_run else "a constant "}from a text '
            f"of the model, which is hidden from passes; {advice} that node with an edit, or omit the pass"
        )

    def restored(self, made: bytes) -> bytes:
        """Return the result of a pass with the texts of the model restored."""
        # Not encoded again, so that an unchanged model keeps its bytes.
        if made == self.model:
            return self._original
        # Bytes of two concatenated models are returned as they are, since the pipeline reports them.
        if not self.placeholders.occurs(made) or serde.repeated_top_level(made) is not None:
            return made
        restored = message_bytes(self.placeholders.restore(serde.parse(made).model))
        if self.placeholders.occurs(restored):
            raise TextNeededError("it computes with a text of the model that is hidden from passes")
        return restored

    @contextmanager
    def errors(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            restore = self.placeholders.restore_text
            error.args = tuple([restore(each) if isinstance(each, str) else each for each in error.args])
            raise


def _model_bytes(made: object) -> bytes:
    if not isinstance(made, bytes):
        raise TypeError(f"the pass returned a {type(made).__name__} instead of a model")
    return made


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
