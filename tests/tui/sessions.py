"""Sessions on small models for the tests of the workbench."""

import random
from pathlib import Path

import onnxjson
from onnxjson.codecs.wire_writing import write_message
from onnxjson.model.document import Model
from onnxjson.model.errors import OnnxJsonError
from onnxjson_tui.session.session import Session
from tests.editing.graphs import model_of
from tests.editing.random_models import random_edit

SMALL = """g (float[N,4] x) => (float[N,4] y) <float[4] w = {1, 2, 3, 4}> {
    a = Relu(x)
    b = Add(a, w)
    c = LeakyRelu(b)
    y = Add(a, c)
}"""


def small() -> Model:
    """Four nodes, one constant."""
    return model_of(SMALL)


def opened(path: Path, *, readonly: bool = False) -> Session:
    """A session on a file that can be read."""
    session = Session.open(path, readonly=readonly)
    assert isinstance(session, Session)
    return session


def bytes_of(model: Model) -> bytes:
    """A model as it is saved."""
    parts: list[bytes] = []
    write_message(model, parts.append)
    return b"".join(parts)


def saved(path: Path, model: Model | None = None) -> Path:
    """A file with a model."""
    onnxjson.save(model or small(), path)
    return path


def edit_somehow(session: Session, rng: random.Random) -> bool:
    """One random edit, which may be refused; whether it was made."""
    try:
        return session.edit(random_edit(session.model, rng, texts=True)) is not None
    except OnnxJsonError:
        return False
