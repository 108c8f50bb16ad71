"""Targets of guided fuzzing: each takes any bytes, and fails if a law does not hold of what they become."""

import contextlib
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random

from google.protobuf.message import DecodeError as ProtobufError
from onnx import ModelProto

import onnxjson
from onnxjson.cli.output import line
from onnxjson.codecs import serde
from onnxjson.codecs.wire_writing import message_bytes
from onnxjson.model.display import LONGEST, unprintable, visible
from onnxjson.model.document import Model, StringStringEntry
from onnxjson.model.errors import LimitError, OnnxJsonError
from onnxjson.patching.patch import Patch
from onnxjson.patterns import grammar, selector_terms
from onnxjson.patterns.names import regular_expression
from onnxjson.patterns.searching import find
from onnxjson.rendering.tables import wrapped
from onnxjson.storage.external import Resolver
from onnxjson_tui.session.journal import Header, Line, StepLine, encoded
from onnxjson_tui.session.recovery import Abandoned
from tests.editing.random_models import random_model
from tests.hostile import binaries, documents
from tests.merging.laws import require_laws
from tests.merging.triples import Triple
from tests.patching.mutating import mutated


class Bytes(Random):
    """Random numbers that come from bytes, so that a change of a byte is another choice; then zeros."""

    def __init__(self, data: bytes) -> None:
        super().__init__(0)
        self._data, self._at = data, 0

    def getrandbits(self, k: int) -> int:
        """The next bits."""
        count = -(-k // 8)
        found = self._data[self._at : self._at + count].ljust(count, b"\0")
        self._at += count
        return int.from_bytes(found, "little") & ((1 << k) - 1)

    def random(self) -> float:
        """The next 16 bits, as a number below 1."""
        return self.getrandbits(16) / (1 << 16)


@cache
def base() -> Model:
    """A model that has something of everything."""
    return onnxjson.loads(documents.BASE)


@cache
def small() -> Model:
    """A model that is valid."""
    return random_model(Random(3))


def load(data: bytes) -> None:
    """A binary is read as protobuf reads it, or refused; it survives the text."""
    try:
        model = serde.parse(data).model
    except OnnxJsonError:
        return
    written = message_bytes(model)
    with contextlib.suppress(ProtobufError):  # it refuses some that are deeper than it reads
        assert ModelProto.FromString(data).SerializeToString() == ModelProto.FromString(written).SerializeToString()
    assert message_bytes(serde.parse(written).model) == written
    with contextlib.suppress(LimitError):
        assert message_bytes(onnxjson.loads(onnxjson.dumps(model))) == written


def text(data: bytes) -> None:
    """A text that loads is written and read again as the same model, and its canonical form stays."""
    model, refusal = None, None
    try:
        model = onnxjson.loads(data)
    except OnnxJsonError as error:
        refusal = error
    if model is None:
        assert refusal is not None
        assert str(refusal).strip()
        assert refusal.exit_code in (16, 65, 71)
        return
    canonical = onnxjson.dumps(model)
    again = onnxjson.loads(canonical)
    assert again == model
    assert onnxjson.dumps(again) == canonical


@cache
def _folder() -> Path:
    place = Path(tempfile.mkdtemp(prefix="onnxjson-guided-"))
    (place / "models" / "sub").mkdir(parents=True)
    (place / "secret").write_bytes(b"secret")
    for name in ("w.bin", "sub/w.bin", "m.onnx"):
        (place / "models" / name).write_bytes(bytes(range(64)))
    (place / "models" / "own").write_bytes(bytes(range(64)))
    (place / "models" / "link").symlink_to(place / "secret")
    (place / "models" / "up").symlink_to("..")
    os.link(place / "models" / "own", place / "models" / "hard")  # accepted where links are trusted
    os.mkfifo(place / "models" / "fifo")
    return place / "models"


def resolver(data: bytes) -> None:
    """What a location leads to is a file in the folder, and the range is in it."""
    words = data.decode("utf-8", "surrogateescape").split("\n")
    keys = ("location", "offset", "length", "checksum", "location", "basepath")
    pairs = tuple(StringStringEntry(key=key, value=word) for key, word in zip(keys, words, strict=False))
    for trusted in (False, True):
        try:
            found = Resolver(_folder(), model_file=_folder() / "m.onnx", trust_links=trusted).resolve(pairs, None)
        except OnnxJsonError:
            continue
        read = found.read()
        assert read == bytes(range(64))[found.offset : found.offset + len(found)], words
        assert os.path.realpath(_folder() / words[0]).startswith(f"{_folder()}/"), words


def patch(data: bytes) -> None:
    """A patch that is read is written as the same; where it applies, its inverse leads back."""
    try:
        patch = Patch.loads(data)
    except OnnxJsonError:
        return
    assert Patch.loads(patch.dumps()) == patch
    for model in (small(), base()):
        try:
            after = patch.apply(model)
        except OnnxJsonError:
            continue
        assert message_bytes(patch.invert().apply(after)) == message_bytes(model)
        assert message_bytes(Patch.between(model, after).apply(model)) == message_bytes(after)


def merge(data: bytes) -> None:
    """The laws of merging hold of any two changes of a model."""
    rng = Bytes(data)
    start = small() if rng.random() < 0.7 else base()
    with contextlib.suppress(LimitError):
        ours, theirs = (mutated(start, rng, 1 + rng.randrange(3)) for _ in range(2))
        require_laws(Triple(start, ours, theirs))


def journal(data: bytes) -> None:
    """Whatever is in a journal, its lines are a prefix of what was written, and its steps are shown."""
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        found = Abandoned(Path("journal"), os.dup(file.fileno()))
        written = b"".join(encoded(each) for each in found.lines)
        if found.lines:
            kept = data.splitlines(keepends=True)[1 : 1 + len(found.lines)]
            assert len(kept) == len(found.lines)
            assert all(each.endswith(b"\n") for each in kept)
        assert written.count(b"\n") == len(found.lines)
        for each in (*found.commands, *found.script()[1]):
            assert isinstance(each, str)
        replayed = found.replay(small())
        assert replayed.trouble or len(replayed.made) <= len(found.lines)
        found.release()


def display(data: bytes) -> None:
    """What is shown has no character that a terminal obeys, is not longer than it may be, and is never misread."""
    name = data.decode("utf-8", "surrogateescape")
    for limit in (1, 20, 80, None):
        shown = visible(name, limit)
        assert not unprintable().search(shown)
        assert limit is None or len(shown) <= max(limit, 1)
        assert "\n" not in shown
    assert len(visible(name)) <= LONGEST
    half = len(name) // 2
    assert (visible(name, None) == visible(name[:half], None)) == (name == name[:half])
    assert not unprintable().search(line(name))
    for each in wrapped(name, 40):
        assert not unprintable().search(each)


def pattern(data: bytes) -> None:
    """A pattern that is read is written as the same; patterns and selectors end on any model."""
    written = data.decode("utf-8", "surrogateescape")
    with contextlib.suppress(OnnxJsonError):
        found = grammar.parse(written)
        assert grammar.parse(str(found)) == found
        find(small(), found)
    with contextlib.suppress(OnnxJsonError):
        grammar.parse_replacement(written)
    with contextlib.suppress(OnnxJsonError):
        selector_terms.parse(written)
        small().select(written)
    with contextlib.suppress(OnnxJsonError):
        regular_expression(written)


TARGETS: dict[str, Callable[[bytes], None]] = {
    one.__name__: one for one in (load, text, resolver, patch, merge, journal, display, pattern)
}


def seeds(name: str) -> list[bytes]:
    """Inputs to begin with."""
    match name:
        case "load":
            return [binaries.base(), message_bytes(small()), message_bytes(base())]
        case "text":
            return [documents.BASE.encode(), onnxjson.dumps(small()).encode()]
        case "resolver":
            return [
                b"w.bin", b"sub/w.bin\n4\n8", b"../secret\n0\n6", b"link", b"hard\n0", b"up/secret",
                b"./sub/../w.bin",
            ]  # fmt: skip
        case "patch":
            return [
                Patch.between(model, mutated(model, Random(number), 3)).dumps().encode()
                for number in range(6) for model in (small(), base())
            ]  # fmt: skip
        case "journal":
            head = Header(format="onnxjson-journal/1", version="0", key="k", name="n", size=1, mtime_ns=1, started=1)
            edits = ('{"edit": "set-metadata", "key": "k", "value": "v"}',)
            between = Patch.between(small(), mutated(small(), Random(1), 1)).dumps()
            lines = [Line(step=StepLine(patch=between, edits=edits, title="t")), Line(undo=True), Line(redo=True)]
            return [b"".join([encoded(head), *map(encoded, lines * times)]) for times in (1, 2)]
        case "display":
            return [b"plain", "\x1b[31m\u202e\u0301\u0301 \U0001f642\u2028".encode(), b"\xff\\u{1b}"]
        case "pattern":
            texts = (
                "Relu($x)", "Add(Mul($x, ?w), _) where ?w.dims == [3]", "op:Relu in:main", "name:'a b' !op:Add",
                "Div($x, Add(Erf(Div($x, 1.41)), 1)) where users($x) == 1", "match:'Relu($x)'", "re:^a+$",
                "Conv|Gemm($x, ..., axis=1)",
            )  # fmt: skip
            return [each.encode() for each in texts]
    return [bytes(range(size)) for size in (4, 40, 200)]
