"""Changes of weights that a patch stores as factors: exact, small, or refused."""

import gzip
import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import ml_dtypes
import numpy
import pybase64
import pytest

import onnxjson
from onnxjson.codecs.wire_writing import message_bytes
from onnxjson.model import document as d
from onnxjson.model.errors import DecodeError, OnnxJsonError, PatchError, WeightsMissingError
from onnxjson.model.payloads import Digest, whole
from onnxjson.model.tensors import from_numpy
from onnxjson.patching.patch import Patch
from tests.cli.running import run

DTYPES = {"float32": numpy.float32, "float16": numpy.float16, "bfloat16": ml_dtypes.bfloat16}


def model_of(*weights: "numpy.ndarray[Any, Any]") -> d.Model:
    return d.Model(graph=d.Graph(initializer=tuple([from_numpy(each, f"w{at}") for at, each in enumerate(weights)])))


def merged(dtype: str, shape: tuple[int, ...], rank: int = 16, seed: int = 1) -> "list[numpy.ndarray[Any, Any]]":
    """A weight, and the same with an adapter of a rank merged into it."""
    numbers = numpy.random.default_rng(seed)
    old = (numbers.standard_normal(shape) * 0.02).astype(DTYPES[dtype])
    rows, columns = shape[0], old.size // shape[0]
    change = (numbers.standard_normal((rows, rank)) * 0.03) @ (numbers.standard_normal((rank, columns)) * 0.01)
    return [old, (old.astype(numpy.float32) + change.reshape(shape).astype(numpy.float32)).astype(old.dtype)]


def laws(old: d.Model, new: d.Model) -> tuple[Patch, int]:
    """Store a change as factors, check that it is exact in both directions; return it and the size of its text."""
    text = Patch.between(old, new).with_factors(old).dumps()
    patch = Patch.loads(text)
    assert patch.dumps() == text
    assert message_bytes(patch.apply(old)) == message_bytes(new)
    assert message_bytes(patch.invert().apply(new)) == message_bytes(old)
    assert message_bytes(patch.invert().apply(patch.apply(old))) == message_bytes(old)
    return patch, len(text)


@pytest.mark.parametrize(("dtype", "least"), [("float32", 11), ("float16", 6), ("bfloat16", 6)])
def test_a_merged_adapter_is_exact_and_small(dtype: str, least: float) -> None:
    for shape in ((512, 512), (384, 768), (256, 128, 3, 3)):
        before, after = merged(dtype, shape)
        old, new = model_of(before), model_of(after)
        _, size = laws(old, new)
        assert len(Patch.between(old, new).dumps()) > size * (least if len(shape) == 2 and shape[0] == shape[1] else 4)


@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_that_arithmetic_does_not_keep_are_exact(dtype: str) -> None:
    """NaNs with their payloads, zeros with their signs, infinite and denormal numbers."""
    before, after = merged(dtype, (512, 300))
    size = before.itemsize
    word: Any = f"u{size}"
    infinite = 0x7C00 if dtype == "float16" else 0x7F80
    odd = [infinite, 0x8000 + infinite, infinite + 1, 0xFFFF, 0x7FFE, 0x8000, 0, 1, 0x8001]
    for count, bits in enumerate(odd):
        for each, other in ((before, 0), (after, 7)):
            each.view(word)[count * 20, other : other + 30] = bits << (8 * size - 16)
    laws(model_of(before), model_of(after))


def test_other_changes_stay_as_they_are() -> None:
    before, after = merged("float16", (256, 256), rank=4)
    old = model_of(before, numpy.zeros(5000, numpy.float32), numpy.zeros((2, 3), numpy.float32))
    new = model_of(after, numpy.ones(5000, numpy.float32), numpy.ones((2, 3), numpy.float32))
    patch, _ = laws(old, new)
    assert sum("base" in each for each in json.loads(patch.dumps())["payloads"].values()) == 2
    node = d.Node(op_type="Constant", attribute=(d.Attribute(name="value", t=from_numpy(before), type=4),))
    after_node = d.Node(op_type="Constant", attribute=(d.Attribute(name="value", t=from_numpy(after), type=4),))
    laws(d.Model(graph=d.Graph(node=(node,))), d.Model(graph=d.Graph(node=(after_node,))))


def test_the_same_bytes_elsewhere_are_stored_as_bytes() -> None:
    before, after = merged("float16", (256, 256), rank=4)
    patch = Patch.between(model_of(before), model_of(after, after)).with_factors(model_of(before))
    assert message_bytes(Patch.loads(patch.dumps()).apply(model_of(before))) == message_bytes(model_of(after, after))


def test_a_change_of_full_rank_is_refused(tmp_path: Path) -> None:
    numbers = numpy.random.default_rng(0)
    weights = [numbers.standard_normal((128, 200)).astype(numpy.float16) for _ in range(2)]
    old, new = model_of(weights[0]), model_of(weights[1])
    expected = (
        r'/graph/initializer/0/raw_data: the change of "w0" \(51,200 bytes\) cannot be stored as factors: '
        r"rank \d+ explains [0-9.]+ % of it; with corrections, .*more than a quarter of the 102,400 bytes before "
        r"and after"
    )
    with pytest.raises(PatchError, match=expected):
        Patch.between(old, new).with_factors(old)
    with pytest.raises(PatchError, match="no change can be stored as factors"):
        Patch.between(old, model_of(weights[0], weights[1])).with_factors(old)
    for name, each in (("a.onnx", old), ("b.onnx", new)):
        onnxjson.save(each, tmp_path / name)
    place = tmp_path / "p.json"
    given = ("--format", "patch", "--factors", "-o", place)
    result = run("diff", tmp_path / "a.onnx", tmp_path / "b.onnx", *given)
    assert result.exit_code == 65, result
    assert '"w0"' in result.stderr
    assert not place.exists()


def test_patches_of_factors_compose_in_memory() -> None:
    first, second = merged("float32", (256, 256), rank=4)
    third = (second + numpy.outer(first[0], first[1])).astype(numpy.float32)
    models = [model_of(each) for each in (first, second, third)]
    patches = [laws(models[0], models[1])[0], laws(models[1], models[2])[0]]
    plain = Patch.between(models[1], models[2])
    for following in (patches[1], plain):
        both = patches[0].then(following)
        assert message_bytes(both.apply(models[0])) == message_bytes(models[2])
        assert message_bytes(both.invert().apply(models[2])) == message_bytes(models[0])
    assert not patches[0].then(patches[0].invert())
    with pytest.raises(WeightsMissingError):
        patches[0].then(patches[1]).dumps()
    without = d.Model(graph=d.Graph(initializer=(d.Tensor(
        dims=(256, 256), data_type=1, name="w0", raw_data=Digest(sha256(first.tobytes()).hexdigest(), first.nbytes)
    ),)))  # fmt: skip
    with pytest.raises(WeightsMissingError):
        message_bytes(patches[0].apply(without))


def _entries(tree: Any) -> dict[str, Any]:
    return {key: each for key, each in tree["payloads"].items() if "base" in each}


def _put(tree: Any, data: bytes) -> str:
    key = sha256(data).hexdigest()
    tree["payloads"][key] = {"base64": pybase64.b64encode(data).decode()}
    return key


def _each(**changes: Any) -> Callable[[Any], None]:
    def change(tree: Any) -> None:
        for entry in _entries(tree).values():
            entry |= {key: _put(tree, each) if isinstance(each, bytes) else each for key, each in changes.items()}

    return change


def _without_corrections(tree: Any) -> None:
    for entry in _entries(tree).values():
        del entry["corrections"]


NOT_READ: dict[str, Callable[[Any], None]] = {
    "too few rows": _each(left=bytes(4 * 63)),
    "another rank": _each(left=bytes(4 * 64 * 3)),
    "no rank": _each(left=bytes(4), right=bytes(4)),
    "a rank that is too high": _each(left=bytes(4 * 64 * 65), right=bytes(4 * 65 * 64)),
    "another shape": _each(type="float16[64,65]"),
    "no elements": _each(type="float16[0,64]"),
    "more elements than memory": _each(type="float16[4611686018427387904,4611686018427387904]"),
    "one dimension": _each(type="float16[4096]"),
    "an integer dtype": _each(type="int16[64,64]"),
    "no dtype": _each(type="[64,64]"),
    "a factor that is not in the table": _each(right="0" * 64),
    "a base that is no hash": _each(base="../../etc/passwd"),
    "a line break after a hash": _each(base="0" * 64 + "\n"),
    "an unknown key that a terminal interprets": _each(**{"\x1b[31m": 3}),
    "a sign that is none": _each(sign="*"),
    "an unknown key": _each(power=3),
    "a number for a hash": _each(left=3),
    "no corrections": _without_corrections,
}
NOT_APPLIED: dict[str, Callable[[Any], None]] = {
    "corrections that are not compressed": _each(corrections=b"not compressed"),
    "corrections that end too early": _each(corrections=gzip.compress(bytes(8000))),
    "corrections without end": _each(corrections=gzip.compress(bytes(50_000_000))),
    "no correction": _each(corrections=gzip.compress(bytes(8192))),
    "corrections of another element": _each(corrections=gzip.compress(b"\1" + bytes(8191))),
    "NaN": _each(left=numpy.full((64, 2), numpy.nan, "<f4").tobytes()),
    "infinity": _each(left=numpy.full((64, 2), -numpy.inf, "<f4").tobytes()),
    "numbers that overflow": _each(
        left=numpy.full((64, 2), 3e38, "<f4").tobytes(), right=numpy.full((2, 64), 3e38, "<f4").tobytes()
    ),
    "another base": _each(base="0" * 64),
    "the other direction": _each(sign="-"),
}


def of_rank_two() -> tuple[d.Model, Any]:
    """A model, and the tree of a patch of factors for it."""
    before, after = merged("float16", (64, 64), rank=2)
    old, new = model_of(before), model_of(after)
    return old, json.loads(Patch.between(old, new).with_factors(old).dumps())


@pytest.mark.parametrize("what", NOT_READ)
def test_hostile_factors_are_not_read(what: str) -> None:
    _, tree = of_rank_two()
    NOT_READ[what](tree)
    with pytest.raises(DecodeError) as refusal:
        Patch.loads(json.dumps(tree))
    assert refusal.value.findings
    assert all([each.message.isprintable() for each in refusal.value.findings])


@pytest.mark.parametrize("what", NOT_APPLIED)
def test_hostile_factors_change_nothing(what: str, tmp_path: Path) -> None:
    old, tree = of_rank_two()
    NOT_APPLIED[what](tree)
    patch = Patch.loads(json.dumps(tree))
    assert Patch.loads(patch.dumps()) == patch
    with pytest.raises(OnnxJsonError):
        message_bytes(patch.apply(old))
    onnxjson.save(old, tmp_path / "m.onnx")
    (tmp_path / "p.json").write_text(json.dumps(tree))
    result = run("apply", tmp_path / "p.json", tmp_path / "m.onnx", "-i")
    assert result.exit_code in (65, 66), result
    assert onnxjson.load(tmp_path / "m.onnx") == old
    assert sorted(each.name for each in tmp_path.iterdir()) == ["m.onnx", "p.json"]


@pytest.mark.parametrize("seed", range(60))
def test_factors_with_any_values_are_refused_or_exact(seed: int) -> None:
    rng = Random(seed)
    old, tree = of_rank_two()
    payloads, weights = tree["payloads"], list(_entries(tree).values())
    types = (
        "float16[64,64]",
        "float16[128,32]",
        "bfloat16[64,64]",
        "float32[64,32]",
        "float16[1,4096]",
        "float16[2,2]",
    )
    for _ in range(rng.randrange(1, 4)):
        entry, key = rng.choice(weights), rng.choice(["type", "base", "left", "right", "corrections", "sign", "bytes"])
        if key == "bytes":
            data = bytearray(pybase64.b64decode(payloads[rng.choice([each["left"] for each in weights])]["base64"]))
            data[rng.randrange(len(data))] = rng.randrange(256)
            entry[rng.choice(["left", "right"])] = _put(tree, bytes(data))
        else:
            entry[key] = {"type": rng.choice(types), "sign": "-"}.get(key) or rng.choice(list(payloads))
    try:
        patch = Patch.loads(json.dumps(tree))
        new = patch.apply(old)
        written = message_bytes(new)
        assert message_bytes(patch.invert().apply(new)) == message_bytes(old)
    except OnnxJsonError:
        return
    raw = d.Tensor() if new.graph is None else new.graph.initializer[0]
    assert raw.raw_data is not None
    assert whole(raw.raw_data) in written
    assert sha256(whole(raw.raw_data)).hexdigest() in payloads
